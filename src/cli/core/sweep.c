/* sweep: split --dims into fixed sizes, which the notation parser reads, and ranges, which are read
 * here. */
#include "sweep.h"
#include <string.h>

/* One item "B=1..4096" at span: read the range, and blank all of it but its first value in `fixed`.
 */
static sm_status take_item(const sm_source *source, sm_span item, char *fixed, cli_sweep *sweep,
                           sm_error *err) {
    size_t dots = cli_span_find(source, item, "..");
    if (dots == item.length) return SM_OK;
    if (sweep->ranges == CLI_MAX_RANGES)
        return sm_fail_at(err, source, item, "at most %d sizes can be ranges", CLI_MAX_RANGES);
    cli_size_range *range = &sweep->range[sweep->ranges++];
    size_t equals = cli_span_find(source, item, "=");
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
    return cli_range_parse(source, value, &range->values, err);
}

static sm_status take_items(const sm_source *source, char *fixed, cli_sweep *sweep, sm_error *err) {
    size_t at = 0;
    while (at < source->length) {
        sm_span item = {at, cli_span_find(source, (sm_span){at, source->length - at}, ",")};
        sm_status status = take_item(source, item, fixed, sweep, err);
        if (status) return status;
        at += item.length + 1;
    }
    return SM_OK;
}

static sm_status count_points(const sm_source *source, cli_sweep *sweep, sm_error *err) {
    int64_t points = 1;
    for (int i = 0; i < sweep->ranges; i++) {
        points *= cli_range_points(&sweep->range[i].values);
        if (points > CLI_MAX_POINTS)
            return sm_fail_at(err, source, (sm_span){0, source->length},
                              "these ranges make more than %d points; widen the steps",
                              CLI_MAX_POINTS);
    }
    sweep->points = (int)points;
    return SM_OK;
}

static int find_index(const sm_einsum *einsum, const char *name, size_t length) {
    for (int i = 0; i < einsum->indices; i++)
        if (strlen(einsum->index[i].name) == length &&
            memcmp(einsum->index[i].name, name, length) == 0)
            return i;
    return -1;
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

sm_status cli_sweep_parse(const char *dims, sm_arena *arena, sm_einsum *einsum, cli_sweep *sweep,
                          sm_error *err) {
    *sweep = (cli_sweep){.points = 1};
    if (!dims) return SM_OK;
    sm_source source = sm_source_of("--dims", dims);
    char *fixed = sm_arena_copy(arena, dims, source.length);
    if (!fixed) return sm_fail_memory(err);
    sm_status status = take_items(&source, fixed, sweep, err);
    if (!status) status = count_points(&source, sweep, err);
    if (status) return status;
    sm_source blanked = {source.name, fixed, source.length};
    status = sm_dims_parse(&blanked, einsum, err);
    if (status) return sweep->ranges ? show_in(&source, status, err) : status;
    for (int i = 0; i < sweep->ranges; i++) {
        cli_size_range *range = &sweep->range[i];
        range->index = find_index(einsum, dims + range->name.offset, range->name.length);
        if (range->index < 0)
            return sm_fail_at(err, &source, range->name, "no array has an index of this name");
    }
    return SM_OK;
}

void cli_sweep_point(const cli_sweep *sweep, int point, sm_einsum *einsum) {
    for (int i = sweep->ranges - 1; i >= 0; i--) {
        const cli_size_range *range = &sweep->range[i];
        int n = cli_range_points(&range->values);
        einsum->index[range->index].size = (double)cli_range_value(&range->values, point % n);
        point /= n;
    }
}
