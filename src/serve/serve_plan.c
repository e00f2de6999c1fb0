/* Plans of serving as text: "tensor=8,expert=4,cache_by=batch". */
#include <stdio.h>
#include <string.h>

#include "scalemodel/serve.h"

enum { MOST_DEGREE = 1 << 20 };

static const char *const keys[SM_SERVE_KEY_COUNT] = {
#define X(id, name, help) name,
    SM_SERVE_KEYS(X)
#undef X
};
static const char *const weights_by[] = {"stationary", "gathered"};
static const char *const cache_by[] = {"copies", "batch", "sequence"};
static const char *const switches[] = {"off", "on"};
static const char *const dims[] = {"0", "1", "2"};
static const uint8_t default_order[SM_SERVE_DEGREES] = {SM_SERVE_TENSOR, SM_SERVE_CONTEXT,
                                                        SM_SERVE_FSDP,   SM_SERVE_EXPERT,
                                                        SM_SERVE_DATA,   SM_SERVE_PIPELINE};
static const uint8_t default_dims[3] = {0, 1, 2};

void sm_serve_plan_defaults(sm_serve_plan *plan) {
    memset(plan, 0, sizeof *plan);
    plan->data = plan->fsdp = plan->tensor = plan->context = plan->expert = plan->pipeline = 1;
    plan->cache_by = SM_CACHE_BATCH;
    memcpy(plan->order, default_order, sizeof plan->order);
    memcpy(plan->dims, default_dims, sizeof plan->dims);
}

int sm_serve_plan_chips(const sm_serve_plan *plan) {
    double chips = (double)plan->data * plan->fsdp * plan->tensor * plan->context * plan->expert *
                   plan->pipeline;
    return chips <= MOST_DEGREE ? (int)chips : INT32_MAX;
}

/* ---- reading ---- */

typedef struct reader {
    const sm_source *source;
    sm_serve_plan *plan;
    sm_error *err;
} reader;

static int *degree_of(sm_serve_plan *plan, int key) {
    int *const degree[SM_SERVE_DEGREES] = {&plan->data,    &plan->fsdp,   &plan->tensor,
                                           &plan->context, &plan->expert, &plan->pipeline};
    return degree[key];
}

static sm_status read_degree(const reader *r, int key, sm_span value) {
    int64_t n = 0;
    sm_status status = sm_integer_parse(r->source, value, 1, MOST_DEGREE, &n, r->err);
    if (status == SM_OK) *degree_of(r->plan, key) = (int)n;
    return status;
}

static sm_words words_of(int key) {
    switch (key) {
    case SM_SERVE_WEIGHTS_BY: return (sm_words){weights_by, 2};
    case SM_SERVE_CACHE_BY: return (sm_words){cache_by, 3};
    default: return (sm_words){switches, 2};
    }
}

static sm_status read_word(const reader *r, int key, sm_span value) {
    char what[48];
    int found = sm_words_find(words_of(key), r->source, value);
    snprintf(what, sizeof what, "%s cannot be", keys[key]);
    if (found < 0) return sm_words_fail(words_of(key), r->source, value, what, r->err);
    if (key == SM_SERVE_WEIGHTS_BY) r->plan->gathered = found == 1;
    else if (key == SM_SERVE_CACHE_BY) r->plan->cache_by = (sm_cache_by)found;
    else if (key == SM_SERVE_EXPERT_TENSOR) r->plan->expert_tensor = found == 1;
    else r->plan->seq = found == 1;
    return SM_OK;
}

static sm_status read_value(const reader *r, int key, sm_span value) {
    sm_words axes = {keys, SM_SERVE_DEGREES}, numbers = {dims, 3};
    if (key < SM_SERVE_DEGREES) return read_degree(r, key, value);
    if (key == SM_SERVE_ORDER)
        return sm_words_order(axes, r->source, value, "no axis is named", default_order,
                              r->plan->order, r->err);
    if (key == SM_SERVE_DIMS)
        return sm_words_order(numbers, r->source, value, "no dimension has the number",
                              default_dims, r->plan->dims, r->err);
    return read_word(r, key, value);
}

static sm_status read_item(const reader *r, sm_span item) {
    size_t at = item.offset, end = item.offset + item.length;
    sm_span word = sm_next_part(r->source, item, '=', &at);
    sm_words all = {keys, SM_SERVE_KEY_COUNT};
    if (at > end)
        return sm_fail_at(r->err, r->source, item, "expected KEY=VALUE, as in tensor=8,expert=4");
    int key = sm_words_find(all, r->source, word);
    if (key < 0) return sm_words_fail(all, r->source, word, "a plan of serving has no key", r->err);
    if (r->plan->given >> key & 1)
        return sm_fail_at(r->err, r->source, word, "%s is given twice", keys[key]);
    r->plan->given |= 1u << key;
    return read_value(r, key, sm_source_trim(r->source, at, end));
}

sm_status sm_serve_plan_parse(const sm_source *source, sm_serve_plan *plan, sm_error *err) {
    reader r = {source, plan, err};
    sm_serve_plan_defaults(plan);
    sm_span all = sm_source_trim(source, 0, source->length);
    if (all.length == 0) return SM_OK;
    for (size_t at = all.offset; at <= all.offset + all.length;) {
        sm_status status = read_item(&r, sm_next_part(source, all, ',', &at));
        if (status != SM_OK) return status;
    }
    if (sm_serve_plan_chips(plan) == INT32_MAX)
        return sm_fail_at(err, source, all, "this plan takes more than %d chips", MOST_DEGREE);
    return SM_OK;
}

/* ---- printing ---- */

/* Counts what it would have written, like snprintf. */
typedef struct printer {
    char *out;
    size_t size, wanted;
} printer;

static void put(printer *p, const char *text) {
    for (; *text != '\0'; text++, p->wanted++)
        if (p->wanted + 1 < p->size) p->out[p->wanted] = *text;
    if (p->size > 0) p->out[p->wanted < p->size ? p->wanted : p->size - 1] = '\0';
}

static void put_key(printer *p, int key) {
    if (p->wanted > 0) put(p, ",");
    put(p, keys[key]);
    put(p, "=");
}

static void put_word(printer *p, int key, const char *word) {
    put_key(p, key);
    put(p, word);
}

static void put_list(printer *p, int key, const uint8_t *list, int n, const char *const *names) {
    put_key(p, key);
    for (int i = 0; i < n; i++) {
        if (i > 0) put(p, ".");
        put(p, names[list[i]]);
    }
}

static void put_degrees(printer *p, const sm_serve_plan *plan) {
    sm_serve_plan copy = *plan;
    char digits[16];
    bool none = sm_serve_plan_chips(plan) == 1;
    for (int key = 0; key < SM_SERVE_DEGREES; key++) {
        int degree = *degree_of(&copy, key);
        if (degree == 1 && !(none && key == SM_SERVE_TENSOR)) continue;
        snprintf(digits, sizeof digits, "%d", degree);
        put_word(p, key, digits);
    }
}

size_t sm_serve_plan_format(const sm_serve_plan *plan, int torus_dims, char *out, size_t size) {
    printer p = {out, size, 0};
    int n = torus_dims < 0 ? 0 : torus_dims > 3 ? 3 : torus_dims;
    put(&p, "");
    put_degrees(&p, plan);
    if (plan->gathered) put_word(&p, SM_SERVE_WEIGHTS_BY, weights_by[1]);
    if (plan->cache_by != SM_CACHE_BATCH) put_word(&p, SM_SERVE_CACHE_BY, cache_by[plan->cache_by]);
    if (plan->expert_tensor) put_word(&p, SM_SERVE_EXPERT_TENSOR, switches[1]);
    if (plan->seq) put_word(&p, SM_SERVE_SEQ, switches[1]);
    if (memcmp(plan->order, default_order, sizeof default_order) != 0)
        put_list(&p, SM_SERVE_ORDER, plan->order, SM_SERVE_DEGREES, keys);
    if (memcmp(plan->dims, default_dims, (size_t)n) != 0)
        put_list(&p, SM_SERVE_DIMS, plan->dims, n, dims);
    return p.wanted;
}
