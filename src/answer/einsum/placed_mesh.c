/* placed_mesh: a mesh laid on a system, the axes that a list names, and both in words. */
#include "scalemodel/answer_words.h"

#include <string.h>

sm_status sm_placed_mesh_read(const sm_system *system, const sm_source *mesh, sm_placed_mesh *m,
                              sm_error *err) {
    m->system = *system;
    sm_status status = sm_mesh_parse(mesh, &m->mesh, err);
    return status ? status : sm_placement_of_mesh(system, &m->mesh, mesh, &m->placement, err);
}

sm_lowering_input sm_placed_product(const sm_placed_mesh *m, const sm_einsum *einsum,
                                    const sm_calibration *calibration, sm_dtype compute) {
    return (sm_lowering_input){.system = &m->system,
                               .mesh = &m->mesh,
                               .placement = &m->placement,
                               .einsum = einsum,
                               .calibration = calibration,
                               .compute = compute,
                               .work = SM_LOCAL_PRODUCT};
}

/* ---- axes by name ---- */

static sm_status add_axis(const sm_mesh *mesh, const sm_source *source, sm_span span, sm_axes *axes,
                          sm_error *err) {
    int axis = sm_mesh_find(mesh, source->text + span.offset, span.length);
    if (axis < 0) {
        const char *names[SM_MAX_AXES] = {NULL};
        for (int i = 0; i < mesh->axes; i++) names[i] = mesh->axis[i].name;
        const char *near =
            sm_nearest(source->text + span.offset, span.length, names, (size_t)mesh->axes);
        char all[128];
        sm_mesh_format(mesh, all, sizeof all);
        if (near)
            return sm_fail_at(err, source, span, "the mesh %s has no axis '%.*s'; did you mean %s?",
                              all, (int)span.length, source->text + span.offset, near);
        return sm_fail_at(err, source, span, "the mesh %s has no axis '%.*s'", all,
                          (int)span.length, source->text + span.offset);
    }
    if (*axes & (1u << axis)) return sm_fail_at(err, source, span, "this axis is named twice");
    *axes = (sm_axes)(*axes | (1u << axis));
    return SM_OK;
}

/* One name between commas: an axis, or letters that each name one. */
static sm_status add_axes(const sm_mesh *mesh, const sm_source *source, sm_span span, sm_axes *axes,
                          sm_error *err) {
    if (span.length == 0)
        return sm_fail_at(err, source, (sm_span){span.offset, 1},
                          "expected the name of a mesh axis");
    if (sm_mesh_find(mesh, source->text + span.offset, span.length) >= 0)
        return add_axis(mesh, source, span, axes, err);
    bool letters = sm_mesh_find(mesh, source->text + span.offset, 1) >= 0;
    if (!letters) return add_axis(mesh, source, span, axes, err);
    sm_status status = SM_OK;
    for (size_t i = 0; i < span.length && !status; i++)
        status = add_axis(mesh, source, (sm_span){span.offset + i, 1}, axes, err);
    return status;
}

sm_status sm_over_parse(const sm_mesh *mesh, const sm_source *over, sm_axes *axes, sm_error *err) {
    *axes = 0;
    sm_status status = SM_OK;
    for (size_t at = 0; at <= over->length && !status;) {
        size_t length = strcspn(over->text + at, ",");
        status = add_axes(mesh, over, (sm_span){at, length}, axes, err);
        at += length + 1;
    }
    return status;
}

/* ---- in words ---- */

const char *sm_axes_words(sm_report *r, const sm_mesh *mesh, sm_axes axes) {
    char text[128];
    sm_axes_format(mesh, axes, text, sizeof text);
    return sm_textf(r, "%s", text);
}

const char *sm_array_notation(sm_report *r, const sm_array *array, const sm_einsum *einsum,
                              const sm_mesh *mesh) {
    char text[512];
    sm_array_format(array, einsum, mesh, text, sizeof text);
    return sm_textf(r, "%s", text);
}

static const char *part_words(sm_report *r, const sm_system *system, const sm_part *part) {
    const sm_level *level = &system->level[part->level];
    const char *stride = part->stride > 1 ? sm_textf(r, ", every %d", part->stride) : "";
    if (level->kind == SM_LEVEL_SWITCH)
        return sm_textf(r, "%s %d%s", level->name, part->size, stride);
    bool ring = level->wrap && part->size == level->size;
    return sm_textf(r, "%s%d %d (%s%s)", level->name, part->level, part->size,
                    ring ? "ring" : "line", stride);
}

const char *sm_group_words(sm_report *r, const sm_system *system, const sm_group *group) {
    if (group->parts == 0) return "one chip";
    const char *text = part_words(r, system, &group->part[0]);
    for (int i = 1; i < group->parts; i++)
        text = sm_textf(r, "%s x %s", text, part_words(r, system, &group->part[i]));
    return text;
}

void sm_placed_mesh_page(sm_report *r, const sm_placed_mesh *m) {
    const char *text = "";
    for (int i = 0; i < m->mesh.axes; i++)
        text = sm_textf(r, "%s%s%s=%d on %s", text, i ? "; " : "", m->mesh.axis[i].name,
                        m->mesh.axis[i].size, sm_group_words(r, &m->system, &m->placement.axis[i]));
    sm_report_text(r, "Mesh: %s.", text);
    if (m->placement.idle > 1)
        sm_report_text(r, "The mesh uses %d of the %d chips of %s.", m->placement.used,
                       m->system.chips, m->system.text);
}

void sm_system_fields(sm_report *r, sm_data *parent, const sm_system *system) {
    sm_data *object = sm_put_object(r, parent, "system");
    sm_put(r, object, "name|chip|chips", system->text, system->chip.name, system->chips);
    sm_data *shape = sm_put_array(r, object, "shape");
    for (int i = 0; i < system->levels; i++) sm_put(r, shape, NULL, system->level[i].size);
    sm_data *levels = sm_put_array(r, object, "levels");
    for (int i = 0; i < system->levels; i++) sm_put(r, levels, NULL, system->level[i].name);
}

void sm_group_fields(sm_report *r, sm_data *object, const sm_group *group) {
    sm_data *parts = sm_put_array(r, object, "parts");
    for (int i = 0; i < group->parts; i++)
        sm_put(r, sm_put_object(r, parts, NULL), "level|size|stride", group->part[i].level,
               group->part[i].size, group->part[i].stride);
}

void sm_placed_mesh_fields(sm_report *r, const sm_placed_mesh *m) {
    sm_system_fields(r, r->data, &m->system);
    sm_data *mesh = sm_put_array(r, r->data, "mesh");
    for (int i = 0; i < m->mesh.axes; i++) {
        sm_data *axis = sm_put_object(r, mesh, NULL);
        sm_put(r, axis, "axis|size|on", m->mesh.axis[i].name, m->mesh.axis[i].size,
               sm_group_words(r, &m->system, &m->placement.axis[i]));
        sm_group_fields(r, axis, &m->placement.axis[i]);
    }
    sm_put(r, r->data, "chips_used", m->placement.used);
}
