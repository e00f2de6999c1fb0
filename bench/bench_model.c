/* Reading a model: the families that are shipped, and configs of the catalogue read by them. */
#include <stdio.h>
#include <string.h>

#include "scalemodel/json.h"
#include "scalemodel/model.h"
#include "scalemodel/notation.h"

enum { TIMES = 20 };

static int fail(const sm_error *err) {
    fprintf(stderr, "bench_model: %s\n", err->sentence);
    return 1;
}

/* Seconds of the quickest of some readings; negative: an error. Of all families, as --families has
 * it. */
static double read_library(sm_error *err) {
    double least = 1e9;
    for (int i = 0; i < TIMES; i++) {
        sm_library *own;
        sm_arena *arena = sm_arena_new();
        double start = sm_clock_s();
        sm_status status = sm_library_new(arena, sm_library_shipped(), &own, err);
        double took = sm_clock_s() - start;
        sm_arena_free(arena);
        if (status) return -1;
        if (took < least) least = took;
    }
    return least;
}

static double read_model(const char *name, sm_error *err) {
    double least = 1e9;
    for (int i = 0; i < TIMES; i++) {
        sm_model model;
        sm_arena *arena = sm_arena_new();
        const sm_catalogue_entry *entry = sm_catalogue_find(name, strlen(name));
        sm_source source = sm_source_of(name, entry ? entry->config_json : "");
        double start = sm_clock_s();
        sm_status status = sm_model_parse(NULL, NULL, &source, arena, &model, err);
        double took = sm_clock_s() - start;
        sm_arena_free(arena);
        if (status) return -1;
        if (took < least) least = took;
    }
    return least;
}

int main(void) {
    static const char *const names[] = {"llama-3.1-8b", "llama-3.1-405b", "mixtral-8x7b",
                                        "gemma-3-27b",  "deepseek-v3",    "gpt-oss-120b"};
    sm_error err = {0};
    double seconds = read_library(&err);
    if (seconds < 0) return fail(&err);
    printf("bench: read_families_ms %.3g ms\n", seconds * 1e3);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        seconds = read_model(names[i], &err);
        if (seconds < 0) return fail(&err);
        printf("bench: read_%s_ms %.3g ms\n", names[i], seconds * 1e3);
    }
    return 0;
}
