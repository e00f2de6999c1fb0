/* train_plan_text: plans as a question words them and as an answer does. */
#include "train_asked.h"

enum { ALL_DEGREES = (1 << SM_PLAN_DEGREES) - 1 };

/* ---- reading ---- */

/* One key on its own. The grammar of plans reads the value, so that both ways of saying it accept
 * the same words. */
static sm_status read_key(const sm_train_asked *q, const sm_source *text, sm_plan_key key,
                          sm_plan *into, sm_error *err) {
    const char *name = sm_plan_key_row_of(key)->name;
    sm_span all = {0, text->length};
    char item[128];
    if (!text->text) return SM_OK;
    if (sm_plan_given(into, key))
        return sm_fail(err, SM_USAGE, "%s and %s= in %s say the same; give one of them", text->name,
                       name, q->in.plan.name);
    if (text->length == 0 || text->length > 64 || strpbrk(text->text, ",="))
        return sm_fail_at(err, text, all, "expected one value of %s, as in %s %s", name, text->name,
                          key == SM_PLAN_DTYPE ? "fp8" : "adam");
    snprintf(item, sizeof item, "%s=%s", name, text->text);
    sm_source source = sm_source_of(text->name, item);
    sm_plan plan;
    sm_error inner = {.status = SM_OK};
    if (sm_plan_parse(&source, &plan, &inner) != SM_OK)
        return sm_fail_at(err, text, all, "%s", inner.sentence);
    into->given |= 1ull << key;
    if (key == SM_PLAN_DTYPE) into->dtype = plan.dtype;
    else into->optimizer = plan.optimizer;
    return SM_OK;
}

/* "tensor=8,pipeline=16": degrees alone have a limit. */
static sm_status read_limits(const sm_source *text, sm_search_options *search, sm_error *err) {
    const char *names[SM_PLAN_DEGREES];
    for (int i = 0; i < SM_PLAN_DEGREES; i++) names[i] = sm_plan_key_row_of((sm_plan_key)i)->name;
    for (size_t at = 0; at < text->length;) {
        size_t item = strcspn(text->text + at, ",");
        size_t lead = strspn(text->text + at, " ");
        sm_span name = {at + lead, strcspn(text->text + at + lead, "=, ")};
        if (sm_words_find((sm_words){names, SM_PLAN_DEGREES}, text, name) < 0)
            return sm_fail_at(err, text, (sm_span){name.offset, name.length ? name.length : 1},
                              "only a degree has a limit: data, fsdp, tensor, context, expert or "
                              "pipeline, as in tensor=8,pipeline=16");
        at += item + 1;
    }
    sm_plan limit;
    sm_status status = sm_plan_parse(text, &limit, err);
    for (int i = 0; i < SM_PLAN_DEGREES && !status; i++)
        if (sm_plan_given(&limit, (sm_plan_key)i))
            search->max_degree[i] = sm_plan_degree_of(&limit, i);
    return status;
}

static double chips_given(const sm_plan *plan) {
    double product = 1.0;
    for (int i = 0; i < SM_PLAN_DEGREES; i++)
        if (sm_plan_given(plan, (sm_plan_key)i)) product *= sm_plan_degree_of(plan, i);
    return product;
}

bool sm_train_is_whole(const sm_plan *plan, int chips) {
    bool all = (plan->given & ALL_DEGREES) == ALL_DEGREES;
    return sm_plan_given(plan, SM_PLAN_MICROBATCH) && (all || chips_given(plan) == chips);
}

sm_status sm_train_plan_read(sm_train_asked *q, sm_error *err) {
    sm_plan *fixed = &q->search.fixed;
    if (!q->in.plan.text) q->in.plan = sm_source_of(q->in.plan.name, "");
    sm_status status =
        sm_plan_parse_limits(&q->in.plan, SM_PLAN_TRAINING, fixed, &q->space.limits, err);
    if (sm_plan_limits_some(&q->space.limits)) q->search.space = &q->space;
    if (!status && q->in.framework) status = sm_train_keep_to(q, err);
    if (!status) status = read_key(q, &q->in.dtype, SM_PLAN_DTYPE, fixed, err);
    if (!status) status = read_key(q, &q->in.optimizer, SM_PLAN_OPTIMIZER, fixed, err);
    if (!status && !q->in.framework) status = sm_train_keep_to(q, err);
    if (!status && q->in.as_run) {
        sm_error odd = {.status = SM_OK};
        status = sm_train_plan_as_run(q->in.model, fixed, &odd);
        if (status) *err = odd;
        if (status) status = sm_question_blame(&q->in.plan, status, err);
        fixed->given |= 1ull << SM_PLAN_DTYPE;
    }
    if (!status && q->in.most.text) status = read_limits(&q->in.most, &q->search, err);
    q->priced_only = !status && sm_train_is_whole(fixed, q->in.system->chips);
    if (q->priced_only && fixed->zero == 3 && !sm_plan_shards_weights(fixed))
        fixed->zero = 2; /* as it is priced */
    return status;
}

/* The degrees alone, with what is not given chosen so that it can hardly be in the way. */
static bool refused(const sm_train_asked *q, sm_train *train, bool expert_tensor, sm_error *why) {
    const sm_source *text = &q->in.plan;
    sm_price_of_plan price;
    sm_plan probe = q->search.fixed;
    if (!sm_plan_given(&probe, SM_PLAN_SEQ)) probe.seq = false;
    if (!sm_plan_given(&probe, SM_PLAN_EXPERT_TENSOR)) probe.expert_tensor = expert_tensor;
    if (probe.layout[0] && !sm_plan_given(&probe, SM_PLAN_PIPELINE)) {
        if (!sm_plan_given(&probe, SM_PLAN_VIRTUAL)) probe.virtual_stages = 1;
        probe.pipeline = sm_plan_layout_chunks(probe.layout) / probe.virtual_stages;
    }
    if (sm_train_price(train, &probe, &price, why) != SM_BAD_INPUT) return false;
    return sm_question_blamed(text, why->sentence).length > 0;
}

const char *sm_train_plan_impossible(const sm_train_asked *q, sm_train *train) {
    sm_error why = {.status = SM_OK};
    sm_arena *arena = q->report->arena;
    double chips = q->in.system->chips, given = chips_given(&q->search.fixed);
    if (q->in.plan.length == 0) return NULL;
    if (refused(q, train, true, &why) && refused(q, train, false, &why))
        return sm_arena_printf(arena, "no plan: %s", why.sentence);
    if (q->in.n_chips > 0) return NULL;
    if (fmod(chips, given) != 0.0)
        return sm_arena_printf(
            arena, "no plan: the degrees given take %.0f chips, %s the %.0f of %s", given,
            given > chips ? "more than" : "which do not divide", chips, q->in.system->text);
    int chunks = sm_plan_layout_chunks(q->search.fixed.layout), stages = chunks;
    if (chunks < 2 || sm_plan_given(&q->search.fixed, SM_PLAN_PIPELINE)) return NULL;
    while (stages > 1 && (chunks % stages || fmod(chips, given * stages) != 0.0)) stages--;
    if (stages > 1) return NULL;
    return sm_arena_printf(
        arena, "no plan: layout is of %d chunks, which no number of stages on %.0f chips has",
        chunks, chips);
}

/* ---- a plan in words ---- */

/* The order of axes of one chip changes nothing: where the others stand in the default order, the
 * plan need not say it. */
static bool order_is_default(const sm_plan *plan, const sm_plan *plain) {
    uint8_t mine[SM_PLAN_DEGREES], usual[SM_PLAN_DEGREES];
    size_t n = 0, m = 0;
    for (int i = 0; i < SM_PLAN_DEGREES; i++) {
        if (sm_plan_degree_of(plan, plan->order[i]) > 1) mine[n++] = plan->order[i];
        if (sm_plan_degree_of(plan, plain->order[i]) > 1) usual[m++] = plain->order[i];
    }
    return n == m && memcmp(mine, usual, n) == 0;
}

const sm_system *sm_train_runs_on(sm_report *r, const sm_system *system, const sm_plan *plan) {
    const int used = sm_plan_chips(plan);
    if (!sm_system_in_part(system, used)) return system;
    sm_system *part = sm_arena_alloc(r->arena, sizeof *part);
    return !part || sm_system_part(system, used, part) ? part : system;
}

const char *sm_train_plan_words(sm_report *r, const sm_system *system, const sm_plan *plan) {
    char text[768];
    sm_plan shown = *plan, plain;
    sm_plan_defaults(&plain);
    if (order_is_default(plan, &plain)) memcpy(shown.order, plain.order, sizeof shown.order);
    sm_plan_format(&shown, system->torus_dims, text, sizeof text);
    const char *words = sm_textf(r, "%s", text);
    if (sm_plan_chips(plan) >= system->chips) return words;
    /* A plan that leaves chips idle names all its degrees, so that it reads back as whole. */
    for (int i = 0; i < SM_PLAN_DEGREES; i++)
        if (sm_plan_degree_of(plan, i) == 1)
            words = sm_textf(r, "%s,%s=1", words, sm_plan_key_row_of((sm_plan_key)i)->name);
    return words;
}
