/* A calibration as the text that calibration_parse.c reads back to the same. */
#include "scalemodel/cost.h"
#include <string.h>

enum { LINE_BYTES = 98, INDENT = 4 };

/* Where the line that starts here ends: at a single blank before LINE_BYTES, or the first after. A
 * "#" must not begin a line, where it would be a comment. */
static size_t line_end(const char *text, size_t room) {
    size_t end = 0;
    for (size_t i = 1; text[i - 1] && text[i]; i++) {
        bool breaks = text[i] == ' ' && text[i - 1] != ' ' && text[i + 1] && text[i + 1] != ' ' &&
                      text[i + 1] != '#';
        if (i > room && end > 0) break;
        if (breaks) end = i;
    }
    size_t length = strlen(text);
    return length <= room || end == 0 ? length : end;
}

static char *add_text(sm_arena *arena, char *out, const char *key, const char *text) {
    if (out) out = sm_arena_printf(arena, "%s%s =", out, key);
    size_t used = strlen(key) + 2;
    bool first = true;
    while (out && text && *text) {
        size_t end = line_end(text, LINE_BYTES - used);
        out = sm_arena_printf(arena, "%s%s%.*s", out, first ? " " : "\n    ", (int)end, text);
        text += end + (text[end] == ' ');
        used = INDENT;
        first = false;
    }
    return out ? sm_arena_printf(arena, "%s\n", out) : NULL;
}

static char *add_fitted(sm_arena *arena, char *out, unsigned fitted) {
    for (int i = 0; out && i < SM_CONSTANT_COUNT; i++)
        if (fitted >> i & 1)
            out = sm_arena_printf(
                arena, "%s%s%s", out,
                fitted & ((1u << i) - 1) ? " " : "fitted = ", sm_constant_of((sm_constant)i)->name);
    return out && fitted ? sm_arena_printf(arena, "%s\n", out) : out;
}

static char *add_interval(sm_arena *arena, char *out, const sm_calibration *c, int regime) {
    static const char *const keys[SM_REGIME_COUNT] = {
#define X(id, name) "interval." #id,
        SM_REGIMES(X)
#undef X
    };
    char lowest[40], highest[40];
    if (!out || c->interval[regime].n == 0) return out;
    sm_format_exact(lowest, sizeof lowest, c->interval[regime].lowest);
    sm_format_exact(highest, sizeof highest, c->interval[regime].highest);
    return sm_arena_printf(arena, "%s%s = %s %s %d\n", out, keys[regime], lowest, highest,
                           c->interval[regime].n);
}

static char *add_line(sm_arena *arena, char *out, const sm_collective_line *line) {
    char latency[40], slope[40];
    sm_format_exact(latency, sizeof latency, line->line.latency_s);
    sm_format_exact(slope, sizeof slope, line->line.s_per_byte);
    return out ? sm_arena_printf(arena, "%sline.%s.%d = %s %s\n", out, sm_collective_name(line->op),
                                 line->ranks, latency, slope)
               : NULL;
}

char *sm_calibration_format(const sm_calibration *c, sm_arena *arena) {
    char *out = sm_arena_printf(arena, "[%s %s]\n", c->chip, c->software);
    out = add_text(arena, out, "source", c->source);
    if (c->range && *c->range) out = add_text(arena, out, "range", c->range);
    for (int i = 0; out && i < SM_CONSTANT_COUNT; i++) {
        char number[40];
        sm_format_exact(number, sizeof number, sm_calibration_get(c, (sm_constant)i));
        out = sm_arena_printf(arena, "%s%s = %s\n", out, sm_constant_of((sm_constant)i)->name,
                              number);
    }
    out = add_fitted(arena, out, c->fitted);
    for (int i = 0; i < SM_REGIME_COUNT; i++) out = add_interval(arena, out, c, i);
    for (int i = 0; i < c->lines; i++) out = add_line(arena, out, &c->line[i]);
    return out;
}
