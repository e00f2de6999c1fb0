/* Private to truth: a row of inference turned into engines, each a job of serving with a plan, and
 * the load they are under. */
#pragma once
#include "scalemodel/load.h"
#include "truth_parts.h"

/* Dtypes: as stated, else what the engine does with such weights on such a chip. */
bool inference_dtypes(const sm_inference_row *row, const sm_chip *chip, const sm_software *software,
                      sm_serve_dtypes *dtypes, const char **why);

/* Copies of one engine. */
typedef struct inference_pool {
    int engines, chips; /* copies; chips of one */
    sm_plan plan;
} inference_pool;
/* prefill: the same as decode unless they have chips of their own. */
typedef struct inference_layout {
    inference_pool prefill, decode;
    bool apart;
} inference_layout;
bool inference_layout_of(const sm_truth_row *row, const sm_chip *chip, const sm_software *software,
                         const sm_model *model, const sm_serve_dtypes *dtypes,
                         inference_layout *layout, const char **why);

/* The architecture, as engines of this layout fill it up, to be dropped; as stated where layout is
 * NULL. false: `why` names the missing fact, NULL when out of memory. */
bool inference_model(const sm_inference_row *row, const inference_layout *layout,
                     row_models *models, const sm_model **model, const char **why);

/* What is asked of the engines, and the lengths of its requests. */
typedef struct inference_load {
    sm_load load;
    double prompt, output; /* mean tokens */
} inference_load;
bool inference_load_of(const sm_inference_row *row, inference_load *load, const char **why);
