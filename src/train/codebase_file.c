/* Reading data/codebases/NAME.json, and files of one's own: docs/codebases.md tells what each field
 * means. */
#include "json_tree.h"
#include "scalemodel/codebase.h"

#include <string.h>

static const char *const parameters[] = {SM_COUNTED_PARAMETERS(SM_NAME_OF)};
static const char *const attentions[] = {SM_COUNTED_ATTENTION(SM_NAME_OF)};
static const char *const agains[] = {SM_COUNTED_AGAIN(SM_NAME_OF)};
static const char *const peaks[] = {SM_COUNTED_PEAK(SM_NAME_OF)};
#define COUNT_OF(list) (sizeof(list) / sizeof(list)[0])

enum { MOST_DATED = 64, FIRST_YEAR = 1900, LAST_YEAR = 2999 };

static int digits(const char *text, size_t n) {
    int value = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9') return -1;
        value = 10 * value + (text[i] - '0');
    }
    return value;
}

int sm_month_of(const char *text, size_t length) {
    if (length != 4 && !(length == 7 && text[4] == '-')) return 0;
    int year = digits(text, 4), month = length == 7 ? digits(text + 5, 2) : 12;
    if (year < FIRST_YEAR || year > LAST_YEAR || month < 1 || month > 12) return 0;
    return 12 * year + month;
}

/* Required, and not before that of the entry before it. */
static sm_status read_from(const json_value *entry, int before, int *from) {
    const json_value *v = json_get(entry, "from");
    if (!v) return json_fail(entry, "expected \"from\": the month that it begins in, \"2025-06\"");
    sm_status status = json_expect(v, IS_TEXT, "a month");
    if (status) return status;
    *from = sm_month_of(v->text, v->n);
    if (*from == 0) return json_fail(v, "expected a month such as \"2025-06\"");
    return *from > before ? SM_OK : json_fail(v, "expected a later month than of the entry before");
}

/* What a figure that no source is named for is worth. */
static sm_status read_source(const json_value *entry, const char **out) {
    const json_value *v = json_get(entry, "source");
    return v ? json_read_text(v, out) : json_fail(entry, "expected a \"source\"");
}

static sm_status read_memory(const json_value *v, int before, sm_software_memory *out) {
#define X(key, what) "|" #key
    sm_status status =
        json_expect_keys(v, "what is held {...}",
                         "from|source" SM_SOFTWARE_MEMORY_NUMBERS(X) SM_SOFTWARE_MEMORY_FLAGS(X));
#undef X
    if (!status) status = read_from(v, before, &out->from);
    if (!status) status = read_source(v, &out->source);
#define X(key, what)                                                                               \
    if (!status) status = json_read_number(json_get(v, #key), 1e-9, 1e13, &out->key);
    SM_SOFTWARE_MEMORY_NUMBERS(X)
#undef X
#define X(key, what)                                                                               \
    if (!status) status = json_read_bool(json_get(v, #key), &out->key);
    SM_SOFTWARE_MEMORY_FLAGS(X)
#undef X
    return status;
}

static sm_status read_word(const json_value *v, const char *key, const char *const *words, size_t n,
                           int *out) {
    const json_value *word = json_get(v, key);
    if (!word) return json_fail(v, "expected \"%s\"", key);
    return json_read_choice(word, words, n, out);
}

/* The word of a peak, or FLOP/s. */
static sm_status read_peak(const json_value *v, sm_flops_count *out) {
    const json_value *peak = json_get(v, "peak");
    int word = SM_COUNTED_PEAK_COMPUTE;
    sm_status status = json_is(peak, IS_NUMBER)
                           ? json_read_number(peak, 1e6, 1e21, &out->peak_flops_per_s)
                           : read_word(v, "peak", peaks, COUNT_OF(peaks), &word);
    out->peak = (sm_counted_peak)word;
    return status;
}

static sm_status read_count(const json_value *v, int before, sm_flops_count *out) {
    int of = 0, pairs = 0, again = SM_COUNTED_NOTHING;
    sm_status status = json_expect_keys(
        v, "a count {...}", "from|figure|parameters|attention|again|peak|all_windows|source");
    out->figure = "MFU";
    if (!status) status = read_from(v, before, &out->from);
    if (!status) status = json_read_text(json_get(v, "figure"), &out->figure);
    if (!status) status = read_word(v, "parameters", parameters, COUNT_OF(parameters), &of);
    if (!status) status = read_word(v, "attention", attentions, COUNT_OF(attentions), &pairs);
    if (!status) status = json_read_choice(json_get(v, "again"), agains, COUNT_OF(agains), &again);
    if (!status) status = read_peak(v, out);
    if (!status) status = json_read_bool(json_get(v, "all_windows"), &out->all_windows);
    if (!status) status = read_source(v, &out->source);
    out->parameters = (sm_counted_parameters)of;
    out->attention = (sm_counted_attention)pairs;
    out->again = (sm_counted_again)again;
    return status;
}

/* A list of what holds from a month on, or none. */
static sm_status read_dated(const json_value *v, sm_arena *arena, size_t bytes, int *n,
                            void **out) {
    if (!v) return SM_OK;
    sm_status status = json_expect(v, IS_LIST, "a list of what holds from a month on");
    if (!status && (v->n < 1 || v->n > MOST_DATED))
        status = json_fail(v, "expected 1 to %d entries", MOST_DATED);
    if (status) return status;
    *n = (int)v->n;
    *out = sm_arena_array(arena, v->n, bytes);
    return *out ? SM_OK : sm_fail_memory(v->in->err);
}

static sm_status read_codebase(const json_value *v, sm_arena *arena, sm_codebase *out) {
    const json_value *held = json_get(v, "memory"), *counts = json_get(v, "counts");
    void *memory = NULL, *count = NULL;
    *out = (sm_codebase){.software = ""};
    sm_status status =
        json_expect_keys(v, "a code base {...}", "name|title|software|memory|counts");
    if (!status) status = json_read_text(json_get(v, "name"), &out->name);
    if (!status) status = json_read_text(json_get(v, "title"), &out->title);
    if (!status) status = json_read_text(json_get(v, "software"), &out->software);
    if (!status && (!out->name || !out->name[0] || !out->title))
        status = json_fail(v, "a code base needs a \"name\" and a \"title\"");
    if (!status && out->name && strpbrk(out->name, "@+ "))
        status = json_fail(json_get(v, "name"), "a name has no '@', no '+' and no blank");
    if (!status)
        status = read_dated(held, arena, sizeof(sm_software_memory), &out->memories, &memory);
    if (!status) status = read_dated(counts, arena, sizeof(sm_flops_count), &out->counts, &count);
    sm_software_memory *m = memory;
    sm_flops_count *c = count;
    for (int i = 0; !status && m && i < out->memories; i++) {
        m[i] = (sm_software_memory){.software = out->name};
        status = read_memory(&held->item[i], i ? m[i - 1].from : 0, &m[i]);
    }
    for (int i = 0; !status && c && i < out->counts; i++) {
        c[i] = (sm_flops_count){.from = 0};
        status = read_count(&counts->item[i], i ? c[i - 1].from : 0, &c[i]);
    }
    out->memory = m;
    out->count = c;
    return status;
}

sm_status sm_codebase_parse(const sm_source *source, sm_arena *arena, sm_codebase *out,
                            sm_error *err) {
    json_document document = {.source = source, .arena = arena, .err = err};
    const json_value *root;
    sm_status status = json_parse(&document, &root);
    return status ? status : read_codebase(root, arena, out);
}
