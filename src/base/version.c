/* The version this library was built as. */
#include "scalemodel/base.h"

const char *sm_version(void) { return SM_VERSION; }
