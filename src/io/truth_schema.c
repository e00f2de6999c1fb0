/* The columns and keys of measured rows. */
#include "truth_schema.h"

#define AT(member) offsetof(truth_draft, member)
#define ROW(member) offsetof(truth_draft, row.member)
#define TRAINING(member) offsetof(truth_draft, row.of.training.member)
#define COUNT_OF(list) (sizeof(list) / sizeof(list)[0])

static const truth_field gemm[] = {
    {"id", TRUTH_TEXT, ROW(id)},        {"chip", TRUTH_TEXT, ROW(chip)},
    {"source", TRUTH_LABEL, AT(label)}, {"dtype", TRUTH_TEXT, ROW(of.gemm.dtype)},
    {"m", TRUTH_SIZE, ROW(of.gemm.m)},  {"n", TRUTH_SIZE, ROW(of.gemm.n)},
    {"k", TRUTH_SIZE, ROW(of.gemm.k)},  {"time_us", TRUTH_TIME, AT(time_us)},
};

static const truth_field attention[] = {
    {"id", TRUTH_TEXT, ROW(id)},
    {"chip", TRUTH_TEXT, ROW(chip)},
    {"source", TRUTH_LABEL, AT(label)},
    {"phase", TRUTH_TEXT, ROW(of.attention.phase)},
    {"dtype", TRUTH_TEXT, ROW(of.attention.dtype)},
    {"batch", TRUTH_SIZE, ROW(of.attention.batch)},
    {"q_len", TRUTH_SIZE, ROW(of.attention.q_len)},
    {"kv_len", TRUTH_SIZE, ROW(of.attention.kv_len)},
    {"n_heads", TRUTH_COUNT, ROW(of.attention.n_heads)},
    {"n_kv_heads", TRUTH_COUNT, ROW(of.attention.n_kv_heads)},
    {"d_head", TRUTH_COUNT, ROW(of.attention.d_head)},
    {"time_us", TRUTH_TIME, AT(time_us)},
};

static const truth_field collective[] = {
    {"id", TRUTH_TEXT, ROW(id)},
    {"system", TRUTH_TEXT, ROW(chip)},
    {"source", TRUTH_LABEL, AT(label)},
    {"op", TRUTH_TEXT, ROW(of.collective.op)},
    {"ranks", TRUTH_COUNT, ROW(of.collective.ranks)},
    {"nodes", TRUTH_COUNT, ROW(of.collective.nodes)},
    {"bytes", TRUTH_NUMBER, ROW(of.collective.bytes)},
    {"busbw_GBps", TRUTH_NUMBER, ROW(of.collective.busbw_GBps)},
    {"time_us", TRUTH_TIME, AT(time_us)},
};

static const truth_field memop[] = {
    {"id", TRUTH_TEXT, ROW(id)},
    {"chip", TRUTH_TEXT, ROW(chip)},
    {"source", TRUTH_LABEL, AT(label)},
    {"op", TRUTH_TEXT, ROW(of.memop.op)},
    {"dtype", TRUTH_TEXT, ROW(of.memop.dtype)},
    {"rows", TRUTH_SIZE, ROW(of.memop.rows)},
    {"cols", TRUTH_SIZE, ROW(of.memop.cols)},
    {"bytes", TRUTH_SIZE, ROW(of.memop.bytes)},
    {"time_us", TRUTH_TIME, AT(time_us)},
};

static const truth_field inference[] = {
    {"id", TRUTH_TEXT, ROW(id)},
    {"chip", TRUTH_TEXT, ROW(chip)},
    {"source.title", TRUTH_TEXT, ROW(source)},
    {"source", TRUTH_LABEL, AT(label)},
};

static const truth_field training[] = {
    {"id", TRUTH_TEXT, ROW(id)},
    {"source.title", TRUTH_TEXT, TRAINING(title)},
    {"source", TRUTH_LABEL, AT(label)},
    {"year", TRUTH_COUNT, TRAINING(year)},
    {"task", TRUTH_TEXT, TRAINING(task)},
    {"quality", TRUTH_TEXT, TRAINING(quality)},
    {"duplicate_of", TRUTH_TEXT, TRAINING(duplicate_of)},
    {"flags", TRUTH_WORDS, TRAINING(flags)},
    {"model.name", TRUTH_TEXT, TRAINING(model.name)},
    {"model.notes", TRUTH_TEXT, TRAINING(model.notes)},
    {"model.layers", TRUTH_COUNT, TRAINING(model.layers)},
    {"model.d_model", TRUTH_COUNT, TRAINING(model.d_model)},
    {"model.d_ff", TRUTH_COUNT, TRAINING(model.d_ff)},
    {"model.n_heads", TRUTH_COUNT, TRAINING(model.n_heads)},
    {"model.n_kv_heads", TRUTH_COUNT, TRAINING(model.n_kv_heads)},
    {"model.d_head", TRUTH_COUNT, TRAINING(model.d_head)},
    {"model.vocab", TRUTH_COUNT, TRAINING(model.vocab)},
    {"model.n_experts", TRUTH_COUNT, TRAINING(model.n_experts)},
    {"model.experts_per_token", TRUTH_COUNT, TRAINING(model.experts_per_token)},
    {"model.d_ff_expert", TRUTH_COUNT, TRAINING(model.d_ff_expert)},
    {"model.shared_experts", TRUTH_COUNT, TRAINING(model.shared_experts)},
    {"model.n_dense_layers", TRUTH_COUNT, TRAINING(model.n_dense_layers)},
    {"model.mla.q_lora_rank", TRUTH_COUNT, TRAINING(model.q_rank)},
    {"model.mla.kv_lora_rank", TRUTH_COUNT, TRAINING(model.kv_rank)},
    {"model.mla.qk_nope_head_dim", TRUTH_COUNT, TRAINING(model.qk_nope)},
    {"model.mla.qk_rope_head_dim", TRUTH_COUNT, TRAINING(model.qk_rope)},
    {"model.mla.v_head_dim", TRUTH_COUNT, TRAINING(model.v_head)},
    {"model.gated", TRUTH_FLAG, TRAINING(model.gated)},
    {"model.tied", TRUTH_FLAG, TRAINING(model.tied)},
    {"model.params_b", TRUTH_NUMBER, TRAINING(model.params_b)},
    {"model.n_mtp_layers", TRUTH_COUNT, TRAINING(model.n_mtp_layers)},
    {"hardware.chip", TRUTH_TEXT, ROW(chip)},
    {"hardware.chips", TRUTH_COUNT, TRAINING(chips)},
    {"hardware.devices", TRUTH_COUNT, TRAINING(devices)},
    {"hardware.chips_per_node", TRUTH_COUNT, TRAINING(chips_per_node)},
    {"hardware.intra_node_link", TRUTH_TEXT, TRAINING(intra_node_link)},
    {"hardware.inter_node_network", TRUTH_TEXT, TRAINING(inter_node_network)},
    {"hardware.notes", TRUTH_TEXT, TRAINING(hardware_notes)},
    {"precision", TRUTH_TEXT, TRAINING(precision)},
    {"precision_class", TRUTH_TEXT, TRAINING(precision_class)},
    {"seq_len", TRUTH_SIZE, TRAINING(seq_len)},
    {"global_batch_sequences", TRUTH_NUMBER, TRAINING(global_batch_sequences)},
    {"microbatch", TRUTH_NUMBER, TRAINING(microbatch)},
    {"per_device_batch_size", TRUTH_NUMBER, TRAINING(per_device_batch_size)},
    {"tp", TRUTH_COUNT, TRAINING(tp)},
    {"cp", TRUTH_COUNT, TRAINING(cp)},
    {"pp", TRUTH_COUNT, TRAINING(pp)},
    {"vp", TRUTH_COUNT, TRAINING(vp)},
    {"ep", TRUTH_COUNT, TRAINING(ep)},
    {"dp", TRUTH_COUNT, TRAINING(dp)},
    {"sp", TRUTH_FLAG, TRAINING(sp)},
    {"fsdp", TRUTH_FLAG, TRAINING(fsdp)},
    {"zero_stage", TRUTH_STAGE, TRAINING(zero_stage)},
    {"recompute", TRUTH_TEXT, TRAINING(recompute)},
    {"recompute_detail", TRUTH_TEXT, TRAINING(recompute_detail)},
    {"attention_kernel", TRUTH_TEXT, TRAINING(attention_kernel)},
    {"flash_attention", TRUTH_FLAG, TRAINING(flash_attention)},
    {"optimizer", TRUTH_TEXT, TRAINING(optimizer)},
    {"schedule", TRUTH_TEXT, TRAINING(schedule)},
    {"schedule_detail", TRUTH_TEXT, TRAINING(schedule_detail)},
    {"notes", TRUTH_TEXT, TRAINING(notes)},
    {"measured.tokens_per_s_per_chip", TRUTH_TIME, TRAINING(tokens_per_s_per_chip)},
    {"measured.model_tflops_per_chip", TRUTH_NUMBER, TRAINING(model_tflops_per_chip)},
    {"measured.hw_tflops_per_chip", TRUTH_NUMBER, TRAINING(hw_tflops_per_chip)},
    {"measured.mfu", TRUTH_NUMBER, TRAINING(mfu)},
    {"measured.hfu", TRUTH_NUMBER, TRAINING(hfu)},
    {"measured.step_time_s", TRUTH_TIME, TRAINING(step_time_s)},
    {"measured.peak_memory_gib", TRUTH_NUMBER, AT(peak_gib)},
    {"measured.peak_memory_gb_as_printed", TRUTH_NUMBER, AT(peak_gb)},
    {"derived.step_time_s_from_tokens", TRUTH_TIME, AT(time_from_tokens_s)},
    {"derived.step_time_s_from_tflops", TRUTH_TIME, AT(time_from_flops_s)},
};
_Static_assert(COUNT_OF(training) <= TRUTH_MAX_FIELDS, "the longest schema fits");

#define FIELDS(list) list, COUNT_OF(list)

const truth_schema truth_schemas[SM_TRUTH_KIND_COUNT] = {
    {SM_TRUTH_TRAINING, {"hardware.chip"}, NULL, FIELDS(training)},
    {SM_TRUTH_INFERENCE, {"input_len", "output_len"}, NULL, FIELDS(inference)},
    {SM_TRUTH_GEMM, {"m", "n", "k"}, "time_us", FIELDS(gemm)},
    {SM_TRUTH_ATTENTION, {"q_len", "kv_len"}, "time_us", FIELDS(attention)},
    {SM_TRUTH_COLLECTIVE, {"op", "ranks"}, "time_us", FIELDS(collective)},
    {SM_TRUTH_MEMOP, {"op", "bytes"}, "time_us", FIELDS(memop)},
};
