/* Answers of the reference classes as tests/reference keeps them, and room for what is made here.
 */
#pragma once
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_of.h"
#include "reference_slope.h"
#include "scalemodel/run_generate.h"

enum { MOST_IDS = 64, WORDS = 256, MOST_ROOM = 64 };
enum { TRAINED = 19 };

/* What a model of two stacks writes once it has read so many of the words. */
enum { WRITTEN = 2 };
typedef struct written {
    size_t read, n, logits;
    int32_t text[MOST_IDS];
    double logit[WORDS];
} written;

/* What a model that chooses no words makes of the first and the last of so many words. */
enum { WIDEST = 16 };
typedef struct states {
    size_t read, width;
    double row[2][WIDEST];
} states;

typedef struct answers {
    const char *name;
    written written[WRITTEN];
    states told[WRITTEN];
    size_t tells;  /* of them */
    size_t writes; /* of them */
    sm_model model;
    size_t seen; /* rows of pictures among the ids */
    int32_t amid[MOST_IDS], amid_text[MOST_IDS];
    size_t amid_n;
    size_t n, tensors, logits, texts, tokens, source; /* texts 0: none follows from the model */
    int32_t ids[MOST_IDS];
    double loss, trained, slope, logit[WORDS];
    int32_t text[MOST_IDS];
    sm_safetensors file;
    /* made by a plan */
    sm_train_setup setup;
    double made_loss, made_logit[WORDS], apart;
    int32_t made[MOST_IDS];
} answers;

static char path[64], again[72];

static size_t read_list(json_t *list, int32_t *to) {
    size_t n = json_array_size(list);
    assert_true(n > 0 && n <= MOST_IDS);
    for (size_t i = 0; i < n; i++) to[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return n;
}

/* The word for a row of a picture becomes the number of the row. */
static void number_rows(const answers *a, int32_t *ids, size_t n) {
    enum { PICTURE = 255 };
    int row = a->model.V;
    for (size_t i = 0; a->seen && i < n; i++)
        if (ids[i] == PICTURE) ids[i] = row++;
}

static void read_answers(const char *name, bool bare, answers *a) {
    char file[256];
    sm_error err = {.status = SM_OK};
    snprintf(file, sizeof file, "tests/reference/%.100s", name);
    json_t *told = json_load_file(file, 0, NULL);
    if (!told) fail_msg("%s is no JSON", file);
    char *config = json_dumps(json_object_get(told, "config"), 0);
    *a = (answers){.name = sm_arena_copy(models_arena(), name, strcspn(name, "."))};
    a->model = model_of(a->name, sm_arena_copy(models_arena(), config, strlen(config)));
    a->seen = (size_t)json_integer_value(json_object_get(told, "seen"));
    if (a->seen)
        a->model = model_as(a->name, sm_arena_copy(models_arena(), config, strlen(config)),
                            sm_architecture_word(a->model.architecture, "seeing"));
    a->n = read_list(json_object_get(told, "ids"), a->ids);
    if (a->seen) a->amid_n = read_list(json_object_get(told, "amid"), a->amid);
    if (a->seen) read_list(json_object_get(told, "amid_greedy"), a->amid_text);
    number_rows(a, a->ids, a->n);
    number_rows(a, a->amid, a->amid_n);
    json_t *tokens = json_object_get(told, "tokens"), *greedy = json_object_get(told, "greedy");
    a->texts = greedy ? read_list(greedy, a->text) : 0;
    a->tokens = tokens ? (size_t)json_integer_value(tokens) : TRAINED;
    a->source = (size_t)json_integer_value(json_object_get(told, "source"));
    a->loss = json_number_value(json_object_get(told, "loss"));
    a->trained = json_number_value(json_object_get(told, "trained"));
    a->slope = json_number_value(json_object_get(told, "slope"));
    json_t *logits = json_object_get(told, "logits");
    a->logits = json_array_size(logits);
    for (size_t i = 0; i < a->logits; i++)
        a->logit[i] = json_number_value(json_array_get(logits, i));
    json_t *texts = json_object_get(told, "written");
    a->writes = json_array_size(texts);
    assert_true(a->writes <= WRITTEN);
    for (size_t i = 0; i < a->writes; i++) {
        json_t *one = json_array_get(texts, i), *scores = json_object_get(one, "logits");
        written *w = &a->written[i];
        w->read = (size_t)json_integer_value(json_object_get(one, "read"));
        w->n = read_list(json_object_get(one, "text"), w->text);
        w->logits = json_array_size(scores);
        for (size_t k = 0; k < w->logits; k++)
            w->logit[k] = json_number_value(json_array_get(scores, k));
    }
    json_t *rows = json_object_get(told, "told");
    a->tells = json_array_size(rows);
    for (size_t i = 0; i < a->tells; i++) {
        json_t *one = json_array_get(rows, i), *numbers = json_object_get(one, "rows");
        states *s = &a->told[i];
        s->read = (size_t)json_integer_value(json_object_get(one, "read"));
        s->width = json_array_size(json_array_get(numbers, 0));
        assert_true(s->width <= WIDEST);
        for (size_t k = 0; k < 2 * s->width; k++)
            s->row[k / s->width][k % s->width] = json_number_value(
                json_array_get(json_array_get(numbers, k / s->width), k % s->width));
    }
    const char *base = bare ? sm_architecture_word(a->model.architecture, "hf.base") : NULL;
    write_tensors(json_object_get(told, "tensors"), base ? base : "", "", path);
    if (sm_io_safetensors_read(path, models_arena(), &a->file, &err)) fail_msg("%s", err.sentence);
    free(config);
    json_decref(told);
}
