/* Short ways to ask the library the questions of the book. What cannot be had is NAN (or zeros),
 * and book_last_error() says why. Nothing here computes a cost of its own. */
#pragma once
#include "scalemodel/cost.h"
#include "scalemodel/hw.h"
#include "scalemodel/model.h"
#include "scalemodel/program.h"
#include "scalemodel/shard.h"
#include "scalemodel/train.h"
#include "partition.h"

const char *book_last_error(void);

/* ---- chips and systems ---- */
sm_chip book_chip(const char *name);         /* a copy that may be altered */
void book_give(sm_fact *fact, double value); /* a number that the question states */
sm_system book_system(const char *text);
sm_system book_system_of(const sm_chip *chip, const char *text); /* text names this altered chip */

/* ---- einsums ---- */
sm_mesh book_mesh(const char *text);
sm_einsum book_einsum(const char *text, const char *dims, const sm_mesh *mesh);
sm_roofline book_roofline_of(const sm_chip *chip, const char *einsum, const char *dims,
                             sm_memory_level level);
double book_critical(const sm_chip *chip, const char *einsum, const char *dims, const char *index,
                     sm_memory_level level);
double book_flops(const char *einsum, const char *dims);
double book_local_bytes(const char *array, const char *mesh, const char *dims);
double book_read_s(const sm_chip *chip, double bytes); /* through the memory of one chip */
/* One assignment of mesh axes to indices, a letter each: "I-" puts the first axis on I, the second
 * nowhere. The output is as written. */
sm_lowering book_lowering(const char *einsum, const char *dims, const char *mesh, const char *at);
double book_step_bytes(const sm_lowering *lowering, sm_collective op); /* V over all such steps */

/* ---- collectives ---- */
sm_curve book_curve(const sm_system *system, sm_collective op, const char *mesh, const char *axes);
/* NULL: the book's closed form. */
sm_algorithm book_line(const sm_curve *curve, const char *algorithm);
double book_s_per_byte(const sm_system *system, sm_collective op, const char *mesh,
                       const char *axes); /* of the book's closed form */

/* ---- models ---- */
sm_model book_model(const char *name); /* of the catalogue */
/* A Transformer in the book's letters: gated MLP, no biases, full attention. */
sm_model book_transformer(int D, int F, int N, int K, int H, int L, int V);
/* The same sizes in the same order, with other members of its config. */
sm_model book_transformer_with(const int *sizes, const char *members);
#define BOOK_TIED "\"tie_word_embeddings\": true"
/* E experts of width F, of which each token takes k. */
const char *book_experts(int E, int k, int F);
sm_model book_block(int D, int F);      /* an MLP of two matrices; attention of next to nothing */
sm_model book_of_params(double params); /* this many parameters, all in matmuls */

/* ---- programs ---- */
/* One layer, partitioned; the last BOOK_LAYERS stay valid. NULL: see the error. */
enum { BOOK_LAYERS = 16 };
const sm_partition *book_layer(const sm_model *model, double T);
/* The size of a dimension of its program; NAN: there is none. */
double book_layer_size(const sm_partition *layer, const char *dimension);
typedef struct book_degrees {
    double axis[SM_AXIS_COUNT];
} book_degrees;
book_degrees book_ones(void);
double book_size(sm_size size, const book_degrees *degrees, double sequences);
/* Over the matmuls with weights of the MLP (or all of the layer), in a phase, per chip. */
double book_linear_flops(const sm_partition *layer, sm_phase phase, bool mlp_only,
                         const book_degrees *degrees, double sequences);
/* V of all collectives of one kind over any of these axes; activations of the MLP alone. */
double book_comm_bytes(const sm_partition *layer, sm_phase phase, sm_collective op, sm_axes axes,
                       double gradient_bytes, const book_degrees *degrees, double sequences);
/* Bytes kept for the backward pass per token of one layer when all but the named ops' results (and
 * the layer's input) is recomputed; keep: "u+g", "" for the input alone. */
double book_kept_bytes_per_token(const sm_model *model, const char *keep);

/* ---- training ---- */
/* Prices a plan; memory and bounds of it. false: see the error. */
bool book_price(const sm_model *model, const sm_system *system, double batch_tokens, double seq,
                const char *plan, sm_price_of_plan *price);
double book_state_bytes(const sm_model *model, const char *plan); /* weights and optimizer */
double book_run_s(const sm_model *model, const sm_chip *chip, double chips, double tokens,
                  double mfu); /* model FLOPs without attention over FLOPs/s */
double book_sequences(const sm_model *model, double batch_tokens, double seq);
