/* layout_pattern: layers of the chunks of a pipeline as Megatron writes them. */
#pragma once
#include "scalemodel/base.h"

/* "Ett|(ttt|)*29ttL" as "2.3.3..."; "0" past what a model can have. NULL when out of memory. */
const char *layout_of_pattern(const char *pattern, sm_arena *arena);
/* "2.3*29.2" as "Et*2|(t*3|)*29t*2L"; NULL when out of memory. */
const char *pattern_of_layout(const char *layout, sm_arena *arena);
/* How many chunks a layout has. */
int layout_chunks(const char *layout);
