/* Traces of requests: what is read of each form, what is refused, where and in which words, and
 * that memory does not grow with the file. */
#include "unit.h"
#include "request_row.h"
#include "scalemodel/io.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { MOST = 16 };
typedef struct seen {
    int n;
    sm_request request[MOST];
    uint64_t last_block; /* of the last request that has some */
    sm_status status;
    sm_error err;
} seen;

static void read_on(sm_request_file *file, seen *s) {
    sm_arrivals arrivals = sm_request_arrivals(file);
    int got = 1;
    s->n = 0;
    while (s->n < MOST && got == 1) {
        got = arrivals.next(arrivals.context, &s->request[s->n], &s->err);
        const sm_request *q = &s->request[s->n];
        if (got == 1 && q->blocks > 0) s->last_block = q->block[q->blocks - 1];
        s->n += got == 1;
    }
    s->status = got < 0 ? s->err.status : SM_OK;
}

static seen read_bytes(const char *text, size_t length) {
    seen s = {.n = 0};
    sm_source source = {"t", text, length};
    sm_request_file *file = NULL;
    s.status = sm_request_file_of(&source, &file, &s.err);
    if (s.status) return s;
    read_on(file, &s);
    sm_request_file_close(file);
    return s;
}

static seen read_text(const char *text) { return read_bytes(text, strlen(text)); }

static seen read_good(const char *text, int n) {
    seen s = read_text(text);
    if (s.status) fail_msg("%d:%d: %s", s.err.line, s.err.column, s.err.sentence);
    assert_int_equal(s.n, n);
    return s;
}

static void assert_request(const sm_request *q, double arrival_s, double prompt, double output) {
    if (!(fabs(q->arrival_s - arrival_s) < 1e-9) || q->prompt != prompt || q->output != output)
        fail_msg("%.12g s, %.12g, %.12g tokens", q->arrival_s, q->prompt, q->output);
}

/* ---- what is read ---- */

static void reads_azure(void **state) {
    seen s = read_good("TIMESTAMP,ContextTokens,GeneratedTokens\n"
                       "2023-11-16 18:15:46.6805900,374,44\n"
                       "2023-11-16 18:15:50.9951690,396,109\n"
                       "2023-11-17 00:00:00,1,0\n",
                       3);
    assert_request(&s.request[0], 0, 374, 44);
    assert_request(&s.request[1], 4.314579, 396, 109);
    assert_request(&s.request[2], 20653.31941, 1, 1); /* no output still has a prefill's token */
}

static void reads_zones(void **state) {
    seen s = read_good("TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
                       "2024-05-10 00:00:00.009930+00:00,2162,5\r\n"
                       "2024-05-10T01:00:01.00993+01:00,2162,5\r\n"
                       "2024-05-10T00:00:02.00993Z,2162,5\r\n"
                       "2024-05-09T23:30:03.00993-0030,2162,5",
                       4);
    for (int i = 0; i < 4; i++) assert_request(&s.request[i], i, 2162, 5);
}

static void reads_own_columns(void **state) {
    seen s = read_good("\xEF\xBB\xBF# a comment\n\n"
                       "conversation_id, output_tokens ,note,prompt_tokens,arrival_s,prefix_id,"
                       "prefix_tokens\n"
                       "\"a, b\",20,x,100,0.25,p,64\n"
                       "c,1e2,,3e2,0.5,,\n"
                       "\"a, b\",20,x,100,0.75,p,100\n",
                       3);
    assert_request(&s.request[0], 0.25, 100, 20);
    assert_request(&s.request[1], 0.5, 300, 100);
    assert_true(s.request[0].conversation != 0 && s.request[0].prefix != 0);
    assert_true(s.request[0].conversation == s.request[2].conversation);
    assert_true(s.request[0].prefix == s.request[2].prefix);
    assert_true(s.request[1].conversation != s.request[0].conversation);
    assert_true(s.request[1].prefix == 0 && s.request[1].shared_prefix == 0);
    assert_true(s.request[0].shared_prefix == 64 && s.request[2].shared_prefix == 100);
}

static void reads_mooncake(void **state) {
    seen s = read_good("{\"timestamp\": 0, \"input_length\": 6758, \"output_length\": 500, "
                       "\"hash_ids\": [0, 1, 2]}\n"
                       "{\"timestamp\": 3000, \"input_length\": 7319, \"output_length\": 490, "
                       "\"hash_ids\": [46, 9007199254740993]}\n",
                       2);
    assert_request(&s.request[0], 0, 6758, 500);
    assert_request(&s.request[1], 3, 7319, 490);
    assert_true(s.request[1].blocks == 2 && s.request[1].block_tokens == 512);
    assert_true(s.last_block == UINT64_C(9007199254740993));
}

/* One pass and the full reader agree: the same lines, one with an escape that sends it there. */
static void reads_json_either_way(void **state) {
    seen s = read_good("{\"arrival_s\":1.5,\"prompt_tokens\":10,\"output_tokens\":7,"
                       "\"conversation_id\":\"x\",\"other\":\"y\"}\n"
                       "{\"arrival_s\":1.5,\"prompt_tokens\":10,\"output_tokens\":7,"
                       "\"conversation_id\":\"x\",\"other\":\"\\u00e9\"}\n"
                       "{\"arrival_s\":15e-1,\"prompt_tokens\":1e1,\"output_tokens\":7,"
                       "\"conversation_id\":12}\n"
                       "{\"arrival_s\":1.5,\"prompt_tokens\":10,\"output_tokens\":7,"
                       "\"conversation_id\":12,\"prefix_id\":null}\n",
                       4);
    for (int i = 0; i < 4; i++) assert_request(&s.request[i], 1.5, 10, 7);
    assert_true(s.request[0].conversation == s.request[1].conversation);
    assert_true(s.request[2].conversation == s.request[3].conversation);
    assert_true(s.request[0].conversation != s.request[2].conversation);
}

/* Turns: of ours the whole prompt is told, of AIPerf's what each adds. */
static void reads_turns(void **state) {
    seen s = read_good("arrival_s,prompt_tokens,output_tokens,conversation_id,think_s,class\n"
                       "1,100,10,a,,chat\n"
                       ",150,20,a,2.5,chat\n"
                       "2,7,7,b,,\n"
                       "3,180,5,a,4,batch\n", /* of a, but not right behind it */
                       4);
    assert_request(&s.request[0], 1, 100, 10);
    assert_true(!s.request[0].follows && s.request[1].follows && s.request[1].think_s == 2.5);
    assert_true(s.request[1].prompt == 150 && s.request[0].conversation != 0 &&
                s.request[1].conversation == s.request[0].conversation);
    assert_true(s.request[0].kind && s.request[1].kind && !s.request[2].kind && s.request[3].kind);
    assert_request(&s.request[3], 3, 180, 5);
    assert_true(!s.request[3].follows);
    s = read_good(
        "{\"session_id\": \"x\", \"timestamp\": 500, \"input_length\": 100, \"output_length\": 9}\n"
        "{\"session_id\": \"x\", \"delay\": 1500, \"input_length\": 30, \"output_length\": 8}\n"
        "{\"session_id\": \"x\", \"delay\": 0, \"input_length\": 20, \"output_length\": 7}\n"
        "{\"session_id\": \"y\", \"timestamp\": 600, \"delay\": 0, \"input_length\": 3, "
        "\"output_length\": 1}\n",
        4);
    assert_request(&s.request[0], 0.5, 100, 9);
    assert_true(s.request[1].follows && s.request[1].think_s == 1.5 && s.request[1].prompt == 139);
    assert_true(s.request[2].follows && s.request[2].prompt == 139 + 8 + 20);
    assert_true(!s.request[3].follows && s.request[3].prompt == 3);
}

/* ---- what is refused ---- */

typedef struct refused {
    const char *text;
    int line, column, span;
    const char *sentence;
} refused;

#define HEAD3 "arrival_s,prompt_tokens,output_tokens,conversation_id,think_s,class\n"
#define HEAD "arrival_s,prompt_tokens,output_tokens\n"

static const refused refusals[] = {
    {"", 1, 1, 1, "there are no requests: expected CSV with a header, or one JSON object a line"},
    {"arrival_s,prompt_tokns,output_tokens\n", 1, 11, 12,
     "no column holds what the trace needs as prompt_tokens, ContextTokens or input_length; did "
     "you mean 'prompt_tokens' here?"},
    {"a,b\n1,2\n", 1, 1, 3,
     "the header has no column arrival_s (seconds), TIMESTAMP (a date) or timestamp (ms)"},
    {"arrival_s,prompt_tokens,output_tokens,TIMESTAMP\n", 1, 39, 9, "two columns hold TIMESTAMP"},
    {"arrival_s,prompt_tokens,output_tokens,prefix_id\n", 1, 1, 47,
     "the header has no column prefix_tokens, the tokens that prefix_id stands for"},
    {HEAD "0,1,1\n1,0,3\n", 3, 3, 1, "a prompt of 0 tokens: expected a whole number from 1 to 1e9"},
    {HEAD "1,2e12,3\n", 2, 3, 4, "a prompt of 2e+12 tokens: expected a whole number from 1 to 1e9"},
    {HEAD "1,2,-3\n", 2, 5, 2, "an output of -3 tokens: expected a whole number from 0 to 1e9"},
    {HEAD "1,1.5,3\n", 2, 3, 3, "a prompt of 1.5 tokens: expected a whole number from 1 to 1e9"},
    {HEAD "1,nan,3\n", 2, 3, 3,
     "'nan' is no number of tokens: expected a whole number from 1 to 1e9"},
    {HEAD "inf,2,3\n", 2, 1, 3,
     "'inf' is no time of arrival: expected seconds, or a date as in 2023-11-16 18:15:46.68"},
    {HEAD "1,2,3\n2023-11-16 18:15:46,2,3\n", 3, 1, 19,
     "'2023-11-16 18:15:46' is no time of arrival: expected seconds, or a date as in 2023-11-16 "
     "18:15:46.68"},
    {HEAD "2023-13-16 18:15:46,2,3\n", 2, 1, 19,
     "'2023-13-16 18:15:46' is no time of arrival: expected seconds, or a date as in 2023-11-16 "
     "18:15:46.68"},
    {HEAD "# fine so far\n5,2,3\n\n3.5,2,3\n", 5, 1, 3,
     "this request arrives 1.5 s before the one above it: sort the trace by arrival"},
    {HEAD "1,2\n", 2, 1, 3, "this row has 2 cells, but the header names 3 columns"},
    {HEAD "1,2,3,4\n", 2, 1, 7, "this row has 4 cells, but the header names 3 columns"},
    {HEAD3 "1,2,3,a,,\n,4,3,b,2,\n", 3, 8, 1,
     "this turn follows none: the row above is not of its conversation, and no time says when it "
     "comes"},
    {HEAD3 "1,2,3,a,,\n,4,3,a,soon,\n", 3, 8, 4,
     "a time between two turns is a number of seconds, 0 or more"},
    {HEAD3 "1,2,3,a,,\n,4,3,a,-1,\n", 3, 8, 2,
     "a time between two turns is a number of seconds, 0 or more"},
    {HEAD3 "1,2,3,a,,\n,4,3,a,,\n", 3, 1, 8,
     "this request does not say arrival_s (seconds), TIMESTAMP (a date) or timestamp (ms)"},
    {HEAD3 "1,2,3,a,,0123456789012345678901234567890123456789012345678901234567890123\n", 2, 10, 63,
     "the name of a class has at most 63 bytes, none of them 0"},
    {HEAD "1,,3\n", 2, 1, 4,
     "this request does not say prompt_tokens, ContextTokens or input_length"},
    {HEAD "1,\"2,3\n", 2, 3, 1, "this quote is never closed"},
    {"{\"arrival_s\": 1, \"prompt_tokens\": 0, \"output_tokens\": 1}\n", 1, 35, 1,
     "a prompt of 0 tokens: expected a whole number from 1 to 1e9"},
    {"{\"arrival_s\": 1, \"prompt_tokens\": 1, \"output_tokens\": 1}\n{\"arrival_s\": tru}\n", 2,
     15, 3, "this is not valid JSON: invalid token near 'tru'"},
    {"{\"arrival_s\": 1, \"prompt_tokens\": [2], \"output_tokens\": 1}\n", 1, 35, 3,
     "expected a number or a text"},
    {"{\"arrival_s\": 1, \"timestamp\": 2, \"prompt_tokens\": 2, \"output_tokens\": 1}\n", 1, 31, 1,
     "two keys hold the same thing"},
    {"{\"arrival_s\": 1, \"prompt_tokens\": 2, \"output_tokens\": 1, \"prefix_id\": 3, "
     "\"prefix_tokens\": 9}\n",
     1, 91, 1, "a prefix cannot be longer than its prompt of 2 tokens"},
};

static void refuses_with_a_place(void **state) {
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refused *r = &refusals[i];
        seen s = read_text(r->text);
        if (s.status != SM_BAD_INPUT || s.err.line != r->line || s.err.column != r->column ||
            s.err.span != r->span || strcmp(s.err.sentence, r->sentence) != 0)
            fail_msg("%s\n gave %d at %d:%d (%d): %s", r->text, s.status, s.err.line, s.err.column,
                     s.err.span, s.err.sentence);
    }
}

static void refuses_endless_lines(void **state) {
    size_t length = (size_t)LINE_MOST_BYTES + 100;
    char *text = malloc(length);
    assert_non_null(text);
    memset(text, 'a', length);
    seen s = read_bytes(text, length);
    assert_int_equal(s.status, SM_BAD_INPUT);
    assert_string_equal(s.err.sentence, "a line has at most 4194304 bytes");
    free(text);
}

/* ---- values ---- */

static void reads_numbers(void **state) {
    const char *good[] = {"0", "12", "0.1", "3.25", "1e3", "-4", "123456789012345678901", "7."};
    const char *bad[] = {"", "x", "1x", "nan", "inf", "0x10", "1e", ".", "--1", "1.2.3", "1 2"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double value = -1;
        assert_true(request_number(good[i], strlen(good[i]), &value));
        assert_true(value == strtod(good[i], NULL));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double value = -1;
        if (request_number(bad[i], strlen(bad[i]), &value)) fail_msg("%s read", bad[i]);
    }
}

static void reads_dates(void **state) {
    const struct {
        const char *text;
        int64_t seconds;
    } dates[] = {{"1970-01-01 00:00:00", 0},
                 {"2000-02-29T12:00:00", 951825600},
                 {"2023-11-16 18:15:46.6805900", 1700158546},
                 {"2024-12-31 23:59:59Z", 1735689599},
                 {"1969-12-31 23:59:59+00:00", -1}};
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
        int64_t seconds = 7;
        double rest = 7;
        assert_true(request_date(dates[i].text, strlen(dates[i].text), &seconds, &rest));
        assert_true(seconds == dates[i].seconds && rest >= 0 && rest < 1);
    }
}

/* ---- files ---- */

static void write_gzip(const char *path, const char *text, size_t cut) {
    gzFile out = gzopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(gzwrite(out, text, (unsigned)strlen(text)), (int)strlen(text));
    assert_int_equal(gzclose(out), Z_OK);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    fclose(file);
    if (cut > 0) assert_int_equal(truncate(path, size - (long)cut), 0);
}

static void write_zstd(const char *path, const char *text) {
    char packed[256];
    size_t n = ZSTD_compress(packed, sizeof packed, text, strlen(text), 1);
    assert_false(ZSTD_isError(n));
    assert_int_equal(sm_io_write(path, packed, n, NULL), SM_OK);
}

static void reads_packed_twice(void **state) {
    char path[] = "/tmp/scalemodel-trace-XXXXXX";
    int made = mkstemp(path);
    assert_true(made >= 0);
    close(made);
    sm_request_file *file = NULL;
    seen s;
    for (int zstd = 0; zstd < 2; zstd++) {
        if (zstd) write_zstd(path, HEAD "1,2,3\n4,5,6\n");
        else write_gzip(path, HEAD "1,2,3\n4,5,6\n", 0);
        assert_int_equal(sm_request_file_open(path, &file, NULL), SM_OK);
        for (int i = 0; i < 2; i++) {
            read_on(file, &s);
            assert_int_equal(s.n, 2);
            assert_request(&s.request[1], 4, 5, 6);
            assert_int_equal(sm_request_file_rewind(file, NULL), SM_OK);
        }
        sm_request_file_close(file);
    }
    write_gzip(path, HEAD "1,2,3\n4,5,6\n", 12);
    s.status = sm_request_file_open(path, &file, &s.err);
    if (!s.status) read_on(file, &s);
    if (file) sm_request_file_close(file);
    assert_int_equal(s.status, SM_BAD_INPUT);
    assert_non_null(strstr(s.err.sentence, "the gzip data is damaged or cut short at byte "));
    unlink(path);
    assert_int_equal(sm_request_file_open(path, &file, &s.err), SM_IO);
    assert_int_equal(sm_request_file_open("/tmp", &file, &s.err), SM_IO);
    assert_string_equal(s.err.sentence, "cannot read /tmp: Is a directory");
}

/* The reader allocates at its start alone. */
static void stays_flat(void **state) {
    size_t length = 0;
    enum { ROWS = 20000 };
    char *text = malloc(64 * ROWS);
    assert_non_null(text);
    length += (size_t)sprintf(text, HEAD);
    for (int i = 0; i < ROWS; i++) length += (size_t)sprintf(text + length, "%d,100,20\n", i);
    sm_source source = {"t", text, length};
    sm_request_file *file = NULL;
    assert_int_equal(sm_request_file_of(&source, &file, NULL), SM_OK);
    sm_arrivals arrivals = sm_request_arrivals(file);
    sm_request request;
    uint64_t before = sm_allocation_count();
    int n = 0;
    while (arrivals.next(arrivals.context, &request, NULL) == 1) n++;
    assert_int_equal(n, ROWS);
    assert_true(sm_allocation_count() == before);
    sm_request_file_close(file);
    free(text);
}

static void survives_lack_of_memory(void **state) {
    for (uint64_t i = 1; i < 60; i++) {
        sm_allocation_fail_at(i);
        seen s = read_text("{\"timestamp\": 0, \"input_length\": 6758, \"output_length\": 5e2, "
                           "\"hash_ids\": [0, 1, 2]}\n");
        sm_allocation_fail_at(0);
        if (s.status) assert_int_equal(s.status, SM_INTERNAL);
        else assert_int_equal(s.n, 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_azure),
        cmocka_unit_test(reads_zones),
        cmocka_unit_test(reads_own_columns),
        cmocka_unit_test(reads_mooncake),
        cmocka_unit_test(reads_turns),
        cmocka_unit_test(reads_json_either_way),
        cmocka_unit_test(refuses_with_a_place),
        cmocka_unit_test(refuses_endless_lines),
        cmocka_unit_test(reads_numbers),
        cmocka_unit_test(reads_dates),
        cmocka_unit_test(reads_packed_twice),
        cmocka_unit_test(stays_flat),
        cmocka_unit_test(survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
