/* What a line does: FLOPs of products and of vector operators. */

#include "made.h"
#include "scalemodel/attention.h"

enum { FLOPS_OF_A_SCORE = 5 }; /* scale, subtract the maximum, exponential, sum, divide */

static uint64_t dims_of(const line_maker *m, const sm_mention *mention) {
    uint64_t dims = 0;
    for (int i = 0; i < m->array[mention->array].rank; i++) dims |= 1ull << mention->dim[i];
    return dims;
}

static double size_of(const line_maker *m, uint64_t dims) {
    double n = 1;
    for (int i = 0; i < m->dims; i++)
        if (dims >> i & 1) n *= m->dim[i].size;
    return n;
}

static uint64_t dims_in_role(const line_maker *m, uint64_t dims, uint32_t roles) {
    uint64_t found = 0;
    for (int i = 0; i < m->dims; i++)
        if (dims >> i & 1 && roles >> m->dim[i].role & 1) found |= 1ull << i;
    return found;
}

static double of_role(const line_maker *m, uint64_t dims, sm_dimension_role role, double absent) {
    uint64_t found = dims_in_role(m, dims, 1u << role);
    return found ? size_of(m, found) : absent;
}

/* The dimensions of a product of some factors, as a set of bits: those that the result or another
 * factor has are not summed yet. */
static uint64_t left_of(const uint64_t *factor, int n, unsigned taken, uint64_t result) {
    uint64_t inside = 0, outside = result;
    for (int i = 0; i < n; i++) {
        if (taken >> i & 1) inside |= factor[i];
        else outside |= factor[i];
    }
    return taken & (taken - 1) ? inside & outside : inside;
}

/* The cheapest order of a product, two at a time: of every set of factors the best way to split it,
 * the smaller sets first (the usual dynamic programme, as for chains of matrices). */
static double cheapest(const line_maker *m, const uint64_t *factor, int n, uint64_t result) {
    double best[1 << TREE_MOST_FACTORS] = {0};
    if (n > TREE_MOST_FACTORS) return 0;
    for (unsigned all = 1; all < 1u << n; all++) {
        if (!(all & (all - 1))) continue;
        best[all] = INFINITY;
        for (unsigned some = (all - 1) & all; some > all >> 1; some = (some - 1) & all) {
            uint64_t both =
                left_of(factor, n, some, result) | left_of(factor, n, all & ~some, result);
            best[all] = fmin(best[all], best[some] + best[all & ~some] + 2 * size_of(m, both));
        }
    }
    return best[(1u << n) - 1];
}

static double mean_keys(const line_maker *m, const sm_text_line *line, uint64_t dims) {
    double keys = of_role(m, dims, SM_DIMENSION_KEYS, 1);
    double T = of_role(m, dims, SM_DIMENSION_POSITIONS, 1);
    /* keys that stand for several positions each (S / 4) come at the pace of those */
    double S = line->causal && keys < m->S ? m->S : keys, pace = keys / S;
    if (line->over >= 0) {
        const sm_mention *chosen = &line->operand[line->over];
        int rank = m->array[chosen->array].rank;
        double most = rank > 0 ? m->dim[chosen->dim[rank - 1]].size : keys;
        /* of the best M no more than there are: query t has t keys to choose from */
        return pace * sm_keys_met(T, S, line->causal, fmin(most, keys) / pace, 0);
    }
    return pace * sm_keys_met(T, S, line->causal, line->window / pace, line->chunk / pace);
}

static void work_of_product(const line_maker *m, sm_text_line *line) {
    uint64_t factor[SM_OPERATOR_MOST_ARGUMENTS], all = 0;
    int n = line->operands;
    for (int i = 0; i < n; i++) all |= factor[i] = dims_of(m, &line->operand[i]);
    line->matrix_flops = cheapest(m, factor, n, dims_of(m, &line->result[0]));
    uint64_t keys = dims_in_role(m, all, 1u << SM_DIMENSION_KEYS);
    uint64_t positions = dims_in_role(m, all, 1u << SM_DIMENSION_POSITIONS);
    if (!line->causal || !keys || !positions) return;
    line->keys = mean_keys(m, line, all);
    line->matrix_flops *= line->keys / size_of(m, keys);
}

/* Scores and values: two products or more, of the keys that a query meets. */
static void work_of_attention(const line_maker *m, sm_text_line *line) {
    static const uint32_t of_scores = 1u << SM_DIMENSION_SEQUENCES | 1u << SM_DIMENSION_POSITIONS |
                                      1u << SM_DIMENSION_HEADS | 1u << SM_DIMENSION_GROUP;
    uint64_t result = dims_of(m, &line->result[0]), all = 0;
    for (int i = 0; i < 2 * line->scores; i++) all |= dims_of(m, &line->operand[i]);
    line->keys = mean_keys(m, line, all);
    double products = size_of(m, result);
    for (int i = 0; i < line->scores; i++) {
        uint64_t one = dims_of(m, &line->operand[2 * i]) | dims_of(m, &line->operand[2 * i + 1]);
        products += size_of(m, one & ~dims_in_role(m, one, 1u << SM_DIMENSION_KEYS));
    }
    line->matrix_flops = 2 * products * line->keys;
    double scores = size_of(m, dims_in_role(m, all, of_scores)) * line->keys;
    line->flops = FLOPS_OF_A_SCORE * scores / size_of(m, result);
}

void line_work(const line_maker *m, sm_text_line *line) {
    const sm_text_array *result = &m->array[line->result[0].array];
    double last = result->rank > 0 ? m->dim[result->dim[result->rank - 1]].size : 1;
    double first = line->operands > 0 ? m->array[line->operand[0].array].elements : 0;
    double ratio = first / result->elements;
    switch ((int)line->op) {
    case SM_OPERATOR_EXPRESSION: return;
    case SM_OPERATOR_PRODUCT: work_of_product(m, line); return;
    case SM_OPERATOR_ATTENTION: work_of_attention(m, line); return;
    case SM_OPERATOR_INVERSE: line->matrix_flops = result->elements * last / 3; return;
    case SM_OPERATOR_CONV: line->flops = 2 * line->taps; return;
    case SM_OPERATOR_TOP:
    case SM_OPERATOR_SUM:
    case SM_OPERATOR_MEAN: line->flops = ratio; return;
    case SM_OPERATOR_CROSS_ENTROPY: line->flops = 8 * ratio; return;
    case SM_OPERATOR_SAMPLE: line->flops = 5 * ratio; return;
    case SM_OPERATOR_COMBINE: {
        const sm_mention *choice = &line->operand[1];
        int rank = m->array[choice->array].rank;
        line->flops = rank > 0 ? 2 * m->dim[choice->dim[rank - 1]].size : 0;
        return;
    }
    default: line->flops = sm_operator_at(line->op)->flops; return;
    }
}
