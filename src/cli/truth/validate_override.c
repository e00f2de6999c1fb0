/* validate_override: constants in place of those that a row would be predicted with. */
#include "scalemodel/io.h"
#include "validate.h"
#include <string.h>

static sm_status check_software(const char *software, sm_error *err) {
    enum { MOST_NAMES = 256 };
    const char *names[MOST_NAMES];
    size_t n = 0;
    for (size_t i = 0; i < sm_calibration_count() && n < MOST_NAMES; i++) {
        names[n] = sm_calibration_at(i)->software;
        if (strcmp(names[n++], software) == 0) return SM_OK;
    }
    sm_source source = sm_source_of("--software", software);
    const char *near = sm_nearest(software, source.length, names, n);
    return sm_fail_at(err, &source, (sm_span){0, source.length},
                      "no chip has a calibration for '%.60s'%s%s%s", software,
                      near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

sm_status cli_override_read(const cli_call *call, cli_override *override, sm_error *err) {
    const cli_validate_values *values = call->values;
    *override = (cli_override){.software = values->constants.software};
    if (values->constants.calibration) {
        sm_source source;
        sm_calibration *list = NULL;
        sm_status status = sm_io_read(values->constants.calibration, call->arena, &source, err);
        if (!status) status = sm_calibration_parse(&source, call->arena, &list, &override->n, err);
        override->list = list;
        return status;
    }
    return override->software ? check_software(override->software, err) : SM_OK;
}

/* Of the file: the one for this chip and software, else any for this chip. */
static const sm_calibration *listed_for(const cli_override *override, const char *chip,
                                        const char *software) {
    const sm_calibration *of_chip = NULL;
    for (size_t i = 0; i < override->n; i++) {
        const sm_calibration *c = &override->list[i];
        if (strcmp(c->chip, chip) != 0) continue;
        if (strcmp(c->software, software) == 0) return c;
        if (!of_chip) of_chip = c;
    }
    return of_chip;
}

const sm_calibration *cli_override_for(const cli_override *override, const sm_truth_row *row) {
    const sm_chip *chip = override->n || override->software ? sm_truth_row_chip(row) : NULL;
    if (!chip) return NULL;
    const char *software = override->software ? override->software : sm_truth_software(row);
    if (override->n) return listed_for(override, chip->name, software);
    return sm_calibration_for(chip, software);
}
