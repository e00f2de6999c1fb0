/* Bisection on the ratio of times that the library gives. */
#include "thresholds.h"
#include "partition.h"
#include <math.h>

threshold book_threshold(const sm_partition *layer, const sm_chip *chip) {
    return (threshold){layer, sm_chip_peak(chip, SM_BF16, NULL), 0, 0};
}

static book_degrees degrees(double fsdp, double tensor) {
    book_degrees d = book_ones();
    d.axis[SM_AXIS_FSDP] = fsdp;
    d.axis[SM_AXIS_TENSOR] = tensor;
    return d;
}

double book_math_s(const threshold *t, double fsdp, double tensor, double tokens) {
    book_degrees d = degrees(fsdp, tensor);
    return book_linear_flops(t->layer, SM_PHASE_FORWARD, true, &d, tokens) / t->flops_per_s;
}

double book_fsdp_s(const threshold *t, double fsdp, double tensor, double tokens) {
    book_degrees d = degrees(fsdp, tensor);
    return t->fsdp_s_per_byte * book_comm_bytes(t->layer, SM_PHASE_FORWARD, SM_ALL_GATHER,
                                                SM_BIT(SM_AXIS_FSDP), 2, &d, tokens);
}

double book_tensor_s(const threshold *t, double fsdp, double tensor, double tokens) {
    book_degrees d = degrees(fsdp, tensor);
    double bytes =
        book_comm_bytes(t->layer, SM_PHASE_FORWARD, SM_ALL_GATHER, SM_AXES_TENSOR, 2, &d, tokens) +
        book_comm_bytes(t->layer, SM_PHASE_FORWARD, SM_REDUCE_SCATTER, SM_AXES_TENSOR, 2, &d,
                        tokens);
    return t->tensor_s_per_byte * bytes;
}

/* The x at which rises(x) crosses 1, on a logarithmic scale. */
typedef double (*ratio)(const threshold *t, double x, double chips, double tokens);

static double solve(ratio rises, const threshold *t, double chips, double tokens) {
    double low = 1e-6, high = 1e12;
    if (!(rises(t, low, chips, tokens) < 1 && rises(t, high, chips, tokens) > 1)) return NAN;
    for (int i = 0; i < 100; i++) {
        double x = sqrt(low * high);
        *(rises(t, x, chips, tokens) < 1 ? &low : &high) = x;
    }
    return low;
}

static double tokens_over_fsdp(const threshold *t, double per_chip, double chips, double unused) {
    (void)unused;
    double tokens = per_chip * chips;
    return book_math_s(t, chips, 1, tokens) / book_fsdp_s(t, chips, 1, tokens);
}

double book_fsdp_critical(const threshold *t) { return solve(tokens_over_fsdp, t, 1024, 0); }

static double degree_of_tensor(const threshold *t, double degree, double unused, double tokens) {
    (void)unused;
    return book_tensor_s(t, 1, degree, tokens) / book_math_s(t, 1, degree, tokens);
}

double book_tensor_critical(const threshold *t) { return solve(degree_of_tensor, t, 0, 4096); }

/* fsdp time rises with its degree, as fewer chips shard the weights of the other axis; tensor time
 * falls: the larger of the two is least where they are equal. */
static double fsdp_over_tensor(const threshold *t, double fsdp, double chips, double tokens) {
    return book_fsdp_s(t, fsdp, chips / fsdp, tokens) /
           book_tensor_s(t, fsdp, chips / fsdp, tokens);
}

double book_best_fsdp(const threshold *t, double chips, double tokens) {
    return solve(fsdp_over_tensor, t, chips, tokens);
}

static double mixed(const threshold *t, double per_chip, double chips, double unused) {
    (void)unused;
    double tokens = per_chip * chips, fsdp = book_best_fsdp(t, chips, tokens);
    return book_math_s(t, fsdp, chips / fsdp, tokens) / book_fsdp_s(t, fsdp, chips / fsdp, tokens);
}

double book_mixed_critical(const threshold *t, double chips) {
    double low = 1e-3, high = 1e6; /* solve() would leave the range in which a best fsdp exists */
    for (int i = 0; i < 100; i++) {
        double x = sqrt(low * high);
        *(mixed(t, x, chips, 0) < 1 ? &low : &high) = x;
    }
    return low;
}

double book_data_critical(const threshold *t, double all_reduce_s_per_byte) {
    enum { CHIPS = 64, TOKENS = 1 << 20 };
    book_degrees d = degrees(CHIPS, 1);
    double flops = book_linear_flops(t->layer, SM_PHASE_BACKWARD_INPUT, true, &d, TOKENS) +
                   book_linear_flops(t->layer, SM_PHASE_BACKWARD_WEIGHT, true, &d, TOKENS);
    double bytes = 0;
    for (int i = 0; i < t->layer->classes; i++) {
        const sm_weight_class *w = &t->layer->weight[i];
        sm_size gradient = {.base = w->elements * sm_dtype_bytes(SM_BF16), .mask = w->stored};
        if (w->partial & SM_BIT(SM_AXIS_DATA)) bytes += book_size(gradient, &d, 1);
    }
    return TOKENS * bytes * all_reduce_s_per_byte / (flops / t->flops_per_s);
}
