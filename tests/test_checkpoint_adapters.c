/* A checkpoint with adapters, as a training writes it, generated from: its scores are those of the
 * training, on one rank and on several. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "scalemodel/run_generate.h"
#include "train_checkpoint.h"
#include "train_plans.h"
#include "unit.h"

enum { TOKENS = 12, WORDS = 256, STEPS = 6 };
/* Sequences begin at byte 0 or 1 of it. */
static const unsigned char short_text[TOKENS + 2] = "the cache tel";

static char path[64];

typedef struct job {
    sm_train_setup setup;
    const sm_safetensors *file;
    int first; /* byte of the text that is scored */
    double loss, apart;
} job;

/* Trains and writes; the loss is that of the step behind the last. */
static sm_status train(sm_communicator *world, void *context, sm_error *err) {
    job *j = context;
    sm_trainer *t = NULL;
    sm_train_result r = {.loss = 0};
    const train_checkpoint_place to = {.path = path, .keep = 1};
    sm_status status = sm_trainer_new(world, &j->setup, &t, err);
    for (int i = 0; !status && i < STEPS; i++) status = sm_trainer_step(t, i, &r, err);
    if (!status) status = train_checkpoint_write(t, world, j->setup.model, &to, err);
    if (!status) status = sm_trainer_gradients(t, STEPS, &r, err);
    j->loss = r.loss;
    sm_trainer_free(t);
    return status;
}

static sm_status score(sm_communicator *world, void *context, sm_error *err) {
    job *j = context;
    sm_generator *g = NULL;
    static _Thread_local float scores[4 * TOKENS * WORDS];
    int32_t word[4 * TOKENS];
    size_t count[4] = {TOKENS, TOKENS, TOKENS, TOKENS};
    for (int i = 0; i < 4 * TOKENS; i++) word[i] = short_text[j->first + i % TOKENS];
    sm_generator_result r = {.seconds = 0};
    sm_status status = sm_generator_new(world, &j->setup, NULL, &g, err);
    if (!status) status = train_checkpoint_take_weights(g, j->setup.model, j->file, path, err);
    const sm_generator_pass pass = {TOKENS, word, count, true};
    if (!status) status = sm_generator_feed(g, &pass, scores, &r, err);
    sm_generator_free(g);
    if (status || world->rank) return status;
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++)
        j->apart += fabs(r.bytes_predicted[i] - r.bytes_counted[i]);
    for (int i = 0; i < TOKENS; i++) {
        double sum = 0;
        for (int v = 0; v < WORDS; v++) sum += exp((double)scores[i * WORDS + v]);
        j->loss += log(sum) - (double)scores[i * WORDS + short_text[j->first + i + 1]];
    }
    j->loss /= TOKENS;
    return SM_OK;
}

static void run(sm_rank_body body, job *j) {
    sm_error err = {.status = SM_OK};
    if (sm_run_threads(sm_train_setup_ranks(&j->setup), body, j, &err))
        fail_msg("%s", err.sentence);
}

static sm_train_setup setup_of(const sm_model *model, int lora) {
    sm_train_setup s = train_setup_of(model);
    s.tokens = TOKENS;
    s.sequences = s.microbatch = 1;
    s.data = short_text;
    s.data_bytes = sizeof short_text;
    s.rate = 0.1;
    s.rules.lora = lora;
    return s;
}

/* The loss of the text that the training drew, which is one of two. */
static double nearest(const sm_train_setup *s, const sm_safetensors *file, double loss) {
    double best = INFINITY;
    for (int first = 0; first < 2; first++) {
        job j = {.setup = *s, .file = file, .first = first};
        run(score, &j);
        assert_true(j.apart == 0);
        if (fabs(j.loss - loss) < fabs(best - loss)) best = j.loss;
    }
    return best;
}

static void scores_are_those_of_the_training(void **state) {
    static const struct {
        int axis, sequences;
    } split[] = {{SM_AXIS_TENSOR, 1}, {SM_AXIS_FSDP, 2}, {SM_AXIS_EXPERT, 2}};
    sm_error err;
    strcpy(path, "/tmp/adapters.XXXXXX");
    int made = mkstemp(path);
    assert_true(made >= 0 && close(made) == 0);
    for (int kind = 0; kind < TRAIN_KINDS; kind++) {
        sm_model model = train_model((train_kind)kind, 2);
        job trained = {.setup = setup_of(&model, 4)}, plain = {.setup = setup_of(&model, 0)};
        sm_safetensors file;
        run(train, &trained);
        sm_arena *arena = sm_arena_new();
        if (sm_io_safetensors_read(path, arena, &file, &err)) fail_msg("%s", err.sentence);
        double one = nearest(&plain.setup, &file, trained.loss);
        assert_true(fabs(one - trained.loss) < 1e-5);
        for (int i = 0; i < 3; i++) {
            if (kind == TRAIN_DENSE && split[i].axis == SM_AXIS_EXPERT) continue;
            sm_train_setup s = plain.setup;
            s.degree[split[i].axis] = 2;
            s.sequences = split[i].sequences;
            assert_true(fabs(nearest(&s, &file, trained.loss) - one) < 1e-5);
        }
        /* it learned something: without adapters the loss is another */
        for (size_t i = 0; i < file.n; i++) {
            char *name = strstr((char *)(uintptr_t)file.tensor[i].name, ".lora_");
            if (name) name[6] = 'X';
        }
        assert_true(fabs(nearest(&plain.setup, &file, trained.loss) - trained.loss) > 0.05);
        sm_arena_free(arena);
        unlink(path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_of_the_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
