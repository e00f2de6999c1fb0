/* Serving software by its name, and the constants that it is priced with. */
#include "software_table.h"

#include <assert.h>
#include <string.h>

static const sm_software *find(const char *name) {
    for (size_t i = 0; i < sm_software_table_count; i++)
        if (strcmp(sm_software_table[i].name, name) == 0) return &sm_software_table[i];
    return NULL;
}

const sm_software *sm_software_of(const char *name) {
    const sm_software *own = name ? find(name) : NULL, *any = own ? own : find("serving");
    assert(any);
    return any;
}

size_t sm_software_count(void) { return sm_software_table_count; }

const sm_software *sm_software_at(size_t at) {
    assert(at < sm_software_table_count);
    return &sm_software_table[at];
}

/* Of the chip itself, or with relatives: another version on this chip is nearer than this version
 * on another (held-out-serving.csv: 16.4 % with the software left out, 17.4 % with the chip). */
static const sm_calibration *along(const sm_chip *chip, const char *name, bool relatives) {
    for (size_t i = 0; i <= sm_software_table_count && name; i++) {
        const sm_software *software = find(name);
        const sm_calibration *c = sm_calibration_for(chip, name);
        if (c && (relatives || sm_calibration_is_own(c, chip))) return c;
        name = software ? software->like : NULL;
    }
    return NULL;
}

const sm_calibration *sm_software_calibration(const sm_chip *chip, const char *name) {
    const sm_calibration *own = along(chip, name, false);
    return own ? own : along(chip, name, true);
}
