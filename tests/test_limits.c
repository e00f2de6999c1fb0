/* What has no room is told, with the limit and how much of it was wanted; nothing is dropped. */
#include "unit.h"
#include "../src/train/space.h"
#include "partition.h"
#include <stdio.h>
#include <string.h>

static variant v;
static sm_train t; /* whose main kind of layer is the first piece */
static sm_program program;
static sm_partition part;

static void gives_all_weights(int i) {
    sm_tensor *w = &program.tensor[program.tensors++];
    *w = (sm_tensor){
        .role = SM_ROLE_WEIGHT, .rank = 1, .elements = 1, .bytes_per_element = 2, .producer = -1};
    w->at[0] = (sm_axes)i;
}

/* One vector op, and beside it weights that are stored in so many ways. */
static sm_status shards_weights(int ways, sm_error *err) {
    memset(&program, 0, sizeof program);
    program.dims = 1;
    program.dim[0] = (sm_program_dimension){"D", SM_DIMENSION_MODEL, 64};
    program.of_role[SM_DIMENSION_MODEL] = 1;
    program.tensors = 2;
    for (int i = 0; i < 2; i++)
        program.tensor[i] = (sm_tensor){.role = SM_ROLE_ACTIVATION,
                                        .rank = 1,
                                        .elements = 64,
                                        .bytes_per_element = 2,
                                        .producer = i - 1};
    program.ops = 1;
    program.op[0] = (sm_op){.name = "copy", .kind = SM_OP_VECTOR, .inputs = 1, .out = 1};
    program.output = 1;
    program.serving = true;
    for (int i = 0; i < ways; i++) gives_all_weights(i);
    return sm_program_partition_forward(&program, NULL, &part, err);
}

static void classes_of_weights(void **state) {
    sm_error err = {0};
    assert_int_equal(shards_weights(SM_MAX_WEIGHT_CLASSES, &err), SM_OK);
    assert_int_equal(part.classes, SM_MAX_WEIGHT_CLASSES);
    assert_int_equal(shards_weights(SM_MAX_WEIGHT_CLASSES + 3, &err), SM_INTERNAL);
    assert_string_equal(err.sentence,
                        "ways in which the weights of a layer are sharded: 19; the most is 16");
}

/* Two pieces of so many different collectives together. */
static sm_status has_collectives(int n, sm_error *err) {
    static piece two[2];
    memset(&v, 0, sizeof v);
    memset(two, 0, sizeof two);
    v.piece = two;
    for (int i = 0; i < n; i++) {
        sm_partition *p = &v.piece[i & 1].part;
        p->comm[p->comms++] = (sm_comm){.op = (sm_collective)(i & 1), .axes = (sm_axes)(i / 2)};
    }
    sm_status status = variant_slots(&t, &v, 0, err);
    return status == SM_OK ? variant_slots(&t, &v, 1, err) : status;
}

static void collectives_of_a_model(void **state) {
    sm_error err = {0};
    assert_int_equal(has_collectives(MAX_SLOTS, &err), SM_OK);
    for (int i = 0; i < MAX_SLOTS; i++) {
        const slot_key *key = &v.key[v.piece[i & 1].sent[i / 2].slot];
        assert_int_equal(key->op, i & 1);
        assert_int_equal(key->axes, i / 2);
    }
    assert_int_equal(has_collectives(MAX_SLOTS + 5, &err), SM_INTERNAL);
    assert_string_equal(err.sentence, "different collectives of a model: 69; the most is 64");
}

static void arrays_that_are_kept(void **state) {
    sm_error err = {0};
    piece_set set = {0};
    for (int i = 0; i < 2 * MAX_KEPT; i++) {
        sm_size bytes = {.base = 1, .mask = (sm_axes)(i % MAX_KEPT)};
        set_keep(&set, &bytes);
    }
    assert_int_equal(set_check(&set, &err), SM_OK);
    assert_int_equal(set.kept, MAX_KEPT);
    sm_size other = {.base = 1, .mask = MAX_KEPT};
    set_keep(&set, &other);
    assert_int_equal(set_check(&set, &err), SM_INTERNAL);
    assert_string_equal(err.sentence, "shardings of the arrays a layer keeps: 13; the most is 12");
    set = (piece_set){.eager = MAX_EAGER + 1};
    assert_int_equal(set_check(&set, &err), SM_INTERNAL);
    assert_string_equal(err.sentence, "arrays that a layer keeps more of: 65; the most is 64");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_of_weights),
        cmocka_unit_test(collectives_of_a_model),
        cmocka_unit_test(arrays_that_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
