/* A file of tensors of single precision, as the writer of checkpoints makes it. */
#pragma once
#include "scalemodel/io.h"

static inline sm_status write_safetensors(const char *path, size_t n, const sm_safetensor *tensor,
                                          uint64_t steps, sm_error *err) {
    sm_safetensors_writer *w;
    uint32_t unused;
    sm_status status = sm_io_safetensors_begin(path, n, tensor, steps, &w, err);
    if (status) return status;
    for (size_t i = 0; !status && i < n; i++) {
        size_t numbers = 1;
        for (int d = 0; d < tensor[i].rank; d++) numbers *= tensor[i].shape[d];
        status = sm_io_safetensors_put(w, tensor[i].data, numbers, err);
    }
    if (!status) return sm_io_safetensors_end(w, &unused, err);
    sm_io_safetensors_abandon(w);
    return status;
}
