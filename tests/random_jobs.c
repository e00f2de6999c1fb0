/* Small random jobs: every kind of attention, MLP and layer mix that a plan treats differently. */
#include "unit.h"
#include "model_of.h"
#include "random_jobs.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static int pick(sm_rng *rng, const int *from, size_t n) { return from[sm_rng_below(rng, n)]; }
#define PICK(rng, ...)                                                                             \
    pick(rng, (const int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))

/* A config that grows. */
typedef struct written {
    char text[4096];
    int length;
} written;

static void put(written *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    w->length += vsnprintf(w->text + w->length, sizeof w->text - (size_t)w->length, format, args);
    va_end(args);
}

/* One of two words for each layer. */
static void put_layers(written *w, const char *key, const char *first, const char *second, int L,
                       sm_rng *rng) {
    put(w, ", \"%s\": [", key);
    for (int l = 0; l < L; l++)
        put(w, "%s\"%s\"", l ? ", " : "", sm_rng_below(rng, 2) ? first : second);
    put(w, "]");
}

static void random_attention(written *w, int L, sm_rng *rng) {
    int heads = PICK(rng, 4, 8, 16);
    put(w, ", \"num_attention_heads\": %d", heads);
    if (sm_rng_below(rng, 5) == 0) {
        put(w, ", \"kv_lora_rank\": 128, \"qk_nope_head_dim\": 64, \"qk_rope_head_dim\": 32, "
               "\"v_head_dim\": 64");
        if (sm_rng_below(rng, 2)) put(w, ", \"q_lora_rank\": 192");
        return;
    }
    put(w, ", \"num_key_value_heads\": %d, \"head_dim\": %d", heads / PICK(rng, 1, 2, 4),
        PICK(rng, 64, 128));
    put(w, ", \"qkv_bias\": %s", sm_rng_below(rng, 2) ? "true" : "false");
    if (sm_rng_below(rng, 3)) return;
    put(w, ", \"sliding_window\": 256");
    put_layers(w, "layer_types", "sliding_attention", "full_attention", L, rng);
}

static void random_experts(written *w, int L, sm_rng *rng) {
    put(w, ", \"num_experts\": %d, \"num_experts_per_tok\": %d, \"moe_intermediate_size\": %d",
        PICK(rng, 4, 8, 16), PICK(rng, 1, 2), PICK(rng, 256, 512));
    if (sm_rng_below(rng, 2))
        put(w, ", \"n_shared_experts\": 1, \"shared_expert_intermediate_size\": 512");
    if (sm_rng_below(rng, 2)) put_layers(w, "mlp_layer_types", "dense", "sparse", L, rng);
}

/* Local layers with heads of their own. */
static void random_mimo(written *w, sm_rng *rng) {
    int heads = PICK(rng, 8, 16);
    put(w,
        ", \"model_type\": \"mimo_v2_flash\", \"num_attention_heads\": %d, \"head_dim\": 64, "
        "\"v_head_dim\": 32, \"num_key_value_heads\": %d, \"swa_num_key_value_heads\": %d, "
        "\"n_routed_experts\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 256",
        heads, PICK(rng, 2, 4), PICK(rng, 4, 8));
}

/* A dense MLP beside the experts. */
static void random_gemma4(written *w, sm_rng *rng) {
    put(w,
        ", \"model_type\": \"gemma4_text\", \"num_attention_heads\": 8, \"head_dim\": 64, "
        "\"num_key_value_heads\": %d, \"global_head_dim\": 128, \"sliding_window\": 256, "
        "\"hidden_size_per_layer_input\": 0, \"enable_moe_block\": true, \"num_experts\": 8, "
        "\"top_k_experts\": 2, \"moe_intermediate_size\": 256",
        PICK(rng, 2, 4));
}

/* State spaces and attention in turn, each before a dense MLP or before experts. */
static void random_hybrid(written *w, int L, sm_rng *rng) {
    put(w,
        ", \"model_type\": \"granitemoehybrid\", \"num_attention_heads\": 8, "
        "\"num_key_value_heads\": %d, \"mamba_n_heads\": 16, \"mamba_d_state\": %d, "
        "\"mamba_n_groups\": 1, \"mamba_expand\": 2, \"mamba_d_conv\": 4, "
        "\"shared_intermediate_size\": 512",
        PICK(rng, 2, 4), PICK(rng, 64, 128));
    if (sm_rng_below(rng, 2)) put(w, ", \"num_local_experts\": 8, \"num_experts_per_tok\": 2");
    put_layers(w, "layer_types", "mamba", "attention", L, rng);
}

/* Text seen both ways, or pictures, which have a length of their own. */
static void random_encoder(written *w, sm_rng *rng) {
    put(w, ", \"num_attention_heads\": 8, ");
    if (sm_rng_below(rng, 2)) put(w, "\"model_type\": \"bert\", \"type_vocab_size\": 2");
    else
        put(w, "\"model_type\": \"vit\", \"image_size\": %d, \"patch_size\": 16",
            PICK(rng, 112, 224));
}

void random_model(sm_model *m, sm_rng *rng) {
    written w = {.length = 0};
    int L = 2 + (int)sm_rng_below(rng, 7);
    uint64_t family = sm_rng_below(rng, 10);
    put(&w,
        "{\"hidden_size\": %d, \"num_hidden_layers\": %d, \"vocab_size\": %d, "
        "\"intermediate_size\": %d, \"tie_word_embeddings\": %s, "
        "\"max_position_embeddings\": %d",
        PICK(rng, 512, 1024, 2048), L, PICK(rng, 4096, 32000, 50257), PICK(rng, 1024, 2048, 4096),
        sm_rng_below(rng, 2) ? "true" : "false", family == 3 ? 4096 : 1048576);
    if (family == 0) random_mimo(&w, rng);
    else if (family == 1) random_gemma4(&w, rng);
    else if (family == 2) random_hybrid(&w, L, rng);
    else if (family == 3) random_encoder(&w, rng);
    else {
        put(&w,
            ", \"model_type\": \"transformer\", \"gated_mlp\": %s, "
            "\"use_parallel_residual\": %s",
            sm_rng_below(rng, 3) ? "true" : "false", sm_rng_below(rng, 6) ? "false" : "true");
        random_attention(&w, L, rng);
        if (sm_rng_below(rng, 2)) random_experts(&w, L, rng);
    }
    put(&w, "}");
    *m = model_of("random", w.text);
}

sm_system random_job_system(const char *text) {
    sm_system system;
    sm_error err = {0};
    sm_source source = sm_source_of("system", text);
    if (sm_system_parse(&source, NULL, 0, &system, &err) != SM_OK)
        fail_msg("%s: %s", text, err.sentence);
    return system;
}

void random_job_fill(random_job *r, sm_rng *rng) {
    static const char *const systems[] = {
        "tpu-v5e:2x2",   "tpu-v5e:2x4",  "tpu-v5e:4x4",         "tpu-v5p:2x2x2",   "h100-sxm:1x2",
        "h100-sxm:1x4",  "h100-sxm:1x8", "h100-sxm:2x4",        "h100-sxm:2x8",    "a100-80:1x8",
        "tpu-v5p:2x2x1", "a100-40:2x4",  "tpu-v5e:2x2x2slices", "gb200-nvl72:2x4",
    };
    random_model(&r->model, rng);
    r->system = random_job_system(systems[sm_rng_below(rng, sizeof systems / sizeof systems[0])]);
    double seq = PICK(rng, 256, 512, 1024, 4096);
    double sequences = PICK(rng, 1, 2, 4, 6, 8, 16, 32);
    if (sm_rng_below(rng, 3) == 0) /* a small memory makes fitting a question */
        r->system.chip.memory_bytes.value = PICK(rng, 1, 2, 4) * 5e8;
    r->job = (sm_job){sizeof(sm_job), &r->model, &r->system, seq * sequences, seq, 1e9, 2, NULL};
}

/* A divisor of left. */
static int share(sm_rng *rng, int left) {
    int d = 1 << sm_rng_below(rng, 5);
    return left % d ? 1 : d;
}

static bool has_experts(const sm_model *m) {
    for (int k = 0; k < m->kinds; k++)
        if (m->kind[k].E > 0) return true;
    return false;
}

void random_plan(const random_job *r, sm_rng *rng, sm_plan *p) {
    int left = r->system.chips,
        *degree[] = {&p->data, &p->fsdp, &p->tensor, &p->expert, &p->context, &p->pipeline};
    sm_plan_defaults(p);
    for (int i = 0; i < 8 && left > 1; i++) {
        int *d = degree[sm_rng_below(rng, 6)], n = share(rng, left);
        if (d == &p->expert && !has_experts(&r->model)) continue;
        *d *= n;
        left /= n;
    }
    p->microbatch = PICK(rng, 1, 1, 2, 4);
    p->zero = (int)sm_rng_below(rng, 3);
    p->seq = sm_rng_below(rng, 2);
    p->expert_tensor = sm_rng_below(rng, 2);
    p->context_by = (sm_context_by)sm_rng_below(rng, 3);
    p->recompute = (sm_recompute)sm_rng_below(rng, SM_RECOMPUTE_COUNT);
    p->regather = (sm_regather)sm_rng_below(rng, SM_REGATHER_COUNT);
    p->schedule = (sm_schedule)sm_rng_below(rng, SM_SCHEDULE_COUNT);
    p->virtual_stages = p->schedule == SM_SCHEDULE_INTERLEAVED ? 2 : 1;
    p->offload = (int)sm_rng_below(rng, SM_OFFLOAD_COUNT);
    p->optimizer = (sm_optimizer)sm_rng_below(rng, SM_OPTIMIZER_COUNT);
    p->gradient = sm_rng_below(rng, 2) ? SM_BF16 : SM_FP32;
    for (int i = SM_PLAN_DEGREES - 1; i > 0; i--) {
        int k = (int)sm_rng_below(rng, (uint64_t)i + 1);
        uint8_t swap = p->order[i];
        p->order[i] = p->order[k], p->order[k] = swap;
    }
}

/* ---- a better machine ---- */

bool random_better(sm_system *s, int resource, double times) {
    sm_chip *c = &s->chip;
    bool one = resource >= RANDOM_LINK;
    int level = one ? (resource - RANDOM_LINK) % SM_MAX_LEVELS : 0;
    if (level >= s->levels) return false;
    if (resource >= RANDOM_HOP) s->level[level].hop_latency_s /= times;
    else if (one) s->level[level].bytes_per_s_oneway *= times;
    else if (resource == RANDOM_MEMORY) c->memory_bytes_per_s.value *= times;
    else if (resource == RANDOM_ROOM) c->memory_bytes.value *= times;
    else if (resource == RANDOM_VECTOR) c->vector_flops_per_s.value *= times;
    else if (resource == RANDOM_CLOCK) c->clock_hz.value *= times;
    else if (resource == RANDOM_PCIE) c->pcie_bytes_per_s_oneway.value *= times;
    else if (resource == RANDOM_LAUNCH) c->launch_latency_s.value /= times;
    for (int d = 0; resource == RANDOM_PEAK && d < SM_DTYPE_COUNT; d++)
        c->flops_per_s[d].value *= times;
    for (int l = 0; resource == RANDOM_LINKS && l < s->levels; l++)
        s->level[l].bytes_per_s_oneway *= times;
    return true;
}

void random_system_of_resources(sm_system *system, sm_rng *rng) {
    for (int i = 0; i < RANDOM_RESOURCES; i++)
        if (i != RANDOM_ROOM) random_better(system, i, pow(10, 2 * sm_rng_unit(rng) - 1));
}

const char *random_resource_name(int resource, char *out, size_t size) {
    static const char *const names[] = {"memory", "room", "peak",   "vector unit",
                                        "clock",  "PCIe", "launch", "links"};
    if (resource < RANDOM_LINK) snprintf(out, size, "%s", names[resource]);
    else
        snprintf(out, size, "%s of level %d", resource < RANDOM_HOP ? "links" : "hops",
                 (resource - RANDOM_LINK) % SM_MAX_LEVELS);
    return out;
}
