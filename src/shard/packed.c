/* Elements of 16 bits and less. Of those of 8 and less each box shares a scale:
 *
 *   number = code x scale, rounded to single precision
 *
 * with code a whole number (s8) or a float of few bits, whose exponent is moved to where single
 * precision has it; below the least exponent codes are whole multiples of one step. */
#include <assert.h>
#include <math.h>

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

/* Where single precision has its sign, exponent and fraction a code is a float, the least of which
 * single precision has too, of an exponent that is 2^120 times too small. What is no number has a
 * scale that is none. */
static inline float of_e4m3(uint8_t code) {
    int32_t c = (int8_t)code;
    return of_bits((uint32_t)c << 20 & 0x87f00000u) * 0x1p120F;
}

/* Of the lower half. */
static inline float of_e2m1(uint32_t code) { return widened(code & 7, (code & 8) << 28, e2m1); }

WIDE static void read_whole(const int8_t *code, size_t n, float by, float *out) {
    for (size_t i = 0; i < n; i++) out[i] = (float)code[i] * by;
}

WIDE static void read_e4m3(const uint8_t *code, size_t n, float by, float *out) {
    for (size_t i = 0; i < n; i++) out[i] = of_e4m3(code[i]) * by;
}

WIDE static void read_pairs(const uint8_t *pair, size_t n, float by, float *out) {
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = of_e2m1(pair[i]) * by;
        out[2 * i + 1] = of_e2m1(pair[i] >> 4) * by;
    }
}

static void read_e2m1(const uint8_t *data, size_t first, size_t n, float by, float *out) {
    size_t odd = first % 2 && n ? 1 : 0, pairs = (n - odd) / 2;
    data += first / 2;
    if (odd) out[0] = of_e2m1(*data++ >> 4) * by;
    read_pairs(data, pairs, by, out + odd);
    if ((n - odd) % 2) out[n - 1] = of_e2m1(data[pairs]) * by;
}

static void read_codes(sm_element element, const void *data, size_t first, size_t n, float by,
                       float *out) {
    if (element == SM_ELEMENT_S8) read_whole((const int8_t *)data + first, n, by, out);
    else if (element == SM_ELEMENT_E4M3) read_e4m3((const uint8_t *)data + first, n, by, out);
    else read_e2m1(data, first, n, by, out);
}

WIDE static void write_whole(const float *from, size_t n, float by, int8_t *code) {
    const float whole = 12582912.0F, most = 127;
    for (size_t i = 0; i < n; i++) {
        float x = from[i] / by;
        x = x > most ? most : x < -most ? -most : x;
        code[i] = (int8_t)(int)(x + whole - whole);
    }
}

static void write_float(sm_element element, uint8_t *byte, size_t at, float x) {
    uint32_t sign = x < 0;
    x = fabsf(x);
    if (element == SM_ELEMENT_E4M3) byte[at] = (uint8_t)(narrowed(x, e4m3) | sign << 7);
    else {
        uint32_t code = narrowed(x, e2m1) | sign << 3, shift = at % 2 * 4;
        byte[at / 2] = (uint8_t)((byte[at / 2] & (0xf0u >> shift)) | code << shift);
    }
}

static void write_codes(sm_element element, void *data, size_t first, size_t n, const float *from,
                        float by) {
    if (element == SM_ELEMENT_S8) write_whole(from, n, by, (int8_t *)data + first);
    else
        for (size_t i = 0; i < n; i++) write_float(element, data, first + i, from[i] / by);
}

static void write_zeros(sm_element element, void *data, size_t first, size_t n) {
    if (element == SM_ELEMENT_S8) memset((int8_t *)data + first, 0, n);
    else
        for (size_t i = 0; i < n; i++) write_float(element, data, first + i, 0);
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
        for (size_t i = 0, to; i < run; i = to, scale++) {
            to = box == 1 ? run : i + box - (column + i) % box;
            if (to > run) to = run;
            float by = box == 1 ? 1 : sm_local_block_scale(b, scale);
            read_codes(b->element, b->data, first + i, to - i, by, out + i);
            if (box == 1) scale_each(b, scale, run, out);
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

/* ---- few rows times a matrix ----
 * A part of the matrix is in single precision at a time, small enough for the first cache. */
enum { ROWS = 8, TOGETHER = 4, PART = 512 };

/* Rows are converted where they lie, which costs next to nothing; of codes with one scale for each
 * row x has that in it. Eight at once, which memory hands over more quickly than four; they are
 * added four by four, as for several rows of x. */
#define FOUR(x, rows, number)                                                                      \
    ((x)[0] * number((rows)[j]) + (x)[1] * number((rows)[lead + j]) +                              \
     (x)[2] * number((rows)[2 * lead + j]) + (x)[3] * number((rows)[3 * lead + j]))
#define ADD_ROWS(name, type, number)                                                               \
    WIDE static void name(const float *x, const type *rows, size_t lead, size_t n,                 \
                          float *restrict y) {                                                     \
        for (size_t j = 0; j < n; j++)                                                             \
            y[j] = y[j] + FOUR(x, rows, number) + FOUR(x + 4, rows + 4 * lead, number);            \
    }
ADD_ROWS(add_multiples, float, (float))
ADD_ROWS(add_halves, uint16_t, of_bf16)
ADD_ROWS(add_whole, int8_t, (float))
ADD_ROWS(add_e4m3, uint8_t, of_e4m3)

/* So many rows of x at once, k apart, so that what is read of the matrix does for all. */
#define TIMES(i) (x[(i)*k] * a + x[(i)*k + 1] * b + x[(i)*k + 2] * c + x[(i)*k + 3] * d)
#define ADD_TOGETHER(name, more)                                                                   \
    WIDE static void name(const float *x, size_t k, const float *rows, size_t lead, size_t n,      \
                          float *restrict y0, float *restrict y1, float *restrict y2,              \
                          float *restrict y3) {                                                    \
        const float *r0 = rows, *r1 = r0 + lead, *r2 = r1 + lead, *r3 = r2 + lead;                 \
        for (size_t j = 0; j < n; j++) {                                                           \
            const float a = r0[j], b = r1[j], c = r2[j], d = r3[j];                                \
            y0[j] += TIMES(0);                                                                     \
            more                                                                                   \
        }                                                                                          \
    }
ADD_TOGETHER(add_fours, y1[j] += TIMES(1); y2[j] += TIMES(2); y3[j] += TIMES(3);)
ADD_TOGETHER(add_pairs, y1[j] += TIMES(1); (void)y2; (void)y3;)
ADD_TOGETHER(add_alone, (void)y1; (void)y2; (void)y3;)

WIDE static float sum_of_products(const float *x, const float *y, size_t n) {
    enum { SUMS = 32 };
    float part[SUMS] = {0}, sum = 0;
    size_t t = 0;
    for (; t + SUMS <= n; t += SUMS)
        for (size_t p = 0; p < SUMS; p++) part[p] += x[t + p] * y[t + p];
    for (; t < n; t++) sum += x[t] * y[t];
    for (size_t p = 0; p < SUMS; p++) sum += part[p];
    return sum;
}

static size_t least(size_t x, size_t y) { return x < y ? x : y; }

static void add_turned(const sm_local_block *b, const sm_few_rows *f) {
    float part[PART];
    for (size_t j = 0; j < f->n; j++)
        for (size_t t = 0; t < f->k; t += PART) {
            size_t n = least(f->k - t, PART);
            const size_t first = f->first + j * f->lead + t;
            const float *row = part;
            if (b->element == SM_ELEMENT_F32) row = (const float *)b->data + first;
            else sm_local_block_read(b, first, n, part);
            for (size_t i = 0; i < f->m; i++)
                f->y[i * f->apart + j] += sum_of_products(f->x + i * f->k + t, row, n);
        }
}

/* Rows of 8 bits from t on times as many of x, box by box. */
static void add_boxes(const sm_local_block *b, const sm_few_rows *f, size_t t) {
    size_t length = b->size[b->rank - 1], box = b->box[b->rank - 1], first = f->first + t * f->lead;
    const float *scales =
                    (const float *)(const void *)((const char *)b->data + sm_local_block_scales(b)),
                *scale[ROWS] = {scales, scales, scales, scales};
    for (size_t j = 0, n; j < f->n; j += n) {
        size_t column = (first + j) % length;
        for (size_t r = 0; r < ROWS && (j == 0 || column == 0); r++)
            scale[r] = scales + scale_of_row(b, (first + r * f->lead + j) / length);
        n = least(f->n - j, box - column % box);
        float x[ROWS];
        for (size_t r = 0; r < ROWS; r++) x[r] = f->x[t + r] * scale[r][column / box];
        if (b->element == SM_ELEMENT_S8)
            add_whole(x, (const int8_t *)b->data + first + j, f->lead, n, f->y + j);
        else add_e4m3(x, (const uint8_t *)b->data + first + j, f->lead, n, f->y + j);
    }
}

/* Four rows of single precision from t on times as many of all of x. */
static void add_singles(const sm_local_block *b, const sm_few_rows *f, size_t t) {
    const float *rows = (const float *)b->data + f->first + t * f->lead;
    for (size_t j = 0; j < f->n; j += PART)
        for (size_t i = 0, step; i < f->m; i += step) {
            const size_t n = least(f->n - j, PART), left = f->m - i, to = f->apart;
            const float *x = f->x + i * f->k + t;
            float *y = f->y + i * to + j;
            step = left > 3 ? 4 : left > 1 ? 2 : 1;
            if (step == 4)
                add_fours(x, f->k, rows + j, f->lead, n, y, y + to, y + 2 * to, y + 3 * to);
            else if (step == 2) add_pairs(x, f->k, rows + j, f->lead, n, y, y + to, NULL, NULL);
            else add_alone(x, f->k, rows + j, f->lead, n, y, NULL, NULL, NULL);
        }
}

void sm_local_block_add_product(const sm_local_block *b, const sm_few_rows *f) {
    float part[ROWS * PART] = {0};
    size_t t = 0;
    if (f->turned) add_turned(b, f);
    else {
        const bool half = b->element == SM_ELEMENT_BF16, single = b->element == SM_ELEMENT_F32;
        for (size_t at; (half || single) && f->m == 1 && t + ROWS <= f->k; t += ROWS) {
            at = f->first + t * f->lead;
            if (half) add_halves(f->x + t, (const uint16_t *)b->data + at, f->lead, f->n, f->y);
            else add_multiples(f->x + t, (const float *)b->data + at, f->lead, f->n, f->y);
        }
        bool bytes = b->element == SM_ELEMENT_S8 || b->element == SM_ELEMENT_E4M3;
        bool boxes =
            bytes && f->m == 1 && b->box[b->rank - 1] > 1 && f->lead % b->size[b->rank - 1] == 0;
        for (; boxes && t + ROWS <= f->k; t += ROWS) add_boxes(b, f, t);
        for (; single && t + TOGETHER <= f->k; t += TOGETHER) add_singles(b, f, t);
        for (; t < f->k; t += ROWS)
            for (size_t j = 0; j < f->n; j += PART) {
                size_t rows = least(f->k - t, ROWS), n = least(f->n - j, PART);
                for (size_t r = 0; r < rows; r++)
                    sm_local_block_read(b, f->first + (t + r) * f->lead + j, n, part + r * PART);
                for (size_t i = 0; i < f->m; i++) {
                    float x[ROWS] = {0}; /* nothing of the rows before, where fewer are left */
                    memcpy(x, f->x + i * f->k + t, rows * sizeof *x);
                    add_multiples(x, part, PART, n, f->y + i * f->apart + j);
                }
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

/* Of the magnitude: that of what is no number is the largest. */
WIDE static uint32_t largest_bits(const float *x, size_t n, uint32_t largest) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(x[i]) & 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

static float scale_of_box(const sm_local_block *b, size_t corner, const float *from,
                          const float *scale) {
    size_t width = b->box[b->rank - 1];
    walk w = {.row = corner};
    bool one = scale && scale[corner] > 0 && isfinite(scale[corner]);
    uint32_t bits = 0;
    do {
        bits = largest_bits(from + w.row, width, bits);
        for (size_t i = w.row; one && i < w.row + width; i++) one = scale[i] == scale[corner];
    } while (next_row(b, &w));
    float most = of_bits(bits);
    if (!isfinite(most)) return NAN;
    float kept = one ? scale[corner] : 0;
    bool power = b->element != SM_ELEMENT_E2M1 || kept == ldexpf(1, kept > 0 ? ilogbf(kept) : 0);
    return one && power ? kept : usual_scale(b->element, most);
}

static void write_box(sm_local_block *b, size_t number, const float *from, const float *scale) {
    size_t corner = corner_of(b, number), width = b->box[b->rank - 1];
    float by = put_scale(b, number, scale_of_box(b, corner, from, scale));
    walk w = {.row = corner};
    do
        if (by > 0 && isfinite(by))
            write_codes(b->element, b->data, w.row, width, from + w.row, by);
        else write_zeros(b->element, b->data, w.row, width);
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
