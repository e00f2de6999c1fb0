/* Calibration files from any bytes: what is accepted lies in its ranges and reads back the same. */
#include "scalemodel/cost.h"
#include "scalemodel/text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
    if (!holds) abort();
}

static void check_ranges(const sm_calibration *c) {
    for (int i = 0; i < SM_CONSTANT_COUNT; i++) {
        const sm_constant_info *info = sm_constant_of((sm_constant)i);
        double value = sm_calibration_get(c, (sm_constant)i);
        check(value >= info->low && value <= info->high);
    }
}

static void check_text(const sm_calibration *c, sm_arena *arena) {
    sm_calibration *again = NULL;
    size_t n = 0;
    char *text = sm_calibration_format(c, arena);
    sm_source source = sm_source_of("again", text);
    check(sm_calibration_parse(&source, arena, &again, &n, NULL) == SM_OK && n == 1);
    check(strcmp(sm_calibration_format(again, arena), text) == 0);
    check(strcmp(again->source, c->source) == 0 && strcmp(again->range, c->range) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sm_source source = {"input", (const char *)data, size};
    sm_arena *arena = sm_arena_new();
    sm_calibration *list = NULL;
    size_t n = 0;
    sm_error err;
    if (sm_calibration_parse(&source, arena, &list, &n, &err) == SM_OK) {
        for (size_t i = 0; i < n; i++) {
            check_ranges(&list[i]);
            check_text(&list[i], arena);
        }
    } else {
        check(err.status == SM_BAD_INPUT && err.sentence[0] != 0);
    }
    sm_arena_free(arena);
    return 0;
}
