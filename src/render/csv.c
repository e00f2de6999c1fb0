/* Every table of a report as CSV (RFC 4180): a line of heads, a line a row, CRLF; an empty line
 * between tables. */
#include <string.h>

#include "columns.h"
#include "scalemodel/render.h"

static void put_record(const char **cells, size_t n, FILE *out) {
    for (size_t c = 0; c < n; c++) {
        if (c > 0) fputc(',', out);
        bool quoted = strpbrk(cells[c], ",\"\r\n") != NULL;
        if (quoted) fputc('"', out);
        for (const char *at = cells[c]; *at; at++) {
            if (*at == '"') fputc('"', out);
            fputc(*at, out);
        }
        if (quoted) fputc('"', out);
    }
    fputs("\r\n", out);
}

sm_status sm_render_csv(const sm_report *report, FILE *out, sm_error *err) {
    if (report->out_of_memory) return sm_fail_memory(err);
    bool first = true;
    for (const sm_block *block = report->first; block != NULL; block = block->next) {
        if (block->kind != SM_BLOCK_TABLE) continue;
        const sm_table *table = block->table;
        if (!first) fputs("\r\n", out);
        put_record(table->heads, table->columns, out);
        for (size_t r = 0; r < table->rows; r++) put_record(table->cells[r], table->columns, out);
        first = false;
    }
    return sm_finish_stream(out, err);
}
