/* The architecture a measured row names, written as a config of the family "transformer" and read
 * as any other config is; models and their programs are shared by rows. */
#include <assert.h>
#include <string.h>

#include "scalemodel/json.h"
#include "scalemodel/page.h"
#include "truth_parts.h"

const char *row_shape_of(const sm_row_model *stated, int vocabulary, row_shape *shape) {
    sm_row_model *m = &shape->of;
    const char *stored; /* a column of the row says it */
    if (stated->not_modelled && stated->not_modelled[0]) return stated->not_modelled;
    const sm_catalogue_entry *known =
        stated->layers > 0 ? NULL : sm_catalogue_of_id(stated->name, &stored);
    *shape = (row_shape){.max_seq = 0}; /* shapes are compared byte for byte */
    if (known) {
        m->name = known->name;
        shape->config = known->config_json;
        return NULL;
    }
    *m = *stated;
    m->notes = m->not_modelled = NULL;
    m->params_b = 0;
    if (m->layers <= 0) return "layers not stated";
    if (m->layers > SM_MAX_LAYERS) return "more layers than a model can have";
    if (m->d_model <= 0) return "d_model not stated";
    if (m->heads <= 0) return "heads not stated";
    if (m->experts <= 0 && m->d_ff <= 0) return "d_ff not stated";
    if (m->experts > 0 && m->d_ff_expert <= 0) return "expert width not stated";
    if (m->experts > 0 && m->top_k <= 0) return "experts per token not stated";
    if (m->kv_lora > 0 && (m->nope_dim <= 0 || m->v_dim <= 0)) return "MLA head sizes not stated";
    if (m->experts <= 0) m->experts = m->top_k = m->d_ff_expert = m->shared_experts = 0;
    if (m->kv_lora <= 0) m->q_lora = m->kv_lora = m->nope_dim = m->rope_dim = m->v_dim = 0;
    m->vocab = or_else(m->vocab, vocabulary);
    m->kv_heads = m->kv_lora > 0 ? m->heads : or_else(m->kv_heads, m->heads);
    m->d_head = or_else(m->d_head, m->d_model / m->heads);
    m->d_ff = or_else(m->d_ff_dense_layers, m->d_ff);
    /* GPT models of Megatron tie their embeddings; gated ones of the LLaMA line do not */
    if (m->tied == SM_UNSTATED) m->tied = m->gated_mlp == SM_NO ? SM_YES : SM_NO;
    return NULL;
}

/* Of layers that alternate sources count the dense ones, too: they are not the first then. */
static bool is_dense(const sm_row_model *m, int layer) {
    const int step = m->moe_layer_step;
    return step > 1 ? (layer + 1) % step != 0 : layer < m->first_dense_layers;
}

/* All but every so many; or those of a window or of linear attention lie evenly between the others,
 * every second of gpt-oss; or all. */
static bool is_local(const sm_row_model *m, int layer) {
    const int local = m->sliding_layers + m->linear_layers, all = local + m->full_layers;
    if (m->global_every > 0) return layer % m->global_every != m->global_every - 1;
    return all <= 0 || (layer + 1) * (long)local / all > layer * (long)local / all;
}

/* A layer of linear attention keeps a state of H x H for each head, as many numbers as H cached
 * keys. */
static int window_of(const sm_row_model *m) {
    if (m->chunk > 0 || m->linear_layers <= 0 || m->sliding_layers > 0)
        return m->chunk > 0 ? 0 : m->sliding_window;
    return m->kv_lora > 0 ? m->nope_dim + m->rope_dim : m->d_head;
}

static void put_layers(sm_report *r, sm_data *config, const char *key, const sm_row_model *m,
                       bool (*is)(const sm_row_model *, int), const char *word, const char *other) {
    sm_data *list = sm_put_array(r, config, key);
    for (int l = 0; l < m->layers; l++) sm_put(r, list, NULL, is(m, l) ? word : other);
}

static sm_data *config_of(sm_report *r, const row_shape *shape) {
    const sm_row_model *m = &shape->of;
    const struct {
        const char *key;
        int value; /* what is 0 the row does not have, and the config does not say */
    } sizes[] = {
        {"hidden_size", m->d_model},
        {"num_hidden_layers", m->layers},
        {"vocab_size", m->vocab},
        {"max_position_embeddings", shape->max_seq},
        {"num_attention_heads", m->heads},
        {"num_key_value_heads", m->kv_heads},
        {"head_dim", m->kv_lora > 0 ? 0 : m->d_head},
        {"intermediate_size", m->d_ff},
        {"num_experts", m->experts},
        {"num_experts_per_tok", m->top_k},
        {"moe_intermediate_size", m->d_ff_expert},
        {"n_shared_experts", m->shared_experts},
        {"q_lora_rank", m->q_lora},
        {"kv_lora_rank", m->kv_lora},
        {"qk_nope_head_dim", m->nope_dim},
        {"qk_rope_head_dim", m->rope_dim},
        {"v_head_dim", m->v_dim},
        {"sliding_window", window_of(m)},
        {"attention_chunk_size", m->chunk},
        {"num_nextn_predict_layers", m->mtp_layers},
    };
    const bool gated = m->gated_mlp != SM_NO;
    sm_data *config = sm_data_object(r->arena);
    sm_put(r, config, "model_type", "transformer");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value > 0) sm_put(r, config, sizes[i].key, sizes[i].value);
    sm_put(r, config, "gated_mlp|layer_norm|use_parallel_residual|tie_word_embeddings", gated,
           (bool)!gated, (bool)(m->parallel_block == SM_YES), (bool)(m->tied == SM_YES));
    if (m->experts > 0) put_layers(r, config, "mlp_layer_types", m, is_dense, "dense", "sparse");
    if (window_of(m) > 0 || m->chunk > 0)
        put_layers(r, config, "layer_types", m, is_local, "sliding_attention", "full_attention");
    return config;
}

/* false as row_models_take. */
static bool read_model(const row_shape *s, sm_arena *arena, sm_model *model, const char **why) {
    sm_error err = {0};
    char *text = NULL;
    size_t length;
    *why = NULL;
    sm_report r = {.arena = arena};
    const sm_data *config = s->config ? NULL : config_of(&r, s);
    if (r.out_of_memory ||
        (config && sm_json_format(config, SM_JSON_LINE, arena, &text, &length, &err)))
        return false;
    sm_source source =
        s->config ? sm_source_of(s->of.name, s->config) : (sm_source){s->of.name, text, length};
    sm_status status = sm_model_parse(NULL, NULL, &source, arena, model, &err);
    if (status == SM_BAD_INPUT) *why = "the architecture as stated is not consistent";
    return status == SM_OK;
}

/* ---- models that rows share ---- */

/* Models that nobody holds; jobs of one model that wait for the next row. */
enum { MOST_UNUSED = 32, MOST_WAITING = 2 };

typedef struct entry {
    sm_model model;  /* first: what takers hold */
    row_shape shape; /* its name is a copy */
    sm_arena *arena;
    int users;
    sm_train *train[MOST_WAITING]; /* the last put back first */
    sm_serve *serve;               /* that others share the programs of; NULL: none yet */
    struct entry *next;
} entry;

struct row_models {
    entry *first; /* the last taken */
};

row_models *row_models_new(void) { return sm_calloc(1, sizeof(row_models)); }

static void free_entry(entry *e) {
    for (int i = 0; i < MOST_WAITING; i++) sm_train_free(e->train[i]);
    sm_serve_free(e->serve);
    sm_arena_free(e->arena);
}

void row_models_free(row_models *m) {
    for (entry *e = m ? m->first : NULL, *next; e; e = next) {
        next = e->next;
        free_entry(e);
    }
    sm_free(m);
}

/* Byte for byte: shapes that differ in padding alone are read twice, alike. */
static bool is_of(const entry *e, const row_shape *shape) {
    row_shape key = *shape;
    key.of.name = e->shape.of.name;
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
    return memcmp(&key, &e->shape, sizeof key) == 0 &&
           strcmp(shape->of.name, e->shape.of.name) == 0;
}

/* Of those that nobody holds the latest are kept. */
static void let_go(row_models *m) {
    int unused = 0;
    for (entry **at = &m->first; *at;) {
        entry *e = *at;
        if (e->users > 0 || ++unused <= MOST_UNUSED) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        free_entry(e);
    }
}

static entry *new_entry(const row_shape *shape, const char **why) {
    sm_arena *arena = sm_arena_new();
    entry *e = arena ? sm_arena_alloc(arena, sizeof *e) : NULL;
    char *name = e ? sm_arena_copy(arena, shape->of.name, strlen(shape->of.name)) : NULL;
    *why = NULL;
    if (!name || !read_model(shape, arena, &e->model, why)) {
        sm_arena_free(arena);
        return NULL;
    }
    memcpy(&e->shape, shape, sizeof *shape);
    e->shape.of.name = name;
    e->arena = arena;
    return e;
}

bool row_models_take(row_models *m, const row_shape *shape, const sm_model **out,
                     const char **why) {
    entry **at = &m->first, *e;
    *why = NULL;
    while ((e = *at) != NULL && !is_of(e, shape)) at = &e->next;
    if (e) *at = e->next;
    else if ((e = new_entry(shape, why)) == NULL) return false;
    e->next = m->first;
    m->first = e;
    e->users++;
    *out = &e->model;
    return true;
}

/* The model is the first of its entry. */
static entry *entry_of(const sm_model *model) { return (entry *)(uintptr_t)model; }

void row_models_drop(row_models *m, const sm_model *model) {
    if (!model) return;
    assert(entry_of(model)->users > 0);
    if (--entry_of(model)->users == 0) let_go(m);
}

/* ---- jobs that rows share ---- */

sm_status row_train_borrow(const sm_job *job, sm_train **out, sm_error *err) {
    entry *e = entry_of(job->model);
    *out = NULL;
    for (int i = 0; i < MOST_WAITING; i++) {
        if (!e->train[i] || sm_train_length(e->train[i]) != job->seq) continue;
        sm_status status = sm_train_change(e->train[i], job, err);
        if (status) return status;
        *out = e->train[i];
        e->train[i] = NULL;
        return SM_OK;
    }
    return sm_train_new(job, out, err);
}

void row_train_return(const sm_model *model, sm_train *train) {
    if (!train) return;
    entry *e = entry_of(model);
    sm_train_free(e->train[MOST_WAITING - 1]);
    memmove(&e->train[1], &e->train[0], (MOST_WAITING - 1) * sizeof(sm_train *));
    e->train[0] = train;
}

sm_status row_serve_new(const sm_serve_job *job, sm_serve **out, sm_error *err) {
    entry *e = entry_of(job->model);
    sm_serve_job own = *job;
    *out = NULL;
    sm_status status = e->serve ? SM_OK : sm_serve_new(job, &e->serve, err);
    own.like = e->serve;
    return status ? status : sm_serve_new(&own, out, err);
}
