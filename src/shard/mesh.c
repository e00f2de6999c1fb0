/* Meshes: named axes with sizes, in the form X=4,Y=8@0.1, and sets of axes. */
#include "notation.h"

enum { LARGEST_AXIS = 1 << 24, LARGEST_LEVEL = 63, MAX_LEVELS = 4 };
static const double LARGEST_MESH = 2147483648.0;

/* ---- parsing ---- */

static sm_status axis_name(sm_cursor *c, const sm_mesh *mesh, sm_span *name, sm_error *err) {
    sm_cursor_blanks(c);
    *name = sm_cursor_name(c);
    if (name->length == 0)
        return sm_fail_expected(err, c, "the name of a mesh axis, as in X=4,Y=8");
    if (name->length >= sizeof mesh->axis[0].name)
        return sm_fail_at(err, c->source, *name, "the name of a mesh axis has at most %zu letters",
                          sizeof mesh->axis[0].name - 1);
    const char *text = c->source->text + name->offset;
    if (sm_mesh_find(mesh, text, name->length) >= 0)
        return sm_fail_at(err, c->source, *name, "axis %.*s stands twice in the mesh",
                          (int)name->length, text);
    return SM_OK;
}

static sm_status whole_number(sm_cursor *c, int lowest, int highest, const char *what, int *value,
                              sm_error *err) {
    sm_cursor_blanks(c);
    sm_span digits = sm_cursor_digits(c);
    if (digits.length == 0) return sm_fail_expected(err, c, what);
    int64_t wide = 0;
    sm_status status = sm_integer_parse(c->source, digits, lowest, highest, &wide, err);
    *value = (int)wide;
    return status;
}

static sm_status axis_levels(sm_cursor *c, sm_mesh *mesh, int axis, sm_error *err) {
    if (!sm_cursor_accept(c, '@')) return SM_OK;
    int n = 0;
    do {
        if (n == MAX_LEVELS) return sm_fail_expected(err, c, "at most 4 levels for one axis");
        sm_status status = whole_number(c, 0, LARGEST_LEVEL, "the number of a level after @",
                                        &mesh->axis[axis].level[n], err);
        if (status != SM_OK) return status;
        n++;
    } while (sm_cursor_accept(c, '.'));
    mesh->axis[axis].placed = n;
    return SM_OK;
}

static sm_status one_axis(sm_cursor *c, sm_mesh *mesh, sm_error *err) {
    sm_span name;
    sm_status status = axis_name(c, mesh, &name, err);
    if (status != SM_OK) return status;
    if (mesh->axes == SM_MAX_AXES)
        return sm_fail_at(err, c->source, name, "a mesh has at most %d axes", SM_MAX_AXES);
    if (!sm_cursor_accept(c, '='))
        return sm_fail_expected(err, c, "'=' and the size of the axis, as in X=4");
    int at = mesh->axes++;
    memcpy(mesh->axis[at].name, c->source->text + name.offset, name.length);
    mesh->axis[at].span = name;
    status = whole_number(c, 1, LARGEST_AXIS, "the size of the axis", &mesh->axis[at].size, err);
    if (status == SM_OK) status = axis_levels(c, mesh, at, err);
    if (status == SM_OK && sm_mesh_size(mesh, (sm_axes)((1u << mesh->axes) - 1)) > LARGEST_MESH)
        status = sm_fail_at(err, c->source, name, "the mesh has more than 2^31 chips");
    return status;
}

sm_status sm_mesh_parse(const sm_source *source, sm_mesh *mesh, sm_error *err) {
    memset(mesh, 0, sizeof *mesh);
    sm_cursor c = {source, 0};
    do {
        sm_status status = one_axis(&c, mesh, err);
        if (status != SM_OK) return status;
    } while (sm_cursor_accept(&c, ','));
    return sm_cursor_end(&c) ? SM_OK : sm_fail_expected(err, &c, "',' or the end of the mesh");
}

/* ---- looking up and printing ---- */

size_t sm_mesh_format(const sm_mesh *mesh, char *out, size_t size) {
    sm_sink sink = sm_sink_into(out, size);
    for (int a = 0; a < mesh->axes; a++) {
        sm_sink_put(&sink, "%s%s=%d", a > 0 ? "," : "", mesh->axis[a].name, mesh->axis[a].size);
        for (int l = 0; l < mesh->axis[a].placed; l++)
            sm_sink_put(&sink, "%c%d", l > 0 ? '.' : '@', mesh->axis[a].level[l]);
    }
    return sink.wanted;
}

int sm_mesh_find(const sm_mesh *mesh, const char *name, size_t length) {
    for (int a = 0; a < mesh->axes; a++)
        if (strlen(mesh->axis[a].name) == length && memcmp(mesh->axis[a].name, name, length) == 0)
            return a;
    return -1;
}

sm_axes sm_mesh_real_axes(const sm_mesh *mesh, sm_axes axes) {
    sm_axes real = 0;
    for (int a = 0; a < mesh->axes; a++)
        if ((axes >> a & 1u) && mesh->axis[a].size > 1) real = (sm_axes)(real | 1u << a);
    return real;
}

double sm_mesh_size(const sm_mesh *mesh, sm_axes axes) {
    double product = 1;
    for (int a = 0; a < mesh->axes; a++)
        if (axes >> a & 1) product *= mesh->axis[a].size;
    return product;
}

size_t sm_axes_format(const sm_mesh *mesh, sm_axes axes, char *out, size_t size) {
    uint8_t list[SM_MAX_AXES] = {0};
    int n = 0;
    for (int a = 0; a < mesh->axes; a++)
        if (axes >> a & 1) list[n++] = (uint8_t)a;
    const char *between = sm_axes_are_letters(mesh, n, list) ? "" : ",";
    sm_sink sink = sm_sink_into(out, size);
    for (int i = 0; i < n; i++)
        sm_sink_put(&sink, "%s%s", i > 0 ? between : "", mesh->axis[list[i]].name);
    return sink.wanted;
}

/* ---- axes between strides ---- */

void sm_mesh_cut(sm_mesh_cuts *c, int64_t at) {
    int i = c->n;
    while (i > 0 && c->at[i - 1] > at) i--;
    if (i > 0 && c->at[i - 1] == at) return;
    if (c->n == SM_MESH_MOST_CUTS) {
        c->crossed = true;
        return;
    }
    memmove(&c->at[i + 1], &c->at[i], (size_t)(c->n - i) * sizeof *c->at);
    c->at[i] = at;
    c->n++;
}

void sm_mesh_of_cuts(sm_mesh_cuts *c, int64_t devices, sm_mesh *mesh) {
    static const char letters[SM_MAX_AXES + 1] = "XYZWVUTS";
    sm_mesh_cuts all = *c;
    sm_mesh_cut(&all, devices);
    *c = (sm_mesh_cuts){.n = 1, .crossed = all.crossed, .at = {1}};
    for (int i = 0; i < all.n; i++) {
        int64_t at = all.at[i], last = c->at[c->n - 1];
        if (at == last) continue;
        if (at % last || devices % at || (c->n == SM_MAX_AXES && at != devices)) c->crossed = true;
        else c->at[c->n++] = at;
    }
    *mesh = (sm_mesh){.axes = c->n - 1};
    for (int i = 1; i < c->n; i++) {
        int axis = mesh->axes - i;
        mesh->axis[axis].name[0] = letters[axis];
        mesh->axis[axis].size = (int)(c->at[i] / c->at[i - 1]);
    }
}
