/* codebase_table: data/codebases, as scripts/embed.c writes it when the library is built. Private
 * to src/train. */
#pragma once
#include "scalemodel/codebase.h"

extern const sm_codebase sm_codebase_table[];
extern const size_t sm_codebase_table_count;
