/* A mesh of ranks: coordinates, and the groups along sets of axes. */
#include "memory_account.h"

#include <string.h>

void coordinates_of(const sm_mesh *mesh, sm_axes axes, int number, int *at) {
    for (int a = mesh->axes - 1; a >= 0; a--) {
        if (!(axes >> a & 1u)) continue;
        at[a] = number % mesh->axis[a].size;
        number /= mesh->axis[a].size;
    }
}

int number_of(const sm_mesh *mesh, sm_axes axes, const int *at) {
    int number = 0;
    for (int a = 0; a < mesh->axes; a++)
        if (axes >> a & 1u) number = number * mesh->axis[a].size + at[a];
    return number;
}

sm_status sm_rank_mesh_new(sm_communicator *world, const sm_mesh *mesh, sm_rank_mesh **out,
                           sm_error *err) {
    sm_axes all = (sm_axes)((1u << mesh->axes) - 1);
    double ranks = sm_mesh_size(mesh, all);
    if (ranks != world->size)
        return sm_fail(err, SM_BAD_INPUT, "the mesh has %.0f ranks and %d were started", ranks,
                       world->size);
    sm_rank_mesh *m = sm_calloc(1, sizeof *m);
    if (!m) return sm_fail_memory(err);
    m->mesh = *mesh;
    m->world = world;
    coordinates_of(mesh, all, world->rank, m->at);
    *out = m;
    return SM_OK;
}

void sm_rank_mesh_free(sm_rank_mesh *m) {
    if (!m) return;
    sm_rank_mesh_free(m->split);
    for (size_t i = 0; i < sizeof m->over / sizeof *m->over; i++) sm_communicator_free(m->over[i]);
    sm_free(m);
}

static bool same_sizes(const sm_mesh *a, const sm_mesh *b) {
    bool same = a->axes == b->axes;
    for (int i = 0; same && i < a->axes; i++) same = a->axis[i].size == b->axis[i].size;
    return same;
}

sm_rank_mesh *rank_mesh_like(sm_rank_mesh *m, const sm_mesh *mesh, sm_error *err) {
    while (!same_sizes(&m->mesh, mesh)) {
        if (!m->split && sm_rank_mesh_new(m->world, mesh, &m->split, err)) return NULL;
        m = m->split;
    }
    return m;
}

void member_of(const sm_rank_mesh *m, sm_axes axes, int number, int *at) {
    memcpy(at, m->at, sizeof m->at);
    coordinates_of(&m->mesh, sm_mesh_real_axes(&m->mesh, axes), number, at);
}

/* Axes of one rank make no group of their own. */
sm_communicator *sm_rank_mesh_over(sm_rank_mesh *m, sm_axes axes, sm_error *err) {
    axes = sm_mesh_real_axes(&m->mesh, axes);
    if (m->over[axes]) return m->over[axes];
    sm_axes others = (sm_axes)(((1u << m->mesh.axes) - 1) & ~(unsigned)axes);
    int colour = number_of(&m->mesh, others, m->at), key = number_of(&m->mesh, axes, m->at);
    sm_status status = m->world->backend->split(m->world, colour, key, &m->over[axes], err);
    return status ? NULL : m->over[axes];
}
