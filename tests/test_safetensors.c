/* safetensors: what is written is read back; what is cut short or changed is refused in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "scalemodel/io.h"

static char path[] = "/tmp/safetensors-XXXXXX";

static int make_path(void **state) {
    (void)state;
    int file = mkstemp(path);
    return file < 0 ? -1 : close(file);
}

static int remove_path(void **state) {
    (void)state;
    return unlink(path);
}

static const float square[] = {1, 2.5F, -3, 4e-20F, 5, 6}, row[] = {0.1F, 0.2F, 0.3F};
static const sm_safetensor both[] = {{"model.norm.weight", 1, {3}, row},
                                     {"model.layers.0.w", 2, {2, 3}, square}};

static void write_both(void) {
    assert_int_equal(sm_io_safetensors_write(path, 2, both, 123456789012u, NULL), SM_OK);
}

static void reads_back(void **state) {
    (void)state;
    sm_safetensors file;
    sm_arena *arena = sm_arena_new();
    write_both();
    assert_int_equal(sm_io_safetensors_read(path, arena, &file, NULL), SM_OK);
    assert_int_equal(file.n, 2);
    assert_true(file.steps == 123456789012u);
    for (size_t i = 0; i < 2; i++) {
        const sm_safetensor *t = sm_safetensors_find(&file, both[i].name);
        assert_non_null(t);
        assert_int_equal(t->rank, both[i].rank);
        assert_memory_equal(t->shape, both[i].shape, (size_t)t->rank * sizeof *t->shape);
        assert_memory_equal(t->data, both[i].data, (i ? 6 : 3) * sizeof(float));
    }
    assert_null(sm_safetensors_find(&file, "model.norm"));
    sm_arena_free(arena);
}

/* The layout that other tools expect: length, header, data on a multiple of eight. */
static void lies_as_the_format_says(void **state) {
    (void)state;
    sm_source file;
    sm_arena *arena = sm_arena_new();
    write_both();
    assert_int_equal(sm_io_read(path, arena, &file, NULL), SM_OK);
    size_t length = (unsigned char)file.text[0] + 256u * (unsigned char)file.text[1];
    assert_int_equal(length % 8, 0);
    assert_int_equal(file.length, 8 + length + 9 * sizeof(float));
    assert_memory_equal(file.text + 8,
                        "{\"__metadata__\":{\"format\":\"pt\",\"steps\":\"123456789012\"},"
                        "\"model.norm.weight\":{\"dtype\":\"F32\",\"shape\":[3],"
                        "\"data_offsets\":[0,12]},\"model.layers.0.w\":{\"dtype\":\"F32\","
                        "\"shape\":[2,3],\"data_offsets\":[12,36]}}",
                        170);
    assert_memory_equal(file.text + 8 + length, row, sizeof row);
    sm_arena_free(arena);
}

static void put_file(const char *header, uint64_t length, size_t data) {
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    for (int i = 0; i < 8; i++) fputc((int)(length >> 8 * i & 0xff), out);
    fputs(header, out);
    for (size_t i = 0; i < data; i++) fputc(0, out);
    assert_int_equal(fclose(out), 0);
}

static void expect_refused(const char *header, uint64_t length, size_t data, const char *words) {
    sm_safetensors file;
    sm_error err = {.status = SM_OK};
    sm_arena *arena = sm_arena_new();
    put_file(header, length, data);
    assert_int_equal(sm_io_safetensors_read(path, arena, &file, &err), SM_BAD_INPUT);
    if (!strstr(err.sentence, words)) print_message("%s\n", err.sentence);
    assert_non_null(strstr(err.sentence, words));
    sm_arena_free(arena);
}

static void refuse(const char *header, size_t data, const char *words) {
    expect_refused(header, strlen(header), data, words);
}

static void refuses_what_is_wrong(void **state) {
    (void)state;
    expect_refused("{}", 3, 0, "it ends before its header does");
    expect_refused("", UINT64_MAX, 0, "it ends before its header does");
    refuse("[]", 0, "its header is no object");
    refuse("{", 0, "not valid JSON");
    refuse("{\"a\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]}}", 2,
           "a is not of dtype F32");
    refuse("{\"a\":1}", 0, "a is not of dtype F32");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 4,
           "a has no shape that fits the file");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4,
           "a has no shape that fits the file");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],"
           "\"data_offsets\":[0,4]}}",
           4, "a has no shape that fits the file");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
           "a has no shape that fits the file");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 4,
           "a does not lie inside the file");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 8,
           "a does not lie inside the file");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "a does not lie inside the file");
}

/* Cut anywhere, a file is refused: its last tensor ends where the file does. */
static void refuses_every_cut(void **state) {
    (void)state;
    sm_source whole;
    sm_arena *arena = sm_arena_new();
    write_both();
    assert_int_equal(sm_io_read(path, arena, &whole, NULL), SM_OK);
    for (size_t n = 0; n < whole.length; n++) {
        sm_safetensors file;
        sm_arena *again = sm_arena_new();
        FILE *out = fopen(path, "wb");
        assert_int_equal(fwrite(whole.text, 1, n, out), n);
        fclose(out);
        assert_int_equal(sm_io_safetensors_read(path, again, &file, NULL), SM_BAD_INPUT);
        sm_arena_free(again);
    }
    sm_arena_free(arena);
}

static void survives_failing_allocations(void **state) {
    (void)state;
    write_both();
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_safetensors file;
        sm_arena *arena = sm_arena_new();
        if (!arena) continue;
        sm_status status = sm_io_safetensors_read(path, arena, &file, NULL);
        if (!failing_alloc_refused(&loop)) assert_int_equal(status, SM_OK);
        sm_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_back),
        cmocka_unit_test(lies_as_the_format_says),
        cmocka_unit_test(refuses_what_is_wrong),
        cmocka_unit_test(refuses_every_cut),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
