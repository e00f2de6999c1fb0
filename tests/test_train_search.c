/* The exact search against brute force: the same best plans, the same counts on any number of
 * threads, fixed keys honoured, bounds that never exceed what they bound. */
#include "unit.h"
#include "random_jobs.h"
#include "sanitized.h"
#include "../src/train/search_space.h"
#include "search_copy.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sanitizers make a search ten times slower, and clang compiles what gcc does: there a sixth of the
 * random jobs. */
#if REPEATED
#define TIMES(n) ((n) / 6)
#else
#define TIMES(n) (n)
#endif

static random_job r;

static sm_train *train_of(const sm_job *job) {
    sm_error err = {0};
    sm_train *train = NULL;
    if (sm_train_new(job, &train, &err) != SM_OK) fail_msg("%s", err.sentence);
    return train;
}

static void fix(sm_search_options *o, const char *text) {
    sm_error err = {0};
    sm_source source = sm_source_of("--plan", text);
    if (sm_plan_parse(&source, &o->fixed, &err) != SM_OK) fail_msg("%s: %s", text, err.sentence);
}

/* Brute force prices every plan, so some keys are fixed to keep it quick; which ones rotates. */
static sm_search_options options_of(sm_rng *rng) {
    static const char *const some[] = {
        "offload=none,recompute=none",
        "offload=none,recompute=full",
        "offload=optimizer,zero=1,regather=all",
        "offload=none,schedule=1f1b,regather=weights",
        "offload=both,seq=on",
        "recompute=selective,zero=2,regather=all",
        "offload=none,zero=0,regather=activations",
        "recompute=save-matmuls,regather=all",
        "offload=none,microbatch=1",
    };
    sm_search_options o;
    sm_search_defaults(&o);
    fix(&o, some[sm_rng_below(rng, sizeof some / sizeof some[0])]);
    o.objective = (sm_objective)sm_rng_below(rng, 3);
    o.top = 1 + (int)sm_rng_below(rng, 6);
    o.threads = 1;
    return o;
}

static sm_status search(sm_train *train, const sm_search_options *o, search_copy *result) {
    sm_error err = {0};
    sm_status s = search_copied(train, o, result, &err);
    if (s > SM_NEGATIVE) fail_msg("%s", err.sentence);
    if (s == SM_NEGATIVE) assert_true(result->n == 0 && err.sentence[0]);
    assert_true(result->evaluated + result->pruned == result->space);
    assert_true(result->optimal);
    return s;
}

static double value_of(const sm_search_options *o, const plan_copy *f) {
    if (o->objective == SM_OBJECTIVE_COST) return f->price.expected_s * f->price.chips;
    if (o->objective == SM_OBJECTIVE_MEMORY) return f->price.memory.total;
    return f->price.expected_s;
}

static void explain(const sm_search_options *o, const search_copy *a, const search_copy *b) {
    char text[512];
    print_error("%s seq %.0f batch %.0f objective %d top %d\n", r.system.text, r.job.seq,
                r.job.batch_tokens, o->objective, o->top);
    for (int i = 0; i < o->top; i++)
        for (int k = 0; k < 2; k++) {
            const search_copy *s = k ? b : a;
            if (i >= s->n) continue;
            sm_plan_format(&s->found[i].plan, r.system.torus_dims, text, sizeof text);
            print_error("  %s %.12g %s\n", k ? "brute" : "exact", value_of(o, &s->found[i]), text);
        }
}

static void same_values(const sm_search_options *o, const search_copy *a, const search_copy *b) {
    bool same = a->n == b->n;
    for (int i = 0; same && i < a->n; i++) {
        double x = value_of(o, &a->found[i]), y = value_of(o, &b->found[i]);
        same = fabs(x - y) <= 1e-12 * y;
    }
    if (same) return;
    explain(o, a, b);
    fail_msg("the search and brute force differ");
}

/* ---- exactness ---- */

static search_copy exact, brute;

/* The search just done into exact, with status s, once more without bounds. False, and nothing
 * done, where the plans are many: a tenth of the jobs have two thirds of them. */
static bool equals_brute_force(sm_train *train, const sm_search_options *o, sm_status s) {
    sm_search_options all = *o;
    if (exact.space > 5e4) return false;
    all.prune = false;
    assert_int_equal(search(train, &all, &brute), s);
    same_values(o, &exact, &brute);
    assert_true(exact.space == brute.space);
    assert_true(exact.evaluated <= brute.evaluated);
    return true;
}

/* Adapters, their targets and what the rest is stored in. */
static void adapt(sm_search_options *o, int i) {
    o->fixed.lora = 8 << i % 3;
    o->fixed.targets = i % 2 ? SM_LORA_MLP : SM_LORA_ATTENTION;
    o->fixed.parameters = i % 2 ? SM_STORED_NF4 : SM_STORED_BF16;
}

static void the_search_equals_brute_force(void **state) {
    sm_rng rng = {drawn_from(21)};
    double spared = 0, space = 0;
    int found = 0;
    for (int i = 0; i < TIMES(120); i++) {
        random_job_fill(&r, &rng);
        sm_search_options o = options_of(&rng);
        if (i % 4 == 1) adapt(&o, i / 4);
        sm_train *train = train_of(&r.job);
        sm_status s = search(train, &o, &exact);
        if (equals_brute_force(train, &o, s)) {
            spared += brute.evaluated - exact.evaluated;
            space += brute.evaluated;
            found += s == SM_OK;
        }
        sm_train_free(train);
    }
    assert_true(found > TIMES(40) && found < TIMES(120)); /* both answers occur */
    assert_true(spared > 0.5 * space);                    /* and bounds spare work */
}

/* Degrees that do not divide the experts: on the model that is padded for one the bounds hold as on
 * any other, and what is found is found again, with its price, where it is given whole. */
static void padded_experts_are_searched_exactly(void **state) {
    sm_rng rng = {drawn_from(7001021038)}; /* also four experts on six chips, which have none */
    int found = 0;
    for (int i = 0; i < TIMES(32); i++) {
        random_job_fill(&r, &rng);
        r.system = random_job_system(i % 2 ? "h100-sxm:1x6" : "tpu-v5e:2x3");
        sm_search_options o = options_of(&rng);
        sm_padding padding;
        fix(&o, i % 4 < 2 ? "expert=3" : "expert=6");
        if (!sm_plan_padding(&o.fixed, &r.model, &padding)) continue;
        for (int whole = 0; whole < 2; whole++) {
            double before = whole ? exact.found[0].price.expected_s : 0;
            r.job.padded_for = &o.fixed;
            sm_train *train = train_of(&r.job);
            sm_status s = search(train, &o, &exact);
            bool done = equals_brute_force(train, &o, s) && s == SM_OK;
            sm_train_free(train);
            if (whole) assert_true(done && exact.found[0].price.expected_s == before && ++found);
            if (!done) break;
            o.fixed = exact.found[0].plan;
            o.fixed.given = ~0ull;
        }
    }
    assert_true(found > TIMES(32) / 16);
}

/* Where a chip has little more room than the least that any plan needs, the plans that fit are
 * those that share out, compute again or gather again as much as that takes: bounds of memory rule
 * out none of them. */
static void plans_that_barely_fit_are_found(void **state) {
    static const char *const some[] = {
        "offload=none,schedule=dualpipe,fsdp=1,tensor=1,context=1,expert=1",
        "offload=none,zero=0,regather=all", "offload=activations",
        "schedule=interleaved,microbatch=1,offload=optimizer"};
    sm_rng rng = {drawn_from(32)};
    int found = 0;
    for (int i = 0; i < TIMES(24); i++) {
        sm_search_options o;
        random_job_fill(&r, &rng);
        sm_search_defaults(&o);
        fix(&o, some[i % 4]);
        o.objective = SM_OBJECTIVE_MEMORY, o.top = 1, o.threads = 1;
        sm_train *train = train_of(&r.job);
        double room = 1.001 + 0.3 * sm_rng_unit(&rng);
        if (search(train, &o, &exact) == SM_OK && exact.space < 1e4) {
            const sm_memory *least = &exact.found[0].price.memory;
            sm_train_set_memory_margin(train, 1 - room * least->total / least->capacity);
            o.objective = SM_OBJECTIVE_TIME, o.top = 3;
            assert_int_equal(search(train, &o, &exact), SM_OK);
            found += equals_brute_force(train, &o, SM_OK);
        }
        sm_train_free(train);
    }
    assert_true(REPEATED || found > 3); /* of few drawn here none may be small enough */
}

/* The bounds hold whatever the constants are: outer networks that beat the inner one, collectives
 * that start slowly, overlap or none. */
static void random_constants(sm_calibration *c, sm_rng *rng) {
    double u[6];
    for (int i = 0; i < 6; i++) u[i] = sm_rng_unit(rng);
    c->network_efficiency_inner = 0.02 * pow(50, u[0]);
    c->network_efficiency_outer = 0.02 * pow(50, u[1]);
    c->collective_s = 1e-7 * pow(1e4, u[2]);
    c->overlap = u[3];
    c->matmul_efficiency = 0.1 + 0.9 * u[4];
    c->step_overhead_s = 1e-3 * u[5];
}

/* Whatever software holds and adds, too: local work of two degrees is not one for its sums. */
static void the_search_is_exact_under_any_constants(void **state) {
    static const char *const systems[] = {"h800:2x4", "h800:2x8", "h800:4x4", "h100-sxm:4x2",
                                          "b200:2x8", "l4:4x2",   "h800:8x2", "mi300x:4x4"};
    static const char *const software[] = {"", "torchtitan", "megatron-deepspeed", "torchtitan",
                                           "aleph-alpha"};
    sm_rng rng = {drawn_from(30)};
    int found = 0;
    for (int i = 0; i < TIMES(192); i++) {
        if (i == 96)
            rng = (sm_rng){77005231045}; /* two nodes' passes had one key: 2 of 8, and 8 of 2 */
        random_job_fill(&r, &rng);
        r.system = random_job_system(systems[i % 8]);
        sm_search_options o = options_of(&rng);
        o.objective = i % 4 ? SM_OBJECTIVE_TIME : SM_OBJECTIVE_COST;
        sm_train *train = train_of(&r.job);
        sm_calibration constants = *sm_train_calibration(train);
        if (i % 96 >= 16) random_constants(&constants, &rng); /* the first as they are shipped */
        sm_train_set_calibration(train, &constants);
        sm_train_set_software_memory(
            train, sm_software_memory_of(software[i % 96 % 5], &r.system.chip, 0));
        sm_status s = search(train, &o, &exact);
        if (equals_brute_force(train, &o, s)) found += s == SM_OK;
        sm_train_free(train);
    }
    assert_true(found > TIMES(14));
}

/* Nodes share local work whose degrees over sequences differ: on axes that are no powers of two a
 * chip's part of them is whole all the same, and pads no tile. sm_train_search asserts that each
 * plan's price, made by itself, is what it was ranked by. */
static void parts_of_odd_axes_are_whole(void **state) {
    static const char *const systems[] = {"tpu-v5p:4x10x10", "tpu-v5p:3x5x7", "tpu-v5e:10x12",
                                          "h100-sxm:15x8"};
    sm_rng rng = {drawn_from(31)};
    int found = 0;
    for (int i = 0; i < TIMES(24); i++) {
        random_job_fill(&r, &rng);
        r.system = random_job_system(systems[i % 4]);
        r.job.batch_tokens = r.job.seq * r.system.chips * (1 + (int)sm_rng_below(&rng, 6));
        sm_search_options o = options_of(&rng);
        sm_train *train = train_of(&r.job);
        found += search(train, &o, &exact) == SM_OK;
        sm_train_free(train);
    }
    assert_true(found > TIMES(15));
}

/* No random plan, drawn without the search's own enumeration, beats what the search calls best:
 * with adapters, and under what software holds and adds, too. Returns how many fit. */
static int draw_plans(sm_train *train, const sm_search_options *o, int plans, sm_rng *rng) {
    int fitting = 0;
    sm_status s = search(train, o, &exact);
    for (int k = 0; k < plans; k++) {
        sm_plan plan;
        plan_copy drawn;
        random_plan(&r, rng, &plan);
        plan.optimizer = o->fixed.optimizer; /* given, not searched */
        plan.gradient = o->fixed.gradient;
        plan.lora = o->fixed.lora;
        plan.targets = o->fixed.targets;
        plan.parameters = o->fixed.parameters;
        if (plan.context * 128 > r.job.seq) continue; /* given, but not searched */
        if (sm_train_price(train, &plan, &drawn.price, NULL) != SM_OK || !drawn.price.fits)
            continue;
        fitting++;
        assert_int_equal(s, SM_OK);
        if (value_of(o, &drawn) < value_of(o, &exact.found[0]) * (1 - 1e-12)) {
            char text[512];
            sm_plan_format(&plan, r.system.torus_dims, text, sizeof text);
            explain(o, &exact, &exact);
            fail_msg("%s: %.12g", text, value_of(o, &drawn));
        }
    }
    return fitting;
}

/* PLANS=all: by the million. */
static void no_random_plan_is_better(void **state) {
    static const char *const software[] = {"", "torchtitan", "megatron-deepspeed", "aleph-alpha"};
    const bool all = getenv("PLANS") != NULL;
    const int jobs = all ? 400 : TIMES(40), plans = all ? 3000 : TIMES(150);
    sm_rng rng = {drawn_from(22)};
    int fitting = 0;
    for (int i = 0; i < jobs; i++) {
        random_job_fill(&r, &rng);
        sm_search_options o;
        sm_search_defaults(&o);
        o.top = 1, o.threads = 1;
        o.objective = (sm_objective)(i % 3);
        if (i % 4 == 3) adapt(&o, i / 4);
        sm_train *train = train_of(&r.job);
        sm_calibration constants = *sm_train_calibration(train);
        if (i % 2) random_constants(&constants, &rng);
        sm_train_set_calibration(train, &constants);
        sm_train_set_software_memory(train,
                                     sm_software_memory_of(software[i / 2 % 4], &r.system.chip, 0));
        fitting += draw_plans(train, &o, plans, &rng);
        sm_train_free(train);
    }
    if (all) print_message("%d plans drawn, %d fit, none is better\n", jobs * plans, fitting);
    assert_true(fitting > TIMES(TIMES(330)));
}

/* Under seq=on the gradients of norms are partial over tensor: ZeRO shares them out without any
 * replica of the rest. */
static void zero_is_searched_over_tensor_alone(void **state) {
    sm_rng rng = {drawn_from(23)};
    plan_copy two = {0};
    do random_job_fill(&r, &rng);
    while (r.model.kinds < 1 || r.model.kind[0].N % 2 || r.system.chips % 2);
    r.system = random_job_system("h100-sxm:2");
    sm_search_options o;
    sm_search_defaults(&o);
    o.threads = 1, o.objective = SM_OBJECTIVE_MEMORY;
    fix(&o, "tensor=2,microbatch=1,seq=on,recompute=full,offload=none");
    sm_train *train = train_of(&r.job);
    assert_int_equal(search(train, &o, &exact), SM_OK);
    two.plan = o.fixed;
    two.plan.zero = 2;
    assert_int_equal(sm_train_price(train, &two.plan, &two.price, NULL), SM_OK);
    assert_true(value_of(&o, &exact.found[0]) <= value_of(&o, &two));
    two.plan.zero = 1;
    sm_price_of_plan one;
    assert_int_equal(sm_train_price(train, &two.plan, &one, NULL), SM_OK);
    assert_true(two.price.memory.total < one.memory.total);
    sm_train_free(train);
}

/* ---- parts of a system ---- */

/* Degrees that no divisor of the chips takes run on a part of them, as on a system of its own; and
 * what is asked of the whole before and after is the same. */
static void a_number_that_does_not_divide_runs_on_a_part(void **state) {
    static const char *const systems[][3] = {
        {"h100-sxm:3x8", "h100-sxm:2x8", "tensor=16"},
        {"tpu-v5e:4x6", "tpu-v5e:4x4", "fsdp=16"},
        {"tpu-v5p:2x2x2x3slices", "tpu-v5p:2x2x2x2slices", "fsdp=16"}};
    sm_rng rng = {drawn_from(29)};
    do random_job_fill(&r, &rng);
    while (!r.job.model->kind[0].F || r.model.kind[0].F % 16 || r.model.kind[0].E);
    r.job.batch_tokens = 48 * r.job.seq;
    for (size_t i = 0; i < sizeof systems / sizeof systems[0]; i++) {
        sm_search_options o;
        sm_search_defaults(&o);
        o.threads = 1;
        fix(&o, systems[i][2]);
        r.system = random_job_system(systems[i][1]);
        sm_train *part = train_of(&r.job);
        r.system = random_job_system(systems[i][0]);
        sm_train *whole = train_of(&r.job);
        sm_price_of_plan before, after, on_part;
        sm_plan all;
        sm_plan_defaults(&all);
        all.data = 24;
        assert_int_equal(sm_train_price(whole, &all, &before, NULL), SM_OK);
        assert_int_equal(search(part, &o, &exact), SM_OK);
        assert_int_equal(search(whole, &o, &brute), SM_OK);
        assert_int_equal(exact.n, brute.n);
        for (int k = 0; k < exact.n; k++) {
            assert_memory_equal(&exact.found[k].plan, &brute.found[k].plan, sizeof(sm_plan));
            assert_true(exact.found[k].price.expected_s == brute.found[k].price.expected_s);
            assert_int_equal(sm_train_price(whole, &brute.found[k].plan, &on_part, NULL), SM_OK);
            assert_true(on_part.expected_s == exact.found[k].price.expected_s);
        }
        assert_int_equal(sm_train_price(whole, &all, &after, NULL), SM_OK);
        assert_true(before.expected_s == after.expected_s);
        sm_train_free(part);
        sm_train_free(whole);
    }
}

/* ---- determinism ---- */

static void threads_change_nothing(void **state) {
    sm_rng rng = {drawn_from(23)};
    for (int i = 0; i < TIMES(40); i++) {
        random_job_fill(&r, &rng);
        sm_search_options o = options_of(&rng);
        sm_train *train = train_of(&r.job);
        sm_status s = search(train, &o, &exact);
        for (int threads = 2; threads <= 3; threads++) {
            o.threads = threads;
            assert_int_equal(search(train, &o, &brute), s);
            assert_true(exact.evaluated == brute.evaluated && exact.pruned == brute.pruned);
            assert_int_equal(exact.n, brute.n);
            for (int k = 0; k < exact.n; k++) {
                assert_memory_equal(&exact.found[k].plan, &brute.found[k].plan, sizeof(sm_plan));
                assert_true(exact.found[k].price.expected_s == brute.found[k].price.expected_s);
            }
            assert_true(exact.least_memory_bytes == brute.least_memory_bytes);
        }
        sm_train_free(train);
    }
}

/* ---- options ---- */

static int degree(const sm_plan *p, int key) {
    const int at[] = {p->data, p->fsdp, p->tensor, p->context, p->expert, p->pipeline};
    return at[key];
}

/* ---- sets of plans ---- */

/* Told of degrees as they become known, whether all at once or one after the other. */
static bool is_odd(const sm_plan_space *space, const sm_plan *plan, unsigned before, unsigned known,
                   sm_plan_limits *limits) {
    const unsigned two = 1 << SM_PLAN_TENSOR | 1 << SM_PLAN_CONTEXT;
    int *asked = (int *)space->context; /* the caller's, who counts */
    ++*asked;
    assert_true((before & ~known) == 0 && before != known);
    if ((known & ~before) >> SM_PLAN_PIPELINE & 1 && plan->pipeline > 1)
        limits->of[SM_PLAN_ZERO].words = 1 << 1 | 1 << 3;
    return (known & two) != two || plan->tensor != 2 || plan->context == 1;
}

static bool is_in(const sm_plan_space *space, const sm_plan *plan) {
    sm_plan_limits limits;
    uint64_t all = (1ull << SM_PLAN_ORDER) - 1;
    return sm_plan_space_of(space, plan, &limits) &&
           sm_plan_limits_have(&limits, plan, all & ~(1ull << SM_PLAN_REGATHER));
}

/* In a space the search finds what brute force finds in it, and nothing outside. */
static void a_space_is_searched_exactly(void **state) {
    static const char *const sets[] = {
        "recompute=none|full,offload=none,tensor=1..2,regather=all",
        "schedule=1f1b|interleaved,zero=0|1|3,offload=none,recompute=none",
        "seq=on,offload=none|optimizer,recompute=none,microbatch=1|2,regather=all|weights",
        "context_by=ring|heads,offload=none,recompute=full,virtual=1..2,fsdp=1|2|4"};
    sm_rng rng = {drawn_from(77)};
    int asked = 0, found = 0;
    for (int i = 0; i < TIMES(48); i++) {
        sm_error err = {0};
        sm_search_options o;
        sm_plan_space space = {.of_degrees = i % 2 ? is_odd : NULL, .context = &asked};
        random_job_fill(&r, &rng);
        sm_search_defaults(&o);
        o.threads = 1, o.space = &space, o.objective = (sm_objective)(i % 3);
        sm_source source = sm_source_of("--plan", sets[i % 4]);
        assert_int_equal(
            sm_plan_parse_limits(&source, SM_PLAN_TRAINING, &o.fixed, &space.limits, &err), SM_OK);
        space.limits.usual_order = i % 8 == 5;
        space.limits.share = i % 5 < 2    ? SM_SHARE_WHOLE
                             : i % 5 == 2 ? SM_SHARE_ROUNDS
                                          : SM_SHARE_ANY;
        space.limits.equal_stages = i % 3 == 1;
        sm_train *train = train_of(&r.job);
        equals_brute_force(train, &o, search(train, &o, &exact));
        for (int k = 0; k < exact.n; k++, found++) {
            const sm_plan *plan = &exact.found[k].plan;
            assert_true(is_in(&space, plan));
            assert_true(sm_plan_shares(plan, r.job.batch_tokens / r.job.seq, space.limits.share));
            if (space.limits.equal_stages)
                assert_int_equal(r.model.L % (plan->pipeline * plan->virtual_stages), 0);
        }
        sm_train_free(train);
    }
    assert_true(asked > 0 && found > TIMES(60));
}

/* Stages with layers that are given, however uneven, are searched as exactly: of a random pipeline,
 * chunks each with none or some of the model's layers. */
static void layouts_are_searched_exactly(void **state) {
    sm_rng rng = {drawn_from(83)};
    int found = 0;
    for (int i = 0; i < TIMES(20); i++) {
        sm_search_options o;
        char text[128] = "";
        random_job_fill(&r, &rng);
        int chunks = 2 << sm_rng_below(&rng, 2), left = r.model.L;
        for (int c = 0; c < chunks; c++) {
            int n = c == chunks - 1 ? left : (int)sm_rng_below(&rng, (uint64_t)left + 1);
            left -= n;
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d",
                     c ? "." : "layout=", n);
        }
        sm_search_defaults(&o);
        o.threads = 1, o.top = 3, o.objective = (sm_objective)(i % 3);
        fix(&o, text);
        sm_train *train = train_of(&r.job);
        equals_brute_force(train, &o, search(train, &o, &exact));
        /* whichever schedule the degrees leave: none is better than the best of all */
        for (int p = 2; p <= chunks; p *= 2) {
            char with[160];
            sm_search_options one;
            sm_search_defaults(&one);
            one.threads = 1, one.top = 1, one.objective = o.objective;
            snprintf(with, sizeof with, "pipeline=%d,%s", p, text);
            fix(&one, with);
            if (search(train, &one, &brute) != SM_OK) continue;
            assert_true(exact.n > 0);
            assert_true(value_of(&o, &exact.found[0]) <= value_of(&one, &brute.found[0]));
        }
        for (int k = 0; k < exact.n; k++, found++)
            assert_int_equal(
                exact.found[k].plan.pipeline * exact.found[k].plan.virtual_stages % chunks, 0);
        sm_train_free(train);
    }
    assert_true(REPEATED || found > 5);
}

/* Plans of either of two spaces: the best of both, each counted once. */
static void spaces_are_searched_as_one(void **state) {
    static const char *const sets[] = {"tensor=1..2,recompute=none|full,schedule=1f1b|zb-h1",
                                       "zero=0|1|3,pipeline=1..2,regather=all|weights",
                                       "schedule=gpipe|interleaved,recompute=full|selective",
                                       "offload=none|optimizer,recompute=none|save-matmuls"};
    sm_rng rng = {drawn_from(91)};
    int found = 0, jobs = TIMES(36);
    for (int i = 0; i < jobs; i++) {
        sm_error err = {0};
        sm_search_options o;
        sm_plan_space both = {.name = NULL}, space[2] = {both, both};
        random_job_fill(&r, &rng);
        sm_search_defaults(&o);
        o.threads = 1, o.top = 1, o.objective = (sm_objective)(i % 3);
        if (i % 2) fix(&o, "fsdp=1,context=1,offload=none");
        sm_train *train = train_of(&r.job);
        double least = HUGE_VAL, plans = 0;
        for (int k = 0; k < 2; k++) {
            sm_plan other;
            sm_source source = sm_source_of("--plan", sets[(i + k * (1 + i / 4 % 3)) % 4]);
            assert_int_equal(
                sm_plan_parse_limits(&source, SM_PLAN_TRAINING, &other, &space[k].limits, &err),
                SM_OK);
            for (int key = 0; key < SM_PLAN_KEY_COUNT; key++)
                sm_plan_limit_both(&both.limits.of[key], &space[k].limits.of[key]);
            o.space = &space[k];
            if (search(train, &o, &exact) == SM_OK)
                least = fmin(least, value_of(&o, &exact.found[0]));
            plans += exact.space;
        }
        o.space = &both;
        search(train, &o, &exact);
        plans -= exact.space;
        space[i % 5 == 0].limits.usual_order = i % 2;
        space[0].next = &space[1];
        o.space = space;
        equals_brute_force(train, &o, search(train, &o, &exact));
        /* by time, which parts of the system are looked at depends on what is found */
        if (i % 2 == 0 && o.objective != SM_OBJECTIVE_TIME) assert_true(exact.space == plans);
        for (int k = 0; k < exact.n; k++, found++)
            assert_true(is_in(&space[0], &exact.found[k].plan) ||
                        is_in(&space[1], &exact.found[k].plan));
        o.below = least;
        if (i % 2 == 0) assert_true(search(train, &o, &exact) == SM_NEGATIVE && exact.n == 0);
        sm_train_free(train);
    }
    assert_true(found > jobs / 4);
}

static void fixed_keys_are_kept(void **state) {
    sm_rng rng = {drawn_from(24)};
    int found = 0;
    for (int i = 0; i < TIMES(20); i++) {
        random_job_fill(&r, &rng);
        sm_search_options o;
        sm_search_defaults(&o);
        o.top = 8, o.threads = 1;
        fix(&o, i % 3 == 0   ? "tensor=2,recompute=full,microbatch=1"
                : i % 3 == 1 ? "pipeline=2,schedule=gpipe,zero=0"
                             : "fsdp=2,offload=optimizer,order=fsdp.tensor");
        sm_train *train = train_of(&r.job);
        if (search(train, &o, &exact) == SM_OK) found++;
        for (int k = 0; k < exact.n; k++) {
            const sm_plan *p = &exact.found[k].plan;
            if (i % 3 == 0)
                assert_true(p->tensor == 2 && p->recompute == SM_RECOMPUTE_FULL &&
                            p->microbatch == 1);
            else if (i % 3 == 1)
                assert_true(p->pipeline == 2 && p->schedule == SM_SCHEDULE_GPIPE &&
                            (p->zero == 0 || p->fsdp > 1));
            else
                assert_true(p->fsdp == 2 && p->offload == SM_OFFLOAD_OPTIMIZER &&
                            p->order[0] == SM_PLAN_FSDP && p->order[1] == SM_PLAN_TENSOR);
        }
        sm_train_free(train);
    }
    assert_true(REPEATED || found > 3); /* of few drawn here none may be small enough */
}

static void degrees_stay_below_their_limits(void **state) {
    sm_rng rng = {drawn_from(25)};
    for (int i = 0; i < TIMES(40); i++) {
        random_job_fill(&r, &rng);
        sm_search_options o;
        sm_search_defaults(&o);
        o.top = 8, o.threads = 1;
        for (int k = 0; k < SM_PLAN_DEGREES; k++) o.max_degree[k] = 1 + (int)sm_rng_below(&rng, 4);
        sm_train *train = train_of(&r.job);
        search(train, &o, &exact);
        for (int n = 0; n < exact.n; n++)
            for (int k = 0; k < SM_PLAN_DEGREES; k++)
                assert_true(degree(&exact.found[n].plan, k) <= o.max_degree[k]);
        sm_train_free(train);
    }
}

static void what_is_found_differs_and_is_sorted(void **state) {
    sm_rng rng = {drawn_from(26)};
    for (int i = 0; i < TIMES(40); i++) {
        random_job_fill(&r, &rng);
        sm_search_options o = options_of(&rng);
        o.top = 6;
        sm_train *train = train_of(&r.job);
        search(train, &o, &exact);
        for (int n = 1; n < exact.n; n++) {
            assert_true(value_of(&o, &exact.found[n]) >=
                        value_of(&o, &exact.found[n - 1]) * (1 - 1e-12));
            for (int k = 0; k < n; k++) {
                bool same = true;
                for (int d = 0; d < SM_PLAN_DEGREES; d++)
                    same &= degree(&exact.found[n].plan, d) == degree(&exact.found[k].plan, d);
                assert_false(same);
            }
        }
        sm_train_free(train);
    }
}

/* At once, but not without a plan. */
static void a_raised_flag_stops_it(void **state) {
    volatile int stop = 1;
    sm_rng rng = {28};
    sm_error err = {0};
    random_job_fill(&r, &rng);
    sm_search_options o;
    sm_search_defaults(&o);
    o.threads = 1, o.stop = &stop;
    sm_train *train = train_of(&r.job);
    search_copied(train, &o, &exact, &err);
    assert_false(exact.optimal);
    assert_true(exact.n > 0 && exact.gap > 0 && exact.gap < 1);
    sm_train_free(train);
}

/* Stopped after some of its work, told by the calls of progress. */
typedef struct patience {
    volatile int stop;
    int calls;
} patience;

static void lose_patience(double fraction, double best, void *context) {
    patience *p = context;
    assert_true(fraction >= 0 && fraction <= 1 && best >= 0);
    p->stop = --p->calls <= 0;
}

static void what_is_left_gains_no_more_than_the_gap(void **state) {
    sm_rng rng = {drawn_from(32)};
    sm_error err = {0};
    double looked_at = 0, all = 0;
    int stopped = 0;
    for (int i = 0; i < TIMES(20); i++) {
        random_job_fill(&r, &rng);
        sm_search_options o = options_of(&rng);
        patience p = {.stop = i % 6 == 5, .calls = 1 + i % 3};
        sm_train *train = train_of(&r.job);
        search(train, &o, &brute);
        assert_true(brute.gap == 0);
        o.first = true; /* one that fits is there where any is */
        search_copied(train, &o, &exact, &err);
        assert_int_equal(exact.n, brute.n > 0);
        assert_true(exact.n == 0 || exact.found[0].price.fits);
        looked_at += exact.evaluated, all += brute.evaluated;
        o.first = false;
        o.stop = &p.stop, o.progress = lose_patience, o.context = &p;
        if (i % 7 == 6) o.seconds = 1e-9;
        search_copied(train, &o, &exact, &err);
        assert_true(exact.gap >= 0 && exact.gap <= 1 &&
                    (exact.n > 0 || exact.optimal || exact.gap == 1));
        if (exact.n > 0)
            assert_true(value_of(&o, &exact.found[0]) * (1 - exact.gap) <=
                        value_of(&o, &brute.found[0]) * (1 + 1e-12));
        stopped += !exact.optimal;
        sm_train_free(train);
    }
    assert_true(stopped > TIMES(6) && looked_at < all);
}

static void a_chip_without_room_is_told_so(void **state) {
    sm_rng rng = {drawn_from(33)};
    sm_error err = {0};
    random_job_fill(&r, &rng);
    r.system = random_job_system("h100-sxm:1x4");
    r.system.chip.memory_bytes.value = r.system.chip.driver_memory_bytes.value = 1e9;
    sm_search_options o;
    sm_search_defaults(&o);
    sm_train *train = train_of(&r.job);
    sm_train_set_software_memory(train, sm_software_memory_of("deepspeed", NULL, 0));
    assert_int_equal(search_copied(train, &o, &exact, &err), SM_NEGATIVE);
    assert_string_equal(err.sentence,
                        "no plan fits: of the 1 GB of a chip the software takes all for itself");
    sm_train_free(train);
}

static void too_many_plans_are_refused(void **state) {
    sm_rng rng = {28};
    sm_error err = {0};
    random_job_fill(&r, &rng);
    sm_train *train = train_of(&r.job);
    sm_search_options o;
    sm_search_defaults(&o);
    o.top = SM_MAX_TOP + 1;
    assert_int_equal(search_copied(train, &o, &exact, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "the number of plans to show is 1 to 64");
    sm_train_free(train);
}

/* ---- bounds ---- */

/* The bound of a node against the best of all its plans, priced one by one. */
static double best_of_node(sm_train *train, const sm_search_options *o, const node *n) {
    sm_search_options only = *o;
    const int key[SM_PLAN_DEGREES] = {SM_PLAN_DATA,    SM_PLAN_FSDP,   SM_PLAN_TENSOR,
                                      SM_PLAN_CONTEXT, SM_PLAN_EXPERT, SM_PLAN_PIPELINE};
    int *at[SM_PLAN_DEGREES] = {&only.fixed.data,    &only.fixed.fsdp,   &only.fixed.tensor,
                                &only.fixed.context, &only.fixed.expert, &only.fixed.pipeline};
    for (int i = 0; i < SM_PLAN_DEGREES; i++) {
        *at[i] = n->degree[key[i]];
        only.fixed.given |= 1ull << key[i];
    }
    only.prune = false;
    only.top = 1;
    sm_error err = {0};
    if (search_copied(train, &only, &brute, &err) != SM_OK) return HUGE_VAL;
    return value_of(&only, &brute.found[0]);
}

static void bounds_are_admissible(void **state) {
    sm_rng rng = {drawn_from(29)};
    int checked = 0, wanted = REPEATED ? 1 : 151; /* nodes that fit, which few of some seeds do */
    for (int i = 0; i < TIMES(20) || checked < wanted; i++) {
        random_job_fill(&r, &rng);
        sm_search_options o = options_of(&rng);
        sm_train *train = train_of(&r.job);
        search(train, &o, &exact); /* builds the variants */
        plan_search h = {.options = &o, .train = train};
        sm_error err = {0};
        assert_int_equal(search_enumerate(&h, r.system.chips, &err), SM_OK);
        double floor_s = search_floor(train, &o.fixed, r.system.chips);
        for (size_t k = 0; k < h.nodes && k < 12; k++) {
            double best = best_of_node(train, &o, &h.node[k]);
            if (best == HUGE_VAL) continue;
            checked++;
            if (!(h.bound[k] <= best * (1 + 1e-12)))
                fail_msg("%s: bound %.12g above the best %.12g", r.system.text, h.bound[k], best);
            if (o.objective == SM_OBJECTIVE_TIME) assert_true(floor_s <= best);
        }
        sm_free(h.node);
        sm_free(h.bound);
        sm_train_free(train);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_search_equals_brute_force),
        cmocka_unit_test(padded_experts_are_searched_exactly),
        cmocka_unit_test(plans_that_barely_fit_are_found),
        cmocka_unit_test(the_search_is_exact_under_any_constants),
        cmocka_unit_test(parts_of_odd_axes_are_whole),
        cmocka_unit_test(no_random_plan_is_better),
        cmocka_unit_test(zero_is_searched_over_tensor_alone),
        cmocka_unit_test(a_number_that_does_not_divide_runs_on_a_part),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(a_space_is_searched_exactly),
        cmocka_unit_test(layouts_are_searched_exactly),
        cmocka_unit_test(spaces_are_searched_as_one),
        cmocka_unit_test(fixed_keys_are_kept),
        cmocka_unit_test(degrees_stay_below_their_limits),
        cmocka_unit_test(what_is_found_differs_and_is_sorted),
        cmocka_unit_test(a_raised_flag_stops_it),
        cmocka_unit_test(what_is_left_gains_no_more_than_the_gap),
        cmocka_unit_test(a_chip_without_room_is_told_so),
        cmocka_unit_test(too_many_plans_are_refused),
        cmocka_unit_test(bounds_are_admissible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
