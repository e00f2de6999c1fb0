/* Products on two ranks, all in one run and by turns, so that what else the machine does falls on
 * all alike: local products against the same BLAS called directly, a sharded product against the
 * roofline measured here, and inside a ring against one after the other, as predicted and as
 * measured; the ring also of few rows, where a larger part of the time is transfer. BENCH_SIZE:
 * rows, columns and contraction (4096); BENCH_TURNS (7). */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "scalemodel/run.h"

enum { MOST_TURNS = 100 };
/* Local products are of half the rows, columns and contraction: their ratio needs no more. */
enum { SMALL, LOCAL, SMALL_TURNED, LOCAL_TURNED, BLAS, GATHER, AFTER, RING, WHATS };

typedef struct problem {
    double rows, size; /* rows of the result; its columns, and the contraction */
    int turns, first;  /* of the whats: those before are left out */
} problem;

typedef struct bench {
    sm_rank_mesh *m;
    sm_einsum einsum;
    sm_lowering lowering;
    sm_local_block a, b, gathered, product;
    double seconds[WHATS][MOST_TURNS];
} bench;

static double some(const size_t *position, int rank, void *context) {
    (void)rank;
    (void)context;
    return (double)(position[0] * 7 + position[1] * 3) / 1024.0 - 2.0;
}

/* ---- what is timed ---- */

/* The product of the local blocks; small: of so much of them as if they had half the size. */
static sm_status multiply_directly(bench *x, bool small, bool turned) {
    int m = (int)x->product.size[0], n = (int)x->product.size[1], k = (int)x->a.size[1];
    int part = small ? 2 : 1;
    m /= part, n /= part, k /= part;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, turned ? CblasTrans : CblasNoTrans, m, n, k, 1.0F,
                x->a.data, k, x->gathered.data, turned ? k : n, 0.0F, x->product.data, n);
    return SM_OK;
}

static sm_status multiply_here(bench *x, bool turned, sm_error *err) {
    const int8_t labels[2][SM_MAX_RANK] = {{0, 1}, {1, 2}},
                 turned_labels[2][SM_MAX_RANK] = {{0, 1}, {2, 1}};
    const int8_t out[SM_MAX_RANK] = {0, 2};
    sm_local_block in[2] = {x->a, x->gathered}, product = x->product;
    for (int d = 0; d < 2; d++) {
        in[0].size[d] /= 2;
        in[1].size[d] /= 2; /* square: it may be turned as it is */
        product.size[d] /= 2;
    }
    return sm_local_einsum(2, in, turned ? turned_labels : labels, out, &product, err);
}

static sm_status gather_alone(bench *x, sm_error *err) {
    size_t bytes = sm_local_block_count(&x->b) * sizeof(float);
    return sm_run_all_gather(sm_rank_mesh_over(x->m, 1, err), x->b.data, bytes, x->gathered.data,
                             err);
}

static sm_status run_lowering(bench *x, int overlapped, sm_error *err) {
    sm_run_result result;
    sm_local_block in[2] = {x->a, x->b};
    sm_status status = sm_run_lowering(x->m, &x->einsum, &x->lowering, &(sm_run_way){overlapped, 1},
                                       in, &result, err);
    if (!status) sm_local_block_free(&result.out);
    return status;
}

static sm_status run_one(bench *x, int what, sm_error *err) {
    switch (what) {
    case SMALL: return multiply_directly(x, true, false);
    case SMALL_TURNED: return multiply_directly(x, true, true);
    case BLAS: return multiply_directly(x, false, false);
    case LOCAL: return multiply_here(x, false, err);
    case LOCAL_TURNED: return multiply_here(x, true, err);
    case GATHER: return gather_alone(x, err);
    case AFTER: return run_lowering(x, -1, err);
    default: return run_lowering(x, 0, err);
    }
}

/* Seconds of the slower rank. */
static sm_status time_one(bench *x, int what, double *seconds, sm_error *err) {
    double both[2] = {0};
    sm_status status = sm_run_barrier(x->m->world, err);
    double begun_s = sm_clock_s();
    if (!status) status = run_one(x, what, err);
    *seconds = sm_clock_s() - begun_s;
    if (!status) status = sm_run_all_gather(x->m->world, seconds, sizeof *seconds, both, err);
    *seconds = fmax(both[0], both[1]);
    return status;
}

/* ---- the question ---- */

static sm_status block(bench *x, const sm_array *array, bool whole, sm_local_block *out,
                       sm_error *err) {
    sm_array held = *array;
    for (int d = 0; whole && d < held.rank; d++) held.dim[d].n_axes = 0;
    return sm_local_block_of(x->m, &x->einsum, &held, SM_ELEMENT_F32, &(sm_filling){some, NULL},
                             out, err);
}

static sm_status prepare(bench *x, sm_communicator *world, const problem *p, sm_error *err) {
    sm_source mesh = sm_source_of("mesh", "X=2");
    sm_source words = sm_source_of("einsum", "fp32 A[I_X,J] * fp32 B[J_X,K] -> fp32 C[I_X,K]");
    sm_mesh parsed;
    int8_t at[SM_MAX_AXES] = {0}; /* X splits I: B is gathered */
    sm_status status = sm_mesh_parse(&mesh, &parsed, err);
    if (!status) status = sm_rank_mesh_new(world, &parsed, &x->m, err);
    if (!status) status = sm_einsum_parse(&words, &parsed, &x->einsum, err);
    for (int i = 0; i < x->einsum.indices; i++)
        x->einsum.index[i].size = x->einsum.index[i].name[0] == 'I' ? p->rows : p->size;
    if (!status)
        status = sm_einsum_lower(&x->einsum, &parsed, at, &x->einsum.out, false, &x->lowering, err);
    if (!status) status = block(x, &x->einsum.in[0], false, &x->a, err);
    if (!status) status = block(x, &x->einsum.in[1], false, &x->b, err);
    if (!status) status = block(x, &x->einsum.in[1], true, &x->gathered, err);
    if (!status) status = block(x, &x->einsum.out, false, &x->product, err);
    return status;
}

/* What else the machine does only adds time: the least of the turns. */
static double least(const double *seconds, int turns) {
    double best = seconds[0];
    for (int i = 1; i < turns; i++) best = fmin(best, seconds[i]);
    return best;
}

/* Ring: while one half of the sum is multiplied the other half of the array travels, so that
 * max(half the product, the transfer) + half the product is predicted (sm_lowering_price). */
static double predicted_ring_s(const double *s) {
    return fmax(s[BLAS] / 2, s[GATHER]) + s[BLAS] / 2;
}

static void show_products(const char *ranks, const double *s, const problem *p) {
    printf("bench: run_local_%s %.3f of-blas\n", ranks, s[SMALL] / s[LOCAL]);
    printf("bench: run_local_turned_%s %.3f of-blas\n", ranks, s[SMALL_TURNED] / s[LOCAL_TURNED]);
    printf("bench: run_matmul_%.0f_%s %.3f of-roofline\n", p->size, ranks,
           fmax(s[BLAS], s[GATHER]) / s[AFTER]);
    printf("bench: run_matmul_parts_%.0f_%s %.3f of-blas-and-gather\n", p->size, ranks,
           (s[BLAS] + s[GATHER]) / s[AFTER]);
    printf("bench: run_matmul_rate_%.0f_%s %.1f GFLOP/s\n", p->size, ranks,
           2.0 * p->rows * p->size * p->size / s[AFTER] / 1e9);
}

static void show(bench *x, const problem *p) {
    double s[WHATS] = {0};
    const char *ranks = x->m->world->backend->name;
    for (int w = p->first; w < WHATS; w++) s[w] = least(x->seconds[w], p->turns);
    if (p->first == 0) show_products(ranks, s, p);
    printf("bench: run_ring_predicted_%.0fx%.0f_%s %.3f times-gather-first\n", p->rows, p->size,
           ranks, (s[BLAS] + s[GATHER]) / predicted_ring_s(s));
    printf("bench: run_ring_%.0fx%.0f_%s %.3f times-gather-first\n", p->rows, p->size, ranks,
           s[AFTER] / s[RING]);
}

static sm_status solve(sm_communicator *world, const problem *p, sm_error *err) {
    bench *x = sm_calloc(1, sizeof *x);
    sm_status status = x ? prepare(x, world, p, err) : sm_fail_memory(err);
    for (int turn = -1; !status && turn < p->turns; turn++) /* the first warms up */
        for (int w = p->first; !status && w < WHATS; w++)
            status = time_one(x, w, &x->seconds[w][turn < 0 ? 0 : turn], err);
    if (!status && world->rank == 0) show(x, p);
    for (int i = 0; x && i < 4; i++)
        sm_local_block_free((sm_local_block *[]){&x->a, &x->b, &x->gathered, &x->product}[i]);
    if (x) sm_rank_mesh_free(x->m);
    sm_free(x);
    return status;
}

static sm_status run(sm_communicator *world, void *context, sm_error *err) {
    problem square = *(const problem *)context, few = square;
    few.rows = square.size / 32;
    few.first = BLAS;
    few.turns = (int)fmin(MOST_TURNS, 3 * square.turns);
    sm_status status = solve(world, &square, err);
    return status ? status : solve(world, &few, err);
}

static double number_of(const char *name, double usual) {
    const char *text = getenv(name);
    return text ? atof(text) : usual;
}

int main(int argc, char **argv) {
    double size = number_of("BENCH_SIZE", 4096), turns = number_of("BENCH_TURNS", 7);
    problem p = {size, size, (int)fmax(1, fmin(MOST_TURNS, turns)), 0};
    sm_error err = {.status = SM_OK};
#ifdef BENCH_MPI
    sm_status status = sm_run_mpi(&argc, &argv, run, &p, &err);
#else
    (void)argc;
    (void)argv;
    sm_status status = sm_run_threads(2, run, &p, &err);
#endif
    if (status) fprintf(stderr, "bench: %s\n", err.sentence);
    return (int)status;
}
