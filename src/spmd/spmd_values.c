/* Values of a module, and how operations relate their dimensions. */
#include "spmd_parts.h"

#include <string.h>

/* ---- values ---- */

static int new_value(spmd *s, const sm_module_shape *shape) {
    spmd_value *v = &s->value[s->values];
    *v = (spmd_value){.shape = shape};
    v->at.rank = shape->dim.n <= SM_MAX_RANK ? shape->dim.n : 0;
    for (int d = 0; d < v->at.rank; d++) v->at.dim[d].index = d;
    return s->values++;
}

/* The sharding that the program asks for; axes that one array has twice, or more than its rank,
 * are left out. */
static void ask(spmd *s, int value, const sm_module_sharding *asked) {
    spmd_value *v = value >= 0 ? &s->value[value] : NULL;
    if (!v || !asked || asked->dims != v->at.rank || v->used) return;
    for (int d = 0; d < asked->dims; d++) {
        const sm_module_list *axes = &asked->dim[d];
        for (int i = 0; i < axes->n; i++) {
            sm_dim *dim = &v->at.dim[d];
            if (axes->at[i] >= s->mesh.axes || v->used >> axes->at[i] & 1) continue;
            v->used = (sm_axes)(v->used | 1u << axes->at[i]);
            dim->axis[dim->n_axes++] = (uint8_t)axes->at[i];
        }
        if (!(asked->open >> d & 1)) v->closed |= 1u << d;
    }
}

static const sm_instruction *element_operand(const sm_computation *c, const sm_instruction *it,
                                             sm_module_opcode of) {
    const sm_instruction *from = it->operands ? &c->instruction[it->operand[0]] : NULL;
    return it->opcode == SM_OPCODE_GET_TUPLE_ELEMENT && from && from->opcode == of ? from : NULL;
}

/* What a loop carries: its results, and the parameters of its condition and body, are one value. */
static bool join_loop(spmd *s, int c, int at) {
    const sm_computation *in = &s->module->computation[c];
    const sm_instruction *loop = &in->instruction[at];
    int n = loop->shape->parts;
    int *value = sm_arena_array(s->arena, (size_t)n + 1, sizeof *value);
    if (!value) return false;
    for (int i = 0; i < n; i++) value[i] = new_value(s, &loop->shape->part[i]);
    s->wanted[c][loop->operand[0]] = value;
    for (int k = 0; k < loop->calls; k++) s->elements[loop->call[k]] = value;
    int body = loop->call[1];
    s->wanted[body][s->module->computation[body].root] = value;
    for (int i = at + 1; i < in->n; i++) {
        const sm_instruction *it = &in->instruction[i];
        if (element_operand(in, it, SM_OPCODE_WHILE) == loop && it->number < n)
            s->value_of[c][i] = value[it->number];
    }
    return true;
}

/* What a branch is handed keeps its value; what branches return become the results. */
static bool join_branches(spmd *s, int c, int at) {
    const sm_computation *in = &s->module->computation[c];
    const sm_instruction *it = &in->instruction[at];
    int n = it->shape->parts;
    int *result = sm_arena_array(s->arena, (size_t)n + 1, sizeof *result);
    if (!result) return false;
    for (int i = 0; i < n; i++) result[i] = new_value(s, &it->shape->part[i]);
    for (int k = 0; k < it->calls; k++) {
        const sm_instruction *tuple = &in->instruction[it->operand[k + 1]];
        int *handed = sm_arena_array(s->arena, (size_t)tuple->operands + 1, sizeof *handed);
        if (!handed) return false;
        for (int i = 0; i < tuple->operands; i++) handed[i] = s->value_of[c][tuple->operand[i]];
        s->elements[it->call[k]] = handed;
        s->wanted[it->call[k]][s->module->computation[it->call[k]].root] = result;
    }
    for (int i = at + 1; i < in->n; i++) {
        const sm_instruction *e = &in->instruction[i];
        if (element_operand(in, e, SM_OPCODE_CONDITIONAL) == it && e->number < n)
            s->value_of[c][i] = result[e->number];
    }
    return true;
}

static bool is_branching(const sm_instruction *it) {
    return it->opcode == SM_OPCODE_CONDITIONAL && it->shape->parts > 0 &&
           it->operands == it->calls + 1;
}

static bool is_called(const sm_instruction *it, const char *target) {
    return it->opcode == SM_OPCODE_CUSTOM_CALL && !strcmp(it->target, target);
}

/* Can every device make the part it wants of it? */
static bool made_anywhere(const spmd *s, int c, const sm_instruction *it) {
    sm_module_class class = sm_module_class_of(it->opcode);
    if (it->opcode == SM_OPCODE_CONSTANT || it->opcode == SM_OPCODE_IOTA) return true;
    if (element_operand(&s->module->computation[c], it, SM_OPCODE_RNG_BIT_GENERATOR)) return true;
    if (!it->operands || (class != SM_CLASS_POINTWISE && class != SM_CLASS_TRANSCENDENTAL &&
                          class != SM_CLASS_MOVE && class != SM_CLASS_SLICE))
        return false;
    for (int i = 0; i < it->operands; i++) {
        int v = s->value_of[c][it->operand[i]];
        if (v < 0 || !s->value[v].made_anywhere) return false;
    }
    return true;
}

static bool find_of_computation(spmd *s, int c) {
    const sm_computation *in = &s->module->computation[c];
    for (int i = 0; i < in->n; i++) {
        const sm_instruction *it = &in->instruction[i];
        const sm_instruction *from = element_operand(in, it, SM_OPCODE_PARAMETER);
        for (int o = 0; o < it->operands; o++)
            if (s->value_of[c][it->operand[o]] >= 0)
                s->value[s->value_of[c][it->operand[o]]].uses++;
        if (s->value_of[c][i] < 0 && it->shape->parts == 0 && it->shape->element != SM_HLO_TUPLE) {
            bool element = from && s->elements[c] && it->number < from->shape->parts;
            int value = element ? s->elements[c][it->number] : new_value(s, it->shape);
            s->value_of[c][i] = value;
            if (!element) s->value[value].made_anywhere = made_anywhere(s, c, it);
            if (!is_called(it, "SPMDFullToShardShape")) ask(s, value, it->sharding);
        }
        bool loop = it->opcode == SM_OPCODE_WHILE && it->calls == 2 && it->operands == 1;
        if (loop && !join_loop(s, c, i)) return false;
        if (is_branching(it) && !join_branches(s, c, i)) return false;
    }
    return true;
}

/* Computations that call come before those they call: as the text is read those stand first. */
bool spmd_find_values(spmd *s) {
    const sm_module *m = s->module;
    size_t n = (size_t)m->computations, values = 1;
    s->value_of = sm_arena_array(s->arena, n, sizeof *s->value_of);
    s->elements = sm_arena_array(s->arena, n, sizeof *s->elements);
    s->wanted = sm_arena_array(s->arena, n, sizeof *s->wanted);
    if (!s->value_of || !s->elements || !s->wanted) return false;
    for (size_t c = 0; c < n; c++) {
        size_t many = (size_t)m->computation[c].n;
        s->value_of[c] = sm_arena_array(s->arena, many, sizeof **s->value_of);
        s->wanted[c] = sm_arena_array(s->arena, many, sizeof **s->wanted);
        if (!s->value_of[c] || !s->wanted[c]) return false;
        for (size_t i = 0; i < many; i++) {
            s->value_of[c][i] = -1;
            values += 1 + (size_t)m->computation[c].instruction[i].shape->parts;
        }
    }
    s->value = sm_arena_array(s->arena, values, sizeof *s->value);
    if (!s->value) return false;
    for (size_t c = n; c-- > 0;)
        if (!find_of_computation(s, (int)c)) return false;
    return true;
}

/* ---- rules ---- */

static const sm_module_shape *shape_of(const spmd *s, const spmd_tensor *t) {
    return s->value[t->value].shape;
}

static int new_factor(spmd_rule *r, double size, bool blocked) {
    if (r->factors == SPMD_FACTORS) return -1;
    r->size[r->factors] = size;
    r->blocked |= (uint32_t)(blocked || size < 2) << r->factors;
    return r->factors++;
}

static void put(spmd_tensor *t, int dim, int factor) {
    if (factor >= 0 && dim >= 0 && dim < t->rank && t->dim[dim].n < SM_MAX_RANK)
        t->dim[dim].factor[t->dim[dim].n++] = (int8_t)factor;
}

/* The factor of a dimension that is one factor; -1: none. */
static int factor_at(const spmd_tensor *t, int dim) {
    return dim < t->rank && t->dim[dim].n ? t->dim[dim].factor[0] : -1;
}

static bool contains(sm_module_list list, int64_t value) {
    for (int i = 0; i < list.n; i++)
        if (list.at[i] == value) return true;
    return false;
}

/* A factor for each dimension of a tensor that has none yet. */
static void own_factors(const spmd *s, spmd_rule *r, spmd_tensor *t, bool blocked) {
    for (int d = 0; d < t->rank; d++)
        if (!t->dim[d].n) put(t, d, new_factor(r, (double)shape_of(s, t)->dim.at[d], blocked));
}

static int64_t size_of(const spmd *s, const spmd_tensor *t, int d) {
    return d >= 0 && d < t->rank ? shape_of(s, t)->dim.at[d] : 1;
}

/* Tensors of one rank: dimensions of one size are the same factor, others may not be cut. */
static void alike(const spmd *s, spmd_rule *r, uint32_t blocked) {
    spmd_tensor *like = &r->tensor[r->operands];
    for (int d = 0; d < like->rank; d++)
        put(like, d, new_factor(r, (double)size_of(s, like, d), blocked >> d & 1));
    for (int t = 0; t < r->tensors; t++) {
        spmd_tensor *other = &r->tensor[t];
        if (other == like || other->rank != like->rank) continue;
        for (int d = 0; d < like->rank; d++) {
            bool same = size_of(s, other, d) == size_of(s, like, d);
            put(other, d,
                same ? factor_at(like, d) : new_factor(r, (double)size_of(s, other, d), true));
            if (!same) r->blocked |= 1u << factor_at(like, d);
        }
    }
}

static void transposed(const spmd *s, spmd_rule *r, const sm_instruction *it) {
    own_factors(s, r, &r->tensor[1], false);
    for (int d = 0; d < it->dimensions.n && d < r->tensor[1].rank; d++)
        if (it->dimensions.at[d] >= 0 && it->dimensions.at[d] < r->tensor[0].rank)
            put(&r->tensor[0], (int)it->dimensions.at[d], factor_at(&r->tensor[1], d));
}

static void broadcast(const spmd *s, spmd_rule *r, const sm_instruction *it) {
    own_factors(s, r, &r->tensor[1], false);
    for (int d = 0; d < it->dimensions.n && d < r->tensor[0].rank; d++) {
        int64_t to = it->dimensions.at[d];
        if (to >= 0 && to < r->tensor[1].rank &&
            size_of(s, &r->tensor[1], (int)to) == size_of(s, &r->tensor[0], d))
            put(&r->tensor[0], d, factor_at(&r->tensor[1], (int)to));
    }
    own_factors(s, r, &r->tensor[0], true);
}

/* Sizes from the minor dimension on: where products meet, a factor ends. */
static void reshaped(const spmd *s, spmd_rule *r) {
    spmd_tensor *a = &r->tensor[0], *b = &r->tensor[1];
    int i = 0, k = 0;
    int64_t left_a = 0, left_b = 0;
    while (i < a->rank || k < b->rank) {
        if (left_a <= 1 && i < a->rank && (left_a = size_of(s, a, i)) <= 1) {
            i++;
            continue;
        }
        if (left_b <= 1 && k < b->rank && (left_b = size_of(s, b, k)) <= 1) {
            k++;
            continue;
        }
        if (i == a->rank || k == b->rank || left_a < 2 || left_b < 2) return;
        int64_t small = left_a < left_b ? left_a : left_b,
                large = left_a < left_b ? left_b : left_a;
        if (large % small) return; /* the rest has no factor that both have */
        int f = new_factor(r, (double)small, false);
        put(a, i, f);
        put(b, k, f);
        left_a /= small;
        left_b /= small;
        i += left_a == 1;
        k += left_b == 1;
    }
}

static void dot(const spmd *s, spmd_rule *r, const sm_instruction *it) {
    spmd_tensor *a = &r->tensor[0], *b = &r->tensor[1], *out = &r->tensor[2];
    int to = 0;
    for (int i = 0; i < it->lhs_batch.n && i < it->rhs_batch.n; i++) {
        int f = new_factor(r, (double)size_of(s, out, to), false);
        put(a, (int)it->lhs_batch.at[i], f);
        put(b, (int)it->rhs_batch.at[i], f);
        put(out, to++, f);
    }
    for (int side = 0; side < 2; side++) {
        spmd_tensor *t = side ? b : a;
        for (int d = 0; d < t->rank; d++) {
            if (contains(side ? it->rhs_batch : it->lhs_batch, d) ||
                contains(side ? it->rhs_contracting : it->lhs_contracting, d))
                continue;
            int f = new_factor(r, (double)size_of(s, t, d), false);
            put(t, d, f);
            put(out, to++, f);
        }
    }
    for (int i = 0; i < it->lhs_contracting.n && i < it->rhs_contracting.n; i++) {
        int64_t d = it->lhs_contracting.at[i];
        int f = new_factor(r, d < a->rank ? (double)size_of(s, a, (int)d) : 1, false);
        put(a, (int)d, f);
        put(b, (int)it->rhs_contracting.at[i], f);
        if (f >= 0) r->contracted |= 1u << f;
    }
}

static bool fits(sm_module_list list, int rank) {
    for (int i = 0; i < list.n; i++)
        if (list.at[i] < 0 || list.at[i] >= rank) return false;
    return list.n <= rank;
}

static bool dot_fits(const spmd_rule *r, const sm_instruction *it) {
    int a = r->tensor[0].rank, b = r->tensor[1].rank;
    return fits(it->lhs_batch, a) && fits(it->lhs_contracting, a) && fits(it->rhs_batch, b) &&
           fits(it->rhs_contracting, b) && it->lhs_batch.n == it->rhs_batch.n &&
           it->lhs_contracting.n == it->rhs_contracting.n &&
           a + b - it->lhs_batch.n - 2 * it->lhs_contracting.n == r->tensor[2].rank;
}

/* Of the operands the first half is reduced, the others are what sums begin with. */
static void reduced(const spmd *s, spmd_rule *r, const sm_instruction *it) {
    spmd_tensor *first = &r->tensor[0];
    own_factors(s, r, first, false);
    for (int t = 0; t < r->tensors; t++) {
        spmd_tensor *other = &r->tensor[t];
        int to = 0;
        for (int d = 0; d < first->rank; d++) {
            bool gone = contains(it->dimensions, d);
            if (gone && factor_at(first, d) >= 0) r->contracted |= 1u << factor_at(first, d);
            if (t && t < r->operands && other->rank == first->rank)
                put(other, d, factor_at(first, d));
            if (t >= r->operands && !gone) put(other, to++, factor_at(first, d));
        }
    }
}

/* Slices of an array (gather), or onto one (scatter): the dimensions that a slice has whole pass.
 */
static void sliced(const spmd *s, spmd_rule *r, const sm_instruction *it, spmd_tensor *whole,
                   spmd_tensor *slices, spmd_tensor *indices) {
    int window = 0, holder = it->rhs_contracting.n ? (int)it->rhs_contracting.at[0] : -1;
    own_factors(s, r, slices, false);
    for (int d = 0; d < whole->rank; d++) {
        if (contains(it->lhs_contracting, d) || contains(it->lhs_batch, d)) continue;
        int from = window < it->dimensions.n ? (int)it->dimensions.at[window] : -1;
        window++;
        if (from < 0 || from >= slices->rank) continue;
        if (size_of(s, slices, from) == size_of(s, whole, d))
            put(whole, d, factor_at(slices, from));
        else if (factor_at(slices, from) >= 0) r->blocked |= 1u << factor_at(slices, from);
    }
    /* Rows are found by number: a device that has some of them adds nothing for the others. */
    own_factors(s, r, whole, it->lhs_batch.n > 0 || it->lhs_contracting.n != 1);
    /* Indices: their dimensions but the one that holds an index are those of the batch, in order.
     */
    int to = 0;
    for (int d = 0; d < slices->rank; d++) {
        if (contains(it->dimensions, d)) continue;
        to += to == holder;
        put(indices, to++, factor_at(slices, d));
    }
    own_factors(s, r, indices, true);
}

/* Factors that operands have and no result. */
static void find_contracted(spmd_rule *r) {
    uint32_t kept = 0;
    for (int t = r->operands; t < r->tensors; t++)
        for (int d = 0; d < r->tensor[t].rank; d++)
            for (int i = 0; i < r->tensor[t].dim[d].n; i++)
                kept |= 1u << r->tensor[t].dim[d].factor[i];
    r->contracted = ((1u << r->factors) - 1u) & ~kept;
}

static uint32_t windowed(const sm_instruction *it) {
    uint32_t blocked = 0;
    for (int i = 0; it->convolution && i < it->convolution->window.n && i < SM_MAX_RANK; i++)
        blocked |= (uint32_t)(it->convolution->window.at[i] > 1) << i;
    return blocked;
}

/* b01f_01io->b01f: batch and features may be cut, not space. */
static void convolution(const spmd *s, spmd_rule *r, const sm_instruction *it) {
    static const char letters[] = "bfio";
    int factor[4] = {-1, -1, -1, -1};
    const sm_module_convolution *c = it->convolution;
    int part = 0, d = 0;
    for (const char *at = c->labels; *at && c->features == 1 && c->batches == 1; at++) {
        if (*at == '-') continue;
        if (*at == '_' || *at == '>') {
            part++;
            d = 0;
            continue;
        }
        if (part > 2) return;
        spmd_tensor *t = &r->tensor[part];
        const char *is = strchr(letters, *at);
        if (is && d < t->rank) {
            /* The result's features are the kernel's 'o', the input's its 'i'. */
            int which = part == 2 && *at == 'f'   ? 3
                        : part == 0 && *at == 'f' ? 2
                                                  : (int)(is - letters);
            if (factor[which] < 0) factor[which] = new_factor(r, (double)size_of(s, t, d), false);
            put(t, d, factor[which]);
        }
        d++;
    }
}

static bool begin_rule(const spmd *s, int c, int at, spmd_rule *r) {
    const sm_computation *in = &s->module->computation[c];
    const sm_instruction *it = &in->instruction[at];
    memset(r, 0, sizeof *r);
    r->operands = it->operands;
    if (r->operands + 1 > SPMD_TENSORS) return false;
    for (int o = 0; o < it->operands; o++)
        r->tensor[r->tensors++].value = s->value_of[c][it->operand[o]];
    if (it->shape->parts == 0) {
        r->tensor[r->tensors++].value = s->value_of[c][at];
    } else { /* results are elements, which stand after it */
        for (int i = 0; i < it->shape->parts; i++) {
            const sm_instruction *e = at + 1 + i < in->n ? &in->instruction[at + 1 + i] : NULL;
            bool is = e && e->opcode == SM_OPCODE_GET_TUPLE_ELEMENT && e->operand[0] == at;
            if (!is || r->tensors == SPMD_TENSORS) return false;
            r->tensor[r->tensors++].value = s->value_of[c][at + 1 + i];
        }
    }
    for (int t = 0; t < r->tensors; t++) {
        if (r->tensor[t].value < 0) return false;
        r->tensor[t].rank = s->value[r->tensor[t].value].at.rank;
        if (r->tensor[t].rank != shape_of(s, &r->tensor[t])->dim.n) return false;
    }
    return r->tensors > r->operands;
}

static bool put_rule(const spmd *s, const sm_instruction *it, spmd_rule *r) {
    sm_module_class class = sm_module_class_of(it->opcode);
    int n = r->operands;
    switch (it->opcode) {
    case SM_OPCODE_TRANSPOSE:
        if (n != 1) return false;
        transposed(s, r, it);
        return r->passes = true;
    case SM_OPCODE_BROADCAST:
        if (n != 1) return false;
        broadcast(s, r, it);
        return r->passes = true;
    case SM_OPCODE_RESHAPE:
        if (n != 1) return false;
        reshaped(s, r);
        return r->passes = true;
    case SM_OPCODE_DOT:
        if (n != 2 || !dot_fits(r, it)) return false;
        dot(s, r, it);
        return r->multiplies = true;
    case SM_OPCODE_CONVOLUTION:
        if (n != 2 || !it->convolution) return false;
        convolution(s, r, it);
        find_contracted(r);
        return r->multiplies = true;
    case SM_OPCODE_REDUCE:
        if (n < 2) return false;
        reduced(s, r, it);
        return true;
    case SM_OPCODE_GATHER:
        if (n != 2) return false;
        sliced(s, r, it, &r->tensor[0], &r->tensor[2], &r->tensor[1]);
        find_contracted(r);
        return true;
    case SM_OPCODE_SCATTER:
        if (n != 3) return false;
        sliced(s, r, it, &r->tensor[0], &r->tensor[2], &r->tensor[1]);
        for (int d = 0; d < r->tensor[0].rank; d++)
            put(&r->tensor[3], d, factor_at(&r->tensor[0], d));
        find_contracted(r);
        return true;
    case SM_OPCODE_CONCATENATE:
    case SM_OPCODE_SORT:
        alike(s, r,
              it->dimensions.n && it->dimensions.at[0] >= 0 && it->dimensions.at[0] < SM_MAX_RANK
                  ? 1u << it->dimensions.at[0]
                  : ~0u);
        return r->passes = true;
    case SM_OPCODE_REDUCE_WINDOW: alike(s, r, windowed(it)); return r->passes = true;
    case SM_OPCODE_TOP_K:
    case SM_OPCODE_DYNAMIC_SLICE:
    case SM_OPCODE_SLICE:
    case SM_OPCODE_PAD:
    case SM_OPCODE_REVERSE:
    case SM_OPCODE_COPY:
    case SM_OPCODE_BITCAST_CONVERT:
    case SM_OPCODE_DYNAMIC_UPDATE_SLICE: alike(s, r, 0); return r->passes = true;
    case SM_OPCODE_CUSTOM_CALL:
        if (!is_called(it, "Sharding") || n != 1) return false;
        alike(s, r, 0);
        return r->passes = true;
    default:
        if (class != SM_CLASS_POINTWISE && class != SM_CLASS_TRANSCENDENTAL) return false;
        alike(s, r, 0);
        return r->passes = true;
    }
}

bool spmd_rule_of(const spmd *s, int computation, int instruction, spmd_rule *rule) {
    const sm_instruction *it = &s->module->computation[computation].instruction[instruction];
    return begin_rule(s, computation, instruction, rule) && put_rule(s, it, rule);
}
