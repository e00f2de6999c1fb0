#include "profile_made.h"

static sm_status check_chips(const sm_profile_setup *setup, sm_error *err) {
    if (setup->system->chips >= setup->module->devices) return SM_OK;
    return sm_fail(err, SM_BAD_INPUT, "the module runs on %d devices and %s has %d",
                   setup->module->devices, setup->system->text, setup->system->chips);
}

sm_status sm_profile_new(const sm_profile_setup *setup, sm_arena *arena, const sm_profile **out,
                         sm_error *err) {
    profile_made *made = sm_arena_alloc(arena, sizeof *made);
    if (!made) return sm_fail_memory(err);
    made->arena = arena;
    made->p.module = setup->module;
    made->p.system = setup->system;
    made->ahead = sm_calibration_ahead(setup->calibration);
    made->p.calibration = &made->ahead;
    sm_status status = check_chips(setup, err);
    if (!status) status = sm_module_analyse(setup->module, arena, &made->analysis, err);
    if (!status) status = profile_mesh(made, setup->mesh, err);
    if (!status) status = profile_timeline(made, err);
    if (!status) status = profile_memory(made, err);
    if (!status) profile_measure(made, setup->measured);
    if (!status) status = profile_findings(made, err);
    if (status) return status;
    made->p.op = made->op;
    made->p.schedule = &made->schedule;
    made->p.collective = made->collective;
    *out = &made->p;
    return SM_OK;
}
