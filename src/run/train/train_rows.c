/* Kernels that move rows: arrays stand one behind the other (append), rows are left out (pick), are
 * read in another shape (view), or their mean is taken. Each is linear: row h of an operand goes to
 * row g of the result, times a factor, and the gradient of g comes back the same way. */

#include "train_parts.h"

/* What this rank has of an array, as rows of the unit's width: of all rows of a sequence n from the
 * first on. */
typedef struct rows {
    float *data;
    size_t first, n, all;
    bool each; /* sequence has its own; else it is a weight */
} rows;

static size_t rows_in(const sm_program *b, int tensor, size_t unit) {
    const sm_tensor *t = &b->tensor[tensor];
    double all = 1;
    for (int d = t->role != SM_ROLE_WEIGHT; d < t->rank; d++) all *= b->dim[t->dim[d]].size;
    return (size_t)all / unit;
}

static rows rows_of(const sm_program *b, int tensor, const sm_local_block *block,
                    const size_t *offset, size_t unit) {
    rows r = {.data = block->data,
              .all = rows_in(b, tensor, unit),
              .each = b->tensor[tensor].role != SM_ROLE_WEIGHT};
    r.n = sm_local_block_count(block) / (r.each ? block->size[0] : 1) / unit;
    if (block->rank > r.each + 1) r.first = offset[r.each] * (r.n / block->size[r.each]);
    return r;
}

/* Rows are as wide as the last dimension, of which a view has the narrower one. */
static size_t unit_of(const train_call *c) {
    const sm_program *b = c->list->program;
    const sm_tensor *out = &b->tensor[c->op->out], *in = &b->tensor[c->op->in[0]];
    double made = b->dim[out->dim[out->rank - 1]].size, read = b->dim[in->dim[in->rank - 1]].size;
    return (size_t)(c->line->op == SM_OPERATOR_VIEW ? fmin(made, read) : made);
}

/* Neighbours in a square of a picture come together where the family says so (`by_squares`). */
static size_t in_squares(const train_call *c, size_t h, size_t all) {
    const sm_program *b = c->list->program;
    size_t parts = (size_t)b->dim[b->tensor[c->op->out].dim[1]].size;
    size_t side = (size_t)(sqrt((double)all) + 0.5);
    size_t square = (size_t)(sqrt((double)all / (double)parts) + 0.5);
    size_t row = h / side, column = h % side;
    size_t part = row / square * (side / square) + column / square;
    return (part * square + row % square) * square + column % square;
}

/* The row of the result that row h of an operand goes to, behind which so many of others stand; one
 * that is not there: none. */
static size_t row_to(const train_call *c, size_t h, size_t before, const rows *in,
                     const rows *out) {
    switch (c->line->op) {
    case SM_OPERATOR_APPEND: return before + h;
    case SM_OPERATOR_PICK: return out->all == 1 ? h : h + out->all - in->all; /* the last ones */
    case SM_OPERATOR_MEAN: return h / (in->all / out->all);
    default: return c->numbers->by_squares > 0 ? in_squares(c, h, in->all) : h;
    }
}

/* Between an operand, behind the rows of those before it, and the result, or their gradients. */
static void pass_rows(const train_call *c, int operand, const train_array *read,
                      const train_array *made, bool back) {
    const sm_program *b = c->list->program;
    size_t unit = unit_of(c), before = 0;
    for (int i = 0; i < operand; i++) before += rows_in(b, c->op->in[i], unit);
    rows in = rows_of(b, c->op->in[operand], read->block, read->offset, unit);
    rows out = rows_of(b, c->op->out, made->block, made->offset, unit);
    float factor = c->line->op == SM_OPERATOR_MEAN ? (float)out.all / (float)in.all : 1;
    for (size_t i = 0; i < made->block->size[0] * in.n; i++) {
        size_t s = i / in.n, g = row_to(c, in.first + i % in.n, before, &in, &out) - out.first;
        if (g >= out.n) continue;
        float *x = in.data + (in.each ? i : i % in.n) * unit,
              *y = out.data + (s * out.n + g) * unit;
        row_add(back ? y : x, factor, unit, back ? x : y);
    }
}

void train_rows(train_call *c) {
    const bool back = c->task->kind != SM_TASK_FORWARD;
    train_array out = {.block = c->out};
    memcpy(out.offset, c->out_offset, sizeof out.offset);
    train_clear(c->out);
    for (int i = 0; i < c->op->inputs; i++)
        if (!back || i == c->which)
            pass_rows(c, i, back ? &out : &c->in[i], back ? &c->in[0] : &out, back);
}
