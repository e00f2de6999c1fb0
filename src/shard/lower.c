/* From an assignment of mesh axes to indices to the steps that compute the einsum.
 *
 * The four cases of "How To Scale Your Model", chapter 3, fall out of one rule, applied to each
 * axis by itself: the chips along the axis split the assigned index, so each operand must be
 * sharded there (where it has the index) and nowhere else on that axis, and the product is sharded
 * there or a partial sum. */
#include "reshard.h"
#include "notation.h"
#include <math.h>
#include <string.h>

typedef struct job {
    const sm_einsum *einsum;
    const sm_mesh *mesh;
    const int8_t *at;
    const sm_array *want;         /* NULL: as it falls */
    sm_axes partial;              /* axes that may stay unreduced when want == NULL */
    sm_dim split[SM_MAX_INDICES]; /* of each index: the axes that split it in the local einsum,
                                     major first */
} job;

/* ---- validity ---- */

static sm_status check_assignment(const job *j, sm_error *err) {
    for (int a = 0; a < j->mesh->axes; a++)
        if ((j->at[a] < 0 && j->at[a] != SM_REPLICATED && j->at[a] != SM_ASSISTING) ||
            j->at[a] >= j->einsum->indices)
            return sm_fail(err, SM_BAD_INPUT,
                           "axis %s is assigned to index %d, which does not exist",
                           j->mesh->axis[a].name, j->at[a]);
    for (int i = 0; i < j->einsum->indices; i++) {
        double ways = 1;
        for (int a = 0; a < j->mesh->axes; a++) ways *= j->at[a] == i ? j->mesh->axis[a].size : 1;
        if (fmod(j->einsum->index[i].size, ways) != 0)
            return sm_fail(err, SM_BAD_INPUT, "index %s of %.0f does not divide over %.0f chips",
                           j->einsum->index[i].name, j->einsum->index[i].size, ways);
    }
    return SM_OK;
}

static bool is_contracted(const sm_einsum *einsum, int index) {
    return !sm_array_has(&einsum->out, index);
}

static sm_status check_want_dims(const job *j, sm_error *err) {
    const sm_array *out = &j->einsum->out, *want = j->want;
    for (int d = 0; d < want->rank; d++) {
        const sm_index *index = &j->einsum->index[want->dim[d].index];
        if (want->rank != out->rank || want->dim[d].index != out->dim[d].index)
            return sm_fail(err, SM_BAD_INPUT,
                           "the wanted output has other indices than the einsum's output");
        if (!sm_axes_divide(j->einsum, j->mesh, &want->dim[d], 0))
            return sm_fail(err, SM_BAD_INPUT, "index %s of %.0f does not divide over its axes",
                           index->name, index->size);
    }
    return want->rank == out->rank
               ? SM_OK
               : sm_fail(err, SM_BAD_INPUT,
                         "the wanted output has other indices than the einsum's output");
}

static sm_status check_want(const job *j, sm_error *err) {
    if (j->want == NULL) return SM_OK;
    sm_status status = sm_array_check_axes(j->want, j->einsum, j->mesh, NULL, err);
    if (status == SM_OK) status = check_want_dims(j, err);
    for (int a = 0; a < j->mesh->axes && status == SM_OK; a++)
        if ((j->want->unreduced >> a & 1) && (j->at[a] < 0 || !is_contracted(j->einsum, j->at[a])))
            return sm_fail(
                err, SM_BAD_INPUT,
                "the output cannot be unreduced over %s, which splits no contracted index",
                j->mesh->axis[a].name);
    return status;
}

/* ---- the order of the axes that split one index ---- */

static bool dim_has(const sm_dim *dim, int axis) {
    for (int i = 0; i < dim->n_axes; i++)
        if (dim->axis[i] == axis) return true;
    return false;
}

/* The axes assigned to `index`: first those of `like` in its order, then the others. */
static sm_dim split_like(const job *j, int index, const sm_dim *like) {
    sm_dim split = {.index = index};
    for (int i = 0; like != NULL && i < like->n_axes; i++)
        if (j->at[like->axis[i]] == index) sm_dim_append(&split, like->axis[i]);
    for (int a = 0; a < j->mesh->axes; a++)
        if (j->at[a] == index && !dim_has(&split, a)) sm_dim_append(&split, a);
    return split;
}

static const sm_dim *dim_of_index(const sm_array *array, int index) {
    int d = array != NULL ? sm_array_dim_of(array, index) : -1;
    return d >= 0 ? &array->dim[d] : NULL;
}

/* ---- steps ---- */

/* The sharding of an operand in the local einsum. */
static sm_array split_operand(const job *j, const sm_array *operand) {
    sm_array split = *operand;
    split.unreduced = 0;
    for (int d = 0; d < split.rank; d++) {
        const sm_dim *order = &j->split[split.dim[d].index];
        memcpy(split.dim[d].axis, order->axis, sizeof order->axis);
        split.dim[d].n_axes = order->n_axes;
    }
    return split;
}

static sm_axes assisting(const job *j) {
    unsigned set = 0;
    for (int a = 0; a < j->mesh->axes; a++)
        if (j->at[a] == SM_ASSISTING) set |= 1u << a;
    return (sm_axes)set;
}

/* The steps on every operand. *live: the bytes then held on a chip; *read: those the einsum reads.
 */
static void lower_operands(const job *j, sm_lowering *l, double *live, double *read, bool *full) {
    const sm_einsum *e = j->einsum;
    *live = *read = 0;
    for (int o = 0; o < e->operands; o++) *live += sm_array_local_bytes(&e->in[o], e, j->mesh);
    for (int o = 0; o < e->operands; o++) {
        double stored = sm_array_local_bytes(&e->in[o], e, j->mesh);
        sm_reshard r = {.einsum = e,
                        .mesh = j->mesh,
                        .lowering = l,
                        .assisting = assisting(j),
                        .array = o,
                        .other_bytes = *live - stored,
                        .stored_bytes = stored};
        sm_array state = e->in[o], target = split_operand(j, &e->in[o]);
        sm_reshard_run(&r, &state, &target);
        *live += r.version_bytes;
        *read += sm_array_local_bytes(&state, e, j->mesh);
        *full = *full || r.full;
    }
}

static void lower_output(const job *j, sm_lowering *l, const sm_array *partial, double stored,
                         bool *full) {
    sm_array state = *partial, target = *partial;
    if (j->want != NULL) target = *j->want;
    else target.unreduced &= j->partial;
    sm_reshard r = {.einsum = j->einsum,
                    .mesh = j->mesh,
                    .lowering = l,
                    .assisting = assisting(j),
                    .array = -1,
                    .other_bytes = stored,
                    .version_bytes = sm_array_local_bytes(partial, j->einsum, j->mesh)};
    sm_reshard_run(&r, &state, &target);
    *full = *full || r.full;
    l->out = state;
}

static double stored_bytes(const job *j) {
    double bytes = 0;
    for (int o = 0; o < j->einsum->operands; o++)
        bytes += sm_array_local_bytes(&j->einsum->in[o], j->einsum, j->mesh);
    return bytes;
}

static bool lower(const job *j, sm_lowering *l) {
    memset(l, 0, sizeof *l);
    memset(l->at, SM_REPLICATED, sizeof l->at);
    memcpy(l->at, j->at, (size_t)j->mesh->axes);
    double live = 0, read = 0;
    bool full = false;
    lower_operands(j, l, &live, &read, &full);
    /* The sharding of the product of the local einsums: a split contracted index leaves partial
     * sums.
     */
    sm_array out = split_operand(j, &j->einsum->out);
    for (int i = 0; i < j->einsum->indices; i++)
        for (int k = 0; is_contracted(j->einsum, i) && k < j->split[i].n_axes; k++)
            out.unreduced |= (sm_axes)(1u << j->split[i].axis[k]);
    sm_array partial = out;
    double written = sm_array_local_bytes(&partial, j->einsum, j->mesh);
    double ways = 1;
    for (int a = 0; a < j->mesh->axes; a++) ways *= j->at[a] >= 0 ? j->mesh->axis[a].size : 1;
    l->flops_per_chip = sm_einsum_flops(j->einsum) / ways;
    const sm_step einsum = {.kind = SM_STEP_EINSUM,
                            .op = SM_COLLECTIVE_COUNT,
                            .array = -1,
                            .from = -1,
                            .to = -1,
                            .flops = l->flops_per_chip,
                            .local_bytes = read + written,
                            .after = sm_layout_of(&partial)};
    sm_lowering_append(l, &einsum, live + written, &full);
    lower_output(j, l, &partial, stored_bytes(j), &full);
    return !full;
}

/* ---- choosing the orders ---- */

static double communicated(const sm_lowering *l) {
    double bytes = 0;
    for (int s = 0; s < l->steps; s++)
        bytes += l->step[s].bytes + (l->step[s].kind == SM_STEP_COLLECTIVE);
    return bytes;
}

/* An index split by several axes can take the order of any array that has it: take the one that
 * communicates least, one index after the other. Leaves the best lowering in *l. */
static bool choose_orders(job *j, sm_lowering *l) {
    for (int i = 0; i < j->einsum->indices; i++) j->split[i] = split_like(j, i, NULL);
    bool fits = lower(j, l);
    for (int i = 0; i < j->einsum->indices; i++)
        for (int o = 0; o <= j->einsum->operands && j->split[i].n_axes > 1; o++) {
            sm_lowering other;
            sm_dim kept = j->split[i];
            /* Array number o: the operands, then the wanted output. */
            j->split[i] = split_like(
                j, i, dim_of_index(o < j->einsum->operands ? &j->einsum->in[o] : j->want, i));
            if (memcmp(kept.axis, j->split[i].axis, sizeof kept.axis) == 0) continue;
            bool other_fits = lower(j, &other);
            if (other_fits > fits ||
                (other_fits == fits && communicated(&other) < communicated(l))) {
                *l = other;
                fits = other_fits;
            } else j->split[i] = kept;
        }
    return fits;
}

sm_status sm_einsum_lower(const sm_einsum *einsum, const sm_mesh *mesh, const int8_t *at,
                          const sm_array *want, bool keep_unreduced, sm_lowering *lowering,
                          sm_error *err) {
    sm_einsum whole = *einsum;
    sm_status status = sm_einsum_infer_output(&whole, NULL, err);
    job j = {.einsum = &whole, .mesh = mesh, .at = at, .want = want};
    j.partial = keep_unreduced ? (sm_axes)~0u : 0;
    if (status == SM_OK) status = check_assignment(&j, err);
    if (status == SM_OK) status = check_want(&j, err);
    if (status != SM_OK) return status;
    if (!choose_orders(&j, lowering))
        return sm_fail(err, SM_BAD_INPUT, "the einsum needs more than %d steps", SM_MAX_STEPS);
    return SM_OK;
}
