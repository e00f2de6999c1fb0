/* Every useful way to compute an einsum on a mesh: each axis assigned to each index or to none, and
 * where no output is asked for, each place that partial sums can be scattered to. */
#include "reshard.h"

enum { MAX_ASSIGNMENTS = 4096, MAX_VISITS = 4096, MAX_CHOICES = SM_MAX_INDICES + 2 };

typedef struct choices {
    int n;
    int8_t index[MAX_CHOICES];
} choices;

typedef struct enumeration {
    const sm_einsum *einsum;
    const sm_mesh *mesh;
    const sm_array *want; /* NULL: any output */
    sm_lowering_visit each;
    void *context;
    choices choice[SM_MAX_AXES];
    int8_t at[SM_MAX_AXES];
    int visits;
    bool stopped;
    sm_lowering lowering;
} enumeration;

/* ---- which indices an axis may split, the likeliest first ---- */

/* 3: an operand is sharded there; 2: the output shall be; 1: nothing is, the chips would slice. */
static int likelihood(const enumeration *e, int axis, int index) {
    int best = 1;
    for (int o = 0; o <= e->einsum->operands; o++) {
        bool is_output = o == e->einsum->operands;
        const sm_array *array = is_output ? e->want : &e->einsum->in[o];
        int d = array != NULL ? sm_axis_place(array, axis) : SM_REPLICATED;
        if (d >= 0 && array->dim[d].index == index && best < (is_output ? 2 : 3))
            best = is_output ? 2 : 3;
    }
    return best;
}

/* No array mentions the axis. */
static bool idle(const enumeration *e, int axis) {
    for (int o = 0; o < e->einsum->operands; o++)
        if (sm_axis_place(&e->einsum->in[o], axis) != SM_REPLICATED) return false;
    return e->want == NULL || sm_axis_place(e->want, axis) == SM_REPLICATED;
}

static void axis_choices(enumeration *e, int axis) {
    choices *c = &e->choice[axis];
    int size = e->mesh->axis[axis].size;
    c->n = 0;
    if (e->want != NULL && sm_einsum_is_resharding(e->einsum)) { /* it moves as one array */
        int d = sm_axis_place(e->want, axis);
        c->index[c->n++] = (int8_t)(d >= 0 ? e->want->dim[d].index : SM_REPLICATED);
        if (size > 1 && idle(e, axis)) c->index[c->n++] = SM_ASSISTING;
        return;
    }
    for (int rank = 3; rank > 0; rank--) {
        for (int i = 0; i < e->einsum->indices && size > 1; i++)
            if (likelihood(e, axis, i) == rank &&
                (rank == 3 || sm_index_repeats(e->einsum, i) < 0) &&
                (rank > 1 || e->einsum->index[i].size > 1))
                c->index[c->n++] = (int8_t)i;
        if (rank == 2) c->index[c->n++] = SM_REPLICATED;
        if (rank == 2 && size > 1 && idle(e, axis)) c->index[c->n++] = SM_ASSISTING;
    }
}

/* Beyond the cap the longest lists lose their last, unlikeliest, choice. */
static void trim_choices(enumeration *e) {
    for (;;) {
        double product = 1;
        int longest = 0;
        for (int a = 0; a < e->mesh->axes; a++) {
            product *= e->choice[a].n;
            if (e->choice[a].n >= e->choice[longest].n) longest = a;
        }
        if (product <= MAX_ASSIGNMENTS) return;
        e->choice[longest].n--;
    }
}

/* ---- one assignment ---- */

/* Does each axis assigned to an index, and one more, shorten what a chip has of it? One that an
 * array has there already need not. */
static bool shortens(const enumeration *e, int index, int also) {
    double ways = 1, size = e->einsum->index[index].size;
    for (int a = 0; a < e->mesh->axes; a++)
        ways *= e->at[a] == index || a == also ? e->mesh->axis[a].size : 1;
    for (int a = 0; a < e->mesh->axes; a++) {
        bool here = (e->at[a] == index || a == also) && e->mesh->axis[a].size > 1;
        if (here && !(sm_cut(size, ways) < sm_cut(size, ways / e->mesh->axis[a].size)) &&
            likelihood(e, a, index) < 2)
            return false;
    }
    return true;
}

/* The output wants an axis on an index, and every chip along it computes all of that index to slice
 * it afterwards: assigning the axis there moves no more and computes less. */
static bool dominated(const enumeration *e) {
    for (int a = 0; a < e->mesh->axes; a++) {
        int d = e->want != NULL ? sm_axis_place(e->want, a) : SM_REPLICATED;
        if (e->at[a] == SM_REPLICATED && e->mesh->axis[a].size > 1 && d >= 0 &&
            shortens(e, e->want->dim[d].index, a))
            return true;
    }
    return false;
}

/* An axis that would assist but finds nothing to gather does the same as a replicated one. */
static bool assists(const enumeration *e) {
    unsigned gathered = 0;
    for (int s = 0; s < e->lowering.steps; s++)
        if (e->lowering.step[s].op == SM_ALL_GATHER) gathered |= e->lowering.step[s].axes;
    for (int a = 0; a < e->mesh->axes; a++)
        if (e->at[a] == SM_ASSISTING && !(gathered >> a & 1)) return false;
    return true;
}

static void report(enumeration *e, const sm_array *want) {
    sm_lowering way[SM_MOST_WAYS];
    int n = sm_einsum_lower_ways(e->einsum, e->mesh, e->at, want, way, NULL);
    for (int i = 0; i < n && !e->stopped; i++) {
        e->visits++;
        e->stopped = !e->each(&way[i], e->context) || e->visits == MAX_VISITS;
    }
}

static bool shortens_dim(const enumeration *e, const sm_dim *dim, int axis) {
    double size = e->einsum->index[dim->index].size;
    return sm_cut(size, sm_dim_ways(e->mesh, dim, (sm_axes)(1u << axis))) <
           sm_cut(size, sm_dim_ways(e->mesh, dim, 0));
}

/* No output asked for: the partial sums over axis a and the following are reduced, or scattered
 * onto each dimension that gets shorter. `out` is the output so far. */
static void scatter_places(enumeration *e, sm_array *out, sm_axes partial, int axis) {
    while (axis < e->mesh->axes && !(partial >> axis & 1)) axis++;
    if (axis == e->mesh->axes) {
        report(e, out);
        return;
    }
    for (int d = 0; d < out->rank && !e->stopped; d++) {
        if (!shortens_dim(e, &out->dim[d], axis)) continue;
        sm_dim_append(&out->dim[d], axis);
        scatter_places(e, out, partial, axis + 1);
        out->dim[d].n_axes--;
    }
    if (!e->stopped) scatter_places(e, out, partial, axis + 1); /* all-reduce */
}

static void one_assignment(enumeration *e) {
    for (int i = 0; i < e->einsum->indices; i++)
        if (!shortens(e, i, -1)) return;
    if (dominated(e)) return;
    /* There may be no lowering: {U} of the wanted output where nothing is partial, or too many
     * steps. */
    bool lowered =
        sm_einsum_lower(e->einsum, e->mesh, e->at, e->want, true, &e->lowering, NULL) == SM_OK;
    if (!lowered || !assists(e)) return;
    sm_array out = e->lowering.out;
    if (e->want != NULL || out.unreduced == 0) {
        report(e, &out);
        return;
    }
    sm_axes partial = out.unreduced;
    out.unreduced = 0;
    scatter_places(e, &out, partial, 0);
}

static void assignments_from(enumeration *e, int axis) {
    if (axis == e->mesh->axes) {
        one_assignment(e);
        return;
    }
    for (int c = 0; c < e->choice[axis].n && !e->stopped; c++) {
        e->at[axis] = e->choice[axis].index[c];
        assignments_from(e, axis + 1);
    }
}

sm_status sm_einsum_alternatives(const sm_einsum *einsum, const sm_mesh *mesh,
                                 sm_lowering_visit each, void *context, sm_error *err) {
    sm_einsum whole = *einsum;
    sm_status status = sm_einsum_infer_output(&whole, NULL, err);
    if (status == SM_OK) status = sm_einsum_check(&whole, mesh, NULL, err);
    if (status != SM_OK) return status;
    enumeration e = {.einsum = &whole, .mesh = mesh, .each = each, .context = context};
    e.want = whole.out_sharding_given ? &whole.out : NULL;
    for (int a = 0; a < mesh->axes; a++) axis_choices(&e, a);
    trim_choices(&e);
    sm_mesh known = *mesh;
    known.routes = sm_routes_new();
    e.mesh = &known;
    if (!known.routes) return sm_fail_memory(err);
    assignments_from(&e, 0);
    sm_routes_free(known.routes);
    return e.visits > 0
               ? SM_OK
               : sm_fail(err, SM_NEGATIVE, "no assignment of the mesh axes gives this output");
}
