/* module_opcodes: opcodes by name. Private to src/module. */
#pragma once
#include "scalemodel/module.h"

/* SM_OPCODE_OTHER when there is none of this name. */
sm_module_opcode module_opcode_of(const char *name, size_t length);
const char *module_opcode_name(sm_module_opcode opcode);
