/* Axes split into parts: X=4 as X1=2, major, and X2=2, minor. Chip x of X is chip (x/2, x%2) of
 * them, so that chips and blocks keep their numbers. */
#include "reshard.h"
#include "route_parts.h"
#include <string.h>

void sm_lowering_mesh(const sm_lowering *l, const sm_mesh *mesh, sm_mesh *split) {
    *split = *mesh;
    if (l->parts == 0) return;
    char number = '1';
    split->axes = l->parts;
    for (int p = 0; p < l->parts; p++) {
        int axis = l->part[p].axis;
        char *name = split->axis[p].name;
        number = p > 0 && l->part[p - 1].axis == axis ? (char)(number + 1) : '1';
        split->axis[p] = mesh->axis[axis];
        split->axis[p].size = l->part[p].size;
        split->axis[p].joined = number > '1';
        if (l->part[p].size == mesh->axis[axis].size) continue;
        size_t length =
            strlen(name) < sizeof split->axis[p].name - 1 ? strlen(name) : strlen(name) - 1;
        name[length] = number;
        name[length + 1] = '\0';
    }
}

sm_array sm_lowering_array(const sm_lowering *l, const sm_array *array) {
    sm_array split = *array;
    if (l->parts == 0) return split;
    sm_axes axes = array->unreduced;
    unsigned set = 0;
    for (int p = 0; p < l->parts; p++)
        if (axes >> l->part[p].axis & 1) set |= 1u << p;
    split.unreduced = (sm_axes)set;
    for (int d = 0; d < array->rank; d++) {
        split.dim[d].n_axes = 0;
        for (int i = 0; i < array->dim[d].n_axes; i++)
            for (int p = 0; p < l->parts; p++)
                if (l->part[p].axis == array->dim[d].axis[i]) sm_dim_append(&split.dim[d], p);
    }
    return split;
}

sm_layout sm_lowering_layout(const sm_lowering *l, const sm_layout *layout) {
    sm_layout split;
    if (l->parts == 0) return *layout;
    memset(&split, SM_REPLICATED, sizeof split);
    for (int p = 0; p < l->parts; p++) {
        int axis = l->part[p].axis, place = 0;
        split.dim[p] = layout->dim[axis];
        for (int q = 0; q < l->parts; q++) {
            int other = l->part[q].axis;
            bool major = other == axis ? q < p : layout->place[other] < layout->place[axis];
            place += layout->dim[other] == layout->dim[axis] && major;
        }
        if (split.dim[p] >= 0) split.place[p] = (int8_t)place;
    }
    return split;
}

sm_layout route_join(const sm_journey *j, const sm_lowering *as, const sm_layout *l) {
    sm_layout whole;
    memset(&whole, SM_REPLICATED, sizeof whole);
    for (int p = 0; p < j->axes; p++) {
        int axis = as->part[p].axis, place = 0;
        for (int q = 0; q < j->axes; q++)
            place += !(j->joined >> q & 1) && l->dim[q] == l->dim[p] && l->place[q] < l->place[p];
        if (!(j->joined >> p & 1)) whole.dim[axis] = l->dim[p];
        if (!(j->joined >> p & 1) && l->dim[p] >= 0) whole.place[axis] = (int8_t)place;
    }
    return whole;
}

sm_axes sm_lowering_axes(const sm_lowering *l, sm_axes axes) {
    if (l->parts == 0) return axes;
    unsigned set = 0;
    for (int p = 0; p < l->parts; p++)
        if (axes >> p & 1) set |= 1u << l->part[p].axis;
    return (sm_axes)set;
}

static int least_prime(int n) {
    for (int p = 2; p * p <= n; p++)
        if (n % p == 0) return p;
    return n;
}

/* The minor parts are the least primes, and the major one is what is left of the axis. */
static void split_axis(sm_lowering *l, int axis, int size, int minor_parts) {
    int minor = least_prime(size);
    if (minor_parts > 0) split_axis(l, axis, size / minor, minor_parts - 1);
    l->part[l->parts].axis = (int8_t)axis;
    l->part[l->parts++].size = minor_parts > 0 ? minor : size;
}

/* The axis of which most is left to split; -1 when nothing is. */
static int longest(const int *left, int axes) {
    int best = -1;
    for (int a = 0; a < axes; a++)
        if (least_prime(left[a]) < left[a] && (best < 0 || left[a] > left[best])) best = a;
    return best;
}

bool sm_lowering_split(sm_lowering *l, const sm_mesh *mesh) {
    int left[SM_MAX_AXES], minor_parts[SM_MAX_AXES] = {0}, parts = mesh->axes;
    l->parts = 0;
    for (int a = 0; a < mesh->axes; a++) left[a] = mesh->axis[a].size;
    for (int a; parts < SM_MAX_AXES && (a = longest(left, mesh->axes)) >= 0; parts++) {
        left[a] /= least_prime(left[a]);
        minor_parts[a]++;
    }
    if (parts == mesh->axes) return false;
    for (int a = 0; a < mesh->axes; a++) split_axis(l, a, mesh->axis[a].size, minor_parts[a]);
    return true;
}
