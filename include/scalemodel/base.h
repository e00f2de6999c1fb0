/* base: errors, arenas, allocation hooks. Depends on libc alone. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The declarations of every public header stand between these two: of C linkage in C++ too, and the
 * only symbols that a library exports, since its own files are compiled with hidden visibility. */
#ifdef __GNUC__
#define SM_VISIBILITY_PUSH _Pragma("GCC visibility push(default)")
#define SM_VISIBILITY_POP _Pragma("GCC visibility pop")
#else
#define SM_VISIBILITY_PUSH
#define SM_VISIBILITY_POP
#endif
#ifdef __cplusplus
#define SM_DECLARATIONS_BEGIN SM_VISIBILITY_PUSH extern "C" {
#define SM_DECLARATIONS_END                                                                        \
    }                                                                                              \
    SM_VISIBILITY_POP
#else
#define SM_DECLARATIONS_BEGIN SM_VISIBILITY_PUSH
#define SM_DECLARATIONS_END SM_VISIBILITY_POP
#endif

SM_DECLARATIONS_BEGIN

/* Of these headers; the build, pkg-config and `scalemodel --version` read this line. */
#define SM_VERSION "0.1.0"
/* The version of the library that is linked: SM_VERSION when it was built. Static text. */
const char *sm_version(void);

/* Every fallible function returns one of these; they are also the exit codes of the CLI. */
typedef enum sm_status {
    SM_OK = 0,        /* answered */
    SM_NEGATIVE = 1,  /* a negative answer: does not fit, differs, no plan */
    SM_USAGE = 2,     /* the command line is wrong */
    SM_BAD_INPUT = 3, /* an input is wrong: the error carries its place */
    SM_IO = 4,        /* the operating system refused */
    SM_INTERNAL = 5   /* out of memory, or a defect of ours */
} sm_status;

/* Owned by the caller, filled by whoever decides the error; all above only forward it.
 * A library function never prints, exits or aborts. */
typedef struct sm_error {
    sm_status status;
    char source[256]; /* file name or the option the text came from, "" when none */
    int line, column; /* 1-based; 0 when there is no place */
    int span;         /* columns to underline, at least 1 when there is a place */
    /* one sentence: what is wrong, what was expected, the nearest valid name */
    char sentence[640];
    char excerpt[200];  /* the source line, cut around the span, control characters replaced */
    int excerpt_column; /* 1-based column of the span inside excerpt */
} sm_error;

/* Fill *err (which may be NULL) with a sentence that has no place, printf-like, and return status.
 * The sentence carries no trailing full stop; control characters in it become '?'. */
sm_status sm_fail(sm_error *err, sm_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Fill *err (which may be NULL) with "out of memory" and return SM_INTERNAL. */
sm_status sm_fail_memory(sm_error *err);
/* Fill *err (which may be NULL) for a limit of this library that is passed, "collectives of a
 * layer: 97; the most is 96", and return SM_INTERNAL. */
sm_status sm_fail_limit(sm_error *err, const char *what, int wanted, int most);

/* Copy a structure that its caller filled, and which begins with its size, into ours of `room`
 * bytes. What a program with older headers does not know of is 0. SM_USAGE when it has no size, or
 * a newer one. */
sm_status sm_sized_take(void *own, size_t room, const void *given, sm_error *err);
/* The other way: copy the first `size` bytes of ours, of `room` bytes, to a caller whose structure
 * has so many. What ours does not have becomes 0. */
void sm_sized_give(void *to, size_t size, const void *own, size_t room);

/* An arena owns everything allocated from it and frees it at once. */
typedef struct sm_arena sm_arena;
/* A new, empty arena. NULL when out of memory. */
sm_arena *sm_arena_new(void);
/* What is taken next comes out of one block of so many bytes. A large one is new to the program:
 * what is never touched of it takes no memory. False when out of memory. */
bool sm_arena_reserve(sm_arena *arena, size_t bytes);
/* Free the arena and everything allocated from it. NULL is fine. */
void sm_arena_free(sm_arena *arena);
/* Allocate `bytes` zeroed bytes, aligned to 16. They live as long as the arena. NULL when out of
 * memory, or when arena is NULL. */
void *sm_arena_alloc(sm_arena *arena, size_t bytes);
/* Allocate `count` zeroed elements of `bytes` bytes each. NULL when out of memory, or when the
 * product overflows. */
void *sm_arena_array(sm_arena *arena, size_t count, size_t bytes);
/* Room for one more of n elements of `bytes` each in a list of the arena, which may move: the list
 * to write to, its old elements copied and the new ones zeroed. NULL when out of memory, with *room
 * as it was. */
void *sm_arena_grow(sm_arena *arena, void *list, int n, int *room, size_t bytes);
/* Copy `length` bytes of text and add the terminating 0. NULL when out of memory. */
char *sm_arena_copy(sm_arena *arena, const char *text, size_t length);
/* Print as printf does into a new 0-terminated string. NULL when out of memory. */
char *sm_arena_printf(sm_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* As sm_arena_printf, with a va_list. */
char *sm_arena_vprintf(sm_arena *arena, const char *format, va_list args);
/* Numbers by keys of 64 bits. All zero: none yet. */
typedef struct sm_numbers {
    uint64_t *key;
    int32_t *value;
    size_t n, room;
} sm_numbers;
/* The number of a key, -1 where it is new, to be set; it moves with the next new key. NULL when out
 * of memory. */
int32_t *sm_numbers_at(sm_numbers *numbers, uint64_t key);
/* Let go of them: none again. */
void sm_numbers_free(sm_numbers *numbers);

/* Texts of which each is kept once, in an arena. All zero: none yet. */
typedef struct sm_texts {
    const char **text; /* in the order in which they came */
    int n, room;
    sm_numbers places; /* of a text by its hash */
} sm_texts;
/* The place of the kept text that equals these bytes, which are copied where there is none. -1: out
 * of memory. */
int32_t sm_texts_place(sm_texts *texts, sm_arena *arena, const char *text, size_t length);
/* The text itself. NULL: out of memory. */
const char *sm_texts_keep(sm_texts *texts, sm_arena *arena, const char *text);
/* Let go of the table; the texts stay in their arena. */
void sm_texts_free(sm_texts *texts);

/* Allocate as malloc does; 0 bytes give a block too. All allocation of the library passes through
 * these four, so that tests can count it and make the n-th one fail. NULL when out of memory, or
 * for a block of more than 2^40 bytes. */
void *sm_malloc(size_t bytes);
/* Allocate `count` zeroed elements of `bytes` bytes each. NULL as for sm_malloc, and when the
 * product overflows. */
void *sm_calloc(size_t count, size_t bytes);
/* Resize a block to `bytes` bytes. NULL as for sm_malloc; the old block stays then. */
void *sm_realloc(void *block, size_t bytes);
/* As sm_arena_grow of a list in a block of sm_malloc, or NULL; new elements hold anything. */
void *sm_grow(void *list, size_t n, size_t *room, size_t bytes);
/* Free a block of sm_malloc, sm_calloc or sm_realloc. NULL is fine. */
void sm_free(void *block);
/* How many allocations were asked for so far, in the whole process. Atomic. */
uint64_t sm_allocation_count(void);
/* Make the n-th allocation from now fail, in the whole process; 0 switches this off. For tests. */
void sm_allocation_fail_at(uint64_t n);
/* Call `watch` with the number of each allocation before it is made; NULL ends it. For tests. */
void sm_allocation_watch(void (*watch)(uint64_t number));

/* A stream whose bytes are kept in memory, which its owner keeps in place while it is open. */
typedef struct sm_memory_stream {
    char *text; /* once closed: `length` bytes and a 0, for sm_free */
    size_t length, room;
    bool failed;
    char buffer[4096]; /* of the stream */
} sm_memory_stream;
/* Begin one. NULL when out of memory. */
FILE *sm_memory_stream_open(sm_memory_stream *m);
/* Close it. status: of what wrote to it, which is returned when it is no SM_OK. SM_INTERNAL when
 * memory ran out on the way. m->text is NULL after a failure. */
sm_status sm_memory_stream_close(sm_memory_stream *m, FILE *out, sm_status status, sm_error *err);

/* Deterministic random numbers for tests and simulators (splitmix64). */
typedef struct sm_rng {
    uint64_t state;
} sm_rng;
/* The next 64 random bits of splitmix64 (Steele, Lea and Flood 2014). Advances the state. */
uint64_t sm_rng_next(sm_rng *rng);
/* A random whole number from 0 to n - 1, each equally likely; n > 0. */
uint64_t sm_rng_below(sm_rng *rng, uint64_t n);
/* A random number from [0, 1), a multiple of 2^-53. */
double sm_rng_unit(sm_rng *rng);

/* Seconds of a monotonic clock, for durations only. */
double sm_clock_s(void);

/* Decode the UTF-8 character at the start of text (RFC 3629); *code receives the code point.
 * Returns its length in bytes, 1 to 4, or 0 when it is malformed, cut short, overlong, a surrogate,
 * or length is 0. */
size_t sm_utf8_decode(const char *text, size_t length, uint32_t *code);
/* Terminal columns of a printable code point: 0 for combining marks, 2 for wide East Asian and
 * emoji, 1 otherwise; -1 for control characters, line separators and changes of direction, which
 * must not reach a terminal. */
int sm_utf8_width(uint32_t code);
/* Copy at most size-1 bytes of text without cutting a character; control characters and malformed
 * bytes become '?', a tab or line break one space. Always terminates; returns the bytes written. */
size_t sm_utf8_clean(char *out, size_t size, const char *text, size_t length);

/* ---- hashing, of words into 64 bits (FNV-1a, with a shift that brings high bits down) ---- */
#define SM_HASH_SEED 1469598103934665603ull
/* A hash and one more word. For either of them fixed a bijection of the other. */
static inline uint64_t sm_hash_mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 1099511628211ull;
    return hash ^ hash >> 29;
}
/* The hash of n bytes, eight at a time. */
uint64_t sm_hash_bytes(const void *bytes, size_t n);

/* ---- orders, for qsort and bsearch ----
 * SM_ORDER(by_start, event, SM_ASCENDING(start_s) SM_DESCENDING(end_s) SM_BY_TEXT(name)) is the
 * comparison by_start of elements x and y of type event; the first key that differs decides.
 * SM_BY_KEY(x->a * x->b, y->a * y->b): another key; SM_BY(other): as the order `other` has it;
 * SM_BY_PLACE: as they lie in memory. What is not a number equals all. */
#define SM_ORDER(name, type, keys)                                                                 \
    static int name(const void *a, const void *b) {                                                \
        const type *x = a, *y = b;                                                                 \
        keys return 0;                                                                             \
    }
/* The same of pointers to the type. */
#define SM_ORDER_OF_POINTERS(name, type, keys)                                                     \
    static int name(const void *a, const void *b) {                                                \
        const type *x = *(const type *const *)a, *y = *(const type *const *)b;                     \
        keys return 0;                                                                             \
    }
#define SM_ORDER_OF_NUMBERS(name, type) SM_ORDER(name, type, SM_BY_KEY(*x, *y))
#define SM_BY_KEY(p, q)                                                                            \
    if (((p) > (q)) - ((p) < (q))) return ((p) > (q)) - ((p) < (q));
#define SM_ASCENDING(key) SM_BY_KEY(x->key, y->key)
#define SM_DESCENDING(key) SM_BY_KEY(y->key, x->key)
#define SM_BY_PLACE SM_BY_KEY(x, y)
#define SM_BY(order)                                                                               \
    if (order(x, y)) return order(x, y);
#define SM_BY_TEXT(key)                                                                            \
    if (strcmp(x->key, y->key) != 0) return strcmp(x->key, y->key);
/* Of rows (id, name, ...) of a list X(...): names, what comes third, ids as texts. */
#define SM_NAME_OF(id, name, ...) name,
#define SM_THIRD_OF(id, name, third, ...) third,
#define SM_ID_OF(id, ...) #id,
/* Their ids as members of a struct. */
#define SM_NUMBER_MEMBER(id, ...) double id;
#define SM_FLAG_MEMBER(id, ...) bool id;
SM_DECLARATIONS_END
