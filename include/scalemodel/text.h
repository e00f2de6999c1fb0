/* text: sources with spans, errors that underline them, quantities, nearest names. */
#pragma once
#include "scalemodel/base.h"

SM_DECLARATIONS_BEGIN

/* A piece of input text with a name for errors ("model.json", "--dims", "argument 1").
 * text need not be 0-terminated and may hold any bytes. */
typedef struct sm_source {
    const char *name;
    const char *text;
    size_t length;
} sm_source;
typedef struct sm_span {
    size_t offset, length;
} sm_span;
/* Bytes that are read one piece after the other: a file, unpacked on the way. */
typedef struct sm_bytes {
    const char *name;
    void *context;
    /* Up to `most` bytes into `to`; *got: how many, 0 at the end. */
    sm_status (*read)(void *context, char *to, size_t most, size_t *got, sm_error *err);
} sm_bytes;

/* A source of a 0-terminated text, which is not copied. NULL stands for "" in both arguments. */
sm_source sm_source_of(const char *name, const char *text);
/* Fill *err (which may be NULL) with a sentence, printf-like, and with line, column and excerpt of
 * the span; return SM_BAD_INPUT. source NULL: the error has no place. */
sm_status sm_fail_at(sm_error *err, const sm_source *source, sm_span span, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* As sm_fail_at, with a va_list. */
sm_status sm_vfail_at(sm_error *err, const sm_source *source, sm_span span, const char *format,
                      va_list args);
/* Print an error the way the CLI shows it:
 *   file:line:col: sentence
 *     excerpt
 *         ^~~~
 * into out (always 0-terminated, no final newline); returns the length it wants. */
size_t sm_error_format(const sm_error *err, char *out, size_t size);

/* The nearest of n names to the word (`length` bytes) by edit distance, in any case of letters.
 * NULL when none is near. Names may be NULL: they are passed over. */
const char *sm_nearest(const char *word, size_t length, const char *const *names, size_t n);

/* Quantities: "4M" "15T" "8k" (powers of 1000 for counts), "16GiB" "80GB" "15ms" "1.2e12B/s"
 * "4096". k K M G B T P E prefixes for counts ("B" and "G" both mean 1e9 there). */
typedef enum sm_quantity_kind {
    SM_Q_COUNT,       /* tokens, sizes: 4M, 4096, 1e6; result is >= 0 */
    SM_Q_BYTES,       /* 16GiB, 80GB, 512MB, 100 */
    SM_Q_SECONDS,     /* 15ms, 1us, 2s, 1h, 3d */
    SM_Q_BYTES_PER_S, /* 450GB/s, 1.2e12B/s */
    SM_Q_FLOPS_PER_S, /* 989TFLOP/s */
    SM_Q_PER_S,       /* events: 50/s, 3000/min, 10/h, 50 */
    SM_Q_USD          /* 4.2 */
} sm_quantity_kind;
/* Read a quantity that fills the whole span, in the unit of its kind (counts, bytes, seconds,
 * bytes/s, FLOP/s, events/s, USD). SM_BAD_INPUT with the place for NaN, infinity, negatives,
 * trailing garbage and overflow. */
sm_status sm_quantity_parse(const sm_source *source, sm_span span, sm_quantity_kind kind,
                            double *value, sm_error *err);
/* Read a whole number from lowest to highest, written as a count ("4096", "4k"). SM_BAD_INPUT as
 * sm_quantity_parse, and out of that range. */
sm_status sm_integer_parse(const sm_source *source, sm_span span, int64_t lowest, int64_t highest,
                           int64_t *value, sm_error *err);

/* Find the next of words separated by blanks: *word is its start, and *rest moves past it. Returns
 * its length in bytes, 0 at the end. */
size_t sm_next_word(const char **rest, const char **word);
/* Of two `const char *` in an array, byte by byte: for qsort and bsearch. */
int sm_compare_texts(const void *a, const void *b);
/* Is the word (`length` bytes) the name or one of the aliases, in any case of letters, '_' and ' '
 * as good as '-'? The aliases are separated by blanks; NULL is none. NAME is owner/NAME, too. */
bool sm_is_called(const char *name, const char *aliases, const char *word, size_t length);

/* ---- closed sets of words and lists ("fsdp=2,order=tensor.data") ---- */
typedef struct sm_words {
    const char *const *word;
    int n;
} sm_words;
/* The part [from, to) of the text without blanks at its ends. */
sm_span sm_source_trim(const sm_source *source, size_t from, size_t to);
/* The part of span from *at to the next separator, trimmed; *at moves past it, beyond the span's
 * end after the last part. */
sm_span sm_next_part(const sm_source *source, sm_span span, char separator, size_t *at);
/* The number of the word that the span holds, compared byte by byte; -1 when it is none of them. */
int sm_words_find(sm_words words, const sm_source *source, sm_span span);
/* SM_BAD_INPUT: `what` ("a plan has no key") "word"; the nearest word, or all of them. */
sm_status sm_words_fail(sm_words words, const sm_source *source, sm_span span, const char *what,
                        sm_error *err);
/* Read a list of distinct words joined by '.', into list[0 .. words.n): what it leaves out follows
 * in the order of rest. what: "no axis is named". SM_BAD_INPUT with the place of a word that is
 * unknown or stands twice. */
sm_status sm_words_order(sm_words words, const sm_source *source, sm_span span, const char *what,
                         const uint8_t *rest, uint8_t *list, sm_error *err);

/* A cursor for the small hand-written grammars (notation, plans, systems). */
typedef struct sm_cursor {
    const sm_source *source;
    size_t at;
} sm_cursor;
/* The byte at the cursor, 0 to 255, or -1 at the end. Skips nothing. */
int sm_cursor_peek(const sm_cursor *c);
/* Skip blanks, then take the byte if it is next. False, with only the blanks skipped, otherwise. */
bool sm_cursor_accept(sm_cursor *c, char byte);
/* Skip blanks, then take the word ("->", "slices") if the text goes on with it. False, with only
 * the blanks skipped, otherwise. The word need not end there. */
bool sm_cursor_accept_word(sm_cursor *c, const char *word);
/* Skip blanks: spaces, tabs, ends of lines. */
void sm_cursor_blanks(sm_cursor *c);
/* Skip blanks, then say whether the text ends. */
bool sm_cursor_end(sm_cursor *c);
/* Take a name, [A-Za-z][A-Za-z0-9]*, at the cursor; length 0 if there is none. Skips no blanks. */
sm_span sm_cursor_name(sm_cursor *c);
/* Take digits, [0-9]+, at the cursor; length 0 if there are none. Skips no blanks. */
sm_span sm_cursor_digits(sm_cursor *c);
SM_DECLARATIONS_END
