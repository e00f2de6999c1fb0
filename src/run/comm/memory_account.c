/* Each block carries in front of it whose it is, how large and for what. */
#include "memory_account.h"

#include <string.h>

typedef struct tag {
    memory_account *account;
    size_t bytes;
    sm_train_memory_part part;
} tag;
enum { FRONT = 64 }; /* keeps the alignment of a cache line where the allocator gives it */
_Static_assert(sizeof(tag) <= FRONT, "a tag fits in front of a block");

static _Thread_local memory_scope scope;

memory_scope memory_enter(memory_account *account, sm_train_memory_part part) {
    memory_scope before = scope;
    scope = (memory_scope){account, part};
    return before;
}

memory_scope memory_for(sm_train_memory_part part) { return memory_enter(scope.account, part); }

void memory_restore(memory_scope before) { scope = before; }

/* Only the rank itself raises its greatest. */
static void note(memory_account *a) {
    double now[SM_TRAIN_MEMORY_COUNT], total = 0;
    for (int i = 0; i < SM_TRAIN_MEMORY_COUNT; i++) {
        now[i] = (double)atomic_load_explicit(&a->in_use[i], memory_order_relaxed);
        if (now[i] > a->most[i]) a->most[i] = now[i];
        if (i != SM_TRAIN_MEMORY_HOST) total += now[i];
    }
    if (total <= a->total) return;
    a->total = total;
    memcpy(a->at_most, now, sizeof now);
}

static void add(memory_account *a, sm_train_memory_part part, long long bytes) {
    if (a) atomic_fetch_add_explicit(&a->in_use[part], bytes, memory_order_relaxed);
}

static void *begin(void *front, size_t bytes) {
    tag *t = front;
    if (!front) return NULL;
    *t = (tag){scope.account, bytes, scope.part};
    add(t->account, t->part, (long long)bytes);
    if (t->account) note(t->account);
    return (char *)front + FRONT;
}

static bool fits(size_t bytes) { return bytes <= SIZE_MAX / 2; }

void *memory_new(size_t bytes) {
    return fits(bytes) ? begin(sm_malloc(FRONT + bytes), bytes) : NULL;
}

void *memory_new_cleared(size_t bytes) {
    return fits(bytes) ? begin(sm_calloc(1, FRONT + bytes), bytes) : NULL;
}

static tag *tag_of(void *block) { return (tag *)(void *)((char *)block - FRONT); }

void memory_free(void *block) {
    if (!block) return;
    tag *t = tag_of(block);
    add(t->account, t->part, -(long long)t->bytes);
    sm_free(t);
}

void memory_mark(void *block, sm_train_memory_part part) {
    if (!block) return;
    tag *t = tag_of(block);
    assert(part < SM_TRAIN_MEMORY_COUNT);
    add(t->account, t->part, -(long long)t->bytes);
    t->part = part;
    add(t->account, t->part, (long long)t->bytes);
    if (t->account) note(t->account);
}

void memory_begin(memory_account *a) {
    memset(a->most, 0, sizeof a->most);
    a->total = 0;
    note(a);
}
