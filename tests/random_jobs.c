/* Small random jobs: every kind of attention, MLP and layer mix that a plan treats differently. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "random_jobs.h"
#include <stdio.h>
#include <string.h>

static int pick(sm_rng *rng, const int *from, size_t n) { return from[sm_rng_below(rng, n)]; }
#define PICK(rng, ...)                                                                             \
    pick(rng, (const int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))

static void random_attention(sm_layer_kind *k, sm_rng *rng) {
    k->N = PICK(rng, 4, 8, 16);
    if (sm_rng_below(rng, 5) == 0) {
        k->attention = SM_ATTENTION_MLA;
        k->K = k->N;
        k->q_rank = sm_rng_below(rng, 2) ? 192 : 0;
        k->kv_rank = 128;
        k->nope_H = 64, k->rope_H = 32, k->V_head = 64;
        return;
    }
    k->K = k->N / PICK(rng, 1, 2, 4);
    k->H = k->V_head = PICK(rng, 64, 128);
    k->qkv_bias = sm_rng_below(rng, 2);
    k->window = sm_rng_below(rng, 4) == 0 ? 256 : 0;
}

static void random_kind(sm_layer_kind *k, sm_rng *rng, bool sparse) {
    memset(k, 0, sizeof *k);
    snprintf(k->name, sizeof k->name, sparse ? "moe" : "dense");
    random_attention(k, rng);
    k->norms = 2;
    k->parallel = sm_rng_below(rng, 6) == 0;
    k->mlp = sm_rng_below(rng, 3) ? SM_MLP_GATED : SM_MLP_PLAIN;
    if (!sparse || sm_rng_below(rng, 4) == 0) k->F = PICK(rng, 1024, 2048, 4096);
    if (!sparse) return;
    k->E = PICK(rng, 4, 8, 16);
    k->k_top = PICK(rng, 1, 2);
    k->F_expert = PICK(rng, 256, 512);
    k->E_shared = sm_rng_below(rng, 2) ? 1 : 0;
    k->F_shared = k->E_shared ? 512 : 0;
}

void random_model(sm_model *m, sm_rng *rng) {
    sm_error err = {0};
    memset(m, 0, sizeof *m);
    snprintf(m->name, sizeof m->name, "random");
    m->note = "";
    m->D = PICK(rng, 512, 1024, 2048);
    m->L = 2 + (int)sm_rng_below(rng, 7);
    m->V = PICK(rng, 4096, 32000, 50257);
    m->tied = sm_rng_below(rng, 2);
    m->norm = SM_NORM_RMS;
    m->final_norm = m->causal = true;
    m->max_seq = 1 << 20;
    bool sparse = sm_rng_below(rng, 2);
    m->kinds = 1 + (int)sm_rng_below(rng, 2);
    for (int k = 0; k < m->kinds; k++) random_kind(&m->kind[k], rng, sparse && k == m->kinds - 1);
    for (int l = 0; l < m->L; l++) m->layer[l] = (uint8_t)sm_rng_below(rng, (uint64_t)m->kinds);
    if (sm_model_check(m, &err) != SM_OK) fail_msg("%s", err.sentence);
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
        "tpu-v5e:2x2",  "tpu-v5e:2x4",  "tpu-v5e:4x4",   "tpu-v5p:2x2x2",
        "h100-sxm:1x2", "h100-sxm:1x4", "h100-sxm:1x8",  "h100-sxm:2x4",
        "h100-sxm:2x8", "a100-80:1x8",  "tpu-v5p:2x2x1", "a100-40:2x4",
    };
    random_model(&r->model, rng);
    r->system = random_job_system(systems[sm_rng_below(rng, sizeof systems / sizeof systems[0])]);
    double seq = PICK(rng, 256, 512, 1024, 4096);
    double sequences = PICK(rng, 1, 2, 4, 6, 8, 16, 32);
    if (sm_rng_below(rng, 3) == 0) /* a small memory makes fitting a question */
        r->system.chip.memory_bytes.value = PICK(rng, 1, 2, 4) * 5e8;
    r->job = (sm_job){&r->model, &r->system, seq * sequences, seq, 1e9, 2};
}

/* A divisor of left. */
static int share(sm_rng *rng, int left) {
    int d = 1 << sm_rng_below(rng, 5);
    return left % d ? 1 : d;
}

void random_plan(const random_job *r, sm_rng *rng, sm_plan *p) {
    int left = r->system.chips,
        *degree[] = {&p->data, &p->fsdp, &p->tensor, &p->expert, &p->context, &p->pipeline};
    sm_plan_defaults(p);
    for (int i = 0; i < 8 && left > 1; i++) {
        int *d = degree[sm_rng_below(rng, 6)], n = share(rng, left);
        if (d == &p->expert && r->model.kind[r->model.kinds - 1].E == 0) continue;
        *d *= n;
        left /= n;
    }
    p->microbatch = PICK(rng, 1, 1, 2, 4);
    p->zero = (int)sm_rng_below(rng, 3);
    p->seq = sm_rng_below(rng, 2);
    p->expert_tensor = sm_rng_below(rng, 2);
    p->context_by = (sm_context_by)sm_rng_below(rng, 3);
    p->recompute = (sm_recompute)sm_rng_below(rng, SM_RECOMPUTE_COUNT);
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
