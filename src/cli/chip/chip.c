/* chip: the options of `chip`. */
#include "program.h"

typedef struct values {
    bool calibration;
    const char *software;
} chip_options;

static sm_status run_chip(const cli_call *call, sm_report *r, sm_error *err) {
    const chip_options *options = call->values;
    bool named = call->positionals > 0, several = call->positionals > 1;
    if (options->software && !options->calibration)
        return sm_fail(err, SM_USAGE, "--software needs --calibration");
    if (!named && options->calibration)
        return sm_fail(err, SM_USAGE, "chip --calibration needs the NAME of a chip");
    if (!named && call->common.explain)
        return sm_fail(err, SM_USAGE, "chip --explain needs the NAME of a chip");
    if (several && (options->calibration || call->common.explain))
        return sm_fail(err, SM_USAGE, "chip %s is of one chip, and several are named",
                       options->calibration ? "--calibration" : "--explain");
    sm_chip compared[SM_MAX_CHIPS_COMPARED];
    sm_chip_question q = SM_QUESTION(sm_chip_question);
    sm_chip *own;
    sm_system system;
    sm_status status = cli_system_file(call, &own, &q.n_own, err);
    q.own = own;
    q.explain = call->common.explain;
    for (int i = 0; i < call->positionals && !status; i++) {
        sm_source source = sm_source_of("NAME", call->positional[i]);
        status = sm_system_parse(&source, own, q.n_own, &system, err);
        compared[i] = system.chip;
    }
    if (named) q.chip = &compared[0];
    if (several) q.compared = compared;
    if (several) q.n_compared = call->positionals;
    cli_calibration_values given = {.software = options->software};
    if (!status && options->calibration) q.calibration = sm_calibration_of(q.chip);
    if (!status && options->calibration)
        status = cli_calibration(call, q.chip, &given, &q.calibration, err);
    return status ? status : sm_answer_chip(&q, r, err);
}

const cli_verb cli_chip = {
    .about = &verbs_chip,
    CLI_VALUES(AT("calibration", calibration), AT("software", software)),
    .most = SM_MAX_CHIPS_COMPARED,
    .run = run_chip,
};
