/* The constants of a calibration by number: their names, units and ranges, and their places in the
 * struct. The values that are shipped lie in data/calibration. */
#include "calibration_table.h"
#include <string.h>

static const sm_constant_info infos[SM_CONSTANT_COUNT] = {
#define X(id, low, high, unit, meaning) {#id, unit, meaning, low, high},
    SM_CONSTANTS(X)
#undef X
};

const sm_constant_info *sm_constant_of(sm_constant which) { return &infos[which]; }

static const size_t at[SM_CONSTANT_COUNT] = {
#define X(id, low, high, unit, meaning) offsetof(sm_calibration, id),
    SM_CONSTANTS(X)
#undef X
};

double sm_calibration_get(const sm_calibration *c, sm_constant which) {
    double value;
    memcpy(&value, (const char *)c + at[which], sizeof value);
    return value;
}

void sm_calibration_set(sm_calibration *c, sm_constant which, double value) {
    memcpy((char *)c + at[which], &value, sizeof value);
}

const char *sm_regime_name(sm_regime regime) {
    static const char *const names[SM_REGIME_COUNT] = {SM_REGIMES(SM_NAME_OF)};
    return names[regime];
}

sm_calibration sm_calibration_ahead(const sm_calibration *c) {
    static const double gap_s = 2e-6;
    sm_calibration ahead = *c;
    if (ahead.launch_s > gap_s) ahead.launch_s = gap_s;
    return ahead;
}

size_t sm_calibration_count(void) { return sm_shipped_calibration_count; }
const sm_calibration *sm_calibration_at(size_t i) {
    return i < sm_shipped_calibration_count ? &sm_shipped_calibrations[i] : NULL;
}

const sm_collective_line *sm_calibration_line(const sm_calibration *c, sm_collective op,
                                              int ranks) {
    for (int i = 0; i < c->lines; i++)
        if (c->line[i].op == op && c->line[i].ranks == ranks) return &c->line[i];
    return NULL;
}

size_t sm_calibration_softwares(const sm_chip *chip, const char **names, size_t room) {
    size_t n = 0;
    if (n < room) names[n++] = "default";
    for (size_t i = 0; i < sm_calibration_count() && n < room; i++) {
        const char *name = sm_calibration_at(i)->software;
        bool known = !sm_calibration_for(chip, name);
        for (size_t k = 0; k < n && !known; k++) known = strcmp(names[k], name) == 0;
        if (!known) names[n++] = name;
    }
    return n;
}

const sm_calibration *sm_calibration_of_operations(const sm_chip *chip) {
    const sm_calibration *kernels = sm_calibration_for(chip, "kernels");
    return kernels ? kernels : sm_calibration_of(chip);
}
