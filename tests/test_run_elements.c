/* Numbers as they are stored: bf16, and numbers of 8 and 4 bits with the scales of their boxes,
 * from and to single precision, added, and multiplied panel by panel. */
#include <math.h>
#include <string.h>

#include "scalemodel/run.h"
#include "unit.h"

static uint16_t stored(float x) {
    uint16_t code;
    sm_elements_write(SM_ELEMENT_BF16, &code, 0, 1, &x);
    return code;
}

static float read_back(uint16_t code) {
    float x;
    sm_elements_read(SM_ELEMENT_BF16, &code, 0, 1, &x);
    return x;
}

static void rounds_to_the_nearest(void **state) {
    static const struct {
        float x;
        uint16_t code;
    } known[] = {{0, 0},
                 {1, 0x3f80},
                 {-2, 0xc000},
                 {1.00390625F, 0x3f80},
                 {1.0078125F, 0x3f81},
                 {1.01171875F, 0x3f82},
                 {3.4e38F, 0x7f80},
                 {INFINITY, 0x7f80}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(stored(known[i].x), known[i].code);
    assert_true(isnan(read_back(stored(NAN))));
    for (uint32_t code = 0; code < 0x7f80; code++) {
        float x = read_back((uint16_t)code), up = read_back((uint16_t)(code + 1));
        assert_int_equal(stored(x), code);
        if (code + 1 < 0x7f80) assert_int_equal(stored(x + (up - x) * 0.4F), code);
    }
}

static void sums_are_rounded(void **state) {
    uint16_t to[3] = {stored(1), stored(256), stored(-3)};
    const uint16_t from[3] = {stored(2), stored(1), stored(3)};
    sm_elements_add(to, from, 3, SM_ELEMENT_BF16);
    assert_true(read_back(to[0]) == 3 && read_back(to[1]) == 256 && read_back(to[2]) == 0);
}

static sm_local_block random_block(sm_element element, size_t rows, size_t columns, uint64_t seed) {
    sm_local_block b;
    sm_error err;
    sm_rng rng = {seed};
    assert_int_equal(sm_local_block_new(element, 2, (size_t[]){rows, columns}, &b, &err), SM_OK);
    for (size_t i = 0; i < rows * columns; i++) {
        float x = read_back(stored((float)(sm_rng_unit(&rng) - 0.5)));
        sm_elements_write(element, b.data, i, 1, &x);
    }
    return b;
}

/* c[i,j] = sum over t of a b, whose labels are 0, 2 and 2, 1 in either order. */
static void multiply(const sm_element *element, const size_t *size, unsigned turned,
                     const int8_t *made, sm_local_block *c) {
    static const int8_t of[2][2] = {{0, 2}, {2, 1}};
    int8_t label[2][SM_MAX_RANK] = {{0}}, out[SM_MAX_RANK] = {made[0], made[1]};
    sm_local_block in[2];
    sm_error err;
    for (int o = 0; o < 2; o++) {
        int first = (int)(turned >> o & 1);
        label[o][0] = of[o][first];
        label[o][1] = of[o][!first];
        in[o] = random_block(element[o], size[label[o][0]], size[label[o][1]], (uint64_t)o + 5);
    }
    assert_int_equal(
        sm_local_block_new(SM_ELEMENT_F32, 2, (size_t[]){size[made[0]], size[made[1]]}, c, &err),
        SM_OK);
    assert_int_equal(sm_local_einsum(2, in, (const int8_t(*)[SM_MAX_RANK])label, out, c, &err),
                     SM_OK);
    sm_local_block_free(&in[0]);
    sm_local_block_free(&in[1]);
}

/* The same numbers in single precision give the same product, but for the order of its sums: sizes
 * below and above a panel, few rows, few columns, either operand turned. */
static void products_are_of_what_is_stored(void **state) {
    static const size_t sizes[][3] = {{1, 700, 520}, {600, 2, 530}, {3, 5, 7}, {530, 600, 1100}};
    static const int8_t straight[2] = {0, 1}, across[2] = {1, 0};
    static const sm_element single[2] = {SM_ELEMENT_F32, SM_ELEMENT_F32};
    for (unsigned k = 0; k < 24; k++) {
        const size_t *size = sizes[k % 4];
        sm_element element[2] = {k % 3 ? SM_ELEMENT_BF16 : SM_ELEMENT_F32,
                                 k % 3 < 2 ? SM_ELEMENT_BF16 : SM_ELEMENT_F32};
        const int8_t *made = k & 8 ? across : straight;
        sm_local_block wide, packed;
        multiply(single, size, k, made, &wide);
        multiply(element, size, k, made, &packed);
        const float *x = wide.data, *y = packed.data;
        for (size_t i = 0; i < sm_local_block_count(&wide); i++)
            assert_true(fabsf(x[i] - y[i]) < 1e-4F);
        sm_local_block_free(&wide);
        sm_local_block_free(&packed);
    }
}

/* 4 rows of one array and 5 of the other's are refused: the product would read what lies behind. */
static void arrays_that_disagree_are_refused(void **state) {
    static const int8_t label[2][SM_MAX_RANK] = {{0, 1}, {1, 2}}, made[SM_MAX_RANK] = {0, 2};
    sm_local_block in[2] = {random_block(SM_ELEMENT_F32, 3, 4, 1),
                            random_block(SM_ELEMENT_F32, 5, 2, 2)};
    sm_local_block out = random_block(SM_ELEMENT_F32, 3, 2, 3);
    sm_error err = {.status = SM_OK};
    assert_int_equal(sm_local_einsum(2, in, label, made, &out, &err), SM_INTERNAL);
    assert_non_null(strstr(err.sentence, "4 elements and 5"));
    sm_local_block_free(&in[0]);
    sm_local_block_free(&in[1]);
    sm_local_block_free(&out);
}

static void sums_of_one_array_are_single(void **state) {
    sm_local_block a = random_block(SM_ELEMENT_BF16, 40, 30, 3), out;
    sm_error err;
    const int8_t label[1][SM_MAX_RANK] = {{0, 1}}, kept[SM_MAX_RANK] = {1};
    assert_int_equal(sm_local_block_new(SM_ELEMENT_F32, 1, (size_t[]){30}, &out, &err), SM_OK);
    assert_int_equal(sm_local_einsum(1, &a, label, kept, &out, &err), SM_OK);
    for (size_t j = 0; j < 30; j++) {
        double sum = 0;
        for (size_t i = 0; i < 40; i++)
            sum += (double)read_back(((const uint16_t *)a.data)[i * 30 + j]);
        assert_true(fabs(sum - (double)((const float *)out.data)[j]) < 1e-6);
    }
    sm_local_block_free(&a);
    sm_local_block_free(&out);
}

/* ---- scaled ---- */

enum { SCALED = 3, MOST_VALUES = 256 };
static const sm_element scaled[SCALED] = {SM_ELEMENT_S8, SM_ELEMENT_E4M3, SM_ELEMENT_E2M1};

/* Every number that an element can be, from its definition: sign, exponent, fraction. */
static int values_of(sm_element element, float *value) {
    int n = 0;
    if (element == SM_ELEMENT_S8)
        for (int i = -127; i <= 127; i++) value[n++] = (float)i;
    else {
        int fraction = element == SM_ELEMENT_E4M3 ? 8 : 2,
            bias = element == SM_ELEMENT_E4M3 ? 7 : 1;
        int exponents = element == SM_ELEMENT_E4M3 ? 16 : 4;
        for (int sign = -1; sign < 2; sign += 2)
            for (int e = 0; e < exponents; e++)
                for (int f = 0; f < fraction; f++) {
                    if (element == SM_ELEMENT_E4M3 && e == 15 && f == 7) continue; /* no number */
                    int whole = e ? fraction + f : f, power = (e ? e : 1) - bias;
                    value[n++] = (float)(sign * whole) * powf(2, (float)power) / (float)fraction;
                }
    }
    return n;
}

/* In memory of the test: elements, then scales. */
static sm_local_block scaled_block(sm_element element, const size_t *size, const size_t *box) {
    sm_local_block b = {.element = element, .rank = 2};
    for (int d = 0; d < 2; d++) b.size[d] = size[d], b.box[d] = box[d];
    size_t scales = size[0] / box[0] * (size[1] / box[1]);
    b.data = sm_calloc(1, sm_local_block_scales(&b) + scales * sm_scale_bytes(element));
    assert_non_null(b.data);
    return b;
}

static float scale_of(const sm_local_block *b, size_t row, size_t column) {
    size_t at = row / b->box[0] * (b->size[1] / b->box[1]) + column / b->box[1];
    const char *scales = (const char *)b->data + sm_local_block_scales(b);
    float scale;
    if (b->element == SM_ELEMENT_E2M1) return powf(2, (float)(uint8_t)scales[at] - 127);
    memcpy(&scale, scales + at * sizeof scale, sizeof scale);
    return scale;
}

static void every_value_is_kept(void **state) {
    float value[MOST_VALUES], back[MOST_VALUES], with[MOST_VALUES], scale[MOST_VALUES];
    for (int e = 0; e < SCALED; e++)
        for (int power = -20; power <= 20; power += 5) {
            size_t n = (size_t)values_of(scaled[e], value);
            sm_local_block b = scaled_block(scaled[e], (size_t[]){1, n}, (size_t[]){1, n});
            float by =
                scaled[e] == SM_ELEMENT_E2M1 ? powf(2, (float)power) : 0.7F * (float)(power + 21);
            for (size_t i = 0; i < n; i++) with[i] = value[i] * by, scale[i] = by;
            sm_local_block_write(&b, with, scale);
            assert_true(scale_of(&b, 0, 0) == by);
            sm_local_block_read(&b, 0, n, back);
            for (size_t i = 0; i < n; i++) assert_true(back[i] == with[i]);
            sm_free(b.data);
        }
}

/* No other number that is stored is nearer, the largest of a box is the largest that is stored (of
 * 4 bits: in its binade), and what is read is the product of number and scale. */
static void numbers_go_to_the_nearest(void **state) {
    static const size_t size[2] = {24, 40}, boxes[][2] = {{8, 8}, {1, 40}, {24, 1}, {4, 2}};
    float value[MOST_VALUES], from[24 * 40], back[24 * 40];
    sm_rng rng = {11};
    for (int e = 0; e < SCALED; e++)
        for (size_t k = 0; k < sizeof boxes / sizeof *boxes; k++) {
            sm_local_block b = scaled_block(scaled[e], size, boxes[k]);
            int n = values_of(scaled[e], value);
            for (size_t i = 0; i < 24 * 40; i++)
                from[i] = (float)((sm_rng_unit(&rng) - 0.5) * pow(10, (double)(i % 7) - 3));
            sm_local_block_write(&b, from, NULL);
            sm_local_block_read(&b, 0, 24 * 40, back);
            for (size_t i = 0; i < 24 * 40; i++) {
                float by = scale_of(&b, i / 40, i % 40), best = INFINITY;
                bool stored_so = false;
                for (int v = 0; v < n; v++) {
                    best = fminf(best, fabsf(from[i] - value[v] * by));
                    stored_so |= back[i] == value[v] * by;
                }
                assert_true(stored_so && fabsf(from[i] - back[i]) <= best * 1.0001F);
            }
            sm_free(b.data);
        }
}

static void what_is_no_number_stays_none(void **state) {
    const float odd[] = {NAN, INFINITY, -INFINITY};
    for (int e = 0; e < SCALED; e++)
        for (int o = 0; o < 3; o++) {
            float from[4] = {-2, 2, odd[o], 3}, back[4], zero[4] = {0};
            sm_local_block b = scaled_block(scaled[e], (size_t[]){1, 4}, (size_t[]){1, 2});
            sm_local_block_write(&b, from, NULL);
            sm_local_block_read(&b, 0, 4, back);
            assert_true(back[0] == -2 && back[1] == 2 && !(fabsf(back[2]) >= 0) && !(back[3] == 3));
            sm_local_block_write(&b, zero, NULL);
            sm_local_block_read(&b, 0, 4, back);
            assert_true(back[0] == 0 && back[3] == 0);
            sm_free(b.data);
        }
}

/* A row times a matrix has the same bits alone as among others, whatever is left of rows and
 * columns. */
static void a_row_alone_is_as_among_others(void **state) {
    enum { MOST = 8, K = 21, N = 530 };
    static float x[MOST * K], single[K * N], alone[N], among[MOST * N];
    static uint16_t half[K * N];
    sm_rng rng = {5};
    for (size_t i = 0; i < MOST * K; i++) x[i] = (float)sm_rng_unit(&rng) - 0.5F;
    for (size_t i = 0; i < K * N; i++) single[i] = (float)sm_rng_unit(&rng) - 0.5F;
    sm_elements_write(SM_ELEMENT_BF16, half, 0, K * N, single);
    for (size_t k = 1; k <= K; k++)
        for (size_t m = 2; m <= MOST; m++)
            for (int packed = 0; packed < 2; packed++) {
                const sm_local_block w = {.element = packed ? SM_ELEMENT_BF16 : SM_ELEMENT_F32,
                                          .rank = 2,
                                          .size = {k, N},
                                          .data = packed ? (void *)half : (void *)single};
                sm_few_rows f = {.x = x, .y = among, .m = m, .k = k, .n = N, .apart = N, .lead = N};
                memset(among, 0, sizeof among);
                sm_local_block_add_product(&w, &f);
                for (size_t i = 0; i < m; i++) {
                    memset(alone, 0, sizeof alone);
                    f.m = 1, f.x = x + i * k, f.y = alone;
                    sm_local_block_add_product(&w, &f);
                    assert_memory_equal(alone, among + i * N, sizeof alone);
                }
            }
}

/* Small whole numbers times powers of two: whatever the order of the sums, they are exact, so that
 * the product must be that of the numbers in single precision to the last bit. */
static void products_of_scaled_numbers_are_exact(void **state) {
    static const size_t sizes[][3] = {{1, 704, 512}, {4, 96, 1032},    {600, 2, 544},
                                      {6, 8, 8},     {530, 640, 1056}, {2, 640, 96}};
    for (unsigned k = 0; k < 36; k++) {
        const size_t *of = sizes[k % 6], rows = of[k & 8 ? 1 : 2], columns = of[k & 8 ? 2 : 1];
        const sm_element element = scaled[k / 6 % 3];
        const size_t box[2] = {k % 5 == 0 ? 1
                               : rows < 8 ? 2
                                          : 8,
                               k % 5 == 1    ? 1
                               : columns < 8 ? 2
                                             : 8};
        sm_local_block x, one, two, c[2], w = scaled_block(element, (size_t[]){rows, columns}, box);
        sm_error err;
        sm_rng rng = {k};
        assert_int_equal(sm_local_block_new(SM_ELEMENT_F32, 2, w.size, &one, &err), SM_OK);
        assert_int_equal(sm_local_block_new(SM_ELEMENT_F32, 2, w.size, &two, &err), SM_OK);
        assert_int_equal(sm_local_block_new(SM_ELEMENT_F32, 2, (size_t[]){of[0], of[1]}, &x, &err),
                         SM_OK);
        float *number = one.data, *scale = two.data, *times = x.data;
        for (size_t i = 0; i < rows * columns; i++) {
            size_t in = i / columns / box[0] * 31 + i % columns / box[1];
            scale[i] = powf(2, (float)(in % 5) - 2);
            number[i] = ((float)sm_rng_below(&rng, 9) - 4) / (element == SM_ELEMENT_E2M1 ? 2 : 1) *
                        scale[i];
        }
        for (size_t i = 0; i < of[0] * of[1]; i++) times[i] = (float)sm_rng_below(&rng, 7) - 3;
        sm_local_block_write(&w, number, scale);
        /* x [i,t] times w [j,t], or [t,j] */
        const int8_t label[2][SM_MAX_RANK] = {{0, 2}, {k & 8 ? 2 : 1, k & 8 ? 1 : 2}};
        const int8_t across = k % 7 == 0, out[SM_MAX_RANK] = {across, !across};
        for (int i = 0; i < 2; i++) {
            const sm_local_block in[2] = {x, i ? w : one};
            const size_t made[2] = {of[across ? 2 : 0], of[across ? 0 : 2]};
            assert_int_equal(sm_local_block_new(SM_ELEMENT_F32, 2, made, &c[i], &err), SM_OK);
            assert_int_equal(sm_local_einsum(2, in, label, out, &c[i], &err), SM_OK);
        }
        assert_memory_equal(c[0].data, c[1].data, sm_local_block_count(&c[0]) * sizeof(float));
        sm_free(w.data);
        sm_local_block *const all[] = {&x, &one, &two, &c[0], &c[1]};
        for (int i = 0; i < 5; i++) sm_local_block_free(all[i]);
    }
}

/* Arrays of random shapes in two random orders of their dimensions, each padded: as one element
 * after the other is copied, and nothing else is written. */
static void copies_in_any_order(void **state) {
    (void)state;
    enum { CASES = 300, RANK = 4, MOST = 1 << 16 };
    static const size_t widths[] = {2, 4, 8};
    sm_rng rng = {11};
    unsigned char *from = malloc(MOST * 8), *to = malloc(MOST * 8), *want = malloc(MOST * 8);
    for (int c = 0; c < CASES; c++) {
        sm_copied dim[RANK];
        int rank = (int)(sm_rng_next(&rng) % (RANK + 1)), order[RANK] = {0};
        size_t width = widths[c % 3], read = 1, written = 1, all = 1, at[RANK] = {0};
        for (int d = 0; d < rank; d++) {
            size_t most = rank < 3 ? 100 : 12;
            dim[d] = (sm_copied){1 + sm_rng_next(&rng) % most, read, 0};
            read *= dim[d].count + sm_rng_next(&rng) % 2;
            order[d] = d;
        }
        for (int d = rank - 1; d > 0; d--) {
            int other = (int)(sm_rng_next(&rng) % (uint64_t)(d + 1)), kept = order[d];
            order[d] = order[other], order[other] = kept;
        }
        for (int d = 0; d < rank; d++) {
            dim[order[d]].to = written;
            written *= dim[order[d]].count + sm_rng_next(&rng) % 2;
            all *= dim[d].count;
        }
        assert_true(read <= MOST && written <= MOST);
        for (size_t i = 0; i < read * width; i++) from[i] = (unsigned char)sm_rng_next(&rng);
        memset(to, 7, written * width);
        memset(want, 7, written * width);
        for (size_t i = 0; i < all; i++) {
            size_t source = 0, target = 0;
            for (int d = 0; d < rank; d++)
                source += at[d] * dim[d].from, target += at[d] * dim[d].to;
            memcpy(want + target * width, from + source * width, width);
            for (int d = 0; d < rank && ++at[d] == dim[d].count; d++) at[d] = 0;
        }
        sm_copy_strided(dim, rank, from, to, width);
        assert_memory_equal(to, want, written * width);
    }
    free(from), free(to), free(want);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_in_any_order),
        cmocka_unit_test(rounds_to_the_nearest),
        cmocka_unit_test(sums_are_rounded),
        cmocka_unit_test(products_are_of_what_is_stored),
        cmocka_unit_test(arrays_that_disagree_are_refused),
        cmocka_unit_test(sums_of_one_array_are_single),
        cmocka_unit_test(every_value_is_kept),
        cmocka_unit_test(numbers_go_to_the_nearest),
        cmocka_unit_test(what_is_no_number_stays_none),
        cmocka_unit_test(a_row_alone_is_as_among_others),
        cmocka_unit_test(products_of_scaled_numbers_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
