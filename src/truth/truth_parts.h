/* Private to truth: a training row turned into a job and a plan. */
#pragma once
#include "row_model.h"
#include <float.h>

static inline int or_else(int stated, int otherwise) { return stated > 0 ? stated : otherwise; }
static inline bool is_size(double x) { return x >= 1.0 && x <= DBL_MAX; }

/* The architecture a training row names, to be dropped. false: `why` names the missing fact, NULL
 * when out of memory. */
bool truth_model(const sm_training_row *row, row_models *models, const sm_model **model,
                 const char **why);
/* The machine it ran on: chip, number of chips, chips per node, what joins the nodes. */
bool truth_system(const sm_truth_row *row, const sm_chip *chip, sm_system *system,
                  const char **why);
/* The system of this chip that a text names: "h100:2x8". */
bool truth_system_called(const char *text, const sm_chip *chip, sm_system *system);
/* What its matmuls compute in. */
sm_dtype truth_dtype(const sm_training_row *row);
/* The plan it ran. */
bool truth_plan(const sm_training_row *row, const sm_model *model, int chips, sm_plan *plan,
                const char **why);

/* Which interval of the constants its predictions lie in. */
sm_regime truth_regime(sm_truth_kind kind);
/* Since year 0: what its code base was then is what it held. */
int truth_month(const sm_training_row *row);
/* Is this the software an operation ran in, or the library of its kernel? */
bool truth_in(const sm_truth_row *row, const char *software);
bool truth_by(const sm_truth_row *row, const char *kernel);

/* A row's case whose model is one of these; NULL: it has models of its own. */
sm_status truth_case_new(const sm_truth_row *row, row_models *models, bool bounds,
                         sm_truth_case **out, sm_error *err);

typedef struct truth_training truth_training;
sm_status truth_training_new(const sm_truth_row *row, row_models *models, const sm_chip *chip,
                             truth_training **out, const char **why, sm_error *err);
void truth_training_free(truth_training *t);
const sm_model *truth_training_model(const truth_training *t);
/* Priced with what this software holds from now on. */
void truth_training_held(truth_training *t, const sm_software_memory *held);
void truth_training_predict(truth_training *t, const sm_calibration *c, sm_prediction *out);
/* Under the constants of the last prediction; *why is NULL where there is none. */
sm_status truth_training_why(truth_training *t, const sm_calibration *c, sm_arena *arena,
                             sm_why **why, sm_error *err);

typedef struct truth_serving truth_serving;
sm_status truth_serving_new(const sm_truth_row *row, row_models *models, const sm_chip *chip,
                            truth_serving **out, const char **why, sm_error *err);
void truth_serving_free(truth_serving *t);
const sm_model *truth_serving_model(const truth_serving *t);
const sm_plan *truth_serving_plan(const truth_serving *t);
sm_status truth_serving_engine(truth_serving *t, const struct sm_software *engine, sm_error *err);
/* bounds: with what the row states and the lower bounds under it. */
void truth_serving_predict(truth_serving *t, const sm_chip *chip, const sm_calibration *c,
                           bool bounds, sm_prediction *out);
