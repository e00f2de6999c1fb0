/* Rows of numbers. A sum in sixteen parts is four vector additions of SSE2 at a time, two of AVX or
 * one of AVX-512; the order is fixed, so that every plan adds alike. */
#include "train_parts.h"
#include "float_bits.h"

enum { PARTS = 16 };

/* As many numbers at a time, by the vector extension of gcc and clang: left to themselves compilers
 * may not make vectors of comparisons and conversions that could trap. */
enum { LANES = PARTS };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t whole_lanes __attribute__((vector_size(LANES * sizeof(int32_t))));

/* Each number from one of two vectors. A macro, as vectors below are handed over by pointer:
 * without AVX-512, functions cannot agree on where one of 64 bytes is. */
#define EITHER(mask, yes, no)                                                                      \
    ((lanes)(((mask) & (whole_lanes)(yes)) | (~(mask) & (whole_lanes)(no))))

/* exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2: a polynomial of degree 6 (Taylor's,
 * whose rest is r^7 / 5040 < 1.3e-7), with ln 2 in two parts so that r is exact (Cody and Waite,
 * Software Manual for the Elementary Functions, 1980). Adding 1.5 2^23 rounds to a whole number. */
static inline void exponentiate(lanes *at) {
    static const float rounder = 12582912.0F, high = 0.693359375F, low = -2.12194440e-4F;
    const lanes zero = {0}, least = zero - 87.3F, most = zero + 87.3F;
    lanes x = *at;
    x = EITHER(x < least, least, x);
    x = EITHER(x > most, most, x);
    lanes n = x * 1.44269504F + rounder - rounder;
    lanes r = x - n * high - n * low;
    lanes y = r * (1.0F / 720.0F) + 1.0F / 120.0F;
    y = y * r + 1.0F / 24.0F;
    y = y * r + 1.0F / 6.0F;
    y = y * r + 0.5F;
    y = y * r + 1.0F;
    y = y * r + 1.0F;
    whole_lanes known =
        x == x; /* NOLINT(misc-redundant-expression): what is no number has no exponent either */
    whole_lanes power = __builtin_convertvector(EITHER(known, n, zero), whole_lanes);
    *at = y * (lanes)((power + 127) << 23);
}

static float joined(const float *part) {
    float sum[PARTS / 2];
    for (int k = 0; k < PARTS / 2; k++) sum[k] = part[k] + part[k + PARTS / 2];
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

WIDE static float exponential_wide(const float *x, float shift, size_t n, float *y) {
    size_t whole = n / LANES * LANES, rest = (n - whole) * sizeof *x;
    lanes one, sum = {0};
    float part[PARTS];
    for (size_t i = 0; i < whole; i += LANES) {
        memcpy(&one, x + i, sizeof one);
        one -= shift;
        exponentiate(&one);
        sum += one;
        memcpy(y + i, &one, sizeof one);
    }
    memcpy(part, &sum, sizeof part);
    one = (lanes){0};
    memcpy(&one, x + whole, rest);
    one -= shift;
    exponentiate(&one);
    memcpy(y + whole, &one, rest);
    for (size_t k = 0; whole + k < n; k++) part[k] += y[whole + k];
    return joined(part);
}

/* part[k] takes the elements k, k + 16, ...; what is left goes to the first parts. */
#define IN_PARTS(n, part, element)                                                                 \
    do {                                                                                           \
        size_t whole = (n) / PARTS * PARTS;                                                        \
        for (size_t i = 0; i < whole; i += PARTS)                                                  \
            for (size_t k = 0; k < PARTS; k++) part[k] += element(i + k);                          \
        for (size_t k = 0; whole + k < (n); k++) part[k] += element(whole + k);                    \
    } while (0)

WIDE static float sum_wide(const float *x, size_t n) {
    float part[PARTS] = {0};
#define ELEMENT(i) x[i]
    IN_PARTS(n, part, ELEMENT);
#undef ELEMENT
    return joined(part);
}

WIDE static float dot_wide(const float *x, const float *y, size_t n) {
    float part[PARTS] = {0};
#define ELEMENT(i) x[i] * y[i]
    IN_PARTS(n, part, ELEMENT);
#undef ELEMENT
    return joined(part);
}

WIDE static float most_wide(const float *x, size_t n) {
    float part[PARTS], most = -INFINITY;
    size_t whole = n / PARTS * PARTS;
    for (size_t k = 0; k < PARTS; k++) part[k] = -INFINITY;
    for (size_t i = 0; i < whole; i += PARTS)
        for (size_t k = 0; k < PARTS; k++) part[k] = x[i + k] > part[k] ? x[i + k] : part[k];
    for (size_t i = whole; i < n; i++) most = x[i] > most ? x[i] : most;
    for (size_t k = 0; k < PARTS; k++) most = part[k] > most ? part[k] : most;
    return most;
}

WIDE static void add_wide(const float *restrict from, float factor, size_t n, float *restrict to) {
    for (size_t i = 0; i < n; i++) to[i] += factor * from[i];
}

WIDE static void slope_wide(const float *restrict p, float dot, float scale, size_t n,
                            float *restrict dp) {
    for (size_t i = 0; i < n; i++) dp[i] = scale * p[i] * (dp[i] - dot);
}

/* What is chosen when the program is loaded cannot be hidden from other libraries: these are. */
float row_exponential(const float *x, float shift, size_t n, float *y) {
    return exponential_wide(x, shift, n, y);
}
float row_sum(const float *x, size_t n) { return sum_wide(x, n); }
float row_dot(const float *x, const float *y, size_t n) { return dot_wide(x, y, n); }
float row_most(const float *x, size_t n) { return most_wide(x, n); }
void row_add(const float *restrict from, float factor, size_t n, float *restrict to) {
    add_wide(from, factor, n, to);
}
void row_slope(const float *restrict p, float dot, float scale, size_t n, float *restrict dp) {
    slope_wide(p, dot, scale, n, dp);
}
