/* Arrays and einsums back to text, such that parsing the text gives the same value; and the errors
 * that name a place in a notation. */
#include "notation.h"

static void put_array(sm_sink *sink, const sm_array *array, const sm_einsum *einsum,
                      const sm_mesh *mesh) {
    if (array->dtype_given)
        sm_sink_put(sink, "%s%s", sm_dtype_name(array->dtype), array->name[0] != '\0' ? " " : "");
    sm_sink_put(sink, "%s[", array->name);
    for (int d = 0; d < array->rank; d++) {
        const sm_dim *dim = &array->dim[d];
        sm_sink_put(sink, "%s%s", d > 0 ? "," : "", einsum->index[dim->index].name);
        if (dim->n_axes > 0 && mesh != NULL) {
            sm_sink_put(sink, "_");
            sm_axes_put(sink, mesh, dim->n_axes, dim->axis);
        }
    }
    sm_sink_put(sink, "]");
    uint8_t axis[SM_MAX_AXES] = {0};
    int n = 0;
    for (int a = 0; a < SM_MAX_AXES; a++)
        if (array->unreduced >> a & 1) axis[n++] = (uint8_t)a;
    if (n == 0 || mesh == NULL) return;
    sm_sink_put(sink, " {U_");
    sm_axes_put(sink, mesh, n, axis);
    sm_sink_put(sink, "}");
}

size_t sm_array_format(const sm_array *array, const sm_einsum *einsum, const sm_mesh *mesh,
                       char *out, size_t size) {
    sm_sink sink = sm_sink_into(out, size);
    put_array(&sink, array, einsum, mesh);
    return sink.wanted;
}

size_t sm_einsum_format(const sm_einsum *einsum, const sm_mesh *mesh, char *out, size_t size) {
    sm_sink sink = sm_sink_into(out, size);
    for (int o = 0; o < einsum->operands; o++) {
        sm_sink_put(&sink, "%s", o > 0 ? " " : "");
        put_array(&sink, &einsum->in[o], einsum, mesh);
    }
    if (einsum->has_output) {
        sm_sink_put(&sink, " -> ");
        put_array(&sink, &einsum->out, einsum, mesh);
    }
    return sink.wanted;
}

sm_status sm_fail_expected(sm_error *err, const sm_cursor *c, const char *what) {
    sm_cursor at = *c;
    if (sm_cursor_end(&at))
        return sm_fail_at(err, c->source, (sm_span){at.at, 1}, "expected %s, found the end", what);
    int byte = sm_cursor_peek(&at);
    sm_span one = {at.at, 1};
    if (byte > ' ' && byte < 127)
        return sm_fail_at(err, c->source, one, "expected %s, found '%c'", what, byte);
    return sm_fail_at(err, c->source, one, "expected %s, found byte 0x%02X", what, (unsigned)byte);
}
