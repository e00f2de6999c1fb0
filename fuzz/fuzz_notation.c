/* Fuzz the notations: the first byte selects the grammar (m: mesh, d: dimensions, a: array, t:
 * array of HLO, c: a chain, whose first line is sizes, else einsum), the rest is the text. What
 * parses must print to text that parses to the same print; an einsum that checks is lowered, a
 * chain has whole lines. */
#include "scalemodel/chain.h"
#include "scalemodel/module.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 8192 };

static void must(bool holds) {
    if (!holds) abort();
}

static sm_mesh usual_mesh(void) {
    sm_mesh mesh;
    sm_source source = sm_source_of("", "X=4,Y=2,Z=2,fsdp=2,tensor=4");
    must(sm_mesh_parse(&source, &mesh, NULL) == SM_OK);
    return mesh;
}

/* An error has a place inside the text, or just after it, and words. */
static void check_error(const sm_error *err) {
    must(err->status == SM_BAD_INPUT && err->sentence[0] != '\0');
    must(err->line >= 1 && err->column >= 1 && err->span >= 1);
}

static void fuzz_mesh(const sm_source *source) {
    sm_mesh mesh, again;
    sm_error err = {0};
    char text[LONGEST], twice[LONGEST];
    if (sm_mesh_parse(source, &mesh, &err) != SM_OK) {
        check_error(&err);
        return;
    }
    must(sm_mesh_format(&mesh, text, sizeof text) < sizeof text);
    sm_source printed = sm_source_of("", text);
    must(sm_mesh_parse(&printed, &again, NULL) == SM_OK);
    sm_mesh_format(&again, twice, sizeof twice);
    must(strcmp(text, twice) == 0);
}

static void fuzz_dims(const sm_source *source) {
    const sm_mesh mesh = usual_mesh();
    sm_einsum einsum;
    sm_error err = {0};
    sm_source text = sm_source_of("", "A[I_X,J] B[J,K_Y] -> C[I_X,K_Y]");
    must(sm_einsum_parse(&text, &mesh, &einsum, NULL) == SM_OK);
    if (sm_dims_parse(source, &einsum, &err) != SM_OK) check_error(&err);
    for (int i = 0; i < einsum.indices; i++)
        must(einsum.index[i].size >= 0 && einsum.index[i].size <= 1e18);
}

static bool visit_some(const sm_lowering *lowering, void *left) {
    must(lowering->steps >= 1 && lowering->steps <= SM_MAX_STEPS && lowering->peak_bytes > 0);
    return --*(int *)left > 0;
}

static void lower(sm_einsum *einsum, const sm_mesh *mesh, const sm_source *source) {
    int left = 20;
    for (int i = 0; i < einsum->indices; i++)
        if (einsum->index[i].size == 0) sm_index_set_size(einsum, i, 16);
    if (sm_einsum_infer_output(einsum, source, NULL) == SM_OK &&
        sm_einsum_check(einsum, mesh, source, NULL) == SM_OK)
        sm_einsum_alternatives(einsum, mesh, visit_some, &left, NULL);
}

typedef sm_status (*parser)(const sm_source *, const sm_mesh *, sm_einsum *, sm_error *);

static void fuzz_einsum(const sm_source *source, parser parse) {
    const sm_mesh mesh = usual_mesh();
    sm_einsum einsum, again;
    sm_error err = {0};
    char text[LONGEST], twice[LONGEST];
    if (parse(source, &mesh, &einsum, &err) != SM_OK) {
        check_error(&err);
        return;
    }
    must(sm_einsum_format(&einsum, &mesh, text, sizeof text) < sizeof text);
    sm_source printed = sm_source_of("", text);
    must(parse(&printed, &mesh, &again, NULL) == SM_OK);
    sm_einsum_format(&again, &mesh, twice, sizeof twice);
    must(strcmp(text, twice) == 0);
    lower(&einsum, &mesh, source);
}

static void fuzz_tiled(const sm_source *source) {
    const sm_module_shape *a;
    double size[32];
    sm_error err = {0};
    sm_arena *arena = sm_arena_new();
    if (sm_module_shape_parse(source, arena, &a, &err) != SM_OK) check_error(&err);
    else if (a->parts == 0) {
        must(a->dim.n <= 32 && sm_module_padded(a, size) >= 1);
        for (int i = 0; i < a->dim.n; i++) must(size[i] >= (double)a->dim.at[i]);
        must(sm_module_bytes(a, -1) >= sm_module_data_bytes(a) || a->element_bits);
    }
    sm_arena_free(arena);
}

/* Every line reads arrays that are there, inputs or made above, and its einsum has a shape. */
static void check_chain(const sm_chain *chain) {
    for (int l = 0; l < chain->lines; l++) {
        const sm_chain_line *line = &chain->line[l];
        const sm_array *operand[SM_MAX_OPERANDS];
        sm_einsum einsum;
        must(line->operands >= 1 && line->operands <= SM_MAX_OPERANDS);
        must(chain->array[line->result].line == l);
        for (int o = 0; o < line->operands; o++) {
            must(line->operand[o] < chain->arrays && chain->array[line->operand[o]].line < l);
            operand[o] = &chain->array[line->operand[o]].array;
        }
        sm_chain_einsum(chain, line->operands, operand, &chain->array[line->result].array, &einsum,
                        NULL);
        must(einsum.indices <= SM_MAX_INDICES);
    }
}

static void fuzz_chain(const sm_source *source) {
    const sm_mesh mesh = usual_mesh();
    sm_error err = {0};
    sm_arena *arena = sm_arena_new();
    sm_chain *chain = sm_arena_alloc(arena, sizeof *chain);
    const char *end = memchr(source->text, '\n', source->length);
    size_t first = end ? (size_t)(end - source->text) : 0;
    const sm_source dims = {"dims", source->text, first};
    const sm_source lines = {"fuzz", source->text + first, source->length - first};
    must(chain != NULL);
    if (sm_chain_read(&lines, &dims, &mesh, arena, chain, &err) == SM_OK) check_chain(chain);
    else must(err.status == SM_BAD_INPUT && err.sentence[0] != '\0');
    sm_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const sm_source source = {"fuzz", (const char *)data + 1, size - 1};
    if (data[0] == 'm') fuzz_mesh(&source);
    else if (data[0] == 'd') fuzz_dims(&source);
    else if (data[0] == 't') fuzz_tiled(&source);
    else if (data[0] == 'c') fuzz_chain(&source);
    else fuzz_einsum(&source, data[0] == 'a' ? sm_array_parse : sm_einsum_parse);
    return 0;
}
