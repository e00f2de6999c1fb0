/* A rough count of what a measured row must do, good to a factor of two or three: enough to see
 * that a time is a thousand times off. The predictions of src/truth are the careful count. */
#include "truth_warnings.h"

#include <math.h>

double truth_most_flops_per_s(const sm_chip *chip) {
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

/* Forward and backward: 6 FLOPs per token and parameter that it meets (attention, MLP or the
 * experts it is sent to, output head). */
static double training_flops(const sm_training_row *t) {
    const double D = t->model.d_model, head = t->model.d_head;
    const double q = t->model.n_heads * head, kv = t->model.n_kv_heads * head;
    double width = t->model.d_ff;
    if (t->model.n_experts > 0)
        width =
            (double)t->model.d_ff_expert * (t->model.experts_per_token + t->model.shared_experts);
    double attention = D * (2 * (q > 0 ? q : D) + 2 * kv);
    double mlp = (t->model.gated == SM_NO ? 2 : 3) * D * width;
    double params = t->model.layers * (attention + mlp) + D * t->model.vocab;
    double tokens = t->global_batch_sequences * t->seq_len;
    bool known = t->model.layers > 0 && D > 0 && t->chips > 0;
    return known ? 6 * params * tokens / t->chips : 0;
}

truth_work truth_work_of(const sm_truth_row *row, const sm_chip *chip) {
    truth_work w = {.flops_per_s = truth_most_flops_per_s(chip),
                    .bytes_per_s = chip->memory_bytes_per_s.value};
    const sm_gemm_row *g = &row->of.gemm;
    const sm_attention_row *a = &row->of.attention;
    const sm_collective_row *c = &row->of.collective;
    switch (row->kind) {
    case SM_TRUTH_GEMM: /* half a byte an element: no type in use is smaller */
        w.flops = 2 * g->m * g->n * g->k;
        w.bytes = 0.5 * g->n * g->k;
        break;
    case SM_TRUTH_ATTENTION: /* QK^T and PV, half of it under a causal mask; one pass over K and V
                              */
        w.flops =
            4 * a->batch * a->q_len * (a->kv_len - 0.5 * (a->q_len - 1)) * a->n_heads * a->d_head;
        w.bytes = a->batch * a->kv_len * a->n_kv_heads * a->d_head;
        break;
    case SM_TRUTH_COLLECTIVE: /* a ring moves (ranks-1)/ranks of the buffer out of each chip */
        w.bytes = c->ranks > 1 ? c->bytes * (1 - 1.0 / c->ranks) : 0;
        w.bytes_per_s = link_bytes_per_s(chip);
        break;
    case SM_TRUTH_MEMOP: w.bytes = row->of.memop.bytes; break;
    case SM_TRUTH_TRAINING: w.flops = training_flops(&row->of.training); break;
    case SM_TRUTH_INFERENCE:
    case SM_TRUTH_KIND_COUNT: break;
    }
    w.flops = w.flops > 0 ? w.flops : 0; /* NaN: not stated */
    w.bytes = w.bytes > 0 ? w.bytes : 0;
    return w;
}

double truth_work_seconds(const truth_work *w) {
    double math = w->flops_per_s > 0 ? w->flops / w->flops_per_s : 0;
    double move = w->bytes_per_s > 0 ? w->bytes / w->bytes_per_s : 0;
    return fmax(math, move);
}
