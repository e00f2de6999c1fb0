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
        const char *from = at, *end = at + 1, *inner = at;
        const char *close = groups && *at == '(' ? strchr(at, ')') : NULL;
        if (close) from = at + 1, inner = close, end = close + 1;
        else inner = at + 1;
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

static void put_layers(char *out, long layers) {
    if (layers == 1) strcat(out, "t");
    if (layers > 1) sprintf(out + strlen(out), "t*%ld", layers);
}

const char *pattern_of_layout(const char *layout, sm_arena *arena) {
    /* "3*2." is at most "(t*3|)*2" with what stands around it. */
    char *out = sm_arena_alloc(arena, 4 * strlen(layout) + 16);
    if (!out) return NULL;
    strcpy(out, "E");
    for (const char *at = layout; *at;) {
        char *end;
        long layers = strtol(at, &end, 10), times = *end == '*' ? strtol(end + 1, &end, 10) : 1;
        bool last = *end == '\0', first = at == layout;
        at = last ? end : end + 1;
        if (first) { /* the embedding stands before it */
            put_layers(out, layers);
            if (!last || times > 1) strcat(out, "|");
            times--;
        }
        long between = times - last;
        if (between > 0) {
            strcat(out, between > 1 ? "(" : "");
            put_layers(out, layers);
            strcat(out, "|");
            if (between > 1) sprintf(out + strlen(out), ")*%ld", between);
        }
        if (last && times > 0) put_layers(out, layers);
    }
    return strcat(out, "L");
}

int layout_chunks(const char *layout) {
    long n = 0;
    for (const char *at = layout; *at;) {
        char *end;
        (void)strtol(at, &end, 10);
        n += *end == '*' ? strtol(end + 1, &end, 10) : 1;
        at = *end ? end + 1 : end;
    }
    return (int)n;
}
