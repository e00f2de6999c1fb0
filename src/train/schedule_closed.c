/* Closed forms of the time of a pipeline: the critical path of its schedule. A step takes as long
 * as its longest chain of ops, each waiting for the one before. These find that chain without
 * running the ops. With equal stages all of them reduce to the bubble of the literature: (p - 1)(f
 * + b) of GPipe and 1F1B (arXiv 1811.06965, 2006.09503), (p - 1)(f + b)/v of interleaved 1F1B
 * (2104.04473), (p - 1)(f + b - w) of ZB-H1 (2401.10241). */
#include "schedule_order.h"
#include <assert.h>

static double whole_backward_s(const sm_pipeline *p, int chunk) {
    return sm_op_backward_input_s(p, chunk) + p->chunk[chunk].backward_weight;
}

/* Identical jobs through a line of machines take the sum of the stages once, and the slowest of
 * them for each job more. All forwards pass, then all backwards; no stage ever starts its
 * backwards before the last stage has ended the forwards. */
double sm_gpipe_s(const sm_pipeline *p) {
    double sum_s = 0, forward_s = 0, backward_s = 0;
    for (int i = 0; i < p->stages; i++) {
        double f = sm_op_forward_s(p, i), b = whole_backward_s(p, i);
        sum_s += f + b;
        forward_s = later(forward_s, f);
        backward_s = later(backward_s, b);
    }
    return sum_s + (p->microbatches - 1) * (forward_s + backward_s);
}

/* --- 1F1B, f_i and b_i the forward and backward of stage i, w_i = p-1-i its warm-up.
 * The chain stays on a stage k except at both ends. It comes to the first backward of k by the
 * forwards up to some stage l >= k (a line of w_l + 1 jobs through stages 0..l) and l's backward:
 *   in_k  = max_l [ sum_{i<=l} f_i + w_l max_{i<=l} f_i + sum_{k<=i<=l} b_i ].
 * Seen backwards in time the step is the same with f and b exchanged, so from the last forward of k
 *   out_k = max_l [ sum_{i<=l} b_i + w_l max_{i<=l} b_i + sum_{k<=i<=l} f_i ],
 * and between the two lie m - 2 - w_k pairs. A stage with m <= w_k + 1 runs all its forwards first;
 * from its first backward on it is a line of m jobs. Other chains are longer only if some f_i or
 * b_i exceeds the pair f_j + b_j of a later stage. */
typedef struct line_ends {
    double forward_s, backward_s; /* the line of w + 1 forwards up to the stage, and of backwards */
    double drain_s;               /* a line of m - 1 backwards from the stage, after its first */
} line_ends;

static bool find_line_ends(const sm_pipeline *p, line_ends *ends) {
    double forward_sum_s = 0, backward_sum_s = 0, forward_max_s = 0, backward_max_s = 0;
    bool exact = true;
    int m = p->microbatches;
    for (int k = 0; k < p->stages; k++) {
        double f = sm_op_forward_s(p, k), b = whole_backward_s(p, k);
        int warm = smaller(p->stages - 1 - k, m - 1);
        if (later(forward_max_s, backward_max_s) > f + b) exact = false;
        forward_max_s = later(forward_max_s, f);
        backward_max_s = later(backward_max_s, b);
        ends[k].drain_s = backward_sum_s + (m - 1) * backward_max_s;
        forward_sum_s += f;
        backward_sum_s += b;
        ends[k].forward_s = forward_sum_s + warm * forward_max_s;
        ends[k].backward_s = backward_sum_s + warm * backward_max_s;
    }
    return exact;
}

static double one_f_one_b_s(const sm_pipeline *p, bool *exact) {
    line_ends ends[SM_STAGES_MAX];
    double in_s = 0, out_s = 0, total_s = 0;
    int m = p->microbatches;
    *exact = find_line_ends(p, ends);
    for (int k = p->stages - 1; k >= 0; k--) {
        double f = sm_op_forward_s(p, k), b = whole_backward_s(p, k);
        int pairs = m - 2 - (p->stages - 1 - k);
        // find_line_ends fills every stage. NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage)
        in_s = b + later(ends[k].forward_s, in_s);
        out_s = f + later(ends[k].backward_s, out_s);
        total_s = later(total_s, in_s + (pairs >= 0 ? pairs * (f + b) + out_s : ends[k].drain_s));
    }
    return total_s;
}

/* --- Interleaved 1F1B where all chunks but the first and the last are alike: forward f (f + first
 * on chunk 0, f + last on the last), backward likewise. The same chains as for 1F1B: on stage k
 * between its first backward and its last forward, before that a chain of forwards to a stage
 * l >= k and the backwards from there to k, after it the mirror image. */
typedef struct one_way {
    double middle_s, first_s, last_s; /* the last two: by how much longer */
} one_way;

/* The longest chain of forwards that ends with the last warm-up pass of stage l. Every chain has
 * l + w_l + 1 ops, w_l = 2(p-1-l) + (v-1)p. One of them is on the first chunk, more if the chain
 * waits at stage 0 for the first p passes and for those from pv on, as it must if it ends there. On
 * the last chunk it can only end. */
static double warm_up_s(int p, int v, int l, one_way w) {
    int warm = 2 * (p - 1 - l) + (v - 1) * p, again = larger(0, warm - v * p + 1);
    double base_s = (l + warm + 1) * w.middle_s + w.first_s + (l == p - 1 ? w.last_s : 0);
    double more_s = later(0, w.first_s), again_s = l == 0 ? w.first_s : more_s;
    return base_s + (p - 1) * more_s + again * again_s;
}

/* Passes 0..count-1 of stage k, in the order of the forwards. */
static double passes_s(int p, int v, int k, int count, one_way w) {
    double sum_s = count * w.middle_s;
    if (k > 0 && k < p - 1) return sum_s;
    int rounds = count / (p * v), rest = count % (p * v);
    if (k == 0) sum_s += (rounds * p + smaller(rest, p)) * w.first_s;
    if (k == p - 1) sum_s += (rounds * p + larger(0, rest - (v - 1) * p)) * w.last_s;
    return sum_s;
}

/* From the end of the first backward of stage k to the start of its last forward, one way. */
static double between_s(int p, int v, int m, int k, one_way w) {
    int n = m * v, warm = 2 * (p - 1 - k) + (v - 1) * p;
    double last_pass_s = w.middle_s + (k == p - 1 ? w.last_s : 0);
    return passes_s(p, v, k, n, w) - passes_s(p, v, k, warm + 1, w) - last_pass_s;
}

static double interleaved_s(const sm_pipeline *p, one_way f, one_way b) {
    int n = p->stages, v = p->chunks_per_stage, m = p->microbatches;
    double in_s = 0, out_s = 0, total_s = 0;
    for (int k = n - 1; k >= 0; k--) {
        bool end = k == n - 1;
        in_s = later(in_s, warm_up_s(n, v, k, f)) + b.middle_s + (end ? b.last_s : 0);
        out_s = later(out_s, warm_up_s(n, v, k, b)) + f.middle_s + (end ? f.last_s : 0);
        if (m * v >= 2 * (n - 1 - k) + (v - 1) * n + 2)
            total_s =
                later(total_s, in_s + between_s(n, v, m, k, f) + between_s(n, v, m, k, b) + out_s);
    }
    return total_s;
}

static bool alike(const sm_pipeline *p, int first, int last) {
    const sm_chunk_time *a = &p->chunk[first];
    for (int c = first + 1; c <= last; c++) {
        const sm_chunk_time *b = &p->chunk[c];
        if (a->forward != b->forward || a->backward_input != b->backward_input ||
            a->backward_weight != b->backward_weight)
            return false;
    }
    return true;
}

/* Exact where the ends let the simple chains be the longest: the last chunk is no shorter than the
 * others, forward and backward. Else stages are fast and slow in turn and the chains grow
 * richer. */
static double interleaved_if_exact_s(const sm_pipeline *p, bool *exact) {
    int last = p->stages * p->chunks_per_stage - 1;
    if (!alike(p, 1, last - 1)) return 0;
    const sm_chunk_time *middle = &p->chunk[1], *end = &p->chunk[last];
    one_way f = {.middle_s = sm_op_forward_s(p, 1)}, b = {.middle_s = whole_backward_s(p, 1)};
    f.first_s = sm_op_forward_s(p, 0) - f.middle_s;
    b.first_s = whole_backward_s(p, 0) - b.middle_s;
    f.last_s = sm_op_forward_s(p, last) - f.middle_s;
    b.last_s = whole_backward_s(p, last) - b.middle_s;
    *exact = end->forward >= middle->forward &&
             end->backward_input + end->backward_weight >=
                 middle->backward_input + middle->backward_weight &&
             f.first_s <= later(0, f.last_s) && b.first_s <= later(0, b.last_s);
    return *exact ? interleaved_s(p, f, b) : 0;
}

/* --- ZB-H1 with chunks alike, m > p: forward f (first: less the send), input gradient b (last:
 * less the send), weight gradient w. In the end stage l has l + 1 weight gradients left, so that
 * the chain after the last forward of stage k goes down to some stage l, waits there for p-1-l
 * pairs of b and w, and ends with the weight gradients either of l or, further up, of stage 0.
 * Every chain to the first full round of stage l is as long. */
static double zb_h1_end_s(const sm_pipeline *p, int l) {
    int n = p->stages;
    double w = p->chunk[0].backward_weight, b = sm_op_backward_input_s(p, 0);
    double own_s = sm_op_backward_input_s(p, l);
    return (n - 1 - l) * (b + w) + own_s + later(l * b + w, (l + 1) * w);
}

static double zb_h1_s(const sm_pipeline *p) {
    int last = p->stages - 1;
    double f = sm_op_forward_s(p, last), b = sm_op_backward_input_s(p, 0), total_s = 0;
    double w = p->chunk[0].backward_weight, first_f = sm_op_forward_s(p, 0);
    double in_s = first_f + last * (f + b) + sm_op_backward_input_s(p, last) + w;
    for (int k = 0; k <= last; k++) {
        double round_s = sm_op_forward_s(p, k) + sm_op_backward_input_s(p, k) + w;
        double down_s = last == 1 && k == 1 ? first_f : k * f;
        double out_s = zb_h1_end_s(p, k); /* after the last forward of the stage */
        for (int l = larger(k + 1, last - 1); l <= last; l++)
            out_s = later(out_s, (l - k) * f + zb_h1_end_s(p, l));
        total_s = later(total_s, in_s + down_s + (p->microbatches - 2 - last) * round_s +
                                     (sm_op_forward_s(p, k) + out_s));
    }
    return total_s;
}

double sm_pipeline_closed_s(const sm_pipeline *p, bool *exact) {
    int n = p->stages;
    bool waits = n > 1 && n <= SM_STAGES_MAX; /* one stage waits for no other */
    assert(n >= 1 && p->chunks_per_stage >= 1 && p->microbatches >= 1);
    *exact = n == 1 || p->schedule == SM_SCHEDULE_GPIPE;
    if (p->schedule == SM_SCHEDULE_GPIPE) return sm_gpipe_s(p);
    if (waits && p->schedule == SM_SCHEDULE_1F1B) return one_f_one_b_s(p, exact);
    if (waits && p->schedule == SM_SCHEDULE_ZB_H1 && p->microbatches > n && alike(p, 0, n - 1)) {
        *exact = true;
        return zb_h1_s(p);
    }
    double total_s = sm_pipeline_bound(p);
    if (waits && p->schedule == SM_SCHEDULE_INTERLEAVED)
        total_s = later(total_s, interleaved_if_exact_s(p, exact));
    return total_s;
}

sm_pipeline_time sm_pipeline_closed(const sm_pipeline *p, bool *exact) {
    return sm_pipeline_timed(p, sm_pipeline_closed_s(p, exact));
}
