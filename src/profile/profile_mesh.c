/* The mesh that a module's groups of devices lie on. Devices are the elements of the mesh, the last
 * axis fastest. */

#include "profile_made.h"

SM_ORDER_OF_NUMBERS(by_number, int32_t)

/* A group whose members are n at stride s, those again at a longer stride, and so on. */
static void cuts_of_group(sm_mesh_cuts *c, int32_t *member, int size) {
    qsort(member, (size_t)size, sizeof *member, by_number);
    for (int had = 1; had < size;) {
        int64_t stride = member[had] - member[0];
        int n = 1;
        if (stride <= 0) return;
        while (had * n < size && member[had * n] - member[0] == stride * n) n++;
        if (n < 2 || size % (had * n)) return;
        sm_mesh_cut(c, stride);
        sm_mesh_cut(c, stride * n);
        had *= n;
    }
}

/* Devices that a permute joins: those that are reached from the first one. next: room for all, of
 * which only those of this permute are looked at. */
static int chain_of(const sm_module_groups *pairs, int32_t *next, int32_t *member, int room) {
    int n = 0;
    for (int i = 0; i < 2 * pairs->n; i++) next[pairs->member[i]] = -1;
    for (int i = 0; i < pairs->n; i++) next[pairs->member[2 * i]] = pairs->member[2 * i + 1];
    for (int32_t at = pairs->member[0]; at >= 0 && n < room; at = next[at]) {
        if (n > 0 && at == member[0]) break;
        member[n++] = at;
    }
    return n;
}

static bool is_permute(const sm_instruction *it) {
    return it->opcode == SM_OPCODE_COLLECTIVE_PERMUTE ||
           it->opcode == SM_OPCODE_COLLECTIVE_PERMUTE_START || it->opcode == SM_OPCODE_SEND;
}

static sm_status cuts_of_module(const profile_made *made, sm_mesh_cuts *c, sm_error *err) {
    const sm_module *m = made->p.module;
    int room = m->devices;
    int32_t *member = sm_malloc(2 * ((size_t)room + 1) * sizeof *member);
    if (!member) return sm_fail_memory(err);
    int32_t *next = member + room + 1;
    for (int k = 0; k < m->computations; k++)
        for (int i = 0; i < m->computation[k].n; i++) {
            const sm_instruction *it = &m->computation[k].instruction[i];
            if (it->groups.n == 0 || it->groups.size > room || it->groups.size < 2) continue;
            int size = it->groups.size;
            if (is_permute(it)) size = chain_of(&it->groups, next, member, room);
            else memcpy(member, it->groups.member, (size_t)size * sizeof *member);
            cuts_of_group(c, member, size);
        }
    sm_free(member);
    return SM_OK;
}

static void name_axis(sm_mesh *mesh, int i, const char *name, int size) {
    snprintf(mesh->axis[i].name, sizeof mesh->axis[i].name, "%.11s", name);
    mesh->axis[i].size = size;
}

/* Axes of more than one device, as the module names them; false when they are not all devices. */
static bool named_mesh(const sm_module *m, sm_mesh *mesh) {
    int64_t devices = 1;
    for (int i = 0; i < m->axes; i++) {
        if (m->axis[i].size > m->devices) return false;
        devices *= m->axis[i].size;
        if (devices > m->devices) return false;
        if (m->axis[i].size < 2) continue;
        if (mesh->axes == SM_MAX_AXES) return false;
        name_axis(mesh, mesh->axes++, m->axis[i].name, m->axis[i].size);
    }
    return mesh->axes > 0 && devices == m->devices;
}

/* Axes between the strides at which groups begin and end; one of all devices where they cross. */
static sm_status found_mesh(profile_made *made, sm_mesh *mesh, sm_error *err) {
    sm_mesh_cuts c = {.n = 0};
    sm_status status = cuts_of_module(made, &c, err);
    if (status) return status;
    sm_mesh_of_cuts(&c, made->p.module->devices, mesh);
    if (mesh->axes == 0) name_axis(mesh, mesh->axes++, "X", 1);
    return SM_OK;
}

static sm_status check_mesh(const profile_made *made, const sm_mesh *mesh, sm_error *err) {
    double devices = 1;
    for (int i = 0; i < mesh->axes; i++) devices *= mesh->axis[i].size;
    if (devices == made->p.module->devices) return SM_OK;
    return sm_fail(err, SM_BAD_INPUT, "the mesh has %.0f devices and the module runs on %d",
                   devices, made->p.module->devices);
}

sm_status profile_mesh(profile_made *made, const sm_mesh *asked, sm_error *err) {
    sm_mesh *mesh = &made->p.mesh;
    sm_status status = SM_OK;
    made->p.mesh_named = true;
    if (asked) {
        *mesh = *asked;
        status = check_mesh(made, mesh, err);
    } else if (!named_mesh(made->p.module, mesh)) {
        *mesh = (sm_mesh){0};
        made->p.mesh_named = false;
        status = found_mesh(made, mesh, err);
    }
    return status ? status
                  : sm_placement_of_mesh(made->p.system, mesh, NULL, &made->placement, err);
}

/* ---- groups on it ---- */

/* The axes along which two devices lie apart. */
static sm_axes apart(const sm_mesh *mesh, int32_t a, int32_t b) {
    sm_axes axes = 0;
    for (int i = mesh->axes - 1; i >= 0; i--) {
        int size = mesh->axis[i].size;
        if (a % size != b % size) axes = (sm_axes)(axes | 1u << i);
        a /= size;
        b /= size;
    }
    return axes;
}

static sm_axes all_axes(const sm_mesh *mesh) {
    return sm_mesh_real_axes(mesh, (sm_axes)((1u << mesh->axes) - 1));
}

sm_axes profile_axes_of(const profile_made *made, const sm_instruction *it) {
    const sm_module_groups *g = &it->groups;
    const sm_mesh *mesh = &made->p.mesh;
    sm_axes axes = 0;
    if (g->n == 0) return all_axes(mesh);
    for (int i = 0; i < g->n; i++)
        for (int m = 1; m < g->size; m++)
            axes =
                (sm_axes)(axes | apart(mesh, g->member[i * g->size], g->member[i * g->size + m]));
    if (is_permute(it)) return axes;
    return sm_mesh_size(mesh, axes) == g->size ? axes : 0;
}

sm_group profile_group_of(const profile_made *made, sm_axes axes, int members) {
    sm_placement whole;
    int sizes[2] = {members, made->p.module->devices / members}, order[2] = {0, 1};
    if (axes) return sm_group_join(&made->placement, axes);
    /* No set of axes: as if its members were neighbours. */
    if (sizes[1] > 0 && sm_placement_fill(made->p.system, 2, sizes, order, NULL, &whole))
        return sm_group_join(&whole, 1);
    return sm_group_join(&made->placement, all_axes(&made->p.mesh));
}

/* Between all devices, since the groups along some axes need not do alike. */
sm_curve profile_permute_curve(const profile_made *made, const sm_module_groups *pairs) {
    const sm_mesh *mesh = &made->p.mesh;
    sm_messages messages = {.pairs = pairs->n, .pair = pairs->member};
    return sm_permute_curve(made->p.system, &made->placement, mesh, all_axes(mesh), &messages);
}
