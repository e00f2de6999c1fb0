/* row_model: what measured rows say of an architecture. Private to truth. */
#ifndef SM_ROW_MODEL_H
#define SM_ROW_MODEL_H
#include "scalemodel/model.h"

/* Letters follow the book; 0: the row has none. Norms are RMSNorm beside a gated MLP and LayerNorm
 * beside a plain one. */
typedef struct row_shape {
    const char *name;
    int D, L, V, max_seq;
    int N, K, H, F;
    int E, k_top, F_expert, E_shared, F_shared;
    int q_rank, kv_rank, nope_H, rope_H, V_head; /* latent attention */
    int window, chunk, mtp;
    bool gated, tied, parallel;
    bool dense[SM_MAX_LAYERS], local[SM_MAX_LAYERS]; /* of each layer */
} row_shape;

/* The model of that shape. false: `why` says what is wrong, or is NULL when out of memory. */
bool row_model(const row_shape *shape, const sm_library *families, sm_arena *arena, sm_model *model,
               const char **why);
#endif
