/* Texts and families from any bytes, worked out with a config that has most of the usual keys:
 * every family gives counts and lines or an error with a place and words. */
#include "scalemodel/architecture.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char config[] =
    "{\"hidden\": 8, \"hidden_size\": 8, \"vocab_size\": 10, \"depth\": 3, \"num_hidden_layers\": "
    "3,"
    " \"heads\": 4, \"num_attention_heads\": 4, \"intermediate_size\": 16, \"window\": 4,"
    " \"words\": [\"local\", \"full\", \"local\"], \"list\": [1, 0, 2], \"inner\": "
    "{\"model_type\": "
    "\"small\", \"hidden\": 4, \"depth\": 1}, \"pattern\": \"M-*\", \"truth\": true, \"none\": "
    "null}";

static void must(bool holds) {
    if (!holds) abort();
}

static void check_error(const sm_error *err) {
    must(err->status == SM_BAD_INPUT && err->sentence[0] != '\0');
    must(err->line >= 1 && err->column >= 1 && err->span >= 1);
}

static void check_lines(const sm_architecture *a, int kind, sm_arena *arena) {
    for (int phase = SM_TEXT_TRAIN; phase <= SM_TEXT_DECODE; phase++) {
        const sm_text_lines *l;
        sm_error err = {0};
        const sm_text_lines_of of = {kind, (sm_text_phase)phase, false, 5, 7, false};
        if (sm_architecture_lines(a, &of, arena, &l, &err)) {
            check_error(&err);
            continue;
        }
        for (int i = 0; i < l->lines; i++) {
            must(l->line[i].results >= 1 && l->line[i].kernel < l->kernels);
            for (int k = 0; k < l->line[i].operands; k++)
                must(l->line[i].operand[k].array < l->arrays);
        }
    }
}

static void work_out(const sm_library *library, const char *family, sm_arena *arena) {
    const sm_source source = sm_source_of("config", config);
    const sm_architecture *a;
    sm_error err = {0};
    if (sm_architecture_new(library, &source, family, arena, &a, &err)) {
        check_error(&err);
        return;
    }
    sm_forward forward;
    must(sm_architecture_counts(a)->total >= 0);
    for (int kind = 0; kind < sm_architecture_kinds(a); kind++) check_lines(a, kind, arena);
    if (sm_architecture_forward(a, 9, true, &forward, &err)) check_error(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const sm_source source = {"texts", (const char *)data, size};
    const char *const *family;
    size_t families;
    sm_arena *arena = sm_arena_new();
    sm_library *library = NULL;
    sm_error err = {0};
    must(arena && sm_library_new(arena, NULL, &library, &err) == SM_OK);
    bool read = sm_library_read(library, &source, &err) == SM_OK;
    if (read && sm_library_families(library, arena, &family, &families, &err) == SM_OK)
        for (size_t i = 0; i < families && i < 8; i++) work_out(library, family[i], arena);
    sm_arena_free(arena);
    return 0;
}
