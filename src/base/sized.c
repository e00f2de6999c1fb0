/* Structures of callers that were compiled with older headers are shorter than ours. */
#include "scalemodel/base.h"

#include <string.h>

sm_status sm_sized_take(void *own, size_t room, const void *given, sm_error *err) {
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size < sizeof size || size > room)
        return sm_fail(err, SM_USAGE,
                       "a structure says that it has %zu bytes, and this library (%s) knows %zu of "
                       "it: its size, the first member, is set by what makes it the default",
                       size, sm_version(), room);
    memset(own, 0, room);
    memcpy(own, given, size);
    memcpy(own, &room, sizeof room);
    return SM_OK;
}

void sm_sized_give(void *to, size_t size, const void *own, size_t room) {
    memset(to, 0, size);
    memcpy(to, own, size < room ? size : room);
}
