/* fake_cuda: GPUs that take exactly the time they are told to, by a clock of their own, on memory
 * of the host: what a measurement should find is known. */
#pragma once
#include <stdbool.h>

typedef struct fake_gpus {
    int gpus;
    double memory_bytes;
    double start_s;     /* of everything that is put on a stream */
    double flops_per_s; /* of bf16 and fp16; tf32 a half, fp32 and fp64 a sixteenth */
    double memory_bytes_per_s, host_bytes_per_s, link_bytes_per_s;
    bool no_bf16;
    /* counted: calls, and the number of the one that fails (0: none); things not given back */
    int calls, failing, alive;
} fake_gpus;
extern fake_gpus fake;
