/* Private to program: pieces that the builder and the partition share. */
#ifndef SM_PROGRAM_PARTS_H
#define SM_PROGRAM_PARTS_H
#include "scalemodel/program.h"

int program_tensor(sm_program *b, const char *name, sm_role role, double bytes, int rank,
                   const int *dims);
sm_op *program_op(sm_program *b, const char *name, sm_op_kind kind, int out, int inputs,
                  const int *in);
/* The dimension among `dims` (a bit set) that a tensor axis shards, -1 when none does. */
int program_tensor_dim(const sm_rules *rules, uint32_t dims, int axis);
#endif
