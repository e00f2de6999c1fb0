/* The tables of stack frames: FileNames, FunctionNames, FileLocations, StackFrames. */
#include <string.h>

#include "hlo_reader.h"

static const char *const heads[HLO_TABLES] = {"FileNames", "FunctionNames", "FileLocations",
                                              "StackFrames"};

/* {file_name_id=1 function_name_id=2 line=58 ...}; {file_location_id=1 parent_frame_id=1} */
static bool read_row(hlo_reader *r, hlo_frame *row) {
    while (!r->status && !hlo_accept(r, '}')) {
        sm_span key = hlo_name(r);
        int64_t value;
        if (!key.length || !hlo_expect(r, '=', "in a table") || !hlo_number(r, &value))
            return hlo_fail(r, (sm_span){r->at, 1}, "expected key=number");
        if (hlo_is(r, key, "file_name_id") || hlo_is(r, key, "file_location_id")) row->a = value;
        else if (hlo_is(r, key, "function_name_id") || hlo_is(r, key, "parent_frame_id"))
            row->b = value;
        else if (hlo_is(r, key, "line")) row->line = value;
    }
    return !r->status;
}

/* Rows are "1 ..." in order. */
static void read_rows(hlo_reader *r, hlo_list *table) {
    while (hlo_next(r) >= '0' && hlo_next(r) <= '9') {
        int64_t number;
        if (!hlo_number(r, &number)) return;
        hlo_frame *row = hlo_push(r, table, sizeof *row);
        if (!row) return;
        row->text = "";
        sm_span quoted;
        if (hlo_quoted(r, &quoted)) row->text = hlo_copy(r, quoted);
        else if (!hlo_expect(r, '{', "in a table") || !read_row(r, row)) return;
        if (number != (int64_t)table->n) hlo_fail(r, (sm_span){r->at, 1}, "a row is out of order");
    }
}

bool hlo_table(hlo_reader *r, sm_span word) {
    for (int i = 0; i < HLO_TABLES; i++) {
        if (!hlo_is(r, word, heads[i])) continue;
        read_rows(r, &r->table[i]);
        return true;
    }
    return false;
}

static const hlo_frame *row_of(const hlo_reader *r, int table, int64_t number) {
    const hlo_frame *row = r->table[table].item;
    return number >= 1 && number <= (int64_t)r->table[table].n ? &row[number - 1] : NULL;
}

void hlo_place(const hlo_reader *r, int frame, const char **file, int *line) {
    const hlo_frame *f = row_of(r, HLO_FRAMES, frame);
    const hlo_frame *location = f ? row_of(r, HLO_LOCATIONS, f->a) : NULL;
    const hlo_frame *name = location ? row_of(r, HLO_FILES, location->a) : NULL;
    if (!name) return;
    *file = name->text;
    *line = (int)location->line;
}
