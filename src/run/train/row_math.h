/* row_math: what kernels do to rows of numbers, written so that compilers make vector operations of
 * it without being allowed to reorder sums themselves. */
#pragma once
#include <stddef.h>

/* y = exp(x - shift), within 2e-7 of itself. x - shift below -87.3 is taken as that, above 88.3 as
 * that; no number stays none. y may be x. */
void row_exponential(const float *x, float shift, size_t n, float *y);
/* Sums in eight parts. */
float row_sum(const float *x, size_t n);
float row_dot(const float *x, const float *y, size_t n);
/* The sum of x y z. */
float row_triple(const float *x, const float *y, const float *z, size_t n);
/* The largest; -INFINITY of none. */
float row_most(const float *x, size_t n);
/* to += factor from */
void row_add(const float *from, float factor, size_t n, float *to);
