/* Models of every family, and plans drawn for them. */
#include <dirent.h>
#include <stdarg.h>

#include "drawn_plans.h"
#include "model_of.h"

/* ---- models ---- */

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Twice the layers, where the config counts them and says nothing of each. */
static sm_model deeper(const char *name, json_t *config, sm_model model) {
    static const char *const counts[] = {"num_hidden_layers", "n_layer", "n_layers"};
    const char *key;
    json_t *value;
    json_object_foreach(config, key, value) if (json_is_array(value)) return model;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (json_integer_value(json_object_get(config, counts[i])) != 2) continue;
        json_object_set_new(config, counts[i], json_integer(4));
        char *text = json_dumps(config, 0);
        model = model_of(name, sm_arena_copy(models_arena(), text, strlen(text)));
        free(text);
    }
    return model;
}

static void read_model(const char *file, drawn_model *to) {
    char path[300];
    snprintf(path, sizeof path, "tests/reference/%.200s", file);
    json_t *told = json_load_file(path, 0, NULL), *config = json_object_get(told, "config");
    char *text = json_dumps(config, 0);
    const char *name = sm_arena_copy(models_arena(), file, strcspn(file, "."));
    json_t *source = json_object_get(told, "source");
    *to = (drawn_model){.name = name, .tokens = TRAIN_TOKENS};
    to->model = model_of(name, sm_arena_copy(models_arena(), text, strlen(text)));
    if (json_integer_value(source) > 0) /* its positions are so many */
        to->tokens = (int)json_integer_value(json_object_get(told, "tokens"));
    else if (!source) to->model = deeper(name, config, to->model);
    free(text);
    json_decref(told);
}

int drawn_models(drawn_model *to, int room) {
    char *file[DRAWN_MODELS];
    int n = 0;
    DIR *dir = opendir("tests/reference");
    for (struct dirent *e = dir ? readdir(dir) : NULL; e && n < room && n < DRAWN_MODELS;
         e = readdir(dir))
        if (strstr(e->d_name, ".json")) file[n++] = strdup(e->d_name);
    if (dir) closedir(dir);
    qsort(file, (size_t)n, sizeof *file, by_name);
    for (int i = 0; i < n; i++) {
        read_model(file[i], &to[i]);
        free(file[i]);
    }
    return n;
}

sm_train_setup drawn_setup(const drawn_model *m) {
    sm_train_setup s = train_setup_of(&m->model);
    s.tokens = m->tokens;
    s.rate = 3e-4;
    return s;
}

sm_train_setup drawn_reference(const drawn_model *m, const sm_train_setup *s) {
    sm_train_setup one = drawn_setup(m);
    one.sequences = one.microbatch = s->sequences;
    one.optimizer = s->optimizer;
    one.stored = s->stored;
    one.gradients = s->gradients;
    one.rounded = s->rounded;
    one.rules.lora = s->rules.lora;
    one.rules.targets = s->rules.targets;
    return one;
}

bool drawn_exact(const sm_train_setup *s, sm_train_setup *exact) {
    *exact = *s;
    exact->stored = exact->gradients = SM_ELEMENT_F32;
    exact->rounded = false;
    return s->stored || s->gradients;
}

/* ---- plans ---- */

typedef struct draft {
    char *words;
    sm_rng *rng;
} draft;

static void put(const draft *d, const char *format, ...) {
    size_t n = strlen(d->words);
    va_list args;
    if (n) d->words[n++] = ',';
    va_start(args, format);
    vsnprintf(d->words + n, DRAWN_WORDS - n, format, args);
    va_end(args);
}

static int below(const draft *d, int n) { return (int)sm_rng_below(d->rng, (uint64_t)n); }

/* One time of n, a key with one of these values. */
static void maybe(const draft *d, int n, const char *key, const char *const *value) {
    int values = 0;
    while (value[values]) values++;
    if (below(d, n) == 0) put(d, "%s=%s", key, value[below(d, values)]);
}
#define MAYBE(d, n, key, ...) maybe(d, n, key, (const char *const[]){__VA_ARGS__, NULL})

static bool has_experts(const sm_model *model) {
    for (int k = 0; k < model->kinds; k++)
        if (model->kind[k].E > 0) return true;
    return false;
}

/* Degrees of a power of two whose product is at most DRAWN_RANKS; seldom three. */
static void draw_degrees(const sm_model *model, const draft *d, int degree[SM_PLAN_DEGREES]) {
    int ranks = 1, most = 1 << below(d, 4);
    for (int key = 0; key < SM_PLAN_DEGREES; key++) degree[key] = 1;
    for (int i = 0; i < 12 && ranks < most; i++) {
        int key = below(d, SM_PLAN_DEGREES), by = ranks <= 2 && below(d, 24) == 0 ? 3 : 2;
        bool shallow = key == SM_PLAN_PIPELINE && degree[key] * by > model->L && below(d, 16);
        if (shallow || (key == SM_PLAN_EXPERT && !has_experts(model))) continue;
        degree[key] *= by;
        ranks *= by;
    }
    for (int key = 0; key < SM_PLAN_DEGREES; key++)
        if (degree[key] > 1)
            put(d, "%s=%d", sm_plan_key_row_of((sm_plan_key)key)->name, degree[key]);
}

void draw_training(const sm_model *model, sm_rng *rng, char words[DRAWN_WORDS]) {
    const draft d = {words, rng};
    int degree[SM_PLAN_DEGREES];
    words[0] = 0;
    draw_degrees(model, &d, degree);
    if (degree[SM_PLAN_PIPELINE] > 1) {
        static const char *const schedules[] = {"gpipe",    "1f1b",        "zb-h1",
                                                "dualpipe", "interleaved", "zb-v"};
        bool twice = 2 * degree[SM_PLAN_PIPELINE] <= model->L; /* chunks on each */
        int schedule = below(&d, twice ? 6 : 4);
        put(&d, "schedule=%s", schedules[schedule]);
        if (schedule > 2) put(&d, "virtual=2");
    }
    MAYBE(&d, degree[SM_PLAN_PIPELINE] > 1 ? 3 : 2, "microbatch", "1", "2", "4");
    MAYBE(&d, 2, "zero", "0", "1", "2", "3");
    if (degree[SM_PLAN_DATA] > 1) MAYBE(&d, 4, "state_copies", "2");
    if (degree[SM_PLAN_TENSOR] > 1) {
        MAYBE(&d, 2, "seq", "off", "on");
        MAYBE(&d, 4, "embedding", "gathered", "sharded");
        if (has_experts(model)) MAYBE(&d, 2, "expert_tensor", "on", "off");
    }
    if (degree[SM_PLAN_CONTEXT] > 1) MAYBE(&d, 2, "context_by", "gather", "heads");
    MAYBE(&d, 2, "recompute", "none", "selective", "save-matmuls", "save-alternate", "full");
    MAYBE(&d, 3, "regather", "none", "weights", "activations", "all");
    MAYBE(&d, 4, "offload", "optimizer", "activations", "both");
    MAYBE(&d, 4, "dtype", "bf16", "fp32");
    MAYBE(&d, 4, "gradient", "bf16", "fp32");
    MAYBE(&d, 3, "optimizer", "adam", "adam-no-master", "adam-bf16", "adam-pure-bf16", "adam-8bit",
          "sgd");
    MAYBE(&d, 8, "attention", "fused", "unfused", "flash-1", "flash-2");
    MAYBE(&d, 8, "norms", "fused", "separate");
    if (below(&d, 5) == 0) {
        put(&d, "lora=%d", 1 << below(&d, 3));
        MAYBE(&d, 2, "targets", "all", "attention", "mlp", "qv");
    }
    MAYBE(&d, 60, "capacity", "100");
    MAYBE(&d, 60, "parameters", "int8", "nf4");
    MAYBE(&d, 60, "loss", "chunked");
}

void draw_serving(const sm_model *model, sm_rng *rng, char words[DRAWN_WORDS]) {
    const draft d = {words, rng};
    int degree[SM_PLAN_DEGREES];
    words[0] = 0;
    draw_degrees(model, &d, degree);
    if (degree[SM_PLAN_TENSOR] > 1 && has_experts(model)) MAYBE(&d, 2, "expert_tensor", "on");
    if (degree[SM_PLAN_FSDP] > 1) MAYBE(&d, 4, "weights_by", "gathered", "stationary");
    MAYBE(&d, 12, "seq", "on");
    MAYBE(&d, 12, "cache_by", "batch", "sequence");
}
