/* Included by `make lint` before each file: what functions that only fail return, so that the
 * analyzer follows no road on which one of them succeeded. */
#include "scalemodel/text.h"
#define sm_fail(err, status, ...) (sm_fail(err, status, __VA_ARGS__), (status))
#define sm_fail_memory(err) (sm_fail_memory(err), SM_INTERNAL)
#define sm_fail_limit(err, ...) (sm_fail_limit(err, __VA_ARGS__), SM_INTERNAL)
#define sm_fail_at(err, ...) (sm_fail_at(err, __VA_ARGS__), SM_BAD_INPUT)
