/* spmd: a program on whole arrays (module.h, `whole`) made the program of one device. Shardings
 * that the program asks for spread to what it does not say; each operation then works on the parts
 * that a device has, and the algebra of sharding (shard.h) says what must be communicated. This is
 * what XLA's partitioner does before it optimises (Xu et al. 2021, GSPMD, arXiv:2105.04663; how
 * shardings spread follows Shardy's factors), without its windows and halo exchanges. */
#pragma once
#include "scalemodel/module.h"
#include "scalemodel/shard.h"

SM_DECLARATIONS_BEGIN
/* Partition a module that is not partitioned yet; any other is given back as it is. What is made
 * lives in the arena and refers to the module. SM_BAD_INPUT when its mesh has more than SM_MAX_AXES
 * axes, SM_INTERNAL when out of memory. */
sm_status sm_module_partition(const sm_module *module, sm_arena *arena, const sm_module **out,
                              sm_error *err);
SM_DECLARATIONS_END
