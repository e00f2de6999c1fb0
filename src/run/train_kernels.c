/* The ops of the program on local blocks, by their names, forward and backward. Matrix products are
 * einsums of BLAS; what follows is everything else. */
#include <math.h>
#include <string.h>

#include "train_parts.h"

static const float NORM_EPSILON = 1e-5F;
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

static void embed(train_call *c) {
    const sm_local_block *table = c->in[1].block;
    const size_t *size = c->out->size;
    float *out = c->out->data;
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
    for (size_t s = 0; s < size[0]; s++)
        for (size_t p = 0; p < size[1]; p++) {
            float *row = (float *)(uintptr_t)row_of(c, c->out->data, c->out->size, c->out_offset[0],
                                                    dx->offset[0] + s, dx->offset[1] + p);
            for (size_t d = 0; row && d < size[2]; d++)
                row[d] += from[(s * size[1] + p) * size[2] + d];
        }
}

/* ---- RMS norm: y = w x / rms(x) ---- */

static float inverse_rms(const float *x, size_t width) {
    double squares = 0;
    for (size_t d = 0; d < width; d++) squares += (double)x[d] * (double)x[d];
    return 1.0F / sqrtf((float)(squares / (double)width) + NORM_EPSILON);
}

static void norm(train_call *c) {
    size_t width = last(c->out), rows = sm_local_block_count(c->out) / width;
    const float *x = c->in[0].block->data, *w = c->in[1].block->data;
    float *y = c->out->data;
    for (size_t i = 0; i < rows; i++, x += width, y += width) {
        float r = inverse_rms(x, width);
        for (size_t d = 0; d < width; d++) y[d] = x[d] * r * w[d];
    }
}

/* dx = r (w dy - x r^2 mean(w dy x)) */
static void norm_backward(train_call *c) {
    size_t width = last(c->out), rows = sm_local_block_count(c->out) / width;
    const float *dy = c->in[0].block->data, *x = c->input[0]->data, *w = c->input[1]->data;
    float *dx = c->out->data;
    for (size_t i = 0; i < rows; i++, x += width, dx += width, dy += width) {
        float r = inverse_rms(x, width);
        double dot = 0;
        for (size_t d = 0; d < width; d++) dot += (double)(w[d] * dy[d]) * (double)x[d];
        float mean = (float)(dot / (double)width) * r * r;
        for (size_t d = 0; d < width; d++) dx[d] = r * (w[d] * dy[d] - x[d] * mean);
    }
}

static void norm_weight(train_call *c) {
    const sm_local_block *in = c->in[0].block;
    size_t width = last(in), rows = sm_local_block_count(in) / width;
    const float *dy = in->data, *x = c->input[0]->data;
    float *dw = c->out->data;
    for (size_t i = 0; i < rows; i++, x += width, dy += width) {
        float r = inverse_rms(x, width);
        for (size_t d = 0; d < width; d++) dw[d] += dy[d] * x[d] * r;
    }
}

/* ---- rotary positions: halves of a head turn by position * base^(-2i/H) ---- */

static void rotate(const sm_local_block *from, size_t first, float sense, sm_local_block *to) {
    size_t width = last(from), half = width / 2, heads = 1, positions = from->size[1];
    for (int d = 2; d < from->rank - 1; d++) heads *= from->size[d];
    const float *x = from->data;
    float *y = to->data;
    for (size_t row = 0; row < from->size[0] * positions; row++)
        for (size_t i = 0; i < half; i++) {
            double turn = pow(ROTARY_BASE, -2.0 * (double)i / (double)width);
            double angle = (double)(first + row % positions) * turn;
            float cosine = (float)cos(angle), sine = sense * (float)sin(angle);
            for (size_t h = 0; h < heads; h++) {
                size_t at = (row * heads + h) * width + i;
                y[at] = x[at] * cosine - x[at + half] * sine;
                y[at + half] = x[at + half] * cosine + x[at] * sine;
            }
        }
}

static void rope(train_call *c) {
    rotate(c->in[0].block, c->t->position + c->in[0].offset[1], 1, c->out);
}
static void rope_backward(train_call *c) { rotate(c->in[0].block, c->in[0].offset[1], -1, c->out); }

/* ---- gated activation: silu(gate) up; alone: silu(up) ---- */

static float logistic(float x) { return 1.0F / (1.0F + expf(-x)); }

static void act(train_call *c) {
    size_t n = sm_local_block_count(c->out);
    const float *gate = c->in[0].block->data;
    const float *up = c->op->inputs > 1 ? c->in[1].block->data : NULL;
    float *y = c->out->data;
    for (size_t i = 0; i < n; i++) y[i] = gate[i] * logistic(gate[i]) * (up ? up[i] : 1.0F);
}

static void act_backward(train_call *c) {
    size_t n = sm_local_block_count(c->out);
    const float *dy = c->in[0].block->data, *gate = c->input[0]->data;
    const float *up = c->op->inputs > 1 ? c->input[1]->data : NULL;
    float *dx = c->out->data;
    for (size_t i = 0; i < n; i++) {
        float s = logistic(gate[i]), slope = s * (1.0F + gate[i] * (1.0F - s));
        dx[i] = c->which == 1 ? dy[i] * gate[i] * s : dy[i] * slope * (up ? up[i] : 1.0F);
    }
}

/* ---- sums ---- */

static void add(train_call *c) {
    size_t n = sm_local_block_count(c->out);
    const float *a = c->in[0].block->data, *b = c->in[1].block->data;
    float *y = c->out->data;
    for (size_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void pass_on(train_call *c) {
    memcpy(c->out->data, c->in[0].block->data, sm_local_block_count(c->out) * sizeof(float));
}

/* ---- by name ---- */

typedef struct kernel {
    const char *name;
    void (*forward)(train_call *c), (*input)(train_call *c), (*weight)(train_call *c);
} kernel;
static const kernel kernels[] = {
    {"attn_norm", norm, norm_backward, norm_weight},
    {"mlp_norm", norm, norm_backward, norm_weight},
    {"attn_post_norm", norm, norm_backward, norm_weight},
    {"mlp_post_norm", norm, norm_backward, norm_weight},
    {"final_norm", norm, norm_backward, norm_weight},
    {"q_rope", rope, rope_backward, NULL},
    {"k_rope", rope, rope_backward, NULL},
    {"mlp_act", act, act_backward, NULL},
    {"expert_act", act, act_backward, NULL},
    {"attn_add", add, pass_on, NULL},
    {"mlp_add", add, pass_on, NULL},
    {"moe_add", add, pass_on, NULL},
    {"branch_add", add, pass_on, NULL},
    {"dispatch", train_dispatch, train_dispatch_backward, NULL},
    {"combine", train_combine, train_combine_backward, NULL},
    {"embed", embed, NULL, embed_backward},
    {"loss", NULL, train_loss_backward, NULL},
};

static const kernel *kernel_of(const train_call *c) {
    static const kernel none = {"", NULL, NULL, NULL};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].name, c->op->name) == 0) return &kernels[i];
    return &none;
}

static sm_status run(train_call *c, void (*with)(train_call *c), sm_error *err) {
    if (!with) return sm_fail(err, SM_INTERNAL, "there is no kernel for the op %s", c->op->name);
    with(c);
    return SM_OK;
}

sm_status train_forward_kernel(train_call *c, sm_error *err) {
    if (c->op->kind == SM_OP_EINSUM) return einsum(c, err);
    if (c->op->kind == SM_OP_ATTENTION) return train_attention_forward(c, err);
    if (strcmp(c->op->name, "loss") == 0) return train_loss_forward(c, err);
    return run(c, kernel_of(c)->forward, err);
}

sm_status train_input_kernel(train_call *c, sm_error *err) {
    if (c->op->kind == SM_OP_EINSUM) return einsum(c, err);
    return run(c, kernel_of(c)->input, err);
}

sm_status train_weight_kernel(train_call *c, sm_error *err) {
    if (c->op->kind == SM_OP_EINSUM) return einsum(c, err);
    return run(c, kernel_of(c)->weight, err);
}
