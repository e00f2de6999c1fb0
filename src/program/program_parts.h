/* Private to program: pieces that the builders and the partition share. */
#ifndef SM_PROGRAM_PARTS_H
#define SM_PROGRAM_PARTS_H
#include "scalemodel/program.h"

/* ---- arrays and ops ---- */
int program_tensor(sm_program *b, const char *name, sm_role role, double bytes, int rank,
                   const int *dims);
sm_op *program_op(sm_program *b, const char *name, sm_op_kind kind, int out, int inputs,
                  const int *in);
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
uint32_t program_dims(const sm_tensor *t); /* a bit for each dimension */
void program_store(const sm_program *b, sm_tensor *t);
/* The dimension among `dims` (a bit set) that an axis shards, -1 when none does. */
int program_tensor_dim(const sm_program *b, uint32_t dims, int axis);
int program_cache_dim(const sm_program *b, uint32_t dims);
int program_stationary_dim(const sm_program *b, uint32_t dims);
#endif
