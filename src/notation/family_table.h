/* The files of data/families, embedded as text when the library is built. */
#pragma once
#include "scalemodel/text.h"

extern const sm_source sm_family_table[];
extern const size_t sm_family_table_count;
