/* Pipelines that hold weights twice: the model under dualpipe, a tied embedding that the stages
 * part. Losses are those of one rank, bytes those predicted, and both holders stay equal to the
 * last bit. */
#include "unit.h"
#include <stdio.h>
#include <string.h>

#include "scalemodel/run_train.h"
#include "train_plans.h"

/* ---- a tied embedding ---- */

static const train_plan tied[] = {
    {"micro=1", SM_SCHEDULE_GPIPE, 2, 1},
    {"micro=1", SM_SCHEDULE_1F1B, 4, 1},
    {"micro=1,recompute=3", SM_SCHEDULE_1F1B, 2, 1},
    {"micro=1", SM_SCHEDULE_INTERLEAVED, 2, 2},
    {"micro=1", SM_SCHEDULE_ZB_H1, 2, 1},
    {"micro=1,data=2", SM_SCHEDULE_1F1B, 2, 1},
    {"micro=1,data=2,zero=1", SM_SCHEDULE_1F1B, 2, 1},
    {"micro=1,data=2,zero=2", SM_SCHEDULE_ZB_H1, 2, 1},
    {"micro=1,fsdp=2,zero=3", SM_SCHEDULE_1F1B, 2, 1},
    {"micro=1,tensor=2,seq", SM_SCHEDULE_1F1B, 2, 1},
    {"micro=1,tensor=2,context=2,zero=1", SM_SCHEDULE_1F1B, 2, 1},
    /* both on one stage */
    {"micro=1,zero=2,data=2", SM_SCHEDULE_ZB_V, 2, 2},
    {"micro=1", SM_SCHEDULE_DUALPIPE, 2, 2},
    {"micro=1,data=2,zero=1", SM_SCHEDULE_DUALPIPE, 2, 2},
    {"micro=1,data=2,zero=2", SM_SCHEDULE_DUALPIPE, 2, 2},
    {"micro=1,tensor=2,seq", SM_SCHEDULE_DUALPIPE, 4, 2},
};
enum { TIED = sizeof tied / sizeof *tied };

static void job_of(const train_plan *plan, train_kind kind, bool is_tied, train_job *job) {
    assert_true(train_job_of(plan, kind, job));
    if (is_tied) job->model = train_model_with(kind, job->model.L, TRAIN_TIED);
}

static void parted_ties_train_alike(void **state) {
    for (int kind = 0; kind < TRAIN_KINDS; kind++) {
        train_curve one, c;
        sm_model model = train_model_with((train_kind)kind, 4, TRAIN_TIED);
        int wrong = 0;
        sm_train_setup base = train_setup_of(&model);
        train_curve_on_threads(&base, TRAIN_STEPS, &one);
        for (int i = 0; i < TIED; i += (SANITIZED ? 3 : 1) + 2 * kind) {
            static train_job job;
            job_of(&tied[i], (train_kind)kind, true, &job);
            train_curve_on_threads(&job.setup, TRAIN_STEPS, &c);
            wrong += train_curve_compare(&tied[i], &one, &c);
        }
        assert_int_equal(wrong, 0);
    }
}

/* ---- both holders ---- */

enum { MOST_RANKS = 16, MOST_NUMBERS = 12 };
typedef struct seen {
    const sm_train_setup *setup;
    uint64_t mark[MOST_RANKS][8][MOST_NUMBERS]; /* of layer + 1; 0: not there */
    size_t offset[MOST_RANKS][8][MOST_NUMBERS][SM_MAX_RANK];
} seen;

static size_t count_of(const sm_train_weight *w) {
    size_t n = 1;
    for (int d = 0; d < w->rank; d++) n *= w->size[d];
    return n;
}

/* Of all bits, in order. */
static uint64_t mark_of(const sm_train_weight *w) {
    uint64_t mark = 14695981039346656037u;
    size_t n = count_of(w);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &w->value[i], sizeof bits);
        mark = (mark ^ bits) * 1099511628211u;
    }
    return mark;
}

static sm_status look(sm_communicator *world, void *context, sm_error *err) {
    seen *s = context;
    sm_trainer *t = NULL;
    int layers = s->setup->model->L;
    sm_status status = sm_trainer_new(world, s->setup, &t, err);
    for (int i = 0; !status && i < 3; i++) {
        sm_train_result r;
        status = sm_trainer_step(t, i, &r, err);
    }
    sm_train_weight w;
    for (int layer = -1; !status && layer <= layers; layer++)
        for (int k = 0; sm_trainer_weight(t, layer, k, &w); k++) {
            if (k == MOST_NUMBERS)
                return sm_fail(err, SM_INTERNAL, "weight %d of layer %d is too much", k, layer);
            s->mark[world->rank][layer + 1][k] = mark_of(&w);
            memcpy(s->offset[world->rank][layer + 1][k], w.offset, sizeof w.offset);
        }
    sm_trainer_free(t);
    return status;
}

static seen *look_at(const sm_train_setup *setup) {
    static seen s;
    sm_error err = {.status = SM_OK};
    s = (seen){.setup = setup};
    int ranks = sm_train_setup_ranks(setup);
    assert_true(ranks <= MOST_RANKS && setup->model->L + 2 <= 8);
    if (sm_run_threads(ranks, look, &s, &err)) print_message("%s\n", err.sentence);
    assert_int_equal(err.status, SM_OK);
    return &s;
}

/* Pairs of ranks that hold the same part of a weight. */
static int equal_pairs(const seen *s, int layer, int number) {
    int pairs = 0, ranks = sm_train_setup_ranks(s->setup);
    for (int a = 0; a < ranks; a++)
        for (int b = a + 1; b < ranks; b++) {
            uint64_t x = s->mark[a][layer + 1][number], y = s->mark[b][layer + 1][number];
            const size_t *at = s->offset[a][layer + 1][number];
            if (!x || !y ||
                memcmp(at, s->offset[b][layer + 1][number], sizeof s->offset[b][layer + 1][number]))
                continue;
            assert_true(x == y);
            pairs++;
        }
    return pairs;
}

static void both_copies_stay_equal(void **state) {
    static const train_plan plans[] = {{"micro=1", SM_SCHEDULE_DUALPIPE, 4, 2},
                                       {"micro=1,data=2,zero=1", SM_SCHEDULE_DUALPIPE, 2, 2},
                                       {"micro=1,data=2,zero=2", SM_SCHEDULE_DUALPIPE, 2, 2},
                                       {"micro=1,tensor=2,seq", SM_SCHEDULE_DUALPIPE, 2, 2},
                                       {"micro=1,fsdp=2,zero=3", SM_SCHEDULE_DUALPIPE, 2, 2}};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        for (int kind = 0; kind < TRAIN_KINDS; kind++) {
            static train_job job;
            job_of(&plans[i], (train_kind)kind, false, &job);
            const seen *s = look_at(&job.setup);
            for (int layer = -1; layer <= job.model.L; layer++)
                for (int k = 0; k < MOST_NUMBERS; k++) {
                    bool there = false;
                    for (int r = 0; r < MOST_RANKS; r++) there |= s->mark[r][layer + 1][k] != 0;
                    if (there) assert_true(equal_pairs(s, layer, k) > 0);
                }
        }
}

/* The embedding is a layer of one weight; the head's matrix comes after its norm. */
static void parted_ties_stay_equal(void **state) {
    for (int i = 0; i < TIED; i++) {
        static train_job job;
        job_of(&tied[i], TRAIN_DENSE, true, &job);
        const seen *s = look_at(&job.setup);
        int pairs = 0, ranks = sm_train_setup_ranks(&job.setup), head = job.model.L + 1;
        for (int a = 0; a < ranks; a++)
            for (int b = 0; b < ranks; b++) {
                uint64_t x = s->mark[a][0][0], y = s->mark[b][head][1];
                const size_t *at = s->offset[a][0][0], *other = s->offset[b][head][1];
                if (!x || !y || at[0] != other[1] || at[1] != other[0]) continue;
                assert_true(x == y);
                pairs++;
            }
        assert_true(pairs > 0);
    }
}

/* ---- rows of numbers that do not divide over the ranks that share them out ---- */

static void odd_rows_are_filled_up(void **state) {
    static const train_plan plans[] = {{.words = "data=3,zero=1,micro=4"},
                                       {.words = "data=3,zero=2,micro=2"},
                                       {.words = "data=3,tensor=2,seq,zero=1,micro=4"},
                                       {"data=3,zero=1,micro=1", SM_SCHEDULE_DUALPIPE, 2, 2},
                                       {"data=3,zero=2,micro=1", SM_SCHEDULE_DUALPIPE, 2, 2},
                                       {"data=3,micro=1", SM_SCHEDULE_DUALPIPE, 2, 2},
                                       {"data=3,zero=1,micro=2", SM_SCHEDULE_1F1B, 2, 1}};
    for (int kind = 0; kind < TRAIN_KINDS; kind++) {
        int wrong = 0;
        train_curve one, c;
        sm_model model =
            train_model_with((train_kind)kind, 4, kind == TRAIN_DENSE ? TRAIN_TIED : "");
        sm_train_setup base = train_setup_of(&model);
        base.sequences = base.microbatch = 12;
        train_curve_on_threads(&base, TRAIN_STEPS, &one);
        for (size_t i = TRAIN_FIRST; i < sizeof plans / sizeof *plans; i += TRAIN_EVERY) {
            static train_line line;
            const train_plan *p = &plans[i];
            sm_train_setup setup = base;
            train_words_read(p->words, &setup);
            if (p->stages)
                assert_true(
                    train_line_lay(p->schedule, p->stages, p->chunks_per_stage, &setup, &line));
            train_curve_on_threads(&setup, TRAIN_STEPS, &c);
            wrong += train_curve_compare(p, &one, &c);
        }
        assert_int_equal(wrong, 0);
    }
}

/* ---- refused ---- */

static void refuses(const sm_train_setup *setup, const char *sentence) {
    sm_error err = {.status = SM_OK};
    assert_int_equal(sm_train_setup_check(setup, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, sentence);
}

static void odd_copies_are_refused(void **state) {
    static train_job job;
    job_of(&(train_plan){"micro=1", SM_SCHEDULE_DUALPIPE, 4, 2}, TRAIN_DENSE, false, &job);
    sm_error err = {.status = SM_OK};
    assert_int_equal(sm_train_setup_check(&job.setup, &err), SM_OK);
    job.setup.copies = 3;
    refuses(&job.setup, "a pipeline holds the model once or twice, not 3 times");
    job.setup.copies = 2;
    job.line.chunk[5].last++;
    refuses(&job.setup,
            "two copies of the model need their stages in pairs that hold the same layers");
    job.line.chunk[5].last--;
    job.line.chunk[4].stage = 0;
    refuses(&job.setup,
            "two copies of the model need their stages in pairs that hold the same layers");
    job.line.chunk[4].stage = 3;
    job.setup.sequences /= 2; /* fewer microbatches than the stages were laid out for */
    refuses(&job.setup, "stage 0 is to work on microbatch 4 of 4 and chunk 7 of 8");
    job.setup.sequences = 9;
    refuses(&job.setup, "9 microbatches do not halve over two copies of the model");
    job.setup.chunks = 0;
    job.setup.stages = 1;
    refuses(&job.setup, "a pipeline holds the model once or twice, not 2 times");
}

static sm_status make(sm_communicator *world, void *context, sm_error *err) {
    sm_trainer *t = NULL;
    sm_status status = sm_trainer_new(world, context, &t, err);
    sm_trainer_free(t);
    return status;
}

static void unknown_ops_are_refused(void **state) {
    sm_model model = train_model(TRAIN_DENSE, 2);
    sm_train_setup setup = train_setup_of(&model);
    sm_error err = {.status = SM_OK};
    setup.recompute_ops = "h+c.2+q";
    assert_int_equal(sm_run_threads(1, make, &setup, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "recompute names \"c.2\", which no layer has");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parted_ties_train_alike), cmocka_unit_test(both_copies_stay_equal),
        cmocka_unit_test(parted_ties_stay_equal),  cmocka_unit_test(odd_rows_are_filled_up),
        cmocka_unit_test(odd_copies_are_refused),  cmocka_unit_test(unknown_ops_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
