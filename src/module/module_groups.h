/* module_groups: groups of devices from an order of them. Private to src/module. */
#pragma once
#include "scalemodel/module.h"

enum { MODULE_MOST_MEMBERS = 1 << 26 }; /* of all groups of a module */

typedef enum module_groups_made {
    MODULE_GROUPS_MADE,
    MODULE_GROUPS_WRONG,
    MODULE_GROUPS_NO_MEMORY
} module_groups_made;
/* Devices 0, 1, ... as an array of these sizes, transposed to `order` (n 0: as it is), and cut into
 * groups of so many. */
module_groups_made module_groups_of_order(sm_arena *arena, sm_module_list sizes,
                                          sm_module_list order, int64_t group,
                                          sm_module_groups *out);
/* Members of groups that hold all elements of a mesh become the mesh's devices: element i is
 * devices.at[i]. */
module_groups_made module_groups_rename(sm_arena *arena, sm_module_groups *groups,
                                        sm_module_list devices);
