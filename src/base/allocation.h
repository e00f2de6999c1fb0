/* allocation: count one as sm_malloc does, for what hands out pieces of a block. False: refused. */
#pragma once
#include "scalemodel/base.h"
bool allocation_admitted(size_t bytes);
