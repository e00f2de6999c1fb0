/* The engine of a plan: what sm_serve_step says, kept at points of a grid. A cell is priced when it
 * is first asked for, so a simulation pays for the few hundred that it goes through.
 *
 *   decoding      D(n, c)   n sequences of c cached tokens each
 *   prefill       F(P, a)   P new tokens that attend to a tokens each
 *   both at once  X(P, a) + D(n, c) - D(1, 1) + T(n + P) - T(1 + P) - T(n) + T(1)
 *                 or F(P, a) + D(n, c), one after the other, if that takes less
 *
 * (n and 1 times the tokens that a step verifies, where some are drafted)
 *
 * where X(P, a) is the prefill beside one decoding sequence, T(t) a step of t tokens, of one
 * decoding sequence and short prompts: matmuls see all tokens of a step together, attention sees
 * each group by itself, so that only the matmuls of n and P tokens are not those of each alone. */
#include "scalemodel/simulate.h"
#include "load_steps.h"

#include <assert.h>

enum {
    OCTAVES = 42, /* 1 .. 2^42 tokens */
    OF_OCTAVE = 8,
    POINTS = OCTAVES * OF_OCTAVE + 1,
    EXACT = 1024, /* sequences up to which few have a row of their own */
    SEQUENCES_OF_OCTAVE = 16,
    TOKENS_OF_OCTAVE = 32, /* times go in steps, of tiles and of waves of them */
    SHORT = 64,            /* tokens of a short prompt */
    ROWS = EXACT + OCTAVES * TOKENS_OF_OCTAVE + 1
};
#define HOST_SHARE 0.5 /* of host memory that holds caches */

typedef struct grid_place {
    int point;
    double share;     /* of the next point */
    double low, high; /* values of both */
} grid_place;

struct engine_table {
    sm_serve *serve;
    sm_plan plan;       /* settled */
    step step[3];       /* of prompts, of decoding, of both: as they lie; s NULL: none yet */
    engine_table *next; /* of those that are shared: of a plan on a system, as texts */
    char text[512], on[128];
    sm_engine engine;
    sm_arena *arena;
    double *decode[ROWS];  /* by sequences, then cached tokens of each */
    double *prefill[ROWS]; /* by new tokens, then what each attends to */
    double *beside[ROWS];  /* X, as prefill */
    double together[ROWS]; /* T, by tokens */
    double begin[POINTS];  /* of an encoder, by the sequences that begin */
    double one_s;          /* D(1, 1), once it was asked for; 0 */
    double sequences;      /* that were asked for last, and their rows; 0: none */
    grid_place row;
    int depth;            /* of drafts, which a decode step verifies; 0: none */
    double copies;        /* of the model, each an engine */
    double stages;        /* of a pipeline, which take a group of the sequences each */
    bool follows;         /* steps of prompts come one after the other: one is what it keeps a
                             stage busy for */
    double replicas;      /* of a copy: groups of chips with sequences of their own */
    double expert_groups; /* those of them that share no experts */
    double most_tokens;   /* of a prompt in a step that decodes too */
    sm_error err;         /* SM_INTERNAL: why the last cell has no price */
};

/* ---- the grid: equal steps within each octave ---- */

/* A double is 1 to 2 times a power of two, by its upper twelve bits. */
static inline grid_place octave_place(double value, int of_octave) {
    const uint64_t fraction_bits = 52, one = UINT64_C(1023) << fraction_bits;
    int last = OCTAVES * of_octave;
    double tokens = value > 1.0 ? value : 1.0, fraction, octave;
    uint64_t word;
    memcpy(&word, &tokens, sizeof word);
    uint64_t low = word & ((UINT64_C(1) << fraction_bits) - 1), power = word - low,
             unit = one | low;
    memcpy(&fraction, &unit, sizeof unit);
    memcpy(&octave, &power, sizeof power);
    double at = (fraction - 1.0) * of_octave;
    int within = (int)at, point = (int)((power - one) >> fraction_bits) * of_octave + within;
    if (point >= last) return (grid_place){last, 0.0, ldexp(1.0, OCTAVES), INFINITY};
    double apart = octave / of_octave;
    return (grid_place){point, at - within, apart * (of_octave + within),
                        apart * (of_octave + within + 1)};
}

/* A step takes as long as its fullest group of chips: of as many in each, the mean stands. Few have
 * rows of their own, 0 .. EXACT - 1. */
static inline grid_place rows_of_sequences(const engine_table *t, double n) {
    double groups = t->replicas * t->stages, fewer = floor(0.5 * (groups - 1.0));
    double fullest = ceil(n / groups), low = floor(larger(n, 1.0));
    if (fullest < SEQUENCES_OF_OCTAVE && n < EXACT)
        return (grid_place){(int)low - 1, larger(n - low, 0.0), low, low + 1.0};
    grid_place at = octave_place(fullest, SEQUENCES_OF_OCTAVE);
    return (grid_place){at.point + EXACT, at.share, at.low * groups - fewer,
                        at.high * groups - fewer};
}

/* ---- cells ---- */

/* Of all copies, as long as that of one. Steps of a kind differ in their sequences alone. */
static double price_batch(engine_table *t, sm_step_batch batch) {
    sm_step_price price;
    sm_error err = {.status = SM_OK};
    for (int i = 0; i < batch.groups; i++) batch.group[i].sequences *= t->copies;
    batch.sampled *= t->copies;
    batch.begun = batch.begun > 0.0 ? batch.begun * t->copies : -1.0;
    int decoding = step_decoding(&batch);
    step *x = &t->step[decoding == 0 ? 0 : decoding == batch.groups ? 1 : 2];
    if (x->s) {
        step_resize(x, &batch);
    } else if (step_prepare(t->serve, &t->plan, &batch, x, &err)) {
        if (err.status == SM_INTERNAL) t->err = err;
        x->s = NULL;
        return NAN;
    }
    x->expected_alone = true;
    step_price(x, &price);
    return isfinite(price.expected_s) ? price.expected_s : NAN;
}

static double price_of(engine_table *t, sm_attend group, double sampled) {
    return price_batch(t, (sm_step_batch){.groups = 1, .group = {group}, .sampled = sampled});
}

/* Stages of a pipeline decode groups of the batch at the same time: a step of all lasts as long as
 * one group passes through. */
static double price_decode(engine_table *t, double n, double cached) {
    double group = point_group(&t->plan, n), each = t->depth + 1.0;
    double verify = price_of(t, (sm_attend){group, each, cached}, group * each);
    if (t->depth == 0 || !t->serve->draft || isnan(verify)) return verify;
    sm_step_price draft;
    sm_error err = {.status = SM_OK};
    sm_status status = point_draft(t->serve, &t->plan, group * t->copies, &draft, &err);
    if (status == SM_INTERNAL) t->err = err;
    return status == SM_OK ? verify + t->depth * draft.expected_s : NAN;
}

/* New tokens that attend to less than half of them are of several prompts, and so are more than
 * the most that one has in a step; what each attends to beyond half of its own is cached. */
static sm_attend prompts_of(double tokens, double attended, double most) {
    double each = smaller(smaller(tokens, most), larger(1.0, 2.0 * attended));
    return (sm_attend){tokens / each, each, larger(0.0, attended - 0.5 * each)};
}

static double price_prefill(engine_table *t, double tokens, double attended) {
    sm_attend prompts = prompts_of(tokens, attended, INFINITY);
    return price_of(t, prompts, prompts.sequences);
}

static double price_beside(engine_table *t, double tokens, double attended) {
    sm_step_batch batch = {.groups = 2, .group = {{1, t->depth + 1.0, 1}}};
    batch.group[1] = prompts_of(tokens, attended, t->most_tokens);
    batch.sampled = t->depth + 1.0 + batch.group[1].sequences;
    return price_batch(t, batch);
}

/* One row of a table: its cells by `attend`, priced by the row's own first argument. */
typedef double (*price_cell)(engine_table *t, double first, double second);

static inline double cell(double *cell, engine_table *t, price_cell price, double first,
                          double second) {
    if (isnan(*cell)) *cell = price(t, first, second);
    return *cell;
}

static inline double between(engine_table *t, double **row, grid_place at, price_cell price,
                             double first) {
    if (!*row) {
        *row = sm_arena_array(t->arena, POINTS, sizeof **row);
        for (int i = 0; *row && i < POINTS; i++) (*row)[i] = NAN;
    }
    if (!*row) sm_fail_memory(&t->err);
    if (!*row) return NAN;
    double low = cell(&(*row)[at.point], t, price, first, at.low);
    if (at.share == 0.0) return low;
    return low + at.share * (cell(&(*row)[at.point + 1], t, price, first, at.high) - low);
}

static inline double table_s(engine_table *t, double **rows, grid_place first, double second,
                             price_cell price) {
    grid_place at = octave_place(second, OF_OCTAVE);
    double low = between(t, &rows[first.point], at, price, first.low);
    if (first.share == 0.0) return low;
    double high = between(t, &rows[first.point + 1], at, price, first.high);
    return low + first.share * (high - low);
}

/* ---- what depends on the tokens of a step alone ---- */

static double price_together(engine_table *t, double tokens) {
    sm_step_batch batch = {.groups = 2, .group = {{1, 1, 1}}, .sampled = 1.0};
    if (tokens < 2.0) /* and the start of a second attention, which all of them have */
        return price_of(t, (sm_attend){1, 1, 1}, 1) + price_together(t, 2.0) -
               price_of(t, (sm_attend){2, 1, 1}, 2);
    double each = smaller(SHORT, larger(1.0, (tokens - 1.0) / t->replicas)); /* of a short prompt */
    batch.group[1] = (sm_attend){(tokens - 1.0) / each, each, 0.0};
    return price_batch(t, batch);
}

static double together_cell(engine_table *t, int row, double tokens) {
    if (t->together[row] == 0.0) t->together[row] = price_together(t, tokens);
    return t->together[row];
}

static inline double together_s(engine_table *t, double tokens) {
    grid_place at = octave_place(tokens, TOKENS_OF_OCTAVE);
    double low = together_cell(t, at.point, at.low);
    if (at.share == 0.0) return low;
    return low + at.share * (together_cell(t, at.point + 1, at.high) - low);
}

/* ---- what an encoder reads as sequences begin ---- */

static double begin_cell(engine_table *t, int point, double n) {
    if (t->begin[point] == 0.0) {
        sm_step_batch batch = {.groups = 1, .group = {{n, 1, 0}}, .sampled = 1.0};
        const double without = price_batch(t, batch);
        batch.begun = n;
        t->begin[point] = price_batch(t, batch) - without;
    }
    return t->begin[point];
}

/* The group of chips with the most of them has others wait. */
static double begin_s(void *context, double n) {
    engine_table *t = context;
    const grid_place at = octave_place(ceil(n / t->replicas) * t->replicas, OF_OCTAVE);
    double low = begin_cell(t, at.point, at.low);
    if (at.share == 0.0) return low;
    return low + at.share * (begin_cell(t, at.point + 1, at.high) - low);
}

/* ---- steps ---- */

static double decode_s(engine_table *t, double n, double cached) {
    if (t->sequences != n) t->row = rows_of_sequences(t, t->sequences = n);
    return table_s(t, t->decode, t->row, cached, price_decode);
}

/* Prompts are dealt out over the groups of a pipeline, one at least: tokens of the fullest. */
static double fullest_pass(const engine_table *t, double tokens, double attended, double most) {
    return larger(prompts_of(tokens, attended, most).queries, tokens / t->stages);
}

/* Alone they fill the pipeline and drain it; where they follow one another they are one group. */
static double prefill_s(engine_table *t, double tokens, double attended) {
    double fullest = t->follows ? tokens : fullest_pass(t, tokens, attended, INFINITY);
    double passes = t->follows ? 1.0 : tokens / fullest + t->stages - 1.0;
    return table_s(t, t->prefill, octave_place(fullest, TOKENS_OF_OCTAVE), attended,
                   price_prefill) *
           passes / t->stages;
}

/* The groups of a pipeline follow one another: a round of all takes as long as the fullest. */
static double mixed_s(engine_table *t, double n, double cached, double all, double attended) {
    double prefill = fullest_pass(t, all, attended, t->most_tokens);
    /* Prompts fewer than the groups of chips leave some idle: the step takes as long as if all of
     * them had as many tokens as the fullest; of chips that share experts these see the sum. */
    double prompts = prompts_of(prefill, attended, t->most_tokens).sequences;
    double tokens = prefill * larger(1.0, t->expert_groups / prompts),
           group = point_group(&t->plan, n);
    double beside =
        table_s(t, t->beside, octave_place(prefill, TOKENS_OF_OCTAVE), attended, price_beside);
    if (t->one_s == 0.0) t->one_s = decode_s(t, 1.0, 1.0);
    double decode = decode_s(t, n, cached), one = t->one_s, each = t->depth + 1.0;
    double shared = together_s(t, group * each + tokens) - together_s(t, each + tokens) -
                    together_s(t, group * each) + together_s(t, each);
    double sum = beside + fmax(decode - one + shared, 0.0);
    if (isnan(sum) || isnan(shared) || isnan(decode - one)) return NAN;
    return fmin(fmax(sum, decode), decode + prefill_s(t, all, attended));
}

static double step_s(void *context, double n, double cached, double prefill, double attended) {
    engine_table *t = context;
    if (n < 1.0) return prefill_s(t, prefill, attended);
    double each = cached / n;
    return prefill >= 1.0 ? mixed_s(t, n, each, prefill, attended) : decode_s(t, n, each);
}

static double line_to(void *context, double each) {
    (void)context;
    return octave_place(each, OF_OCTAVE).high;
}

/* The sums that simulate keeps of its sequences: who decodes, and what new tokens attend to, which
 * is all cached ones and half of the new. */
typedef struct step_sums {
    double decoding, cached, prefill, pairs, begun;
} step_sums;

static bool add_sequence(const sm_sequence_step *q, step_sums *to) {
    double tokens = q->new_tokens, cached = q->cached_tokens;
    if (!(tokens >= 1.0 && tokens <= SM_MAX_TOKENS && cached >= 0.0 && cached <= SM_MAX_TOKENS))
        return false;
    if (tokens == 1.0 && cached > 0.0) {
        to->decoding += 1.0;
        to->cached += cached;
    } else {
        to->begun += cached == 0.0;
        to->prefill += tokens;
        to->pairs += tokens * (cached + 0.5 * tokens);
    }
    return true;
}

sm_status sm_serve_step_time(const sm_engine *engine, const sm_sequence_step *sequences, size_t n,
                             double *seconds, sm_error *err) {
    step_sums sums = {0};
    *seconds = 0.0;
    if (n == 0) return sm_fail(err, SM_BAD_INPUT, "a step has no sequences");
    for (size_t i = 0; i < n; i++)
        if (!add_sequence(&sequences[i], &sums))
            return sm_fail(err, SM_BAD_INPUT,
                           "sequence %zu of a step has %g new tokens on %g cached ones", i,
                           sequences[i].new_tokens, sequences[i].cached_tokens);
    double attended = sums.prefill > 0.0 ? sums.pairs / sums.prefill : 0.0;
    double s = engine->step_s(engine->context, sums.decoding, sums.cached, sums.prefill, attended);
    if (engine->begin_s && sums.begun > 0.0) s += engine->begin_s(engine->context, sums.begun);
    if (isfinite(s)) {
        *seconds = s;
        return SM_OK;
    }
    if (engine->error && engine->error->status) {
        if (err) *err = *engine->error;
        return engine->error->status;
    }
    return sm_fail(err, SM_BAD_INPUT, "the plan cannot take a step of %.0f new tokens",
                   sums.decoding + sums.prefill);
}

/* ---- the engine ---- */

static void set_links(const sm_serve *s, const sm_engine_use *use, sm_engine *e) {
    const double bytes = 1e9;
    const sm_chip *chip = &s->system.chip;
    e->host_bytes_per_s = e->chips * chip->pcie_bytes_per_s_oneway.value;
    e->host_kv_tokens = HOST_SHARE * sm_chip_host_bytes(chip) * e->chips / e->kv_bytes_per_token;
    if (use->within) {
        double none = sm_serve_transfer_s(use->within, 0.0, e->chips, use->to_chips),
               all = sm_serve_transfer_s(use->within, bytes, e->chips, use->to_chips);
        e->transfer_bytes_per_s = all > none ? bytes / (all - none) : 0.0;
        e->transfer_latency_s += none;
        return;
    }
    bool dcn = chip->dcn_bytes_per_s_oneway.value > 0.0;
    bool torus = chip->fabric == SM_FABRIC_TORUS;
    sm_fact inner = torus ? chip->link_bytes_per_s_oneway : chip->tree[0].child_bytes_per_s_oneway;
    sm_fact hop = torus ? chip->hop_latency_s : chip->tree[0].hop_latency_s;
    double link = dcn ? chip->dcn_bytes_per_s_oneway.value : inner.value;
    e->transfer_bytes_per_s = e->chips * link;
    e->transfer_latency_s += dcn ? chip->dcn_latency_s.value : hop.value;
}

/* Its steps, and nothing of its memory. */
static sm_status make_steps(sm_serve *serve, const sm_plan *plan, bool follows, sm_arena *arena,
                            sm_engine *engine, sm_error *err) {
    sm_step_batch one = {.groups = 1, .group = {{1.0, 1.0, 1.0}}, .sampled = 1.0};
    sm_step_price price;
    sm_status status = sm_serve_step(serve, plan, &one, &price, err); /* can it be priced at all? */
    if (status) return status;
    engine_table *t = sm_arena_alloc(arena, sizeof *t);
    if (!t) return sm_fail_memory(err);
    t->serve = serve;
    t->plan = *plan;
    t->arena = arena;
    sm_degrees d;
    sm_plan_settle(&t->plan, &serve->model);
    sm_degrees_set(&d, &t->plan, &serve->model);
    t->copies = plan->data;
    t->stages = plan->pipeline;
    t->follows = follows;
    t->replicas = d.replicas / t->copies;
    t->expert_groups = expert_groups(&d) / t->copies;
    t->most_tokens = load_budget(&serve->software, &t->plan, serve);
    t->depth = serve->job.speculation.depth;
    if (t->depth < 0) {
        decode_time best;
        status = point_decode(serve, plan, 1.0, &best, err);
        if (status) return status;
        t->depth = best.depth;
    }
    *engine = (sm_engine){.context = t,
                          .step_s = step_s,
                          .begin_s =
                              has_encoder(variant_of(serve, &t->plan, false, err)) ? begin_s : NULL,
                          .line_to = line_to,
                          .error = &t->err,
                          .tokens_per_step = t->depth > 0 ? point_tokens(serve, t->depth) : 1.0,
                          .drafted = t->depth,
                          .chips = sm_plan_chips(plan) / plan->data};
    if (!follows || t->stages <= 1.0) return SM_OK;
    const double prompt = serve->job.prompt - serve->job.prefix, prefix = serve->job.prefix;
    double stage_s = step_s(t, 0.0, 0.0, prompt, prefix + 0.5 * prompt);
    if (stage_s > 0.0) engine->transfer_latency_s = stage_s * (t->stages - 1.0);
    return t->err.status;
}

sm_status sm_serve_engine(sm_serve *serve, const sm_plan *plan, const sm_engine_use *use,
                          sm_arena *arena, sm_engine *engine, sm_error *err) {
    sm_serve_room room;
    const double mean_tokens = use->mean_tokens;
    sm_status status = make_steps(serve, plan, use->prefills, arena, engine, err);
    if (!status)
        status =
            sm_serve_room_of(serve, plan, mean_tokens, use->step_tokens * plan->data, &room, err);
    if (status) return status;
    const double sequences = room.sequences / plan->data;
    engine->kv_tokens = sequences >= 1.0 ? sequences * mean_tokens : 0.0;
    /* Layers with windows keep less of a long sequence: the mean of one of that length,
     * and states are shared out over its tokens. */
    double bytes = sm_model_kv_bytes(&serve->model, mean_tokens, serve->job.dtypes.kv) +
                   sm_model_state_bytes(&serve->model, serve->job.dtypes.kv);
    engine->kv_bytes_per_token = fmax(1.0, bytes / mean_tokens);
    if (sequences < 1.0)
        return sm_fail(err, SM_NEGATIVE, "not one sequence of %.0f tokens fits beside the weights",
                       mean_tokens);
    set_links(serve, use, engine);
    return SM_OK;
}

/* ---- engines that the loads of a job share ---- */

void engines_forget(sm_serve *s) {
    sm_arena_free(s->engines_arena);
    s->engines_arena = NULL;
    s->engines = NULL;
}

sm_status engine_steps(sm_serve *s, const sm_plan *plan, bool follows, sm_engine *out,
                       sm_error *err) {
    enum { MOST = 64 };
    char text[sizeof s->engines->text];
    int n = 0;
    size_t length = sm_plan_format(plan, s->system.torus_dims, text, sizeof text);
    assert(length < sizeof text); /* else two plans could be one */
    for (const engine_table *t = s->engines; t; t = t->next, n++)
        if (t->follows == follows && strcmp(t->on, s->system.text) == 0 &&
            strcmp(t->text, text) == 0) {
            *out = t->engine;
            return SM_OK;
        }
    if (n >= MOST && !follows) engines_forget(s);
    if (!s->engines_arena) s->engines_arena = sm_arena_new();
    if (!s->engines_arena) return sm_fail_memory(err);
    sm_status status = make_steps(s, plan, follows, s->engines_arena, out, err);
    if (status) return status;
    engine_table *t = out->context;
    memcpy(t->text, text, sizeof text);
    memcpy(t->on, s->system.text, sizeof t->on);
    t->engine = *out;
    t->next = s->engines;
    s->engines = t;
    return SM_OK;
}
