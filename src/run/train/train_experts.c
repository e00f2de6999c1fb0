/* Routed experts on local blocks. The slots of an expert on a chip are the chip's own tokens: row n
 * of [E,C,D] is token n where it chose the expert and zero elsewhere, so that nothing is ever
 * dropped and routing needs no sorting. A choice is the share of each expert, 0 of those not
 * chosen: scores s, the softmax or the sigmoid of the router's logits; the A best of s, or of s + b
 * where the router's choice is corrected (DeepSeek-V3, arXiv 2412.19437, eq. 16), of the best
 * groups where there are groups; their s, over their sum where shares are normed, times a constant.
 */

#include "train_parts.h"

enum { MOST_EXPERTS = SM_RUN_EXPERTS };

typedef struct choosing {
    const train_numbers *numbers;
    size_t experts, groups, best;
    int k;
    const float *correction; /* NULL: none */
    float score[MOST_EXPERTS], order[MOST_EXPERTS], share[MOST_EXPERTS];
    float sum; /* of the chosen scores */
} choosing;

static choosing choosing_of(const train_call *c, size_t experts, const float *correction) {
    const sm_text_lines *l = c->lines;
    const sm_text_array *made = &l->array[c->line->result[0].array];
    choosing r = {.numbers = c->numbers,
                  .experts = experts,
                  .groups = c->line->groups > 0 ? (size_t)c->line->groups : 1,
                  .best = c->line->best > 0 ? (size_t)c->line->best : 1,
                  .k = (int)l->dim[made->dim[made->rank - 1]].size,
                  .correction = correction};
    return r;
}

static void score(choosing *r, const float *logit) {
    float most = row_most(logit, r->experts), sum = 0;
    for (size_t e = 0; e < r->experts; e++) {
        r->score[e] =
            r->numbers->shares_sigmoid ? 1 / (1 + expf(-logit[e])) : expf(logit[e] - most);
        sum += r->score[e];
    }
    for (size_t e = 0; e < r->experts; e++) {
        if (!r->numbers->shares_sigmoid) r->score[e] /= sum;
        r->order[e] = r->score[e] + (r->correction ? r->correction[e] : 0);
    }
}

/* A group is as good as its best expert, or as its two best together. */
static float worth_of(const choosing *r, size_t group) {
    size_t n = r->experts / r->groups;
    const float *order = r->order + group * n;
    float first = -INFINITY, second = -INFINITY;
    for (size_t e = 0; e < n; e++)
        if (order[e] > first) second = first, first = order[e];
        else if (order[e] > second) second = order[e];
    return r->numbers->groups_by_two > 0 && n > 1 ? first + second : first;
}

/* Experts outside the best groups are out of the question. */
static void keep_groups(choosing *r) {
    float worth[MOST_EXPERTS];
    size_t n = r->experts / r->groups;
    if (r->groups < 2 || r->best >= r->groups) return;
    for (size_t g = 0; g < r->groups; g++) worth[g] = worth_of(r, g);
    for (size_t g = 0; g < r->groups; g++) {
        size_t better = 0;
        for (size_t h = 0; h < r->groups; h++)
            better += worth[h] > worth[g] || (worth[h] == worth[g] && h < g);
        for (size_t e = 0; e < n && better >= r->best; e++) r->order[g * n + e] = -INFINITY;
    }
}

/* The share of each chosen expert, 0 of the others; of equal scores the first wins. */
static void choose(choosing *r, const float *logit) {
    score(r, logit);
    keep_groups(r);
    memset(r->share, 0, r->experts * sizeof *r->share);
    r->sum = 0;
    for (int i = 0; i < r->k; i++) {
        size_t best = 0;
        for (size_t e = 1; e < r->experts; e++)
            if (r->order[e] > r->order[best]) best = e;
        r->order[best] = -INFINITY;
        r->share[best] = fmaxf(r->score[best], 1e-30F);
        r->sum += r->share[best];
    }
    float scale = (float)r->numbers->routed_scaling_factor;
    if (r->numbers->norm_topk_prob > 0) scale /= r->sum;
    for (size_t e = 0; e < r->experts; e++) r->share[e] *= scale;
}

/* p [..., Er], and what corrects the choice: shares of the same shape. */
void train_choose(train_call *c) {
    const sm_local_block *p = c->in[0].block;
    size_t experts = p->size[p->rank - 1], tokens = sm_local_block_count(p) / experts;
    choosing r = choosing_of(c, experts, c->op->inputs > 1 ? c->in[1].block->data : NULL);
    const float *from = p->data;
    float *to = c->out->data;
    for (size_t n = 0; n < tokens; n++, from += experts, to += experts) {
        choose(&r, from);
        memcpy(to, r.share, experts * sizeof *to);
    }
}

/* share = scale s / sum of the chosen s, or scale s; ds of those not chosen is 0, and through the
 * softmax dp = s (ds - sum of s ds), through the sigmoid s (1 - s) ds. */
static void choice_back(choosing *r, const float *logit, const float *slope, float *dp) {
    float mean = 0, scale = (float)r->numbers->routed_scaling_factor, dot = 0;
    choose(r, logit);
    if (r->numbers->norm_topk_prob > 0) {
        for (size_t e = 0; e < r->experts; e++) mean += slope[e] * r->share[e];
        mean /= scale;
        scale /= r->sum;
    }
    for (size_t e = 0; e < r->experts; e++) {
        dp[e] = r->share[e] > 0 ? scale * (slope[e] - mean) : 0;
        dot += r->score[e] * dp[e];
    }
    for (size_t e = 0; e < r->experts; e++)
        dp[e] = r->numbers->shares_sigmoid ? r->score[e] * (1 - r->score[e]) * dp[e]
                                           : r->score[e] * (dp[e] - dot);
}

/* What corrects a choice has no slope. */
void train_choose_back(train_call *c) {
    const sm_local_block *p = c->input[0];
    size_t experts = p->size[p->rank - 1], tokens = sm_local_block_count(p) / experts;
    float *to = c->out->data;
    const float *from = p->data, *slope = c->in[0].block->data;
    train_clear(c->out);
    if (c->which) return;
    choosing r = choosing_of(c, experts, c->op->inputs > 1 ? c->input[1]->data : NULL);
    for (size_t n = 0; n < tokens; n++, from += experts, to += experts, slope += experts)
        choice_back(&r, from, slope, to);
}

/* ---- tokens to their experts and back ---- */

typedef struct routing {
    size_t tokens, experts, width;
    size_t first, own; /* experts whose slots are at hand */
    const float *share;
} routing;

static routing routing_of(const sm_local_block *shares, size_t width, size_t first, size_t own) {
    size_t experts = shares->size[shares->rank - 1];
    return (routing){.tokens = sm_local_block_count(shares) / experts,
                     .experts = experts,
                     .width = width,
                     .first = first,
                     .own = own,
                     .share = shares->data};
}

static float share_of(const routing *r, size_t token, size_t expert) {
    return r->share[token * r->experts + r->first + expert];
}

/* Rows of tokens go to the slots of the experts at hand that they chose, or come from there; whole,
 * or times their shares. */
static void route(const routing *r, const float *from, bool to_slots, bool by_share,
                  const sm_local_block *out) {
    float *to = out->data;
    memset(to, 0, sm_local_block_count(out) * sizeof *to);
    for (size_t n = 0; n < r->tokens; n++)
        for (size_t e = 0; e < r->own; e++) {
            const float share = share_of(r, n, e);
            const size_t slot = e * r->tokens + n;
            if (share > 0)
                row_add(from + (to_slots ? n : slot) * r->width, by_share ? share : 1, r->width,
                        to + (to_slots ? slot : n) * r->width);
        }
}

/* Between the rows of in[0] and of the result, one of which are the slots. */
static void pass_rows(train_call *c, bool to_slots, bool by_share) {
    const bool back = c->task->kind != SM_TASK_FORWARD;
    const sm_local_block *x = c->in[0].block, *slots = to_slots ? c->out : x;
    routing r = routing_of(back ? c->input[1] : c->in[1].block, (to_slots ? x : c->out)->size[2],
                           (to_slots ? c->out_offset : c->in[0].offset)[0], slots->size[0]);
    route(&r, x->data, to_slots, by_share, c->out);
}

void train_dispatch(train_call *c) { pass_rows(c, true, c->op->reads & 1u); }

void train_combine(train_call *c) { pass_rows(c, false, c->op->reads & 1u); }

/* Of the shares: rows of tokens times those of their slots. */
static void share_slopes(const routing *r, const float *token, const float *slot, float *to) {
    for (size_t e = 0; e < r->own; e++)
        for (size_t n = 0; n < r->tokens; n++, slot += r->width)
            if (share_of(r, n, e) > 0)
                to[n * r->experts + r->first + e] = row_dot(token + n * r->width, slot, r->width);
}

void train_dispatch_backward(train_call *c) {
    const sm_local_block *dz = c->in[0].block, *x = c->input[0];
    if (c->which != 1) {
        pass_rows(c, false, c->op->reads & 1u);
        return;
    }
    routing r = routing_of(c->input[1], dz->size[2], c->in[0].offset[0], dz->size[0]);
    train_clear(c->out);
    share_slopes(&r, x->data, dz->data, c->out->data);
}

void train_combine_backward(train_call *c) {
    const sm_local_block *dm = c->in[0].block, *made = c->input[0];
    size_t offset[SM_MAX_RANK];
    train_offsets(c->t, &c->in[1].layout, made, offset);
    routing r = routing_of(c->input[1], dm->size[2], offset[0], made->size[0]);
    train_clear(c->out);
    if (c->which == 1) share_slopes(&r, dm->data, made->data, c->out->data);
    else route(&r, dm->data, true, c->op->reads & 1u, c->out);
}
