/* memory_account: bytes that a rank of the runtime has in use, by what they are for, and the most
 * it ever had. Ranks may be threads of one process, so each thread says whose account its
 * allocations go to; a block may be freed by any thread. */
#pragma once
#include "scalemodel/run_train.h"
#include <stdatomic.h>
#include <assert.h>

/* Parts as in sm_train_memory. Host memory is counted apart: it is in no total. */
typedef struct memory_account {
    atomic_llong in_use[SM_TRAIN_MEMORY_COUNT];
    double most[SM_TRAIN_MEMORY_COUNT];           /* of each part */
    double at_most[SM_TRAIN_MEMORY_COUNT], total; /* when their sum, host apart, was greatest */
} memory_account;

/* From now on what this thread allocates goes to this account (NULL: none) as `part`. Returns what
 * was so before, to be restored. */
typedef struct memory_scope {
    memory_account *account;
    sm_train_memory_part part;
} memory_scope;
memory_scope memory_enter(memory_account *account, sm_train_memory_part part);
/* The same account, another part. */
memory_scope memory_for(sm_train_memory_part part);
void memory_restore(memory_scope before);

/* sm_malloc and sm_calloc, accounted; freed by memory_free (NULL is fine) alone. */
void *memory_new(size_t bytes);
void *memory_new_cleared(size_t bytes);
void memory_free(void *block);
/* The block is for something else now (NULL is fine). */
void memory_mark(void *block, sm_train_memory_part part);

/* The greatest so far are forgotten. */
void memory_begin(memory_account *account);

/* Between ranks and coordinates. */
/* The coordinates along `axes` of the number-th rank of a group over them; the last axis varies
 * fastest. Other coordinates stay as they are. */
void coordinates_of(const sm_mesh *mesh, sm_axes axes, int number, int *at);
/* Those of the number-th rank of this rank's group over the axes. at: SM_MAX_AXES of them. */
void member_of(const sm_rank_mesh *m, sm_axes axes, int number, int *at);
/* The ranks of `m` as a mesh of other axes of as many chips. `m` owns it. NULL: out of memory. */
sm_rank_mesh *rank_mesh_like(sm_rank_mesh *m, const sm_mesh *mesh, sm_error *err);
int number_of(const sm_mesh *mesh, sm_axes axes, const int *at);
