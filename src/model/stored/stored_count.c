/* The bytes of a checkpoint: each matrix under the name that checkpoints give it, in the format
 * that the quantization_config has for it. Norms, biases, routers and embeddings are never
 * quantised. */
#include "stored.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double stored_bytes(const stored_format *f, double rows, double columns) {
    double down = f->block_rows > 0 ? ceil(rows / f->block_rows) : 1;
    double across = f->block_columns > 0 ? ceil(columns / f->block_columns) : 1;
    return rows * columns * f->bits / 8 + down * across * (f->scale_bytes + f->zero_bits / 8) +
           columns * f->column_bytes + f->matrix_bytes;
}

typedef struct counter {
    const sm_model *model;
    const quantization *q;
    double float_bytes;
    long steps;
    int layer;
    double bytes, params; /* of what is being counted */
    double of_type[SM_DTYPE_COUNT];
} counter;

static bool any_matches(counter *c, const char *const *pattern, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (pattern_matches(c->q->syntax, pattern[i], name, &c->steps)) return true;
    return false;
}

static bool names_all(const stored_group *g) {
    for (int i = 0; i < g->targets; i++)
        if (strcmp(g->target[i], "Linear") == 0) return true;
    return false;
}

/* NULL: as it was. A group that names the module goes before one of all matrices. */
static const stored_format *format_of(counter *c, const char *name) {
    const quantization *q = c->q;
    if (!q || q->unknown || any_matches(c, q->skip, q->skips, name)) return NULL;
    for (int i = 0; i < q->groups; i++)
        if (any_matches(c, q->group[i].target, q->group[i].targets, name))
            return &q->group[i].format;
    for (int i = 0; i < q->groups; i++)
        if (names_all(&q->group[i])) return &q->group[i].format;
    return NULL;
}

static void add_matrix(counter *c, const char *name, double rows, double columns, double copies,
                       bool fixed) {
    const stored_format *f = fixed ? NULL : format_of(c, name);
    double params = rows * columns * copies;
    bool kept = !f || f->bits >= 8 * c->float_bytes;
    c->bytes += kept ? params * c->float_bytes : copies * stored_bytes(f, rows, columns);
    c->params += params;
    if (!kept) c->of_type[f->type] += params;
}

static void add(counter *c, const char *module, double rows, double columns) {
    char name[96];
    snprintf(name, sizeof name, "layers.%d.%s", c->layer, module);
    bool fixed = c->q && c->q->experts_only;
    if (rows > 0 && columns > 0) add_matrix(c, name, rows, columns, 1, fixed);
}

static void add_attention(counter *c, const sm_layer_kind *k) {
    double D = c->model->D, N = k->N, v = k->V_head > 0 ? k->V_head : k->H;
    if (k->attention == SM_ATTENTION_MLA) {
        double qk = (double)k->nope_H + k->rope_H;
        if (k->q_rank > 0) add(c, "self_attn.q_a_proj", k->q_rank, D);
        if (k->q_rank > 0) add(c, "self_attn.q_b_proj", N * qk, k->q_rank);
        else add(c, "self_attn.q_proj", N * qk, D);
        add(c, "self_attn.kv_a_proj_with_mqa", (double)k->kv_rank + k->rope_H, D);
        add(c, "self_attn.kv_b_proj", N * (k->nope_H + v), k->kv_rank);
    } else {
        add(c, "self_attn.q_proj", N * k->H, D);
        add(c, "self_attn.k_proj", k->kv_shared ? 0 : (double)k->K * k->H, D);
        add(c, "self_attn.v_proj", k->kv_shared || k->k_equals_v ? 0 : k->K * v, D);
    }
    add(c, "self_attn.o_proj", D, N * v);
}

static void add_mlp(counter *c, const sm_layer_kind *k, const char *name, double F) {
    char module[64];
    double D = c->model->D;
    for (int i = k->mlp == SM_MLP_GATED ? 0 : 1; F > 0 && i < 3; i++) {
        static const char *const parts[] = {"gate_proj", "up_proj", "down_proj"};
        snprintf(module, sizeof module, "%s.%s", name, parts[i]);
        if (i < 2) add(c, module, F, D);
        else add(c, module, D, F);
    }
}

static void add_experts(counter *c, const sm_layer_kind *k) {
    char name[96];
    double D = c->model->D, F = k->F_expert;
    for (int i = k->mlp == SM_MLP_GATED ? 0 : 1; i < 3; i++) {
        static const char *const parts[] = {"gate_proj", "up_proj", "down_proj"};
        snprintf(name, sizeof name, "layers.%d.mlp.experts.0.%s", c->layer, parts[i]);
        add_matrix(c, name, i < 2 ? F : D, i < 2 ? D : F, k->E, false);
    }
}

typedef struct sum {
    double bytes, params;
} sum;

static sum taken(counter *c) {
    sum s = {c->bytes, c->params};
    c->bytes = c->params = 0;
    return s;
}

/* Matrices of routed experts, then all else of a layer. */
static void count_layer(counter *c, const sm_layer_kind *k, sum *experts, sum *other) {
    double all = sm_layer_params(c->model, k, false);
    if (k->E > 0) add_experts(c, k);
    sum routed = taken(c);
    add_attention(c, k);
    add_mlp(c, k, "mlp", k->F);
    add_mlp(c, k, k->shared_gate ? "mlp.shared_expert" : "mlp.shared_experts",
            k->E > 0 ? (double)k->E_shared * k->F_shared : 0);
    sum rest = taken(c);
    rest.bytes += (all - routed.params - rest.params) * c->float_bytes;
    experts->bytes += routed.bytes;
    experts->params += routed.params;
    other->bytes += rest.bytes;
    other->params += all - routed.params;
}

static double mean(sum s, double otherwise) {
    return s.params > 0 ? s.bytes / s.params : otherwise;
}

void stored_count(sm_model *m, const quantization *q, double float_bytes) {
    sm_stored *out = &m->stored;
    counter c = {.model = m, .q = q, .float_bytes = float_bytes, .steps = PATTERN_MOST_STEPS};
    sum experts[SM_MAX_LAYER_KINDS] = {{0, 0}}, other[SM_MAX_LAYER_KINDS] = {{0, 0}};
    sm_params p = sm_model_params(m);
    double layers = 0;
    *out =
        (sm_stored){.type = SM_BF16, .method = q ? q->method : "", .quantised = q && !q->unknown};
    for (int l = 0; l < m->L; l++) {
        int k = m->layer[l];
        c.layer = l;
        count_layer(&c, &m->kind[k], &experts[k], &other[k]);
    }
    for (int k = 0; k < m->kinds; k++) {
        m->kind[k].expert_bytes = mean(experts[k], float_bytes);
        m->kind[k].other_bytes = mean(other[k], float_bytes);
        out->bytes += experts[k].bytes + other[k].bytes;
        layers += experts[k].params + other[k].params;
    }
    if (p.unembedding > 0)
        add_matrix(&c, "lm_head", m->V, m->embed_D > 0 ? m->embed_D : m->D, 1,
                   !q || !q->with_head || q->experts_only);
    sum head = taken(&c);
    out->head = mean(head, float_bytes);
    out->bytes += head.bytes + (p.total - layers - head.params) * float_bytes;
    for (int t = 0; t < SM_DTYPE_COUNT; t++)
        if (c.of_type[t] > c.of_type[out->type]) out->type = (sm_dtype)t;
}
