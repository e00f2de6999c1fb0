/* The names of the collectives. */
#include "scalemodel/shard.h"
#include <string.h>

const char *const sm_collective_names[SM_COLLECTIVE_COUNT] = {SM_COLLECTIVES(SM_NAME_OF)};

const char *sm_collective_name(sm_collective op) { return sm_collective_names[op]; }

bool sm_collective_reduces(sm_collective op) {
    return op == SM_ALL_REDUCE || op == SM_REDUCE_SCATTER || op == SM_REDUCE;
}

bool sm_collective_parse(const char *text, size_t length, sm_collective *op) {
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++)
        if (strlen(sm_collective_names[i]) == length &&
            memcmp(sm_collective_names[i], text, length) == 0) {
            *op = (sm_collective)i;
            return true;
        }
    return false;
}
