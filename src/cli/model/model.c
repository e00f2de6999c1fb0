/* model: the parameters, FLOPs and KV cache of an architecture. */
#include "scalemodel/page.h"
#include "scalemodel/io.h"
#include "scalemodel/model.h"
#include "verbs.h"
#include <math.h>
#include <string.h>

enum { USUAL_SEQ = 4096 };

typedef struct model_options {
    const char *seq, *kv_dtype;
} model_options;

static const cli_option model_table[] = {
    {"seq", 0, CLI_TEXT, offsetof(model_options, seq), "T",
     "tokens in a sequence (4096): sets the work of attention"},
    {"kv-dtype", 0, CLI_TEXT, offsetof(model_options, kv_dtype), "DTYPE",
     "type of the KV cache (bf16)"},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

typedef struct question {
    sm_model model;
    sm_params params;
    double T;
    sm_dtype kv;
    sm_flops causal, full; /* forward, per token */
} question;

/* ---- the catalogue ---- */

static sm_status catalogue_row(sm_report *r, sm_arena *arena, sm_table *table, sm_data *models,
                               const sm_catalogue_entry *entry, sm_error *err) {
    sm_model model;
    sm_status status = sm_io_model_load(entry->name, arena, &model, err);
    if (status) return status;
    sm_params params = sm_model_params(&model);
    sm_page_row(r, table, entry->name, model.family, sm_show_count(r, params.total),
                sm_show_count(r, params.active), sm_textf(r, "%d", model.L),
                sm_textf(r, "%d", model.D));
    sm_data *object = sm_put_object(r, models, NULL);
    sm_put_text(r, object, "name", entry->name);
    sm_put_text(r, object, "family", model.family);
    sm_put(r, object, "params", params.total);
    sm_put(r, object, "active_params", params.active);
    if (entry->published_params > 0.0)
        sm_put(r, object, "published_params", entry->published_params);
    if (entry->source) sm_put_text(r, object, "source", entry->source);
    return SM_OK;
}

static sm_status show_catalogue(const cli_call *call, sm_report *r, sm_error *err) {
    sm_table *table = sm_page_table(r, "Models", "<model|<family|>params|>active|>layers|>width");
    sm_data *models = sm_put_array(r, r->data, "models");
    for (size_t i = 0; i < sm_catalogue_count(); i++) {
        sm_status status = catalogue_row(r, call->arena, table, models, sm_catalogue_at(i), err);
        if (status) return status;
    }
    sm_report_table(r, table);
    return SM_OK;
}

/* ---- derived numbers ---- */

static double train_flops(const sm_flops *forward) { return 3.0 * forward->total; }

/* Matmul FLOPs do not depend on T and full attention grows with it, so they meet at one length:
 * T* = matmul / (attention at T / T), which is exact as long as no window bounds the keys. */
static double meeting_length(const question *q) {
    bool windows = false;
    for (int k = 0; k < q->model.kinds; k++)
        windows = windows || q->model.kind[k].window > 0 || q->model.kind[k].chunk > 0;
    if (windows || q->full.attention <= 0.0) return NAN;
    return q->full.matmul / q->full.attention * q->T;
}

static double share(const sm_flops *flops) {
    return flops->total > 0.0 ? flops->attention / flops->total : 0.0;
}

/* ---- JSON ---- */

static void put_components(sm_report *r, const sm_params *p) {
    sm_data *components = sm_put_object(r, r->data, "components");
    sm_put(r, components, "embedding", p->embedding);
    sm_put(r, components, "unembedding", p->unembedding);
    sm_put(r, components, "attention", p->attention);
    sm_put(r, components, "mlp", p->mlp);
    sm_put(r, components, "experts", p->experts);
    sm_put(r, components, "router", p->router);
    sm_put(r, components, "norm", p->norm);
    sm_put(r, components, "other", p->other);
}

static int layers_of_kind(const sm_model *model, int kind) {
    int n = 0;
    for (int l = 0; l < model->L; l++) n += model->layer[l] == kind;
    return n;
}

static void put_kinds(sm_report *r, const question *q) {
    sm_data *kinds = sm_put_array(r, r->data, "layers");
    for (int k = 0; k < q->model.kinds; k++) {
        const sm_layer_kind *kind = &q->model.kind[k];
        sm_data *object = sm_put_object(r, kinds, NULL);
        sm_put_text(r, object, "kind", kind->name);
        sm_put(r, object, "count", layers_of_kind(&q->model, k));
        sm_put(r, object, "params", sm_layer_params(&q->model, kind, false));
        sm_put(r, object, "active_params", sm_layer_params(&q->model, kind, true));
        sm_put(r, object, "query_heads", kind->N);
        sm_put(r, object, "kv_heads", kind->K);
        sm_put(r, object, "head_size", kind->H);
        sm_put(r, object, "mlp_width", kind->F);
        sm_put(r, object, "experts", kind->E);
        sm_put(r, object, "experts_per_token", kind->k_top);
        sm_put(r, object, "expert_width", kind->F_expert);
        sm_put(r, object, "window", kind->window > 0 ? kind->window : kind->chunk);
    }
}

static void put_fields(sm_report *r, const question *q) {
    sm_data *d = r->data;
    sm_put_text(r, d, "name", q->model.name);
    sm_put_text(r, d, "family", q->model.family);
    sm_put(r, d, "params", q->params.total);
    sm_put(r, d, "active_params", q->params.active);
    sm_put(r, d, "matmul_params_active", q->params.matmul_active);
    put_components(r, &q->params);
    sm_put(r, d, "layer_count", q->model.L);
    sm_put(r, d, "width", q->model.D);
    sm_put(r, d, "vocabulary", q->model.V);
    put_kinds(r, q);
    sm_put(r, d, "seq", q->T);
    sm_put(r, d, "forward_flops_per_token", q->causal.total);
    sm_put(r, d, "train_flops_per_token", train_flops(&q->causal));
    sm_put(r, d, "forward_flops_per_token_full", q->full.total);
    sm_put(r, d, "train_flops_per_token_full", train_flops(&q->full));
    sm_put(r, d, "matmul_flops_per_token", q->causal.matmul);
    sm_put(r, d, "attention_flops_per_token", q->causal.attention);
    sm_put(r, d, "attention_share", share(&q->causal));
    sm_put(r, d, "attention_share_full", share(&q->full));
    sm_put(r, d, "attention_equals_matmul_seq", meeting_length(q));
    sm_put_text(r, d, "kv_dtype", sm_dtype_name(q->kv));
    sm_put(r, d, "kv_bytes_per_token", sm_model_kv_bytes_per_token(&q->model, q->kv));
    sm_put(r, d, "kv_bytes_per_sequence", sm_model_kv_bytes(&q->model, q->T, q->kv));
    sm_put_text(r, d, "note", q->model.note ? q->model.note : "");
}

/* ---- the page ---- */

static void component_row(sm_report *r, sm_table *table, const char *name, double value,
                          double total) {
    if (value > 0.0)
        sm_page_row(r, table, name, sm_show_exact(r, value), sm_show_count(r, value),
                    sm_show_percent(r, value / total));
}

static void component_rows(sm_report *r, const question *q) {
    const sm_params *p = &q->params;
    sm_table *table = sm_page_table(r, NULL, "<parameters|>exact|>short|>share");
    component_row(r, table, "embedding", p->embedding, p->total);
    component_row(r, table, "unembedding", p->unembedding, p->total);
    component_row(r, table, "attention", p->attention, p->total);
    component_row(r, table, "mlp", p->mlp, p->total);
    component_row(r, table, "experts", p->experts, p->total);
    component_row(r, table, "router", p->router, p->total);
    component_row(r, table, "norm", p->norm, p->total);
    component_row(r, table, "other", p->other, p->total);
    component_row(r, table, "total", p->total, p->total);
    component_row(r, table, "active per token", p->active, p->total);
    component_row(r, table, "in matmuls per token", p->matmul_active, p->total);
    sm_report_table(r, table);
}

static const char *heads_words(sm_report *r, const sm_layer_kind *kind) {
    if (kind->attention == SM_ATTENTION_MLA)
        return sm_textf(r, "%d, MLA rank %d", kind->N, kind->kv_rank);
    return kind->N == kind->K ? sm_textf(r, "%d x %d", kind->N, kind->H)
                              : sm_textf(r, "%d x %d, %d KV", kind->N, kind->H, kind->K);
}

static const char *expert_words(sm_report *r, const sm_layer_kind *kind) {
    if (kind->E == 0) return "-";
    const char *shared = kind->E_shared ? sm_textf(r, " + %d shared", kind->E_shared) : "";
    return sm_textf(r, "%d of %d x %d%s", kind->k_top, kind->E, kind->F_expert, shared);
}

static const char *reach_words(sm_report *r, const sm_layer_kind *kind) {
    if (kind->window > 0) return sm_textf(r, "%d", kind->window);
    return kind->chunk > 0 ? sm_textf(r, "chunks of %d", kind->chunk) : "all";
}

static void kind_rows(sm_report *r, const question *q) {
    sm_table *table =
        sm_page_table(r, "Layers", "<kind|>count|>params each|<heads|<keys|>mlp|<experts");
    for (int k = 0; k < q->model.kinds; k++) {
        const sm_layer_kind *kind = &q->model.kind[k];
        sm_page_row(r, table, kind->name, sm_textf(r, "%d", layers_of_kind(&q->model, k)),
                    sm_show_count(r, sm_layer_params(&q->model, kind, false)), heads_words(r, kind),
                    reach_words(r, kind), kind->F > 0 ? sm_textf(r, "%d", kind->F) : "-",
                    expert_words(r, kind));
    }
    sm_report_table(r, table);
}

static void work_rows(sm_report *r, const question *q) {
    sm_table *table =
        sm_page_table(r, sm_textf(r, "FLOPs per token in sequences of %s", sm_show_exact(r, q->T)),
                      "<|>forward|>training|>of it attention|<");
    sm_page_row(r, table, "causal", sm_show_count(r, q->causal.total),
                sm_show_count(r, train_flops(&q->causal)), sm_show_percent(r, share(&q->causal)),
                "pairs that the mask keeps");
    sm_page_row(r, table, "full", sm_show_count(r, q->full.total),
                sm_show_count(r, train_flops(&q->full)), sm_show_percent(r, share(&q->full)),
                "all pairs, as the book counts");
    sm_report_table(r, table);
}

static void closing_text(sm_report *r, const question *q) {
    double meeting = meeting_length(q);
    if (isfinite(meeting))
        sm_report_text(r,
                       "Attention does as many FLOPs as the matmuls at T = %s (full), %s (causal).",
                       sm_show_number(r, meeting),
                       sm_show_number(r, meeting * q->full.attention / q->causal.attention));
    sm_report_text(
        r, "KV cache in %s: %s per token, %s for a sequence of %s.", sm_dtype_name(q->kv),
        sm_show_bytes(r, sm_model_kv_bytes_per_token(&q->model, q->kv)),
        sm_show_bytes(r, sm_model_kv_bytes(&q->model, q->T, q->kv)), sm_show_exact(r, q->T));
    if (q->model.note && q->model.note[0]) sm_report_text(r, "Note: %s", q->model.note);
}

/* ---- the derivation ---- */

static void explain(sm_report *r, const question *q) {
    sm_why *train =
        sm_page_why(r, "training FLOPs per token", "3 x forward: backward is twice as much",
                    train_flops(&q->causal), "FLOP");
    sm_why *forward = sm_page_why(r, "forward", "matmuls + attention", q->causal.total, "FLOP");
    sm_why *matmul =
        sm_page_why(r, "matmuls", "2 x parameters in matmuls per token", q->causal.matmul, "FLOP");
    sm_page_leaf(r, matmul, "parameters in matmuls", q->params.matmul_active, "", q->model.name);
    sm_why *attention =
        sm_page_why(r, "attention", "sum over layers of 2 x keys x N x (H of QK + H of V)",
                    q->causal.attention, "FLOP");
    for (int k = 0; k < q->model.kinds; k++)
        sm_page_leaf(r, attention,
                     sm_textf(r, "keys seen on average in the %d '%s' layers",
                              layers_of_kind(&q->model, k), q->model.kind[k].name),
                     sm_layer_keys(&q->model.kind[k], q->T, true), "", "causal mask and window");
    sm_page_given(r, attention, "T", q->T, "");
    sm_why_add(forward, matmul);
    sm_why_add(forward, attention);
    sm_why_add(train, forward);
    r->why = train;
}

/* ---- the verb ---- */

static sm_status read_question(const cli_call *call, question *q, sm_error *err) {
    const model_options *options = call->values;
    int64_t T = USUAL_SEQ;
    sm_status status = cli_whole("--seq", options->seq, 1, INT64_C(1) << 40, &T, err);
    if (!status) status = cli_dtype("--kv-dtype", options->kv_dtype, &q->kv, err);
    if (!status) status = sm_io_model_load(call->positional[0], call->arena, &q->model, err);
    if (status) return status;
    q->T = (double)T;
    q->params = sm_model_params(&q->model);
    q->causal = sm_model_forward_flops(&q->model, q->T, true);
    q->full = sm_model_forward_flops(&q->model, q->T, false);
    return SM_OK;
}

static sm_status run_model(const cli_call *call, sm_report *r, sm_error *err) {
    sm_put_text(r, r->data, "command", "model");
    if (call->positionals == 0 && call->common.explain)
        return sm_fail(err, SM_USAGE, "model --explain needs a MODEL");
    if (call->positionals == 0) return show_catalogue(call, r, err);
    question q = {.kv = SM_BF16};
    sm_status status = read_question(call, &q, err);
    if (status) return status;
    put_fields(r, &q);
    sm_report_heading(r, "%s: %s parameters, %s active", q.model.name,
                      sm_show_count(r, q.params.total), sm_show_count(r, q.params.active));
    component_rows(r, &q);
    kind_rows(r, &q);
    work_rows(r, &q);
    closing_text(r, &q);
    if (call->common.explain) explain(r, &q);
    return SM_OK;
}

const cli_verb cli_model = {
    .name = "model",
    .summary = "a model's parameters by component, FLOPs per token, KV cache",
    .arguments = "[MODEL]",
    .least = 0,
    .most = 1,
    .options = model_table,
    .values_bytes = sizeof(model_options),
    .without_system = true,
    .notes = "MODEL is a name of the catalogue or the path of a Hugging Face config.json;\n"
             "without it the catalogue is listed.\n\n"
             "example: scalemodel model llama-3.1-70b --seq 8192\n",
    .run = run_model,
};
