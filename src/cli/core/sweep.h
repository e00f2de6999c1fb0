/* sweep: sizes of --dims that run over a range: "B=1..4096" doubles, "B=64..4096:64" steps by 64.
 */
#ifndef SCALEMODEL_CLI_SWEEP_H
#define SCALEMODEL_CLI_SWEEP_H
#include "options.h"
#include "scalemodel/shard.h"

enum { CLI_MAX_RANGES = 4, CLI_MAX_POINTS = 4096 };

typedef struct cli_size_range {
    sm_span name;
    cli_range values;
    int index; /* of the einsum that it sizes */
} cli_size_range;

/* Ranges vary like the digits of a clock: the last one fastest. One point and no range when every
 * size is fixed. */
typedef struct cli_sweep {
    int ranges;
    cli_size_range range[CLI_MAX_RANGES];
    int points;
} cli_sweep;

/* Parse --dims (NULL: nothing) into the sizes of the einsum, which then holds the first point. */
sm_status cli_sweep_parse(const char *dims, sm_arena *arena, sm_einsum *einsum, cli_sweep *sweep,
                          sm_error *err);
/* Give the einsum the sizes of a point, 0 .. points - 1. */
void cli_sweep_point(const cli_sweep *sweep, int point, sm_einsum *einsum);
#endif
