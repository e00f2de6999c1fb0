/* Fuzz target: any bytes as what `profile` is given: traces of Kineto, JAX, XPlane, Perfetto and
 * Nsight Systems, packed or not. What is read is broken down, whole and in part: parts are numbers,
 * are not negative and add up to the step; causes lead back; a refusal says why. */
#include "scalemodel/breakdown.h"
#include "scalemodel/io.h"
#include "scalemodel/profile.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_BYTES = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds) abort();
}

static void check_step(const sm_trace_step *s) {
    double parts = 0, length = (double)(s->end_ps - s->start_ps) * 1e-12;
    for (int p = 0; p < SM_PARTS; p++) {
        require(isfinite(s->part_s[p]) && s->part_s[p] >= 0);
        parts += s->part_s[p];
    }
    require(s->overlapped_s >= 0 && s->overlapped_s <= s->part_s[SM_PART_COMPUTE] * (1 + 1e-9));
    require(parts <= length * (1 + 1e-6) + 1e-9);
}

static void check_trace(const sm_trace *t, sm_arena *arena) {
    const sm_trace_breakdown *b;
    const sm_profile_ran *p;
    sm_error err = {.status = SM_OK};
    for (int i = 0; i < t->events; i++) {
        const sm_trace_event *e = &t->event[i];
        require(e->stream >= 0 && e->stream < t->streams && e->name < t->names);
        require(e->cause < t->events && e->detail < t->details && e->program < t->programs);
        require(e->duration_ps >= 0 && e->kind < SM_TRACE_KINDS);
    }
    if (sm_trace_break_down(t, arena, &b, &err)) {
        require(err.sentence[0] != 0);
        return;
    }
    for (int i = 0; i < b->devices; i++) {
        check_step(&b->device[i].whole);
        for (int k = 0; k < b->device[i].steps; k++) check_step(&b->device[i].step[k]);
    }
    require(sm_profile_ran_on(b, NULL, arena, &p, &err) == SM_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > MOST_BYTES) return 0;
    sm_source source = {"profiled", (const char *)data, size};
    for (int partial = 0; partial < 2; partial++) {
        sm_arena *arena = sm_arena_new();
        sm_profiled what;
        sm_error err = {.status = SM_OK};
        require(arena != NULL);
        if (sm_io_profiled_of(&source, partial, arena, &what, &err)) require(err.sentence[0] != 0);
        else if (what.trace) check_trace(what.trace, arena);
        sm_arena_free(arena);
    }
    return 0;
}
