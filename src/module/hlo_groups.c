/* Which devices communicate: {{0,1},{2,3}}, [2,4]<=[4,2]T(1,0), mesh['x'=2,'y'=4] {'y'}. */
#include "hlo_reader.h"

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
    if (how == MODULE_GROUPS_PART)
        return hlo_fail(r, place, "a part that does not divide its axis");
    if (how == MODULE_GROUPS_TWICE) return hlo_fail(r, place, "an axis is named twice");
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

typedef struct mesh_axes {
    int n;
    sm_span name[MODULE_MOST_AXES];
    int64_t size[MODULE_MOST_AXES];
} mesh_axes;

/* 'x': the name between them. */
static bool axis_name(hlo_reader *r, sm_span *name) {
    if (!hlo_expect(r, '\'', "before the name of an axis")) return false;
    *name = hlo_name(r);
    return hlo_expect(r, '\'', "after the name of an axis");
}

/* 'x'=2,... up to the bracket. */
static bool read_axes(hlo_reader *r, mesh_axes *axes) {
    while (!hlo_accept(r, ']')) {
        if (axes->n && !hlo_expect(r, ',', "between axes")) return false;
        if (axes->n == MODULE_MOST_AXES) return hlo_fail_here(r, "too many axes");
        int64_t *size = &axes->size[axes->n];
        if (!axis_name(r, &axes->name[axes->n++]) ||
            !hlo_expect(r, '=', "after the name of an axis"))
            return false;
        if (!hlo_number(r, size) || *size < 1 || *size > HLO_MOST_DEVICES)
            return hlo_fail_here(r, "expected the size of an axis");
    }
    return true;
}

static int find_axis(const hlo_reader *r, const mesh_axes *axes, sm_span name) {
    const char *text = r->source->text;
    for (int i = 0; i < axes->n; i++)
        if (axes->name[i].length == name.length &&
            !memcmp(text + axes->name[i].offset, text + name.offset, name.length))
            return i;
    return -1;
}

/* {'y','x':(1)2} after the mesh: the axes, or parts of them, whose devices are in one group, in
 * their order. */
static bool grouped_axes(hlo_reader *r, const mesh_axes *axes, module_part *part, int *parts) {
    sm_span name;
    if (!hlo_expect(r, '{', "before the axes of a group")) return false;
    for (*parts = 0; !hlo_accept(r, '}'); ++*parts) {
        module_part *p = &part[*parts];
        if (*parts && !hlo_expect(r, ',', "between axes")) return false;
        if (!axis_name(r, &name)) return false;
        int at = find_axis(r, axes, name);
        if (at < 0) return hlo_fail(r, name, "the mesh has no such axis");
        if (*parts == MODULE_MOST_AXES) return hlo_fail_here(r, "too many axes");
        *p = (module_part){at, 1, axes->size[at]};
        if (hlo_accept(r, ':') &&
            (!hlo_expect(r, '(', "in a part of an axis") || !hlo_number(r, &p->before) ||
             !hlo_expect(r, ')', "in a part of an axis") || !hlo_number(r, &p->size)))
            return r->status ? false : hlo_fail_here(r, "expected the size of a part");
    }
    return true;
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
    module_part part[MODULE_MOST_AXES];
    mesh_axes axes = {.n = 0};
    int parts;
    return hlo_expect(r, '[', "after mesh") && read_axes(r, &axes) &&
           devices_of_mesh(r, &devices) && grouped_axes(r, &axes, part, &parts) &&
           made(r, place,
                module_groups_of_mesh(r->arena, (sm_module_list){axes.n, axes.size}, part, parts,
                                      devices, out));
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
