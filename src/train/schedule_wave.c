/* Quick simulation of 1F1B, ZB-H1 and interleaved 1F1B. Their ops form waves: in wave t stage i
 * runs forward t - i and one backward, and needs nothing but the previous wave and its neighbours,
 * so the state is a few numbers per stage, and full waves repeat in the end (schedule_period.h). */
#include "schedule_order.h"
#include "schedule_period.h"

/* --- 1F1B and ZB-H1. Wave t: forward t - i on each stage i, then backward t - p + 1 from the last
 * stage up. finish[0] is the source, finish[i + 1] the last forward of stage i, finish[p + 1 + i]
 * the last op of stage i. */
typedef struct line {
    int p, m;
    double *forward_s, *backward_s, *weight_s; /* weight_s: 0 when the backward is whole */
    double *finish, *idle;
} line;

static line line_of(const sm_pipeline *p, double *scratch) {
    int n = p->stages;
    line l = {.p = n, .m = p->microbatches, .finish = scratch, .idle = scratch + n + 1};
    l.forward_s = scratch + 2 * (2 * n + 1);
    l.backward_s = l.forward_s + n;
    l.weight_s = l.backward_s + n;
    for (int i = 0; i < n; i++) {
        double weight_s = p->chunk[i].backward_weight;
        bool split = p->schedule == SM_SCHEDULE_ZB_H1;
        l.forward_s[i] = sm_op_forward_s(p, i);
        l.backward_s[i] = sm_op_backward_input_s(p, i) + (split ? 0 : weight_s);
        l.weight_s[i] = split ? weight_s : 0;
    }
    for (int k = 0; k < 2 * n + 1; k++) l.finish[k] = 0;
    return l;
}

/* The state changes in place, from the last stage up, since each reads only the one before it. */
static void line_wave(const line *l, int t) {
    int p = l->p, first = larger(0, t - l->m + 1), j = t - p + 1;
    double *finish = l->finish, *idle = l->idle, gradient = 0;
    for (int i = j < 0 ? smaller(t, p - 1) : p - 1; i >= 0; i--) {
        if (i >= first) finish[i + 1] = idle[i] = later(finish[i], idle[i]) + l->forward_s[i];
        if (j < 0) continue;
        gradient = later(gradient, idle[i]) + l->backward_s[i];
        idle[i] = gradient + (j >= i ? l->weight_s[i] : 0);
    }
}

/* Waves 2p - 2 .. m - 1 are full: periods of them are skipped. */
double sm_wave_1f1b(const sm_pipeline *p, double *scratch) {
    line l = line_of(p, scratch);
    int n = l.p;
    sm_snapshot s = {.state = scratch + 2 * n + 1, .count = 2 * n, .age = -1}; /* no source */
    double skipped_s = 0, total_s = 0;
    for (int t = 0; t < l.m + n - 1; t++) {
        int length, skip = 0;
        double shift_s;
        if (t >= 2 * n - 2 && t < l.m)
            skip = sm_periods_to_skip(&s, l.finish + 1, l.m - t, &length, &shift_s);
        if (skip > 0) {
            skipped_s += skip * shift_s;
            l.m -= skip * length;
        }
        if (t < l.m + n - 1) line_wave(&l, t); /* else one stage, all skipped */
    }
    for (int i = 0; i < n; i++)
        total_s = later(total_s, l.idle[i] + smaller(i, l.m) * l.weight_s[i]);
    return total_s + skipped_s;
}

/* --- Interleaved 1F1B with k = 0 .. mv - 1 counting passes over a stage. Wave t: forward k = t - i
 * and backward k = t - (v+1)p + 2 + i on stage i; the last stage hands on to the first. All need
 * only the previous wave: forward[i + 1] and backward[i] are the last of stage i, forward[0] and
 * backward[p] what the ends of the ring receive. The state lies together from forward + 1 on. */
typedef struct ring {
    int p, v, passes;
    const double *forward_s, *backward_s; /* of model chunk c */
    double *forward, *backward, *idle;
} ring;

static ring ring_of(const sm_pipeline *p, double *scratch) {
    int n = p->stages, chunks = n * p->chunks_per_stage, state = 3 * n + 2;
    ring r = {.p = n, .v = p->chunks_per_stage, .passes = p->microbatches * p->chunks_per_stage};
    r.forward = scratch;
    r.idle = scratch + n + 1;
    r.backward = scratch + 2 * n + 1;
    for (int k = 0; k < state; k++) scratch[k] = 0;
    double *forward_s = scratch + 2 * state, *backward_s = forward_s + chunks;
    for (int c = 0; c < chunks; c++) {
        forward_s[c] = sm_op_forward_s(p, c);
        backward_s[c] = sm_op_backward_input_s(p, c) + p->chunk[c].backward_weight;
    }
    r.forward_s = forward_s;
    r.backward_s = backward_s;
    return r;
}

/* Stages last..first run a forward of the local chunk. */
static inline void forward_span(const ring *r, int first, int last, int local) {
    const double *forward_s = r->forward_s + local * r->p;
    double *forward = r->forward, *idle = r->idle;
    for (int i = last; i >= first; i--)
        forward[i + 1] = idle[i] = later(forward[i], idle[i]) + forward_s[i];
}

static inline void backward_span(const ring *r, int first, int last, int local) {
    const double *backward_s = r->backward_s + local * r->p;
    double *backward = r->backward, *idle = r->idle;
    for (int i = first; i <= last; i++)
        backward[i] = idle[i] = later(backward[i + 1], idle[i]) + backward_s[i];
}

/* Chunk and edge of wave t, which go on from wave to wave. */
typedef struct turn {
    int local, edge;
} turn;

static inline turn next_turn(turn at, const ring *r) {
    if (++at.edge < r->p) return at;
    return (turn){at.local + 1 < r->v ? at.local + 1 : 0, 0};
}

/* Stages beyond the edge are still a chunk behind. */
static inline void ring_forwards(const ring *r, int t, turn at) {
    int p = r->p, first = larger(0, t - r->passes + 1), last = smaller(p - 1, t);
    int behind = at.local == 0 ? r->v - 1 : at.local - 1;
    r->forward[0] = at.local == 0 ? 0 : r->forward[p];
    forward_span(r, larger(first, at.edge + 1), last, behind);
    forward_span(r, first, smaller(last, at.edge), at.local);
}

/* k: the pass of stage 0, from 1 - p up. Chunks count from the last, which stages from the edge on,
 * from the last stage up, have left for the next. */
static inline void ring_backwards(const ring *r, int k, turn at) {
    int p = r->p, v = r->v, edge = p - at.edge;
    int first = larger(0, -k), last = smaller(p - 1, r->passes - 1 - k);
    int ahead = v - 1 - at.local, local = at.local == 0 ? 0 : ahead + 1;
    int received = at.edge > 0 ? ahead : local; /* the chunk of the last stage's gradient */
    r->backward[p] = received == v - 1 ? 0 : r->backward[0];
    backward_span(r, first, smaller(last, edge - 1), local);
    backward_span(r, larger(first, edge), last, ahead);
}

/* Waves (v+1)p - 2 .. mv - 1 are full, and repeat their chunks every pv waves: at a wave that
 * starts such a period, whole periods are skipped. */
double sm_wave_interleaved(const sm_pipeline *p, double *scratch) {
    ring r = ring_of(p, scratch);
    sm_snapshot s = {.state = scratch + 3 * r.p + 2, .count = 3 * r.p, .age = -1};
    int full = (r.v + 1) * r.p - 2, until_period = full;
    double skipped_s = 0, total_s = 0;
    turn forward = {0, 0}, backward = {0, 0};
    for (int t = 0; t < r.passes + full; t++, forward = next_turn(forward, &r)) {
        if (t == until_period && t < r.passes) {
            int period = r.p * r.v, length;
            double shift_s;
            int skip =
                sm_periods_to_skip(&s, r.forward + 1, (r.passes - t) / period, &length, &shift_s);
            if (skip > 0) {
                r.passes -= skip * length * period;
                skipped_s += skip * shift_s;
            }
            until_period += period;
        }
        if (t < r.passes + r.p - 1) ring_forwards(&r, t, forward);
        if (t <= full - r.p) continue;
        backward = next_turn(backward, &r);
        ring_backwards(&r, t - full, backward);
    }
    for (int i = 0; i < r.p; i++) total_s = later(total_s, r.idle[i]);
    return total_s + skipped_s;
}
