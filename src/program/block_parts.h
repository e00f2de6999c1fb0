/* Private to program: pieces that the builder and the partition share. */
#ifndef SM_PROGRAM_BLOCK_PARTS_H
#define SM_PROGRAM_BLOCK_PARTS_H
#include "scalemodel/program.h"

int block_tensor(sm_block *b, const char *name, sm_role role, double bytes, int rank, const int *dims);
sm_op *block_op(sm_block *b, const char *name, sm_op_kind kind, int out, int inputs, const int *in);
/* The dimension among `dims` (a bit set) that a tensor axis shards, -1 when none does. */
int block_tensor_dim(const sm_rules *rules, uint32_t dims, int axis);
#endif
