/* Predictions of inference rows: what a row's facts become, properties of continuous batching in
 * closed form, and the measured rows of the project. */
#include "unit.h"
#include "sanitized.h"
#include "../src/serve/software_table.h"
#include "../src/truth/inference_parts.h"
#include "model_of.h"
#include "scalemodel/io.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- rows ---- */

static sm_inference_row llama_70b(void) {
    sm_inference_row r;
    memset(&r, 0, sizeof r);
    r.model.name = "Llama-70B";
    r.model.layers = 80;
    r.model.d_model = 8192;
    r.model.heads = 64;
    r.model.kv_heads = 8;
    r.model.d_head = 128;
    r.model.d_ff = 28672;
    r.model.vocab = 128256;
    r.model.gated_mlp = SM_YES;
    r.chips = r.tp = 8;
    r.pp = r.dp = 1;
    r.weight_dtype = r.kv_dtype = r.compute_dtype = "bf16";
    r.batch = r.concurrency = r.request_rate_per_s = r.decode.batch = NAN;
    r.tpot_s = r.ttft_s = r.latency_s = r.tokens_per_s = r.tokens_per_s_per_chip = NAN;
    r.input_len = 1024;
    r.output_len = 256;
    r.len_sampling = r.spec_decode = r.notes = r.date = r.scenario = r.reliability = "";
    r.phase = "e2e";
    r.tokens_counted = "output";
    r.framework = "vllm 0.18";
    return r;
}

/* Lengths that are all alike are simulated so. */
static void what_a_row_tells_is_taken(void **state) {
    sm_inference_row r = llama_70b();
    inference_load load = {.prompt = 0};
    const char *why;
    r.concurrency = 8;
    assert_true(inference_load_of(&r, &load, &why) && load.load.shortest == 0);
    r.len_sampling = "fixed";
    assert_true(inference_load_of(&r, &load, &why) && load.load.shortest == 1);
    assert_true(load.prompt == 1024 && load.output == 256);
}

static sm_inference_row deepseek(void) {
    sm_inference_row r = llama_70b();
    r.model.layers = 61;
    r.model.d_model = 7168;
    r.model.heads = 128;
    r.model.kv_heads = r.model.d_head = 0;
    r.model.d_ff = 18432;
    r.model.experts = 256;
    r.model.top_k = 8;
    r.model.d_ff_expert = 2048;
    r.model.shared_experts = 1;
    r.model.first_dense_layers = 3;
    r.model.q_lora = 1536;
    r.model.kv_lora = 512;
    r.model.rope_dim = 64;
    r.model.nope_dim = r.model.v_dim = 128;
    r.weight_dtype = "fp8_block";
    r.kv_dtype = r.compute_dtype = "";
    return r;
}

static sm_truth_row row_of(const sm_inference_row *r, const char *chip) {
    sm_truth_row row;
    memset(&row, 0, sizeof row);
    row.kind = SM_TRUTH_INFERENCE;
    row.id = "x";
    row.chip = chip;
    row.source = "test";
    row.software = "vllm-2025";
    row.of.inference = *r;
    row.measured_s = sm_inference_measured(r, sm_inference_primary(r));
    return row;
}

static sm_prediction predict_by(const sm_inference_row *r, const char *chip,
                                const sm_calibration *by) {
    sm_truth_row row = row_of(r, chip);
    sm_truth_case *c = NULL;
    sm_prediction p;
    sm_error err = {0};
    assert_int_equal(sm_truth_case_new(&row, &c, &err), SM_OK);
    sm_truth_predict(c, by, &p);
    sm_truth_case_free(c);
    return p;
}
static sm_prediction predict(const sm_inference_row *r, const char *chip) {
    return predict_by(r, chip, NULL);
}

static double part(const sm_prediction *p, sm_served quantity) {
    for (int i = 0; i < p->parts; i++)
        if (p->part[i].quantity == quantity) return p->part[i].expected_s;
    return NAN;
}

/* ---- facts ---- */

static void models_of_rows(void **state) {
    sm_inference_row r = deepseek();
    row_models *models = row_models_new();
    const sm_model *m;
    const char *why;
    assert_true(inference_model(&r, NULL, models, &m, &why));
    assert_int_equal(m->kinds, 2);
    assert_int_equal(m->kind[m->layer[2]].F, 18432);
    assert_int_equal(m->kind[m->layer[3]].E, 256);
    assert_int_equal(m->kind[m->layer[3]].attention, SM_ATTENTION_MLA);
    assert_true(fabs(sm_model_params(m).total / 671e9 - 1) < 0.01);
    r.model.moe_layer_step = 2; /* every second */
    r.model.first_dense_layers = 0;
    assert_true(inference_model(&r, NULL, models, &m, &why));
    assert_int_equal(m->kind[m->layer[0]].E, 0);
    assert_int_equal(m->kind[m->layer[1]].E, 256);
    r = llama_70b();
    r.model.sliding_layers = r.model.full_layers = 40;
    r.model.sliding_window = 128;
    assert_true(inference_model(&r, NULL, models, &m, &why));
    assert_int_equal(m->kind[m->layer[0]].window + m->kind[m->layer[1]].window, 128);
    r.model.layers = 0;
    assert_false(inference_model(&r, NULL, models, &m, &why));
    assert_string_equal(why, "layers not stated");
    row_models_free(models);
}

static void rows_share_models(void **state) {
    (void)state;
    sm_inference_row r = deepseek(), other = llama_70b();
    row_models *models = row_models_new();
    const sm_model *m[4];
    const char *why;
    assert_true(inference_model(&r, NULL, models, &m[0], &why));
    assert_true(inference_model(&other, NULL, models, &m[1], &why));
    r.concurrency = 3;
    assert_true(inference_model(&r, NULL, models, &m[2], &why));
    assert_ptr_equal(m[2], m[0]);
    assert_ptr_not_equal(m[1], m[0]);
    row_models_drop(models, m[0]);
    for (int width = 1; width <= 64; width++) { /* what is in use stays, whatever comes and goes */
        other.model.d_ff = 128 * width;
        assert_true(inference_model(&other, NULL, models, &m[3], &why));
        assert_int_equal(m[3]->kind[0].F, 128 * width);
        row_models_drop(models, m[3]);
    }
    assert_int_equal(m[2]->kind[m[2]->layer[3]].E, 256);
    row_models_drop(models, NULL);
    row_models_free(models);
    row_models_free(NULL);
}

static void dtypes_of_rows(void **state) {
    const sm_chip *b200 = sm_truth_chip("b200_sxm"), *h100 = sm_truth_chip("h100_sxm");
    sm_inference_row r = deepseek();
    sm_serve_dtypes d;
    const char *why;
    const sm_software *vllm = sm_software_of("vllm-2025");
    const sm_software *trtllm = sm_software_of("trtllm-2025");
    assert_true(inference_dtypes(&r, h100, vllm, &d, &why));
    assert_true(d.weights == SM_FP8 && d.compute == SM_FP8 && d.kv == SM_BF16);
    assert_true(inference_dtypes(&r, h100, trtllm, &d, &why));
    assert_int_equal(d.kv, SM_FP8);
    r.weight_dtype = "nvfp4";
    assert_true(inference_dtypes(&r, b200, trtllm, &d, &why));
    assert_true(d.weights == SM_FP4 && d.compute == SM_FP4);
    assert_true(inference_dtypes(&r, h100, trtllm, &d, &why));
    assert_int_equal(d.compute, SM_BF16); /* no 4-bit matrix unit */
    r.weight_dtype = "fp7";
    assert_false(inference_dtypes(&r, h100, trtllm, &d, &why));
    assert_string_equal(why, "weight_dtype is not a known number format");
}

static bool layout(const sm_inference_row *r, const char *chip, inference_layout *l,
                   const char **why) {
    sm_truth_row row = row_of(r, chip);
    const sm_serve_dtypes d = {SM_BF16, SM_BF16, SM_BF16};
    row_models *models = row_models_new();
    const sm_model *m;
    bool ok =
        inference_model(r, NULL, models, &m, why) &&
        inference_layout_of(&row, sm_truth_chip(chip), sm_software_of("vllm-2025"), m, &d, l, why);
    row_models_free(models);
    return ok;
}

static void layouts_of_rows(void **state) {
    sm_inference_row r = llama_70b();
    inference_layout l;
    const char *why;
    r.chips = 16;
    assert_true(layout(&r, "h100_sxm", &l, &why));
    assert_int_equal(l.decode.plan.tensor, 8);
    assert_int_equal(l.decode.engines, 2);
    r.tp = 32; /* cores, two a chip */
    assert_true(layout(&r, "trainium1", &l, &why));
    assert_int_equal(l.decode.plan.tensor, 16);
    assert_false(layout(&r, "h100_sxm", &l, &why));
    assert_string_equal(why, "the degrees are beyond the chips");
    r = deepseek();
    r.tp = 1;
    r.ep = r.dp = 8;
    assert_true(layout(&r, "h100_sxm", &l, &why)); /* attention data-parallel */
    assert_int_equal(l.decode.plan.expert, 8);
    assert_int_equal(l.decode.plan.tensor, 1);
    r.disagg = SM_YES;
    r.prefill = (sm_inference_pool){.workers = 3, .tp = 4, .dp_attention = SM_NO};
    r.decode = (sm_inference_pool){.workers = 2, .tp = 8, .ep = 8, .dp_attention = SM_YES};
    assert_true(layout(&r, "h100_sxm", &l, &why));
    assert_true(l.apart);
    assert_int_equal(l.prefill.engines, 3);
    assert_int_equal(l.prefill.plan.tensor, 4);
    assert_int_equal(l.decode.plan.expert, 8);
}

static void software_is_what_a_row_states(void **state) {
    sm_inference_row r = llama_70b();
    sm_truth_row row = row_of(&r, "h100_sxm");
    row.software = NULL;
    assert_string_equal(sm_truth_software(&row), "serving");
    row.software = "trtllm-1";
    assert_string_equal(sm_truth_software(&row), "trtllm-1");
    assert_true(sm_software_of("trtllm-1")->expert_imbalance > 1);
    assert_string_equal(sm_software_of("of tomorrow")->name, "serving");
}

/* Constants are borrowed from an engine that has a file, and the chain of them ends. */
static void engines_end(void **state) {
    for (size_t i = 0; i < sm_software_table_count; i++) {
        const sm_software *e = &sm_software_table[i];
        size_t steps = 0;
        for (; e->like && steps < sm_software_table_count; steps++) {
            assert_string_equal(sm_software_of(e->like)->name, e->like);
            e = sm_software_of(e->like);
        }
        assert_null(e->like);
    }
}

/* ---- properties ---- */

static void static_batch_adds_up(void **state) {
    sm_inference_row r = llama_70b();
    r.batch = 16;
    r.ttft_s = r.tpot_s = r.latency_s = r.tokens_per_s = 1;
    sm_prediction p = predict(&r, "h100_sxm");
    assert_null(p.unknown);
    assert_int_equal(p.parts, 4);
    double latency = part(&p, SM_SERVED_TTFT) + 255 * part(&p, SM_SERVED_TPOT);
    assert_true(fabs(part(&p, SM_SERVED_LATENCY) / latency - 1) < 1e-9);
    assert_true(fabs(part(&p, SM_SERVED_TOKEN) * 16 * 256 / latency - 1) < 1e-9);
}

static void bounds_are_bounds(void **state) {
    for (int n = 1; n <= 512; n *= 4) {
        sm_inference_row r = llama_70b();
        r.concurrency = n;
        r.ttft_s = r.tpot_s = r.latency_s = r.tokens_per_s = 1;
        sm_prediction p = predict(&r, "h100_sxm");
        for (int i = 0; i < p.parts; i++) {
            assert_true(p.part[i].lower_s > 0);
            assert_true(p.part[i].lower_s <= p.part[i].expected_s);
            assert_true(p.part[i].low_s < p.part[i].expected_s);
        }
    }
}

/* More in flight: a token takes longer and the system gives more of them. */
static void concurrency_trades_latency_for_throughput(void **state) {
    double tpot = 0, token = INFINITY;
    for (int n = 1; n <= 64; n *= 2) {
        sm_inference_row r = llama_70b();
        r.concurrency = n;
        r.tpot_s = r.tokens_per_s = 1;
        sm_prediction p = predict(&r, "h100_sxm");
        assert_true(part(&p, SM_SERVED_TPOT) > tpot);
        assert_true(part(&p, SM_SERVED_TOKEN) < token);
        tpot = part(&p, SM_SERVED_TPOT);
        token = part(&p, SM_SERVED_TOKEN);
    }
}

/* Throughput x time in the system = those in flight, but for the end of a benchmark, when clients
 * that are done wait for the others. */
static void littles_law_holds(void **state) {
    sm_inference_row r = llama_70b();
    r.concurrency = 32;
    r.ttft_is = "median";
    r.latency_s = r.tokens_per_s = r.tpot_s = 1;
    sm_prediction p = predict(&r, "h100_sxm");
    double per_s = 1 / (part(&p, SM_SERVED_TOKEN) * 256);
    double inside = part(&p, SM_SERVED_LATENCY) + part(&p, SM_SERVED_TPOT);
    assert_true(per_s * inside < 32 * 1.005 && per_s * inside > 32 * 0.9);
}

/* Of a prompt that the cache holds the rest alone is computed; those that all begin at once wait.
 */
static void rows_state_what_is_cached_and_what_begins_at_once(void **state) {
    sm_inference_row r = llama_70b();
    r.concurrency = 32;
    r.ttft_s = r.tpot_s = 1;
    sm_prediction whole = predict(&r, "h100_sxm");
    r.cached_len = 0.9 * r.input_len;
    sm_prediction cached = predict(&r, "h100_sxm");
    r.cached_len = 2 * r.input_len; /* no more than all but one */
    sm_prediction all = predict(&r, "h100_sxm");
    assert_true(part(&cached, SM_SERVED_TPOT) < part(&whole, SM_SERVED_TPOT));
    assert_true(part(&cached, SM_SERVED_TTFT) < part(&whole, SM_SERVED_TTFT));
    assert_true(part(&all, SM_SERVED_TPOT) <= part(&cached, SM_SERVED_TPOT));
    r.cached_len = NAN;
    r.requests = 10 * 32; /* as a benchmark that tells nothing */
    sm_prediction ten = predict(&r, "h100_sxm");
    assert_true(fabs(part(&ten, SM_SERVED_TTFT) / part(&whole, SM_SERVED_TTFT) - 1) < 1e-12);
    r.ttft_is = "burst";
    sm_prediction burst = predict(&r, "h100_sxm");
    assert_true(part(&burst, SM_SERVED_TTFT) > 1.5 * part(&whole, SM_SERVED_TTFT));
    assert_true(part(&burst, SM_SERVED_TPOT) < part(&whole, SM_SERVED_TPOT));
}

/* Weights of experts that a kernel widens to 16 bits: prompts wait for its products, a token waits
 * for the weights; where products are of 8 bits too nothing is widened. */
static void widened_experts_are_slower(void **state) {
    sm_inference_row r = deepseek();
    r.batch = 1;
    r.input_len = 8192;
    r.ttft_s = r.tpot_s = 1;
    for (int widened = 0; widened < 2; widened++) {
        r.compute_dtype = widened ? "bf16" : "fp8";
        r.engine = "";
        sm_prediction plain = predict(&r, "h200_sxm");
        r.engine = "widening_rate=0.5";
        sm_prediction slow = predict(&r, "h200_sxm");
        double first = part(&slow, SM_SERVED_TTFT) / part(&plain, SM_SERVED_TTFT);
        double token = part(&slow, SM_SERVED_TPOT) / part(&plain, SM_SERVED_TPOT);
        assert_true(widened ? first > 1.05 && first < 2 : fabs(first - 1) < 1e-12);
        assert_true(fabs(token - 1) < 0.1);
    }
}

/* Kernels of scans of prompts: those of Triton reach a share of what bytes and products allow, and
 * a token waits for no scan. */
static void scans_of_prompts_are_slower(void **state) {
    sm_inference_row r = llama_70b();
    memset(&r.model, 0, sizeof r.model);
    r.model.name = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16";
    r.chips = r.tp = 1;
    r.batch = 1;
    r.input_len = 8192;
    r.ttft_s = r.tpot_s = 1;
    r.engine = "scan_rate=0.9";
    sm_prediction quick = predict(&r, "h200_sxm");
    r.engine = "scan_rate=0.45";
    sm_prediction slow = predict(&r, "h200_sxm");
    double more = part(&slow, SM_SERVED_TTFT) - part(&quick, SM_SERVED_TTFT);
    assert_true(more > 1e-3 && more < part(&quick, SM_SERVED_TTFT));
    assert_true(fabs(part(&slow, SM_SERVED_TPOT) / part(&quick, SM_SERVED_TPOT) - 1) < 1e-12);
}

/* A constant of each token of a prompt in each of 58 layers of experts, as in training: half of it
 * going there and half coming back. */
static void routing_takes_its_time(void **state) {
    sm_inference_row r = deepseek();
    r.batch = 1;
    r.input_len = 4096;
    r.ttft_s = 1;
    r.tpot_s = NAN;
    sm_calibration by = *sm_calibration_for(sm_chip_find("h200", 4), "serving");
    by.routing_s = 0;
    sm_prediction plain = predict_by(&r, "h200_sxm", &by);
    by.routing_s = 1e-6;
    sm_prediction routed = predict_by(&r, "h200_sxm", &by);
    double more = part(&routed, SM_SERVED_TTFT) - part(&plain, SM_SERVED_TTFT);
    assert_true(fabs(more / (58 * 4096 * 1e-6) - 1) < 1e-6);
}

static void pools_of_their_own_decode_undisturbed(void **state) {
    sm_inference_row r = deepseek();
    r.tpot_s = 1;
    r.concurrency = 64;
    double together = part(&(sm_prediction[]){predict(&r, "h200_sxm")}[0], SM_SERVED_TPOT);
    r.disagg = SM_YES;
    r.chips = 16;
    r.prefill = (sm_inference_pool){.workers = 1, .tp = 8, .dp_attention = SM_NO};
    r.decode = r.prefill;
    r.decode.batch = NAN;
    double apart = part(&(sm_prediction[]){predict(&r, "h200_sxm")}[0], SM_SERVED_TPOT);
    assert_true(apart < together);
}

static void speculation_shortens_tokens(void **state) {
    sm_inference_row r = deepseek();
    r.tpot_s = 1;
    r.concurrency = 4;
    double alone = part(&(sm_prediction[]){predict(&r, "h200_sxm")}[0], SM_SERVED_TPOT);
    r.spec_decode = "mtp";
    double drafted = part(&(sm_prediction[]){predict(&r, "h200_sxm")}[0], SM_SERVED_TPOT);
    assert_true(drafted < 0.8 * alone);
}

static void says_what_is_missing(void **state) {
    sm_inference_row r = llama_70b();
    r.tpot_s = 1;
    sm_prediction p = predict(&r, "h100_sxm");
    assert_string_equal(p.unknown, "neither batch, concurrency nor rate is stated, and a time per "
                                   "token depends on them");
    r.batch = 1;
    r.input_len = NAN;
    p = predict(&r, "h100_sxm");
    assert_string_equal(p.unknown, "input_len not stated");
    p = predict(&r, "abacus");
    assert_string_equal(p.unknown, "the chip is not in the catalogue");
}

/* Absurd facts are answered too. */
static void survives_absurd_rows(void **state) {
    static const double sizes[] = {1e-9, 1, 3.7, 1e9, 1e300};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int how = 0; how < 4; how++) {
            sm_inference_row r = how % 2 ? deepseek() : llama_70b();
            r.tpot_s = r.tokens_per_s = 1;
            r.batch = how == 0 ? sizes[i] : NAN;
            r.concurrency = how == 1 ? sizes[i] : NAN;
            r.request_rate_per_s = how == 2 ? sizes[i] : NAN;
            r.output_len = how == 3 ? sizes[i] : 256;
            sm_prediction p = predict(&r, "h100_sxm");
            for (int k = 0; !p.unknown && k < p.parts; k++)
                /* how many run is settled to one in a thousand */
                assert_true(p.part[k].expected_s >= p.part[k].lower_s * 0.999);
        }
}

/* ---- the rows of the project ---- */

/* Without bounds a row has one case with another of other figures, which expects what it expects.
 */
static void expect_alike(sm_truth_cases *fitted, const sm_truth_row *row, double expected_s) {
    sm_truth_row other = *row;
    sm_truth_case *c[2] = {NULL, NULL};
    sm_prediction p;
    sm_error err = {0};
    double *figure[SM_SERVED_FIGURES];
    sm_inference_figures(&other.of.inference, figure);
    for (int i = 0; i < SM_SERVED_FIGURES; i++) *figure[i] *= 1.3;
    assert_int_equal(sm_truth_cases_get(fitted, row, &c[0], &err), SM_OK);
    assert_int_equal(sm_truth_cases_get(fitted, &other, &c[1], &err), SM_OK);
    assert_ptr_equal(c[0], c[1]);
    sm_truth_predict(c[0], NULL, &p);
    assert_memory_equal(&p.expected_s, &expected_s, sizeof expected_s);
    assert_true(p.parts == 0 && p.lower_s == 0);
}

/* Models and programs that earlier rows leave change nothing. */
static void rows_that_share_are_predicted_alike(void **state) {
    (void)state;
    static const char *const files[] = {"data/truth/inference.csv", "data/truth/training.csv"};
    sm_arena *arena = sm_arena_new();
    sm_truth_cases *cases = sm_truth_cases_new(true), *fitted = sm_truth_cases_new(false);
    size_t compared = 0;
    for (int f = 0; f < 2; f++) {
        sm_truth truth;
        sm_error err = {0};
        assert_int_equal(sm_truth_read(files[f], arena, &truth, &err), SM_OK);
        for (size_t i = 0; i < truth.n; i += SANITIZED ? 21 : 7) {
            sm_truth_case *c[2] = {NULL, NULL};
            sm_prediction p[2];
            assert_int_equal(sm_truth_cases_get(cases, &truth.row[i], &c[0], &err), SM_OK);
            sm_truth_predict(c[0], NULL, &p[0]);
            sm_truth_case_rest(c[0]);
            if (i % 15) continue;
            assert_int_equal(sm_truth_case_new(&truth.row[i], &c[1], &err), SM_OK);
            sm_truth_predict(c[1], NULL, &p[1]);
            assert_int_equal(p[0].unknown == NULL, p[1].unknown == NULL);
            if (!p[0].unknown) {
                assert_memory_equal(&p[0].lower_s, &p[1].lower_s, sizeof(double));
                assert_memory_equal(&p[0].expected_s, &p[1].expected_s, sizeof(double));
                assert_memory_equal(&p[0].high_s, &p[1].high_s, sizeof(double));
                assert_memory_equal(&p[0].memory.total, &p[1].memory.total, sizeof(double));
                if (f == 0) expect_alike(fitted, &truth.row[i], p[1].expected_s);
                compared++;
            }
            sm_truth_case_free(c[1]);
        }
    }
    assert_true(compared > 30);
    sm_truth_cases_free(cases);
    sm_truth_cases_free(fitted);
    sm_arena_free(arena);
}

static void measured_rows_are_met(void **state) {
    if (SANITIZED) skip(); /* numbers of what the rows above run there */
    sm_arena *arena = sm_arena_new();
    sm_truth truth;
    sm_error err = {0};
    static double errors[4000];
    size_t n = 0, below = 0, unknown = 0;
    assert_int_equal(sm_truth_read("data/truth/inference.csv", arena, &truth, &err), SM_OK);
    sm_truth_cases *cases = sm_truth_cases_new(true);
    for (size_t i = 0; i < truth.n; i += 3) {
        sm_truth_case *c = NULL;
        sm_prediction p;
        assert_int_equal(sm_truth_cases_get(cases, &truth.row[i], &c, &err), SM_OK);
        sm_truth_predict(c, NULL, &p);
        unknown += p.unknown != NULL;
        below += !p.unknown && truth.row[i].measured_s < p.lower_s * (1 - 1e-9);
        if (!p.unknown) errors[n++] = fabs(p.expected_s / truth.row[i].measured_s - 1);
        sm_truth_case_rest(c);
    }
    sm_truth_cases_free(cases);
    assert_true((double)unknown < 0.06 * (double)truth.n / 3);
    assert_int_equal(below, 0);
    assert_true(sm_quantile(errors, n, 0.5) < 0.09);
    assert_true(sm_quantile(errors, n, 0.9) < 0.35);
    sm_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_row_tells_is_taken),
        cmocka_unit_test(models_of_rows),
        cmocka_unit_test(rows_share_models),
        cmocka_unit_test(dtypes_of_rows),
        cmocka_unit_test(layouts_of_rows),
        cmocka_unit_test(software_is_what_a_row_states),
        cmocka_unit_test(engines_end),
        cmocka_unit_test(static_batch_adds_up),
        cmocka_unit_test(bounds_are_bounds),
        cmocka_unit_test(concurrency_trades_latency_for_throughput),
        cmocka_unit_test(littles_law_holds),
        cmocka_unit_test(rows_state_what_is_cached_and_what_begins_at_once),
        cmocka_unit_test(widened_experts_are_slower),
        cmocka_unit_test(scans_of_prompts_are_slower),
        cmocka_unit_test(routing_takes_its_time),
        cmocka_unit_test(pools_of_their_own_decode_undisturbed),
        cmocka_unit_test(speculation_shortens_tokens),
        cmocka_unit_test(says_what_is_missing),
        cmocka_unit_test(survives_absurd_rows),
        cmocka_unit_test(rows_that_share_are_predicted_alike),
        cmocka_unit_test(measured_rows_are_met),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
