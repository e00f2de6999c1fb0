/* Moving one array from a sharding to another, as a sequence of steps. */
#pragma once
#include "route.h"

typedef struct sm_reshard {
    const sm_einsum *einsum;
    const sm_mesh *mesh;
    sm_lowering *lowering;   /* steps are appended here */
    sm_axes assisting;       /* axes that help to gather where they are idle */
    int array;               /* operand number, or -1 for the output */
    double other_bytes;      /* live on a chip beside this array and its versions */
    double stored_bytes;     /* of the array as stored; it stays live; 0 for the output */
    double version_bytes;    /* of the newest version when it is not the stored one, else 0 */
    const sm_lowering *move; /* the way to take, or NULL: that of least bytes */
    const sm_lowering *as;   /* whose parts the axes of the mesh are, where move is on whole axes */
    bool full;               /* a step was dropped: there are more than SM_MAX_STEPS */
    bool bounded; /* set before; stays when no way with parts of axes could do with less */
} sm_reshard;

/* Appends the steps of least bytes that bring an array to the sharding of another. Both have the
 * same indices in the same order. False when there is no way. */
bool sm_reshard_run(sm_reshard *r, const sm_array *from, const sm_array *to);
/* Appends one step and keeps the peak of live bytes. */
void sm_lowering_append(sm_lowering *lowering, const sm_step *step, double live_bytes, bool *full);

int sm_axis_place(const sm_array *array,
                  int axis); /* the dimension it shards, or SM_REPLICATED, SM_UNREDUCED */
void sm_dim_append(sm_dim *dim, int axis);
