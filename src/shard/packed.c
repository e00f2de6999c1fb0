/* Elements of 16 bits and less. Of those of 8 and less each box shares a scale:
 *
 *   number = code x scale, rounded to single precision
 *
 * with code a whole number (s8) or a float of few bits, whose exponent is moved to where single
 * precision has it; below the least exponent codes are whole multiples of one step. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "float_bits.h"
#include "scalemodel/shard.h"

/* A float of sign, exponent and so many bits behind it; bias: what single precision adds to the
 * exponent beyond it. The least normal one is 2^(bias - 126). */
typedef struct small_float {
    int fraction;
    uint32_t bias, most; /* most: the code of the largest */
    float largest;
} small_float;
static const small_float e4m3 = {3, 120, 0x7e, 448}, e2m1 = {1, 126, 7, 6};

static inline float widened(uint32_t code, uint32_t sign, small_float f) {
    const float least = of_bits((f.bias + 1) << 23); /* and what a code without exponent becomes */
    float x = of_bits((code << (23 - f.fraction)) + (f.bias << 23));
    x = x < least ? 2 * x - least : x;
    return of_bits(bits_of(x) | sign);
}

/* Of 0 <= x, to the nearest. */
static uint32_t narrowed(float x, small_float f) {
    const float whole = 8388608.0F, least = of_bits((f.bias + 1) << 23);
    uint32_t shift = (uint32_t)(23 - f.fraction), bits = bits_of(x);
    if (x >= f.largest) return f.most;
    if (x < least) return (uint32_t)(x / least * (float)(1u << f.fraction) + whole - whole);
    bits += (1u << (shift - 1)) - 1 + (bits >> shift & 1);
    return (bits >> shift) - (f.bias << f.fraction);
}

/* ---- codes ---- */

/* What is no number has a scale that is none. */
static inline float of_e4m3(uint8_t code) {
    uint32_t c = code;
    return widened(c & 0x7f, (c & 0x80) << 24, e4m3);
}

static void read_e2m1(const uint8_t *data, size_t first, size_t n, float *out) {
    static const float of[16] = {0,     0.5F,  1,     1.5F,  2,     3,     4,     6,
                                 -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};
    size_t i = first % 2 && n ? 1 : 0;
    if (i) out[0] = of[data[first / 2] >> 4];
    for (data += (first + 1) / 2; i + 1 < n; i += 2, data++) {
        out[i] = of[*data & 15];
        out[i + 1] = of[*data >> 4];
    }
    if (i < n) out[i] = of[*data & 15];
}

static void read_codes(sm_element element, const void *data, size_t first, size_t n, float *out) {
    const int8_t *whole = (const int8_t *)data + first;
    const uint8_t *code = data;
    if (element == SM_ELEMENT_S8)
        for (size_t i = 0; i < n; i++) out[i] = (float)whole[i];
    else if (element == SM_ELEMENT_E4M3)
        for (size_t i = 0; i < n; i++) out[i] = of_e4m3(code[first + i]);
    else read_e2m1(code, first, n, out);
}

static void write_code(sm_element element, void *data, size_t at, float x) {
    static const float whole = 12582912.0F, most = 127;
    uint32_t sign = x < 0;
    uint8_t *byte = data;
    x = fabsf(x);
    if (element == SM_ELEMENT_S8) {
        int code = (int)(fminf(x, most) + whole - whole);
        ((int8_t *)data)[at] = (int8_t)(sign ? -code : code);
    } else if (element == SM_ELEMENT_E4M3) byte[at] = (uint8_t)(narrowed(x, e4m3) | sign << 7);
    else {
        uint32_t code = narrowed(x, e2m1) | sign << 3, shift = at % 2 * 4;
        byte[at / 2] = (uint8_t)((byte[at / 2] & (0xf0u >> shift)) | code << shift);
    }
}

/* ---- scales ---- */

/* e8m0: 2^(code - 127). What is no number is infinite here, and all its codes are 0. */
static inline float of_exponent(uint8_t code) {
    return of_bits((uint32_t)code << 23 | (code == 0 ? 1u << 22 : 0));
}

float sm_local_block_scale(const sm_local_block *b, size_t i) {
    const char *scales = (const char *)b->data + sm_local_block_scales(b);
    float single;
    if (b->element == SM_ELEMENT_E2M1) return of_exponent((uint8_t)scales[i]);
    memcpy(&single, scales + i * sizeof single, sizeof single);
    return single;
}

static float put_scale(sm_local_block *b, size_t i, float scale) {
    char *scales = (char *)b->data + sm_local_block_scales(b);
    if (b->element == SM_ELEMENT_E2M1) {
        int exponent = scale > 0 ? ilogbf(scale) : 0;
        exponent = exponent < -127 ? -127 : exponent > 127 ? 127 : exponent;
        scales[i] = (char)(isfinite(scale) ? exponent + 127 : 0xff);
    } else memcpy(scales + i * sizeof scale, &scale, sizeof scale);
    return sm_local_block_scale(b, i);
}

static void scale_each(const sm_local_block *b, size_t scale, size_t n, float *out) {
    const char *scales = (const char *)b->data + sm_local_block_scales(b);
    const uint8_t *exponent = (const uint8_t *)scales + scale;
    const float *single = (const float *)(const void *)scales + scale;
    if (b->element == SM_ELEMENT_E2M1)
        for (size_t i = 0; i < n; i++) out[i] *= of_exponent(exponent[i]);
    else
        for (size_t i = 0; i < n; i++) out[i] *= single[i];
}

/* The scale of the first element of the row that an element is in, along the last dimension. */
static size_t scale_of_row(const sm_local_block *b, size_t row) {
    size_t at = 0, step = 1;
    for (int d = b->rank - 1; d >= 0; d--) {
        if (d < b->rank - 1) {
            at += row % b->size[d] / b->box[d] * step;
            row /= b->size[d];
        }
        step *= b->size[d] / b->box[d];
    }
    return at;
}

static void read_scaled(const sm_local_block *b, size_t first, size_t n, float *out) {
    assert(b->rank > 0);
    size_t length = b->size[b->rank - 1], box = b->box[b->rank - 1];
    while (n > 0) {
        size_t column = first % length, run = length - column < n ? length - column : n;
        size_t scale = scale_of_row(b, first / length) + column / box;
        read_codes(b->element, b->data, first, run, out);
        if (box == 1) scale_each(b, scale, run, out);
        for (size_t i = 0; i < run && box > 1; scale++) {
            size_t to = i + box - (column + i) % box;
            float by = sm_local_block_scale(b, scale);
            for (to = to < run ? to : run; i < to; i++) out[i] *= by;
        }
        first += run;
        out += run;
        n -= run;
    }
}

void sm_local_block_read(const sm_local_block *b, size_t first, size_t n, float *out) {
    if (sm_element_scaled(b->element)) read_scaled(b, first, n, out);
    else sm_elements_read(b->element, b->data, first, n, out);
}

/* ---- multiples of rows ----
 * Four rows at a time, each element converted where it is used: a pass over one row after the
 * other, or over parts of rows, is slower than memory. */
enum { ROWS = 4 };
typedef struct few_rows {
    size_t rows, lead, n;
    const float *x, *by[ROWS]; /* by: the scale of each row, or of each element of it */
} few_rows;

#define ADD_ROWS(name, type, number)                                                               \
    static void name(const few_rows *f, const type *b, float *restrict y) {                        \
        const type *b0 = b, *b1 = b0 + f->lead, *b2 = b1 + f->lead, *b3 = b2 + f->lead;            \
        const float *s0 = f->by[0], *s1 = f->by[1], *s2 = f->by[2], *s3 = f->by[3], *x = f->x;     \
        (void)s0, (void)s1, (void)s2, (void)s3;                                                    \
        if (f->rows == ROWS)                                                                       \
            for (size_t j = 0; j < f->n; j++)                                                      \
                y[j] += x[0] * number(b0, s0, j) + x[1] * number(b1, s1, j) +                      \
                        x[2] * number(b2, s2, j) + x[3] * number(b3, s3, j);                       \
        else                                                                                       \
            for (size_t t = 0; t < f->rows; t++, b += f->lead)                                     \
                for (size_t j = 0; j < f->n; j++) y[j] += x[t] * number(b, f->by[t], j);           \
    }
#define HALF(b, s, j) of_bf16(b[j])
#define WHOLE(b, s, j) ((float)b[j] * *s)
#define WHOLE_EACH(b, s, j) ((float)b[j] * s[j])
#define SMALL(b, s, j) (of_e4m3(b[j]) * *s)
#define SMALL_EACH(b, s, j) (of_e4m3(b[j]) * s[j])
ADD_ROWS(add_halves, uint16_t, HALF)
ADD_ROWS(add_whole, int8_t, WHOLE)
ADD_ROWS(add_whole_each, int8_t, WHOLE_EACH)
ADD_ROWS(add_small, uint8_t, SMALL)
ADD_ROWS(add_small_each, uint8_t, SMALL_EACH)

/* From an element on: f->n columns that have one scale a row, or one each. */
static void add_scaled(const sm_local_block *b, size_t first, few_rows f, float *y) {
    const size_t length = b->size[b->rank - 1], box = b->box[b->rank - 1];
    const float *scales =
        (const float *)(const void *)((const char *)b->data + sm_local_block_scales(b));
    for (size_t t = 0; t < f.rows; t++) {
        size_t at = first + t * f.lead;
        f.by[t] = scales + scale_of_row(b, at / length) + at % length / box;
    }
    const int8_t *whole = (const int8_t *)b->data + first;
    const uint8_t *small = (const uint8_t *)b->data + first;
    bool each = box == 1;
    if (b->element == SM_ELEMENT_S8) (each ? add_whole_each : add_whole)(&f, whole, y);
    else (each ? add_small_each : add_small)(&f, small, y);
}

static void add_e2m1(const sm_local_block *b, size_t first, const few_rows *f, float *y) {
    enum { PART = 1024 };
    float part[PART];
    for (size_t t = 0; t < f->rows; t++)
        for (size_t j = 0; j < f->n; j += PART) {
            size_t n = f->n - j < PART ? f->n - j : PART;
            sm_local_block_read(b, first + t * f->lead + j, n, part);
            for (size_t i = 0; i < n; i++) y[j + i] += f->x[t] * part[i];
        }
}

void sm_local_block_add_rows(const sm_local_block *b, size_t first, size_t lead, size_t rows,
                             const float *x, size_t n, float *y) {
    for (size_t t = 0; t < rows; t += ROWS) {
        few_rows f = {rows - t < ROWS ? rows - t : ROWS, lead, n, x + t, {NULL}};
        size_t at = first + t * lead;
        if (b->element == SM_ELEMENT_BF16) add_halves(&f, (const uint16_t *)b->data + at, y);
        else if (b->element == SM_ELEMENT_E2M1) add_e2m1(b, at, &f, y);
        else
            for (size_t j = 0; j < n; j += f.n) { /* a row of the matrix may be several here */
                size_t length = b->size[b->rank - 1], box = b->box[b->rank - 1];
                size_t end = box > 1 ? box - (at + j) % length % box : length - (at + j) % length;
                f.n = n - j < end ? n - j : end;
                add_scaled(b, at + j, f, y + j);
            }
    }
}

/* ---- boxes ---- */

/* Of a box the elements, row by row: the first of each. */
typedef struct walk {
    size_t corner, row, at[SM_MAX_RANK];
} walk;

static bool next_row(const sm_local_block *b, walk *w) {
    size_t step = b->size[b->rank - 1];
    for (int d = b->rank - 2; d >= 0; step *= b->size[d--]) {
        w->row += step;
        if (++w->at[d] < b->box[d]) return true;
        w->row -= step * b->box[d];
        w->at[d] = 0;
    }
    return false;
}

static size_t corner_of(const sm_local_block *b, size_t box) {
    size_t corner = 0, step = 1;
    for (int d = b->rank - 1; d >= 0; step *= b->size[d--]) {
        size_t along = b->size[d] / b->box[d];
        corner += box % along * b->box[d] * step;
        box /= along;
    }
    return corner;
}

/* The scale that makes the largest number the largest that is stored. */
static float usual_scale(sm_element element, float most) {
    if (!(most > 0) || !isfinite(most)) return most;
    if (element == SM_ELEMENT_E2M1) return ldexpf(1, ilogbf(most) - 2);
    return most / (element == SM_ELEMENT_S8 ? 127 : e4m3.largest);
}

static float scale_of_box(const sm_local_block *b, size_t corner, const float *from,
                          const float *scale) {
    size_t width = b->box[b->rank - 1];
    walk w = {.row = corner};
    bool one = scale && scale[corner] > 0 && isfinite(scale[corner]);
    float most = 0;
    do
        for (size_t i = w.row; i < w.row + width; i++) {
            if (!isfinite(from[i])) return NAN;
            most = fmaxf(most, fabsf(from[i]));
            one = one && scale[i] == scale[corner];
        }
    while (next_row(b, &w));
    float kept = one ? scale[corner] : 0;
    bool power = b->element != SM_ELEMENT_E2M1 || kept == ldexpf(1, kept > 0 ? ilogbf(kept) : 0);
    return one && power ? kept : usual_scale(b->element, most);
}

static void write_box(sm_local_block *b, size_t number, const float *from, const float *scale) {
    size_t corner = corner_of(b, number), width = b->box[b->rank - 1];
    float by = put_scale(b, number, scale_of_box(b, corner, from, scale));
    walk w = {.row = corner};
    do
        for (size_t i = w.row; i < w.row + width; i++)
            write_code(b->element, b->data, i, by > 0 && isfinite(by) ? from[i] / by : 0);
    while (next_row(b, &w));
}

void sm_local_block_write(sm_local_block *b, const float *from, const float *scale) {
    size_t n = sm_local_block_count(b);
    if (!sm_element_scaled(b->element)) {
        sm_elements_write(b->element, b->data, 0, n, from);
        return;
    }
    for (int d = 0; d < b->rank; d++) n /= b->box[d];
    for (size_t i = 0; i < n; i++) write_box(b, i, from, scale);
}
