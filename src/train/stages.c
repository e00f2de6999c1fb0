/* Stages of the pipeline: their chunks, their schedule, their memory.
 *
 * memory of a stage = weights + gradients + optimizer state (ZeRO, arXiv 1910.02054, section 3)
 *                   + activations of one microbatch x microbatches in flight (arXiv 2205.05198)
 *                   + gathered weights, workspaces and fragmentation. */
#include <assert.h>

#include "space.h"

bool stages_init(const sm_train *t, stages *s, int layouts, sm_arena *arena) {
    const int chunks = most_chunks(t) < MAX_CHUNKS ? most_chunks(t) : MAX_CHUNKS;
    memset(s, 0, sizeof *s);
    s->n_layouts = layouts;
    s->scratch_bytes = (size_t)1 << 20;
    s->scratch = sm_arena_alloc(arena, s->scratch_bytes);
    s->kinds_room = layouts * chunks < 4 * MAX_CHUNKS ? layouts * chunks : 4 * MAX_CHUNKS;
    s->kind = sm_arena_array(arena, (size_t)s->kinds_room, sizeof *s->kind);
    s->layouts = sm_arena_array(arena, (size_t)layouts, sizeof *s->layouts);
    for (int i = 0; s->layouts && i < layouts; i++) {
        s->layouts[i].kind = sm_arena_array(arena, (size_t)chunks, sizeof *s->layouts[i].kind);
        s->layouts[i].before = sm_arena_array(arena, (size_t)chunks, sizeof *s->layouts[i].before);
        if (!s->layouts[i].kind || !s->layouts[i].before) return false;
    }
    return s->scratch && s->kind && s->layouts && (layouts == 1 || stages_remember(s, arena));
}

bool stages_remember(stages *s, sm_arena *arena) {
    if (!s->simulated) s->simulated = sm_arena_array(arena, SIMULATED, sizeof *s->simulated);
    return s->simulated != NULL;
}

int microbatches_of(const sm_train *t, const sm_plan *plan) {
    int64_t replicas = (int64_t)plan->data * plan->fsdp * plan->expert;
    int64_t mine = ((int64_t)t->sequences + replicas - 1) / replicas;
    return (int)((mine + plan->microbatch - 1) / plan->microbatch);
}

static const pass *pass_of(const pieces *p, int index, timing which) {
    const piece_pass *q = &p->pass[index];
    return which == EXPECTED ? &q->expected : which == SERIAL ? &q->serial : &q->math;
}

static void add_pass(sm_chunk_time *to, const pass *from, double times) {
    to->forward += from->forward * times;
    to->backward_input += from->backward_input * times;
    to->backward_weight += from->backward_weight * times;
}

void stages_layout(const sm_train *t, const sm_plan *plan, stages *s) {
    int chunks = chunk_count(plan);
    chunk_layout *layout = &s->layouts[chunks % s->n_layouts];
    if (layout->chunks != chunks || strcmp(layout->given, plan->layout) != 0)
        chunk_layout_fill(t, plan, layout);
    s->layout = layout;
}

void stages_shape(const sm_train *t, const sm_plan *plan, stages *s) {
    stages_layout(t, plan, s);
    bool dual = plan->schedule == SM_SCHEDULE_DUALPIPE;
    s->pipeline = (sm_pipeline){.schedule = plan->schedule,
                                .stages = plan->pipeline,
                                .chunks_per_stage = dual ? 2 : plan->virtual_stages,
                                .microbatches = microbatches_of(t, plan),
                                .chunk = s->chunk};
}

static void mix(stages *s, uint64_t word) {
    for (int i = 0; i < 2; i++) s->key[i] = sm_hash_mixed(s->key[i], word);
}

static void mix_number(stages *s, double number) {
    uint64_t word;
    memcpy(&word, &number, sizeof word);
    mix(s, word);
}

/* All that the simulation of the chunks at hand depends on. */
static void fill_key(const pieces *p, timing which, stages *s) {
    const sm_pipeline *l = &s->pipeline;
    s->key[0] = SM_HASH_SEED;
    s->key[1] = ~SM_HASH_SEED;
    mix(s, (uint64_t)l->schedule << 32 | (uint32_t)l->stages);
    mix(s, (uint64_t)l->chunks_per_stage << 32 | (uint32_t)l->microbatches);
    mix_number(s, l->send_s);
    for (int i = 0; i < p->v->pieces; i++) {
        const pass *q = pass_of(p, i, which);
        mix_number(s, q->forward);
        mix_number(s, q->backward_input);
        mix_number(s, q->backward_weight);
    }
    const char *given = s->layout->given;
    if (given[0]) mix(s, sm_hash_bytes(given, strlen(given)));
}

void stages_chunks(const sm_train *t, const sm_plan *plan, const pieces *p, timing which,
                   stages *s) {
    stages_shape(t, plan, s);
    s->pipeline.send_s = which == EXPECTED ? p->send_s : which == SERIAL ? p->send_serial_s : 0;
    int chunks = s->layout->chunks;
    assert(chunks >= 1 && chunks <= MAX_CHUNKS);
    for (int c = 0; c < chunks; c++) {
        sm_chunk_time *to = &s->chunk[c];
        *to = (sm_chunk_time){0, 0, 0};
        for (int k = 0; k < t->kinds; k++)
            if (s->layout->kind[c][k]) add_pass(to, pass_of(p, k, which), s->layout->kind[c][k]);
    }
    for (int i = embedding_piece(t); i < head_piece(t); i++)
        add_pass(&s->chunk[0], pass_of(p, i, which), 1);
    add_pass(&s->chunk[chunks - 1], pass_of(p, head_piece(t), which), 1);
    if (s->simulated) fill_key(p, which, s);
}

double stages_simulated(stages *s) {
    simulated *at = s->simulated ? &s->simulated[s->key[0] % SIMULATED] : NULL;
    if (at && memcmp(at->key, s->key, sizeof at->key) == 0) return at->total_s;
    const bool room = sm_pipeline_scratch(&s->pipeline, false) <= s->scratch_bytes;
    const double total_s =
        room ? sm_pipeline_simulated_s(&s->pipeline, s->scratch) : sm_pipeline_bound(&s->pipeline);
    if (!at) return total_s;
    at->total_s = total_s;
    memcpy(at->key, s->key, sizeof at->key);
    return total_s;
}

sm_pipeline_time stages_run(stages *s) {
    return sm_pipeline_timed(&s->pipeline, stages_simulated(s));
}

/* ---- memory ---- */

static int chunk_of(const sm_plan *plan, int stage, int nth) {
    int p = plan->pipeline;
    switch (plan->schedule) {
    case SM_SCHEDULE_DUALPIPE: {
        int mirror = p - 1 - stage;
        int low = stage < mirror ? stage : mirror, high = p - 1 - low;
        return nth == 0 ? low : high;
    }
    case SM_SCHEDULE_ZB_V: return nth == 0 ? stage : 2 * p - 1 - stage;
    default: return nth * p + stage;
    }
}

static stage_kind kind_of(const sm_train *t, const sm_plan *plan, stages *s, int stage) {
    stage_kind h = {.stage = stage};
    int per_stage = s->pipeline.chunks_per_stage, last = s->layout->chunks - 1;
    sm_schedule_in_flight(plan->schedule, plan->pipeline, per_stage, s->pipeline.microbatches,
                          stage, s->held);
    for (int n = 0; n < per_stage; n++) {
        int c = chunk_of(plan, stage, n);
        double alive = s->held[n];
        for (int k = 0; k < t->kinds; k++) {
            h.layers[k] += s->layout->kind[c][k];
            h.held[k] += alive * s->layout->kind[c][k];
        }
        if (c == 0) h.first = true;
        if (c == last) h.last = true, h.held_last = alive;
    }
    return h;
}

/* Has a stage the layers of another, and keeps no more of them? */
static bool is_covered(const sm_train *t, const stage_kind *a, const stage_kind *by) {
    if (a->first != by->first || a->last != by->last || a->held_last > by->held_last) return false;
    for (int k = 0; k < t->kinds; k++)
        if (a->layers[k] != by->layers[k] || a->held[k] > by->held[k]) return false;
    return true;
}

/* The stages of the schedule at hand that no stage before them covers: the sums and the most of a
 * stage are found among these. Kept from plan to plan. */
static void find_kinds(const sm_train *t, const sm_plan *plan, stages *s) {
    uint32_t key[5] = {(uint32_t)plan->schedule + 1, (uint32_t)plan->pipeline,
                       (uint32_t)s->pipeline.chunks_per_stage, (uint32_t)s->pipeline.microbatches,
                       plan->layout[0] ? 1 : 0};
    uint64_t h = SM_HASH_SEED;
    for (const char *c = plan->layout; *c; c++) key[4] = key[4] * 31 + (unsigned char)*c;
    for (int i = 0; i < 5; i++) h = sm_hash_mixed(h, key[i]);
    kinds_at *at = &s->kinds_of[h % KINDS_OF];
    s->kinds = at;
    if (memcmp(at->key, key, sizeof key) == 0) return;
    stages_layout(t, plan, s);
    if (s->kinds_used + plan->pipeline > s->kinds_room) {
        memset(s->kinds_of, 0, sizeof s->kinds_of);
        s->kinds_used = 0;
    }
    *at = (kinds_at){.kind = s->kind + s->kinds_used};
    memcpy(at->key, key, sizeof key);
    for (int stage = 0; stage < plan->pipeline; stage++) {
        stage_kind one = kind_of(t, plan, s, stage);
        bool covered = false;
        for (int i = 0; i < at->n && !covered; i++) covered = is_covered(t, &one, &at->kind[i]);
        if (!covered) at->kind[at->n++] = one;
    }
    s->kinds_used += at->n;
}

/* Under dualpipe every chunk lives on two stages; they share its optimizer state when that is
 * sharded. */
static void hold(const sm_train *t, const sm_plan *plan, sm_memory *m, const stage_load *load,
                 double times) {
    bool shared = plan->schedule == SM_SCHEDULE_DUALPIPE && plan->zero >= 1;
    m->params += load->params * times;
    m->gradients += load->gradients * times;
    m->optimizer += load->optimizer * times * (shared ? 0.5 : 1);
    m->copies += load->more * times;
    if (load->sums > 0 && microbatches_of(t, plan) > 1) m->copies += load->sums * times;
}

/* What the allocator cannot give to arrays. XLA plans the memory of a torus's chips ahead: none. */
static double reserved_of(const sm_train *t, double activations) {
    const sm_software_memory *h = &t->software_memory;
    if (t->system.chip.fabric == SM_FABRIC_TORUS) return 0;
    return h->fragmentation * activations + h->reserved_bytes +
           (h->outside_counted ? h->outside_bytes : 0);
}

/* What lies outside of what the software reports: none where it reports all in use. */
static double outside_of(const sm_train *t) {
    const sm_software_memory *h = &t->software_memory;
    bool less = t->system.chip.fabric != SM_FABRIC_TORUS && !h->outside_counted;
    return less ? h->outside_bytes : 0;
}

/* Bytes that arrays can have, or, where the software reports all in use, that there are. */
static double whole_memory(const sm_train *t) {
    return sm_chip_memory(&t->system.chip)->value - outside_of(t);
}

double memory_capacity(const sm_train *t) { return whole_memory(t) * (1 - t->memory_margin); }

bool memory_fits(const sm_train *t, const sm_memory *m) {
    return m->total <= memory_capacity(t) && host_fits(m);
}

/* A stage needs most either at the loss, or at a layer whose arrays recomputation has brought back,
 * when the last microbatch's logits are gone. Where no gradients are there before: at the first
 * layer of a backward pass, or at its last, when all are. Or where the optimizer has room beside.
 */
typedef enum moment { AT_LOSS, AT_LAYER, AT_END, AT_UPDATE } moment;

/* What fsdp gathers: the layer at work and the one fetched ahead; at the loss the head and the last
 * layer. Where weights are kept as they were gathered, those of every microbatch in flight. */
static double stage_gathered(const sm_train *t, const pieces *p, const stage_kind *h, bool keeps,
                             moment when) {
    gathered_bytes most = {0}, other;
    const gathered_bytes *head = &p->gathered[head_piece(t)];
    double kept = h->last ? h->held_last * head->again : 0;
    for (int k = 0; k < t->kinds; k++) {
        if (h->layers[k] == 0) continue;
        most.both = larger(most.both, p->gathered[k].both);
        most.gradient = larger(most.gradient, p->gathered[k].gradient);
        kept += h->held[k] * p->gathered[k].again;
    }
    other = when == AT_LOSS ? *head : most;
    double both = most.both + other.both, all = kept + most.gradient + other.gradient;
    if (t->software_memory.root_whole && h->last && when != AT_LOSS) both += head->both;
    if (t->software_memory.root_whole && h->first)
        both += p->gathered[embedding_piece(t)].both - p->gathered[embedding_piece(t)].gradient;
    return keeps ? larger(both, all) : both;
}

/* Chunked: what the loss differentiates at once, its gradient made beside it, and nothing of it
 * kept (torchtitan's ChunkedCELoss has 8 chunks; Liger Kernel, arXiv 2410.10989, section 3.2). */
static const double LOSS_CHUNKS = 8;

/* What is kept of logits, an activation, and the gradient of one microbatch's. */
static double logits_kept(const sm_plan *plan, const stage_kind *h, double logits, moment when) {
    bool kept = h->last && plan->loss == SM_LOSS_WHOLE;
    return kept ? logits * larger(0, h->held_last - (when != AT_LOSS)) : 0;
}

static double logits_gradient(const sm_plan *plan, double logits, moment when) {
    return when != AT_LOSS ? 0 : plan->loss == SM_LOSS_WHOLE ? logits : 2 * logits / LOSS_CHUNKS;
}

/* Whichever moment needs more; `working` is what recomputation brings back. */
static void add_moment(const sm_train *t, const sm_plan *plan, const pieces *p, const stage_kind *h,
                       double working, sm_memory *m) {
    const double logits = kept_of(&p->kept[head_piece(t)], SM_RECOMPUTE_NONE, plan),
                 kept = m->activations, gradients = m->gradients;
    const bool bare = t->software_memory.gradients_new && microbatches_of(t, plan) == 1;
    const bool holds = t->software_memory.inputs_held && plan->lora > 0 && plan->fsdp > 1;
    m->total = -1;
    for (moment when = h->last ? AT_LOSS : AT_LAYER; when <= AT_UPDATE; when++) {
        const bool end = when >= AT_END, update = when == AT_UPDATE;
        const double times = when == AT_LOSS ? 1 : update ? 0 : holds ? 2 : !end;
        if (update ? !t->software_memory.moment_beside : end && !bare) continue;
        sm_memory at = *m;
        at.activations = times * kept + (when == AT_LOSS || update ? 0 : working) +
                         logits_kept(plan, h, logits, when) * !end;
        at.gradients = bare && !end ? 0 : gradients;
        at.gathered =
            update ? 0 : stage_gathered(t, p, h, plan->regather & SM_KEEPS_WEIGHTS && !end, when);
        at.logits = logits_gradient(plan, logits, when);
        at.reserved = reserved_of(t, at.activations);
        at.copies += update ? at.optimizer * moment_share(t, plan) : 0;
        at.buffers = at.gathered + at.logits + at.copies + at.reserved;
        at.total = at.params + at.gradients + at.optimizer + at.activations + at.buffers;
        if (at.total > m->total) *m = at;
    }
}

/* PyTorch's stages (torch/distributed/pipelining/stage.py) make room ahead for what they receive of
 * every microbatch and chunk, either way, and keep the outputs of all until the step ends. */
static double kept_by_stages(const sm_train *t, const sm_plan *plan, const pieces *p,
                             const stage_kind *h) {
    const double m = microbatches_of(t, plan), room = pieces_handed(t, p),
                 shares = plan->context * (t->software_memory.loss_whole ? 1 : plan->tensor),
                 outputs = 2.0 * plan->microbatch * t->seq * t->model.V / shares;
    if (!t->software_memory.stages_keep || plan->pipeline == 1) return 0;
    return m * (2.0 * plan->virtual_stages - h->first - h->last) * room +
           (h->last ? (m - 1) * outputs : 0);
}

static void stage_memory(const sm_train *t, const sm_plan *plan, const pieces *p,
                         const stage_kind *h, sm_memory *m) {
    bool away = plan->offload == SM_OFFLOAD_ACTIVATIONS || plan->offload == SM_OFFLOAD_BOTH;
    const int head = head_piece(t);
    double working = 0; /* what recomputation brings back for one layer */
    *m = (sm_memory){.stage = h->stage,
                     .capacity = whole_memory(t),
                     .host_capacity = sm_chip_host_bytes(&t->system.chip)};
    for (int k = 0; k < t->kinds; k++) {
        const kept_bytes *of = &p->kept[k];
        double of_layer = kept_of(of, set_of(plan), plan), kept = of_layer * h->held[k];
        double window = 3 * of_layer,
               brought = kept_of(of, SM_RECOMPUTE_NONE, plan) - of_layer + of->gradients;
        hold(t, plan, m, &p->load[k], h->layers[k]);
        if (away && kept > window) m->host += kept - window, kept = window;
        m->activations += kept;
        if (h->layers[k] > 0) working = larger(working, brought);
    }
    for (int i = embedding_piece(t); h->first && i < head; i++) hold(t, plan, m, &p->load[i], 1);
    if (h->last) hold(t, plan, m, &p->load[head], 1);
    if (h->last && !h->first) hold(t, plan, m, &p->load[copy_piece(t)], 1);
    if (plan->offload == SM_OFFLOAD_OPTIMIZER || plan->offload == SM_OFFLOAD_BOTH) {
        m->host += m->optimizer;
        m->optimizer = 0;
    }
    m->outside = outside_of(t);
    m->copies += kept_by_stages(t, plan, p, h);
    add_moment(t, plan, p, h, working, m);
}

/* Bytes of activations, on the chip and in host memory, gathered again and kept whole, at each of
 * the two moments. */
typedef double stage_activations[2][2][2][SM_RECOMPUTE_COUNT];

static void fill_activations(const sm_train *t, const pieces *p, const stage_kind *h,
                             const floors_of *asked, stage_activations to) {
    double working[2][SM_RECOMPUTE_COUNT] = {{0}};
    memset(to, 0, sizeof(stage_activations));
    for (int k = 0; k < t->kinds; k++)
        for (int whole = 0; whole < 2; whole++) {
            const double *of = whole ? p->kept[k].whole : p->kept[k].sharded;
            for (int i = 0; i < asked->sets && h->layers[k] > 0; i++) {
                const double of_layer = of[asked->set[i]], kept = of_layer * h->held[k];
                to[AT_LOSS][0][whole][i] += kept;
                to[AT_LOSS][1][whole][i] += smaller(kept, 3 * of_layer);
                working[whole][i] = larger(working[whole][i],
                                           of[SM_RECOMPUTE_NONE] - of_layer + p->kept[k].gradients);
            }
        }
    for (int host = 0; host < 2; host++)
        for (int whole = 0; whole < 2; whole++)
            for (int i = 0; i < asked->sets; i++)
                to[AT_LAYER][host][whole][i] = to[AT_LOSS][host][whole][i] + working[whole][i];
}

static double state_of_stage(const sm_train *t, const stage_kind *h, const double *state) {
    double held = h->last ? state[head_piece(t)] + (h->first ? 0 : state[copy_piece(t)]) : 0;
    for (int k = 0; k < t->kinds; k++) held += state[k] * h->layers[k];
    for (int k = embedding_piece(t); h->first && k < head_piece(t); k++) held += state[k];
    return held;
}

void stages_floors(const sm_train *t, const sm_plan *plan, const pieces *p, stages *s,
                   const floors_of *asked, const double *const state[2], memory_floors most[2]) {
    const kept_bytes *head = &p->kept[head_piece(t)];
    const double logits = smaller(head->sharded[SM_RECOMPUTE_NONE], head->whole[SM_RECOMPUTE_NONE]),
                 reserved = reserved_of(t, 0), part = 1 + (reserved_of(t, 1) - reserved);
    stage_activations kept;
    memset(most, 0, 2 * sizeof(memory_floors));
    find_kinds(t, plan, s);
    for (int n = 0; n < 2 * s->kinds->n; n++) {
        const stage_kind *h = &s->kinds->kind[n / 2];
        const moment when = n % 2 ? AT_LAYER : AT_LOSS;
        if (n % 2 == 0) fill_activations(t, p, h, asked, kept);
        if (when == AT_LOSS && !h->last) continue;
        const double more = logits_kept(plan, h, logits, when),
                     rest = reserved + logits_gradient(plan, logits, when),
                     held[2] = {state_of_stage(t, h, state[0]), state_of_stage(t, h, state[1])},
                     gathered[2] = {stage_gathered(t, p, h, false, when),
                                    stage_gathered(t, p, h, true, when)};
        for (int way = 0; way < 2 * SM_REGATHER_COUNT; way++) {
            const int host = way / SM_REGATHER_COUNT, g = way % SM_REGATHER_COUNT;
            if (!(asked->ways[host] >> g & 1)) continue;
            const double *of = kept[when][host][(g & SM_KEEPS_ACTIVATIONS) != 0],
                         base = rest + gathered[(g & SM_KEEPS_WEIGHTS) != 0];
            for (int i = 0; i < asked->sets; i++) {
                const double bytes = base + part * (of[i] + more);
                for (int two = 0; two < 2; two++)
                    most[two][host][g][i] = larger(most[two][host][g][i], held[two] + bytes);
            }
        }
    }
}

void stages_memory(const sm_train *t, const sm_plan *plan, const pieces *p, stages *s,
                   sm_memory *memory) {
    sm_memory m;
    find_kinds(t, plan, s);
    double host = 0;
    memory->total = -1;
    for (int i = 0; i < s->kinds->n; i++) {
        stage_memory(t, plan, p, &s->kinds->kind[i], &m);
        host = larger(host, m.host);
        if (m.total > memory->total) *memory = m;
    }
    memory->host = host;
}

void stages_each_memory(const sm_train *t, const sm_plan *plan, const pieces *p, stages *s,
                        sm_memory *memory) {
    stages_layout(t, plan, s);
    for (int stage = 0; stage < plan->pipeline; stage++) {
        stage_kind one = kind_of(t, plan, s, stage);
        stage_memory(t, plan, p, &one, &memory[stage]);
    }
}

/* ---- the end of a step ---- */

/* Of a stream that comes in `parts` beside so many passes of compute: the last part is exposed
 * always, and of the last chunk what its own share of one pass does not hide. */
static double exposed(const sm_train *t, double stream, double pass_s, double passes, double chunks,
                      double parts) {
    double hides = t->calibration->overlap * (1 - 1 / parts);
    double all = stream - pass_s * passes * hides, last = (stream - pass_s * hides) / chunks;
    return larger(larger(all, last), stream / parts);
}

/* Seconds a step keeps each level busy for one piece. Under dualpipe a chunk's microbatches are
 * shared by two stages. */
static void piece_busy(const sm_train *t, const sm_plan *plan, const pieces *p, int index,
                       double *busy) {
    double m = microbatches_of(t, plan) * (plan->schedule == SM_SCHEDULE_DUALPIPE ? 0.5 : 1);
    int set = index < t->kinds ? set_of(plan) : SM_RECOMPUTE_NONE;
    for (int l = 0; l < t->system.levels; l++)
        busy[l] = m * piece_comm_busy(t, &p->comm[index], l, set, plan) + p->load[index].busy[l];
}

typedef struct stage_end {
    double reduce, gather, update[2], shared, busy[SM_MAX_LEVELS];
} stage_end;

static void add_piece_end(const sm_train *t, const pieces *p, int index, double n,
                          const double *busy, stage_end *to) {
    const stage_load *load = &p->load[index];
    to->reduce += n * load->reduce_s;
    to->gather += n * load->gather_s;
    to->update[0] += n * load->update_s;
    to->update[1] += n * load->offload_s;
    to->shared += n * load->shared;
    for (int l = 0; l < t->system.levels; l++) to->busy[l] += n * busy[l];
}

/* What layers of r stages share has r gradients, which a ring adds up: 2 (r - 1) sends of one r-th.
 */
static void add_shares(const pieces *p, double bytes, step_end *e) {
    const sm_timed_line *line;
    double r = 0;
    for (int i = 0; i < p->v->pieces; i++) r = larger(r, p->load[i].stages);
    if (r <= 1) return;
    e->share_sends = 2 * (r - 1);
    e->share_bytes = bytes / r;
    e->tie_s += e->share_sends * sm_timed_curve_s(p->at.send, e->share_bytes, &line);
}

step_end step_end_of(const sm_train *t, const sm_plan *plan, const pieces *p, stages *s) {
    step_end e = {0};
    double busy[MAX_PIECES][SM_MAX_LEVELS];
    bool parted = t->model.tied;
    double shared = 0;
    for (int i = 0; i < p->v->pieces; i++) piece_busy(t, plan, p, i, busy[i]);
    find_kinds(t, plan, s);
    for (int k = 0; k < s->kinds->n; k++) {
        const stage_kind *h = &s->kinds->kind[k];
        stage_end x = {0};
        for (int i = 0; i < p->v->pieces; i++) {
            double n = i < t->kinds ? h->layers[i] : i < head_piece(t) ? h->first : h->last;
            if (n > 0) add_piece_end(t, p, i, n, busy[i], &x);
        }
        int copy = copy_piece(t); /* beside the embedding its gradient joins that one's */
        if (h->last && !h->first) add_piece_end(t, p, copy, 1, p->load[copy].busy, &x);
        if (h->last && h->first) parted = false;
        e.reduce = larger(e.reduce, x.reduce);
        e.gather = larger(e.gather, x.gather);
        for (int i = 0; i < 2; i++) e.updates_s[i] = larger(e.updates_s[i], x.update[i]);
        shared = larger(shared, x.shared);
        for (int l = 0; l < t->system.levels; l++) e.network_s = larger(e.network_s, x.busy[l]);
    }
    if (parted) {
        const sm_timed_line *line;
        double bytes = p->load[embedding_piece(t)].gradients;
        e.tie_s = sm_timed_curve_s(p->at.send, bytes, &line) * 2;
    }
    add_shares(p, shared, &e);
    /* of a stage on average: of the stage with most it would change with the links' rates */
    int copies = plan->schedule == SM_SCHEDULE_DUALPIPE ? 2 : 1;
    e.parts = 1 + (double)copies * t->model.L / plan->pipeline;
    e.other_s = t->calibration->step_overhead_s;
    step_end_offload(plan, &e);
    return e;
}

void step_end_offload(const sm_plan *plan, step_end *e) {
    bool offload = plan->offload == SM_OFFLOAD_OPTIMIZER || plan->offload == SM_OFFLOAD_BOTH;
    e->update_s = e->updates_s[offload];
    e->serial_s = e->reduce + e->gather + e->update_s + e->tie_s + e->other_s;
}

/* Gradients are reduced beside the last backward pass and weights gathered beside the first forward
 * pass; of a pipeline of m microbatches and p stages each pass of the busiest stage is about one
 * (m+p-1)-th, two thirds of it backward. With v interleaved chunks p microbatches go through one
 * chunk before the next, so that all but the last chunk are ready up to p passes earlier (Narayanan
 * et al. 2021, section 2.2). Taken from the whole, so that a better machine never exposes more. */
double step_close(const sm_train *t, const sm_plan *plan, double pipeline_s, step_end *e) {
    double m = microbatches_of(t, plan), p = plan->pipeline;
    double v = plan->schedule == SM_SCHEDULE_INTERLEAVED ? plan->virtual_stages : 1;
    double pass_s = pipeline_s / (m + p - 1), passes = (1 + (v - 1) * smaller(m, p)) / v;
    e->reduce_s = e->reduce, e->gather_s = e->gather;
    if (!t->software_memory.exposed_end) {
        e->reduce_s = exposed(t, e->reduce, pass_s * 2 / 3, passes, v, e->parts);
        e->gather_s = exposed(t, e->gather, pass_s / 3, passes, v, e->parts);
    }
    e->total_s = e->reduce_s + e->gather_s + e->update_s + e->tie_s + e->other_s;
    return larger(pipeline_s + e->total_s, e->network_s);
}
