/* support: the options of `support`. */
#include "program.h"

typedef struct values {
    sm_support_question question;
    sm_model model;
    sm_system system;
    cli_model_values read_by;
} support;

enum { MOST_NAMES = 128 };

/* A name that no measured row has is a slip of the pen. */
static sm_status check_software(const cli_call *call, const support *s, sm_error *err) {
    const char *names[MOST_NAMES];
    const sm_evidence *e;
    int n = 0;
    if (!s->question.software) return SM_OK;
    for (size_t i = 0; (e = sm_evidence_at(i)) != NULL; i++) {
        int at = 0;
        while (at < n && strcmp(names[at], e->software) != 0) at++;
        if (e->software[0] && at == n && n < MOST_NAMES) names[n++] = e->software;
    }
    const sm_source source = cli_source(call, &s->question.software);
    const sm_span all = {0, source.length};
    const sm_words words = {names, n};
    if (sm_words_find(words, &source, all) >= 0) return SM_OK;
    return sm_words_fail(words, &source, all, "nothing was measured under", err);
}

static sm_status run_support(const cli_call *call, sm_report *r, sm_error *err) {
    support *s = call->values;
    sm_support_question *q = &s->question;
    q->size = sizeof *q;
    q->model = &s->model;
    q->system = &s->system;
    q->any_type = !cli_given(call, &q->type);
    sm_status status = cli_read_model(call, &s->read_by, call->positional[0], &s->model, err);
    if (!status) status = cli_system(call, call->positional[1], &s->system, err);
    if (!status) status = check_software(call, s, err);
    return status ? status : sm_answer_support(q, r, err);
}

const cli_verb cli_support = {
    .about = &verbs_support,
    CLI_VALUES(ASK("software", software), ASK("weights", type), ASK("concurrency", in_flight),
               ASK("prompt", prompt), ASK("output", output), ASK("batch", batch_tokens),
               ASK("seq", seq), ASK("top", top), CLI_MODEL_PLACES(read_by)),
    .run = run_support,
};
