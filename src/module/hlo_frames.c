/* The tables of stack frames: FileNames, FunctionNames, FileLocations, StackFrames. */

#include "hlo_reader.h"

static const char *const heads[MODULE_TABLES] = {"FileNames", "FunctionNames", "FileLocations",
                                                 "StackFrames"};

/* {file_name_id=1 function_name_id=2 line=58 ...}; {file_location_id=1 parent_frame_id=1} */
static bool read_row(hlo_reader *r, module_row *row) {
    while (!r->status && !hlo_accept(r, '}')) {
        sm_span key = hlo_name(r);
        int64_t value;
        if (!key.length || !hlo_expect(r, '=', "in a table") || !hlo_number(r, &value))
            return hlo_fail_here(r, "expected key=number");
        if (hlo_is(r, key, "file_name_id") || hlo_is(r, key, "file_location_id")) row->of = value;
        else if (hlo_is(r, key, "line")) row->line = value;
    }
    return !r->status;
}

/* Rows are "1 ..." in order. */
static void read_rows(hlo_reader *r, hlo_list *table) {
    while (hlo_next(r) >= '0' && hlo_next(r) <= '9') {
        int64_t number;
        if (!hlo_number(r, &number)) return;
        module_row *row = hlo_push(r, table, sizeof *row);
        if (!row) return;
        row->text = "";
        sm_span quoted;
        if (hlo_quoted(r, &quoted)) row->text = hlo_copy(r, quoted);
        else if (!hlo_expect(r, '{', "in a table") || !read_row(r, row)) return;
        if (number != (int64_t)table->n) hlo_fail_here(r, "a row is out of order");
    }
}

bool hlo_table(hlo_reader *r, sm_span word) {
    for (int i = 0; i < MODULE_TABLES; i++) {
        if (!hlo_is(r, word, heads[i])) continue;
        read_rows(r, &r->table[i]);
        return true;
    }
    return false;
}

module_frames hlo_frames(const hlo_reader *r) {
    module_frames frames = {0};
    for (int i = 0; i < MODULE_TABLES; i++) {
        frames.row[i] = r->table[i].item;
        frames.n[i] = r->table[i].n;
    }
    return frames;
}
