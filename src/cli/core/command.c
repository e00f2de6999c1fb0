/* command: a command line answered without a program around it. */
#include "program.h"
#include "scalemodel/json.h"
#include "scalemodel/render.h"

struct sm_command {
    sm_arena *arena; /* the words, the call, and the report's facts */
    sm_report *report;
    sm_error err;
    sm_status status, step;    /* of the answer, of the last step asked of its engine */
    char *text[SM_FORM_COUNT]; /* made when first asked for */
    int width;                 /* of the page among them */
};

static sm_command *command_new(void) {
    sm_command *c = sm_calloc(1, sizeof *c);
    if (!c) return NULL;
    c->arena = sm_arena_new();
    c->report = sm_report_new();
    if (c->arena && c->report) return c;
    sm_command_free(c);
    return NULL;
}

void sm_command_free(sm_command *c) {
    if (!c) return;
    for (int form = 0; form < SM_FORM_COUNT; form++) sm_free(c->text[form]);
    sm_report_free(c->report);
    sm_arena_free(c->arena);
    sm_free(c);
}

/* The words after the verb, as a parser takes them. */
static char **copied(sm_arena *arena, int n, const char *const *word) {
    char **argv = sm_arena_alloc(arena, ((size_t)n + 1) * sizeof *argv);
    for (int i = 0; argv && i < n; i++)
        if (!(argv[i] = sm_arena_copy(arena, word[i], strlen(word[i])))) return NULL;
    return argv;
}

static sm_status answer(sm_command *c, int words, const char *const *word,
                        const sm_command_watch *watch) {
    static const sm_command_watch nobody = {.size = sizeof nobody};
    sm_command_watch *own = sm_arena_alloc(c->arena, sizeof *own);
    cli_call *call = sm_arena_alloc(c->arena, sizeof *call);
    char **argv = words > 0 ? copied(c->arena, words - 1, word + 1) : copied(c->arena, 0, NULL);
    if (!own || !call || !argv) return sm_fail_memory(&c->err);
    sm_status status = sm_sized_take(own, sizeof *own, watch ? watch : &nobody, &c->err);
    if (status) return status;
    const cli_verb *verb = cli_find_verb(&cli_scalemodel, words > 0 ? word[0] : "", &c->err);
    if (!verb) return SM_USAGE;
    if (verb->pass_on)
        return sm_fail(&c->err, SM_USAGE, "'%s' starts other programs: only the program does it",
                       verb->about->name);
    *call = (cli_call){.arena = c->arena, .argv = argv, .watch = own};
    status = cli_parse(verb, words - 1, argv, call, &c->err);
    if (!status && call->common.help)
        return sm_fail(&c->err, SM_USAGE, "--help is the program's own: sm_command_describe");
    if (!status) status = cli_ask(call, c->report, &c->err);
    if (c->report->why) sm_put_why(c->report, c->report->why);
    if (status <= SM_NEGATIVE && c->report->out_of_memory) return sm_fail_memory(&c->err);
    return status;
}

sm_command *sm_command_ask(int words, const char *const *word, const sm_command_watch *watch) {
    sm_command *c = command_new();
    if (c) c->status = answer(c, words, word, watch);
    return c;
}

sm_command *sm_command_describe(void) {
    sm_command *c = command_new();
    if (c) c->status = cli_describe(&cli_scalemodel, c->report, &c->err);
    return c;
}

sm_status sm_command_status(const sm_command *c) { return c ? c->status : SM_INTERNAL; }

sm_status sm_command_step_time(sm_command *c, const sm_sequence_step *sequences, size_t n,
                               double *seconds) {
    *seconds = 0.0;
    if (!c) return SM_INTERNAL;
    for (int form = SM_FORM_ERROR; form <= SM_FORM_ERROR_JSON; form++) {
        sm_free(c->text[form]);
        c->text[form] = NULL;
    }
    c->step = c->report->kept
                  ? sm_serve_step_time(c->report->kept, sequences, n, seconds, &c->err)
                  : sm_fail(&c->err, SM_USAGE, "a step is of an engine that 'simulate' keeps");
    return c->step;
}

/* ---- forms ---- */

static sm_status write_error(const sm_error *e, FILE *out, sm_error *err) {
    sm_report *r = sm_report_new();
    if (!r) return sm_fail_memory(err);
    sm_put(r, r->data, "status|sentence|source|line|column|span|excerpt|excerpt_column",
           (double)e->status, e->sentence, e->source[0] ? e->source : NULL, e->line, e->column,
           e->span, e->excerpt, e->excerpt_column);
    sm_status status =
        r->out_of_memory ? sm_fail_memory(err) : sm_json_write(out, r->data, SM_JSON_PAGE, err);
    sm_report_free(r);
    return status;
}

static sm_status show_error(const sm_error *e, FILE *out) {
    char text[2048];
    sm_error_format(e, text, sizeof text);
    fputs(text, out);
    return SM_OK;
}

static bool has(const sm_command *c, sm_form form) {
    bool error = form == SM_FORM_ERROR || form == SM_FORM_ERROR_JSON;
    if (error) return c->status > SM_NEGATIVE || c->step > SM_NEGATIVE;
    if (c->status > SM_NEGATIVE) return false;
    if (form == SM_FORM_CHART) return c->report->chart != NULL;
    return form != SM_FORM_TIMELINE || c->report->tracks != NULL;
}

static sm_status write_form(const sm_command *c, sm_form form, FILE *out, sm_error *err) {
    switch (form) {
    case SM_FORM_TEXT: return sm_render_text(c->report, c->width, out, err);
    case SM_FORM_JSON: return sm_render_json(c->report, out, err);
    case SM_FORM_CSV: return sm_render_csv(c->report, out, err);
    case SM_FORM_CHART: return sm_render_chart(c->report->chart, out, err);
    case SM_FORM_TIMELINE: return sm_render_tracks(c->report->tracks, out, err);
    case SM_FORM_ERROR: return show_error(&c->err, out);
    case SM_FORM_ERROR_JSON: return write_error(&c->err, out, err);
    case SM_FORM_COUNT: break;
    }
    return sm_fail(err, SM_INTERNAL, "there is no form %d", (int)form);
}

const char *sm_command_text(sm_command *c, sm_form form, int width) {
    sm_error err;
    sm_memory_stream memory;
    if (!c || (unsigned)form >= SM_FORM_COUNT || !has(c, form)) return NULL;
    if (c->text[form] && (form != SM_FORM_TEXT || width == c->width)) return c->text[form];
    sm_free(c->text[form]);
    c->text[form] = NULL;
    if (form == SM_FORM_TEXT) c->width = width;
    FILE *out = sm_memory_stream_open(&memory);
    if (!out) return NULL;
    sm_status status = write_form(c, form, out, &err);
    if (!sm_memory_stream_close(&memory, out, status, &err)) c->text[form] = memory.text;
    else sm_free(memory.text);
    return c->text[form];
}
