/* Local products through BLAS, as a step of a lowering makes them, on all ranks at once. A product
 * of [m,k] and [k,n] is 2 m n k FLOPs. */
#include "measure_parts.h"

typedef struct shape {
    int m, n, k;
    bool quick; /* measured in a quick run too */
} shape;

/* Squares, then long and short contractions, few rows, few columns, and the least product: what one
 * call costs. */
static const shape shapes[] = {
    {1, 1, 1, true},         {64, 64, 64, true},        {128, 128, 128, false},
    {256, 256, 256, true},   {384, 384, 384, false},    {512, 512, 512, true},
    {768, 768, 768, false},  {1024, 1024, 1024, false}, {512, 512, 16, true},
    {512, 512, 64, true},    {512, 512, 256, false},    {256, 256, 2048, true},
    {512, 512, 4096, false}, {16, 512, 512, true},      {64, 1024, 1024, false},
    {4, 512, 512, true},     {8, 512, 512, true},       {512, 16, 512, false},
    {1024, 64, 1024, false}, {256, 1024, 256, false},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct multiplying {
    sm_local_block in[2], out;
} multiplying;

/* The output is new memory each time, as in a lowering. */
static sm_status multiply(void *state, sm_error *err) {
    static const int8_t label[2][SM_MAX_RANK] = {{0, 1}, {1, 2}}, out_label[SM_MAX_RANK] = {0, 2};
    multiplying *m = state;
    size_t size[2] = {m->in[0].size[0], m->in[1].size[1]};
    sm_status status = sm_local_block_new(m->in[0].element, 2, size, &m->out, err);
    if (status) return status;
    return sm_local_einsum(2, m->in, label, out_label, &m->out, err);
}

static void drop_output(void *state) {
    multiplying *m = state;
    sm_local_block_free(&m->out);
}

/* Numbers of one size, so that no sum grows and none is denormal. */
static void fill(sm_local_block *b) {
    size_t n = sm_local_block_count(b);
    float *single = b->data;
    double *twice = b->data;
    for (size_t i = 0; i < n; i++) {
        double value = (double)((i * 37) % 64) / 64.0 - 0.5;
        if (b->element == SM_ELEMENT_F32) single[i] = (float)value;
        else twice[i] = value;
    }
}

static sm_status prepare(multiplying *m, sm_element element, const shape *s, sm_error *err) {
    size_t left[2] = {(size_t)s->m, (size_t)s->k}, right[2] = {(size_t)s->k, (size_t)s->n};
    sm_status status = sm_local_block_new(element, 2, left, &m->in[0], err);
    if (!status) status = sm_local_block_new(element, 2, right, &m->in[1], err);
    if (status) return status;
    fill(&m->in[0]);
    fill(&m->in[1]);
    return SM_OK;
}

/* So many products of two numbers in one timing that the clock can tell them. */
enum { OFTEN = 1000 };
static sm_status multiply_often(void *state, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; !status && i < OFTEN; i++) {
        status = multiply(state, err);
        if (i < OFTEN - 1) drop_output(state);
    }
    return status;
}

sm_status measure_matmuls(sm_communicator *world, const sm_measure_job *job, sm_error *err) {
    static const sm_element elements[] = {SM_ELEMENT_F32, SM_ELEMENT_F64};
    sm_status status = SM_OK;
    _Static_assert((int)(2 * SHAPES) <= (int)SM_MOST_MEASURED_MATMULS, "room for all shapes");
    for (int e = 0; e < 2; e++)
        for (int i = 0; !status && i < SHAPES; i++)
            if (shapes[i].quick || !job->quick) {
                multiplying m = {.out = {.data = NULL}};
                sm_measured_matmul found = {.dtype =
                                                elements[e] == SM_ELEMENT_F64 ? SM_FP64 : SM_FP32,
                                            .m = (size_t)shapes[i].m,
                                            .n = (size_t)shapes[i].n,
                                            .k = (size_t)shapes[i].k};
                double often = shapes[i].k == 1 ? OFTEN : 1.0;
                timed_call timed = {often > 1.0 ? multiply_often : multiply, drop_output, &m, often,
                                    false};
                status = prepare(&m, elements[e], &shapes[i], err);
                if (!status) status = measure_repeatedly(world, job, &timed, &found.seconds, err);
                if (!status && world->rank == 0) job->out->matmul[job->out->matmuls++] = found;
                sm_local_block_free(&m.in[0]);
                sm_local_block_free(&m.in[1]);
            }
    return status;
}
