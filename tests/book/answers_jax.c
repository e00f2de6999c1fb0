/* "Programming TPUs in JAX": part 10. */
#include "book.h"
#include "instruments.h"
#include <stddef.h>

static void local_shapes(book_item *item)
{
    book_exactly(item, "elements of A[2,1024]",
                 book_local_bytes("int8 A[I_X,J_Y]", "X=4,Y=2", "I=8,J=2048"), 2 * 1024);
    book_exactly(item, "elements of B[2048,4096]",
                 book_local_bytes("int8 B[J,K_Y]", "X=4,Y=2", "J=2048,K=8192"), 2048 * 4096);
}

/* Both contracting dimensions on Y: the output says whether to scatter or to reduce. */
static void explicit_mode(book_item *item)
{
    const char *dims = "I=64,J=64,K=64";
    sm_lowering scattered =
        book_lowering("A[I_X,J_Y] B[J_Y,K] -> C[I_X,K_Y]", dims, "X=2,Y=4", "IJ");
    sm_lowering reduced = book_lowering("A[I_X,J_Y] B[J_Y,K] -> C[I_X,K]", dims, "X=2,Y=4", "IJ");
    book_holds(item, "P(X,Y) takes a reduce-scatter",
               book_step_bytes(&scattered, SM_REDUCE_SCATTER) > 0);
    book_holds(item, "P(X,None) takes an all-reduce", book_step_bytes(&reduced, SM_ALL_REDUCE) > 0);
}

/* A[B_X,D_Y] W[D,F_Y] on eight v5e: B=1024, D=2048, F=8192, the gather on a line of 4. */
static void collective_matmul(book_item *item)
{
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
    {"jx.slice_avg", NULL, "execution comes later"},
    {"jx.explicit.err", explicit_mode, 0},
    {"jx.cm.times", NULL, "execution comes later"},
    {"jx.cm.roofline", collective_matmul, 0}};

const book_chapter book_jax = {"jax-stuff", false, answers,
                               (int)(sizeof answers / sizeof *answers)};
