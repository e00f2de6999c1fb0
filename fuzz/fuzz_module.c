/* Fuzz the readers of compiled modules and of profiles. What reads is worked out and priced on a
 * system of as many chips: times and bytes are numbers, expected lies between its bounds, and parts
 * add up. */
#include "scalemodel/profile.h"
#include "scalemodel/spmd.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_BYTES = 1 << 16, MOST_DEVICES = 4096 };

static void must(bool holds) {
    if (!holds) abort();
}

static void check_profile(const sm_profile *p) {
    const sm_profile_time *t = &p->time;
    must(isfinite(t->expected_s) && isfinite(t->upper_s) && t->expected_s >= 0);
    must(t->lower_s >= 0 && t->upper_s >= t->expected_s);
    must(p->peak_bytes >= 0 && p->findings >= 0);
    for (int i = 0; i < p->collectives; i++)
        must(p->collective[i].exposed_s <= p->collective[i].expected_s * (1 + 1e-9));
}

static void price(const sm_module *module, const sm_trace_program *ran, sm_arena *arena) {
    sm_source on = sm_source_of("--on", "tpu-v5e");
    sm_system chip, system;
    const sm_profile *p;
    sm_error err = {0};
    must(sm_system_parse(&on, NULL, 0, &chip, NULL) == SM_OK);
    if (module->devices > MOST_DEVICES) return;
    if (sm_module_partition(module, arena, &module, &err)) {
        must(err.sentence[0] != '\0');
        return;
    }
    if (sm_system_resize(&chip, module->devices, &system, NULL)) return;
    sm_profile_setup setup = {module, &system, sm_calibration_of(&system.chip), NULL, ran};
    if (sm_profile_new(&setup, arena, &p, &err) == SM_OK) check_profile(p);
    else must(err.sentence[0] != '\0');
}

static void trace(const sm_source *source, sm_arena *arena) {
    const sm_trace *t;
    const sm_module *module;
    sm_error err = {0};
    if (sm_trace_parse_xplane(source, arena, &t, &err)) {
        must(err.sentence[0] != '\0');
        return;
    }
    for (int i = 0; i < t->programs; i++)
        if (sm_module_parse(&t->program[i].module, arena, &module, &err) == SM_OK)
            price(module, &t->program[i], arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > MOST_BYTES) return 0;
    sm_source source = {"m.hlo", (const char *)data, size};
    sm_arena *arena = sm_arena_new();
    const sm_module *module;
    sm_error err = {0};
    must(arena != NULL);
    if (sm_trace_is_xplane(&source)) trace(&source, arena);
    if (sm_module_parse(&source, arena, &module, &err) == SM_OK) price(module, NULL, arena);
    else must(err.sentence[0] != '\0');
    sm_arena_free(arena);
    return 0;
}
