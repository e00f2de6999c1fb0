/* The ops of the program on local blocks, forward and backward. Matrix products are einsums of
 * BLAS; what follows is everything else. RMS norm is that of Zhang and Sennrich (arXiv 1910.07467,
 * eq. 4), rotary positions those of Su et al. (arXiv 2104.09864, eq. 34), the gated activation
 * SwiGLU (Shazeer, arXiv 2002.05202, eq. 6). */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "row_math.h"
#include "train_parts.h"

static const float NORM_EPSILON = 1e-6F; /* where the model does not say */
static const double ROTARY_BASE = 10000;

static size_t last(const sm_local_block *b) { return b->size[b->rank - 1]; }

/* ---- matrix products ---- */

static sm_status einsum(train_call *c, sm_error *err) {
    const sm_einsum *e = &c->task->einsum;
    sm_local_block in[SM_MAX_OPERANDS];
    int8_t label[SM_MAX_OPERANDS][SM_MAX_RANK] = {{0}}, out[SM_MAX_RANK] = {0};
    for (int i = 0; i < e->operands; i++) {
        in[i] = *c->in[i].block;
        for (int d = 0; d < e->in[i].rank; d++) label[i][d] = (int8_t)e->in[i].dim[d].index;
    }
    for (int d = 0; d < e->out.rank; d++) out[d] = (int8_t)e->out.dim[d].index;
    return sm_local_einsum(e->operands, in, (const int8_t(*)[SM_MAX_RANK])label, out, c->out, err);
}

/* ---- embedding: rows of a table [V,D] ---- */

static const float *row_of(const train_call *c, const float *table, const size_t *size,
                           size_t first_word, size_t sequence, size_t position) {
    size_t word = (size_t)train_byte(c->t, sequence, position);
    bool here = word >= first_word && word < first_word + size[0];
    return here ? table + (word - first_word) * size[1] : NULL;
}

static void clear(sm_local_block *b) {
    memset(b->data, 0, sm_local_block_count(b) * sizeof(float));
}

static void embed(train_call *c) {
    const sm_local_block *table = c->in[1].block;
    const size_t *size = c->out->size;
    float *out = c->out->data;
    clear(c->out);
    for (size_t s = 0; s < size[0]; s++)
        for (size_t p = 0; p < size[1]; p++) {
            const float *row = row_of(c, table->data, table->size, c->in[1].offset[0],
                                      c->out_offset[0] + s, c->out_offset[1] + p);
            if (row) memcpy(out + (s * size[1] + p) * size[2], row, size[2] * sizeof *row);
        }
}

static void embed_backward(train_call *c) {
    const train_array *dx = &c->in[1];
    const size_t *size = dx->block->size;
    const float *from = dx->block->data;
    clear(c->out);
    for (size_t s = 0; s < size[0]; s++)
        for (size_t p = 0; p < size[1]; p++) {
            float *row = (float *)(uintptr_t)row_of(c, c->out->data, c->out->size, c->out_offset[0],
                                                    dx->offset[0] + s, dx->offset[1] + p);
            if (row) row_add(from + (s * size[1] + p) * size[2], 1, size[2], row);
        }
}

/* ---- RMS norm: y = w x / rms(x) ---- */

static float epsilon_of(const train_call *c) {
    double epsilon = c->t->setup->model->norm_epsilon;
    return epsilon > 0 ? (float)epsilon : NORM_EPSILON;
}

static float inverse_rms(const float *x, size_t width, float epsilon) {
    return 1.0F / sqrtf(row_dot(x, x, width) / (float)width + epsilon);
}

static void norm(train_call *c) {
    const float epsilon = epsilon_of(c);
    size_t width = last(c->out), rows = sm_local_block_count(c->out) / width;
    assert(last(c->in[0].block) == width && sm_local_block_count(c->in[1].block) == width);
    const float *x = c->in[0].block->data, *w = c->in[1].block->data;
    float *y = c->out->data;
    for (size_t i = 0; i < rows; i++, x += width, y += width) {
        float r = inverse_rms(x, width, epsilon);
        for (size_t d = 0; d < width; d++) y[d] = x[d] * r * w[d];
    }
}

/* dx = r (w dy - x r^2 mean(w dy x)) */
static void norm_backward(train_call *c) {
    const float epsilon = epsilon_of(c);
    size_t width = last(c->out), rows = sm_local_block_count(c->out) / width;
    const float *dy = c->in[0].block->data, *x = c->input[0]->data, *w = c->input[1]->data;
    float *dx = c->out->data;
    for (size_t i = 0; i < rows; i++, x += width, dx += width, dy += width) {
        float r = inverse_rms(x, width, epsilon);
        float mean = row_triple(w, dy, x, width) / (float)width * r * r;
        for (size_t d = 0; d < width; d++) dx[d] = r * (w[d] * dy[d] - x[d] * mean);
    }
}

static void norm_weight(train_call *c) {
    const float epsilon = epsilon_of(c);
    const sm_local_block *in = c->in[0].block;
    size_t width = last(in), rows = sm_local_block_count(in) / width;
    const float *dy = in->data, *x = c->input[0]->data;
    float *dw = c->out->data;
    clear(c->out);
    for (size_t i = 0; i < rows; i++, x += width, dy += width) {
        float r = inverse_rms(x, width, epsilon);
        for (size_t d = 0; d < width; d++) dw[d] += dy[d] * x[d] * r;
    }
}

/* ---- rotary positions: halves of a head turn by position * base^(-2i/H) ---- */

sm_status train_turns_new(sm_trainer *t, int number, const sm_program *b, sm_error *err) {
    size_t positions = (size_t)t->setup->tokens, half = 0;
    for (int i = 0; i < b->ops; i++) {
        const sm_tensor *out = &b->tensor[b->op[i].out];
        if (b->op[i].function == SM_FUNCTION_ROTATE)
            half = (size_t)b->dim[out->dim[out->rank - 1]].size / 2;
    }
    double base = t->setup->model->rope_theta > 0 ? t->setup->model->rope_theta : ROTARY_BASE;
    if (half == 0 || t->turn[number]) return SM_OK;
    float *turns = t->turn[number] = sm_malloc(2 * positions * half * sizeof *turns);
    if (!turns) return sm_fail_memory(err);
    for (size_t i = 0; i < half; i++) {
        double turn = pow(base, -(double)i / (double)half);
        for (size_t at = 0; at < positions; at++) {
            turns[2 * at * half + i] = (float)cos((double)at * turn);
            turns[(2 * at + 1) * half + i] = (float)sin((double)at * turn);
        }
    }
    return SM_OK;
}

void train_turns_free(sm_trainer *t) {
    for (size_t i = 0; i < sizeof t->turn / sizeof *t->turn; i++) sm_free(t->turn[i]);
}

static void turn_head(const float *x, const float *cosine, const float *sine, float sense,
                      size_t half, float *y) {
    for (size_t i = 0; i < half; i++) y[i] = x[i] * cosine[i] - x[i + half] * (sense * sine[i]);
    for (size_t i = 0; i < half; i++)
        y[i + half] = x[i + half] * cosine[i] + x[i] * (sense * sine[i]);
}

static void rotate(const train_call *c, float sense) {
    const sm_local_block *from = c->in[0].block;
    size_t width = last(from), half = width / 2, heads = 1, positions = from->size[1];
    size_t most = (size_t)c->t->setup->tokens - 1; /* the last place of a sequence */
    assert(from->rank >= 3 && width % 2 == 0 && c->t->turn[c->list - c->t->list]);
    for (int d = 2; d < from->rank - 1; d++) heads *= from->size[d];
    const float *x = from->data;
    float *y = c->out->data;
    for (size_t row = 0; row < from->size[0] * positions; row++) {
        size_t first = train_position(c->t, c->in[0].offset[0] + row / positions);
        size_t place = first + c->in[0].offset[1] + row % positions;
        if (place > most) place = most; /* what pads a pass may stand behind the end */
        const float *turn = c->t->turn[c->list - c->t->list] + 2 * place * half;
        for (size_t h = 0; h < heads; h++, x += width, y += width)
            turn_head(x, turn, turn + half, sense, half, y);
    }
}

static void rope(train_call *c) { rotate(c, 1); }
static void rope_backward(train_call *c) { rotate(c, -1); }

/* ---- gated activation: silu(gate) up; alone: silu(up) ---- */

/* Elements whose logistic function is computed at once. */
enum { BATCH = 256 };
static size_t logistics(const float *x, size_t left, float *s) {
    size_t n = left < BATCH ? left : BATCH;
    for (size_t i = 0; i < n; i++) s[i] = -x[i];
    row_exponential(s, 0, n, s);
    for (size_t i = 0; i < n; i++) s[i] = 1.0F / (1.0F + s[i]);
    return n;
}

static void act(train_call *c) {
    size_t n = sm_local_block_count(c->out);
    const float *gate = c->in[0].block->data;
    const float *up = c->op->inputs > 1 ? c->in[1].block->data : NULL;
    float *y = c->out->data, s[BATCH];
    for (size_t at = 0, some; at < n; at += some) {
        some = logistics(gate + at, n - at, s);
        for (size_t i = 0; i < some; i++) y[at + i] = gate[at + i] * s[i];
        for (size_t i = 0; up && i < some; i++) y[at + i] *= up[at + i];
    }
}

static void act_backward(train_call *c) {
    size_t n = sm_local_block_count(c->out);
    const float *dy = c->in[0].block->data, *gate = c->input[0]->data;
    const float *up = c->op->inputs > 1 ? c->input[1]->data : NULL;
    float *dx = c->out->data, s[BATCH];
    for (size_t at = 0, some; at < n; at += some) {
        const float *g = gate + at;
        some = logistics(g, n - at, s);
        for (size_t i = 0; i < some; i++)
            dx[at + i] = dy[at + i] * s[i] * (c->which == 1 ? g[i] : 1.0F + g[i] * (1.0F - s[i]));
        for (size_t i = 0; up && c->which != 1 && i < some; i++) dx[at + i] *= up[at + i];
    }
}

/* ---- sums ---- */

static void add(train_call *c) {
    size_t n = sm_local_block_count(c->out);
    assert(sm_local_block_count(c->in[0].block) == n && sm_local_block_count(c->in[1].block) == n);
    const float *a = c->in[0].block->data, *b = c->in[1].block->data;
    float *y = c->out->data;
    for (size_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void pass_on(train_call *c) {
    memcpy(c->out->data, c->in[0].block->data, sm_local_block_count(c->out) * sizeof(float));
}

/* ---- by function ---- */

typedef void kernel(train_call *c);
typedef struct kernels {
    kernel *forward, *input, *weight;
} kernels;

static const kernels *kernels_of(const train_call *c) {
    static const kernels table[] = {
        [SM_FUNCTION_NORM] = {norm, norm_backward, norm_weight},
        [SM_FUNCTION_ROTATE] = {rope, rope_backward, NULL},
        [SM_FUNCTION_GATE] = {act, act_backward, NULL},
        [SM_FUNCTION_ADD] = {add, pass_on, NULL},
        [SM_FUNCTION_DISPATCH] = {train_dispatch, train_dispatch_backward, NULL},
        [SM_FUNCTION_COMBINE] = {train_combine, train_combine_backward, NULL},
        [SM_FUNCTION_LOOKUP] = {embed, NULL, embed_backward},
        [SM_FUNCTION_LOSS] = {NULL, train_loss_backward, NULL},
        [SM_FUNCTION_SAMPLE] = {NULL, NULL, NULL},
    };
    return &table[c->op->function];
}

static sm_status run(train_call *c, kernel *with, sm_error *err) {
    if (c->op->kind == SM_OP_EINSUM) return einsum(c, err);
    if (!with) return sm_fail(err, SM_INTERNAL, "there is no kernel for the op %s", c->op->name);
    with(c);
    return SM_OK;
}

sm_status train_forward_kernel(train_call *c, sm_error *err) {
    if (c->op->kind == SM_OP_ATTENTION)
        return c->t->serving ? generate_attention(c, err) : train_attention_forward(c, err);
    if (c->op->function == SM_FUNCTION_LOSS) return train_loss_forward(c, err);
    return run(c, kernels_of(c)->forward, err);
}

sm_status train_input_kernel(train_call *c, sm_error *err) {
    return run(c, kernels_of(c)->input, err);
}

sm_status train_weight_kernel(train_call *c, sm_error *err) {
    return run(c, kernels_of(c)->weight, err);
}
