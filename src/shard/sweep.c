/* sweep: split --dims into fixed sizes, which the notation parser reads, and ranges, which are read
 * here. */
#include "notation.h"

#include <string.h>

/* 2^53: whole numbers are exact up to here. */
#define LARGEST INT64_C(9007199254740992)

static size_t find_in_span(const sm_source *source, sm_span span, const char *what) {
    size_t n = strlen(what);
    for (size_t i = 0; i + n <= span.length; i++)
        if (memcmp(source->text + span.offset + i, what, n) == 0) return i;
    return span.length;
}

sm_status sm_range_parse(const sm_source *source, sm_span span, sm_range *range, sm_error *err) {
    size_t dots = find_in_span(source, span, "..");
    sm_status status =
        sm_integer_parse(source, (sm_span){span.offset, dots}, 1, LARGEST, &range->first, err);
    range->last = range->first;
    range->step = 0;
    if (status || dots == span.length) return status;
    sm_span rest = {span.offset + dots + 2, span.length - dots - 2};
    size_t colon = find_in_span(source, rest, ":");
    status = sm_integer_parse(source, (sm_span){rest.offset, colon}, 1, LARGEST, &range->last, err);
    if (status) return status;
    if (range->last < range->first)
        return sm_fail_at(err, source, span,
                          "the range ends below its start; write it as SMALL..LARGE");
    if (colon == rest.length) return SM_OK;
    sm_span step = {rest.offset + colon + 1, rest.length - colon - 1};
    return sm_integer_parse(source, step, 1, LARGEST, &range->step, err);
}

int sm_range_points(const sm_range *range) {
    if (range->step) {
        int64_t more = (range->last - range->first) / range->step;
        return more >= SM_MAX_POINTS ? SM_MAX_POINTS + 1 : (int)more + 1;
    }
    int n = 1;
    for (int64_t value = range->first; value < range->last; value *= 2) n++;
    return n;
}

int64_t sm_range_value(const sm_range *range, int point) {
    if (range->step) return range->first + point * range->step;
    int64_t value = range->first;
    for (int i = 0; i < point && value < range->last; i++) value *= 2;
    return value < range->last ? value : range->last;
}

/* One item "B=1..4096" at span: read the range, and blank all of it but its first value in `fixed`.
 */
static sm_status take_item(const sm_source *source, sm_span item, char *fixed, sm_size_sweep *sweep,
                           sm_error *err) {
    size_t dots = find_in_span(source, item, "..");
    if (dots == item.length) return SM_OK;
    if (sweep->ranges == SM_MAX_RANGES)
        return sm_fail_at(err, source, item, "at most %d sizes can be ranges", SM_MAX_RANGES);
    sm_size_range *range = &sweep->range[sweep->ranges++];
    size_t equals = find_in_span(source, item, "=");
    if (equals > dots) return sm_fail_at(err, source, item, "a size is written NAME=FIRST..LAST");
    range->name = (sm_span){item.offset, equals};
    while (range->name.length && source->text[range->name.offset] == ' ') {
        range->name.offset++;
        range->name.length--;
    }
    while (range->name.length && source->text[range->name.offset + range->name.length - 1] == ' ')
        range->name.length--;
    memset(fixed + item.offset + dots, ' ', item.length - dots);
    sm_span value = {item.offset + equals + 1, item.length - equals - 1};
    return sm_range_parse(source, value, &range->values, err);
}

static sm_status take_items(const sm_source *source, char *fixed, sm_size_sweep *sweep,
                            sm_error *err) {
    size_t at = 0;
    while (at < source->length) {
        sm_span item = {at, find_in_span(source, (sm_span){at, source->length - at}, ",")};
        sm_status status = take_item(source, item, fixed, sweep, err);
        if (status) return status;
        at += item.length + 1;
    }
    return SM_OK;
}

static sm_status count_points(const sm_source *source, sm_size_sweep *sweep, sm_error *err) {
    int64_t points = 1;
    for (int i = 0; i < sweep->ranges; i++) {
        points *= sm_range_points(&sweep->range[i].values);
        if (points > SM_MAX_POINTS)
            return sm_fail_at(err, source, (sm_span){0, source->length},
                              "these ranges make more than %d points; widen the steps",
                              SM_MAX_POINTS);
    }
    sweep->points = (int)points;
    return SM_OK;
}

/* The notation parser saw the blanked text: show its errors in the text as given. */
static sm_status show_in(const sm_source *source, sm_status status, sm_error *err) {
    if (!err || err->line != 1 || err->column < 1 || (size_t)err->column > source->length + 1)
        return status;
    char sentence[sizeof err->sentence];
    memcpy(sentence, err->sentence, sizeof sentence);
    sm_span span = {(size_t)err->column - 1, (size_t)(err->span > 0 ? err->span : 1)};
    return sm_fail_at(err, source, span, "%s", sentence);
}

sm_status sm_size_sweep_parse(const sm_source *dims, sm_arena *arena, sm_einsum *einsum,
                              sm_size_sweep *sweep, sm_error *err) {
    *sweep = (sm_size_sweep){.points = 1};
    if (!dims->text) return SM_OK;
    sm_source source = *dims;
    char *fixed = sm_arena_copy(arena, source.text, source.length);
    if (!fixed) return sm_fail_memory(err);
    sm_status status = take_items(&source, fixed, sweep, err);
    if (!status) status = count_points(&source, sweep, err);
    if (status) return status;
    sm_source blanked = {source.name, fixed, source.length};
    status = sm_dims_parse(&blanked, einsum, err);
    if (status) return sweep->ranges ? show_in(&source, status, err) : status;
    for (int i = 0; i < sweep->ranges; i++) {
        sm_size_range *range = &sweep->range[i];
        range->index = sm_index_named(einsum, source.text + range->name.offset, range->name.length);
        if (range->index < 0)
            return sm_fail_at(err, &source, range->name, "no array has an index of this name");
    }
    return SM_OK;
}

void sm_size_sweep_point(const sm_size_sweep *sweep, int point, sm_einsum *einsum) {
    for (int i = sweep->ranges - 1; i >= 0; i--) {
        const sm_size_range *range = &sweep->range[i];
        int n = sm_range_points(&range->values);
        sm_index_set_size(einsum, range->index, (double)sm_range_value(&range->values, point % n));
        point /= n;
    }
}
