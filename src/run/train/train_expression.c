/* Lines of pointwise operators, norms and rotary positions, of any length: worked out row by row,
 * backward in reverse (Griewank and Walther, Evaluating Derivatives, section 3.2). A row is what a
 * norm sums over, or the last dimension; an operand repeats along the dimensions that it lacks, and
 * its gradient is summed over them. Norms: Zhang and Sennrich (arXiv 1910.07467, eq. 4), Ba et al.
 * (arXiv 1607.06450, eq. 4); rotary positions: Su et al. (arXiv 2104.09864, eq. 34); GELU:
 * Hendrycks and Gimpel (arXiv 1606.08415, section 2). */

#include "train_parts.h"

enum { MOST_TERMS = SM_RUN_TERMS, MOST_ARGUMENTS = SM_RUN_ARGUMENTS };

typedef struct operand {
    const float *data; /* NULL: the backward pass does not read it */
    float *slope;      /* of the operand whose gradient is wanted */
    size_t along[SM_MAX_RANK];
} operand;

typedef struct expression {
    const train_call *c;
    const sm_text_line *line;
    int rank, row_from; /* dimensions [row_from, rank) are a row */
    size_t size[SM_MAX_RANK], at[SM_MAX_RANK], width;
    int places, sequences; /* dimensions of positions and sequences, -1: none */
    size_t place_offset, sequence_offset;
    operand operand[SM_MAX_INPUTS];
    int terms, argument[MOST_TERMS][MOST_ARGUMENTS];
    bool wanted[MOST_TERMS]; /* the gradient passes here */
    bool known[MOST_TERMS];
    float offset;   /* of the scale of a norm */
    double epsilon; /* of this norm alone; 0: that of its kind */
    float branch;   /* what is added to the stream is multiplied by */
    float *value[MOST_TERMS], *slope[MOST_TERMS], *room;
    const float *seen[MOST_TERMS]; /* value, or where the operand lies */
} expression;

/* ---- shapes ---- */

static void set_operand(expression *x, int i, const sm_local_block *b, const float *data,
                        float *slope) {
    const sm_program *program = x->c->list->program;
    const sm_tensor *out = &program->tensor[x->c->op->out];
    size_t stride = 1;
    x->operand[i] = (operand){.data = data, .slope = slope};
    for (int d = b->rank - 1; d >= 0; d--) {
        const uint8_t *at = memchr(out->dim, x->c->op->as[i][d], (size_t)out->rank);
        if (at) x->operand[i].along[at - out->dim] = b->size[d] > 1 ? stride : 0;
        stride *= b->size[d];
    }
}

static bool is_norm(sm_operator op) {
    return op == SM_OPERATOR_RMSNORM || op == SM_OPERATOR_LAYERNORM || op == SM_OPERATOR_L2NORM;
}

/* A norm takes the dimensions of its scale, or the last. */
static void set_rows(expression *x) {
    const sm_text_line *line = x->line;
    int rows = x->rank - 1;
    for (int t = 0; t < line->terms; t++) {
        if (line->term[t].kind != SM_TERM_OPERATOR || !is_norm(line->term[t].op)) continue;
        for (int k = 1; k < line->term[t].arguments && k < MOST_ARGUMENTS; k++) {
            const sm_term *scale = &line->term[x->argument[t][k]];
            if (scale->kind != SM_TERM_ARRAY) continue;
            const sm_tensor *w = &x->c->list->program->tensor[x->c->op->in[scale->operand]];
            bool each = x->c->numbers->norm_by_group > 0 && w->rank &&
                        x->c->list->program->dim[w->dim[0]].role == SM_DIMENSION_HEADS;
            if (x->rank - w->rank + each < rows) rows = x->rank - w->rank + each;
        }
    }
    x->row_from = rows < 0 ? 0 : rows;
    x->width = 1;
    for (int d = x->row_from; d < x->rank; d++) x->width *= x->size[d];
}

/* Arguments of each operator: its last values (sm_program_runs saw that they are there). */
static void link_terms(expression *x) {
    int stack[MOST_TERMS], n = 0;
    x->terms = x->line->terms;
    for (int t = 0; t < x->terms; t++) {
        const sm_term *term = &x->line->term[t];
        if (term->kind == SM_TERM_OPERATOR) n -= term->arguments;
        for (int k = 0; term->kind == SM_TERM_OPERATOR && k < term->arguments; k++)
            x->argument[t][k] = stack[n + k];
        stack[n++] = t;
    }
}

static void take_own(const expression *x, const char *fact, const char *weight, double *value) {
    char name[96];
    snprintf(name, sizeof name, "%s.%s", fact, weight);
    sm_architecture_number_of(x->c->t->setup->model->architecture, x->c->numbers->kind, name,
                              value);
}

static sm_status begin(expression *x, train_call *c, const train_array *shape, sm_error *err) {
    const sm_tensor *out = &c->list->program->tensor[c->op->out];
    *x = (expression){.c = c, .line = c->line, .rank = shape->block->rank};
    memcpy(x->size, shape->block->size, sizeof x->size);
    link_terms(x);
    set_rows(x);
    x->branch = sm_line_adds_to_stream(c->lines, c->line) ? (float)c->numbers->residual_scale : 1;
    /* Those of the family, or of this scale alone: norm_offset.mixer.n. */
    double offset = x->c->numbers->norm_offset;
    for (int i = 1; x->line->norm && i < x->line->operands; i++) {
        const sm_text_array *w = &x->c->lines->array[x->line->operand[i].array];
        if (!w->norm) continue;
        take_own(x, "norm_offset", w->name, &offset);
        take_own(x, "norm_epsilon", w->name, &x->epsilon);
    }
    x->offset = (float)offset;
    x->places = x->sequences = -1;
    for (int d = 0; d < out->rank; d++) {
        sm_dimension_role role = c->list->program->dim[out->dim[d]].role;
        if (role == SM_DIMENSION_POSITIONS) x->places = d;
        if (role == SM_DIMENSION_SEQUENCES) x->sequences = d;
    }
    x->place_offset = x->places >= 0 ? shape->offset[x->places] : 0;
    x->sequence_offset = x->sequences >= 0 ? shape->offset[x->sequences] : 0;
    x->room = sm_malloc((2 * (size_t)x->terms + 1) * x->width * sizeof *x->room + 1);
    if (!x->room) return sm_fail_memory(err);
    for (int t = 0; t < x->terms; t++) {
        x->value[t] = x->room + (size_t)t * x->width;
        x->slope[t] = x->room + (size_t)(x->terms + t) * x->width;
    }
    return SM_OK;
}

static bool next_row(expression *x) {
    int d = x->row_from - 1;
    while (d >= 0 && ++x->at[d] == x->size[d]) x->at[d--] = 0;
    return d >= 0;
}

static size_t first_of(const expression *x, const operand *o) {
    size_t first = 0;
    for (int d = 0; d < x->row_from; d++) first += x->at[d] * o->along[d];
    return first;
}

/* Does a row of the operand lie as a row of the result? */
static bool is_plain(const expression *x, const operand *o) {
    size_t stride = 1;
    for (int d = x->rank - 1; d >= x->row_from; d--) {
        if (x->size[d] > 1 && o->along[d] != stride) return false;
        stride *= x->size[d];
    }
    return true;
}

/* Where element i of a row is in the operand, from the row's first. */
static size_t place_in(const expression *x, const operand *o, size_t i) {
    size_t at = 0;
    for (int d = x->rank - 1; d >= x->row_from; d--) {
        at += i % x->size[d] * o->along[d];
        i /= x->size[d];
    }
    return at;
}

/* ---- values ---- */

static const float *value_of(expression *x, int t);

static double epsilon_of(const expression *x, sm_operator op) {
    const train_numbers *n = x->c->numbers;
    if (x->epsilon > 0) return x->epsilon;
    if (op == SM_OPERATOR_LAYERNORM) return n->layer_norm_epsilon;
    return x->line->operands == 1 && n->bare_norm_epsilon > 0 ? n->bare_norm_epsilon
                                                              : n->norm_epsilon;
}

/* A sum of squares is divided by so much. */
static float share_of(const expression *x, sm_operator op) {
    bool sum = op == SM_OPERATOR_L2NORM && !(x->c->numbers->l2_is_mean > 0);
    return sum ? 1.0F : (float)x->width;
}

typedef struct moments {
    float mean, inverse;
} moments;

/* y = (x - mean) inverse; the mean is that of a LayerNorm alone. */
static moments moments_of(const expression *x, sm_operator op, const float *in) {
    size_t n = x->width;
    moments m = {0, 0};
    if (op == SM_OPERATOR_LAYERNORM) m.mean = row_sum(in, n) / (float)n;
    float squares = 0;
    if (op != SM_OPERATOR_LAYERNORM) squares = row_dot(in, in, n);
    else
        for (size_t i = 0; i < n; i++) squares += (in[i] - m.mean) * (in[i] - m.mean);
    m.inverse = 1.0F / sqrtf(squares / share_of(x, op) + (float)epsilon_of(x, op));
    return m;
}

static void norm(expression *x, int t, float *y) {
    const sm_term *term = &x->line->term[t];
    const float *in = value_of(x, x->argument[t][0]);
    const float *w = term->arguments > 1 ? value_of(x, x->argument[t][1]) : NULL;
    const float *shift = term->arguments > 2 ? value_of(x, x->argument[t][2]) : NULL;
    moments m = moments_of(x, term->op, in);
    for (size_t i = 0; i < x->width; i++) y[i] = (in[i] - m.mean) * m.inverse;
    for (size_t i = 0; w && i < x->width; i++) y[i] *= w[i] + x->offset;
    for (size_t i = 0; shift && i < x->width; i++) y[i] += shift[i];
}

/* By how much a position comes earlier for the pictures before it; within one its begin counts, and
 * its row and side are told. */
static size_t pictures_before(const sm_trainer *t, size_t sequence, size_t at, size_t *row,
                              size_t *side) {
    const size_t *begun = t->feed ? t->feed->begun + sequence * t->pictures : NULL;
    size_t less = 0;
    for (size_t k = 0; k < t->pictures && t->seen; k++) {
        const size_t from = begun ? begun[k] : k * t->each;
        if (at < from) break;
        if (at - from < t->each) {
            *row = at - from;
            *side = t->side;
            return less + *row;
        }
        less += t->each - t->side;
    }
    return less;
}

/* The row of the table for the position at hand. */
static const float *turns_here(const expression *x, const train_turns *turns) {
    size_t place[3];
    /* Places that the sections of pairs turn by. A picture's rows of numbers begin where it does,
     * and what follows goes on behind its longer side. */
    const sm_trainer *t = x->c->t;
    size_t sequence = x->at[x->sequences] + x->sequence_offset, of_picture = 0, side = turns->side;
    size_t at = x->at[x->places] + x->place_offset + turns->first + train_position(t, sequence);
    if (turns->section && side) of_picture = at, at = 0;
    else if (turns->section) at -= pictures_before(t, sequence, at, &of_picture, &side);
    place[0] = at;
    place[1] = side ? at + of_picture / side : at;
    place[2] = side ? at + of_picture % side : at;
    for (int i = 0; i < 3; i++) /* what pads a pass */
        if (place[i] >= turns->positions) place[i] = turns->positions - 1;
    if (!turns->section) return turns->table + 2 * place[0] * turns->half;
    float *row = x->room + 2 * (size_t)x->terms * x->width;
    for (size_t i = 0; i < 2 * turns->half; i++)
        row[i] = turns->table[2 * place[turns->section[i % turns->half]] * turns->half + i];
    return row;
}

/* Queries grow with their position, floor by floor (Llama 4, "temperature tuning"). */
static void temper(const expression *x, const float *in, float *y) {
    const train_numbers *n = x->c->numbers;
    const size_t at = x->at[x->places] + x->place_offset +
                      train_position(x->c->t, x->at[x->sequences] + x->sequence_offset);
    const double floors = floor(((double)at + n->temper_first) / n->temper_each);
    const float by = (float)(1 + n->temper_scale * log1p(floors));
    for (size_t i = 0; i < x->width; i++) y[i] = by * in[i];
}

/* Sines of the position are added to half of a row, cosines to the rest. */
static void add_sines(const expression *x, const float *in, float *y) {
    const train_turns *turns = &x->c->t->turns[x->c->list - x->c->t->list];
    const float *cosine = turns_here(x, turns), *sine = cosine + turns->half;
    for (size_t i = 0; i < turns->half; i++) {
        y[i] = in[i] + sine[i];
        y[turns->half + i] = in[turns->half + i] + cosine[i];
    }
}

/* The first elements of a row turn: halves of them, or neighbours. */
static void turn(const expression *x, const float *in, float sense, float *y) {
    const train_turns *turns = &x->c->t->turns[x->c->list - x->c->t->list];
    const float *cosine = turns_here(x, turns), *sine = cosine + turns->half;
    size_t half = turns->half;
    size_t apart = turns->interleaved ? 1 : half, step = turns->interleaved ? 2 : 1;
    for (size_t i = 0; i < half; i++) {
        float a = in[step * i], b = in[step * i + apart];
        y[step * i] = a * cosine[i] - b * (sense * sine[i]);
        y[step * i + apart] = b * cosine[i] + a * (sense * sine[i]);
    }
    for (size_t i = 2 * half; i < x->width; i++) y[i] = in[i];
}

/* The distribution function of the normal one, its form by tanh, a sigmoid of 1.702 x. */
static float gelu(float x, sm_operator form) {
    if (form == SM_OPERATOR_GELU_QUICK) return x / (1 + expf(-1.702F * x));
    if (form == SM_OPERATOR_GELU) return 0.5F * x * (1 + erff(x * 0.70710678F));
    return 0.5F * x * (1 + tanhf(0.7978845608F * (x + 0.044715F * x * x * x)));
}

static float gelu_slope(float x, sm_operator form) {
    float s = 1 / (1 + expf(-1.702F * x));
    if (form == SM_OPERATOR_GELU_QUICK) return s * (1 + 1.702F * x * (1 - s));
    if (form == SM_OPERATOR_GELU)
        return 0.5F * (1 + erff(x * 0.70710678F)) + x * 0.39894228F * expf(-0.5F * x * x);
    float t = tanhf(0.7978845608F * (x + 0.044715F * x * x * x));
    return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * 0.7978845608F * (1 + 3 * 0.044715F * x * x);
}

static void logistic(const float *x, size_t n, float *s) {
    for (size_t i = 0; i < n; i++) s[i] = -x[i];
    row_exponential(s, 0, n, s);
    for (size_t i = 0; i < n; i++) s[i] = 1.0F / (1.0F + s[i]);
}

static float softplus(float x) { return x > 20 ? x : log1pf(expf(x)); }

static float limited_step(const train_numbers *n, float x) {
    return fminf(fmaxf(softplus(x), (float)n->step_least), (float)n->step_most);
}

/* Gates with a limit (gpt-oss): min(g, l) sigmoid(slope min(g, l)) (1 + u within l of 0). */
static bool is_limited(const expression *x, int t) {
    const sm_term *gate = &x->line->term[x->argument[t][0]];
    return x->c->numbers->gate_limit > 0 && x->line->term[t].op == SM_OPERATOR_MULTIPLY &&
           gate->kind == SM_TERM_OPERATOR && gate->op == SM_OPERATOR_SILU;
}

static float within(float u, float limit) { return fminf(fmaxf(u, -limit), limit); }

/* sigmoid(slope a), where a becomes what is left of it under the limit. */
static float limited(const train_numbers *n, float *a) {
    *a = fminf(*a, (float)n->gate_limit);
    return 1 / (1 + expf(-(float)n->gate_slope * *a));
}

/* Of a row of a matrix, what is not above its diagonal, or what is below. */
static size_t kept(const expression *x, sm_operator op) {
    return x->at[x->rank - 2] + (op == SM_OPERATOR_MASK);
}

static void pointwise(expression *x, int t, float *y) {
    const sm_term *term = &x->line->term[t];
    const train_numbers *numbers = x->c->numbers;
    const float *a = value_of(x, x->argument[t][0]);
    const float *b = term->arguments > 1 ? value_of(x, x->argument[t][1]) : a;
    size_t n = x->width;
    switch (term->op) {
    case SM_OPERATOR_ADD:
    case SM_OPERATOR_CARRY: /* the state of the next position */
        for (size_t i = 0; i < n; i++) y[i] = a[i] + x->branch * b[i];
        break;
    case SM_OPERATOR_SUBTRACT:
        for (size_t i = 0; i < n; i++) y[i] = a[i] - b[i];
        break;
    case SM_OPERATOR_MASK:
    case SM_OPERATOR_BELOW:
        for (size_t i = 0; i < n; i++) y[i] = i < kept(x, term->op) ? a[i] : 0;
        break;
    case SM_OPERATOR_MULTIPLY:
        if (is_limited(x, t))
            for (size_t i = 0; i < n; i++)
                y[i] = a[i] * (1 + within(b[i], (float)numbers->gate_limit));
        else
            for (size_t i = 0; i < n; i++) y[i] = a[i] * b[i];
        break;
    case SM_OPERATOR_DIVIDE:
        for (size_t i = 0; i < n; i++) y[i] = a[i] / b[i];
        break;
    case SM_OPERATOR_NEGATE:
        for (size_t i = 0; i < n; i++) y[i] = -a[i];
        break;
    case SM_OPERATOR_SILU:
        if (!(numbers->gate_limit > 0)) logistic(a, n, y);
        for (size_t i = 0; i < n; i++) {
            float g = a[i];
            if (numbers->gate_limit > 0) y[i] = limited(numbers, &g);
            y[i] *= g;
        }
        break;
    case SM_OPERATOR_SIGMOID: logistic(a, n, y); break;
    case SM_OPERATOR_GELU:
    case SM_OPERATOR_GELU_TANH:
    case SM_OPERATOR_GELU_QUICK:
        for (size_t i = 0; i < n; i++) y[i] = gelu(a[i], term->op);
        break;
    case SM_OPERATOR_RELU:
        for (size_t i = 0; i < n; i++) y[i] = a[i] > 0 ? a[i] : 0;
        break;
    case SM_OPERATOR_SQUARE: /* what configs call relu2 */
        for (size_t i = 0; i < n; i++) y[i] = a[i] > 0 ? a[i] * a[i] : 0;
        break;
    case SM_OPERATOR_TANH:
        for (size_t i = 0; i < n; i++) y[i] = tanhf(a[i]);
        break;
    case SM_OPERATOR_EXP: row_exponential(a, 0, n, y); break;
    case SM_OPERATOR_SQRT:
        for (size_t i = 0; i < n; i++) y[i] = sqrtf(a[i]);
        break;
    case SM_OPERATOR_SOFTPLUS:
        for (size_t i = 0; i < n; i++) y[i] = limited_step(numbers, a[i]);
        break;
    case SM_OPERATOR_CAP:
        for (size_t i = 0; i < n; i++)
            y[i] = (float)numbers->final_logit_softcapping *
                   tanhf(a[i] / (float)numbers->final_logit_softcapping);
        break;
    default: memset(y, 0, n * sizeof *y); break;
    }
}

static const float *operand_row(expression *x, const operand *o, float *room) {
    assert(o->data);
    const float *first = o->data + first_of(x, o);
    if (is_plain(x, o)) return first;
    size_t step = o->along[x->rank - 1];
    if (x->row_from == x->rank - 1)
        for (size_t i = 0; i < x->width; i++) room[i] = first[i * step];
    else
        for (size_t i = 0; i < x->width; i++) room[i] = first[place_in(x, o, i)];
    return room;
}

static const float *value_of(expression *x, int t) {
    const sm_term *term = &x->line->term[t];
    float *y = x->value[t];
    if (x->known[t]) return x->seen[t];
    x->known[t] = true;
    x->seen[t] = y;
    if (term->kind == SM_TERM_ARRAY) x->seen[t] = operand_row(x, &x->operand[term->operand], y);
    else if (term->kind == SM_TERM_NUMBER)
        for (size_t i = 0; i < x->width; i++) y[i] = (float)term->number;
    else if (is_norm(term->op)) norm(x, t, y);
    else if (term->op == SM_OPERATOR_ROTARY) turn(x, value_of(x, x->argument[t][0]), 1, y);
    else if (term->op == SM_OPERATOR_SINES) add_sines(x, value_of(x, x->argument[t][0]), y);
    else if (term->op == SM_OPERATOR_TEMPERED) temper(x, value_of(x, x->argument[t][0]), y);
    else pointwise(x, t, y);
    return x->seen[t];
}

sm_status train_expression(train_call *c, sm_error *err) {
    expression x;
    const train_array out = {.block = c->out};
    train_array shape = out;
    memcpy(shape.offset, c->out_offset, sizeof shape.offset);
    sm_status status = begin(&x, c, &shape, err);
    if (status) return status;
    for (int i = 0; i < c->op->inputs; i++)
        set_operand(&x, i, c->in[i].block, c->in[i].block->data, NULL);
    float *y = c->out->data, *last = x.value[x.terms - 1];
    do {
        memset(x.known, 0, sizeof x.known);
        x.value[x.terms - 1] = y;
        const float *made = value_of(&x, x.terms - 1);
        if (made != y) memcpy(y, made, x.width * sizeof *y);
        y += x.width;
    } while (next_row(&x));
    x.value[x.terms - 1] = last;
    sm_free(x.room);
    return SM_OK;
}

/* ---- slopes ---- */

/* dx = r (w dy - xhat mean(w dy xhat) - mean(w dy)), the latter of a LayerNorm alone. */
static void norm_back(expression *x, int t) {
    const sm_term *term = &x->line->term[t];
    const int *arg = x->argument[t];
    const float *dy = x->slope[t], *in = value_of(x, arg[0]);
    bool scaled = term->arguments > 1;
    moments m = moments_of(x, term->op, in);
    size_t n = x->width;
    if (x->wanted[arg[0]]) {
        const float *w = scaled ? value_of(x, arg[1]) : NULL;
        float *dx = x->slope[arg[0]], dot = 0, sum = 0;
        for (size_t i = 0; i < n; i++) {
            float g = w ? dy[i] * (w[i] + x->offset) : dy[i];
            dx[i] = g;
            dot += g * (in[i] - m.mean);
            sum += g;
        }
        dot *= m.inverse * m.inverse / share_of(x, term->op);
        sum = term->op == SM_OPERATOR_LAYERNORM ? sum / (float)n : 0;
        for (size_t i = 0; i < n; i++) dx[i] = m.inverse * (dx[i] - (in[i] - m.mean) * dot - sum);
    }
    if (scaled && x->wanted[arg[1]])
        for (size_t i = 0; i < n; i++) x->slope[arg[1]][i] = dy[i] * (in[i] - m.mean) * m.inverse;
    if (term->arguments > 2 && x->wanted[arg[2]]) memcpy(x->slope[arg[2]], dy, n * sizeof *dy);
}

/* The factor of dy in the gradient of the only argument. */
static void slope_at(const expression *x, sm_operator op, const float *a, float *f) {
    const train_numbers *numbers = x->c->numbers;
    size_t n = x->width;
    const float cap = (float)numbers->final_logit_softcapping;
    switch (op) {
    case SM_OPERATOR_SILU:
        if (!(numbers->gate_limit > 0)) logistic(a, n, f);
        for (size_t i = 0; i < n; i++) {
            float g = a[i], slope = 1;
            if (numbers->gate_limit > 0) {
                f[i] = limited(numbers, &g);
                slope = g < a[i] ? 0 : (float)numbers->gate_slope;
            }
            f[i] *= slope > 0 ? 1 + slope * g * (1 - f[i]) : 0;
        }
        break;
    case SM_OPERATOR_SIGMOID:
        logistic(a, n, f);
        for (size_t i = 0; i < n; i++) f[i] *= 1 - f[i];
        break;
    case SM_OPERATOR_SOFTPLUS:
        logistic(a, n, f);
        for (size_t i = 0; i < n; i++)
            if (limited_step(numbers, a[i]) != softplus(a[i])) f[i] = 0;
        break;
    case SM_OPERATOR_EXP: row_exponential(a, 0, n, f); break;
    default:
        for (size_t i = 0; i < n; i++) {
            float y;
            switch (op) {
            case SM_OPERATOR_GELU:
            case SM_OPERATOR_GELU_TANH:
            case SM_OPERATOR_GELU_QUICK: f[i] = gelu_slope(a[i], op); break;
            case SM_OPERATOR_RELU: f[i] = a[i] > 0; break;
            case SM_OPERATOR_SQRT: f[i] = fminf(0.5F / sqrtf(a[i]), 1000); break; /* Griffin's */
            case SM_OPERATOR_SQUARE: f[i] = a[i] > 0 ? 2 * a[i] : 0; break;
            case SM_OPERATOR_TANH: y = tanhf(a[i]), f[i] = 1 - y * y; break;
            case SM_OPERATOR_CAP: y = tanhf(a[i] / cap), f[i] = 1 - y * y; break;
            case SM_OPERATOR_NEGATE: f[i] = -1; break;
            case SM_OPERATOR_MASK:
            case SM_OPERATOR_BELOW: f[i] = i < kept(x, op); break;
            default: f[i] = 1; break;
            }
        }
    }
}

static void pointwise_back(expression *x, int t) {
    const sm_term *term = &x->line->term[t];
    const float *dy = x->slope[t];
    size_t n = x->width;
    for (int k = 0; k < term->arguments; k++) {
        int at = x->argument[t][k];
        float *dx = x->slope[at];
        if (!x->wanted[at]) continue;
        if (term->op == SM_OPERATOR_MULTIPLY || term->op == SM_OPERATOR_DIVIDE) {
            bool times = term->op == SM_OPERATOR_MULTIPLY, limits = is_limited(x, t);
            /* of a product with a number the array is not kept */
            const float *a = k ? value_of(x, x->argument[t][0]) : dy;
            const float *b = k && times && !limits ? dy : value_of(x, x->argument[t][1]);
            const float limit = (float)x->c->numbers->gate_limit;
            for (size_t i = 0; limits && i < n; i++)
                dx[i] = dy[i] * (k == 0 ? 1 + within(b[i], limit) : fabsf(b[i]) < limit ? a[i] : 0);
            for (size_t i = 0; !limits && i < n; i++)
                dx[i] = dy[i] * (times    ? (k ? a[i] : b[i])
                                 : k == 0 ? 1 / b[i]
                                          : -a[i] / (b[i] * b[i]));
        } else if (term->arguments == 2) {
            float sign = k == 0 ? 1 : term->op == SM_OPERATOR_SUBTRACT ? -1 : x->branch;
            for (size_t i = 0; i < n; i++) dx[i] = sign * dy[i];
        } else {
            bool reads = sm_operator_at(term->op)->reads & 1u;
            slope_at(x, term->op, reads ? value_of(x, at) : dy, dx);
            for (size_t i = 0; i < n; i++) dx[i] *= dy[i];
        }
    }
}

static void pass_down(expression *x, int t) {
    const sm_term *term = &x->line->term[t];
    if (term->kind == SM_TERM_ARRAY) {
        const operand *o = &x->operand[term->operand];
        assert(o->slope);
        float *to = o->slope + first_of(x, o);
        if (is_plain(x, o)) row_add(x->slope[t], 1, x->width, to);
        else if (x->row_from == x->rank - 1 && o->along[x->row_from] == 0)
            *to += row_sum(x->slope[t], x->width);
        else
            for (size_t i = 0; i < x->width; i++) to[place_in(x, o, i)] += x->slope[t][i];
    } else if (is_norm(term->op)) norm_back(x, t);
    else if (term->op == SM_OPERATOR_ROTARY) turn(x, x->slope[t], -1, x->slope[x->argument[t][0]]);
    else if (term->op == SM_OPERATOR_TEMPERED) temper(x, x->slope[t], x->slope[x->argument[t][0]]);
    else pointwise_back(x, t);
}

/* The gradient of one input, an activation or a weight: in[0] is that of the result. */
sm_status train_expression_back(train_call *c, sm_error *err) {
    expression x;
    sm_status status = begin(&x, c, &c->in[0], err);
    if (status) return status;
    for (int t = 0; t < x.terms; t++) {
        const sm_term *term = &x.line->term[t];
        x.wanted[t] = term->kind == SM_TERM_ARRAY && x.c->op->in[term->operand] == c->task->result;
        for (int k = 0; term->kind == SM_TERM_OPERATOR && k < term->arguments; k++)
            x.wanted[t] |= x.wanted[x.argument[t][k]];
    }
    for (int i = 0; i < c->op->inputs; i++) {
        bool wanted = c->op->in[i] == c->task->result, read = c->op->reads >> i & 1u;
        const sm_local_block *b = wanted ? c->out : c->input[i];
        if (!wanted && !read) continue;
        set_operand(&x, i, b, read ? c->input[i]->data : NULL, wanted ? c->out->data : NULL);
    }
    train_clear(c->out);
    const float *dy = c->in[0].block->data;
    float *last = x.slope[x.terms - 1];
    do {
        memset(x.known, 0, sizeof x.known);
        x.slope[x.terms - 1] = (float *)(uintptr_t)dy; /* read alone */
        for (int t = x.terms - 1; t >= 0; t--)
            if (x.wanted[t]) pass_down(&x, t);
        dy += x.width;
    } while (next_row(&x));
    x.slope[x.terms - 1] = last;
    sm_free(x.room);
    return SM_OK;
}
