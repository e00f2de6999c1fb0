/* module_config: the configuration of a custom call. Private to src/module. */
#pragma once
#include "scalemodel/module.h"

/* What follows the first occurrence of a word; NULL: there is none. */
const char *module_word_after(const char *at, const char *end, const char *word);
/* Take what a configuration says into the instruction. False when out of memory. */
bool module_config(sm_arena *arena, const char *text, size_t length, sm_instruction *it);
