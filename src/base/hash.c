#include "scalemodel/base.h"

#include <string.h>

uint64_t sm_hash_bytes(const void *bytes, size_t n) {
    const char *at = bytes;
    uint64_t hash = SM_HASH_SEED, word;
    for (; n >= sizeof word; at += sizeof word, n -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = sm_hash_mixed(hash, word);
    }
    for (; n > 0; n--) hash = sm_hash_mixed(hash, (unsigned char)*at++);
    return hash;
}
