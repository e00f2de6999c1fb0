/* The number formats a row of inference ran in. */
#include <string.h>

#include "inference_parts.h"

/* Names of the files that are no names of the product. */
static bool read_dtype(const char *printed, sm_dtype *dtype) {
    static const struct {
        const char *printed;
        sm_dtype dtype;
    } names[] = {{"fp8_block", SM_FP8}, {"nvfp4", SM_FP4},   {"w4a16", SM_INT4}, {"int4", SM_INT4},
                 {"awq", SM_INT4},      {"gptq", SM_INT4},   {"w8a8", SM_INT8},  {"w4a8", SM_INT4},
                 {"fp16", SM_FP16},     {"float16", SM_FP16}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(printed, names[i].printed) == 0) {
            *dtype = names[i].dtype;
            return true;
        }
    return sm_dtype_parse(printed, strlen(printed), dtype);
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
