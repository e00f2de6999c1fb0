/* run serve: an engine on ranks, for clients over HTTP or for the requests of a trace, of which
 * what was measured then stands beside what the simulation says. */
#include "program.h"
#include "arrival_options.h"
#include "serve_engine.h"
#include "serving_model.h"
#include <signal.h>
#include <time.h>

#define MOST_CACHE_BYTES 1073741824.0 /* of a cache whose size nobody gave */

typedef struct run_serve_values {
    arrival_values requests;
    ranks_values ranks;
    prediction_values predicted;
    cli_model_values read_by;
    const char *checkpoint, *plan, *listen, *csv, *plot;
    int weights, port;
    int64_t queue;
    double longest, cache, temperature, patience_s;
} run_serve_values;

/* Of one side: what became of each request. */
typedef struct served_list {
    sm_request_served *request;
    size_t n, room;
} served_list;

/* What a call's values are. */
typedef struct values {
    run_serve_values given;
    const cli_call *call;
    serving_model m;
    seen_shape shape; /* of pictures */
    sm_plan plan;
    sm_system system;
    sm_serve *price;
    sm_engine priced; /* steps of all groups of ranks */
    sm_engine engine; /* of one group, whose steps all take together */
    double groups;
    sm_simulation options;
    sm_generator_pages pages;
    serve_load_list list; /* without requests: clients come over HTTP */
    serve_desk desk;
    sigset_t signals;
    /* while it runs, on the first rank */
    serve_http *http;
    serve_load *load;
    pthread_t watcher;
    bool watches;
    /* answers, written by rank 0 */
    serve_engine_result result;
    serve_http_counts http_counts;
    double dropped;
    sm_simulated simulated;
    served_list as_measured, as_simulated;
} serve_run;

static bool is_replay(const serve_run *g) { return g->list.n > 0; }

/* ---- the question ---- */

/* What steps are expected to take: every group has its share of the load, and all step together. */
static double group_step_s(void *context, double n, double cached, double prefill,
                           double attended) {
    const serve_run *g = context;
    double of_copy = g->groups / g->plan.data;
    return g->priced.step_s(g->priced.context, n * of_copy, cached * of_copy, prefill * of_copy,
                            attended);
}

static double group_look_s(void *context, double n) {
    const serve_run *g = context;
    return !g->priced.begin_s ? 0
                              : g->priced.begin_s(g->priced.context, n * g->groups / g->plan.data);
}

/* The simulation waits for the time of a step; an engine that runs takes it. */
static sm_status price(serve_run *g, sm_error *err) {
    const sm_calibration *constants = NULL;
    const sm_lengths *l = &g->given.requests.draw.lengths;
    sm_status status =
        prediction_system(g->call, &g->given.predicted, sm_train_setup_ranks(&g->m.setup),
                          &g->system, &constants, err);
    if (!status)
        status =
            serving_price_new(&g->m, &g->system, l->prompt, l->output, constants, &g->price, err);
    const sm_simulation *o = &g->options;
    const sm_engine_use use = {.mean_tokens = fmin(g->given.longest, l->prompt + l->output),
                               .step_tokens =
                                   fmax(fmax(o->chunk_tokens, o->prefill_tokens), o->most_batch) *
                                   g->groups / g->plan.data};
    if (!status)
        status = sm_serve_engine(g->price, &g->plan, &use, g->call->arena, &g->priced, err);
    if (status) return status;
    g->engine = g->priced;
    g->engine.context = g;
    g->engine.step_s = group_step_s;
    g->engine.begin_s = NULL; /* requests of a trace have no pictures, those of clients some */
    g->engine.kv_tokens = (double)(g->pages.pages * g->pages.page_tokens);
    g->engine.host_kv_tokens = 0;
    g->options.engine = &g->engine;
    return SM_OK;
}

static sm_status size_cache(serve_run *g, sm_error *err) {
    double each = fmax(1, sm_model_kv_bytes_per_token(&g->m.model, SM_FP32));
    double tokens = fmin(g->options.most_batch * g->given.longest,
                         fmax(g->given.longest, MOST_CACHE_BYTES / each));
    if (g->given.cache > 0) tokens = g->given.cache;
    g->pages.page_tokens = (size_t)g->options.page_tokens;
    g->pages.pages = (size_t)(tokens / g->options.page_tokens);
    if (g->pages.page_tokens % (size_t)g->plan.context)
        return cli_refuse(g->call, &g->options.page_tokens, err,
                          "a page of %.0f tokens does not divide over %d ranks of context",
                          g->options.page_tokens, g->plan.context);
    if ((double)(g->pages.pages * g->pages.page_tokens) >= g->given.longest) return SM_OK;
    return cli_refuse(g->call, &g->given.cache, err,
                      "a cache of %.0f tokens has no room for one sequence of %.0f (--longest)",
                      tokens, g->given.longest);
}

/* The requests of a trace or a draw, all of them. */
static sm_status read_requests(serve_run *g, sm_error *err) {
    sm_request_source *source;
    sm_arrivals arrivals;
    if (!arrivals_asked(&g->given.requests)) {
        if (g->given.requests.requests > 0 || g->given.csv || g->given.plot)
            return sm_fail(err, SM_USAGE,
                           "--requests, --csv and --plot are of requests that are sent here: "
                           "--qps 5, --trace FILE or --concurrency 8");
        return SM_OK;
    }
    if (cli_given(g->call, &g->given.port) || cli_given(g->call, &g->given.listen) ||
        cli_given(g->call, &g->given.patience_s))
        return sm_fail(err, SM_USAGE,
                       "requests come from clients, of --port, or are sent here, as --trace, --qps "
                       "or --concurrency say");
    sm_status status = arrivals_read(g->call, &g->given.requests, err);
    if (status) return status;
    const sm_range *range = &g->given.requests.concurrency;
    if (range->last > range->first)
        return cli_refuse(g->call, range, err, "expected one number of clients");
    double most = g->given.requests.requests > 0 ? g->given.requests.requests
                  : range->first > 0 ? 10 * range->first * fmax(1, g->given.requests.draw.turns)
                  : g->given.requests.trace ? HUGE_VAL
                                            : 100;
    status = sm_request_source_open(g->given.requests.trace,
                                    g->given.requests.drawn ? &g->given.requests.draw : NULL, most,
                                    &source, err);
    if (status) return status;
    status = sm_request_source_begin(source, 1, &arrivals, err);
    if (!status)
        status = serve_load_read(&arrivals, g->given.longest, g->call->arena, &g->list, err);
    sm_request_source_close(source);
    return status;
}

/* What a prompt with pictures takes longer is priced by what is seen of them in a step. */
static sm_status read_model(serve_run *g, sm_error *err) {
    serving_model *m = &g->m;
    sm_status status = serving_model_read(g->call, &g->given.read_by, g->call->positional[0],
                                          g->given.checkpoint, m, err);
    if (!status) status = seen_shape_of(&m->model, g->call->arena, &g->shape, err);
    if (status || !g->shape.words.rows) return status;
    const sm_model own = m->model;
    return sm_model_pad(&own, &(sm_padding){.source = 1}, g->call->arena, &m->model, err);
}

static sm_status read_question(serve_run *g, sm_error *err) {
    sm_status status = serving_plan_read(g->call, &g->given.plan, &g->plan, err);
    if (!status) status = read_model(g, err);
    g->groups = g->plan.data * g->plan.fsdp * g->plan.expert;
    if (!status)
        status = serving_model_lay_out(g->call, &g->plan, (size_t)g->given.longest,
                                       (size_t)(g->options.most_batch * g->groups), &g->m, err);
    if (g->given.read_by.pictures) g->m.setup.pictures = (int)g->given.read_by.pictures;
    if (!status) status = serving_model_weights(g->call, g->given.weights, &g->m, err);
    if (!status) status = size_cache(g, err);
    if (!status) status = read_requests(g, err);
    g->options.size = sizeof g->options;
    g->options.replicas = (int)g->groups;
    g->options.prefill_replicas = 1;
    g->options.concurrency = (double)g->given.requests.concurrency.first;
    g->options.think_s = g->given.requests.draw.think_s;
    g->options.classes = g->given.requests.kind;
    g->options.n_classes = g->given.requests.kinds;
    return status ? status : price(g, err);
}

/* ---- running ---- */

static sm_status load_weights(sm_generator *generator, void *context, sm_error *err) {
    const serve_run *g = context;
    return train_checkpoint_take_weights(generator, &g->m.model, &g->m.file, g->m.path, err);
}

/* The first signal: what there is is answered. Another: it ends now. SIGUSR2 ends the watch. */
static void *watch_signals(void *context) {
    serve_run *g = context;
    for (int came = 0;;) {
        int number = sigtimedwait(&g->signals, NULL, &(struct timespec){1, 0});
        if (number == SIGUSR2) return NULL;
        if (number > 0) serve_desk_close(&g->desk, came++ > 0);
        serve_http_hurry(g->http);
    }
}

static sm_status open_http(serve_run *g, sm_error *err) {
    const serve_http_job job = {.address = g->given.listen,
                                .port = g->given.port,
                                .desk = &g->desk,
                                .limits = {g->m.model.name, (size_t)g->given.longest, g->m.model.V,
                                           (size_t)g->given.read_by.pictures, g->shape.words},
                                .words = (size_t)g->m.model.V,
                                .shape = &g->shape,
                                .patience_s = g->given.patience_s};
    int port;
    sm_status status = serve_http_begin(&job, &g->http, &port, err);
    if (status) return status;
    fprintf(stderr, "scalemodel: %s is served at http://%s:%d/v1 (Ctrl-C ends it)\n",
            g->m.model.name, g->given.listen, port);
    return SM_OK;
}

static sm_status open_up(void *context, sm_error *err) {
    serve_run *g = context;
    sm_status status = is_replay(g) ? SM_OK : open_http(g, err);
    if (status) return status;
    g->watches = pthread_create(&g->watcher, NULL, watch_signals, g) == 0;
    if (!g->watches) return sm_fail_memory(err);
    if (!is_replay(g)) return SM_OK;
    const serve_load_job job = {.list = &g->list,
                                .desk = &g->desk,
                                .concurrency = g->options.concurrency,
                                .think_s = g->options.think_s,
                                .words = (size_t)g->m.model.V,
                                .temperature = g->given.temperature};
    return serve_load_begin(&job, &g->load, err);
}

static void note(void *context, const sm_request_served *served) {
    served_list *list = context;
    if (list->n < list->room) list->request[list->n++] = *served;
}

static sm_status serve_rank(sm_communicator *world, void *context, sm_error *err) {
    serve_run *g = context;
    const sm_watch watch = {&g->as_measured, note, NULL};
    const serve_engine_job job = {.setup = &g->m.setup,
                                  .pages = g->pages,
                                  .options = &g->options,
                                  .desk = &g->desk,
                                  .load = load_weights,
                                  .open = open_up,
                                  .look_s = group_look_s,
                                  .context = g,
                                  .watch = is_replay(g) ? &watch : NULL};
    sm_status status = serve_engine_run(&job, world, &g->result, err);
    if (world->rank) return status;
    sm_error why = {.status = SM_OK};
    sm_status asked = serve_load_end(g->load, &g->dropped, &why);
    if (!status && asked && err) *err = why;
    if (!status) status = asked;
    if (g->watches) {
        pthread_kill(g->watcher, SIGUSR2);
        pthread_join(g->watcher, NULL);
    }
    g->http_counts = serve_http_end(g->http);
    return status;
}

static sm_status run_engine(serve_run *g, sm_error *err) {
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
    double most = g->options.most_batch * g->groups + (double)g->given.queue;
    if (is_replay(g) && !cli_given(g->call, &g->given.queue)) most = (double)g->list.n;
    sm_status status = serve_desk_begin(&g->desk, (int)most, err);
    if (status) return status;
    sigemptyset(&g->signals);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) sigaddset(&g->signals, ends[i]);
    /* Before ranks begin as threads, which inherit the mask. */
    pthread_sigmask(SIG_BLOCK, &g->signals, NULL);
    launch_gently();
    status =
        ranks_run(g->call, &g->given.ranks, sm_train_setup_ranks(&g->m.setup), serve_rank, g, err);
    while (sigtimedwait(&g->signals, NULL, &(struct timespec){0, 0}) > 0) continue; /* too late */
    pthread_sigmask(SIG_UNBLOCK, &g->signals, NULL);
    serve_desk_finish(&g->desk);
    return status;
}

/* ---- the page ---- */

typedef struct compared_row {
    const char *key, *name;
    const sm_percentiles *simulated, *measured;
} compared_row;

static void show_rows(sm_report *r, const serve_run *g, sm_data *latency, const char *title,
                      const compared_row *rows, size_t n) {
    sm_table *t = sm_page_table(r, title, "<|<|>{s}mean|>{s}p50|>{s}p90|>{s}p99|>{s}longest");
    for (size_t i = 0; i < n; i++) {
        const compared_row *c = &rows[i];
        sm_data *one = sm_put_object(r, latency, c->key);
        for (int side = is_replay(g) ? 0 : 1; side < 2; side++) {
            const sm_percentiles *p = side ? c->measured : c->simulated;
            sm_put_timed(r, sm_put_object(r, one, side ? "measured" : "simulated"),
                         "mean|p50|p90|p99|max", p->mean, p->p50, p->p90, p->p99, p->most);
            sm_page_row(r, t, side && is_replay(g) ? "" : c->name, side ? "measured" : "simulated",
                        p->mean, p->p50, p->p90, p->p99, p->most);
        }
    }
}

static void show_latencies(sm_report *r, const serve_run *g) {
    const sm_simulated *s = &g->simulated, *m = &g->result.counted;
    const char *of = is_replay(g) ? ", simulated and measured" : "";
    const compared_row rows[] = {
        {"queue_s", "queue", &s->queue_s, &m->queue_s},
        {"ttft_s", "time to first token", &s->ttft_s, &m->ttft_s},
        {"tpot_s", "time per output token", &s->tpot_s, &m->tpot_s},
        {"e2e_s", "end to end", &s->e2e_s, &m->e2e_s},
    };
    show_rows(r, g, sm_put_object(r, r->data, "latency"), sm_textf(r, "Latency%s", of), rows, 4);
    int classes = g->options.n_classes;
    sm_data *list = classes > 0 ? sm_put_array(r, r->data, "classes") : NULL;
    for (int i = 0; i < classes; i++) {
        const char *name = g->options.classes[i].name;
        const sm_class_served *a = &s->of_class[i], *b = &m->of_class[i];
        const compared_row of_class[] = {
            {"ttft_s", "time to first token", &a->ttft_s, &b->ttft_s},
            {"tpot_s", "time per output token", &a->tpot_s, &b->tpot_s},
        };
        sm_data *one = sm_put_object(r, list, NULL);
        sm_put(r, one, "class|finished", name, b->finished);
        show_rows(r, g, one,
                  sm_textf(r, "Class %s, %s requests%s", name, sm_show_exact(r, b->finished), of),
                  of_class, 2);
    }
}

static void show_ratios(sm_report *r, const serve_run *g) {
    const sm_simulated *s = &g->simulated, *m = &g->result.counted;
    sm_put_timed(r, sm_put_object(r, r->data, "simulated_over_measured"),
                 "ttft_p50|ttft_p90|tpot_p50|tpot_p90|requests_per_s",
                 s->ttft_s.p50 / m->ttft_s.p50, s->ttft_s.p90 / m->ttft_s.p90,
                 s->tpot_s.p50 / m->tpot_s.p50, s->tpot_s.p90 / m->tpot_s.p90,
                 s->requests_per_s / m->requests_per_s);
    sm_report_text(r,
                   "Simulated over measured: time to first token %s at the median and %s at p90, "
                   "time per token %s and %s.",
                   prediction_ratio(r, s->ttft_s.p50, m->ttft_s.p50),
                   prediction_ratio(r, s->ttft_s.p90, m->ttft_s.p90),
                   prediction_ratio(r, s->tpot_s.p50, m->tpot_s.p50),
                   prediction_ratio(r, s->tpot_s.p90, m->tpot_s.p90));
}

static void show_steps(sm_report *r, const serve_run *g) {
    static const char *const key[] = {"decode", "prefill", "mixed"};
    static const char *const name[] = {"decode", "prompts", "both"};
    sm_table *t = sm_page_table(r, "A step", "<|>{=}steps|>{s}predicted|>{s}measured|>ratio");
    sm_data *steps = sm_put_object(r, r->data, "steps");
    double all = 0;
    for (int i = 0; i < SERVE_STEPS; i++) {
        const serve_steps *s = &g->result.steps[i];
        if (!(s->n > 0)) continue;
        sm_data *one = sm_put_object(r, steps, key[i]);
        all += s->measured_s;
        sm_put_timed(r, one, "steps|predicted_s|measured_s", s->n, s->expected_s / s->n,
                     s->measured_s / s->n);
        sm_page_row(r, t, name[i], s->n, s->expected_s / s->n, s->measured_s / s->n,
                    prediction_ratio(r, s->expected_s, s->measured_s));
    }
    if (!(all > 0)) return;
    sm_put_timed(r, r->data, "model_share", g->result.model_s / all);
    sm_report_text(r,
                   "%s of the time of steps is in the model, the rest in telling ranks what to "
                   "do and in drawing words.",
                   sm_show_percent(r, g->result.model_s / all));
}

static void show_counts(sm_report *r, const serve_run *g) {
    const sm_simulated *m = &g->result.counted;
    sm_put(r, r->data, "requests|finished|refused|dropped|stopped|abandoned", m->requests,
           m->finished, (double)g->list.refused + m->refused + g->http_counts.refused,
           g->dropped + g->http_counts.full, g->result.stopped, g->result.abandoned);
    sm_data *tokens = sm_put_object(r, r->data, "tokens");
    sm_put(r, tokens, "prompt|output", m->prompt_tokens, m->output_tokens);
    sm_put_timed(r, tokens, "cached|recomputed", m->cached_tokens, m->recomputed_tokens);
    sm_put_timed(r, r->data,
                 "preemptions|steps|seconds|requests_per_s|output_tokens_per_s|mean_batch",
                 m->preemptions, m->steps, m->seconds, m->requests_per_s, m->output_tokens_per_s,
                 m->mean_batch);
    sm_report_text(r,
                   "%s requests in %s: %s requests/s, %s output tokens/s, %s sequences in a "
                   "decode step, the engine busy %s of the time.",
                   sm_show_exact(r, m->finished), sm_show_seconds(r, m->seconds),
                   sm_show_number(r, m->requests_per_s), sm_show_number(r, m->output_tokens_per_s),
                   sm_show_number(r, m->mean_batch), sm_show_percent(r, m->utilisation));
    if (g->options.prefix_cache)
        sm_report_text(r, "prefix cache: %s of the prompts' tokens found",
                       sm_show_percent(r, m->prefix_hit_rate));
    if (m->preemptions > 0)
        sm_report_text(r, "%s preemptions, %s tokens computed again",
                       sm_show_exact(r, m->preemptions), sm_show_count(r, m->recomputed_tokens));
    double long_ones = (double)g->list.refused, full = g->dropped + g->http_counts.full;
    if (long_ones > 0)
        sm_report_text(r, "%s requests were left out: they are longer than --longest",
                       sm_show_exact(r, long_ones));
    if (full > 0) sm_report_text(r, "%s requests found the queue full", sm_show_exact(r, full));
}

/* ---- the picture ---- */

/* Shares of the requests that took at most so long: to the first token, or for each after it. */
static sm_status draw_series(sm_report *r, const served_list *list, bool first, const char *name,
                             sm_series *out, sm_error *err) {
    double *x = sm_arena_array(r->arena, list->n + 1, sizeof *x);
    double *share = sm_arena_array(r->arena, list->n + 1, sizeof *share);
    size_t n = 0;
    if (!x || !share) return sm_fail_memory(err);
    for (size_t i = 0; i < list->n; i++) {
        const sm_request_served *q = &list->request[i];
        if (first) x[n++] = q->first_token_s - q->arrival_s;
        else if (q->output > 1) x[n++] = (q->end_s - q->first_token_s) / (q->output - 1);
    }
    sm_sort_numbers(x, n);
    for (size_t i = 0; i < n; i++) share[i] = (double)(i + 1) / (double)n;
    *out = (sm_series){name, SM_MARK_LINE, n, x, share, NULL};
    return SM_OK;
}

static sm_status draw(sm_report *r, const serve_run *g, sm_error *err) {
    sm_series series[4];
    sm_status status = SM_OK;
    for (int i = 0; !status && i < 4; i++)
        status = draw_series(r, i % 2 ? &g->as_measured : &g->as_simulated, i < 2,
                             i % 2 ? "measured" : "simulated", &series[i], err);
    if (status) return status;
    const char *title[] = {"Time to first token", "Time per output token"};
    const sm_panel panel[] = {
        {title[0], "at most", "share of requests", "s", "", .n = 2, .series = series},
        {title[1], "at most", "share of requests", "s", "", .n = 2, .series = series + 2}};
    sm_report_chart(r, &(sm_chart){sm_textf(r, "%.60s served", g->m.model.name),
                                   sm_policy_names[g->options.policy], 2, panel});
    return SM_OK;
}

/* ---- --csv, as of simulate ---- */

static sm_status write_rows(const void *context, FILE *rows, sm_error *err) {
    const serve_run *g = context;
    double from = g->as_measured.n ? g->as_measured.request[0].arrival_s : 0;
    (void)err;
    for (size_t i = 0; i < g->as_measured.n; i++)
        from = fmin(from, g->as_measured.request[i].arrival_s);
    requests_header(rows);
    for (size_t i = 0; i < g->as_measured.n; i++)
        requests_row(rows, &g->as_measured.request[i], &g->options, from);
    return SM_OK;
}

static sm_status show(sm_report *r, const serve_run *g, sm_error *err) {
    char plan[256];
    int ranks = sm_train_setup_ranks(&g->m.setup);
    sm_plan_format(&g->plan, 0, plan, sizeof plan);
    sm_put(r, r->data, "command|model|plan|policy|backend|ranks|kv_tokens", "run serve",
           g->m.model.name, plan, sm_policy_names[g->options.policy], ranks_backend(), ranks,
           g->engine.kv_tokens * g->groups);
    sm_report_heading(r, "%s on %d rank%s (%s)", g->m.model.name, ranks, ranks == 1 ? "" : "s",
                      ranks_backend());
    sm_report_text(r,
                   "%s batching, at most %.0f sequences%s, a KV cache of %s tokens in pages of "
                   "%zu",
                   sm_policy_names[g->options.policy], g->options.most_batch,
                   g->groups > 1 ? " in each group of ranks" : "",
                   sm_show_count(r, g->engine.kv_tokens * g->groups), g->pages.page_tokens);
    show_counts(r, g);
    if (g->result.counted.finished > 0) show_latencies(r, g);
    if (g->result.counted.finished > 0 && is_replay(g)) show_ratios(r, g);
    show_steps(r, g);
    prediction_say_bytes(r, "step", g->result.bytes_apart);
    sm_status status =
        serving_show_weights(r, &g->m, g->result.weight_bytes, g->price, &g->plan, err);
    prediction_say_placeholder(r, &g->system);
    if (!status && g->given.plot) status = draw(r, g, err);
    if (!status && g->given.csv) status = cli_write(g->given.csv, write_rows, g, err);
    if (status) return status;
    return g->result.bytes_apart > 0 ? SM_NEGATIVE : SM_OK;
}

/* ---- all of it ---- */

static sm_status run_and_simulate(serve_run *g, sm_error *err) {
    sm_status status = run_engine(g, err);
    if (status || !ranks_speak() || !is_replay(g)) return status;
    serve_load_cursor cursor = {&g->list, 0};
    const sm_arrivals arrivals = serve_load_again(&cursor);
    const sm_watch watch = {&g->as_simulated, note, NULL};
    return sm_simulate(&g->options, &arrivals, &watch, &g->simulated, err);
}

static sm_status make_room(const serve_run *g, served_list *list, sm_error *err) {
    list->room = g->list.n;
    list->request = sm_arena_array(g->call->arena, list->room + 1, sizeof *list->request);
    return list->request ? SM_OK : sm_fail_memory(err);
}

static sm_status run_serve(const cli_call *call, sm_report *r, sm_error *err) {
    serve_run *g = call->values;
    g->call = call;
    sm_status status = read_question(g, err);
    if (!status) status = make_room(g, &g->as_measured, err);
    if (!status) status = make_room(g, &g->as_simulated, err);
    if (!status) status = run_and_simulate(g, err);
    if (!status && ranks_speak()) status = show(r, g, err);
    sm_serve_free(g->price);
    return status;
}

#define OPTION(option, member) AT(option, options.member)

const cli_verb run_serve_verb = {
    .about = &verbs_run_serve,
    CLI_VALUES(GIVEN("checkpoint", checkpoint), GIVEN("plan", plan),
               SERVING_WEIGHTS_PLACE(given.weights), GIVEN("port", port), GIVEN("listen", listen),
               GIVEN("patience", patience_s), GIVEN("queue", queue),
               GIVEN("pictures", read_by.pictures), OPTION("policy", policy),
               OPTION("batch", most_batch), OPTION("chunk", chunk_tokens),
               OPTION("prefill-tokens", prefill_tokens), OPTION("page", page_tokens),
               GIVEN("longest", longest), GIVEN("cache", cache), OPTION("route", route),
               OPTION("prefix-cache", prefix_cache), ARRIVAL_PLACES(given.requests),
               GIVEN("seed", requests.draw.seed), GIVEN("temperature", temperature),
               OPTION("ttft", ttft_s), OPTION("tpot", tpot_s), GIVEN("csv", csv),
               GIVEN("plot", plot), RANKS_PLACES(given.ranks), PREDICTION_PLACES(given.predicted),
               CLI_MODEL_PLACES(given.read_by)),
    .plans = 1u << SM_PLAN_SERVING,
    .run = run_serve,
};
