/* Memory and the vector unit, on all ranks at once: what loops of this program reach, as the
 * compiler made them. Copy a = b moves 16 bytes an element and triad a = b + x c 24 with 2 FLOPs,
 * as in STREAM (J. McCalpin, IEEE TCCA Newsletter, December 1995). */
#include "measure_parts.h"

#include <string.h>

static const struct {
    const char *name;
    double bytes, flops;
} streams[] = {
#define X(id, name, bytes, flops) {name, bytes, flops},
    SM_SWEEPS(X)
#undef X
};

const char *sm_sweep_name(sm_sweep stream) { return streams[stream].name; }

typedef struct streaming {
    double *a, *b, *c;
    size_t n;
    int passes;
    sm_local_block weights; /* in the room of a and b, scales in that of c */
    float *x, *y;
} streaming;

static sm_status copy(void *state, sm_error *err) {
    const streaming *s = state;
    (void)err;
    memcpy(s->a, s->b, s->n * sizeof *s->a);
    return SM_OK;
}

static void triad_pass(double *restrict a, const double *restrict b, const double *restrict c,
                       size_t n, double x) {
    for (size_t i = 0; i < n; i++) a[i] = b[i] + x * c[i];
}

static sm_status triad(void *state, sm_error *err) {
    const streaming *s = state;
    (void)err;
    for (int i = 0; i < s->passes; i++) triad_pass(s->a, s->b, s->c, s->n, 0.5 + i);
    return SM_OK;
}

/* The innermost loop has a fixed length and stays in registers; it is written out so that the
 * compiler makes vector operations of it. x tends to z / (1 - y), so that nothing overflows. */
enum { LANES = 32, TURNS = 8 };
static void vector_pass(double *restrict x, size_t n) {
    for (size_t i = 0; i + LANES <= n; i += LANES) {
        double lane[LANES];
        memcpy(lane, x + i, sizeof lane);
        for (int turn = 0; turn < TURNS; turn++)
            for (int k = 0; k < LANES; k++) lane[k] = lane[k] * 0.5 + 0.25;
        memcpy(x + i, lane, sizeof lane);
    }
}

static sm_status vector(void *state, sm_error *err) {
    const streaming *s = state;
    (void)err;
    for (int i = 0; i < s->passes; i++) vector_pass(s->a, s->n);
    return SM_OK;
}

static sm_status row_times_weights(void *state, sm_error *err) {
    const streaming *s = state;
    const size_t *size = s->weights.size;
    const sm_few_rows row = {
        .x = s->x, .y = s->y, .m = 1, .k = size[0], .n = size[1], .lead = size[1]};
    (void)err;
    sm_local_block_add_product(&s->weights, &row);
    return SM_OK;
}

/* Rows as long as those of a model's matrices, so that the result stays in the first cache. */
static sm_status lay_weights(streaming *s, sm_sweep which, sm_error *err) {
    enum { WIDTH = 4096, BOX = 128 };
    static const sm_element elements[] = {SM_ELEMENT_BF16, SM_ELEMENT_S8, SM_ELEMENT_E4M3,
                                          SM_ELEMENT_E2M1};
    static const size_t of_byte_pair[] = {1, 2, 2, 4},
                        box[][2] = {{1, 1}, {BOX, BOX}, {BOX, BOX}, {32, 1}};
    if (which < SM_SWEEP_BF16) return SM_OK;
    int type = (int)(which - SM_SWEEP_BF16);
    size_t rows = s->n * sizeof *s->a * of_byte_pair[type] / WIDTH / BOX * BOX;
    s->weights = (sm_local_block){.element = elements[type],
                                  .rank = 2,
                                  .size = {rows, WIDTH},
                                  .box = {box[type][0], box[type][1]},
                                  .data = s->a};
    s->x = sm_calloc(rows + WIDTH, sizeof *s->x);
    if (!s->x) return sm_fail_memory(err);
    s->y = s->x + rows;
    return SM_OK;
}

/* An array is touched before it is timed. */
static sm_status prepare(streaming *s, size_t bytes, sm_error *err) {
    s->n = bytes / sizeof *s->a / LANES * LANES;
    s->a = sm_malloc(3 * s->n * sizeof *s->a);
    if (!s->a) return sm_fail_memory(err);
    s->b = s->a + s->n;
    s->c = s->b + s->n;
    for (size_t i = 0; i < 3 * s->n; i++) s->a[i] = 1.0 + (double)(i % 8) / 8.0;
    return SM_OK;
}

static sm_status measure_stream(sm_communicator *world, const sm_measure_job *job, sm_sweep which,
                                size_t bytes, int passes, sm_error *err) {
    static sm_status (*const call[])(void *, sm_error *) = {copy, triad, triad, vector};
    streaming s = {.passes = passes};
    sm_measured_stream found = {.bytes = 0.0};
    timed_call timed = {which < SM_SWEEP_BF16 ? call[which] : row_times_weights, NULL, &s, passes,
                        false};
    sm_status status = prepare(&s, bytes, err);
    if (!status) status = lay_weights(&s, which, err);
    if (!status) status = measure_repeatedly(world, job, &timed, &found.seconds, err);
    found.bytes = which < SM_SWEEP_BF16 ? streams[which].bytes * (double)s.n
                                        : sm_local_block_bytes(&s.weights);
    found.flops = streams[which].flops * (double)s.n;
    if (!status && world->rank == 0) job->out->stream[which] = found;
    sm_free(s.a);
    sm_free(s.x);
    return status;
}

sm_status measure_streams(sm_communicator *world, const sm_measure_job *job, sm_error *err) {
    static const size_t in_first_cache = 16384;
    size_t far = job->stream_bytes, near = job->cached_bytes / 3;
    sm_status status = measure_stream(world, job, SM_SWEEP_COPY, far, 1, err);
    if (!status) status = measure_stream(world, job, SM_SWEEP_TRIAD, far, 1, err);
    if (!status) status = measure_stream(world, job, SM_SWEEP_CACHED, near, 20, err);
    if (!status) status = measure_stream(world, job, SM_SWEEP_VECTOR, in_first_cache, 100, err);
    for (int i = SM_SWEEP_BF16; !status && i < SM_SWEEP_COUNT; i++)
        status = measure_stream(world, job, (sm_sweep)i, far / 4, 1, err);
    return status;
}
