/* sweep: sizes of --dims that run over a range: "B=1..4096" doubles, "B=64..4096:64" steps by 64.
 */
#ifndef SCALEMODEL_CLI_SWEEP_H
#define SCALEMODEL_CLI_SWEEP_H
#include "scalemodel/shard.h"
#include "scalemodel/text.h"

enum { CLI_MAX_RANGES = 4, CLI_MAX_POINTS = 4096 };

typedef struct cli_range {
    sm_span name;
    int64_t first, last, step; /* step 0: doubling, the last value included */
    int index;                 /* of the einsum that it sizes */
} cli_range;

/* Ranges vary like the digits of a clock: the last one fastest. One point and no range when every
 * size is fixed. */
typedef struct cli_sweep {
    int ranges;
    cli_range range[CLI_MAX_RANGES];
    int points;
} cli_sweep;

/* Parse --dims (NULL: nothing) into the sizes of the einsum, which then holds the first point. */
sm_status cli_sweep_parse(const char *dims, sm_arena *arena, sm_einsum *einsum, cli_sweep *sweep,
                          sm_error *err);
/* Give the einsum the sizes of a point, 0 .. points - 1. */
void cli_sweep_point(const cli_sweep *sweep, int point, sm_einsum *einsum);
/* One range, "1..4096" or "64..4096:64", standing at span of the source. */
sm_status cli_range_parse(const sm_source *source, sm_span span, cli_range *range, sm_error *err);
int cli_range_points(const cli_range *range);
int64_t cli_range_value(const cli_range *range, int point);
#endif
