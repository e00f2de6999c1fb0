/* serving_model: a model on ranks that serve it: its plan, weights, sizes and price, for run
 * generate and run serve. */
#pragma once
#include "prediction.h"
#include "train_checkpoint.h"
#include "scalemodel/run_generate.h"

typedef struct serving_model {
    sm_model model;
    sm_train_setup setup;
    sm_safetensors file;
    const char *path; /* of the checkpoint */
    sm_dtype weights; /* what they are held in, */
    bool as_stored;   /* as a quantised checkpoint has them */
} serving_model;

/* --weights: what weights are held in. */
enum { SERVING_WEIGHTS = 5 };
extern const char *const serving_weights[SERVING_WEIGHTS];
#define SERVING_WEIGHTS_PLACE(member) AT("weights", member)

/* n, or the next number that divides. */
int serving_rounded_up(size_t n, int to);
/* What of a plan of serving is left open as it is run. SM_BAD_INPUT for what cannot be. */
sm_status serving_plan_as_run(sm_plan *plan, sm_error *err);
/* --plan, at place among the values; NULL there: one rank. SM_BAD_INPUT for what cannot be run. */
sm_status serving_plan_read(const cli_call *call, const char *const *place, sm_plan *plan,
                            sm_error *err);
/* The model of this name, and where its weights are; checkpoint NULL: the folder that the name is.
 */
sm_status serving_model_read(const cli_call *call, const cli_model_values *by, const char *name,
                             const char *checkpoint, serving_model *m, sm_error *err);
/* Its setup under the plan, for so many sequences of at most so many tokens, both rounded up. */
sm_status serving_model_lay_out(const cli_call *call, const sm_plan *plan, size_t tokens,
                                size_t sequences, serving_model *m, sm_error *err);
/* The headers of its weights, which are held in serving_weights[word]. */
sm_status serving_model_weights(const cli_call *call, int word, serving_model *m, sm_error *err);
/* A generator with its weights, and caches of a page each. On every rank. */
sm_status serving_model_open(sm_communicator *world, const serving_model *m, sm_generator **out,
                             sm_error *err);

/* The price of serving in single precision but for how weights are held, one kernel after the
 * other, as it is run here. */
sm_status serving_price_new(const serving_model *m, const sm_system *system, double prompt,
                            double output, const sm_calibration *constants, sm_serve **out,
                            sm_error *err);
/* Bytes of weights, predicted and held. */
sm_status serving_show_weights(sm_report *r, const serving_model *m, double held, sm_serve *price,
                               const sm_plan *plan, sm_error *err);
