/* mesh_input: --on and --mesh together: a system, the mesh laid on it, and what is left idle. */
#ifndef SCALEMODEL_CLI_MESH_INPUT_H
#define SCALEMODEL_CLI_MESH_INPUT_H
#include "options.h"
#include "scalemodel/page.h"
#include "scalemodel/cost.h"

typedef struct cli_mesh {
    sm_system system;
    sm_mesh mesh;
    sm_placement placement;
} cli_mesh;

/* on, mesh: the texts of the options. Without --mesh one axis named `whole` covers the system. */
sm_status cli_mesh_read(const cli_call *call, const char *on, const char *mesh, const char *whole,
                        cli_mesh *m, sm_error *err);
/* The collective that a word names, the positional OP. */
sm_status cli_collective_read(const char *text, sm_collective *op, sm_error *err);
/* Axes named by --over: "Y", "XY" or "fsdp,tensor". */
sm_status cli_over_parse(const sm_mesh *mesh, const char *over, sm_axes *axes, sm_error *err);
/* Say where each axis sits, and whether the mesh leaves chips of the system idle. */
void cli_mesh_page(sm_report *r, const cli_mesh *m);
void cli_mesh_fields(sm_report *r, const cli_mesh *m);
/* "X", "XY" or "fsdp,tensor". */
const char *cli_axes(sm_report *r, const sm_mesh *mesh, sm_axes axes);
/* Where a group sits: "ici 4 (ring)", "nvlink 8". */
const char *cli_group(sm_report *r, const sm_system *system, const sm_group *group);
#endif
