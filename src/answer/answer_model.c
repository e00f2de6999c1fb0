/* answer_model: the parameters, FLOPs and KV cache of an architecture. */
#include "question.h"
#include "scalemodel/io.h"

enum { USUAL_SEQ = 4096 };

typedef struct counted {
    const sm_model *model;
    sm_params params;
    double T;
    sm_dtype kv;
    sm_flops causal, full; /* forward, per token */
} counted;

/* ---- the catalogue ---- */

static sm_status catalogue(sm_report *r, sm_error *err) {
    const sm_listing models =
        sm_page_list(r, r->data, "models", "Models",
                     "name<model|family<family|params>{n}params|active_params>{n}active|"
                     ">{=}layers|>{=}width");
    for (size_t i = 0; i < sm_catalogue_count(); i++) {
        const sm_catalogue_entry *entry = sm_catalogue_at(i);
        sm_model model;
        sm_source config = sm_source_of(entry->name, entry->config_json);
        sm_status status = sm_model_parse(NULL, NULL, &config, r->arena, &model, err);
        if (status) return status;
        sm_params params = sm_model_params(&model);
        sm_data *object = sm_list_row(&models, true, entry->name, model.family, params.total,
                                      params.active, model.L, model.D);
        if (entry->published_params > 0.0)
            sm_put(r, object, "published_params", entry->published_params);
        if (entry->source) sm_put(r, object, "source", entry->source);
    }
    return SM_OK;
}

/* ---- derived numbers ---- */

/* The backward pass does twice the work of the forward one. */
static double train_flops(const sm_flops *forward) { return 3.0 * forward->total; }

/* Matmul FLOPs do not depend on T and full attention grows with it, so they meet at one length:
 * T* = matmul / (attention at T / T), which is exact as long as no window bounds the keys. */
static double meeting_length(const counted *q) {
    bool windows = false;
    for (int k = 0; k < q->model->kinds; k++)
        windows = windows || q->model->kind[k].window > 0 || q->model->kind[k].chunk > 0;
    if (windows || q->full.attention <= 0.0) return NAN;
    return q->full.matmul / q->full.attention * q->T;
}

static double share(const sm_flops *flops) {
    return flops->total > 0.0 ? flops->attention / flops->total : 0.0;
}

static int layers_of_kind(const sm_model *model, int kind) {
    int n = 0;
    for (int l = 0; l < model->L; l++) n += model->layer[l] == kind;
    return n;
}

/* ---- the parameters, on the page and in the data ---- */

/* Towers and heads that predict several tokens: held by the checkpoint beside the model. */
static void apart(sm_report *r, const sm_model *m, sm_table *table, double total) {
    sm_data *object = sm_put_object(r, r->data, "apart");
    double params, all = total;
    const char *name;
    for (int i = 0; (name = sm_architecture_apart(m->architecture, i, &params)) != NULL; i++) {
        all += params;
        sm_put(r, object, name, params);
        sm_page_row(r, table, sm_textf(r, "beside: %s", name), params, params, "");
    }
    sm_put(r, r->data, "params_with_apart", all);
    if (all > total) sm_page_row(r, table, "with that", all, all, "");
}

static void components(sm_report *r, const sm_model *m, const sm_params *p) {
    const struct {
        const char *name;
        double value;
    } row[] = {{"embedding", p->embedding},
               {"unembedding", p->unembedding},
               {"attention", p->attention},
               {"mlp", p->mlp},
               {"experts", p->experts},
               {"router", p->router},
               {"norm", p->norm},
               {"other", p->other},
               {"total", p->total},
               {"active per token", p->active},
               {"in matmuls per token", p->matmul_active}};
    enum { COMPONENTS = 8, ROWS = sizeof row / sizeof row[0] };
    sm_data *object = sm_put_object(r, r->data, "components");
    sm_table *table = sm_page_table(r, NULL, "<parameters|>{=}exact|>{n}short|>{%}share");
    for (int i = 0; i < ROWS; i++) {
        if (i < COMPONENTS) sm_put(r, object, row[i].name, row[i].value);
        if (row[i].value > 0.0)
            sm_page_row(r, table, row[i].name, row[i].value, row[i].value, row[i].value / p->total);
    }
    apart(r, m, table, p->total);
}

/* ---- the layers ---- */

static const char *heads_words(sm_report *r, const sm_layer_kind *kind) {
    if (kind->N == 0) return "-";
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

static void kinds(sm_report *r, const sm_model *model) {
    const sm_listing list =
        sm_page_list(r, r->data, "layers", "Layers",
                     "kind<kind|count>{=}count|params>{n}params each|<heads|<keys|>mlp|<experts");
    for (int k = 0; k < model->kinds; k++) {
        const sm_layer_kind *kind = &model->kind[k];
        int count = layers_of_kind(model, k);
        const char *reach = kind->N == 0       ? "-"
                            : kind->window > 0 ? sm_textf(r, "%d", kind->window)
                            : kind->chunk > 0  ? sm_textf(r, "chunks of %d", kind->chunk)
                                               : "all";
        sm_data *object =
            sm_list_row(&list, true, kind->name, count, sm_layer_params(model, kind, false),
                        heads_words(r, kind), reach, kind->F > 0 ? sm_textf(r, "%d", kind->F) : "-",
                        expert_words(r, kind));
        sm_put(r, object,
               "active_params|query_heads|kv_heads|head_size|mlp_width|experts|"
               "experts_per_token|expert_width|window|kv_rank",
               sm_layer_params(model, kind, true), kind->N, kind->K, kind->H, kind->F, kind->E,
               kind->k_top, kind->F_expert, kind->window > 0 ? kind->window : kind->chunk,
               kind->kv_rank);
    }
}

/* ---- the work and the cache ---- */

static void work(sm_report *r, const counted *q) {
    const sm_flops *causal = &q->causal, *full = &q->full;
    sm_table *table =
        sm_page_table(r, sm_textf(r, "FLOPs per token in sequences of %s", sm_show_exact(r, q->T)),
                      "<|>{n}forward|>{n}training|>{%}of it attention|<");
    sm_page_row(r, table, "causal", causal->total, train_flops(causal), share(causal),
                "pairs that the mask keeps");
    sm_page_row(r, table, "full", full->total, train_flops(full), share(full),
                "all pairs, as the book counts");
    sm_put(r, r->data,
           "seq|forward_flops_per_token|train_flops_per_token|forward_flops_per_token_full|"
           "train_flops_per_token_full|matmul_flops_per_token|attention_flops_per_token|"
           "attention_share|attention_share_full|attention_equals_matmul_seq|"
           "attention_equals_matmul_seq_causal",
           q->T, causal->total, train_flops(causal), full->total, train_flops(full), causal->matmul,
           causal->attention, share(causal), share(full), meeting_length(q),
           meeting_length(q) * full->attention / causal->attention);
}

/* ---- the checkpoint ---- */

static void stored(sm_report *r, const sm_model *m) {
    const sm_stored *s = &m->stored;
    const char *type = sm_dtype_name(s->type), *method = s->method;
    if (s->quantised)
        sm_report_text(r,
                       "Checkpoint: %s, most weights in %s (%s), %s bytes a parameter with scales.",
                       sm_show_bytes(r, s->bytes), type, method,
                       sm_show_number(r, s->bytes / sm_model_params(m).total));
    else if (method[0])
        sm_report_text(r, "Checkpoint: quantised by %s, which is not understood; %s in %s.", method,
                       sm_show_bytes(r, s->bytes), type);
    else sm_report_text(r, "Checkpoint: %s in %s.", sm_show_bytes(r, s->bytes), type);
    sm_put(r, r->data, "checkpoint_bytes|checkpoint_dtype|quantization", s->bytes, type, method);
}

/* Counted and stored: the same, or by how much they differ. */
static const char *held_against(sm_report *r, double held, double expected) {
    double more = held - expected;
    if (more == 0.0) return "as counted";
    return sm_textf(r, "%s %s than counted (%s)", sm_show_exact(r, fabs(more)),
                    more > 0.0 ? "more" : "fewer", sm_show_percent(r, fabs(more) / expected));
}

static void beside(sm_report *r, const sm_model *m, const sm_checkpoint_size *held) {
    double params = sm_model_params(m).total;
    if (!held) return;
    sm_put(r, sm_put_object(r, r->data, "checkpoint_beside"), "file|bytes|elements", held->name,
           held->bytes, held->elements > 0.0 ? held->elements : NAN);
    sm_report_text(r, "Beside it %s holds %s bytes, %s.", held->name, sm_show_exact(r, held->bytes),
                   held_against(r, held->bytes, m->stored.bytes));
    if (held->elements > 0.0)
        sm_report_text(r, "Its tensors have %s elements, %s.", sm_show_exact(r, held->elements),
                       held_against(r, held->elements, params));
}

static void explain(sm_report *r, const counted *q) {
    sm_why *train =
        sm_page_why(r, NULL, "training FLOPs per token", "3 x forward: backward is twice as much",
                    train_flops(&q->causal), "FLOP");
    sm_why *forward =
        sm_page_why(r, train, "forward", "matmuls + attention", q->causal.total, "FLOP");
    sm_why *matmul = sm_page_why(r, forward, "matmuls", "2 x parameters in matmuls per token",
                                 q->causal.matmul, "FLOP");
    sm_page_leaf(r, matmul, "parameters in matmuls", q->params.matmul_active, "", q->model->name);
    sm_why *attention =
        sm_page_why(r, forward, "attention", "sum over layers of 2 x keys x N x (H of QK + H of V)",
                    q->causal.attention, "FLOP");
    for (int k = 0; k < q->model->kinds; k++)
        sm_page_leaf(r, attention,
                     sm_textf(r, "keys seen on average in the %d '%s' layers",
                              layers_of_kind(q->model, k), q->model->kind[k].name),
                     sm_layer_keys(&q->model->kind[k], q->T, true), "", "causal mask and window");
    sm_page_given(r, attention, "T", q->T, "");
    r->why = train;
}

sm_status sm_answer_model(const sm_model_question *question, sm_report *r, sm_error *err) {
    sm_model_question asked;
    sm_status status = sm_sized_take(&asked, sizeof asked, question, err);
    if (status) return status;
    sm_put(r, r->data, "command", "model");
    if (!asked.model) return catalogue(r, err);
    const sm_model *m = asked.model;
    counted q = {.model = m, .T = asked.seq > 0.0 ? asked.seq : USUAL_SEQ, .kv = asked.kv};
    q.params = sm_model_params(m);
    q.causal = sm_model_forward_flops(m, q.T, true);
    q.full = sm_model_forward_flops(m, q.T, false);
    q.T = q.causal.tokens;
    if (isnan(q.causal.total) || isnan(q.full.total)) return sm_fail_memory(err);
    sm_report_heading(r, "%s: %s parameters, %s active", m->name, sm_show_count(r, q.params.total),
                      sm_show_count(r, q.params.active));
    sm_put(r, r->data, "name|family|params|active_params|matmul_params_active", m->name, m->family,
           q.params.total, q.params.active, q.params.matmul_active);
    components(r, m, &q.params);
    sm_put(r, r->data, "layer_count|width|vocabulary", m->L, m->D, m->V);
    kinds(r, m);
    work(r, &q);
    double meeting = meeting_length(&q), token = sm_model_kv_bytes_per_token(q.model, q.kv);
    double sequence = sm_model_kv_bytes(q.model, q.T, q.kv);
    double state = sm_model_state_bytes(q.model, q.kv);
    const char *note = q.model->note ? q.model->note : "";
    if (isfinite(meeting))
        sm_report_text(r,
                       "Attention does as many FLOPs as the matmuls at T = %s (full), %s (causal).",
                       sm_show_number(r, meeting),
                       sm_show_number(r, meeting * q.full.attention / q.causal.attention));
    if (m->causal && state > 0.0)
        sm_report_text(r, "A sequence keeps %s of fixed size.", sm_show_bytes(r, state));
    if (sequence > 0.0 || (m->causal && state <= 0.0))
        sm_report_text(r, "KV cache in %s: %s per token, %s for a sequence of %s.",
                       sm_dtype_name(q.kv), sm_show_bytes(r, token), sm_show_bytes(r, sequence),
                       sm_show_exact(r, q.T));
    sm_thousands_note(r, m, asked.seq);
    stored(r, m);
    beside(r, m, asked.checkpoint);
    if (note[0]) sm_report_text(r, "Note: %s", note);
    sm_put(r, r->data,
           "kv_dtype|kv_bytes_per_token|kv_bytes_per_sequence|state_bytes_per_sequence|note",
           sm_dtype_name(q.kv), token, sequence, m->causal ? state : 0.0, note);
    if (asked.explain) explain(r, &q);
    return SM_OK;
}
