/* prediction: what a run is held against: the system it is priced on, and the verdict. */
#ifndef SCALEMODEL_RUNCLI_PREDICTION_H
#define SCALEMODEL_RUNCLI_PREDICTION_H
#include "scalemodel/answer_words.h"
#include "options.h"
#include "scalemodel/page.h"

typedef struct prediction_values {
    const char *on;
    cli_calibration_values constants;
} prediction_values;
#define PREDICTION_OPTIONS(values, member)                                                         \
    {"on",                                                                                         \
     0,                                                                                            \
     CLI_TEXT,                                                                                     \
     offsetof(values, member.on),                                                                  \
     "SYSTEM",                                                                                     \
     .help = "predict for these chips, one for each rank",                                         \
     .default_says = "cpu-host, or the chip of --system"},                                         \
        CLI_CALIBRATION_OPTIONS(values, member.constants)

/* What --on names, or else as many chips as there are ranks: of --system FILE, which then holds one
 * kind, or the placeholder: "cpu-host:4". */
sm_status prediction_system_name(const cli_call *call, const char *given, int ranks,
                                 const char **on, sm_error *err);
/* Read --mesh, which says how many ranks there are, and lay it on the system of --on. */
sm_status prediction_read(const cli_call *call, const prediction_values *given, const char *mesh,
                          sm_placed_mesh *m, const sm_calibration **calibration, sm_error *err);

/* "1.08", "-" where nothing was measured. */
const char *prediction_ratio(sm_report *r, double predicted, double measured);
/* "time_s": {"predicted": ..., "measured": ...} */
void prediction_put_times(sm_report *r, sm_data *object, double predicted_s, double measured_s);
/* Is it the catalogue's placeholder that was priced? */
bool prediction_is_placeholder(const sm_system *system);
/* One sentence. */
void prediction_verdict(sm_report *r, const sm_placed_mesh *m, double predicted_s,
                        double measured_s);
#endif
