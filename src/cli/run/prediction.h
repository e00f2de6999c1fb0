/* prediction: what a run is held against: the system it is priced on, and the verdict. */
#pragma once
#include "scalemodel/answer_words.h"
#include "ranks.h"

#include <math.h>

/* What was run, as rows of a file of measurements that `validate` reads. */
#define RECORD_PLACE(member) AT("record", member)

/* Can rows of this kind be added there? Before anything is run. NULL: none is asked for. */
sm_status record_check(const char *path, sm_truth_kind kind, sm_error *err);
/* A row of this kind, measured on a chip by this program. */
sm_truth_row record_begin(sm_truth_kind kind, const char *chip, double measured_s);
/* Add the rows to the file, and say so. */
sm_status record_rows(sm_report *r, const char *path, const sm_truth_row *row, int n,
                      sm_error *err);

typedef struct prediction_values {
    const char *on;
    cli_calibration_values constants;
} prediction_values;
#define PREDICTION_PLACES(member) AT("on", member.on), CLI_CALIBRATION_PLACES(member.constants)

/* The system that --on names, or else as many chips as there are ranks: of --system FILE, which
 * then holds one kind, or the placeholder, "cpu-host:4". *constants: those asked for; left alone
 * where none are, and may be NULL. */
sm_status prediction_system(const cli_call *call, const prediction_values *given, int ranks,
                            sm_system *system, const sm_calibration **constants, sm_error *err);
/* Read --mesh, which says how many ranks there are, and lay it on the system of --on. */
sm_status prediction_read(const cli_call *call, const prediction_values *given, const char *mesh,
                          sm_placed_mesh *m, const sm_calibration **calibration, sm_error *err);

/* "1.08", "-" where nothing was measured. */
const char *prediction_ratio(sm_report *r, double predicted, double measured);
/* "time_s": {"predicted": ..., "measured": ...} */
void prediction_put_times(sm_report *r, sm_data *object, double predicted_s, double measured_s);
/* Did all collectives move the bytes predicted? "bytes_equal", and one sentence. apart: by how many
 * they differed, over all ranks and each "step" or "pass". */
void prediction_say_bytes(sm_report *r, const char *each, double apart);
/* One sentence where the chip is the placeholder. */
void prediction_say_placeholder(sm_report *r, const sm_system *system);
/* One sentence. */
void prediction_verdict(sm_report *r, const sm_placed_mesh *m, double predicted_s,
                        double measured_s);

/* SM_NEGATIVE, which the page explains, where `ranks` ranks of so many bytes each do not fit into
 * the memory of this machine: of ranks that a user's own launcher starts, perhaps on other
 * machines, one must. what: "this product"; advice: what needs less, a sentence. */
sm_status machine_memory_holds(sm_report *r, const char *what, double bytes_of_rank, int ranks,
                               const char *advice);

/* ---- what the verbs that time an operation on a mesh of ranks are all asked ---- */
typedef struct timing_values {
    prediction_values prediction;
    ranks_values ranks;
    const char *mesh, *record;
    int64_t repeats, warmups;
} timing_values;
#define TIMING_MESH_PLACE(member) AT("mesh", member.mesh)
/* The defaults as texts. */
#define TIMING_PLACES(member)                                                                      \
    RANKS_PLACES(member.ranks), PREDICTION_PLACES(member.prediction),                              \
        AT("repeats", member.repeats), AT("warmups", member.warmups), RECORD_PLACE(member.record)

/* Can what is measured be recorded, where --record is given? kind: of the rows, which are of single
 * precision. */
sm_status timing_check(const timing_values *given, sm_truth_kind kind, sm_dtype dtype,
                       sm_error *err);
