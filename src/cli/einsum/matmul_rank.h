/* matmul_rank: every way to do a sharded einsum on a mesh, priced, the cheapest first. */
#ifndef SCALEMODEL_CLI_MATMUL_RANK_H
#define SCALEMODEL_CLI_MATMUL_RANK_H
#include "scalemodel/lowering.h"

enum { CLI_MOST_ALTERNATIVES = 256 };

typedef struct cli_alternative {
    sm_lowering lowering;
    sm_lowering_cost cost; /* its `overlapped` tells which step runs inside the einsum */
} cli_alternative;

/* The cheapest alternatives seen, in order; the others are only counted. */
typedef struct cli_ranking {
    const sm_lowering_input *input;
    sm_arena *arena;
    int n;
    bool out_of_memory;
    cli_alternative *kept[CLI_MOST_ALTERNATIVES];
} cli_ranking;

/* SM_NEGATIVE when there is no way at all. input and arena outlive the ranking. */
sm_status cli_rank_lowerings(const sm_lowering_input *input, sm_arena *arena, cli_ranking *found,
                             sm_error *err);
#endif
