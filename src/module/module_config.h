/* module_config: the configuration of a custom call. Private to src/module. */
#pragma once
#include "scalemodel/module.h"

/* Take what a configuration says into the instruction. False when out of memory. */
bool module_config(sm_arena *arena, const char *text, size_t length, sm_instruction *it);
