/* Properties of the price of one plan, on thousands of random plans. */
#include "unit.h"
#include "random_jobs.h"
#include "sanitized.h"
#include "search_copy.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#if REPEATED
enum { JOBS = 10, PLANS = 80 }; /* a sanitizer takes its time, and clang runs the same */
#else
enum { JOBS = 60, PLANS = 80 };
#endif

static const char *text_of(const random_job *r, const sm_plan *plan) {
    static char text[700];
    char words[512];
    sm_plan_format(plan, r->system.torus_dims, words, sizeof words);
    snprintf(text, sizeof text, "%s seq %.0f batch %.0f: %s", r->system.text, r->job.seq,
             r->job.batch_tokens, words);
    return text;
}

static sm_train *train_of(const sm_job *job) {
    sm_error err = {0};
    sm_train *train = NULL;
    if (sm_train_new(job, &train, &err) != SM_OK) fail_msg("%s", err.sentence);
    return train;
}

/* Visit every random plan that can be priced; returns how many. */
typedef void (*visit)(random_job *r, sm_train *train, const sm_plan *plan,
                      const sm_price_of_plan *price);

static int each_plan(uint64_t seed, int jobs, visit look) {
    sm_rng rng = {drawn_from(seed)};
    static random_job r;
    int priced = 0;
    for (int i = 0; i < jobs; i++) {
        random_job_fill(&r, &rng);
        sm_train *train = train_of(&r.job);
        for (int k = 0; k < PLANS; k++) {
            sm_plan plan;
            sm_price_of_plan price;
            sm_error err = {0};
            random_plan(&r, &rng, &plan);
            sm_status s = sm_train_price(train, &plan, &price, &err);
            assert_true(s == SM_OK || (s == SM_BAD_INPUT && err.sentence[0]));
            if (s != SM_OK) continue;
            priced++;
            look(&r, train, &plan, &price);
        }
        sm_train_free(train);
    }
    return priced;
}

#define HOLDS(what, ...)                                                                           \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            print_error("%s\n", text_of(r, plan));                                                 \
            print_error(__VA_ARGS__);                                                              \
            fail_msg(" does not hold: %s", #what);                                                 \
        }                                                                                          \
    } while (0)

/* ---- many at once ---- */

/* Some keys of a plan become those of another: neighbours of all kinds. */
static void mix_plans(sm_rng *rng, const sm_plan *other, sm_plan *plan) {
    if (sm_rng_below(rng, 3) == 0) plan->microbatch = other->microbatch;
    if (sm_rng_below(rng, 3) == 0) plan->zero = other->zero;
    if (sm_rng_below(rng, 3) == 0) plan->offload = other->offload;
    if (sm_rng_below(rng, 3) == 0) plan->recompute = other->recompute;
    if (sm_rng_below(rng, 3) == 0) plan->regather = other->regather;
    if (sm_rng_below(rng, 4) == 0) memcpy(plan->order, other->order, sizeof plan->order);
    if (sm_rng_below(rng, 4) == 0) plan->optimizer = other->optimizer;
    if (sm_rng_below(rng, 4) == 0) plan->dtype = other->dtype;
    if (sm_rng_below(rng, 4) == 0) plan->seq = other->seq;
    if (sm_rng_below(rng, 3) == 0)
        plan->schedule = other->schedule, plan->virtual_stages = other->virtual_stages;
    if (sm_rng_below(rng, 6) == 0) *plan = *other;
}

static void many_are_priced_as_one(void **state) {
    (void)state;
    static random_job job, *const r = &job;
    sm_rng rng = {drawn_from(41)};
    sm_plan plans[PLANS], other;
    sm_plan_outcome outcome[PLANS];
    int priced = 0, refused = 0;
    for (int i = 0; i < JOBS; i++) {
        random_job_fill(r, &rng);
        sm_train *train = train_of(&r->job), *again = train_of(&r->job);
        random_plan(r, &rng, &plans[0]);
        for (int k = 1; k < PLANS; k++) {
            plans[k] = plans[k - 1];
            random_plan(r, &rng, &other);
            mix_plans(&rng, &other, &plans[k]);
        }
        assert_int_equal(sm_train_price_many(train, plans, PLANS, outcome, NULL), SM_OK);
        for (int k = 0; k < PLANS; k++) {
            const sm_plan *plan = &plans[k];
            sm_price_of_plan price;
            const sm_plan_outcome *o = &outcome[k];
            const sm_status s = sm_train_price(again, plan, &price, NULL);
            HOLDS(s == o->status, "plan %d: %d is not %d", k, (int)o->status, (int)s);
            if (s != SM_OK) {
                refused++;
                continue;
            }
            priced++;
            HOLDS(o->expected_s == price.expected_s, "plan %d: %.17g is not %.17g", k,
                  o->expected_s, price.expected_s);
            HOLDS(o->memory_bytes == price.memory.total, "plan %d: %.17g is not %.17g", k,
                  o->memory_bytes, price.memory.total);
            HOLDS(o->fits == price.fits, "plan %d", k);
        }
        sm_train_free(train);
        sm_train_free(again);
    }
    assert_true(priced > JOBS * PLANS / 8 && refused > JOBS);
}

/* ---- what holds of every price ---- */

static void is_sound(random_job *r, sm_train *train, const sm_plan *plan,
                     const sm_price_of_plan *p) {
    (void)train;
    const sm_breakdown *b = &p->breakdown;
    const sm_memory *m = &p->memory;
    double sum = b->math + b->memory + b->network_exposed + b->bubble + b->optimizer + b->other;
    double tiny = 1e-9 * p->expected_s;
    HOLDS(p->lower_s > 0 && p->lower_s <= p->expected_s + tiny, "lower %g expected %g", p->lower_s,
          p->expected_s);
    HOLDS(p->expected_s <= p->upper_s + tiny, "expected %g upper %g", p->expected_s, p->upper_s);
    HOLDS(isfinite(p->upper_s), "upper %g", p->upper_s);
    HOLDS(fabs(sum - p->expected_s) <= tiny, "breakdown %g expected %g", sum, p->expected_s);
    HOLDS(b->math >= 0 && b->memory >= 0 && b->bubble >= 0 && b->optimizer >= 0 && b->other >= 0 &&
              b->network_exposed >= 0,
          "math %g memory %g network %g bubble %g optimizer %g", b->math, b->memory,
          b->network_exposed, b->bubble, b->optimizer);
    double parts = m->params + m->gradients + m->optimizer + m->activations + m->buffers;
    HOLDS(fabs(parts - m->total) <= 1e-9 * m->total, "parts %g total %g", parts, m->total);
    HOLDS(p->fits == (m->total <= m->capacity), "total %g capacity %g", m->total, m->capacity);
    HOLDS(p->mfu > 0 && p->mfu <= 1, "mfu %g", p->mfu);
    HOLDS(p->hfu > 0 && p->hfu <= 1, "hfu %g", p->hfu);
    HOLDS(p->chips == plan->data * plan->fsdp * plan->tensor * plan->context * plan->expert *
                          plan->pipeline,
          "chips %d", p->chips);
    HOLDS(fabs(p->train_time_s / p->expected_s - ceil(1e9 / r->job.batch_tokens)) < 1e-6,
          "train time %g", p->train_time_s);
    HOLDS(fabs(p->cost_usd - p->train_time_s / 3600 * 2 * p->chips) <= 1e-9 * p->cost_usd,
          "cost %g", p->cost_usd);
}

static void every_price_is_sound(void **state) {
    assert_true(each_plan(1, 2 * JOBS, is_sound) > 22 * JOBS);
}

/* Which of a cube's equal dimensions an axis lies on changes no bit of a price. */
static void equal_dimensions_change_places(void **state) {
    (void)state;
    static const uint8_t orders[5][3] = {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static random_job r;
    sm_rng rng = {drawn_from(47)};
    int compared = 0;
    for (int i = 0; i < JOBS / 4; i++) {
        random_job_fill(&r, &rng);
        r.system = random_job_system(i % 2 ? "tpu-v5p:4x4x4" : "tpu-v5p:8x8x8");
        sm_train *train = train_of(&r.job);
        for (int k = 0; k < PLANS; k++) {
            sm_plan plan;
            sm_price_of_plan usual, other;
            random_plan(&r, &rng, &plan);
            memcpy(plan.dims, (const uint8_t[3]){0, 1, 2}, 3);
            if (sm_train_price(train, &plan, &usual, &(sm_error){0}) != SM_OK) continue;
            for (int n = 0; n < 5; n++, compared++) {
                memcpy(plan.dims, orders[n], 3);
                assert_int_equal(sm_train_price(train, &plan, &other, &(sm_error){0}), SM_OK);
                if (other.expected_s != usual.expected_s || other.lower_s != usual.lower_s ||
                    other.upper_s != usual.upper_s || other.memory.total != usual.memory.total)
                    fail_msg("%.17g to %.17g to %.17g and %.17g to %.17g to %.17g s: %s",
                             usual.lower_s, usual.expected_s, usual.upper_s, other.lower_s,
                             other.expected_s, other.upper_s, text_of(&r, &plan));
            }
        }
        sm_train_free(train);
    }
    assert_true(compared > 20 * (JOBS / 4));
}

static void allocates_nothing(random_job *r, sm_train *train, const sm_plan *plan,
                              const sm_price_of_plan *first) {
    sm_price_of_plan again;
    sm_error err = {0};
    uint64_t before = sm_allocation_count();
    assert_int_equal(sm_train_price(train, plan, &again, &err), SM_OK);
    HOLDS(sm_allocation_count() == before, "allocations");
    HOLDS(again.expected_s == first->expected_s && again.memory.total == first->memory.total &&
              again.lower_s == first->lower_s && again.upper_s == first->upper_s,
          "another price the second time: %.17g, then %.17g", first->expected_s, again.expected_s);
}

static void the_second_price_allocates_nothing(void **state) {
    assert_true(each_plan(2, JOBS, allocates_nothing) > 10 * JOBS);
}

/* ---- a better machine ---- */

static void is_monotone(random_job *r, sm_train *train, const sm_plan *plan,
                        const sm_price_of_plan *first) {
    static sm_rng rng;
    if (!rng.state) rng.state = drawn_from(77);
    (void)train, (void)first;
    char name[64];
    sm_error err = {0};
    sm_price_of_plan base, price;
    sm_system odd = r->system; /* a chip out of balance, as none is made */
    random_system_of_resources(&odd, &rng);
    sm_job job = r->job;
    job.system = &odd;
    sm_train *here = train_of(&job);
    assert_int_equal(sm_train_price(here, plan, &base, &err), SM_OK);
    for (int i = 0; i < 6; i++) {
        int resource = i == 0 ? RANDOM_LINKS : (int)sm_rng_below(&rng, RANDOM_RESOURCES);
        double times = 1 + 2 * sm_rng_unit(&rng);
        sm_system system = odd;
        if (!random_better(&system, resource, times)) continue;
        job.system = &system;
        sm_train *there = train_of(&job);
        assert_int_equal(sm_train_price(there, plan, &price, &err), SM_OK);
        random_resource_name(resource, name, sizeof name);
        HOLDS(price.lower_s <= base.lower_s * (1 + 1e-9), "%s x %g: lower %.9g after %.9g", name,
              times, price.lower_s, base.lower_s);
        HOLDS(price.expected_s <= base.expected_s * (1 + 1e-9), "%s x %g: %.9g after %.9g", name,
              times, price.expected_s, base.expected_s);
        HOLDS(price.upper_s <= base.upper_s * (1 + 1e-9), "%s x %g: upper %.9g after %.9g", name,
              times, price.upper_s, base.upper_s);
        HOLDS(price.memory.total <= base.memory.total, "memory");
        sm_train_free(there);
    }
    sm_train_free(here);
}

static void a_better_machine_is_never_slower(void **state) {
    assert_true(each_plan(3, (JOBS + 2) / 6, is_monotone) > 2 * JOBS);
}

/* ---- memory of choices ---- */

static double memory_with(sm_train *train, sm_plan plan, int zero, sm_recompute recompute) {
    sm_price_of_plan price;
    sm_error err = {0};
    plan.zero = zero;
    plan.recompute = recompute;
    if (sm_train_price(train, &plan, &price, &err) != SM_OK) fail_msg("%s", err.sentence);
    return price.memory.total;
}

static void memory_is_ordered(random_job *r, sm_train *train, const sm_plan *plan,
                              const sm_price_of_plan *base) {
    (void)base;
    if (plan->fsdp == 1) {
        double m0 = memory_with(train, *plan, 0, plan->recompute);
        double m1 = memory_with(train, *plan, 1, plan->recompute);
        double m2 = memory_with(train, *plan, 2, plan->recompute);
        HOLDS(m0 >= m1 && m1 >= m2, "zero 0 %g 1 %g 2 %g", m0, m1, m2);
    }
    sm_plan held = *plan;
    held.offload = SM_OFFLOAD_NONE;
    double none = memory_with(train, held, held.zero, SM_RECOMPUTE_NONE);
    for (int k = SM_RECOMPUTE_SELECTIVE; k < SM_RECOMPUTE_COUNT; k++) {
        double less = memory_with(train, held, held.zero, (sm_recompute)k);
        HOLDS(less <= none * (1 + 1e-12), "%s %g none %g", sm_recompute_names[k], less, none);
    }
}

static void sharding_and_recomputing_save_memory(void **state) {
    assert_true(each_plan(4, JOBS, memory_is_ordered) > 10 * JOBS);
}

/* Keeping what was gathered takes memory and saves collectives, and only that. */
static void keeping_is_ordered(random_job *r, sm_train *train, const sm_plan *plan,
                               const sm_price_of_plan *base) {
    sm_price_of_plan price[SM_REGATHER_COUNT];
    sm_error err = {0};
    (void)base;
    for (int k = 0; k < SM_REGATHER_COUNT; k++) {
        sm_plan other = *plan;
        other.regather = (sm_regather)k;
        if (sm_train_price(train, &other, &price[k], &err) != SM_OK) fail_msg("%s", err.sentence);
        for (int i = 0; i < k; i++) {
            const sm_price_of_plan *less = &price[i], *more = &price[k];
            if ((i & k) != i) continue;
            HOLDS(more->expected_s <= less->expected_s * (1 + 1e-12), "%s %.12g, %s %.12g",
                  sm_regather_names[k], more->expected_s, sm_regather_names[i], less->expected_s);
            HOLDS(more->lower_s <= less->lower_s * (1 + 1e-12) &&
                      more->upper_s <= less->upper_s * (1 + 1e-12),
                  "lower or upper of %s", sm_regather_names[k]);
            HOLDS(more->memory.total >= less->memory.total * (1 - 1e-12), "%s %g, %s %g",
                  sm_regather_names[k], more->memory.total, sm_regather_names[i],
                  less->memory.total);
        }
    }
}

static void keeping_what_was_gathered_saves_time_for_memory(void **state) {
    assert_true(each_plan(5, JOBS / 2, keeping_is_ordered) > 4 * JOBS);
}

/* Copies of the optimizer's state take so many times its memory; where there are as many as there
 * are replicas nothing is sharded, which is ZeRO 0. */
static void copies_are_ordered(random_job *r, sm_train *train, const sm_plan *plan,
                               const sm_price_of_plan *base) {
    sm_price_of_plan price, whole;
    sm_error err = {0};
    sm_plan other = *plan;
    (void)base;
    if (plan->data == 1 || plan->fsdp > 1 || plan->pipeline > 1) return; /* of one stage */
    other.zero = 1, other.offload = SM_OFFLOAD_NONE;
    if (sm_train_price(train, &other, &price, &err) != SM_OK) fail_msg("%s", err.sentence);
    double one = price.memory.optimizer;
    other.state_copies = plan->data;
    if (sm_train_price(train, &other, &price, &err) != SM_OK) fail_msg("%s", err.sentence);
    HOLDS(price.memory.optimizer >= one * (1 - 1e-12) &&
              price.memory.optimizer <= one * plan->data * (1 + 1e-12),
          "%d copies %g, one %g", plan->data, price.memory.optimizer, one);
    if (plan->tensor * plan->context * plan->expert > 1) return;
    other.zero = 0;
    if (sm_train_price(train, &other, &whole, &err) != SM_OK) fail_msg("%s", err.sentence);
    HOLDS(fabs(price.expected_s / whole.expected_s - 1) < 1e-9 &&
              fabs(price.memory.total / whole.memory.total - 1) < 1e-9,
          "%.12g s, %.12g bytes; zero=0 %.12g s, %.12g bytes", price.expected_s, price.memory.total,
          whole.expected_s, whole.memory.total);
    other.zero = 1, other.state_copies = plan->data + 1;
    HOLDS(sm_train_price(train, &other, &price, &err) != SM_OK, "%d copies", other.state_copies);
}

static void copies_of_the_state_are_told_apart(void **state) {
    assert_true(each_plan(6, JOBS, copies_are_ordered) > 10 * JOBS);
}

/* ---- software that reduces late, or whole ---- */

/* Bytes that such collectives take at the end of a step. */
static double ended_bytes(sm_train *train, const sm_plan *plan, sm_arena *arena, sm_collective op) {
    sm_plan_detail detail;
    sm_error err = {0};
    double bytes = 0;
    if (sm_train_detail(train, plan, arena, &detail, &err) != SM_OK) fail_msg("%s", err.sentence);
    for (int i = 0; i < detail.lines.collectives; i++) {
        const sm_plan_collective *c = &detail.lines.collective[i];
        if (c->op == op && strcmp(c->phase, "step end") == 0) bytes += c->bytes * c->count;
    }
    return bytes;
}

static int quicker, dearer; /* plans: collectives run beside matmuls; a copy goes to each expert */

/* Where nothing may hide, nothing is lost by reducing late; what is reduced whole is as many
 * gradients, in fp32 twice the bytes, and memory is the same. */
static void the_end_of_a_step_is_the_softwares(random_job *r, sm_train *train, const sm_plan *given,
                                               const sm_price_of_plan *unused) {
    sm_plan other = *given, *plan = &other;
    sm_price_of_plan usual, late, whole;
    sm_software_memory held = *sm_software_memory_of("megatron-core", NULL, 0);
    sm_calibration c = *sm_train_calibration(train), bare = c;
    sm_error err = {0};
    (void)unused;
    other.fsdp = 1, other.zero = 1, other.gradient = SM_BF16, other.state_copies = 1;
    sm_train_set_software_memory(train, &held);
    if (sm_train_price(train, plan, &usual, &err) != SM_OK) return;
    sm_arena *arena = sm_arena_new();
    held.exposed_end = true;
    sm_train_set_software_memory(train, &held);
    assert_int_equal(sm_train_price(train, plan, &late, &err), SM_OK);
    HOLDS(late.expected_s >= usual.expected_s * (1 - 1e-12), "late");
    held.exposed_end = false, held.tensor_beside = held.experts_beside = true;
    sm_train_set_software_memory(train, &held);
    assert_int_equal(sm_train_price(train, plan, &late, &err), SM_OK);
    HOLDS(late.expected_s <= usual.expected_s * (1 + 1e-12), "beside");
    quicker += late.expected_s < usual.expected_s * 0.99;
    if (other.tensor * other.context * other.expert == 1)
        HOLDS(fabs(late.expected_s / usual.expected_s - 1) < 1e-12, "nothing beside");
    held.tensor_beside = held.experts_beside = false, held.copies_each = true;
    sm_train_set_software_memory(train, &held);
    assert_int_equal(sm_train_price(train, plan, &late, &err), SM_OK);
    HOLDS(late.expected_s >= usual.expected_s * (1 - 1e-12), "copies");
    HOLDS(fabs(late.memory.total / usual.memory.total - 1) < 1e-12, "memory of copies");
    dearer += late.expected_s > usual.expected_s * 1.001;
    if (other.tensor * other.context * other.expert == 1)
        HOLDS(fabs(late.expected_s / usual.expected_s - 1) < 1e-12, "no copies");
    held.exposed_end = true, held.copies_each = false;
    sm_train_set_software_memory(train, &held);
    bare.overlap = 0;
    sm_train_set_calibration(train, &bare);
    assert_int_equal(sm_train_price(train, plan, &late, &err), SM_OK);
    held.exposed_end = false, held.reduced_whole = held.reduced_wide = true;
    sm_train_set_software_memory(train, &held);
    assert_int_equal(sm_train_price(train, plan, &whole, &err), SM_OK);
    double summed = ended_bytes(train, plan, arena, SM_ALL_REDUCE);
    held.reduced_wide = false;
    sm_train_set_software_memory(train, &held);
    double narrow = ended_bytes(train, plan, arena, SM_ALL_REDUCE);
    held.reduced_whole = false;
    sm_train_set_software_memory(train, &held);
    assert_int_equal(sm_train_price(train, plan, &usual, &err), SM_OK);
    double scattered = ended_bytes(train, plan, arena, SM_REDUCE_SCATTER);
    HOLDS(fabs(late.expected_s / usual.expected_s - 1) < 1e-9, "%g, late %g", usual.expected_s,
          late.expected_s);
    HOLDS(whole.expected_s >= usual.expected_s * (1 - 1e-12), "%g, whole %g", usual.expected_s,
          whole.expected_s);
    HOLDS(fabs(summed - 2 * scattered) <= 1e-9 * summed, "%g, whole %g", scattered, summed);
    HOLDS(fabs(narrow - scattered) <= 1e-9 * summed, "%g, whole in 16 bits %g", scattered, narrow);
    HOLDS(fabs(whole.memory.total / usual.memory.total - 1) < 1e-12, "memory");
    sm_train_set_calibration(train, &c);
    sm_arena_free(arena);
}

static void software_reduces_late_or_whole(void **state) {
    assert_true(each_plan(8, JOBS / 6, the_end_of_a_step_is_the_softwares) > JOBS);
    assert_true((quicker > 0 && dearer > 0) || REPEATED); /* few have something to hide */
}

/* By hand: a model on one chip holds 2 + 4 + 12 bytes of every parameter; what corrects the choice
 * of experts, one number for each, has no gradient. */
static void the_state_of_one_chip_is_eighteen_bytes_a_parameter(void **state) {
    sm_rng rng = {9};
    static random_job r;
    for (int i = 0; i < 40; i++) {
        random_job_fill(&r, &rng);
        sm_train *train = train_of(&r.job);
        sm_plan plan;
        sm_price_of_plan price;
        sm_error err = {0};
        sm_plan_defaults(&plan);
        assert_int_equal(sm_train_price(train, &plan, &price, &err), SM_OK);
        double n = sm_model_params(&r.model).total, with_gradient = price.memory.gradients / 4;
        double experts = 0;
        for (int l = 0; l < r.model.L; l++) experts += r.model.kind[r.model.layer[l]].E;
        assert_true(price.memory.params == 2 * n);
        assert_true(with_gradient == n || with_gradient == n - experts);
        assert_true(price.memory.optimizer == 12 * with_gradient);
        sm_train_free(train);
    }
}

/* A caller's structure of older headers ends earlier; one of newer headers is refused. */
static void options_of_other_versions(void **state) {
    struct {
        sm_search_options options;
        char behind[64];
    } newer;
    static random_job r;
    static search_copy found;
    sm_error err = {0};
    sm_rng rng = {drawn_from(5)};
    random_job_fill(&r, &rng);
    sm_train *train = train_of(&r.job);
    size_t known = offsetof(sm_search_options, stop);
    memset(&newer, 0x5a, sizeof newer);
    sm_search_defaults_sized(&newer.options, known);
    assert_true(newer.options.size == known && newer.options.top == 3 && newer.options.prune);
    for (size_t i = known; i < sizeof newer; i++) assert_int_equal(((char *)&newer)[i], 0x5a);
    newer.options.threads = 1; /* what follows is not read */
    assert_true(search_copied(train, &newer.options, &found, &err) <= SM_NEGATIVE);
    sm_search_defaults_sized(&newer.options, sizeof newer);
    assert_int_equal(search_copied(train, &newer.options, &found, &err), SM_USAGE);
    assert_non_null(strstr(err.sentence, sm_version()));
    newer.options.size = 0; /* never set */
    assert_int_equal(search_copied(train, &newer.options, &found, &err), SM_USAGE);
    assert_int_equal(sm_search_result_count(NULL), 0);
    assert_null(sm_search_result_at(NULL, 0).plan);
    sm_train_free(train);
    r.job.size = offsetof(sm_job, padded_for);
    sm_train_free(train_of(&r.job));
    r.job.size = 0;
    assert_int_equal(sm_train_new(&r.job, &train, &err), SM_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_of_other_versions),
        cmocka_unit_test(many_are_priced_as_one),
        cmocka_unit_test(every_price_is_sound),
        cmocka_unit_test(equal_dimensions_change_places),
        cmocka_unit_test(the_second_price_allocates_nothing),
        cmocka_unit_test(a_better_machine_is_never_slower),
        cmocka_unit_test(sharding_and_recomputing_save_memory),
        cmocka_unit_test(keeping_what_was_gathered_saves_time_for_memory),
        cmocka_unit_test(copies_of_the_state_are_told_apart),
        cmocka_unit_test(software_reduces_late_or_whole),
        cmocka_unit_test(the_state_of_one_chip_is_eighteen_bytes_a_parameter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
