/* collective_sizes: what a collective moves: an array with sizes, or bytes, of which both may
 * range.
 */
#include "scalemodel/answer_words.h"
#include <ctype.h>
#include <string.h>

/* "64MB", or "1kB..1GB": bytes that double from the first size to the last. */
static sm_status read_bytes(sm_collective_sizes *s, sm_error *err) {
    const sm_source *source = &s->text;
    const char *dots = strstr(source->text, "..");
    size_t first = dots ? (size_t)(dots - source->text) : source->length;
    double high = 0.0;
    s->points = 1;
    sm_status status = sm_quantity_parse(source, (sm_span){0, first}, SM_Q_BYTES, &s->bytes, err);
    if (status || !dots) return status;
    status = sm_quantity_parse(source, (sm_span){first + 2, source->length - first - 2}, SM_Q_BYTES,
                               &high, err);
    if (status) return status;
    if (s->bytes < 1.0 || high < s->bytes || high > 9e15)
        return sm_fail_at(err, source, (sm_span){0, source->length},
                          "a range of bytes is written SMALL..LARGE, from 1B");
    s->range = (sm_range){.first = (int64_t)s->bytes, .last = (int64_t)high, .step = 0};
    s->points = sm_range_points(&s->range);
    return SM_OK;
}

sm_status sm_collective_sizes_read(const sm_source *text, const sm_source *dims,
                                   const sm_mesh *mesh, sm_arena *arena, sm_collective_sizes *s,
                                   sm_error *err) {
    *s = (sm_collective_sizes){.text = *text};
    s->has_array = strchr(text->text, '[') || !isdigit((unsigned char)text->text[0]);
    if (!s->has_array && dims->text)
        return sm_fail(err, SM_USAGE, "%s needs an array, and here its bytes are given directly",
                       dims->name);
    if (!s->has_array) return read_bytes(s, err);
    sm_status status = sm_array_parse(text, mesh, &s->holder, err);
    if (!status) status = sm_size_sweep_parse(dims, arena, &s->holder, &s->sweep, err);
    s->points = s->sweep.points;
    return status;
}

sm_status sm_collective_sizes_at(sm_collective_sizes *s, int point, const sm_mesh *mesh,
                                 sm_error *err) {
    if (!s->has_array) {
        if (s->range.last > 0) s->bytes = (double)sm_range_value(&s->range, point);
        return SM_OK;
    }
    sm_size_sweep_point(&s->sweep, point, &s->holder);
    return sm_einsum_check(&s->holder, mesh, &s->text, err);
}

double sm_collective_array_bytes(sm_collective op, const sm_einsum *holder, const sm_mesh *mesh,
                                 const sm_group *group) {
    bool times = op == SM_ALL_GATHER || op == SM_ALL_TO_ALL;
    return sm_array_local_bytes(&holder->in[0], holder, mesh) * (times ? group->size : 1);
}
