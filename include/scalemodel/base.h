/* base: errors, arenas, allocation hooks. Depends on libc alone. */
#ifndef SCALEMODEL_BASE_H
#define SCALEMODEL_BASE_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
#define SM_DECLARATIONS_END } SM_VISIBILITY_POP
#else
#define SM_DECLARATIONS_BEGIN SM_VISIBILITY_PUSH
#define SM_DECLARATIONS_END SM_VISIBILITY_POP
#endif

SM_DECLARATIONS_BEGIN

/* Of these headers; the build, pkg-config and `scalemodel --version` read this line. */
#define SM_VERSION "0.1.0"
/* Of the library that is linked: SM_VERSION when it was built. */
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
    char source[256];   /* file name or the option the text came from, "" when none */
    int line, column;   /* 1-based; 0 when there is no place */
    int span;           /* columns to underline, at least 1 when there is a place */
    char sentence[640]; /* one sentence: what is wrong, what was expected, the nearest valid name */
    char excerpt[200];  /* the source line, cut around the span, control characters replaced */
    int excerpt_column; /* 1-based column of the span inside excerpt */
} sm_error;

/* Fill *err (which may be NULL) and return status. The sentence carries no trailing full stop. */
sm_status sm_fail(sm_error *err, sm_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
sm_status sm_fail_memory(sm_error *err); /* SM_INTERNAL, "out of memory" */
/* SM_INTERNAL: a limit of this library is passed, "collectives of a layer: 97; the most is 96". */
sm_status sm_fail_limit(sm_error *err, const char *what, int wanted, int most);

/* Structures that callers fill begin with their size: copy one into ours of `room` bytes. What a
 * program with older headers does not know of is 0. SM_USAGE when it has no size or a newer one. */
sm_status sm_sized_take(void *own, size_t room, const void *given, sm_error *err);
/* The other way: the first `size` bytes of ours, for a caller whose structure has so many. */
void sm_sized_give(void *to, size_t size, const void *own, size_t room);

/* An arena owns everything allocated from it and frees it at once. */
typedef struct sm_arena sm_arena;
sm_arena *sm_arena_new(void);        /* NULL when out of memory */
void sm_arena_free(sm_arena *arena); /* NULL is fine */
void *sm_arena_alloc(sm_arena *arena,
                     size_t bytes); /* zeroed, 16-aligned; NULL when out of memory */
void *sm_arena_array(sm_arena *arena, size_t count,
                     size_t bytes); /* checks the product for overflow */
char *sm_arena_copy(sm_arena *arena, const char *text, size_t length); /* adds the terminating 0 */
char *sm_arena_printf(sm_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *sm_arena_vprintf(sm_arena *arena, const char *format, va_list args);

/* All library allocation passes here, so that tests can count it and make the n-th one fail. */
void *sm_malloc(size_t bytes);
void *sm_calloc(size_t count, size_t bytes);
void *sm_realloc(void *block, size_t bytes);
void sm_free(void *block);
uint64_t sm_allocation_count(void); /* allocations made so far (process-wide, atomic) */
void sm_allocation_fail_at(
    uint64_t n); /* the n-th allocation from now fails; 0 switches this off */

/* Deterministic random numbers for tests and simulators (splitmix64). */
typedef struct sm_rng {
    uint64_t state;
} sm_rng;
uint64_t sm_rng_next(sm_rng *rng);
uint64_t sm_rng_below(sm_rng *rng, uint64_t n); /* 0 .. n-1; n > 0 */
double sm_rng_unit(sm_rng *rng);                /* [0, 1) */

double sm_clock_s(void); /* monotonic seconds */

/* UTF-8. Bytes of the well-formed sequence at the start of text (1..4), 0 when it is malformed,
 * cut short, overlong, a surrogate, or length is 0. *code receives the code point. */
size_t sm_utf8_decode(const char *text, size_t length, uint32_t *code);
/* Terminal columns of a printable code point: 0 for combining marks, 2 for wide East Asian and
 * emoji, 1 otherwise; -1 for control characters, line separators and changes of direction, which
 * must not reach a terminal. */
int sm_utf8_width(uint32_t code);
/* Copy at most size-1 bytes of text without cutting a character; control characters and malformed
 * bytes become '?', a tab or line break one space. Always terminates; returns the bytes written. */
size_t sm_utf8_clean(char *out, size_t size, const char *text, size_t length);
SM_DECLARATIONS_END
#endif
