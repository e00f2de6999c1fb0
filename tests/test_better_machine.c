/* More of any resource of a machine out of balance, as none is made, is never worse: for the best
 * plan to train, a point of serving and the best one, and a sharded einsum. In the environment
 * SEED: other cases; CASES: so many of each. */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random_jobs.h"
#include "sanitized.h"
#include "scalemodel/lowering.h"
#include "scalemodel/serve.h"
#include "search_copy.h"
#include "serve_cases.h"

static random_job r;
static sm_system odd, better; /* the job's out of balance; with more of a resource */
static char what[96];

static int cases_of(int usual) {
    const char *said = getenv("CASES");
    return said ? atoi(said) : REPEATED ? usual / 8 : usual;
}

static void draw_odd(sm_rng *rng) {
    odd = r.system;
    random_system_of_resources(&odd, rng);
}

/* Into better, and its name into what. */
static void draw_better(sm_rng *rng) {
    char name[64];
    double times = 1 + 2 * sm_rng_unit(rng) * sm_rng_unit(rng);
    int resource;
    do {
        better = odd;
        resource = (int)sm_rng_below(rng, RANDOM_RESOURCES);
    } while (!random_better(&better, resource, times));
    random_resource_name(resource, name, sizeof name);
    snprintf(what, sizeof what, "%s x %.6g", name, times);
}

static void no_worse(const char *value, const char *plan, double before, double after) {
    if (after > before * (1 + 1e-9))
        fail_msg("%s on %s, %s: %s of %.12g after %.12g", plan, odd.text, what, value, after,
                 before);
}

/* ---- training ---- */

static search_copy found;

/* The best plan of a third of a space that is searched quickly; infinite where none fits. */
static double best_of(const sm_system *system, sm_objective objective, const char *keys) {
    sm_error err = {0};
    sm_train *train = NULL;
    sm_search_options o;
    sm_job job = r.job;
    sm_source text = sm_source_of("--plan", keys);
    job.system = system;
    assert_int_equal(sm_train_new(&job, &train, &err), SM_OK);
    sm_search_defaults(&o);
    assert_int_equal(sm_plan_parse(&text, &o.fixed, &err), SM_OK);
    o.objective = objective, o.top = 1, o.threads = 1;
    sm_status status = search_copied(train, &o, &found, &err);
    assert_true(status <= SM_NEGATIVE);
    sm_train_free(train);
    if (status) return HUGE_VAL;
    double seconds = found.found[0].price.expected_s;
    return objective == SM_OBJECTIVE_COST ? seconds * found.found[0].price.chips : seconds;
}

static void the_best_plan_is_never_worse(void **state) {
    static const char *const keys[] = {"offload=none,recompute=none",
                                       "recompute=full,offload=none",
                                       "microbatch=1,offload=optimizer",
                                       "zero=1,regather=all,offload=none",
                                       "schedule=1f1b,recompute=selective,offload=none",
                                       "data=1,offload=activations"};
    sm_rng rng = {drawn_from(91)};
    int cases = cases_of(16), compared = 0;
    for (int i = 0; i < cases; i++) {
        random_job_fill(&r, &rng);
        draw_odd(&rng);
        const char *fixed = keys[sm_rng_below(&rng, sizeof keys / sizeof *keys)];
        sm_objective objective = sm_rng_below(&rng, 2) ? SM_OBJECTIVE_COST : SM_OBJECTIVE_TIME;
        double before = best_of(&odd, objective, fixed);
        for (int k = 0; k < 3; k++) {
            draw_better(&rng);
            double after = best_of(&better, objective, fixed);
            no_worse("best", fixed, before, after);
            compared += isfinite(after);
        }
    }
    assert_true(compared > cases / 2);
}

/* ---- serving ---- */

static void draw_serving(sm_rng *rng, sm_plan *plan) {
    const int keys[] = {SM_PLAN_DATA,   SM_PLAN_FSDP,    SM_PLAN_TENSOR,
                        SM_PLAN_EXPERT, SM_PLAN_CONTEXT, SM_PLAN_PIPELINE};
    sm_serve_plan_defaults(plan);
    for (int left = odd.chips; left > 1; left /= 2)
        *sm_plan_degree(plan, keys[sm_rng_below(rng, sizeof keys / sizeof *keys)]) *= 2;
    plan->gathered = sm_rng_below(rng, 2) != 0;
    plan->cache_by = (sm_cache_by)sm_rng_below(rng, 3);
    plan->seq = sm_rng_below(rng, 2) != 0;
    plan->expert_tensor = sm_rng_below(rng, 2) != 0;
}

static sm_serve_job serving_job(const sm_system *system, double prompt, double output) {
    return (sm_serve_job){.size = sizeof(sm_serve_job),
                          .model = &r.model,
                          .system = system,
                          .dtypes = {SM_BF16, SM_BF16, SM_BF16},
                          .prompt = prompt,
                          .output = output,
                          .imbalance = 1,
                          .reserve = -1,
                          .usd_per_chip_hour = -1};
}

static bool point_on(const sm_system *system, const sm_plan *plan, double batch, double prompt,
                     sm_serve_point *point) {
    sm_error err = {0};
    sm_serve *serve = NULL;
    const sm_serve_job job = serving_job(system, prompt, 64);
    if (sm_serve_new(&job, &serve, &err) != SM_OK) return false; /* an encoder writes nothing */
    sm_status status = sm_serve_point_of(serve, plan, batch, point, &err);
    sm_serve_free(serve);
    return status == SM_OK;
}

static void a_point_of_serving_is_never_worse(void **state) {
    static const char *const alone[] = {"least token", "token", "slowest token"};
    static const char *const first[] = {"least first token", "first token", "slowest first token"};
    static const char *const loaded[] = {"least of a load", "of a load", "slowest of a load"};
    sm_rng rng = {drawn_from(92)};
    int cases = cases_of(40), compared = 0;
    for (int i = 0; i < cases; i++) {
        sm_plan plan;
        char text[512];
        sm_serve_point before, after;
        random_job_fill(&r, &rng);
        draw_odd(&rng);
        draw_serving(&rng, &plan);
        double batch = 1 + (double)sm_rng_below(&rng, 200);
        double prompt = 16 + (double)sm_rng_below(&rng, 2000);
        if (!point_on(&odd, &plan, batch, prompt, &before)) continue;
        sm_plan_format(&plan, odd.torus_dims, text, sizeof text);
        for (int k = 0; k < 4; k++) {
            draw_better(&rng);
            assert_true(point_on(&better, &plan, batch, prompt, &after));
            compared++;
            for (int t = 0; t < 3; t++) {
                no_worse(alone[t], text, before.tpot_alone_s[t], after.tpot_alone_s[t]);
                no_worse(first[t], text, before.ttft_alone_s[t], after.ttft_alone_s[t]);
                no_worse(loaded[t], text, before.tpot_s[t], after.tpot_s[t]);
            }
        }
    }
    assert_true(compared > cases / 2);
}

/* Chips of a fleet within the limits. */
static double fleet_chips(const serve_case *c, const sm_serve_search_options *o, double rate,
                          const char *better_by) {
    sm_error err = {0};
    sm_fleet f;
    sm_serve_job job = c->job;
    sm_source text = sm_source_of("--what-if", better_by);
    job.system = &better;
    if (sm_system_what_if(&text, &c->system, &better, &err)) fail_msg("%s", err.sentence);
    if (sm_serve_fleet(&job, NULL, o, NULL, rate, &f, &err)) fail_msg("%s", err.sentence);
    return f.chips;
}

/* On quicker links larger replicas do more per chip than smaller ones, which still take fewer where
 * few requests come: two of deepseek-v2-lite. On the slowest a replica of three copies is passed
 * over and one copy is tried with all that it may decode. With more of the memory's bandwidth four
 * chips decode more per chip than eight, whose prompts alone are in time under the load. With more
 * memory a batch is larger than ever runs, and the number of replicas is sought from another end.
 * First tokens of nine in ten are those of some thousand requests, half a per cent off by chance
 * (gemma-2-9b at 82 a second: 0.1980 to 0.1996 s with 4 to 5 times the bandwidth): what just misses
 * a limit by that holds one 2 % wider. */
static void a_fleet_takes_no_more_chips_on_a_better_machine(void **state) {
    static const struct {
        const char *model, *system, *better_by[4];
        double prompt, output, tpot_s, ttft_s, rate;
        sm_dtype weights;
    } rows[] = {{"mixtral-8x7b",
                 "l4:8",
                 {"memory=1.15x", "memory=1.2075x"},
                 4000,
                 1000,
                 0.02,
                 0,
                 132,
                 SM_INT8},
                {"deepseek-v2-lite",
                 "l40s:8",
                 {"link=0.25x", "link=1x", "link=2x"},
                 2048,
                 512,
                 0.04,
                 0,
                 1,
                 SM_BF16},
                {"deepseek-v2-lite",
                 "rtx-3090:8",
                 {"link=0.25x", "link=1x"},
                 2048,
                 512,
                 0.04,
                 0,
                 1,
                 SM_BF16},
                {"deepseek-v2-lite",
                 "h100-sxm:8",
                 {"link=1x", "link=1.5x"},
                 2048,
                 512,
                 0.04,
                 0,
                 1,
                 SM_BF16},
                {"gemma-2-9b",
                 "mi300x:8",
                 {"hbm=4x", "hbm=4.35x", "hbm=4.7x"},
                 4000,
                 200,
                 0,
                 0.2,
                 82,
                 SM_BF16},
                {"gemma-2-9b",
                 "mi300x:8",
                 {"hbm=4.35x", "hbm=4.7x", "hbm=5x"},
                 4000,
                 200,
                 0,
                 0.2,
                 150,
                 SM_BF16}};
    for (size_t i = REPEATED; i < sizeof rows / sizeof *rows; i++) {
        double chips = HUGE_VAL;
        serve_case c;
        sm_serve_search_options o;
        serve_case_fill(&c, rows[i].model, rows[i].system);
        c.job.prompt = rows[i].prompt, c.job.output = rows[i].output;
        c.job.dtypes.weights = rows[i].weights;
        sm_serve_search_defaults(&o);
        o.tpot_s = rows[i].tpot_s, o.ttft_s = rows[i].ttft_s;
        for (const char *const *by = rows[i].better_by; *by; by++) {
            double now = fleet_chips(&c, &o, rows[i].rate, *by), wider = now;
            sm_serve_search_options near = o;
            near.ttft_s *= 1.02;
            if (now > chips && o.ttft_s > 0) wider = fleet_chips(&c, &near, rows[i].rate, *by);
            if (wider > chips)
                fail_msg("%s %s: %g chips after %g", rows[i].system, *by, now, chips);
            chips = fmin(chips, now);
        }
    }
}

/* ---- einsums ---- */

/* An array of two dimensions, each over an axis or none. */
static const char *drawn_array(sm_rng *rng, char name, const char *dims, char *out, size_t size) {
    static const char *const over[] = {"", "_X", "_Y", "_XY"};
    size_t a = sm_rng_below(rng, 4), b = sm_rng_below(rng, 4);
    if (a & b) b = 0;
    snprintf(out, size, "%c[%c%s,%c%s]", name, dims[0], over[a], dims[1], over[b]);
    return out;
}

typedef struct product {
    sm_mesh mesh;
    sm_placement at;
    sm_einsum einsum;
    sm_lowering_input input;
} product;

static bool draw_product(sm_rng *rng, product *p, char *text, size_t size) {
    static const char *const sizes[] = {"I=64,J=128,K=256", "I=4096,J=4096,K=4096",
                                        "I=16,J=8192,K=1024", "I=65536,J=512,K=64"};
    char a[32], b[32], c[32], mesh[32];
    sm_error err = {0};
    int x = 1 << sm_rng_below(rng, 4);
    while (odd.chips % x) x /= 2;
    snprintf(mesh, sizeof mesh, "X=%d,Y=%d", x, odd.chips / x);
    snprintf(text, size, "%s %s -> %s", drawn_array(rng, 'A', "IJ", a, sizeof a),
             drawn_array(rng, 'B', "JK", b, sizeof b), drawn_array(rng, 'C', "IK", c, sizeof c));
    sm_source on = sm_source_of("--mesh", mesh), words = sm_source_of("EINSUM", text),
              dims = sm_source_of("--dims", sizes[sm_rng_below(rng, 4)]);
    p->input = (sm_lowering_input){&odd,    &p->mesh,         &p->at, &p->einsum, NULL,
                                   SM_BF16, SM_LOCAL_PRODUCT, 0,      0,          0};
    return sm_mesh_parse(&on, &p->mesh, &err) == SM_OK &&
           sm_placement_of_mesh(&odd, &p->mesh, &on, &p->at, &err) == SM_OK &&
           sm_einsum_parse(&words, &p->mesh, &p->einsum, &err) == SM_OK &&
           sm_einsum_infer_output(&p->einsum, &words, &err) == SM_OK &&
           sm_dims_parse(&dims, &p->einsum, &err) == SM_OK &&
           sm_einsum_check(&p->einsum, &p->mesh, &words, &err) == SM_OK;
}

static void a_sharded_einsum_is_never_worse(void **state) {
    sm_rng rng = {drawn_from(93)};
    int cases = cases_of(200), compared = 0;
    for (int i = 0; i < cases; i++) {
        char text[128];
        product p;
        sm_ranking before, after;
        sm_error err = {0};
        random_job_fill(&r, &rng);
        draw_odd(&rng);
        if (!draw_product(&rng, &p, text, sizeof text)) continue;
        sm_arena *arena = sm_arena_new();
        sm_lowering_input there = p.input;
        p.input.calibration = there.calibration = sm_calibration_of(&odd.chip);
        assert_int_equal(sm_rank_lowerings(&p.input, arena, &before, &err), SM_OK);
        for (int k = 0; k < 3; k++) {
            draw_better(&rng);
            there.system = &better;
            assert_int_equal(sm_rank_lowerings(&there, arena, &after, &err), SM_OK);
            no_worse("best", text, before.kept[0]->cost.expected_s, after.kept[0]->cost.expected_s);
            for (int n = 0; n < before.n; n++) {
                const sm_lowering_cost *had = &before.kept[n]->cost;
                sm_lowering_cost has =
                    sm_lowering_price(&there, &before.kept[n]->lowering, had->overlapped);
                no_worse("lower", text, had->lower_s, has.lower_s);
                no_worse("expected", text, had->expected_s, has.expected_s);
                no_worse("upper", text, had->upper_s, has.upper_s);
                compared++;
            }
        }
        sm_arena_free(arena);
    }
    assert_true(compared > cases / 2);
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_plan_is_never_worse),
        cmocka_unit_test(a_point_of_serving_is_never_worse),
        cmocka_unit_test(a_fleet_takes_no_more_chips_on_a_better_machine),
        cmocka_unit_test(a_sharded_einsum_is_never_worse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
