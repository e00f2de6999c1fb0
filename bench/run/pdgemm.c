/* The same product, of the same size on the same two processes, by ScaLAPACK's pdgemm and here; by
 * turns, in doubles. pdgemm is given the best of four distributions. BENCH_SIZE as in two_ranks.c
 * (2048). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "scalemodel/run.h"

/* The BLACS and ScaLAPACK have no header for C. */
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
int numroc_(const int *n, const int *nb, const int *process, const int *first,
            const int *processes);
void descinit_(int *desc, const int *m, const int *n, const int *mb, const int *nb, const int *row,
               const int *column, const int *context, const int *lead, int *info);
void pdgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k,
             const double *alpha, const double *a, const int *ia, const int *ja, const int *da,
             const double *b, const int *ib, const int *jb, const int *db, const double *beta,
             double *c, const int *ic, const int *jc, const int *dc);

enum { TURNS = 5, WAYS = 4, DESCRIPTION = 9 };

/* One distribution of ScaLAPACK. */
typedef struct grid {
    int context, desc[DESCRIPTION];
    double *a, *b, *c, seconds[TURNS];
} grid;

typedef struct bench {
    sm_rank_mesh *m;
    sm_einsum einsum;
    sm_lowering lowering;
    sm_local_block in[2];
    int n;
    grid grid[WAYS];
    double seconds[TURNS];
} bench;

static double some(const size_t *position, int rank, void *context) {
    (void)rank;
    (void)context;
    return (double)(position[0] * 7 + position[1] * 3) / 1024.0 - 2.0;
}

static sm_status make_grid(grid *g, int n, int rows, int block, sm_error *err) {
    int columns = 2 / rows, row, column, zero = 0, info = 0;
    Cblacs_get(-1, 0, &g->context);
    Cblacs_gridinit(&g->context, "Row", rows, columns);
    Cblacs_gridinfo(g->context, &rows, &columns, &row, &column);
    int mine_rows = numroc_(&n, &block, &row, &zero, &rows);
    int mine_columns = numroc_(&n, &block, &column, &zero, &columns);
    descinit_(g->desc, &n, &n, &block, &block, &zero, &zero, &g->context, &mine_rows, &info);
    size_t count = (size_t)mine_rows * (size_t)mine_columns;
    g->a = sm_malloc(count * sizeof *g->a);
    g->b = sm_malloc(count * sizeof *g->b);
    g->c = sm_malloc(count * sizeof *g->c);
    if (info || !g->a || !g->b || !g->c) return sm_fail_memory(err);
    for (size_t i = 0; i < count; i++) g->a[i] = g->b[i] = (double)(i % 1000) / 1000.0;
    return SM_OK;
}

static sm_status prepare(bench *x, sm_communicator *world, sm_error *err) {
    sm_source mesh = sm_source_of("mesh", "X=2");
    sm_source words = sm_source_of("einsum", "fp64 A[I_X,J] * fp64 B[J_X,K] -> fp64 C[I_X,K]");
    sm_mesh parsed;
    int8_t at[SM_MAX_AXES] = {0};
    sm_status status = sm_mesh_parse(&mesh, &parsed, err);
    if (!status) status = sm_rank_mesh_new(world, &parsed, &x->m, err);
    if (!status) status = sm_einsum_parse(&words, &parsed, &x->einsum, err);
    for (int i = 0; i < x->einsum.indices; i++) x->einsum.index[i].size = x->n;
    if (!status)
        status = sm_einsum_lower(&x->einsum, &parsed, at, &x->einsum.out, false, &x->lowering, err);
    for (int i = 0; !status && i < 2; i++)
        status = sm_local_block_of(x->m, &x->einsum, &x->einsum.in[i], SM_ELEMENT_F64,
                                   &(sm_filling){some, NULL}, &x->in[i], err);
    for (int w = 0; !status && w < WAYS; w++)
        status = make_grid(&x->grid[w], x->n, 1 + w % 2, w < 2 ? 64 : 256, err);
    return status;
}

static sm_status run_here(bench *x, sm_error *err) {
    sm_run_result result;
    sm_status status =
        sm_run_lowering(x->m, &x->einsum, &x->lowering, &(sm_run_way){-1, 1}, x->in, &result, err);
    if (!status) sm_local_block_free(&result.out);
    return status;
}

static sm_status run_there(bench *x, grid *g) {
    const int one = 1;
    const double plain = 1.0, nothing = 0.0;
    pdgemm_("N", "N", &x->n, &x->n, &x->n, &plain, g->a, &one, &one, g->desc, g->b, &one, &one,
            g->desc, &nothing, g->c, &one, &one, g->desc);
    return SM_OK;
}

static sm_status time_one(bench *x, int way, double *seconds, sm_error *err) {
    double both[2] = {0};
    sm_status status = sm_run_barrier(x->m->world, err);
    double begun_s = sm_clock_s();
    if (!status) status = way < 0 ? run_here(x, err) : run_there(x, &x->grid[way]);
    *seconds = sm_clock_s() - begun_s;
    if (!status) status = sm_run_all_gather(x->m->world, seconds, sizeof *seconds, both, err);
    *seconds = fmax(both[0], both[1]);
    return status;
}

/* What else the machine does only adds time: the least of the turns. */
static double least(const double *seconds) {
    double best = seconds[0];
    for (int i = 1; i < TURNS; i++) best = fmin(best, seconds[i]);
    return best;
}

static sm_status run(sm_communicator *world, void *context, sm_error *err) {
    bench *x = context;
    sm_status status = prepare(x, world, err);
    for (int turn = -1; !status && turn < TURNS; turn++)
        for (int w = -1; !status && w < WAYS; w++) {
            double *seconds = w < 0 ? x->seconds : x->grid[w].seconds;
            status = time_one(x, w, &seconds[turn < 0 ? 0 : turn], err);
        }
    double best_s = INFINITY;
    for (int w = 0; !status && w < WAYS; w++) best_s = fmin(best_s, least(x->grid[w].seconds));
    if (!status && world->rank == 0)
        printf("bench: run_pdgemm_%d %.3f times-ours\n", x->n, best_s / least(x->seconds));
    return status;
}

int main(int argc, char **argv) {
    static bench x;
    const char *text = getenv("BENCH_SIZE");
    sm_error err = {.status = SM_OK};
    x.n = text ? atoi(text) : 2048;
    return (int)sm_run_mpi(&argc, &argv, run, &x, &err);
}
