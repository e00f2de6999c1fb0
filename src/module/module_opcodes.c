#include "module_parts.h"

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
const char *sm_module_opcode_name(sm_module_opcode opcode) { return opcodes[opcode].name; }

sm_module_opcode module_opcode_of(const char *name, size_t length) {
    for (int i = 0; i < SM_OPCODE_OTHER; i++)
        if (opcodes[i].length == length && !memcmp(opcodes[i].name, name, length))
            return (sm_module_opcode)i;
    return SM_OPCODE_OTHER;
}

char module_direction_of(const char *word, size_t length) {
    static const char words[][3] = {"LT", "GT", "LE", "GE", "EQ", "NE"}, signs[] = "<>lg=!";
    for (int i = 0; i < 6; i++)
        if (length == 2 && memcmp(word, words[i], 2) == 0) return signs[i];
    return 0;
}

int64_t module_number_after(const char *text, size_t length, const char *word) {
    const char *at = text, *end = text + length;
    size_t letters = strlen(word);
    int64_t value = -1;
    while ((size_t)(end - at) > letters && memcmp(at, word, letters) != 0) at++;
    if ((size_t)(end - at) <= letters) return -1;
    for (at += letters; at < end && *at != '}' && (*at < '0' || *at > '9');) at++;
    for (; at < end && *at >= '0' && *at <= '9' && value < INT64_MAX / 100; at++)
        value = (value < 0 ? 0 : value) * 10 + (*at - '0');
    return value;
}
