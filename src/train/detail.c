/* Everything a person may ask of one plan: where its axes sit and each collective it makes. */
#include <assert.h>
#include <math.h>

#include "detail.h"

/* ---- axes ---- */

static void add_level(char *on, size_t size, const sm_train *t, int level) {
    char name[20];
    if (level < t->system.torus_dims) snprintf(name, sizeof name, "%d", level);
    else snprintf(name, sizeof name, "%s", t->system.level[level].name);
    size_t n = strlen(on), m = strlen(name);
    if (strstr(on, name) || n + m + 2 > size) return;
    if (n) on[n++] = ',';
    memcpy(on + n, name, m + 1);
}

static void add_axis(const sm_train *t, const sm_placement *p, int key, sm_plan_detail *out) {
    sm_group g = sm_group_join(p, axes_of_key(key));
    if (g.size == 1) return;
    assert(out->axes < SM_PLAN_DEGREES);
    sm_plan_axis *a = &out->axis[out->axes++];
    snprintf(a->name, sizeof a->name, "%s", sm_plan_key_row_of((sm_plan_key)key)->name);
    a->size = g.size;
    a->group = g;
    a->on[0] = 0;
    for (int i = 0; i < g.parts; i++)
        if (g.part[i].size > 1) add_level(a->on, sizeof a->on, t, g.part[i].level);
}

/* ---- collectives ---- */

typedef struct list {
    const sm_train *t;
    const pieces *p;
    sm_plan_detail *out;
    int room;
} list;

static sm_plan_collective *find(list *l, const sm_plan_collective *c) {
    sm_plan_lines *lines = &l->out->lines;
    for (int i = 0; i < lines->collectives; i++) {
        sm_plan_collective *o = &lines->collective[i];
        if (o->op == c->op && o->bytes == c->bytes && o->piece == c->piece && o->line == c->line &&
            o->returns == c->returns && strcmp(o->array, c->array) == 0 &&
            strcmp(o->axis, c->axis) == 0 && strcmp(o->phase, c->phase) == 0)
            return o;
    }
    assert(lines->collectives < l->room);
    sm_plan_collective *o = &lines->collective[lines->collectives++];
    *o = *c;
    o->count = o->time_s = o->exposed_s = 0;
    return o;
}

/* axes 0: the pipeline. */
static sm_plan_collective row_of(const list *l, sm_collective op, const char *array, sm_axes axes,
                                 const char *phase, double bytes) {
    sm_plan_collective c = {.op = op, .bytes = bytes, .axes = axes, .piece = -1, .line = -1};
    snprintf(c.array, sizeof c.array, "%s", array);
    if (axes) sm_plan_axes_text(axes, &l->p->d, c.axis, sizeof c.axis);
    else snprintf(c.axis, sizeof c.axis, "pipeline");
    snprintf(c.phase, sizeof c.phase, "%s", phase);
    return c;
}

static void add(list *l, sm_plan_collective c, const sm_timed_curve *curve, double count,
                double exposed) {
    const sm_timed_line *line;
    double s = sm_timed_curve_s(curve, c.bytes, &line);
    if (!line || count <= 0) return;
    c.algorithm = line->algorithm;
    c.level = line->level;
    c.wire_bytes = c.bytes * line->wire_per_byte;
    sm_plan_collective *o = find(l, &c);
    o->weight |= c.weight;
    o->count += count;
    o->time_s += s * count;
    o->exposed_s += s * count * exposed;
}

/* The exposed part of each stream of a piece: passes know the sums, the parts are shared out by
 * time. */
typedef struct exposed_parts {
    double blocking[2], exchange[2], ring[2], stream[2];
} exposed_parts;

/* The exposed part of a whole: beside busier levels a stream may take longer than it would alone,
 * and that is theirs; a difference of sums may round to less than nothing. */
static double part(double exposed, double whole) {
    return whole > 0 ? fmin(fmax(exposed / whole, 0), 1) : 0;
}

static exposed_parts exposed_parts_of(const sm_train *t, const sm_plan *plan, const pieces *p,
                                      int index, int set) {
    exposed_parts s;
    piece_exposed e = piece_exposed_of(t, &p->time[index], &p->comm[index], set, plan);
    const piece_pass *q = &p->pass[index];
    double compute[2] = {p->time[index].forward, p->time[index].backward_input +
                                                     p->time[index].backward_weight +
                                                     p->time[index].again[set]};
    double total[2] = {q->expected.forward,
                       q->expected.backward_input + q->expected.backward_weight};
    for (int w = 0; w < 2; w++) {
        comm_way c = piece_comm_way(t, &p->comm[index], w, set, plan);
        s.blocking[w] = part(e.blocking[w], c.blocking);
        s.exchange[w] = part(e.exchange[w], c.exchange);
        s.ring[w] = part(e.ring[w], c.ring);
        double rest = total[w] - compute[w] - e.blocking[w] - e.exchange[w] - e.ring[w];
        s.stream[w] = part(fmin(fmax(rest, 0), c.serial), c.serial);
    }
    return s;
}

static void add_piece(list *l, const sm_plan *plan, int index, int set, double times) {
    const piece *one = &l->p->v->piece[index];
    exposed_parts s = exposed_parts_of(l->t, plan, l->p, index, set);
    for (int i = 0; i < one->part.comms; i++) {
        const sm_comm *c = &one->part.comm[i];
        const sm_timed_curve *curve = l->p->at.slot[one->sent[i].slot];
        if (sm_comm_is_spared(c, kept_gathered(l->t, plan))) continue;
        int way = c->phase != SM_PHASE_FORWARD;
        const double *part_of = c->stream == SM_STREAM_RING       ? s.ring
                                : c->stream != SM_STREAM_BLOCKING ? s.stream
                                : c->ragged                       ? s.exchange
                                                                  : s.blocking;
        double bytes = comm_bytes(l->t, index, c, &l->p->d, plan);
        sm_plan_collective row =
            row_of(l, c->op, c->array, c->axes, sm_phase_name(c->phase), bytes);
        row.weight = c->role == SM_ROLE_WEIGHT;
        row.piece = index;
        row.line = one->part.program.op[c->forward_op].line;
        row.returns = c->returns;
        row.arrays = c->arrays;
        add(l, row, curve, times * comm_times(l->t, &one->part.program, c), part_of[way]);
        if (!sm_comm_runs_again(c, piece_again(l->t, one, set))) continue;
        snprintf(row.phase, sizeof row.phase, "recompute");
        add(l, row, curve, times, part_of[1]);
    }
}

static bool same_axes(const sm_degrees *d, sm_axes a, sm_axes b) {
    return d->ways[a] == d->ways[a | b] && d->ways[b] == d->ways[a | b];
}

/* Classes whose gradients are reduced over the same chips are one row, of equal parts, the last of
 * which is filled up: by so many elements, told with the first of them. */
static double filling(const list *l, const sm_plan *plan, const sm_partition *of, int class) {
    const sm_weight_class *own = &of->weight[class];
    const sm_degrees *d = &l->p->d;
    double copies = own->partial & SM_BIT(SM_AXIS_DATA) ? plan->state_copies : 1, held = 0;
    double ways = d->ways[own->partial] / fmax(1, copies);
    for (int i = 0; i < of->classes; i++) {
        const sm_weight_class *c = &of->weight[i];
        if (c->fixed || !same_axes(d, c->partial, own->partial) ||
            !same_axes(d, c->stored, own->stored))
            continue;
        if (i < class) return 0;
        held += c->elements * sm_weight_share(c, plan->pipeline) / d->ways[c->stored];
    }
    return ceil(held / ways) * ways - held;
}

/* tied: the piece's tied weights are reduced with those that they are copies of. */
static void add_step_end(list *l, const sm_plan *plan, const step_end *end, int index, double times,
                         double microbatches, bool tied) {
    const piece *one = &l->p->v->piece[index];
    double exposed_reduce = part(end->reduce_s, end->reduce);
    double exposed_gather = part(end->gather_s, end->gather);
    for (int i = 0; i < one->part.classes; i++) {
        const sm_weight_class *c = &one->part.weight[i];
        const class_slots *slots = &l->p->v->weight[index][i];
        if (c->fixed || (tied && c->tied)) continue;
        double held = c->elements * sm_weight_share(c, plan->pipeline) / l->p->d.ways[c->stored];
        if (plan->zero && l->t->software.one_by_one) held += filling(l, plan, &one->part, i);
        const char *what = c->expert ? "experts" : "weights";
        double gradients = held * reduced_bytes(l->t, plan);
        double weights = held * class_bytes(l->t, plan, c);
        bool whole = reduces_whole(l->t, plan);
        const sm_timed_curve *reduce =
            l->p->at.slot[whole ? slots->all_reduce : slots->reduce_scatter];
        sm_plan_collective row =
            row_of(l, whole ? SM_ALL_REDUCE : SM_REDUCE_SCATTER, what, c->partial,
                   plan->zero == 2 ? "backward-weight" : "step end", gradients);
        row.returns = true;
        if (plan->zero == 2)
            add(l, row, reduce, times * microbatches, l->t->software.one_by_one ? 1 : 0);
        else add(l, row, reduce, times, exposed_reduce);
        if (!whole && plan->state_copies > 1 && c->partial & SM_BIT(SM_AXIS_DATA)) {
            double part_of = plan->state_copies / l->p->d.ways[c->partial];
            row = row_of(l, SM_ALL_REDUCE, what, SM_BIT(SM_AXIS_DATA), "step end",
                         gradients * part_of);
            row.returns = true;
            add(l, row, l->p->at.slot[slots->across], times, exposed_reduce);
        }
        if (plan->zero)
            add(l, row_of(l, SM_ALL_GATHER, what, c->partial, "step start", weights),
                l->p->at.slot[slots->all_gather], times, exposed_gather);
    }
}

double stage_holds(const sm_train *t, const sm_plan *plan, const stages *s, int stage, int index) {
    double n = 0;
    for (int c = 0; c < s->layout->chunks; c++)
        n += stage_pieces(t, s, c, index) * stage_share(plan, stage, c);
    return n;
}

static bool list_collectives(const sm_train *t, const sm_plan *plan, const pieces *p, stages *s,
                             sm_arena *arena, sm_plan_detail *out) {
    list l = {t, p, out, 3};               /* between stages */
    for (int i = 0; i < p->v->pieces; i++) /* forward and recomputed; of each class of weights */
        l.room += 2 * p->v->piece[i].part.comms + 3 * p->v->piece[i].part.classes;
    out->lines.collectives = 0;
    out->lines.collective = sm_arena_array(arena, (size_t)l.room, sizeof *out->lines.collective);
    if (!out->lines.collective) return false;
    stages_chunks(t, plan, p, EXPECTED, s);
    sm_pipeline_time time = stages_run(s);
    int stage = out->stage = time.busiest_stage;
    step_end end = step_end_of(t, plan, p, s);
    step_close(t, plan, time.total_s, &end);
    double m = microbatches_of(t, plan);
    for (int i = 0; i < p->v->pieces; i++) {
        double n = stage_holds(t, plan, s, stage, i);
        if (n <= 0) continue;
        int set = i < t->kinds ? set_of(plan) : SM_RECOMPUTE_NONE;
        add_piece(&l, plan, i, set, n * m);
        bool beside = i != head_piece(t) || stage_holds(t, plan, s, stage, embedding_piece(t)) > 0;
        add_step_end(&l, plan, &end, i, n, m, beside);
    }
    if (plan->pipeline > 1) {
        double bytes = pieces_handed(t, p);
        double times = m * s->pipeline.chunks_per_stage;
        double exposed = part(price_sends_s(t, plan, p, s, &time), 2 * times * p->send_serial_s);
        add(&l, row_of(&l, SM_PERMUTE, "x", 0, "forward", bytes), p->at.send, times, exposed);
        add(&l, row_of(&l, SM_PERMUTE, "dx", 0, "backward", bytes), p->at.send, times, exposed);
        sm_plan_collective row =
            row_of(&l, SM_PERMUTE, "shared weights", 0, "step end", end.share_bytes);
        row.weight = row.returns = true;
        add(&l, row, p->at.send, end.share_sends, 1);
    }
    return true;
}

static sm_status price_whole(sm_train *train, sm_plan *p, sm_plan_detail *detail, sm_error *err) {
    memset(detail, 0, sizeof *detail);
    sm_status s = price_prepare(train, p, err);
    if (!s) price_fill(train, p, train->one, train->one_stages, &detail->price);
    return s;
}

sm_status sm_train_ops(sm_train *train, const sm_plan *plan, sm_arena *arena,
                       sm_plan_detail *detail, sm_error *err) {
    sm_plan p = *plan;
    sm_status s = price_whole(train, &p, detail, err);
    if (s) return s;
    stages_chunks(train, &p, train->one, EXPECTED, train->one_stages);
    detail->stage = stages_run(train->one_stages).busiest_stage;
    return list_ops(train, &p, train->one, train->one_stages, arena, detail) ? SM_OK
                                                                             : sm_fail_memory(err);
}

sm_status sm_train_detail(sm_train *train, const sm_plan *plan, sm_arena *arena,
                          sm_plan_detail *detail, sm_error *err) {
    sm_plan p = *plan;
    sm_status s = price_whole(train, &p, detail, err);
    if (s) return s;
    s = price_step_memory(train, &p, train->one, &detail->price, err);
    if (s) return s;
    detail->stages = train->software.one_by_one ? 0 : p.pipeline;
    sm_memory *each = sm_arena_array(arena, (size_t)p.pipeline, sizeof *each);
    if (!each) return sm_fail_memory(err);
    if (detail->stages) stages_each_memory(train, &p, train->one, train->one_stages, each);
    detail->stage_memory = each;
    detail->heads_times = sm_plan_heads_times(&p, &train->model);
    detail->axes = 0;
    for (int i = SM_PLAN_DEGREES - 1; i >= 0; i--) /* outermost first */
        add_axis(train, &train->one->at.placement, p.order[i], detail);
    if (!list_collectives(train, &p, train->one, train->one_stages, arena, detail))
        return sm_fail_memory(err);
    if (!list_ops(train, &p, train->one, train->one_stages, arena, detail))
        return sm_fail_memory(err);
    detail->why = explain_plan(train, &p, train->one, train->one_stages, &detail->price, arena);
    if (!detail->why || !advise(train, &p, &detail->price, detail->advice, sizeof detail->advice))
        return sm_fail_memory(err);
    return SM_OK;
}
