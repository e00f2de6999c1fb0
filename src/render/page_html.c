/* A report as one file for a browser: its page as it stands in a terminal, and its chart below. */
#include "columns.h"

enum { PAGE_WIDTH = 110 };

static void put_escaped(const char *text, size_t length, FILE *out) {
    for (size_t i = 0; i < length; i++) {
        switch (text[i]) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        default: fputc(text[i], out);
        }
    }
}

static sm_status put_page(const sm_report *report, FILE *out, sm_error *err) {
    sm_memory_stream memory;
    FILE *page = sm_memory_stream_open(&memory);
    if (!page) return sm_fail_memory(err);
    sm_status status = sm_render_text(report, PAGE_WIDTH, page, err);
    status = sm_memory_stream_close(&memory, page, status, err);
    if (!status) put_escaped(memory.text, memory.length, out);
    sm_free(memory.text);
    return status;
}

sm_status sm_render_html(const sm_report *report, FILE *out, sm_error *err) {
    const char *title = report->chart && report->chart->title ? report->chart->title : "scalemodel";
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>", out);
    put_escaped(title, strlen(title), out);
    fputs("</title>\n<style>body{margin:2em;max-width:70em}"
          "pre{font:13px/1.35 monospace;overflow-x:auto}</style>\n</head>\n<body>\n<pre>",
          out);
    sm_status status = put_page(report, out, err);
    fputs("</pre>\n", out);
    if (!status && report->chart) status = sm_render_chart(report->chart, out, err);
    fputs("</body>\n</html>\n", out);
    return status ? status : sm_finish_stream(out, err);
}
