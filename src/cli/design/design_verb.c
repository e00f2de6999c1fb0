/* design: which machine to build or to buy: every machine of a study, what it does and takes. */
#include "program.h"
#include "design.h"

typedef struct design_values {
    const char *plot;
    int64_t threads;
} design_values;

static const cli_option design_table[] = {
    {"plot", 0, CLI_OUTPUT, offsetof(design_values, plot), "FILE", .gets = CLI_CHART,
     .help =
         "draw throughput against what it takes, and what more of each resource brings, as SVG"},
    {"threads", 0, CLI_WHOLE, offsetof(design_values, threads), "N",
     .help = "that ask; the answer is the same", .lowest = 1, .highest = 1024,
     .default_says = "all processors"},
    {.name = NULL},
};

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
    .name = "design",
    .summary = "which machine to build or to buy for given work",
    .arguments = "FILE",
    .options = design_table,
    .values_bytes = sizeof(design_values),
    .notes = "FILE says in JSON which machines, what they take, and what they do:\n\n"
             "  {\"over\": {\"on\": \"h100-sxm:8x8\", \"what-if.hbm\": \"1,1.5,2\"},\n"
             "   \"usd_per_hour\": \"chips * (1.5 + 0.5 * hbm)\",\n"
             "   \"work\": [{\"ask\": [\"train\", \"llama-3.1-8b\", \"--batch\", \"4M\"]}]}\n",
    .run = run_design,
};
