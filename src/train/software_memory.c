/* What training software holds in memory beside weights, gradients, state and activations of fused
 * kernels. Bytes per word of the vocabulary follow from the tensors alive when the loss is
 * differentiated; the allocator's part is what measured peaks leave (data/truth/training.csv).
 *
 * megatron-core: fp32 logits that the softmax overwrites and their 16-bit gradient (fused loss);
 * router weights applied to the experts' products, so that the experts' results are not kept (since
 * 0.12); inputs of 8-bit matmuls kept in 8 bits (TransformerEngine); workspaces 1 GB.
 *
 * aleph-alpha (Aleph-Alpha/scaling): the head gathers its logits over tensor (a copy beside the
 * parts, 2 + 2), torch's cross entropy keeps log-softmax (4) and makes two fp32 gradients (8);
 * act(gate) apart from the product; copies of queries and keys (2 x 2); a norm's result is
 * gathered, where sequences are sharded, before the matmul that keeps it. Without the kernel, a
 * norm keeps its input in fp32 and its result in 16 bits. 2.4 GB of a card are not its own: what
 * the driver keeps, context and communicators of every axis.
 *
 * megatron-deepspeed: DeepSpeed's bf16 optimizer keeps 16-bit gradients beside their fp32 sums, its
 * fp16 optimizer fp32 gradients of its shard; buckets of 5e8 elements each way; the figure is
 * nvidia-smi's, so context, libraries and NCCL count, and what the allocator has cached.
 *
 * nanotron: norms and gate as aleph-alpha's; sharded cross entropy in fp32, 16-bit gradient;
 * workspaces and buckets 3 GB.
 *
 * torchtitan: 16-bit logits (2), log-softmax (4) and two fp32 gradients (8); since 2025 the loss is
 * compiled: 16-bit logits and gradient and the compiler's working copy.
 *
 * internevo (InternLM/InternEvo, HybridZeroOptimizer.broadcast_params): weights go out by one
 * broadcast from each rank of zero1, and the step waits for them; memory as megatron-core's.
 *
 * deepspeed: ZeRO-3 with the loss in tiles (Arctic long sequences), so no logits; prefetched
 * weights, reduction buckets and workspaces 3 GB.
 */
#include <string.h>

#include "scalemodel/train.h"

static const sm_software_memory known[] = {
    {.software = "megatron-core",
     .loss_bytes = 6,
     .weighted_early = true,
     .operands_narrow = true,
     .reserved_bytes = 1e9,
     .outside_bytes = 2e9},
    {.software = "aleph-alpha",
     .loss_bytes = 16,
     .loss_whole = true,
     .gathered_kept = true,
     .norm_bytes = 6,
     .gate_apart = true,
     .heads_bytes = 4,
     .fragmentation = 0.2,
     .outside_bytes = 2.4e9},
    {.software = "aleph-alpha-rms",
     .loss_bytes = 16,
     .loss_whole = true,
     .gathered_kept = true,
     .gate_apart = true,
     .heads_bytes = 4,
     .fragmentation = 0.2,
     .outside_bytes = 2.4e9},
    {.software = "megatron-deepspeed",
     .loss_bytes = 8,
     .gradient_bytes = 2,
     .shard_bytes = 4,
     .fragmentation = 0.33,
     .reserved_bytes = 4e9,
     .outside_bytes = 4.3e9,
     .outside_counted = true},
    {.software = "nanotron",
     .loss_bytes = 6,
     .norm_bytes = 6,
     .gate_apart = true,
     .fragmentation = 0.1,
     .reserved_bytes = 3e9,
     .outside_bytes = 2e9},
    {.software = "torchtitan", .loss_bytes = 14, .outside_bytes = 2e9},
    {.software = "torchtitan-2025", .loss_bytes = 6, .outside_bytes = 2e9},
    {.software = "internevo",
     .loss_bytes = 6,
     .weighted_early = true,
     .operands_narrow = true,
     .reserved_bytes = 1e9,
     .outside_bytes = 2e9,
     .broadcasts = true},
    {.software = "deepspeed", .fragmentation = 0.05, .reserved_bytes = 3e9, .outside_bytes = 2e9},
};

const sm_software_memory *sm_software_memory_of(const char *software) {
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].software, software) == 0) return &known[i];
    return &known[0];
}
