/* The module of a device: local shapes, and collectives where an operation wants its arrays
 * otherwise than they lie. */
#include "spmd_parts.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { MOST_CANDIDATES = 256, MOST_MEMBERS = 1 << 26 };

typedef struct moved { /* a value as it was brought elsewhere */
    int instruction;   /* of the old computation */
    sm_array at;
    int as;
    struct moved *next;
} moved;

typedef struct emitter {
    spmd *s;
    int c;
    const sm_computation *in;
    sm_instruction *list; /* of the new computation */
    int n, room;
    int *as;                   /* of each old instruction the new one */
    moved **known;             /* of each old instruction */
    sm_module_groups *of_axes; /* groups by set of axes of the mesh, made once */
    int64_t members;
} emitter;

static bool no_memory(emitter *e) {
    e->s->failed = true;
    return false;
}

/* ---- shapes ---- */

static const sm_module_shape *cut_shape(emitter *e, const sm_module_shape *whole,
                                        const double *ways, int rank) {
    sm_module_shape *shape = sm_arena_alloc(e->s->arena, sizeof *shape);
    int64_t *size = sm_arena_array(e->s->arena, (size_t)whole->dim.n + 1, sizeof *size);
    if (!shape || !size) return no_memory(e), whole;
    *shape = *whole;
    for (int d = 0; d < whole->dim.n; d++)
        size[d] = d < rank ? (int64_t)sm_cut((double)whole->dim.at[d], ways[d]) : whole->dim.at[d];
    shape->dim.at = size;
    return shape;
}

/* The part of an array that a device has. */
static const sm_module_shape *local(emitter *e, const sm_module_shape *whole, const sm_array *at) {
    double ways[SM_MAX_RANK];
    bool any = false;
    for (int d = 0; d < at->rank; d++) {
        ways[d] = sm_dim_ways(&e->s->mesh, &at->dim[d], 0);
        any = any || ways[d] > 1;
    }
    return any ? cut_shape(e, whole, ways, at->rank) : whole;
}

static const sm_module_shape *local_value(emitter *e, int value) {
    const spmd_value *v = &e->s->value[value];
    return local(e, v->shape, &v->at);
}

static const sm_module_shape *tuple_of(emitter *e, const sm_module_shape *const *part, int n) {
    sm_module_shape *shape = sm_arena_alloc(e->s->arena, sizeof *shape);
    sm_module_shape *list = sm_arena_array(e->s->arena, (size_t)n + 1, sizeof *list);
    if (!shape || !list) return no_memory(e), NULL;
    for (int i = 0; i < n; i++) list[i] = *part[i];
    *shape = (sm_module_shape){.element = SM_HLO_TUPLE, .parts = n, .part = list};
    return shape;
}

static const sm_module_shape *tuple_of_values(emitter *e, const int *value, int n) {
    const sm_module_shape **part = sm_arena_array(e->s->arena, (size_t)n + 1, sizeof *part);
    if (!part) return no_memory(e), NULL;
    for (int i = 0; i < n; i++) part[i] = local_value(e, value[i]);
    return tuple_of(e, part, n);
}

/* ---- instructions ---- */

static int emit(emitter *e, const sm_instruction *like, sm_module_opcode opcode,
                const sm_module_shape *shape, const int *operand, int operands) {
    sm_instruction *list = sm_arena_grow(e->s->arena, e->list, e->n, &e->room, sizeof *list);
    int *copy = sm_arena_array(e->s->arena, (size_t)operands + 1, sizeof *copy);
    if (!list || !copy || !shape) return no_memory(e), 0;
    if (operands) memcpy(copy, operand, (size_t)operands * sizeof *copy);
    e->list = list;
    sm_instruction *it = &list[e->n];
    *it = *like;
    if (opcode != like->opcode) {
        it->opcode = opcode;
        it->opcode_name = sm_module_opcode_name(opcode);
        it->calls = 0;
        it->target = "";
    }
    it->shape = shape;
    it->operand = copy;
    it->operands = operands;
    it->sharding = NULL;
    return e->n++;
}

/* Devices that differ in these axes alone. */
static bool fill_groups(emitter *e, const sm_mesh *mesh, sm_axes axes, sm_module_groups *g) {
    int devices = 1, size = (int)sm_mesh_size(mesh, axes);
    for (int a = 0; a < mesh->axes; a++) devices *= mesh->axis[a].size;
    e->members += devices;
    int32_t *member = e->members > MOST_MEMBERS
                          ? NULL
                          : sm_arena_array(e->s->arena, (size_t)devices, sizeof *member);
    if (!member) return no_memory(e);
    for (int i = 0; i < devices; i++) {
        int group = i / size, place = i % size, device = 0, step = 1;
        for (int a = mesh->axes - 1; a >= 0; a--) {
            int n = mesh->axis[a].size;
            bool inside = axes >> a & 1;
            int at = inside ? place % n : group % n;
            if (inside) place /= n;
            else group /= n;
            device += at * step;
            step *= n;
        }
        member[i] = device;
    }
    *g = (sm_module_groups){devices / size, size, member};
    return true;
}

/* A permute among the members of each group: each sends to the next. */
static bool as_pairs(emitter *e, sm_module_groups *g) {
    int32_t *pair = sm_arena_array(e->s->arena, 2 * (size_t)g->n * (size_t)g->size, sizeof *pair);
    if (!pair) return no_memory(e);
    for (int i = 0; i < g->n * g->size; i++) {
        int first = i / g->size * g->size;
        pair[2 * i] = g->member[i];
        pair[2 * i + 1] = g->member[first + (i - first + 1) % g->size];
    }
    *g = (sm_module_groups){g->n * g->size, 2, pair};
    return true;
}

static sm_module_groups groups_of(emitter *e, const sm_mesh *mesh, sm_axes axes, bool pairs) {
    sm_module_groups made = {0}, *kept = mesh == &e->s->mesh && !pairs ? &e->of_axes[axes] : &made;
    if (!kept->n) fill_groups(e, mesh, axes, kept);
    if (pairs && made.n) as_pairs(e, &made);
    return *kept;
}

/* ---- moving an array ---- */

static bool same_layout(const sm_array *a, const sm_array *b) {
    if (a->rank != b->rank || a->unreduced != b->unreduced) return false;
    for (int d = 0; d < a->rank; d++)
        if (a->dim[d].n_axes != b->dim[d].n_axes ||
            memcmp(a->dim[d].axis, b->dim[d].axis, (size_t)a->dim[d].n_axes) != 0)
            return false;
    return true;
}

static bool lower_move(const spmd *s, const sm_module_shape *whole, const sm_array *from,
                       const sm_array *to, sm_lowering *l) {
    static const sm_dtype by_bytes[] = {SM_INT8, SM_INT8, SM_BF16, SM_FP32, SM_FP32};
    sm_einsum e = {.operands = 1, .has_output = true, .out_sharding_given = true};
    int8_t at[SM_MAX_AXES];
    int bytes = sm_module_element_bits(whole->element) / 8;
    e.in[0] = *from;
    e.out = *to;
    e.in[0].dtype = e.out.dtype = bytes > 4 ? SM_FP64 : by_bytes[bytes];
    e.in[0].dtype_given = e.out.dtype_given = true;
    e.indices = from->rank;
    for (int d = 0; d < from->rank; d++) {
        e.index[d].name[0] = (char)('A' + d);
        e.index[d].size = fmax((double)whole->dim.at[d], 1);
    }
    for (int a = 0; a < s->mesh.axes; a++) at[a] = SM_REPLICATED;
    for (int d = 0; d < to->rank; d++)
        for (int i = 0; i < to->dim[d].n_axes; i++) at[to->dim[d].axis[i]] = (int8_t)d;
    return sm_einsum_lower(&e, &s->mesh, at, &e.out, false, l, NULL) == SM_OK;
}

static int run_steps(emitter *e, const sm_instruction *like, const sm_module_shape *whole, int rank,
                     const sm_lowering *l, int from) {
    static const sm_module_opcode opcodes[SM_COLLECTIVE_COUNT] = {
        [SM_ALL_GATHER] = SM_OPCODE_ALL_GATHER,
        [SM_REDUCE_SCATTER] = SM_OPCODE_REDUCE_SCATTER,
        [SM_ALL_REDUCE] = SM_OPCODE_ALL_REDUCE,
        [SM_ALL_TO_ALL] = SM_OPCODE_ALL_TO_ALL,
        [SM_PERMUTE] = SM_OPCODE_COLLECTIVE_PERMUTE,
        [SM_BROADCAST] = SM_OPCODE_COLLECTIVE_BROADCAST,
        [SM_REDUCE] = SM_OPCODE_ALL_REDUCE};
    sm_mesh split;
    sm_lowering_mesh(l, &e->s->mesh, &split);
    const sm_mesh *mesh = l->parts ? &split : &e->s->mesh;
    for (int i = 0; i < l->steps && !e->s->failed; i++) {
        const sm_step *step = &l->step[i];
        if (step->kind == SM_STEP_EINSUM) continue;
        bool slice = step->kind == SM_STEP_SLICE;
        double ways[SM_MAX_RANK];
        for (int d = 0; d < rank; d++) ways[d] = 1;
        for (int a = 0; a < mesh->axes; a++)
            if (step->after.dim[a] >= 0 && step->after.dim[a] < rank)
                ways[step->after.dim[a]] *= mesh->axis[a].size;
        const sm_module_shape *shape = cut_shape(e, whole, ways, rank);
        from = emit(e, like, slice ? SM_OPCODE_DYNAMIC_SLICE : opcodes[step->op], shape, &from, 1);
        if (e->s->failed) continue;
        e->list[from].groups = groups_of(e, mesh, step->axes, step->op == SM_PERMUTE);
        if (!slice) e->list[from].channel = e->n;
    }
    return from;
}

/* The cost of a move for a choice among several. */
static double bytes_of_move(const spmd *s, const sm_module_shape *whole, const sm_array *from,
                            const sm_array *to, sm_lowering *l) {
    if (same_layout(from, to)) return 0;
    return lower_move(s, whole, from, to, l) ? l->wire_bytes : INFINITY;
}

/* An array as `now` of the new computation, brought from one sharding to another. */
static int move(emitter *e, const sm_instruction *like, int now, const sm_module_shape *whole,
                const sm_array *from, const sm_array *to, bool made_anywhere) {
    sm_lowering *l;
    if (same_layout(from, to)) return now;
    if (made_anywhere) return emit(e, like, SM_OPCODE_BITCAST, local(e, whole, to), &now, 1);
    if (!(l = sm_arena_alloc(e->s->arena, sizeof *l))) return no_memory(e), now;
    if (!lower_move(e->s, whole, from, to, l)) /* no way: as if it lay there */
        return emit(e, like, SM_OPCODE_BITCAST, local(e, whole, to), &now, 1);
    return run_steps(e, like, whole, from->rank, l, now);
}

/* An old instruction's array in a sharding, moved there once. */
static int operand_at(emitter *e, int old, const sm_array *to) {
    int value = e->s->value_of[e->c][old];
    const spmd_value *v = value >= 0 ? &e->s->value[value] : NULL;
    if (!v || same_layout(&v->at, to)) return e->as[old];
    for (const moved *m = e->known[old]; m; m = m->next)
        if (same_layout(&m->at, to)) return m->as;
    const sm_instruction *like = &e->in->instruction[old];
    moved *m = sm_arena_alloc(e->s->arena, sizeof *m);
    if (!m) return no_memory(e), 0;
    *m = (moved){old, *to, 0, e->known[old]};
    m->as = move(e, like, e->as[old], v->shape, &v->at, to, v->made_anywhere);
    e->known[old] = m;
    return m->as;
}

/* ---- an operation ---- */

/* Which axes cut each factor of the local operation. */
typedef struct assignment {
    spmd_axes of[SPMD_FACTORS];
} assignment;

/* The order of axes in a factor is that of the first array, results first, that has them so. */
static void order_axes(const spmd *s, const spmd_rule *r, spmd_axes (*list)[SPMD_FACTORS],
                       const int8_t *at, assignment *a) {
    sm_axes placed = 0;
    memset(a, 0, sizeof *a);
    for (int k = 0; k < r->tensors; k++) {
        int t = k < r->tensors - r->operands ? r->operands + k : k - (r->tensors - r->operands);
        for (int f = 0; f < r->factors; f++)
            for (int i = 0; i < list[t][f].n; i++) {
                int axis = list[t][f].axis[i];
                if (at[axis] != f || placed >> axis & 1) continue;
                if (a->of[f].n < SM_MAX_AXES) a->of[f].axis[a->of[f].n++] = (uint8_t)axis;
                placed = (sm_axes)(placed | 1u << axis);
            }
    }
    (void)s;
}

/* A tensor's sharding in the local operation; over factors that it lacks nothing is said. */
static sm_array local_at(const spmd_tensor *t, const assignment *a) {
    sm_array at = {.rank = t->rank};
    for (int d = 0; d < t->rank; d++) {
        at.dim[d].index = d;
        for (int k = 0; k < t->dim[d].n; k++) {
            const spmd_axes *l = &a->of[t->dim[d].factor[k]];
            for (int i = 0; i < l->n && at.dim[d].n_axes < SM_MAX_AXES; i++)
                at.dim[d].axis[at.dim[d].n_axes++] = l->axis[i];
        }
    }
    return at;
}

static sm_axes partial_axes(const spmd_rule *r, const assignment *a) {
    unsigned axes = 0;
    for (int f = 0; f < r->factors; f++)
        for (int i = 0; r->contracted >> f & 1 && i < a->of[f].n; i++)
            axes |= 1u << a->of[f].axis[i];
    return (sm_axes)axes;
}

typedef struct choice {
    const spmd *s;
    const spmd_rule *r;
    spmd_axes (*list)[SPMD_FACTORS];
    sm_lowering *scratch;
} choice;

/* Work of a device, then bytes that it receives: the first is worth any of the second. */
typedef struct cost {
    double work, bytes;
} cost;

static cost cost_of(const choice *c, const int8_t *at) {
    const spmd_rule *r = c->r;
    assignment a;
    cost k = {1, 0};
    order_axes(c->s, r, c->list, at, &a);
    for (int f = 0; f < r->factors; f++) {
        double n = 1;
        for (int i = 0; i < a.of[f].n; i++) n *= c->s->mesh.axis[a.of[f].axis[i]].size;
        k.work *= sm_cut(r->size[f], n);
    }
    for (int t = 0; t < r->tensors; t++) {
        const spmd_value *v = &c->s->value[r->tensor[t].value];
        sm_array here = local_at(&r->tensor[t], &a);
        if (t < r->operands) {
            if (!v->made_anywhere)
                k.bytes += bytes_of_move(c->s, v->shape, &v->at, &here, c->scratch);
            continue;
        }
        here.unreduced = partial_axes(r, &a);
        k.bytes += bytes_of_move(c->s, v->shape, &here, &v->at, c->scratch);
    }
    return k;
}

static bool is_better(cost a, cost b) {
    if (a.work < b.work * (1 - 1e-9)) return true;
    return a.work <= b.work * (1 + 1e-9) && a.bytes < b.bytes * (1 - 1e-9);
}

/* Where two arrays of a product are cut over an axis at one index, operands first, they stay so, as
 * partitioners have it, even where least bytes were to gather one of them. */
static int agreed_factor(const choice *c, int axis) {
    int seen[SPMD_FACTORS] = {0};
    if (!c->r->multiplies) return -1;
    for (int t = 0; t < c->r->tensors; t++)
        for (int f = 0; f < c->r->factors; f++)
            for (int i = 0; i < c->list[t][f].n; i++)
                if (c->list[t][f].axis[i] == axis && ++seen[f] == 2) return f;
    return -1;
}

/* Factors that some array cuts over an axis. */
static int factors_of_axis(const choice *c, int axis, int8_t *out) {
    int n = 0, agreed = agreed_factor(c, axis);
    if (agreed >= 0) {
        out[0] = (int8_t)agreed;
        return 1;
    }
    for (int f = 0; f < c->r->factors; f++) {
        bool has = false;
        for (int t = 0; t < c->r->tensors; t++)
            for (int i = 0; i < c->list[t][f].n; i++) has = has || c->list[t][f].axis[i] == axis;
        if (has && !(c->r->blocked >> f & 1)) out[n++] = (int8_t)f;
    }
    return n;
}

/* What passes element by element follows its result; for the rest every way that some array has is
 * tried. */
static void assign(emitter *e, const spmd_rule *r, spmd_axes (*list)[SPMD_FACTORS],
                   assignment *best) {
    const spmd *s = e->s;
    int8_t at[SM_MAX_AXES], option[SM_MAX_AXES][SPMD_FACTORS + 1], picked[SM_MAX_AXES] = {0};
    int options[SM_MAX_AXES] = {0}, tried = 0;
    choice c = {s, r, list, NULL};
    cost least = {INFINITY, INFINITY};
    for (int a = 0; a < s->mesh.axes; a++) {
        options[a] = factors_of_axis(&c, a, option[a]);
        at[a] = SM_REPLICATED;
        for (int f = 0; f < r->factors; f++)
            for (int t = r->operands; t < r->tensors; t++)
                for (int i = 0; i < list[t][f].n; i++)
                    if (list[t][f].axis[i] == a) at[a] = (int8_t)f;
    }
    order_axes(s, r, list, at, best);
    if (r->passes) return;
    c.scratch = sm_arena_alloc(s->arena, sizeof *c.scratch);
    if (!c.scratch) e->s->failed = true;
    for (bool more = !e->s->failed; more && tried < MOST_CANDIDATES; tried++) {
        for (int a = 0; a < s->mesh.axes; a++)
            at[a] = picked[a] < options[a] ? option[a][picked[a]] : SM_REPLICATED;
        cost k = cost_of(&c, at);
        if (tried == 0 || is_better(k, least)) {
            least = k;
            order_axes(s, r, list, at, best);
        }
        more = false;
        for (int a = 0; a < s->mesh.axes && !more; a++) {
            more = picked[a] < options[a];
            picked[a] = more ? (int8_t)(picked[a] + 1) : 0;
        }
    }
}

/* A sum of two results of the same collective is one collective of the sum (XLA's reassociation).
 */
static bool sums_two(const emitter *e, const sm_instruction *it, const int *operand) {
    if (it->opcode != SM_OPCODE_ADD || it->operands != 2 || operand[0] == operand[1]) return false;
    const sm_instruction *a = &e->list[operand[0]], *b = &e->list[operand[1]];
    for (int o = 0; o < 2; o++) {
        int v = e->s->value_of[e->c][it->operand[o]];
        if (v < 0 || e->s->value[v].uses != 1 || e->as[it->operand[o]] != operand[o]) return false;
    }
    return a->opcode == b->opcode && a->groups.member == b->groups.member &&
           (a->opcode == SM_OPCODE_ALL_REDUCE || a->opcode == SM_OPCODE_REDUCE_SCATTER) &&
           sm_module_data_bytes(a->shape) == sm_module_data_bytes(b->shape);
}

static int sum_then_reduce(emitter *e, const sm_instruction *it, const int *operand) {
    sm_instruction reduce = e->list[operand[0]];
    int partial[2];
    for (int o = 0; o < 2; o++) {
        sm_instruction *had = &e->list[operand[o]];
        partial[o] = had->operand[0];
        had->opcode = SM_OPCODE_BITCAST; /* nobody reads it any more */
        had->opcode_name = sm_module_opcode_name(had->opcode);
        had->groups = (sm_module_groups){0};
        had->shape = e->list[partial[o]].shape;
    }
    int sum = emit(e, it, it->opcode, e->list[partial[0]].shape, partial, 2);
    return emit(e, &reduce, reduce.opcode, reduce.shape, &sum, 1);
}

static int emit_local(emitter *e, int old, const int *operand, const sm_module_shape *shape) {
    const sm_instruction *it = &e->in->instruction[old];
    if (it->opcode == SM_OPCODE_CUSTOM_CALL && it->operands == 1) return operand[0]; /* Sharding */
    if (sums_two(e, it, operand)) return sum_then_reduce(e, it, operand);
    sm_module_opcode opcode = it->opcode == SM_OPCODE_RESHAPE ? SM_OPCODE_BITCAST : it->opcode;
    return emit(e, it, opcode, shape, operand, it->operands);
}

/* Results are brought to where their values lie. */
static void emit_result(emitter *e, int old, int made, const spmd_tensor *t, const assignment *a,
                        sm_axes partial) {
    const spmd_value *v = &e->s->value[t->value];
    sm_array at = local_at(t, a);
    at.unreduced = partial;
    e->as[old] = move(e, &e->in->instruction[old], made, v->shape, &at, &v->at, v->made_anywhere);
}

static void emit_by_rule(emitter *e, int old, const spmd_rule *r) {
    const sm_instruction *it = &e->in->instruction[old];
    spmd_axes list[SPMD_TENSORS][SPMD_FACTORS];
    const sm_module_shape *shape[SPMD_TENSORS];
    int operand[SPMD_TENSORS];
    assignment a;
    assert(r->operands < r->tensors && r->tensors <= SPMD_TENSORS);
    for (int t = 0; t < r->tensors; t++)
        spmd_project(e->s, r, &r->tensor[t], &e->s->value[r->tensor[t].value].at, list[t]);
    assign(e, r, list, &a);
    for (int o = 0; o < r->operands; o++) {
        sm_array at = local_at(&r->tensor[o], &a);
        operand[o] = operand_at(e, it->operand[o], &at);
    }
    sm_axes partial = partial_axes(r, &a);
    for (int t = r->operands; t < r->tensors; t++) {
        sm_array at = local_at(&r->tensor[t], &a);
        shape[t - r->operands] = local(e, e->s->value[r->tensor[t].value].shape, &at);
    }
    if (!it->shape->parts) {
        emit_result(e, old, emit_local(e, old, operand, shape[0]), &r->tensor[r->operands], &a,
                    partial);
        return;
    }
    int tuple = emit(e, it, it->opcode, tuple_of(e, shape, it->shape->parts), operand, r->operands);
    e->as[old] = tuple;
    for (int i = 0; i < it->shape->parts; i++) {
        const sm_instruction *element = &e->in->instruction[old + 1 + i];
        int made = emit(e, element, element->opcode, shape[i], &tuple, 1);
        emit_result(e, old + 1 + i, made, &r->tensor[r->operands + i], &a, partial);
    }
}

static sm_array whole_at(const spmd *s, int value) {
    sm_array at = s->value[value].at;
    for (int d = 0; d < at.rank; d++) at.dim[d].n_axes = 0;
    return at;
}

/* Arrays whole on every device, and the results as they are: what has no rule. */
static void emit_whole(emitter *e, int old) {
    const sm_instruction *it = &e->in->instruction[old];
    int *operand = sm_arena_array(e->s->arena, (size_t)it->operands + 1, sizeof *operand);
    if (!operand) {
        no_memory(e);
        return;
    }
    for (int o = 0; o < it->operands; o++) {
        int v = e->s->value_of[e->c][it->operand[o]];
        sm_array at = v >= 0 ? whole_at(e->s, v) : (sm_array){0};
        operand[o] = v >= 0 ? operand_at(e, it->operand[o], &at) : e->as[it->operand[o]];
    }
    int value = e->s->value_of[e->c][old];
    int made = emit(e, it, it->opcode, it->shape, operand, it->operands);
    e->as[old] = made;
    if (value < 0) return;
    sm_array at = whole_at(e->s, value);
    const spmd_value *v = &e->s->value[value];
    e->as[old] = move(e, it, made, v->shape, &at, &v->at, v->made_anywhere);
}

/* ---- what hands arrays on ---- */

static void emit_tuple(emitter *e, int old) {
    const sm_instruction *it = &e->in->instruction[old];
    const int *wanted = e->s->wanted[e->c][old];
    int *operand = sm_arena_array(e->s->arena, (size_t)it->operands + 1, sizeof *operand);
    const sm_module_shape **part =
        sm_arena_array(e->s->arena, (size_t)it->operands + 1, sizeof *part);
    if (!operand || !part) {
        no_memory(e);
        return;
    }
    for (int o = 0; o < it->operands && !e->s->failed; o++) {
        operand[o] = wanted ? operand_at(e, it->operand[o], &e->s->value[wanted[o]].at)
                            : e->as[it->operand[o]];
        assert(e->list);
        part[o] = e->list[operand[o]].shape;
    }
    if (!e->s->failed)
        e->as[old] =
            emit(e, it, it->opcode, tuple_of(e, part, it->operands), operand, it->operands);
}

static void emit_parameter(emitter *e, int old) {
    const sm_instruction *it = &e->in->instruction[old];
    const int *element = e->s->elements[e->c];
    int value = e->s->value_of[e->c][old];
    const sm_module_shape *shape = it->shape;
    if (value >= 0) shape = local_value(e, value);
    else if (element && shape->parts) shape = tuple_of_values(e, element, shape->parts);
    e->as[old] = emit(e, it, it->opcode, shape, NULL, 0);
}

static void emit_call(emitter *e, int old) {
    const sm_instruction *it = &e->in->instruction[old];
    int *operand = sm_arena_array(e->s->arena, (size_t)it->operands + 1, sizeof *operand);
    const sm_computation *called = &e->s->module->computation[it->call[it->calls - 1]];
    const int *value = e->s->wanted[it->call[it->calls - 1]][called->root];
    if (!operand) {
        no_memory(e);
        return;
    }
    for (int o = 0; o < it->operands; o++) operand[o] = e->as[it->operand[o]];
    const sm_module_shape *shape = value ? tuple_of_values(e, value, it->shape->parts) : it->shape;
    e->as[old] = emit(e, it, it->opcode, shape, operand, it->operands);
}

/* The sharding that a border of a shard_map names, of an array of its outer shape. */
static sm_array asked_at(const spmd *s, int value, const sm_module_sharding *asked) {
    sm_array at = whole_at(s, value);
    sm_axes used = 0;
    for (int d = 0; asked && asked->dims == at.rank && d < at.rank; d++)
        for (int i = 0; i < asked->dim[d].n; i++) {
            int axis = (int)asked->dim[d].at[i];
            if (axis >= s->mesh.axes || used >> axis & 1) continue;
            used = (sm_axes)(used | 1u << axis);
            at.dim[d].axis[at.dim[d].n_axes++] = (uint8_t)axis;
        }
    return at;
}

/* Across the border of a shard_map: the parts become arrays of their own, or the other way. */
static bool emit_border(emitter *e, int old) {
    const sm_instruction *it = &e->in->instruction[old];
    bool in = it->opcode == SM_OPCODE_CUSTOM_CALL && !strcmp(it->target, "SPMDFullToShardShape");
    bool out = it->opcode == SM_OPCODE_CUSTOM_CALL && !strcmp(it->target, "SPMDShardToFullShape");
    int value = e->s->value_of[e->c][old];
    if ((!in && !out) || it->operands != 1 || value < 0) return false;
    int from = e->s->value_of[e->c][it->operand[0]], operand = e->as[it->operand[0]];
    if (in && from >= 0) {
        sm_array at = asked_at(e->s, from, it->sharding);
        operand = operand_at(e, it->operand[0], &at);
    }
    const spmd_value *v = &e->s->value[value];
    sm_array at = out ? asked_at(e->s, value, it->sharding) : whole_at(e->s, value);
    int made =
        emit(e, it, SM_OPCODE_BITCAST, out ? local(e, v->shape, &at) : v->shape, &operand, 1);
    e->as[old] = move(e, it, made, v->shape, &at, &v->at, false);
    return true;
}

/* An element of a tuple: as its value lies, or, of an operation without a rule, whole. */
static void emit_element(emitter *e, int old) {
    const sm_instruction *it = &e->in->instruction[old];
    sm_module_opcode from = e->in->instruction[it->operand[0]].opcode;
    int value = e->s->value_of[e->c][old], *tuple = &e->as[it->operand[0]];
    bool lies =
        from == SM_OPCODE_WHILE || from == SM_OPCODE_CONDITIONAL || from == SM_OPCODE_PARAMETER;
    if (value < 0 || lies) {
        e->as[old] =
            emit(e, it, it->opcode, value < 0 ? it->shape : local_value(e, value), tuple, 1);
        return;
    }
    const spmd_value *v = &e->s->value[value];
    sm_array at = whole_at(e->s, value);
    int made = emit(e, it, it->opcode, v->shape, tuple, 1);
    e->as[old] = move(e, it, made, v->shape, &at, &v->at, v->made_anywhere);
}

static void emit_instruction(emitter *e, int old) {
    const sm_instruction *it = &e->in->instruction[old];
    spmd_rule r;
    int value = e->s->value_of[e->c][old];
    bool handed = it->opcode == SM_OPCODE_GET_TUPLE_ELEMENT;
    if (it->opcode == SM_OPCODE_PARAMETER) {
        emit_parameter(e, old);
    } else if (it->opcode == SM_OPCODE_TUPLE) {
        emit_tuple(e, old);
    } else if (it->opcode == SM_OPCODE_WHILE || it->opcode == SM_OPCODE_CONDITIONAL) {
        emit_call(e, old);
    } else if (handed) {
        if (e->as[old] < 0) emit_element(e, old); /* else with what made it */
    } else if (it->operands == 0 && value >= 0) {
        e->as[old] = emit(e, it, it->opcode, local_value(e, value), NULL, 0);
    } else if (!emit_border(e, old)) {
        if (spmd_rule_of(e->s, e->c, old, &r)) emit_by_rule(e, old, &r);
        else emit_whole(e, old);
    }
}

static bool same_groups(const sm_module_groups *a, const sm_module_groups *b) {
    return a->n == b->n && a->size == b->size &&
           (a->member == b->member ||
            !memcmp(a->member, b->member, (size_t)a->n * (size_t)a->size * sizeof *a->member));
}

/* An all-reduce of which every reader takes its slice over the same axes is a reduce-scatter. */
static bool scatter_what_is_sliced(emitter *e) {
    int *slices = sm_arena_array(e->s->arena, (size_t)e->n + 1, sizeof *slices); /* -1: none */
    if (!slices) return no_memory(e);
    for (int i = 0; i < e->n; i++)
        for (int o = 0; o < e->list[i].operands; o++) {
            int of = e->list[i].operand[o];
            bool same = e->list[i].opcode == SM_OPCODE_DYNAMIC_SLICE && e->list[i].groups.n &&
                        same_groups(&e->list[i].groups, &e->list[of].groups);
            slices[of] = same && slices[of] >= 0 ? slices[of] + 1 : -1;
        }
    for (int i = 0; i < e->n; i++) {
        sm_instruction *it = &e->list[i], *of = it->operands ? &e->list[it->operand[0]] : it;
        if (it->opcode != SM_OPCODE_DYNAMIC_SLICE || !it->groups.n) continue;
        if (of->opcode == SM_OPCODE_ALL_REDUCE && slices[it->operand[0]] == 1) {
            of->opcode = SM_OPCODE_REDUCE_SCATTER;
            of->shape = it->shape;
            it->opcode = SM_OPCODE_BITCAST;
            of->opcode_name = sm_module_opcode_name(of->opcode);
            it->opcode_name = sm_module_opcode_name(it->opcode);
        }
        it->groups = (sm_module_groups){0};
    }
    return true;
}

static bool emit_computation(emitter *e, sm_computation *out) {
    const sm_computation *in = e->in;
    e->n = e->room = 0;
    e->list = NULL;
    e->as = sm_arena_array(e->s->arena, (size_t)in->n, sizeof *e->as);
    e->known = sm_arena_array(e->s->arena, (size_t)in->n, sizeof(moved *));
    if (!e->as || !e->known) return no_memory(e);
    for (int i = 0; i < in->n; i++) e->as[i] = -1;
    for (int i = 0; i < in->n && !e->s->failed; i++) emit_instruction(e, i);
    if (e->s->failed || !scatter_what_is_sliced(e)) return false;
    *out = *in;
    out->n = e->n;
    out->root = e->as[in->root];
    out->instruction = e->list;
    return true;
}

static sm_status spmd_emit(spmd *s, const sm_module **out) {
    const sm_module *m = s->module;
    sm_module *made = sm_arena_alloc(s->arena, sizeof *made);
    sm_computation *list = sm_arena_array(s->arena, (size_t)m->computations, sizeof *list);
    emitter *e = sm_arena_alloc(s->arena, sizeof *e);
    if (e) e->of_axes = sm_arena_array(s->arena, (size_t)1 << SM_MAX_AXES, sizeof *e->of_axes);
    if (!made || !list || !e || !e->of_axes) return sm_fail_memory(s->err);
    e->s = s;
    for (int c = 0; c < m->computations; c++) {
        e->c = c;
        e->in = &m->computation[c];
        if (!emit_computation(e, &list[c])) return sm_fail_memory(s->err);
    }
    *made = *m;
    made->computation = list;
    made->whole = false;
    made->partitioned = true;
    *out = made;
    return SM_OK;
}

/* ---- the whole ---- */

static sm_status lay_mesh(spmd *s) {
    const sm_module *m = s->module;
    int64_t devices = 1;
    if (m->axes > SM_MAX_AXES)
        return sm_fail(s->err, SM_BAD_INPUT, "the module's mesh has more than %d axes",
                       SM_MAX_AXES);
    s->mesh.axes = m->axes;
    for (int i = 0; i < m->axes; i++) {
        snprintf(s->mesh.axis[i].name, sizeof s->mesh.axis[i].name, "%.11s", m->axis[i].name);
        s->mesh.axis[i].size = m->axis[i].size;
        devices *= m->axis[i].size;
    }
    return devices == m->devices || m->axes == 0
               ? SM_OK
               : sm_fail(s->err, SM_BAD_INPUT,
                         "the module's mesh has %lld devices and it runs on %d", (long long)devices,
                         m->devices);
}

sm_status sm_module_partition(const sm_module *module, sm_arena *arena, const sm_module **out,
                              sm_error *err) {
    *out = module;
    if (!module->whole || module->axes == 0) return SM_OK;
    spmd *s = sm_arena_alloc(arena, sizeof *s);
    if (!s) return sm_fail_memory(err);
    s->module = module;
    s->arena = arena;
    s->err = err;
    sm_status status = lay_mesh(s);
    if (status) return status;
    if (!spmd_find_values(s)) return sm_fail_memory(err);
    spmd_propagate(s);
    return spmd_emit(s, out);
}
