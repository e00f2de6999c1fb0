/* The exact search over a grid of models and systems: what each cell takes of one processor.
 * Prints the worst and the median; with arguments, a line per cell with its best plans, for those
 * whose names contain them: bench_grid [MODEL [SYSTEM]]. */
#include "../tests/search_copy.h"
#include "processor.h"
#include "scalemodel/io.h"
#include "scalemodel/train.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODELS = 12, SYSTEMS = 12 };

static const char *const models[MODELS] = {"llama-3.1-8b",     "gemma-3-27b",    "llama-3.1-70b",
                                           "gpt3-175b",        "llama-3.1-405b", "mt-nlg-530b",
                                           "mixtral-8x22b",    "gpt-oss-120b",   "qwen3-235b-a22b",
                                           "llama-4-maverick", "deepseek-v3",    "kimi-k2"};

/* Tokens of a batch grow with the chips. */
static const struct {
    const char *text;
    double mega_tokens;
} systems[SYSTEMS] = {{"a100-80:8x8", 4},       {"h100-sxm:128x8", 16},   {"h100-sxm:2048x8", 64},
                      {"h100-sxm:16384x8", 64}, {"b200:128x8", 16},       {"gb300-nvl72:64x72", 64},
                      {"mi300x:256x8", 16},     {"tpu-v5e:16x16", 4},     {"tpu-v5p:8x8x8", 4},
                      {"tpu-v5p:16x16x24", 64}, {"tpu-v5p:16x20x28", 64}, {"tpu-v7:16x16x16", 64}};

static void print_cell(const sm_system *system, const char *name, const search_copy *r, double s) {
    char text[512];
    printf("%s %s %.3f s, of %.4g plans %.0f priced\n", name, system->text, s, r->space,
           r->evaluated);
    for (int i = 0; i < r->n; i++) {
        sm_plan_format(&r->found[i].plan, system->torus_dims, text, sizeof text);
        printf("  %.15g %s\n", r->found[i].price.expected_s, text);
    }
    fflush(stdout);
}

/* Seconds of one cell, programs of the model included. */
static double run_cell(const char *name, int at, bool print) {
    static sm_system system;
    static sm_model model;
    static search_copy result;
    sm_error err = {0};
    sm_train *train = NULL;
    sm_arena *arena = sm_arena_new();
    sm_source source = sm_source_of("system", systems[at].text);
    sm_search_options options;
    sm_search_defaults(&options);
    options.threads = 1;
    double start = processor_s();
    sm_job job = {sizeof(sm_job), &model, &system, systems[at].mega_tokens * 1048576,
                  4096,           0,      -1,      NULL};
    sm_status status = sm_io_model_load(name, arena, &model, &err);
    if (!status) status = sm_system_parse(&source, NULL, 0, &system, &err);
    if (!status) status = sm_train_new(&job, &train, &err);
    if (!status) status = search_copied(train, &options, &result, &err);
    double s = processor_s() - start;
    if (status && status != SM_NEGATIVE) fprintf(stderr, "%s: %s\n", name, err.sentence);
    if (print) print_cell(&system, name, &result, s);
    sm_train_free(train);
    sm_arena_free(arena);
    return s;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    double s[MODELS * SYSTEMS];
    size_t n = 0, worst = 0;
    const char *const model = argc > 1 ? argv[1] : "", *const system = argc > 2 ? argv[2] : "";
    char name[MODELS * SYSTEMS][96];
    for (int i = 0; i < SYSTEMS; i++)
        for (int k = 0; k < MODELS; k++) {
            if (!strstr(models[k], model) || !strstr(systems[i].text, system)) continue;
            snprintf(name[n], sizeof name[n], "%s on %s", models[k], systems[i].text);
            s[n] = run_cell(models[k], i, argc > 1);
            if (s[n] > s[worst]) worst = n;
            n++;
        }
    if (n == 0) return 1;
    printf("bench: search_grid_worst_s %.3g s (%s)\n", s[worst], name[worst]);
    qsort(s, n, sizeof *s, by_value);
    printf("bench: search_grid_median_s %.3g s\n", s[n / 2]);
    return 0;
}
