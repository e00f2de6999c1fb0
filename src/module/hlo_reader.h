/* hlo_reader: the text of a module as it is read. Errors stick: after the first one every reader
 * returns at once, so that a caller checks where it matters. Private to src/module. */
#pragma once

#include "module_parts.h"

/* Limits; what passes one is an error that names it. */
enum {
    HLO_MOST_BYTES = 1 << 30,
    HLO_MOST_RANK = 32,
    HLO_MOST_DEPTH = 64, /* tuples within tuples */
    HLO_MOST_DEVICES = 1 << 20
};

/* A computation that is named before or after it is defined. */
typedef struct hlo_mention {
    sm_span span;
    int *place; /* where its number belongs */
} hlo_mention;

typedef struct hlo_list { /* grows; freed at the end */
    void *item;
    size_t n, room;
} hlo_list;

typedef struct hlo_reader {
    const sm_source *source;
    sm_arena *arena;
    sm_error *err;
    sm_status status;
    size_t at;
    int line; /* of `at` */
    sm_module module;
    int64_t members;       /* of its groups so far */
    hlo_list computations; /* sm_computation */
    module_names computation_names;
    hlo_list instructions; /* sm_instruction, of the computation at hand */
    module_names names;
    hlo_list numbers;              /* int64_t, of the list at hand */
    hlo_list operands;             /* int, of the instruction at hand */
    hlo_list mentions;             /* hlo_mention */
    hlo_list table[MODULE_TABLES]; /* module_row */
    const sm_module_shape *recent; /* the last shape read: texts repeat them */
    sm_span recent_span;
} hlo_reader;

/* ---- scanning ---- */
/* Remember the first error: at a span, or out of memory. False. */
bool hlo_fail(hlo_reader *r, sm_span span, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same of the byte that is next. */
bool hlo_fail_here(hlo_reader *r, const char *sentence);
bool hlo_no_memory(hlo_reader *r);
/* Past blanks, ends of lines and comments. Returns the byte there, -1 at the end. */
int hlo_next(hlo_reader *r);
/* The byte is next: take it. Or it must be. */
bool hlo_accept(hlo_reader *r, char byte);
bool hlo_expect(hlo_reader *r, char byte, const char *where);
/* A name: letters, digits, _ . - ; a leading % is dropped. length 0: none. */
sm_span hlo_name(hlo_reader *r);
bool hlo_is(const hlo_reader *r, sm_span span, const char *word);
const char *hlo_copy(hlo_reader *r, sm_span span);
/* The same without the backslashes of a text in quotes. */
const char *hlo_unescaped(hlo_reader *r, sm_span span);
/* A whole number with its sign. False when there is none, which is no error. */
bool hlo_number(hlo_reader *r, int64_t *value);
/* Text in quotes: the span between them. False when there is none. */
bool hlo_quoted(hlo_reader *r, sm_span *span);
/* Past a value: brackets and quotes are matched; it ends before a comma or a closing bracket. */
sm_span hlo_skip_value(hlo_reader *r);
/* Past the bracket that is next, up to the one that closes it. */
void hlo_skip_brackets(hlo_reader *r);
/* Append an element of so many bytes; NULL when out of memory. */
void *hlo_push(hlo_reader *r, hlo_list *list, size_t bytes);
/* Numbers apart by `between`, up to `end`, which is taken: {0,1}, [8,128]. */
bool hlo_numbers(hlo_reader *r, char between, char end, sm_module_list *out);
/* An array of numbers in the arena. */
bool hlo_keep_numbers(hlo_reader *r, sm_module_list *out);

/* ---- parts ---- */
const sm_module_shape *hlo_shape(hlo_reader *r);
/* What follows the operands: ", key=value ..." */
bool hlo_attributes(hlo_reader *r, sm_instruction *it);
/* Its convolution or window, made when first asked for. NULL when out of memory. */
sm_module_convolution *hlo_convolution(hlo_reader *r, sm_instruction *it);
bool hlo_aliases(hlo_reader *r, sm_module_list *out);
/* replica_groups and source_target_pairs, after the '='. */
bool hlo_groups(hlo_reader *r, sm_module_groups *out);
bool hlo_pairs(hlo_reader *r, sm_module_groups *out);
/* "data"=4, "model"=2 become the axes of the module. */
bool hlo_axes(hlo_reader *r, const char *at, const char *end);
/* The same from the attributes of the module's header. */
bool hlo_mesh_axes(hlo_reader *r, sm_span attributes);
/* Tables of stack frames, by the word that heads them; false when it heads none. */
bool hlo_table(hlo_reader *r, sm_span word);
/* The tables that were read. */
module_frames hlo_frames(const hlo_reader *r);
