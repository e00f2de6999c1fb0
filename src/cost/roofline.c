/* The roofline of an einsum on one chip, and the size of an index at which its bound turns.
 *
 * Bytes follow the fusion assumption: each operand (of A[I,I] the diagonal) is read once and the
 * result written once, each in its own dtype, whatever dtype the chip computes in. T =
 * max(FLOPs/peak, bytes/bandwidth). */
#include "scalemodel/cost.h"
#include <math.h>

static double einsum_bytes(const sm_einsum *einsum) {
    double bytes = 0.0, size[SM_MAX_RANK];
    for (int i = 0; i < einsum->operands; i++) {
        const sm_array *in = &einsum->in[i];
        for (int d = 0; d < in->rank; d++) size[d] = einsum->index[in->dim[d].index].size;
        bytes += sm_array_elements_read(in, einsum, size) * sm_dtype_bytes(in->dtype);
    }
    if (einsum->has_output)
        bytes += sm_array_elements(&einsum->out, einsum) * sm_dtype_bytes(einsum->out.dtype);
    return bytes;
}

static sm_dtype dtype_of(const sm_einsum *einsum, const sm_dtype *compute) {
    sm_dtype operands[SM_MAX_OPERANDS];
    if (compute) return *compute;
    for (int i = 0; i < einsum->operands; i++) operands[i] = einsum->in[i].dtype;
    return sm_compute_dtype(operands, einsum->operands);
}

/* The matrix product inside an einsum: the first operand's own output indices make m, those of the
 * others n, the contracted ones k, the ones that all operands and the output share the batch. */
static sm_product_shape shape_of(const sm_einsum *einsum) {
    sm_product_shape s = {1.0, 1.0, 1.0, 1.0};
    for (int i = 0; i < einsum->indices; i++) {
        bool first = sm_array_has(&einsum->in[0], i), others = false;
        for (int o = 1; o < einsum->operands; o++)
            others = others || sm_array_has(&einsum->in[o], i);
        bool out = einsum->has_output && sm_array_has(&einsum->out, i);
        if ((!first && !others) || sm_index_repeats(einsum, i) >= 0) continue;
        *(!out ? &s.k : first && others ? &s.batch : first ? &s.m : &s.n) *= einsum->index[i].size;
    }
    return s;
}

sm_status sm_roofline_einsum(const sm_chip *chip, const sm_einsum *einsum, sm_memory_level level,
                             const sm_dtype *compute, sm_roofline *out, sm_error *err) {
    return sm_roofline_under(chip, sm_calibration_of_operations(chip), einsum, level, compute, out,
                             err);
}

sm_status sm_roofline_under(const sm_chip *chip, const sm_calibration *c, const sm_einsum *einsum,
                            sm_memory_level level, const sm_dtype *compute, sm_roofline *out,
                            sm_error *err) {
    out->bandwidth = level == SM_MEMORY_ONCHIP ? &chip->onchip_bytes_per_s
                     : level == SM_MEMORY_HOST ? &chip->pcie_bytes_per_s_oneway
                                               : &chip->memory_bytes_per_s;
    double bytes_per_s = out->bandwidth->value;
    sm_dtype dtype = dtype_of(einsum, compute);
    if (!(bytes_per_s > 0.0))
        return sm_fail(err, SM_BAD_INPUT, "the %s bandwidth of %s is not known",
                       level == SM_MEMORY_ONCHIP ? "on-chip"
                       : level == SM_MEMORY_HOST ? "PCIe"
                                                 : "memory",
                       chip->name);
    if (!(sm_chip_peak(chip, dtype, NULL) > 0.0))
        return sm_fail(err, SM_BAD_INPUT, "%s has no known peak for %s or a wider dtype",
                       chip->name, sm_dtype_name(dtype));
    out->compute = dtype;
    out->flops = sm_einsum_flops(einsum);
    out->bytes = einsum_bytes(einsum);
    out->intensity = out->bytes > 0.0 ? out->flops / out->bytes : 0.0;
    sm_product_shape s = shape_of(einsum);
    bool elementwise = s.k <= 1.0; /* as in a sharded one */
    out->vector = elementwise && chip->vector_flops_per_s.value > 0.0;
    out->peak_flops_per_s =
        out->vector ? chip->vector_flops_per_s.value : sm_chip_peak(chip, dtype, &out->compute);
    out->bytes_per_s = bytes_per_s;
    out->math_s = out->flops > 0.0 ? out->flops / out->peak_flops_per_s : 0.0;
    out->memory_s = out->bytes / bytes_per_s;
    out->lower_s = fmax(out->math_s, out->memory_s);
    out->compute_bound = out->math_s >= out->memory_s;
    double hbm_bytes = out->memory_s * chip->memory_bytes_per_s.value; /* the same time over HBM */
    sm_op_cost cost = elementwise ? sm_vector_cost(chip, c, out->flops, hbm_bytes)
                                  : sm_product_cost(chip, c, dtype, s, hbm_bytes);
    out->expected_s = cost.expected_s;
    out->upper_s = cost.upper_s;
    if (!isfinite(out->upper_s))
        return sm_fail(err, SM_BAD_INPUT, "the sizes of this einsum are too large to count");
    return SM_OK;
}

/* FLOPs f x and bytes b0 + b1 x are linear in one size x, hence f x / P = (b0 + b1 x) / W at
 *     x = b0 / (W f / P - b1), P as of two: one may be summed by the vector unit. */
sm_status sm_roofline_critical(const sm_chip *chip, const sm_einsum *einsum, sm_memory_level level,
                               const sm_dtype *compute, int index, double *size, sm_error *err) {
    if (index < 0 || index >= einsum->indices)
        return sm_fail(err, SM_BAD_INPUT, "the einsum has no index number %d", index);
    sm_einsum at = *einsum;
    sm_roofline one = {0}, two = {0};
    sm_index_set_size(&at, index, 1.0);
    sm_status status = sm_roofline_einsum(chip, &at, level, compute, &one, err);
    if (status != SM_OK) return status;
    sm_index_set_size(&at, index, 2.0);
    status = sm_roofline_einsum(chip, &at, level, compute, &two, err);
    if (status != SM_OK) return status;
    double flops = two.flops - one.flops, per_size = two.bytes - one.bytes;
    double fixed = one.bytes - per_size;
    double spare = one.bytes_per_s * flops / two.peak_flops_per_s - per_size;
    const char *name = einsum->index[index].name;
    if (!(spare > 0.0))
        return sm_fail(err, SM_NEGATIVE,
                       "no size of %s makes this compute-bound: the intensity stays below %.4g "
                       "FLOPs/byte and %s needs %.4g",
                       name, per_size > 0.0 ? flops / per_size : two.intensity, chip->name,
                       two.peak_flops_per_s / one.bytes_per_s);
    if (!(fixed > 0.0))
        return sm_fail(err, SM_NEGATIVE, "every size of %s is compute-bound: %.4g FLOPs/byte", name,
                       one.intensity);
    *size = fixed / spare;
    return SM_OK;
}
