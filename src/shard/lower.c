/* From an assignment of mesh axes to indices to the steps that compute the einsum.
 *
 * The four cases of "How To Scale Your Model", chapter 3, fall out of one rule, applied to each
 * axis by itself: the chips along the axis split the assigned index, so each operand must be
 * sharded there (where it has the index) and nowhere else on that axis, and the product is sharded
 * there or a partial sum. */
#include "reshard.h"
#include "notation.h"

typedef struct job {
    const sm_einsum *einsum;
    const sm_mesh *mesh;
    const int8_t *at;
    const sm_array *want;     /* NULL: as it falls */
    sm_axes partial;          /* axes that may stay unreduced when want == NULL */
    bool bounded;             /* no array moves more than it must */
    const sm_array *composed; /* of a composition: its `split`; NULL: found here */
    const sm_lowering *const *move, *as;
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
    return SM_OK;
}

static bool is_contracted(const sm_einsum *einsum, int index) {
    return !sm_array_has(&einsum->out, index);
}

static sm_status check_want_dims(const job *j, sm_error *err) {
    const sm_array *out = &j->einsum->out, *want = j->want;
    bool same = want->rank == out->rank;
    for (int d = 0; d < want->rank && same; d++) same = want->dim[d].index == out->dim[d].index;
    return same ? SM_OK
                : sm_fail(err, SM_BAD_INPUT,
                          "the wanted output has other indices than the einsum's output");
}

/* Partial sums of a lone operand may stay so: its einsum only adds. */
static sm_axes passing(const job *j) {
    unsigned set = j->einsum->operands == 1 && j->want != NULL ? j->want->unreduced : 0;
    return (sm_axes)(set & j->einsum->in[0].unreduced);
}

static sm_status check_want(const job *j, sm_error *err) {
    if (j->want == NULL) return SM_OK;
    sm_status status = sm_array_check_axes(j->want, j->einsum, j->mesh, NULL, err);
    if (status == SM_OK) status = check_want_dims(j, err);
    for (int a = 0; a < j->mesh->axes && status == SM_OK; a++)
        if ((j->want->unreduced & ~passing(j)) >> a & 1 &&
            (j->at[a] < 0 || !is_contracted(j->einsum, j->at[a])))
            return sm_fail(
                err, SM_BAD_INPUT,
                "the output cannot be unreduced over %s, which splits no contracted index",
                j->mesh->axis[a].name);
    return status;
}

/* ---- the order of the axes that split one index ---- */

/* The axes assigned to `index`: first those of `like` in its order, then the others. */
static sm_dim split_like(const job *j, int index, const sm_dim *like) {
    sm_dim split = {.index = index};
    for (int i = 0; like != NULL && i < like->n_axes; i++)
        if (j->at[like->axis[i]] == index) sm_dim_append(&split, like->axis[i]);
    for (int a = 0; a < j->mesh->axes; a++)
        if (j->at[a] == index && !memchr(split.axis, a, (size_t)split.n_axes))
            sm_dim_append(&split, a);
    return split;
}

static const sm_dim *dim_of_index(const sm_array *array, int index) {
    int d = array != NULL ? sm_array_dim_of(array, index) : -1;
    return d >= 0 ? &array->dim[d] : NULL;
}

/* ---- steps ---- */

double sm_step_wire_bytes(const sm_mesh *mesh, const sm_step *step) {
    double n = sm_mesh_size(mesh, step->axes);
    if (step->kind != SM_STEP_COLLECTIVE) return 0;
    switch (step->op) {
    case SM_ALL_REDUCE: return 2 * step->bytes * (1 - 1 / n);
    case SM_ALL_TO_ALL: return step->bytes / n * (1 - 1 / n);
    case SM_PERMUTE: return step->bytes;
    default: return step->bytes * (1 - 1 / n);
    }
}

bool sm_einsum_is_resharding(const sm_einsum *e) {
    if (e->operands != 1 || e->in[0].rank != e->out.rank) return false;
    for (int d = 0; d < e->out.rank; d++)
        if (!sm_array_has(&e->in[0], e->out.dim[d].index)) return false;
    return true;
}

/* Is the output the operand as it was moved? Elsewhere its elements lie otherwise: a copy. */
static bool keeps_its_order(const sm_einsum *e) {
    const sm_array *in = &e->in[0], *out = &e->out;
    if (!sm_einsum_is_resharding(e) || (out->dtype_given && out->dtype != in->dtype)) return false;
    for (int d = 0; d < out->rank; d++)
        if (out->dim[d].index != in->dim[d].index) return false;
    return true;
}

/* The sharding of an operand in the local einsum. */
static sm_array split_operand(const job *j, const sm_array *operand) {
    sm_array split = *operand;
    split.unreduced = passing(j);
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

/* Of the fullest chip, in the local einsum. */
static double bytes_read(const job *j, const sm_array *operand) {
    double size[SM_MAX_RANK];
    for (int d = 0; d < operand->rank; d++)
        size[d] = sm_cut(j->einsum->index[operand->dim[d].index].size,
                         sm_dim_ways(j->mesh, &operand->dim[d], 0));
    return sm_array_elements_read(operand, j->einsum, size) * sm_dtype_bytes(operand->dtype);
}

/* The steps on every operand. *live: the bytes then held on a chip; *read: those the einsum reads.
 */
static bool lower_operands(job *j, sm_lowering *l, double *live, double *read) {
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
                        .stored_bytes = stored,
                        .move = j->move ? j->move[o] : NULL,
                        .as = j->as,
                        .bounded = j->bounded};
        sm_array target = j->composed ? j->composed[o] : split_operand(j, &e->in[o]);
        if (!sm_reshard_run(&r, &e->in[o], &target) || r.full) return false;
        *live += r.version_bytes;
        *read += bytes_read(j, &target);
        j->bounded = r.bounded;
    }
    return true;
}

static bool lower_output(job *j, sm_lowering *l, const sm_array *partial, double stored) {
    sm_array target = *partial;
    if (j->want != NULL) target = *j->want;
    else target.unreduced &= j->partial;
    sm_reshard r = {.einsum = j->einsum,
                    .mesh = j->mesh,
                    .lowering = l,
                    .assisting = assisting(j),
                    .array = -1,
                    .other_bytes = stored,
                    .version_bytes = sm_array_local_bytes(partial, j->einsum, j->mesh),
                    .move = j->move ? j->move[j->einsum->operands] : NULL,
                    .as = j->as,
                    .bounded = j->bounded};
    bool fits = sm_reshard_run(&r, partial, &target) && !r.full;
    j->bounded = r.bounded;
    l->out = target;
    return fits;
}

static double stored_bytes(const job *j) {
    double bytes = 0;
    for (int o = 0; o < j->einsum->operands; o++)
        bytes += sm_array_local_bytes(&j->einsum->in[o], j->einsum, j->mesh);
    return bytes;
}

/* The sharding of the product of the local einsums: a split contracted index leaves partial sums.
 */
static sm_array product_of(const job *j) {
    if (j->composed) return j->composed[j->einsum->operands];
    sm_array out = split_operand(j, &j->einsum->out);
    for (int i = 0; i < j->einsum->indices; i++)
        for (int k = 0; is_contracted(j->einsum, i) && k < j->split[i].n_axes; k++)
            out.unreduced |= (sm_axes)(1u << j->split[i].axis[k]);
    out.unreduced |= passing(j);
    return out;
}

static bool lower(job *j, sm_lowering *l) {
    memset(l, 0, sizeof *l);
    memset(l->at, SM_REPLICATED, sizeof l->at);
    memcpy(l->at, j->at, (size_t)j->mesh->axes);
    double live = 0, read = 0;
    bool full = false;
    j->bounded = true;
    if (!lower_operands(j, l, &live, &read)) return false;
    const sm_array partial = product_of(j);
    bool stays = keeps_its_order(j->einsum); /* what was moved is the output, and nothing is read */
    double written = stays ? 0 : sm_array_local_bytes(&partial, j->einsum, j->mesh);
    l->moves_only = stays;
    /* The einsum of the fullest chip. */
    sm_einsum local = *j->einsum;
    for (int i = 0; i < local.indices; i++) {
        double ways = 1;
        for (int a = 0; a < j->mesh->axes; a++) ways *= j->at[a] == i ? j->mesh->axis[a].size : 1;
        local.index[i].size = sm_cut(local.index[i].size, ways);
    }
    l->flops_per_chip = sm_einsum_flops(&local);
    const sm_step einsum = {.kind = SM_STEP_EINSUM,
                            .op = SM_COLLECTIVE_COUNT,
                            .array = -1,
                            .from = -1,
                            .to = -1,
                            .flops = l->flops_per_chip,
                            .local_bytes =
                                read + sm_array_local_bytes(&partial, j->einsum, j->mesh),
                            .after = sm_layout_of(&partial)};
    sm_lowering_append(l, &einsum, live + written, &full);
    if (full || !lower_output(j, l, &partial, stored_bytes(j))) return false;
    for (int i = 0; i < l->steps; i++) l->wire_bytes += sm_step_wire_bytes(j->mesh, &l->step[i]);
    return true;
}

/* ---- choosing the orders ---- */

/* Less on the wire, or the same in fewer steps. */
static bool is_less(const sm_lowering *a, const sm_lowering *b) {
    double slack = 1e-9 * b->wire_bytes;
    if (a->wire_bytes < b->wire_bytes - slack) return true;
    return a->wire_bytes <= b->wire_bytes + slack && a->steps < b->steps;
}

/* An index split by several axes can take the order of any array that has it: take the one that
 * communicates least, one index after the other. Leaves the best lowering in *l. */
static bool choose_orders(job *j, sm_lowering *l) {
    /* One array that moves as a whole goes straight to the order that is wanted. */
    const sm_array *first = sm_einsum_is_resharding(j->einsum) ? j->want : NULL;
    for (int i = 0; i < j->einsum->indices; i++)
        j->split[i] = split_like(j, i, dim_of_index(first, i));
    bool fits = lower(j, l);
    if (first != NULL && j->bounded) return fits;
    for (int i = 0; i < j->einsum->indices; i++)
        for (int o = 0; o <= j->einsum->operands && j->split[i].n_axes > 1; o++) {
            sm_lowering other;
            sm_dim kept = j->split[i];
            /* Array number o: the operands, then the wanted output. */
            j->split[i] = split_like(
                j, i, dim_of_index(o < j->einsum->operands ? &j->einsum->in[o] : j->want, i));
            if (memcmp(kept.axis, j->split[i].axis, sizeof kept.axis) == 0) continue;
            bool bounded = j->bounded, other_fits = lower(j, &other);
            if (other_fits > fits || (other_fits && fits && is_less(&other, l))) {
                *l = other;
                fits = other_fits;
            } else {
                j->split[i] = kept;
                j->bounded = bounded;
            }
        }
    return fits;
}

static sm_status lower_job(job *j, sm_lowering *lowering, sm_error *err) {
    sm_status status = check_assignment(j, err);
    if (status == SM_OK) status = check_want(j, err);
    if (status != SM_OK) return status;
    if (!(j->composed ? lower(j, lowering) : choose_orders(j, lowering)))
        return sm_fail(err, SM_BAD_INPUT, "the einsum needs more than %d steps", SM_MAX_STEPS);
    return SM_OK;
}

static sm_status lower_whole(job j, sm_lowering *lowering, sm_error *err) {
    sm_einsum whole = *j.einsum;
    sm_status status = sm_einsum_infer_output(&whole, NULL, err);
    j.einsum = &whole;
    return status == SM_OK ? lower_job(&j, lowering, err) : status;
}

sm_status sm_einsum_lower(const sm_einsum *einsum, const sm_mesh *mesh, const int8_t *at,
                          const sm_array *want, bool keep_unreduced, sm_lowering *lowering,
                          sm_error *err) {
    job j = {.einsum = einsum, .mesh = mesh, .at = at, .want = want};
    j.partial = keep_unreduced ? (sm_axes)~0u : 0;
    return lower_whole(j, lowering, err);
}

/* On the parts of axes that *lowering has. *bounded: no steps on other parts move less. */
static sm_status lower_on_parts(const job *whole, sm_lowering *lowering, bool *bounded,
                                sm_error *err) {
    const sm_lowering as = *lowering;
    sm_einsum split = *whole->einsum;
    sm_mesh parts;
    int8_t part_at[SM_MAX_AXES];
    sm_lowering_mesh(&as, whole->mesh, &parts);
    for (int o = 0; o < split.operands; o++) split.in[o] = sm_lowering_array(&as, &split.in[o]);
    for (int p = 0; p < parts.axes; p++) part_at[p] = whole->at[as.parts ? as.part[p].axis : p];
    const sm_array wanted = sm_lowering_array(&as, whole->want);
    sm_array composed[SM_MAX_OPERANDS + 1];
    for (int o = 0; whole->composed && o <= split.operands; o++)
        composed[o] = sm_lowering_array(&as, &whole->composed[o]);
    job j = {.einsum = &split,
             .mesh = &parts,
             .at = part_at,
             .want = &wanted,
             .composed = whole->composed ? composed : NULL,
             .move = whole->move,
             .as = &as};
    sm_status status = lower_job(&j, lowering, err);
    memset(lowering->at, SM_REPLICATED, sizeof lowering->at);
    memcpy(lowering->at, whole->at, (size_t)whole->mesh->axes);
    memcpy(lowering->part, as.part, sizeof as.part);
    lowering->parts = as.parts;
    lowering->out = *whole->want;
    *bounded = j.bounded;
    return status;
}

/* Keeps the next lowering when it moves other bytes than the first. */
static void try_way(const job *j, sm_lowering *way, int *n) {
    bool bounded;
    if (lower_on_parts(j, &way[*n], &bounded, NULL) == SM_OK &&
        fabs(way[*n].wire_bytes - way[0].wire_bytes) > 1e-9 * way[0].wire_bytes)
        ++*n;
}

int sm_einsum_lower_ways(const sm_einsum *einsum, const sm_mesh *mesh, const int8_t *at,
                         const sm_array *want, sm_lowering *way, sm_error *err) {
    sm_einsum whole = *einsum;
    sm_mesh straight = *mesh;
    bool bounded;
    int n = 1;
    job j = {.einsum = &whole, .mesh = mesh, .at = at, .want = want};
    if (sm_einsum_infer_output(&whole, NULL, err) != SM_OK) return 0;
    way[0].parts = 0;
    if (lower_on_parts(&j, &way[0], &bounded, err) != SM_OK) return 0;
    if (bounded) return n;
    straight.any_order = true;
    j.mesh = &straight;
    way[n].parts = 0;
    try_way(&j, way, &n);
    j.mesh = mesh;
    if (sm_lowering_split(&way[n], mesh)) try_way(&j, way, &n);
    return n;
}

/* ---- compositions ---- */

sm_status sm_einsum_compose(const sm_composition *c, sm_lowering *lowering, sm_error *err) {
    const job j = {.einsum = c->einsum,
                   .mesh = c->mesh,
                   .at = c->at,
                   .want = &c->einsum->out,
                   .composed = c->split,
                   .move = c->move};
    bool bounded;
    lowering->parts = 0;
    for (int o = 0; o <= c->einsum->operands && lowering->parts == 0; o++) {
        memcpy(lowering->part, c->move[o]->part, sizeof lowering->part);
        lowering->parts = c->move[o]->parts;
    }
    return lower_on_parts(&j, lowering, &bounded, err);
}
