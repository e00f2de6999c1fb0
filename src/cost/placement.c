/* Which factors of which levels each mesh axis takes. */
#include "group_links.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* How much of each level is taken so far, which is the stride of its next part, and what is left.
 */
typedef struct taken {
    const sm_system *system;
    int stride[SM_MAX_LEVELS], left[SM_MAX_LEVELS];
} taken;

static taken nothing_taken(const sm_system *system) {
    taken t = {.system = system};
    for (int l = 0; l < system->levels; l++) t.stride[l] = 1, t.left[l] = system->level[l].size;
    return t;
}

/* Give the group `size` more members on a level. */
static bool take(taken *t, int level, int size, sm_group *group) {
    assert(size >= 1 && t->left[level] % size == 0);
    if (size == 1) return true;
    if (group->parts == SM_MAX_PARTS) return false;
    group->part[group->parts++] = (sm_part){(uint8_t)level, size, t->stride[level]};
    group->size *= size;
    t->stride[level] *= size;
    t->left[level] /= size;
    return true;
}

/* Take from a level what divides both what is left of it and what the axis still needs. */
static bool take_factor(taken *t, int level, int size, sm_group *group) {
    if (t->left[level] == 1 || size == group->size) return true;
    return take(t, level, sm_common_factor(size / group->size, t->left[level]), group);
}

static void start(const sm_system *system, int axes, sm_placement *placement) {
    memset(placement, 0, sizeof *placement);
    placement->axes = axes;
    placement->used = 1;
    placement->idle = system->chips;
    for (int a = 0; a < axes; a++) placement->axis[a].size = 1;
}

/* An untouched torus dimension of exactly this size, the first in level_order. */
static void take_whole_dimension(taken *t, const int *level_order, int size, sm_group *group) {
    for (int i = 0; i < t->system->levels; i++) {
        int l = level_order ? level_order[i] : i;
        const sm_level *level = &t->system->level[l];
        if (level->kind == SM_LEVEL_TORUS && t->stride[l] == 1 && level->size == size) {
            take(t, l, size, group);
            return;
        }
    }
}

/* No group that joins axes has more parts than fit. */
static bool finish(const sm_system *system, const int *sizes, sm_placement *placement) {
    double used = 1.0;
    int parts = 0;
    for (int a = 0; a < placement->axes; a++) {
        if (placement->axis[a].size != sizes[a]) return false;
        used *= sizes[a];
        if (placement->axis[a].parts > 1) sm_group_normalise(&placement->axis[a]);
        parts += placement->axis[a].parts;
    }
    if (parts > SM_MAX_PARTS) return false;
    placement->used = (int)used;
    placement->idle = placement->used > 0 ? system->chips / placement->used : 0;
    return true;
}

/* Every level once. */
static bool is_order_of_levels(const sm_system *system, const int *level_order) {
    unsigned seen = 0;
    for (int i = 0; level_order && i < system->levels; i++) {
        int l = level_order[i];
        if (l < 0 || l >= system->levels || seen >> l & 1u) return false;
        seen |= 1u << l;
    }
    return true;
}

bool sm_placement_fill(const sm_system *system, int axes, const int *sizes, const int *order,
                       const int *level_order, sm_placement *placement) {
    if (axes < 0 || axes > SM_MAX_AXES || !is_order_of_levels(system, level_order)) return false;
    taken t = nothing_taken(system);
    start(system, axes, placement);
    for (int i = 0; i < axes; i++) {
        int a = order ? order[i] : i;
        if (sizes[a] < 1) return false;
        if (sizes[a] > 1) take_whole_dimension(&t, level_order, sizes[a], &placement->axis[a]);
    }
    for (int i = 0; i < axes; i++) {
        int a = order ? order[i] : i;
        sm_group *group = &placement->axis[a];
        for (int j = 0; j < system->levels && group->size < sizes[a]; j++)
            if (!take_factor(&t, level_order ? level_order[j] : j, sizes[a], group)) return false;
    }
    return finish(system, sizes, placement);
}

/* ---- the rule for a --mesh ---- */

/* The levels that the numbers of the SHAPE stand for, as they are written: a number may join
 * several switch levels. */
typedef struct written_shape {
    int numbers;
    int first[SM_MAX_LEVELS], count[SM_MAX_LEVELS];
} written_shape;

static void write_number(written_shape *shape, int first, int count) {
    shape->first[shape->numbers] = first;
    shape->count[shape->numbers++] = count;
}

/* The numbers of "CHIP:128x8" or "CHIP:16x16x4slices". */
static int shape_numbers(const char *text, int *number) {
    const char *at = strrchr(text, ':');
    int n = 0;
    while (at && n < SM_MAX_LEVELS && (*at == ':' || *at == 'x')) {
        char *end;
        long value = strtol(at + 1, &end, 10);
        if (end == at + 1 || value < 1 || value > INT32_MAX) return 0;
        number[n++] = (int)value;
        at = end;
    }
    return n;
}

/* The levels that each number stands for: on a torus in the order written, on switches from the
 * last number, the innermost, out, where a number takes levels until their product reaches it. A
 * number 1 has no level. False when the text of the system does not tell. */
static bool join_levels(const sm_system *system, written_shape *shape) {
    int number[SM_MAX_LEVELS], n = shape_numbers(system->text, number), level = 0;
    bool torus = system->torus_dims > 0;
    shape->numbers = 0;
    for (int i = 0; i < n; i++) {
        int wanted = number[torus ? i : n - 1 - i], first = level;
        double product = 1.0;
        while (level < system->levels && product < wanted) product *= system->level[level++].size;
        if (product != wanted) return false;
        write_number(shape, first, level - first);
    }
    return n > 0 && level == system->levels;
}

static written_shape shape_of(const sm_system *system) {
    written_shape shape = {0};
    if (!join_levels(system, &shape)) {
        shape.numbers = 0;
        for (int l = 0; l < system->levels; l++) write_number(&shape, l, 1);
    }
    assert(shape.numbers <= SM_MAX_LEVELS);
    for (int i = 0, j = shape.numbers - 1; system->torus_dims == 0 && i < j; i++, j--) {
        int first = shape.first[i], count = shape.count[i];
        shape.first[i] = shape.first[j];
        shape.count[i] = shape.count[j];
        shape.first[j] = first;
        shape.count[j] = count;
    }
    return shape;
}

typedef struct mesh_job {
    const sm_system *system;
    const sm_mesh *mesh;
    const sm_source *source;
    taken taken;
    sm_placement *placement;
    sm_error *err;
} mesh_job;

static sm_status fail_axis(const mesh_job *m, int axis, const char *sentence) {
    if (m->source) return sm_fail_at(m->err, m->source, m->mesh->axis[axis].span, "%s", sentence);
    return sm_fail(m->err, SM_BAD_INPUT, "%s", sentence);
}

static sm_status take_named_levels(mesh_job *m, const written_shape *shape, int a) {
    char sentence[200];
    sm_group *group = &m->placement->axis[a];
    int size = m->mesh->axis[a].size;
    for (int i = 0; i < m->mesh->axis[a].placed; i++) {
        int number = m->mesh->axis[a].level[i];
        if (number < 0 || number >= shape->numbers) {
            snprintf(sentence, sizeof sentence, "%s has no level %d: its shape has levels 0 to %d",
                     m->system->text, number, shape->numbers - 1);
            return fail_axis(m, a, sentence);
        }
        for (int l = 0; l < shape->count[number]; l++)
            if (!take_factor(&m->taken, shape->first[number] + l, size, group))
                return fail_axis(m, a, "too many levels for one axis");
    }
    if (group->size == size) return SM_OK;
    snprintf(sentence, sizeof sentence,
             "axis %s=%d does not divide what is left of the levels named after @",
             m->mesh->axis[a].name, size);
    return fail_axis(m, a, sentence);
}

/* A mesh larger than a slice spans slices by its first axes. */
static bool take_slices(mesh_job *m) {
    const sm_system *system = m->system;
    double in_slice = 1.0;
    for (int l = 0; l < system->torus_dims; l++) in_slice *= system->level[l].size;
    double product = sm_mesh_size(m->mesh, (sm_axes)((1u << m->mesh->axes) - 1u));
    int spans = product > in_slice ? (int)(product / in_slice) : 1;
    for (int l = system->levels - 1; l >= system->torus_dims; l--)
        for (int a = 0; a < m->mesh->axes && spans > 1; a++) {
            sm_group *group = &m->placement->axis[a];
            int need = sm_common_factor(m->mesh->axis[a].size / group->size, spans);
            int factor = sm_common_factor(need, m->taken.left[l]);
            if (m->mesh->axis[a].placed == 0) {
                if (!take(&m->taken, l, factor, group)) return false;
                spans /= factor;
            }
        }
    return true;
}

static bool take_automatically(mesh_job *m) {
    if (m->system->torus_dims > 0 && m->system->levels > m->system->torus_dims && !take_slices(m))
        return false;
    for (int a = 0; a < m->mesh->axes; a++) {
        sm_group *group = &m->placement->axis[a];
        if (group->size == 1 && m->mesh->axis[a].size > 1)
            take_whole_dimension(&m->taken, NULL, m->mesh->axis[a].size, group);
    }
    int dims = m->system->torus_dims;
    for (int a = m->mesh->axes - 1; a >= 0; a--) {
        sm_group *group = &m->placement->axis[a];
        for (int l = dims - 1; l >= 0; l--)
            if (!take_factor(&m->taken, l, m->mesh->axis[a].size, group)) return false;
        for (int l = dims; l < m->system->levels; l++)
            if (!take_factor(&m->taken, l, m->mesh->axis[a].size, group)) return false;
    }
    return true;
}

static sm_status check_size(const mesh_job *m) {
    double product = sm_mesh_size(m->mesh, (sm_axes)((1u << m->mesh->axes) - 1u));
    char sentence[200];
    if (product <= m->system->chips) return SM_OK;
    snprintf(sentence, sizeof sentence, "the mesh has %.0f chips but %s has only %d", product,
             m->system->text, m->system->chips);
    return fail_axis(m, m->mesh->axes - 1, sentence);
}

sm_status sm_placement_of_mesh(const sm_system *system, const sm_mesh *mesh,
                               const sm_source *source, sm_placement *placement, sm_error *err) {
    mesh_job m = {system, mesh, source, nothing_taken(system), placement, err};
    int sizes[SM_MAX_AXES] = {0};
    start(system, mesh->axes, placement);
    sm_status status = check_size(&m);
    const written_shape shape = shape_of(system);
    for (int a = mesh->axes - 1; status == SM_OK && a >= 0; a--)
        if (mesh->axis[a].placed > 0) status = take_named_levels(&m, &shape, a);
    if (status != SM_OK) return status;
    for (int a = 0; a < mesh->axes; a++) sizes[a] = mesh->axis[a].size;
    if (!take_automatically(&m) || !finish(system, sizes, placement)) {
        char sentence[200];
        for (int a = 0; a < m.mesh->axes; a++)
            if (m.placement->axis[a].size != m.mesh->axis[a].size) {
                snprintf(sentence, sizeof sentence, "axis %s=%d does not divide what is left of %s",
                         m.mesh->axis[a].name, m.mesh->axis[a].size, m.system->text);
                return fail_axis(&m, a, sentence);
            }
        return sm_fail(m.err, SM_BAD_INPUT, "the mesh needs too many parts of %s", m.system->text);
    }
    return SM_OK;
}

sm_group sm_group_join(const sm_placement *placement, sm_axes axes) {
    sm_group joined = {.size = 1};
    for (int a = 0; a < placement->axes; a++) {
        if (!((unsigned)axes >> a & 1u)) continue;
        joined.size *= placement->axis[a].size;
        assert(joined.parts + placement->axis[a].parts <= SM_MAX_PARTS);
        for (int p = 0; p < placement->axis[a].parts; p++)
            joined.part[joined.parts++] = placement->axis[a].part[p];
    }
    sm_group_normalise(&joined);
    return joined;
}
