/* safetensors: what is written is read back; what is cut short or changed is refused in words. */
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failing_alloc.h"
#include "scalemodel/io.h"
#include "written_tensors.h"

static char path[] = "/tmp/safetensors-XXXXXX";

static int make_path(void **state) {
    int file = mkstemp(path);
    return file < 0 ? -1 : close(file);
}

static int remove_path(void **state) { return unlink(path); }

static const float square[] = {1, 2.5F, -3, 4e-20F, 5, 6}, row[] = {0.1F, 0.2F, 0.3F};
static const sm_safetensor both[] = {
    {.name = "model.norm.weight", .rank = 1, .shape = {3}, .data = row},
    {.name = "model.layers.0.w", .rank = 2, .shape = {2, 3}, .data = square}};

static void write_both(void) {
    assert_int_equal(write_safetensors(path, 2, both, 123456789012u, NULL), SM_OK);
}

static void reads_back(void **state) {
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
        float data[6] = {0};
        assert_true(t->checked && t->data == NULL);
        assert_int_equal(sm_io_safetensor_load(t, data, NULL), SM_OK);
        assert_memory_equal(data, both[i].data, (i ? 6 : 3) * sizeof(float));
    }
    assert_null(sm_safetensors_find(&file, "model.norm"));
    sm_arena_free(arena);
}

/* Bit by bit, as in ISO 3309: the oracle of the checksums. */
static unsigned long slow_crc32(const void *data, size_t bytes) {
    unsigned long sum = 0xffffffffu;
    for (size_t i = 0; i < bytes; i++) {
        sum ^= ((const unsigned char *)data)[i];
        for (int bit = 0; bit < 8; bit++) sum = sum & 1 ? sum >> 1 ^ 0xedb88320u : sum >> 1;
    }
    return sum ^ 0xffffffffu;
}

/* The layout that other tools expect: length, header, data on a multiple of eight. */
static void lies_as_the_format_says(void **state) {
    sm_source file;
    sm_arena *arena = sm_arena_new();
    write_both();
    assert_int_equal(sm_io_read_most(path, SM_IO_DATA_BYTES, arena, &file, NULL), SM_OK);
    size_t length = (unsigned char)file.text[0] + 256u * (unsigned char)file.text[1];
    assert_int_equal(length % 8, 0);
    assert_int_equal(file.length, 8 + length + 9 * sizeof(float));
    const char header[] = "{\"__metadata__\":{\"format\":\"pt\",\"steps\":\"123456789012\","
                          "\"crc32\":\"%08lx%08lx\"},"
                          "\"model.norm.weight\":{\"dtype\":\"F32\",\"shape\":[3],"
                          "\"data_offsets\":[0,12]},\"model.layers.0.w\":{\"dtype\":\"F32\","
                          "\"shape\":[2,3],\"data_offsets\":[12,36]}}";
    char expected[sizeof header + 16];
    int n = snprintf(expected, sizeof expected, header, slow_crc32(row, sizeof row),
                     slow_crc32(square, sizeof square));
    assert_memory_equal(file.text + 8, expected, (size_t)n);
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

/* Narrow types, by their tables: halves, bf16, e4m3, whole numbers; a part of them. */
static void widens(void **state) {
    static const char header[] =
        "{\"a\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[0,6]},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[6,8]},"
        "\"c\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,2],\"data_offsets\":[8,12]},"
        "\"d\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[12,13]},"
        "\"e\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[13,14]}}";
    static const unsigned char data[] = {0x00, 0x3e, 0x01, 0x00, 0xff, 0xfb, 0xc0,
                                         0xbf, 0x38, 0x7e, 0x81, 0x00, 0xfd, 1};
    float x[4];
    sm_safetensors file;
    sm_arena *arena = sm_arena_new();
    put_file(header, strlen(header), 0);
    FILE *out = fopen(path, "ab");
    assert_int_equal(fwrite(data, 1, sizeof data, out), sizeof data);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(sm_io_safetensors_read(path, arena, &file, NULL), SM_OK);
    assert_int_equal(sm_io_safetensor_load(sm_safetensors_find(&file, "a"), x, NULL), SM_OK);
    assert_true(x[0] == 1.5F && x[1] == 5.9604645e-8F && x[2] == -65504);
    assert_int_equal(sm_io_safetensor_load(sm_safetensors_find(&file, "b"), x, NULL), SM_OK);
    assert_true(x[0] == -1.5F);
    const sm_safetensor *c = sm_safetensors_find(&file, "c");
    assert_int_equal(sm_io_safetensor_load(c, x, NULL), SM_OK);
    assert_true(x[0] == 1 && x[1] == 448 && x[2] == -0.001953125F && x[3] == 0);
    assert_int_equal(sm_io_safetensor_load_part(c, 1, 2, x, NULL), SM_OK);
    assert_true(x[0] == 448 && x[1] == -0.001953125F);
    assert_int_equal(sm_io_safetensor_load_part(c, 3, 2, x, NULL), SM_INTERNAL);
    assert_int_equal(sm_io_safetensor_load(sm_safetensors_find(&file, "d"), x, NULL), SM_OK);
    assert_true(x[0] == -3);
    assert_int_equal(sm_io_safetensor_load(sm_safetensors_find(&file, "e"), x, NULL), SM_BAD_INPUT);
    sm_arena_free(arena);
}

static void refuses_what_is_wrong(void **state) {
    expect_refused("{}", 3, 0, "it ends before its header does");
    expect_refused("", UINT64_MAX, 0, "it ends before its header does");
    refuse("[]", 0, "its header is no object");
    refuse("{", 0, "not valid JSON");
    refuse("{\"a\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
           "a does not lie inside the file");
    refuse("{\"a\":1}", 0, "a has no dtype");
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
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
           "a does not begin where the one before it ends");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
           "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
           4, "does not begin where the one before it ends");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8,
           "bytes follow its last array");
    refuse("{\"__metadata__\":{\"crc32\":\"12345678\"}}", 0,
           "checksums are not those of its arrays");
    refuse("{\"__metadata__\":{\"crc32\":\"1234567g\"},"
           "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
           4, "checksums are not those of its arrays");
    refuse("{\"__metadata__\":{\"crc32\":1}}", 0, "checksums are not those of its arrays");
}

/* Cut anywhere, a file is refused: its last tensor ends where the file does. */
static void refuses_every_cut(void **state) {
    sm_source whole;
    sm_arena *arena = sm_arena_new();
    write_both();
    assert_int_equal(sm_io_read_most(path, SM_IO_DATA_BYTES, arena, &whole, NULL), SM_OK);
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

/* The whole of a file, or what is wrong with it, in words. */
static sm_status read_and_load(sm_error *err) {
    float data[6];
    sm_safetensors file;
    sm_arena *arena = sm_arena_new();
    sm_status status = arena ? sm_io_safetensors_read(path, arena, &file, err) : SM_INTERNAL;
    for (size_t i = 0; !status && i < file.n; i++)
        status = sm_io_safetensor_load(&file.tensor[i], data, err);
    sm_arena_free(arena);
    return status;
}

/* Any bit of the data that has changed is found. */
static void refuses_every_changed_bit(void **state) {
    sm_error err;
    sm_source whole;
    sm_arena *arena = sm_arena_new();
    write_both();
    assert_int_equal(sm_io_read_most(path, SM_IO_DATA_BYTES, arena, &whole, NULL), SM_OK);
    char *bytes = (char *)(uintptr_t)whole.text;
    for (size_t bit = 8 * (whole.length - 36); bit < 8 * whole.length; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        assert_int_equal(sm_io_write(path, bytes, whole.length, NULL), SM_OK);
        assert_int_equal(read_and_load(&err), SM_BAD_INPUT);
        assert_non_null(strstr(err.sentence, " is damaged: its checksum is "));
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
    }
    sm_arena_free(arena);
}

/* Between the header and the data. */
static void refuses_what_changes_while_it_is_read(void **state) {
    float data[6];
    sm_error err;
    sm_safetensors file;
    sm_arena *arena = sm_arena_new();
    write_both();
    assert_int_equal(sm_io_safetensors_read(path, arena, &file, NULL), SM_OK);
    assert_int_equal(truncate(path, 200), 0);
    assert_int_equal(sm_io_safetensor_load(&file.tensor[0], data, &err), SM_BAD_INPUT);
    assert_non_null(strstr(err.sentence, "has been cut short while it was read"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(sm_io_safetensor_load(&file.tensor[0], data, &err), SM_IO);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(sm_io_safetensor_load(&file.tensor[0], data, &err), SM_BAD_INPUT);
    assert_non_null(strstr(err.sentence, "is no regular file"));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes to it, and it is not waited for */
    assert_int_equal(sm_io_safetensors_read(path, arena, &file, &err), SM_BAD_INPUT);
    assert_int_equal(unlink(path), 0);
    sm_arena_free(arena);
    write_both();
}

/* In pieces, and neither too much nor too little. */
static void writes_a_stream(void **state) {
    uint32_t sum;
    sm_error err;
    sm_safetensors_writer *w;
    assert_int_equal(sm_io_safetensors_begin(path, 2, both, 7, &w, NULL), SM_OK);
    assert_int_equal(sm_io_safetensors_put(w, row, 1, NULL), SM_OK);
    assert_int_equal(sm_io_safetensors_put(w, row + 1, 2, NULL), SM_OK);
    assert_int_equal(sm_io_safetensors_put(w, square, 6, NULL), SM_OK);
    assert_int_equal(sm_io_safetensors_put(w, square, 1, &err), SM_INTERNAL);
    assert_int_equal(sm_io_safetensors_end(w, &sum, NULL), SM_OK);
    assert_int_equal(read_and_load(&err), SM_OK);
    assert_int_equal(sm_io_safetensors_begin(path, 2, both, 7, &w, NULL), SM_OK);
    assert_int_equal(sm_io_safetensors_put(w, square, 6, &err), SM_INTERNAL);
    assert_int_equal(sm_io_safetensors_put(w, row, 3, NULL), SM_OK);
    assert_int_equal(sm_io_safetensors_end(w, &sum, &err), SM_INTERNAL);
    assert_int_equal(read_and_load(&err), SM_OK); /* what was there before */
    sm_io_safetensors_abandon(NULL);
}

static void survives_failing_allocations(void **state) {
    write_both();
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_status status = read_and_load(NULL);
        if (!failing_alloc_refused(&loop)) assert_int_equal(status, SM_OK);
    }
    FOR_EACH_FAILING_ALLOCATION(again) {
        sm_status status = write_safetensors(path, 2, both, 1, NULL);
        if (!failing_alloc_refused(&again)) assert_int_equal(status, SM_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_back),
        cmocka_unit_test(lies_as_the_format_says),
        cmocka_unit_test(widens),
        cmocka_unit_test(refuses_what_is_wrong),
        cmocka_unit_test(refuses_every_cut),
        cmocka_unit_test(refuses_every_changed_bit),
        cmocka_unit_test(refuses_what_changes_while_it_is_read),
        cmocka_unit_test(writes_a_stream),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
