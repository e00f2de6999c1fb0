/* The axes that shard one dimension, after an underscore: "XY", or "{fsdp,tensor}" for long names.
 */
#include "notation.h"

/* The axis whose name is the longest prefix of text; -1 when none is. */
static int longest_prefix(const sm_mesh *mesh, const char *text, size_t length) {
    int best = -1;
    size_t longest = 0;
    for (int a = 0; a < mesh->axes; a++) {
        size_t n = strlen(mesh->axis[a].name);
        if (n > longest && n <= length && memcmp(mesh->axis[a].name, text, n) == 0) {
            best = a;
            longest = n;
        }
    }
    return best;
}

static sm_status unknown_axis(const sm_cursor *c, const sm_mesh *mesh, sm_span span,
                              sm_error *err) {
    const char *text = c->source->text + span.offset;
    int shown = (int)(span.length < 40 ? span.length : 40);
    if (mesh == NULL || mesh->axes == 0)
        return sm_fail_at(err, c->source, span, "axis %.*s: there is no mesh, give one such as X=4",
                          shown, text);
    const char *names[SM_MAX_AXES];
    for (int a = 0; a < mesh->axes; a++) names[a] = mesh->axis[a].name;
    const char *near = sm_nearest(text, span.length, names, (size_t)mesh->axes);
    char known[SM_MAX_AXES * 16];
    sm_mesh_format(mesh, known, sizeof known);
    return sm_fail_at(err, c->source, span, "no axis %.*s in the mesh %s%s%s", shown, text, known,
                      near != NULL ? ", nearest is " : "", near != NULL ? near : "");
}

static sm_status append_axis(const sm_cursor *c, const sm_mesh *mesh, sm_span span, int found,
                             int *n_axes, uint8_t *axis, sm_error *err) {
    if (*n_axes == SM_MAX_AXES)
        return sm_fail_at(err, c->source, span, "axis %s is used twice in one dimension",
                          mesh->axis[found].name);
    axis[(*n_axes)++] = (uint8_t)found;
    return SM_OK;
}

static sm_status plain_axes(sm_cursor *c, const sm_mesh *mesh, int *n_axes, uint8_t *axis,
                            sm_error *err) {
    sm_cursor_blanks(c);
    sm_span run = sm_cursor_name(c);
    if (run.length == 0) return sm_fail_expected(err, c, "the name of a mesh axis after '_'");
    while (run.length > 0) {
        const char *text = c->source->text + run.offset;
        int found = mesh != NULL ? longest_prefix(mesh, text, run.length) : -1;
        if (found < 0) return unknown_axis(c, mesh, run, err);
        sm_span one = {run.offset, strlen(mesh->axis[found].name)};
        sm_status status = append_axis(c, mesh, one, found, n_axes, axis, err);
        if (status != SM_OK) return status;
        run.offset += one.length;
        run.length -= one.length;
    }
    return SM_OK;
}

static sm_status braced_axis(sm_cursor *c, const sm_mesh *mesh, int *n_axes, uint8_t *axis,
                             sm_error *err) {
    sm_cursor_blanks(c);
    sm_cursor start = *c;
    sm_span name = sm_cursor_name(c);
    if (name.length == 0) return sm_fail_expected(err, c, "the name of a mesh axis");
    int found = mesh != NULL ? sm_mesh_find(mesh, c->source->text + name.offset, name.length) : -1;
    if (found >= 0) return append_axis(c, mesh, name, found, n_axes, axis, err);
    *c = start; /* "{XY}", as LaTeX writes two letters */
    return plain_axes(c, mesh, n_axes, axis, err);
}

sm_status sm_axes_parse(sm_cursor *c, const sm_mesh *mesh, int *n_axes, uint8_t *axis,
                        sm_error *err) {
    if (!sm_cursor_accept(c, '{')) return plain_axes(c, mesh, n_axes, axis, err);
    do {
        sm_status status = braced_axis(c, mesh, n_axes, axis, err);
        if (status != SM_OK) return status;
    } while (sm_cursor_accept(c, ','));
    return sm_cursor_accept(c, '}') ? SM_OK : sm_fail_expected(err, c, "',' or '}' after an axis");
}

bool sm_axes_are_letters(const sm_mesh *mesh, int n_axes, const uint8_t *axis) {
    for (int i = 0; i < n_axes; i++)
        if (strlen(mesh->axis[axis[i]].name) != 1) return false;
    return true;
}

/* Would the names, written without separators, be split into the same list again? */
static bool reads_back(const sm_mesh *mesh, int n_axes, const uint8_t *axis) {
    char run[SM_MAX_AXES * 12];
    sm_sink sink = sm_sink_into(run, sizeof run);
    for (int i = 0; i < n_axes; i++) sm_sink_put(&sink, "%s", mesh->axis[axis[i]].name);
    const char *rest = run;
    for (int i = 0; i < n_axes; i++) {
        if (longest_prefix(mesh, rest, strlen(rest)) != axis[i]) return false;
        rest += strlen(mesh->axis[axis[i]].name);
    }
    return true;
}

void sm_axes_put(sm_sink *sink, const sm_mesh *mesh, int n_axes, const uint8_t *axis) {
    bool plain =
        n_axes == 1 || (sm_axes_are_letters(mesh, n_axes, axis) && reads_back(mesh, n_axes, axis));
    if (!plain) sm_sink_put(sink, "{");
    for (int i = 0; i < n_axes; i++)
        sm_sink_put(sink, "%s%s", i > 0 && !plain ? "," : "", mesh->axis[axis[i]].name);
    if (!plain) sm_sink_put(sink, "}");
}
