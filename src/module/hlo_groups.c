/* Which devices communicate: {{0,1},{2,3}}, [2,4]<=[4,2]T(1,0), mesh['x'=2,'y'=4] {'y'}. */
#include "hlo_reader.h"

#include <string.h>

/* What follows "{" of a list of lists, each of `size` numbers; 0: as many as the first has. */
static bool lists(hlo_reader *r, int size, sm_module_groups *out) {
    hlo_list all = {0};
    sm_module_list one;
    while (!r->status && !hlo_accept(r, '}')) {
        if (out->n && !hlo_expect(r, ',', "between groups")) break;
        sm_span place = {r->at, 1};
        if (!hlo_expect(r, '{', "before a group") || !hlo_numbers(r, ',', '}', &one)) break;
        if (!size) size = one.n;
        if (one.n != size || size == 0) {
            hlo_fail(r, place, "a group has %d devices, another %d", one.n, size);
            break;
        }
        int32_t *member = NULL;
        for (int i = 0; i < size && (member = hlo_push(r, &all, sizeof *member)); i++) {
            if (one.at[i] < 0 || one.at[i] >= HLO_MOST_DEVICES) hlo_fail(r, place, "no device");
            *member = (int32_t)one.at[i];
        }
        if (!member) break;
        out->n++;
    }
    int32_t *member = r->status ? NULL : sm_arena_array(r->arena, all.n + 1, sizeof *member);
    if (!r->status && !member) hlo_no_memory(r);
    if (member && all.n) memcpy(member, all.item, all.n * sizeof *member);
    sm_free(all.item);
    out->size = size;
    out->member = member;
    return member != NULL;
}

bool hlo_pairs(hlo_reader *r, sm_module_groups *out) {
    *out = (sm_module_groups){0};
    return hlo_expect(r, '{', "before pairs of devices") && lists(r, 2, out);
}

static bool made(hlo_reader *r, sm_span place, module_groups_made how) {
    if (how == MODULE_GROUPS_NO_MEMORY) return hlo_no_memory(r);
    return how == MODULE_GROUPS_MADE || hlo_fail(r, place, "groups that do not divide the devices");
}

/* [groups,size]<=[sizes]T(order) */
static bool iota(hlo_reader *r, sm_module_groups *out) {
    sm_span place = {r->at, 1};
    sm_module_list shape, sizes, order = {0};
    if (!hlo_numbers(r, ',', ']', &shape)) return false;
    if (!hlo_expect(r, '<', "in groups") || !hlo_expect(r, '=', "in groups") ||
        !hlo_expect(r, '[', "in groups") || !hlo_numbers(r, ',', ']', &sizes))
        return false;
    if (hlo_accept(r, 'T') && (!hlo_expect(r, '(', "after T") || !hlo_numbers(r, ',', ')', &order)))
        return false;
    if (shape.n != 2) return hlo_fail(r, place, "groups have a number and a size");
    if (!made(r, place, module_groups_of_order(r->arena, sizes, order, shape.at[1], out)))
        return false;
    return out->n == shape.at[0] || hlo_fail(r, place, "groups that do not hold all devices");
}

typedef struct mesh_axis { /* or a part of one */
    sm_span name;
    int64_t size;
} mesh_axis;

/* 'x'=2,... up to the bracket. */
static bool mesh_axes(hlo_reader *r, hlo_list *axes) {
    while (!hlo_accept(r, ']')) {
        if (axes->n && !hlo_expect(r, ',', "between axes")) return false;
        mesh_axis *axis = hlo_push(r, axes, sizeof *axis);
        if (!axis || !hlo_expect(r, '\'', "before the name of an axis")) return false;
        axis->name = hlo_name(r);
        if (!hlo_expect(r, '\'', "after the name of an axis") ||
            !hlo_expect(r, '=', "after the name of an axis"))
            return false;
        if (!hlo_number(r, &axis->size) || axis->size < 1 || axis->size > HLO_MOST_DEVICES)
            return hlo_fail_here(r, "expected the size of an axis");
        if (axes->n > HLO_MOST_RANK) return hlo_fail_here(r, "too many axes");
    }
    return true;
}

static int find_axis(const hlo_reader *r, const hlo_list *axes, sm_span name) {
    const mesh_axis *axis = axes->item;
    for (size_t i = 0; i < axes->n; i++)
        if (axis[i].name.length == name.length &&
            !memcmp(r->source->text + axis[i].name.offset, r->source->text + name.offset,
                    name.length))
            return (int)i;
    return -1;
}

/* The part :(before)size of an axis becomes an axis of its own, what surrounds it others. *at:
 * where it then stands. */
static bool split_axis(hlo_reader *r, hlo_list *axes, int *at) {
    int64_t before, size;
    if (!hlo_expect(r, '(', "in a part of an axis") || !hlo_number(r, &before) ||
        !hlo_expect(r, ')', "in a part of an axis") || !hlo_number(r, &size))
        return r->status ? false : hlo_fail_here(r, "expected the size of a part");
    mesh_axis *axis = axes->item;
    int64_t whole = axis[*at].size;
    if (before < 1 || size < 1 || before > whole || size > whole || whole % (before * size))
        return hlo_fail_here(r, "a part that does not divide its axis");
    for (int i = 0; i < 2; i++)
        if (!hlo_push(r, axes, sizeof *axis)) return false;
    axis = axes->item;
    memmove(axis + *at + 3, axis + *at + 1, (axes->n - 3 - (size_t)*at) * sizeof *axis);
    const sm_span none = {0, 0};
    axis[*at + 1] = (mesh_axis){none, size};
    axis[*at + 2] = (mesh_axis){none, whole / before / size};
    axis[*at] = (mesh_axis){none, before};
    ++*at;
    return true;
}

/* {'y','x':(1)2} after the mesh: the axes whose devices are in one group, in their order. */
static bool grouped_axes(hlo_reader *r, hlo_list *axes, hlo_list *chosen) {
    if (!hlo_expect(r, '{', "before the axes of a group")) return false;
    while (!hlo_accept(r, '}')) {
        if (chosen->n && !hlo_expect(r, ',', "between axes")) return false;
        if (!hlo_expect(r, '\'', "before the name of an axis")) return false;
        sm_span name = hlo_name(r);
        int at = find_axis(r, axes, name);
        if (at < 0) return hlo_fail(r, name, "the mesh has no such axis");
        if (!hlo_expect(r, '\'', "after the name of an axis")) return false;
        if (hlo_accept(r, ':')) {
            int had = at;
            if (!split_axis(r, axes, &at)) return false;
            int *earlier = chosen->item;
            for (size_t i = 0; i < chosen->n; i++) earlier[i] += earlier[i] > had ? 2 : 0;
        }
        int *number = hlo_push(r, chosen, sizeof *number);
        if (!number) return false;
        *number = at;
    }
    return true;
}

/* Devices in the order: axes that are not of a group, then those that are. */
static bool groups_of_axes(hlo_reader *r, sm_span place, const hlo_list *axes,
                           const hlo_list *chosen, sm_module_groups *out) {
    int64_t size[3 * HLO_MOST_RANK], order[3 * HLO_MOST_RANK], group = 1;
    const mesh_axis *axis = axes->item;
    const int *in = chosen->item;
    int n = 0, all = (int)axes->n;
    if (all > 3 * HLO_MOST_RANK) return hlo_fail(r, place, "too many axes");
    for (int i = 0; i < all; i++) {
        size[i] = axis[i].size;
        bool is_chosen = false;
        for (size_t c = 0; c < chosen->n; c++) is_chosen = is_chosen || in[c] == i;
        if (!is_chosen) order[n++] = i;
    }
    if (n + (int)chosen->n != all) return hlo_fail(r, place, "an axis is named twice");
    for (size_t c = 0; c < chosen->n; c++) {
        order[n++] = in[c];
        group *= size[in[c]];
    }
    return made(r, place,
                module_groups_of_order(r->arena, (sm_module_list){all, size},
                                       (sm_module_list){all, order}, group, out));
}

/* Devices 0, 1, ... as an array of these sizes, transposed: "2,4]T(1,0)", all in one group. */
static bool order_of_devices(hlo_reader *r, sm_module_groups *out) {
    sm_span place = {r->at, 1};
    sm_module_list sizes, order = {0};
    int64_t all = 1;
    if (!hlo_numbers(r, ',', ']', &sizes)) return false;
    if (hlo_accept(r, '<') &&
        (!hlo_expect(r, '=', "in devices") || !hlo_expect(r, '[', "in devices") ||
         !hlo_numbers(r, ',', ']', &sizes)))
        return false;
    if (hlo_accept(r, 'T') && (!hlo_expect(r, '(', "after T") || !hlo_numbers(r, ',', ')', &order)))
        return false;
    for (int i = 0; i < sizes.n; i++) {
        if (sizes.at[i] < 1 || sizes.at[i] > HLO_MOST_DEVICES / all)
            return hlo_fail(r, place, "too many devices");
        all *= sizes.at[i];
    }
    return made(r, place, module_groups_of_order(r->arena, sizes, order, all, out));
}

/* ", device_ids=([2,4]T(1,0))" or "(0,2,1,3)": which device each element of the mesh is. */
static bool devices_of_mesh(hlo_reader *r, sm_module_list *out) {
    sm_module_groups all = {0};
    *out = (sm_module_list){0};
    if (!hlo_accept(r, ',')) return true;
    sm_span word = hlo_name(r);
    if (!hlo_is(r, word, "device_ids"))
        return hlo_fail(r, word.length ? word : (sm_span){r->at, 1}, "expected device_ids=(...)");
    if (!hlo_expect(r, '=', "after device_ids") || !hlo_expect(r, '(', "before devices"))
        return false;
    if (!hlo_accept(r, '[')) return hlo_numbers(r, ',', ')', out);
    if (!order_of_devices(r, &all) || !hlo_expect(r, ')', "after devices")) return false;
    int64_t *at = sm_arena_array(r->arena, (size_t)all.size, sizeof *at);
    if (!at) return hlo_no_memory(r);
    for (int i = 0; i < all.size; i++) at[i] = all.member[i];
    *out = (sm_module_list){all.size, at};
    return true;
}

static bool mesh(hlo_reader *r, sm_module_groups *out) {
    sm_span place = {r->at, 1};
    sm_module_list devices;
    hlo_list axes = {0}, chosen = {0};
    bool read = hlo_expect(r, '[', "after mesh") && mesh_axes(r, &axes) &&
                devices_of_mesh(r, &devices) && grouped_axes(r, &axes, &chosen) &&
                groups_of_axes(r, place, &axes, &chosen, out);
    sm_free(axes.item);
    sm_free(chosen.item);
    if (!read || !devices.n) return read;
    return made(r, place, module_groups_rename(r->arena, out, devices));
}

/* Groups are written in few letters and may name many devices: all of a module have a limit. */
static bool counted(hlo_reader *r, sm_span place, const sm_module_groups *g) {
    r->members += (int64_t)g->n * g->size;
    return r->members <= MODULE_MOST_MEMBERS ||
           hlo_fail(r, place, "the groups of the module name more than %d devices",
                    MODULE_MOST_MEMBERS);
}

bool hlo_groups(hlo_reader *r, sm_module_groups *out) {
    sm_span place = {r->at, 1};
    *out = (sm_module_groups){0};
    if (hlo_accept(r, '{')) return lists(r, 0, out) && counted(r, place, out);
    if (hlo_accept(r, '[')) return iota(r, out) && counted(r, place, out);
    sm_span word = hlo_name(r);
    if (hlo_is(r, word, "mesh")) return mesh(r, out) && counted(r, place, out);
    return hlo_fail(r, word.length ? word : (sm_span){r->at, 1},
                    "expected groups of devices: {{0,1}}, [2,4]<=[8] or mesh['x'=8] {'x'}");
}

/* A name in quotes, which are escaped where they stand in a text, and "=4" after it. */
static bool named_axis(const char **at, const char *end, sm_source *name, int64_t *size) {
    while (*at < end && strchr("\\\" ,", **at)) ++*at;
    name->text = *at;
    while (*at < end && !strchr("\"\\]=", **at)) ++*at;
    name->length = (size_t)(*at - name->text);
    while (*at < end && (**at == '"' || **at == '\\')) ++*at;
    if (*at == end || **at != '=') return false;
    *size = 0;
    for (++*at; *at < end && **at >= '0' && **at <= '9' && *size < HLO_MOST_DEVICES; ++*at)
        *size = *size * 10 + (**at - '0');
    return name->length > 0 && *size > 0 && *size <= HLO_MOST_DEVICES;
}

bool hlo_axes(hlo_reader *r, const char *at, const char *end) {
    hlo_list axes = {0};
    sm_source name;
    int64_t size;
    while (named_axis(&at, end, &name, &size)) {
        sm_module_axis *axis = hlo_push(r, &axes, sizeof *axis);
        const char *copy = sm_arena_copy(r->arena, name.text, name.length);
        if (!copy) hlo_no_memory(r);
        if (axis) *axis = (sm_module_axis){copy, (int)size};
    }
    sm_module_axis *list = axes.n ? sm_arena_array(r->arena, axes.n, sizeof *list) : NULL;
    if (list) memcpy(list, axes.item, axes.n * sizeof *list);
    if (axes.n && !list) hlo_no_memory(r);
    r->module.axes = list ? (int)axes.n : 0;
    r->module.axis = list;
    sm_free(axes.item);
    return !r->status;
}

/* In the attributes of the header: #sdy.mesh<["data"=4, "model"=2]>. */
bool hlo_mesh_axes(hlo_reader *r, sm_span attributes) {
    const char *at = r->source->text + attributes.offset, *end = at + attributes.length;
    static const char word[] = "sdy.mesh<[";
    const ptrdiff_t n = sizeof word - 1;
    while (end - at >= n && memcmp(at, word, (size_t)n) != 0) at++;
    return hlo_axes(r, end - at >= n ? at + n : end, end);
}
