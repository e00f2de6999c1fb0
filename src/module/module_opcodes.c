#include "module_opcodes.h"

#include <string.h>

static const struct {
    const char *name;
    size_t length;
    sm_module_class class;
} opcodes[] = {
#define X(id, name, class) {name, sizeof name - 1, SM_CLASS_##class},
    SM_MODULE_OPCODES(X)
#undef X
        {"", 0, SM_CLASS_CUSTOM},
};

sm_module_class sm_module_class_of(sm_module_opcode opcode) { return opcodes[opcode].class; }
const char *module_opcode_name(sm_module_opcode opcode) { return opcodes[opcode].name; }

sm_module_opcode module_opcode_of(const char *name, size_t length) {
    for (int i = 0; i < SM_OPCODE_OTHER; i++)
        if (opcodes[i].length == length && !memcmp(opcodes[i].name, name, length))
            return (sm_module_opcode)i;
    return SM_OPCODE_OTHER;
}
