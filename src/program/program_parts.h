/* Private to program: pieces that the builders and the partition share. */
#ifndef SM_PROGRAM_PARTS_H
#define SM_PROGRAM_PARTS_H
#include "scalemodel/program.h"

/* ---- arrays and ops ---- */
/* Dimensions of the programs that are built here: place in the table, letter, role. */
#define PROGRAM_DIMENSIONS(X)                                                                      \
    X(B, SEQUENCES)                                                                                \
    X(T, POSITIONS)                                                                                \
    X(S, KEYS)                                                                                     \
    X(D, MODEL)                                                                                    \
    X(K, HEADS)                                                                                    \
    X(G, GROUP)                                                                                    \
    X(H, WHOLE) X(J, WHOLE) X(F, WIDTH) X(E, EXPERTS) X(C, SLOTS) X(I, WIDTH) X(V, VOCABULARY)     \
        X(Q, WHOLE) X(R, WHOLE) X(X, WHOLE) X(P, WHOLE) X(Y, WHOLE) X(L, WHOLE)
enum {
#define X(id, role) PROGRAM_##id,
    PROGRAM_DIMENSIONS(X)
#undef X
};
int program_tensor(sm_program *b, const char *name, sm_role role, double bytes, int rank,
                   const int *dims);
sm_op *program_op(sm_program *b, const char *name, sm_op_kind kind, int out, int inputs,
                  const int *in);
/* Its inputs after the first (all of an append) name keys what they hold as positions. */
void program_read_as_keys(sm_op *op);
sm_op *program_vector(sm_program *b, const char *name, sm_function function, int out, int inputs,
                      const int *in);
int program_activation(sm_program *b, const char *name, int rank, const int *dims);
int program_weight(sm_program *b, const char *name, int rank, const int *dims);
sm_op *program_einsum(sm_program *b, const char *name, int out, int x, int w);
#define PROGRAM_LIST(...)                                                                          \
    (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]) { __VA_ARGS__ }

/* ---- execution_rules.c: a program that is built becomes that of its software ---- */
void program_fit_software(sm_program *b);

/* ---- the cache of serving (serving.c) ---- */
/* Appends new keys and values (tensors *k, *v; -1: those of an earlier layer stand) and leaves in
 * *k, *v the arrays attention reads. */
void program_append(sm_program *b, int *k, int *v);
/* The compressed cache of latent attention: the whole, its low-rank part and its rotary part, of
 * which the last two are views. */
typedef struct program_latent {
    int whole, low, rotary;
} program_latent;
void program_append_latent(sm_program *b, program_latent *kv);
/* Attention on the compressed cache: queries are taken into the low rank, results out of it. */
int program_attend_absorbed(sm_program *b, int q, const program_latent *kv);

/* ---- storage (storage.c) ---- */
sm_dimensions program_dims(const sm_tensor *t);
static inline bool program_has(const sm_program *b, sm_dimensions dims, sm_dimension_role role) {
    return (dims & b->of_role[role]) != 0;
}
/* The first of a role among `dims`, -1: none. */
int program_first(const sm_program *b, sm_dimensions dims, sm_dimension_role role);
/* Dimensions that count tokens and sequences: slots stand for both, keys for positions. -1: none.
 */
int program_tokens(const sm_program *b, sm_dimensions dims);
int program_sequences(const sm_program *b, sm_dimensions dims);
/* Of arrays that experts make or own, as against routed tokens on their way. */
bool program_experts_own(const sm_program *b, sm_dimensions dims);
void program_store(const sm_program *b, sm_tensor *t);
/* The dimension among `dims` that an axis shards, -1 when none does. */
bool program_carries_tensor(const sm_program *b, sm_dimensions dims); /* has a dimension for it */
/* Which tensor axes each dimension may take. */
void program_settle_takes(sm_program *b);
/* Of a program whose ops and arrays are all there: how its arrays are stored. */
void program_settle(sm_program *b);
void program_settle_loss(sm_program *b);
int program_tensor_dim(const sm_program *b, sm_dimensions dims, int axis);
int program_cache_dim(const sm_program *b, sm_dimensions dims);
int program_stationary_dim(const sm_program *b, sm_dimensions dims);
#endif
