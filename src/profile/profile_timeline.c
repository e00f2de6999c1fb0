/* The schedule of a module on a machine: kernels one after the other, collectives and copies that
 * were started beside them, each kind on a stream of its own. A loop is its body as often as it
 * runs; what one trip starts and another one awaits is taken to be there. */

#include "profile_made.h"

typedef struct clock_of { /* one run of a computation */
    double now, network_free, copies_free;
    sm_profile_time time; /* the parts of what ran so far */
} clock_of;

typedef struct pending { /* what was started */
    int at;              /* the instruction that did */
    int collective, op;  /* number in the profile, -1: the other of both */
    double begun, end;
    int64_t channel;
} pending;
enum { MOST_PENDING = 256 };

typedef struct timeline {
    profile_made *made;
    clock_of *total; /* of each computation */
    const sm_computation *in;
    int computation;
    double times;
    clock_of clock;
    int pendings;
    pending pending[MOST_PENDING];
    int64_t *started; /* channels of collectives that a fusion starts, in order */
    int starts;
    bool failed; /* out of memory */
} timeline;

static void record(timeline *t, profile_record what) {
    sm_profile_schedule *s = &t->made->schedule;
    profile_record *list =
        sm_arena_grow(t->made->arena, s->record, s->records, &s->room, sizeof *list);
    t->failed = t->failed || !list;
    if (!list) return;
    s->record = list;
    s->record[s->records++] = what;
    s->n[t->computation]++;
}

/* ---- what an instruction is ---- */

static const sm_instruction *custom_in(const sm_computation *body, const char *target) {
    for (int i = 0; i < body->n; i++)
        if (!strcmp(body->instruction[i].target, target)) return &body->instruction[i];
    return NULL;
}

/* The collective that an instruction is or holds, and in which computation; NULL when none. */
static const sm_instruction *profile_collective_in(const sm_module *module,
                                                   const sm_computation *in,
                                                   const sm_instruction *it,
                                                   const sm_computation **where) {
    *where = in;
    if (sm_module_class_of(it->opcode) == SM_CLASS_COLLECTIVE) return it;
    if ((it->opcode != SM_OPCODE_FUSION && it->opcode != SM_OPCODE_ASYNC_START) || !it->calls)
        return NULL;
    const sm_computation *body = *where = &module->computation[it->call[0]];
    for (int i = 0; i < body->n; i++)
        if (sm_module_class_of(body->instruction[i].opcode) == SM_CLASS_COLLECTIVE)
            return &body->instruction[i];
    return NULL;
}

static const sm_computation *body_of(const timeline *t, const sm_instruction *it) {
    return it->opcode == SM_OPCODE_FUSION && it->calls
               ? &t->made->p.module->computation[it->call[0]]
               : NULL;
}

static bool is_start(const timeline *t, const sm_instruction *it) {
    switch (it->opcode) {
    case SM_OPCODE_ALL_GATHER_START:
    case SM_OPCODE_ALL_REDUCE_START:
    case SM_OPCODE_COLLECTIVE_PERMUTE_START:
    case SM_OPCODE_ASYNC_START:
    case SM_OPCODE_SEND:
    case SM_OPCODE_COPY_START:
    case SM_OPCODE_SLICE_START: return true;
    default: break;
    }
    const sm_computation *body = body_of(t, it);
    return body && custom_in(body, "AsyncCollectiveStart");
}

static bool is_done(const timeline *t, const sm_instruction *it) {
    const sm_computation *body = body_of(t, it);
    return sm_module_class_of(it->opcode) == SM_CLASS_DONE ||
           (body && custom_in(body, "AsyncCollectiveDone"));
}

/* ---- what was started ---- */

static void forget(timeline *t, int i) { t->pending[i] = t->pending[--t->pendings]; }

/* The pending one that an instruction awaits: by its channel, or through its operands. */
static int awaited(const timeline *t, const sm_instruction *it) {
    const sm_computation *where;
    const sm_instruction *c = profile_collective_in(t->made->p.module, t->in, it, &where);
    for (int i = 0; c && i < t->pendings; i++)
        if (t->pending[i].channel == c->channel && c->channel) return i;
    for (int deep = 0; deep < 16 && it->operands > 0; deep++) {
        int at = it->operand[0];
        for (int i = 0; i < t->pendings; i++)
            if (t->pending[i].at == at) return i;
        it = &t->in->instruction[at];
    }
    return -1;
}

/* Only a part of what could be hidden is (overlap of the calibration). */
static void await(timeline *t, const sm_instruction *it) {
    int i = awaited(t, it);
    if (i < 0) return;
    pending p = t->pending[i];
    forget(t, i);
    double took = p.end - p.begun, left = fmax(p.end - t->clock.now, 0);
    if (p.collective < 0) {
        t->made->op[p.op].done = it;
        t->clock.time.copies_s += left;
        t->clock.now += left;
        return;
    }
    double exposed = fmax(left, (1 - t->made->p.calibration->overlap) * took);
    if (exposed > took) exposed = took;
    t->made->collective[p.collective].exposed_s = exposed;
    t->made->collective[p.collective].done = it;
    t->clock.time.exposed_s += exposed;
    t->clock.time.overlapped_s += took - exposed;
    t->clock.now += exposed;
}

static void start(timeline *t, int at, int collective, double seconds, int64_t channel) {
    double *free_at = collective < 0 ? &t->clock.copies_free : &t->clock.network_free;
    if (t->pendings == MOST_PENDING) forget(t, 0);
    pending *p = &t->pending[t->pendings++];
    *p = (pending){.at = at, .collective = collective, .channel = channel};
    p->op = t->made->p.ops - 1;
    p->begun = fmax(t->clock.now, *free_at);
    p->end = *free_at = p->begun + seconds;
    int op = collective < 0 ? p->op : -1;
    record(t, (profile_record){op, collective, -1, 1, p->begun, seconds});
}

/* ---- kernels and collectives ---- */

static int add_collective(timeline *t, int at, const sm_instruction *it,
                          const sm_computation *where) {
    profile_made *m = t->made;
    m->collective = sm_arena_grow(m->arena, m->collective, m->p.collectives, &m->collective_room,
                                  sizeof *m->collective);
    if (!m->collective) return -1;
    sm_profile_collective *c = &m->collective[m->p.collectives];
    *c = (sm_profile_collective){
        .instruction = it, .computation = t->computation, .times = t->times};
    c->by = &t->in->instruction[at];
    profile_price_collective(m, where, c);
    c->exposed_s = c->expected_s;
    return m->p.collectives++;
}

/* Only copies, in another order or type. */
static bool only_moves(const profile_made *m, const sm_instruction *it) {
    if (it->opcode != SM_OPCODE_FUSION || !it->calls)
        return sm_module_class_of(it->opcode) == SM_CLASS_MOVE;
    const sm_computation *body = &m->p.module->computation[it->call[0]];
    for (int i = 0; i < body->n; i++) {
        sm_module_class class = sm_module_class_of(body->instruction[i].opcode);
        if (class != SM_CLASS_FREE && class != SM_CLASS_MOVE &&
            body->instruction[i].opcode != SM_OPCODE_CONVERT)
            return false;
    }
    return true;
}

static bool add_op(timeline *t, const sm_instruction *it, bool copies) {
    profile_made *m = t->made;
    m->op = sm_arena_grow(m->arena, m->op, m->p.ops, &m->op_room, sizeof *m->op);
    if (!m->op) return false;
    sm_profile_op *op = &m->op[m->p.ops];
    *op = (sm_profile_op){.instruction = it, .computation = t->computation, .times = t->times};
    op->work = sm_module_work_of(m->analysis, t->in, it);
    op->copies = copies;
    op->moves = only_moves(m, it) || sm_module_moves_to_host(it) || sm_module_moves_to_device(it);
    profile_price_op(m, op);
    m->p.ops++;
    return true;
}

SM_ORDER_OF_NUMBERS(by_channel, int64_t)

/* The channels that fusions start: what carries one on may stand in another computation, the body
 * of a loop between the start and the end. */
static bool find_starts(timeline *t) {
    const sm_module *m = t->made->p.module;
    t->started = sm_arena_array(t->made->arena, (size_t)m->computations, sizeof *t->started);
    for (int c = 0; t->started && c < m->computations; c++) {
        const sm_computation *body = &m->computation[c];
        if (!custom_in(body, "AsyncCollectiveStart")) continue;
        for (int i = 0; i < body->n; i++) {
            if (sm_module_class_of(body->instruction[i].opcode) != SM_CLASS_COLLECTIVE) continue;
            t->started[t->starts++] = body->instruction[i].channel;
            break;
        }
    }
    if (t->started && t->starts)
        qsort(t->started, (size_t)t->starts, sizeof *t->started, by_channel);
    return t->started;
}

/* Does a kernel carry a collective that was started before it, and goes on beside it? */
static bool carries(const timeline *t, const sm_instruction *by, const sm_instruction *collective) {
    for (int i = 0; i < t->pendings; i++)
        if (collective->channel && t->pending[i].channel == collective->channel) return true;
    return collective != by && collective->channel && t->starts && !is_start(t, by) &&
           bsearch(&collective->channel, t->started, (size_t)t->starts, sizeof *t->started,
                   by_channel);
}

static bool run_collective(timeline *t, int at, const sm_instruction *collective,
                           const sm_computation *where) {
    int n = add_collective(t, at, collective, where);
    if (n < 0) return false;
    sm_profile_collective *c = &t->made->collective[n];
    if (is_start(t, &t->in->instruction[at])) {
        c->starts = true;
        start(t, at, n, c->expected_s, collective->channel);
        return true;
    }
    double begun = fmax(t->clock.now, t->clock.network_free);
    record(t, (profile_record){-1, n, -1, 1, begun, c->expected_s});
    t->clock.time.exposed_s += begun - t->clock.now + c->expected_s;
    t->clock.now = t->clock.network_free = begun + c->expected_s;
    return true;
}

static bool run_op(timeline *t, int at) {
    const sm_instruction *it = &t->in->instruction[at];
    bool copies = is_start(t, it);
    if (!add_op(t, it, copies)) return false;
    const sm_profile_op *op = &t->made->op[t->made->p.ops - 1];
    if (copies) {
        start(t, at, -1, op->expected_s, 0);
        return true;
    }
    record(t, (profile_record){t->made->p.ops - 1, -1, -1, 1, t->clock.now, op->expected_s});
    t->clock.now += op->expected_s;
    t->clock.time.compute_s += op->expected_s;
    return true;
}

/* A computation that runs inside, so often. */
static void run_inner(timeline *t, int computation, double times) {
    const clock_of *c = &t->total[computation];
    record(t, (profile_record){-1, -1, computation, times, t->clock.now, c->now});
    t->clock.now += c->now * times;
    t->clock.time.compute_s += c->time.compute_s * times;
    t->clock.time.exposed_s += c->time.exposed_s * times;
    t->clock.time.copies_s += c->time.copies_s * times;
    t->clock.time.overlapped_s += c->time.overlapped_s * times;
}

static void run_calls(timeline *t, const sm_instruction *it) {
    int longest = 0;
    if (it->opcode == SM_OPCODE_WHILE) {
        int64_t trips = sm_module_trips(t->made->p.module, t->in, it);
        for (int i = 0; i < it->calls; i++)
            run_inner(t, it->call[i], trips < 0 ? 1 : (double)trips);
        return;
    }
    for (int i = 1; i < it->calls; i++)
        if (t->total[it->call[i]].now > t->total[it->call[longest]].now) longest = i;
    if (it->calls) run_inner(t, it->call[longest], 1);
}

/* Custom calls that are no kernels. */
static bool is_nothing(const sm_instruction *it) {
    static const char *const targets[] = {"AllocateBuffer",
                                          "ConcatBitcast",
                                          "Sharding",
                                          "xla.sdy.FuncResultSharding",
                                          "SPMDFullToShardShape",
                                          "SPMDShardToFullShape",
                                          "AssumeGatherIndicesInBound",
                                          "annotate_device_placement"};
    if (it->opcode != SM_OPCODE_CUSTOM_CALL) return false;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(it->target, targets[i])) return true;
    return false;
}

/* One number of a few: the scalar unit does that beside the kernels, in no time that counts. */
static bool is_scalar(const timeline *t, const sm_instruction *it) {
    if (sm_module_elements(it->shape) > 1 || is_start(t, it)) return false;
    if (it->opcode == SM_OPCODE_CUSTOM_CALL) return false;
    for (int i = 0; i < it->operands; i++)
        if (sm_module_elements(t->in->instruction[it->operand[i]].shape) > 1) return false;
    return true;
}

static bool run_instruction(timeline *t, int at) {
    const sm_instruction *it = &t->in->instruction[at];
    sm_module_class class = sm_module_class_of(it->opcode);
    const sm_computation *where;
    if (class == SM_CLASS_FREE || is_nothing(it)) return true;
    if (is_done(t, it)) {
        await(t, it);
        return true;
    }
    if (it->opcode == SM_OPCODE_WHILE || it->opcode == SM_OPCODE_CONDITIONAL ||
        it->opcode == SM_OPCODE_CALL) {
        run_calls(t, it);
        return true;
    }
    const sm_instruction *c = profile_collective_in(t->made->p.module, t->in, it, &where);
    if (c && !carries(t, it, c)) return run_collective(t, at, c, where);
    return is_scalar(t, it) || run_op(t, at);
}

static bool run_computation(timeline *t, int computation) {
    t->computation = computation;
    t->in = &t->made->p.module->computation[computation];
    t->times = t->made->analysis->runs[computation].times;
    t->clock = (clock_of){0};
    t->pendings = 0;
    t->made->schedule.first[computation] = t->made->schedule.records;
    for (int i = 0; i < t->in->n; i++)
        if (!run_instruction(t, i) || t->failed) return false;
    t->total[computation] = t->clock;
    return true;
}

/* ---- the whole ---- */

static double data_in_hbm(const sm_module_shape *shape) {
    double bytes = 0;
    for (int i = 0; i < shape->parts; i++) bytes += data_in_hbm(&shape->part[i]);
    return shape->parts || shape->memory ? bytes : sm_module_data_bytes(shape);
}

/* The part of an op's bytes that is padding: of its operands and its result in HBM. */
static double padding_of(const profile_made *m, const sm_profile_op *op) {
    const sm_computation *in = &m->p.module->computation[op->computation];
    const sm_instruction *it = op->instruction;
    double padded = sm_module_bytes(it->shape, 0), data = data_in_hbm(it->shape);
    for (int i = 0; i < it->operands; i++) {
        const sm_module_shape *shape = in->instruction[it->operand[i]].shape;
        padded += sm_module_bytes(shape, 0);
        data += data_in_hbm(shape);
    }
    return padded > 0 ? fmax(1 - data / padded, 0) * op->work.bytes : 0;
}

/* FLOPs of the largest product's tiles beyond those of its sizes, as the matrix unit works them:
 * each dimension filled up to the chip's tile. */
static double tile_flops_of(const sm_chip *chip, const sm_module_work *w) {
    const double size[3] = {w->m, w->n, w->k};
    const int tile[3] = {chip->tile_m, chip->tile_n, chip->tile_k};
    double filled = 1;
    for (int i = 0; i < 3; i++)
        if (size[i] > 0 && tile[i] > 0) filled *= ceil(size[i] / tile[i]) * tile[i] / size[i];
    return w->matrix_flops * (filled - 1);
}

static void add_up(profile_made *m) {
    double kernels = 0, network = 0;
    sm_profile_time *time = &m->p.time;
    for (int i = 0; i < m->p.ops; i++) {
        const sm_profile_op *op = &m->op[i];
        m->p.work.matrix_flops += op->work.matrix_flops * op->times;
        m->p.work.vector_flops += op->work.vector_flops * op->times;
        m->p.work.transcendentals += op->work.transcendentals * op->times;
        m->p.work.bytes += op->work.bytes * op->times;
        m->p.work.onchip_bytes += op->work.onchip_bytes * op->times;
        m->p.work.host_bytes += op->work.host_bytes * op->times;
        m->p.tile_bytes += padding_of(m, op) * op->times;
        if (op->instruction->estimated_flops <= 0)
            m->p.tile_flops += tile_flops_of(&m->p.system->chip, &op->work) * op->times;
        if (!op->copies) kernels += op->lower_s * op->times;
        time->upper_s += op->upper_s * op->times;
        m->p.custom += sm_module_is_understood(op->instruction) ? 0 : op->times;
    }
    for (int i = 0; i < m->p.collectives; i++) {
        network += m->collective[i].lower_s * m->collective[i].times;
        time->upper_s += m->collective[i].upper_s * m->collective[i].times;
    }
    time->lower_s = fmax(kernels, network);
    time->upper_s = fmax(time->upper_s, time->expected_s);
}

sm_status profile_timeline(profile_made *made, sm_error *err) {
    const sm_module *m = made->p.module;
    timeline *t = sm_arena_alloc(made->arena, sizeof *t);
    clock_of *total = sm_arena_array(made->arena, (size_t)m->computations, sizeof *total);
    sm_profile_schedule *schedule = &made->schedule;
    schedule->first = sm_arena_array(made->arena, (size_t)m->computations, sizeof *schedule->first);
    schedule->n = sm_arena_array(made->arena, (size_t)m->computations, sizeof *schedule->n);
    if (!t || !total || !schedule->first || !schedule->n) return sm_fail_memory(err);
    t->made = made;
    t->total = total;
    if (!find_starts(t)) return sm_fail_memory(err);
    for (int i = 0; i < m->computations; i++) {
        int c = made->analysis->order[i];
        if (made->analysis->runs[c].times <= 0) continue;
        made->p.guessed = made->p.guessed || made->analysis->runs[c].guessed;
        if (!run_computation(t, c)) return sm_fail_memory(err);
    }
    made->p.time = total[m->entry].time;
    made->p.time.expected_s = total[m->entry].now;
    add_up(made);
    return SM_OK;
}
