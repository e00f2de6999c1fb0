/* Shardings spread along factors, until nothing changes: first through operations that work element
 * by element, then through all that agree, at last also where arrays disagree. */
#include "spmd_parts.h"

#include <math.h>
#include <string.h>

static int axis_size(const spmd *s, int axis) { return s->mesh.axis[axis].size; }

/* Axes go to the major factor of a dimension until it is cut all through, then to the next. */
void spmd_project(const spmd *s, const spmd_rule *rule, const spmd_tensor *t, const sm_array *at,
                  spmd_axes list[SPMD_FACTORS]) {
    memset(list, 0, SPMD_FACTORS * sizeof *list);
    for (int d = 0; d < t->rank; d++) {
        int k = 0;
        double left = t->dim[d].n ? rule->size[t->dim[d].factor[0]] : 1;
        for (int i = 0; i < at->dim[d].n_axes; i++) {
            double size = axis_size(s, at->dim[d].axis[i]);
            while (k < t->dim[d].n && left == 1 && size > 1)
                left = ++k < t->dim[d].n ? rule->size[t->dim[d].factor[k]] : 1;
            bool last = k == t->dim[d].n - 1 && t->dim[d].n == 1; /* may be padded */
            if (k >= t->dim[d].n || (fmod(left, size) != 0 && !last)) break;
            int f = t->dim[d].factor[k];
            if (rule->blocked >> f & 1) break;
            list[f].axis[list[f].n++] = at->dim[d].axis[i];
            left = ceil(left / size);
        }
    }
}

static bool is_prefix(const spmd_axes *a, const spmd_axes *b) {
    return a->n <= b->n && !memcmp(a->axis, b->axis, (size_t)a->n);
}

/* What all arrays together say of a factor: the longest list, of which the others are the
 * beginning; where they disagree what they agree on, or what the largest array says. */
static spmd_axes agreed(const spmd *s, const spmd_rule *r, spmd_axes (*list)[SPMD_FACTORS], int f,
                        bool settle) {
    spmd_axes best = {0};
    double largest = 0;
    for (int t = 0; t < r->tensors; t++) {
        const spmd_value *v = &s->value[r->tensor[t].value];
        const spmd_axes *l = &list[t][f];
        if (v->made_anywhere || l->n == 0) continue;
        double bytes = sm_module_data_bytes(v->shape);
        if (is_prefix(&best, l)) {
            best = *l;
            largest = fmax(largest, bytes);
        } else if (!is_prefix(l, &best)) {
            int n = 0;
            while (n < best.n && n < l->n && best.axis[n] == l->axis[n]) n++;
            if (!settle) best.n = n;
            else if (bytes > largest) best = *l, largest = bytes;
        }
    }
    return best;
}

static double ways(const spmd *s, const spmd_axes *l) {
    double n = 1;
    for (int i = 0; i < l->n; i++) n *= axis_size(s, l->axis[i]);
    return n;
}

/* Bring an array to what is agreed of one factor, as far as it may. */
static bool extend(spmd *s, const spmd_rule *r, const spmd_tensor *t, int d, int k,
                   const spmd_axes *have, const spmd_axes *want) {
    spmd_value *v = &s->value[t->value];
    int f = t->dim[d].factor[k];
    bool changed = false;
    spmd_axes now = have[f];
    if (v->closed >> d & 1 || !is_prefix(&now, want)) return false;
    for (int before = 0; before < k; before++) { /* major factors are cut all through first */
        int g = t->dim[d].factor[before];
        if (ways(s, &have[g]) < r->size[g]) return false;
    }
    for (int after = k + 1; after < t->dim[d].n; after++)
        if (have[t->dim[d].factor[after]].n) return false;
    for (int i = now.n; i < want->n; i++) {
        int axis = want->axis[i];
        if (v->used >> axis & 1) break;
        if (fmod(r->size[f], ways(s, &now) * axis_size(s, axis)) != 0) break;
        /* Cut dimension d of a value over one more axis. */
        sm_dim *dim = &v->at.dim[d];
        dim->axis[dim->n_axes++] = (uint8_t)axis;
        v->used = (sm_axes)(v->used | 1u << axis);
        now.axis[now.n++] = (uint8_t)axis;
        changed = true;
    }
    return changed;
}

static bool spread(spmd *s, const spmd_rule *r, bool settle) {
    spmd_axes list[SPMD_TENSORS][SPMD_FACTORS];
    bool changed = false;
    for (int t = 0; t < r->tensors; t++)
        spmd_project(s, r, &r->tensor[t], &s->value[r->tensor[t].value].at, list[t]);
    for (int f = 0; f < r->factors; f++) {
        if (r->blocked >> f & 1) continue;
        spmd_axes want = agreed(s, r, list, f, settle);
        if (!want.n) continue;
        for (int t = 0; t < r->tensors; t++)
            for (int d = 0; d < r->tensor[t].rank; d++)
                for (int k = 0; k < r->tensor[t].dim[d].n; k++)
                    if (r->tensor[t].dim[d].factor[k] == f && list[t][f].n < want.n)
                        changed |= extend(s, r, &r->tensor[t], d, k, list[t], &want);
    }
    return changed;
}

/* Two values of one shape. */
static bool spread_between(spmd *s, int a, int b, bool settle) {
    spmd_rule r = {.tensors = 2, .operands = 1};
    if (a < 0 || b < 0 || a == b) return false;
    const spmd_value *v = &s->value[a];
    if (v->at.rank != s->value[b].at.rank) return false;
    for (int d = 0; d < v->at.rank; d++) {
        r.size[d] = (double)v->shape->dim.at[d];
        if (v->shape->dim.at[d] != s->value[b].shape->dim.at[d]) return false;
    }
    r.factors = v->at.rank;
    for (int t = 0; t < 2; t++) {
        r.tensor[t].value = t ? b : a;
        r.tensor[t].rank = v->at.rank;
        for (int d = 0; d < v->at.rank; d++) {
            r.tensor[t].dim[d].n = 1;
            r.tensor[t].dim[d].factor[0] = (int8_t)d;
        }
    }
    return spread(s, &r, settle);
}

static bool spread_at(spmd *s, int c, int i, bool all, bool settle) {
    const sm_instruction *it = &s->module->computation[c].instruction[i];
    spmd_rule r;
    bool changed = false;
    if (it->opcode == SM_OPCODE_TUPLE && s->wanted[c][i]) {
        for (int o = 0; o < it->operands; o++)
            changed |=
                spread_between(s, s->value_of[c][it->operand[o]], s->wanted[c][i][o], settle);
        return changed;
    }
    return spmd_rule_of(s, c, i, &r) && (all || r.passes) && spread(s, &r, settle);
}

static bool sweep(spmd *s, bool forward, bool all, bool settle) {
    bool changed = false;
    int n = s->module->computations;
    for (int k = 0; k < n; k++) {
        int c = forward ? n - 1 - k : k; /* those that call stand last */
        int many = s->module->computation[c].n;
        for (int i = 0; i < many; i++)
            changed |= spread_at(s, c, forward ? i : many - 1 - i, all, settle);
    }
    return changed;
}

void spmd_propagate(spmd *s) {
    enum { ROUNDS = 3, MOST_SWEEPS = 32 };
    for (int round = 0; round < ROUNDS; round++) {
        bool changed = true;
        for (int i = 0; i < MOST_SWEEPS && changed; i++) {
            changed = sweep(s, true, round > 0, round > 1);
            changed = sweep(s, false, round > 0, round > 1) || changed;
        }
    }
}
