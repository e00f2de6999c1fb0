#include "oracle_collectives.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- stages ---- */

static oracle_way way_of(const sm_system *system, const sm_part *part) {
    const sm_level *level = &system->level[part->level];
    if (level->kind == SM_LEVEL_SWITCH) return part->level == 0 ? ORACLE_DIRECT : ORACLE_DOUBLING;
    return level->wrap && part->size * part->stride == level->size ? ORACLE_RING : ORACLE_LINE;
}

int oracle_stages_of(const sm_system *system, const sm_group *group, oracle_stage *stages) {
    int n = 0, step = 1;
    for (int p = 0; p < group->parts; p++) {
        const sm_part *part = &group->part[p];
        bool again = n > 0 && stages[n - 1].level == part->level;
        if (again && system->level[part->level].kind == SM_LEVEL_SWITCH)
            stages[n - 1].n *= part->size;
        else stages[n++] = (oracle_stage){part->level, step, part->size, way_of(system, part)};
        step *= part->size;
    }
    return n;
}

static int position(const oracle_stage *stage, int rank) { return rank / stage->step % stage->n; }

static int moved(const oracle_stage *stage, int rank, int to) {
    return rank + (to - position(stage, rank)) * stage->step;
}

static int around(const oracle_stage *stage, int to) {
    return (to % stage->n + stage->n) % stage->n;
}

/* ---- books of who holds what: each member's chunk is two half pieces ---- */

typedef struct books {
    const oracle_network *net;
    int members, pieces;
    double piece_bytes;
    bool *own, *start; /* members x pieces: now, and when the stage began */
    oracle_schedule schedule;
} books;

static books books_of(const oracle_network *net, int pieces, double piece_bytes) {
    books b = {
        .net = net, .members = oracle_members(net), .pieces = pieces, .piece_bytes = piece_bytes};
    size_t cells = (size_t)b.members * (size_t)pieces;
    b.own = calloc(cells, sizeof(bool));
    b.start = calloc(cells, sizeof(bool));
    assert(b.own && b.start);
    return b;
}

static bool *owns(const books *b, int rank, int piece) { return &b->own[rank * b->pieces + piece]; }

static void begin_stage(books *b) {
    memcpy(b->start, b->own, (size_t)b->members * (size_t)b->pieces * sizeof(bool));
}

static void end_round(books *b, bool closes_block) {
    oracle_schedule *s = &b->schedule;
    for (size_t i = s->rounds ? s->round_end[s->rounds - 1] : 0; i < s->messages; i++)
        *owns(b, s->message[i].to, s->message[i].piece) = true;
    oracle_round(s, closes_block);
}

enum { BOTH_HALVES = -1 };

/* `from` passes on what `owner` held when the stage began, which it must have received by now. */
static void pass_on(books *b, int from, int to, int owner, int half, unsigned minus) {
    for (int piece = 0; piece < b->pieces; piece++) {
        if (!b->start[owner * b->pieces + piece] || (half != BOTH_HALVES && piece % 2 != half))
            continue;
        assert(*owns(b, from, piece));
        oracle_send(&b->schedule, (oracle_message){from, to, piece, b->piece_bytes, minus});
    }
}

static oracle_schedule close_books(books *b) {
    free(b->own);
    free(b->start);
    return b->schedule;
}

/* ---- all-gather ---- */

/* Step t of a ring: position i sends up the chunk of i-t+1 and down that of i+t-1. */
static void ring_step(books *b, const oracle_stage *stage, int rank, int t, bool last, bool whole) {
    int i = position(stage, rank);
    bool opposite = last && stage->n % 2 == 0 && !whole;
    int up = moved(stage, rank, around(stage, i - t + 1)),
        down = moved(stage, rank, around(stage, i + t - 1));
    pass_on(b, rank, moved(stage, rank, around(stage, i + 1)), up, opposite ? 0 : BOTH_HALVES, 0);
    pass_on(b, rank, moved(stage, rank, around(stage, i - 1)), down, opposite ? 1 : BOTH_HALVES,
            ~0u);
}

static void ring_stage(books *b, const oracle_stage *stage, bool whole, bool pipelined) {
    for (int t = 1; t <= stage->n / 2; t++) {
        for (int r = 0; r < b->members; r++) ring_step(b, stage, r, t, t == stage->n / 2, whole);
        end_round(b, !pipelined);
    }
}

static void one_way_stage(books *b, const oracle_stage *stage, bool pipelined) {
    for (int t = 1; t < stage->n; t++) {
        for (int r = 0; r < b->members; r++) {
            int i = position(stage, r);
            int owner = moved(stage, r, around(stage, i - t + 1));
            pass_on(b, r, moved(stage, r, around(stage, i + 1)), owner, BOTH_HALVES, 0);
        }
        end_round(b, !pipelined);
    }
}

static void line_stage(books *b, const oracle_stage *stage, bool pipelined) {
    for (int t = 1; t < stage->n; t++) {
        for (int r = 0; r < b->members; r++) {
            int i = position(stage, r);
            if (i + 1 < stage->n && i - t + 1 >= 0)
                pass_on(b, r, moved(stage, r, i + 1), moved(stage, r, i - t + 1), BOTH_HALVES, 0);
            if (i > 0 && i + t - 1 < stage->n)
                pass_on(b, r, moved(stage, r, i - 1), moved(stage, r, i + t - 1), BOTH_HALVES, 0);
        }
        end_round(b, !pipelined);
    }
}

static void direct_stage(books *b, const oracle_stage *stage, bool pipelined) {
    for (int r = 0; r < b->members; r++)
        for (int to = 0; to < stage->n; to++)
            if (to != position(stage, r)) pass_on(b, r, moved(stage, r, to), r, BOTH_HALVES, 0);
    end_round(b, !pipelined);
}

/* After a step everybody holds the chunks of `held` positions from its own on. */
static void doubling_stage(books *b, const oracle_stage *stage, bool pipelined) {
    for (int held = 1; held < stage->n; held *= 2) {
        int more = held * 2 <= stage->n ? held : stage->n - held;
        for (int r = 0; r < b->members; r++)
            for (int c = 0; c < more; c++) {
                int i = position(stage, r);
                int owner = moved(stage, r, around(stage, i + c));
                pass_on(b, r, moved(stage, r, around(stage, i - held)), owner, BOTH_HALVES, 0);
            }
        end_round(b, !pipelined);
    }
}

static void gather_stage(books *b, const oracle_stage *stage, bool pipelined) {
    begin_stage(b);
    if (stage->way == ORACLE_RING || stage->way == ORACLE_WHOLE_RING)
        ring_stage(b, stage, stage->way == ORACLE_WHOLE_RING, pipelined);
    else if (stage->way == ORACLE_ONE_WAY) one_way_stage(b, stage, pipelined);
    else if (stage->way == ORACLE_LINE) line_stage(b, stage, pipelined);
    else if (stage->way == ORACLE_DIRECT) direct_stage(b, stage, pipelined);
    else doubling_stage(b, stage, pipelined);
}

oracle_schedule oracle_all_gather(const oracle_network *net, const oracle_stage *stages,
                                  int n_stages, bool pipelined) {
    int n = oracle_members(net);
    books b = books_of(net, 2 * n, 0.5 / n);
    for (int r = 0; r < n; r++) *owns(&b, r, 2 * r) = *owns(&b, r, 2 * r + 1) = true;
    for (int i = 0; i < n_stages; i++) gather_stage(&b, &stages[i], pipelined);
    for (int r = 0; r < n; r++)
        for (int piece = 0; piece < 2 * n; piece++) assert(*owns(&b, r, piece));
    return close_books(&b);
}

/* ---- reduce-scatter: partial sums as sets of contributors ---- */

static void add_partial_sums(uint64_t *sum, const oracle_message *m, size_t count, int pieces) {
    uint64_t *carried = calloc(count, sizeof *carried);
    assert(carried);
    for (size_t i = 0; i < count; i++) {
        uint64_t *from = &sum[m[i].from * pieces + m[i].piece];
        assert(*from != 0); /* it still has its part, and gives it away */
        carried[i] = *from;
        *from = 0;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t *to = &sum[m[i].to * pieces + m[i].piece];
        assert((*to & carried[i]) == 0); /* nobody is counted twice */
        *to |= carried[i];
    }
    free(carried);
}

/* Pieces 2i and 2i + 1 are for member i. */
static void check_sums(const oracle_schedule *s, int n, int pieces) {
    uint64_t all = n == 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
    uint64_t *sum = calloc((size_t)n * (size_t)pieces, sizeof *sum);
    assert(sum && n <= 64);
    for (int r = 0; r < n; r++)
        for (int piece = 0; piece < pieces; piece++) sum[r * pieces + piece] = UINT64_C(1) << r;
    for (size_t r = 0, begin = 0; r < s->rounds; begin = s->round_end[r++])
        add_partial_sums(sum, s->message + begin, s->round_end[r] - begin, pieces);
    for (int piece = 0; piece < pieces; piece++) assert(sum[piece / 2 * pieces + piece] == all);
    free(sum);
}

static oracle_schedule backwards(const oracle_network *net, const oracle_schedule *gather,
                                 int pieces) {
    oracle_schedule s = {0};
    for (size_t r = gather->rounds; r-- > 0;) {
        for (size_t i = gather->round_end[r]; i-- > (r ? gather->round_end[r - 1] : 0);) {
            oracle_message m = gather->message[i];
            oracle_send(&s, (oracle_message){m.to, m.from, m.piece, m.bytes, ~m.minus});
        }
        oracle_round(&s, r == 0 || gather->block_end[r - 1]);
    }
    check_sums(&s, oracle_members(net), pieces);
    return s;
}

oracle_schedule oracle_reduce_scatter(const oracle_network *net, const oracle_schedule *gather) {
    return backwards(net, gather, 2 * oracle_members(net));
}

oracle_schedule oracle_reduce(const oracle_network *net, const oracle_schedule *broadcast) {
    return backwards(net, broadcast, 2);
}

/* ---- all-to-all: V/n^2 for each pair; halves of messages that could go either way round do both
 * ---- */

static void send_both_ways(oracle_schedule *s, int dims, int from, int to, double bytes) {
    for (unsigned way = 0; way < 1u << dims; way++)
        oracle_send(s, (oracle_message){from, to, 0, bytes / (1 << dims), way});
}

oracle_schedule oracle_all_to_all(const oracle_network *net) {
    oracle_schedule s = {0};
    int n = oracle_members(net);
    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++)
            if (from != to) send_both_ways(&s, oracle_torus_dims(net), from, to, 1.0 / n / n);
    oracle_round(&s, true);
    return s;
}

/* The stage at which ranks part for good: the outermost switch stage where they differ, -1 when
 * there is none. */
static int turning_stage(const oracle_stage *stages, int n_stages, int torus_dims, int a, int b) {
    for (int i = n_stages - 1; i >= 0 && stages[i].level >= torus_dims; i--)
        if (position(&stages[i], a) != position(&stages[i], b)) return i;
    return -1;
}

/* One stage moves every message as far as that stage can; at[] says where each is. */
static void all_to_all_stage(oracle_schedule *s, const oracle_stage *stages, int n_stages,
                             int torus_dims, int which, int n, int *at) {
    const oracle_stage *stage = &stages[which];
    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++) {
            int *here = &at[from * n + to],
                turn = turning_stage(stages, n_stages, torus_dims, from, to);
            int next = turn == which ? to
                       : turn < 0    ? moved(stage, *here, position(stage, to))
                                     : *here;
            if (next != *here) send_both_ways(s, torus_dims, *here, next, 1.0 / n / n);
            *here = next;
        }
    oracle_round(s, true);
}

oracle_schedule oracle_all_to_all_staged(const oracle_network *net, const oracle_stage *stages,
                                         int n_stages, int torus_dims) {
    oracle_schedule s = {0};
    int n = oracle_members(net);
    int *at = malloc((size_t)n * (size_t)n * sizeof *at);
    assert(at);
    for (int i = 0; i < n * n; i++) at[i] = i / n;
    for (int i = 0; i < n_stages; i++) all_to_all_stage(&s, stages, n_stages, torus_dims, i, n, at);
    for (int i = 0; i < n * n; i++) assert(at[i] == i % n);
    free(at);
    return s;
}

oracle_schedule oracle_shift(const oracle_network *net) {
    oracle_schedule s = {0};
    int n = oracle_members(net);
    for (int r = 0; r < n; r++) oracle_send(&s, (oracle_message){r, (r + 1) % n, 0, 1.0, 0});
    oracle_round(&s, true);
    return s;
}

/* ---- broadcast of two half pieces from rank 0 ---- */

static void broadcast_send(books *b, int from, int to, int half, unsigned minus) {
    assert(*owns(b, from, half));
    oracle_send(&b->schedule, (oracle_message){from, to, half, b->piece_bytes, minus});
}

/* One way along a line; on a ring the second half goes the other way round. */
static void torus_walk(books *b, const oracle_stage *stage) {
    begin_stage(b);
    for (int t = 1; t < stage->n; t++) {
        for (int root = 0; root < b->members; root++) {
            if (position(stage, root) != 0 || !b->start[root * 2]) continue;
            bool ring = stage->way == ORACLE_RING;
            broadcast_send(b, moved(stage, root, t - 1), moved(stage, root, t), 0, 0);
            int from = ring ? around(stage, 1 - t) : t - 1, to = ring ? around(stage, -t) : t;
            broadcast_send(b, moved(stage, root, from), moved(stage, root, to), 1, ring ? ~0u : 0);
        }
        end_round(b, false);
    }
}

static void chain(books *b, int first_step, int last_rank) {
    for (int from = 0; from + first_step <= last_rank; from += first_step) {
        broadcast_send(b, from, from + first_step, 0, 0);
        broadcast_send(b, from, from + first_step, 1, 0);
        end_round(b, false);
    }
}

static books broadcast_books(const oracle_network *net) {
    books b = books_of(net, 2, 0.5);
    *owns(&b, 0, 0) = *owns(&b, 0, 1) = true;
    return b;
}

static oracle_schedule finish_broadcast(books *b) {
    for (int r = 0; r < b->members; r++) assert(*owns(b, r, 0) && *owns(b, r, 1));
    return close_books(b);
}

/* A chain inside every node at once. */
static void node_chains(books *b, const oracle_stage *stage) {
    for (int t = 1; t < stage->n; t++) {
        for (int r = 0; r < b->members; r += stage->n)
            for (int half = 0; half < 2; half++) broadcast_send(b, r + t - 1, r + t, half, 0);
        end_round(b, false);
    }
}

oracle_schedule oracle_broadcast_chain(const oracle_network *net, const oracle_stage *stages,
                                       int n_stages, int torus_dims) {
    books b = broadcast_books(net);
    int inner = 0, unit = 1;
    while (inner < n_stages && (stages[inner].level < torus_dims || stages[inner].level == 0))
        unit *= stages[inner++].n;
    chain(&b, unit, b.members - 1);
    for (int i = 0; i < inner; i++) {
        if (stages[i].level < torus_dims) torus_walk(&b, &stages[i]);
        else node_chains(&b, &stages[i]);
    }
    return finish_broadcast(&b);
}

/* ---- mixtures: a linear program of at most four rows, solved by looking at every vertex ---- */

enum { MOST = 4 };

/* Solves a x = rhs in place; false when singular. */
static bool solve(double a[MOST][MOST + 1], int n) {
    for (int c = 0; c < n; c++) {
        int pivot = c;
        for (int r = c + 1; r < n; r++)
            if (fabs(a[r][c]) > fabs(a[pivot][c])) pivot = r;
        if (fabs(a[pivot][c]) < 1e-12) return false;
        for (int k = 0; k <= n; k++) {
            double swap = a[c][k];
            a[c][k] = a[pivot][k];
            a[pivot][k] = swap;
        }
        for (int r = 0; r < n; r++) {
            double f = r == c ? 0.0 : a[r][c] / a[c][c];
            for (int k = 0; k <= n; k++) a[r][k] -= f * a[c][k];
        }
    }
    return true;
}

/* Weights of the chosen schedules that make the chosen levels equally busy; the busiest level's
 * time, or infinity when a weight is negative. Times are scaled by the first so that the system is
 * well conditioned. */
static double vertex(const oracle_time *times, const int *levels, int n_levels, unsigned schedules,
                     unsigned tight, double scale) {
    double a[MOST][MOST + 1] = {{0}}, worst = 0.0;
    int chosen[8], k = 0, row = 0;
    for (int i = 0; i < 6; i++)
        if (schedules >> i & 1u) chosen[k++] = i;
    for (int l = 0; l < n_levels; l++)
        if (tight >> l & 1u) {
            for (int i = 0; i < k; i++) a[row][i] = times[chosen[i]].level_s[levels[l]] / scale;
            a[row++][k] = -1.0;
        }
    for (int i = 0; i < k; i++) a[row][i] = 1.0;
    a[row][k + 1] = 1.0;
    if (row != k || !solve(a, k + 1)) return INFINITY;
    for (int l = 0; l < n_levels; l++) {
        double busy = 0.0;
        for (int i = 0; i < k; i++)
            busy += a[i][k + 1] / a[i][i] * times[chosen[i]].level_s[levels[l]];
        worst = fmax(worst, busy);
    }
    for (int i = 0; i < k; i++)
        if (a[i][k + 1] / a[i][i] < -1e-12) return INFINITY;
    return worst;
}

static int ones(unsigned set) {
    int n = 0;
    for (; set; set &= set - 1) n++;
    return n;
}

double oracle_best_mixture(const oracle_time *times, int n, const int *levels, int n_levels) {
    double best = INFINITY, scale = times[0].level_s[levels[0]];
    assert(n <= 6 && n_levels < MOST);
    for (unsigned schedules = 1; schedules < 1u << n; schedules++)
        for (unsigned tight = 1; tight < 1u << n_levels; tight++)
            if (ones(schedules) == ones(tight))
                best = fmin(best, vertex(times, levels, n_levels, schedules, tight, scale));
    return best;
}
