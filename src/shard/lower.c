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
    sm_routes *routes;
    const sm_einsum *einsum;
    const sm_mesh *mesh;
    const int8_t *at;
    const sm_array *want;         /* NULL: as it falls */
    sm_axes partial;              /* axes that may stay unreduced when want == NULL */
    bool bounded;                 /* no array moves more than it must */
    const sm_route *const *route; /* of each operand and the output; NULL: the least is found */
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
    for (int d = 0; d < operand->rank; d++) {
        unsigned axes = 0;
        for (int k = 0; k < operand->dim[d].n_axes; k++) axes |= 1u << operand->dim[d].axis[k];
        size[d] = sm_cut(j->einsum->index[operand->dim[d].index].size,
                         sm_mesh_size(j->mesh, (sm_axes)axes));
    }
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
        sm_reshard r = {.routes = j->routes,
                        .route = j->route ? j->route[o] : NULL,
                        .einsum = e,
                        .mesh = j->mesh,
                        .lowering = l,
                        .assisting = assisting(j),
                        .array = o,
                        .other_bytes = *live - stored,
                        .stored_bytes = stored,
                        .bounded = j->bounded};
        sm_array target = split_operand(j, &e->in[o]);
        if (!sm_reshard_run(&r, &e->in[o], &target) || r.full) return false;
        *live += r.version_bytes;
        *read += bytes_read(j, &target);
        j->bounded = r.bounded;
    }
    return true;
}

/* The sharding of the product of the local einsums: a split contracted index leaves partial sums.
 */
static sm_array product_of(const job *j) {
    sm_array out = split_operand(j, &j->einsum->out);
    for (int i = 0; i < j->einsum->indices; i++)
        for (int k = 0; is_contracted(j->einsum, i) && k < j->split[i].n_axes; k++)
            out.unreduced |= (sm_axes)(1u << j->split[i].axis[k]);
    out.unreduced |= passing(j);
    return out;
}

static sm_array output_of(const job *j, const sm_array *product) {
    sm_array out = *product;
    if (j->want != NULL) return *j->want;
    out.unreduced &= j->partial;
    return out;
}

static bool lower_output(job *j, sm_lowering *l, const sm_array *product, double stored) {
    l->out = output_of(j, product);
    sm_reshard r = {.routes = j->routes,
                    .route = j->route ? j->route[j->einsum->operands] : NULL,
                    .einsum = j->einsum,
                    .mesh = j->mesh,
                    .lowering = l,
                    .assisting = assisting(j),
                    .array = -1,
                    .other_bytes = stored,
                    .version_bytes = sm_array_local_bytes(product, j->einsum, j->mesh),
                    .bounded = j->bounded};
    bool fits = sm_reshard_run(&r, product, &l->out) && !r.full;
    j->bounded = r.bounded;
    return fits;
}

/* The einsum of the fullest chip. */
static double local_flops(const job *j) {
    sm_einsum local = *j->einsum;
    for (int i = 0; i < local.indices; i++) {
        double ways = 1;
        for (int a = 0; a < j->mesh->axes; a++) ways *= j->at[a] == i ? j->mesh->axis[a].size : 1;
        local.index[i].size = sm_cut(local.index[i].size, ways);
    }
    return sm_einsum_flops(&local);
}

static double stored_bytes(const job *j) {
    double bytes = 0;
    for (int o = 0; o < j->einsum->operands; o++)
        bytes += sm_array_local_bytes(&j->einsum->in[o], j->einsum, j->mesh);
    return bytes;
}

static bool lower(job *j, sm_lowering *l) {
    memset(l, 0, sizeof *l);
    memset(l->at, SM_REPLICATED, sizeof l->at);
    memcpy(l->at, j->at, (size_t)j->mesh->axes);
    double live = 0, read = 0;
    bool full = false;
    j->bounded = true;
    if (!lower_operands(j, l, &live, &read)) return false;
    const sm_array product = product_of(j);
    bool stays = keeps_its_order(j->einsum); /* what was moved is the output, and nothing is read */
    double written = stays ? 0 : sm_array_local_bytes(&product, j->einsum, j->mesh);
    l->moves_only = stays;
    l->flops_per_chip = local_flops(j);
    const sm_step einsum = {.kind = SM_STEP_EINSUM,
                            .op = SM_COLLECTIVE_COUNT,
                            .array = -1,
                            .from = -1,
                            .to = -1,
                            .flops = l->flops_per_chip,
                            .local_bytes =
                                read + sm_array_local_bytes(&product, j->einsum, j->mesh),
                            .after = sm_layout_of(&product)};
    sm_lowering_append(l, &einsum, live + written, &full);
    if (full || !lower_output(j, l, &product, stored_bytes(j))) return false;
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

static sm_status fail_steps(sm_error *err) {
    return sm_fail(err, SM_BAD_INPUT, "the einsum needs more than %d steps", SM_MAX_STEPS);
}

static sm_status lower_job(job *j, sm_lowering *lowering, sm_error *err) {
    sm_status status = check_assignment(j, err);
    if (status == SM_OK) status = check_want(j, err);
    if (status != SM_OK) return status;
    return choose_orders(j, lowering) ? SM_OK : fail_steps(err);
}

sm_status sm_einsum_lower(const sm_einsum *einsum, const sm_mesh *mesh, const int8_t *at,
                          const sm_array *want, bool keep_unreduced, sm_lowering *lowering,
                          sm_error *err) {
    return sm_einsum_lower_by(NULL, einsum, mesh, at, want, keep_unreduced, lowering, err);
}

sm_status sm_einsum_lower_by(sm_routes *routes, const sm_einsum *einsum, const sm_mesh *mesh,
                             const int8_t *at, const sm_array *want, bool keep_unreduced,
                             sm_lowering *lowering, sm_error *err) {
    sm_einsum whole = *einsum;
    sm_status status = sm_einsum_infer_output(&whole, NULL, err);
    job j = {.routes = routes, .einsum = &whole, .mesh = mesh, .at = at, .want = want};
    j.partial = keep_unreduced ? (sm_axes)~0u : 0;
    return status == SM_OK ? lower_job(&j, lowering, err) : status;
}

/* ---- every way ----
 *
 * Arrays move each by itself, so that every array takes each of its useful routes beside each of
 * the others': the one of least bytes; where that takes a detour, the straight one; where parts of
 * axes move less, that. */

enum { MOST_ROUTES = 3, MOST_ARRAYS = SM_MAX_OPERANDS + 1, MOST_CHOSEN = 81, MOST_ORDERS = 16 };

typedef struct routes_of {
    int n, chosen;
    sm_route route[MOST_ROUTES];
    bool in_parts[MOST_ROUTES]; /* the route is on parts of axes */
} routes_of;

typedef struct ways {
    job j;          /* on whole axes */
    sm_lowering as; /* whose parts are those of the axes; none: they stay whole */
    sm_mesh parts;
    routes_of array[MOST_ARRAYS];
    int orders; /* that were lowered, with the bytes that each array moves at least */
    double moved[MOST_ORDERS][MOST_ARRAYS];
    int found;
    bool stopped;
    sm_lowering_visit each;
    void *context;
} ways;

/* The axes whose parts cut what they shard where the axis does: all but some that pad. */
static sm_axes in_parts(const job *j) {
    const sm_einsum *e = j->einsum;
    unsigned set = (1u << j->mesh->axes) - 1;
    for (int o = 0; o <= e->operands; o++) {
        const sm_array *array = o < e->operands ? &e->in[o] : j->want;
        for (int d = 0; d < array->rank; d++) {
            double length = e->index[array->dim[d].index].size;
            for (int i = 0; i < array->dim[d].n_axes; i++) {
                int axis = array->dim[d].axis[i], chips = j->mesh->axis[axis].size;
                if (!sm_axis_parts_fit(length, chips)) set &= ~(1u << axis);
                length = sm_cut(length, chips);
            }
        }
    }
    return (sm_axes)set;
}

/* Where an array comes from and goes to; number operands: the output. */
static void ends_of(const job *j, int array, sm_array *from, sm_array *to) {
    bool output = array == j->einsum->operands;
    *from = output ? product_of(j) : j->einsum->in[array];
    *to = output ? output_of(j, from) : split_operand(j, from);
}

static void add_route(routes_of *r, const sm_route *route, bool in_parts) {
    r->route[r->n] = *route;
    r->in_parts[r->n++] = in_parts;
}

static bool find_routes(ways *w, int array) {
    routes_of *r = &w->array[array];
    const sm_einsum *e = w->j.einsum;
    sm_array from, to;
    sm_journey journey;
    sm_route least, other;
    r->n = r->chosen = 0;
    ends_of(&w->j, array, &from, &to);
    sm_journey_between(w->j.mesh, e, &from, &to, &journey);
    if (!sm_routes_find(w->j.routes, &journey, &least)) return false;
    add_route(r, &least, false);
    if (least.bounded) return true;
    double slack = 1e-9 * least.bytes;
    journey.any_order = true;
    if (sm_routes_find(w->j.routes, &journey, &other) && fabs(other.bytes - least.bytes) > slack)
        add_route(r, &other, false);
    if (w->as.parts == 0) return true;
    from = sm_lowering_array(&w->as, &from);
    to = sm_lowering_array(&w->as, &to);
    sm_journey_between(&w->parts, e, &from, &to, &journey);
    if (sm_routes_find(w->j.routes, &journey, &other) && other.bytes < least.bytes - slack)
        add_route(r, &other, true);
    return true;
}

/* The same job on the parts of axes. */
static void split_job(const ways *w, sm_einsum *einsum, sm_array *want, int8_t *at, job *split) {
    const job *j = &w->j;
    *einsum = *j->einsum;
    for (int o = 0; o < einsum->operands; o++)
        einsum->in[o] = sm_lowering_array(&w->as, &einsum->in[o]);
    *want = sm_lowering_array(&w->as, j->want);
    for (int p = 0; p < w->parts.axes; p++) at[p] = j->at[w->as.part[p].axis];
    *split = *j;
    split->einsum = einsum;
    split->mesh = &w->parts;
    split->want = want;
    split->at = at;
    for (int i = 0; i < einsum->indices; i++) {
        const sm_array alone = {.rank = 1, .dim = {j->split[i]}};
        split->split[i] = sm_lowering_array(&w->as, &alone).dim[0];
    }
}

static void lower_chosen(ways *w) {
    const sm_route *chosen[MOST_ARRAYS];
    sm_route moved[MOST_ARRAYS];
    sm_einsum einsum;
    sm_array want;
    int8_t at[SM_MAX_AXES];
    sm_lowering lowering;
    job j = w->j;
    bool in_parts = false;
    for (int a = 0; a <= j.einsum->operands; a++) {
        const routes_of *r = &w->array[a];
        in_parts = in_parts || r->in_parts[r->chosen];
        chosen[a] = &r->route[r->chosen];
    }
    if (in_parts) split_job(w, &einsum, &want, at, &j);
    for (int a = 0; in_parts && a <= einsum.operands; a++) {
        moved[a] = *chosen[a];
        for (int m = 0; !w->array[a].in_parts[w->array[a].chosen] && m < moved[a].moves; m++)
            moved[a].after[m] = sm_lowering_layout(&w->as, &moved[a].after[m]);
        chosen[a] = &moved[a];
    }
    j.route = chosen;
    if (!lower(&j, &lowering)) return;
    memset(lowering.at, SM_REPLICATED, sizeof lowering.at);
    memcpy(lowering.at, w->j.at, (size_t)w->j.mesh->axes);
    lowering.out = *w->j.want;
    lowering.parts = in_parts ? w->as.parts : 0;
    if (in_parts) memcpy(lowering.part, w->as.part, sizeof lowering.part);
    w->found++;
    w->stopped = !w->each(&lowering, w->context);
}

/* Does no array move less than in another order of axes? */
static bool is_dominated(ways *w, int arrays) {
    double *moved = w->moved[w->orders];
    for (int a = 0; a < arrays; a++) moved[a] = w->array[a].route[0].bytes * (1 - 1e-9);
    for (int o = 0; o < w->orders; o++) {
        int a = 0;
        while (a < arrays && w->moved[o][a] <= w->array[a].route[0].bytes) a++;
        if (a == arrays) return true;
    }
    w->orders += w->orders < MOST_ORDERS - 1;
    return false;
}

/* Every array by each of its routes, the least first; beyond MOST_CHOSEN of them all by the first,
 * all by the second. */
static void lower_each(ways *w) {
    int arrays = w->j.einsum->operands + 1, choices = 1, most = 1;
    for (int a = 0; a < arrays; a++) {
        if (!find_routes(w, a)) return;
        if (choices <= MOST_CHOSEN) choices *= w->array[a].n;
        if (w->array[a].n > most) most = w->array[a].n;
    }
    if (is_dominated(w, arrays)) return;
    bool together = choices > MOST_CHOSEN;
    for (int c = 0; c < (together ? most : choices) && !w->stopped; c++) {
        for (int a = 0, rest = c; a < arrays; a++) {
            routes_of *r = &w->array[a];
            r->chosen = together ? (c < r->n ? c : r->n - 1) : rest % r->n;
            rest /= r->n;
        }
        lower_chosen(w);
    }
}

/* The axes that split an index take the order of each array that has it; one array that moves as a
 * whole goes straight to the order that is wanted. */
static void order_from(ways *w, int index) {
    const sm_einsum *e = w->j.einsum;
    sm_dim seen[MOST_ARRAYS];
    int n = 0;
    if (index == e->indices) lower_each(w);
    for (int o = sm_einsum_is_resharding(e) ? 1 : 0; index < e->indices && o <= e->operands; o++) {
        const sm_dim *like = dim_of_index(o < e->operands ? &e->in[o] : w->j.want, index);
        const sm_dim order = split_like(&w->j, index, like);
        int known = 0;
        while (known < n && memcmp(seen[known].axis, order.axis, sizeof order.axis) != 0) known++;
        if (w->stopped || known < n || (!like && o < e->operands)) continue;
        w->j.split[index] = seen[n++] = order;
        order_from(w, index + 1);
    }
}

int sm_einsum_lower_ways(const sm_einsum *einsum, const sm_mesh *mesh, const int8_t *at,
                         const sm_array *want, sm_lowering_visit each, void *context,
                         sm_error *err) {
    return sm_einsum_lower_ways_by(NULL, einsum, mesh, at, want, each, context, err);
}

int sm_einsum_lower_ways_by(sm_routes *routes, const sm_einsum *einsum, const sm_mesh *mesh,
                            const int8_t *at, const sm_array *want, sm_lowering_visit each,
                            void *context, sm_error *err) {
    sm_einsum whole = *einsum;
    ways w; /* large, and filled only as far as it is used */
    w.j = (job){.routes = routes, .einsum = &whole, .mesh = mesh, .at = at, .want = want};
    w.found = w.orders = 0;
    w.stopped = false;
    w.each = each;
    w.context = context;
    if (sm_einsum_infer_output(&whole, NULL, err) || check_assignment(&w.j, err) ||
        check_want(&w.j, err))
        return 0;
    sm_lowering_split(&w.as, mesh, in_parts(&w.j));
    sm_lowering_mesh(&w.as, mesh, &w.parts);
    order_from(&w, 0);
    if (w.found == 0) fail_steps(err);
    return w.found;
}
