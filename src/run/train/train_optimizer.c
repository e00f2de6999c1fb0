/* The optimizer on the weights of a rank: what the interpreter of a step (step.h) wants done with
 * rows of gradients and weights. Adam (Kingma and Ba, arXiv 1412.6980, algorithm 1): m += (1 - b1)
 * (g - m), v += (1 - b2) (g^2 - v), w -= rate (m / (1 - b1^n)) / (sqrt(v / (1 - b2^n)) + epsilon).
 */
#include "train_parts.h"

/* Moments of the optimizer as they are stored between steps: in single precision, rounded to bf16,
 * or in 8 bits a number, block by block of 256 (Dettmers et al. 2021, arXiv 2110.02861, section 2):
 * each number is divided by the largest of its block and rounded to the nearest of the dynamic tree
 * codes. The zeros that a code leads with are its decimal exponent, a one ends them, and the bits
 * after it are a fraction of the decade: e zeros and fraction q of f bits stand for 10^-e (0.1 +
 * 0.9 (q + 1) / 2^f). All zeros are zero. First moments spend a bit on their sign. A second moment
 * that is not zero never becomes zero: Adam divides by its root. */

enum { BLOCK = TRAIN_MOMENT_BLOCK, CODES = 256, SIGN = 128 };

/* Has the optimizer weights of its own, in single precision? */
static bool keeps_weights(const sm_train_setup *s) { return s->stored && !s->rounded; }

/* ---- 8 bits ---- */

static float decode(int code, int bits) {
    float decade = 1;
    int f = bits - 1;
    if (!code) return 0;
    for (; !(code >> f & 1); f--) decade /= 10;
    int q = code & ((1 << f) - 1);
    return decade * (0.1F + 0.9F * (float)(q + 1) / (float)(1 << f));
}

void train_codes_new(train_codes *c) {
    for (int i = 0; i < CODES; i++) c->positive[i] = decode(i, 8);
    for (int i = 0; i < SIGN; i++) c->half[i] = decode(i, 7);
}

/* The nearest of n rising values, the lower of two as near. */
static int nearest(const float *value, int n, float x) {
    int low = 0, high = n - 1;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (value[middle] > x) high = middle;
        else low = middle;
    }
    return value[high] - x < x - value[low] ? high : low;
}

static void write_block(const train_codes *c, bool second, const float *x, size_t n, uint8_t *code,
                        float *scale) {
    assert(n <= BLOCK && code);
    *scale = 0;
    for (size_t i = 0; i < n; i++) *scale = fmaxf(*scale, fabsf(x[i]));
    for (size_t i = 0; i < n; i++) {
        float part = *scale > 0 ? fabsf(x[i]) / *scale : 0;
        int near = second ? nearest(c->positive, CODES, part) : nearest(c->half, SIGN, part);
        if (second && part > 0 && !near) near = 1;
        code[i] = (uint8_t)(!second && x[i] < 0 ? near | SIGN : near);
    }
}

static void read_block(const train_codes *c, bool second, const uint8_t *code, float scale,
                       size_t n, float *x) {
    for (size_t i = 0; i < n; i++) {
        if (second) x[i] = scale * c->positive[code[i]];
        else x[i] = (code[i] & SIGN ? -scale : scale) * c->half[code[i] & (SIGN - 1)];
    }
}

/* ---- a moment of the weights of a group ---- */

static sm_status train_moment_new(const sm_trainer *t, size_t n, train_moment *m, sm_error *err) {
    const sm_train_setup *s = t->setup;
    static const size_t bytes[SM_TRAIN_OPTIMIZER_COUNT] = {
        [SM_TRAIN_ADAM] = 4, [SM_TRAIN_ADAM_BF16] = 2, [SM_TRAIN_ADAM_8BIT] = 1};
    if (s->optimizer == SM_TRAIN_SGD) return SM_OK;
    memory_scope before =
        memory_for(s->offload_optimizer ? SM_TRAIN_MEMORY_HOST : SM_TRAIN_MEMORY_OPTIMIZER);
    m->code = memory_new_cleared((n + 1) * bytes[s->optimizer]);
    if (s->optimizer == SM_TRAIN_ADAM_8BIT)
        m->scale = memory_new_cleared(((n + BLOCK - 1) / BLOCK + 1) * sizeof *m->scale);
    memory_restore(before);
    bool whole = m->code && (m->scale || s->optimizer != SM_TRAIN_ADAM_8BIT);
    return whole ? SM_OK : sm_fail_memory(err);
}

static void train_moment_free(train_moment *m) {
    memory_free(m->code);
    memory_free(m->scale);
    *m = (train_moment){.code = NULL};
}

typedef enum moment { FIRST_MOMENT, SECOND_MOMENT } moment;
typedef enum direction { READ, WRITE } direction;

/* Between a moment as it is stored, from a multiple of the block on, and n numbers. */
static void pass_moment(const sm_trainer *t, moment which, const train_moments *of, direction to,
                        size_t first, size_t n, float *x) {
    const train_moment *m = which == SECOND_MOMENT ? &of->second : &of->first;
    const bool eight = t->setup->optimizer == SM_TRAIN_ADAM_8BIT;
    const sm_element element =
        t->setup->optimizer == SM_TRAIN_ADAM_BF16 ? SM_ELEMENT_BF16 : SM_ELEMENT_F32;
    assert(first % BLOCK == 0);
    if (!m->code) { /* plain descent has none */
        if (to == READ) memset(x, 0, n * sizeof *x);
    } else if (!eight && to == READ) sm_elements_read(element, m->code, first, n, x);
    else if (!eight) sm_elements_write(element, m->code, first, n, x);
    for (size_t i = 0; eight && i < n; i += BLOCK) {
        size_t some = n - i < BLOCK ? n - i : BLOCK;
        uint8_t *code = (uint8_t *)m->code + first + i;
        float *scale = &m->scale[(first + i) / BLOCK];
        if (to == READ) read_block(&t->codes, which, code, *scale, some, x + i);
        else write_block(&t->codes, which, x + i, some, code, scale);
    }
}

/* ---- rows ---- */

/* Between the blocks of a group and a row of all their elements, in the type of both; what has no
 * data is zero. */
static void each_part(const sm_step_layer *layer, int group, const sm_local_block *block,
                      const sm_local_block *row, bool in) {
    size_t width = sm_element_bytes(row->element);
    char *at = row->data;
    for (int i = 0; i < layer->list->program->tensors; i++) {
        if (!layer->weight[i].data || layer->group_of[i] != group) continue;
        size_t bytes = sm_local_block_count(&layer->weight[i]) * width;
        assert(!block[i].data || block[i].element == row->element);
        if (block[i].data && in) memcpy(at, block[i].data, bytes);
        else if (block[i].data) memcpy(block[i].data, at, bytes);
        at += bytes;
    }
}

/* The ranks that a row of gradients or weights moves between. */
static sm_communicator *row_group(const sm_trainer *t, sm_axes axes, sm_row_over over,
                                  sm_error *err) {
    sm_axes real = sm_mesh_real_axes(&t->mesh->mesh, axes);
    if (over == SM_OVER_ACROSS_COPIES) return t->across_copies;
    if (over == SM_OVER_ONE_COPY && t->one_copy[real]) return t->one_copy[real];
    return sm_rank_mesh_over(t->mesh, axes, err);
}

/* Where this rank's part lies in the row. */
static size_t place_in_row(const sm_trainer *t, const sm_step_layer *layer, int group) {
    const sm_gradient_group *g = &layer->group[group];
    size_t part = 0, half = sm_group_peers(&t->stage, g) > 1 ? (size_t)t->peers[0]->rank : 0;
    if (sm_group_ways(&t->stage, layer, group) > 1)
        part = (size_t)row_group(t, g->partial, SM_OVER_ONE_COPY, NULL)->rank;
    return part * g->reduced + half * g->chunk;
}

sm_status train_join_rows(void *context, const sm_row_move *m, sm_error *err) {
    const sm_trainer *t = context;
    sm_communicator *over = m->axes ? row_group(t, m->axes, m->over, err) : t->peers[m->joined - 1];
    if (!over) return err && err->status ? err->status : SM_INTERNAL;
    const sm_local_block *from = m->from ? m->from : m->to;
    size_t n = sm_local_block_count(m->op == SM_ALL_GATHER ? from : m->to);
    const sm_run_call call = {m->op, from->data, m->to->data, n, m->to->element, 0};
    return sm_run_collective(over, &call, err);
}

/* Ranks of all stages that hold the sum of the same element. */
static double holders(const sm_trainer *t, const sm_step_layer *layer, int group) {
    const sm_gradient_group *g = &layer->group[group];
    double ranks = train_degree(t, (1u << SM_AXIS_COUNT) - 1);
    double stages =
        g->joined ? t->peers[g->joined - 1]->size / (double)sm_group_peers(&t->stage, g) : 1;
    return stages * ranks /
           (train_degree(t, g->stored) * (double)sm_group_ways(&t->stage, layer, group));
}

enum { SOME = 1024 }; /* elements that are summed in single precision */
double train_norm_share(const sm_trainer *t) {
    double total = 0;
    for (int i = 0; i < t->stage.layers; i++)
        for (int k = 0; k < t->stage.layer[i].groups; k++) {
            const sm_gradient_group *g = &t->stage.layer[i].group[k];
            double squares = 0;
            for (size_t e = 0; e < g->chunk; e += SOME) {
                float sum[SOME];
                size_t n = g->chunk - e < SOME ? g->chunk - e : SOME;
                sm_elements_read(g->sum.element, g->sum.data, e, n, sum);
                squares += (double)row_dot(sum, sum, n);
            }
            total += squares / holders(t, &t->stage.layer[i], k);
        }
    return total;
}

/* ---- the update ---- */

/* Both moments are old + (1 - beta) (new - old). The steps that need more than single precision are
 * made once: rate / bias1, and the root of bias2 taken out of that of the second moment. */
static void adam_step(const train_adam *a, size_t n, float *restrict first, float *restrict second,
                      float *restrict sum, float *restrict weight) {
    float scale = (float)a->scale, epsilon = (float)(a->epsilon * sqrt(a->bias2));
    float near1 = (float)(1 - a->beta1), near2 = (float)(1 - a->beta2);
    float rate = (float)(a->rate / a->bias1 * sqrt(a->bias2));
    for (size_t i = 0; i < n; i++) {
        float slope = sum[i] * scale;
        first[i] += near1 * (slope - first[i]);
        second[i] += near2 * (slope * slope - second[i]);
        weight[i] -= rate * first[i] / (sqrtf(second[i]) + epsilon);
        sum[i] = 0;
    }
}

/* A number between two of bf16 becomes the farther from zero as often as it is near it: of its
 * lower half a number drawn for its place carries, or not. */
static void round_at_random(uint64_t seed, size_t first, size_t n, float *x) {
    for (size_t i = 0; i < n; i++) {
        sm_rng rng = {seed + (first + i) * 0x9e3779b97f4a7c15u};
        uint32_t bits, draw = (uint32_t)(sm_rng_next(&rng) & 0xffff);
        memcpy(&bits, &x[i], sizeof bits);
        if (isfinite(x[i])) bits = (bits + draw) & 0xffff0000u;
        memcpy(&x[i], &bits, sizeof bits);
    }
}

/* What is stored otherwise, or elsewhere, comes in parts to be updated and goes again. place: of
 * the part in the row of the group, whose draws are the seed's. */
static void update_in_parts(const sm_trainer *t, const train_adam *a, sm_gradient_group *g,
                            sm_local_block *row, uint64_t seed, size_t place) {
    enum { PART = 4 * TRAIN_MOMENT_BLOCK };
    train_moments *m = g->state;
    bool sgd = t->setup->optimizer == SM_TRAIN_SGD, own = m->weights != NULL;
    float first[PART], second[PART], sum[PART], weight[PART];
    for (size_t i = 0; i < g->chunk; i += PART) {
        size_t n = g->chunk - i < PART ? g->chunk - i : PART;
        sm_elements_read(g->sum.element, g->sum.data, i, n, sum);
        sm_elements_read(own ? SM_ELEMENT_F32 : row->element, own ? m->weights : row->data, i, n,
                         weight);
        pass_moment(t, FIRST_MOMENT, m, READ, i, n, first);
        pass_moment(t, SECOND_MOMENT, m, READ, i, n, second);
        for (size_t k = 0; sgd && k < n; k++) weight[k] -= (float)(a->rate * a->scale) * sum[k];
        if (!sgd) adam_step(a, n, first, second, sum, weight);
        pass_moment(t, FIRST_MOMENT, m, WRITE, i, n, first);
        pass_moment(t, SECOND_MOMENT, m, WRITE, i, n, second);
        if (own) memcpy(m->weights + i, weight, n * sizeof *weight);
        else if (row->element != SM_ELEMENT_F32) round_at_random(seed, place + i, n, weight);
        sm_elements_write(row->element, row->data, i, n, weight);
    }
}

static void update_weights(const sm_trainer *t, const sm_step_layer *layer, int group,
                           sm_local_block *row) {
    sm_gradient_group *g = &((sm_step_layer *)(uintptr_t)layer)->group[group];
    const train_moments *m = g->state;
    const sm_train_setup *s = t->setup;
    sm_rng rng = {s->seed + t->updates * 0x100000001b3u};
    rng.state =
        sm_rng_next(&rng) + (uint64_t)(layer->number + 1) * SM_MAX_WEIGHT_CLASSES + (uint64_t)group;
    /* Where not all that an update reads and writes is floats in the rank's own memory, it comes
     * and goes in parts that begin at multiples of a block. */
    if (s->optimizer == SM_TRAIN_ADAM && !s->offload_optimizer && !s->stored && !s->gradients)
        adam_step(&t->adam, g->chunk, m->first.code, m->second.code, g->sum.data, row->data);
    else update_in_parts(t, &t->adam, g, row, sm_rng_next(&rng), place_in_row(t, layer, group));
}

void train_row_call(sm_trainer *t, const sm_call *c) {
    sm_step_layer *layer = c->layer;
    switch (c->kind) {
    case SM_CALL_PACK_GRADIENTS: each_part(layer, c->group, layer->gradient, c->out, true); return;
    case SM_CALL_PACK_WEIGHTS: each_part(layer, c->group, layer->weight, c->out, true); return;
    case SM_CALL_UNPACK_WEIGHTS:
        each_part(layer, c->group, layer->weight, c->in[0].block, false);
        return;
    case SM_CALL_TAKE_PART: {
        size_t width = sm_element_bytes(c->out->element);
        memcpy(c->out->data,
               (const char *)c->in[0].block->data + place_in_row(t, layer, c->group) * width,
               layer->group[c->group].chunk * width);
        return;
    }
    default: update_weights(t, layer, c->group, c->out);
    }
}

sm_status train_update(sm_trainer *t, double rate, double scale, sm_error *err) {
    const sm_train_setup *s = t->setup;
    double n = (double)++t->updates;
    assert(s->beta1 >= 0 && s->beta1 < 1 && s->beta2 >= 0 && s->beta2 < 1 && scale >= 0);
    t->adam = (train_adam){
        rate, scale, s->beta1, s->beta2, s->epsilon, 1 - pow(s->beta1, n), 1 - pow(s->beta2, n)};
    sm_status status = sm_stage_update(&t->stage, err);
    train_tie_weights(t);
    return status;
}

/* ---- moments, whole ---- */

static sm_status new_row(size_t n, sm_local_block *row, sm_error *err) {
    return sm_local_block_new(SM_ELEMENT_F32, 1, &n, row, err);
}

/* This rank's chunk of a group, n numbers. */
static void pass_state(const sm_trainer *t, const sm_gradient_group *g, sm_train_part part,
                       direction to, float *x) {
    const train_moments *m = g->state;
    if (part == SM_TRAIN_VALUE)
        memcpy(to == READ ? x : m->weights, to == READ ? m->weights : x, g->chunk * sizeof *x);
    else
        pass_moment(t, part == SM_TRAIN_FIRST ? FIRST_MOMENT : SECOND_MOMENT, m, to, 0, g->chunk,
                    x);
}

static sm_status group_out(sm_trainer *t, const sm_step_layer *layer, int group, sm_train_part part,
                           sm_local_block *block, sm_error *err) {
    const sm_gradient_group *g = &layer->group[group];
    sm_local_block row, chunk = {.data = NULL}, *mine = &row;
    size_t all = sm_group_row(&t->stage, layer, group);
    sm_status status = new_row(all, &row, err);
    if (!status && all > g->chunk) status = new_row(g->chunk, mine = &chunk, err);
    if (!status) pass_state(t, g, part, READ, mine->data);
    if (!status && mine == &chunk)
        status = sm_stage_gather(&t->stage, layer, group, mine, &row, err);
    if (!status) each_part(layer, group, block, &row, false);
    sm_local_block_free(&chunk);
    sm_local_block_free(&row);
    return status;
}

void train_stored_out(const sm_step_layer *layer, sm_local_block *block) {
    for (int i = 0; i < layer->list->program->tensors; i++)
        if (block[i].data)
            sm_elements_read(layer->weight[i].element, layer->weight[i].data, 0,
                             sm_local_block_count(&block[i]), block[i].data);
}

sm_status train_state_out(sm_trainer *t, sm_step_layer *layer, sm_train_part part,
                          sm_local_block *block, sm_error *err) {
    sm_status status = SM_OK;
    bool value = part == SM_TRAIN_VALUE;
    if (value) train_stored_out(layer, block);
    if (value && !keeps_weights(t->setup)) return SM_OK;
    for (int g = 0; !status && g < layer->groups; g++)
        status = group_out(t, layer, g, part, block, err);
    return status;
}

sm_status train_state_in(sm_trainer *t, sm_step_layer *layer, sm_train_part part,
                         const sm_local_block *block, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; part == SM_TRAIN_VALUE && i < layer->list->program->tensors; i++)
        if (block[i].data)
            sm_elements_write(layer->weight[i].element, layer->weight[i].data, 0,
                              sm_local_block_count(&block[i]), block[i].data);
    if (part == SM_TRAIN_VALUE && !keeps_weights(t->setup)) return SM_OK;
    for (int k = 0; !status && k < layer->groups; k++) {
        const sm_gradient_group *g = &layer->group[k];
        sm_local_block row;
        status = new_row(sm_group_row(&t->stage, layer, k), &row, err);
        if (status) return status;
        each_part(layer, k, block, &row, true);
        pass_state(t, g, part, WRITE, (float *)row.data + place_in_row(t, layer, k));
        sm_local_block_free(&row);
    }
    return status;
}

/* ---- the state of groups ---- */

/* The optimizer's weights are those of the layer to begin with. */
static sm_status own_weights(sm_trainer *t, const sm_step_layer *layer, int group, sm_error *err) {
    const sm_gradient_group *g = &layer->group[group];
    train_moments *m = g->state;
    if (!keeps_weights(t->setup)) return SM_OK;
    memory_scope before =
        memory_for(t->setup->offload_optimizer ? SM_TRAIN_MEMORY_HOST : SM_TRAIN_MEMORY_OPTIMIZER);
    m->weights = memory_new_cleared((g->chunk + 1) * sizeof *m->weights);
    memory_restore(before);
    size_t n = sm_group_row(&t->stage, layer, group);
    sm_local_block row;
    if (!m->weights) return sm_fail_memory(err);
    sm_status status = sm_local_block_new(g->element, 1, &n, &row, err);
    if (status) return status;
    each_part(layer, group, layer->weight, &row, true);
    sm_elements_read(g->element, row.data, place_in_row(t, layer, group), g->chunk, m->weights);
    sm_local_block_free(&row);
    return SM_OK;
}

sm_status train_moments_new(sm_trainer *t, sm_step_layer *layer, sm_error *err) {
    sm_status status = sm_stage_group(&t->stage, layer, err);
    for (int i = 0; !status && i < layer->groups; i++) {
        train_moments *m = layer->group[i].state = sm_calloc(1, sizeof *m);
        if (!m) return sm_fail_memory(err);
        status = train_moment_new(t, layer->group[i].chunk, &m->first, err);
        if (!status) status = train_moment_new(t, layer->group[i].chunk, &m->second, err);
        if (!status) status = own_weights(t, layer, i, err);
    }
    return status;
}

void train_moments_free(sm_step_layer *layer) {
    for (int i = 0; i < layer->groups; i++) {
        train_moments *m = layer->group[i].state;
        if (m) train_moment_free(&m->first);
        if (m) train_moment_free(&m->second);
        if (m) memory_free(m->weights);
        sm_free(m);
        layer->group[i].state = NULL;
    }
}
