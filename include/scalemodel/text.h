/* text: sources with spans, errors that underline them, quantities, nearest names. */
#ifndef SCALEMODEL_TEXT_H
#define SCALEMODEL_TEXT_H
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

sm_source sm_source_of(const char *name, const char *text); /* of a 0-terminated string */
/* Fill *err with line, column, excerpt of span; returns SM_BAD_INPUT. */
sm_status sm_fail_at(sm_error *err, const sm_source *source, sm_span span, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Print an error the way the CLI shows it:
 *   file:line:col: sentence
 *     excerpt
 *         ^~~~
 * into out (always 0-terminated, no final newline); returns the length it wants. */
size_t sm_error_format(const sm_error *err, char *out, size_t size);

/* The nearest of n names by edit distance (case-insensitive), or NULL when none is near. */
const char *sm_nearest(const char *word, size_t length, const char *const *names, size_t n);

/* Quantities: "4M" "15T" "8k" (powers of 1000 for counts), "16GiB" "80GB" "15ms" "1.2e12B/s"
 * "4096". k K M G B T P E prefixes for counts ("B" and "G" both mean 1e9 there). */
typedef enum sm_quantity_kind {
    SM_Q_COUNT,       /* tokens, sizes: 4M, 4096, 1e6; result is >= 0 */
    SM_Q_BYTES,       /* 16GiB, 80GB, 512MB, 100 */
    SM_Q_SECONDS,     /* 15ms, 1us, 2s, 1h, 3d */
    SM_Q_BYTES_PER_S, /* 450GB/s, 1.2e12B/s */
    SM_Q_FLOPS_PER_S, /* 989TFLOP/s */
    SM_Q_USD          /* 4.2 */
} sm_quantity_kind;
/* Parse the whole span. Rejects NaN, infinity, negatives, trailing garbage and overflow. */
sm_status sm_quantity_parse(const sm_source *source, sm_span span, sm_quantity_kind kind,
                            double *value, sm_error *err);
/* As above, and the value must be a whole number from lowest to highest. */
sm_status sm_integer_parse(const sm_source *source, sm_span span, int64_t lowest, int64_t highest,
                           int64_t *value, sm_error *err);

/* The next of words separated by blanks: *word, and its length (0: the end); *rest moves on. */
size_t sm_next_word(const char **rest, const char **word);
/* Is word the name or one of the aliases (separated by blanks, may be NULL), in any case? */
bool sm_is_called(const char *name, const char *aliases, const char *word, size_t length);

/* ---- closed sets of words and lists ("fsdp=2,order=tensor.data") ---- */
typedef struct sm_words {
    const char *const *word;
    int n;
} sm_words;
/* [from, to) of the text without blanks at its ends. */
sm_span sm_source_trim(const sm_source *source, size_t from, size_t to);
/* The part of span from *at to the next separator, trimmed; *at moves past it, beyond the span's
 * end after the last part. */
sm_span sm_next_part(const sm_source *source, sm_span span, char separator, size_t *at);
int sm_words_find(sm_words words, const sm_source *source, sm_span span); /* -1 if absent */
/* SM_BAD_INPUT: `what` ("a plan has no key") "word"; the nearest word, or all of them. */
sm_status sm_words_fail(sm_words words, const sm_source *source, sm_span span, const char *what,
                        sm_error *err);
/* A list of distinct words joined by '.', into list[0 .. words.n): what it leaves out follows in
 * the order of rest. what: "no axis is named". */
sm_status sm_words_order(sm_words words, const sm_source *source, sm_span span, const char *what,
                         const uint8_t *rest, uint8_t *list, sm_error *err);

/* A cursor for the small hand-written grammars (notation, plans, systems). */
typedef struct sm_cursor {
    const sm_source *source;
    size_t at;
} sm_cursor;
int sm_cursor_peek(const sm_cursor *c);                     /* next byte, -1 at the end */
bool sm_cursor_accept(sm_cursor *c, char byte);             /* skips blanks first */
bool sm_cursor_accept_word(sm_cursor *c, const char *word); /* "->", "slices"; skips blanks first */
void sm_cursor_blanks(sm_cursor *c);
bool sm_cursor_end(sm_cursor *c);       /* skips blanks; true at the end */
sm_span sm_cursor_name(sm_cursor *c);   /* [A-Za-z][A-Za-z0-9]*; length 0 if none */
sm_span sm_cursor_digits(sm_cursor *c); /* [0-9]+; length 0 if none */
SM_DECLARATIONS_END
#endif
