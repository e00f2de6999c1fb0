/* What each collective of a plan costs on the group of chips that runs it: the lines of its
 * algorithms and protocols, kept from plan to plan. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "scalemodel/plan.h"

/* ---- the lines ---- */

static void add_line(const sm_algorithm *a, const sm_timing *timing, sm_timed_curve *to) {
    for (int i = 0; i < to->n; i++) /* another is never slower: this one would never be chosen */
        if (sm_line_never_less(timing->line, to->line[i].line)) return;
    assert(to->n < SM_MAX_TIMED_LINES);
    to->line[to->n++] = (sm_timed_line){.line = timing->line,
                                        .wire_per_byte = a->link_bytes_per_byte,
                                        .algorithm = a->name,
                                        .level = a->level};
}

/* A collective beside compute takes as long as it keeps a level busy, so that the way that keeps it
 * least is the one that counts there: were it the line that is the quickest by itself, a faster
 * link could favour one of less latency that keeps links busy for longer. */
static void share_busy(const sm_curve_memo *memo, const sm_algorithm *a, double excess, bool first,
                       sm_timed_curve *to) {
    for (int l = 0; l < memo->system->levels; l++) {
        double ideal = a->level_s_per_byte[l];
        double busy =
            ideal * excess / sm_network_efficiency(memo->system, memo->calibration, (uint8_t)l);
        if (first || busy < to->busy[l]) to->busy[l] = busy;
        if (first || ideal < to->ideal[l]) to->ideal[l] = ideal;
    }
}

void sm_timed_curve_fill(const sm_curve_memo *memo, sm_collective op, const sm_group *group,
                         double ragged, sm_timed_curve *to) {
    sm_timing timing[SM_MAX_TIMINGS];
    int shared = 0;
    memset(to, 0, sizeof *to);
    if (group->size <= 1) return;
    sm_curve curve = sm_collective_curve(memo->system, op, group, ragged);
    for (int i = 0; i < curve.n; i++) {
        const sm_algorithm *a = &curve.algorithm[i];
        int n = sm_algorithm_timings(a, memo->system, memo->calibration, timing);
        if (a->peer_kernel && isfinite(a->hops_s) && op == SM_ALL_REDUCE && memo->peer_kernel > 0)
            timing[n++] = sm_peer_timing(a, memo->system, memo->calibration, memo->peer_kernel - 1);
        double excess = INFINITY;
        for (int k = 0; k < n; k++) {
            excess = fmin(excess, timing[k].excess);
            add_line(a, &timing[k], to);
            to->serial[to->serials][k] = timing[k].line;
        }
        /* On a torus one order of dimensions loads them unevenly: with the mixture of orders, which
         * is always there, it would make a way that loads none. */
        bool one_order = a->serial && memo->system->torus_dims > 0;
        if (n > 0 && !one_order) share_busy(memo, a, excess, shared++ == 0, to);
        if (a->serial) to->serial_lines[to->serials++] = (uint8_t)n;
    }
    /* No level is busy for longer than the least that the whole takes. */
    for (int l = 0; l < memo->system->levels; l++)
        to->ideal[l] = fmin(to->ideal[l], curve.ideal_s_per_byte);
}

double sm_timed_curve_upper_s(const sm_timed_curve *c, double bytes) {
    const sm_timed_line *line;
    double most = sm_timed_curve_s(c, bytes, &line);
    for (int i = 0; line && i < c->serials; i++) {
        double least = 0;
        for (int k = 0; k < c->serial_lines[i]; k++) {
            double s = sm_line_at(c->serial[i][k], bytes);
            if (k == 0 || s < least) least = s;
        }
        if (least > most) most = least;
    }
    return most;
}

/* ---- the memo ---- */

bool sm_curve_memo_init(sm_curve_memo *memo, const sm_system *system,
                        const sm_calibration *calibration, int entries, sm_arena *arena) {
    *memo = (sm_curve_memo){.system = system, .calibration = calibration, .entries = entries};
    memo->key = sm_arena_array(arena, (size_t)entries, sizeof *memo->key);
    memo->entry = sm_arena_array(arena, (size_t)entries, sizeof *memo->entry);
    return memo->key && memo->entry;
}

void sm_curve_memo_forget(sm_curve_memo *memo) {
    if (memo->used > 0) memset(memo->key, 0, (size_t)memo->entries * sizeof *memo->key);
    memo->used = 0;
}

void sm_curve_memo_reserve(sm_curve_memo *memo, int curves) {
    assert(curves < memo->entries * 3 / 4);
    if (memo->used + curves >= memo->entries * 3 / 4) sm_curve_memo_forget(memo);
}

sm_timed_curve *sm_curve_memo_entry(const sm_curve_memo *memo, uint64_t key, bool *there) {
    size_t entries = (size_t)memo->entries, at = key % entries;
    assert(key != 0 && memo->used < memo->entries);
    while (memo->key[at] && memo->key[at] != key) at = at + 1 < entries ? at + 1 : 0;
    *there = memo->key[at] != 0;
    return &memo->entry[at];
}

const sm_timed_curve *sm_curve_memo_keep(sm_curve_memo *memo, sm_timed_curve *entry, uint64_t key) {
    memo->key[entry - memo->entry] = key;
    memo->used++;
    return entry;
}

const sm_timed_curve *sm_curve_memo_get(sm_curve_memo *memo, sm_collective op,
                                        const sm_group *group, double ragged) {
    static const sm_timed_curve nothing = {0}; /* a group of one */
    if (group->size <= 1) return &nothing;
    uint64_t word;
    memcpy(&word, &ragged, sizeof word);
    uint64_t key = sm_hash_mixed(SM_HASH_SEED ^ (uint64_t)op, word);
    for (int i = 0; i < group->parts; i++)
        key = sm_hash_mixed(key, (uint64_t)group->part[i].level << 56 ^
                                     (uint64_t)group->part[i].size << 28 ^
                                     (uint64_t)group->part[i].stride);
    key |= 1;
    bool there;
    sm_timed_curve *entry = sm_curve_memo_entry(memo, key, &there);
    if (there) return entry;
    sm_timed_curve_fill(memo, op, group, ragged, entry);
    return sm_curve_memo_keep(memo, entry, key);
}
