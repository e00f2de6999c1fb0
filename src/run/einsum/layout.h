/* layout: where a layout puts the block of a rank. */
#ifndef SM_RUN_LAYOUT_H
#define SM_RUN_LAYOUT_H
#include "scalemodel/run.h"

/* Into how many parts the axes of `among` split a dimension, and which of them has the rank at
 * these coordinates; the major axis first. */
size_t parts_of(const sm_mesh *mesh, const sm_layout *layout, int dim, sm_axes among);
size_t part_of(const sm_mesh *mesh, const sm_layout *layout, int dim, sm_axes among, const int *at);
#endif
