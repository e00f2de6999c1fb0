/* row_model: what measured rows say of an architecture. Private to truth. */
#pragma once
#include "scalemodel/serve.h"
#include "scalemodel/train.h"
#include "scalemodel/truth.h"

/* What rows say of an architecture, and what is usual where they are silent. Norms are RMSNorm
 * beside a gated MLP and LayerNorm beside a plain one. */
typedef struct row_shape {
    sm_row_model of;
    const char *config; /* of the catalogue, in place of all but the name; NULL: none */
    int max_seq;        /* 0: as the family has it */
} row_shape;
/* A row that states no layers and names a model of the catalogue means that one. vocabulary: where
 * a row states none. NULL, or which fact is missing. */
const char *row_shape_of(const sm_row_model *stated, int vocabulary, row_shape *shape);

/* Models by their shape: rows of one architecture share one. Not for several threads at once. */
typedef struct row_models row_models;
/* None yet. NULL when out of memory. */
row_models *row_models_new(void);
void row_models_free(row_models *models);
/* The model of that shape, read where there is none like it. false: `why` says what is wrong, or is
 * NULL when out of memory. Until row_models_drop it stays where it is. */
bool row_models_take(row_models *models, const row_shape *shape, const sm_model **out,
                     const char **why);
/* The taker needs it no longer. NULL is fine. */
void row_models_drop(row_models *models, const sm_model *model);
/* A job of a model that was taken, made ready: its programs are those of an earlier job (that was
 * returned, of equal sequences, where it is trained), if there is one. Errors as sm_train_new,
 * sm_serve_new. Returned, or freed, before its model is dropped; NULL is fine. */
sm_status row_train_borrow(const sm_job *job, sm_train **out, sm_error *err);
void row_train_return(const sm_model *model, sm_train *train);
sm_status row_serve_new(const sm_serve_job *job, sm_serve **out, sm_error *err);
