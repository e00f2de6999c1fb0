/* A row of inference: its engines priced as `serve` prices them, under its load. */
#include <math.h>
#include <string.h>

#include "inference_parts.h"

struct truth_serving {
    const sm_truth_row *row;
    row_models *models;
    const sm_model *model;
    sm_system prefill_system, decode_system;
    sm_serve_dtypes dtypes;
    inference_layout layout;
    inference_load load;
    const sm_software *software;
    sm_software set;            /* it, where the row differs */
    sm_serve *prefill, *decode; /* while borrowed; one and the same unless the pools are apart */
    double most_running, most_possible; /* as the engine schedules; as the memory holds */
    double kv_tokens;
    char why[160];
};

/* ---- making ready ---- */

static bool system_of(const sm_chip *chip, int chips, sm_system *system) {
    char text[96];
    snprintf(text, sizeof text, "%s:%d", chip->name, chips);
    return truth_system_called(text, chip, system);
}

static bool read_facts(truth_serving *t, const sm_chip *chip, const char **why) {
    const sm_inference_row *r = &t->row->of.inference;
    const sm_model *stated;
    sm_error err = {0};
    if (truth_serving_engine(t, sm_software_of(sm_truth_software(t->row)), &err)) {
        snprintf(t->why, sizeof t->why, "engine: %.140s", err.sentence);
        *why = t->why;
        return false;
    }
    if (!inference_load_of(r, &t->load, why) || !inference_model(r, NULL, t->models, &stated, why))
        return false;
    bool ok = inference_dtypes(r, chip, t->software, &t->dtypes, why) &&
              inference_layout_of(t->row, chip, t->software, stated, &t->dtypes, &t->layout, why) &&
              inference_model(r, &t->layout, t->models, &t->model, why);
    row_models_drop(t->models, stated);
    if (!ok) return false;
    *why = "the chips do not lay out on the chip's network";
    if (!system_of(chip, t->layout.prefill.chips, &t->prefill_system) ||
        !system_of(chip, t->layout.decode.chips, &t->decode_system))
        return false;
    *why = NULL;
    return true;
}

static sm_status start(const truth_serving *t, const sm_system *system, sm_serve **out,
                       sm_error *err) {
    bool drafts = strstr(t->row->of.inference.spec_decode, "mtp") != NULL;
    const sm_serve_job job = {
        .size = sizeof(sm_serve_job),
        .model = t->model,
        .system = system,
        .software = t->software,
        .speculation = {.depth = drafts ? (int)t->software->drafted_tokens : 0,
                        .acceptance = t->software->accepted},
        .dtypes = t->dtypes,
        .prompt = t->load.prompt,
        .prefix = fmin(fmax(0, t->row->of.inference.cached_len), t->load.prompt - 1),
        .output = t->load.output,
        .reserve = -1,
        .blocks = strcmp(t->row->of.inference.weight_dtype, "fp8_block") == 0,
        .usd_per_chip_hour = 0};
    return row_serve_new(&job, out, err);
}

/* A running sequence holds its prompt and half its output on average; an engine that never evicts
 * keeps room for all of it. Each rank of data-parallel attention has a schedule of its own. */
static sm_status fitting(truth_serving *t, double tokens, sm_serve_room *room, sm_error *err) {
    return sm_serve_room_of(t->decode, &t->layout.decode.plan, tokens,
                            fmin(sm_serve_software(t->decode)->budget_tokens, 8192), room, err);
}

static sm_status count_running(truth_serving *t, sm_error *err) {
    const sm_plan *plan = &t->layout.decode.plan;
    const double ranks = (double)plan->data * plan->expert,
                 longest = t->load.prompt + t->load.output;
    const double mean = t->load.prompt + 0.5 * t->load.output;
    sm_serve_room whole, half;
    sm_status s = fitting(t, longest, &whole, err);
    if (!s) s = fitting(t, mean, &half, err);
    if (s) return s;
    t->kv_tokens = whole.kv_tokens;
    const double most = t->software->reserves_whole_requests ? whole.most : half.most;
    t->most_running = fmin(most, sm_software_most(sm_serve_software(t->decode), ranks));
    t->most_possible = fmax(half.most, t->most_running);
    return SM_OK;
}

static sm_status borrow(truth_serving *t, sm_error *err) {
    sm_status s = start(t, &t->decode_system, &t->decode, err);
    if (!s && t->layout.apart) return start(t, &t->prefill_system, &t->prefill, err);
    t->prefill = t->decode;
    return s;
}

static void give_back(truth_serving *t) {
    if (t->prefill != t->decode) sm_serve_free(t->prefill);
    sm_serve_free(t->decode);
    t->prefill = t->decode = NULL;
}

sm_status truth_serving_new(const sm_truth_row *row, row_models *models, const sm_chip *chip,
                            truth_serving **out, const char **why, sm_error *err) {
    truth_serving *t = sm_malloc(sizeof *t);
    *out = t;
    if (!t) return sm_fail_memory(err);
    memset(t, 0, sizeof *t);
    t->row = row;
    t->models = models;
    if (!read_facts(t, chip, why)) return *why ? SM_OK : sm_fail_memory(err);
    sm_status s = borrow(t, err);
    if (!s) s = count_running(t, err);
    give_back(t);
    if (s != SM_BAD_INPUT) return s;
    snprintf(t->why, sizeof t->why, "%.150s", err ? err->sentence : "the job is not possible");
    *why = t->why;
    return SM_OK;
}

const sm_model *truth_serving_model(const truth_serving *t) { return t->model; }
const sm_plan *truth_serving_plan(const truth_serving *t) { return &t->layout.decode.plan; }

void truth_serving_free(truth_serving *t) {
    if (!t) return;
    row_models_drop(t->models, t->model);
    sm_free(t);
}

/* Of software that is not known nothing that differs is known. Recipes of pools apart set their
 * limits: where they were not read, an engine's defaults are not what ran. */
sm_status truth_serving_engine(truth_serving *t, const sm_software *engine, sm_error *err) {
    const char *differs = t->row->of.inference.engine;
    const sm_source source = sm_source_of("engine", differs ? differs : "");
    t->set = *engine;
    t->software = &t->set;
    t->set.budget_given = t->set.most_given = t->row->of.inference.disagg == SM_YES;
    if (source.length == 0 || strcmp(engine->name, "serving") == 0) return SM_OK;
    return sm_software_set(&t->set, &source, err);
}

/* ---- predicting ---- */

/* Tokens of a request that tokens_per_s counts. */
static double counted(const truth_serving *t) {
    const char *what = t->row->of.inference.tokens_counted;
    if (strcmp(what, "input") == 0) return t->load.prompt;
    return strcmp(what, "total") == 0 ? t->load.prompt + t->load.output : t->load.output;
}

static double seconds_of(const truth_serving *t, const sm_load_times *times, sm_served quantity) {
    const char *is = t->row->of.inference.ttft_is;
    double first = is && strcmp(is, "median") == 0 ? times->ttft_median_s : times->ttft_s;
    switch (quantity) {
    case SM_SERVED_TPOT: return times->tpot_s;
    case SM_SERVED_TOKEN: return times->request_s / counted(t);
    case SM_SERVED_LATENCY: return times->latency_s + first - times->ttft_s;
    default: return first;
    }
}

static void add_part(truth_serving *t, const sm_chip *chip, const sm_load_times *lower,
                     const sm_load_times *expected, sm_served quantity, sm_prediction *out) {
    double measured = sm_inference_measured(&t->row->of.inference, quantity);
    int i = out->parts;
    if (isnan(measured)) return;
    out->part[i].quantity = quantity;
    out->part[i].measured_s = measured;
    out->part[i].expected_s = seconds_of(t, expected, quantity);
    out->part[i].lower_s = seconds_of(t, lower, quantity);
    sm_calibration_interval(out->calibration, chip, sm_served_regime(quantity),
                            out->part[i].expected_s, &out->part[i].low_s, &out->part[i].high_s);
    out->parts++;
}

/* lower NULL: it is not asked. */
static bool solve(truth_serving *t, const sm_calibration *c, sm_load_times *lower,
                  sm_load_times *expected, sm_error *err) {
    bool ok = borrow(t, err) == SM_OK;
    if (ok) {
        const sm_engines engines = {.decode = t->decode,
                                    .prefill = t->prefill,
                                    .plan = t->layout.decode.plan,
                                    .prefill_plan = t->layout.prefill.plan,
                                    .n = t->layout.decode.engines,
                                    .prefill_n = t->layout.prefill.engines,
                                    .apart = t->layout.apart,
                                    .most_running = t->most_running,
                                    .most_possible = t->most_possible};
        sm_serve_set_calibration(t->decode, c);
        if (t->prefill != t->decode) sm_serve_set_calibration(t->prefill, c);
        ok = (!lower || sm_serve_load(&engines, &t->load.load, true, lower, err) == SM_OK) &&
             sm_serve_load(&engines, &t->load.load, false, expected, err) == SM_OK;
    }
    give_back(t);
    return ok;
}

void truth_serving_predict(truth_serving *t, const sm_chip *chip, const sm_calibration *c,
                           bool bounds, sm_prediction *out) {
    sm_load_times lower, expected;
    sm_error err = {0};
    if (!solve(t, c, bounds ? &lower : NULL, &expected, &err)) {
        snprintf(t->why, sizeof t->why, "%.150s", err.sentence);
        out->unknown = t->why;
        out->out_of_memory = err.status == SM_INTERNAL;
        return;
    }
    out->fits = t->most_running >= 1;
    out->kv_tokens = t->kv_tokens;
    sm_served first = sm_inference_primary(&t->row->of.inference);
    if (bounds && first < SM_SERVED_COUNT) add_part(t, chip, &lower, &expected, first, out);
    for (int q = 0; bounds && q < SM_SERVED_COUNT; q++)
        if (q != (int)first) add_part(t, chip, &lower, &expected, (sm_served)q, out);
    if (first == SM_SERVED_COUNT) first = SM_SERVED_TPOT;
    out->regime = sm_served_regime(first);
    out->lower_s = bounds ? seconds_of(t, &lower, first) : 0;
    out->expected_s = seconds_of(t, &expected, first);
    out->upper_s = out->expected_s;
}
