/* Which software generations are known for a chip. */
#include "scalemodel/cost.h"

#include <string.h>

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
