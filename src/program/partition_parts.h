/* Private to the partition: the job, and what its parts share. */
#pragma once
#include "partition.h"

enum { MAX_PARTS = 8 };

/* A gradient on its way back to one tensor: partial sums that later contributions may still join.
 */
typedef struct share {
    sm_axes at[SM_MAX_RANK];
    sm_axes unreduced;
    int number; /* in order of making, by tensor */
} share;
typedef struct shares {
    int n, made;
    share part[MAX_PARTS];
} shares;
typedef struct moved {
    int tensor;
    sm_axes from, axes;
    sm_phase phase;
    bool gradient;
    int comm;    /* of the partition; -1: a bucket's */
    sm_bits ops; /* forward ops (bit) that it serves */
} moved;

typedef struct job {
    sm_partition *out;
    const sm_program *b;
    sm_error *err;
    sm_lowerings *known; /* or NULL */
    shares gradient[SM_MAX_TENSORS];
    sm_axes partial[SM_MAX_TENSORS]; /* of weights: what their gradients wait for, partial sums */
    sm_axes left; /* the gradient of the op at hand is still a partial sum over these */
    int moves;
    moved done[SM_MAX_COMM]; /* gathers already made in a phase are shared */
    /* a walk: real sizes on a real mesh, and who is told of each task; else NULL */
    const sm_mesh *mesh;
    const double *size;
    sm_program_visit visit;
    void *context;
    sm_program_task *task;
} job;

/* An array as an op meets it. */
typedef struct term {
    int tensor;
    const uint8_t *dim; /* as the op names its dimensions */
    sm_axes at[SM_MAX_RANK];
    sm_axes unreduced;
    bool gradient; /* of the tensor */
} term;

/* ---- iteration.c: at[axis] is the dimension the axis splits, -1 when none ---- */
void part_assign(const sm_program *b, const sm_op *op, int *at);
void part_assign_home(const sm_tensor *out, int *at); /* as the array is stored */
sm_axes part_axes_on(const int *at, int dim);
sm_axes part_axes_of(const sm_program *b, const int *at, sm_dimension_role role);
bool part_appends(const sm_program *b, const sm_op *op); /* writes the cache */
bool part_crosses(const sm_program *b, const sm_op *op); /* between positions and slots */

bool part_of_experts(const sm_program *b, int tensor); /* has a dimension of experts */

/* ---- sizes.c ---- */
/* As it is stored; as the i-th input of an op (its inputs: the output). */
term part_stored(const sm_program *b, int tensor);
term part_operand(const sm_program *b, const sm_op *op, int i);
sm_axes part_mask(const sm_axes *at, int rank);
sm_axes part_stored_mask(const sm_program *b, int tensor);
sm_dimensions part_dims(const sm_program *b, const term *t);
sm_size part_size(const sm_program *b, int tensor, sm_axes mask, double bytes_per_element);
sm_size part_stored_size(const sm_program *b, int tensor, double bytes_per_element);
sm_size part_product(const sm_program *b, sm_dimensions dims, const int *at);
sm_size part_traffic(const sm_program *b, const term *t, const int *at);

/* The tensor axes over which what is made of an array, token by token, is a partial sum: those that
 * it is one over itself, and those that deal out its experts. */
sm_axes part_sums_over(const sm_program *b, int tensor);
/* The gradient of an array: where the array is stored, and whole. That of a term that is stored as
 * partial sums is the gradient of the sum it is added to. */
term part_gradient(const sm_program *b, int tensor);

/* What its bytes scale with. */
static inline sm_role part_role(const sm_tensor *t) { return t->typed ? SM_ROLE_STATE : t->role; }

/* ---- work.c ---- */
void part_einsum_work(job *j, const sm_op *op, const term *in, const term *out, const int *at,
                      sm_phase phase);
void part_attention_work(job *j, const sm_op *op, const int *at, sm_phase phase);
void part_vector_work(job *j, const sm_op *op, sm_phase phase);
void part_kernel_work(job *j, const sm_op *op, const int *at, sm_phase phase);
void part_append_work(job *j, const sm_op *op, const int *at);

/* ---- moves.c ---- */
/* keep: leave the output as it falls. */
void part_einsum(const job *j, int n, const term *in, const term *out, sm_einsum *e);
bool part_lower(job *j, int n, const term *in, const term *out, const int *at, bool keep,
                sm_lowering *low);
/* An array of an op on its way: its operand number (-1: the output), its tensor, whether it is that
 * tensor's gradient, and the axes that shard it before. */
typedef struct traveller {
    int array, tensor;
    bool gradient;
    sm_axes mask;
} traveller;
/* Walk the steps of a lowering and emit the collectives of one array. */
void part_emit(job *j, const sm_op *op, traveller what, const sm_lowering *low, sm_phase phase);

/* ---- walk.c: what a walk is told; nothing happens in a partition ---- */
/* The arrays of the task at hand: operands as they are stored, and how they were lowered (NULL: the
 * op moves nothing). */
void part_task_arrays(job *j, int n, const term *in, const term *out, const sm_lowering *low);
/* This step of the task's lowering is priced as a ring; it repeats one of the forward pass. */
void part_task_ring(job *j, int step);
bool part_task_forward(job *j, const sm_op *op);
bool part_task_gradient(job *j, const sm_op *op, sm_task_kind kind, int tensor, int number);
bool part_task_join(job *j, const sm_op *op, int tensor, const share *from, const share *into);

/* ---- partition.c ---- */
/* Forward ops in order, backward ops in reverse. */
bool part_forward(job *j);
bool part_backward_ops(job *j);

/* ---- backward.c ---- */
bool part_backward(job *j, const sm_op *op);
/* Sends home what has gathered of a tensor's gradient. */
bool part_flush(job *j, const sm_op *op, int tensor);
