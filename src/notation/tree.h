/* tree: what texts and families say, before anything is worked out. Everything lies in the arena of
 * the library that read it and is immutable. Lists are in the order of reading. Private to
 * src/notation; recipes work out formulas, which are expressions alone. */
#pragma once
#include "scalemodel/architecture.h"
#include <string.h>

/* Limits; what passes one is an error that names it. */
enum {
    TREE_MOST_RANK = 8,        /* dimensions of an array */
    TREE_MOST_FACTORS = 8,     /* arrays side by side */
    TREE_MOST_ARGUMENTS = 16,  /* of a call; parameters, results and targets too */
    TREE_MOST_OF_FORMULA = 48, /* of a call of a formula */
    TREE_MOST_DEPTH = 64,      /* expressions within expressions, terms of a sum too */
    TREE_MOST_NAME = 63,       /* letters of a name */
    TREE_MOST_WORD = 4000,     /* letters of a word in quotes */
    TREE_MOST_DIM_NAME = 7,    /* letters of a dimension */
    TREE_MOST_LINES = 400,     /* of a text */
    TREE_MOST_ENTRIES = 2000,  /* of any other list: texts, families, fields, words */
    TREE_MOST_BYTES = 1 << 20, /* of a file */
};

typedef enum tree_kind {
    TREE_NUMBER,  /* 3, 0.5 */
    TREE_WORD,    /* "sliding_attention"; in values only */
    TREE_NAME,    /* hidden_size, vision_config.depth, none; in a line an array without brackets */
    TREE_SIZE,    /* D: the size of a dimension */
    TREE_ELEMENT, /* layer_types[i]: child 0 at index child 1; in values only */
    TREE_MEMBER,  /* block_configs[i].attention.heads: `name` of child 0; in values only */
    TREE_ARRAY,   /* q[B,T,K_X]:fp32; in lines only */
    TREE_PRODUCT, /* q[B,T,H] k[B,S,H]: children are arrays; in lines only */
    TREE_CALL,    /* rmsnorm(x, n[D]); in values one of TREE_FUNCTIONS */
    TREE_NEGATE,
    TREE_NOT,
    TREE_ADD,
    TREE_SUBTRACT,
    TREE_MULTIPLY,
    TREE_DIVIDE,
    TREE_REMAINDER,
    TREE_EQUAL,
    TREE_UNEQUAL,
    TREE_LESS,
    TREE_MORE,
    TREE_AT_MOST,
    TREE_AT_LEAST,
    TREE_IN,
    TREE_AND,
    TREE_OR,
    TREE_CHOICE,   /* child 0 if child 1 else child 2 */
    TREE_OTHERWISE /* child 0, or child 1 where it has no value; in formulas only */
} tree_kind;

typedef struct tree_dim {
    const char *name;
    const char *axes; /* pinned, as written after '_': "X", "{fsdp,tensor}"; NULL none */
    sm_span span;
} tree_dim;

/* A node of an expression. Spans are within the source of the text or assignment it belongs to. */
typedef struct tree {
    tree_kind kind;
    sm_span span;
    const char *name; /* NAME, WORD (without quotes), SIZE, MEMBER, ARRAY, CALL */
    double number;
    int n;      /* children */
    int height; /* 1 without children */
    const struct tree *const *child;
    int rank; /* ARRAY */
    const tree_dim *dim;
    bool diagonal; /* ARRAY: a dimension stands twice */
    bool typed;    /* ARRAY: a type is written */
    sm_dtype type;
} tree;

/* NAME = value; D = value; mixer.bias = value; layer_types[i] = value (by_layer). */
typedef struct tree_set {
    const char *name;
    bool by_layer;
    const tree *value;
    sm_span span; /* of the name */
    const sm_source *source;
    const struct tree_set *next;
} tree_set;

/* Attributes of lines: name, what stands after it: NOTHING, DIM (a dimension or number), MAYBE
 * (that or nothing), ARRAY; what it is in sm_text_line. A dimension that is none takes the
 * attribute with it. */
#define TREE_ATTRIBUTES(X)                                                                         \
    X(CAUSAL, "causal", NOTHING, FLAG(causal))                                                     \
    X(WINDOW, "window", DIM, SIZE(window))                                                         \
    X(CHUNK, "chunk", DIM, SIZE(chunk))                                                            \
    X(GROUPS, "groups", DIM, SIZE(groups))                                                         \
    X(BEST, "best", DIM, SIZE(best))                                                               \
    X(STEP, "step", DIM, SIZE(step))                                                               \
    X(ALONG, "along", DIM, PLACE(along))                                                           \
    X(FIRST, "first", DIM, PLACE(first))                                                           \
    X(OVER, "over", ARRAY, OPERAND(over))                                                          \
    X(SINKS, "sinks", ARRAY, OPERAND(sinks))                                                       \
    X(DISTANCE, "distance", ARRAY, OPERAND(distance))                                              \
    X(SOFTCAP, "softcap", MAYBE, FLAG(capped))                                                     \
    X(ONCE, "once", NOTHING, FLAG(once))                                                           \
    X(WEIGHED, "weighed", NOTHING, FLAG(weighed))                                                  \
    X(SHARED, "shared", MAYBE, OF_WEIGHTS)                                                         \
    X(OWN, "own", NOTHING, OF_WEIGHTS)
#define TREE_ATTRIBUTE_ID(id, ...) TREE_ATTRIBUTE_##id,
typedef enum tree_attribute_kind {
    TREE_ATTRIBUTES(TREE_ATTRIBUTE_ID) TREE_ATTRIBUTE_COUNT
} tree_attribute_kind;

typedef struct tree_attribute {
    tree_attribute_kind kind;
    const tree *value; /* NUMBER, SIZE, ARRAY or NULL, as the table says */
    sm_span span;
    const struct tree_attribute *next;
} tree_attribute;

typedef struct tree_line {
    int targets;
    const tree *const *target; /* NAME or ARRAY */
    const tree *value;
    const tree_attribute *attribute;
    const tree *condition; /* NULL: always */
    sm_span span;
    const struct tree_line *next;
} tree_line;

typedef struct tree_text {
    const char *name;
    bool kernel;
    int parameters;
    const tree *const *parameter; /* NAME or ARRAY */
    const tree_set *option;
    int results;
    const tree *const *result; /* NAME */
    const tree_line *line;
    sm_span span; /* of the name */
    const sm_source *source;
    const struct tree_text *next;
} tree_text;

typedef enum tree_piece_kind { TREE_STACK, TREE_ALL, TREE_PIECE, TREE_LAYERS } tree_piece_kind;
typedef struct tree_piece {
    tree_piece_kind kind;
    const char *name;    /* of ALL: the family whose pieces are taken; NULL: that of its object */
    const tree *count;   /* LAYERS; NULL amends those of the name */
    const tree *text;    /* PIECE, LAYERS: after '='; NULL: the text of the piece's own name. ALL:
                            the object of the config after 'in', NULL: the config itself */
    const tree_set *set; /* bindings; of STACK the dims that follow too */
    sm_span span;        /* of the name */
    const sm_source *source;
    const struct tree_piece *next;
} tree_piece;

/* Words after `inert` or `matters`. */
typedef struct tree_word {
    const char *name;
    sm_span span;
    const struct tree_word *next;
} tree_word;

typedef struct tree_family {
    int names;               /* the first is its own, the others are aliases */
    const tree *const *name; /* NAME or WORD */
    const tree *like;        /* NAME or WORD; NULL none */
    const tree_set *field, *dim;
    bool new_model; /* `model` was written: the pieces of `like` are not taken over */
    const tree_piece *piece;
    const tree_word *inert;
    const sm_source *source;
    const struct tree_family *next;
} tree_family;

/* A statement of a file: its keyword, and where it goes on after it. */
typedef struct tree_statement {
    int keyword; /* a token_kind */
    size_t at;
    const sm_source *source;
    const tree_text *text; /* of text and kernel */
    const tree_family *family;
    const struct tree_statement *next;
} tree_statement;

typedef struct tree_role {
    const char *dim;
    sm_dimension_role role;
    sm_span span;
    const sm_source *source;
    const struct tree_role *next;
} tree_role;

/* Where the next assignment of a list goes. */
typedef struct tree_sets {
    const tree_set *first, *last, **end;
    int n;
} tree_sets;

/* Things by their names, in buckets. */
enum { TREE_BUCKETS = 256 };
typedef struct tree_entry {
    const char *name;
    const void *thing;
    struct tree_entry *next;
} tree_entry;
typedef struct tree_names {
    tree_entry *bucket[TREE_BUCKETS];
} tree_names;
/* NULL when nothing is called so. */
const void *tree_named(const tree_names *names, const char *name);
void tree_add_name(tree_names *names, tree_entry *entry, const char *name, const void *thing);

struct sm_library {
    sm_arena *arena;
    const sm_library *under;
    bool shipped; /* a part of what is shipped, none at first: the index knows the names */
    const tree_role *role, **role_end;
    tree_sets size;
    const tree_word *inert, **inert_end;     /* fields without effect in any family */
    const tree_word *matters, **matters_end; /* fields that speak of sizes or work */
    const tree_text *text, **text_end;
    const tree_family *family, **family_end;
    const tree_statement *statement, **statement_end, *last;
    int roles, texts, families, words;
    tree_names role_named, text_named, family_named;
};

/* Read the formula that the span holds (lexer.h, recipe's expression.h); it lives in the arena.
 * SM_BAD_INPUT with the place. */
sm_status tree_read_formula(const sm_source *source, sm_span span, sm_arena *arena,
                            const tree **out, sm_error *err);

/* ---- what is shipped: shipped.c ---- */
/* The shipped files, all of them, read into the arena. */
sm_status library_whole(sm_arena *arena, const sm_library **out, sm_error *err);
/* Names of the shipped families, in the order of reading, copied into the arena. */
sm_status library_shipped_families(sm_arena *arena, const char *const **name, size_t *n,
                                   sm_error *err);
bool library_shipped_family(const char *name);

/* ---- by name, here or below; NULL when there is none ---- */
const tree_text *tree_find_text(const sm_library *library, const char *name);
const tree_family *tree_find_family(const sm_library *library, const char *name);
/* The one that `family` means by the name, which is not itself: a user's llama may be like llama.
 */
const tree_family *tree_other_family(const sm_library *library, const char *name,
                                     const tree_family *family);
/* Show an expression and all in it to `visit`, until that says false. */
typedef bool (*tree_visit)(void *to, const tree *node);
bool tree_walk(const tree *t, tree_visit visit, void *to);
/* The same for the lines of a text: values and attributes. */
bool tree_walk_text(const tree_text *text, tree_visit visit, void *to);
/* Do two expressions say the same, wherever they stand? */
bool tree_same(const tree *a, const tree *b);
/* WHOLE when no role is given. */
sm_dimension_role tree_role_of(const sm_library *library, const char *dim);
/* In one list. */
const tree_set *tree_find_set(const tree_set *list, const char *name);

/* ---- closed sets of words ----
 * Functions of values: name, least and most arguments. */
#define TREE_FUNCTIONS(X)                                                                          \
    X(MIN, "min", 1, TREE_MOST_ARGUMENTS)                                                          \
    X(MAX, "max", 1, TREE_MOST_ARGUMENTS)                                                          \
    X(FLOOR, "floor", 1, 1)                                                                        \
    X(CEIL, "ceil", 1, 1)                                                                          \
    X(SQRT, "sqrt", 1, 1)                                                                          \
    X(ROUNDUP, "roundup", 2, 2)                                                                    \
    X(LENGTH, "length", 1, 1) /* of a list or word */                                              \
    X(TIMES, "count", 2, 2)   /* how often a list or word holds the second */
#define TREE_FUNCTION_ID(id, ...) TREE_FUNCTION_##id,
typedef enum tree_function { TREE_FUNCTIONS(TREE_FUNCTION_ID) TREE_FUNCTION_COUNT } tree_function;
typedef struct tree_function_row {
    const char *name;
    int least, most;
} tree_function_row;
extern const tree_function_row tree_functions[];

/* The attribute of this kind, or NULL. */
const tree_attribute *tree_find_attribute(const tree_attribute *list, tree_attribute_kind kind);

/* -1 when the word is none of them. */
int tree_find_function(const char *name);
/* Are names the same? Most differ in their first letter. */
static inline bool tree_same_name(const char *a, const char *b) {
    return a == b || (a[0] == b[0] && strcmp(a, b) == 0);
}

/* ---- finding rows of the table ---- */
/* The operator that texts call by this name, -1: none. */
int operator_find(const char *name);
/* The activation that configs call by this word, -1: none. */
int operator_find_activation(const char *word);
