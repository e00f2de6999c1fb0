/* serve_page: the answer about serving as a page. */
#include "serve_asked.h"
#include <ctype.h>
#include <string.h>

const char *sm_serve_plan_words(sm_report *r, const sm_system *system, const sm_plan *plan) {
    char text[256];
    sm_plan_format(plan, system->torus_dims, text, sizeof text);
    return sm_textf(r, "%s", text[0] ? text : "one chip");
}

const char *sm_serve_bound_words(sm_report *r, const sm_system *system,
                                 const sm_step_price *price) {
    if (price->bound != SM_SERVE_NETWORK) return sm_serve_bound_name(price->bound);
    return sm_textf(r, "network:%s", system->level[price->bound_level].name);
}

const char *sm_serve_typed_plan(sm_report *r, const sm_serve_asked *q, const sm_serve_dtypes *d,
                                const sm_plan *plan) {
    const char *words = sm_serve_plan_words(r, q->in.system, plan);
    if (q->choices == 1) return words;
    return sm_textf(r, "%s weights, %s cache, %s compute: %s", sm_dtype_name(d->weights),
                    sm_dtype_name(d->kv), sm_dtype_name(d->compute), words);
}

double sm_serve_cost(const sm_serve_asked *q, const sm_serve_point *p) {
    return p->usd_per_million_tokens * p->tokens_per_s_per_chip / sm_serve_throughput(q, p);
}

const char *sm_serve_batch_words(sm_report *r, double batch) {
    return batch > floor(batch) ? sm_show_number(r, batch) : sm_show_exact(r, batch);
}

/* ---- the frontier ---- */

/* Plans of the rows shown, each once: rows name them by letter. */
typedef struct named_plans {
    size_t n;
    const char *words[26];
} named_plans;

static const char *name_plan(sm_report *r, named_plans *names, const char *words) {
    size_t i = 0;
    while (i < names->n && strcmp(names->words[i], words) != 0) i++;
    if (i == sizeof names->words / sizeof *names->words) return words;
    if (i == names->n) names->words[names->n++] = words;
    return sm_textf(r, "%c", (int)('a' + i));
}

static void names_page(sm_report *r, const named_plans *names) {
    sm_table *t = sm_page_table(r, NULL, "<plan|<is");
    for (size_t i = 0; i < names->n; i++)
        sm_page_row(r, t, sm_textf(r, "%c", (int)('a' + i)), names->words[i]);
}

/* Of the points from `first` to `last` that of the fewest chips, of those the last. */
static size_t smallest(const sm_serve_result *found, size_t first, size_t last) {
    size_t best = last;
    for (size_t i = last; i-- > first;)
        if (found->point[i].chips < found->point[best].chips) best = i;
    return best;
}

/* Up to the point that is told. Of a long frontier one of k points, that one among them. */
static void frontier_page(sm_report *r, const sm_serving_found *a) {
    const sm_serve_result *found = a->result;
    named_plans names = {0};
    sm_table *t = sm_page_table(r, "Frontier: a row below is slower and cheaper",
                                ">{=}chips|>batch|>{s}token|>{s}bound|>{s}first|>tok/s/chip|"
                                ">{$}$/Mtok|<by|<plan");
    size_t rows = a->at + 1, top = (size_t)a->q->in.top, next = 0;
    if (rows > top) rows = top;
    for (size_t i = 0; i < rows; i++) {
        const size_t until = rows > 1 ? i * a->at / (rows - 1) : a->at;
        const size_t at = i + 1 < rows ? smallest(found, next, until) : a->at;
        next = until + 1;
        const sm_serve_asked *q = a->q;
        const sm_serve_point *p = &a->result->point[at];
        const char *plan = sm_serve_typed_plan(r, q, sm_serve_dtypes_of(a, at), &p->plan);
        double usd = sm_serve_cost(q, p);
        sm_page_row(r, t, p->chips, sm_serve_batch_words(r, p->batch), p->tpot_s[1], p->tpot_s[0],
                    p->ttft_s[1], sm_serve_throughput(q, p), usd > 0 ? usd : NAN,
                    sm_serve_bound_name(p->decode.bound), name_plan(r, &names, plan));
    }
    names_page(r, &names);
    if (rows < found->n)
        sm_report_text(r, "%zu of %zu points; --json has all, --top shows more.", rows, found->n);
    if (a->q->search.chips_least <= 1)
        sm_report_text(r, "The smallest replica that fits has %d %s.", found->least_chips,
                       found->least_chips == 1 ? "chip" : "chips");
}

void sm_serve_search_page(sm_report *r, const sm_serve_result *s) {
    if (s->space <= 0.0) return;
    sm_search_effort e = {
        .space = s->space, .evaluated = s->evaluated, .pruned = s->pruned, .seconds = s->seconds};
    sm_search_lines(r, &e, " No plan of the space is better.");
}

/* ---- requests in flight ---- */

static void shares_page(sm_report *r, const sm_serve_asked *q) {
    named_plans names = {.n = 0};
    if (!q->shares) return;
    sm_table *t = sm_page_table(r, "Replicas that share the requests in flight (*: shown below)",
                                ">replicas|>{=}chips|>{=}each has|>{s}token|>{s}first|>tok/s/chip|"
                                ">{$}$/Mtok|<plan");
    for (int i = 0; i < q->shares; i++) {
        const struct sm_closed_share *s = &q->share[i];
        const sm_serve_point *p = &s->point;
        double usd = sm_serve_cost(q, p);
        sm_page_row(r, t, sm_textf(r, "%d%s", s->replicas, s == q->taken ? " *" : ""), p->chips,
                    s->uneven ? sm_textf(r, "%.0f or %.0f", s->in_flight - 1.0, s->in_flight)
                              : sm_show_exact(r, s->in_flight),
                    p->tpot_s[1], p->ttft_s[1], p->tokens_per_s_per_chip, usd > 0 ? usd : NAN,
                    name_plan(r, &names, sm_serve_plan_words(r, q->in.system, &p->plan)));
    }
    names_page(r, &names);
}

/* ---- one point ---- */

static const char *price_words(sm_report *r, double usd) {
    return usd > 0.0 ? sm_textf(r, ", %s per million tokens", sm_show_usd(r, usd)) : "";
}

static void plan_line(sm_report *r, const sm_serving_found *a) {
    const sm_serve_point *p = a->best;
    const char *batch = sm_serve_batch_words(r, p->batch);
    batch = a->q->in.concurrency > 0.0 ? sm_textf(r, "%s of %s requests decode", batch,
                                                  sm_show_exact(r, a->q->in.concurrency))
                                       : sm_textf(r, "batch %s", batch);
    sm_report_text(r, "%s, %s (%s fit): %s", a->q->slice.text, batch,
                   p->most_batch >= 1.0 ? sm_show_exact(r, p->most_batch) : "none",
                   sm_serve_typed_plan(r, a->q, &a->q->job.dtypes, &p->plan));
    sm_copies_note(r, &p->plan, a->q->job.model);
    if (p->fits) return;
    sm_report_text(r, "It does not fit: the fullest chip needs %s and has %s.",
                   sm_show_bytes(r, p->memory.total), sm_show_bytes(r, p->memory.capacity));
}

/* In a benchmark the mean holds a share of the opening burst, which a service never sees. */
static const char *first_words(sm_report *r, const sm_serving_found *a) {
    const sm_serve_point *p = a->best;
    if (a->q->job.alone) return "";
    return sm_textf(r,
                    " on average of a benchmark that begins all at once; later half of them "
                    "within %s, 99 %% within %s",
                    sm_show_seconds(r, p->ttft_median_s), sm_show_seconds(r, p->ttft_p99_s));
}

static void speed_lines(sm_report *r, const sm_serving_found *a) {
    const sm_serve_point *p = a->best;
    sm_evidence_asked asked;
    const sm_evidence_near near = sm_serve_evidence(a->q, p, &asked);
    sm_ends ends = sm_serve_interval(a->q, &near, SM_REGIME_decode, p->tpot_s[1]);
    sm_report_text(r, "Time per token %s (80 %%: %s to %s, constants of %s %s), bound %s by %s.",
                   sm_show_seconds(r, p->tpot_s[1]), sm_show_seconds(r, ends.low),
                   sm_show_seconds(r, ends.high), a->q->used->chip, a->q->used->software,
                   sm_show_seconds(r, p->tpot_s[0]),
                   sm_serve_bound_words(r, a->q->in.system, &p->decode));
    sm_stand_in_page(r, a->q->in.software, &a->q->in.system->chip, a->q->used);
    sm_bound_note(r, a->q->used, "a token", p->tpot_s[0], p->tpot_s[1]);
    sm_report_text(r, "First token after %s (bound %s)%s.", sm_show_seconds(r, p->ttft_s[1]),
                   sm_show_seconds(r, p->ttft_s[0]), first_words(r, a));
    sm_report_text(r, "%s tokens/s per chip%s.", sm_show_number(r, p->tokens_per_s_per_chip),
                   price_words(r, p->usd_per_million_tokens));
    const struct sm_closed_share *taken = a->q->taken;
    if (taken && taken->uneven)
        sm_report_text(r,
                       "That is a replica with %.0f requests; all %d, some with one less, do %s "
                       "tokens/s per chip%s.",
                       taken->in_flight, taken->replicas,
                       sm_show_number(r, taken->point.tokens_per_s_per_chip),
                       price_words(r, taken->point.usd_per_million_tokens));
    if (a->q->job.alone)
        sm_report_text(r, "Prompts are prefilled elsewhere: nothing comes between two tokens.");
    else
        sm_report_text(
            r,
            "So with %s request%s in flight%s, whose prompts are prefilled on the same "
            "chips. Alone, a decode step takes %s a token, a prefill %s; %s tokens/s "
            "per chip%s.",
            sm_show_number(r, p->in_flight), p->in_flight > 1.0 ? "s" : "",
            a->q->in.concurrency > 0.0
                ? sm_textf(r, ", ten of each client in turn, of %s to all of these lengths",
                           sm_show_percent(r, SM_LOAD_SHORTEST))
                : "",
            sm_show_seconds(r, p->tpot_alone_s[1]), sm_show_seconds(r, p->ttft_alone_s[1]),
            sm_show_number(r, p->tokens_per_s_per_chip_alone),
            price_words(r, p->usd_per_million_tokens_alone));
    if (p->depth > 0)
        sm_report_text(r, "Speculation: %d drafted tokens give %s tokens a step.", p->depth,
                       sm_show_number(r, p->tokens_per_step));
    sm_evidence_page(r, &asked, &near);
}

/* The parts of a step as columns; scans have one where there are any. */
#define STEP_HEADS ">{s}weights|>{s}KV|>{s}compute|%s>{s}scans|>{s}network|>{s}other"
#define STEP_PARTS(b) (b).weights, (b).kv, (b).compute, (b).scans, (b).network, (b).other

static void batches_page(sm_report *r, const sm_serving_found *a) {
    /* with scans the bound has no room on the page */
    bool scans = a->batches > 0 && a->batch[0].decode.breakdown_s.scans > 0;
    bool alone = a->q->job.alone;
    sm_table *t =
        sm_page_table(r, "This plan at other batches",
                      sm_textf(r, ">batch|>{s}token|%s>{s}%s|" STEP_HEADS "|>tok/s/chip",
                               scans ? "-" : "", alone ? "bound" : "prefill", scans ? "" : "-"));
    for (int i = 0; i < a->batches; i++) {
        const sm_serve_point *p = &a->batch[i];
        sm_page_row(r, t, sm_serve_batch_words(r, p->batch), p->tpot_s[1],
                    alone ? p->tpot_s[0] : fmax(0, p->tpot_s[1] - p->tpot_alone_s[1]),
                    STEP_PARTS(p->decode.breakdown_s), p->tokens_per_s_per_chip);
    }
}

/* The library words reasons as parts of a sentence; a name at its start stays as it is. */
const char *sm_serve_reason(sm_report *r, const sm_serving_found *a) {
    const char *chip = a->q->in.system->chip.name;
    char first = a->reason[0];
    if (strncmp(a->reason, chip, strlen(chip)) != 0) first = (char)toupper((unsigned char)first);
    return sm_textf(r, "%c%s.", first, a->reason + 1);
}

/* Memory in the words of engines. */
static void room_line(sm_report *r, const sm_serving_found *a) {
    const sm_serve_point *p = a->best;
    const double length = sm_serve_longest(&a->q->job);
    const char *each = a->longest < SM_MAX_TOKENS
                           ? sm_textf(r, "up to %s tokens each", sm_show_exact(r, a->longest))
                           : "requests of any length";
    sm_report_text(r,
                   "KV cache size %s tokens: maximum concurrency %.2fx at %s tokens a request. A "
                   "batch of %s may hold %s; it needs a memory fraction of %.3f.",
                   sm_show_exact(r, a->room), a->room / length, sm_show_exact(r, length),
                   sm_serve_batch_words(r, p->batch), each,
                   ceil(1000 * p->memory.least_share) / 1000);
}

static void turns_lines(sm_report *r, const sm_serve_detail *d) {
    if (d->turn_kv_context > 0)
        sm_report_text(r, "The cache takes as long as the weights from a context of %s tokens.",
                       sm_show_number(r, d->turn_kv_context));
    if (d->turn_kv_batch > 0)
        sm_report_text(r, "At this context it does so from a batch of %s.",
                       sm_show_number(r, d->turn_kv_batch));
    if (d->turn_compute_batch > 0)
        sm_report_text(r, "Matmuls become compute bound from a batch of %s.",
                       sm_show_number(r, d->turn_compute_batch));
    if (d->advice[0]) sm_report_text(r, "What would help most: %s.", d->advice);
}

static void encoder_line(sm_report *r, const sm_serving_found *a) {
    const int positions = a->detail ? a->detail->encoder_positions : 0;
    double tokens;
    const double pictures = sm_question_pictures(a->q->job.model, &tokens);
    if (positions == 0) return;
    if (pictures > 0)
        sm_report_text(r,
                       "Each request has %.0f picture%s of %d patches, which the tower reads as it "
                       "begins: %.0f tokens of the prompt.",
                       pictures, pictures == 1 ? "" : "s", positions, tokens);
    else
        sm_report_text(r,
                       "Its encoder reads %d positions of each request as it begins; prompt and "
                       "output are the decoder's.",
                       positions);
}

static void best_page(sm_report *r, const sm_serving_found *a) {
    if (!a->q->one) sm_report_heading(r, "Most tokens per chip");
    plan_line(r, a);
    speed_lines(r, a);
    if (a->reason) sm_report_text(r, "%s", sm_serve_reason(r, a));
    encoder_line(r, a);
    bool scans = a->best->decode.breakdown_s.scans > 0;
    sm_table *t = sm_page_table(r, "Where the time goes",
                                sm_textf(r, "<step|%s>{s}bound|>{s}expected|" STEP_HEADS,
                                         scans ? "-" : "", scans ? "" : "-"));
    const sm_step_price *step[2] = {&a->best->decode, &a->best->prefill};
    static const char *const names[2] = {"decode", "prefill of one prompt"};
    for (int i = 0; i < 2; i++)
        sm_page_row(r, t, names[i], step[i]->lower_s, step[i]->expected_s,
                    STEP_PARTS(step[i]->breakdown_s));
    sm_bar_part parts[] = {{"params", a->best->memory.params},
                           {"KV cache", a->best->memory.kv},
                           {"activations", a->best->memory.activations},
                           {"buffers", a->best->memory.buffers}};
    sm_report_bar(r, "Memory of the fullest chip", "B", a->best->memory.capacity,
                  sizeof parts / sizeof *parts, parts);
    if (a->longest >= 1.0) room_line(r, a);
    sm_serve_runners_page(r, a);
    if (a->batch) batches_page(r, a);
    if (a->detail) turns_lines(r, a->detail);
}

/* ---- beyond one replica ---- */

/* Whole workers of each pool: so many that prefill, so many that decode. */
static void workers_lines(sm_report *r, const sm_serving_found *a) {
    const sm_disaggregated *p = a->pools;
    if (!(p->chips > 0)) {
        sm_report_text(r, "%s has too few chips for a worker of each pool, of %d and of %d.",
                       a->q->in.system->text, p->prefill.chips, p->decode.chips);
        return;
    }
    const char *usd =
        p->usd_per_hour > 0 ? sm_textf(r, ", %s an hour", sm_show_usd(r, p->usd_per_hour)) : "";
    sm_report_text(
        r,
        "In whole workers %sP%sD: %s that prefill and %s that decode on %s chips%s serve %s "
        "requests a second. The pools are busy %s and %s of the time; first token after %s, the "
        "wait for a worker and the transfer in it, %s per token, for nine requests in ten within "
        "%s "
        "and %s; %s sequences in a decode step.",
        sm_show_exact(r, p->prefill_workers), sm_show_exact(r, p->decode_workers),
        sm_show_exact(r, p->prefill_workers), sm_show_exact(r, p->decode_workers),
        sm_show_exact(r, p->chips), usd, sm_show_number(r, p->requests_per_s),
        sm_show_percent(r, p->prefill_busy), sm_show_percent(r, p->decode_busy),
        sm_show_seconds(r, p->ttft_s), sm_show_seconds(r, p->tpot_s),
        sm_show_seconds(r, p->ttft_p90_s), sm_show_seconds(r, p->tpot_p90_s),
        sm_show_number(r, p->running));
}

static void pools_page(sm_report *r, const sm_serving_found *a) {
    const sm_disaggregated *p = a->pools;
    const sm_system *s = a->q->in.system;
    const sm_system *from = a->q->in.prefill_system ? a->q->in.prefill_system : s;
    if (from == s) sm_report_heading(r, "Disaggregated");
    else sm_report_heading(r, "Prefill on %s, decode on %s", from->text, s->text);
    sm_table *t = sm_page_table(r, NULL, "<pool|>{=}chips|>{=}batch|>{s}step|<plan");
    sm_page_row(r, t, "prefill", p->prefill.chips, p->prefill_batch, p->prefill.prefill.expected_s,
                sm_serve_plan_words(r, from, &p->prefill.plan));
    sm_page_row(r, t, "decode", p->decode.chips, p->decode.batch, p->decode.decode.expected_s,
                sm_serve_plan_words(r, s, &p->decode.plan));
    sm_report_text(r,
                   "%s prefill chips for each decode chip. The cache of a request, %s, moves in "
                   "%s. Together %s tokens/s per chip%s.",
                   sm_show_number(r, p->prefill_per_decode_chips), sm_show_bytes(r, p->kv_bytes),
                   sm_show_seconds(r, p->kv_transfer_s),
                   sm_show_number(r, p->tokens_per_s_per_chip),
                   price_words(r, p->usd_per_million_tokens));
    if (a->q->search.ttft_s <= 0.0)
        sm_report_text(r, "Without --ttft the prefill batch is that of most prompts per chip.");
    workers_lines(r, a);
}

/* Of pools that nobody asked for. */
static void offer_line(sm_report *r, const sm_serving_found *a) {
    const sm_disaggregated *p = a->pools;
    const sm_system *s = a->q->in.system;
    const double tokens_per_s = p->requests_per_s * a->q->job.output;
    sm_report_text(
        r,
        "Prefill and decode in pools of their own would do %s tokens/s per chip%s: %sP%sD on %s "
        "chips, of workers of %d that prefill (%s) and of %d that decode (%s); --disaggregated "
        "tells more.",
        sm_show_number(r, tokens_per_s / p->chips),
        price_words(r, p->usd_per_hour / 3600.0 / tokens_per_s * 1e6),
        sm_show_exact(r, p->prefill_workers), sm_show_exact(r, p->decode_workers),
        sm_show_exact(r, p->chips), p->prefill.chips, sm_serve_plan_words(r, s, &p->prefill.plan),
        p->decode.chips, sm_serve_plan_words(r, s, &p->decode.plan));
}

/* Of steps that nobody asked for. */
static void fewer_line(sm_report *r, const sm_serving_found *a) {
    const sm_fleet *f = a->fewer;
    sm_report_text(r,
                   "Steps of at most %d tokens of prompts (--engine budget_tokens=%d) would do %s "
                   "tokens/s per chip%s: %s per token, first token after %s: %s",
                   SM_FEWER_TOKENS, SM_FEWER_TOKENS, sm_show_number(r, sm_serve_fleet_tokens(f)),
                   price_words(r, sm_serve_fleet_cost(f)), sm_show_seconds(r, f->tpot_s),
                   sm_show_seconds(r, f->ttft_s),
                   sm_serve_plan_words(r, a->q->in.system, &f->point.plan));
}

static void replicas_lines(sm_report *r, const sm_serving_found *a) {
    const sm_fleet *f = a->fleet;
    const sm_system *s = a->q->in.system;
    const char *all =
        sm_textf(r, "%s chip%s", sm_show_exact(r, f->chips), f->chips > 1.0 ? "s" : "");
    sm_report_text(
        r, "%s replica%s of %d chip%s, %s in all%s.", sm_show_exact(r, f->replicas),
        f->replicas > 1.0 ? "s" : "", f->point.chips, f->point.chips > 1 ? "s" : "", all,
        f->usd_per_hour > 0 ? sm_textf(r, ", %s an hour", sm_show_usd(r, f->usd_per_hour)) : "");
    if (s->chips > 1 && f->chips > s->chips)
        sm_report_text(r, "That is %s times %s.", sm_show_number(r, f->chips / s->chips), s->text);
}

static void fleet_page(sm_report *r, const sm_serving_found *a) {
    const sm_fleet *f = a->fleet;
    double asked = a->q->in.requests_per_s;
    if (asked > 0.0)
        sm_report_heading(r, "Fleet for %s requests a second", sm_show_exact(r, asked));
    else sm_report_heading(r, "Requests that come at random");
    if (asked > 0.0) replicas_lines(r, a);
    sm_report_text(r, "%s takes at most %s requests a second, of which %s %scome%s.",
                   asked > 0.0 ? "Each" : sm_textf(r, "A replica of %d", f->point.chips),
                   sm_show_number(r, f->requests_per_s_per_replica),
                   f->utilisation > 0.0 ? sm_show_percent(r, f->utilisation) : "none",
                   asked > 0.0 ? "" : "may ",
                   f->utilisation > 0.0 ? "" : ": at no rate do nine in ten keep to the limits");
    if (f->utilisation > 0.0)
        sm_report_text(
            r,
            "At that rate %s sequences decode at once, of a batch of %s: %s per token, first "
            "token after %s, for nine requests in ten within %s and %s: %s",
            sm_show_number(r, f->running), sm_show_exact(r, f->point.batch),
            sm_show_seconds(r, f->tpot_s), sm_show_seconds(r, f->ttft_s),
            sm_show_seconds(r, f->tpot_p90_s), sm_show_seconds(r, f->ttft_p90_s),
            sm_serve_plan_words(r, a->q->in.system, &f->point.plan));
    if (asked <= 0.0 && f->utilisation > 0.0)
        sm_report_text(r, "%s tokens/s per chip%s.", sm_show_number(r, sm_serve_fleet_tokens(f)),
                       price_words(r, sm_serve_fleet_cost(f)));
    if (sm_serve_fleet_misses(a))
        sm_report_text(r, "Requests that come at random keep it from the limits, with more "
                          "replicas too.");
}

void sm_stand_in_page(sm_report *r, const char *named, const sm_chip *chip,
                      const sm_calibration *used) {
    const sm_software *known = sm_software_of(named);
    if (named && known != sm_software_of(NULL)) named = known->name;
    if (!named || strcmp(used->software, named) == 0) return;
    bool usual = !sm_software_calibration(chip, named);
    sm_report_text(r, "Of %s nothing was measured on %s%s: %s%s.", named, chip->name,
                   usual ? " or chips like it" : "",
                   usual ? "what is usual there stands in, under its own schedule" : used->software,
                   usual ? "" : " stands in");
}

void sm_engine_page(sm_report *r, const sm_software *engine) {
    char differs[1024];
    const sm_software *base = sm_software_differs(engine, differs, sizeof differs);
    if (!differs[0]) return;
    bool any = base == sm_software_of(NULL), own = strcmp(base->name, engine->name) != 0;
    sm_report_text(r, "The engine%s%s has %s; all else is %s%s.", own ? " " : "",
                   own ? engine->name : "", differs, any ? "usual" : "as in ",
                   any ? "" : base->name);
}

/* "8192 tokens over all groups of chips" */
static const char *limit_words(sm_report *r, double each, double all, const char *what) {
    return sm_textf(r, "%s %s%s", sm_show_exact(r, all > 0 ? all : each), what,
                    all > 0 ? " over all groups of chips" : "");
}

void sm_engine_limits_page(sm_report *r, const sm_software *e, const sm_chip *chip, bool tokens,
                           bool sequences) {
    if (e->n_defaults == 0 || (!tokens && !sequences)) return;
    const char *chunk = limit_words(r, e->budget_tokens, e->budget_of_all, "tokens of prompts"),
               *most = limit_words(r, e->most_running, e->most_of_all, "sequences");
    sm_report_text(r, "A step takes at most %s%s%s, the default of %s on %s.", tokens ? chunk : "",
                   tokens && sequences ? " and " : "", sequences ? most : "", e->name, chip->name);
}

void sm_serve_job_page(sm_report *r, const sm_serve_asked *q, const char *on, const char *compute) {
    const sm_serve_job *job = &q->job;
    const sm_model *model = q->in.model;
    double longest = sm_serve_longest(job);
    sm_report_heading(r, "%s on %s", model->name, on);
    sm_report_text(r,
                   "Requests of %s prompt and %s output tokens; weights %s%s, cache %s, computed "
                   "in %s.",
                   sm_show_exact(r, job->prompt), sm_show_exact(r, job->output), q->dtype_words[0],
                   job->as_stored ? " as the checkpoint stores them" : "", q->dtype_words[1],
                   compute);
    const double ttft_s = q->search.ttft_s, tpot_s = q->search.tpot_s;
    if (ttft_s > 0.0 || tpot_s > 0.0)
        sm_report_text(
            r, "At most %s%s%s: on average of a closed loop, for nine requests in ten at a rate.",
            ttft_s > 0.0 ? sm_textf(r, "%s to the first token", sm_show_seconds(r, ttft_s)) : "",
            ttft_s > 0.0 && tpot_s > 0.0 ? " and " : "",
            tpot_s > 0.0 ? sm_textf(r, "%s a token", sm_show_seconds(r, tpot_s)) : "");
    sm_engine_page(r, &q->software);
    sm_engine_limits_page(r, &q->software, &q->in.system->chip, !q->software.budget_given,
                          !q->software.most_given);
    if (model->max_seq > 0 && longest > (double)model->max_seq)
        sm_report_text(r, "%s was made for sequences of %s tokens; these have %s.", model->name,
                       sm_show_exact(r, (double)model->max_seq), sm_show_exact(r, longest));
    if (job->context > 0)
        sm_report_text(r, "Decoding is priced at %s cached tokens.",
                       sm_show_exact(r, job->context));
    if (q->padding > 0) sm_padding_note(r, &q->search.fixed, model, job->model, q->padding);
}

void sm_serve_page(sm_report *r, const sm_serving_found *a) {
    sm_serve_job_page(r, a->q, a->q->in.system->text, a->q->dtype_words[2]);
    sm_units_note(r, &a->q->in.system->chip, a->q->job.dtypes.compute);
    if (!a->best) {
        sm_report_text(r, "%s", sm_serve_reason(r, a));
        return;
    }
    if (!a->q->one) frontier_page(r, a);
    shares_page(r, a->q);
    best_page(r, a);
    sm_serve_engines_page(r, a);
    if (a->pools && a->q->in.disaggregated) pools_page(r, a);
    if (a->fleet) fleet_page(r, a);
    if (a->fewer) fewer_line(r, a);
    if (a->pools && !a->q->in.disaggregated) offer_line(r, a);
    if (!a->q->one) sm_serve_search_page(r, a->result);
}
