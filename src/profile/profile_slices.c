/* The expected step as slices of time: what each computation runs, at the place of its calls. */
#include "profile_made.h"

enum { DEEPEST = 64 };

typedef struct slices {
    const sm_profile_schedule *from;
    sm_arena *arena;
    int n, most, room;
    sm_profile_slice *slice;
    bool failed;
} slices;

static void put(slices *s, const profile_record *r, double start_s) {
    sm_profile_slice *list = sm_arena_grow(s->arena, s->slice, s->n, &s->room, sizeof *list);
    s->failed = s->failed || !list;
    if (!list) return;
    s->slice = list;
    s->slice[s->n++] = (sm_profile_slice){r->op, r->collective, start_s + r->start_s, r->seconds};
}

static bool is_full(const slices *s) { return s->failed || s->n >= s->most; }

static void put_computation(slices *s, int computation, double start_s, int depth) {
    const profile_record *r = s->from->record + s->from->first[computation];
    for (int i = 0; i < s->from->n[computation] && !is_full(s); i++) {
        if (r[i].call < 0) {
            put(s, &r[i], start_s);
            continue;
        }
        int before = s->n;
        for (double trip = 0; trip < r[i].times && depth < DEEPEST && !is_full(s); trip++) {
            put_computation(s, r[i].call, start_s + r[i].start_s + trip * r[i].seconds, depth + 1);
            if (s->n == before) break; /* nothing runs in it */
        }
    }
}

const sm_profile_slice *sm_profile_slices(const sm_profile *profile, int most, sm_arena *arena,
                                          int *n) {
    slices s = {.from = profile->schedule, .arena = arena, .most = most};
    static const sm_profile_slice none = {-1, -1, 0, 0};
    if (s.from->records) put_computation(&s, profile->module->entry, 0, 0);
    *n = s.n;
    return s.failed ? NULL : s.n ? s.slice : &none;
}
