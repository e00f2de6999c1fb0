/* The architecture a measured row names, written as a config of the family "transformer" and read
 * as any other config is; models and their programs are shared by rows. */
#include <assert.h>
#include <string.h>

#include "row_model.h"
#include "scalemodel/json.h"
#include "scalemodel/page.h"

static void put_layers(sm_report *r, sm_data *config, const char *key, const row_shape *s,
                       const bool *is, const char *word, const char *other) {
    sm_data *list = sm_put_array(r, config, key);
    for (int l = 0; l < s->L; l++) sm_put(r, list, NULL, is[l] ? word : other);
}

static sm_data *config_of(sm_report *r, const row_shape *s) {
    const struct {
        const char *key;
        int value; /* what is 0 the row does not have, and the config does not say */
    } sizes[] = {
        {"hidden_size", s->D},
        {"num_hidden_layers", s->L},
        {"vocab_size", s->V},
        {"max_position_embeddings", s->max_seq},
        {"num_attention_heads", s->N},
        {"num_key_value_heads", s->K},
        {"head_dim", s->kv_rank > 0 ? 0 : s->H},
        {"intermediate_size", s->F},
        {"num_experts", s->E},
        {"num_experts_per_tok", s->k_top},
        {"moe_intermediate_size", s->F_expert},
        {"n_shared_experts", s->E_shared},
        {"shared_expert_intermediate_size", s->F_shared},
        {"q_lora_rank", s->q_rank},
        {"kv_lora_rank", s->kv_rank},
        {"qk_nope_head_dim", s->nope_H},
        {"qk_rope_head_dim", s->rope_H},
        {"v_head_dim", s->V_head},
        {"sliding_window", s->window},
        {"attention_chunk_size", s->chunk},
        {"num_nextn_predict_layers", s->mtp},
    };
    sm_data *config = sm_data_object(r->arena);
    sm_put(r, config, "model_type", "transformer");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value) sm_put(r, config, sizes[i].key, sizes[i].value);
    sm_put(r, config, "gated_mlp|layer_norm|use_parallel_residual|tie_word_embeddings", s->gated,
           (bool)!s->gated, s->parallel, s->tied);
    if (s->E > 0) put_layers(r, config, "mlp_layer_types", s, s->dense, "dense", "sparse");
    if (s->window > 0 || s->chunk > 0)
        put_layers(r, config, "layer_types", s, s->local, "sliding_attention", "full_attention");
    return config;
}

bool row_model_named(const char *name, row_shape *shape) {
    const char *stored; /* a column of the row says it */
    const sm_catalogue_entry *known = name ? sm_catalogue_of_id(name, &stored) : NULL;
    if (known) *shape = (row_shape){.name = known->name, .config = known->config_json};
    return known != NULL;
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
        s->config ? sm_source_of(s->name, s->config) : (sm_source){s->name, text, length};
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
    sm_serve *serve[MOST_WAITING];
    struct entry *next;
} entry;

struct row_models {
    entry *first; /* the last taken */
};

row_models *row_models_new(void) { return sm_calloc(1, sizeof(row_models)); }

static void free_entry(entry *e) {
    for (int i = 0; i < MOST_WAITING; i++) {
        sm_train_free(e->train[i]);
        sm_serve_free(e->serve[i]);
    }
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
    key.name = e->shape.name;
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
    return memcmp(&key, &e->shape, sizeof key) == 0 && strcmp(shape->name, e->shape.name) == 0;
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
    char *name = e ? sm_arena_copy(arena, shape->name, strlen(shape->name)) : NULL;
    *why = NULL;
    if (!name || !read_model(shape, arena, &e->model, why)) {
        sm_arena_free(arena);
        return NULL;
    }
    memcpy(&e->shape, shape, sizeof *shape);
    e->shape.name = name;
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

sm_status row_serve_borrow(const sm_serve_job *job, sm_serve **out, sm_error *err) {
    entry *e = entry_of(job->model);
    *out = NULL;
    for (int i = 0; i < MOST_WAITING; i++) {
        if (!e->serve[i]) continue;
        sm_status status = sm_serve_change(e->serve[i], job, err);
        if (status) return status;
        *out = e->serve[i];
        e->serve[i] = NULL;
        return SM_OK;
    }
    return sm_serve_new(job, out, err);
}

void row_serve_return(const sm_model *model, sm_serve *serve) {
    if (!serve) return;
    entry *e = entry_of(model);
    sm_serve_free(e->serve[MOST_WAITING - 1]);
    memmove(&e->serve[1], &e->serve[0], (MOST_WAITING - 1) * sizeof(sm_serve *));
    e->serve[0] = serve;
}
