/* Questions about serving, asked of serve.h: bounds of a decode step, memory, what fits. */
#pragma once
#include "instruments.h"
#include "scalemodel/serve.h"
#include "partition.h"

typedef struct book_serving {
    sm_model model;
    sm_system system;
    sm_dtype weights, kv; /* matmuls are computed in bf16 */
    double cached;        /* tokens of a sequence */
} book_serving;

/* A decode step of a plan: a point whose numbers are NAN when it is impossible. */
sm_serve_point book_serving_point(const book_serving *q, const char *plan, double batch);
double book_serving_most(const book_serving *q, const char *plan); /* sequences that fit */
/* FLOPs of the prefill of `prompt` tokens of which `prefix` are cached. */
double book_prefill_flops(const book_serving *q, double prompt, double prefix);

/* One layer of serving, of one query and one key; the last two stay valid. NULL: see the error. */
const sm_partition *book_serving_layer(const sm_model *model, const sm_rules *rules);
/* V of the collectives of its MLP over these axes, for so many tokens. */
double book_serving_comm_bytes(const sm_partition *layer, sm_collective op, sm_axes axes,
                               const book_degrees *degrees, double tokens);
/* The shape of a model of 30e9 parameters whose cache takes 100e3 bytes a token in int8. */
sm_model book_model_30b(void);
