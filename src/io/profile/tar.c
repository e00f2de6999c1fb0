/* An archive is blocks of 512 bytes: a header, the bytes of the file filled up to whole blocks, the
 * next header; two empty blocks end it. Paths beyond 100 bytes have a prefix (POSIX), or stand as a
 * file of type L before theirs (GNU). */
#include "nsys.h"

#include <string.h>

enum {
    BLOCK = 512,
    NAME = 100,
    SIZE_AT = 124,
    SIZE = 12,
    SUM_AT = 148,
    SUM = 8,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX = 155
};

bool tar_is(const sm_source *first) {
    return first->length >= BLOCK && memcmp(first->text + MAGIC_AT, "ustar", 5) == 0;
}

/* Octal, with blanks around; SIZE_MAX when it is not. */
static size_t octal(const char *text, int n) {
    size_t value = 0;
    int i = 0;
    while (i < n && text[i] == ' ') i++;
    if (i == n || text[i] < '0' || text[i] > '7') return SIZE_MAX;
    for (; i < n && text[i] >= '0' && text[i] <= '7'; i++) {
        if (value > SIZE_MAX / 16) return SIZE_MAX;
        value = 8 * value + (size_t)(text[i] - '0');
    }
    return value;
}

/* The sum of a header's bytes, its own field as blanks. */
static bool is_sound(const char *header) {
    size_t sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= SUM_AT && i < SUM_AT + SUM ? ' ' : (unsigned char)header[i];
    return sum == octal(header + SUM_AT, SUM);
}

static size_t length_of(const char *text, size_t most) {
    const char *end = memchr(text, 0, most);
    return end ? (size_t)(end - text) : most;
}

static const char *path_of(const char *header, const sm_source *longer, sm_arena *arena) {
    size_t before = length_of(header + PREFIX_AT, PREFIX), n = length_of(header, NAME);
    bool posix = memcmp(header + MAGIC_AT, "ustar", 6) == 0;
    if (longer->length)
        return sm_arena_copy(arena, longer->text, length_of(longer->text, longer->length));
    if (!posix || before == 0) return sm_arena_copy(arena, header, n);
    return sm_arena_printf(arena, "%.*s/%.*s", (int)before, header + PREFIX_AT, (int)n, header);
}

sm_status tar_next(const sm_source *archive, size_t *at, sm_arena *arena, sm_source *file,
                   bool *more, sm_error *err) {
    sm_source longer = {"", "", 0};
    for (*more = false; archive->length - *at >= BLOCK;) {
        const char *header = archive->text + *at;
        if (header[0] == 0) return SM_OK; /* the end */
        size_t bytes = octal(header + SIZE_AT, SIZE), left = archive->length - *at - BLOCK;
        if (!is_sound(header) || bytes > left)
            return sm_fail(err, SM_BAD_INPUT, "%s: the archive is damaged or cut short at byte %zu",
                           archive->name, *at);
        char type = header[TYPE_AT];
        size_t whole = (bytes + BLOCK - 1) / BLOCK * BLOCK;
        *at += BLOCK + (whole < left ? whole : left);
        if (type == 'L') longer = (sm_source){"", header + BLOCK, bytes};
        if (type == 'L' || type == 'x' || type == 'g') continue;
        if (type == '0' || type == 0) {
            const char *path = path_of(header, &longer, arena);
            if (!path) return sm_fail_memory(err);
            *file = (sm_source){path, header + BLOCK, bytes};
            *more = true;
            return SM_OK;
        }
        longer.length = 0;
    }
    return SM_OK;
}
