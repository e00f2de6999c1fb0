/* Measured collectives: seconds = latency_s + bytes s_per_byte on groups of so many ranks, in place
 * of the algorithms of collective_curve.c. On ranks of one memory a collective is what its library
 * copies and adds there, of which no wire and no protocol tell. */
#include "calibration_line.h"

#include <string.h>

static const char prefix[] = "line.";
enum { PREFIX = sizeof prefix - 1, MOST_LINES = 128, MOST_RANKS = 1000000 };

const sm_collective_line *sm_calibration_line(const sm_calibration *c, sm_collective op,
                                              int ranks) {
    for (int i = 0; i < c->lines; i++)
        if (c->line[i].op == op && c->line[i].ranks == ranks) return &c->line[i];
    return NULL;
}

bool calibration_is_line(const sm_source *source, sm_span key) {
    return key.length > PREFIX && memcmp(source->text + key.offset, prefix, PREFIX) == 0;
}

/* The collective and the ranks that a key names. */
static sm_status read_key(const sm_source *source, sm_span key, sm_collective_line *line,
                          sm_error *err) {
    const char *name = source->text + key.offset + PREFIX;
    size_t length = key.length - PREFIX;
    const char *dot = memchr(name, '.', length);
    int64_t ranks = 0;
    int op = 0;
    while (dot && op < SM_COLLECTIVE_COUNT &&
           (strlen(sm_collective_names[op]) != (size_t)(dot - name) ||
            memcmp(sm_collective_names[op], name, (size_t)(dot - name)) != 0))
        op++;
    if (!dot || op == SM_COLLECTIVE_COUNT)
        return sm_fail_at(err, source, key,
                          "expected line.COLLECTIVE.RANKS, as in line.all-reduce.2");
    sm_span number = {(size_t)(dot + 1 - source->text), length - (size_t)(dot + 1 - name)};
    sm_status status = sm_integer_parse(source, number, 2, MOST_RANKS, &ranks, err);
    line->op = (sm_collective)op;
    line->ranks = (int)ranks;
    return status;
}

static sm_status read_value(const sm_source *source, sm_span value, sm_collective_line *line,
                            sm_error *err) {
    const char *text = source->text + value.offset;
    size_t first = 0, second;
    while (first < value.length && text[first] != ' ' && text[first] != '\t') first++;
    second = first;
    while (second < value.length && (text[second] == ' ' || text[second] == '\t')) second++;
    if (second == value.length)
        return sm_fail_at(err, source, value,
                          "expected seconds of latency and seconds per byte, as in 2e-5 4e-11");
    sm_status status = sm_quantity_parse(source, (sm_span){value.offset, first}, SM_Q_SECONDS,
                                         &line->line.latency_s, err);
    sm_span rest = {value.offset + second, value.length - second};
    if (!status) status = sm_quantity_parse(source, rest, SM_Q_COUNT, &line->line.s_per_byte, err);
    if (status) return status;
    if (line->line.latency_s < 0.0 || line->line.latency_s > 1.0 || line->line.s_per_byte < 0.0 ||
        line->line.s_per_byte > 1.0)
        return sm_fail_at(err, source, value, "both lie from 0 to 1 s");
    return SM_OK;
}

sm_status calibration_read_line(const sm_source *source, sm_span key, sm_span value,
                                sm_arena *arena, sm_calibration *c, sm_error *err) {
    sm_collective_line line = {.ranks = 0};
    sm_status status = read_key(source, key, &line, err);
    if (!status) status = read_value(source, value, &line, err);
    if (status) return status;
    if (sm_calibration_line(c, line.op, line.ranks))
        return sm_fail_at(err, source, key, "%s of %d ranks is given twice",
                          sm_collective_name(line.op), line.ranks);
    if (c->lines == MOST_LINES)
        return sm_fail_at(err, source, key, "a calibration has at most %d lines", MOST_LINES);
    sm_collective_line *more = sm_arena_array(arena, (size_t)c->lines + 1, sizeof *more);
    if (!more) return sm_fail_memory(err);
    if (c->lines) memcpy(more, c->line, (size_t)c->lines * sizeof *more);
    more[c->lines++] = line;
    c->line = more;
    return SM_OK;
}
