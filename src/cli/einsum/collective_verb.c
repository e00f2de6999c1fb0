/* collective: the options of `collective`. */
#include "program.h"

typedef struct values {
    sm_collective_question question;
    const char *on, *ragged;
    cli_calibration_values constants;
} collective_options;

static sm_status read_fraction(const char *text, double *fraction, sm_error *err) {
    sm_source source = sm_source_of("--ragged", text);
    size_t slash = strcspn(text, "/");
    double top = 0.0, bottom = 1.0;
    sm_status status = sm_quantity_parse(&source, (sm_span){0, slash}, SM_Q_COUNT, &top, err);
    if (!status && text[slash])
        status = sm_quantity_parse(&source, (sm_span){slash + 1, source.length - slash - 1},
                                   SM_Q_COUNT, &bottom, err);
    if (status) return status;
    if (!(bottom > 0.0 && top > 0.0 && top <= bottom))
        return sm_fail_at(err, &source, (sm_span){0, source.length},
                          "the part that moves is above 0 and at most 1");
    *fraction = top / bottom;
    return SM_OK;
}

/* --ragged, or --top-k with --expert-groups. */
static sm_status read_ragged(collective_options *o, sm_error *err) {
    sm_collective_question *q = &o->question;
    bool any = o->ragged || q->top_k > 0.0 || q->expert_groups > 0.0;
    if (any && q->op != SM_ALL_TO_ALL)
        return sm_fail(err, SM_USAGE, "--ragged and --top-k are for all-to-all only");
    if (o->ragged && q->top_k > 0.0)
        return sm_fail(err, SM_USAGE, "--ragged and --top-k exclude each other");
    if (q->expert_groups > 0.0 && !(q->top_k > 0.0))
        return sm_fail(err, SM_USAGE, "--expert-groups needs --top-k");
    return o->ragged ? read_fraction(o->ragged, &q->ragged, err) : SM_OK;
}

static sm_status run_collective(const cli_call *call, sm_report *r, sm_error *err) {
    collective_options *o = call->values;
    sm_collective_question *q = &o->question;
    sm_system system;
    q->size = sizeof *q;
    q->system = &system;
    q->array = sm_source_of("ARRAY", call->positional[1]);
    q->explain = call->common.explain;
    sm_status status = cli_collective_read(call->positional[0], &q->op, err);
    if (!status) status = cli_system(call, o->on, &system, err);
    if (!status) status = cli_calibration(call, &system.chip, &o->constants, &q->calibration, err);
    if (!status) status = read_ragged(o, err);
    return status ? status : sm_answer_collective(q, r, err);
}

const cli_verb cli_collective = {
    .about = &verbs_collective,
    CLI_VALUES(AT("on", on), AT("mesh", question.mesh), AT("over", question.over),
               AT("dims", question.dims), AT("ragged", ragged), AT("top-k", question.top_k),
               AT("expert-groups", question.expert_groups), CLI_CALIBRATION_PLACES(constants)),
    .run = run_collective,
};
