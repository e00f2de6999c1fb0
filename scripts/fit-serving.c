/* The constants of serving: one hierarchical fit of all measured rows of inference, and its errors
 * on rows that had no part in it.
 *
 *   fit-serving [-f START [-s SOFTWARE,..]] [-c CALIBRATIONS] [-e ENGINES] [-m MEASURED] [-r ROWS]
 * FILE
 *
 * The hierarchical fit of hierarchy.h of the constants of a chip and a software, and of four
 * numbers of an engine (sm_software) likewise, without terms of chips. What is left out is left out
 * of the last of its linear problems, and predicted in full by the terms that this gives.
 *
 * With -f fits, from the constants and engines that ship (START shipped) or from what kernels alone
 * say (kernels); without, takes what ships. Both are judged on rows left out: the table of
 * held-out-serving.csv is printed, the constants are written with what that says of them. -s fits
 * these alone (vllm-2024, or of one chip mi300x/vllm-2024), beside all others as they are: what
 * rows of theirs that changed ask for, written as they are. -c and -e: calibrations and engines,
 * -m: what was measured of each model (data/evidence), -r: every figure with its errors. */
#include "evidence.h"
#include "scalemodel/io.h"
#include "scalemodel/load.h"
#include "scalemodel/search.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HOST = COMPUTE + 1, EXPERTS, ADMISSION, HANDOVER, PARAMETERS };
enum { FOLDS = 12, MOST_STEPS = 30, FEWEST_SHOWN = 12 };
_Static_assert((int)PARAMETERS <= (int)MOST_PARAMETERS, "they fit");

static const parameter parameters[PARAMETERS] = {
    [SM_CONSTANT_matmul_efficiency] = {.15, .97, {0.6, 0.5, 0.3, 0.3, 0.9}},
    [SM_CONSTANT_matmul_efficiency_fp8] = {.15, .95, {0.6, 0.5, 0.3, 0.3, 0.9}},
    [SM_CONSTANT_matmul_half_k] = {10, 600, {0.6, 0.4, 0.2, 0.2, 0}},
    [SM_CONSTANT_attention_efficiency] = {.08, .9, {0.6, 0.6, 0.4, 0.4, 0.9}},
    [SM_CONSTANT_attention_efficiency_backward] = {.1, .9, {0}},
    [SM_CONSTANT_memory_efficiency] = {.3, .99, {0.8, 0.6, 0.6, 0.6, 1.2}},
    /* Of collectives in a node software has little to say: kernels were timed by themselves. */
    [SM_CONSTANT_network_efficiency_inner] = {.05, 1, {0.3, 0.2, 0.2, 0.2, 0.4}},
    [SM_CONSTANT_network_efficiency_outer] = {.05, 1, {0.8, 0.6, 0.6, 0.6, 1.2}},
    [SM_CONSTANT_launch_s] = {2e-7, 4e-5, {1.4, 0.6, 1, 1, 1.8}},
    [SM_CONSTANT_collective_s] = {1e-6, 1e-4, {1.2, 0.4, 0.2, 0.2, 0.4}},
    [SM_CONSTANT_overlap] = {.3, .97, {1, 0.4, 0.6, 0.6, 0}},
    [SM_CONSTANT_step_overhead_s] = {5e-5, .05, {1.4, 0.6, 1.4, 1.4, 0.8}},
    [SM_CONSTANT_routing_s] = {1e-10, 3e-6, {1.4, 0.4, 0.6, 1, 1.4}},
    [SM_CONSTANT_block_scale_s] = {1e-11, 1e-7, {1.4, 1.4, .6, 1, 1.4}},
    [COMPUTE] = {0, 0, {0.4, 0.4, 0.4, 0.4, 0.9}},
    [HOST] = {1e-7, 1e-3, {1, 0, 1.4, 1.4, 0}},
    [EXPERTS] = {.1, 2.1, {0.4, 0, 0.4, 0.4, 0}},
    [ADMISSION] = {1e-3, 1, {1, 0, 1, 1.4, 0}},
    [HANDOVER] = {1e-3, 3, {1, 0, 1, 1.4, 0}},
};

typedef enum fold_kind {
    IN_SAMPLE,
    CONFIG_OUT,
    LAYOUT_OUT,
    MODEL_OUT,
    CHIP_OUT,
    SOFTWARE_OUT,
    SOURCE_OUT,
    EXPERTS_OUT, /* of a chip, all models with experts, or all without */
    SIZE_OUT,    /* of a chip, all models near to the size of the row's */
    FOLD_KINDS
} fold_kind;
static const char *const fold_names[] = {"in_sample", "configuration", "layout",  "model", "chip",
                                         "software",  "source",        "experts", "size"};
typedef struct part { /* one measured quantity */
    int row;
    sm_served quantity;
    double y;
    double own[FOLD_KINDS], usual[FOLD_KINDS];
} part;
typedef struct bench {
    const sm_truth_row *row;
    sm_truth_row hidden_row;
    sm_truth_case *c, *hidden;
    int cell, fold[FOLD_KINDS], source;
    int first, parts;
    double log_params, far;      /* of the model; from the nearest that its chip has in SIZE_OUT */
    double wider[FOLD_KINDS][2]; /* intervals, by the evidence that is left: known, and usual */
} bench;
static struct fit {
    hierarchy h;
    bench *row;
    int rows;
    part *part;
    int parts;
    names fold[FOLD_KINDS], sources;
    double *scratch;
    double weight[MOST_GROUPS];
    double shipped[PARAMETERS]; /* of an engine that is not known, beside the terms of a start */
    bool ships;                 /* the constants are those that ship */
    bool judged;                /* what is left out was predicted */
} f;

#define EVEN 0.9 /* what the line of an imbalance begins at */
static sm_software engine_at(const char *software, const double *x) {
    sm_software e = *sm_software_of(software);
    e.host_s_per_sequence = from_line(&f.h, HOST, x[HOST]);
    e.expert_imbalance = EVEN + from_line(&f.h, EXPERTS, x[EXPERTS]);
    e.admission_s = from_line(&f.h, ADMISSION, x[ADMISSION]);
    e.handover_s = from_line(&f.h, HANDOVER, x[HANDOVER]);
    return e;
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

static bool has_experts(const bench *b) { return b->row->of.inference.model.experts > 0; }
/* Whether a parameter of an engine can show in a row. */
static bool shows(const bench *b, int j) {
    const sm_inference_row *r = &b->row->of.inference;
    bool waits = !(r->batch > 0) && (r->concurrency > 0 || r->request_rate_per_s > 0);
    if (j == EXPERTS || j == SM_CONSTANT_routing_s) return has_experts(b);
    if (j == SM_CONSTANT_network_efficiency_inner || j == SM_CONSTANT_network_efficiency_outer ||
        j == SM_CONSTANT_collective_s || j == SM_CONSTANT_overlap)
        return r->chips != 1;
    if (j == HANDOVER) return r->disagg == SM_YES;
    /* what models of narrower weights have of these takes up what else is not as priced */
    if (j == SM_CONSTANT_matmul_efficiency)
        return !r->weight_dtype || !r->weight_dtype[0] || strcmp(r->weight_dtype, "bf16") == 0 ||
               strcmp(r->weight_dtype, "fp16") == 0;
    return j < ADMISSION || waits;
}
/* With one parameter moved from where the residuals are of, only rows that show it. */
static void predict_cell(int of, const double *x, double *at) {
    const cell *c = &f.h.cell[of];
    sm_calibration k = constants_at(&f.h, c, x);
    sm_software e = engine_at(c->software, x);
    int moved = PARAMETERS;
    while (moved-- > 0 && !(fabs(x[moved] - c->x[moved]) > 0)) {
    }
    for (int i = 0; i < f.rows; i++) {
        const bench *b = &f.row[i];
        if (b->cell != of) continue;
        if (moved < 0 || shows(b, moved)) predict_row(b, b->c, &k, &e, at + b->first);
        else
            for (int q = 0; q < b->parts; q++) at[b->first + q] = f.h.residual[b->first + q].at;
    }
}

/* Half a year: how much older a software is whose rows say half as much of what a stranger runs. */
static const double TODAY = 2026.4, HALF = 0.5;
static double said_by(const char *software) {
    double year = sm_software_of(software)->year;
    return year > 0 && year < TODAY ? exp2((year - TODAY) / HALF) : 1;
}
/* What the rows of each cell weigh that are not left out. */
static void weigh_cells(void) {
    memset(f.weight, 0, sizeof f.weight);
    for (int i = 0; i < f.parts; i++)
        if (!f.h.residual[i].masked) f.weight[f.h.residual[i].cell] += f.h.residual[i].weight;
    for (int i = 0; i < f.h.cells; i++) f.weight[i] *= said_by(f.h.cell[i].software);
}
/* Whether enough rows of a chip show a constant for its own say on it: products of 16 bits. */
static bool is_shown(const cell *c, int j) {
    int rows = 0;
    for (int i = 0; i < f.rows && j == SM_CONSTANT_matmul_efficiency; i++)
        rows += f.h.cell[f.row[i].cell].group[CHIP] == c->group[CHIP] && shows(&f.row[i], j);
    return j != SM_CONSTANT_matmul_efficiency || rows >= FEWEST_SHOWN;
}
/* Where software that is not known is taken to be, on a chip no better than most: where that
 * measured on it is on average, as if OTHERS more were there of what all chips of its fabric have
 * (of 5 they had a fifth of the say on a chip with 50 rows of one software). Its engine is what all
 * on switches have in common. */
static void usual_place(const cell *c, double *x) {
    static const double OTHERS = 1;
    double of_fabric[MOST_PARAMETERS];
    place(&f.h, c, CHIP, of_fabric);
    place(&f.h, c, FAMILY, x);
    for (int j = 0; j < HOST; j++) {
        double all = 0, all_weight = 0, own = 0, own_weight = 0;
        const bool alone = !is_shown(c, j);
        if (alone) x[j] = of_fabric[j];
        for (int i = 0; i < f.h.cells; i++) {
            const cell *o = &f.h.cell[i];
            double weight = f.weight[i], term = 0;
            if (o->group[FABRIC] != c->group[FABRIC]) continue;
            for (int l = FAMILY; l < LEVELS; l++) term += weight * f.h.term[l][o->group[l]][j];
            all += term, all_weight += weight;
            if (!alone && o->group[CHIP] == c->group[CHIP]) own += term, own_weight += weight;
        }
        if (all_weight > 0) x[j] += (own + OTHERS * all / all_weight) / (own_weight + OTHERS);
    }
    for (int j = HOST; j < PARAMETERS; j++)
        x[j] = f.h.cell[0].base[j] + f.h.term[FABRIC][0][j] + f.shipped[j];
}

/* fold: its rows; -1: all. */
static void predict(fold_kind kind, int fold) {
    weigh_cells();
    for (int ci = 0; ci < f.h.cells; ci++) {
        const cell *c = &f.h.cell[ci];
        double x[PARAMETERS] = {0}, y[PARAMETERS] = {0}, r[SM_SERVED_COUNT];
        place(&f.h, c, LEVELS, x), usual_place(c, y);
        sm_calibration k = constants_at(&f.h, c, x), usual = constants_at(&f.h, c, y);
        sm_software e = engine_at(c->software, x), any = engine_at("serving", y);
        for (int i = 0; i < f.rows; i++) {
            const bench *b = &f.row[i];
            if (b->cell != ci || (fold >= 0 && b->fold[kind] != fold)) continue;
            predict_row(b, b->c, &k, &e, r);
            for (int q = 0; q < b->parts; q++) f.part[b->first + q].own[kind] = r[q];
            predict_row(b, b->hidden, &usual, &any, r);
            for (int q = 0; q < b->parts; q++) f.part[b->first + q].usual[kind] = r[q];
        }
    }
}

/* Models of a fold are within a factor of two of one another, those that stay without beyond FAR of
 * its first. */
#define FAR 8.0
static int size_of(const bench *b) { return (int)floor(b->log_params / log(2)); }
static bool same_chip(const bench *a, const bench *b) {
    return f.h.cell[a->cell].group[CHIP] == f.h.cell[b->cell].group[CHIP];
}

/* ---- rows ---- */
static const char *family_of(const char *s) {
    static const char *const families[][2] = {{"trtllm-2025", "trtllm-2025"},
                                              {"trtllm-1", "trtllm-2025"},
                                              {"trtllm", "trtllm-2024"},
                                              {"vllm-2023", "vllm-2024"},
                                              {"vllm-2024", "vllm-2024"},
                                              {"vllm-tpu", "tpu"},
                                              {"sglang-jax", "tpu"},
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
static int cell_of(const sm_chip *chip, const char *software) {
    const sm_calibration *kernels = sm_calibration_for(chip, "kernels");
    sm_calibration start = kernels ? *kernels : *sm_calibration_of(chip);
    bool is_new;
    start.step_overhead_s = 1e-3;
    start.launch_s = 1e-6;
    start.block_scale_s = 1e-10;
    start.routing_s = 2e-8;
    int at = cell_index(&f.h, chip, software, family_of(software), &start, &is_new);
    double *base = f.h.cell[at].base;
    if (!is_new) return at;
    base[HOST] = to_line(&f.h, HOST, 1e-5);
    base[EXPERTS] = to_line(&f.h, EXPERTS, 1.15 - EVEN);
    base[ADMISSION] = to_line(&f.h, ADMISSION, .05);
    base[HANDOVER] = to_line(&f.h, HANDOVER, .05);
    return at;
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
    b->cell = cell_of(chip, sm_truth_software(row));
    b->first = f.parts;
    for (int i = 0; i < p.parts; i++) {
        part *q = &f.part[f.parts++];
        *q = (part){.row = f.rows, .quantity = p.part[i].quantity, .y = log(p.part[i].measured_s)};
        f.h.residual[f.parts - 1] =
            (residual){.cell = b->cell, .spread = spread_of(p.part[i].quantity, r)};
        for (int k = 0; k < FOLD_KINDS; k++) q->own[k] = q->usual[k] = NAN;
        b->parts++;
    }
    char text[600];
    char layout[200], model[200];
    snprintf(model, sizeof model, "%d %d %d", r->model.layers, r->model.d_model, r->model.d_ff);
    snprintf(layout, sizeof layout, "%d/%d/%d/%d/%d/%d p%d %d %d d%d %d %d", r->chips, r->tp, r->pp,
             r->ep, r->dp, r->attention_dp, r->prefill.workers, r->prefill.tp,
             r->prefill.dp_attention, r->decode.workers, r->decode.tp, r->decode.dp_attention);
    b->source = name_index(&f.h, &f.sources,
                           sm_arena_printf(f.h.arena, "%.*s", (int)strcspn(row->id, "_"), row->id));
    snprintf(text, sizeof text, "%s %s %s %s %s %.0f %.0f", f.sources.name[b->source], row->chip,
             row->software, model, layout, r->input_len, r->output_len);
    b->fold[CONFIG_OUT] = name_index(&f.h, &f.fold[CONFIG_OUT], text) % FOLDS;
    snprintf(text, sizeof text, "%s %s %s", row->chip, model, layout);
    b->fold[IN_SAMPLE] = b->fold[CONFIG_OUT]; /* whose intervals others teach */
    b->fold[LAYOUT_OUT] = name_index(&f.h, &f.fold[LAYOUT_OUT], text) % FOLDS;
    b->fold[MODEL_OUT] = name_index(&f.h, &f.fold[MODEL_OUT], model) % FOLDS;
    b->fold[CHIP_OUT] = f.h.cell[b->cell].group[CHIP];
    b->fold[SOFTWARE_OUT] = f.h.cell[b->cell].group[SOFTWARE];
    b->fold[SOURCE_OUT] = b->source;
    const sm_model *m = sm_truth_case_model(b->c);
    b->log_params = m ? log(sm_model_params(m).total) : 0;
    int on = f.h.cell[b->cell].group[CHIP];
    snprintf(text, sizeof text, "%d %d", on, has_experts(b));
    b->fold[EXPERTS_OUT] = name_index(&f.h, &f.fold[EXPERTS_OUT], text);
    snprintf(text, sizeof text, "%d %d", on, size_of(b));
    b->fold[SIZE_OUT] = name_index(&f.h, &f.fold[SIZE_OUT], text);
    f.rows++;
}
/* n rows of a source, chip and software count as n^(1 - CROWDED). */
#define CROWDED 0.35
static void weigh(void) {
    int n[100][MOST_GROUPS] = {{0}};
    for (int i = 0; i < f.rows; i++) n[f.row[i].source][f.row[i].cell]++;
    for (int i = 0; i < f.parts; i++) {
        const part *p = &f.part[i];
        double *weight = &f.h.residual[i].weight;
        const bench *b = &f.row[p->row];
        bool first = i == b->first;
        *weight = pow(n[b->source][b->cell], -CROWDED);
        if (p->quantity == SM_SERVED_LATENCY && !first) *weight *= 0.5;
        if (p->quantity == SM_SERVED_TOKEN && !first) *weight *= 0.7;
    }
    f.h.residuals = f.parts;
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
    const cell *c = &f.h.cell[f.row[p->row].cell];
    return sm_served_regime(p->quantity) == of->regime &&
           (of->chip < 0 || c->group[CHIP] == of->chip) &&
           (of->software < 0 || c->group[SOFTWARE] == of->software) &&
           isfinite(residual_at(p, of->kind, of->usual));
}
/* Rows whose fold of a kind is `fold` teach no interval of it; -1: all do. */
typedef struct untaught {
    fold_kind kind;
    int fold;
} untaught;
static const untaught NOBODY = {CONFIG_OUT, -1};

/* log measured / expected that a share q of rows to come lies below. */
static size_t quantiles(const learned *of, untaught without, double *low, double *high) {
    size_t n = 0;
    for (int i = 0; i < f.parts; i++) {
        const part *p = &f.part[i];
        if (!is_of(p, of) || f.row[p->row].fold[without.kind] == without.fold) continue;
        f.scratch[n++] = -residual_at(p, of->kind, of->usual);
    }
    double spare = n > 1 ? ((double)n + 1) / ((double)n - 1) : 1;
    *low = sm_quantile(f.scratch, n, fmax(0, 0.5 - 0.4 * spare));
    *high = sm_quantile(f.scratch, n, fmin(1, 0.5 + 0.4 * spare));
    return n;
}
enum { FEWEST = 12 };
/* Of a cell; of few rows: of its software, then of the chip, then of all. */
static size_t interval(const learned *of, untaught without, double *low, double *high) {
    learned wider[] = {*of, *of, *of, *of};
    size_t n = 0;
    wider[1].chip = wider[2].software = wider[3].chip = wider[3].software = -1;
    for (int i = 0; i < 4 && n < FEWEST; i++) n = quantiles(&wider[i], without, low, high);
    return n;
}

/* What residuals the intervals are learned from that `serve` prints. */
static fold_kind taught_by(bool usual) { return usual ? SOFTWARE_OUT : CONFIG_OUT; }
static void shipped_interval(sm_calibration *k, sm_regime regime, const learned *of,
                             untaught without) {
    double low, high;
    k->interval[regime].n = (int)interval(of, without, &low, &high);
    k->interval[regime].lowest = rounded(exp(low));
    k->interval[regime].highest = rounded(exp(high));
}

/* Of rows whose measured value lies in the interval that `serve` would print had it neither rows
 * nor constants of what is left out: that of its constants, wider by what is told of the evidence.
 */
static double coverage(fold_kind kind, bool usual, sm_served q) {
    double inside = 0, n = 0;
    for (int i = 0; i < f.parts; i++) {
        const part *p = &f.part[i];
        const bench *b = &f.row[p->row];
        const cell *c = &f.h.cell[b->cell];
        double r = -residual_at(p, kind, usual), low, high;
        if (p->quantity != q || !isfinite(r)) continue;
        sm_regime regime = sm_served_regime(q);
        learned of = {taught_by(usual), usual, regime, usual ? -1 : c->group[CHIP],
                      usual ? -1 : c->group[SOFTWARE]};
        sm_calibration k = {.chip = kind == CHIP_OUT ? "" : constants_name(c->chip)};
        shipped_interval(&k, regime, &of, (untaught){kind, b->fold[kind]});
        sm_calibration_interval(&k, c->chip, regime, 1.0, &low, &high);
        n++;
        inside += r >= b->wider[kind][usual] * log(low) && r <= b->wider[kind][usual] * log(high);
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

static const char *add_name(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ',' || !at[n])) return list;
    return sm_arena_printf(f.h.arena, "%s%s%s", list, list[0] ? ", " : "", name);
}
static const char *span(const double ends[2]) {
    return ends[0] < ends[1] ? sm_arena_printf(f.h.arena, "%.0f to %.0f", ends[0], ends[1])
                             : sm_arena_printf(f.h.arena, "%.0f", ends[0]);
}
/* software -1: the usual constants of the chip. */
static void write_section(FILE *out, const cell *c, int software) {
    bool usual = software < 0;
    double x[PARAMETERS], chips[2] = {INFINITY, 0}, prompts[2] = {INFINITY, 0};
    int rows = 0;
    const char *sources = "", *models = "";
    size_t n = 0;
    if (usual) usual_place(c, x);
    else place(&f.h, c, LEVELS, x);
    const sm_calibration *ships = sm_calibration_for(c->chip, usual ? "serving" : c->software);
    sm_calibration k = f.ships && ships ? *ships : constants_at(&f.h, c, x);
    round_constants(&k);
    fold_kind kind = taught_by(usual);
    for (int i = 0; i < f.rows; i++) {
        const bench *b = &f.row[i];
        const sm_inference_row *r = &b->row->of.inference;
        const int *group = f.h.cell[b->cell].group;
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
    const char *error = "";
    if (n > 0)
        error = sm_arena_printf(f.h.arena, "; median error %.1f %% with %s left out",
                                100 * sm_quantile(f.scratch, n, 0.5),
                                usual ? "the software" : "the configuration");
    memset(k.interval, 0, sizeof k.interval);
    static const sm_regime regimes[] = {SM_REGIME_prefill, SM_REGIME_decode, SM_REGIME_throughput};
    for (int i = 0; i < 3; i++) {
        learned of = {kind, usual, regimes[i], usual ? -1 : c->group[CHIP], software};
        if (f.judged) shipped_interval(&k, regimes[i], &of, NOBODY);
    }
    k.chip = constants_name(c->chip);
    k.software = usual ? "serving" : c->software;
    k.fitted = usual ? identified(&f.h, c, CHIP, CHIP) : identified(&f.h, c, CHIP, BOTH);
    k.source = k.range = "";
    if (rows == 0)
        k.source = "no measured row of serving: single operations of the chip, and what chips "
                   "of its kind have in common in one fit of all of them";
    else {
        k.source = sm_arena_printf(
            f.h.arena,
            "%d measured rows of serving (%s) in one fit of all chips and software; models: %s%s",
            rows, sources, models, error);
        k.range = sm_arena_printf(f.h.arena, "%s chip%s, prompts of %s tokens", span(chips),
                                  chips[1] > 1 ? "s" : "", span(prompts));
    }
    char *text = sm_calibration_format(&k, f.h.arena);
    if (!text) exit(2);
    fprintf(out, "\n%s", text);
}
static void write_default(FILE *out, const sm_software_default *d, bool first) {
    const struct {
        const char *key, *text;
        double number;
    } all[] = {{"memory_gib_at_least", NULL, ldexp(d->memory_at_least, -30)},
               {"chip", d->chip, 0},
               {"not_chip", d->not_chip, 0},
               {"family", d->family, 0},
               {"budget_tokens", NULL, d->budget_tokens},
               {"budget_of_all", NULL, d->budget_of_all},
               {"most_running", NULL, d->most_running},
               {"most_of_all", NULL, d->most_of_all},
               {"widening_rate", NULL, d->widening_rate}};
    const char *apart = d->drafts ? ", " : "";
    fprintf(out, "%s\n    {%s", first ? ",\n  \"defaults\": [" : ",",
            d->drafts ? "\"drafts\": true" : "");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (!all[i].text && !(all[i].number > 0)) continue;
        fprintf(out, "%s\"%s\": ", apart, all[i].key);
        if (all[i].text) fprintf(out, "\"%s\"", all[i].text);
        else fprintf(out, "%g", all[i].number);
        apart = ", ";
    }
    fputs("}", out);
}
/* What an engine's file has beside what it is silent about; its four numbers are of the fit. */
static void write_engine(const char *folder, const sm_software *e) {
    FILE *out = open_file(&f.h, folder, sm_arena_printf(f.h.arena, "%s.json", e->name), NULL);
    fprintf(out, "{\n  \"name\": \"%s\",\n  \"title\": \"%s\"", e->name, e->title);
    if (e->aliases) fprintf(out, ",\n  \"aliases\": \"%s\"", e->aliases);
    if (e->like) fprintf(out, ",\n  \"like\": \"%s\"", e->like);
#define X(key, usual, what)                                                                        \
    if (e->key != (usual)) fprintf(out, ",\n  \"" #key "\": %s", e->key ? "true" : "false");
    SM_SOFTWARE_FLAGS(X)
#undef X
#define X(key, usual, least, most, what)                                                           \
    if (e->key < (usual) || e->key > (usual)) fprintf(out, ",\n  \"" #key "\": %g", e->key);
    SM_SOFTWARE_NUMBERS(X)
#undef X
    for (int i = 0; i < e->n_defaults; i++) write_default(out, &e->defaults[i], i == 0);
    fprintf(out, "%s\n}\n", e->n_defaults > 0 ? "]" : "");
    fclose(out);
}
static sm_software rounded_engine(const char *name, const double *x) {
    sm_software e = engine_at(name, x);
    e.host_s_per_sequence = rounded(e.host_s_per_sequence);
    e.expert_imbalance = rounded(e.expert_imbalance);
    e.admission_s = rounded(e.admission_s);
    e.handover_s = rounded(e.handover_s);
    return e;
}
/* A file per software with a section for each chip, and one of what is usual on each chip. */
static void write_files(const char *calibrations, const char *engines) {
    double x[PARAMETERS] = {0};
    weigh_cells();
    for (int g = 0; g < f.h.group[SOFTWARE].n; g++) {
        const char *name = f.h.group[SOFTWARE].name[g];
        if (strcmp(name, "serving") == 0) continue;
        FILE *out =
            open_file(&f.h, calibrations, sm_arena_printf(f.h.arena, "inference-%s.txt", name),
                      sm_arena_printf(f.h.arena, "Serving with %s", sm_software_of(name)->title));
        bool written[MOST_GROUPS] = {false};
        for (int c = 0; c < f.h.cells; c++) {
            const int *group = f.h.cell[c].group;
            if (group[SOFTWARE] != g || written[group[CHIP]]) continue;
            written[group[CHIP]] = true;
            write_section(out, &f.h.cell[c], g);
            place(&f.h, &f.h.cell[c], LEVELS, x);
        }
        fclose(out);
        sm_software e = rounded_engine(name, x);
        write_engine(engines, &e);
    }
    FILE *out = open_file(&f.h, calibrations, "serving.txt",
                          "The usual serving software of each chip: what `serve` and `simulate` "
                          "take unless --software says\n# otherwise");
    for (int g = 0; g < f.h.group[CHIP].n; g++) {
        int c = 0;
        while (f.h.cell[c].group[CHIP] != g) c++;
        write_section(out, &f.h.cell[c], -1);
    }
    fclose(out);
    usual_place(&f.h.cell[0], x);
    sm_software e = rounded_engine("serving", x);
    write_engine(engines, &e);
}
static void dump(const char *path) {
    FILE *out = fopen(path, "w");
    if (!out) exit(2);
    fprintf(out, "id\tchip\tsoftware\tquantity\tmeasured\tload");
    for (int k = 0; k < FOLD_KINDS; k++)
        fprintf(out, "\town_%s\tusual_%s", fold_names[k], fold_names[k]);
    fprintf(out, "\tfar\n");
    for (int i = 0; i < f.parts; i++) {
        const part *p = &f.part[i];
        const sm_truth_row *row = f.row[p->row].row;
        const sm_inference_row *r = &row->of.inference;
        fprintf(out, "%s\t%s\t%s\t%s\t%g\t%s", row->id, f.h.cell[f.row[p->row].cell].chip->name,
                row->software, sm_served_name(p->quantity), exp(p->y),
                r->batch > 0                ? "batch"
                : r->disagg == SM_YES       ? "pools"
                : r->concurrency > 0        ? "closed"
                : r->request_rate_per_s > 0 ? "rate"
                                            : "queue");
        for (int k = 0; k < FOLD_KINDS; k++) fprintf(out, "\t%.4f\t%.4f", p->own[k], p->usual[k]);
        fprintf(out, "\t%.3f\n", f.row[p->row].far);
    }
    fclose(out);
}
/* Of a token: per token where that is told, else of the row's first figure. */
static void take_errors(const bench *b, fold_kind kind, bool usual, double *out) {
    out[0] = out[1] = NAN;
    for (int i = 0; i < b->parts; i++) {
        const part *p = &f.part[b->first + i];
        double e = residual_at(p, kind, usual);
        if (p->quantity == SM_SERVED_TTFT) out[1] = e;
        else if (isnan(out[0]) || p->quantity == SM_SERVED_TPOT) out[0] = e;
    }
}
/* By times per token that both have; of sizes on each unit of how far. */
static double excess(fold_kind with, fold_kind without, bool usual) {
    size_t n = 0;
    double *m = fit_array(&f.h, (size_t)f.parts, sizeof *m), *c, *far;
    c = fit_array(&f.h, (size_t)f.parts, sizeof *c);
    far = fit_array(&f.h, (size_t)f.parts, sizeof *far);
    for (int i = 0; i < f.parts; i++) {
        const part *p = &f.part[i];
        double x = residual_at(p, with, usual), y = residual_at(p, without, usual);
        if (p->quantity != SM_SERVED_TPOT || !isfinite(x) || !isfinite(y)) continue;
        m[n] = fabs(expm1(x)), c[n] = fabs(expm1(y)), far[n++] = f.row[p->row].far;
    }
    double more = evidence_excess(m, c, n);
    return with == SIZE_OUT && n > 0 ? more / sm_quantile(far, n, 0.5) : more;
}
static double median_error(bool usual) {
    size_t n = 0;
    for (int i = 0; i < f.parts; i++) {
        double x = residual_at(&f.part[i], CONFIG_OUT, usual);
        if (f.part[i].quantity == SM_SERVED_TPOT && isfinite(x)) f.scratch[n++] = fabs(expm1(x));
    }
    return sm_quantile(f.scratch, n, 0.5);
}
/* Software that is not known is never another. */
static sm_evidence_apart apart_of(bool usual) {
    return (sm_evidence_apart){.whole = median_error(usual),
                               .model = excess(MODEL_OUT, CONFIG_OUT, usual),
                               .experts = excess(EXPERTS_OUT, MODEL_OUT, usual),
                               .size = excess(SIZE_OUT, MODEL_OUT, usual),
                               .chip = excess(CHIP_OUT, CONFIG_OUT, usual),
                               .software = usual ? 0 : excess(SOFTWARE_OUT, CONFIG_OUT, usual),
                               .sizes = excess(LAYOUT_OUT, CONFIG_OUT, false)};
}

/* ---- what is left out ---- */

/* Whether a row has no part in what predicts those of a fold, which are like the first of them. */
static bool is_left_out(fold_kind kind, const bench *first, const bench *b) {
    if (kind != SIZE_OUT) return b->fold[kind] == first->fold[kind];
    return same_chip(b, first) && fabs(b->log_params - first->log_params) < log(FAR);
}

/* How far each row of a fold is from the sizes that its chip has left; where it has none, the row
 * is of a chip that nobody has. */
static void measure_far(fold_kind kind, int fold) {
    for (int i = 0; i < f.rows; i++) {
        bench *b = &f.row[i];
        if (b->fold[kind] != fold) continue;
        double far = INFINITY;
        for (int k = 0; k < f.rows; k++)
            if (!f.h.residual[f.row[k].first].masked && same_chip(b, &f.row[k]))
                far = fmin(far, fabs(f.row[k].log_params - b->log_params));
        if (kind == SIZE_OUT) b->far = far;
        for (int q = 0; q < b->parts && isinf(far); q++)
            f.part[b->first + q].own[kind] = f.part[b->first + q].usual[kind] = NAN;
    }
}

static void leave_out(fold_kind kind, int fold) {
    const bench *first = f.row;
    while (first->fold[kind] != fold) first++;
    for (int i = 0; i < f.parts; i++)
        f.h.residual[i].masked = is_left_out(kind, first, &f.row[f.part[i].row]);
    fit_without(&f.h);
    predict(kind, fold);
    if (kind >= EXPERTS_OUT) measure_far(kind, fold);
    for (int i = 0; i < f.parts; i++) f.h.residual[i].masked = false;
}

static void leave_out_all(void) {
    hierarchy *kept = fit_array(&f.h, 1, sizeof *kept);
    *kept = f.h;
    fit_drift(&f.h);
    memcpy(kept->deviation, f.h.deviation, sizeof f.h.deviation);
    for (fold_kind kind = CONFIG_OUT; kind < FOLD_KINDS; kind++) {
        int folds = 0;
        for (int i = 0; i < f.rows; i++)
            if (f.row[i].fold[kind] >= folds) folds = f.row[i].fold[kind] + 1;
        for (int fold = 0; fold < folds; fold++) {
            bool any = false;
            for (int i = 0; i < f.rows; i++) any = any || f.row[i].fold[kind] == fold;
            memcpy(f.h.term, kept->term, sizeof f.h.term);
            if (any) leave_out(kind, fold);
        }
    }
    f.h = *kept;
}

/* ---- evidence ---- */

static const char *const measured_sizes[MEASURED_SIZES] = {"chips", "concurrency", "prompt",
                                                           "output"};
static void sizes_of(const bench *b, double size[MEASURED_SIZES]) {
    const sm_inference_row *r = &b->row->of.inference;
    size[0] = r->chips;
    size[1] = r->batch > 0 ? r->batch : r->concurrency > 0 ? r->concurrency : NAN;
    size[2] = r->input_len, size[3] = r->output_len;
}
/* Rows of a fold, and what is like them, left out; fold -1: none. */
static measured_row *measured_without(fold_kind kind, int fold, size_t *n) {
    measured_row *list = sm_calloc((size_t)f.rows, sizeof *list);
    const bench *first = f.row;
    if (!list) fit_stop(&f.h, "out of memory");
    while (fold >= 0 && first->fold[kind] != fold) first++;
    *n = 0;
    for (int i = 0; i < f.rows; i++) {
        const bench *b = &f.row[i];
        measured_row m = {.name = b->row->of.inference.model.name,
                          .model = sm_truth_case_model(b->c),
                          .chip = f.h.cell[b->cell].chip,
                          .software = b->row->software,
                          .type = b->row->of.inference.weight_dtype,
                          .plan = sm_truth_case_plan(b->c)};
        sizes_of(b, m.size);
        take_errors(b, CONFIG_OUT, false, m.own);
        take_errors(b, CONFIG_OUT, true, m.usual);
        if (m.model && (fold < 0 || !is_left_out(kind, first, b))) list[(*n)++] = m;
    }
    return list;
}
static double wider_of(const bench *b, bool usual, const sm_evidence *line, size_t lines,
                       const sm_evidence_apart *apart) {
    double value[MEASURED_SIZES];
    sm_asked_size size[MEASURED_SIZES];
    sm_evidence_near near = {.wider = 1};
    sm_evidence_question q = {.use = SM_EVIDENCE_SERVING,
                              .model = sm_truth_case_model(b->c),
                              .chip = f.h.cell[b->cell].chip,
                              .software = usual ? NULL : b->row->software,
                              .type = evidence_type(b->row->of.inference.weight_dtype),
                              .plan = sm_truth_case_plan(b->c),
                              .size = size};
    sizes_of(b, value);
    for (int i = 0; i < MEASURED_SIZES; i++)
        if (isfinite(value[i])) size[q.sizes++] = (sm_asked_size){measured_sizes[i], value[i]};
    if (q.model) sm_evidence_find_in(line, lines, &apart[usual], &q, &near, 1);
    return near.wider;
}
/* What the evidence that is left makes of intervals. */
static void find_wider(const sm_evidence_apart apart[2]) {
    for (fold_kind kind = IN_SAMPLE; kind < FOLD_KINDS; kind++)
        for (int fold = kind == IN_SAMPLE ? -1 : 0; fold < MOST_NAMES; fold++) {
            size_t n, lines;
            int rows = 0;
            for (int i = 0; i < f.rows; i++) rows += f.row[i].fold[kind] == fold;
            if (fold >= 0 && rows == 0) continue;
            sm_arena *arena = sm_arena_new();
            if (!arena) fit_stop(&f.h, "out of memory");
            measured_row *list = measured_without(kind, fold, &n);
            const sm_evidence *line =
                evidence_lines(&f.h, arena, SM_EVIDENCE_SERVING, measured_sizes, list, n, &lines);
            for (int i = 0; i < f.rows; i++)
                for (int usual = 0; usual < 2; usual++)
                    if (fold < 0 || f.row[i].fold[kind] == fold)
                        f.row[i].wider[kind][usual] =
                            wider_of(&f.row[i], usual, line, lines, apart);
            sm_free(list);
            sm_arena_free(arena);
            if (fold < 0) break;
        }
}
static void write_measured(const char *path, const sm_evidence_apart apart[2]) {
    size_t n;
    measured_row *list = measured_without(CONFIG_OUT, -1, &n);
    evidence_write(&f.h, path, apart, measured_sizes, list, n);
    sm_free(list);
}

static void line_of(const sm_software *e, double *x) {
    x[HOST] = to_line(&f.h, HOST, e->host_s_per_sequence);
    x[EXPERTS] = to_line(&f.h, EXPERTS, e->expert_imbalance - EVEN);
    x[ADMISSION] = to_line(&f.h, ADMISSION, e->admission_s);
    x[HANDOVER] = to_line(&f.h, HANDOVER, e->handover_s);
}
/* The terms that the constants and engines have that ship. */
static void start_shipped(void) {
    static double x[MOST_GROUPS][MOST_PARAMETERS];
    for (int i = 0; i < f.h.cells; i++) {
        const cell *c = &f.h.cell[i];
        const sm_calibration *k = sm_calibration_for(c->chip, c->software);
        if (!k) k = sm_calibration_for(c->chip, "serving");
        for (int j = 0; j < SM_CONSTANT_COUNT; j++)
            x[i][j] = k && sm_calibration_get(k, (sm_constant)j) > 0
                          ? to_line(&f.h, j, sm_calibration_get(k, (sm_constant)j))
                          : NAN;
        line_of(sm_software_of(c->software), x[i]);
    }
    fit_start(&f.h, x);
    line_of(sm_software_of("serving"), f.shipped);
    for (int j = HOST; j < PARAMETERS; j++)
        f.shipped[j] -= f.h.cell[0].base[j] + f.h.term[FABRIC][0][j];
}

/* Is it one of the names in commas? */
static bool is_named(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *at = strstr(list, name); at; at = strstr(at + 1, name))
        if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ',')) return true;
    return false;
}
/* But for those named, as SOFTWARE or CHIP/SOFTWARE, nothing moves. */
static void hold_others(const char *list) {
    for (int i = 0; list && i < f.h.cells; i++) {
        const cell *c = &f.h.cell[i];
        const char *both =
            sm_arena_printf(f.h.arena, "%s/%s", constants_name(c->chip), c->software);
        f.h.held[c->group[BOTH]] = !is_named(list, c->software) && !is_named(list, both);
    }
}

int main(int n, char **word) {
    const char *rows = NULL, *calibrations = NULL, *engines = NULL, *measurements = NULL;
    const char *start = NULL, *softwares = NULL;
    int first = 1;
    while (first + 1 < n && word[first][0] == '-') {
        if (strcmp(word[first], "-f") == 0) start = word[first + 1];
        if (strcmp(word[first], "-s") == 0) softwares = word[first + 1];
        if (strcmp(word[first], "-r") == 0) rows = word[first + 1];
        if (strcmp(word[first], "-m") == 0) measurements = word[first + 1];
        if (strcmp(word[first], "-c") == 0) calibrations = word[first + 1];
        if (strcmp(word[first], "-e") == 0) engines = word[first + 1];
        first += 2;
    }
    f.h = (hierarchy){.program = "fit-serving",
                      .parameter = parameters,
                      .parameters = PARAMETERS,
                      .predict = predict_cell,
                      .arena = sm_arena_new()};
    if (!f.h.arena || first >= n) return 2;
    sm_truth truth;
    sm_error err = {0};
    if (sm_truth_read(word[first], f.h.arena, &truth, &err))
        return fprintf(stderr, "%s\n", err.sentence), 2;
    cases = sm_truth_cases_new(true);
    f.row = fit_array(&f.h, truth.n, sizeof *f.row);
    f.scratch = fit_array(&f.h, truth.n * SM_SERVED_COUNT, sizeof *f.scratch);
    f.part = fit_array(&f.h, truth.n * SM_SERVED_COUNT, sizeof *f.part);
    f.h.residual = fit_array(&f.h, truth.n * SM_SERVED_COUNT, sizeof *f.h.residual);
    for (size_t i = 0; i < truth.n; i++) add_row(&truth.row[i]);
    weigh();
    fprintf(stderr, "%d rows, %d parts, %d cells\n", f.rows, f.parts, f.h.cells);
    f.ships = !start;
    if (!start || strcmp(start, "shipped") == 0) start_shipped();
    if (start) hold_others(softwares);
    fit_terms(&f.h, start ? MOST_STEPS : 0);
    if (softwares) {
        if (calibrations && engines) write_files(calibrations, engines);
        return 0;
    }
    predict(IN_SAMPLE, -1);
    leave_out_all();
    f.judged = true;
    const sm_evidence_apart apart[2] = {apart_of(false), apart_of(true)};
    find_wider(apart);
    printf("set,n,median,p90,mean,coverage,how\n");
    for (int usual = 0; usual < 2; usual++)
        for (fold_kind k = IN_SAMPLE; k < FOLD_KINDS; k++)
            for (sm_served q = 0; q < SM_SERVED_COUNT; q++) line(k, usual, q);
    if (calibrations && engines) write_files(calibrations, engines);
    if (measurements) write_measured(measurements, apart);
    if (rows) dump(rows);
    return 0;
}
