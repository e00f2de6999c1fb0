/* The search: slices, shardings, batches, placements. Exact: a candidate is passed over only when a
 * bound of it is beaten by a point that is there, or misses a limit. The bound of a sharding with a
 * batch has each collective where it costs least, which no placement goes below, with what the ops
 * take at least and then with what they take. */
#include "load_steps.h"
#include "serve_frontier.h"
#include <assert.h>
#include <stdlib.h>

/* Whether the degrees of a plan can serve a model on a system. */

double fullest(double groups, double sequences) {
    double each = sequences / groups;
    if (floor(sequences) >= sequences) each = ceil(each);
    return each > 1 ? each : 1;
}

#define REFUSE(...) return snprintf(room, size, __VA_ARGS__), room

const char *serve_refuse(const sm_serve *s, const sm_plan *p, char *room, size_t size) {
    int chips = sm_plan_chips(p);
    if (p->data < 1 || p->fsdp < 1 || p->tensor < 1 || p->context < 1 || p->expert < 1 ||
        p->pipeline < 1)
        REFUSE("the degrees of a plan are at least 1");
    if (chips > s->system.chips)
        REFUSE("the plan takes %d chips and %s has %d", chips, s->system.text, s->system.chips);
    const char *why = sm_plan_refuse(p, &s->model, room, size);
    if (!why) why = sm_plan_refuse_dims(p, &s->system, room, size);
    if (why) return why;
    if (s->model.D % p->fsdp) REFUSE("fsdp=%d does not divide the width D=%d", p->fsdp, s->model.D);
    return NULL;
}

/* The systems a replica may run on: sub-slices of a torus as the catalogue has them, powers of two
 * inside a node and whole nodes beyond; the given system itself always. */

static bool is_power_of_two(int n) { return (n & (n - 1)) == 0; }

/* One, two or three times a power of two, or as many nodes; inside a node powers of two. */
static bool is_candidate(const sm_system *whole, int chips) {
    int node = whole->chip.fabric == SM_FABRIC_SWITCH ? whole->chip.tree[0].degree : 1;
    if (chips == whole->chips) return true;
    if (chips % node) return chips < node && is_power_of_two(chips);
    int units = chips / node;
    return is_power_of_two(units) || (units % 3 == 0 && is_power_of_two(units / 3));
}

/* Parts on which a replica may run, from few chips to many; returns how many. */
static int slices_of(const sm_system *whole, int least, int most, sm_system *slices) {
    int n = 0;
    for (int chips = least; chips <= most && chips <= whole->chips; chips++) {
        if (!is_candidate(whole, chips)) continue;
        assert(n < MAX_SLICES); /* two for each power of two, of chips and of nodes */
        if (chips == whole->chips) slices[n++] = *whole;
        else if (sm_system_part(whole, chips, &slices[n])) n++;
    }
    return n;
}

/* The space of plans on so many chips: factorisations into degrees and the choices that matter for
 * each. A plan stands once: what changes nothing keeps its usual value. */

typedef struct walk {
    const sm_serve *s;
    const sm_plan *fixed;
    const sm_plan_space *spaces;
    sm_plan_limits limits[SM_MOST_SPACES]; /* of the degrees, in so many spaces */
    int narrowed;
    plan_visit visit;
    void *context;
} walk;

static bool given(const walk *w, int key) { return w->fixed->given >> key & 1; }

static bool chosen(void *context, sm_plan *plan) {
    const walk *w = context;
    char why[256];
    uint64_t keys = sm_plan_keys_for(plan, &w->s->model);
    bool in_space = !w->spaces;
    for (int i = 0; i < w->narrowed && !in_space; i++)
        in_space = sm_plan_limits_have(&w->limits[i], plan, keys);
    if (!in_space || serve_refuse(w->s, plan, why, sizeof why)) return true;
    return w->visit(w->context, plan);
}

/* Every choice of the degrees that some space has. */
static bool each_choice(walk *w, sm_plan *plan) {
    w->narrowed = 0;
    for (const sm_plan_space *s = w->spaces; s; s = s->next)
        w->narrowed += sm_plan_space_of(s, plan, &w->limits[w->narrowed]);
    return (w->spaces && w->narrowed == 0) ||
           sm_plan_each_choice(plan, w->fixed, &w->s->model, chosen, w);
}

static int most_of(const walk *w, int key) {
    const sm_serve *s = w->s;
    switch (key) {
    case SM_PLAN_EXPERT: return s->experts ? 1 << 20 : 1;
    case SM_PLAN_PIPELINE: return s->model.L;
    default: return 1 << 20;
    }
}

static bool each_degree(walk *w, int key, int left, sm_plan *plan) {
    if (key == SM_PLAN_DEGREES) return left != 1 || each_choice(w, plan);
    int *degree = sm_plan_degree(plan, key), fixed = sm_plan_degree_of(w->fixed, key);
    if (given(w, key)) {
        *degree = fixed;
        return fixed < 1 || left % fixed != 0 || each_degree(w, key + 1, left / fixed, plan);
    }
    for (int d = 1; d <= left && d <= most_of(w, key); d++) {
        *degree = d;
        if (left % d == 0 && !each_degree(w, key + 1, left / d, plan)) return false;
    }
    return true;
}

bool each_sharding(const sm_serve *s, const sm_serve_search_options *o, int chips, plan_visit visit,
                   void *context) {
    walk w = {.s = s, .fixed = &o->fixed, .spaces = o->space, .visit = visit, .context = context};
    sm_plan plan = o->fixed;
    return !sm_plan_spaces_take(o->space, &plan, NULL) && each_degree(&w, 0, chips, &plan);
}

/* Sums of the same terms may differ in the last bits. */
static const double ROUNDING = 1e-12;

/* ---- prefills of a sharding ---- */

typedef struct family {
    const sm_plan *plan;
    double most, least_ttft_s;       /* of any placement; 0: not known yet */
    double prompt_token_s;           /* at least, in any step; 0: not known yet */
    bool listed;                     /* the placements */
    double prompts[2], prefill_s[2]; /* by seq: what a prefill last took at least; none: 0 */
    /* Filled as it is opened. */
    holding memory;
    step x; /* of decoding, and the least that it takes */
    step_least least;
} family;

void search_note(search *h, sm_status status, const sm_error *err) {
    if (status != SM_INTERNAL || h->status != SM_OK) return;
    h->status = status;
    h->err = *err;
}

least_kind least_of(const search *h) { return h->o->by_lower ? LEAST_BOUND : LEAST_EXPECTED; }

static double limit_time(const search *h, const sm_step_price *p) {
    return h->o->by_lower ? p->lower_s : p->expected_s;
}

bool seq_counts(const search *h, const sm_plan *plan, bool seq) {
    if (plan->given >> SM_PLAN_SEQ & 1) return seq == h->o->fixed.seq;
    return !seq || plan->tensor > 1;
}

/* As the plan lies. */
static prefill quickest_prefill(search *h, sm_plan plan) {
    prefill best = {.ttft_s = INFINITY};
    sm_step_batch b = point_prompt(h->s);
    for (int seq = 0; seq < 2; seq++) {
        sm_error err = {0};
        sm_step_price price;
        if (!seq_counts(h, &plan, seq)) continue;
        plan.seq = seq;
        sm_status status = sm_serve_step(h->s, &plan, &b, &price, &err);
        search_note(h, status, &err);
        if (status == SM_OK && limit_time(h, &price) < best.ttft_s)
            best = (prefill){limit_time(h, &price), price.expected_s, seq};
    }
    return best;
}

static prefill prefill_at(search *h, family *f, int order) {
    if (h->first[order].ttft_s > 0) return h->first[order];
    return h->first[order] = quickest_prefill(h, placed_as(h->places, f->plan, order));
}

static double least_ttft(search *h, family *f) {
    sm_step_batch b = point_prompt(h->s);
    if (f->least_ttft_s > 0) return f->least_ttft_s;
    f->least_ttft_s = INFINITY;
    for (int seq = 0; seq < 2; seq++) {
        sm_error err = {0};
        sm_plan plan = *f->plan;
        if (!seq_counts(h, &plan, seq)) continue;
        plan.seq = seq;
        step_floor *floor = &h->floor[2 * seq];
        sm_status status = step_floor_s(floor, h->s, &plan, &b, h->places, least_of(h), &err);
        search_note(h, status, &err);
        f->least_ttft_s = smaller(f->least_ttft_s, status ? 0 : floor->seconds * (1 - ROUNDING));
    }
    return f->least_ttft_s;
}

/* ---- candidates ---- */

static bool meets(double value, double limit) { return !(limit > 0) || value <= limit; }

static double prompt_token_s(search *h, family *f) {
    if (f->prompt_token_s > 0) return f->prompt_token_s;
    f->prompt_token_s = INFINITY;
    for (int i = 0; i < FLOORS; i++) {
        sm_error err = {0};
        sm_plan plan = *f->plan;
        double seconds;
        plan.seq = i >= FLOORS / 2;
        if (!seq_counts(h, &plan, plan.seq)) continue;
        sm_status status =
            step_token_s(&h->floor[i], h->s, &plan, i % 2, h->places, &seconds, &err);
        search_note(h, status, &err);
        f->prompt_token_s = smaller(f->prompt_token_s, status ? 0 : seconds);
    }
    return f->prompt_token_s *= 1 - ROUNDING;
}

/* On average of so many requests that decode, whose prefill alone takes so long. */
static double first_least_s(search *h, family *f, double batch, double alone_s) {
    const sm_serve_job *job = &h->s->job;
    if (h->o->by_lower || job->alone || h->front.of_fleet) return alone_s;
    double token_s = job->in_flight > 0 ? 0 : prompt_token_s(h, f);
    return load_first_least_s(h->s, f->plan, batch, alone_s, token_s);
}

/* No point of the family that takes so long a token meets the limits, and it is no news of what
 * could be reached without them. */
static bool misses_limits(search *h, family *f, double batch, double tpot_s) {
    const sm_serve_search_options *o = h->o;
    if (!(h->quickest.batch > 0) || tpot_s < h->quickest.tpot_s) return false;
    bool late = !meets(tpot_s, o->tpot_s);
    if (!(o->ttft_s > 0)) return late;
    if (late && h->front.n > 0) return true;
    double first_s = first_least_s(h, f, batch, least_ttft(h, f));
    if (!late && meets(first_s, o->ttft_s)) return false;
    return h->front.n > 0 || first_s >= h->best_ttft_s;
}

/* A batch whose token takes at least so long. */
static bool ruled_out(search *h, family *f, double batch, double tpot_s) {
    double least_s = tpot_s * (1 - ROUNDING);
    double most = batch / least_s / h->slice[h->at].chips * (1 + ROUNDING);
    double first_s = h->front.by_first ? least_ttft(h, f) : 0;
    return frontier_beats(&h->front, h->at, first_s, least_s, most) ||
           misses_limits(h, f, batch, least_s);
}

static bool price_load(search *h, const found *p, const decode_time *decode, double first_s,
                       double late_s, point_load *load) {
    sm_error err = {0};
    const point_loaded loaded = {p->batch, p->batch, decode, first_s, late_s, 0};
    sm_status status = point_under_load(h->s, &p->plan, &loaded, load, &err);
    search_note(h, status, &err);
    return status == SM_OK;
}

/* What a token of a batch takes at least under its load, where a step alone takes `alone_s`: with
 * what its prefills add at least on any placement, be the residual stream sharded or not. */
static double token_s(search *h, family *f, double batch, double alone_s) {
    const sm_load load = {.kind = SM_LOAD_CLOSED};
    double least_s = INFINITY;
    if (h->o->by_lower || h->s->job.alone || h->s->job.speculation.depth != 0) return alone_s;
    for (int seq = 0; seq < 2; seq++) {
        if (!seq_counts(h, f->plan, seq)) continue;
        sm_engines one = sm_engines_of(h->s, f->plan, 1);
        one.plan.seq = one.prefill_plan.seq = seq;
        load_steps c = load_steps_of(&one, &load, batch);
        c.any = h->places;
        c.floor = &h->floor[2 * seq];
        c.prompts = f->prompts[seq];
        c.prefill_s = f->prefill_s[seq];
        double n = batch / c.n, added = load_added_s(&c, n, alone_s, 1);
        search_note(h, c.failed ? c.err.status : SM_OK, &c.err);
        f->prompts[seq] = c.failed ? 0 : c.prompts;
        f->prefill_s[seq] = c.prefill_s;
        least_s = smaller(least_s, c.failed ? alone_s : alone_s + added * n / h->s->job.output);
    }
    return least_s * (1 - ROUNDING);
}

/* First by what its steps take alone. */
static bool is_out(search *h, family *f, double batch, double alone_s) {
    return ruled_out(h, f, batch, alone_s) || ruled_out(h, f, batch, token_s(h, f, batch, alone_s));
}

/* A candidate under its load; its first token counts where that has a limit. What misses the other
 * may have the least that is told where nothing keeps to both: there, and nowhere else, who is late
 * with 16 sequences is taken to be late with more. */
static void offer(search *h, family *f, int order, double batch, const decode_time *decode) {
    int chips = h->slice[h->at].chips;
    point_load load = {.tpot_s = limit_time(h, &decode->step) / decode->tokens};
    prefill first = prefill_at(h, f, order);
    found p = {placed_as(h->places, f->plan, order), batch, 0, 0, first.ttft_s, h->at};
    p.plan.seq = first.seq;
    if (!h->o->by_lower && !price_load(h, &p, decode, first.expected_s, 0, &load)) return;
    if (h->o->by_lower || h->front.of_fleet) load.first.mean_s = first.ttft_s;
    p.tpot_s = load.tpot_s;
    p.per_chip = batch / p.tpot_s / chips;
    /* It is looked for until it is later than the limit and than the best there is. */
    if (h->o->ttft_s > 0 && !h->o->by_lower && !h->front.of_fleet) {
        if (!h->o->brute && frontier_beats(&h->front, h->at, 0, p.tpot_s, p.per_chip)) return;
        double limit_s = meets(p.tpot_s, h->o->tpot_s) ? h->o->ttft_s : 0;
        double late_s = h->o->brute ? INFINITY : larger(limit_s, h->best_ttft_s);
        load.first.mean_s = first_least_s(h, f, batch, first.expected_s);
        if (limit_s <= 0) load.first.mean_s = larger(load.first.mean_s, h->like[order].late_s);
        if (load.first.mean_s <= late_s &&
            !price_load(h, &p, decode, first.expected_s, late_s, &load))
            return;
        if (load.first.mean_s > late_s && batch >= 16) h->like[order].late_s = load.first.mean_s;
    }
    h->best_ttft_s = smaller(h->best_ttft_s, load.first.mean_s);
    if (!(h->quickest.batch > 0) || p.tpot_s < h->quickest.tpot_s) h->quickest = p;
    if (!meets(p.tpot_s, h->o->tpot_s) || !meets(load.first.mean_s, h->o->ttft_s)) return;
    frontier_add(&h->front, &p);
}

/* Of a token whatever the depth of drafts, if drafting took no time. */
static double floor_tpot(search *h, family *f, double batch, least_kind kind) {
    int depth = h->s->job.speculation.depth, from = depth < 0 ? 0 : depth;
    int to = depth < 0 ? DEEPEST_DRAFT : depth;
    double least_s = INFINITY;
    for (int k = from; k <= to; k++) {
        sm_step_batch b = point_drafted(h->s, point_group(f->plan, batch), k);
        step_resize(&f->x, &b);
        double step_s = step_least_s(&f->least, &f->x, kind) * (1 - ROUNDING);
        least_s = smaller(least_s, step_s / point_tokens(h->s, k));
    }
    return least_s;
}

/* The collectives of a plan's steps, each once. */
static int list_comms(search *h, const family *f, sm_comm *comm, int room) {
    int n = 0;
    sm_error err = {0};
    const sm_comm send = {.op = SM_PERMUTE, .axes = SM_BIT(SM_PLACED_PIPELINE)};
    for (int which = -1; which < 2; which++) { /* decoding, and prompts by seq */
        sm_plan plan = *f->plan;
        plan.seq = which > 0;
        const variant *v = which < 0 ? f->x.v : variant_of(h->s, &plan, false, &err);
        search_note(h, err.status, &err);
        for (int i = 0; v && i < v->pieces; i++)
            for (int k = 0; k <= v->piece[i].part.comms; k++) {
                const sm_comm *c = k > 0 ? &v->piece[i].part.comm[k - 1] : &send;
                int at = 0;
                while (at < n && (comm[at].op != c->op || comm[at].axes != c->axes ||
                                  comm[at].ragged != c->ragged))
                    at++;
                if (at == room) return 0;
                if (at == n) comm[n++] = *c;
            }
    }
    return n;
}

/* The placements, and of none of them a prefill yet. Those on which every collective has the lines
 * that it has on one before take as long as that one, whatever the step; a draft has others. */
static void list_places(search *h, family *f) {
    enum { COMMS = 64 };
    sm_comm comm[COMMS];
    if (f->listed) return;
    memset(h->first, 0, (size_t)h->places->n * sizeof *h->first);
    f->listed = true;
    bool tells = h->o->brute || h->o->by_lower || h->s->job.speculation.depth != 0;
    int comms = tells || h->places->n == 1 ? 0 : list_comms(h, f, comm, COMMS);
    for (int i = 0; i < h->places->n; i++) {
        const sm_placement *at = &h->places->at[i];
        uint64_t key = SM_HASH_SEED;
        for (int k = 0; k < comms; k++)
            key = sm_hash_mixed(key, curve_hash(h->s, at, h->places->hash[i], &comm[k]));
        h->like[i] = (struct like){.key = key, .first = i};
        for (int k = 0; comms > 0 && h->like[i].first == i && k < i; k++)
            if (h->like[k].key == key) h->like[i].first = k;
    }
}

/* A step of the family, resized to the batch, on one placement; `work` is that of its ops. With
 * drafts it is more than one step: priced whole. */
static bool time_step(search *h, family *f, int order, double batch, const piece_price *work,
                      decode_time *t) {
    sm_error err = {0};
    *t = (decode_time){.tokens = 1};
    if (h->s->job.speculation.depth == 0) {
        f->x.at = h->places->at[order];
        f->x.at_hash = h->places->hash[order];
        step_price_from(&f->x, work, &t->step);
        return true;
    }
    sm_plan plan = placed_as(h->places, f->plan, order);
    sm_status status = point_decode(h->s, &plan, point_group(&plan, batch), t, &err);
    search_note(h, status, &err);
    return status == SM_OK;
}

/* The step of a batch, and the work of its ops on any placement. */
static void resize(search *h, family *f, double batch, piece_price *work) {
    sm_step_batch b = point_batch(point_group(f->plan, batch), 1, point_context(h->s));
    step_resize(&f->x, &b);
    if (h->s->job.speculation.depth == 0) work_of(h->s->memo, &f->x, work);
}

static void price_batch(search *h, family *f, double batch) {
    piece_price work[MAX_PIECES];
    decode_time t = {.tokens = 1};
    h->space += h->places->n;
    if (!h->o->brute && is_out(h, f, batch, floor_tpot(h, f, batch, least_of(h)))) {
        h->pruned += h->places->n;
        return;
    }
    resize(h, f, batch, work);
    list_places(h, f);
    for (int i = 0; i < h->places->n; i++) {
        struct like *like = &h->like[i], *first = &h->like[like->first];
        if (like == first) like->timed = time_step(h, f, i, batch, work, &t);
        if (like == first && like->timed) like->alone_s = limit_time(h, &t.step) / t.tokens;
        bool out = first->timed && !h->o->brute && is_out(h, f, batch, first->alone_s);
        *(out ? &h->pruned : &h->evaluated) += 1;
        if (like == first && like->timed && !out) offer(h, f, i, batch, &t);
    }
}

/* ---- batches of a sharding ---- */

static bool fits(const search *h, const family *f, double batch) {
    sm_serve_memory m;
    holding_memory(h->s, &f->memory, batch, point_step_tokens(h->s, &f->memory.d, batch), &m);
    return m.total <= m.capacity;
}

static void note_memory(search *h, const family *f) {
    sm_serve_memory m;
    double batch = larger(1, h->o->batch);
    holding_memory(h->s, &f->memory, batch, point_step_tokens(h->s, &f->memory.d, batch), &m);
    if (m.total < h->least_bytes) h->least_bytes = m.total, h->its_capacity = m.capacity;
    if (m.total > m.capacity || h->any_fits) return;
    h->any_fits = true;
    h->least_chips = h->slice[h->at].chips;
}

/* The limit's own batch of a plan lies between two powers of two. By what its steps read at least
 * no batch gives more tokens than the largest that keeps to the limit; a nearer least would be one
 * of that batch alone, where others between two powers may be of the frontier. */
static void note_late(search *h, family *f) {
    double limit = h->o->tpot_s, low = 1, high = f->most;
    least_kind kind = h->o->by_lower ? LEAST_BOUND : LEAST_READ;
    if (!(limit > 0) || !(high > 1) || floor_tpot(h, f, 1, kind) > limit) return;
    if (floor_tpot(h, f, high, kind) <= limit) low = high;
    while (high - low > 1) {
        double middle = floor(0.5 * (low + high));
        *(floor_tpot(h, f, middle, kind) <= limit ? &low : &high) = middle;
    }
    double most = low / limit / h->slice[h->at].chips * (1 + ROUNDING);
    double first_s = h->front.by_first ? least_ttft(h, f) : 0;
    const found late = {*f->plan, exp2(floor(log2(low))), limit, most, first_s, h->at};
    if (h->o->brute || !frontier_beats(&h->front, h->at, first_s, limit, most))
        frontier_append(&h->late, &late);
}

static void each_batch(search *h, family *f) {
    enum { MOST_DOUBLINGS = 20 };
    if (h->o->batch > 0) {
        if (fits(h, f, h->o->batch)) price_batch(h, f, h->o->batch);
        return;
    }
    /* The most that fits with steps of that many tokens too. */
    double most = holding_most(h->s, &f->memory, point_step_tokens(h->s, &f->memory.d, 1));
    if (most > 1)
        most = holding_most(h->s, &f->memory, point_step_tokens(h->s, &f->memory.d, most));
    f->most = most;
    double batch = 1;
    for (int i = 0; i <= MOST_DOUBLINGS && fits(h, f, batch); i++, batch *= 2)
        price_batch(h, f, batch);
    bool power = f->most >= 1 && exp2(floor(log2(f->most))) >= f->most;
    if (f->most >= 1 && f->most < 1 << MOST_DOUBLINGS && !power && fits(h, f, f->most))
        price_batch(h, f, f->most);
    note_late(h, f);
}

/* The family of a plan; false: it cannot be placed, or does not fit. */
static bool open_family(search *h, family *f, const sm_plan *plan) {
    sm_error err = {0};
    memset(f, 0, offsetof(family, memory));
    f->plan = plan;
    sm_step_batch one = point_batch(1, 1, point_context(h->s));
    sm_status status = holding_of(h->s, f->plan, sm_serve_longest(&h->s->job), &f->memory, &err);
    search_note(h, status, &err);
    if (status != SM_OK) return false;
    note_memory(h, f);
    if (!fits(h, f, larger(1, h->o->batch))) return false;
    status = placements_of(h->s, f->plan, h->at, h->places, &err);
    if (status == SM_OK) status = step_unplaced(h->s, f->plan, &one, &f->x, &err);
    search_note(h, status, &err);
    if (status != SM_OK || h->places->n == 0) return false;
    step_least_of(&f->x, h->places, &f->least);
    for (int i = 0; i < FLOORS; i++) h->floor[i].made = false;
    return true;
}

static bool visit(void *context, const sm_plan *plan) {
    search *h = context;
    family f;
    if (open_family(h, &f, plan)) each_batch(h, &f);
    if (h->front.failed || h->late.failed) h->status = sm_fail_memory(&h->err);
    return h->status == SM_OK;
}

/* ---- the whole ---- */

void search_slice(search *h, int slice) {
    if (h->on != slice) serve_set_system(h->s, &h->slice[slice]);
    h->on = slice;
}

sm_status search_start(const sm_serve_job *job, const sm_calibration *calibration,
                       const sm_serve_search_options *o, search *h, sm_error *err) {
    int least = o->chips_least > 0 ? o->chips_least : 1;
    int most = o->chips_most > 0 ? o->chips_most : job->system->chips;
    sm_arena *arena = sm_arena_new();
    sm_system *slices = sm_arena_array(arena, MAX_SLICES, sizeof *slices);
    memset(h, 0, sizeof *h);
    h->arena = arena;
    h->o = o;
    h->front.most_alone = o->most_alone;
    h->front.above = OF_OTHER_BATCH * o->above;
    h->on = -1;
    h->best_ttft_s = h->least_bytes = INFINITY;
    h->places = sm_arena_alloc(arena, sizeof *h->places);
    h->first = sm_arena_array(arena, MAX_ORDERS, sizeof *h->first);
    h->like = sm_arena_array(arena, MAX_ORDERS, sizeof *h->like);
    h->floor = sm_arena_array(arena, FLOORS, sizeof *h->floor);
    if (!slices || !h->places || !h->first || !h->like || !h->floor) return sm_fail_memory(err);
    h->slice = slices;
    h->slices = slices_of(job->system, least, most, slices);
    char why[256];
    sm_plan any = o->fixed;
    if (sm_plan_refuse_dims(&o->fixed, job->system, why, sizeof why))
        return sm_fail(err, SM_BAD_INPUT, "%s", why);
    sm_status status = sm_plan_spaces_take(o->space, &any, err);
    if (status) return status;
    if (h->slices == 0)
        return sm_fail(err, SM_NEGATIVE, "%s has no slice of %d to %d chips", job->system->text,
                       least, most);
    status = sm_serve_new(job, &h->s, err);
    if (status != SM_OK) return status;
    if (calibration) sm_serve_set_calibration(h->s, calibration);
    h->s->memo = work_memo_new(arena, head_piece(h->s) + 1);
    return h->s->memo ? SM_OK : sm_fail_memory(err);
}

/* ---- between powers of two ---- */

/* A plan of the frontier with another batch: whether it fits and meets the limits; then it is
 * added to the frontier, or only might be. Of what the frontier beats the first token does not
 * matter. */
static bool offer_batch(search *h, const found *from, double batch, bool add) {
    sm_serve_point p = {.batch = batch};
    sm_error err = {0};
    found f = *from;
    int which = h->o->by_lower ? 0 : 1;
    f.batch = batch;
    search_slice(h, f.slice);
    bool any_first = !(h->o->ttft_s > 0) || h->front.of_fleet;
    for (int simulated = 0; simulated <= !any_first; simulated++) {
        sm_status status = point_of(h->s, &f.plan, batch, simulated ? h->o->ttft_s : 0, &p, &err);
        search_note(h, status, &err);
        if (status != SM_OK || !p.fits || !meets(p.tpot_s[which], h->o->tpot_s)) return false;
        f.tpot_s = p.tpot_s[which];
        f.per_chip = batch / f.tpot_s / p.chips;
        if (frontier_beats(&h->front, f.slice, f.first_s, f.tpot_s, f.per_chip)) return true;
    }
    if (!any_first && !meets(p.ttft_s[which], h->o->ttft_s)) return false;
    if (add) frontier_add(&h->front, &f);
    return true;
}

/* Every plan that is there, at quarters of the way to twice its batch, and at the most that meets
 * the limits on that way. */
static void refine(search *h, const found *point, size_t n) {
    enum { PARTS = 4 };
    for (size_t i = 0; i < n && h->status == SM_OK; i++) {
        const found *f = &point[i];
        double low = f->batch, high = 2 * f->batch;
        for (int k = 1; k <= PARTS; k++) {
            double batch = floor(f->batch * (1 + (double)k / PARTS));
            if (batch <= low) continue;
            if (!offer_batch(h, f, batch, true)) {
                high = batch;
                break;
            }
            low = batch;
        }
        while (high - low > 1 && high < 2 * f->batch + 1 && h->status == SM_OK) {
            double middle = floor(0.5 * (low + high));
            *(offer_batch(h, f, middle, false) ? &low : &high) = middle;
        }
        if (low > f->batch) offer_batch(h, f, low, true);
    }
}

/* The placement of a plan that is quickest under its load with so many; false: none can be priced.
 */
static bool quickest_place(search *h, family *f, double batch, found *out) {
    piece_price work[MAX_PIECES];
    decode_time t;
    *out = (found){.batch = 0};
    resize(h, f, batch, work);
    list_places(h, f);
    for (int i = 0; i < h->places->n; i++) {
        if (h->like[i].first < i || !time_step(h, f, i, batch, work, &t)) continue;
        point_load load = {.tpot_s = limit_time(h, &t.step) / t.tokens};
        bool first_one = !(out->batch > 0) || h->o->brute;
        if (!first_one && token_s(h, f, batch, load.tpot_s) >= out->tpot_s) continue;
        prefill first = prefill_at(h, f, i);
        found p = {placed_as(h->places, f->plan, i), batch, 0, 0, first.ttft_s, h->at};
        p.plan.seq = first.seq;
        if (!h->o->by_lower && !price_load(h, &p, &t, first.expected_s, 0, &load)) continue;
        p.tpot_s = load.tpot_s;
        if (!(out->batch > 0) || p.tpot_s < out->tpot_s) *out = p;
    }
    return out->batch > 0;
}

SM_ORDER(by_tokens, found, SM_DESCENDING(per_chip))

/* Plans that are not there, or not at their best, and may have a batch below the limit that gives
 * more than what is there. */
static void refine_late(search *h) {
    if (h->late.n > 0) qsort(h->late.point, h->late.n, sizeof *h->late.point, by_tokens);
    for (size_t i = 0; i < h->late.n && h->status == SM_OK; i++) {
        const found *late = &h->late.point[i];
        family f;
        found from;
        if (frontier_beats(&h->front, late->slice, late->first_s, late->tpot_s, late->per_chip))
            continue;
        search_slice(h, h->at = late->slice);
        if (!open_family(h, &f, &late->plan)) continue;
        for (double batch = late->batch; batch >= 1; batch = floor(0.5 * batch)) {
            double least_s = token_s(h, &f, batch, floor_tpot(h, &f, batch, least_of(h)));
            if (!h->o->brute && batch > 1 && least_s > h->o->tpot_s) continue;
            if (!quickest_place(h, &f, batch, &from)) break;
            if (from.tpot_s > h->o->tpot_s && batch > 1) continue;
            if (offer_batch(h, &from, batch, true)) refine(h, &from, 1);
            break;
        }
    }
}

static sm_status refine_frontier(search *h, sm_error *err) {
    found *point = sm_arena_array(h->arena, h->front.n + 1, sizeof *point);
    if (!point) return sm_fail_memory(err);
    if (h->front.n > 0) memcpy(point, h->front.point, h->front.n * sizeof *point);
    refine(h, point, h->front.n);
    refine_late(h);
    if (h->status != SM_OK && err) *err = h->err;
    return h->status != SM_OK ? h->status : frontier_sort(&h->front, err);
}

sm_status search_run(const sm_serve_job *job, const sm_calibration *calibration,
                     const sm_serve_search_options *options, bool of_fleet, search *h,
                     sm_error *err) {
    sm_status status = search_start(job, calibration, options, h, err);
    h->front.of_fleet = of_fleet;
    h->front.by_first = of_fleet && options->ttft_s > 0;
    for (h->at = 0; status == SM_OK && h->at < h->slices; h->at++) {
        search_slice(h, h->at);
        each_sharding(h->s, options, h->slice[h->at].chips, visit, h);
        status = h->status;
        if (status != SM_OK && err) *err = h->err;
    }
    if (status == SM_OK) status = frontier_sort(&h->front, err);
    if (status == SM_OK && !(options->batch > 0)) status = refine_frontier(h, err);
    return status;
}

sm_status search_point(search *h, const found *f, sm_serve_point *point, sm_error *err) {
    search_slice(h, f->slice);
    bool closed = h->front.of_fleet || h->o->closed_first;
    return point_of(h->s, &f->plan, f->batch, closed ? 0 : INFINITY, point, err);
}

void search_free(search *h) {
    sm_serve_free(h->s);
    sm_free(h->front.point);
    sm_free(h->late.point);
    sm_arena_free(h->arena);
}
