/* Numbers as they are stored: bf16 from and to single precision, added, and multiplied panel by
 * panel. */
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_to_the_nearest),
        cmocka_unit_test(sums_are_rounded),
        cmocka_unit_test(products_are_of_what_is_stored),
        cmocka_unit_test(sums_of_one_array_are_single),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
