/* train_tracks: the simulated step of a plan as a timeline: a track for each pipeline stage, and of
 * the busiest one a track for each of its streams: ops, collectives that it waits for, collectives
 * under its ops. */
#include "train_asked.h"

static const char *const letters[] = {"F", "B", "Bi", "Bw"};
static const char *const categories[] = {"forward", "backward", "backward of inputs",
                                         "backward of weights"};

/* ---- the streams of a stage ---- */

enum { OPS, WAITED, HIDDEN, STREAMS, MOST_SLICES = 1 << 18 };

typedef struct streams {
    sm_report *r;
    const sm_plan_lines *lines;
    const sm_timeline *t;
    sm_slice *slice;
    size_t n;
    int stage, first_track, last_chunk;
    double free_s; /* when the network has moved what runs under ops so far */
    double slots[SM_SLOT_BACKWARD_WEIGHT + 1][3]; /* passes of layers, embedding, head */
} streams;

enum { LAYERS, EMBEDDING, HEAD };

static bool has_part(const streams *x, const sm_slot *slot, int part) {
    return part == LAYERS || (part == EMBEDDING ? slot->chunk == 0 : slot->chunk == x->last_chunk);
}

/* Does an op, or a collective of this phase, run in such a pass? */
static bool runs_in(sm_slot_kind slot, sm_phase phase, bool again) {
    switch (slot) {
    case SM_SLOT_FORWARD: return phase == SM_PHASE_FORWARD && !again;
    case SM_SLOT_BACKWARD: return phase != SM_PHASE_FORWARD || again;
    case SM_SLOT_BACKWARD_INPUT: return phase == SM_PHASE_BACKWARD_INPUT || again;
    case SM_SLOT_BACKWARD_WEIGHT: return phase == SM_PHASE_BACKWARD_WEIGHT && !again;
    }
    return false;
}

static bool comm_runs_in(sm_slot_kind slot, const char *phase) {
    if (strcmp(phase, "recompute") == 0) return runs_in(slot, SM_PHASE_FORWARD, true);
    for (int p = 0; p < SM_PHASE_COUNT; p++)
        if (strcmp(phase, sm_phase_name((sm_phase)p)) == 0)
            return runs_in(slot, (sm_phase)p, false);
    return false; /* at the end of the step */
}

static void put(streams *x, int stream, const char *name, const char *category, double start_s,
                double seconds) {
    if (!(seconds > 0)) return;
    x->slice[x->n++] = (sm_slice){x->first_track + stream, name, category, start_s, seconds};
}

/* What one pass has of a row: its share of the step's time. */
static double share(const streams *x, const sm_slot *slot, int piece, double seconds) {
    int part = piece == x->lines->pieces - 2   ? EMBEDDING
               : piece == x->lines->pieces - 1 ? HEAD
                                               : LAYERS;
    if (!has_part(x, slot, part) || !(x->slots[slot->kind][part] > 0)) return 0;
    return seconds / x->slots[slot->kind][part];
}

/* The collectives of an op's line from here on: what is waited for, and what runs under ops. */
static double lay_comms(streams *x, const sm_slot *slot, const sm_plan_op *op, bool reduces,
                        double at, double scale, bool write) {
    for (int c = 0; c < x->lines->collectives; c++) {
        const sm_plan_collective *m = &x->lines->collective[c];
        if (m->piece != op->piece || m->line != op->line || !comm_runs_in(slot->kind, m->phase) ||
            sm_collective_reduces(m->op) != reduces)
            continue;
        double waited = scale * share(x, slot, m->piece, m->exposed_s);
        double hidden = scale * share(x, slot, m->piece, fmax(m->time_s - m->exposed_s, 0));
        const char *name =
            write ? sm_textf(x->r, "%s %s over %s", sm_collective_names[m->op], m->array, m->axis)
                  : NULL;
        if (write) put(x, WAITED, name, "waited for", at, waited);
        at += waited;
        if (!write || !(hidden > 0)) continue;
        double start = fmax(at, x->free_s);
        put(x, HIDDEN, name, "under ops", start, hidden);
        x->free_s = start + hidden;
    }
    return at;
}

/* Is it the first op of its line in such a pass? */
static bool leads(const streams *x, const sm_slot *slot, int at, int step) {
    const sm_plan_op *op = &x->lines->op[at];
    for (int k = step > 0 ? 0 : x->lines->ops - 1; k != at; k += step) {
        const sm_plan_op *before = &x->lines->op[k];
        if (before->piece == op->piece && before->line == op->line &&
            runs_in(slot->kind, before->phase, before->again))
            return false;
    }
    return true;
}

/* Each op after what is gathered for its line and before what its line reduces; seconds of all. */
static double lay(streams *x, const sm_slot *slot, double scale, bool write) {
    double at = slot->start_s;
    int step = slot->kind == SM_SLOT_FORWARD ? 1 : -1;
    for (int i = step > 0 ? 0 : x->lines->ops - 1; i >= 0 && i < x->lines->ops; i += step) {
        const sm_plan_op *op = &x->lines->op[i];
        if (!runs_in(slot->kind, op->phase, op->again)) continue;
        bool first = leads(x, slot, i, step);
        if (first) at = lay_comms(x, slot, op, false, at, scale, write);
        double s = scale * share(x, slot, op->piece, op->time_s);
        if (write)
            put(x, OPS, op->again ? sm_textf(x->r, "%s again", op->op) : op->op,
                sm_bound_name(sm_plan_op_bound(op)), at, s);
        at += s;
        if (first) at = lay_comms(x, slot, op, true, at, scale, write);
    }
    return at - slot->start_s;
}

static void count_slots(streams *x) {
    for (int i = 0; i < x->t->slots; i++) {
        const sm_slot *slot = &x->t->slot[i];
        if (slot->chunk > x->last_chunk) x->last_chunk = slot->chunk;
    }
    for (int i = 0; i < x->t->slots; i++) {
        const sm_slot *slot = &x->t->slot[i];
        for (int part = 0; part < 3 && slot->stage == x->stage; part++)
            x->slots[slot->kind][part] += has_part(x, slot, part);
    }
}

static void lay_all(streams *x) {
    for (int i = 0; i < x->t->slots; i++) {
        const sm_slot *slot = &x->t->slot[i];
        if (slot->stage != x->stage) continue;
        double room = slot->end_s - slot->start_s, takes = lay(x, slot, 1, false);
        if (takes > 0) lay(x, slot, takes > room ? room / takes : 1, true);
    }
}

static size_t slices_of(const streams *x) {
    size_t slots = 0;
    for (int i = 0; i < x->t->slots; i++) slots += x->t->slot[i].stage == x->stage;
    size_t each = (size_t)x->lines->ops + 2 * (size_t)x->lines->collectives;
    return slots * each > MOST_SLICES ? 0 : slots * each;
}

/* ---- the step ---- */

sm_status sm_train_tracks(const sm_train_asked *q, sm_train *train, const sm_plan_shown *shown,
                          sm_error *err) {
    const sm_plan *plan = shown->plan;
    sm_report *r = q->report;
    sm_timeline t = {0};
    sm_status status = sm_train_timeline(train, plan, r->arena, &t, err);
    if (status) return status;
    sm_tracks *tracks = sm_arena_alloc(r->arena, sizeof *tracks);
    streams x = {.r = r, .lines = &shown->detail.lines, .t = &t, .stage = shown->detail.stage};
    size_t more = slices_of(&x), own = (size_t)t.slots + 3 * (size_t)t.stages;
    sm_slice *slice = sm_arena_array(r->arena, own + more, sizeof *slice);
    const char **names = sm_arena_array(r->arena, (size_t)t.stages + STREAMS, sizeof *names);
    if (!tracks || !slice || !names) return sm_fail_memory(err);
    for (int stage = 0; stage < t.stages; stage++) names[stage] = sm_textf(r, "stage %d", stage);
    static const char *const streams_of[] = {"ops", "collectives waited for",
                                             "collectives under ops"};
    for (int i = 0; i < STREAMS; i++)
        names[t.stages + i] = sm_textf(r, "stage %d: %s", x.stage, streams_of[i]);
    *tracks = (sm_tracks){
        .title = sm_textf(r, "a step of %.90s on %.90s", q->in.model->name, q->system->text),
        .n = t.stages + (more > 0 ? STREAMS : 0),
        .track = names,
        .slice = slice};
    for (int i = 0; i < t.slots; i++) {
        const sm_slot *slot = &t.slot[i];
        const char *chunk = plan->virtual_stages > 1 ? sm_textf(r, ", chunk %d", slot->chunk) : "";
        slice[tracks->slices++] =
            (sm_slice){.track = slot->stage,
                       .name = sm_textf(r, "%s %d%s", letters[slot->kind], slot->microbatch, chunk),
                       .category = categories[slot->kind],
                       .start_s = slot->start_s,
                       .seconds = slot->end_s - slot->start_s};
    }
    /* What follows the last microbatch, on every stage the time of the slowest. */
    double updated = t.optimizer_start_s + t.optimizer_s;
    const sm_slice end[] = {
        {0, "reduction of gradients", "end of the step", t.optimizer_start_s - t.reduce_s,
         t.reduce_s},
        {0, "optimizer", "end of the step", t.optimizer_start_s, updated - t.optimizer_start_s},
        {0, "gathering of weights, host", "end of the step", updated, t.end_s - updated}};
    for (int stage = 0; stage < t.stages; stage++)
        for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
            if (!(end[i].start_s + end[i].seconds > end[i].start_s)) continue;
            slice[tracks->slices] = end[i];
            slice[tracks->slices++].track = stage;
        }
    x.slice = slice + tracks->slices;
    x.first_track = t.stages;
    if (more > 0) count_slots(&x), lay_all(&x);
    tracks->slices += x.n;
    r->tracks = tracks;
    return SM_OK;
}
