/* answer_program: a model as a program: its layers line by line, with what each holds and does. */
#include "program_told.h"
#include <string.h>

enum { USUAL_SEQ = 4096 };

static const char *const phases[] = {
    [SM_TEXT_TRAIN] = "train", [SM_TEXT_PREFILL] = "prefill", [SM_TEXT_DECODE] = "decode"};

/* Of one line: parameters of its own weights; elements of caches and states, which training does
 * not keep. */
typedef struct line_sizes {
    double params, kept;
} line_sizes;

static line_sizes sizes_of(const sm_text_lines *lines, const sm_text_line *line, bool serving) {
    line_sizes out = {0, 0};
    for (int i = 0; i < line->operands; i++) {
        const sm_text_array *a = &lines->array[line->operand[i].array];
        bool again = false;
        for (int j = 0; j < i; j++)
            again = again || line->operand[j].array == line->operand[i].array;
        if (a->role == SM_TEXT_WEIGHT && a->piece < 0 && !again) out.params += a->elements;
    }
    for (int i = 0; i < line->results && serving; i++) {
        const sm_text_array *a = &lines->array[line->result[i].array];
        if (a->role == SM_TEXT_CACHE || line->op == SM_OPERATOR_STATE) out.kept += a->elements;
    }
    return out;
}

/* "67.1M weights, 550 GFLOP": of one sequence. */
static const char *comment(void *with, int kind, const sm_text_lines *lines, int line, bool inside,
                           sm_arena *arena) {
    (void)kind, (void)arena;
    if (line < 0 || (lines->line[line].kernel >= 0 && !inside)) return "";
    const sm_text_line *l = &lines->line[line];
    const sm_program_told *told = with;
    line_sizes sizes = sizes_of(lines, l, told->phase != SM_TEXT_TRAIN);
    bool has = sizes.params > 0, keeps = sizes.kept > 0, works = l->matrix_flops > 0;
    sm_report *r = told->report;
    return sm_textf(r, "%s%s%s%s%s%s%s", has ? sm_show_count(r, sizes.params) : "",
                    has ? " weights" : "", has && (keeps || works) ? ", " : "",
                    keeps ? sm_show_count(r, sizes.kept) : "", keeps ? " kept" : "",
                    keeps && works ? ", " : "",
                    works ? sm_show_rate(r, l->matrix_flops, "FLOP") : "");
}

static void put_line(const sm_program_told *told, sm_data *list, int kind,
                     const sm_text_lines *lines, int number) {
    sm_report *r = told->report;
    const sm_text_line *line = &lines->line[number];
    line_sizes sizes = sizes_of(lines, line, told->phase != SM_TEXT_TRAIN);
    sm_data *object = sm_put_object(r, list, NULL);
    sm_put(r, object, "line|op|params|kept_elements|matrix_flops|vector_flops", line->name,
           line->op == SM_OPERATOR_PRODUCT      ? "product"
           : line->op == SM_OPERATOR_EXPRESSION ? "expression"
                                                : sm_operator_at(line->op)->name,
           sizes.params, sizes.kept, line->matrix_flops,
           line->results ? line->flops * lines->array[line->result[0].array].elements : 0);
    if (told->lines) sm_program_put_line(told, object, kind, lines, number);
}

static sm_status put_kinds(const sm_program_told *told, sm_error *err) {
    const sm_architecture *a = told->architecture;
    sm_report *r = told->report;
    sm_data *kinds = sm_put_array(r, r->data, "kinds");
    for (int k = 0; k < sm_architecture_kinds(a); k++) {
        int count;
        const sm_text_lines_of of = {k, told->phase, told->absorbed, told->T, told->S, false};
        const sm_model_piece *piece = sm_architecture_kind(a, k, &count);
        const sm_text_lines *lines;
        sm_status status = sm_architecture_lines(a, &of, r->arena, &lines, err);
        if (status) return status;
        sm_data *object = sm_put_object(r, kinds, NULL);
        sm_put(r, object, "piece|text|count|params", piece->name, piece->text, count,
               sm_architecture_kind_params(a, k, false));
        sm_data *dims = sm_put_object(r, object, "dims");
        for (int d = 0; d < lines->dims; d++)
            sm_put(r, dims, lines->dim[d].name, lines->dim[d].size);
        sm_data *list = sm_put_array(r, object, "lines");
        for (int l = 0; l < lines->lines; l++) put_line(told, list, k, lines, l);
    }
    return SM_OK;
}

/* A name that may stand in quotes. */
static const char *quotable(sm_report *r, const char *name) {
    char *copy = sm_arena_copy(r->arena, name, strlen(name));
    if (!copy) r->out_of_memory = true;
    for (char *c = copy; c && *c; c++)
        if (*c <= ' ' || *c > '~' || *c == '"') *c = '_';
    return copy ? copy : "";
}

/* ---- the page ---- */

/* Where the text may break last within its first `room` letters: after a comma, at a blank. */
static size_t break_at(const char *text, size_t room, bool comma) {
    size_t n = room;
    while (n > 0 && (comma ? text[n - 1] != ',' : text[n] != ' ')) n--;
    return n;
}

/* The text as comments of at most 80 columns. */
static const char *as_comment(sm_report *r, const char *text) {
    enum { ROOM = 78 };
    const char *out = "";
    for (bool first = true; *text; first = false) {
        size_t room = first ? ROOM : ROOM - 2, n = strlen(text);
        if (n > room) {
            size_t comma = break_at(text, room, true), blank = break_at(text, room, false);
            n = comma < room / 2 && blank > 0 ? blank : comma;
            if (n == 0) n = strcspn(text, " "); /* a word that is longer */
        }
        out = sm_textf(r, "%s# %s%.*s\n", out, first ? "" : "  ", (int)n, text);
        text += n + (text[n] == ' ');
    }
    return out;
}

/* Rows under each other, each a comment. */
static const char *as_comments(sm_report *r, const char *rows) {
    const char *out = "";
    while (*rows) {
        size_t n = strcspn(++rows, "\n");
        out = sm_textf(r, "%s%s", out, as_comment(r, sm_textf(r, "%.*s", (int)n, rows)));
        rows += n;
    }
    return out;
}

static const char *phase_words(const sm_program_told *told) {
    sm_report *r = told->report;
    const char *what = told->phase == SM_TEXT_TRAIN     ? "training, T"
                       : told->phase == SM_TEXT_PREFILL ? "prefill, T"
                                                        : "decoding, S";
    sm_forward f; /* a picture has positions of its own */
    double length = told->phase == SM_TEXT_DECODE ? told->S : told->T;
    if (told->phase != SM_TEXT_DECODE &&
        sm_architecture_forward(told->architecture, length, true, &f, NULL) == SM_OK)
        length = f.tokens;
    return sm_textf(r, "%s = %s", what, sm_show_exact(r, length));
}

static void put_page(const sm_program_told *told, const char *const *heads, int n,
                     const char *text) {
    sm_report *r = told->report;
    const sm_counts *counts = sm_architecture_counts(told->architecture);
    const char *page = as_comment(r, sm_textf(r, "%s: %s parameters; %s", told->name,
                                              sm_show_count(r, counts->total), phase_words(told)));
    for (int i = 0; i < n; i++) page = sm_textf(r, "%s%s", page, as_comment(r, heads[i]));
    page = sm_textf(r, "%s%s", page, text);
    const char *rest = told->lines ? sm_program_rest(told) : "";
    if (rest[0]) page = sm_textf(r, "%s\n# of no line:\n%s", page, as_comments(r, rest));
    sm_report_lines(r, page);
}

sm_status sm_program_tell(sm_program_told *told, const char *const *heads, int n, sm_error *err) {
    enum { PLANNED_COLUMN = 58 };
    sm_report *r = told->report;
    bool planned = told->lines != NULL;
    const sm_program_style style = {.name = told->name,
                                    .phase = told->phase,
                                    .absorbed = told->absorbed,
                                    .T = told->T,
                                    .S = told->S,
                                    .comment = planned ? sm_program_comment : comment,
                                    .axes = planned ? sm_program_axes : NULL,
                                    .column = planned ? PLANNED_COLUMN : 0,
                                    .with = told};
    const char *text;
    sm_status status = sm_architecture_format(told->architecture, &style, r->arena, &text, err);
    if (status) return status;
    put_page(told, heads, n, text);
    sm_put(r, r->data, "name|family|phase|seq|params|program", told->name,
           sm_architecture_family(told->architecture), phases[told->phase],
           told->phase == SM_TEXT_DECODE ? told->S : told->T,
           sm_architecture_counts(told->architecture)->total, text);
    if (planned) sm_program_put_mesh(told);
    if (planned) sm_program_put_rest(told);
    return put_kinds(told, err);
}

sm_status sm_answer_program(const sm_program_question *question, sm_report *r, sm_error *err) {
    sm_program_question q;
    sm_status status = sm_sized_take(&q, sizeof q, question, err);
    if (!status) status = sm_question_needs(q.architecture != NULL, "a model", err);
    if (!status) status = sm_question_limit("a sequence", q.seq, 1e9, err);
    if (status) return status;
    double seq = q.seq > 0 ? q.seq : USUAL_SEQ;
    sm_program_told told = {.architecture = q.architecture,
                            .name = quotable(r, q.name && q.name[0] ? q.name : "model"),
                            .phase = q.phase,
                            .absorbed = q.phase == SM_TEXT_DECODE,
                            .T = q.phase == SM_TEXT_DECODE ? 1 : seq,
                            .S = seq,
                            .report = r};
    sm_put(r, r->data, "command", "model");
    if (q.train && q.phase == SM_TEXT_TRAIN) return sm_program_with_train(&told, q.train, err);
    if (q.serve && q.phase != SM_TEXT_TRAIN) return sm_program_with_serve(&told, q.serve, err);
    return sm_program_tell(&told, NULL, 0, err);
}
