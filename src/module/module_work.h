/* module_work: FLOPs and bytes of one instruction. Private to src/module. */
#pragma once
#include "scalemodel/module.h"

/* Add the FLOPs of an instruction; inner: of each computation once, known of those it calls. */
void module_flops_of(const sm_computation *in, const sm_instruction *it,
                     const sm_module_work *inner, sm_module_work *w);
/* What a compiler fuses into what reads it, and reads without writing it first. */
bool module_is_fusable(sm_module_opcode opcode);
