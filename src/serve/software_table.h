/* software_table: data/engines, as scripts/embed.c writes it when the library is built. Private to
 * src/serve. */
#pragma once
#include "scalemodel/load.h"

extern const sm_software sm_software_table[];
extern const size_t sm_software_table_count;
