/* The ops of the program on local blocks, forward and backward: a kernel for each operator that a
 * line may be. Matrix products are einsums of BLAS. */
#include "train_parts.h"

/* ---- matrix products ---- */

static void scale(sm_local_block *b, double by) {
    float *x = b->data;
    size_t n = sm_local_block_count(b);
    for (size_t i = 0; by != 1 && i < n; i++) x[i] *= (float)by;
}

/* Some models multiply the logits; the product and both of its gradients are linear. */
static double factor_of(const train_call *c) {
    const sm_program *b = c->list->program;
    const sm_tensor *out = &b->tensor[c->op->out];
    bool logits = b->output < 0 && b->dim[out->dim[out->rank - 1]].role == SM_DIMENSION_VOCABULARY;
    return logits ? c->numbers->logit_scale : 1;
}

static sm_status einsum(train_call *c, sm_error *err) {
    const sm_einsum *e = &c->task->einsum;
    sm_local_block in[SM_MAX_OPERANDS];
    int8_t label[SM_MAX_OPERANDS][SM_MAX_RANK] = {{0}}, out[SM_MAX_RANK] = {0};
    for (int i = 0; i < e->operands; i++) {
        in[i] = *c->in[i].block;
        for (int d = 0; d < e->in[i].rank; d++) label[i][d] = (int8_t)e->in[i].dim[d].index;
    }
    for (int d = 0; d < e->out.rank; d++) out[d] = (int8_t)e->out.dim[d].index;
    sm_status status =
        sm_local_einsum(e->operands, in, (const int8_t(*)[SM_MAX_RANK])label, out, c->out, err);
    if (!status) scale(c->out, factor_of(c));
    return status;
}

/* ---- embedding: rows of a table [V,D], [Np,D] of positions or [Nt,D] of kinds ---- */

/* Rows [B,U,D] that another stack made: words beyond the vocabulary stand for them. */
static bool of_rows(const train_call *c) {
    return c->lines->array[c->line->operand[0].array].role != SM_TEXT_WEIGHT;
}

/* A table that ids name and that has no row for each word is one of kinds: all are the first. */
static bool of_words(const train_call *c) {
    return c->lines->dim[c->line->operand[0].dim[0]].role == SM_DIMENSION_VOCABULARY;
}

/* What another stack reads of a sequence, but the last word of that, comes before. */
static size_t before(const train_call *c) {
    return c->list == &c->t->list[c->t->setup->model->kinds] ? 0 : c->t->ahead;
}

/* Of the rows of all pictures; ranks of context have a part of each picture. In training pictures
 * of a sequence lie one behind the other there; serving, each has its place. */
static size_t as_made(const sm_trainer *t, size_t row, size_t *place) {
    const size_t part = t->each / (size_t)t->setup->degree[SM_AXIS_CONTEXT];
    const size_t picture = row / t->each, within = row % t->each;
    if (t->feed) *place = *place * t->pictures + picture;
    return t->feed ? within : (within / part * t->pictures + picture) * part + within % part;
}

/* The element of the table that its row begins with; SIZE_MAX: the row is on another rank. */
static size_t row_of(const train_call *c, const sm_local_block *table, const size_t *offset,
                     size_t first, size_t s, size_t position) {
    const size_t *size = table->size + table->rank - 2, sequence = first + s;
    size_t first_word = offset[table->rank - 2], place = 0;
    size_t word =
        c->line->operands == 1
            ? train_position(c->t, sequence) + position + (size_t)c->numbers->first_position
        : of_words(c) || of_rows(c) ? (size_t)train_word(c->t, sequence, before(c) + position)
                                    : 0;
    if (of_rows(c)) {
        word -= (size_t)c->t->setup->model->V;
        place = c->t->feed ? c->t->feed->slot[sequence] : s;
        if (word < c->t->seen) word = as_made(c->t, word, &place);
    }
    bool here = word >= first_word && word - first_word < size[0];
    return here ? (place * size[0] + word - first_word) * size[1] : SIZE_MAX;
}

/* Between rows of a table and those of positions, from `at` on. */
static void look_up(train_call *c, const sm_local_block *table, const size_t *offset,
                    const sm_local_block *x, const size_t *at, bool back) {
    const size_t *size = x->size;
    float *row = x->data;
    train_clear(c->out);
    for (size_t s = 0; s < size[0]; s++)
        for (size_t p = 0; p < size[1]; p++, row += size[2]) {
            size_t from = row_of(c, table, offset, at[0], s, at[1] + p);
            if (from == SIZE_MAX) continue;
            if (back) row_add(row, 1, size[2], (float *)table->data + from);
            else sm_local_block_read(table, from, size[2], row);
        }
    if (of_words(c)) scale(c->out, c->numbers->embedding_scale);
}

static void embed(train_call *c) {
    look_up(c, c->in[1].block, c->in[1].offset, c->out, c->out_offset, false);
}

static void embed_backward(train_call *c) {
    look_up(c, c->out, c->out_offset, c->in[1].block, c->in[1].offset, true);
}

/* ---- convolutions: y[t] = sum over l of w[l] x[t + l - (taps - 1)], channel by channel ---- */

typedef enum slid { RESULT, INPUT, TAPS } slid;

/* Of so many channels, the share of tap l in one of the three arrays, from the other two. */
static void tap(slid what, size_t channels, size_t taps, float *w, float *x, float *y) {
    for (size_t f = 0; f < channels; f++)
        if (what == RESULT) y[f] += w[f * taps] * x[f];
        else if (what == INPUT) x[f] += w[f * taps] * y[f];
        else w[f * taps] += x[f] * y[f];
}

/* Rows x and y [B,T,...], w [...,taps]. */
static void slide(train_call *c, slid what, const sm_local_block *w, const sm_local_block *x,
                  const sm_local_block *y) {
    size_t taps = w->size[w->rank - 1], channels = sm_local_block_count(w) / taps;
    train_clear(c->out);
    for (size_t s = 0; s < y->size[0]; s++)
        for (size_t t = 0; t < y->size[1]; t++)
            for (size_t l = t + 1 < taps ? taps - 1 - t : 0; l < taps; l++) {
                size_t row = s * y->size[1] + t;
                tap(what, channels, taps, (float *)w->data + l,
                    (float *)x->data + (row + l + 1 - taps) * channels,
                    (float *)y->data + row * channels);
            }
}

/* New positions behind those of the cache; other ranks of a sequence add what theirs give. */
static void slide_on(train_call *c) {
    const sm_local_block *w = c->in[1].block, *past = c->in[2].block, *y = c->out;
    const train_feed *feed = c->t->feed;
    size_t taps = w->size[w->rank - 1], channels = sm_local_block_count(w) / taps;
    train_clear(c->out);
    for (size_t s = 0; s < y->size[0]; s++) {
        size_t sequence = c->out_offset[0] + s;
        for (size_t l = 0; feed->count[sequence] && l < taps; l++) {
            size_t place = feed->position[sequence] + l + 1;
            if (place < taps) continue;
            size_t row =
                train_cache_row(feed, sequence, place - taps, c->in[2].offset[1], past->size[1]);
            if (row >= past->size[0] * past->size[1]) continue;
            tap(RESULT, channels, taps, (float *)w->data + l, (float *)past->data + row * channels,
                (float *)y->data + s * channels);
        }
    }
}

static void convolve(train_call *c) {
    if (c->list->program->rules.decode) slide_on(c);
    else slide(c, RESULT, c->in[1].block, c->in[0].block, c->out);
}

static void convolve_back(train_call *c) {
    if (c->which) slide(c, TAPS, c->out, c->input[0], c->in[0].block);
    else slide(c, INPUT, c->input[1], c->out, c->in[0].block);
}

/* ---- windows: row t has rows of x from t x step on; where they overlap their middle is t's ----
 */

static void window(train_call *c) {
    const bool back = c->task->kind != SM_TASK_FORWARD;
    const sm_local_block *x = back ? c->out : c->in[0].block,
                         *wide = back ? c->in[0].block : c->out;
    size_t taps = wide->size[2], channels = wide->size[3];
    size_t step = c->line->step > 0 ? (size_t)c->line->step : 1;
    size_t beyond = step < taps ? (taps - 1) / 2 : 0; /* rows of zeros before the first */
    train_clear(c->out);
    for (size_t i = 0; i < x->size[0] * wide->size[1] * taps; i++) {
        size_t line = i / taps, at = line % wide->size[1] * step + i % taps;
        if (at < beyond || at - beyond >= x->size[1]) continue;
        size_t row = line / wide->size[1] * x->size[1] + at - beyond;
        float *of_x = (float *)x->data + row * channels,
              *of_wide = (float *)wide->data + i * channels;
        row_add(back ? of_wide : of_x, 1, channels, back ? of_x : of_wide);
    }
}

/* ---- adapters: the sum of a product and of what is added to it ---- */

static void copy(sm_local_block *to, const sm_local_block *from) {
    memcpy(to->data, from->data, sm_local_block_count(to) * sizeof(float));
}

static void add_adapter(train_call *c) {
    copy(c->out, c->in[0].block);
    row_add(c->in[1].block->data, 1, sm_local_block_count(c->out), c->out->data);
}

static void add_adapter_back(train_call *c) { copy(c->out, c->in[0].block); }

/* ---- by operator ---- */

typedef void kernel(train_call *c);

static const struct {
    kernel *forward, *back;
} table[SM_OPERATOR_COUNT] = {
    [SM_OPERATOR_PRODUCT] = {add_adapter, add_adapter_back},
    [SM_OPERATOR_TOP] = {train_choose, train_choose_back},
    [SM_OPERATOR_DISPATCH] = {train_dispatch, train_dispatch_backward},
    [SM_OPERATOR_COMBINE] = {train_combine, train_combine_backward},
    [SM_OPERATOR_CONV] = {convolve, convolve_back},
    [SM_OPERATOR_WINDOWS] = {window, window},
    [SM_OPERATOR_TAKE] = {embed, embed_backward},
    [SM_OPERATOR_APPEND] = {train_rows, train_rows},
    [SM_OPERATOR_PICK] = {train_rows, train_rows},
    [SM_OPERATOR_VIEW] = {train_rows, train_rows},
    [SM_OPERATOR_MEAN] = {train_rows, train_rows},
    [SM_OPERATOR_CROSS_ENTROPY] = {NULL, train_loss_backward},
};

static sm_status run(train_call *c, kernel *with, sm_error *err) {
    if (c->op->kind == SM_OP_EINSUM) return einsum(c, err);
    if (!with) return sm_fail(err, SM_INTERNAL, "there is no kernel for the op %s", c->op->name);
    with(c);
    return SM_OK;
}

sm_status train_forward_kernel(train_call *c, sm_error *err) {
    if (c->line->kernel >= 0) return train_scan(c, err);
    switch (c->line->op) {
    case SM_OPERATOR_ATTENTION:
        return c->list->program->rules.decode ? generate_attention(c, err)
                                              : train_attention_forward(c, err);
    case SM_OPERATOR_CROSS_ENTROPY: return train_loss_forward(c, err);
    case SM_OPERATOR_EXPRESSION: return train_expression(c, err);
    default: return run(c, table[c->line->op].forward, err);
    }
}

sm_status train_gradient_kernel(train_call *c, sm_error *err) {
    if (c->line->kernel >= 0) return train_scan_back(c, err);
    switch (c->line->op) {
    case SM_OPERATOR_ATTENTION: return train_attention_backward(c, err);
    case SM_OPERATOR_EXPRESSION: return train_expression_back(c, err);
    default: return run(c, table[c->line->op].back, err);
    }
}
