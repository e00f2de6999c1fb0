/* The memory of a step as its stages live through it: microbatch by microbatch in the order of the
 * schedule, then the reduction of the gradients and the update. */
#include <string.h>

#include "live.h"

/* What a layer keeps of a microbatch. */
typedef struct resident {
    int layer, microbatch;
    double bytes;
} resident;
enum { RESIDENTS = 3 }; /* that stay under offload, the one at work among them */

typedef struct stage_life {
    const sm_train *t;
    const sm_plan *plan;
    const pieces *p;
    const chunk_layout *layout;
    const live_piece *piece; /* of each piece of the variant */
    int stage;
    double sent[2];           /* the last message forward and backward that went out */
    uint8_t *made;            /* of each layer of each chunk: its gradients are there */
    double params, optimizer; /* all the time */
    live_effect effect;
    int residents;
    resident resident[RESIDENTS];
    double host, host_most;
} stage_life;

/* ---- what a stage holds ---- */

static int stage_of(const sm_plan *plan, int chunk) {
    if (plan->pipeline == 1) return 0;
    return sm_schedule_stage(plan->schedule, plan->pipeline, plan->virtual_stages, chunk);
}

static bool holds(const stage_life *s, int chunk) {
    int at = stage_of(s->plan, chunk);
    bool mirror = s->plan->schedule == SM_SCHEDULE_DUALPIPE && s->plan->pipeline > 1;
    return at == s->stage || (mirror && s->plan->pipeline - 1 - at == s->stage);
}

/* Pieces of a chunk in model order: [0, n). -1: beyond the last. */
static int nth_piece(const stage_life *s, int chunk, int n) {
    const sm_train *t = s->t;
    int first = 0, layers = 0;
    for (int k = 0; k < t->kinds; k++) {
        first += s->layout->before[chunk][k];
        layers += s->layout->kind[chunk][k];
    }
    if (chunk == 0 && n-- == 0) return embedding_piece(t);
    if (n < layers) return t->model.layer[first + n];
    return n == layers && chunk == s->layout->chunks - 1 ? head_piece(t) : -1;
}

/* A tied unembedding beside its embedding: a copy without state or reduction of its own. */
static bool is_copy(const stage_life *s, int index) {
    return s->t->model.tied && index == head_piece(s->t) &&
           stage_of(s->plan, 0) == stage_of(s->plan, s->layout->chunks - 1);
}

static void add_held(stage_life *s, int index) {
    const stage_load *load = &s->p->load[index];
    bool halved = s->plan->schedule == SM_SCHEDULE_DUALPIPE && s->plan->zero >= 1;
    s->params += load->params;
    if (!is_copy(s, index)) s->optimizer += load->optimizer * (halved ? 0.5 : 1);
}

/* Chunks from the last to the first. */
static void for_each_held(stage_life *s, void (*visit)(stage_life *s, int index)) {
    for (int c = s->layout->chunks - 1; c >= 0; c--)
        for (int n = 0, index; holds(s, c) && (index = nth_piece(s, c, n)) >= 0; n++)
            visit(s, index);
}

/* ---- messages ---- */

static void receive(stage_life *s, bool local, double bytes) {
    if (!local) live_add(&s->effect, LIVE_BUFFERS, bytes);
}

/* A message lives until it has arrived, which is told when the next one leaves. */
static void hand_over(stage_life *s, bool local, bool backward, double bytes) {
    if (local) return;
    s->effect.end[LIVE_BUFFERS] -= s->sent[backward];
    s->sent[backward] = bytes;
}

static bool is_local(const stage_life *s, int chunk, int other) {
    return s->plan->schedule != SM_SCHEDULE_DUALPIPE &&
           stage_of(s->plan, chunk) == stage_of(s->plan, other);
}

/* ---- activations in host memory ---- */

static bool offloads(const stage_life *s, int index) {
    int offload = s->plan->offload;
    return index < s->t->kinds && (offload == SM_OFFLOAD_ACTIVATIONS || offload == SM_OFFLOAD_BOTH);
}

static void to_host(stage_life *s, double bytes) {
    s->host += bytes;
    if (s->host > s->host_most) s->host_most = s->host;
    live_add(&s->effect, LIVE_ACTIVATIONS, -bytes);
}

static void forget(stage_life *s, int i) {
    s->residents--;
    for (; i < s->residents; i++) s->resident[i] = s->resident[i + 1];
}

static void make_room(stage_life *s) {
    if (s->residents < RESIDENTS) return;
    to_host(s, s->resident[0].bytes);
    forget(s, 0);
}

static double kept_of(const stage_life *s, int index) {
    return s->piece[index].forward.end[LIVE_ACTIVATIONS];
}

/* Before its backward pass: in from host memory, unless it is among those that stayed. */
static void fetch(stage_life *s, int index, int layer, int microbatch) {
    if (!offloads(s, index)) return;
    for (int i = 0; i < s->residents; i++)
        if (s->resident[i].layer == layer && s->resident[i].microbatch == microbatch) {
            forget(s, i);
            return;
        }
    make_room(s);
    to_host(s, -kept_of(s, index));
}

/* ---- gradients of a piece: from blocks to what the optimizer wants ---- */

static double elements_held(const stage_life *s, const sm_weight_class *c) {
    return c->elements * s->p->d.inverse[c->stored];
}

enum { SINGLE_BYTES = 4 };

/* first: there is no sum yet to add to. */
static void reduce(stage_life *s, int index, bool first) {
    const sm_partition *part = &s->p->v->piece[index].part;
    for (int i = 0; i < part->classes; i++) {
        const sm_weight_class *c = &part->weight[i];
        double row = elements_held(s, c) * SINGLE_BYTES, parts = 1 / s->p->d.inverse[c->partial];
        double kept = s->plan->zero >= 1 ? row / parts : row, other = parts > 1 ? kept : 0;
        live_add(&s->effect, LIVE_BUFFERS, row);
        live_add(&s->effect, LIVE_GRADIENTS, -row);
        if (s->plan->zero >= 1) live_add(&s->effect, LIVE_BUFFERS, other);
        live_add(&s->effect, LIVE_BUFFERS, -row - (s->plan->zero >= 1 ? other : 0));
        if (first) live_add(&s->effect, LIVE_GRADIENTS, kept);
    }
}

static bool reduces_each(const sm_plan *plan) { return plan->zero == 2 && plan->fsdp == 1; }

/* ---- a step ---- */

enum { MOST_LAYERS = SM_MAX_LAYERS + 2 };

static uint8_t *made_of(stage_life *s, int chunk, int n, int microbatch) {
    bool second = s->plan->schedule == SM_SCHEDULE_DUALPIPE && s->plan->pipeline > 1 &&
                  microbatch >= microbatches_of(s->t, s->plan) / 2;
    int layer = n;
    for (int k = 0; k < s->t->kinds; k++) layer += s->layout->before[chunk][k];
    if (chunk > 0) layer++; /* the embedding */
    return &s->made[layer + (second ? MOST_LAYERS : 0)];
}

static void forward(stage_life *s, const sm_slot *slot) {
    int chunk = slot->chunk, last = s->layout->chunks - 1;
    double boundary = s->piece[0].input;
    if (chunk > 0) receive(s, is_local(s, chunk, chunk - 1), boundary);
    for (int n = 0, index; (index = nth_piece(s, chunk, n)) >= 0; n++) {
        if (offloads(s, index)) make_room(s);
        live_then(&s->effect, &s->piece[index].forward);
        if (offloads(s, index))
            s->resident[s->residents++] =
                (resident){(int)(made_of(s, chunk, n, slot->microbatch) - s->made),
                           slot->microbatch, kept_of(s, index)};
    }
    if (chunk < last) hand_over(s, is_local(s, chunk, chunk + 1), false, boundary);
}

static void weights_made(stage_life *s, int index, uint8_t *made) {
    if (reduces_each(s->plan)) reduce(s, index, !*made);
    *made = 1;
}

static bool makes(const stage_life *s, const uint8_t *made) {
    return !*made || reduces_each(s->plan);
}

static void backward(stage_life *s, const sm_slot *slot) {
    int chunk = slot->chunk, last = s->layout->chunks - 1, n = 0;
    double boundary = s->piece[0].input;
    if (chunk < last) receive(s, is_local(s, chunk, chunk + 1), boundary);
    while (nth_piece(s, chunk, n) >= 0) n++;
    while (n-- > 0) {
        int index = nth_piece(s, chunk, n);
        uint8_t *made = made_of(s, chunk, n, slot->microbatch);
        fetch(s, index, (int)(made - s->made), slot->microbatch);
        if (slot->kind == SM_SLOT_BACKWARD_INPUT) {
            live_then(&s->effect, &s->piece[index].inputs);
            continue;
        }
        live_then(&s->effect, &s->piece[index].backward[makes(s, made)]);
        weights_made(s, index, made);
    }
    if (chunk > 0) hand_over(s, is_local(s, chunk, chunk - 1), true, boundary);
}

static void weights(stage_life *s, const sm_slot *slot) {
    int n = 0;
    while (nth_piece(s, slot->chunk, n) >= 0) n++;
    while (n-- > 0) {
        int index = nth_piece(s, slot->chunk, n);
        uint8_t *made = made_of(s, slot->chunk, n, slot->microbatch);
        live_then(&s->effect, &s->piece[index].weights[makes(s, made)]);
        weights_made(s, index, made);
    }
}

static void act(stage_life *s, const sm_slot *slot) {
    switch (slot->kind) {
    case SM_SLOT_FORWARD: forward(s, slot); break;
    case SM_SLOT_BACKWARD:
    case SM_SLOT_BACKWARD_INPUT: backward(s, slot); break;
    case SM_SLOT_BACKWARD_WEIGHT: weights(s, slot); break;
    }
}

/* The row of a class with what is updated of it beside. */
static void update(stage_life *s, int index) {
    const sm_partition *part = &s->p->v->piece[index].part;
    for (int i = 0; i < part->classes; i++) {
        double row = elements_held(s, &part->weight[i]) * SINGLE_BYTES;
        double parts = 1 / s->p->d.inverse[part->weight[i].partial];
        double room = row + (s->plan->zero >= 1 && parts > 1 ? row / parts : 0);
        live_add(&s->effect, LIVE_BUFFERS, room);
        live_add(&s->effect, LIVE_BUFFERS, -room);
    }
}

static void end_of_piece(stage_life *s, int index) {
    if (!reduces_each(s->plan) && !is_copy(s, index)) reduce(s, index, true);
}

static void end_step(stage_life *s) {
    live_add(&s->effect, LIVE_BUFFERS, -s->sent[0] - s->sent[1]);
    for_each_held(s, end_of_piece);
    for_each_held(s, update);
}

static void live_through(stage_life *s, const sm_slot *slot, size_t slots) {
    for_each_held(s, add_held);
    for (size_t i = 0; i < slots; i++)
        if (slot[i].stage == s->stage) act(s, &slot[i]);
    end_step(s);
}

static void worse(const stage_life *s, sm_memory *m) {
    const double *peak = s->effect.peak;
    bool away = s->plan->offload == SM_OFFLOAD_OPTIMIZER || s->plan->offload == SM_OFFLOAD_BOTH;
    double optimizer = away ? 0 : s->optimizer, capacity = m->capacity;
    double total = s->params + optimizer + live_sum(peak);
    if (total <= m->total) return;
    *m = (sm_memory){.params = s->params,
                     .optimizer = optimizer,
                     .gradients = peak[LIVE_GRADIENTS],
                     .activations = peak[LIVE_ACTIVATIONS],
                     .buffers = peak[LIVE_BUFFERS],
                     .total = total,
                     .capacity = capacity,
                     .host = s->optimizer - optimizer + s->host_most,
                     .stage = s->stage};
}

/* ---- the order of ops ---- */

typedef struct order {
    size_t slots;
    sm_slot *slot;
    sm_chunk_time *time;
    void *scratch;
} order;

static void free_order(order *o) {
    sm_free(o->slot);
    sm_free(o->time);
    sm_free(o->scratch);
}

static sm_status order_alone(int microbatches, order *o, sm_error *err) {
    o->slots = 2 * (size_t)microbatches;
    o->slot = sm_calloc(o->slots, sizeof *o->slot);
    if (!o->slot) return sm_fail_memory(err);
    for (size_t i = 0; i < o->slots; i++)
        o->slot[i] = (sm_slot){.microbatch = (int)(i / 2),
                               .kind = i % 2 ? SM_SLOT_BACKWARD : SM_SLOT_FORWARD};
    return SM_OK;
}

/* As src/run orders its stages: by the simulated schedule with a backward twice as long as a
 * forward. */
static sm_status order_of(const sm_train *t, const sm_plan *plan, int chunks, order *o,
                          sm_error *err) {
    *o = (order){.slots = 0};
    if (plan->pipeline == 1) return order_alone(microbatches_of(t, plan), o, err);
    bool dual = plan->schedule == SM_SCHEDULE_DUALPIPE;
    o->time = sm_calloc((size_t)chunks, sizeof *o->time);
    if (!o->time) return sm_fail_memory(err);
    for (int c = 0; c < chunks; c++) o->time[c] = (sm_chunk_time){1, 1, 1};
    sm_pipeline line = {plan->schedule,           plan->pipeline, dual ? 2 : plan->virtual_stages,
                        microbatches_of(t, plan), o->time,        0};
    o->slots = sm_pipeline_slots(&line);
    o->slot = sm_calloc(o->slots, sizeof *o->slot);
    o->scratch = sm_malloc(sm_pipeline_scratch(&line));
    if (!o->slot || !o->scratch) return sm_fail_memory(err);
    sm_pipeline_simulate(&line, o->scratch, o->slot);
    return SM_OK;
}

/* ---- a plan ---- */

static sm_status worst_stage(const sm_train *t, const sm_plan *plan, const pieces *p,
                             const stages *s, const live_piece *of, sm_memory *memory,
                             sm_error *err) {
    order o;
    uint8_t *made = NULL;
    sm_status status = order_of(t, plan, s->layout->chunks, &o, err);
    if (!status && !(made = sm_malloc(2 * MOST_LAYERS))) status = sm_fail_memory(err);
    memory->total = -1;
    for (int stage = 0; !status && stage < plan->pipeline; stage++) {
        stage_life life = {.t = t,
                           .plan = plan,
                           .p = p,
                           .layout = s->layout,
                           .piece = of,
                           .stage = stage,
                           .made = made};
        memset(made, 0, 2 * MOST_LAYERS);
        live_through(&life, o.slot, o.slots);
        worse(&life, memory);
    }
    sm_free(made);
    free_order(&o);
    return status;
}

sm_status live_memory(const sm_train *t, const sm_plan *plan, const pieces *p, stages *s,
                      sm_memory *memory, sm_error *err) {
    live_piece *of = sm_calloc((size_t)p->v->pieces, sizeof *of);
    sm_status status = of ? SM_OK : sm_fail_memory(err);
    stages_layout(t, plan, s);
    for (int i = 0; !status && i < p->v->pieces; i++) {
        int set = i < t->kinds ? set_of(plan) : SM_RECOMPUTE_NONE;
        status = live_piece_of(&p->v->piece[i], set, &p->d, &of[i], err);
    }
    if (!status) status = worst_stage(t, plan, p, s, of, memory, err);
    sm_free(of);
    return status;
}
