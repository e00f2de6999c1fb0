/* What answers share. */
#include "question.h"
#include <string.h>

void sm_bound_note(sm_report *r, const sm_calibration *c, const char *what, double lower_s,
                   double expected_s) {
    if (expected_s >= lower_s) return;
    sm_report_text(r,
                   "These constants promise more than the data sheet: with those of %s %s %s is "
                   "expected below its lower bound.",
                   c->chip, c->software, what);
}

void sm_copies_note(sm_report *r, const sm_plan *plan, const sm_model *model) {
    int times = sm_plan_heads_times(plan, model), ways = plan->tensor / times;
    if (times > 1)
        sm_report_text(r,
                       "The work of heads (attention, states) is done %d times over: of tensor=%d "
                       "they divide %s; the other %d share out widths and the vocabulary alone.",
                       times, plan->tensor, ways > 1 ? sm_textf(r, "%d ways", ways) : "by none",
                       times);
}

/* ---- padded models ---- */

typedef struct padded_size {
    const char *name;
    int from, to;
} padded_size;
enum { MOST_PADDED = 16 };

static int add_size(padded_size *list, int n, padded_size size) {
    if (size.from == size.to || n == MOST_PADDED) return n;
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, size.name) == 0 && list[i].from == size.from) return n;
    list[n] = size;
    return n + 1;
}

static int padded_sizes(const sm_model *m, const sm_model *padded, padded_size *list) {
    int n = 0;
    for (int l = 0; l < m->L; l++) {
        const sm_layer_kind *a = &m->kind[m->layer[l]], *b = &padded->kind[padded->layer[l]];
        n = add_size(list, n, (padded_size){"query heads", a->N, b->N});
        n = add_size(list, n, (padded_size){"KV heads", a->K, b->K});
        n = add_size(list, n, (padded_size){"MLP width", a->F, b->F});
        n = add_size(list, n, (padded_size){"experts", a->E, b->E_held});
        n = add_size(list, n, (padded_size){"experts' width", a->F_expert, b->F_expert});
        n = add_size(list, n,
                     (padded_size){"shared experts' width", a->E_shared * a->F_shared,
                                   b->E_shared * b->F_shared});
    }
    return add_size(list, n, (padded_size){"vocabulary", m->V, padded->V});
}

void sm_padding_note(sm_report *r, const sm_plan *plan, const sm_model *model,
                     const sm_model *padded, double share) {
    padded_size size[MOST_PADDED];
    int n = padded_sizes(model, padded, size);
    const char *list = "";
    for (int i = 0; i < n; i++)
        list = sm_textf(r, "%s%s%s %d to %d", list, i ? ", " : "", size[i].name, size[i].from,
                        size[i].to);
    const char *degrees =
        plan->expert == 1   ? sm_textf(r, "tensor=%d does", plan->tensor)
        : plan->tensor == 1 ? sm_textf(r, "expert=%d does", plan->expert)
                            : sm_textf(r, "tensor=%d and expert=%d do", plan->tensor, plan->expert);
    bool trains = plan->use == SM_PLAN_TRAINING;
    bool experts_alone = n == 1 && strcmp(size[0].name, "experts") == 0;
    experts_alone = experts_alone && sm_plan_heads_times(plan, model) == 1;
    if (n > 0)
        sm_report_text(
            r,
            "Padded, since %s not divide: %s. %s of the work is "
            "padding%s. XLA pads so; %s refuse such a plan.",
            degrees, list, sm_show_percent(r, share), trains ? ", which MFU does not count" : "",
            trains          ? "the other frameworks"
            : experts_alone ? "vLLM gives some chips an expert more, which takes as long; "
                              "other engines"
                            : "engines");
}

sm_status sm_question_pad(sm_report *r, const sm_plan *plan, const sm_model **model, double seq,
                          double *share, sm_error *err) {
    sm_model *padded = sm_arena_alloc(r->arena, sizeof *padded);
    bool pads;
    if (!padded) return sm_fail_memory(err);
    sm_status status = sm_plan_pad(plan, *model, r->arena, padded, &pads, err);
    if (status || !pads) return status;
    double own = sm_model_forward_flops(*model, seq, true).total;
    *share = 1 - own / sm_model_forward_flops(padded, seq, true).total;
    *model = padded;
    return isnan(*share) ? sm_fail_memory(err) : SM_OK;
}

bool sm_question_pads_next(sm_plan *plan, const sm_model *model, int chips) {
    sm_padding padding;
    plan->given |= 1ull << SM_PLAN_EXPERT;
    while (++plan->expert <= chips)
        if (chips % plan->expert == 0 && sm_plan_padding(plan, model, &padding)) return true;
    return false;
}

void sm_padding_data(sm_report *r, sm_data *object, const sm_model *model, const sm_model *padded,
                     double share) {
    padded_size size[MOST_PADDED];
    int n = padded_sizes(model, padded, size);
    if (n == 0) return;
    sm_data *padding = sm_put_object(r, object, "padding");
    sm_put(r, padding, "share", share);
    sm_data *sizes = sm_put_array(r, padding, "sizes");
    for (int i = 0; i < n; i++)
        sm_put(r, sm_put_object(r, sizes, NULL), "name|from|to", size[i].name, size[i].from,
               size[i].to);
}

sm_status sm_question_needs(bool there, const char *what, sm_error *err) {
    return there ? SM_OK : sm_fail(err, SM_USAGE, "the question lacks %s", what);
}

sm_status sm_question_limit(const char *what, double value, double most, sm_error *err) {
    if (value >= 0.0 && value <= most) return SM_OK;
    return sm_fail(err, SM_USAGE, "%s of a question is a number from 0 to %.0f, not %g", what, most,
                   value);
}

void sm_page_fact(sm_report *r, sm_why *parent, const char *label, const sm_fact *fact,
                  const char *unit) {
    sm_page_leaf(r, parent, label, fact->value, unit, fact->source ? fact->source : "not known");
}

void sm_search_lines(sm_report *r, const sm_search_effort *e, const char *proof) {
    sm_report_text(r, "%s plans: %s priced, %s ruled out by bounds.%s", sm_show_count(r, e->space),
                   sm_show_count(r, e->evaluated), sm_show_count(r, e->pruned), proof);
    sm_report_text(r, "The search took %s.", sm_show_seconds(r, e->seconds));
}

/* ---- blame ---- */

/* Does the sentence speak of this item: name it as it stands (tensor=12), or begin with its key? */
static bool speaks_of(const char *sentence, const char *item) {
    const char *found = strstr(sentence, item);
    char next = found ? found[strlen(item)] : '0';
    size_t key = strcspn(item, "=");
    if (item[key] != '=') return false;
    if (found && (next < '0' || next > '9')) return true;
    return strncmp(sentence, item, key) == 0 && sentence[key] == ' ';
}

sm_span sm_question_blamed(const sm_source *plan, const char *sentence) {
    for (size_t at = 0; at < plan->length;) {
        char item[64];
        size_t length = strcspn(plan->text + at, ",");
        snprintf(item, sizeof item, "%.*s", length < 60 ? (int)length : 60, plan->text + at);
        if (speaks_of(sentence, item)) return (sm_span){at, length};
        at += length + 1;
    }
    return (sm_span){0};
}

sm_status sm_question_blame(const sm_source *plan, sm_status status, sm_error *err) {
    if (status != SM_BAD_INPUT || err->line || plan->length == 0) return status;
    char sentence[sizeof err->sentence];
    memcpy(sentence, err->sentence, sizeof sentence);
    sm_span blamed = sm_question_blamed(plan, sentence);
    return sm_fail_at(err, plan, blamed.length ? blamed : (sm_span){0, plan->length}, "%s",
                      sentence);
}

double sm_question_pictures(const sm_model *model, double *tokens) {
    double rows = 0, pictures = 0;
    sm_architecture_number(model->architecture, "seen_rows", &rows);
    if (rows > 0) sm_architecture_number(model->architecture, "source", &pictures);
    *tokens = rows * pictures;
    return pictures;
}

sm_status sm_question_seen(const sm_model *model, const char *what, double tokens, sm_error *err) {
    double seen, pictures = sm_question_pictures(model, &seen);
    if (seen <= tokens) return SM_OK;
    return sm_fail(err, SM_BAD_INPUT, "%.0f picture%s of %s %s %.0f tokens, and the %s has %.0f",
                   pictures, pictures == 1 ? "" : "s", model->name, pictures == 1 ? "is" : "are",
                   seen, what, tokens);
}

void sm_units_note(sm_report *r, const sm_chip *chip, sm_dtype dtype) {
    sm_dtype used;
    sm_chip_peak(chip, dtype, &used);
    if (used == dtype || (dtype == SM_NVFP4 && used == SM_FP4)) return; /* scales apart */
    sm_report_text(r, "%s has no units for %s: what is %s is multiplied in %s, at its speed.",
                   chip->name, sm_dtype_name(dtype), sm_dtype_name(dtype), sm_dtype_name(used));
}

void sm_thousands_note(sm_report *r, const sm_model *model, double tokens) {
    if (model->max_seq <= 0 || tokens * 128 != model->max_seq * 125.0) return;
    sm_report_text(r, "%s tokens are %gk; the %d that %s was made for are %gKi.",
                   sm_show_exact(r, tokens), tokens / 1000, model->max_seq, model->name,
                   model->max_seq / 1024.0);
}

void sm_slices_note(sm_report *r, const sm_system *system) {
    const sm_chip *chip = &system->chip;
    int pod = 1;
    if (system->slices < 2) return;
    for (int d = 0; d < chip->torus_axes; d++) pod *= chip->pod_shape[d];
    sm_report_text(r,
                   "%d slices of %d chips each, with the data-center network between them: a slice "
                   "of %s has at most %d.",
                   system->slices, system->chips / system->slices, chip->name, pod);
}
