/* Code bases of training: what each holds in memory and how it counts FLOPs, by its name and the
 * month; and the FLOPs of a count. */
#include "codebase_table.h"
#include "scalemodel/cost.h"

#include <assert.h>
#include <string.h>

size_t sm_codebase_count(void) { return sm_codebase_table_count; }

const sm_codebase *sm_codebase_at(size_t i) {
    assert(i < sm_codebase_table_count);
    return &sm_codebase_table[i];
}

const sm_codebase *sm_codebase_among(const sm_codebase *list, size_t n, const char *name,
                                     size_t length) {
    for (size_t i = 0; i < n; i++)
        if (sm_is_called(list[i].name, list[i].software, name, length)) return &list[i];
    return NULL;
}

const sm_codebase *sm_codebase_of(const char *name, size_t length) {
    return sm_codebase_among(sm_codebase_table, sm_codebase_table_count, name, length);
}

/* ---- by month ---- */

const sm_software_memory *sm_codebase_memory_in(const sm_codebase *of, int month) {
    int at = of->memories - 1;
    assert(at >= 0);
    while (at > 0 && month > 0 && of->memory[at].from > month) at--;
    return &of->memory[at];
}

const sm_software_memory *sm_software_memory_of(const char *software, const sm_chip *chip,
                                                int month) {
    const char *usual = chip && chip->fabric == SM_FABRIC_TORUS ? "maxtext" : "megatron-core";
    const sm_codebase *of = sm_codebase_of(software, strlen(software));
    if (!of || of->memories == 0) of = sm_codebase_of(usual, strlen(usual));
    assert(of);
    return sm_codebase_memory_in(of, month);
}

const sm_flops_count *sm_codebase_count_in(const sm_codebase *of, int month) {
    int at = of->counts - 1;
    while (at >= 0 && month > 0 && of->count[at].from > month) at--;
    return at >= 0 ? &of->count[at] : NULL;
}

/* ---- the text of a count ---- */

/* What follows "causal", "full" or "matmul_only". */
static sm_status read_terms(const sm_source *source, sm_span span, sm_flops_count *out,
                            sm_error *err) {
    static const char *const terms[] = {"+input_embedding", "-output_head", "+recompute",
                                        "+recompute_all"};
    for (size_t end = span.offset + span.length; span.offset < end;) {
        size_t n = 1 + strcspn(source->text + span.offset + 1, "+-");
        if (n > end - span.offset) n = end - span.offset;
        switch (sm_words_find((sm_words){terms, 4}, source, (sm_span){span.offset, n})) {
        case 0: out->parameters = SM_COUNTED_ALL; break;
        case 1: out->parameters = SM_COUNTED_NO_HEAD; break;
        case 2: out->again = SM_COUNTED_LAYERS; break;
        case 3: out->again = SM_COUNTED_FORWARD; break;
        default:
            return sm_fail_at(err, source, (sm_span){span.offset, n},
                              "expected +input_embedding, -output_head, +recompute or "
                              "+recompute_all");
        }
        span.offset += n;
    }
    return SM_OK;
}

static sm_status nobody(const sm_source *source, sm_span name, const sm_codebase *own, size_t n_own,
                        sm_error *err) {
    enum { MOST_NAMES = 128 };
    const char *names[MOST_NAMES] = {"matmul_only", "causal", "full"};
    size_t n = 3;
    for (size_t i = 0; i < n_own && n < MOST_NAMES; i++) names[n++] = own[i].name;
    for (size_t i = 0; i < sm_codebase_table_count && n < MOST_NAMES; i++)
        if (sm_codebase_table[i].counts > 0) names[n++] = sm_codebase_table[i].name;
    const char *text = source->text + name.offset;
    const char *near = sm_nearest(text, name.length, names, n);
    return sm_fail_at(err, source, name, "no code base counts FLOPs as '%.*s'%s%s%s",
                      name.length < 40 ? (int)name.length : 40, text,
                      near ? "; did you mean '" : "; 'scalemodel mfu MODEL CHIP' lists them",
                      near ? near : "", near ? "'?" : "");
}

sm_status sm_flops_count_parse(const sm_source *source, sm_span span, const sm_codebase *own,
                               size_t n, sm_flops_count *out, const sm_codebase **of,
                               sm_error *err) {
    static const char *const plain[] = {"matmul_only", "causal", "full"}; /* as the enum's order */
    const char *text = source->text + span.offset, *at = memchr(text, '@', span.length);
    size_t length = 0;
    while (length < span.length && !strchr("+-@", text[length])) length++;
    *of = NULL;
    int found =
        at ? -1 : sm_words_find((sm_words){plain, 3}, source, (sm_span){span.offset, length});
    if (found >= 0) {
        *out = (sm_flops_count){
            .figure = "MFU", .attention = (sm_counted_attention)found, .source = "as it says"};
        return read_terms(source, (sm_span){span.offset + length, span.length - length}, out, err);
    }
    sm_span name = {span.offset, at ? (size_t)(at - text) : span.length};
    const sm_codebase *base = sm_codebase_among(own, n, text, name.length);
    if (!base) base = sm_codebase_of(text, name.length);
    if (!base || base->counts == 0) return nobody(source, name, own, n, err);
    assert(base->count);
    sm_span date = {span.offset + name.length + 1, at ? span.length - name.length - 1 : 0};
    int month = at ? sm_month_of(source->text + date.offset, date.length) : 0;
    if (at && month == 0)
        return sm_fail_at(err, source, date, "expected a year or a month, 2025 or 2025-06");
    const sm_flops_count *count = sm_codebase_count_in(base, month);
    if (!count)
        return sm_fail_at(err, source, date, "%s is known to count FLOPs since %d-%02d", base->name,
                          (base->count[0].from - 1) / 12, (base->count[0].from - 1) % 12 + 1);
    *out = *count;
    *of = base;
    return SM_OK;
}

/* ---- what it comes to ---- */

/* Forward, per token: the pairs of layers that see a window or a chunk as if they saw all. */
static double attention_flops(const sm_flops_count *count, const sm_model *m, double T) {
    bool causal = count->attention == SM_COUNTED_CAUSAL;
    if (count->attention == SM_COUNTED_NONE) return 0;
    double flops = sm_model_forward_flops(m, T, causal).attention;
    for (int l = 0; l < m->L && count->all_windows; l++) {
        sm_layer_kind whole = m->kind[m->layer[l]];
        double keys = sm_layer_keys(&whole, T, causal);
        whole.window = whole.chunk = 0;
        flops +=
            2.0 * whole.N * (whole.H + whole.V_head) * (sm_layer_keys(&whole, T, causal) - keys);
    }
    return flops;
}

double sm_flops_counted(const sm_flops_count *count, const sm_model *m, double T) {
    sm_params p = sm_model_params(m);
    double head = (double)m->D * m->V, met = p.matmul_active;
    if (count->parameters == SM_COUNTED_ALL)
        met = p.active + (m->active_omits_embedding ? p.embedding : 0);
    if (count->parameters == SM_COUNTED_NO_HEAD) met -= head;
    double forward = 2 * met + attention_flops(count, m, T);
    double again = 0;
    if (count->again != SM_COUNTED_NOTHING) again = forward;
    if (count->again == SM_COUNTED_LAYERS && count->parameters != SM_COUNTED_NO_HEAD)
        again -= 2 * head;
    return 3 * forward + again;
}

/* Since Ampere, which brought TF32, and MI300, which brought fp8. */
static bool skips_zeros(const sm_chip *chip) {
    if (strcmp(chip->vendor, "AMD") == 0) return chip->flops_per_s[SM_FP8].value > 0;
    return strcmp(chip->vendor, "NVIDIA") == 0 && chip->flops_per_s[SM_TF32].value > 0;
}

double sm_flops_peak(const sm_flops_count *count, const sm_chip *chip, sm_dtype dtype) {
    if (count->peak_flops_per_s > 0) return count->peak_flops_per_s;
    switch (count->peak) {
    case SM_COUNTED_PEAK_BF16: return sm_chip_peak(chip, SM_BF16, NULL);
    case SM_COUNTED_PEAK_SPARSE: return skips_zeros(chip) ? 2 * sm_chip_peak(chip, dtype, NULL) : 0;
    case SM_COUNTED_PEAK_COMPUTE:
    case SM_COUNTED_PEAK_N: break;
    }
    return sm_chip_peak(chip, dtype, NULL);
}

char *sm_flops_count_words(const sm_flops_count *count, char *out, size_t size) {
    static const char *const of[] = {SM_COUNTED_PARAMETERS(SM_THIRD_OF)};
    static const char *const pairs[] = {SM_COUNTED_ATTENTION(SM_THIRD_OF)};
    static const char *const again[] = {SM_COUNTED_AGAIN(SM_THIRD_OF)};
    snprintf(out, size, "%s; %s%s%s%s", of[count->parameters], pairs[count->attention],
             count->all_windows && count->attention != SM_COUNTED_NONE ? ", windows or not" : "",
             count->again != SM_COUNTED_NOTHING ? "; " : "", again[count->again]);
    return out;
}
