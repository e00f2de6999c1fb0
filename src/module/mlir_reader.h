/* mlir_reader: StableHLO text as it is read. Functions are read where they are called, so that a
 * module has loops and branches alone; each region of these becomes a computation, to which a tuple
 * hands what it reads of the ones around it. Private to src/module. */
#pragma once
#include "hlo_reader.h"
#include "scalemodel/shard.h"

enum { MLIR_MOST_INSTRUCTIONS = 1 << 20, MLIR_MOST_CAPTURED = 1 << 12, MLIR_MOST_BYTES = 1 << 28 };

/* Keys of data/formats/modules.json, and where the list that each fills lies. */
typedef struct mlir_list {
    const char *key;
    size_t at;
} mlir_list;
extern const mlir_list modules_lists[], modules_windows[];
extern const size_t modules_lists_count, modules_windows_count;

typedef struct mlir_function {
    sm_span name;
    size_t at; /* of the '(' before its arguments */
    int line;
} mlir_function;

/* loc("name"(#loc3)), loc("file":12:3): names lead to other locations. */
typedef struct mlir_location {
    int64_t number;
    const char *name, *file;
    int line;
    int64_t of; /* -1: none */
} mlir_location;

typedef struct mlir_captured {
    int outer, inner; /* the same value, in the computation around and in this one */
    bool handed;      /* in the tuple; else a constant, made again */
} mlir_captured;

typedef struct mlir_body { /* a computation as it is made */
    struct mlir_body *outer;
    hlo_list instructions; /* sm_instruction */
    hlo_list captured;     /* mlir_captured */
    int parameter, arguments, handed;
} mlir_body;

typedef struct mlir_scope { /* names that are seen */
    struct mlir_scope *outer;
    mlir_body *body;
    module_names names; /* to the first of their values */
    hlo_list values;    /* int: instructions of body */
} mlir_scope;

typedef struct mlir_reader {
    hlo_reader *r;
    hlo_list functions, locations;
    mlir_scope *scope;
    hlo_list returned;  /* int: what the block at hand returned */
    const char *prefix; /* op_name of the calls around */
    int depth;          /* of functions and regions within each other */
    int made;           /* instructions, of all computations */
    size_t bytes;       /* of functions, as often as they are called */
    sm_mesh_cuts *cuts; /* of the mesh of shardings in XLA's form; NULL: there are none */
    sm_span asked;      /* the sharding in that form of what is read; length 0: none */
} mlir_reader;

/* ---- computations as they are made (mlir_body.c) ---- */
/* The word is next: it is not taken. */
bool mlir_next_is(mlir_reader *m, const char *word);
sm_instruction *mlir_at(mlir_body *b, int i);
sm_instruction mlir_blank(sm_module_opcode opcode, const sm_module_shape *shape);
/* Append an instruction: its number, 0 after an error. */
int mlir_emit(mlir_reader *m, mlir_body *b, const sm_instruction *it);
bool mlir_with_operands(mlir_reader *m, sm_instruction *it, const int *operand, size_t n);
int mlir_emit_of(mlir_reader *m, mlir_body *b, sm_instruction it, const int *operand, size_t n);
int mlir_element_of(mlir_reader *m, mlir_body *b, int tuple, int i, const sm_module_shape *shape);
int mlir_tuple_of(mlir_reader *m, mlir_body *b, const int *value, size_t n);
/* A value to another sharding, or across the border of what the program divides itself. */
int mlir_resharded(mlir_reader *m, int value, const char *target, const sm_module_shape *shape,
                   const sm_module_sharding *sharding);
bool mlir_keep_int(mlir_reader *m, hlo_list *list, int value);
/* Instructions of the computation at hand under a name. */
bool mlir_bind(mlir_reader *m, sm_span name, const int *value, int n);
/* %name or %name#2, of this computation or one around it, in this one. */
bool mlir_read_value(mlir_reader *m, int *out);
/* (%a, %b) */
bool mlir_read_operand_list(mlir_reader *m, hlo_list *out);
void mlir_enter(mlir_reader *m, mlir_scope *s, mlir_scope *outer, mlir_body *body);
void mlir_leave(mlir_reader *m, mlir_scope *s, mlir_scope *back);
int mlir_finish_body(mlir_reader *m, mlir_body *b, int root, const char *name);
void mlir_free_body(mlir_body *b);
/* The first n elements of a tuple become what was returned. */
bool mlir_take_elements(mlir_reader *m, int tuple, int n);
bool mlir_skip_types(mlir_reader *m);
/* Types after ':': those of the results. */
bool mlir_result_types(mlir_reader *m, hlo_list *types, int results);

/* ---- operations with regions (mlir_regions.c): results are in m->returned ---- */
bool mlir_read_while(mlir_reader *m);
bool mlir_read_case(mlir_reader *m);
bool mlir_read_manual(mlir_reader *m, int results);
/* Statements up to '}', which is taken (mlir_text.c); m->returned: what they return. */
bool mlir_read_block(mlir_reader *m);

/* ---- types, shardings, places (mlir_types.c) ---- */
/* tensor<8x128xbf16>, a token, a tuple. NULL after an error. */
const sm_module_shape *mlir_type(mlir_reader *m);
const sm_module_shape *mlir_tuple_shape(mlir_reader *m, const sm_module_shape *const *part, int n);
/* <@mesh, [{"data"}, {?}]>, from the '<' on. NULL after an error. */
const sm_module_sharding *mlir_sharding(mlir_reader *m);
/* The mesh on which all shardings in XLA's form lie, as the module's; such a sharding, which is
 * next; and what it says of the instruction, once its shape is known (mlir_xla.c). */
bool mlir_xla_mesh(mlir_reader *m);
bool mlir_xla_sharding(mlir_reader *m, sm_instruction *it);
bool mlir_xla_asked(mlir_reader *m, sm_instruction *it);
/* "x", "y" up to '}', which is taken: axes of the module's mesh. */
bool mlir_axes(mlir_reader *m, sm_module_list *out);
/* What stands in the parentheses of loc(...), which are taken. */
bool mlir_location_of(mlir_reader *m, mlir_location *out);
/* loc(...) where it is next: where the user's program made an instruction. */
void mlir_place(mlir_reader *m, sm_instruction *it);

/* ---- attributes (mlir_attributes.c) ---- */
/* key = value, key = value up to `end`, which is taken; inner: values may have ": type". */
bool mlir_attributes(mlir_reader *m, sm_instruction *it, char end);
/* The value of a key, after the '='. */
bool mlir_attribute(mlir_reader *m, sm_instruction *it, sm_span key, bool inner);
/* Letters of a word that says how a comparison compares, of a convolution's window from its kernel:
 * what is known when all of an instruction was read. */
void mlir_complete(mlir_reader *m, const sm_computation *in, sm_instruction *it);

/* The whole text into r->module. */
void mlir_parse(hlo_reader *r);
