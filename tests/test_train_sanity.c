/* What practice knows of large training runs, asked of the search. */
#include "unit.h"
#include <math.h>
#include "random_jobs.h"
#include "sanitized.h"
#include "scalemodel/io.h"
#include "search_copy.h"
#include <stdio.h>
#include <string.h>

/* Big searches, ten times slower under sanitizers, and by clang the same as by gcc;
 * test_train_search takes that code there. */
#if REPEATED
#define BIG_SEARCH() skip()
#else
#define BIG_SEARCH() ((void)0)
#endif

static sm_model model;
static search_copy result, other;

static sm_arena *model_arena;

static void load(const char *name) {
    sm_error err = {0};
    sm_arena_free(model_arena); /* the last model's */
    model_arena = sm_arena_new();
    if (sm_io_model_load(name, model_arena, &model, &err) != SM_OK)
        fail_msg("%s: %s", name, err.sentence);
}

static sm_train *train_on(const sm_system *system, double batch, double seq) {
    sm_error err = {0};
    sm_train *train = NULL;
    sm_job job = {sizeof(sm_job), &model, system, batch, seq, 0, -1, NULL};
    if (sm_train_new(&job, &train, &err) != SM_OK) fail_msg("%s", err.sentence);
    return train;
}

static sm_plan parsed(const char *text) {
    sm_plan plan;
    sm_error err = {0};
    sm_source source = sm_source_of("--plan", text);
    if (sm_plan_parse(&source, &plan, &err) != SM_OK) fail_msg("%s: %s", text, err.sentence);
    return plan;
}

static void best(const sm_system *system, double batch, double seq, const char *fixed, int top,
                 int threads, search_copy *found) {
    sm_error err = {0};
    sm_search_options o;
    sm_train *train = train_on(system, batch, seq);
    sm_search_defaults(&o);
    o.fixed = parsed(fixed);
    o.top = top, o.threads = threads;
    if (search_copied(train, &o, found, &err) != SM_OK)
        fail_msg("%s on %s: %s", model.name, system->text, err.sentence);
    assert_true(found->optimal);
    sm_train_free(train);
}

static void show(const sm_system *system, const plan_copy *f) {
    char text[512];
    const sm_breakdown *b = &f->price.breakdown;
    sm_plan_format(&f->plan, system->torus_dims, text, sizeof text);
    print_error("%s on %s: %s\n  %.4g s (lower %.4g), bound %d at level %d, math %.3g memory %.3g "
                "network %.3g bubble %.3g, mfu %.3f\n",
                model.name, system->text, text, f->price.expected_s, f->price.lower_s,
                f->price.bound, f->price.bound_level, b->math, b->memory, b->network_exposed,
                b->bubble, f->price.mfu);
}

#define EXPECT(system, found, what)                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            show(system, found);                                                                   \
            fail_msg("expected %s", #what);                                                        \
        }                                                                                          \
    } while (0)

/* ---- the book, chapter "How to train LLaMA-3": 8960 v5p, 4M tokens ---- */

static void llama_70b_needs_fsdp_and_tensor_on_v5p(void **state) {
    sm_system pod = random_job_system("tpu-v5p:16x20x28");
    load("llama-3-70b");
    double batch = 4096.0 * 1024;
    /* 1024 sequences cannot feed 8960 chips one each, so both may split sequences too */
    best(&pod, batch, 4096, "data=1,expert=1,pipeline=1", 1, 1, &result);
    const plan_copy *mixed = &result.found[0];
    EXPECT(&pod, mixed, mixed->price.bound == SM_BOUND_COMPUTE);
    EXPECT(&pod, mixed, mixed->plan.tensor > 1 && mixed->plan.fsdp > 1);
    best(&pod, batch, 4096, "data=1,expert=1,tensor=1,pipeline=1", 1, 1, &other);
    const plan_copy *alone = &other.found[0];
    EXPECT(&pod, alone, alone->price.bound == SM_BOUND_NETWORK);
    EXPECT(&pod, mixed, mixed->price.lower_s < alone->price.lower_s);
}

/* ---- LLaMA-3 405B on 16,384 H100 (arXiv 2407.21783, table 4: tp 8, pp 16) ---- */

static sm_placement placed(const sm_system *system, const sm_plan *p) {
    const int degree[SM_PLAN_DEGREES] = {p->data,    p->fsdp,   p->tensor,
                                         p->context, p->expert, p->pipeline};
    int sizes[SM_PLAN_DEGREES], order[SM_PLAN_DEGREES];
    sm_placement placement;
    for (int i = 0; i < SM_PLAN_DEGREES; i++) sizes[i] = degree[i], order[i] = p->order[i];
    assert_true(sm_placement_fill(system, SM_PLAN_DEGREES, sizes, order, NULL, &placement));
    return placement;
}

static void llama_405b_keeps_tensor_inside_the_node(void **state) {
    BIG_SEARCH();
    sm_system cluster = random_job_system("h100-sxm:2048x8");
    load("llama-3.1-405b");
    best(&cluster, 16.0 * 1024 * 1024, 8192, "", 1, 1, &result);
    const plan_copy *f = &result.found[0];
    /* Rings of context take the links of a node as well: the best plans of tensor = 1 and 2 lie
     * within 1 %. */
    EXPECT(&cluster, f, f->plan.tensor <= 8);
    sm_placement at = placed(&cluster, &f->plan);
    const sm_group *tensor = &at.axis[SM_PLAN_TENSOR], *pipeline = &at.axis[SM_PLAN_PIPELINE];
    for (int i = 0; i < tensor->parts; i++) EXPECT(&cluster, f, tensor->part[i].level == 0);
    EXPECT(&cluster, f, f->plan.pipeline > 1);
    bool across = false;
    for (int i = 0; i < pipeline->parts; i++) across |= pipeline->part[i].level > 0;
    EXPECT(&cluster, f, across);
}

/* ---- DeepSeek-V3 on 2048 H800 (arXiv 2412.19437 section 3.2: ep 64, pp 16, no tensor) ---- */

static void deepseek_v3_prefers_experts_to_tensor(void **state) {
    BIG_SEARCH();
    sm_system cluster = random_job_system("h800:256x8");
    load("deepseek-v3");
    best(&cluster, 15360.0 * 4096, 4096, "", 1, 1, &result);
    EXPECT(&cluster, &result.found[0], result.found[0].plan.expert > result.found[0].plan.tensor);
}

/* ---- more is never worse ---- */

static void faster_links(sm_system *s, int level, double times) {
    for (int l = 0; l < s->levels; l++)
        if (level < 0 || l == level) s->level[l].bytes_per_s_oneway *= times;
}

typedef struct testbed {
    const char *model, *system;
    double batch, seq;
} testbed;
static const testbed beds[] = {
    {"llama-3.1-8b", "h100-sxm:8x8", 1 << 20, 8192},
    {"llama-2-13b", "tpu-v5e:16x16", 1 << 21, 4096},
    {"mixtral-8x7b", "a100-80:8x8", 1 << 20, 4096},
    {"llama-3.1-70b", "tpu-v5p:4x4x8", 1 << 20, 8192},
};
enum { BEDS = sizeof beds / sizeof beds[0] };

static void more_bandwidth_is_never_slower(void **state) {
    BIG_SEARCH();
    for (int b = 0; b < BEDS; b++) {
        sm_system base = random_job_system(beds[b].system);
        load(beds[b].model);
        best(&base, beds[b].batch, beds[b].seq, "", 1, 1, &result);
        double before = result.found[0].price.expected_s;
        for (int what = -2; what < base.levels; what++) {
            for (double times = 1.25; times < 5; times *= 2) {
                sm_system faster = base;
                if (what == -2) faster.chip.memory_bytes_per_s.value *= times;
                else faster_links(&faster, what, times);
                best(&faster, beds[b].batch, beds[b].seq, "", 1, 1, &other);
                double after = other.found[0].price.expected_s;
                if (after > before * (1 + 1e-9)) {
                    show(&base, &result.found[0]);
                    show(&faster, &other.found[0]);
                    fail_msg("bandwidth %d times %g", what, times);
                }
            }
        }
    }
}

static void more_chips_are_never_slower(void **state) {
    BIG_SEARCH();
    static const testbed sweep[] = {
        {"llama-3.1-8b", "h100-sxm", 1 << 21, 8192},
        {"llama-2-13b", "tpu-v5e", 1 << 21, 4096},
        {"llama-3.1-8b", "tpu-v5p", 1 << 21, 8192},
    };
    for (int i = 0; i < 3; i++) {
        double before = 0;
        load(sweep[i].model);
        int most = i == 1 ? 256 : 1024; /* a v5e pod has 256 chips */
        for (int chips = i == 1 ? 16 : 64; chips <= most; chips *= 2) {
            char text[64];
            snprintf(text, sizeof text, "%s:%d", sweep[i].system, chips);
            sm_system system = random_job_system(text);
            best(&system, sweep[i].batch, sweep[i].seq, "", 1, 1, &result);
            double step = result.found[0].price.expected_s;
            if (before > 0 && step > before * (1 + 1e-9)) {
                show(&system, &result.found[0]);
                fail_msg("%.6g s on half as many", before);
            }
            before = step;
        }
    }
}

/* ---- the same answer on any number of threads ---- */

static void threads_change_no_answer(void **state) {
    BIG_SEARCH();
    for (int b = 0; b < BEDS; b++) {
        sm_system system = random_job_system(beds[b].system);
        load(beds[b].model);
        best(&system, beds[b].batch, beds[b].seq, "", 5, 1, &result);
        for (int threads = 2; threads <= 4; threads += 2) {
            best(&system, beds[b].batch, beds[b].seq, "", 5, threads, &other);
            assert_int_equal(result.n, other.n);
            assert_true(result.evaluated == other.evaluated && result.pruned == other.pruned);
            for (int i = 0; i < result.n; i++) {
                assert_memory_equal(&result.found[i].plan, &other.found[i].plan, sizeof(sm_plan));
                assert_true(result.found[i].price.expected_s == other.found[i].price.expected_s);
            }
        }
    }
}

/* Whatever policy a framework has is searched, also when none is asked for: of a model that fits
 * with neither little nor much kept, no policy put into the best plan is better. */
static void each_policy_of_recomputation_is_searched(void **state) {
    sm_system system = random_job_system("h100-sxm:1x8");
    load("gemma-3-12b");
    best(&system, 8 * 8192, 8192, "fsdp=8,dtype=fp8", 1, 1, &result);
    sm_train *train = train_on(&system, 8 * 8192, 8192);
    int fit = 0;
    for (int set = 0; set < SM_RECOMPUTE_COUNT; set++) {
        plan_copy with = {.plan = result.found[0].plan};
        with.plan.recompute = (sm_recompute)set;
        with.plan.regather = SM_REGATHER_ALL;
        if (sm_train_price(train, &with.plan, &with.price, NULL) != SM_OK) continue;
        fit += with.price.fits;
        assert_true(!with.price.fits || with.price.expected_s >= result.found[0].price.expected_s);
    }
    assert_in_range(fit, 2, SM_RECOMPUTE_COUNT - 1);
    sm_train_free(train);
}

/* A picture has as many tokens as it has, whatever length is asked for: what bounds a plan is their
 * work, and so is what counts as the model's own. */
static void a_picture_is_bounded_by_its_own_tokens(void **state) {
    sm_system system = random_job_system("tpu-v7:2x2x4");
    load("dinov3-vit7b16");
    best(&system, 256 * 1000, 1000, "", 1, 1, &result);
    best(&system, 256 * 1000, 1000, "", 24, 1, &other);
    assert_memory_equal(&result.found[0].plan, &other.found[0].plan, sizeof(sm_plan));
    for (int i = 0; i < other.n; i++)
        EXPECT(&system, &other.found[i], other.found[i].price.mfu <= other.found[i].price.hfu);
}

/* An encoder may read more than a sequence is long, and its attention is priced for all of that: at
 * a third of it no floor under its time held, and the search left out the best microbatch. */
static void an_encoder_that_reads_more_has_its_best_microbatch(void **state) {
    static const char given[] = "data=4,zero=1,recompute=none,offload=none";
    sm_system system = random_job_system("tpu-v5e:2x2");
    double least_s = HUGE_VAL;
    load("whisper-tiny"); /* of 1500 positions */
    for (int n = 1; n <= 8; n *= 2) {
        char plan[128];
        snprintf(plan, sizeof plan, "%s,microbatch=%d", given, n);
        best(&system, 32 * 448, 448, plan, 1, 1, &other);
        least_s = fmin(least_s, other.found[0].price.expected_s);
    }
    best(&system, 32 * 448, 448, given, 1, 1, &result);
    assert_true(result.found[0].price.expected_s <= least_s * (1 + 1e-12));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_70b_needs_fsdp_and_tensor_on_v5p),
        cmocka_unit_test(llama_405b_keeps_tensor_inside_the_node),
        cmocka_unit_test(deepseek_v3_prefers_experts_to_tensor),
        cmocka_unit_test(more_bandwidth_is_never_slower),
        cmocka_unit_test(more_chips_are_never_slower),
        cmocka_unit_test(threads_change_no_answer),
        cmocka_unit_test(each_policy_of_recomputation_is_searched),
        cmocka_unit_test(an_encoder_that_reads_more_has_its_best_microbatch),
        cmocka_unit_test(a_picture_is_bounded_by_its_own_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
