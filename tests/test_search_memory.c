/* What a process holds that searches again and again: as much as one search touches. */
#include "unit.h"
#include "sanitized.h"
#include "scalemodel/io.h"
#include "search_copy.h"
#include <malloc.h>
#include <stdio.h>

/* Megabytes that this program had at most, as Linux tells it; getrusage counts what its parent had.
 */
static double most_mb(void) {
    char line[256];
    double kb = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %lf", &kb);
    if (status) fclose(status);
    return kb / 1024;
}

static void search(const char *name, const char *text) {
    static sm_system system;
    static sm_model model;
    static search_copy found;
    sm_error err = {.status = SM_OK};
    sm_train *train = NULL;
    sm_arena *arena = sm_arena_new();
    const sm_source source = sm_source_of("system", text);
    sm_search_options options;
    sm_search_defaults(&options);
    options.threads = 1;
    const sm_job job = {sizeof(sm_job), &model, &system, 16 << 20, 4096, 0, -1, NULL};
    sm_status status = sm_io_model_load(name, arena, &model, &err);
    if (!status) status = sm_system_parse(&source, NULL, 0, &system, &err);
    if (!status) status = sm_train_new(&job, &train, &err);
    if (!status) status = search_copied(train, &options, &found, &err);
    if (!status) status = search_copied(train, &options, &found, &err);
    if (status) fail_msg("%s", err.sentence);
    sm_train_free(train);
    sm_arena_free(arena);
}

/* Its tables are found by keys and sparse: clearing them would take all of their pages. */
static void tables_take_what_is_touched_of_them(void **state) {
    (void)state;
    search("gpt-oss-120b", "h100-sxm:2048x8");
    search("llama-3.1-8b", "h100-sxm:16384x8");
    assert_true(SANITIZED || most_mb() < 40);
}

int main(void) {
#ifdef __GLIBC__ /* whatever the environment of the suite says */
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    mallopt(M_TRIM_THRESHOLD, 128 << 10);
    mallopt(M_TOP_PAD, 128 << 10);
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_take_what_is_touched_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
