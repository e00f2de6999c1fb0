/* Chains from einsums, and einsums from the lines of chains. */
#include "scalemodel/chain.h"

#include <string.h>

/* ---- building ---- */

/* Every line that reads the array reads the copy. */
static void read_copy(sm_chain *chain, int array, int copy) {
    for (int l = 0; l < chain->lines; l++)
        for (int o = 0; o < chain->line[l].operands; o++)
            if (chain->line[l].operand[o] == array) chain->line[l].operand[o] = copy;
}

static void insert_line(sm_chain *chain, int at, const sm_chain_line *line) {
    for (int a = 0; a < chain->arrays; a++) chain->array[a].line += chain->array[a].line >= at;
    memmove(&chain->line[at + 1], &chain->line[at], (size_t)(chain->lines - at) * sizeof *line);
    chain->line[at] = *line;
    chain->lines++;
}

bool sm_einsum_is_chain(const sm_einsum *einsum) {
    bool diagonal = false;
    for (int o = 0; o < einsum->operands; o++)
        diagonal = diagonal || sm_array_is_diagonal(&einsum->in[o], einsum);
    return einsum->operands > 2 || (einsum->operands == 2 && diagonal);
}

void sm_chain_take_diagonal(sm_chain *chain, int operand, int at) {
    int made = chain->arrays++;
    const sm_array array = chain->array[operand].array;
    sm_chain_array *out = &chain->array[made];
    *out = (sm_chain_array){.line = at, .uses = 1, .array.dtype = array.dtype};
    if (array.name[0])
        snprintf(out->array.name, sizeof out->array.name, "diag%.*s",
                 (int)sizeof out->array.name - 5, array.name);
    for (int d = 0; d < array.rank; d++)
        if (sm_index_repeats(&chain->names, array.dim[d].index) < 0)
            out->array.dim[out->array.rank++] = (sm_dim){.index = array.dim[d].index};
    const sm_chain_line line = {.operands = 1, .operand = {operand}, .result = made};
    read_copy(chain, operand, made);
    insert_line(chain, at, &line);
    out->line = at;
}

void sm_chain_of_einsum(const sm_einsum *einsum, sm_chain *chain) {
    memset(chain, 0, sizeof *chain);
    chain->names = *einsum;
    chain->arrays = einsum->operands + 1;
    chain->lines = 1;
    sm_chain_line *line = &chain->line[0];
    line->operands = einsum->operands;
    line->result = einsum->operands;
    for (int o = 0; o < einsum->operands; o++) {
        chain->array[o] =
            (sm_chain_array){.array = einsum->in[o], .given = true, .line = -1, .uses = 1};
        line->operand[o] = o;
    }
    chain->array[line->result] =
        (sm_chain_array){.array = einsum->out, .given = einsum->out_sharding_given};
    for (int o = 0; einsum->operands > 1 && o < einsum->operands; o++)
        if (sm_array_is_diagonal(&einsum->in[o], einsum))
            sm_chain_take_diagonal(chain, o, chain->lines - 1);
}

sm_status sm_chain_share_moves(sm_chain *chain, sm_error *err) {
    int arrays = chain->arrays;
    for (int a = 0; a < arrays; a++) {
        if (!chain->array[a].given || chain->array[a].uses < 2) continue;
        if (chain->arrays == SM_CHAIN_MOST_ARRAYS || chain->lines == SM_CHAIN_MOST_LINES)
            return sm_fail(err, SM_BAD_INPUT, "more than %d lines, or %d arrays",
                           SM_CHAIN_MOST_LINES, SM_CHAIN_MOST_ARRAYS);
        int copy = chain->arrays++, at = chain->array[a].line + 1;
        const sm_chain_line line = {
            .work = SM_LOCAL_NOTHING, .operands = 1, .operand = {a}, .result = copy};
        read_copy(chain, a, copy);
        insert_line(chain, at, &line);
        chain->array[copy] = chain->array[a];
        chain->array[copy].given = chain->array[copy].named = false;
        chain->array[copy].line = at;
        sm_array *array = &chain->array[copy].array;
        array->unreduced = 0;
        for (int d = 0; d < array->rank; d++) array->dim[d].n_axes = 0;
        chain->array[a].uses = 1;
    }
    return SM_OK;
}

/* ---- the einsum of a line ---- */

typedef struct renumbering {
    const sm_chain *chain;
    sm_einsum *einsum;
    int local[SM_MAX_INDICES], index[SM_MAX_INDICES];
} renumbering;

static void take_array(renumbering *r, const sm_array *array, sm_array *out) {
    *out = *array;
    for (int d = 0; d < array->rank; d++) {
        int index = array->dim[d].index;
        if (r->local[index] < 0) {
            r->local[index] = r->einsum->indices;
            r->index[r->einsum->indices] = index;
            r->einsum->index[r->einsum->indices++] = r->chain->names.index[index];
        }
        out->dim[d].index = r->local[index];
    }
}

void sm_chain_einsum(const sm_chain *chain, int operands, const sm_array *const *operand,
                     const sm_array *out, sm_einsum *einsum, int *index) {
    renumbering r = {.chain = chain, .einsum = einsum};
    memset(r.local, -1, sizeof r.local);
    memset(einsum, 0, sizeof *einsum);
    einsum->operands = operands;
    einsum->has_output = einsum->out_sharding_given = true;
    for (int o = 0; o < operands; o++) take_array(&r, operand[o], &einsum->in[o]);
    take_array(&r, out, &einsum->out);
    for (int i = 0; i < einsum->indices; i++) {
        int first = einsum->index[i].repeats - 1;
        einsum->index[i].repeats = first >= 0 ? r.local[first] + 1 : 0;
    }
    if (index) memcpy(index, r.index, sizeof r.index);
}
