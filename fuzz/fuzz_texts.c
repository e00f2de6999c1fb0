/* Texts and families from any bytes: what is accepted prints and reads back to the same text; what
 * is refused, by the reader or by the check, has a place and words. */
#include "library_format.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds) abort();
}

static void check_error(const sm_error *err) {
    must(err->status == SM_BAD_INPUT && err->sentence[0] != '\0');
    must(err->line >= 1 && err->column >= 1 && err->span >= 1);
}

static const char *format(const sm_library *library, sm_arena *arena) {
    const char *text = library_format(library, arena);
    must(text != NULL);
    return text;
}

static void read_back(const sm_library *library, sm_arena *arena) {
    sm_library *again;
    sm_error err = {0};
    const char *text = format(library, arena);
    sm_source source = sm_source_of("printed", text);
    must(sm_library_new(arena, NULL, &again, &err) == SM_OK);
    must(sm_library_read(again, &source, &err) == SM_OK);
    must(strcmp(format(again, arena), text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sm_source source = {"texts", (const char *)data, size};
    sm_arena *arena = sm_arena_new();
    sm_library *library = NULL;
    sm_error err = {0};
    must(arena && sm_library_new(arena, NULL, &library, &err) == SM_OK);
    if (sm_library_read(library, &source, &err) != SM_OK) check_error(&err);
    else {
        read_back(library, arena);
        if (sm_library_check(library, &err) != SM_OK) check_error(&err);
    }
    sm_arena_free(arena);
    return 0;
}
