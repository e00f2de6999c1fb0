/* Layers of the chunks of a pipeline as Megatron writes them, "Ett|(ttt|)*29ttL": a letter for each
 * layer (E embedding, t layer, m multi-token prediction, L loss), '|' between chunks, (...)*n and
 * x*n for what is repeated, commas for nothing; and as plans do, "2.3*29.2". */
#include "expression.h"

#include <stdlib.h>

enum { MOST_LETTERS = 1 << 14 };

/* What stands n times: a group first, then, in what that gave, a letter. Nothing is left of more
 * letters than layers there can be. NULL: out of memory. */
static char *unrolled(const char *text, bool groups, sm_arena *arena) {
    char *out = sm_arena_alloc(arena, MOST_LETTERS);
    size_t n = 0;
    if (!out) return NULL;
    for (const char *at = text; *at;) {
        const char *from = at, *end = at + 1, *inner = at + 1;
        const char *close = groups && *at == '(' ? strchr(at, ')') : NULL;
        if (close) from = at + 1, inner = close, end = close + 1;
        long times = 1;
        char *after;
        if (*end == '*' && (close || !groups)) {
            times = strtol(end + 1, &after, 10);
            end = after;
        }
        size_t length = (size_t)(inner - from);
        for (; times > 0 && length > 0; times--) {
            if (n + length + 1 > MOST_LETTERS) return out[0] = '\0', out;
            memcpy(out + n, from, length);
            n += length;
        }
        at = end;
    }
    out[n] = '\0';
    return out;
}

const char *layout_of_pattern(const char *pattern, sm_arena *arena) {
    char *text = unrolled(pattern, true, arena);
    if (text) text = unrolled(text, false, arena);
    char *out = text ? sm_arena_alloc(arena, 2 * strlen(text) + 8) : NULL;
    size_t n = 0;
    int layers = 0;
    if (!out) return NULL;
    for (const char *at = text;; at++) {
        layers += *at == 't';
        if (*at && *at != '|') continue;
        n += (size_t)sprintf(out + n, n ? ".%d" : "%d", layers);
        layers = 0;
        if (!*at) break;
    }
    return out;
}

/* Behind what is there (NULL: out of memory), so many layers. */
static const char *with_layers(const char *out, long layers, sm_arena *arena) {
    if (!out || layers < 1) return out;
    return layers == 1 ? sm_arena_printf(arena, "%st", out)
                       : sm_arena_printf(arena, "%st*%ld", out, layers);
}

const char *pattern_of_layout(const char *layout, sm_arena *arena) {
    const char *out = "E";
    for (const char *at = layout; *at && out;) {
        char *end;
        long layers = strtol(at, &end, 10), times = *end == '*' ? strtol(end + 1, &end, 10) : 1;
        bool last = *end == '\0', first = at == layout;
        at = last ? end : end + 1;
        if (first) { /* the embedding stands before it */
            out = with_layers(out, layers, arena);
            if (out && (!last || times > 1)) out = sm_arena_printf(arena, "%s|", out);
            times--;
        }
        long between = times - last;
        if (between > 1) {
            const char *chunk = with_layers("", layers, arena);
            out = out && chunk ? sm_arena_printf(arena, "%s(%s|)*%ld", out, chunk, between) : NULL;
        } else if (between > 0) {
            out = with_layers(out, layers, arena);
            if (out) out = sm_arena_printf(arena, "%s|", out);
        }
        if (last && times > 0) out = with_layers(out, layers, arena);
    }
    return out ? sm_arena_printf(arena, "%sL", out) : NULL;
}
