/* rank_mesh: between ranks and coordinates. */
#pragma once
#include "scalemodel/run.h"

/* The coordinates along `axes` of the number-th rank of a group over them; the last axis varies
 * fastest. Other coordinates stay as they are. */
void coordinates_of(const sm_mesh *mesh, sm_axes axes, int number, int *at);
/* Those of the number-th rank of this rank's group over the axes. at: SM_MAX_AXES of them. */
void member_of(const sm_rank_mesh *m, sm_axes axes, int number, int *at);
/* The ranks of `m` as a mesh of other axes of as many chips. `m` owns it. NULL: out of memory. */
sm_rank_mesh *rank_mesh_like(sm_rank_mesh *m, const sm_mesh *mesh, sm_error *err);
int number_of(const sm_mesh *mesh, sm_axes axes, const int *at);
