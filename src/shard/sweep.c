/* sweep: split --dims into fixed sizes, which the notation parser reads, and ranges, which are read
 * here. */
#include "notation.h"

#include <limits.h>
#include <math.h>

/* 2^53: whole numbers are exact up to here. */
#define LARGEST INT64_C(9007199254740992)

static size_t find_in_span(const sm_source *source, sm_span span, const char *what) {
    size_t n = strlen(what);
    for (size_t i = 0; i + n <= span.length; i++)
        if (memcmp(source->text + span.offset + i, what, n) == 0) return i;
    return span.length;
}

static sm_status read_number(const sm_source *source, sm_span span, sm_range_form form,
                             double *number, sm_error *err) {
    int64_t whole = 0;
    if (form != SM_RANGE_WHOLE)
        return sm_quantity_parse(source, span, form == SM_RANGE_BYTES ? SM_Q_BYTES : SM_Q_COUNT,
                                 number, err);
    sm_status status = sm_integer_parse(source, span, 1, LARGEST, &whole, err);
    *number = (double)whole;
    return status;
}

sm_status sm_range_parse(const sm_source *source, sm_span span, sm_range_form form, sm_range *range,
                         sm_error *err) {
    const size_t dots = find_in_span(source, span, "..");
    sm_status status = read_number(source, (sm_span){span.offset, dots}, form, &range->first, err);
    range->last = range->first;
    range->step = form == SM_RANGE_NUMBER ? 1.0 : 0.0;
    range->times = false;
    if (status || dots == span.length) return status;
    const sm_span rest = {span.offset + dots + 2, span.length - dots - 2};
    size_t by = find_in_span(source, rest, "*");
    range->times = by < rest.length;
    if (!range->times) by = find_in_span(source, rest, ":");
    status = read_number(source, (sm_span){rest.offset, by}, form, &range->last, err);
    const sm_span each = {rest.offset + by + 1, rest.length - by - (by < rest.length)};
    if (!status && by < rest.length) status = read_number(source, each, form, &range->step, err);
    const bool moves = by == rest.length || range->step > (range->times ? 1.0 : 0.0);
    const bool doubles = range->times || !(range->step > 0.0);
    if (status || (range->last >= range->first && moves && (!doubles || range->first > 0.0)))
        return status;
    return sm_fail_at(err, source, span, "expected a range that rises, as in 1..64*2 or 1..2:0.25");
}

/* Half a millionth of a step more, so that rounding does not lose the last value. */
int sm_range_points(const sm_range *range) {
    const double ratio = range->last / range->first, apart = range->last - range->first;
    if (!(range->step > 0.0)) return 1 + (int)ceil(log2(ratio) - 5e-7);
    double n = range->times ? log(ratio) / log(range->step) : apart / range->step;
    return (int)fmin(INT_MAX, 1.0 + floor(5e-7 + n));
}

double sm_range_value(const sm_range *range, int point) {
    if (!(range->step > 0.0)) return fmin(range->last, ldexp(range->first, point));
    return range->times ? range->first * pow(range->step, point)
                        : range->first + range->step * point;
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
    return sm_range_parse(source, value, SM_RANGE_WHOLE, &range->values, err);
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
        sm_index_set_size(einsum, range->index, sm_range_value(&range->values, point % n));
        point /= n;
    }
}
