/* Scans and other recurrences: a kernel's lines on one position after the other, as its text says.
 * What it carries is a state for each sequence, zero before the first position. A training step
 * runs the lines that a decode step runs, so that both are one recurrence. Backward in reverse
 * through time: states are kept at the beginnings of segments of about sqrt(T) positions, and the
 * segment at hand is run again (Chen et al., arXiv 1604.06174; Griewank and Walther, section 12.2).
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "einsum_parts.h"
#include "train_parts.h"

enum { MOST_ARRAYS = 64, MOST_STATES = SM_RUN_STATES, MOST_LINES = SM_RUN_LINES };

typedef struct scan {
    train_call *c;
    const sm_text_lines *l; /* of a decode step */
    const sm_text_kernel *k;
    int argument[SM_MAX_INPUTS]; /* arrays of the lines that the op's inputs are */
    sm_text_lines inner;
    sm_text_line line[MOST_LINES];
    sm_program *program; /* the kernel's arrays and lines, as the kernels of lines meet them */
    sm_task_list list;
    int arrays, array[MOST_ARRAYS]; /* of the lines */
    size_t size[SM_MAX_DIMENSIONS], sequences, positions;
    sm_local_block value[MOST_ARRAYS], slope[MOST_ARRAYS];
    size_t count[MOST_ARRAYS];                         /* elements of one position */
    int states, state[MOST_STATES], next[MOST_STATES]; /* arrays: before a position and after */
    size_t state_count;
    float *room;
} scan;

static const sm_term carried[] = {
    {.kind = SM_TERM_ARRAY, .operand = 0},
    {.kind = SM_TERM_ARRAY, .operand = 1},
    {.kind = SM_TERM_OPERATOR, .op = SM_OPERATOR_CARRY, .arguments = 2}};

static int place_of(scan *x, int array) {
    for (int i = 0; i < x->arrays; i++)
        if (x->array[i] == array) return i;
    if (x->arrays == MOST_ARRAYS) return -1;
    x->array[x->arrays] = array;
    return x->arrays++;
}

static bool carries(const sm_text_line *line) {
    return line->op == SM_OPERATOR_CARRY || (line->op == SM_OPERATOR_EXPRESSION && line->terms &&
                                             line->term[line->terms - 1].kind == SM_TERM_OPERATOR &&
                                             line->term[line->terms - 1].op == SM_OPERATOR_CARRY);
}

/* "s.2" is the state s after a position, "s.4" a second kernel's s.3. */
static bool is_next(const char *state, const char *name) {
    size_t n = strcspn(state, ".");
    return strncmp(state, name, n) == 0 && name[n] == '.';
}

/* ---- the lines as ops of a program of their own ---- */

static sm_status read_line(scan *x, int n, sm_error *err) {
    sm_text_line *line = &x->line[n];
    sm_op *op = &x->program->op[n];
    *line = x->l->line[x->k->from + n];
    *op = (sm_op){.kind = SM_OP_VECTOR, .line = n, .reads = 0xffff};
    if (line->op == SM_OPERATOR_CARRY && line->terms == 0) {
        line->term = carried;
        line->terms = 3;
    }
    if (carries(line)) line->op = SM_OPERATOR_EXPRESSION;
    op->out = place_of(x, line->result[0].array);
    op->inputs = line->operands;
    if (line->operands > SM_MAX_INPUTS || op->out < 0)
        return sm_fail_limit(err, "arrays of a scan", MOST_ARRAYS + 1, MOST_ARRAYS);
    for (int i = 0; i < line->operands; i++) {
        op->in[i] = place_of(x, line->operand[i].array);
        if (op->in[i] < 0)
            return sm_fail_limit(err, "arrays of a scan", MOST_ARRAYS + 1, MOST_ARRAYS);
        memcpy(op->as[i], line->operand[i].dim, sizeof op->as[i]);
    }
    return SM_OK;
}

/* A carried array belongs to the state whose name it takes. */
static void link_states(scan *x) {
    for (int n = 0; n < x->k->lines; n++) {
        const sm_text_line *line = &x->l->line[x->k->from + n];
        if (line->op == SM_OPERATOR_STATE) {
            assert(x->states < MOST_STATES);
            x->next[x->states] = -1;
            x->state[x->states++] = x->program->op[n].out;
        }
        const char *name = x->l->array[line->result[0].array].name;
        for (int s = 0; carries(line) && s < x->states; s++)
            if (is_next(x->l->array[x->array[x->state[s]]].name, name))
                x->next[s] = x->program->op[n].out;
    }
}

/* Sizes of dimensions on this rank are those of the arguments. */
static void measure(scan *x) {
    for (int d = 0; d < x->l->dims; d++) x->size[d] = (size_t)x->l->dim[d].size;
    for (int i = 0; i < x->k->operands; i++) {
        const sm_text_array *a = &x->l->array[x->argument[i]];
        const sm_local_block *b = x->c->in[i].block;
        for (int d = 0; d < a->rank; d++) {
            x->size[a->dim[d]] = b->size[d];
            sm_dimension_role role = x->l->dim[a->dim[d]].role;
            if (role == SM_DIMENSION_SEQUENCES) x->sequences = b->size[d];
            if (role == SM_DIMENSION_POSITIONS) x->positions = b->size[d];
        }
    }
}

static void shape_array(scan *x, int i) {
    const sm_text_array *a = &x->l->array[x->array[i]];
    sm_tensor *t = &x->program->tensor[i];
    sm_local_block *v = &x->value[i];
    *t = (sm_tensor){.rank = a->rank};
    memcpy(t->dim, a->dim, sizeof t->dim);
    *v = (sm_local_block){.element = SM_ELEMENT_F32, .rank = a->rank};
    x->count[i] = 1;
    for (int d = 0; d < a->rank; d++) {
        sm_dimension_role role = x->l->dim[a->dim[d]].role;
        bool one = role == SM_DIMENSION_SEQUENCES || role == SM_DIMENSION_POSITIONS;
        v->size[d] = one ? 1 : x->size[a->dim[d]];
        x->count[i] *= v->size[d];
    }
    x->slope[i] = *v;
}

static sm_status begin(scan *x, train_call *c, bool back, sm_error *err) {
    const sm_text_lines *l = c->t->steps[c->list - c->t->list];
    memset(x, 0, sizeof *x);
    x->c = c;
    x->l = l;
    x->k = &l->kernel[c->line->kernel];
    x->program = sm_calloc(1, sizeof *x->program);
    if (!x->program) return sm_fail_memory(err);
    for (int d = 0; d < l->dims; d++) x->program->dim[d].role = l->dim[d].role;
    for (int i = 0; i < x->k->operands; i++) {
        x->argument[i] = sm_step_argument(c->lines, &c->lines->kernel[c->line->kernel], i, l, x->k);
        place_of(x, x->argument[i]);
    }
    sm_status status = SM_OK;
    for (int n = 0; !status && n < x->k->lines; n++) status = read_line(x, n, err);
    if (status) return status;
    x->inner = *l;
    x->inner.line = x->line;
    x->inner.input = -1;
    x->list.program = x->program;
    measure(x);
    size_t all = 0;
    for (int i = 0; i < x->arrays; i++) {
        shape_array(x, i);
        all += x->count[i];
    }
    link_states(x);
    for (int s = 0; s < x->states; s++) x->state_count += x->count[x->state[s]];
    x->room = sm_calloc((back ? 3 : 1) * all + 1, sizeof *x->room);
    if (!x->room) return sm_fail_memory(err);
    float *at = x->room;
    for (int i = 0; i < x->arrays; i++) {
        x->value[i].data = at;
        at += x->count[i];
        if (!back) continue;
        x->slope[i].data = at;
        at += x->count[i];
    }
    return SM_OK;
}

static void end(scan *x) {
    sm_free(x->room);
    sm_free(x->program);
}

/* ---- a position ---- */

static bool along_positions(const scan *x, int i) {
    const sm_text_array *a = &x->l->array[x->array[i]];
    return a->rank && x->l->dim[a->dim[0]].role == SM_DIMENSION_SEQUENCES;
}

/* Arguments lie where they are: a row for each position, or one for all. */
static void set_rows(scan *x, size_t sequence, size_t position) {
    size_t row = sequence * x->positions + position;
    for (int i = 0; i < x->k->operands; i++)
        x->value[i].data =
            (float *)x->c->in[i].block->data + (along_positions(x, i) ? row * x->count[i] : 0);
}

static train_call call_of(scan *x, int n) {
    const sm_op *op = &x->program->op[n];
    train_call c = {.t = x->c->t,
                    .numbers = x->c->numbers,
                    .list = &x->list,
                    .op = op,
                    .lines = &x->inner,
                    .line = &x->line[n],
                    .out = &x->value[op->out]};
    return c;
}

/* The product of line n; wanted 0 or 1: the gradient of this operand instead, added to what it has.
 */
static sm_status multiply(scan *x, int n, int wanted, sm_error *err) {
    const sm_text_line *line = &x->line[n];
    const sm_op *op = &x->program->op[n];
    bool back = wanted >= 0;
    int other = back ? 1 - wanted : 1;
    const sm_local_block in[2] = {back ? x->slope[op->out] : x->value[op->in[0]],
                                  x->value[op->in[other]]};
    sm_local_block *to = back ? &x->slope[op->in[wanted]] : &x->value[op->out];
    const uint8_t *dim[2] = {back ? line->result[0].dim : line->operand[0].dim,
                             line->operand[other].dim};
    const uint8_t *out = back ? line->operand[wanted].dim : line->result[0].dim;
    int8_t label[2][SM_MAX_RANK] = {{0}}, made[SM_MAX_RANK] = {0};
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < in[i].rank; d++) label[i][d] = (int8_t)dim[i][d];
    for (int d = 0; d < to->rank; d++) made[d] = (int8_t)out[d];
    return local_einsum(2, in, (const int8_t(*)[SM_MAX_RANK])label, made, back, to, err);
}

static sm_status run_line(scan *x, int n, sm_error *err) {
    const sm_text_line *line = &x->line[n];
    const sm_op *op = &x->program->op[n];
    sm_local_block *out = &x->value[op->out];
    switch (line->op) {
    case SM_OPERATOR_STATE: return SM_OK;
    case SM_OPERATOR_VIEW:
        memcpy(out->data, x->value[op->in[0]].data, x->count[op->out] * sizeof(float));
        return SM_OK;
    case SM_OPERATOR_PRODUCT: return multiply(x, n, -1, err);
    default: break;
    }
    train_call c = call_of(x, n);
    for (int i = 0; i < op->inputs; i++) c.in[i].block = &x->value[op->in[i]];
    return train_expression(&c, err);
}

static sm_status run_lines(scan *x, sm_error *err) {
    sm_status status = SM_OK;
    for (int n = 0; !status && n < x->k->lines; n++) status = run_line(x, n, err);
    return status;
}

/* The states before this position, from or to a row of them; after it, to. */
static void states_from(scan *x, const float *row) {
    for (int s = 0; s < x->states; row += x->count[x->state[s++]])
        memcpy(x->value[x->state[s]].data, row, x->count[x->state[s]] * sizeof *row);
}

static void states_to(const scan *x, float *row) {
    for (int s = 0; s < x->states; row += x->count[x->state[s++]])
        memcpy(row, x->value[x->next[s] < 0 ? x->state[s] : x->next[s]].data,
               x->count[x->state[s]] * sizeof *row);
}

static int result_of(scan *x) { return place_of(x, x->k->result[0]); }

/* ---- forward ---- */

/* Of a sequence that is served the states stay from pass to pass, in its slot. */
static sm_status states_kept(scan *x, sm_local_block **kept, sm_error *err) {
    sm_status status = SM_OK;
    for (int s = 0; !status && s < x->states; s++) {
        int tensor = x->c->list->program->tensor_of[x->array[x->state[s]]];
        if (tensor < 0) return sm_fail(err, SM_INTERNAL, "a state is no array of its program");
        kept[s] = &x->c->saved->value[tensor];
        sm_local_block like = x->value[x->state[s]];
        like.size[0] = x->c->t->feed->slots;
        if (!kept[s]->data)
            status = sm_local_block_new(like.element, like.rank, like.size, kept[s], err);
    }
    return status;
}

static void exchange(const scan *x, sm_local_block **kept, size_t slot, float *row, bool in) {
    for (int s = 0; s < x->states; row += x->count[x->state[s++]]) {
        size_t n = x->count[x->state[s]];
        float *there = (float *)kept[s]->data + slot * n;
        if (in) memcpy(row, there, n * sizeof *row);
        else memcpy(there, row, n * sizeof *row);
    }
}

static sm_status run_sequence(scan *x, size_t sequence, size_t count, float *states,
                              sm_error *err) {
    sm_local_block *out = &x->value[result_of(x)];
    size_t n = x->count[result_of(x)];
    float scale = (float)x->c->numbers->scan_scale;
    sm_status status = SM_OK;
    for (size_t t = 0; !status && t < count; t++) {
        float *row = (float *)x->c->out->data + (sequence * x->positions + t) * n;
        set_rows(x, sequence, t);
        states_from(x, states);
        status = run_lines(x, err);
        states_to(x, states);
        const float *made = out->data;
        for (size_t i = 0; i < n; i++) row[i] = scale * made[i];
    }
    return status;
}

sm_status train_scan(train_call *c, sm_error *err) {
    scan x;
    sm_local_block *kept[MOST_STATES];
    bool serving = c->t->serving;
    memset(c->out->data, 0, sm_local_block_count(c->out) * sizeof(float));
    sm_status status = begin(&x, c, false, err);
    if (!status && serving) status = states_kept(&x, kept, err);
    float *states = status ? NULL : sm_calloc(x.state_count + 1, sizeof *states);
    if (!status && !states) status = sm_fail_memory(err);
    for (size_t s = 0; !status && s < x.sequences; s++) {
        size_t sequence = c->out_offset[0] + s, count = x.positions;
        memset(states, 0, x.state_count * sizeof *states);
        const train_feed *feed = c->t->feed;
        if (serving) count = feed->count[sequence];
        if (serving && feed->position[sequence])
            exchange(&x, kept, feed->slot[sequence], states, true);
        status = run_sequence(&x, s, count, states, err);
        if (!status && serving && count) exchange(&x, kept, feed->slot[sequence], states, false);
    }
    sm_free(states);
    end(&x);
    return status;
}

/* ---- backward ---- */

static void add_slope(scan *x, int i, const float *from) {
    float *to = x->slope[i].data;
    for (size_t k = 0; k < x->count[i]; k++) to[k] += from[k];
}

static sm_status expression_back(scan *x, int n, float *room, sm_error *err) {
    const sm_op *op = &x->program->op[n];
    sm_status status = SM_OK;
    for (int i = 0; !status && i < op->inputs; i++) {
        bool before = false;
        for (int k = 0; k < i; k++) before |= op->in[k] == op->in[i];
        if (before) continue;
        sm_local_block out = x->slope[op->in[i]];
        out.data = room;
        sm_program_task task = {.result = op->in[i]};
        train_call c = call_of(x, n);
        c.task = &task;
        c.out = &out;
        c.in[0].block = &x->slope[op->out];
        for (int k = 0; k < op->inputs; k++) c.input[k] = &x->value[op->in[k]];
        status = train_expression_back(&c, err);
        if (!status) add_slope(x, op->in[i], room);
    }
    return status;
}

static sm_status line_back(scan *x, int n, float *room, sm_error *err) {
    const sm_text_line *line = &x->line[n];
    const sm_op *op = &x->program->op[n];
    sm_status status = SM_OK;
    switch (line->op) {
    case SM_OPERATOR_STATE: return SM_OK;
    case SM_OPERATOR_VIEW: add_slope(x, op->in[0], x->slope[op->out].data); return SM_OK;
    case SM_OPERATOR_PRODUCT:
        for (int i = 0; !status && i < 2; i++) status = multiply(x, n, i, err);
        return status;
    default: return expression_back(x, n, room, err);
    }
}

/* A position in reverse. later: the slopes of the states after it, then of those before. */
static sm_status position_back(scan *x, size_t sequence, size_t t, float *later, float *room,
                               sm_error *err) {
    train_call *c = x->c;
    int result = result_of(x);
    size_t at = sequence * x->positions + t;
    for (int i = 0; i < x->arrays; i++) {
        if (i < x->k->operands)
            x->slope[i].data =
                (float *)c->out[i].data + (along_positions(x, i) ? at * x->count[i] : 0);
        else memset(x->slope[i].data, 0, x->count[i] * sizeof(float));
    }
    const float *dy = (const float *)c->in[c->op->inputs].block->data + at * x->count[result];
    float *to = x->slope[result].data, scale = (float)c->numbers->scan_scale;
    for (size_t i = 0; i < x->count[result]; i++) to[i] += scale * dy[i];
    const float *row = later;
    for (int s = 0; s < x->states; row += x->count[x->state[s++]])
        add_slope(x, x->next[s] < 0 ? x->state[s] : x->next[s], row);
    sm_status status = SM_OK;
    for (int n = x->k->lines - 1; !status && n >= 0; n--) status = line_back(x, n, room, err);
    for (int s = 0; s < x->states; later += x->count[x->state[s++]])
        memcpy(later, x->slope[x->state[s]].data, x->count[x->state[s]] * sizeof *later);
    return status;
}

typedef struct reverse {
    size_t segment;         /* positions */
    float *begins, *within; /* states before each segment, before each position of one */
    float *later, *room;
} reverse;

/* The states before each position from `first`, and those after the last. */
static sm_status states_before(scan *x, size_t sequence, size_t first, size_t n, float *states,
                               float *row, size_t step, sm_error *err) {
    sm_status status = SM_OK;
    for (size_t t = 0; !status && t < n; t++) {
        if (t % step == 0)
            memcpy(row + t / step * x->state_count, states, x->state_count * sizeof *row);
        set_rows(x, sequence, first + t);
        states_from(x, states);
        status = run_lines(x, err);
        states_to(x, states);
    }
    return status;
}

static sm_status sequence_back(scan *x, size_t sequence, reverse *r, sm_error *err) {
    size_t bytes = x->state_count * sizeof(float);
    memset(r->later, 0, bytes);
    sm_status status =
        states_before(x, sequence, 0, x->positions, r->later, r->begins, r->segment, err);
    memset(r->later, 0, bytes);
    for (size_t left = x->positions; !status && left > 0;) {
        size_t first = (left - 1) / r->segment * r->segment;
        float *begin_of = r->begins + first / r->segment * x->state_count;
        status = states_before(x, sequence, first, left - first, begin_of, r->within, 1, err);
        for (size_t t = left; !status && t-- > first;) {
            set_rows(x, sequence, t);
            states_from(x, r->within + (t - first) * x->state_count);
            status = run_lines(x, err);
            if (!status) status = position_back(x, sequence, t, r->later, r->room, err);
        }
        left = first;
    }
    return status;
}

/* out: a block for each input, of its gradient, zeroed. The operand behind them is that of out. */
sm_status train_scan_back(train_call *c, sm_error *err) {
    scan x;
    sm_status status = begin(&x, c, true, err);
    size_t n = 1, most = 0;
    if (!status) {
        reverse r = {.segment = (size_t)ceil(sqrt((double)x.positions))};
        for (int i = 0; i < x.arrays; i++) most = x.count[i] > most ? x.count[i] : most;
        n += (2 * r.segment + 3) * x.state_count + most;
        float *room = sm_calloc(n, sizeof *room);
        r.begins = room;
        if (!room) status = sm_fail_memory(err);
        else {
            r.within = r.begins + (r.segment + 1) * x.state_count;
            r.later = r.within + (r.segment + 1) * x.state_count;
            r.room = r.later + x.state_count;
        }
        for (size_t s = 0; !status && s < x.sequences; s++) status = sequence_back(&x, s, &r, err);
        sm_free(room);
    }
    end(&x);
    return status;
}
