/* A report as the page a person reads in a terminal. */
#include <string.h>

#include "blocks.h"
#include "columns.h"
#include "scalemodel/render.h"

static void draw_heading(const char *text, int width, FILE *out) {
    sm_print_wrapped(out, text, width, "", "");
    int columns = sm_columns_of(text, strlen(text));
    sm_print_repeated(out, "\xE2\x95\x90", columns < width ? columns : width); /* U+2550 */
    fputc('\n', out);
}

/* Paragraphs keep the blanks they begin with, on every line. */
static void draw_text(const char *text, int width, FILE *out) {
    char indent[16] = "";
    size_t blanks = strspn(text, " ");
    if (blanks >= sizeof indent || (int)blanks > width / 2) blanks = 0;
    memset(indent, ' ', blanks);
    indent[blanks] = '\0';
    sm_print_wrapped(out, text + blanks, width, indent, indent);
}

static sm_status draw_block(const sm_block *block, int width, FILE *out, sm_error *err) {
    switch (block->kind) {
    case SM_BLOCK_HEADING: draw_heading(block->text, width, out); return SM_OK;
    case SM_BLOCK_TEXT: draw_text(block->text, width, out); return SM_OK;
    case SM_BLOCK_LINES: fputs(block->text, out); return SM_OK;
    case SM_BLOCK_TABLE: return sm_draw_table(block->table, width, out, err);
    case SM_BLOCK_BAR: sm_draw_bar(block->bar, width, out); return SM_OK;
    case SM_BLOCK_WHY: return sm_draw_why(block->why, width, out, err);
    }
    return SM_OK;
}

/* A blank line stands between blocks, but not under a heading or between lines of text. */
static bool apart(const sm_block *above, const sm_block *below) {
    if (above->kind == SM_BLOCK_HEADING) return false;
    return above->kind != SM_BLOCK_TEXT || below->kind != SM_BLOCK_TEXT;
}

sm_status sm_render_text(const sm_report *report, int width, FILE *out, sm_error *err) {
    if (report->out_of_memory) return sm_fail_memory(err);
    if (width <= 0) width = 80;
    if (width < NARROWEST_PAGE) width = NARROWEST_PAGE;
    sm_status status = SM_OK;
    for (const sm_block *block = report->first; !status && block; block = block->next) {
        status = draw_block(block, width, out, err);
        if (!status && block->next && apart(block, block->next)) fputc('\n', out);
    }
    if (!status && report->why) {
        if (report->first) fputc('\n', out);
        draw_heading("Why", width, out);
        status = sm_draw_why(report->why, width, out, err);
    }
    return status ? status : sm_finish_stream(out, err);
}
