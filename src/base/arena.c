/* An arena: memory handed out in order from growing chunks and freed at once. */
#include "allocation.h"

#include <string.h>

/* AddressSanitizer is told what is handed out: bytes between the blocks show it overruns. There
 * each block counts as an allocation, so that each is refused once. */
#if defined(__SANITIZE_ADDRESS__)
#define GUARDED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GUARDED 1
#endif
#endif
#ifdef GUARDED
#include <sanitizer/asan_interface.h>
enum { GUARD = 16, LARGEST_CHUNK = 1 << 16 };
#else
#define ASAN_POISON_MEMORY_REGION(memory, bytes) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) ((void)0)
enum { GUARD = 0, LARGEST_CHUNK = 1 << 20 };
#endif
enum { ALIGNMENT = 16, FIRST_CHUNK = 4096 };

typedef struct chunk {
    struct chunk *older;
    size_t room, used; /* bytes of memory[] */
    size_t padding;    /* keeps memory[] aligned to 16 */
    unsigned char memory[];
} chunk;
_Static_assert(sizeof(chunk) % ALIGNMENT == 0, "memory[] must start aligned");

struct sm_arena {
    chunk *newest;
    size_t next_room; /* size of the next ordinary chunk */
};

sm_arena *sm_arena_new(void) {
    sm_arena *arena = sm_calloc(1, sizeof *arena);
    if (arena != NULL) arena->next_room = FIRST_CHUNK;
    return arena;
}

void sm_arena_free(sm_arena *arena) {
    if (arena == NULL) return;
    for (chunk *c = arena->newest, *older; c != NULL; c = older) {
        older = c->older;
        sm_free(c);
    }
    sm_free(arena);
}

static chunk *add_chunk(sm_arena *arena, size_t bytes) {
    size_t room = GUARD + (bytes > arena->next_room ? bytes : arena->next_room);
    chunk *c = sm_calloc(1, sizeof *c + room);
    if (c == NULL) return NULL;
    c->room = room;
    c->used = GUARD;
    ASAN_POISON_MEMORY_REGION(c->memory, room);
    c->older = arena->newest;
    arena->newest = c;
    if (arena->next_room < LARGEST_CHUNK) arena->next_room *= 2;
    return c;
}

bool sm_arena_reserve(sm_arena *arena, size_t bytes) {
    return arena != NULL && add_chunk(arena, bytes) != NULL;
}

void *sm_arena_alloc(sm_arena *arena, size_t bytes) {
    if (arena == NULL || bytes > SIZE_MAX / 2) return NULL;
    if (GUARD > 0 && !allocation_admitted(bytes)) return NULL;
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + GUARD;
    chunk *c = arena->newest;
    if (c == NULL || c->room - c->used < rounded) c = add_chunk(arena, rounded);
    if (c == NULL) return NULL;
    void *block = c->memory + c->used;
    c->used += rounded;
    ASAN_UNPOISON_MEMORY_REGION(block, bytes);
    return block;
}

void *sm_arena_array(sm_arena *arena, size_t count, size_t bytes) {
    if (bytes != 0 && count > SIZE_MAX / bytes) return NULL;
    return sm_arena_alloc(arena, count * bytes);
}

void *sm_arena_grow(sm_arena *arena, void *list, int n, int *room, size_t bytes) {
    if (n < *room) return list;
    int more = *room ? 2 * *room : 64;
    void *longer = sm_arena_array(arena, (size_t)more, bytes);
    if (!longer) return NULL;
    if (n > 0) memcpy(longer, list, (size_t)n * bytes);
    *room = more;
    return longer;
}

char *sm_arena_copy(sm_arena *arena, const char *text, size_t length) {
    if (length == SIZE_MAX) return NULL;
    char *copy = sm_arena_alloc(arena, length + 1);
    if (copy != NULL && length > 0) memcpy(copy, text, length);
    return copy;
}

char *sm_arena_vprintf(sm_arena *arena, const char *format, va_list args) {
    char usual[128];
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(usual, sizeof usual, format, args);
    char *text = length < 0 ? NULL : sm_arena_alloc(arena, (size_t)length + 1);
    if (text && (size_t)length < sizeof usual) memcpy(text, usual, (size_t)length + 1);
    else if (text) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *sm_arena_printf(sm_arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = sm_arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}
