/* Systems and system files from any bytes. The first byte chooses: odd reads the rest as the text
 * of a system, even as the JSON of a system file. What is accepted must print and read back the
 * same. */
#include "scalemodel/io.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
    if (!holds) abort();
}

static void check_levels(const sm_system *s) {
    int64_t chips = 1;
    check(s->levels >= 1 && s->levels <= SM_MAX_LEVELS && s->torus_dims <= s->levels);
    for (int i = 0; i < s->levels; i++) {
        chips *= s->level[i].size;
        check(s->level[i].size >= 1 && s->level[i].name[0] != 0);
        check(s->level[i].size == 1 || s->level[i].bytes_per_s_oneway > 0);
    }
    check(chips == s->chips && s->chips % s->slices == 0);
}

static void try_system(const sm_source *source, const sm_chip *chips, size_t n) {
    sm_system system, again;
    sm_error err;
    if (sm_system_parse(source, chips, n, &system, &err) != SM_OK) {
        check(err.status == SM_BAD_INPUT && err.sentence[0] != 0);
        return;
    }
    check_levels(&system);
    sm_source canonical = sm_source_of("again", system.text);
    check(sm_system_parse(&canonical, chips, n, &again, &err) == SM_OK);
    check(strcmp(system.text, again.text) == 0 && system.levels == again.levels);
    /* Both are zeroed before they are filled.
     * NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
    check(memcmp(system.level, again.level, sizeof system.level) == 0);
}

static void try_chip(const sm_chip *chip, sm_arena *arena) {
    char *text = sm_io_chip_format(chip, arena);
    check(text != NULL);
    sm_source source = sm_source_of("again", text);
    sm_chip *again;
    size_t n;
    sm_error err;
    check(sm_io_chips_parse(&source, arena, &again, &n, &err) == SM_OK && n == 1);
    check(strcmp(text, sm_io_chip_format(again, arena)) == 0);
}

static void try_file(const sm_source *source) {
    static const char *const shapes[] = {"", ":2", ":64", ":8x8", ":4x4x4", ":2x4x2slices", ":999"};
    sm_arena *arena = sm_arena_new();
    sm_chip *chips;
    size_t n;
    sm_error err;
    if (sm_io_chips_parse(source, arena, &chips, &n, &err) == SM_OK) {
        for (size_t i = 0; i < n; i++) try_chip(&chips[i], arena);
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            char *text = sm_arena_printf(arena, "%s%s", chips[0].name, shapes[i]);
            sm_source system = sm_source_of("system", text);
            try_system(&system, chips, n);
        }
    } else {
        check(err.status == SM_BAD_INPUT && err.sentence[0] != 0);
    }
    sm_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    sm_source source = {"input", (const char *)data + 1, size - 1};
    if (data[0] & 1) try_system(&source, NULL, 0);
    else try_file(&source);
    return 0;
}
