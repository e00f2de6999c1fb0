#include "evidence.h"
#include "scalemodel/search.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sources print one architecture under several names, leave a size of it open, and count the layer
 * that predicts tokens or do not. */
#define ALIKE 0.03
static bool is_same_model(const sm_model *a, const sm_model *b) {
    if (abs(a->L - b->L) > 1 || a->D != b->D) return false;
    return fabs(log(sm_model_params(a).total / sm_model_params(b).total)) < ALIKE;
}
static int experts_of(const sm_model *m) {
    int most = 0;
    for (int i = 0; i < m->kinds; i++)
        if (m->kind[i].E > most) most = m->kind[i].E;
    return most;
}

static const char *plain_type(const char *printed) {
    static const char *const words[][2] = {{"fp4", "fp4"},   {"fp8", "fp8"},  {"w8a8", "int8"},
                                           {"int8", "int8"}, {"w4", "int4"},  {"int4", "int4"},
                                           {"awq", "int4"},  {"gptq", "int4"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(printed, words[i][0])) return words[i][1];
    return "bf16";
}

sm_dtype evidence_type(const char *printed) {
    sm_dtype type = 0;
    while (type < SM_DTYPE_COUNT && strcmp(sm_dtype_name(type), plain_type(printed)) != 0) type++;
    return type;
}

/* Of rows that belong together; software NULL: of any. */
typedef struct group {
    const measured_row *first;
    const char *software;
} group;
static bool is_in(const group *g, const measured_row *m) {
    return m->chip == g->first->chip && is_same_model(m->model, g->first->model) &&
           (!g->software || strcmp(m->software, g->software) == 0);
}

static double median_of(double *error, size_t n) {
    return n > 0 ? sm_quantile(error, n, 0.5) : NAN;
}

static const char *add_word(sm_arena *arena, const char *list, const char *word) {
    const char *at = strstr(list, word);
    size_t n = strlen(word);
    for (; at; at = strstr(at + n, word))
        if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return list;
    return sm_arena_printf(arena, "%s%s%s", list, list[0] ? " " : "", word);
}

static sm_evidence line_of(sm_arena *arena, sm_evidence_use use, const group *g,
                           const char *const *sizes, const measured_row *row, size_t n,
                           double *const error[2]) {
    double low[MEASURED_SIZES], high[MEASURED_SIZES];
    size_t errors[2] = {0, 0};
    const char *types = "", *range = "", *layouts = "";
    const measured_row *first = g->first;
    const char *slash = strrchr(first->name, '/');
    sm_evidence line = {.use = use,
                        .model = slash ? slash + 1 : first->name,
                        .layers = first->model->L,
                        .d_model = first->model->D,
                        .experts = experts_of(first->model),
                        .params = sm_model_params(first->model).total,
                        .chip = first->chip->name,
                        .software = g->software ? g->software : ""};
    for (int j = 0; j < MEASURED_SIZES; j++) low[j] = INFINITY, high[j] = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        char layout[SM_EVIDENCE_LAYOUT];
        if (!is_in(g, &row[i])) continue;
        const double *by = g->software ? row[i].own : row[i].usual;
        line.rows++;
        types = add_word(arena, types, plain_type(row[i].type));
        if (row[i].plan) {
            sm_evidence_layout(row[i].plan, line.experts > 0, layout);
            layouts = add_word(arena, layouts, layout);
        }
        for (int j = 0; j < MEASURED_SIZES; j++)
            low[j] = fmin(low[j], row[i].size[j]), high[j] = fmax(high[j], row[i].size[j]);
        for (int j = 0; j < 2; j++)
            if (isfinite(by[j])) error[j][errors[j]++] = fabs(expm1(by[j]));
    }
    for (int j = 0; j < MEASURED_SIZES; j++)
        if (isfinite(low[j]))
            range = sm_arena_printf(
                arena, "%s%s%s %.0f%s", range, range[0] ? "; " : "", sizes[j], low[j],
                high[j] > low[j] ? sm_arena_printf(arena, " to %.0f", high[j]) : "");
    if (layouts[0]) range = sm_arena_printf(arena, "%s; layouts %s", range, layouts);
    line.range = range;
    line.types = types;
    line.error = median_of(error[0], errors[0]);
    line.first_error = median_of(error[1], errors[1]);
    return line;
}

/* Chip by chip, as sm_evidence_find looks them up; of each, the groups of which a row is the first.
 */
sm_evidence *evidence_lines(hierarchy *h, sm_arena *arena, sm_evidence_use use,
                            const char *const sizes[MEASURED_SIZES], const measured_row *row,
                            size_t n, size_t *lines) {
    sm_evidence *line = sm_arena_alloc(arena, 2 * n * sizeof *line);
    double *error[2];
    for (int i = 0; i < 2; i++) error[i] = sm_arena_alloc(arena, n * sizeof **error);
    if (!line || !error[0] || !error[1]) fit_stop(h, "out of memory");
    *lines = 0;
    for (size_t c = 0; c < n; c++) {
        size_t same = 0;
        while (row[same].chip != row[c].chip) same++;
        for (size_t i = same == c ? c : n; i < n; i++)
            for (int by_software = 0; row[i].chip == row[c].chip && by_software < 2;
                 by_software++) {
                const group g = {&row[i], by_software ? row[i].software : NULL};
                size_t first = 0;
                while (!is_in(&g, &row[first])) first++;
                if (first == i) line[(*lines)++] = line_of(arena, use, &g, sizes, row, n, error);
            }
    }
    return line;
}

static void print_error(FILE *out, double error) {
    if (isfinite(error)) fprintf(out, "\t%.3f", error);
    else fprintf(out, "\t-");
}

static void print_line(FILE *out, const sm_evidence *e) {
    fprintf(out, "%s\t%d\t%d\t%d\t%.4g\t%s\t%s\t%d\t%s\t%s", e->model, e->layers, e->d_model,
            e->experts, e->params, e->chip, e->software[0] ? e->software : "-", e->rows, e->range,
            e->types);
    print_error(out, e->error);
    print_error(out, e->first_error);
    fprintf(out, "\n");
}

double evidence_excess(double *m, double *c, size_t n) {
    if (n == 0) return 0.0;
    double with = sm_quantile(m, n, 0.5), without = sm_quantile(c, n, 0.5);
    return sqrt(fmax(0.0, with * with - without * without));
}

static void print_apart(FILE *out, const sm_evidence_apart apart[2]) {
    fprintf(out, "apart");
#define X(key, what) fprintf(out, "\t" #key);
    SM_EVIDENCE_APART(X)
#undef X
    for (int i = 0; i < 2; i++) {
        fprintf(out, "\nsoftware %s", i ? "hidden" : "known");
#define X(key, what) fprintf(out, "\t%.4f", apart[i].key);
        SM_EVIDENCE_APART(X)
#undef X
    }
    fprintf(out, "\n");
}

void evidence_write(hierarchy *h, const char *path, const sm_evidence_apart apart[2],
                    const char *const sizes[MEASURED_SIZES], const measured_row *row, size_t n) {
    FILE *out = fopen(path, "w");
    size_t lines;
    if (!out) fit_stop(h, sm_arena_printf(h->arena, "%s cannot be written", path));
    print_apart(out, apart);
    fprintf(out, "model\tlayers\td_model\texperts\tparams\tchip\tsoftware\trows\trange\ttypes\t"
                 "error\tfirst_token\n");
    const sm_evidence *line =
        evidence_lines(h, h->arena, SM_EVIDENCE_TRAINING, sizes, row, n, &lines);
    for (size_t i = 0; i < lines; i++) print_line(out, &line[i]);
    if (fclose(out) != 0) fit_stop(h, sm_arena_printf(h->arena, "%s cannot be written", path));
}
