/* A report: one arena, the data tree, and the blocks of the page in reading order. */
#include "scalemodel/report.h"

#include <string.h>

sm_report *sm_report_new(void) {
    sm_arena *arena = sm_arena_new();
    sm_report *report = sm_arena_alloc(arena, sizeof *report);
    sm_data *data = sm_data_object(arena);
    if (report == NULL || data == NULL) {
        sm_arena_free(arena);
        return NULL;
    }
    report->arena = arena;
    report->data = data;
    return report;
}

void sm_report_free(sm_report *report) {
    if (report != NULL && report->release != NULL) report->release(report->kept);
    if (report != NULL) sm_arena_free(report->arena);
}

void *sm_report_room(sm_report *r, size_t n, size_t bytes) {
    void *room = sm_arena_array(r->arena, n, bytes);
    r->out_of_memory |= room == NULL;
    return room;
}

/* A new block at the end of the page; notes it in the report when memory is out. */
static sm_block *add_block(sm_report *r, sm_block_kind kind) {
    if (r == NULL) return NULL;
    sm_block *block = sm_report_room(r, 1, sizeof *block);
    if (block == NULL) return NULL;
    block->kind = kind;
    if (r->last != NULL) r->last->next = block;
    else r->first = block;
    r->last = block;
    return block;
}

static void add_text(sm_report *r, sm_block_kind kind, const char *format, va_list args) {
    sm_block *block = add_block(r, kind);
    if (block == NULL) return;
    block->text = sm_arena_vprintf(r->arena, format, args);
    if (block->text != NULL) return;
    block->text = "";
    r->out_of_memory = true;
}

static const char *copy_text(sm_report *r, const char *text) {
    const char *copy = sm_arena_copy(r->arena, text != NULL ? text : "", text ? strlen(text) : 0);
    if (copy == NULL) r->out_of_memory = true;
    return copy != NULL ? copy : "";
}

void sm_report_heading(sm_report *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_text(r, SM_BLOCK_HEADING, format, args);
    va_end(args);
}

void sm_report_text(sm_report *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_text(r, SM_BLOCK_TEXT, format, args);
    va_end(args);
}

void sm_report_lines(sm_report *r, const char *text) {
    sm_block *block = add_block(r, SM_BLOCK_LINES);
    if (block != NULL) block->text = copy_text(r, text);
}

void sm_report_table(sm_report *r, const sm_table *table) {
    if (r == NULL) return;
    if (table == NULL) r->out_of_memory = true;
    sm_block *block = table != NULL ? add_block(r, SM_BLOCK_TABLE) : NULL;
    if (block != NULL) block->table = table;
}

static const sm_bar_part *copy_parts(sm_report *r, size_t n, const sm_bar_part *parts) {
    sm_bar_part *copies = sm_report_room(r, n, sizeof *copies);
    if (copies == NULL) return NULL;
    for (size_t i = 0; i < n; i++)
        copies[i] = (sm_bar_part){copy_text(r, parts[i].label), parts[i].value};
    return copies;
}

void sm_report_bar(sm_report *r, const char *title, const char *unit, double capacity, size_t n,
                   const sm_bar_part *parts) {
    if (r == NULL) return;
    sm_bar *bar = sm_report_room(r, 1, sizeof *bar);
    const sm_bar_part *copies = copy_parts(r, n, parts);
    if (bar == NULL || copies == NULL) return;
    *bar = (sm_bar){copy_text(r, title), copy_text(r, unit), capacity, n, copies};
    sm_block *block = add_block(r, SM_BLOCK_BAR);
    if (block != NULL) block->bar = bar;
}

static void *copy_items(sm_report *r, const void *from, size_t n, size_t size) {
    void *copy = from != NULL ? sm_report_room(r, n, size) : NULL;
    if (copy != NULL) memcpy(copy, from, n * size);
    return copy;
}

void sm_report_chart(sm_report *r, const sm_chart *chart) {
    sm_chart *copy = copy_items(r, chart, 1, sizeof *copy);
    sm_panel *panel = copy_items(r, chart->panel, chart->n, sizeof *panel);
    for (size_t i = 0; panel != NULL && i < chart->n; i++) {
        sm_series *series = copy_items(r, panel[i].series, panel[i].n, sizeof *series);
        for (size_t k = 0; series != NULL && k < panel[i].n; k++) {
            series[k].x = copy_items(r, series[k].x, series[k].n, sizeof(double));
            series[k].y = copy_items(r, series[k].y, series[k].n, sizeof(double));
            series[k].area = copy_items(r, series[k].area, series[k].n, sizeof(double));
        }
        panel[i].series = series;
    }
    if (r->out_of_memory) return;
    copy->panel = panel;
    r->chart = copy;
}
