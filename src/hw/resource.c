/* resource: a machine with more or less of something: the hardware designer's question. */
#include <string.h>

#include "scalemodel/hw.h"

const char *const sm_resource_names[SM_RESOURCE_COUNT] = {SM_RESOURCES(SM_NAME_OF)};

static void scale_links(sm_system *s, double factor) {
    sm_chip *c = &s->chip;
    c->link_bytes_per_s_oneway.value *= factor;
    c->dcn_bytes_per_s_oneway.value *= factor;
    for (int i = 0; i < c->tree_levels; i++) c->tree[i].child_bytes_per_s_oneway.value *= factor;
    for (int i = 0; i < s->levels; i++) s->level[i].bytes_per_s_oneway *= factor;
}

static void scale_latencies(sm_system *s, double factor) {
    sm_chip *c = &s->chip;
    c->hop_latency_s.value *= factor;
    c->dcn_latency_s.value *= factor;
    c->launch_latency_s.value *= factor;
    for (int i = 0; i < c->tree_levels; i++) c->tree[i].hop_latency_s.value *= factor;
    for (int i = 0; i < s->levels; i++) s->level[i].hop_latency_s *= factor;
}

void sm_system_scale(sm_system *s, sm_resource resource, double factor) {
    sm_chip *c = &s->chip;
    switch (resource) {
    case SM_RESOURCE_FLOPS:
        for (int d = 0; d < SM_DTYPE_COUNT; d++) {
            c->flops_per_s[d].value *= factor;
            c->narrow_bytes_per_s[d].value *= factor;
        }
        c->vector_flops_per_s.value *= factor;
        return;
    case SM_RESOURCE_HBM: c->memory_bytes_per_s.value *= factor; return;
    case SM_RESOURCE_MEMORY:
        c->memory_bytes.value *= factor;
        c->driver_memory_bytes.value *= factor;
        return;
    case SM_RESOURCE_LINK: scale_links(s, factor); return;
    case SM_RESOURCE_LATENCY: scale_latencies(s, factor); return;
    case SM_RESOURCE_HOST:
        c->pcie_bytes_per_s_oneway.value *= factor;
        c->host_bytes_per_s.value *= factor;
        c->host_bytes.value *= factor;
        return;
    case SM_RESOURCE_COUNT: return;
    }
}

/* ---- text ---- */

/* So many chips in the innermost switch, which keeps its rate per chip on every level above. */
static sm_status set_domain(const sm_source *text, sm_span value, sm_system *s, sm_error *err) {
    int64_t chips;
    sm_status status = sm_integer_parse(text, value, 1, 1 << 20, &chips, err);
    if (status) return status;
    if (s->chip.fabric != SM_FABRIC_SWITCH || s->chip.tree_levels < 1)
        return sm_fail_at(err, text, value, "%s has no switch whose domain could be larger",
                          s->chip.name);
    double times = (double)chips / s->chip.tree[0].degree;
    s->chip.tree[0].degree = (int)chips;
    for (int i = 1; i < s->chip.tree_levels; i++)
        s->chip.tree[i].child_bytes_per_s_oneway.value *= times;
    sm_error none = {.status = SM_OK};
    status = sm_system_resize(s, s->chips, s, &none);
    if (!status) return SM_OK;
    return sm_fail_at(err, text, value, "%d chips are no domains of %lld: %s", s->chips,
                      (long long)chips, none.sentence);
}

/* "2x", "0.5x" or "2". */
static sm_status read_factor(const sm_source *text, sm_span value, double *factor, sm_error *err) {
    sm_span number = value;
    if (number.length > 1 && text->text[number.offset + number.length - 1] == 'x') number.length--;
    sm_status status = sm_quantity_parse(text, number, SM_Q_COUNT, factor, err);
    if (status) return status;
    if (*factor >= 1e-6 && *factor <= 1e6) return SM_OK;
    return sm_fail_at(err, text, value, "expected a factor from 1e-6 to 1e6, as in 2x");
}

static sm_status change_one(const sm_source *text, sm_span item, sm_system *s, sm_error *err) {
    const char *names[SM_RESOURCE_COUNT + 1];
    memcpy(names, sm_resource_names, sizeof sm_resource_names);
    names[SM_RESOURCE_COUNT] = "domain";
    const sm_words words = {names, SM_RESOURCE_COUNT + 1};
    size_t at = item.offset;
    double factor;
    sm_span word = sm_next_part(text, item, '=', &at);
    if (at > item.offset + item.length)
        return sm_fail_at(err, text, item, "expected RESOURCE=FACTOR, as in link=2x,hbm=1.5x");
    sm_span value = sm_source_trim(text, at, item.offset + item.length);
    int found = sm_words_find(words, text, word);
    if (found < 0) return sm_words_fail(words, text, word, "a machine has no resource", err);
    if (found == SM_RESOURCE_COUNT) return set_domain(text, value, s, err);
    sm_status status = read_factor(text, value, &factor, err);
    if (!status) sm_system_scale(s, (sm_resource)found, factor);
    return status;
}

sm_status sm_system_what_if(const sm_source *text, const sm_system *system, sm_system *out,
                            sm_error *err) {
    sm_span all = sm_source_trim(text, 0, text->length);
    *out = *system;
    for (size_t at = all.offset; at <= all.offset + all.length;) {
        sm_status status = change_one(text, sm_next_part(text, all, ',', &at), out, err);
        if (status) return status;
    }
    return SM_OK;
}
