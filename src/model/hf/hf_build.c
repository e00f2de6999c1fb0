/* From the fields of a config to an architecture: what all families share, and the layers one by
 * one. */
#include "hf_field.h"
#include "stored.h"
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static sm_status check_heads(const hf_config *c) {
    int D = hf_number(c, HF_WIDTH), N = hf_number(c, HF_HEADS), K = hf_number(c, HF_KV_HEADS);
    bool mla = hf_number(c, HF_KV_RANK) > 0;
    if (!mla && hf_number(c, HF_HEAD_DIM) == 0 && D % N != 0)
        return hf_fail(c, c->value[HF_HEADS].key, false,
                       "%s %d does not divide %s %d, and no head size is given",
                       c->value[HF_HEADS].key, N, c->value[HF_WIDTH].key, D);
    if (!mla && K > 0 && N % K != 0)
        return hf_fail(c, c->value[HF_KV_HEADS].key, false, "%s %d does not divide %s %d",
                       c->value[HF_KV_HEADS].key, K, c->value[HF_HEADS].key, N);
    if (hf_number(c, HF_LAYERS) > SM_MAX_LAYERS)
        return hf_fail(c, c->value[HF_LAYERS].key, false,
                       "%s is %d; at most %d layers are supported", c->value[HF_LAYERS].key,
                       hf_number(c, HF_LAYERS), SM_MAX_LAYERS);
    /* the product of heads and head size is an int everywhere */
    double product = (double)N * hf_number(c, HF_HEAD_DIM);
    if (product > INT_MAX)
        return hf_fail(c, c->value[HF_HEAD_DIM].key, false,
                       "%s x %s is %.4g; at most %d is supported", c->value[HF_HEADS].key,
                       c->value[HF_HEAD_DIM].key, product, INT_MAX);
    return SM_OK;
}

static sm_status check_experts(const hf_config *c) {
    int E = hf_number(c, HF_EXPERTS), k = hf_number(c, HF_TOP_K);
    if (E > 0 && k > E)
        return hf_fail(c, c->value[HF_TOP_K].key, false, "%s is %d, but there are %d experts",
                       c->value[HF_TOP_K].key, k, E);
    if (E > 0 && k == 0)
        return hf_fail(c, c->value[HF_EXPERTS].key, false,
                       "there are %d experts, but no %s says how many a token uses", E,
                       c->value[HF_TOP_K].key ? c->value[HF_TOP_K].key : "field");
    return SM_OK;
}

/* A list that says something of every layer has as many entries as there are layers. */
static sm_status check_lists(const hf_config *c) {
    static const hf_field per_layer[] = {HF_LAYER_TYPES,  HF_NO_ROPE_LAYERS, HF_LOCAL_PATTERN,
                                         HF_FULL_PATTERN, HF_MOE_PATTERN,    HF_MLP_TYPES};
    for (size_t i = 0; i < sizeof per_layer / sizeof *per_layer; i++) {
        const hf_value *v = &c->value[per_layer[i]];
        uint32_t n = json_is(v->json, IS_LIST) ? v->json->n : 0;
        if (n > 0 && (int)n != hf_number(c, HF_LAYERS))
            return hf_fail(c, v->key, false, "%s has %u entries for %d layers", v->key, n,
                           hf_number(c, HF_LAYERS));
    }
    return SM_OK;
}

/* The words of a per-layer list that are understood. */
static sm_status check_words(const hf_config *c, hf_field field, const char *const *known,
                             size_t n) {
    char shown[48];
    const json_value *list = c->value[field].json;
    for (uint32_t i = 0; json_is(list, IS_LIST) && i < list->n; i++) {
        const char *word = list->item[i].text;
        bool good = false;
        for (size_t j = 0; j < n; j++) good = good || strcmp(word, known[j]) == 0;
        if (good) continue;
        const char *near = sm_nearest(word, strlen(word), known, n);
        return json_fail(
            &list->item[i],
            "a layer of type \"%s\" is not understood; the nearest known one is \"%s\"",
            hf_shown(word, shown, sizeof shown), near ? near : known[0]);
    }
    return SM_OK;
}

static sm_status check_types(const hf_config *c) {
    static const char *const layers[] = {"full_attention", "sliding_attention",
                                         "chunked_attention"};
    static const char *const mlps[] = {"dense", "sparse"};
    sm_status status = check_words(c, HF_LAYER_TYPES, layers, sizeof layers / sizeof *layers);
    return status == SM_OK ? check_words(c, HF_MLP_TYPES, mlps, sizeof mlps / sizeof *mlps)
                           : status;
}

/* layer_types, where it is given, outweighs the rule of the family. */
static bool is_local(const hf_config *c, int layer) {
    bool wide = hf_number(c, HF_WINDOW) == 0 && hf_number(c, HF_CHUNK) == 0;
    if (wide) return false;
    if (hf_given_by_layer(c, HF_LAYER_TYPES))
        return strcmp(hf_listed_word(c, HF_LAYER_TYPES, layer), "full_attention") != 0;
    return c->family->local && c->family->local(c, layer);
}

static bool is_sparse(const hf_config *c, int layer) {
    if (hf_number(c, HF_EXPERTS) == 0) return false;
    if (hf_given_by_layer(c, HF_MLP_TYPES))
        return strcmp(hf_listed_word(c, HF_MLP_TYPES, layer), "sparse") == 0;
    return c->family->sparse && c->family->sparse(c, layer);
}

static int or_else(int value, int otherwise) { return value > 0 ? value : otherwise; }

static void set_mlp(const hf_config *c, bool sparse, sm_layer_kind *k) {
    k->mlp = c->family->mlp;
    k->mlp_bias = c->family->all_biases || hf_number(c, HF_MLP_BIAS);
    if (!sparse) {
        k->F = or_else(hf_number(c, HF_DENSE_FF), hf_number(c, HF_FF));
        return;
    }
    k->E = hf_number(c, HF_EXPERTS);
    k->k_top = hf_number(c, HF_TOP_K);
    k->F_expert = or_else(hf_number(c, HF_EXPERT_FF), hf_number(c, HF_FF));
    k->E_shared = hf_number(c, HF_SHARED_EXPERTS);
    k->F_shared = k->E_shared > 0 ? or_else(hf_number(c, HF_SHARED_FF), k->F_expert) : 0;
    k->shared_gate = c->family->shared_gate && k->E_shared > 0;
    k->router_bias = c->family->router_bias;
    k->expert_bias = c->family->expert_bias;
}

static sm_layer_kind make_layer(const hf_config *c, int layer) {
    sm_layer_kind k = {0};
    bool local = is_local(c, layer), sparse = is_sparse(c, layer);
    bool biased = c->family->all_biases || hf_number(c, HF_ATTENTION_BIAS);
    k.attention = SM_ATTENTION_GQA;
    k.N = hf_number(c, HF_HEADS);
    k.K = or_else(hf_number(c, HF_KV_HEADS), k.N);
    k.H = or_else(hf_number(c, HF_HEAD_DIM), hf_number(c, HF_WIDTH) / k.N);
    k.V_head = or_else(hf_number(c, HF_V_HEAD_DIM), k.H);
    k.window = local && !hf_number(c, HF_CHUNK) ? hf_number(c, HF_WINDOW) : 0;
    k.chunk = local ? hf_number(c, HF_CHUNK) : 0;
    k.qkv_bias = biased || c->family->qkv_bias || hf_number(c, HF_QKV_BIAS);
    k.o_bias = biased;
    set_mlp(c, sparse, &k);
    k.norms = c->family->norms;
    k.parallel = c->family->parallel;
    if (c->family->adapt) c->family->adapt(c, layer, local, sparse, &k);
    return k;
}

#define SAME(field) (a->field == b->field)

static bool same_kind(const sm_layer_kind *a, const sm_layer_kind *b) {
    return SAME(attention) && SAME(N) && SAME(K) && SAME(H) && SAME(V_head) && SAME(window) &&
           SAME(chunk) && SAME(q_rank) && SAME(kv_rank) && SAME(rope_H) && SAME(nope_H) &&
           SAME(qkv_bias) && SAME(o_bias) && SAME(qk_norm) && SAME(qk_norm_q) && SAME(qk_norm_k) &&
           SAME(kv_shared) && SAME(k_equals_v) && SAME(has_sinks) && SAME(mlp) && SAME(F) &&
           SAME(mlp_bias) && SAME(E) && SAME(k_top) && SAME(F_expert) && SAME(E_shared) &&
           SAME(F_shared) && SAME(shared_gate) && SAME(router_bias) && SAME(expert_bias) &&
           SAME(parallel) && SAME(norms) && SAME(extra_params);
}

static sm_status build_layers(const hf_config *c, sm_model *m) {
    for (int i = 0; i < m->L; i++) {
        sm_layer_kind k = make_layer(c, i);
        int kind = 0;
        while (kind < m->kinds && !same_kind(&m->kind[kind], &k)) kind++;
        if (kind == SM_MAX_LAYER_KINDS)
            return hf_fail(c, c->value[HF_LAYERS].key, false,
                           "the layers are of more than %d kinds", SM_MAX_LAYER_KINDS);
        if (kind == m->kinds) m->kind[m->kinds++] = k;
        assert(kind < m->kinds);
        m->layer[i] = (uint8_t)kind;
    }
    return SM_OK;
}

/* What is not quantised is stored as dtype says; 16 bits where it is silent. */
static sm_dtype float_type(const hf_config *c) {
    const char *name = json_text(hf_key(c, "dtype"));
    if (!name) name = json_text(hf_key(c, "torch_dtype"));
    if (name && strstr(name, "float32")) return SM_FP32;
    return name && strcmp(name, "float16") == 0 ? SM_FP16 : SM_BF16;
}

static sm_status count_stored(const hf_config *c, sm_model *m) {
    const json_value *json = hf_key(c, "quantization_config");
    quantization q = {.method = ""};
    sm_dtype type = float_type(c);
    if (!json) json = hf_key(c, "compression_config");
    bool given = json && json->kind != IS_NULL;
    sm_status status = given ? quantization_read(json, c->root->in->arena, &q) : SM_OK;
    if (status) return status;
    stored_count(m, given ? &q : NULL, sm_dtype_bytes(type));
    if (!m->stored.quantised) m->stored.type = type;
    return SM_OK;
}

static const char *note_of(const hf_config *c) {
    bool wrapped = c->object != c->root, mtp = hf_number(c, HF_MTP_LAYERS) > 0;
    if (wrapped && mtp)
        return "counts the language model alone: vision or audio parts and multi-token prediction "
               "layers are left out";
    if (wrapped)
        return "counts the language model alone: vision or audio parts of the checkpoint are left "
               "out";
    return mtp ? "multi-token prediction layers of the checkpoint are left out" : "";
}

static void set_whole(const hf_config *c, sm_model *m) {
    const hf_family *f = c->family;
    m->D = hf_number(c, HF_WIDTH);
    m->L = hf_number(c, HF_LAYERS);
    m->V = hf_number(c, HF_VOCAB);
    m->max_seq = hf_number(c, HF_MAX_SEQ);
    m->position_D = m->D;
    m->embed_D = or_else(hf_number(c, HF_EMBED_DIM), m->D);
    m->tied = hf_number(c, HF_TIED) != 0;
    m->lm_head_bias = f->lm_head_bias;
    m->norm = f->norm;
    m->norm_bias = f->norm_bias;
    m->embed_norm = f->embed_norm;
    m->final_norm = f->final_norm;
    m->causal = true;
    m->active_omits_embedding = f->active_omits_embedding;
    m->note = note_of(c);
}

/* Anything but "default", under the old name or the new. */
static bool stretches(const json_value *rope) {
    const char *type = json_text(json_get(rope, "rope_type"));
    if (!type) type = json_text(json_get(rope, "type"));
    return json_is(rope, IS_OBJECT) && rope->n > 0 && (!type || strcmp(type, "default") != 0);
}

/* The number of a key, what is usual where the file is silent, and 0 for what is no such number (a
 * list by layer, say): only running the model needs it, which refuses that. */
static double positive(const hf_config *c, const char *key, double family, double usual) {
    const json_value *json = json_get(c->object, key);
    /* transformers 5 writes all of the keys rope_* there */
    if (!json) json = json_get(json_get(c->object, "rope_parameters"), key);
    double value = json_number(json);
    if (!json || json->kind == IS_NULL) return family > 0 ? family : usual;
    return value > 0 && isfinite(value) ? value : 0;
}

sm_status hf_build(const hf_config *c, sm_model *model) {
    sm_error inner;
    sm_status (*const checks[])(const hf_config *) = {check_heads, check_experts, check_lists,
                                                      check_types, c->family->refuse};
    sm_status status = SM_OK;
    for (size_t i = 0; !status && i < sizeof checks / sizeof *checks; i++)
        status = checks[i] ? checks[i](c) : SM_OK;
    if (status) return status;
    set_whole(c, model);
    status = build_layers(c, model);
    if (status != SM_OK) return status;
    const hf_family *f = c->family;
    const char *activation = json_text(c->value[HF_ACTIVATION].json);
    snprintf(model->activation, sizeof model->activation, "%s", activation ? activation : "");
    model->rope_theta = positive(c, "rope_theta", f->rope_theta, 10000);
    model->norm_epsilon = positive(c, "rms_norm_eps", f->norm_epsilon, 1e-6);
    model->odd_positions = model->rope_theta <= 0 ||
                           stretches(json_get(c->object, "rope_parameters")) ||
                           stretches(json_get(c->object, "rope_scaling"));
    model->scaled = positive(c, "embedding_multiplier", 0, 1) != 1 ||
                    positive(c, "residual_multiplier", 0, 1) != 1 ||
                    positive(c, "logits_scaling", 0, 1) != 1;
    if (c->family->finish) c->family->finish(c, model);
    /* "dense", "moe", and before it "local" or "global" where a model mixes both. */
    bool mixed = false;
    for (int i = 0; i < model->kinds; i++)
        mixed = mixed || model->kind[i].window > 0 || model->kind[i].chunk > 0;
    for (int i = 0; i < model->kinds; i++) {
        sm_layer_kind *k = &model->kind[i];
        const char *reach = k->chunk > 0                ? "chunked "
                            : k->window > 0             ? "local "
                            : mixed && model->kinds > 1 ? "global "
                                                        : "";
        const char *mlp = k->E == 0 ? "dense" : k->F > 0 ? "dense+moe" : "moe";
        snprintf(k->name, sizeof k->name, "%s%s%s", reach, mlp, k->kv_shared ? " reuse" : "");
    }
    status = sm_model_check(model, &inner);
    return status == SM_OK ? count_stored(c, model) : hf_fail(c, "", false, "%s", inner.sentence);
}
