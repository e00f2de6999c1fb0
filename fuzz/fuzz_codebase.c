/* Code bases from any bytes (docs/codebases.md), and the same bytes as the name of a count. What is
 * read counts FLOPs, and is found by its name. */
#include "kept_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask_count(const sm_flops_count *count, const sm_model *model) {
    char words[160];
    const sm_chip *chip = sm_chip_at(0);
    if (!(sm_flops_counted(count, model, 4096) > 0)) abort();
    if (isnan(sm_flops_peak(count, chip, SM_BF16))) abort();
    if (!sm_flops_count_words(count, words, sizeof words)[0]) abort();
}

static void ask(const sm_codebase *c, const sm_model *model) {
    sm_source name = sm_source_of("name", c->name);
    const sm_codebase *of;
    sm_flops_count count;
    sm_error err;
    sm_status status =
        sm_flops_count_parse(&name, (sm_span){0, name.length}, c, 1, &count, &of, &err);
    if (status == SM_OK && of == c) ask_count(&count, model);
    for (int i = 0; i < c->memories; i++)
        if (!c->memory[i].source || c->memory[i].from <= 0) abort();
    for (int i = 0; i < c->counts; i++)
        if (sm_codebase_count_in(c, c->count[i].from) != &c->count[i]) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const sm_model *model = kept_model();
    sm_error err;
    sm_arena *arena = sm_arena_new();
    char *text = arena ? sm_arena_copy(arena, (const char *)data, size) : NULL;
    sm_source source = {"codebase", text, size};
    sm_codebase base;
    const sm_codebase *of;
    sm_flops_count count;
    if (!text) abort();
    if (sm_codebase_parse(&source, arena, &base, &err) == SM_OK) ask(&base, model);
    if (sm_flops_count_parse(&source, (sm_span){0, size}, NULL, 0, &count, &of, &err) == SM_OK)
        ask_count(&count, model);
    sm_arena_free(arena);
    return 0;
}
