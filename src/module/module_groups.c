#include "module_parts.h"

enum { MOST = 1 << 20, RANK = 96 };

/* Is it each of 0 .. n-1 once? */
static bool is_order(sm_module_list order) {
    bool seen[RANK] = {false};
    for (int i = 0; i < order.n; i++) {
        if (order.at[i] < 0 || order.at[i] >= order.n || seen[order.at[i]]) return false;
        seen[order.at[i]] = true;
    }
    return true;
}

module_groups_made module_groups_of_order(sm_arena *arena, sm_module_list sizes,
                                          sm_module_list order, int64_t group,
                                          sm_module_groups *out) {
    int64_t size[RANK], stride[RANK], at[RANK] = {0}, all = 1, device = 0;
    if (sizes.n > RANK || (order.n && order.n != sizes.n) || !is_order(order))
        return MODULE_GROUPS_WRONG;
    for (int i = 0; i < sizes.n; i++) {
        if (sizes.at[i] < 1 || sizes.at[i] > MOST / all) return MODULE_GROUPS_WRONG;
        all *= sizes.at[i];
    }
    if (group < 1 || all % group) return MODULE_GROUPS_WRONG;
    /* Strides of the transposed array, and its sizes, the slowest first. */
    int64_t by[RANK], step = 1;
    for (int i = sizes.n - 1; i >= 0; i--) {
        by[i] = step;
        step *= sizes.at[i];
    }
    for (int i = 0; i < sizes.n; i++) {
        int64_t from = order.n ? order.at[i] : i;
        size[i] = sizes.at[from];
        stride[i] = by[from];
    }
    int32_t *member = sm_arena_array(arena, (size_t)all, sizeof *member);
    if (!member) return MODULE_GROUPS_NO_MEMORY;
    for (int64_t n = 0; n < all; n++) {
        member[n] = (int32_t)device;
        for (int i = sizes.n - 1; i >= 0; i--) {
            device += stride[i];
            if (++at[i] < size[i]) break;
            device -= stride[i] * size[i];
            at[i] = 0;
        }
    }
    *out = (sm_module_groups){(int)(all / group), (int)group, member};
    return MODULE_GROUPS_MADE;
}

static module_groups_made rename_members(sm_arena *arena, sm_module_groups *groups,
                                         sm_module_list devices) {
    int all = groups->n * groups->size;
    if (devices.n != all) return MODULE_GROUPS_WRONG;
    int32_t *member = sm_arena_array(arena, (size_t)all, sizeof *member);
    if (!member) return MODULE_GROUPS_NO_MEMORY;
    for (int i = 0; i < all; i++) {
        int64_t device = devices.at[groups->member[i]];
        if (device < 0 || device >= all) return MODULE_GROUPS_WRONG;
        member[i] = (int32_t)device;
    }
    groups->member = member;
    return MODULE_GROUPS_MADE;
}

module_groups_made module_groups_of_mesh(sm_arena *arena, sm_module_list axes,
                                         const module_part *part, int parts, sm_module_list devices,
                                         sm_module_groups *out) {
    int64_t size[3 * MODULE_MOST_AXES] = {0}, order[3 * MODULE_MOST_AXES] = {0}, group = 1;
    bool taken[MODULE_MOST_AXES] = {false};
    int n = 0;
    if (axes.n > MODULE_MOST_AXES || parts > MODULE_MOST_AXES) return MODULE_GROUPS_WRONG;
    for (int i = 0; i < 3 * axes.n; i++) size[i] = i % 3 == 1 ? axes.at[i / 3] : 1;
    for (int i = 0; i < parts; i++) {
        const module_part *p = &part[i];
        const int64_t whole = axes.at[p->axis];
        if (taken[p->axis]) return MODULE_GROUPS_TWICE;
        if (p->before < 1 || p->size < 1 || whole % p->before || whole / p->before % p->size)
            return MODULE_GROUPS_PART;
        taken[p->axis] = true;
        size[3 * p->axis] = p->before;
        size[3 * p->axis + 1] = p->size;
        size[3 * p->axis + 2] = whole / p->before / p->size;
        group *= p->size;
    }
    for (int i = 0; i < 3 * axes.n; i++)
        if (i % 3 != 1 || !taken[i / 3]) order[n++] = i;
    for (int i = 0; i < parts; i++) order[n++] = 3 * part[i].axis + 1;
    module_groups_made how = module_groups_of_order(arena, (sm_module_list){3 * axes.n, size},
                                                    (sm_module_list){n, order}, group, out);
    return how == MODULE_GROUPS_MADE && devices.n ? rename_members(arena, out, devices) : how;
}
