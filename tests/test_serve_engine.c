/* The engine of run serve: whatever the plan, the policy, the size of its cache and who else is
 * served, each client gets the text that generating its prompt alone gives. */
#include "unit.h"
#include <stdio.h>
#include <string.h>

#include "../src/cli/run/serve_engine.h"
#include "kept_weights.h"
#include "model_of.h"

enum { WORDS = 256, TEXTS = 12, ROOM = 64, PAGE = 4 };

/* ---- texts one by one ---- */

/* Some begin alike, one beyond a page, so that a prefix cache finds something. */
static const char *const prompts[TEXTS] = {"a plan is",
                                           "The p",
                                           "o",
                                           "program and its ",
                                           "zz ",
                                           "program and i",
                                           "a plan is not",
                                           "The",
                                           "program an",
                                           "q",
                                           "program and ",
                                           "a plan is not a pla"};
static const int longest[TEXTS] = {9, 20, 1, 12, 5, 17, 3, 30, 8, 2, 14, 22};

typedef struct alone {
    const kept *kept;
    sm_train_setup setup;
    int32_t text[TEXTS][ROOM];
} alone;

static sm_status write_one(sm_generator *g, int i, double temperature, int32_t *text,
                           sm_error *err) {
    size_t n = strlen(prompts[i]);
    sm_generate_result result;
    for (size_t c = 0; c < n; c++) text[c] = (unsigned char)prompts[i][c];
    const sm_generate_job job = {.target = g,
                                 .sequences = 1,
                                 .words = WORDS,
                                 .prompt = &n,
                                 .tokens = (size_t)longest[i],
                                 .temperature = temperature,
                                 .seed = (uint64_t)i + 3};
    sm_generator_rewind(g, 0, 0);
    return sm_generate(&job, &text, &result, err);
}

/* Odd ones are drawn, the others take the best word. */
static double heat_of(int i) { return i % 2 ? 0.8 : 0; }

static sm_status write_alone(sm_communicator *world, void *context, sm_error *err) {
    alone *a = context;
    sm_generator *g = NULL;
    sm_status status = sm_generator_new(world, &a->setup, NULL, &g, err);
    if (!status) status = sm_generator_load(g, find, (void *)(uintptr_t)a->kept, err);
    for (int i = 0; !status && i < TEXTS; i++)
        status = write_one(g, i, heat_of(i), a->text[i], err);
    sm_generator_free(g);
    return status;
}

/* ---- the engine ---- */

typedef struct client {
    serve_request *q;
    int32_t text[ROOM];
    size_t made;
    serve_end end;
} client;

typedef struct served {
    const kept *kept;
    sm_train_setup setup;
    sm_simulation options;
    sm_engine memory;
    sm_generator_pages pages;
    serve_desk desk;
    client client[TEXTS];
    serve_engine_result result;
    int gone;         /* this client leaves; -1: none */
    const char *stop; /* of all */
    int left;
    double broadcasts; /* to all ranks, of the first */
} served;

static double no_time(void *context, double n, double cached, double prefill, double attended) {
    return 0;
}

static sm_status load(sm_generator *g, void *context, sm_error *err) {
    return sm_generator_load(g, find, (void *)(uintptr_t)((served *)context)->kept, err);
}

typedef struct telling {
    served *s;
    int i;
} telling;
static telling told[TEXTS];

static void tell(void *context) {
    const telling *t = context;
    client *c = &t->s->client[t->i];
    if (c->q->end == SERVE_GOES_ON) return;
    c->end = c->q->end;
    c->made = c->q->made;
    memcpy(c->text, c->q->token, (c->q->prompt + c->made) * sizeof *c->text);
    if (--t->s->left == 0) t->s->desk.closed = t->s->desk.stirred = true; /* it is locked */
}

/* All ask before the first step. */
static sm_status ask_all(void *context, sm_error *err) {
    served *s = context;
    s->left = TEXTS;
    for (int i = 0; i < TEXTS; i++) {
        int32_t prompt[ROOM];
        size_t n = strlen(prompts[i]);
        serve_request *q;
        for (size_t c = 0; c < n; c++) prompt[c] = (unsigned char)prompts[i][c];
        assert_int_equal(serve_request_new(prompt, n, (size_t)longest[i], &q, err), SM_OK);
        q->words = WORDS;
        q->temperature = heat_of(i);
        q->seed = (uint64_t)i + 3;
        if (s->stop) {
            q->stops = 1;
            q->stop_bytes[0] = q->longest_stop = strlen(s->stop);
            memcpy(q->stop[0], s->stop, q->longest_stop);
        }
        told[i] = (telling){s, i};
        q->tell = tell;
        q->context = &told[i];
        s->client[i] = (client){.q = q};
        assert_int_equal(serve_desk_put(&s->desk, q, -1), SERVE_TAKEN);
    }
    if (s->gone >= 0) {
        s->left--;
        serve_desk_leave(&s->desk, s->client[s->gone].q);
        s->client[s->gone].q = NULL;
    }
    return SM_OK;
}

static sm_status serve(sm_communicator *world, void *context, sm_error *err) {
    served *s = context;
    const serve_engine_job job = {.setup = &s->setup,
                                  .pages = s->pages,
                                  .options = &s->options,
                                  .desk = &s->desk,
                                  .load = load,
                                  .open = ask_all,
                                  .context = s};
    sm_status status = serve_engine_run(&job, world, &s->result, err);
    if (world->rank == 0) s->broadcasts = world->traffic.calls[SM_BROADCAST];
    return status;
}

static void make(served *s, const kept *k, const sm_train_setup *trained, const char *plan,
                 sm_policy policy, size_t pages, bool caches) {
    static train_line line;
    memset(s, 0, sizeof *s);
    s->kept = k;
    s->gone = -1;
    s->setup = *trained;
    s->setup.microbatch = 1;
    if (strncmp(plan, "pipeline", 8) == 0)
        assert_true(train_line_lay(SM_SCHEDULE_GPIPE, 2, 1, &s->setup, &line));
    else train_words_read(plan, &s->setup);
    int groups = s->setup.degree[SM_AXIS_DATA] * s->setup.degree[SM_AXIS_FSDP] *
                 s->setup.degree[SM_AXIS_EXPERT];
    s->setup.tokens = ROOM;
    s->setup.sequences = 5 * groups;
    s->pages = (sm_generator_pages){pages, PAGE};
    s->memory = (sm_engine){.step_s = no_time,
                            .kv_tokens = (double)(pages * PAGE),
                            .kv_bytes_per_token = 1,
                            .tokens_per_step = 1,
                            .chips = 1};
    sm_simulation_defaults(&s->options);
    s->options.engine = &s->memory;
    s->options.policy = policy;
    s->options.replicas = groups;
    s->options.most_batch = 5;
    s->options.chunk_tokens = 11;
    s->options.prefill_tokens = 40;
    s->options.page_tokens = PAGE;
    s->options.prefix_cache = caches;
}

static void run(served *s, const char *plan) {
    sm_error err = {.status = SM_OK};
    assert_int_equal(serve_desk_begin(&s->desk, TEXTS, &err), SM_OK);
    sm_status status = sm_run_threads(sm_train_setup_ranks(&s->setup), serve, s, &err);
    if (status) fail_msg("%s: %s", plan, err.sentence);
    if (s->result.bytes_apart > 0) fail_msg("%s: %g bytes apart", plan, s->result.bytes_apart);
    for (int i = 0; i < TEXTS; i++)
        if (s->client[i].q) serve_desk_leave(&s->desk, s->client[i].q);
    assert_int_equal(s->desk.open, 0);
    serve_desk_finish(&s->desk);
}

static double steps_of(const served *s) {
    double n = 0;
    for (int i = 0; i < SERVE_STEPS; i++) n += s->result.steps[i].n;
    return n;
}

static void expect_texts(const served *s, const alone *a, const char *plan) {
    for (int i = 0; i < TEXTS; i++) {
        if (i == s->gone) continue;
        const client *c = &s->client[i];
        size_t n = strlen(prompts[i]) + (size_t)longest[i];
        if (c->end != SERVE_LENGTH || c->made != (size_t)longest[i] ||
            memcmp(c->text, a->text[i], n * sizeof *c->text) != 0)
            fail_msg("%s: text %d is another than alone", plan, i);
    }
}

static void texts_are_those_of_each_alone(void **state) {
    static const char *const plans[] = {"",       "data=2",     "tensor=2",         "context=2",
                                        "fsdp=2", "pipeline=2", "expert=2,tensor=2"};
    static kept k;
    static alone a;
    static served s;
    sm_error err = {.status = SM_OK};
    double preemptions = 0, cached = 0, followed = 0;
    for (int kind = 0; kind < TRAIN_KINDS; kind++) {
        sm_model model = train_model((train_kind)kind, 2);
        sm_train_setup trained = train_setup_of(&model);
        trained.rate = 2e-2;
        train_on_one(&k, &trained, 25);
        a = (alone){.kept = &k, .setup = trained};
        a.setup.tokens = ROOM;
        a.setup.sequences = 1;
        expect_ok(sm_run_threads(1, write_alone, &a, &err), &err);
        for (size_t p = 0; p < sizeof plans / sizeof *plans; p++)
            for (int policy = 0; policy < SM_POLICY_DISAGGREGATED; policy++) {
                if (kind == TRAIN_DENSE && strstr(plans[p], "expert")) continue;
                if (SANITIZED && (p / 2 + (size_t)(policy + kind)) % 2) continue;
                bool caches = (p + (size_t)policy) % 2;
                size_t pages = policy == SM_POLICY_STATIC ? 40 : 12;
                make(&s, &k, &trained, plans[p], (sm_policy)policy, pages, caches);
                run(&s, plans[p]);
                expect_texts(&s, &a, plans[p]);
                preemptions += s.result.counted.preemptions;
                cached += s.result.counted.cached_tokens;
                followed += s.broadcasts - steps_of(&s) - 1;
            }
        drop(&k);
    }
    assert_true(preemptions > 0 && cached > 0 && followed > 0); /* larger steps: in two */
}

/* States of scans lie in slots, attention beside them in pages. */
static void scans_keep_their_states_apart(void **state) {
    static const char *const plans[] = {"", "tensor=2", "data=2"};
    static kept k;
    static alone a;
    static served s;
    sm_error err = {.status = SM_OK};
    sm_source source;
    assert_int_equal(
        sm_io_read("tests/cli/inputs/tiny-qwen3-next.json", models_arena(), &source, &err), SM_OK);
    sm_model model = model_of("tiny-qwen3-next", source.text);
    sm_train_setup trained = train_setup_of(&model);
    train_on_one(&k, &trained, 25);
    a = (alone){.kept = &k, .setup = trained};
    a.setup.tokens = ROOM;
    a.setup.sequences = 1;
    expect_ok(sm_run_threads(1, write_alone, &a, &err), &err);
    for (size_t p = 0; p < sizeof plans / sizeof *plans; p++) {
        make(&s, &k, &trained, plans[p], SM_POLICY_CHUNKED, 12, false);
        run(&s, plans[p]);
        expect_texts(&s, &a, plans[p]);
    }
    make(&s, &k, &trained, "", SM_POLICY_CHUNKED, 12, true);
    assert_int_equal(serve_desk_begin(&s.desk, TEXTS, &err), SM_OK);
    assert_int_equal(sm_run_threads(1, serve, &s, &err), SM_BAD_INPUT);
    assert_non_null(strstr(err.sentence, "no prefix cache"));
    serve_desk_finish(&s.desk);
    drop(&k);
}

static void who_leaves_disturbs_nobody(void **state) {
    static kept k;
    static alone a;
    static served s;
    sm_error err = {.status = SM_OK};
    sm_model model = train_model(TRAIN_DENSE, 2);
    sm_train_setup trained = train_setup_of(&model);
    train_on_one(&k, &trained, 25);
    a = (alone){.kept = &k, .setup = trained};
    a.setup.tokens = ROOM;
    a.setup.sequences = 1;
    expect_ok(sm_run_threads(1, write_alone, &a, &err), &err);
    make(&s, &k, &trained, "tensor=2", SM_POLICY_CHUNKED, 12, true);
    s.gone = 3;
    run(&s, "one leaves");
    expect_texts(&s, &a, "one leaves");
    assert_true(s.result.abandoned == 1);
    assert_true(s.broadcasts == steps_of(&s) + 1); /* each step in one, and the end */
    /* A stop ends each where it first appears, and is not in what is given. */
    make(&s, &k, &trained, "", SM_POLICY_CHUNKED, 40, true);
    s.stop = " ";
    run(&s, "stops");
    int stopped = 0;
    for (int i = 0; i < TEXTS; i++) {
        size_t n = strlen(prompts[i]), at = 0;
        while (at < (size_t)longest[i] && a.text[i][n + at] != ' ') at++;
        assert_int_equal(s.client[i].made, at);
        assert_int_equal(s.client[i].end, at < (size_t)longest[i] ? SERVE_STOP : SERVE_LENGTH);
        stopped += at < (size_t)longest[i];
    }
    assert_true(stopped > 0 && s.result.stopped == stopped);
    drop(&k);
}

static void a_full_desk_takes_nothing(void **state) {
    serve_desk desk;
    sm_error err = {.status = SM_OK};
    serve_request *q[3];
    const int32_t one = 1;
    assert_int_equal(serve_desk_begin(&desk, 2, &err), SM_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(serve_request_new(&one, 1, 4, &q[i], &err), SM_OK);
        assert_int_equal(serve_desk_put(&desk, q[i], -1), i < 2 ? SERVE_TAKEN : SERVE_FULL);
    }
    assert_true(serve_desk_take(&desk) == q[0] && q[0]->next == q[1]);
    serve_desk_give(&desk, q[0], 5, 1);
    serve_desk_end(&desk, q[0], SERVE_LENGTH, 1);
    assert_int_equal(serve_desk_put(&desk, q[2], -1), SERVE_TAKEN);
    serve_desk_close(&desk, false);
    serve_request *late;
    assert_int_equal(serve_request_new(&one, 1, 4, &late, &err), SM_OK);
    assert_int_equal(serve_desk_put(&desk, late, -1), SERVE_CLOSED);
    serve_request_free(late);
    serve_desk_leave(&desk, q[0]);
    serve_desk_leave(&desk, q[1]); /* freed by whoever is last */
    assert_true(serve_desk_is_gone(&desk, q[1]));
    serve_desk_end(&desk, q[1], SERVE_ABANDONED, 1);
    serve_desk_end(&desk, q[2], SERVE_ABANDONED, 1);
    serve_desk_leave(&desk, q[2]);
    assert_int_equal(desk.open, 0);
    serve_desk_finish(&desk);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_those_of_each_alone),
        cmocka_unit_test(scans_keep_their_states_apart),
        cmocka_unit_test(who_leaves_disturbs_nobody),
        cmocka_unit_test(a_full_desk_takes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
