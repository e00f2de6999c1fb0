/* Tables of `nsys stats`. Units stand in the heads: "Start (ns)". */
#include <stdlib.h>
#include <string.h>

#include "csv_record.h"
#include "named.h"
#include "nsys.h"

enum { MOST_NUMBER = 40 };
typedef enum cell { START, DURATION, CORRELATION, BYTES, DEVICE, STREAM, NAME, CELLS } cell;
static const char *const heads[CELLS] = {"Start",  "Duration", "CorrId", "Bytes",
                                         "Device", "Strm",     "Name"};

typedef struct nsys_table {
    trace_build *b;
    const sm_source *text;
    int at[CELLS];      /* column of each; -1: none */
    double unit[CELLS]; /* of its numbers: ns, bytes */
    int file;
} nsys_table;

/* In a head "(us)": how many ns or bytes one is. */
static double unit_of(const char *text, size_t length) {
    static const struct {
        const char *word;
        double unit;
    } all[] = {{"(ns)", 1},   {"(us)", 1e3}, {"(ms)", 1e6}, {"(s)", 1e9}, {"(B)", 1},
               {"(KB)", 1e3}, {"(kB)", 1e3}, {"(MB)", 1e6}, {"(GB)", 1e9}};
    for (size_t i = 0; i < length; i++)
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            if (part_begins_with(text + i, length - i, all[k].word)) return all[k].unit;
    return 1;
}

bool nsys_is_csv(const sm_source *first) {
    const char *text = first->text, *end = memchr(text, '\n', first->length);
    size_t length = end ? (size_t)(end - text) : first->length;
    bool name = false, told = false;
    for (size_t i = 0; i < length; i++) {
        name = name || part_begins_with(text + i, length - i, "Name");
        told = told || part_begins_with(text + i, length - i, "Start (") ||
               part_begins_with(text + i, length - i, "Timestamp (") ||
               part_begins_with(text + i, length - i, "Total Time (");
    }
    return name && told;
}

static sm_status fail(nsys_table *t, size_t at, const char *sentence) {
    if (!t->b->status)
        t->b->status = sm_fail_at(t->b->err, t->text, (sm_span){at, 1}, "%s", sentence);
    return t->b->status;
}

static sm_status read_head(nsys_table *t, const csv_record *head) {
    for (int k = 0; k < CELLS; k++) t->at[k] = -1;
    for (int i = 0; i < head->n; i++) {
        sm_span s = csv_inside(t->text, head->cell[i]);
        for (int k = 0; k < CELLS; k++)
            if (t->at[k] < 0 && part_begins_with(t->text->text + s.offset, s.length, heads[k])) {
                t->at[k] = i;
                t->unit[k] = unit_of(t->text->text + s.offset, s.length);
            }
    }
    if (t->at[START] >= 0 && t->at[DURATION] >= 0 && t->at[NAME] >= 0) return SM_OK;
    return fail(t, head->whole.offset,
                "this table of Nsight Systems has no start and duration of events: export the "
                "report cuda_gpu_trace, or give the .sqlite");
}

/* NAN is 0 here: a cell may be empty. */
static double number(const nsys_table *t, const csv_record *row, cell which) {
    char text[MOST_NUMBER + 1];
    if (t->at[which] < 0) return 0;
    sm_span s = csv_inside(t->text, row->cell[t->at[which]]);
    size_t n = s.length < MOST_NUMBER ? s.length : MOST_NUMBER;
    memcpy(text, t->text->text + s.offset, n);
    text[n] = 0;
    double value = strtod(text, NULL) * t->unit[which];
    return value > -1e18 && value < 1e18 ? value : 0;
}

/* "NVIDIA A100-SXM4-80GB (0)" is the device 0. */
static int device_of(nsys_table *t, const csv_record *row) {
    sm_span s = t->at[DEVICE] < 0 ? (sm_span){0, 0} : csv_inside(t->text, row->cell[t->at[DEVICE]]);
    const char *text = t->text->text + s.offset;
    size_t open = s.length;
    int ordinal = 0;
    while (open > 0 && text[open - 1] != '(') open--;
    for (size_t i = open; i < s.length && text[i] >= '0' && text[i] <= '9' && ordinal < 3000; i++)
        ordinal = 10 * ordinal + (text[i] - '0');
    int device = trace_device(t->b, t->file, ordinal);
    size_t name = open > 1 ? open - 2 : s.length;
    int32_t at = device >= 0 && !t->b->device[device].name[0] ? trace_name(t->b, text, name) : -1;
    if (at >= 0) t->b->device[device].name = t->b->names.text[at];
    return device;
}

static sm_status add_row(nsys_table *t, const csv_record *row) {
    int device = device_of(t, row);
    char *name = csv_copy(t->text, row->cell[t->at[NAME]], t->b->arena);
    sm_trace_event *e = name ? trace_event(t->b) : NULL;
    if (!e) return t->b->status ? t->b->status : (t->b->status = sm_fail_memory(t->b->err));
    double lasts = number(t, row, DURATION);
    e->start_ps = trace_time(t->b, (int64_t)number(t, row, START), 0);
    e->duration_ps = lasts > 0 && lasts < 1e15 ? (int64_t)(lasts * 1e3) : 0;
    e->correlation = (int64_t)number(t, row, CORRELATION);
    e->stream = trace_stream(t->b, device, 0, (int64_t)number(t, row, STREAM));
    e->name = trace_name(t->b, name, strlen(name));
    bool copy = begins_with(name, "[CUDA mem");
    e->kind = (uint8_t)(copy ? SM_TRACE_COPY : trace_kernel_kind(name));
    sm_trace_detail *d = number(t, row, BYTES) > 0 ? trace_detail(t->b, e) : NULL;
    if (d) d->bytes = number(t, row, BYTES);
    return t->b->status;
}

sm_status nsys_read_csv(trace_build *b, const sm_source *whole) {
    nsys_table t = {.b = b, .text = whole, .file = trace_file(b, whole->name, "Nsight Systems")};
    csv_record *row = sm_arena_alloc(b->arena, sizeof *row);
    size_t at = 0;
    if (!row && !b->status) b->status = sm_fail_memory(b->err);
    if (b->status) return b->status;
    b->file[t.file].end = whole->length;
    if (!csv_read(whole, &at, 0, row)) return fail(&t, row->wrong.offset, row->sentence);
    int columns = row->n;
    if (read_head(&t, row)) return b->status;
    while (!b->status && at < whole->length) {
        size_t begin = at;
        if (!csv_read(whole, &at, columns, row)) {
            b->file[t.file].partial = b->partial;
            b->file[t.file].end = begin;
            return b->partial ? SM_OK : fail(&t, row->wrong.offset, row->sentence);
        }
        if (row->whole.length > 0) add_row(&t, row);
    }
    return b->status;
}
