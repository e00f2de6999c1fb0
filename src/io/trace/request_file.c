/* Request traces: the form of the file, and rows as requests, checked one by one. */
#include "json_tree.h"
#include "request_row.h"
#include "scalemodel/io.h"
#include <math.h>

/* The row of the table for a name, NULL when it means nothing here. */
static const request_name *request_name_of(const char *text, size_t length) {
    for (size_t i = 0; i < requests_names_count; i++) {
        const char *name = requests_names[i].name;
        if (strlen(name) == length && memcmp(name, text, length) == 0) return &requests_names[i];
    }
    return NULL;
}

/* "arrival_s, timestamp or TIMESTAMP" */
static const char *request_field_names(request_field field) {
    switch (field) {
    case REQUEST_ARRIVAL: return "arrival_s (seconds), TIMESTAMP (a date) or timestamp (ms)";
    case REQUEST_PROMPT: return "prompt_tokens, ContextTokens or input_length";
    case REQUEST_OUTPUT: return "output_tokens, GeneratedTokens or output_length";
    case REQUEST_PREFIX_TOKENS: return "prefix_tokens, the tokens that prefix_id stands for";
    default: return "";
    }
}

/* Requests as JSON, one object a line. */

static sm_status set_cell(const request_name *name, const json_value *value, request_row *row) {
    request_cell *to = &row->cell[name->field];
    if (to->kind != CELL_ABSENT) return json_fail(value, "two keys hold the same thing");
    *to = (request_cell){CELL_ABSENT, json_place(value), json_number(value), name->unit_s};
    if (value->kind == IS_NULL) return SM_OK;
    if (name->field == REQUEST_BLOCKS && value->kind == IS_LIST) {
        to->kind = CELL_IS_LIST;
        if (value->n > (uint32_t)row->block_room) {
            uint64_t *wider = sm_realloc(row->block, value->n * sizeof *wider);
            if (!wider) return sm_fail_memory(value->in->err);
            row->block = wider;
            row->block_room = (int)value->n; /* a line has at most LINE_MOST_BYTES */
        }
        for (uint32_t i = 0; i < value->n; i++) {
            if (value->item[i].kind != IS_NUMBER || !value->item[i].whole)
                return json_fail(value, "expected a list of whole numbers");
            row->block[i] = (uint64_t)value->item[i].integer;
        }
        row->blocks = (int)value->n;
        return SM_OK;
    }
    if (name->field == REQUEST_BLOCKS && value->kind != IS_NUMBER)
        return json_fail(value, "expected a list of whole numbers");
    if (value->kind != IS_TEXT && value->kind != IS_NUMBER)
        return json_fail(value, "expected a number or a text");
    to->kind = value->kind == IS_TEXT ? CELL_IS_TEXT : CELL_IS_NUMBER;
    if (value->kind == IS_TEXT) to->text = (sm_span){to->text.offset + 1, to->text.length - 2};
    return SM_OK;
}

static sm_status request_json_read(const line_reader *r, const sm_source *line, request_row *row,
                                   sm_error *err) {
    sm_arena *arena = sm_arena_new();
    const json_document document = {.source = line, .arena = arena, .err = err, .line = r->line};
    const json_value *object;
    if (!arena) return sm_fail_memory(err);
    sm_status status = json_parse(&document, &object);
    if (!status) {
        status = json_is(object, IS_OBJECT)
                     ? SM_OK
                     : json_fail(object, "expected one JSON object {...} a line");
        for (size_t i = 0; !status && i < requests_names_count; i++) {
            const json_value *value = json_get(object, requests_names[i].name);
            if (value) status = set_cell(&requests_names[i], value, row);
        }
    }
    sm_arena_free(arena);
    return status;
}

/* Requests as CSV: a header that names the columns, then a row for each. */

/* ---- the header ---- */

static const char *nearest_to(const sm_source *line, sm_span cell, request_field field) {
    const char *names[REQUEST_NAMES];
    size_t n = 0;
    for (size_t i = 0; n < REQUEST_NAMES && i < requests_names_count; i++)
        if (requests_names[i].field == field) names[n++] = requests_names[i].name;
    return sm_nearest(line->text + cell.offset, cell.length, names, n);
}

/* A missing column is perhaps there under a name that is nearly right. */
static sm_status fail_missing(const line_reader *r, const sm_source *line, const csv_record *cells,
                              request_field field, sm_error *err) {
    for (int i = 0; i < cells->n; i++) {
        sm_span cell = csv_inside(line, cells->cell[i]);
        const char *near = nearest_to(line, cell, field);
        if (near && !request_name_of(line->text + cell.offset, cell.length))
            return line_fail(r, line, cell, err,
                             "no column holds what the trace needs as %s; did you mean '%s' here?",
                             request_field_names(field), near);
    }
    return line_fail(r, line, (sm_span){0, line->length}, err, "the header has no column %s",
                     request_field_names(field));
}

static sm_status request_header_read(const line_reader *r, const sm_source *line,
                                     request_header *header, sm_error *err) {
    bool found[REQUEST_FIELDS] = {false};
    csv_record cells;
    size_t at = 0;
    if (!csv_read(line, &at, 0, &cells))
        return line_fail(r, line, cells.wrong, err, "%s", cells.sentence);
    header->columns = cells.n;
    for (int i = 0; i < cells.n; i++) {
        sm_span cell = csv_inside(line, cells.cell[i]);
        const request_name *name = request_name_of(line->text + cell.offset, cell.length);
        if (name && name->field == REQUEST_BLOCKS) name = NULL; /* a list: of JSON alone */
        if (name && found[name->field])
            return line_fail(r, line, cell, err, "two columns hold %s", name->name);
        if (name) found[name->field] = true;
        header->name[i] = name;
    }
    for (int field = 0; field < REQUEST_NEEDED; field++)
        if (!found[field]) return fail_missing(r, line, &cells, (request_field)field, err);
    if (found[REQUEST_PREFIX] && !found[REQUEST_PREFIX_TOKENS])
        return fail_missing(r, line, &cells, REQUEST_PREFIX_TOKENS, err);
    return SM_OK;
}

/* ---- rows ---- */

static sm_status request_csv_read(const line_reader *r, const sm_source *line,
                                  const request_header *header, request_row *row, sm_error *err) {
    csv_record cells;
    size_t at = 0;
    if (!csv_read(line, &at, header->columns, &cells))
        return line_fail(r, line, cells.wrong, err, "%s", cells.sentence);
    for (int i = 0; i < cells.n; i++) {
        const request_name *name = header->name[i];
        sm_span cell = csv_inside(line, cells.cell[i]);
        if (!name || cell.length == 0) continue;
        request_cell *to = &row->cell[name->field];
        *to = (request_cell){CELL_IS_TEXT, cell, 0.0, name->unit_s};
        if (request_number(line->text + cell.offset, cell.length, &to->number))
            to->kind = CELL_IS_NUMBER;
    }
    return SM_OK;
}

#define MOST_SECONDS 1e12 /* thirty thousand years */
#define BLOCK_TOKENS 512  /* a hash of Mooncake's trace stands for so many */

struct sm_request_file {
    line_reader reader;
    bool begun, json;
    request_header header;
    request_row row;
    sm_source line; /* at hand; at the beginning the first one of JSON, already taken */
    bool first_waits;
    sm_error *err; /* of the request under reading */
    bool dated;    /* arrivals are dates, counted from the first */
    int64_t first_second;
    double first_rest, last_s;
    double requests;
    uint64_t conversation; /* of the row above, and the tokens that it ended with */
    double history;
    char kind[64]; /* the class of the row */
};

/* ---- opening ---- */

/* The first line tells the form: an object is JSON, anything else the header of CSV. */
static sm_status begin(sm_request_file *f, sm_error *err) {
    sm_source line;
    bool more = false;
    sm_status status = line_reader_next(&f->reader, &line, &more, err);
    if (status) return status;
    if (!more) {
        sm_source nothing = {f->reader.name, "", 0};
        return sm_fail_at(err, &nothing, (sm_span){0, 0},
                          "there are no requests: expected CSV with a header, or one JSON object a "
                          "line");
    }
    size_t at = 0;
    while (line.text[at] == ' ' || line.text[at] == '\t') at++;
    f->json = line.text[at] == '{';
    f->begun = true;
    f->line = line;
    f->first_waits = f->json;
    return f->json ? SM_OK : request_header_read(&f->reader, &line, &f->header, err);
}

static sm_status begin_or_close(sm_request_file *f, sm_status status, sm_request_file **file,
                                sm_error *err) {
    if (!status) status = begin(f, err);
    if (!status) *file = f;
    else sm_request_file_close(f);
    return status;
}

sm_status sm_request_file_open(const char *path, sm_request_file **file, sm_error *err) {
    sm_request_file *f = sm_calloc(1, sizeof *f);
    *file = NULL;
    if (!f) return sm_fail_memory(err);
    return begin_or_close(f, line_reader_open(&f->reader, path, err), file, err);
}

sm_status sm_request_file_of(const sm_source *source, sm_request_file **file, sm_error *err) {
    sm_request_file *f = sm_calloc(1, sizeof *f);
    *file = NULL;
    if (!f) return sm_fail_memory(err);
    return begin_or_close(f, line_reader_of(&f->reader, source, err), file, err);
}

sm_status sm_request_file_rewind(sm_request_file *f, sm_error *err) {
    f->requests = 0.0;
    f->last_s = 0.0;
    f->conversation = 0;
    /* From the beginning again. SM_IO for what cannot be read twice. */
    f->reader.begin = f->reader.end = 0;
    f->reader.at_end = false;
    f->reader.line = 0;
    sm_status status = packed_rewind(f->reader.file, err);
    return status ? status : begin(f, err);
}

void sm_request_file_close(sm_request_file *f) {
    if (!f) return;
    line_reader_close(&f->reader);
    sm_free(f->row.block);
    sm_free(f);
}

/* ---- values ---- */

/* Where the value of a field stands in the line. */
static sm_span place_of(const sm_request_file *f, request_field field) {
    sm_span span = f->row.cell[field].text;
    return span.length > 0 ? span : (sm_span){0, f->line.length};
}

#define fail_span(f, span, ...) line_fail(&(f)->reader, &(f)->line, span, (f)->err, __VA_ARGS__)
#define fail_field(f, field, ...) fail_span(f, place_of(f, field), __VA_ARGS__)

/* How much of a wrong value an error repeats. */
static int shown(sm_span span) { return span.length < 40 ? (int)span.length : 40; }

static sm_status read_tokens(const sm_request_file *f, request_field field, const char *what,
                             double least, double *tokens) {
    const request_cell *cell = &f->row.cell[field];
    sm_span span = place_of(f, field);
    if (cell->kind == CELL_ABSENT)
        return fail_span(f, span, "this request does not say %s", request_field_names(field));
    double value = cell->number;
    if (cell->kind != CELL_IS_NUMBER)
        return fail_span(f, span,
                         "'%.*s' is no number of tokens: expected a whole number from %.0f to 1e9",
                         shown(span), f->line.text + span.offset, least);
    if (!(value >= least && value <= SM_MAX_TOKENS && value == floor(value)))
        return fail_span(f, span, "%s of %.9g tokens: expected a whole number from %.0f to 1e9",
                         what, value, least);
    *tokens = value;
    return SM_OK;
}

static sm_status fail_arrival(const sm_request_file *f) {
    sm_span span = place_of(f, REQUEST_ARRIVAL);
    return fail_span(f, span,
                     "'%.*s' is no time of arrival: expected seconds, or a date as in 2023-11-16 "
                     "18:15:46.68",
                     shown(span), f->line.text + span.offset);
}

/* Dates count from the first; numbers are what they are. */
static sm_status read_date(sm_request_file *f, const request_cell *cell, double *arrival_s) {
    int64_t seconds = 0;
    double rest = 0.0;
    if (!request_date(f->line.text + cell->text.offset, cell->text.length, &seconds, &rest))
        return fail_arrival(f);
    if (f->requests == 0.0) {
        f->first_second = seconds;
        f->first_rest = rest;
    }
    *arrival_s = (double)(seconds - f->first_second) + (rest - f->first_rest);
    return SM_OK;
}

static sm_status read_arrival(sm_request_file *f, double *arrival_s) {
    const request_cell *cell = &f->row.cell[REQUEST_ARRIVAL];
    sm_status status = SM_OK;
    bool dated = cell->kind == CELL_IS_TEXT;
    if (cell->kind == CELL_ABSENT)
        return fail_span(f, ((sm_span){0, f->line.length}), "this request does not say %s",
                         request_field_names(REQUEST_ARRIVAL));
    if (f->requests == 0.0) f->dated = dated;
    if (dated) status = read_date(f, cell, arrival_s);
    else *arrival_s = cell->number * cell->unit_s;
    if (status) return status;
    if (dated != f->dated) return fail_arrival(f);
    sm_span span = place_of(f, REQUEST_ARRIVAL);
    if (!(fabs(*arrival_s) <= MOST_SECONDS)) return fail_arrival(f);
    if (f->requests > 0.0 && *arrival_s < f->last_s)
        return fail_span(f, span,
                         "this request arrives %.6g s before the one above it: sort the trace by "
                         "arrival",
                         f->last_s - *arrival_s);
    return SM_OK;
}

/* A hash of the id as it is written; 0 stands for none. */
static uint64_t read_id(const sm_request_file *f, request_field field) {
    const request_cell *cell = &f->row.cell[field];
    const char *text = f->line.text + cell->text.offset;
    if (cell->kind == CELL_ABSENT || cell->text.length == 0) return 0;
    if (cell->text.length == 1 && text[0] == '0') return 0;
    uint64_t id = sm_hash_bytes(text, cell->text.length);
    return id ? id : 1;
}

static sm_status read_prefix(const sm_request_file *f, sm_request *request) {
    request->prefix = read_id(f, REQUEST_PREFIX);
    request->conversation = f->conversation;
    if (request->prefix == 0) return SM_OK;
    sm_status status =
        read_tokens(f, REQUEST_PREFIX_TOKENS, "a prefix", 0.0, &request->shared_prefix);
    if (status || request->shared_prefix <= request->prompt) return status;
    return fail_field(f, REQUEST_PREFIX_TOKENS,
                      "a prefix cannot be longer than its prompt of %.0f tokens", request->prompt);
}

/* A further turn of the conversation in the row above, or a request at a time of its own. */
static sm_status read_turn(sm_request_file *f, sm_request *request) {
    const request_field which =
        f->row.cell[REQUEST_DELAY].kind == CELL_ABSENT ? REQUEST_THINK : REQUEST_DELAY;
    const request_cell *cell = &f->row.cell[which];
    uint64_t conversation = read_id(f, REQUEST_CONVERSATION);
    bool same = conversation != 0 && conversation == f->conversation && f->requests > 0.0;
    request->follows = same && cell->kind != CELL_ABSENT;
    f->conversation = conversation;
    if (cell->kind != CELL_ABSENT && !same && f->row.cell[REQUEST_ARRIVAL].kind == CELL_ABSENT)
        return fail_field(
            f, which,
            "this turn follows none: the row above is not of its conversation, and no "
            "time says when it comes");
    if (cell->kind != CELL_ABSENT &&
        (cell->kind != CELL_IS_NUMBER || !(cell->number >= 0.0 && cell->number <= MOST_SECONDS)))
        return fail_field(f, which, "a time between two turns is a number of %s, 0 or more",
                          which == REQUEST_DELAY ? "milliseconds" : "seconds");
    if (which == REQUEST_DELAY && f->row.blocks > 0)
        return fail_field(f, REQUEST_BLOCKS,
                          "hash_ids of a turn that a delay comes before are not read");
    if (!request->follows) return read_arrival(f, &request->arrival_s);
    request->think_s = cell->number * cell->unit_s;
    return SM_OK;
}

static sm_status read_class(sm_request_file *f, sm_request *request) {
    const request_cell *cell = &f->row.cell[REQUEST_CLASS];
    if (cell->kind == CELL_ABSENT || cell->text.length == 0) return SM_OK;
    if (cell->text.length >= sizeof f->kind ||
        memchr(f->line.text + cell->text.offset, 0, cell->text.length))
        return fail_field(f, REQUEST_CLASS,
                          "the name of a class has at most %zu bytes, none of them 0",
                          sizeof f->kind - 1);
    memcpy(f->kind, f->line.text + cell->text.offset, cell->text.length);
    f->kind[cell->text.length] = 0;
    request->kind = f->kind;
    return SM_OK;
}

static sm_status read_request(sm_request_file *f, sm_request *request) {
    *request = (sm_request){.arrival_s = 0.0};
    sm_status status = read_turn(f, request);
    if (!status) status = read_class(f, request);
    if (!status) status = read_tokens(f, REQUEST_PROMPT, "a prompt", 1.0, &request->prompt);
    if (!status) status = read_tokens(f, REQUEST_OUTPUT, "an output", 0.0, &request->output);
    if (!status) status = read_prefix(f, request);
    if (status) return status;
    if (request->output < 1.0) request->output = 1.0; /* its prefill gives a token all the same */
    if (f->row.blocks > 0) {
        request->block = f->row.block;
        request->blocks = f->row.blocks;
        request->block_tokens = BLOCK_TOKENS;
    }
    if (request->follows && f->row.cell[REQUEST_DELAY].kind != CELL_ABSENT)
        request->prompt += f->history;
    f->history = request->prompt + request->output;
    if (request->prompt > SM_MAX_TOKENS)
        return fail_field(f, REQUEST_PROMPT,
                          "with what went before the prompt has %.0f tokens: at most 1e9 are",
                          request->prompt);
    if (!request->follows) f->last_s = request->arrival_s;
    f->requests += 1.0;
    return SM_OK;
}

/* ---- row by row ---- */

static int next_request(void *context, sm_request *request, sm_error *err) {
    sm_request_file *f = context;
    bool more = true;
    sm_status status = SM_OK;
    f->err = err;
    if (!f->first_waits) status = line_reader_next(&f->reader, &f->line, &more, err);
    f->first_waits = false;
    if (status == SM_OK && !more && f->requests > 0.0) return 0;
    if (status == SM_OK && !more) {
        f->line = (sm_source){f->reader.name, "", 0};
        fail_span(f, ((sm_span){0, 0}), "there are no requests below the header");
        return -1;
    }
    memset(f->row.cell, 0, sizeof f->row.cell);
    f->row.blocks = 0;
    if (!status)
        status = f->json ? request_json_read(&f->reader, &f->line, &f->row, err)
                         : request_csv_read(&f->reader, &f->line, &f->header, &f->row, err);
    if (!status) status = read_request(f, request);
    return status ? -1 : 1;
}

sm_arrivals sm_request_arrivals(sm_request_file *file) { return (sm_arrivals){file, next_request}; }
