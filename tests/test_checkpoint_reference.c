/* Models against the reference classes: tests/reference holds what scripts/reference-answers.py had
 * them answer, small models whose weights follow from their names alone. Loss, logits and greedy
 * text are the same on one rank and on several. */
#include <dirent.h>
#include <math.h>
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "model_of.h"
#include "sanitized.h"
#include "scalemodel/run_generate.h"
#include "train_checkpoint.h"

enum { MOST_TENSORS = 256, MOST_IDS = 64, WORDS = 256, MOST_ROOM = 64, MOST_MODELS = 96 };

/* The numbers of the script. */
static void fill(const char *name, const size_t *shape, int rank, size_t n, float *to) {
    uint32_t seed = (uint32_t)crc32_z(0, (const unsigned char *)name, strlen(name));
    size_t length = strlen(name);
    bool one = rank == 1 && length > 5 && strcmp(name + length - 6, "weight") == 0;
    (void)shape;
    for (size_t i = 0; i < n; i++) {
        uint32_t x = (uint32_t)(i * 2654435761u) + seed;
        x = (x ^ x >> 16) * 0x45D9F3Bu;
        x = (x ^ x >> 15) * 0x45D9F3Bu;
        x ^= x >> 16;
        to[i] = (float)(((double)x / 4294967296.0 - 0.5) * 0.6 + one);
    }
}

typedef struct answers {
    const char *name;
    sm_model model;
    size_t n, tensors, logits, texts;
    int32_t ids[MOST_IDS];
    double loss, logit[WORDS];
    int32_t text[MOST_IDS];
    sm_safetensors file;
    /* made by a plan */
    sm_train_setup setup;
    double made_loss, made_logit[WORDS], apart;
    int32_t made[MOST_IDS];
} answers;

static char path[64];

static size_t read_list(json_t *list, int32_t *to) {
    size_t n = json_array_size(list);
    assert_true(n > 0 && n <= MOST_IDS);
    for (size_t i = 0; i < n; i++) to[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return n;
}

/* The checkpoint as the script wrote it. */
static void write_tensors(json_t *list) {
    static sm_safetensor tensor[MOST_TENSORS];
    size_t n = json_array_size(list);
    assert_true(n <= MOST_TENSORS);
    for (size_t i = 0; i < n; i++) {
        json_t *one = json_array_get(list, i), *shape = json_object_get(one, "shape");
        size_t count = 1;
        tensor[i] = (sm_safetensor){.name = json_string_value(json_object_get(one, "name")),
                                    .rank = (int)json_array_size(shape)};
        for (int d = 0; d < tensor[i].rank; d++)
            count *= tensor[i].shape[d] =
                (size_t)json_integer_value(json_array_get(shape, (size_t)d));
        float *data = sm_malloc(count * sizeof *data);
        fill(tensor[i].name, tensor[i].shape, tensor[i].rank, count, data);
        tensor[i].data = data;
    }
    assert_int_equal(sm_io_safetensors_write(path, n, tensor, 0, NULL), SM_OK);
    for (size_t i = 0; i < n; i++) sm_free((void *)(uintptr_t)tensor[i].data);
}

static void read_answers(const char *name, answers *a) {
    char file[256];
    sm_error err = {.status = SM_OK};
    snprintf(file, sizeof file, "tests/reference/%.100s", name);
    json_t *told = json_load_file(file, 0, NULL);
    if (!told) fail_msg("%s is no JSON", file);
    char *config = json_dumps(json_object_get(told, "config"), 0);
    *a = (answers){.name = sm_arena_copy(models_arena(), name, strcspn(name, "."))};
    a->model = model_of(a->name, sm_arena_copy(models_arena(), config, strlen(config)));
    a->n = read_list(json_object_get(told, "ids"), a->ids);
    a->texts = read_list(json_object_get(told, "greedy"), a->text);
    a->loss = json_number_value(json_object_get(told, "loss"));
    json_t *logits = json_object_get(told, "logits");
    a->logits = json_array_size(logits);
    for (size_t i = 0; i < a->logits; i++)
        a->logit[i] = json_number_value(json_array_get(logits, i));
    write_tensors(json_object_get(told, "tensors"));
    if (sm_io_safetensors_read(path, models_arena(), &a->file, &err)) fail_msg("%s", err.sentence);
    free(config);
    json_decref(told);
}

static double loss_of(const float *score, size_t word) {
    double sum = 0;
    for (int v = 0; v < WORDS; v++) sum += exp((double)score[v]);
    return log(sum) - (double)score[word];
}

/* The tokens in one pass, with scores after each; then the best word, again and again. All of the
 * rank's sequences are the same. */
static sm_status ask(answers *a, sm_generator *g, sm_error *err) {
    sm_generator_size size = sm_generator_size_of(g);
    sm_generator_part own = sm_generator_own(g);
    size_t count[8], rows = a->n;
    int32_t token[8 * MOST_IDS];
    sm_generator_result r;
    float *scores = sm_malloc(size.sequences * a->n * WORDS * sizeof *scores);
    sm_status status = scores ? SM_OK : sm_fail_memory(err);
    for (size_t at = 0; !status && at <= a->texts; at++, rows = 1) {
        for (size_t s = 0; s < size.sequences; s++) {
            count[s] = rows;
            memcpy(token + s * rows, at ? &a->text[at - 1] : a->ids, rows * sizeof *token);
        }
        sm_generator_pass pass = {rows, token, count, at == 0};
        status = sm_generator_feed(g, &pass, scores, &r, err);
        for (int k = 0; k < SM_COLLECTIVE_COUNT; k++)
            a->apart += fabs(r.bytes_predicted[k] - r.bytes_counted[k]);
        if (status || own.n == 0 || own.first) continue;
        const float *last = scores + (rows - 1) * WORDS;
        if (at < a->texts) a->made[at] = (int32_t)sm_draw_best(last, WORDS);
        for (size_t i = 0; at == 0 && i + 1 < a->n; i++)
            a->made_loss += loss_of(scores + i * WORDS, (size_t)a->ids[i + 1]) / (double)(a->n - 1);
        for (int v = 0; at == 0 && v < WORDS; v++) a->made_logit[v] = (double)last[v];
    }
    sm_free(scores);
    return status;
}

static sm_status run(sm_communicator *world, void *context, sm_error *err) {
    const answers *all = context;
    answers own = *all;
    sm_generator *g = NULL;
    sm_status status = sm_generator_new(world, &own.setup, &g, err);
    if (!status) status = train_checkpoint_take_weights(g, &own.model, &own.file, path, err);
    if (!status) status = ask(&own, g, err);
    if (!status && sm_generator_own(g).n && sm_generator_own(g).first == 0 && world->rank == 0)
        *(answers *)context = own;
    sm_generator_free(g);
    return status;
}

static int differ(const answers *a, const char *words) {
    double worst = 0;
    for (size_t i = 0; i < a->logits; i++)
        worst = fmax(worst, fabs(a->made_logit[i] - a->logit[i]));
    bool wrong = worst > 2e-5 || fabs(a->made_loss - a->loss) > 1e-5 || a->apart != 0 ||
                 memcmp(a->made, a->text, a->texts * sizeof *a->made) != 0;
    if (wrong)
        print_message("%s on %s: loss %g for %g, logits apart by %g, bytes by %g\n", a->name, words,
                      a->made_loss, a->loss, worst, a->apart);
    return wrong;
}

static int hold(answers *a, const char *words, int tensor, int others) {
    sm_error err = {.status = SM_OK};
    answers asked = *a;
    sm_train_setup_defaults(&asked.setup);
    asked.setup.model = &asked.model;
    asked.setup.tokens = MOST_ROOM;
    asked.setup.degree[a->model.kind[0].heads % 2 ? SM_AXIS_TENSOR_Q : SM_AXIS_TENSOR] = tensor;
    asked.setup.degree[others > 1 && a->model.kind[a->model.kinds - 1].E > 0 ? SM_AXIS_EXPERT
                       : tensor > 1                                          ? SM_AXIS_FSDP
                                    : SM_AXIS_CONTEXT] = others;
    asked.setup.sequences = asked.setup.degree[SM_AXIS_EXPERT] * asked.setup.degree[SM_AXIS_FSDP];
    if (sm_run_threads(sm_train_setup_ranks(&asked.setup), run, &asked, &err)) {
        print_message("%s on %s: %s\n", a->name, words, err.sentence);
        return strstr(err.sentence, "which tensor would cut") == NULL;
    }
    return differ(&asked, words);
}

static void answers_are_those_of_the_reference(void **state) {
    int wrong = 0, models = 0;
    char *name[MOST_MODELS];
    DIR *dir = opendir("tests/reference");
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e && models < MOST_MODELS; e = readdir(dir))
        if (strstr(e->d_name, ".json")) name[models++] = strdup(e->d_name);
    closedir(dir);
    for (int i = 0; i < models; i++) {
        static answers a;
        read_answers(name[i], &a);
        wrong += hold(&a, "one rank", 1, 1);
        if (i % (SANITIZED ? 8 : 2) == 0) wrong += hold(&a, "four ranks", 2, 2);
        else if (!SANITIZED) wrong += hold(&a, "two ranks", 1, 2);
        free(name[i]);
    }
    print_message("%d models\n", models);
    assert_true(models > 0);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers_are_those_of_the_reference)};
    snprintf(path, sizeof path, "/tmp/test_reference_XXXXXX");
    int file = mkstemp(path);
    if (file < 0 || close(file) != 0) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
