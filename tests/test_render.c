/* render: pages, tables, bars, derivations; JSON, CSV, timelines. */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "failing_alloc.h"
#include "scalemodel/page.h"
#include "scalemodel/render.h"

/* ---- what a rendering wrote ---- */

typedef enum form { TEXT, JSON, CSV } form;

/* The caller frees it. */
static char *rendered(const sm_report *r, form f, int width) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    sm_error err;
    sm_status status = f == TEXT   ? sm_render_text(r, width, out, &err)
                       : f == JSON ? sm_render_json(r, out, &err)
                                   : sm_render_csv(r, out, &err);
    fclose(out);
    assert_int_equal(status, SM_OK);
    return text;
}

static void expect(const sm_report *r, form f, int width, const char *expected) {
    char *text = rendered(r, f, width);
    assert_string_equal(text, expected);
    free(text);
}

static int widest_line(const char *text) {
    int widest = 0;
    for (; *text != '\0'; text += text[0] == '\n') {
        int columns = 0;
        while (*text != '\0' && *text != '\n') {
            uint32_t code = 0;
            size_t n = sm_utf8_decode(text, 4, &code);
            assert_true(n > 0 && sm_utf8_width(code) >= 0);
            columns += sm_utf8_width(code);
            text += n;
        }
        if (columns > widest) widest = columns;
    }
    return widest;
}

static int setup(void **state) {
    *state = sm_report_new();
    return *state == NULL;
}

static int teardown(void **state) {
    sm_report_free(*state);
    return 0;
}

/* ---- text ---- */

static void paragraphs_wrap(void **state) {
    sm_report *r = *state;
    sm_report_heading(r, "Best plan");
    sm_report_text(r, "one two three four five six seven eight nine");
    sm_report_text(r, "  indented lines stay indented when they wrap");
    sm_report_text(r, "a\nb");
    expect(r, TEXT, 24,
           "Best plan\n"
           "═════════\n"
           "one two three four five\n"
           "six seven eight nine\n"
           "  indented lines stay\n"
           "  indented when they\n"
           "  wrap\n"
           "a\n"
           "b\n");
}

static void tables_align(void **state) {
    sm_report *r = *state;
    sm_table *t = sm_page_table(r, "Chips", "<chip|>size|<note");
    sm_report_text(r, "above");
    sm_page_cells(r, t, (const char *[]){"tpu-v5p", "95.7 GB", "torus"});
    sm_page_cells(r, t, (const char *[]){"日本", "8 GB", ""});
    expect(r, TEXT, 80,
           "above\n"
           "\n"
           "Chips\n"
           "chip        size  note\n"
           "───────  ───────  ─────\n"
           "tpu-v5p  95.7 GB  torus\n"
           "日本        8 GB\n");
}

static void wide_tables_wrap_their_last_text_column(void **state) {
    sm_report *r = *state;
    sm_table *t = sm_page_table(r, NULL, ">#|<plan|>time");
    sm_page_cells(r, t, (const char *[]){"1", "fsdp=2048,tensor=4,pipeline=2", "2.19 s"});
    sm_page_cells(r, t, (const char *[]){"2", "fsdp=8", "12.2 s"});
    expect(r, TEXT, 30,
           "#  plan                   time\n"
           "─  ───────────────────  ──────\n"
           "1  fsdp=2048,tensor=4,  2.19 s\n"
           "   pipeline=2\n"
           "2  fsdp=8               12.2 s\n");
}

static void heads_wrap_before_cells(void **state) {
    sm_report *r = *state;
    sm_table *t = sm_page_table(r, NULL, "<model name|>tokens per second");
    sm_page_cells(r, t, (const char *[]){"llama-3.1-405b", "1234"});
    expect(r, TEXT, 24,
           "model name        tokens\n"
           "                     per\n"
           "                  second\n"
           "──────────────  ────────\n"
           "llama-3.1-405b      1234\n");
}

static void tables_too_wide_become_records(void **state) {
    sm_report *r = *state;
    sm_table *t = sm_page_table(r, NULL, "<plan|>lower|>upper");
    sm_page_cells(r, t, (const char *[]){"fsdp=2048", "1234567890 s", "1234567890 s"});
    sm_page_cells(r, t, (const char *[]){"fsdp=4", "1 s", "2 s"});
    expect(r, TEXT, 24,
           "plan   fsdp=2048\n"
           "lower  1234567890 s\n"
           "upper  1234567890 s\n"
           "\n"
           "plan   fsdp=4\n"
           "lower  1 s\n"
           "upper  2 s\n");
}

static void bars_stack_up_to_the_capacity(void **state) {
    sm_report *r = *state;
    sm_report_bar(r, "Memory", "B", 40e9, 3,
                  (sm_bar_part[]){{"params", 10e9}, {"optimizer", 20e9}, {"buffers", 1e3}});
    expect(r, TEXT, 44,
           "Memory: 30 GB of 40 GB (75 %)\n"
           "  params         10 GB █████               │\n"
           "  optimizer      20 GB      ██████████     │\n"
           "  buffers         1 kB                █    │\n");
}

static void bars_show_what_does_not_fit(void **state) {
    sm_report *r = *state;
    sm_report_bar(r, "Memory", "B", 20e9, 2, (sm_bar_part[]){{"params", 10e9}, {"cache", 30e9}});
    expect(r, TEXT, 41,
           "Memory: 40 GB of 20 GB (200 %)\n"
           "  params      10 GB █████     │\n"
           "  cache       30 GB      █████│▒▒▒▒▒▒▒▒▒▒\n");
}

static void bars_take_any_numbers(void **state) {
    sm_report *r = *state;
    sm_bar_part parts[] = {{"nan", (double)NAN}, {"negative", -1}, {"huge", 1e308}, {"", 1e308}};
    sm_report_bar(r, "odd", "B", (double)INFINITY, 4, parts);
    sm_report_bar(r, "none", "s", 0, 0, NULL);
    sm_report_bar(r, "zero", "", -3, 1, &(sm_bar_part){"x", 0});
    char *text = rendered(r, TEXT, 60);
    assert_true(widest_line(text) <= 60);
    assert_non_null(strstr(text, "none: 0 s\n"));
    free(text);
}

static sm_why *step_time(sm_report *r) {
    sm_why *step = sm_page_why(r, NULL, "step time", "max(math, network)", 2.19, "s");
    sm_why *math = sm_page_why(r, step, "math", "FLOPs / speed", 2.19, "s");
    sm_page_leaf(r, math, "FLOPs", 1.005e15, "FLOP", NULL);
    sm_page_leaf(r, math, "speed", 459e12, "FLOP/s", "cloud.google.com/tpu");
    sm_page_leaf(r, step, "network", 0.5, "s", "given by hand, in this long sentence");
    return step;
}

static void derivations_are_trees(void **state) {
    sm_report *r = *state;
    sm_report_text(r, "answer");
    r->why = step_time(r);
    expect(r, TEXT, 48,
           "answer\n"
           "\n"
           "Why\n"
           "═══\n"
           "step time 2.19 s = max(math, network)\n"
           "├─ math 2.19 s = FLOPs / speed\n"
           "│  ├─ FLOPs 1 PFLOP\n"
           "│  └─ speed 459 TFLOP/s [cloud.google.com/tpu]\n"
           "└─ network 500 ms [given by hand, in this long\n"
           "      sentence]\n");
}

static void deep_derivations_end(void **state) {
    sm_report *r = *state;
    r->why = sm_page_why(r, NULL, "level", "next", 0, "s");
    sm_why *at = r->why;
    for (int i = 1; i < 100000; i++) at = sm_page_why(r, at, "level", "next", i, "s");
    char *text = rendered(r, TEXT, 80);
    assert_true(widest_line(text) <= 80);
    assert_non_null(strstr(text, "└─ ...\n"));
    free(text);
}

static void hostile_text_is_made_harmless(void **state) {
    sm_report *r = *state;
    sm_report_heading(r, "evil \x1b[2J\xff heading");
    sm_report_text(r, "tab\there \xE2\x80\xAE");
    sm_table *t = sm_page_table(r, "\x07", "<\x1b");
    sm_page_cells(r, t, (const char *[]){"a\xC3\nb"});
    expect(r, TEXT, 80,
           "evil ?[2J? heading\n"
           "══════════════════\n"
           "tab here ?\n"
           "\n"
           "?\n"
           "?\n"
           "──\n"
           "a?\n"
           "b\n");
}

/* Any page at any width: no line too long, every byte printable. */
static char *random_text(sm_arena *arena, sm_rng *rng) {
    static const char *const pieces[] = {"a",
                                         " ",
                                         ",",
                                         "fsdp=4",
                                         "/",
                                         "\n",
                                         "日",
                                         "é",
                                         "e\xCC\x81",
                                         "\xF0\x9F\x98\x80",
                                         "\xff",
                                         "\x1b",
                                         "supercalifragilistic"};
    char *text = sm_arena_copy(arena, "", 0);
    for (uint64_t n = sm_rng_below(rng, 12); n > 0; n--)
        text = sm_arena_printf(arena, "%s%s", text,
                               pieces[sm_rng_below(rng, sizeof pieces / sizeof *pieces)]);
    return text;
}

static void fill_at_random(sm_report *r, sm_rng *rng) {
    const char *cells[8], *heads = "";
    size_t columns = 1 + (size_t)sm_rng_below(rng, 8);
    sm_report_heading(r, "%s", random_text(r->arena, rng));
    sm_report_text(r, "%s", random_text(r->arena, rng));
    for (size_t c = 0; c < columns; c++) {
        const char *head = random_text(r->arena, rng);
        heads =
            sm_textf(r, "%s%s%s%s", heads, c ? "|" : "", sm_rng_below(rng, 2) ? "<" : ">", head);
    }
    sm_table *t = sm_page_table(r, random_text(r->arena, rng), heads);
    for (int row = 0; row < 3; row++) {
        for (size_t c = 0; c < columns; c++) cells[c] = random_text(r->arena, rng);
        sm_page_cells(r, t, cells);
    }
    sm_bar_part parts[] = {{random_text(r->arena, rng), sm_rng_unit(rng) * 2e9},
                           {random_text(r->arena, rng), sm_rng_unit(rng) * 1e9}};
    sm_report_bar(r, random_text(r->arena, rng), "B", sm_rng_unit(rng) * 4e9, 2, parts);
    const char *label = random_text(r->arena, rng), *formula = random_text(r->arena, rng);
    r->why = sm_page_why(r, NULL, label, formula, 1, "s");
    sm_page_leaf(r, r->why, "leaf", 1, "B", random_text(r->arena, rng));
}

static void no_line_is_wider_than_the_page(void **state) {
    sm_rng rng = {17};
    for (int i = 0; i < 500; i++) {
        sm_report *r = sm_report_new();
        fill_at_random(r, &rng);
        int width = 24 + (int)sm_rng_below(&rng, 100);
        char *text = rendered(r, TEXT, width);
        if (widest_line(text) > width) fail_msg("width %d:\n%s", width, text);
        free(text);
        sm_report_free(r);
    }
}

/* ---- JSON ---- */

static void json_is_laid_out(void **state) {
    sm_report *r = *state;
    sm_put(r, r->data, "command", "train");
    sm_put(r, sm_put_array(r, r->data, "shape"), NULL, 16.0, 0.1);
    sm_put(r, r->data, "none", (double)NAN);
    sm_put_object(r, r->data, "empty");
    sm_put(r, sm_put_object(r, r->data, "plan"),
           "a long key to fill the line with|another long key to fill the line|fits",
           "and a long value too", "and another value", (bool)false);
    expect(r, JSON, 0,
           "{\n"
           "  \"command\": \"train\",\n"
           "  \"shape\": [16, 0.1],\n"
           "  \"none\": null,\n"
           "  \"empty\": {},\n"
           "  \"plan\": {\n"
           "    \"a long key to fill the line with\": \"and a long value too\",\n"
           "    \"another long key to fill the line\": \"and another value\",\n"
           "    \"fits\": false\n"
           "  }\n"
           "}\n");
}

static void json_escapes(void **state) {
    sm_report *r = *state;
    sm_put(r, r->data, "k\"", "\\ \b\f\n\r\t \x01\x1f\x7f é \xff\xC3");
    expect(
        r, JSON, 0,
        "{\n"
        "  \"k\\\"\": \"\\\\ \\b\\f\\n\\r\\t \\u0001\\u001f\\u007f é \xEF\xBF\xBD\xEF\xBF\xBD\"\n"
        "}\n");
}

static void put_random(sm_report *r, sm_data *in, const char *key, sm_rng *rng, int depth) {
    uint64_t kind = sm_rng_below(rng, depth > 0 ? 6 : 4), bits = sm_rng_next(rng);
    double number;
    memcpy(&number, &bits, sizeof number);
    if (kind == 0) sm_put(r, in, key, (bool)(bits & 1));
    if (kind == 1) sm_put(r, in, key, number);
    if (kind == 2) sm_put(r, in, key, random_text(r->arena, rng));
    if (kind == 3) sm_put(r, in, key, (double)(bits % 1000));
    if (kind < 4) return;
    sm_data *parent = kind == 4 ? sm_put_array(r, in, key) : sm_put_object(r, in, key);
    for (uint64_t i = 0, n = sm_rng_below(rng, 8); i < n; i++)
        put_random(r, parent, kind == 4 ? NULL : sm_textf(r, "k%d", (int)i), rng, depth - 1);
}

/* jansson is the oracle: it must read back the same tree. */
static void expect_same(const json_t *read, const sm_data *data) {
    size_t i = 0;
    switch (data->kind) {
    case SM_DATA_NULL: assert_true(json_is_null(read)); break;
    case SM_DATA_BOOL: assert_int_equal(json_is_true(read), data->truth); break;
    case SM_DATA_NUMBER: assert_true(json_number_value(read) == data->number); break;
    case SM_DATA_STRING: assert_true(json_is_string(read)); break;
    case SM_DATA_ARRAY:
        for (const sm_data *c = data->first; c != NULL; c = c->next, i++)
            expect_same(json_array_get(read, i), c);
        assert_int_equal(json_array_size(read), i);
        break;
    case SM_DATA_OBJECT:
        for (const sm_data *c = data->first; c != NULL; c = c->next, i++)
            expect_same(json_object_get(read, c->key), c);
        assert_int_equal(json_object_size(read), i);
        break;
    }
}

static void json_reads_back(void **state) {
    sm_rng rng = {23};
    for (int i = 0; i < 300; i++) {
        sm_report *r = sm_report_new();
        put_random(r, r->data, "x", &rng, 6);
        char *text = rendered(r, JSON, 0);
        json_error_t why;
        json_t *read = json_loads(text, JSON_REJECT_DUPLICATES, &why);
        if (read == NULL) fail_msg("%s in\n%s", why.text, text);
        expect_same(read, r->data);
        json_decref(read);
        free(text);
        sm_report_free(r);
    }
}

static void json_nested_too_deep_is_refused(void **state) {
    sm_report *r = *state;
    sm_data *at = sm_put_array(r, r->data, "deep");
    for (int i = 0; i < 100000; i++) at = sm_put_array(r, at, NULL);
    FILE *out = tmpfile();
    sm_error err;
    assert_int_equal(sm_render_json(r, out, &err), SM_INTERNAL);
    assert_string_equal(err.sentence, "the answer is nested more than 512 levels deep");
    fclose(out);
}

/* ---- CSV ---- */

static void csv_quotes_as_rfc_4180(void **state) {
    sm_report *r = *state;
    sm_report_text(r, "not in it");
    sm_page_cells(r, sm_page_table(r, "x", "<plan|<a \"b\""),
                  (const char *[]){"fsdp=4,tensor=2", "two\nlines"});
    sm_report_table(r, sm_page_table(r, NULL, "<only"));
    expect(r, CSV, 0,
           "plan,\"a \"\"b\"\"\"\r\n"
           "\"fsdp=4,tensor=2\",\"two\nlines\"\r\n"
           "\r\n"
           "only\r\n");
}

/* Numbers with a unit stay; what a spreadsheet would compute does not. */
static void csv_has_no_formulas(void **state) {
    sm_report *r = *state;
    sm_table *t = sm_page_table(r, "x", "<=a|<b");
    sm_page_cells(r, t, (const char *[]){"-1.5e-06", "+3.2 %"});
    sm_page_cells(r, t, (const char *[]){"-2 GB/s", "-"});
    sm_page_cells(r, t, (const char *[]){"=1+1", "@SUM(A1)"});
    sm_page_cells(r, t, (const char *[]){"-2+3+cmd|'/C calc'!A0", "+A1,2"});
    expect(r, CSV, 0,
           "'=a,b\r\n-1.5e-06,+3.2 %\r\n-2 GB/s,-\r\n'=1+1,'@SUM(A1)\r\n"
           "'-2+3+cmd|'/C calc'!A0,\"'+A1,2\"\r\n");
}

/* Scalars by their paths, whatever record has them; lists of objects are left to JSON. */
static void csv_has_records(void **state) {
    sm_report *r = *state;
    sm_data *list = sm_put_array(r, r->data, "plans");
    for (int i = 0; i < 2; i++) {
        sm_data *record = sm_put_object(r, list, NULL);
        sm_put(r, record, "plan", i ? "data=2,tensor=4" : "data=8");
        sm_data *step = sm_put_object(r, record, "step_s");
        sm_put(r, step, "lower|upper", 1e-7 + i, NAN);
        sm_put(r, sm_put_array(r, step, "interval"), NULL, 0.125, 1e12);
        sm_put(r, sm_put_object(r, sm_put_array(r, record, "collectives"), NULL), "bytes", 1.0);
        if (i) sm_put(r, record, "fits", (bool)true);
    }
    r->records = list;
    sm_report_text(r, "not in it");
    expect(r, CSV, 0,
           "plan,step_s.lower,step_s.upper,step_s.interval.0,step_s.interval.1,fits\r\n"
           "data=8,1e-07,,0.125,1000000000000,\r\n"
           "\"data=2,tensor=4\",1.0000001,,0.125,1000000000000,true\r\n");
    FOR_EACH_FAILING_ALLOCATION(loop) {
        FILE *out = fopen("/dev/null", "w");
        sm_error err;
        sm_status status = sm_render_csv(r, out, &err);
        fclose(out);
        assert_int_equal(status, failing_alloc_refused(&loop) ? SM_INTERNAL : SM_OK);
    }
}

/* ---- numbers of a clock ---- */

/* Whatever a clock says, lines break where they break. */
static void clocks_move_no_lines(void **state) {
    static const double seconds[] = {1.0, 0.0010476819988980424};
    int lines[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        sm_report *r = sm_report_new();
        sm_data *o = sm_put_object(r, r->data, "search");
        sm_put(r, o, "why", "sixty columns are taken by this text, as near as makes no odds");
        sm_put_timed(r, o, "seconds", seconds[i]);
        char *text = rendered(r, JSON, 0);
        for (const char *at = text; *at; at++) lines[i] += *at == '\n';
        free(text);
        sm_report_free(r);
    }
    assert_int_equal(lines[0], lines[1]);
}

/* ---- timelines ---- */

static char *traced(const sm_tracks *tracks) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    sm_error err;
    assert_int_equal(sm_render_tracks(tracks, out, &err), SM_OK);
    fclose(out);
    return text;
}

static void timelines_are_trace_events(void **state) {
    const char *const names[] = {NULL, "compute"};
    const sm_slice slices[] = {{1, "matmul", "math", 0.1, 0.0000025},
                               {1, "norm", NULL, 0.1000025, 1.25e-9}};
    const sm_counter memory = {"memory", 0.2, 5e9};
    const sm_tracks tracks = {.title = "stage \"0\"",
                              .n = 2,
                              .track = names,
                              .slices = 2,
                              .slice = slices,
                              .counters = 1,
                              .counter = &memory};
    char *text = traced(&tracks);
    assert_string_equal(
        text, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n"
              "{\"ph\": \"M\", \"pid\": 0, \"name\": \"process_name\", \"tid\": 0,"
              " \"args\": {\"name\": \"stage \\\"0\\\"\"}},\n"
              "{\"ph\": \"M\", \"pid\": 0, \"name\": \"thread_name\", \"tid\": 1,"
              " \"args\": {\"name\": \"compute\"}},\n"
              "{\"ph\": \"X\", \"pid\": 0, \"name\": \"matmul\", \"tid\": 1, \"cat\": \"math\","
              " \"ts\": 100000.000, \"dur\": 2.500},\n"
              "{\"ph\": \"X\", \"pid\": 0, \"name\": \"norm\", \"tid\": 1, \"cat\": \"\","
              " \"ts\": 100002.500, \"dur\": 0.001},\n"
              "{\"ph\": \"C\", \"pid\": 0, \"name\": \"memory\", \"ts\": 200000.000,"
              " \"args\": {\"value\": 5000000000}}\n"
              "]}\n");
    free(text);
}

static void timelines_leave_nonsense_out(void **state) {
    const sm_slice slices[] = {{0, "x", "y", (double)NAN, 1},
                               {0, "x", "y", 1, (double)INFINITY},
                               {0, "x", "y", -1, 1},
                               {0, NULL, NULL, 0, 0}};
    const sm_counter counter = {"x", 1, (double)NAN};
    const sm_tracks tracks = {.slices = 4, .slice = slices, .counters = 1, .counter = &counter};
    char *text = traced(&tracks);
    json_t *read = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(read, "traceEvents")), 1);
    json_decref(read);
    free(text);
}

/* Rounded to nanoseconds, slices that touch neither overlap nor leave a gap. */
static void touching_slices_touch(void **state) {
    enum { SLICES = 1000 };
    sm_slice slices[SLICES];
    double at = 0;
    for (int i = 0; i < SLICES; i++) {
        slices[i] = (sm_slice){0, "s", "c", at, 1e-6 * (1 + i % 7) / 3};
        at += slices[i].seconds;
    }
    char *text = traced(&(sm_tracks){.slices = SLICES, .slice = slices});
    json_t *read = json_loads(text, 0, NULL), *events = json_object_get(read, "traceEvents");
    double end = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        json_t *event = json_array_get(events, i);
        double start = json_number_value(json_object_get(event, "ts"));
        assert_true(fabs(start - end) < 1e-6);
        end = start + json_number_value(json_object_get(event, "dur"));
    }
    assert_int_equal(json_array_size(events), SLICES);
    json_decref(read);
    free(text);
}

/* ---- failures ---- */

static void a_failing_stream_is_an_error(void **state) {
    sm_report *r = *state;
    FILE *full = fopen("/dev/full", "w");
    sm_error err;
    sm_report_text(r, "text");
    r->why = step_time(r);
    assert_non_null(full);
    assert_int_equal(sm_render_text(r, 80, full, &err), SM_IO);
    assert_string_equal(err.sentence, "cannot write the answer: No space left on device");
    assert_int_equal(sm_render_json(r, full, &err), SM_IO);
    assert_int_equal(sm_render_csv(r, full, &err), SM_IO);
    assert_int_equal(sm_render_tracks(&(sm_tracks){.n = 0}, full, &err), SM_IO);
    fclose(full);
}

static void half_reports_are_not_shown(void **state) {
    sm_report *r = *state;
    sm_error err;
    FILE *out = tmpfile();
    r->out_of_memory = true;
    assert_int_equal(sm_render_text(r, 80, out, &err), SM_INTERNAL);
    assert_int_equal(sm_render_json(r, out, &err), SM_INTERNAL);
    assert_int_equal(sm_render_csv(r, out, &err), SM_INTERNAL);
    assert_int_equal(ftell(out), 0);
    assert_string_equal(err.sentence, "out of memory");
    fclose(out);
}

static void rendering_survives_failing_allocations(void **state) {
    sm_report *r = *state;
    sm_rng rng = {29};
    fill_at_random(r, &rng);
    FILE *out = tmpfile();
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_error err;
        bool good = sm_render_text(r, 80, out, &err) == SM_OK;
        good = sm_render_json(r, out, &err) == SM_OK && good;
        assert_int_equal(good, !failing_alloc_refused(&loop));
    }
    fclose(out);
}

#define WITH_REPORT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_REPORT(paragraphs_wrap),
        WITH_REPORT(tables_align),
        WITH_REPORT(wide_tables_wrap_their_last_text_column),
        WITH_REPORT(heads_wrap_before_cells),
        WITH_REPORT(tables_too_wide_become_records),
        WITH_REPORT(bars_stack_up_to_the_capacity),
        WITH_REPORT(bars_show_what_does_not_fit),
        WITH_REPORT(bars_take_any_numbers),
        WITH_REPORT(derivations_are_trees),
        WITH_REPORT(deep_derivations_end),
        WITH_REPORT(hostile_text_is_made_harmless),
        cmocka_unit_test(no_line_is_wider_than_the_page),
        WITH_REPORT(json_is_laid_out),
        WITH_REPORT(json_escapes),
        cmocka_unit_test(json_reads_back),
        WITH_REPORT(json_nested_too_deep_is_refused),
        WITH_REPORT(csv_quotes_as_rfc_4180),
        WITH_REPORT(csv_has_no_formulas),
        WITH_REPORT(csv_has_records),
        cmocka_unit_test(clocks_move_no_lines),
        cmocka_unit_test(timelines_are_trace_events),
        cmocka_unit_test(timelines_leave_nonsense_out),
        cmocka_unit_test(touching_slices_touch),
        WITH_REPORT(a_failing_stream_is_an_error),
        WITH_REPORT(half_reports_are_not_shown),
        WITH_REPORT(rendering_survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
