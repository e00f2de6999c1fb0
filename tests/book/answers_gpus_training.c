/* The rooflines of training on GPUs: part 12, "How does LLM scaling work on GPUs". */
#include "model_of.h"
#include "answers_gpus.h"
#include "thresholds.h"
#include "partition.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE = 0, LEAF = 1, MANY = 8192 };

sm_system book_gpu_limit(const char *name, int level) {
    char text[64];
    sm_chip chip = book_chip(name);
    chip.tree[level].degree = MANY;
    if (level == NODE) snprintf(text, sizeof text, "%s:1x%d", name, MANY);
    else snprintf(text, sizeof text, "%s:%dx%d", name, MANY, chip.tree[NODE].degree);
    return book_system_of(&chip, text);
}

/* Seconds per byte of an all-gather over all chips, as one level alone would take. */
static double level_s(const sm_system *system, int level) {
    char mesh[32];
    snprintf(mesh, sizeof mesh, "X=%d", system->chips);
    sm_curve curve = book_curve(system, SM_ALL_GATHER, mesh, "X");
    return book_line(&curve, NULL).level_s_per_byte[level];
}

static double limit_s(const char *chip, int level) {
    sm_system system = book_gpu_limit(chip, level);
    return level_s(&system, level);
}

static threshold of_block(int F, double flops_per_s) {
    sm_model model = book_block(8192, F);
    return (threshold){book_layer(&model, 1), flops_per_s, 0, 0};
}

/* Tokens per chip under fsdp, bound by one level. */
static double data_critical(const char *chip, int level, double flops_per_s) {
    threshold t = of_block(32768, flops_per_s);
    t.fsdp_s_per_byte = limit_s(chip, level);
    return book_fsdp_critical(&t);
}
static double h100_out(void) { return data_critical("h100-sxm", LEAF, 990e12); }

void gpu_data(book_item *item) {
    book_is(item, "in a node", data_critical("h100-sxm", NODE, 990e12), 2200);
    book_is(item, "beyond", h100_out(), 2475);
}

void gpu_data_llama(book_item *item) { book_is(item, "tokens", h100_out() * 16000, 39600000); }

static double h800_critical(double nvlink) {
    sm_chip chip = book_chip("h800");
    chip.tree[NODE].degree = MANY;
    book_give(&chip.tree[NODE].child_bytes_per_s_oneway, nvlink);
    book_give(&chip.link_bytes_per_s_oneway, nvlink);
    sm_system node = book_system_of(&chip, "h800:1x8192");
    threshold t = of_block(32768, 990e12);
    t.fsdp_s_per_byte = level_s(&node, NODE);
    return book_fsdp_critical(&t);
}

void gpu_data_deepseek(book_item *item) {
    sm_system cluster = book_system("h800:256x8");
    book_is(item, "tokens per GPU at 300 GB/s", h800_critical(300e9), 3300);
    book_is(item, "tokens", h800_critical(300e9) * cluster.chips, 6758400);
    book_is(item, "tokens per GPU at 200 GB/s", h800_critical(200e9), 4950);
}

/* A layer of experts with next to no attention. */
static sm_model experts(int E, int k, int F) {
    const char *members =
        sm_arena_printf(models_arena(), "\"gated_mlp\": false, %s", book_experts(E, k, F));
    return book_transformer_with((const int[]){8192, F, 1, 1, 1, 1, 1}, members);
}

void gpu_data_experts(book_item *item) {
    sm_model model = experts(128, 4, 2880);
    threshold t = {book_layer(&model, 1), 990e12, limit_s("h100-sxm", LEAF), 0};
    book_is(item, "tokens per GPU", book_fsdp_critical(&t), 79200);
}

void gpu_data_2_nodes(book_item *item) {
    sm_system two = book_system("h100-sxm:2x8");
    threshold t = of_block(32768, 990e12);
    t.fsdp_s_per_byte = level_s(&two, LEAF);
    book_is(item, "tokens per GPU", book_fsdp_critical(&t), 1237.5);
}

static double tensor_critical(int F, double flops_per_s, double s_per_byte) {
    threshold t = of_block(F, flops_per_s);
    t.tensor_s_per_byte = s_per_byte;
    return book_tensor_critical(&t);
}

/* The width of the MLP at which tensor parallelism over whole nodes is bound by their links. */
static double least_width(const char *text) {
    enum { F = 8192, TOKENS = 4096 };
    sm_system nodes = book_system(text);
    threshold t = of_block(F, 990e12);
    t.tensor_s_per_byte = level_s(&nodes, LEAF);
    return F * book_tensor_s(&t, 1, nodes.chips, TOKENS) / book_math_s(&t, 1, nodes.chips, TOKENS);
}

void gpu_tensor(book_item *item) {
    book_is(item, "in a node", tensor_critical(28000, 990e12, limit_s("h100-sxm", NODE)), 12.7273);
    book_is(item, "beyond", tensor_critical(28000, 990e12, limit_s("h100-sxm", LEAF)), 11.3131);
    /* the least width is linear in the degree: 2475 (Y-8) */
    double two = least_width("h100-sxm:2x8"), three = least_width("h100-sxm:3x8");
    book_is(item, "over two nodes and a part", 16 + 8 * (28000 - two) / (three - two), 19.3131);
}

/* The width of an expert at which the all-to-alls of Z-way expert parallelism, each token sent once
 * to each node that has one of its k experts, take as long as the experts' matmuls. */
static double expert_width(int Z, int E, int k) {
    enum { F = 2048, TOKENS = 4096 };
    char text[32], mesh[32];
    sm_model model = experts(E, k, F);
    const sm_partition *layer = book_layer(&model, 1);
    book_degrees d = book_ones();
    d.axis[SM_AXIS_EXPERT] = Z;
    snprintf(text, sizeof text, "h100-sxm:%dx8", Z / 8);
    snprintf(mesh, sizeof mesh, "X=%d", Z);
    sm_system system = book_system(text);
    sm_curve curve = book_curve(&system, SM_ALL_TO_ALL, mesh, "X");
    double sent = sm_ragged_fraction(Z / 8, k) * (Z / 8) / k; /* of k copies */
    double s = book_line(&curve, NULL).level_s_per_byte[LEAF] * (sent < 1 ? sent : 1);
    sm_axes axis = SM_BIT(SM_AXIS_EXPERT);
    double bytes = book_comm_bytes(layer, SM_PHASE_FORWARD, SM_ALL_TO_ALL, axis, 2, &d, TOKENS);
    double flops = book_linear_flops(layer, SM_PHASE_FORWARD, true, &d, TOKENS);
    return F * bytes * s / (flops / 990e12);
}

void gpu_experts(book_item *item) {
    book_is(item, "width for Z=16, k=8", expert_width(16, 256, 8), 2475);
    book_is(item, "width for Z much larger than k", expert_width(8192, 8192, 2), 19800);
}

/* Microbatches pass a pipeline of sends alone: (microbatches + stages - 2) hops each way. */
void gpu_pipeline(book_item *item) {
    for (int stages = 2; stages <= 16; stages *= 2)
        for (int microbatches = 4; microbatches <= 64; microbatches *= 4) {
            sm_chunk_time chunk[16];
            for (int i = 0; i < 16; i++) chunk[i] = (sm_chunk_time){0, 0, 0};
            sm_pipeline p = {SM_SCHEDULE_GPIPE, stages, 1, microbatches, chunk, 1};
            void *scratch = malloc(sm_pipeline_scratch(&p, false));
            double hops = sm_pipeline_simulate(&p, scratch, NULL).total_s;
            free(scratch);
            book_exactly(item, "hops forward and backward", hops, 2 * (microbatches + stages - 2));
        }
}

static sm_plan plan_of(const char *text) {
    sm_plan plan;
    sm_source source = sm_source_of("plan", text);
    sm_plan_defaults(&plan);
    if (sm_plan_parse(&source, &plan, NULL) != SM_OK) memset(&plan, 0, sizeof plan);
    return plan;
}

void gpu_deepseek(book_item *item) {
    sm_model model = book_model("deepseek-v3");
    sm_plan plan = plan_of("expert=64,pipeline=16,data=2,zero=1");
    double tokens = book_sequences(&model, 62914560, 4096) * 4096;
    book_exactly(item, "tokens", tokens, 62914560);
    book_exactly(item, "per GPU", tokens / (plan.expert * plan.pipeline * plan.data), 30720);
    book_exactly(item, "model-parallel degree", plan.expert * plan.pipeline, 1024);
}

void gpu_llama(book_item *item) {
    sm_plan plan = plan_of("tensor=8,pipeline=16,data=128");
    sm_system cluster = book_system("h100-sxm:2048x8");
    book_exactly(item, "GPUs", plan.tensor * plan.pipeline * plan.data, 16384);
    book_exactly(item, "of a system", cluster.chips, 16384);
    book_is(item, "tokens per GPU", book_local_bytes("int8[B_X]", "X=16384", "B=16M"), 976.562);
}

void gpu_b200(book_item *item) {
    double F = 32768;
    threshold t = of_block(32768, 2250e12);
    t.tensor_s_per_byte = limit_s("b200", NODE);
    book_is(item, "tensor: width per degree", F / book_tensor_critical(&t), 2500);
    book_is(item, "data", data_critical("b200", LEAF, 2250e12), 5625);
    book_is(item, "data, GB200 NVL72", data_critical("gb200-nvl72", LEAF, 2250e12), 625);
}

void gpu_nvl72(book_item *item) {
    book_is(item, "node", data_critical("gb200-nvl72", NODE, 2250e12), 2500);
    book_is(item, "scale-out", data_critical("gb200-nvl72", LEAF, 2250e12), 625);
}

static double state_70b(void) {
    sm_model model = book_of_params(70e9);
    return book_state_bytes(&model, "zero=0,optimizer=adam-no-master");
}

void gpu_70b_memory(book_item *item) {
    sm_chip chip = book_chip("h100-sxm");
    book_give(&chip.memory_bytes, 80e9);
    book_is(item, "GPUs", state_70b() / chip.memory_bytes.value, 8.75);
}

void gpu_70b_days(book_item *item) {
    sm_model model = book_of_params(70e9);
    sm_chip chip = book_chip("h100-sxm");
    book_give(&chip.flops_per_s[SM_BF16], 990e12);
    double s = book_run_s(&model, &chip, 4096, 15e12, 0.45);
    book_is(item, "seconds", s, 3452490);
    book_is(item, "days", s / 86400, 39.9594);
}

void gpu_70b_tensor(book_item *item) {
    book_is(item, "degree", tensor_critical(28672, 990e12, limit_s("h100-sxm", NODE)), 13.0327);
}

/* Tensor parallelism shards weights and their optimizer state alike. */
void gpu_70b_per_gpu(book_item *item) {
    sm_model model = book_model("llama-3.1-70b");
    sm_system node = book_system("h100-sxm:1x8");
    sm_price_of_plan price;
    bool ok =
        book_price(&model, &node, 4096, 4096, "tensor=8,zero=0,optimizer=adam-no-master", &price);
    double per_param =
        (price.memory.params + price.memory.optimizer) / sm_model_params(&model).total;
    book_is(item, "GB", ok ? per_param * 70e9 / 1e9 : NAN, 87.5);
}

void gpu_70b_tokens(book_item *item) {
    double tokens = book_local_bytes("int8[B_X]", "X=4096", "B=4M");
    book_is(item, "tokens per GPU", tokens, 976.562);
    book_holds(item, "ZeRO-3 alone is bound by the network", tokens < h100_out());
}

/* With pipelines of p stages a layer has 1/p of the GPUs and all the tokens: tokens per GPU of it
 * are p times as many. */
static double pipelined_critical(const char *text) {
    sm_plan plan = plan_of(text);
    return h100_out() / plan.pipeline;
}

void gpu_70b_pipeline(book_item *item) {
    book_is(item, "tokens per GPU", pipelined_critical("pipeline=8"), 309.375);
}

void gpu_megatron(book_item *item) {
    book_exactly(item, "16B", book_local_bytes("int8[S_X,T]", "X=192", "S=192,T=4096"), 4096);
    book_exactly(item, "70B", book_local_bytes("int8[S_X,T]", "X=768", "S=384,T=4096"), 2048);
    book_exactly(item, "314B", book_local_bytes("int8[S_X,T]", "X=3072", "S=1536,T=4096"), 2048);
    book_is(item, "threshold", h100_out(), 2475);
    book_is(item, "threshold with 2 stages", pipelined_critical("pipeline=2"), 1237.5);
    book_is(item, "threshold with 8 stages", pipelined_critical("pipeline=8"), 309.375);
}

void gpu_gb200_gain(book_item *item) {
    book_is(item, "gain", h100_out() / data_critical("gb200-nvl72", LEAF, 2250e12), 3.96);
}
