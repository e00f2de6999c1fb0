/* "Programming TPUs in JAX": part 10. */
#include "book.h"
#include "instruments.h"
#include "scalemodel/run.h"
#include <stddef.h>
#include <string.h>

static void local_shapes(book_item *item) {
    book_exactly(item, "elements of A[2,1024]",
                 book_local_bytes("int8 A[I_X,J_Y]", "X=4,Y=2", "I=8,J=2048"), 2 * 1024);
    book_exactly(item, "elements of B[2048,4096]",
                 book_local_bytes("int8 B[J,K_Y]", "X=4,Y=2", "J=2048,K=8192"), 2048 * 4096);
}

/* Both contracting dimensions on Y: the output says whether to scatter or to reduce. */
static void explicit_mode(book_item *item) {
    const char *dims = "I=64,J=64,K=64";
    sm_lowering scattered =
        book_lowering("A[I_X,J_Y] B[J_Y,K] -> C[I_X,K_Y]", dims, "X=2,Y=4", "IJ");
    sm_lowering reduced = book_lowering("A[I_X,J_Y] B[J_Y,K] -> C[I_X,K]", dims, "X=2,Y=4", "IJ");
    book_holds(item, "P(X,Y) takes a reduce-scatter",
               book_step_bytes(&scattered, SM_REDUCE_SCATTER) > 0);
    book_holds(item, "P(X,None) takes an all-reduce", book_step_bytes(&reduced, SM_ALL_REDUCE) > 0);
}

/* ---- shard_map over arange(512): the first four of each shard, the mean over the devices ---- */

enum { DEVICES = 8, KEPT = 4 };
typedef struct averaged {
    sm_mesh mesh;
    sm_einsum einsum;
    double out[DEVICES][KEPT];
} averaged;

static double position_value(const size_t *position, int rank, void *context) {
    (void)rank, (void)context;
    return (double)position[0];
}

static sm_status average_on(sm_communicator *world, void *context, sm_error *err) {
    averaged *a = context;
    sm_rank_mesh *m = NULL;
    sm_local_block shard = {.data = NULL};
    double *mine = a->out[world->rank];
    sm_status status = sm_rank_mesh_new(world, &a->mesh, &m, err);
    if (!status)
        status = sm_local_block_of(m, &a->einsum, &a->einsum.in[0], SM_ELEMENT_F64,
                                   &(sm_filling){position_value, NULL}, &shard, err);
    if (!status) memcpy(mine, shard.data, KEPT * sizeof *mine);
    if (!status) status = sm_run_all_reduce(world, mine, KEPT, SM_ELEMENT_F64, err);
    for (int i = 0; i < KEPT; i++) mine[i] /= world->size;
    sm_local_block_free(&shard);
    sm_rank_mesh_free(m);
    return status;
}

static void slice_average(book_item *item) {
    static averaged a;
    sm_error err = {.status = SM_OK};
    a.mesh = book_mesh("X=2,Y=4");
    a.einsum = book_einsum("int32 x[I_XY] -> y[I_XY]", "I=512", &a.mesh);
    book_holds(item, "the ranks run", sm_run_threads(DEVICES, average_on, &a, &err) == SM_OK);
    for (int d = 0; d < DEVICES; d++)
        for (int i = 0; i < KEPT; i++) book_exactly(item, "the mean", a.out[d][i], 224 + i);
}

/* A[B_X,D_Y] W[D,F_Y] on eight v5e: B=1024, D=2048, F=8192, the gather on a line of 4. */
static void collective_matmul(book_item *item) {
    const char *dims = "B=1024,D=2048,F=8192";
    sm_chip chip = book_chip("tpu-v5e");
    book_give(&chip.flops_per_s[SM_BF16], 197e12);
    sm_system slice = book_system_of(&chip, "tpu-v5e:2x4");
    sm_lowering low = book_lowering("A[B_X,D_Y] W[D,F_Y] -> C[B_X,F_Y]", dims, "X=2,Y=4", "BF");
    double s = book_s_per_byte(&slice, SM_ALL_GATHER, "X=2,Y=4", "Y");
    book_is(item, "math", low.flops_per_chip / sm_chip_peak(&chip, SM_BF16, NULL), 2.18019e-05);
    book_is(item, "gather", book_step_bytes(&low, SM_ALL_GATHER) * s, 3.49525e-05);
}

static const book_answer answers[] = {
    {"jx.local", local_shapes, 0},
    {"jx.slice_avg", slice_average, 0},
    {"jx.explicit.err", explicit_mode, 0},
    {"jx.cm.times", NULL, "times measured on a machine, of int32 data: see docs/serving.md"},
    {"jx.cm.roofline", collective_matmul, 0}};

const book_chapter book_jax = {"10-jax", answers, (int)(sizeof answers / sizeof *answers)};
