/* answer: render a report into memory, then hand it to standard output or to a file in one piece.
 */
#include "answer.h"
#include "scalemodel/io.h"
#include "scalemodel/render.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PAGE_WIDTH = 80 };

static sm_status render(const cli_common *common, const sm_report *report, FILE *out,
                        sm_error *err) {
    if (common->json) return sm_render_json(report, out, err);
    if (common->csv) return sm_render_csv(report, out, err);
    return sm_render_text(report, PAGE_WIDTH, out, err);
}

sm_status cli_write_stdout(const char *text, size_t length, sm_error *err) {
    errno = 0;
    bool written = fwrite(text, 1, length, stdout) == length && fflush(stdout) == 0;
    if (written && !ferror(stdout)) return SM_OK;
    if (errno == EPIPE) { /* whoever read has seen enough (`| head`): a status, but no complaint */
        *err = (sm_error){.status = SM_IO};
        return SM_IO;
    }
    return sm_fail(err, SM_IO, "cannot write to standard output: %s",
                   errno ? strerror(errno) : "write error");
}

sm_status cli_answer(const cli_common *common, const sm_report *report, sm_error *err) {
    if (report->out_of_memory) return sm_fail_memory(err);
    sm_memory_stream memory;
    FILE *out = sm_memory_stream_open(&memory);
    if (!out) return sm_fail_memory(err);
    sm_status status = render(common, report, out, err);
    status = sm_memory_stream_close(&memory, out, status, err);
    if (!status)
        status = common->output ? sm_io_write(common->output, memory.text, memory.length, err)
                                : cli_write_stdout(memory.text, memory.length, err);
    sm_free(memory.text);
    return status;
}

void cli_show_error(const sm_error *err) {
    char text[2048];
    if (!err->sentence[0]) return;
    sm_error_format(err, text, sizeof text);
    size_t length = strlen(text);
    fprintf(stderr, "%s%s%s", err->line || err->source[0] ? "" : "scalemodel: ", text,
            length && text[length - 1] == '\n' ? "" : "\n");
}
