/* Two shardings of XLA, a line each: what both are on one mesh is an einsum that parses. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scalemodel/shard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data, *line = size ? memchr(text, '\n', size) : NULL;
    if (size > 4096 || !line) return 0;
    sm_source from = {"from", text, (size_t)(line - text)};
    sm_source to = {"to", line + 1, size - from.length - 1};
    sm_error err = {0};
    sm_arena *arena = sm_arena_new();
    for (int rank = 1; arena && rank <= SM_MAX_RANK; rank++) {
        sm_mesh mesh;
        sm_einsum einsum;
        const char *body;
        sm_status status = sm_xla_resharding(&from, &to, rank, arena, &mesh, &body, &err);
        if (status && (status != SM_BAD_INPUT || !err.sentence[0])) abort();
        if (status) continue;
        sm_source source = sm_source_of("einsum", body);
        if (sm_einsum_parse(&source, &mesh, &einsum, &err)) abort();
    }
    sm_arena_free(arena);
    return 0;
}
