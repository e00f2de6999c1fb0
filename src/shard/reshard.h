/* Moving one array from a sharding to another, as a sequence of steps. */
#pragma once
#include "route.h"

typedef struct sm_reshard {
    const sm_einsum *einsum;
    const sm_mesh *mesh;
    sm_routes *routes;     /* NULL: each is looked for */
    const sm_route *route; /* the one to take; NULL: that of least bytes */
    sm_lowering *lowering; /* steps are appended here */
    sm_axes assisting;     /* axes that help to gather where they are idle */
    int array;             /* operand number, or -1 for the output */
    double other_bytes;    /* live on a chip beside this array and its versions */
    double stored_bytes;   /* of the array as stored; it stays live; 0 for the output */
    double version_bytes;  /* of the newest version when it is not the stored one, else 0 */
    bool full;             /* a step was dropped: there are more than SM_MAX_STEPS */
    bool bounded;          /* set before; stays when no way with parts of axes could do with less */
} sm_reshard;

/* As sm_einsum_lower and sm_einsum_lower_ways, with the routes that are known (or NULL). */
sm_status sm_einsum_lower_by(sm_routes *routes, const sm_einsum *einsum, const sm_mesh *mesh,
                             const int8_t *at, const sm_array *want, bool keep_unreduced,
                             sm_lowering *lowering, sm_error *err);
int sm_einsum_lower_ways_by(sm_routes *routes, const sm_einsum *einsum, const sm_mesh *mesh,
                            const int8_t *at, const sm_array *want, sm_lowering_visit each,
                            void *context, sm_error *err);
/* From the sharding of one array to that of another; both have the same indices in the same order.
 */
void sm_journey_between(const sm_mesh *mesh, const sm_einsum *einsum, const sm_array *from,
                        const sm_array *to, sm_journey *journey);
/* Appends the steps that bring an array to the sharding of another. False when there is no way. */
bool sm_reshard_run(sm_reshard *r, const sm_array *from, const sm_array *to);
/* Splits some axes of a mesh into primes, as far as SM_MAX_AXES parts go. False, with no parts,
 * when every axis stays whole. */
bool sm_lowering_split(sm_lowering *lowering, const sm_mesh *mesh, sm_axes axes);
/* A layout on whole axes as it is on their parts. */
sm_layout sm_lowering_layout(const sm_lowering *lowering, const sm_layout *layout);
/* Do the parts of an axis cut a dimension of this length where the axis does, padded or not? */
bool sm_axis_parts_fit(double length, int chips);
/* Appends one step and keeps the peak of live bytes. */
void sm_lowering_append(sm_lowering *lowering, const sm_step *step, double live_bytes, bool *full);

int sm_axis_place(const sm_array *array,
                  int axis); /* the dimension it shards, or SM_REPLICATED, SM_UNREDUCED */
void sm_dim_append(sm_dim *dim, int axis);
