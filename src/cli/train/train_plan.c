/* train_plan: the options of `train` that speak of plans: --plan, --dtype, --optimizer, --max. */
#include "scalemodel/page.h"
#include "train.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const degree_names[SM_PLAN_DEGREES] = {"data",    "fsdp",   "tensor",
                                                          "context", "expert", "pipeline"};
enum { ALL_DEGREES = (1 << SM_PLAN_DEGREES) - 1 };

static bool is_given(const sm_plan *plan, sm_plan_key key) { return plan->given >> key & 1u; }

static const int *degrees_of(const sm_plan *plan, int key) {
    const int *const degree[SM_PLAN_DEGREES] = {
        [SM_PLAN_DATA] = &plan->data,     [SM_PLAN_FSDP] = &plan->fsdp,
        [SM_PLAN_TENSOR] = &plan->tensor, [SM_PLAN_CONTEXT] = &plan->context,
        [SM_PLAN_EXPERT] = &plan->expert, [SM_PLAN_PIPELINE] = &plan->pipeline};
    return degree[key];
}

/* ---- an option that is a key of a plan ---- */

/* The grammar of plans reads the value, so that both ways of saying it accept the same words. */
static sm_status read_key(const char *option, const char *text, sm_plan_key key, const char *name,
                          sm_plan *into, sm_error *err) {
    if (!text) return SM_OK;
    if (is_given(into, key))
        return sm_fail(err, SM_USAGE, "--%s and %s= in --plan say the same; give one of them", name,
                       name);
    sm_source shown = sm_source_of(option, text);
    sm_span all = {0, shown.length};
    char item[128];
    if (shown.length == 0 || shown.length > 64 || strpbrk(text, ",="))
        return sm_fail_at(err, &shown, all, "expected one value of %s, as in %s %s", name, option,
                          key == SM_PLAN_DTYPE ? "fp8" : "adam");
    snprintf(item, sizeof item, "%s=%s", name, text);
    sm_source source = sm_source_of(option, item);
    sm_plan plan;
    sm_error inner = {.status = SM_OK};
    if (sm_plan_parse(&source, &plan, &inner) != SM_OK)
        return sm_fail_at(err, &shown, all, "%s", inner.sentence);
    into->given |= 1u << key;
    if (key == SM_PLAN_DTYPE) into->dtype = plan.dtype;
    else into->optimizer = plan.optimizer;
    return SM_OK;
}

/* ---- --max ---- */

static bool is_degree(const char *text, size_t length) {
    for (int i = 0; i < SM_PLAN_DEGREES; i++)
        if (strlen(degree_names[i]) == length && memcmp(degree_names[i], text, length) == 0)
            return true;
    return false;
}

static sm_status check_degrees(const sm_source *source, sm_error *err) {
    for (size_t at = 0; at < source->length;) {
        size_t item = strcspn(source->text + at, ",");
        size_t lead = strspn(source->text + at, " ");
        size_t name = strcspn(source->text + at + lead, "=, ");
        if (!is_degree(source->text + at + lead, name))
            return sm_fail_at(err, source, (sm_span){at + lead, name ? name : 1},
                              "only a degree has a limit: data, fsdp, tensor, context, expert or "
                              "pipeline, as in tensor=8,pipeline=16");
        at += item + 1;
    }
    return SM_OK;
}

static sm_status read_limits(const char *text, sm_search_options *search, sm_error *err) {
    if (!text) return SM_OK;
    sm_source source = sm_source_of("--max", text);
    sm_plan limit;
    sm_status status = check_degrees(&source, err);
    if (!status) status = sm_plan_parse(&source, &limit, err);
    if (status) return status;
    for (int i = 0; i < SM_PLAN_DEGREES; i++)
        if (limit.given >> i & 1u) search->max_degree[i] = *degrees_of(&limit, i);
    return SM_OK;
}

/* ---- the whole ---- */

static double chips_given(const sm_plan *plan) {
    double product = 1.0;
    for (int i = 0; i < SM_PLAN_DEGREES; i++)
        if (plan->given >> i & 1u) product *= *degrees_of(plan, i);
    return product;
}

/* A plan is whole when no chip and no batch is left to divide: all degrees are given, or those
 * given use every chip, and the microbatch is given. What else it leaves out takes its default. */
static bool is_whole(const sm_plan *plan, int chips) {
    bool all = (plan->given & ALL_DEGREES) == ALL_DEGREES;
    return is_given(plan, SM_PLAN_MICROBATCH) && (all || chips_given(plan) == chips);
}

sm_status cli_plan_read(const cli_train_values *texts, cli_training *q, sm_error *err) {
    sm_plan *fixed = &q->search.fixed;
    q->plan = sm_source_of("--plan", texts->plan ? texts->plan : "");
    sm_status status = sm_plan_parse(&q->plan, fixed, err);
    if (!status) status = read_key("--dtype", texts->dtype, SM_PLAN_DTYPE, "dtype", fixed, err);
    if (!status)
        status =
            read_key("--optimizer", texts->optimizer, SM_PLAN_OPTIMIZER, "optimizer", fixed, err);
    if (!status) status = read_limits(texts->most, &q->search, err);
    q->priced_only = !status && is_whole(fixed, q->system.chips);
    return status;
}

/* Does the sentence speak of this item: name it as it stands (tensor=12), or begin with its key? */
static bool speaks_of(const char *sentence, const char *item) {
    const char *found = strstr(sentence, item);
    char next = found ? found[strlen(item)] : '0';
    size_t key = strcspn(item, "=");
    if (item[key] != '=') return false;
    if (found && (next < '0' || next > '9')) return true;
    return strncmp(sentence, item, key) == 0 && sentence[key] == ' ';
}

/* The item of the plan that the sentence speaks of; otherwise all of it. */
static sm_span blamed(const sm_source *plan, const char *sentence) {
    for (size_t at = 0; at < plan->length;) {
        char item[64];
        size_t length = strcspn(plan->text + at, ",");
        snprintf(item, sizeof item, "%.*s", length < 60 ? (int)length : 60, plan->text + at);
        if (speaks_of(sentence, item)) return (sm_span){at, length};
        at += length + 1;
    }
    return (sm_span){0, plan->length};
}

/* The degrees alone, with what is not given chosen so that it can hardly be in the way. */
static bool refused(const cli_training *q, sm_train *train, bool expert_tensor, sm_error *why) {
    sm_price_of_plan price;
    sm_plan probe = q->search.fixed;
    if (!is_given(&probe, SM_PLAN_SEQ)) probe.seq = false;
    if (!is_given(&probe, SM_PLAN_EXPERT_TENSOR)) probe.expert_tensor = expert_tensor;
    if (sm_train_price(train, &probe, &price, why) != SM_BAD_INPUT) return false;
    return blamed(&q->plan, why->sentence).length < q->plan.length ||
           strstr(why->sentence, q->plan.text);
}

const char *cli_plan_impossible(const cli_training *q, sm_train *train) {
    sm_error why = {.status = SM_OK};
    double chips = q->system.chips, given = chips_given(&q->search.fixed);
    if (q->plan.length == 0) return NULL;
    if (refused(q, train, true, &why) && refused(q, train, false, &why))
        return sm_arena_printf(q->call->arena, "no plan: %s", why.sentence);
    if (q->points > 0 || fmod(chips, given) == 0.0) return NULL;
    return sm_arena_printf(
        q->call->arena, "no plan: the degrees given take %.0f chips, %s the %.0f of %s", given,
        given > chips ? "more than" : "which do not divide", chips, q->system.text);
}

sm_status cli_plan_blame(const cli_training *q, sm_status status, sm_error *err) {
    if (status != SM_BAD_INPUT || err->line || q->plan.length == 0) return status;
    char sentence[sizeof err->sentence];
    memcpy(sentence, err->sentence, sizeof sentence);
    return sm_fail_at(err, &q->plan, blamed(&q->plan, sentence), "%s", sentence);
}

/* ---- a plan in words ---- */

/* The order of axes of one chip changes nothing: where the others stand in the default order, the
 * plan need not say it. */
static bool order_is_default(const sm_plan *plan, const sm_plan *plain) {
    uint8_t mine[SM_PLAN_DEGREES], usual[SM_PLAN_DEGREES];
    size_t n = 0, m = 0;
    for (int i = 0; i < SM_PLAN_DEGREES; i++) {
        if (*degrees_of(plan, plan->order[i]) > 1) mine[n++] = plan->order[i];
        if (*degrees_of(plan, plain->order[i]) > 1) usual[m++] = plain->order[i];
    }
    return n == m && memcmp(mine, usual, n) == 0;
}

/* A plan that leaves chips idle names all its degrees, so that it reads back as whole. */
static const char *with_all_degrees(sm_report *r, const sm_plan *plan, const char *text) {
    for (int i = 0; i < SM_PLAN_DEGREES; i++)
        if (*degrees_of(plan, i) == 1) text = sm_textf(r, "%s,%s=1", text, degree_names[i]);
    return text;
}

const char *cli_plan_words(sm_report *r, const sm_system *system, const sm_plan *plan) {
    char text[768];
    sm_plan shown = *plan, plain;
    sm_plan_defaults(&plain);
    if (order_is_default(plan, &plain)) memcpy(shown.order, plain.order, sizeof shown.order);
    sm_plan_format(&shown, system->torus_dims, text, sizeof text);
    double used = 1.0;
    for (int i = 0; i < SM_PLAN_DEGREES; i++) used *= *degrees_of(plan, i);
    const char *kept = sm_textf(r, "%s", text);
    return used < system->chips ? with_all_degrees(r, plan, kept) : kept;
}
