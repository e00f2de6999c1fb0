/* The constants of serving: one hierarchical fit of all measured rows of inference, and its errors
 * on rows that had no part in it.
 *
 *   fit-serving [-c CALIBRATIONS] [-e ENGINES] [-r ROWS] FILE
 *
 * As in fit-steps.c, the constants of a chip and a software on the line of docs/calibration-file.md
 *     x = benchmarks of single operations + fabric + chip + family + software + both,
 * each term with a prior around 0; four numbers of an engine (sm_software) likewise, without terms
 * of chips. Every figure of a row is a residual log expected / measured. All terms are solved
 * together: with derivatives J of the residuals at x0,
 *     minimise  sum w rho((r0 + J (x - x0)) / s) + sum (term / sigma)^2 / 2,
 * group by group until they settle, then J anew (Levenberg 1944, Marquardt 1963); what is left out
 * is left out of the last of these problems, and predicted in full by the terms that it gives.
 *
 * Prints the table of held-out-serving.csv; -c and -e write calibrations and engines, -r every
 * figure with its errors. */
#include "scalemodel/io.h"
#include "scalemodel/load.h"
#include "scalemodel/truth.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEVELS = 5,
    COMPUTE = SM_CONSTANT_COUNT,
    HOST,
    EXPERTS,
    ADMISSION,
    BURST,
    PARAMETERS,
    MOST_GROUPS = 400,
    FOLDS = 12
};
enum { FABRIC, CHIP, FAMILY, SOFTWARE, BOTH };

/* bounds, deviations of the prior of each level */
static const struct parameter {
    double low, high, sigma[LEVELS];
} parameters[PARAMETERS] = {
    [SM_CONSTANT_matmul_efficiency] = {.15, .97, {.3, .25, .15, .15, .15}},
    [SM_CONSTANT_matmul_efficiency_fp8] = {.15, .95, {.3, .25, .15, .15, .15}},
    [SM_CONSTANT_matmul_half_k] = {10, 600, {.3, .2, .1, .1, 0}},
    [SM_CONSTANT_attention_efficiency] = {.08, .9, {.3, .3, .2, .2, .15}},
    [SM_CONSTANT_attention_efficiency_backward] = {.1, .9, {0}},
    [SM_CONSTANT_memory_efficiency] = {.3, .99, {.4, .3, .3, .3, .2}},
    [SM_CONSTANT_network_efficiency_inner] = {.05, 1, {.4, .3, .3, .3, .2}},
    [SM_CONSTANT_network_efficiency_outer] = {.05, 1, {.4, .3, .3, .3, .2}},
    [SM_CONSTANT_launch_s] = {2e-7, 4e-5, {.7, .3, .5, .5, .3}},
    [SM_CONSTANT_collective_s] = {1e-6, 1e-4, {.6, .3, .3, .3, .2}},
    [SM_CONSTANT_overlap] = {.3, .97, {.5, .2, .3, .3, 0}},
    [SM_CONSTANT_step_overhead_s] = {5e-5, .05, {.7, .3, .7, .7, .4}},
    [SM_CONSTANT_routing_s] = {0, 3e-6, {0}},
    [COMPUTE] = {0, 0, {.2, .2, .2, .2, .15}},
    [HOST] = {1e-7, 1e-3, {.5, 0, .7, .7, 0}},
    [EXPERTS] = {1, 3, {.2, 0, .2, .2, 0}},
    [ADMISSION] = {1e-3, 1, {.5, 0, .5, .7, 0}},
    [BURST] = {1e-3, 1, {.5, 0, .5, .7, 0}},
};

static double sigma_of(int level, int j) {
    return parameters[j].sigma[level] * 2 * (level == BOTH ? 3 : 1);
}

typedef struct cell {
    const sm_chip *chip;
    const char *software;
    int group[LEVELS];
    double base[PARAMETERS];
    sm_calibration start;
    double x[PARAMETERS];
} cell;

typedef enum fold_kind {
    IN_SAMPLE,
    CONFIG_OUT,
    LAYOUT_OUT,
    MODEL_OUT,
    CHIP_OUT,
    SOFTWARE_OUT,
    SOURCE_OUT,
    FOLD_KINDS
} fold_kind;
static const char *const fold_names[] = {"in_sample", "configuration", "layout", "model",
                                         "chip",      "software",      "source"};
typedef struct part { /* one measured quantity */
    int row;
    sm_served quantity;
    double y, weight, spread;
    double own[FOLD_KINDS], usual[FOLD_KINDS];
    double j[PARAMETERS], r0;
} part;
typedef struct bench {
    const sm_truth_row *row;
    sm_truth_row hidden_row;
    sm_truth_case *c, *hidden;
    int cell, fold[FOLD_KINDS], source;
    int first, parts;
    bool masked;
} bench;
typedef struct names {
    const char *name[4000];
    int n;
} names;
static struct fit {
    bench *row;
    int rows;
    part *part;
    int parts;
    cell cell[MOST_GROUPS];
    int cells;
    names group[LEVELS], fold[FOLD_KINDS], sources;
    double term[LEVELS][MOST_GROUPS][PARAMETERS];
    double deviation[LEVELS][MOST_GROUPS][PARAMETERS];
    sm_arena *arena;
    double *scratch;
} f;

static void *array(size_t n, size_t size) {
    void *p = sm_arena_array(f.arena, n ? n : 1, size);
    if (!p) exit(2);
    return p;
}
static int name_index(names *list, const char *name) {
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->name[i], name) == 0) return i;
    if (list->n == 4000) exit(2);
    list->name[list->n] = sm_arena_copy(f.arena, name, strlen(name));
    return list->n++;
}
static bool is_share(int j) {
    if (j >= SM_CONSTANT_COUNT) return false;
    const sm_constant_info *info = sm_constant_of((sm_constant)j);
    return info->high <= 1.0 && strcmp(info->unit, "s") != 0;
}
static double clamp(double x, double low, double high) { return fmin(fmax(x, low), high); }
#define WHOLE 1.0001
static double to_line(int j, double value) {
    double v = clamp(value, parameters[j].low, parameters[j].high);
    if (j == EXPERTS) return log(v - 0.9);
    return is_share(j) ? log(v / (WHOLE - v)) : log(fmax(v, 1e-12));
}
static double from_line(int j, double u) {
    double v = is_share(j) ? WHOLE / (1.0 + exp(-u)) : exp(u);
    if (j == EXPERTS) v = 0.9 + exp(u);
    return clamp(v, parameters[j].low, parameters[j].high);
}
static bool is_compute(int j) {
    return j == SM_CONSTANT_matmul_efficiency || j == SM_CONSTANT_matmul_efficiency_fp8 ||
           j == SM_CONSTANT_attention_efficiency;
}

static sm_calibration constants_at(const cell *c, const double *x) {
    sm_calibration k = c->start;
    for (int j = 0; j < SM_CONSTANT_COUNT; j++)
        if (j != SM_CONSTANT_routing_s)
            sm_calibration_set(&k, (sm_constant)j,
                               from_line(j, x[j] + (is_compute(j) ? x[COMPUTE] : 0)));
    return k;
}
static sm_software engine_at(const char *software, const double *x) {
    sm_software e = *sm_software_of(software);
    e.host_s_per_sequence = from_line(HOST, x[HOST]);
    e.expert_imbalance = from_line(EXPERTS, x[EXPERTS]);
    e.admission_s = from_line(ADMISSION, x[ADMISSION]);
    e.burst = from_line(BURST, x[BURST]);
    return e;
}
static void place(const cell *c, int levels, double *x) {
    for (int j = 0; j < PARAMETERS; j++) {
        x[j] = c->base[j];
        for (int l = 0; l < levels; l++) x[j] += f.term[l][c->group[l]][j];
    }
}

/* The engine of those whose software is not known: what all on switches have in common. */
static void unknown_engine(double *x) {
    for (int j = HOST; j < PARAMETERS; j++) x[j] = f.cell[0].base[j] + f.term[FABRIC][0][j];
}

static void predict_row(const bench *b, sm_truth_case *c, const sm_calibration *k,
                        const sm_software *e, double *out) {
    sm_prediction p;
    sm_truth_case_engine(c, e);
    sm_truth_predict(c, k, &p);
    for (int i = 0; i < b->parts; i++) {
        out[i] = NAN;
        for (int q = 0; q < p.parts; q++)
            if (!p.unknown && p.part[q].quantity == f.part[b->first + i].quantity &&
                p.part[q].expected_s > 0)
                out[i] = log(p.part[q].expected_s) - f.part[b->first + i].y;
    }
}

/* residuals (and derivatives) at the x of the cells */
static void evaluate(bool derivatives) {
    enum { MOST = SM_SERVED_COUNT };
    static const double H = 0.08;
    for (int ci = 0; ci < f.cells; ci++) place(&f.cell[ci], LEVELS, f.cell[ci].x);
    for (int ci = 0; ci < f.cells; ci++) {
        const cell *c = &f.cell[ci];
        sm_calibration k = constants_at(c, c->x);
        sm_software e = engine_at(c->software, c->x);
        double r[MOST];
        for (int i = 0; i < f.rows; i++) {
            bench *b = &f.row[i];
            if (b->cell != ci) continue;
            predict_row(b, b->c, &k, &e, r);
            for (int q = 0; q < b->parts; q++) f.part[b->first + q].r0 = r[q];
        }
        for (int j = 0; derivatives && j < PARAMETERS; j++) {
            bool any = false;
            for (int l = 0; l < LEVELS; l++) any |= parameters[j].sigma[l] > 0;
            if (!any) continue;
            double x[PARAMETERS];
            memcpy(x, c->x, sizeof x);
            x[j] += H;
            k = constants_at(c, x);
            e = engine_at(c->software, x);
            for (int i = 0; i < f.rows; i++) {
                bench *b = &f.row[i];
                if (b->cell != ci) continue;
                predict_row(b, b->c, &k, &e, r);
                for (int q = 0; q < b->parts; q++) {
                    part *p = &f.part[b->first + q];
                    p->j[j] = (r[q] - p->r0) / H;
                    if (!isfinite(p->j[j])) p->j[j] = 0;
                }
            }
        }
    }
}

static double objective(void) {
    double sum = 0;
    for (int i = 0; i < f.parts; i++) {
        const part *p = &f.part[i];
        if (f.row[p->row].masked || !isfinite(p->r0)) continue;
        sum += p->weight * sm_soft_loss(p->r0 / p->spread);
    }
    for (int l = 0; l < LEVELS; l++)
        for (int g = 0; g < f.group[l].n; g++)
            for (int j = 0; j < PARAMETERS; j++) {
                double s = sigma_of(l, j);
                if (s > 0) sum += 0.5 * f.term[l][g][j] * f.term[l][g][j] / (s * s);
            }
    return sum;
}

/* symmetric positive definite, in place; b becomes the solution; diag of the inverse */
static void solve(int n, double a[PARAMETERS][PARAMETERS], double *b, double *variance) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k <= i; k++) {
            double s = a[i][k];
            for (int m = 0; m < k; m++) s -= a[i][m] * a[k][m];
            a[i][k] = i == k ? sqrt(fmax(s, 1e-12)) : s / a[k][k];
        }
    for (int i = 0; i < n; i++) {
        for (int m = 0; m < i; m++) b[i] -= a[i][m] * b[m];
        b[i] /= a[i][i];
    }
    for (int i = n; i-- > 0;) {
        for (int m = i + 1; m < n; m++) b[i] -= a[m][i] * b[m];
        b[i] /= a[i][i];
    }
    for (int c = 0; c < n; c++) {
        double v = 0, y[PARAMETERS] = {0};
        for (int i = c; i < n; i++) {
            double s = i == c ? 1 : 0;
            for (int m = c; m < i; m++) s -= a[i][m] * y[m];
            y[i] = s / a[i][i];
            v += y[i] * y[i];
        }
        variance[c] = v;
    }
}

/* linear residuals r = r0 + J dx; terms by group in turn */
static double damping;
static double old_term[LEVELS][MOST_GROUPS][PARAMETERS];
static void linear_sweeps(int sweeps) {
    memcpy(old_term, f.term, sizeof f.term);
    double *r = malloc((size_t)f.parts * sizeof *r);
    for (int i = 0; i < f.parts; i++) {
        const part *p = &f.part[i];
        const cell *c = &f.cell[f.row[p->row].cell];
        double x[PARAMETERS];
        place(c, LEVELS, x);
        r[i] = p->r0;
        for (int j = 0; j < PARAMETERS; j++) r[i] += p->j[j] * (x[j] - c->x[j]);
    }
    for (int t = 0; t < sweeps; t++)
        for (int l = 0; l < LEVELS; l++) {
            static double a[MOST_GROUPS][PARAMETERS][PARAMETERS], b[MOST_GROUPS][PARAMETERS];
            memset(a, 0, sizeof a), memset(b, 0, sizeof b);
            for (int i = 0; i < f.parts; i++) {
                const part *p = &f.part[i];
                if (f.row[p->row].masked || !isfinite(r[i])) continue;
                int g = f.cell[f.row[p->row].cell].group[l];
                double w = p->weight * sm_soft_weight(r[i] / p->spread) / (p->spread * p->spread);
                for (int j = 0; j < PARAMETERS; j++) {
                    if (p->j[j] == 0) continue;
                    b[g][j] -= w * p->j[j] * r[i];
                    for (int k = 0; k <= j; k++) a[g][j][k] += w * p->j[j] * p->j[k];
                }
            }
            double change[MOST_GROUPS][PARAMETERS];
            for (int g = 0; g < f.group[l].n; g++) {
                int index[PARAMETERS], n = 0;
                double m[PARAMETERS][PARAMETERS], v[PARAMETERS], variance[PARAMETERS];
                memset(change[g], 0, sizeof change[g]);
                for (int j = 0; j < PARAMETERS; j++)
                    if (parameters[j].sigma[l] > 0) index[n++] = j;
                for (int i = 0; i < n; i++) {
                    double s = sigma_of(l, index[i]);
                    for (int k = 0; k <= i; k++) m[i][k] = a[g][index[i]][index[k]];
                    m[i][i] += (1 + damping) / (s * s);
                    v[i] = b[g][index[i]] -
                           (f.term[l][g][index[i]] +
                            damping * (f.term[l][g][index[i]] - old_term[l][g][index[i]])) /
                               (s * s);
                }
                solve(n, m, v, variance);
                for (int i = 0; i < n; i++) {
                    change[g][index[i]] = v[i];
                    f.term[l][g][index[i]] += v[i];
                    f.deviation[l][g][index[i]] = sqrt(variance[i]);
                }
            }
            for (int i = 0; i < f.parts; i++) {
                const part *p = &f.part[i];
                int g = f.cell[f.row[p->row].cell].group[l];
                for (int j = 0; j < PARAMETERS; j++) r[i] += p->j[j] * change[g][j];
            }
        }
    free(r);
}

static double *kept_terms(void) {
    double *kept = malloc(sizeof f.term);
    memcpy(kept, f.term, sizeof f.term);
    return kept;
}
/* One step of Levenberg and Marquardt; false: nothing is gained any more. */
static bool descend(int sweeps) {
    double *old = kept_terms();
    evaluate(true);
    double before = objective(), after = before;
    for (int tries = 0; tries < 5; tries++) {
        memcpy(f.term, old, sizeof f.term);
        linear_sweeps(sweeps);
        double *parts = malloc((size_t)f.parts * sizeof *parts);
        double x[MOST_GROUPS][PARAMETERS];
        for (int i = 0; i < f.parts; i++) parts[i] = f.part[i].r0;
        for (int i = 0; i < f.cells; i++) memcpy(x[i], f.cell[i].x, sizeof x[i]);
        evaluate(false);
        after = objective();
        fprintf(stderr, "  %.3f -> %.3f (damping %g)\n", before, after, damping);
        if (after < before) {
            damping = damping > 0.3 ? damping / 3 : 0;
            free(parts);
            break;
        }
        damping = damping > 0 ? 4 * damping : 1;
        for (int i = 0; i < f.parts; i++) f.part[i].r0 = parts[i];
        for (int i = 0; i < f.cells; i++) memcpy(f.cell[i].x, x[i], sizeof x[i]);
        free(parts);
    }
    if (!(after < before)) memcpy(f.term, old, sizeof f.term);
    free(old);
    return after < before * 0.9985;
}

static void predict(fold_kind kind, bool masked) {
    for (int ci = 0; ci < f.cells; ci++) {
        const cell *c = &f.cell[ci];
        double x[PARAMETERS], y[PARAMETERS], r[SM_SERVED_COUNT];
        place(c, LEVELS, x), place(c, FAMILY, y);
        unknown_engine(y);
        sm_calibration k = constants_at(c, x), usual = constants_at(c, y);
        sm_software e = engine_at(c->software, x), any = engine_at("serving", y);
        for (int i = 0; i < f.rows; i++) {
            bench *b = &f.row[i];
            if (b->cell != ci || b->masked != masked) continue;
            predict_row(b, b->c, &k, &e, r);
            for (int q = 0; q < b->parts; q++) f.part[b->first + q].own[kind] = r[q];
            predict_row(b, b->hidden, &usual, &any, r);
            for (int q = 0; q < b->parts; q++) f.part[b->first + q].usual[kind] = r[q];
        }
    }
}

/* ---- rows ---- */
static const char *family_of(const char *s) {
    static const char *const families[][2] = {{"trtllm-2025", "trtllm-2025"},
                                              {"trtllm-1", "trtllm-2025"},
                                              {"trtllm", "trtllm-2024"},
                                              {"vllm-2023", "vllm-2024"},
                                              {"vllm-2024", "vllm-2024"},
                                              {"vllm-tpu", "tpu"},
                                              {"jetstream", "tpu"},
                                              {"pathways-2022", "tpu"},
                                              {"vllm", "vllm-2025"},
                                              {"sglang", "sglang"},
                                              {"atom", "sglang"},
                                              {"fastertransformer", "trtllm-2024"},
                                              {"deepspeed", "vllm-2024"},
                                              {"megatron", "vllm-2024"}};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strncmp(s, families[i][0], strlen(families[i][0])) == 0) return families[i][1];
    return s;
}
static const char *constants_name(const sm_chip *chip) {
    const char *last = chip->calibration ? strrchr(chip->calibration, ' ') : NULL;
    if (chip->fabric == SM_FABRIC_TORUS || !chip->calibration || !chip->calibration[0])
        return chip->name;
    return last ? last + 1 : chip->calibration;
}
static int cell_index(const sm_chip *chip, const char *software) {
    for (int i = 0; i < f.cells; i++)
        if (f.cell[i].chip == chip && strcmp(f.cell[i].software, software) == 0) return i;
    cell *c = &f.cell[f.cells];
    if (f.cells == MOST_GROUPS) exit(2);
    bool torus = chip->fabric == SM_FABRIC_TORUS;
    const sm_calibration *start = sm_calibration_for(chip, "kernels");
    *c = (cell){.chip = chip, .software = software};
    c->start = start ? *start : *sm_calibration_of(chip);
    if (!start)
        fprintf(stderr, "%s: no kernels, %s/%s\n", chip->name, c->start.chip, c->start.software);
    c->start.step_overhead_s = 1e-3;
    c->start.launch_s = 1e-6;
    for (int j = 0; j < SM_CONSTANT_COUNT; j++)
        c->base[j] = to_line(j, sm_calibration_get(&c->start, (sm_constant)j));
    c->base[COMPUTE] = 0;
    c->base[HOST] = to_line(HOST, 1e-5);
    c->base[EXPERTS] = to_line(EXPERTS, 1.15);
    c->base[ADMISSION] = to_line(ADMISSION, .05);
    c->base[BURST] = to_line(BURST, .1);
    char both[200];
    snprintf(both, sizeof both, "%s %s", constants_name(chip), software);
    const char *name[LEVELS] = {torus ? "torus" : "switch", constants_name(chip),
                                family_of(software), software, both};
    for (int l = 0; l < LEVELS; l++) c->group[l] = name_index(&f.group[l], name[l]);
    return f.cells++;
}
static double spread_of(sm_served q, const sm_inference_row *r) {
    return q == SM_SERVED_TTFT && !(r->batch > 0) ? 0.35 : 0.08;
}
static sm_truth_cases *cases;
static void add_row(const sm_truth_row *row) {
    const sm_inference_row *r = &row->of.inference;
    const sm_chip *chip = sm_truth_row_chip(row);
    sm_error err = {0};
    if (!chip || strcmp(r->reliability, "C") == 0) return;
    bench *b = &f.row[f.rows];
    *b = (bench){.row = row, .hidden_row = *row};
    b->hidden_row.software = "serving";
    if (sm_truth_cases_get(cases, row, &b->c, &err) ||
        sm_truth_cases_get(cases, &b->hidden_row, &b->hidden, &err))
        exit(2);
    sm_prediction p;
    sm_truth_predict(b->c, NULL, &p);
    if (p.unknown || p.parts == 0) return;
    b->cell = cell_index(chip, sm_truth_software(row));
    b->first = f.parts;
    for (int i = 0; i < p.parts; i++) {
        part *q = &f.part[f.parts++];
        *q = (part){.row = f.rows,
                    .quantity = p.part[i].quantity,
                    .y = log(p.part[i].measured_s),
                    .weight = 1,
                    .spread = spread_of(p.part[i].quantity, r)};
        for (int k = 0; k < FOLD_KINDS; k++) q->own[k] = q->usual[k] = NAN;
        b->parts++;
    }
    char text[600];
    char layout[200], model[200];
    snprintf(model, sizeof model, "%d %d %d", r->model.layers, r->model.d_model, r->model.d_ff);
    snprintf(layout, sizeof layout, "%d/%d/%d/%d/%d/%d p%d %d %d d%d %d %d", r->chips, r->tp, r->pp,
             r->ep, r->dp, r->attention_dp, r->prefill.workers, r->prefill.tp,
             r->prefill.dp_attention, r->decode.workers, r->decode.tp, r->decode.dp_attention);
    b->source = name_index(&f.sources,
                           sm_arena_printf(f.arena, "%.*s", (int)strcspn(row->id, "_"), row->id));
    snprintf(text, sizeof text, "%s %s %s %s %s %.0f %.0f", f.sources.name[b->source], row->chip,
             row->software, model, layout, r->input_len, r->output_len);
    b->fold[CONFIG_OUT] = name_index(&f.fold[CONFIG_OUT], text) % FOLDS;
    snprintf(text, sizeof text, "%s %s %s", row->chip, model, layout);
    b->fold[IN_SAMPLE] = b->fold[CONFIG_OUT]; /* whose intervals others teach */
    b->fold[LAYOUT_OUT] = name_index(&f.fold[LAYOUT_OUT], text) % FOLDS;
    b->fold[MODEL_OUT] = name_index(&f.fold[MODEL_OUT], model) % FOLDS;
    b->fold[CHIP_OUT] = f.cell[b->cell].group[CHIP];
    b->fold[SOFTWARE_OUT] = f.cell[b->cell].group[SOFTWARE];
    b->fold[SOURCE_OUT] = b->source;
    f.rows++;
}
/* n rows of a source, chip and software count as n^(1 - CROWDED). */
#define CROWDED 0.35
static void weigh(void) {
    int n[100][MOST_GROUPS] = {{0}};
    for (int i = 0; i < f.rows; i++) n[f.row[i].source][f.row[i].cell]++;
    for (int i = 0; i < f.parts; i++) {
        part *p = &f.part[i];
        const bench *b = &f.row[p->row];
        bool first = i == b->first;
        p->weight = pow(n[b->source][b->cell], -CROWDED);
        if (p->quantity == SM_SERVED_LATENCY && !first) p->weight *= 0.5;
        if (p->quantity == SM_SERVED_TOKEN && !first) p->weight *= 0.7;
    }
}

/* ---- figures ---- */

/* What a residual is of: the row's own software, or as if it were not known. */
static double residual_at(const part *p, fold_kind kind, bool usual) {
    return usual ? p->usual[kind] : p->own[kind];
}

/* Rows that an interval is learned from, and is held against: of a regime, of a cell (-1: any). */
typedef struct learned {
    fold_kind kind;
    bool usual;
    sm_regime regime;
    int chip, software; /* groups; -1: any */
} learned;
static bool is_of(const part *p, const learned *of) {
    const cell *c = &f.cell[f.row[p->row].cell];
    return sm_served_regime(p->quantity) == of->regime &&
           (of->chip < 0 || c->group[CHIP] == of->chip) &&
           (of->software < 0 || c->group[SOFTWARE] == of->software) &&
           isfinite(residual_at(p, of->kind, of->usual));
}
/* log measured / expected that a share q of rows to come lies below; rows of this fold do not
 * count, -1: all do. */
static size_t quantiles(const learned *of, int without, double *low, double *high) {
    size_t n = 0;
    for (int i = 0; i < f.parts; i++) {
        const part *p = &f.part[i];
        if (!is_of(p, of) || f.row[p->row].fold[of->kind] == without) continue;
        f.scratch[n++] = -residual_at(p, of->kind, of->usual);
    }
    double spare = n > 1 ? ((double)n + 1) / ((double)n - 1) : 1;
    *low = sm_quantile(f.scratch, n, fmax(0, 0.5 - 0.4 * spare));
    *high = sm_quantile(f.scratch, n, fmin(1, 0.5 + 0.4 * spare));
    return n;
}
enum { FEWEST = 12 };
/* Of a cell; of few rows: of its software, then of the chip, then of all. */
static size_t interval(const learned *of, int without, double *low, double *high) {
    learned wider[] = {*of, *of, *of, *of};
    size_t n = 0;
    wider[1].chip = wider[2].software = wider[3].chip = wider[3].software = -1;
    for (int i = 0; i < 4 && n < FEWEST; i++) n = quantiles(&wider[i], without, low, high);
    return n;
}
static double coverage(fold_kind kind, bool usual, sm_served q) {
    double inside = 0, n = 0;
    for (int i = 0; i < f.parts; i++) {
        const part *p = &f.part[i];
        const bench *b = &f.row[p->row];
        const int *group = f.cell[b->cell].group;
        double r = -residual_at(p, kind, usual), low, high;
        if (p->quantity != q || !isfinite(r)) continue;
        learned of = {kind, usual, sm_served_regime(q), usual ? -1 : group[CHIP],
                      usual ? -1 : group[SOFTWARE]};
        interval(&of, b->fold[kind], &low, &high);
        n++;
        inside += r >= low && r <= high;
    }
    return inside / n;
}

static void line(fold_kind kind, bool usual, sm_served q) {
    static const char *const quantities[SM_SERVED_COUNT] = {"tpot", "throughput", "latency",
                                                            "ttft"};
    size_t n = 0;
    double sum = 0, inside = coverage(kind, usual, q);
    for (int i = 0; i < f.parts; i++) {
        double x = residual_at(&f.part[i], kind, usual);
        if (f.part[i].quantity != q || !isfinite(x)) continue;
        sum += f.scratch[n++] = fabs(expm1(x));
    }
    if (n == 0) return;
    printf("inference-%s%s-%s,%zu,%.4f,%.4f,%.4f,%.4f,%s%s left out\n", usual ? "hidden-" : "",
           fold_names[kind], quantities[q], n, sm_quantile(f.scratch, n, 0.5),
           sm_quantile(f.scratch, n, 0.9), sum / (double)n, inside,
           usual ? "software hidden; " : "", fold_names[kind]);
}

/* ---- files ---- */

static double rounded(double value) {
    char text[32];
    snprintf(text, sizeof text, "%.4g", value);
    return strtod(text, NULL);
}
static const char *add_name(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ',' || !at[n])) return list;
    return sm_arena_printf(f.arena, "%s%s%s", list, list[0] ? ", " : "", name);
}
static unsigned identified(const cell *c, int from, int to) {
    unsigned bits = 0;
    for (int l = from; l <= to; l++)
        for (int j = 0; j < SM_CONSTANT_COUNT; j++) {
            double sigma = sigma_of(l, j);
            if (sigma > 0 && f.deviation[l][c->group[l]][j] < sqrt(0.5) * sigma) bits |= 1u << j;
        }
    return bits;
}
/* software -1: the usual constants of the chip. */
static void write_section(FILE *out, const cell *c, int software) {
    bool usual = software < 0;
    double x[PARAMETERS], chips[2] = {INFINITY, 0}, prompts[2] = {INFINITY, 0};
    int rows = 0;
    const char *sources = "", *models = "";
    size_t n = 0;
    place(c, usual ? FAMILY : LEVELS, x);
    sm_calibration k = constants_at(c, x);
    for (int j = 0; j < SM_CONSTANT_COUNT; j++)
        sm_calibration_set(&k, (sm_constant)j, rounded(sm_calibration_get(&k, (sm_constant)j)));
    fold_kind kind = usual ? SOFTWARE_OUT : CONFIG_OUT;
    for (int i = 0; i < f.rows; i++) {
        const bench *b = &f.row[i];
        const sm_inference_row *r = &b->row->of.inference;
        const int *group = f.cell[b->cell].group;
        if (group[CHIP] != c->group[CHIP] || (!usual && group[SOFTWARE] != software)) continue;
        rows++;
        chips[0] = fmin(chips[0], r->chips), chips[1] = fmax(chips[1], r->chips);
        prompts[0] = fmin(prompts[0], r->input_len), prompts[1] = fmax(prompts[1], r->input_len);
        sources = add_name(sources, f.sources.name[b->source]);
        const char *slash = strrchr(r->model.name, '/');
        models = add_name(models, slash ? slash + 1 : r->model.name);
        double e = residual_at(&f.part[b->first], kind, usual);
        if (isfinite(e)) f.scratch[n++] = fabs(expm1(e));
    }
    double median = n ? sm_quantile(f.scratch, n, 0.5) : NAN;
    memset(k.interval, 0, sizeof k.interval);
    static const sm_regime regimes[] = {SM_REGIME_prefill, SM_REGIME_decode, SM_REGIME_throughput};
    for (int i = 0; i < 3; i++) {
        learned of = {kind, usual, regimes[i], usual ? -1 : c->group[CHIP], software};
        double low, high;
        size_t learned_from = interval(&of, -1, &low, &high);
        k.interval[regimes[i]].lowest = rounded(exp(low));
        k.interval[regimes[i]].highest = rounded(exp(high));
        k.interval[regimes[i]].n = (int)learned_from;
    }
    k.chip = constants_name(c->chip);
    k.software = usual ? "serving" : c->software;
    k.fitted = usual ? identified(c, CHIP, CHIP) : identified(c, CHIP, BOTH);
    k.source = k.range = "";
    if (rows == 0)
        k.source = "no measured row of serving: single operations of the chip, and what chips "
                   "of its kind have in common in one fit of all of them";
    else {
        k.source = sm_arena_printf(
            f.arena,
            "%d measured rows of serving (%s) in one fit of all chips and software; models: %s; "
            "median error %.1f %% with %s left out",
            rows, sources, models, 100 * median, usual ? "the software" : "the configuration");
        k.range = sm_arena_printf(f.arena, "%.0f to %.0f chips, prompts of %.0f to %.0f tokens",
                                  chips[0], chips[1], prompts[0], prompts[1]);
    }
    char *text = sm_calibration_format(&k, f.arena);
    if (!text) exit(2);
    fprintf(out, "\n%s", text);
}
static FILE *open_file(const char *folder, const char *name, const char *what) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    if (!out) fprintf(stderr, "fit-serving: %s cannot be written\n", path), exit(2);
    if (what) fprintf(out, "# %s. See docs/calibration-file.md.\n", what);
    return out;
}
/* What an engine's file has beside what it is silent about; its four numbers are of the fit. */
static void write_engine(const char *folder, const sm_software *e) {
    FILE *out = open_file(folder, sm_arena_printf(f.arena, "%s.json", e->name), NULL);
    fprintf(out, "{\n  \"name\": \"%s\",\n  \"title\": \"%s\"", e->name, e->title);
    if (e->like) fprintf(out, ",\n  \"like\": \"%s\"", e->like);
#define X(key, usual, what)                                                                        \
    if (e->key != (usual)) fprintf(out, ",\n  \"" #key "\": %s", e->key ? "true" : "false");
    SM_SOFTWARE_FLAGS(X)
#undef X
#define X(key, usual, what)                                                                        \
    if (e->key < (usual) || e->key > (usual)) fprintf(out, ",\n  \"" #key "\": %g", e->key);
    SM_SOFTWARE_NUMBERS(X)
#undef X
    fprintf(out, "\n}\n");
    fclose(out);
}
static sm_software rounded_engine(const char *name, const double *x) {
    sm_software e = engine_at(name, x);
    e.host_s_per_sequence = strtod(sm_arena_printf(f.arena, "%.2g", e.host_s_per_sequence), NULL);
    e.expert_imbalance = strtod(sm_arena_printf(f.arena, "%.3g", e.expert_imbalance), NULL);
    e.admission_s = strtod(sm_arena_printf(f.arena, "%.2g", e.admission_s), NULL);
    e.burst = strtod(sm_arena_printf(f.arena, "%.2g", e.burst), NULL);
    return e;
}
/* A file per software with a section for each chip, and one of what is usual on each chip. */
static void write_files(const char *calibrations, const char *engines) {
    double x[PARAMETERS];
    for (int g = 0; g < f.group[SOFTWARE].n; g++) {
        const char *name = f.group[SOFTWARE].name[g];
        if (strcmp(name, "serving") == 0) continue;
        FILE *out =
            open_file(calibrations, sm_arena_printf(f.arena, "inference-%s.txt", name),
                      sm_arena_printf(f.arena, "Serving with %s", sm_software_of(name)->title));
        bool written[MOST_GROUPS] = {false};
        for (int c = 0; c < f.cells; c++) {
            const int *group = f.cell[c].group;
            if (group[SOFTWARE] != g || written[group[CHIP]]) continue;
            written[group[CHIP]] = true;
            write_section(out, &f.cell[c], g);
            place(&f.cell[c], LEVELS, x);
        }
        fclose(out);
        sm_software e = rounded_engine(name, x);
        write_engine(engines, &e);
    }
    FILE *out = open_file(calibrations, "serving.txt",
                          "The usual serving software of each chip: what `serve` and `simulate` "
                          "take unless --software says\n# otherwise");
    for (int g = 0; g < f.group[CHIP].n; g++) {
        int c = 0;
        while (f.cell[c].group[CHIP] != g) c++;
        write_section(out, &f.cell[c], -1);
        place(&f.cell[c], FAMILY, x);
    }
    fclose(out);
    unknown_engine(x);
    sm_software e = rounded_engine("serving", x);
    write_engine(engines, &e);
}
static void dump(const char *path) {
    FILE *out = fopen(path, "w");
    if (!out) exit(2);
    fprintf(out, "id\tchip\tsoftware\tquantity\tmeasured\tload");
    for (int k = 0; k < FOLD_KINDS; k++)
        fprintf(out, "\town_%s\tusual_%s", fold_names[k], fold_names[k]);
    fprintf(out, "\n");
    for (int i = 0; i < f.parts; i++) {
        const part *p = &f.part[i];
        const sm_truth_row *row = f.row[p->row].row;
        const sm_inference_row *r = &row->of.inference;
        fprintf(out, "%s\t%s\t%s\t%s\t%g\t%s", row->id, f.cell[f.row[p->row].cell].chip->name,
                row->software, sm_served_name(p->quantity), exp(p->y),
                r->batch > 0                ? "batch"
                : r->disagg == SM_YES       ? "pools"
                : r->concurrency > 0        ? "closed"
                : r->request_rate_per_s > 0 ? "rate"
                                            : "queue");
        for (int k = 0; k < FOLD_KINDS; k++) fprintf(out, "\t%.4f\t%.4f", p->own[k], p->usual[k]);
        fprintf(out, "\n");
    }
    fclose(out);
}
/* ---- what is left out ---- */

static void leave_out(fold_kind kind, int fold) {
    for (int i = 0; i < f.rows; i++) f.row[i].masked = f.row[i].fold[kind] == fold;
    linear_sweeps(12);
    predict(kind, true);
    for (int i = 0; i < f.rows; i++) f.row[i].masked = false;
}

static void leave_out_all(void) {
    double *kept = kept_terms(), *deviation = array(sizeof f.deviation, 1);
    memcpy(deviation, f.deviation, sizeof f.deviation);
    for (fold_kind kind = CONFIG_OUT; kind < FOLD_KINDS; kind++) {
        int folds = 0;
        for (int i = 0; i < f.rows; i++)
            if (f.row[i].fold[kind] >= folds) folds = f.row[i].fold[kind] + 1;
        for (int fold = 0; fold < folds; fold++) {
            memcpy(f.term, kept, sizeof f.term);
            leave_out(kind, fold);
        }
    }
    memcpy(f.term, kept, sizeof f.term);
    memcpy(f.deviation, deviation, sizeof f.deviation);
    free(kept);
}

int main(int n, char **word) {
    const char *rows = NULL, *calibrations = NULL, *engines = NULL;
    int first = 1, rounds = 14;
    while (first + 1 < n && word[first][0] == '-') {
        if (strcmp(word[first], "-r") == 0) rows = word[first + 1];
        if (strcmp(word[first], "-c") == 0) calibrations = word[first + 1];
        if (strcmp(word[first], "-e") == 0) engines = word[first + 1];
        first += 2;
    }
    f.arena = sm_arena_new();
    sm_truth truth;
    sm_error err = {0};
    if (sm_truth_read(word[first], f.arena, &truth, &err))
        return fprintf(stderr, "%s\n", err.sentence), 2;
    const sm_library *families = NULL;
    if (sm_library_shipped(f.arena, &families, &err)) return 2;
    cases = sm_truth_cases_new(families);
    f.row = array(truth.n, sizeof *f.row);
    f.scratch = array(truth.n * SM_SERVED_COUNT, sizeof *f.scratch);
    f.part = array(truth.n * SM_SERVED_COUNT, sizeof *f.part);
    for (size_t i = 0; i < truth.n; i++) add_row(&truth.row[i]);
    weigh();
    fprintf(stderr, "%d rows, %d parts, %d cells\n", f.rows, f.parts, f.cells);
    for (int i = 0; i < rounds && descend(25); i++) {
    }
    evaluate(true);
    predict(IN_SAMPLE, false);
    damping = 0;
    leave_out_all();
    printf("set,n,median,p90,mean,coverage,how\n");
    for (int usual = 0; usual < 2; usual++)
        for (fold_kind k = IN_SAMPLE; k < FOLD_KINDS; k++)
            for (sm_served q = 0; q < SM_SERVED_COUNT; q++) line(k, usual, q);
    if (calibrations && engines) write_files(calibrations, engines);
    if (rows) dump(rows);
    return 0;
}
