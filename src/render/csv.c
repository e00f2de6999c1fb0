/* A report as CSV (RFC 4180), lines ended by CRLF: its records, a line of paths and a line each, or
 * every table of its page, a line of heads and a line a row, an empty line between tables.
 *
 * Spreadsheets take a cell that begins with = + - or @ for a formula; such a cell is text of ours
 * unless it is a number, and gets an apostrophe in front, which they do not show. */
#include "columns.h"
#include "scalemodel/json.h"
#include <ctype.h>
#include <stdlib.h>

/* "-1.5e-06", "+3.2 %", "-2 GB/s", "-": a number and its unit, or no number. */
static bool is_number(const char *text) {
    char *end;
    strtod(text, &end);
    if (end == text) return text[1] == '\0';
    while (isalnum((unsigned char)*end) || *end == ' ' || *end == '%' || *end == '/') end++;
    return *end == '\0';
}

void sm_render_record(const char *const *cells, size_t n, FILE *out) {
    for (size_t c = 0; c < n; c++) {
        if (c > 0) fputc(',', out);
        bool formula = *cells[c] && strchr("=+-@\t\r", *cells[c]) && !is_number(cells[c]);
        bool quoted = strpbrk(cells[c], ",\"\r\n") != NULL;
        if (quoted) fputc('"', out);
        if (formula) fputc('\'', out);
        for (const char *at = cells[c]; *at; at++) {
            if (*at == '"') fputc('"', out);
            fputc(*at, out);
        }
        if (quoted) fputc('"', out);
    }
    fputs("\r\n", out);
}

/* ---- records ---- */

/* The cells of a record: its scalars, and those of its objects and lists of scalars, by path. Lists
 * of objects are tables of their own, which --json has. */
typedef struct walk {
    sm_arena *arena;
    const char **path, **cell; /* room for `most` */
    size_t n, most;
    bool failed;
} walk;

static bool is_list_of_objects(const sm_data *data) {
    return data->kind == SM_DATA_ARRAY && data->first && data->first->kind == SM_DATA_OBJECT;
}

static const char *scalar_text(walk *w, const sm_data *data) {
    char number[64];
    switch (data->kind) {
    case SM_DATA_BOOL: return data->truth ? "true" : "false";
    case SM_DATA_STRING: return data->string;
    case SM_DATA_NUMBER:
        sm_format_exact(number, sizeof number, data->number);
        return sm_arena_copy(w->arena, number, strlen(number));
    default: return "";
    }
}

static size_t count_scalars(const sm_data *data) {
    if (data->kind != SM_DATA_ARRAY && data->kind != SM_DATA_OBJECT) return 1;
    size_t n = 0;
    for (const sm_data *child = data->first; child && !is_list_of_objects(data);
         child = child->next)
        n += count_scalars(child);
    return n;
}

static void put_cells(walk *w, const sm_data *data, const char *path) {
    int number = 0;
    if (data->kind != SM_DATA_ARRAY && data->kind != SM_DATA_OBJECT) {
        size_t at = 0;
        const char *text = scalar_text(w, data);
        while (at < w->n && strcmp(w->path[at], path) != 0) at++;
        if (at == w->n) w->path[w->n++] = path;
        w->cell[at] = text;
        w->failed = w->failed || !text;
        return;
    }
    for (const sm_data *c = data->first; c && !w->failed && !is_list_of_objects(data);
         c = c->next, number++) {
        const char *dot = *path ? "." : "";
        const char *below = c->key ? sm_arena_printf(w->arena, "%s%s%s", path, dot, c->key)
                                   : sm_arena_printf(w->arena, "%s%s%d", path, dot, number);
        if (!below) w->failed = true;
        else put_cells(w, c, below);
    }
}

sm_status sm_render_csv(const sm_report *report, FILE *out, sm_error *err) {
    if (report->out_of_memory) return sm_fail_memory(err);
    bool first = true;
    if (report->records && report->records->first) {
        /* The paths of all records, in the order in which they are met, then each record's cells.
         */
        walk w = {.arena = sm_arena_new()};
        for (const sm_data *r = report->records->first; r; r = r->next) w.most += count_scalars(r);
        w.path = sm_arena_array(w.arena, w.most, sizeof *w.path);
        w.cell = sm_arena_array(w.arena, w.most, sizeof *w.cell);
        w.failed = !w.path || !w.cell;
        for (const sm_data *r = report->records->first; r && !w.failed; r = r->next)
            put_cells(&w, r, "");
        if (!w.failed) sm_render_record(w.path, w.n, out);
        for (const sm_data *r = report->records->first; r && !w.failed; r = r->next) {
            for (size_t i = 0; i < w.n; i++) w.cell[i] = "";
            put_cells(&w, r, "");
            if (!w.failed) sm_render_record(w.cell, w.n, out);
        }
        sm_arena_free(w.arena);
        sm_status status = w.failed ? sm_fail_memory(err) : SM_OK;
        return status ? status : sm_finish_stream(out, err);
    }
    for (const sm_block *block = report->first; block != NULL; block = block->next) {
        if (block->kind != SM_BLOCK_TABLE) continue;
        const sm_table *table = block->table;
        if (!first) fputs("\r\n", out);
        sm_render_record(table->heads, table->columns, out);
        for (size_t r = 0; r < table->rows; r++)
            sm_render_record(table->cells[r], table->columns, out);
        first = false;
    }
    return sm_finish_stream(out, err);
}

/* The data of a report as JSON. */

sm_status sm_render_json(const sm_report *report, FILE *out, sm_error *err) {
    if (report->out_of_memory) return sm_fail_memory(err);
    sm_status status = sm_json_write(out, report->data, SM_JSON_PAGE, err);
    return status ? status : sm_finish_stream(out, err);
}
