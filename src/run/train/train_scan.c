/* Scans and other recurrences: a kernel's lines as its text has them, on one chunk of positions
 * after the other where it has chunks (Zc), else on one position. What it carries is a state for
 * each sequence, zero before the first. Of Z chunks, backward in reverse through time, states are
 * kept at the beginnings of segments of about sqrt(Z), and the segment at hand is run again (Chen
 * et al., arXiv 1604.06174; Griewank and Walther, section 12.2). */
#include <cblas.h>

#include "einsum_parts.h"
#include "train_parts.h"

enum { MOST_ARRAYS = 64, MOST_STATES = SM_RUN_STATES, MOST_LINES = SM_RUN_LINES };
enum { LONGEST = 64 }; /* positions of a chunk: the squares of longer ones leave the cache */

typedef struct scan {
    train_call *c;
    const sm_text_lines *l;
    const sm_text_kernel *k;
    sm_text_lines inner;
    sm_text_line line[MOST_LINES];
    sm_program *program; /* the kernel's arrays and lines, as the kernels of lines meet them */
    sm_task_list list;
    int arrays, array[MOST_ARRAYS]; /* of the lines */
    size_t size[SM_MAX_DIMENSIONS], sequences, positions;
    int along;             /* T */
    uint64_t within;       /* dimensions of the positions of a chunk; 0: a chunk is one position */
    size_t longest, n;     /* positions of a chunk, at most and of that at hand */
    size_t *first, chunks; /* positions that chunks of a sequence begin at, and its end */
    sm_local_block value[MOST_ARRAYS], slope[MOST_ARRAYS];
    size_t count[MOST_ARRAYS];                         /* elements */
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
    bool fits = line->operands <= SM_MAX_INPUTS && op->out >= 0;
    for (int i = 0; fits && i < line->operands; i++) {
        op->in[i] = place_of(x, line->operand[i].array);
        fits = op->in[i] >= 0;
        memcpy(op->as[i], line->operand[i].dim, sizeof op->as[i]);
    }
    return fits ? SM_OK : sm_fail_limit(err, "arrays of a scan", MOST_ARRAYS + 1, MOST_ARRAYS);
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

/* What a chunk counts its positions by: what views of arguments have in place of T, and the letters
 * of equal size that stand for it. */
static void find_chunks(scan *x) {
    for (int n = 0; n < x->k->lines; n++) {
        const sm_text_line *line = &x->line[n];
        const sm_text_array *made = &x->l->array[line->result[0].array];
        for (int i = 0; i < line->operands; i++) {
            const sm_text_array *a = &x->l->array[line->operand[i].array];
            bool cut = line->op == SM_OPERATOR_VIEW && made->rank == a->rank + 1;
            for (int d = 0; d < a->rank; d++)
                if (x->within >> a->dim[d] & 1) x->within |= 1ull << line->operand[i].dim[d];
            if (cut) x->within |= 1ull << made->dim[2];
        }
    }
}

/* Sizes of dimensions on this rank are those of the arguments. */
static void measure(scan *x) {
    for (int d = 0; d < x->l->dims; d++) x->size[d] = (size_t)x->l->dim[d].size;
    for (int i = 0; i < x->k->operands; i++) {
        const sm_text_array *a = &x->l->array[x->k->operand[i]];
        const sm_local_block *b = x->c->in[i].block;
        for (int d = 0; d < a->rank; d++) {
            x->size[a->dim[d]] = b->size[d];
            sm_dimension_role role = x->l->dim[a->dim[d]].role;
            if (role == SM_DIMENSION_SEQUENCES) x->sequences = b->size[d];
            if (role != SM_DIMENSION_POSITIONS) continue;
            x->positions = b->size[d];
            x->along = a->dim[d];
        }
    }
    x->longest = x->positions < LONGEST ? x->positions : LONGEST;
    for (int d = 0; d < x->l->dims; d++)
        if (x->within >> d & 1 && x->size[d] < x->longest) x->longest = x->size[d];
    if (!x->within || !x->longest) x->longest = 1;
}

static bool along_positions(const scan *x, int i) {
    const sm_text_array *a = &x->l->array[x->array[i]];
    return a->rank && x->l->dim[a->dim[0]].role == SM_DIMENSION_SEQUENCES;
}

/* The arrays of a chunk of n positions. */
static void shape_arrays(scan *x, size_t n) {
    for (int i = 0; i < x->arrays && x->n != n; i++) {
        const sm_text_array *a = &x->l->array[x->array[i]];
        sm_local_block *v = &x->value[i];
        x->count[i] = 1;
        for (int d = 0; d < a->rank; d++) {
            int dim = a->dim[d];
            sm_dimension_role role = x->l->dim[dim].role;
            bool one = role == SM_DIMENSION_SEQUENCES || role == SM_DIMENSION_POSITIONS;
            bool each = dim == x->along || x->within >> dim & 1;
            v->size[d] = x->slope[i].size[d] = each ? n : one ? 1 : x->size[dim];
            x->count[i] *= v->size[d];
        }
    }
    x->n = n;
}

/* Are its sums, masks and inverses those of the positions of a chunk? */
static bool is_of_chunks(const scan *x, int n) {
    const sm_text_line *line = &x->line[n];
    const sm_op *op = &x->program->op[n];
    const sm_tensor *out = &x->program->tensor[op->out], *in = &x->program->tensor[op->in[0]];
    bool square = out->rank > 1 && x->within >> out->dim[out->rank - 1] & 1 &&
                  x->within >> out->dim[out->rank - 2] & 1;
    bool sums = line->op == SM_OPERATOR_SUM, adds = sums || line->op == SM_OPERATOR_CUMSUM;
    for (int t = 0; t < line->terms && !square; t++)
        if (line->term[t].kind == SM_TERM_OPERATOR && line->term[t].op > SM_OPERATOR_SQUARE &&
            line->term[t].op <= SM_OPERATOR_BELOW)
            return false;
    if (adds &&
        (in->rank < 3 || !(x->within >> in->dim[2] & 1) || (!sums && line->along != in->dim[2])))
        return false;
    return (!adds || x->count[op->in[0]] == x->count[op->out] * (sums ? x->n : 1)) &&
           (square || line->op != SM_OPERATOR_INVERSE);
}

static sm_status begin(scan *x, train_call *c, bool back, sm_error *err) {
    memset(x, 0, sizeof *x);
    x->c = c;
    x->l = c->lines;
    x->k = &x->l->kernel[c->line->kernel];
    x->along = -1;
    x->program = sm_calloc(1, sizeof *x->program);
    if (!x->program) return sm_fail_memory(err);
    for (int d = 0; d < x->l->dims; d++) x->program->dim[d].role = x->l->dim[d].role;
    for (int i = 0; i < x->k->operands; i++) place_of(x, x->k->operand[i]);
    sm_status status = SM_OK;
    for (int n = 0; !status && n < x->k->lines; n++) status = read_line(x, n, err);
    if (status) return status;
    x->inner = *x->l;
    x->inner.line = x->line;
    x->inner.input = -1;
    x->list.program = x->program;
    find_chunks(x);
    measure(x);
    for (int i = 0; i < x->arrays; i++) {
        const sm_text_array *a = &x->l->array[x->array[i]];
        x->program->tensor[i] = (sm_tensor){.rank = a->rank};
        memcpy(x->program->tensor[i].dim, a->dim, sizeof a->dim);
        x->value[i] = (sm_local_block){.element = SM_ELEMENT_F32, .rank = a->rank};
        x->slope[i] = x->value[i];
    }
    shape_arrays(x, x->longest);
    for (int n = 0; n < x->k->lines; n++)
        if (!is_of_chunks(x, n))
            return sm_fail(err, SM_BAD_INPUT, "%s is of other dimensions than those of a chunk",
                           x->line[n].name);
    size_t all = 0;
    for (int i = 0; i < x->arrays; i++) all += x->count[i];
    link_states(x);
    for (int s = 0; s < x->states; s++) x->state_count += x->count[x->state[s]];
    x->first = sm_calloc(x->positions + 2, sizeof *x->first);
    x->room = sm_calloc((back ? 2 : 1) * all + 1, sizeof *x->room);
    if (!x->room || !x->first) return sm_fail_memory(err);
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
    sm_free(x->first);
    sm_free(x->program);
}

/* ---- a chunk ---- */

/* Positions [t, returned) of a sequence, of which a sum of logarithms leaves no more than `window`
 * in any channel: its exponential, and the inverse of that, are numbers yet. */
static size_t reach(scan *x, const sm_text_line *line, size_t sequence, size_t t, size_t to) {
    int at = place_of(x, line->operand[0].array);
    for (int n = 0; n < x->k->lines; n++) /* the argument that it is a view of */
        if (x->program->op[n].out == at && x->line[n].op == SM_OPERATOR_VIEW)
            at = x->program->op[n].in[0];
    if (at >= x->k->operands) return to;
    size_t width = x->count[at] / x->n;
    const float *l =
        (const float *)x->c->in[at].block->data + (sequence * x->positions + t) * width;
    for (size_t h = 0; h < width; h++) {
        double sum = (double)l[h];
        for (size_t i = t + 1; i < to; i++) {
            sum += (double)l[(i - t) * width + h];
            if (fabs(sum) > line->window) to = i;
        }
    }
    return to;
}

/* The first positions of the chunks of a sequence that has so many. */
static void lay_chunks(scan *x, size_t sequence, size_t positions) {
    x->chunks = 0;
    for (size_t t = 0, to; t < positions; t = to) {
        x->first[x->chunks++] = t;
        to = positions - t < x->longest ? positions : t + x->longest;
        for (int n = 0; n < x->k->lines; n++)
            if (x->line[n].op == SM_OPERATOR_CUMSUM && x->line[n].window > 0)
                to = reach(x, &x->line[n], sequence, t, to);
    }
    x->first[x->chunks] = positions;
}

/* Arguments lie where they are: a row for each position, or one for all. */
static void set_chunk(scan *x, size_t sequence, size_t z) {
    size_t row = sequence * x->positions + x->first[z];
    shape_arrays(x, x->first[z + 1] - x->first[z]);
    for (int i = 0; i < x->k->operands; i++)
        x->value[i].data = (float *)x->c->in[i].block->data +
                           (along_positions(x, i) ? row * x->count[i] / x->n : 0);
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

/* Sums over the positions of a chunk, each of the arrays' `width` numbers: of all, or up to each.
 */
static void sum_positions(const scan *x, const float *from, size_t width, bool each, float *to) {
    memcpy(to, from, width * sizeof *to);
    for (size_t t = 1; t < x->n; t++) {
        float *next = each ? to + width : to;
        if (each) memcpy(next, to, width * sizeof *to);
        row_add(from + t * width, 1, width, next);
        to = next;
    }
}

/* The inverse of I and what is below the diagonal of each matrix [n,n]. */
static void invert(const scan *x, const float *a, size_t count, float *m) {
    int n = (int)x->n;
    memset(m, 0, count * sizeof *m);
    for (size_t i = 0; i < count; i += x->n * x->n) {
        for (size_t d = 0; d < x->n; d++) m[i + d * (x->n + 1)] = 1;
        cblas_strsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit, n, n, 1.0F,
                    a + i, n, m + i, n);
    }
}

/* The logarithm of what a head keeps of a position, -2^(-8 h / n) of head h = 1 .. n, less towards
 * the last layer (Qin et al., arXiv 2401.04658; Lightning attention of MiniMax, 2501.08313). */
static void fill_decays(const scan *x, const sm_op *op) {
    const sm_tensor *t = &x->program->tensor[op->out];
    const int head = t->dim[t->rank - 1];
    const double share = 1 - x->c->layer / (x->c->t->setup->model->L - 1 + 1e-5) + 1e-5;
    size_t first = 0, n = x->size[head];
    for (int d = 0; d < SM_MAX_RANK && x->c->in[0].block; d++)
        if (x->l->array[x->k->operand[0]].dim[d] == head) first = x->c->in[0].offset[d];
    float *to = x->value[op->out].data;
    for (size_t i = 0; i < x->count[op->out]; i++)
        to[i] = (float)(-share * pow(2, -8 * (double)(first + i % n + 1) / x->l->dim[head].size));
}

static sm_status run_line(scan *x, int n, sm_error *err) {
    const sm_text_line *line = &x->line[n];
    const sm_op *op = &x->program->op[n];
    sm_local_block *out = &x->value[op->out];
    size_t count = x->count[op->out];
    const float *in = x->value[op->in[0]].data; /* of a state, which has none: not read */
    switch (line->op) {
    case SM_OPERATOR_STATE: return SM_OK;
    case SM_OPERATOR_DECAYS: fill_decays(x, op); return SM_OK;
    case SM_OPERATOR_VIEW: memcpy(out->data, in, count * sizeof(float)); return SM_OK;
    case SM_OPERATOR_PRODUCT: return multiply(x, n, -1, err);
    case SM_OPERATOR_SUM: sum_positions(x, in, count, false, out->data); return SM_OK;
    case SM_OPERATOR_CUMSUM: sum_positions(x, in, count / x->n, true, out->data); return SM_OK;
    case SM_OPERATOR_INVERSE: invert(x, in, count, out->data); return SM_OK;
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

/* The states before this chunk, from or to a row of them; after it, to. */
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
        assert(tensor >= 0);
        kept[s] = &x->c->saved->value[tensor];
        sm_local_block like = x->value[x->state[s]];
        like.size[0] = x->c->t->feed->slots;
        if (!kept[s]->data)
            status = sm_local_block_new(like.element, like.rank, like.size, kept[s], err);
    }
    return status;
}

static void exchange(const scan *x, sm_local_block **kept, size_t slot, float *row, bool in) {
    for (int s = 0; s < x->states && kept[s]; row += x->count[x->state[s++]]) {
        size_t n = x->count[x->state[s]];
        float *there = (float *)kept[s]->data + slot * n;
        if (in) memcpy(row, there, n * sizeof *row);
        else memcpy(there, row, n * sizeof *row);
    }
}

static sm_status run_sequence(scan *x, size_t sequence, size_t count, float *states,
                              sm_error *err) {
    int result = result_of(x);
    float scale = (float)x->c->numbers->scan_scale;
    sm_status status = SM_OK;
    lay_chunks(x, sequence, count);
    for (size_t z = 0; !status && z < x->chunks; z++) {
        set_chunk(x, sequence, z);
        size_t n = x->count[result], row = sequence * x->positions + x->first[z];
        float *to = (float *)x->c->out->data + row * (n / x->n);
        states_from(x, states);
        status = run_lines(x, err);
        states_to(x, states);
        const float *made = x->value[result].data;
        for (size_t i = 0; i < n; i++) to[i] = scale * made[i];
    }
    return status;
}

sm_status train_scan(train_call *c, sm_error *err) {
    scan x;
    sm_local_block *kept[MOST_STATES] = {NULL};
    bool serving = c->t->serving;
    train_clear(c->out);
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
    row_add(from, 1, x->count[i], x->slope[i].data);
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

/* Of m, the inverse of I + a: da = -m' dm m', below the diagonal. */
static void invert_back(const scan *x, const sm_op *op, float *room) {
    size_t n = x->n, count = x->count[op->out];
    const float *m = x->value[op->out].data, *dm = x->slope[op->out].data;
    float *da = x->slope[op->in[0]].data, *whole = room + n * n;
    int size = (int)n;
    for (size_t at = 0; at < count; at += n * n) {
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, size, size, size, 1.0F, m + at, size,
                    dm + at, size, 0.0F, room, size);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, size, size, size, 1.0F, room, size,
                    m + at, size, 0.0F, whole, size);
        for (size_t i = 1; i < n; i++) row_add(whole + i * n, -1, i, da + at + i * n);
    }
}

static void cumsum_back(const scan *x, const sm_op *op) {
    size_t width = x->count[op->out] / x->n;
    float *later = x->slope[op->out].data; /* which nothing reads again */
    for (size_t t = x->n - 1; t > 0; t--)
        row_add(later + t * width, 1, width, later + (t - 1) * width);
}

static sm_status line_back(scan *x, int n, float *room, sm_error *err) {
    const sm_text_line *line = &x->line[n];
    const sm_op *op = &x->program->op[n];
    sm_status status = SM_OK;
    switch (line->op) {
    case SM_OPERATOR_STATE:
    case SM_OPERATOR_DECAYS: return SM_OK;
    case SM_OPERATOR_INVERSE: invert_back(x, op, room); return SM_OK;
    case SM_OPERATOR_SUM:
        for (size_t t = 0, width = x->count[op->out]; t < x->n; t++)
            row_add(x->slope[op->out].data, 1, width,
                    (float *)x->slope[op->in[0]].data + t * width);
        return SM_OK;
    case SM_OPERATOR_CUMSUM: cumsum_back(x, op); /* fall through */
    case SM_OPERATOR_VIEW: add_slope(x, op->in[0], x->slope[op->out].data); return SM_OK;
    case SM_OPERATOR_PRODUCT:
        for (int i = 0; !status && i < 2; i++) status = multiply(x, n, i, err);
        return status;
    default: return expression_back(x, n, room, err);
    }
}

/* A chunk in reverse. later: the slopes of the states after it, then of those before. */
static sm_status chunk_back(scan *x, size_t sequence, size_t z, float *later, float *room,
                            sm_error *err) {
    train_call *c = x->c;
    int result = result_of(x);
    size_t at = sequence * x->positions + x->first[z];
    for (int i = 0; i < x->arrays; i++) {
        if (i < x->k->operands)
            x->slope[i].data =
                (float *)c->out[i].data + (along_positions(x, i) ? at * x->count[i] / x->n : 0);
        else memset(x->slope[i].data, 0, x->count[i] * sizeof(float));
    }
    const float *dy =
        (const float *)c->in[c->op->inputs].block->data + at * x->count[result] / x->n;
    row_add(dy, (float)c->numbers->scan_scale, x->count[result], x->slope[result].data);
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
    size_t segment;         /* chunks */
    float *begins, *within; /* states before each segment, before each chunk of one */
    float *later, *room;
} reverse;

/* So many chunks of a sequence from `first`, of which every step-th counts. */
typedef struct chunk_run {
    size_t sequence, first, n, step;
} chunk_run;

/* The states before each chunk that counts, and those after the last. */
static sm_status states_before(scan *x, chunk_run c, float *states, float *row, sm_error *err) {
    sm_status status = SM_OK;
    for (size_t z = 0; !status && z < c.n; z++) {
        if (z % c.step == 0)
            memcpy(row + z / c.step * x->state_count, states, x->state_count * sizeof *row);
        if (z == c.n - 1) break; /* nobody asks what is behind it */
        set_chunk(x, c.sequence, c.first + z);
        states_from(x, states);
        status = run_lines(x, err);
        states_to(x, states);
    }
    return status;
}

static sm_status sequence_back(scan *x, size_t sequence, reverse *r, sm_error *err) {
    size_t bytes = x->state_count * sizeof(float);
    memset(r->later, 0, bytes);
    const chunk_run all = {sequence, 0, x->chunks, r->segment};
    sm_status status = states_before(x, all, r->later, r->begins, err);
    memset(r->later, 0, bytes);
    for (size_t left = x->chunks; !status && left > 0;) {
        size_t first = (left - 1) / r->segment * r->segment;
        float *begin_of = r->begins + first / r->segment * x->state_count;
        const chunk_run segment = {sequence, first, left - first, 1};
        status = states_before(x, segment, begin_of, r->within, err);
        for (size_t z = left; !status && z-- > first;) {
            set_chunk(x, sequence, z);
            states_from(x, r->within + (z - first) * x->state_count);
            status = run_lines(x, err);
            if (!status) status = chunk_back(x, sequence, z, r->later, r->room, err);
        }
        left = first;
    }
    return status;
}

/* out: a block for each input, of its gradient, zeroed. The operand behind them is that of out. */
sm_status train_scan_back(train_call *c, sm_error *err) {
    scan x;
    size_t most = 0, chunks = 0;
    sm_status status = begin(&x, c, true, err);
    for (size_t s = 0; !status && s < x.sequences; s++) {
        lay_chunks(&x, s, x.positions);
        chunks = x.chunks > chunks ? x.chunks : chunks;
    }
    for (int i = 0; i < x.arrays; i++) most = x.count[i] > most ? x.count[i] : most;
    reverse r = {.segment = (size_t)ceil(sqrt((double)chunks))};
    float *room =
        status ? NULL : sm_calloc((2 * r.segment + 3) * x.state_count + 2 * most + 1, sizeof *room);
    if (!status && !room) status = sm_fail_memory(err);
    if (room) {
        r.begins = room;
        r.within = r.begins + (r.segment + 1) * x.state_count;
        r.later = r.within + (r.segment + 1) * x.state_count;
        r.room = r.later + x.state_count;
    }
    for (size_t s = 0; !status && s < x.sequences; s++) {
        lay_chunks(&x, s, x.positions);
        status = sequence_back(&x, s, &r, err);
    }
    sm_free(room);
    end(&x);
    return status;
}
