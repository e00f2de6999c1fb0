/* spmd_parts: a module while it is partitioned. Private to src/spmd.
 *
 * A value is an array of the program: the result of an instruction, or what a loop carries under
 * one number. An operation relates the dimensions of its arrays by factors: indices of its
 * iteration space, of which a dimension is a product (of more than one where it is reshaped). */
#pragma once
#include "scalemodel/spmd.h"

enum { SPMD_TENSORS = 12, SPMD_FACTORS = 24 };

typedef struct spmd_value {
    const sm_module_shape *shape;
    sm_array at;        /* the axes of each dimension; rank 0 of what cannot be cut */
    sm_axes used;       /* all of them */
    unsigned closed;    /* dimensions (bit) that may not be cut further */
    bool made_anywhere; /* from constants alone: each device can make any part of it */
    int uses;
} spmd_value;

typedef struct spmd_tensor {
    int value; /* -1: none */
    int rank;
    struct {
        int n;
        int8_t factor[SM_MAX_RANK]; /* the major first */
    } dim[SM_MAX_RANK];
} spmd_tensor;

/* How the arrays of an operation hang together; results come after operands. */
typedef struct spmd_rule {
    int factors, tensors, operands;
    double size[SPMD_FACTORS];
    uint32_t blocked;    /* factors (bit) that may not be cut */
    uint32_t contracted; /* factors that no result has */
    bool multiplies;     /* a product */
    bool passes;         /* each element of the result is made of elements at its place */
    spmd_tensor tensor[SPMD_TENSORS];
} spmd_rule;

typedef struct spmd {
    const sm_module *module;
    sm_arena *arena;
    sm_error *err;
    bool failed; /* out of memory */
    sm_mesh mesh;
    int **value_of; /* of each computation: the value of each instruction, -1: none */
    spmd_value *value;
    int values;
    const int *
        *elements; /* of each computation: the values of the elements of its parameter; NULL */
    const int ***wanted; /* of each computation and instruction: of a tuple the values that its
                            operands become; NULL: as they are */
} spmd;

/* Number the values, join those that loops carry; arrays that are asked for get their shardings.
 * False when out of memory. */
bool spmd_find_values(spmd *s);
/* The rule of an instruction; false when it has none: its arrays are whole on every device. */
bool spmd_rule_of(const spmd *s, int computation, int instruction, spmd_rule *rule);
/* Which axes of an array's dimensions cut which factor: list[factor] gets them, major first. */
typedef struct spmd_axes {
    int n;
    uint8_t axis[SM_MAX_AXES];
} spmd_axes;
void spmd_project(const spmd *s, const spmd_rule *rule, const spmd_tensor *t, const sm_array *at,
                  spmd_axes list[SPMD_FACTORS]);
/* Spread shardings until nothing changes. */
void spmd_propagate(spmd *s);
