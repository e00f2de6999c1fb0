/* protobuf: messages that a test writes, in its arena. */
#pragma once
#include "unit.h"
#include <string.h>
#include "scalemodel/base.h"

static sm_arena *arena;

/* A message as it grows. */
typedef struct bytes {
    size_t n;
    char at[1 << 19];
} bytes;

static inline bytes *message(void) {
    bytes *b = sm_arena_alloc(arena, sizeof *b);
    assert_non_null(b);
    return b;
}

static inline void put_varint(bytes *b, uint64_t value) {
    for (; value >= 128; value >>= 7) b->at[b->n++] = (char)(value | 128);
    b->at[b->n++] = (char)value;
}

static inline void put_number(bytes *b, int field, uint64_t value) {
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, value);
}

static inline void put_bytes(bytes *b, int field, const char *at, size_t n) {
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, n);
    assert_true(b->n + n < sizeof b->at);
    memcpy(b->at + b->n, at, n);
    b->n += n;
}

static inline void put_text(bytes *b, int field, const char *text) {
    put_bytes(b, field, text, strlen(text));
}

static inline void put_message(bytes *b, int field, const bytes *inner) {
    put_bytes(b, field, inner->at, inner->n);
}
