#include "evidence.h"
#include "scalemodel/search.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sources print one architecture under several names, leave a size of it open, and count the layer
 * that predicts tokens or do not. */
#define ALIKE 0.03
static bool is_same_model(const sm_model *a, const sm_model *b) {
    double ratio = sm_model_params(a).total / sm_model_params(b).total;
    return abs(a->L - b->L) <= 1 && a->D == b->D && fabs(log(ratio)) < ALIKE;
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

/* Of rows that belong together; software NULL: of any. */
typedef struct group {
    const measured_row *first;
    const char *software;
} group;
static bool is_in(const group *g, const measured_row *m) {
    return m->chip == g->first->chip && is_same_model(m->model, g->first->model) &&
           (!g->software || strcmp(m->software, g->software) == 0);
}

static void print_median(FILE *out, double *error, size_t n) {
    if (n > 0) fprintf(out, "\t%.3f", sm_quantile(error, n, 0.5));
    else fprintf(out, "\t-");
}

static void print_group(hierarchy *h, FILE *out, const group *g, const char *const *sizes,
                        const measured_row *row, size_t n) {
    double low[MEASURED_SIZES], high[MEASURED_SIZES], *error[2];
    size_t rows = 0, errors[2] = {0, 0};
    const char *types = "", *range = "";
    for (int i = 0; i < 2; i++) error[i] = fit_array(h, n, sizeof **error);
    for (int j = 0; j < MEASURED_SIZES; j++) low[j] = INFINITY, high[j] = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (!is_in(g, &row[i])) continue;
        const char *type = plain_type(row[i].type);
        const double *by = g->software ? row[i].own : row[i].usual;
        rows++;
        if (!strstr(types, type))
            types = sm_arena_printf(h->arena, "%s%s%s", types, types[0] ? " " : "", type);
        for (int j = 0; j < MEASURED_SIZES; j++)
            low[j] = fmin(low[j], row[i].size[j]), high[j] = fmax(high[j], row[i].size[j]);
        for (int j = 0; j < 2; j++)
            if (isfinite(by[j])) error[j][errors[j]++] = fabs(expm1(by[j]));
    }
    for (int j = 0; j < MEASURED_SIZES; j++)
        if (isfinite(low[j]))
            range = sm_arena_printf(
                h->arena, "%s%s%s %.0f%s", range, range[0] ? "; " : "", sizes[j], low[j],
                high[j] > low[j] ? sm_arena_printf(h->arena, " to %.0f", high[j]) : "");
    const measured_row *first = g->first;
    const char *slash = strrchr(first->name, '/');
    fprintf(out, "%s\t%d\t%d\t%d\t%.4g\t%s\t%s\t%zu\t%s\t%s", slash ? slash + 1 : first->name,
            first->model->L, first->model->D, experts_of(first->model),
            sm_model_params(first->model).total, first->chip->name, g->software ? g->software : "-",
            rows, range, types);
    for (int j = 0; j < 2; j++) print_median(out, error[j], errors[j]);
    fprintf(out, "\n");
}

/* The groups of which row i is the first. */
static void print_groups_of(hierarchy *h, FILE *out, const measured_row *row, size_t n, size_t i,
                            const char *const *sizes) {
    for (int by_software = 0; by_software < 2; by_software++) {
        const group g = {&row[i], by_software ? row[i].software : NULL};
        size_t first = 0;
        while (!is_in(&g, &row[first])) first++;
        if (first == i) print_group(h, out, &g, sizes, row, n);
    }
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

/* Chip by chip, as sm_evidence_find looks them up. */
void evidence_write(hierarchy *h, const char *path, const sm_evidence_apart apart[2],
                    const char *const sizes[MEASURED_SIZES], const measured_row *row, size_t n) {
    FILE *out = fopen(path, "w");
    if (!out) fit_stop(h, sm_arena_printf(h->arena, "%s cannot be written", path));
    print_apart(out, apart);
    fprintf(out, "model\tlayers\td_model\texperts\tparams\tchip\tsoftware\trows\trange\ttypes\t"
                 "error\tfirst_token\n");
    for (size_t c = 0; c < n; c++) {
        size_t same = 0;
        while (row[same].chip != row[c].chip) same++;
        for (size_t i = same == c ? c : n; i < n; i++)
            if (row[i].chip == row[c].chip) print_groups_of(h, out, row, n, i, sizes);
    }
    if (fclose(out) != 0) fit_stop(h, sm_arena_printf(h->arena, "%s cannot be written", path));
}
