/* design: which machine to build or to buy: every machine of a study, what it does and takes. */
#include "design.h"

typedef struct values {
    const char *plot;
    int64_t threads;
} design_values;

static sm_status run_design(const cli_call *call, sm_report *r, sm_error *err) {
    const design_values *o = call->values;
    design *d = sm_arena_alloc(call->arena, sizeof *d);
    if (!d) return sm_fail_memory(err);
    d->call = call;
    d->r = r;
    sm_status s = design_read(d, err);
    if (!s) s = design_ask(d, sm_search_threads((int)o->threads), err);
    for (int i = 0; i < d->works; i++)
        if (d->work[i].s) sweep_end(d->work[i].s);
    return s ? s : design_tell(d, err);
}

const cli_verb cli_design = {
    .about = &verbs_design,
    CLI_VALUES(AT("plot", plot), AT("threads", threads)),
    .run = run_design,
};
