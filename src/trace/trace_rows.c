/* Kernels by what launched them, collectives by what they send. */
#include <stdlib.h>

#include "breakdown_made.h"
#include "traces_format.h"

/* ---- kernels ---- */

typedef struct kernel_rows {
    breakdown_made *made;
    sm_numbers at;
    sm_kernel_row *row;
    int n, room;
    uint8_t *seen; /* a bit of each event: its work is counted */
} kernel_rows;

static uint64_t mixed(uint64_t key, int64_t word) { return sm_hash_mixed(key, (uint64_t)word); }

static const sm_trace_detail *detail_of(const sm_trace *t, const sm_trace_event *e) {
    return e && e->detail >= 0 ? &t->detail[e->detail] : NULL;
}

/* What rows are told apart by. */
typedef struct row_key {
    const sm_trace_event *op, *module;
    int32_t name, shapes;
} row_key;

static row_key key_of(const sm_trace *t, const sm_trace_event *e) {
    row_key k = {NULL, NULL, e->name, -1};
    if (e->kind == SM_TRACE_COPY) return k;
    k.op = trace_cause(t, e, SM_TRACE_OP);
    k.module = trace_cause(t, e, SM_TRACE_MODULE);
    const sm_trace_detail *d = detail_of(t, k.op);
    if (k.op) k.name = k.op->name;
    if (d) k.shapes = d->shapes;
    return k;
}

static sm_kernel_row *row_of(kernel_rows *r, const sm_trace_event *e, const row_key *k) {
    const sm_trace *t = r->made->trace;
    uint64_t key = mixed(mixed(mixed(SM_HASH_SEED, k->name), k->shapes), e->kind);
    int32_t *at = sm_numbers_at(&r->at, mixed(key, k->module ? k->module->name : -1));
    if (!at) return NULL;
    if (*at >= 0) return &r->row[*at];
    sm_kernel_row *list = sm_arena_grow(r->made->arena, r->row, r->n, &r->room, sizeof *list);
    const char *shapes =
        k->shapes >= 0 ? trace_shapes_text(t->name[k->shapes], r->made->arena) : "";
    if (!list || !shapes) return NULL;
    r->row = list;
    *at = r->n++;
    list[*at] = (sm_kernel_row){.kind = (sm_trace_kind)e->kind,
                                .op = t->name[k->name],
                                .module = k->module ? t->name[k->module->name] : "",
                                .shapes = shapes,
                                .flops = NAN,
                                .bytes = NAN,
                                .dtype = SM_BF16};
    return &list[*at];
}

static double added(double sum, double more) {
    return isnan(more) ? sum : isnan(sum) ? more : sum + more;
}

/* The work of an op counts once, however many kernels it launches; that of a kernel, where it says
 * so itself, each time. */
static void count_work(kernel_rows *r, sm_kernel_row *row, const sm_trace_event *e,
                       const sm_trace_event *op) {
    const sm_trace *t = r->made->trace;
    const sm_trace_detail *d = detail_of(t, e);
    const sm_trace_event *told = op ? op : e;
    size_t i = (size_t)(told - t->event);
    if (d) row->bytes = added(row->bytes, d->bytes);
    if (d) row->flops = added(row->flops, d->flops);
    if (r->seen[i / 8] >> i % 8 & 1) return;
    r->seen[i / 8] |= (uint8_t)(1u << i % 8);
    row->calls++;
    d = detail_of(t, op);
    if (!d || d->shapes < 0) return;
    op_work w =
        trace_op_work(t->name[op->name], t->name[d->shapes], d->types >= 0 ? t->name[d->types] : "",
                      d->values >= 0 ? t->name[d->values] : "");
    row->flops = added(row->flops, w.flops);
    row->bytes = added(row->bytes, w.bytes);
    if (w.flops > 0) row->dtype = w.dtype;
    row->m = w.m;
    row->n = w.n;
    row->k = w.k;
    row->attention = w.attention;
}

static bool add_kernel(kernel_rows *r, const sm_trace_event *e) {
    row_key k = key_of(r->made->trace, e);
    sm_kernel_row *row = row_of(r, e, &k);
    if (!row) return false;
    double seconds = (double)e->duration_ps * 1e-12;
    row->count++;
    row->seconds += seconds;
    if (!row->kernel || seconds > row->longest_s) {
        row->kernel = r->made->trace->name[e->name];
        row->longest_s = seconds;
    }
    count_work(r, row, e, k.op);
    return true;
}

SM_ORDER(by_seconds, sm_kernel_row, SM_DESCENDING(seconds) SM_BY_TEXT(op) SM_BY_TEXT(shapes))

bool breakdown_rows(breakdown_made *made) {
    const sm_trace *t = made->trace;
    kernel_rows r = {.made = made};
    r.seen = sm_calloc((size_t)t->events / 8 + 1, 1);
    bool done = r.seen != NULL;
    for (int i = 0; done && i < made->first[t->devices]; i++) {
        const sm_trace_event *e = &t->event[made->work[i]];
        if (e->kind != SM_TRACE_COLLECTIVE) done = add_kernel(&r, e);
    }
    if (done && r.n) qsort(r.row, (size_t)r.n, sizeof *r.row, by_seconds);
    made->b.row = r.row;
    made->b.rows = r.n;
    sm_numbers_free(&r.at);
    sm_free(r.seen);
    return done;
}

/* ---- collectives ---- */

typedef struct one_comm {  /* a collective that ran */
    int row, device, turn; /* turn: how many of its row its device has run before */
    int32_t name;          /* of an instruction; kernels of a row have names alike */
    const sm_trace_event *event;
} one_comm;

typedef struct comm_rows {
    breakdown_made *made;
    sm_numbers at, turns;
    sm_comm_row *row;
    one_comm *ran;
    int n, room, all;
    bool async; /* the trace tells collectives from start to done */
} comm_rows;

/* Letters alone, in lower case: "ncclDevKernel_AllReduce_Sum" holds "allreduce". */
static bool says(const char *text, const char *word) {
    for (; *text; text++) {
        const char *at = text, *w = word;
        while (*at && *w) {
            char c = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
            if (c == '-' || c == '_') at++;
            else if (c == *w) at++, w++;
            else break;
        }
        if (!*w) return true;
    }
    return false;
}

static const char *op_of(const char *text) {
    for (size_t i = 0; i < traces_collectives_count; i++)
        if (says(text, traces_collectives[i].name)) return traces_collectives[i].called;
    return "collective";
}

/* Bytes as nccl-tests count them: of an all-gather those of the result, else those of a member's
 * input; and what of them crosses the bus. */
static void set_bytes(sm_comm_row *row, double in, double out, double element) {
    double n = row->members, others = n > 1 ? (n - 1) / n : NAN;
    bool gathers = !strcmp(row->op, "all-gather");
    double elements = gathers ? fmax(in, out) : in;
    row->bytes = elements > 0 && element > 0 ? elements * element : NAN;
    bool part = gathers || !strcmp(row->op, "reduce-scatter") || !strcmp(row->op, "all-to-all");
    row->bus_factor = !strcmp(row->op, "all-reduce") ? 2 * others : part ? others : 1;
}

/* The annotation "nccl:all_reduce" around a launch tells the sizes where the kernel does not. */
static const sm_trace_event *told_by_mark(const sm_trace *t, const sm_trace_event *e) {
    for (e = e->cause >= 0 ? &t->event[e->cause] : NULL; e;
         e = e->cause >= 0 ? &t->event[e->cause] : NULL)
        if (e->kind == SM_TRACE_MARK && !strncmp(t->name[e->name], "nccl:", 5)) return e;
    return NULL;
}

static sm_comm_row comm_of(const sm_trace *t, const sm_trace_event *e) {
    const sm_trace_detail *d = detail_of(t, e);
    sm_comm_row row = {.op = t->name[e->name], .dtype = "", .group_name = "", .bus_factor = NAN};
    sm_dtype ignored;
    row.bytes = row.least_s = NAN;
    if (d && d->op >= 0) row.op = t->name[d->op];
    row.op = op_of(row.op);
    if (d) row.members = d->group;
    if (d && d->dtype >= 0) row.dtype = t->name[d->dtype];
    if (d && d->group_name >= 0) row.group_name = t->name[d->group_name];
    double element = trace_element_bytes(row.dtype, &ignored);
    if (d && d->elements_in >= 0) {
        set_bytes(&row, d->elements_in, d->elements_out, element);
        return row;
    }
    const sm_trace_event *by = told_by_mark(t, e);
    const sm_trace_detail *mark = detail_of(t, by);
    if (by && (!d || d->op < 0)) row.op = op_of(t->name[by->name] + 5);
    if (!mark || mark->shapes < 0 || mark->types < 0) return row;
    const char *type = strchr(t->name[mark->types], '"');
    element = trace_element_bytes(type ? type + 1 : "", &ignored);
    set_bytes(&row, trace_elements(t->name[mark->shapes]), NAN, element);
    return row;
}

static int64_t bits_of(double value) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? -1 : bits;
}

static uint64_t text_key(uint64_t key, const char *text) {
    return sm_hash_mixed(key, sm_hash_bytes(text, strlen(text)));
}

/* The start of a collective, or the wait for its end: all of it is told elsewhere. */
static bool is_part(const char *name) { return strstr(name, "-start") || strstr(name, "-done"); }

static bool add_comm(comm_rows *c, const sm_trace_event *e, int device) {
    sm_comm_row row = comm_of(c->made->trace, e);
    uint64_t key = text_key(text_key(text_key(SM_HASH_SEED, row.op), row.dtype), row.group_name);
    key = mixed(mixed(key, row.members), bits_of(row.bytes));
    int32_t *at = sm_numbers_at(&c->at, key);
    if (!at) return false;
    if (*at < 0) {
        sm_comm_row *list = sm_arena_grow(c->made->arena, c->row, c->n, &c->room, sizeof *list);
        if (!list) return false;
        c->row = list;
        list[ *at = c->n++] = row;
    }
    int i = *at;
    c->row[i].exposed_s += (double)c->made->exposed_ps[e - c->made->trace->event] * 1e-12;
    if (c->async && !e->async && is_part(c->made->trace->name[e->name])) return true;
    int32_t name = e->program >= 0 ? e->name : -1;
    int32_t *turn = sm_numbers_at(&c->turns, mixed(mixed(mixed(SM_HASH_SEED, i), device), name));
    if (!turn) return false;
    c->ran[c->all++] = (one_comm){i, device, ++*turn, name, e};
    c->row[i].count++;
    c->row[i].seconds += (double)e->duration_ps * 1e-12;
    return true;
}

SM_ORDER(by_turn, one_comm,
         SM_ASCENDING(row) SM_ASCENDING(name) SM_ASCENDING(turn) SM_ASCENDING(device))

static sm_device_time *time_of(breakdown_made *made, int device) {
    sm_device_time *list = (sm_device_time *)(uintptr_t)made->b.device;
    for (int i = 0; i < made->b.devices; i++)
        if (list[i].device == device) return &list[i];
    return NULL;
}

/* Ranks begin a collective when they come to it and end it together: the shortest one moved the
 * bytes, and what others took longer they waited. Clocks of hosts need not agree for that. */
static void split_waits(comm_rows *c) {
    const double ps = 1e-12;
    for (int i = 0, end; i < c->all; i = end) {
        int64_t least = INT64_MAX;
        for (end = i;
             end < c->all && c->ran[end].row == c->ran[i].row && c->ran[end].turn == c->ran[i].turn;
             end++)
            if (c->ran[end].event->duration_ps < least) least = c->ran[end].event->duration_ps;
        sm_comm_row *row = &c->row[c->ran[i].row];
        if (isnan(row->least_s) || (double)least * ps < row->least_s)
            row->least_s = (double)least * ps;
        for (int k = i; k < end && end > i + 1; k++) {
            sm_device_time *d = time_of(c->made, c->ran[k].device);
            if (!d || d->steps == 0) continue;
            double wait = (double)(c->ran[k].event->duration_ps - least) * ps / d->steps;
            d->wait_s = isnan(d->wait_s) ? wait : d->wait_s + wait;
        }
    }
}

SM_ORDER(by_exposed, sm_comm_row, SM_DESCENDING(exposed_s) SM_DESCENDING(seconds) SM_BY_TEXT(op))

bool breakdown_comms(breakdown_made *made) {
    const sm_trace *t = made->trace;
    comm_rows c = {.made = made};
    c.ran = sm_calloc((size_t)made->first[t->devices] + 1, sizeof *c.ran);
    bool done = c.ran != NULL;
    for (int i = 0; i < t->events; i++)
        c.async = c.async || (t->event[i].async && t->event[i].kind == SM_TRACE_COLLECTIVE);
    for (int d = 0; done && d < t->devices; d++)
        for (int i = made->first[d]; done && i < made->first[d + 1]; i++) {
            const sm_trace_event *e = &t->event[made->work[i]];
            if (e->kind == SM_TRACE_COLLECTIVE) done = add_comm(&c, e, d);
        }
    if (done && c.all) qsort(c.ran, (size_t)c.all, sizeof *c.ran, by_turn);
    if (done) split_waits(&c);
    if (done && c.n) qsort(c.row, (size_t)c.n, sizeof *c.row, by_exposed);
    made->b.comm = c.row;
    made->b.comms = c.n;
    sm_numbers_free(&c.at);
    sm_numbers_free(&c.turns);
    sm_free(c.ran);
    return done;
}
