/* train_page: the answer about training as a page: the best plan in full, then the others in a
 * table.
 */
#include "train_asked.h"
#include <ctype.h>
#include <stdlib.h>

enum { TOP_COLLECTIVES = 8, MOST_STAGE_LINES = 8 };

/* ---- words ---- */

const char *sm_train_bound(sm_report *r, const sm_system *system, const sm_price_of_plan *price) {
    if (price->bound != SM_BOUND_NETWORK) return sm_bound_name(price->bound);
    const sm_level *level = &system->level[price->bound_level];
    if (level->kind == SM_LEVEL_TORUS)
        return sm_textf(r, "network %s%d", level->name, price->bound_level);
    return sm_textf(r, "network %s", level->name);
}

static const char *bound_sentence(sm_report *r, const sm_system *system,
                                  const sm_price_of_plan *price) {
    switch (price->bound) {
    case SM_BOUND_COMPUTE: return "bound by compute";
    case SM_BOUND_MEMORY: return "bound by memory bandwidth";
    case SM_BOUND_BUBBLE: return "bound by the pipeline's bubble";
    case SM_BOUND_LATENCY: return "bound by latency";
    case SM_BOUND_NETWORK: break;
    }
    return sm_textf(r, "bound by the %s", sm_train_bound(r, system, price));
}

/* ---- the job ---- */

void sm_train_job_page(sm_report *r, const sm_train_asked *q, double sequences, double most) {
    sm_params params = sm_model_params(q->in.model);
    double flops = sm_model_train_flops(q->in.model, q->job.seq, q->in.model->causal);
    r->out_of_memory |= isnan(flops);
    const char *active = params.active < params.total
                             ? sm_textf(r, ", %s of them active", sm_show_count(r, params.active))
                             : "";
    const char *others =
        q->in.n_systems > 1 ? sm_textf(r, " and %d more", q->in.n_systems - 1) : "";
    sm_report_heading(r, "%s on %s%s", q->in.model->name, q->system->text, others);
    sm_slices_note(r, q->system);
    sm_report_text(r, "%s parameters%s; %s FLOPs to train on a token.",
                   sm_show_count(r, params.total), active, sm_show_count(r, flops));
    if (sequences > 0.0) sm_train_batch_page(r, q, sequences, most);
    bool measured = strcmp(q->in.calibration->software, SM_MEASURED_SOFTWARE) == 0;
    if (q->in.as_run)
        sm_report_text(r,
                       "Priced as 'run train' executes it: in %s, each op and each collective "
                       "after the one before.",
                       sm_dtype_name(q->search.fixed.dtype));
    else if (measured)
        sm_report_text(r, "Priced in mixed precision with fused kernels; --as-run prices what "
                          "'run train' executes.");
}

/* ---- the best plan ---- */

static void mesh_rows(sm_report *r, const sm_plan_detail *detail) {
    if (detail->axes == 0) return;
    sm_table *table = sm_page_table(r, NULL, "<axis|>{=}chips|<on");
    for (int i = 0; i < detail->axes; i++)
        sm_page_row(r, table, detail->axis[i].name, detail->axis[i].size, detail->axis[i].on);
}

static const char *whose_price(const sm_train_asked *q) {
    const char *source = q->system->chip.price[0].source;
    if (q->in.usd_per_chip_hour) return " as given";
    bool file = source && strncmp(source, "given in ", strlen("given in ")) == 0;
    return file ? ", the system file's price" : ", the catalogue's price";
}

static void run_rows(sm_report *r, sm_table *table, const sm_train_asked *q,
                     const sm_price_of_plan *price) {
    if (q->job.tokens <= 0.0) return;
    double per_hour =
        q->in.usd_per_chip_hour ? *q->in.usd_per_chip_hour : sm_chip_usd_per_hour(&q->system->chip);
    sm_page_row(r, table, sm_textf(r, "run of %s tokens", sm_show_count(r, q->job.tokens)),
                sm_show_seconds(r, price->train_time_s),
                sm_textf(r, "%s steps, without restarts",
                         sm_show_count(r, price->train_time_s / price->expected_s)));
    if (!q->price_known)
        sm_page_row(r, table, "cost", "-",
                    "the catalogue has no price of this chip; --price USD names one");
    else
        sm_page_row(r, table, "cost", sm_show_usd(r, price->cost_usd),
                    sm_textf(r, "%d chip%s at $%.2f an hour%s", price->chips,
                             price->chips == 1 ? "" : "s", per_hour, whose_price(q)));
}

/* Which constants the expectation rests on, from what, and what of the question lies beyond it. */
static void constants_line(sm_report *r, const sm_train_asked *q, const sm_price_of_plan *price) {
    const sm_calibration *c = q->in.calibration;
    const sm_step_sizes step = sm_step_sizes_of(q->in.model, price->chips, q->job.seq);
    char beyond[80];
    if (!c->range || !*c->range || !(c->interval[SM_REGIME_step].n > 0)) return;
    sm_calibration_outside(c, &step, beyond, sizeof beyond);
    sm_report_text(r, "Constants %s %s: %s.%s", c->chip, c->software, c->source,
                   beyond[0]
                       ? sm_textf(r, " This question lies beyond them in %s (they are of %s).",
                                  beyond, c->range)
                       : "");
}

static void time_rows(sm_report *r, const sm_plans_shown *plans, const sm_price_of_plan *price) {
    const sm_train_asked *q = plans->q;
    sm_evidence_asked asked;
    const sm_evidence_near near = sm_train_evidence(q, &plans->plan[0], plans->sequences, &asked);
    sm_table *table = sm_page_table(r, NULL, "<step|>|<");
    sm_page_row(r, table, "lower bound", sm_show_seconds(r, price->lower_s),
                "datasheet rates, all that can overlap overlaps");
    sm_page_row(r, table, "expected", sm_show_seconds(r, price->expected_s),
                "efficiency, exposed network, bubble, optimizer");
    sm_ends ends = sm_step_interval(q, price);
    const sm_calibration *c = q->in.calibration;
    bool own = sm_calibration_is_own(c, &q->system->chip);
    sm_page_row(r, table, "80 % interval", "",
                sm_textf(r, "%s to %s, constants %s %s %s", sm_show_seconds(r, ends.low),
                         sm_show_seconds(r, ends.high), own ? "of" : "borrowed from", c->chip,
                         c->software));
    sm_page_row(r, table, "upper bound", sm_show_seconds(r, price->upper_s), "nothing overlaps");
    sm_page_row(r, table, "MFU", sm_show_percent(r, price->mfu),
                sm_textf(r, "%s of the model's own work per chip",
                         sm_show_rate(r, price->model_flops_per_s_per_chip, "FLOP/s")));
    sm_page_row(r, table, "HFU", sm_show_percent(r, price->hfu), "with what is computed again");
    sm_page_row(r, table, "tokens/s", sm_show_count(r, price->tokens_per_s_per_chip * price->chips),
                sm_textf(r, "%s per chip", sm_show_count(r, price->tokens_per_s_per_chip)));
    run_rows(r, table, q, price);
    sm_bound_note(r, q->in.calibration, "the step", price->lower_s, price->expected_s);
    constants_line(r, q, price);
    sm_evidence_page(r, &asked, &near);
}

static void part_row(sm_report *r, sm_table *table, const char *name, double seconds, double whole,
                     const char *what) {
    if (seconds < 1e-9 * whole) seconds = 0.0; /* the rest of a difference of sums */
    sm_page_row(r, table, name, seconds,
                sm_textf(r, "%.1f %%", whole > 0.0 ? 100.0 * seconds / whole : 0.0), what);
}

/* What buffers are, and what of the chip is not the plan's. */
static void buffers(sm_report *r, const sm_memory *m) {
    const struct {
        double bytes;
        const char *what;
    } parts[] = {{m->gathered, "of weights gathered and gradients in flight"},
                 {m->logits, "of the logits' gradient"},
                 {m->copies, "of copies of gradients"},
                 {m->reserved, "that the allocator keeps (workspaces, buckets, fragments)"}};
    const char *text = "";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].bytes > 0.0)
            text = sm_textf(r, "%s%s%s %s", text, text[0] ? ", " : "",
                            sm_show_bytes(r, parts[i].bytes), parts[i].what);
    if (text[0]) sm_report_text(r, "Buffers: %s.", text);
    if (m->outside > 0.0)
        sm_report_text(r, "Beside these %s hold context, libraries and communicators.",
                       sm_show_bytes(r, m->outside));
}

/* The first after this rank of the pipeline that holds something else. */
static int next_stage(const sm_plan_detail *detail, int stage) {
    const sm_memory *m = &detail->stage_memory[stage];
    const double alike = 1e-6 * m->total;
    int next = stage + 1;
    for (; next < detail->stages; next++) {
        const sm_memory *n = &detail->stage_memory[next];
        if (fabs(n->total - m->total) >= alike || fabs(n->activations - m->activations) >= alike)
            break;
    }
    return next;
}

/* Ranks of the pipeline, those in a row that hold the same in one line; of many the first and the
 * last. */
static void memory_of_stages(sm_report *r, const sm_plan_detail *detail) {
    if (detail->stages < 2) return;
    sm_table *table = sm_page_table(
        r, NULL,
        "<stage|>{B}weights|>{B}gradients|>{B}optimizer|>{B}activations|>{B}buffers|>{B}in all");
    int lines = 0, line = 0;
    for (int i = 0; i < detail->stages; i = next_stage(detail, i)) lines++;
    for (int i = 0, next; i < detail->stages; i = next, line++) {
        const sm_memory *m = &detail->stage_memory[i];
        next = next_stage(detail, i);
        if (lines > MOST_STAGE_LINES && line >= MOST_STAGE_LINES - 1 && line < lines - 1) continue;
        sm_page_row(r, table,
                    next > i + 1 ? sm_textf(r, "%d to %d", i, next - 1) : sm_textf(r, "%d", i),
                    m->params, m->gradients, m->optimizer, m->activations, m->buffers, m->total);
    }
    if (lines > MOST_STAGE_LINES)
        sm_report_text(r, "Between the last two %d more; --json has them all.",
                       lines - MOST_STAGE_LINES);
}

static void memory_bar(sm_report *r, const sm_plan *plan, const sm_memory *m) {
    const sm_bar_part parts[] = {{"weights", m->params},
                                 {"gradients", m->gradients},
                                 {"optimizer", m->optimizer},
                                 {"activations", m->activations},
                                 {"buffers", m->buffers}};
    const char *title = plan->pipeline > 1
                            ? sm_textf(r, "Memory of a chip of stage %d, the fullest", m->stage)
                            : "Memory of a chip";
    sm_report_bar(r, title, "B", m->capacity, sizeof parts / sizeof *parts, parts);
    if (m->host > 0.0)
        sm_report_text(r, "In host memory, for each chip: %s%s.", sm_show_bytes(r, m->host),
                       m->host_capacity > 0.0
                           ? sm_textf(r, " of its %s", sm_show_bytes(r, m->host_capacity))
                           : "; how much a host has is not known");
}

/* Collectives of the same kind over the same axes in the same phase: one line of the page. */
typedef struct family {
    const sm_plan_collective *first;
    const char *arrays;
    double count, bytes, time_s, exposed_s;
} family;

static bool is_of(const sm_plan_collective *a, const sm_plan_collective *b) {
    return a->op == b->op && strcmp(a->axis, b->axis) == 0 && strcmp(a->phase, b->phase) == 0;
}

static int find_families(sm_report *r, const sm_plan_detail *detail, family *line) {
    const sm_plan_collective *all = detail->lines.collective;
    int n = 0;
    for (int i = 0; i < detail->lines.collectives; i++) {
        const sm_plan_collective *c = &all[i];
        int at = 0, before = 0;
        while (at < n && !is_of(line[at].first, c)) at++;
        if (at == n) line[n++] = (family){.first = c, .arrays = c->array};
        while (!(is_of(&all[before], c) && strcmp(all[before].array, c->array) == 0)) before++;
        if (before == i && c != line[at].first)
            line[at].arrays = sm_textf(r, "%s, %s", line[at].arrays, c->array);
        line[at].count += c->count;
        line[at].bytes += c->count * c->bytes;
        line[at].time_s += c->time_s;
        line[at].exposed_s += c->exposed_s;
    }
    return n;
}

/* What is exposed in the step comes first, then what it takes; otherwise the order of the step. */
SM_ORDER(by_exposed, family, SM_DESCENDING(exposed_s) SM_DESCENDING(time_s) SM_ASCENDING(first))

static void collective_rows(sm_report *r, const sm_plan_detail *detail) {
    if (detail->lines.collectives == 0) return;
    family *line = sm_report_room(r, (size_t)detail->lines.collectives, sizeof *line);
    if (!line) return;
    int n = find_families(r, detail, line);
    qsort(line, (size_t)n, sizeof *line, by_exposed);
    sm_table *table =
        sm_page_table(r, NULL, "<collectives of a step|>{n}times|>{B}bytes|>{s}time|>{s}exposed");
    for (int i = 0; i < n && i < TOP_COLLECTIVES; i++) {
        sm_page_row(r, table,
                    sm_textf(r, "%s of %s over %s, %s", sm_collective_name(line[i].first->op),
                             line[i].arrays, line[i].first->axis, line[i].first->phase),
                    line[i].count, line[i].bytes, line[i].time_s, line[i].exposed_s);
    }
    if (n > TOP_COLLECTIVES)
        sm_report_text(r, "And %d more; --json has them all.", n - TOP_COLLECTIVES);
}

/* ---- the others ---- */

static void other_rows(sm_report *r, const sm_plans_shown *plans) {
    if (plans->n < 2) return;
    sm_table *table = sm_page_table(r, "Next best with other degrees",
                                    sm_textf(r, ">{s}step|>%s|>{%%}MFU|>{B}memory|<bound|<plan",
                                             sm_train_worse[plans->q->in.objective]));
    for (int i = 1; i < plans->n; i++) {
        const sm_price_of_plan *price = &plans->plan[i].detail.price;
        sm_page_row(r, table, price->expected_s,
                    sm_train_more(plans->q, price, &plans->plan[0].detail.price), price->mfu,
                    price->memory.total, sm_train_bound(r, plans->q->system, price),
                    plans->plan[i].text);
    }
    sm_indistinguishable_line(r, plans);
}

const char *sm_train_whose(const sm_train_asked *q) {
    return q->in_frameworks ? "a framework known here" : q->space.name;
}

void sm_train_search_page(sm_report *r, const sm_search_effort *e, int found, const char *whose) {
    const char *proof = " No plan of the space is better.";
    if (whose) proof = sm_textf(r, " No plan that %s can run is better.", whose);
    if (found == 0) proof = "";
    if (!e->optimal) proof = " The search was stopped: there may be better plans.";
    if (!e->optimal && found > 0)
        proof = sm_textf(r, " The search was stopped: a better plan can gain %.1f %% at most.",
                         100 * e->gap);
    sm_search_lines(r, e, proof);
}

static void search_page(sm_report *r, const sm_plans_shown *plans) {
    if (plans->q->priced_only)
        sm_report_text(r, "The plan was given whole: it was priced, and no other looked at.");
    else if (plans->effort.space > 0.0)
        sm_train_search_page(r, &plans->effort, plans->n, sm_train_whose(plans->q));
}

/* What of the model is trained, where that is not all of it. */
static void adapters_note(sm_report *r, const sm_train_asked *q, const sm_plan_shown *shown) {
    const sm_price_of_plan *price = &shown->detail.price;
    const sm_plan *plan = shown->plan;
    static const char *const stored[SM_STORED_AS_COUNT] = {"", " in fp8", " in int8", " in nf4"};
    if (!plan->lora) return;
    sm_report_text(
        r,
        "Adapters of rank %d are trained, %s parameters; the model's %s stay as they "
        "are%s. MFU counts %s FLOPs on a token: no gradients of what stays.",
        plan->lora, sm_show_count(r, price->trained),
        sm_show_count(r, sm_model_params(q->in.model).total), stored[plan->parameters],
        sm_show_count(r, price->model_flops_per_s_per_chip / price->tokens_per_s_per_chip));
}

static void chips_note(sm_report *r, const sm_system *all, const sm_plan *plan) {
    const sm_system *part = sm_train_runs_on(r, all, plan);
    if (sm_plan_chips(plan) < all->chips)
        sm_report_text(r, "It uses %d of the %d chips%s%s.", sm_plan_chips(plan), all->chips,
                       part && part != all ? ", as " : "", part && part != all ? part->text : "");
}

/* "zero=1" beside fsdp, which shards the weights as well. */
static void stage_note(sm_report *r, const sm_train_asked *q, const sm_plan *plan) {
    const sm_source *text = &q->in.plan;
    for (size_t at = 0; plan->fsdp > 1 && at < text->length;) {
        const sm_span all = {0, text->length}, item = sm_next_part(text, all, ',', &at);
        const char *word = text->text + item.offset;
        if (item.length != 6 || memcmp(word, "zero=", 5) != 0 || word[5] >= '3') continue;
        sm_report_text(r,
                       "%.6s keeps the weights whole, and fsdp=%d shards them: the plan is zero=3. "
                       "data=%d,%.6s keeps them.",
                       word, plan->fsdp, plan->fsdp * plan->data, word);
    }
}

void sm_train_page(sm_report *r, const sm_plans_shown *plans) {
    sm_train_job_page(r, plans->q, plans->sequences, plans->sequences);
    if (plans->n == 0) {
        sm_report_text(r, "%c%s.", toupper((unsigned char)plans->reason[0]), plans->reason + 1);
        sm_train_fit_page(r, plans->q, &plans->fit);
        search_page(r, plans);
        return;
    }
    const sm_plan_shown *best = &plans->plan[0];
    const sm_price_of_plan *price = &best->detail.price;
    const sm_train_asked *q = plans->q;
    const char *what = q->priced_only ? "This plan" : "Best plan";
    sm_report_heading(r, "%s: %s a step%s, %s%s", what, sm_show_seconds(r, price->expected_s),
                      q->priced_only ? "" : sm_train_in(r, q, " in ", ""),
                      bound_sentence(r, q->system, price),
                      price->fits ? "" : "; does not fit in memory");
    sm_report_text(r, "%s", best->text);
    sm_train_fit_page(r, q, &plans->fit);
    chips_note(r, q->system, best->plan);
    stage_note(r, q, best->plan);
    adapters_note(r, q, best);
    if (plans->padding > 0)
        sm_padding_note(r, best->plan, q->in.model, plans->model, plans->padding);
    sm_copies_note(r, best->plan, plans->model);
    sm_units_note(r, &q->system->chip, best->plan->dtype);
    mesh_rows(r, &best->detail);
    time_rows(r, plans, price);
    const sm_breakdown *b = &price->breakdown;
    double whole = price->expected_s;
    sm_table *table = sm_page_table(r, NULL, "<where the step goes|>{s}|>|<");
    part_row(r, table, "math", b->math, whole, "ops that the FLOP/s limit");
    part_row(r, table, "memory", b->memory, whole, "ops that the memory bandwidth limits");
    part_row(r, table, "network", b->network_exposed, whole, "what compute does not hide");
    part_row(r, table, "bubble", b->bubble, whole, "stages that wait for others");
    part_row(r, table, "optimizer", b->optimizer, whole, "the update of the weights");
    part_row(r, table, "other", b->other, whole, "data loading and host gaps");
    memory_bar(r, best->plan, &price->memory);
    buffers(r, &price->memory);
    memory_of_stages(r, &best->detail);
    collective_rows(r, &best->detail);
    if (best->detail.advice[0])
        sm_report_text(r, "The change that would help most: %s.", best->detail.advice);
    other_rows(r, plans);
    search_page(r, plans);
}
