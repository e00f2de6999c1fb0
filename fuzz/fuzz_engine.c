/* Settings of engines and files of them (docs/serving.md) from any bytes: what is accepted prints
 * in what it differs, and settings read back to the same; a file has limits on any chip. */
#include "kept_model.h"
#include "scalemodel/load.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_file(const sm_source *source) {
    sm_arena *arena = sm_arena_new();
    sm_software read;
    sm_error err;
    char text[1024];
    if (!arena) abort();
    if (sm_software_parse(source, arena, &read, &err) == SM_OK) {
        if (!sm_software_differs(&read, text, sizeof text)->name) abort();
        sm_software_on(&read, sm_chip_at(strlen(read.name) % sm_chip_count()), kept_model(), false);
        if (!(sm_software_budget(&read, 8) >= 8) || !(sm_software_most(&read, 8) >= 8)) abort();
    }
    sm_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sm_source source = {"engine", (const char *)data, size};
    read_file(&source);
    sm_software read = *sm_software_of("sglang-2026"), again = read;
    sm_error err;
    char text[1024], twice[1024];
    if (sm_software_set(&read, &source, &err) != SM_OK) return 0;
    sm_software_differs(&read, text, sizeof text);
    source = sm_source_of("engine", text);
    if (text[0] && sm_software_set(&again, &source, &err) != SM_OK) abort();
    sm_software_differs(&again, twice, sizeof twice);
    if (strcmp(text, twice) != 0) abort();
    return 0;
}
