/* Allocation hooks: one door for all heap memory, so that tests can count and refuse. */
#include "allocation.h"

#include <stdatomic.h>
#include <stdlib.h>

/* No answer needs a tebibyte in one block; a larger request is an overflow that lost its way. */
#define LARGEST_BLOCK ((size_t)(SIZE_MAX > UINT32_MAX ? UINT64_C(1) << 40 : SIZE_MAX / 2))

static atomic_uint_fast64_t made;       /* allocations asked for so far */
static atomic_uint_fast64_t refused_at; /* the number of the one to refuse; 0 for none */
static void (*watched)(uint64_t number);

uint64_t sm_allocation_count(void) { return atomic_load(&made); }

void sm_allocation_fail_at(uint64_t n) {
    atomic_store(&refused_at, n == 0 ? 0 : atomic_load(&made) + n);
}

void sm_allocation_watch(void (*watch)(uint64_t number)) { watched = watch; }

bool allocation_admitted(size_t bytes) {
    uint64_t number = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed) + 1;
    if (watched) watched(number);
    return number != atomic_load_explicit(&refused_at, memory_order_relaxed) &&
           bytes <= LARGEST_BLOCK;
}

void *sm_malloc(size_t bytes) {
    return allocation_admitted(bytes) ? malloc(bytes > 0 ? bytes : 1) : NULL;
}

void *sm_calloc(size_t count, size_t bytes) {
    bool overflow = bytes != 0 && count > LARGEST_BLOCK / bytes;
    if (!allocation_admitted(overflow ? SIZE_MAX : count * bytes)) return NULL;
    return count * bytes > 0 ? calloc(count, bytes) : calloc(1, 1);
}

void *sm_realloc(void *block, size_t bytes) {
    return allocation_admitted(bytes) ? realloc(block, bytes > 0 ? bytes : 1) : NULL;
}

void *sm_grow(void *list, size_t n, size_t *room, size_t bytes) {
    if (n < *room) return list;
    size_t more = *room ? 2 * *room : 64;
    void *longer = more > SIZE_MAX / bytes ? NULL : sm_realloc(list, more * bytes);
    if (longer) *room = more;
    return longer;
}

void sm_free(void *block) { free(block); }
