/* module_opcodes: opcodes and other words of a module, in texts and protobufs alike. Private to
 * src/module. */
#pragma once
#include "scalemodel/module.h"

/* SM_OPCODE_OTHER when there is none of this name. */
sm_module_opcode module_opcode_of(const char *name, size_t length);
/* The sign of a comparison, as sm_instruction.direction has it, of "LT"; 0 of another word. */
char module_direction_of(const char *word, size_t length);
/* The number after a word in a text, past what is neither a digit nor '}': "n":"4". -1: none. */
int64_t module_number_after(const char *text, size_t length, const char *word);
