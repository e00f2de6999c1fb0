/* A rough count of what a measured row must do, good to a factor of two or three: enough to see
 * that a time is a thousand times off. The predictions of src/truth are the careful count. */
#include "truth_warnings.h"

#include <math.h>

static double most_flops_per_s(const sm_chip *chip) {
    double most = 0;
    for (int d = 0; d < SM_DTYPE_COUNT; d++) most = fmax(most, chip->flops_per_s[d].value);
    return most;
}

/* What leaves a chip over all its links. */
static double link_bytes_per_s(const sm_chip *chip) {
    if (chip->fabric == SM_FABRIC_SWITCH && chip->tree_levels > 0)
        return chip->tree[0].child_bytes_per_s_oneway.value;
    return chip->link_bytes_per_s_oneway.value * chip->links_per_chip;
}

static double or_zero(double stated) { return stated > 0 ? stated : 0; }

/* Half a byte an element: no type in use is smaller. */
static truth_work gemm_work(const sm_gemm_row *g) {
    return (truth_work){.flops = 2 * g->m * g->n * g->k, .bytes = 0.5 * g->n * g->k};
}

/* QK^T and PV, half of it under a causal mask; one pass over the keys and values. */
static truth_work attention_work(const sm_attention_row *a) {
    double pairs = a->batch * a->q_len * (a->kv_len - 0.5 * (a->q_len - 1));
    double cache = 2 * a->batch * a->kv_len * a->n_kv_heads * a->d_head;
    return (truth_work){.flops = 4 * pairs * a->n_heads * a->d_head, .bytes = 0.5 * cache};
}

/* A ring moves (ranks-1)/ranks of the buffer out of each chip at least. */
static truth_work collective_work(const sm_collective_row *c) {
    double share = c->ranks > 1 ? 1 - 1.0 / c->ranks : 0;
    return (truth_work){.bytes = c->bytes * share};
}

/* Parameters that a token meets: attention, MLP or the experts it is sent to, output head. */
static double active_params(const sm_training_row *t) {
    double D = t->model.d_model, head = t->model.d_head ? t->model.d_head : 0;
    double q = t->model.n_heads * head, kv = t->model.n_kv_heads * head;
    double attention = D * (2 * (q > 0 ? q : D) + 2 * kv);
    double width =
        t->model.n_experts > 0
            ? (double)t->model.d_ff_expert * (t->model.experts_per_token + t->model.shared_experts)
            : (double)t->model.d_ff;
    double mlp = (t->model.gated == SM_NO ? 2 : 3) * D * width;
    return t->model.layers * (attention + mlp) + D * t->model.vocab;
}

/* 6 FLOPs per parameter and token, forward and backward. */
static truth_work training_work(const sm_training_row *t) {
    double tokens = or_zero(t->global_batch_sequences * t->seq_len);
    bool known = t->model.layers > 0 && t->model.d_model > 0 && t->chips > 0;
    return (truth_work){.flops = known ? 6 * active_params(t) * tokens / t->chips : 0};
}

truth_work truth_work_of(const sm_truth_row *row, const sm_chip *chip) {
    truth_work w = {0, 0, 0, 0};
    switch (row->kind) {
    case SM_TRUTH_GEMM: w = gemm_work(&row->of.gemm); break;
    case SM_TRUTH_ATTENTION: w = attention_work(&row->of.attention); break;
    case SM_TRUTH_COLLECTIVE: w = collective_work(&row->of.collective); break;
    case SM_TRUTH_MEMOP: w.bytes = row->of.memop.bytes; break;
    case SM_TRUTH_TRAINING: w = training_work(&row->of.training); break;
    case SM_TRUTH_INFERENCE:
    case SM_TRUTH_KIND_COUNT: break;
    }
    w.flops = or_zero(w.flops);
    w.bytes = or_zero(w.bytes);
    w.flops_per_s = most_flops_per_s(chip);
    w.bytes_per_s =
        row->kind == SM_TRUTH_COLLECTIVE ? link_bytes_per_s(chip) : chip->memory_bytes_per_s.value;
    return w;
}

double truth_work_seconds(const truth_work *w) {
    double math = w->flops_per_s > 0 ? w->flops / w->flops_per_s : 0;
    double move = w->bytes_per_s > 0 ? w->bytes / w->bytes_per_s : 0;
    return fmax(math, move);
}
