/* timing_options: what the verbs that time an operation on a mesh of ranks are all asked. */
#ifndef SCALEMODEL_RUNCLI_TIMING_OPTIONS_H
#define SCALEMODEL_RUNCLI_TIMING_OPTIONS_H
#include "prediction.h"
#include "ranks.h"
#include "record.h"

typedef struct timing_values {
    prediction_values prediction;
    ranks_values ranks;
    const char *mesh, *record;
    int64_t repeats, warmups;
} timing_values;
#define TIMING_MESH_OPTION(values, member)                                                         \
    {                                                                                              \
        "mesh", 0, CLI_TEXT, offsetof(values, member.mesh), "MESH",                                \
            .help = "named axes, a rank for each place of the mesh: X=2,Y=2", .required = true     \
    }
/* The defaults as texts. */
#define TIMING_OPTIONS(values, member, default_repeats, default_warmups)                           \
    RANKS_OPTIONS(values, member.ranks, RANKS_CUDA),                                               \
        PREDICTION_OPTIONS(values, member.prediction),                                             \
        {"repeats",                                                                                \
         0,                                                                                        \
         CLI_WHOLE,                                                                                \
         offsetof(values, member.repeats),                                                         \
         "N",                                                                                      \
         .help = "measure N times and take the median",                                            \
         .lowest = 1,                                                                              \
         .highest = 10000,                                                                         \
         .by_default = default_repeats},                                                           \
        {"warmups",                                                                                \
         0,                                                                                        \
         CLI_WHOLE,                                                                                \
         offsetof(values, member.warmups),                                                         \
         "N",                                                                                      \
         .help = "runs before the first that is measured",                                         \
         .highest = 10000,                                                                         \
         .by_default = default_warmups},                                                           \
        RECORD_OPTION(values, member.record)

/* Can what is measured be recorded, where --record is given? kind: of the rows, which are of single
 * precision. */
sm_status timing_check(const timing_values *given, sm_truth_kind kind, sm_dtype dtype,
                       sm_error *err);
#endif
