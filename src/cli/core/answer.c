/* answer: render a report, a chart or a timeline into memory, then hand it to standard output or to
 * a file in one piece. */
#include "program.h"
#include "scalemodel/io.h"
#include "scalemodel/render.h"
#include <errno.h>
#include <unistd.h>

enum { PAGE_WIDTH = 80 };

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

sm_status cli_write(const char *path, cli_writer *write, const void *context, sm_error *err) {
    sm_memory_stream memory;
    FILE *out = sm_memory_stream_open(&memory);
    if (!out) return sm_fail_memory(err);
    sm_status status = write(context, out, err);
    status = sm_memory_stream_close(&memory, out, status, err);
    if (!status)
        status = path && strcmp(path, "-") != 0 ? sm_io_write(path, memory.text, memory.length, err)
                                                : cli_write_stdout(memory.text, memory.length, err);
    sm_free(memory.text);
    return status;
}

typedef struct answer {
    const cli_common *common;
    const sm_report *report;
} answer;

static sm_status write_answer(const void *context, FILE *out, sm_error *err) {
    const answer *a = context;
    if (a->common->json) return sm_render_json(a->report, out, err);
    if (a->common->csv) return sm_render_csv(a->report, out, err);
    return sm_render_text(a->report, PAGE_WIDTH, out, err);
}

sm_status cli_answer(const cli_common *common, const sm_report *report, sm_error *err) {
    if (report->out_of_memory) return sm_fail_memory(err);
    return cli_write(common->output, write_answer, &(answer){common, report}, err);
}

typedef struct picture {
    cli_picture what;
    const sm_report *report;
} picture;

static sm_status write_picture(const void *context, FILE *out, sm_error *err) {
    const picture *p = context;
    if (p->what == CLI_CHART) return sm_render_chart(p->report->chart, out, err);
    if (p->what == CLI_TRACKS) return sm_render_tracks(p->report->tracks, out, err);
    return sm_render_html(p->report, out, err);
}

static bool is_there(const picture *p) {
    const sm_report *r = p->report;
    return p->what == CLI_PAGE || (p->what == CLI_CHART && r->chart) ||
           (p->what == CLI_TRACKS && r->tracks);
}

sm_status cli_ask(const cli_call *call, sm_report *r, sm_error *err) {
    sm_status told = call->verb->run(call, r, err), status = SM_OK;
    if (told > SM_NEGATIVE) return told;
    if (r->out_of_memory) return sm_fail_memory(err);
    for (int i = 0; call->verb->about->options[i].name && !status; i++) {
        const picture p = {call->verb->about->options[i].gets, r};
        if (call->given[i] && is_there(&p))
            status = cli_write(call->given[i], write_picture, &p, err);
    }
    return status ? status : told;
}

void cli_show_error(const sm_error *err) {
    char text[2048];
    if (!err->sentence[0]) return;
    sm_error_format(err, text, sizeof text);
    const char *name = err->line || err->source[0] ? "" : "scalemodel: ";
    char *rest = text;
    if (isatty(STDERR_FILENO)) { /* in a file a sentence stays one line, which grep finds */
        rest += strcspn(text, "\n");
        if (*rest) *rest++ = '\0';
        sm_print_wrapped(stderr, text, PAGE_WIDTH, name, "    ");
    } else fputs(name, stderr);
    if (*rest) fprintf(stderr, "%s%s", rest, rest[strlen(rest) - 1] == '\n' ? "" : "\n");
}
