/* run: sharded arrays on real processes. The lowering that was priced is executed step by step:
 * blocks of arrays, collectives over the axes of a mesh, local products. Nothing here knows a
 * price. */
#pragma once
#include "scalemodel/shard.h"

SM_DECLARATIONS_BEGIN

/* ---- communicators ----
 * A group of ranks, 0 .. size-1. Every call is collective over the group unless it says otherwise
 * and every rank must make the same calls in the same order; in debug mode each call first compares
 * its name and size over the group and a mismatch is an error that names both. Buffers do not
 * overlap unless a call says in place. */
typedef struct sm_communicator sm_communicator;
typedef struct sm_request_handle { /* of a started send or receive */
    void *state[4];
} sm_request_handle;
/* A collective: of n elements that a rank sends (all-gather) or that go to each (all-to-all, block
 * i to rank i), that a rank receives the sum of (reduce-scatter, block i of send on rank i), or of
 * the whole (all-reduce and broadcast in place, where send is recv; reduce, to the root's recv). */
typedef struct sm_run_call {
    sm_collective op;
    const void *send;
    void *recv;
    size_t n;
    sm_element element;
    int root;
} sm_run_call;
typedef struct sm_backend {
    const char *name; /* "self", "threads", "openmpi", "mpich" */
    sm_status (*collective)(sm_communicator *c, const sm_run_call *call, sm_error *err);
    /* Not collective: matched by rank, tag and order. */
    sm_status (*start_send)(sm_communicator *c, const void *send, size_t bytes, int to, int tag,
                            sm_request_handle *handle, sm_error *err);
    sm_status (*start_receive)(sm_communicator *c, void *recv, size_t bytes, int from, int tag,
                               sm_request_handle *handle, sm_error *err);
    sm_status (*wait)(sm_communicator *c, sm_request_handle *handle, sm_error *err);
    /* Let transfers go on while this rank computes: a transfer that is done may still be waited
     * for. NULL where they need no help. */
    void (*poke)(sm_communicator *c, sm_request_handle *handle);
    /* Takes back what was sent and not read yet, by a rank that has failed: its buffer may go. NULL
     * where ranks are processes. */
    void (*cancel)(sm_communicator *c, sm_request_handle *send);
    /* Of a send: is its buffer free? Of a receive that was poked: is it there, or will it never
     * come? It must still be waited for, which takes no time then. */
    bool (*done)(sm_communicator *c, sm_request_handle *handle);
    sm_status (*barrier)(sm_communicator *c, sm_error *err);
    /* Ranks of equal colour form a group, ordered by key, then by rank. */
    sm_status (*split)(sm_communicator *c, int colour, int key, sm_communicator **out,
                       sm_error *err);
    void (*free)(sm_communicator *c);
    void (*abort)(sm_communicator *c, const char *sentence); /* ends every rank */
} sm_backend;
/* What went through a communicator, by collective: V as sm_step counts it, summed over calls. */
typedef struct sm_traffic {
    double calls[SM_COLLECTIVE_COUNT], bytes[SM_COLLECTIVE_COUNT], seconds[SM_COLLECTIVE_COUNT];
} sm_traffic;
struct sm_communicator {
    const sm_backend *backend;
    void *state;
    int rank, size;
    bool debug;
    sm_traffic traffic;
};
/* Any of them but a permute, counted, unlike that of the backend: use this. The status of the
 * backend; in debug mode SM_INTERNAL when ranks disagree. The three below are it too. */
sm_status sm_run_collective(sm_communicator *c, const sm_run_call *call, sm_error *err);
/* Each rank sends `bytes` bytes and receives those of all, in order of rank. */
sm_status sm_run_all_gather(sm_communicator *c, const void *send, size_t bytes, void *recv,
                            sm_error *err);
/* Replace `count` elements by their sum over the group, on every rank. */
sm_status sm_run_all_reduce(sm_communicator *c, void *in_place, size_t count, sm_element element,
                            sm_error *err);
/* Replace each of n numbers by the largest over the group; NaN where a rank has one. */
sm_status sm_run_largest(sm_communicator *c, double *number, int n, sm_error *err);
/* Copy `bytes` bytes of rank root to every rank, in place. */
sm_status sm_run_broadcast(sm_communicator *c, void *in_place, size_t bytes, int root,
                           sm_error *err);
/* Send to one rank while receiving from another (either may be -1: none). Counts as a permute. In
 * debug mode every rank of the group takes part, and what one sends another must expect. */
sm_status sm_run_permute(sm_communicator *c, const void *send, int to, void *recv, int from,
                         size_t bytes, sm_error *err);
/* Before a step of a ring, which starts to send `bytes` to one rank or to receive them from another
 * with the calls of the backend: in debug mode compared over the group like a permute, otherwise
 * nothing. */
sm_status sm_run_check_ring(sm_communicator *c, int to, int from, size_t bytes, sm_error *err);
/* Wait until every rank of the group is here. Is not counted. */
sm_status sm_run_barrier(sm_communicator *c, sm_error *err);
/* Free a communicator. NULL is fine. */
void sm_communicator_free(sm_communicator *c);

/* A group of one rank, this process. SM_INTERNAL when out of memory. */
sm_status sm_communicator_self(sm_communicator **out, sm_error *err);
/* What runs on each rank. */
typedef sm_status (*sm_rank_body)(sm_communicator *world, void *context, sm_error *err);
/* Run body on `ranks` threads of this process, each a rank of one group; returns when all have
 * ended, with the first error. SM_BAD_INPUT when there is no rank, SM_INTERNAL when out of memory.
 */
sm_status sm_run_threads(int ranks, sm_rank_body body, void *context, sm_error *err);
/* Run body on every rank of MPI (run/mpi.c, linked only into the programs made for it):
 * initialises, runs, finalises. The status of body, or SM_IO when MPI does not start. A rank that
 * fails ends the others. */
sm_status sm_run_mpi(int *argc, char ***argv, sm_rank_body body, void *context, sm_error *err);

/* ---- a mesh of ranks ----
 * The last axis varies fastest: rank = ((x0 * n1 + x1) * n2 + x2) ... */
typedef struct sm_rank_mesh {
    sm_mesh mesh;
    sm_communicator *world;
    int at[SM_MAX_AXES];                     /* this rank's coordinates */
    sm_communicator *over[1 << SM_MAX_AXES]; /* groups along sets of axes, made on demand */
    struct sm_rank_mesh *split; /* the same ranks with axes split into parts, and so on */
} sm_rank_mesh;
/* Lay a mesh on the ranks of world. SM_BAD_INPUT when the product of the axes is not the size of
 * world, SM_INTERNAL when out of memory. */
sm_status sm_rank_mesh_new(sm_communicator *world, const sm_mesh *mesh, sm_rank_mesh **out,
                           sm_error *err);
/* Free a mesh with its groups, but not world. NULL is fine. */
void sm_rank_mesh_free(sm_rank_mesh *m);
/* Ranks that differ in these axes alone, in mesh order. Made at the first call, which is
 * collective; NULL with the backend's error. The mesh owns it. */
sm_communicator *sm_rank_mesh_over(sm_rank_mesh *m, sm_axes axes, sm_error *err);

/* ---- blocks ---- */
/* Make a block of these sizes in zeroed memory, freed by sm_local_block_free. SM_INTERNAL when out
 * of memory. */
sm_status sm_local_block_new(sm_element element, int rank, const size_t *size, sm_local_block *out,
                             sm_error *err);
/* Free the memory of a block; data becomes NULL. */
void sm_local_block_free(sm_local_block *b);
/* A dimension of a copy: so many elements, so many elements apart where they are read and written.
 */
typedef struct sm_copied {
    size_t count, from, to;
} sm_copied;
/* Copy elements of `width` bytes between arrays in any two orders: 2, 4 or 8 bytes each, at most 2
 * SM_MAX_RANK dimensions. */
void sm_copy_strided(const sm_copied *dim, int rank, const void *from, void *to, size_t width);
/* The block of an array of an einsum on this rank, filled from the global position of each element
 * (an unreduced axis: whole on the axis' first rank, zero on the others); fill NULL: zero. */
typedef double (*sm_fill)(const size_t *position, int rank, void *context);
typedef struct sm_filling {
    sm_fill fill;
    void *context;
} sm_filling;
/* Make this rank's block of an array of an einsum and fill it. SM_INTERNAL when out of memory. */
sm_status sm_local_block_of(const sm_rank_mesh *m, const sm_einsum *einsum, const sm_array *array,
                            sm_element element, const sm_filling *filling, sm_local_block *out,
                            sm_error *err);
/* Apply a slice or collective of a lowering to the block of an array laid out as `before`: *result
 * is a new block, laid out as step->after. The status of the backend, or SM_INTERNAL when out of
 * memory. */
sm_status sm_local_block_step(sm_rank_mesh *m, const sm_step *step, const sm_layout *before,
                              const sm_local_block *block, sm_local_block *result, sm_error *err);
/* out = local einsum of in[0] and in[1] (or the sum over the indices of one operand), any einsum of
 * the notation: cblas for floats, plain loops for whole numbers. labels: index number of each
 * dimension. SM_INTERNAL when out of memory. */
sm_status sm_local_einsum(int operands, const sm_local_block *in,
                          const int8_t (*labels)[SM_MAX_RANK], const int8_t *out_labels,
                          sm_local_block *out, sm_error *err);

/* ---- a lowering ---- */
typedef struct sm_run_step {
    double bytes_counted; /* V as in sm_step, from the traffic of the communicator */
    double seconds;
} sm_run_step;
typedef struct sm_run_result {
    sm_run_step step[SM_MAX_STEPS];
    double seconds;
    sm_local_block out;
} sm_run_result;
/* How it is run. overlapped: a step that runs inside the einsum as a ring (sm_lowering_overlaps of
 * cost says which can), -1: none; its seconds are those spent waiting for transfers. directions: 1,
 * or 2: half of each chunk goes each way round. */
typedef struct sm_run_way {
    int overlapped, directions;
} sm_run_way;
/* Run a lowering step by step. in: blocks as stored; freed by the caller. out: the result and the
 * seconds and bytes of each step. SM_BAD_INPUT when the step to overlap cannot run inside the
 * einsum, SM_INTERNAL when out of memory, or the status of the backend. */
sm_status sm_run_lowering(sm_rank_mesh *m, const sm_einsum *einsum, const sm_lowering *lowering,
                          const sm_run_way *way, const sm_local_block *in, sm_run_result *out,
                          sm_error *err);
SM_DECLARATIONS_END
