/* The number formats a row of inference ran in. */

#include "inference_parts.h"
#include "measured_format.h"

/* Names of the files that are no names of the product. */
static bool read_dtype(const char *printed, sm_dtype *dtype) {
    const measured_type *type = NAMED(measured_types, printed);
    if (type) *dtype = type->dtype;
    return type || sm_dtype_parse(printed, strlen(printed), dtype);
}

bool inference_dtypes(const sm_inference_row *r, const sm_chip *chip, const sm_software *software,
                      sm_serve_dtypes *d, const char **why) {
    d->weights = SM_BF16; /* unquantised, where nothing is stated */
    *why = "weight_dtype is not a known number format";
    if (r->weight_dtype[0] && !read_dtype(r->weight_dtype, &d->weights)) return false;
    *why = "kv_dtype is not a known number format";
    d->kv = software->kv_in_8_bits && sm_dtype_bytes(d->weights) <= 1 ? SM_FP8 : SM_BF16;
    if (r->kv_dtype[0] && !read_dtype(r->kv_dtype, &d->kv)) return false;
    *why = "compute_dtype is not a known number format";
    d->compute = sm_serve_usual_compute(chip, d->weights);
    if (strcmp(r->weight_dtype, "w8a8") == 0) d->compute = SM_INT8;
    if (r->compute_dtype[0] && !read_dtype(r->compute_dtype, &d->compute)) return false;
    if (d->compute == SM_MXFP4) d->compute = sm_serve_usual_compute(chip, SM_MXFP4);
    *why = NULL;
    return true;
}
