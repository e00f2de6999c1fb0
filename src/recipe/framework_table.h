/* framework_table: the files of data/frameworks, as scripts/embed.c writes them when the library is
 * built: one that another is `like` comes before it. Private to src/recipe. */
#pragma once
#include "scalemodel/text.h"

extern const sm_source sm_framework_table[];
extern const size_t sm_framework_table_count;
