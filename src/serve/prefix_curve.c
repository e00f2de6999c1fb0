/* A piece is up to PIECE pages of a run. All pieces of a prompt are used from its end to its
 * beginning, so that none is older than what follows it, as in the radix tree. */
#include "prefix_curve.h"
#include <string.h>

enum { PIECE = 8, FIRST_ROOM = 1 << 12, MOST_ROOM = 1 << 21 };

static void add(sim_curve *c, int32_t use, int64_t pages) {
    for (int32_t i = use + 1; i <= c->room; i += i & -i) c->sum[i - 1] += pages;
}

/* Pages of the uses [0, use). */
static int64_t before(const sim_curve *c, int32_t use) {
    int64_t sum = 0;
    for (int32_t i = use; i > 0; i -= i & -i) sum += c->sum[i - 1];
    return sum;
}

/* Only the latest use of each piece stays, in twice the room where most do; beyond MOST_ROOM / 2
 * pieces the oldest are forgotten. */
static sm_status make_room(sim_curve *c, sm_error *err) {
    int32_t live = 0, skipped = 0;
    for (int32_t i = 0; i < c->uses; i++) live += c->pages[i] > 0;
    int32_t room = c->room == 0 ? FIRST_ROOM : c->room;
    if (live > room / 2 && room < MOST_ROOM) room *= 2;
    int32_t skip = live > room / 2 ? live - room / 2 : 0;
    sim_curve next = {.room = room};
    next.key = sm_calloc((size_t)room, sizeof *next.key);
    next.pages = sm_calloc((size_t)room, sizeof *next.pages);
    next.sum = sm_calloc((size_t)room, sizeof *next.sum);
    bool made = next.key && next.pages && next.sum;
    for (int32_t i = 0; made && i < c->uses; i++) {
        if (c->pages[i] == 0 || skipped++ < skip) continue;
        int32_t *at = sm_numbers_at(&next.at, c->key[i]);
        made = at != NULL;
        if (!made) break;
        *at = next.uses;
        next.key[next.uses] = c->key[i];
        next.pages[next.uses] = c->pages[i];
        add(&next, next.uses++, c->pages[i]);
    }
    memcpy(next.found, c->found, sizeof next.found);
    next.asked = c->asked;
    sim_curve_end(made ? c : &next);
    if (made) *c = next;
    return made ? SM_OK : sm_fail_memory(err);
}

static sm_status use_piece(sim_curve *c, uint64_t key, int32_t pages, bool counts, sm_error *err) {
    sm_status status = c->uses == c->room ? make_room(c, err) : SM_OK;
    int32_t *at = status ? NULL : sm_numbers_at(&c->at, key);
    if (status) return status;
    if (!at) return sm_fail_memory(err);
    int32_t last = *at, known = last >= 0 ? c->pages[last] : 0,
            kept = pages > known ? pages : known;
    int64_t since = last >= 0 ? before(c, c->uses) - before(c, last) : 0;
    assert(known <= since || last < 0);
    if (known > 0) add(c, last, -known), c->pages[last] = 0;
    if (counts) c->asked += pages;
    const double bin = fmin(SIM_CURVE_BINS - 1, ceil(8.0 * log2((double)since)));
    if (counts && known > 0) c->found[(int)bin] += pages < known ? pages : known;
    *at = c->uses;
    c->key[c->uses] = key;
    c->pages[c->uses] = kept;
    add(c, c->uses++, kept);
    return SM_OK;
}

static uint64_t hash_of(const sim_run_list *runs, int i) {
    sm_rng mix = {sm_hash_mixed(runs->label[i], i > 0 ? (uint64_t)runs->end[i - 1] : 0)};
    return sm_rng_next(&mix);
}

sm_status sim_curve_use(sim_curve *c, const sim_run_list *runs, bool counts, sm_error *err) {
    sm_status status = SM_OK;
    int64_t all = runs->n > 0 ? runs->end[runs->n - 1] : 0;
    if (all / PIECE > MOST_ROOM / 2) { /* more than is ever kept */
        c->asked += counts ? (double)all : 0.0;
        return SM_OK;
    }
    uint64_t path = 0; /* of the runs up to here: a sum, so that it can be gone back */
    for (int i = 0; i < runs->n; i++) path += hash_of(runs, i);
    for (int i = runs->n; i-- > 0 && !status;) {
        int64_t start = i > 0 ? runs->end[i - 1] : 0, end = runs->end[i];
        int64_t piece = (end - start - 1) / PIECE;
        for (; piece >= 0 && !status; piece--) {
            int64_t from = start + piece * PIECE, pages = end - from < PIECE ? end - from : PIECE;
            status =
                use_piece(c, sm_hash_mixed(path, (uint64_t)piece), (int32_t)pages, counts, err);
        }
        path -= hash_of(runs, i);
    }
    return status;
}

double sim_curve_found(const sim_curve *c, double pages) {
    double found = 0.0;
    for (int i = 0; i < SIM_CURVE_BINS && exp2(i / 8.0) <= pages * (1.0 + 1e-9); i++)
        found += c->found[i];
    return found;
}

void sim_curve_end(sim_curve *c) {
    sm_numbers_free(&c->at);
    sm_free(c->key);
    sm_free(c->pages);
    sm_free(c->sum);
}
