/* answer_program: a model as a program: its layers line by line, with what each holds and does. */
#include "question.h"
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
static const char *comment(void *with, int kind, const sm_text_lines *lines, int line,
                           sm_arena *arena) {
    char params[32], kept[32], flops[32];
    const sm_text_line *l = &lines->line[line];
    line_sizes sizes = sizes_of(lines, l, *(const sm_text_phase *)with != SM_TEXT_TRAIN);
    (void)kind;
    sm_format_count(params, sizeof params, sizes.params);
    sm_format_count(kept, sizeof kept, sizes.kept);
    sm_format_rate(flops, sizeof flops, l->matrix_flops, "FLOP");
    bool has = sizes.params > 0, keeps = sizes.kept > 0, works = l->matrix_flops > 0;
    return sm_arena_printf(arena, "%s%s%s%s%s%s%s", has ? params : "", has ? " weights" : "",
                           has && (keeps || works) ? ", " : "", keeps ? kept : "",
                           keeps ? " kept" : "", keeps && works ? ", " : "", works ? flops : "");
}

static void put_line(sm_report *r, sm_data *list, const sm_text_lines *lines,
                     const sm_text_line *line, bool serving) {
    line_sizes sizes = sizes_of(lines, line, serving);
    sm_data *object = sm_put_object(r, list, NULL);
    sm_put_text(r, object, "line", line->name);
    sm_put_text(r, object, "op",
                line->op == SM_OPERATOR_PRODUCT      ? "product"
                : line->op == SM_OPERATOR_EXPRESSION ? "expression"
                                                     : sm_operator_at(line->op)->name);
    sm_put_all(r, object, "params|kept_elements|matrix_flops|vector_flops", sizes.params,
               sizes.kept, line->matrix_flops,
               line->results ? line->flops * lines->array[line->result[0].array].elements : 0);
}

static sm_status put_kinds(sm_report *r, const sm_architecture *a, const sm_program_style *style,
                           sm_error *err) {
    sm_data *kinds = sm_put_array(r, r->data, "kinds");
    for (int k = 0; k < sm_architecture_kinds(a); k++) {
        int count;
        const sm_text_lines_of of = {k, style->phase, style->absorbed, style->T, style->S};
        const sm_model_piece *piece = sm_architecture_kind(a, k, &count);
        const sm_text_lines *lines;
        sm_status status = sm_architecture_lines(a, &of, r->arena, &lines, err);
        if (status) return status;
        sm_data *object = sm_put_object(r, kinds, NULL);
        sm_put_text(r, object, "piece", piece->name);
        sm_put_text(r, object, "text", piece->text);
        sm_put_all(r, object, "count|params", count, sm_architecture_kind_params(a, k, false));
        sm_data *dims = sm_put_object(r, object, "dims");
        for (int d = 0; d < lines->dims; d++)
            sm_put(r, dims, lines->dim[d].name, lines->dim[d].size);
        sm_data *list = sm_put_array(r, object, "lines");
        for (int l = 0; l < lines->lines; l++)
            put_line(r, list, lines, &lines->line[l], style->phase != SM_TEXT_TRAIN);
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

sm_status sm_answer_program(const sm_program_question *question, sm_report *r, sm_error *err) {
    sm_program_question q;
    sm_status status = sm_sized_take(&q, sizeof q, question, err);
    if (!status) status = sm_question_needs(q.architecture != NULL, "a model", err);
    if (!status) status = sm_question_limit("a sequence", q.seq, 1e9, err);
    if (status) return status;
    double seq = q.seq > 0 ? q.seq : USUAL_SEQ;
    const char *name = quotable(r, q.name && q.name[0] ? q.name : "model"), *text;
    const sm_program_style style = {.name = name,
                                    .phase = q.phase,
                                    .absorbed = q.phase == SM_TEXT_DECODE,
                                    .T = q.phase == SM_TEXT_DECODE ? 1 : seq,
                                    .S = seq,
                                    .comment = comment,
                                    .with = &q.phase};
    status = sm_architecture_format(q.architecture, &style, r->arena, &text, err);
    if (status) return status;
    const sm_counts *counts = sm_architecture_counts(q.architecture);
    sm_report_lines(r,
                    sm_textf(r, "# %s: %s parameters; %s, %s = %s\n%s", name,
                             sm_show_count(r, counts->total),
                             q.phase == SM_TEXT_TRAIN     ? "training"
                             : q.phase == SM_TEXT_PREFILL ? "prefill"
                                                          : "decoding",
                             q.phase == SM_TEXT_DECODE ? "S" : "T", sm_show_exact(r, seq), text));
    sm_put_text(r, r->data, "command", "model");
    sm_put_text(r, r->data, "name", name);
    sm_put_text(r, r->data, "family", sm_architecture_family(q.architecture));
    sm_put_text(r, r->data, "phase", phases[q.phase]);
    sm_put_all(r, r->data, "seq|params", seq, counts->total);
    sm_put_text(r, r->data, "program", text);
    return put_kinds(r, q.architecture, &style, err);
}
