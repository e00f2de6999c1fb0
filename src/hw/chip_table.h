/* chip_table: the chips of data/chips, as scripts/embed.c writes them when the library is
 * built, in the order of the files' names. Private to src/hw. */
#pragma once
#include "scalemodel/hw.h"

extern const sm_chip sm_chip_table[];
extern const size_t sm_chip_table_count;
