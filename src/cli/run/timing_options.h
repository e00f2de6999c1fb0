/* timing_options: what the verbs that time an operation on a mesh of ranks are all asked. */
#ifndef SCALEMODEL_RUNCLI_TIMING_OPTIONS_H
#define SCALEMODEL_RUNCLI_TIMING_OPTIONS_H
#include "prediction.h"
#include "ranks.h"
#include "record.h"

typedef struct timing_values {
    prediction_values prediction;
    ranks_values ranks;
    const char *mesh, *repeats, *warmups, *record;
} timing_values;
#define TIMING_MESH_OPTION(values, member)                                                         \
    {                                                                                              \
        "mesh", 0, CLI_TEXT, offsetof(values, member.mesh), "MESH",                                \
            "named axes, a rank for each place of the mesh: X=2,Y=2"                               \
    }
/* usual: texts of the numbers that hold when nothing is said. */
#define TIMING_OPTIONS(values, member, usual_repeats, usual_warmups)                               \
    RANKS_OPTIONS(values, member.ranks), PREDICTION_OPTIONS(values, member.prediction),            \
        {"repeats", 0,                                                                             \
         CLI_TEXT,  offsetof(values, member.repeats),                                              \
         "N",       "measure N times and take the median (" usual_repeats ")"},                    \
        {"warmups", 0,                                                                             \
         CLI_TEXT,  offsetof(values, member.warmups),                                              \
         "N",       "runs before the first that is measured (" usual_warmups ")"},                 \
        RECORD_OPTION(values, member.record)

/* Numbers that are given take the place of the usual ones. kind: of the rows of --record, which are
 * of single precision. */
sm_status timing_read(const timing_values *given, sm_truth_kind kind, sm_dtype dtype,
                      int64_t *repeats, int64_t *warmups, sm_error *err);
#endif
