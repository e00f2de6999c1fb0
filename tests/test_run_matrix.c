/* Families x plans, as `run train` reads, checks and runs them: plans drawn over every key for a
 * small model of each family have one rank's losses and norms, move the bytes that were predicted
 * and take the memory that was; what is refused is refused before any rank starts, in a sentence.
 * In the environment MATRIX=N: so many plans of each model (`make test-all`); SEED: others;
 * MATRIX_MODEL, MATRIX_PLAN: of this model alone, this plan; MATRIX_TELL: what was refused too. */
#include <math.h>
#include "unit.h"
#include <stdio.h>
#include <string.h>

#include "drawn_plans.h"
#include "model_of.h"
#include "read_all.h"
#include "run_train.h"
#include "serving_model.h"
#include "train_plans.h"

enum { STEPS = 2, MOST_REFERENCES = 256 };

/* ---- a plan in words, as the command takes it ---- */

typedef struct job {
    sm_arena *arena;
    sm_plan plan;
    sm_train_setup setup;
    sm_memory memory; /* predicted */
    int stage;        /* that the prices tell of, and what its collectives move in a step */
    double bytes[SM_COLLECTIVE_COUNT];
} job;

static sm_status price(const drawn_model *m, job *j, sm_error *err) {
    char name[32];
    sm_system system;
    sm_train *train = NULL;
    sm_plan_detail detail;
    snprintf(name, sizeof name, "cpu-host:%d", sm_train_setup_ranks(&j->setup));
    const sm_source on = sm_source_of("--on", name);
    sm_status status = sm_system_parse(&on, NULL, 0, &system, err);
    const sm_job of = {.size = sizeof(sm_job),
                       .model = &m->model,
                       .system = &system,
                       .batch_tokens = (double)j->setup.sequences * j->setup.tokens,
                       .seq = j->setup.tokens,
                       .usd_per_chip_hour = -1};
    if (!status) status = sm_train_new(&of, &train, err);
    const sm_train_software software = sm_train_runtime_of(&j->plan);
    if (!status) sm_train_set_software(train, &software);
    if (!status) status = sm_train_detail(train, &j->plan, j->arena, &detail, err);
    sm_train_free(train);
    if (status) return status;
    j->memory = detail.price.memory;
    j->stage = detail.stage;
    for (int i = 0; i < detail.lines.collectives; i++) {
        const sm_plan_collective *c = &detail.lines.collective[i];
        if (c->op != SM_PERMUTE) j->bytes[c->op] += c->bytes * c->count;
    }
    return status;
}

static sm_status read_job(const drawn_model *m, const char *words, job *j, sm_error *err) {
    sm_status status = drawn_setup_of(m, words, j->arena, &j->plan, &j->setup, err);
    return status ? status : price(m, j, err);
}

/* ---- one rank ---- */

typedef struct references {
    int n;
    struct reference {
        sm_train_setup setup;
        train_curve curve;
    } of[MOST_REFERENCES];
} references;

/* With the same batch, optimizer, adapters and types. */
static bool same_but_for_ranks(const sm_train_setup *a, const sm_train_setup *b) {
    return a->sequences == b->sequences && a->optimizer == b->optimizer && a->stored == b->stored &&
           a->gradients == b->gradients && a->rounded == b->rounded &&
           a->rules.lora == b->rules.lora && a->rules.targets == b->rules.targets;
}

static const train_curve *one_rank(references *r, const drawn_model *m, const job *j) {
    const sm_train_setup *s = &j->setup;
    for (int i = 0; i < r->n; i++)
        if (same_but_for_ranks(&r->of[i].setup, s)) return &r->of[i].curve;
    assert_true(r->n < MOST_REFERENCES);
    struct reference *new = &r->of[r->n++];
    new->setup = drawn_reference(m, s);
    train_curve_on_threads(&new->setup, STEPS, &new->curve);
    if (new->curve.status) fail_msg("%s on one rank", m->name);
    sm_train_setup exact;
    train_curve c;
    if (!drawn_exact(&new->setup, &exact)) return &new->curve;
    train_curve_on_threads(&exact, STEPS, &c); /* how far rounding alone takes it */
    new->curve.rounding = train_norms_apart(&new->curve, &c);
    return &new->curve;
}

/* ---- one cell ---- */

/* Of each model, and of which of them: in the suite every third trains, and the next is served. */
static int plans_of_each(void) {
    const char *more = getenv("MATRIX");
    return more ? atoi(more) : 1;
}

static bool is_left_out(const drawn_model *m, int number) {
    const char *only = getenv("MATRIX_MODEL");
    if (only) return strcmp(only, m->name) != 0;
    return !getenv("MATRIX") && number % (SANITIZED ? 9 : 3);
}

typedef struct tally {
    int ran, refused, wrong;
} tally;

static bool is_a_sentence(const sm_error *err) {
    size_t n = strlen(err->sentence);
    return err->status == SM_BAD_INPUT && n > 10 && n < 300 && !strchr(err->sentence, '\n');
}

/* Memory and bytes of the busiest stage, as told and as counted. */
static int compare_with_price(const drawn_model *m, const char *words, const job *j,
                              const train_curve *c) {
    int wrong = 0;
    double told = j->memory.total, apart = fabs(told / c->memory - 1);
    /* of small arrays padding and tables count; a product of up to four rows converts no panels */
    double slack = 4096 + (j->setup.stored ? 4.0 * m->model.V * m->model.D : 0);
    if (apart > 0.1 && fabs(told - c->memory) > slack) {
        print_message("%s, %s: %.0f bytes of memory for %.0f\n", m->name, words, c->memory, told);
        wrong = 1;
    }
    /* what two stages hold both is told as messages (tied), or not yet (dualpipe) */
    bool twice =
        j->plan.pipeline > 1 && (m->model.tied || j->plan.schedule == SM_SCHEDULE_DUALPIPE);
    for (int k = 0; k < SM_COLLECTIVE_COUNT && !twice; k++) {
        double counted = c->of_stage[j->stage][k], share = 1e-3; /* of layers as a mean of all */
        /* hand-overs are told as sent both ways by each stage, and held to the run's own */
        if (k == SM_PERMUTE || fabs(counted - j->bytes[k]) <= share * counted) continue;
        print_message("%s, %s: %.0f bytes of %s for %.0f\n", m->name, words, counted,
                      sm_collective_name((sm_collective)k), j->bytes[k]);
        wrong = 1;
    }
    return wrong;
}

static void run_cell(const drawn_model *m, const char *words, references *r, tally *all) {
    static train_curve c;
    sm_error err = {.status = SM_OK};
    job j = {.arena = sm_arena_new()};
    assert_non_null(j.arena);
    sm_status status = read_job(m, words, &j, &err);
    if (status) {
        all->refused++;
        all->wrong += !is_a_sentence(&err);
        if (!is_a_sentence(&err) || getenv("MATRIX_TELL"))
            print_message("%s, %s: refused: %s\n", m->name, words, err.sentence);
    } else {
        const train_plan plan = {.words = words};
        const train_curve *one = one_rank(r, m, &j);
        train_curve_on_threads(&j.setup, STEPS, &c);
        /* what the lowerings alone show the ranks refuse as they begin */
        bool late = c.status == SM_BAD_INPUT && strstr(c.err.sentence, "cannot be run");
        all->refused += late;
        all->ran += !late;
        if (!late)
            all->wrong +=
                train_curve_compare(&plan, one, &c) || compare_with_price(m, words, &j, &c);
    }
    sm_arena_free(j.arena);
}

/* ---- generating: the scores behind prompts of different lengths, and of what follows ---- */

enum { TEXTS = 5, LONGEST = 5, BEHIND = 3, MOST_SEQUENCES = 12, MOST_WORDS = 260 };

typedef struct scores {
    float of[1 + BEHIND][MOST_SEQUENCES * MOST_WORDS]; /* rows of the vocabulary */
} scores;

typedef struct asked {
    const sm_train_setup *setup;
    scores scores;
    double apart; /* bytes, on all ranks */
} asked;

/* Numbers that follow from a weight's name and place alone. */
static sm_status find_weight(sm_train_array *a, void *context, sm_error *err) {
    sm_arena *arena = context;
    uint64_t seed = (uint64_t)a->layer + 7;
    size_t n = 1;
    for (const char *c = a->name; *c; c++) seed = (seed ^ (unsigned char)*c) * 1099511628211ull;
    for (int d = 0; d < a->rank; d++) n *= a->cut ? a->count[d] : a->size[d];
    float *data = sm_arena_array(arena, n, sizeof *data);
    if (!data) return sm_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        size_t rest = i, at = 0, stride = 1;
        for (int d = a->rank - 1; d >= 0; d--) { /* its place in the whole */
            size_t count = a->cut ? a->count[d] : a->size[d];
            at += stride * (rest % count + (a->cut ? a->from[d] : 0));
            rest /= count;
            stride *= a->size[d];
        }
        sm_rng rng = {seed + 0x9E3779B97F4A7C15ull * at};
        data[i] = (float)((sm_rng_unit(&rng) - 0.5) * 0.6 + a->norm);
    }
    a->data = data;
    return SM_OK;
}

static int32_t word_of(size_t sequence, size_t place) {
    return (int32_t)((31 * sequence + 57 * place + 5 * place * place) % 256);
}

static sm_status ask(sm_generator *g, scores *to, double *apart, sm_error *err) {
    const sm_generator_size size = sm_generator_size_of(g);
    static const size_t length[TEXTS] = {3, LONGEST, 1, 2, 4};
    size_t count[MOST_SEQUENCES], rows = LONGEST;
    int32_t token[MOST_SEQUENCES * 64];
    sm_generator_result r = {.seconds = 0};
    sm_status status = SM_OK;
    if (size.sequences > MOST_SEQUENCES || size.vocabulary > MOST_WORDS || size.source > 64)
        return sm_fail(err, SM_INTERNAL, "there is no room for this model");
    if (size.source) { /* what it reads; it writes behind a word */
        for (size_t s = 0; s < size.sequences; s++) {
            count[s] = size.listens ? size.source : 1 + s % size.source;
            for (size_t i = 0; i < size.source; i++) token[s * size.source + i] = word_of(s, i);
        }
        status = read_all(g, token, count, &r, err);
        rows = 1;
    }
    for (size_t at = 0; !status && at <= BEHIND; at++, rows = 1) {
        for (int k = 0; k < SM_COLLECTIVE_COUNT; k++)
            *apart += fabs(r.bytes_predicted[k] - r.bytes_counted[k]);
        for (size_t s = 0; s < size.sequences; s++) {
            size_t long_ago = at ? length[s % TEXTS] + at - 1 : 0;
            count[s] = rows < length[s % TEXTS] ? rows : length[s % TEXTS];
            for (size_t i = 0; i < rows; i++) token[s * rows + i] = word_of(s, long_ago + i);
        }
        const sm_generator_pass pass = {rows, token, count, false};
        float *made = to->of[at];
        status = sm_generator_feed(g, &pass, made, &r, err);
        if (!status) /* rows of V numbers */
            status = sm_generator_share(g, made, size.vocabulary * sizeof *made, err);
    }
    return status;
}

static sm_status ask_rank(sm_communicator *world, void *context, sm_error *err) {
    asked *q = context;
    sm_generator *g = NULL;
    sm_arena *arena = sm_arena_new();
    scores *own = sm_arena_array(arena, 1, sizeof *own);
    double apart = 0;
    sm_status status = own ? SM_OK : sm_fail_memory(err);
    if (!status) status = sm_generator_new(world, q->setup, NULL, &g, err);
    if (!status) status = sm_generator_load(g, find_weight, arena, err);
    if (!status) status = ask(g, own, &apart, err);
    if (!status) status = sm_run_all_reduce(world, &apart, 1, SM_ELEMENT_F64, err);
    if (!status && world->rank == 0) {
        q->scores = *own;
        q->apart = apart;
    }
    sm_generator_free(g);
    sm_arena_free(arena);
    return status;
}

static sm_status read_served(const drawn_model *m, const char *words, sm_arena *arena,
                             serving_model *to, sm_error *err) {
    const sm_source source = sm_source_of("--plan", words);
    const cli_call call = {.arena = arena};
    sm_plan plan;
    err->status = SM_OK;
    sm_serve_plan_defaults(&plan);
    *to = (serving_model){.model = m->model};
    sm_status status = *words ? sm_serve_plan_parse(&source, &plan, err) : SM_OK;
    if (!status) status = serving_plan_as_run(&plan, err);
    return status ? status : serving_model_lay_out(&call, &plan, LONGEST + BEHIND, TEXTS, to, err);
}

static bool same_scores(const asked *one, const asked *q, size_t words) {
    for (size_t at = 0; at <= BEHIND; at++)
        for (size_t i = 0; i < TEXTS * words; i++) {
            double a = (double)one->scores.of[at][i], b = (double)q->scores.of[at][i];
            if (!(fabs(a - b) <= 1e-4 * fmax(1, fabs(a)))) {
                print_message("pass %zu, text %zu, word %zu: %g for %g\n", at, i / words, i % words,
                              b, a);
                return false;
            }
        }
    return true;
}

static void serve_cell(const drawn_model *m, const char *words, const asked *one, asked *q,
                       tally *all) {
    sm_error err = {.status = SM_OK};
    serving_model served;
    sm_arena *arena = sm_arena_new();
    assert_non_null(arena);
    sm_status status = read_served(m, words, arena, &served, &err);
    q->setup = &served.setup;
    bool refused = status != SM_OK;
    if (!status) status = sm_run_threads(sm_train_setup_ranks(&served.setup), ask_rank, q, &err);
    refused = refused || (status == SM_BAD_INPUT && strstr(err.sentence, "does not divide"));
    all->refused += refused;
    all->ran += !refused;
    bool wrong = refused ? !is_a_sentence(&err) : status != SM_OK;
    if (!status) wrong = q->apart > 0 || (one && !same_scores(one, q, (size_t)m->model.V));
    all->wrong += wrong;
    if (wrong || (refused && getenv("MATRIX_TELL")))
        print_message("%s, served under %s: %s (bytes apart by %g)\n", m->name, words,
                      status ? err.sentence : "wrong", q->apart);
    sm_arena_free(arena);
}

static void served_plans_of_every_family_are_equal(void **state) {
    static drawn_model model[DRAWN_MODELS];
    static asked one, q;
    const char *given = getenv("MATRIX_PLAN");
    int models = drawn_models(model, DRAWN_MODELS), each = plans_of_each();
    tally all = {0, 0, 0};
    sm_rng rng = {drawn_from(21)};
    for (int i = 0; i < models; i++) {
        tally alone = {0, 0, 0};
        if (is_left_out(&model[i], i + 1) || !model[i].model.causal) continue;
        serve_cell(&model[i], "", NULL, &one, &alone);
        all.wrong += alone.wrong;
        for (int k = 0; k < each; k++) {
            char words[DRAWN_WORDS];
            draw_serving(&model[i].model, &rng, words);
            if (given) snprintf(words, sizeof words, "%s", given);
            serve_cell(&model[i], words, &one, &q, &all);
        }
    }
    print_message("%d plans of serving ran, %d were refused, %d are wrong\n", all.ran, all.refused,
                  all.wrong);
    assert_int_equal(all.wrong, 0);
}

/* What was once told otherwise than it was moved: a row that is filled up is one of several
 * classes of weights; a third of a gradient is not a whole number of halves; a table of distances
 * travels to each layer that reads it, and not once more. */
static void plans_once_wrong_are_equal(void **state) {
    static const char *const cell[][2] = {
        {"falcon_h1", "data=6,microbatch=1,zero=1,state_copies=2"},
        {"gpt_oss", "data=2,expert=4,recompute=none,norms=separate"},
        {"phi3", "data=3,fsdp=2,microbatch=1,lora=2,targets=qv"},
        {"t5", "fsdp=2"},
        {"mt5", "fsdp=4,tensor=2"},
        {"t5", "data=2,zero=0"},
        {"t5", "tensor=2,context=2,context_by=heads"},
    };
    static drawn_model model[DRAWN_MODELS];
    static references r;
    int models = drawn_models(model, DRAWN_MODELS);
    tally all = {0, 0, 0};
    for (size_t k = 0; k < sizeof cell / sizeof *cell; k++)
        for (int i = 0; i < models; i++) {
            r.n = 0;
            if (strcmp(model[i].name, cell[k][0]) == 0) run_cell(&model[i], cell[k][1], &r, &all);
        }
    assert_int_equal(all.ran, (int)(sizeof cell / sizeof *cell));
    assert_int_equal(all.wrong, 0);
}

static void plans_of_every_family_are_equal(void **state) {
    static drawn_model model[DRAWN_MODELS];
    static references r;
    const char *given = getenv("MATRIX_PLAN");
    int models = drawn_models(model, DRAWN_MODELS), each = plans_of_each();
    tally all = {0, 0, 0};
    sm_rng rng = {drawn_from(20)};
    assert_true(models > 50);
    for (int i = 0; i < models; i++) {
        r.n = 0;
        if (is_left_out(&model[i], i)) continue;
        for (int k = 0; k < each; k++) {
            char words[DRAWN_WORDS];
            draw_training(&model[i].model, &rng, words);
            if (given) snprintf(words, sizeof words, "%s", given);
            run_cell(&model[i], words, &r, &all);
        }
    }
    print_message("%d plans of %d families ran, %d were refused, %d are wrong\n", all.ran, models,
                  all.refused, all.wrong);
    assert_int_equal(all.wrong, 0);
    assert_true(all.ran > all.refused); /* or the draws are absurd */
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_once_wrong_are_equal),
                                       cmocka_unit_test(plans_of_every_family_are_equal),
                                       cmocka_unit_test(served_plans_of_every_family_are_equal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
