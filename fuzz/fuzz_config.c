/* Fuzz target: any bytes as a config.json. A config that is accepted must be one that counts: whole
 * parameters that add up, and FLOPs and KV bytes that are finite and grow with the sequence. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "scalemodel/model.h"

static void require(int holds) {
    if (!holds) abort();
}

static void check_counts(const sm_model *m) {
    sm_params p = sm_model_params(m);
    double sum =
        p.embedding + p.unembedding + p.attention + p.mlp + p.experts + p.router + p.norm + p.other;
    require(p.total > 0 && floor(p.total) == p.total && p.total == sum);
    require(p.active > 0 && p.active <= p.total && p.matmul_active > 0);
}

static void check_work(const sm_model *m) {
    double causal = sm_model_forward_flops(m, 4096, true).total;
    double square = sm_model_forward_flops(m, 4096, false).total;
    require(isfinite(square) && causal > 0 && causal <= square);
    double shorter = sm_model_kv_bytes(m, 100, SM_BF16);
    double longer = sm_model_kv_bytes(m, 1e6, SM_BF16);
    require(isfinite(longer) && shorter >= 0 && longer >= shorter);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static sm_model m;
    sm_error err = {0};
    sm_source source = {"config.json", (const char *)data, size};
    sm_arena *arena = sm_arena_new();
    require(arena != NULL);
    sm_status status = sm_model_parse(NULL, NULL, &source, arena, &m, &err);
    if (status == SM_OK) {
        check_counts(&m);
        check_work(&m);
    } else {
        require(status == SM_BAD_INPUT && err.sentence[0] != 0);
        require(err.line >= 1 && err.column >= 1 && err.span >= 1);
    }
    sm_arena_free(arena);
    return 0;
}
