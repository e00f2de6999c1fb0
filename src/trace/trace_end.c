/* A trace once all is read: events in order, each with its cause; programs and their ops. */
#include <stdlib.h>
#include <string.h>

#include "trace_build.h"

static sm_status no_memory(trace_build *b) {
    if (!b->status) b->status = sm_fail_memory(b->err);
    return b->status;
}

SM_ORDER(by_place, sm_trace_event,
         SM_ASCENDING(stream) SM_ASCENDING(start_ps) SM_DESCENDING(duration_ps) SM_ASCENDING(kind))

/* ---- causes ---- */

typedef struct joins {
    sm_numbers launches, ops; /* events by file and number */
} joins;

static uint64_t key_of(const trace_build *b, const sm_trace_event *e, int64_t number) {
    return sm_hash_mixed(sm_hash_mixed(SM_HASH_SEED, (uint64_t)b->stream[e->stream].file),
                         (uint64_t)number);
}

/* The first that has a number is told by it. */
static bool index_events(trace_build *b, joins *j) {
    for (int i = 0; i < b->t.events; i++) {
        const sm_trace_event *e = &b->event[i];
        bool launch = e->kind == SM_TRACE_LAUNCH;
        if ((!launch && e->kind != SM_TRACE_OP) || e->correlation == 0) continue;
        int32_t *at = sm_numbers_at(launch ? &j->launches : &j->ops, key_of(b, e, e->correlation));
        if (!at) return false;
        if (*at < 0) *at = i;
    }
    return true;
}

/* -1: nothing has this number. */
static int32_t found(const trace_build *b, sm_numbers *t, const sm_trace_event *e, int64_t number) {
    if (number <= 0 || t->n == 0) return -1;
    int32_t *at = sm_numbers_at(t, key_of(b, e, number));
    return at ? *at : -1;
}

static bool join(trace_build *b) {
    joins j = {{0}, {0}};
    bool done = index_events(b, &j);
    int open = -1;
    for (int i = 0; done && i < b->t.events; i++) {
        sm_trace_event *e = &b->event[i];
        int32_t number = e->cause;
        if (i == 0 || b->event[i - 1].stream != e->stream) open = -1;
        if (b->stream[e->stream].device < 0) {
            /* of events of a host the innermost that encloses it is the cause */
            while (open >= 0 && b->event[open].start_ps + b->event[open].duration_ps <= e->start_ps)
                open = b->event[open].cause;
            e->cause = open;
            if (open < 0 && e->kind == SM_TRACE_LAUNCH) e->cause = found(b, &j.ops, e, number);
            if (e->cause >= i) e->cause = -1; /* causes lead back: no circles */
            open = i;
        } else {
            e->cause = found(b, &j.launches, e, e->correlation);
            if (e->cause < 0) e->cause = found(b, &j.ops, e, number);
        }
    }
    sm_numbers_free(&j.launches);
    sm_numbers_free(&j.ops);
    return done;
}

/* ---- programs ---- */

typedef struct ran {
    int32_t program;
    const char *name;
    double count, seconds;
} ran;

static bool is_op(const sm_trace_event *e) {
    return e->program >= 0 && !e->async && e->kind <= SM_TRACE_CONTAINER;
}

SM_ORDER(by_name, ran, SM_ASCENDING(program) SM_BY_TEXT(name))

/* Events of one instruction are one op. */
static bool add_up(trace_build *b, ran *list, int *n) {
    sm_numbers ops = {0};
    bool done = true;
    for (int i = 0; done && i < b->t.events; i++) {
        const sm_trace_event *e = &b->event[i];
        double seconds = (double)e->duration_ps * 1e-12;
        if (e->kind == SM_TRACE_RUN && e->program >= 0) {
            b->program[e->program].runs++;
            b->program[e->program].seconds += seconds;
        }
        if (!is_op(e)) continue;
        uint64_t key = (uint64_t)(e->program + 1) << 32 | (uint32_t)e->name;
        int32_t *at = sm_numbers_at(&ops, key);
        done = at != NULL;
        if (done && *at < 0) list[ *at = (*n)++] = (ran){e->program, b->names.text[e->name], 0, 0};
        if (!done) break;
        list[*at].count++;
        list[*at].seconds += seconds;
        b->program[e->program].busy_s += seconds;
    }
    sm_numbers_free(&ops);
    return done;
}

static bool collect(trace_build *b) {
    int room = 1, n = 0;
    for (int i = 0; i < b->t.events; i++) room += is_op(&b->event[i]);
    ran *list = sm_calloc((size_t)room, sizeof *list);
    bool done = list && add_up(b, list, &n);
    sm_trace_op *ops = done ? sm_arena_array(b->arena, (size_t)n + 1, sizeof *ops) : NULL;
    if (ops && n) qsort(list, (size_t)n, sizeof *list, by_name);
    for (int i = 0; ops && i < n; i++) {
        sm_trace_program *p = &b->program[list[i].program];
        ops[i] = (sm_trace_op){list[i].name, list[i].count, list[i].seconds};
        if (p->ops++ == 0) p->op = &ops[i];
    }
    sm_free(list);
    return ops != NULL;
}

SM_ORDER(by_seconds, sm_trace_program,
         SM_BY_KEY(y->seconds > 0 ? y->seconds : y->busy_s, x->seconds > 0 ? x->seconds : x->busy_s)
             SM_ASCENDING(id))

/* The longest first; events follow. */
static bool order_programs(trace_build *b) {
    if (b->t.programs == 0) return true;
    size_t n = (size_t)b->t.programs;
    uint64_t *was = sm_calloc(n, sizeof *was);
    int32_t *now = sm_calloc(n, sizeof *now);
    for (size_t i = 0; was && i < n; i++) was[i] = b->program[i].id;
    if (was && now) qsort(b->program, n, sizeof *b->program, by_seconds);
    for (size_t i = 0; was && now && i < n; i++)
        for (size_t k = 0; k < n; k++)
            if (b->program[k].id == was[i]) now[i] = (int32_t)k;
    for (int i = 0; was && now && i < b->t.events; i++)
        if (b->event[i].program >= 0) b->event[i].program = now[b->event[i].program];
    bool done = was && now;
    sm_free(was);
    sm_free(now);
    return done;
}

/* ---- all ---- */

sm_status trace_end(trace_build *b, const sm_trace **out) {
    if (b->status) return b->status;
    size_t n = (size_t)b->t.events;
    if (n) qsort(b->event, n, sizeof *b->event, by_place);
    if (!trace_add_host_work(b)) return no_memory(b);
    if (b->t.events > (int)n) {
        n = (size_t)b->t.events;
        qsort(b->event, n, sizeof *b->event, by_place);
    }
    if (!join(b) || !collect(b) || !order_programs(b)) return no_memory(b);
    sm_trace *t = sm_arena_alloc(b->arena, sizeof *t);
    sm_trace_event *kept = sm_arena_array(b->arena, n + 1, sizeof *kept);
    if (!t || !kept) return no_memory(b);
    if (n) memcpy(kept, b->event, n * sizeof *kept);
    for (int i = b->t.devices - 1; i >= 0; i--)
        if (b->device[i].name[0]) b->t.device = b->device[i].name;
    *t = b->t;
    t->on = b->device;
    t->stream = b->stream;
    t->name = b->names.text;
    t->names = b->names.n;
    t->detail = b->detail;
    t->file = b->file;
    t->program = b->program;
    t->event = kept;
    *out = t;
    return SM_OK;
}
