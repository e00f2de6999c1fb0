/* hf_field: the fields of a Hugging Face config.json that say how large a Transformer is, and how a
 * family of models spells them. Private to src/model. */
#ifndef SCALEMODEL_MODEL_HF_FIELD_H
#define SCALEMODEL_MODEL_HF_FIELD_H
#include "scalemodel/model.h"
#include "scalemodel/text.h"

#include "json_tree.h"

/* What a field means, whatever a family calls it. */
typedef enum hf_field {
    HF_WIDTH,
    HF_LAYERS,
    HF_HEADS,
    HF_KV_HEADS,
    HF_HEAD_DIM,
    HF_V_HEAD_DIM,
    HF_FF,
    HF_VOCAB,
    HF_MAX_SEQ,
    HF_EMBED_DIM,
    HF_TIED,
    HF_ACTIVATION,
    HF_ATTENTION_BIAS,
    HF_QKV_BIAS,
    HF_MLP_BIAS,
    HF_EXPANSION,
    HF_LEARNED_POSITIONS,
    HF_NORM_AFFINE,
    HF_NORM_FIRST,
    HF_LAYER_NORM,
    HF_GATED,
    HF_NORMS,
    HF_FINAL_NORM,
    HF_CAUSAL,
    HF_NO_FINAL_NORM,
    HF_QK_NORM,
    HF_MULTI_QUERY,
    HF_NEW_DECODER,
    HF_PARALLEL,
    HF_PARALLEL_NORMS,
    HF_WINDOW,
    HF_WINDOW_ON,
    HF_WINDOW_FROM,
    HF_WINDOW_EVERY,
    HF_LAYER_TYPES,
    HF_CHUNK,
    HF_NO_ROPE_LAYERS,
    HF_LOCAL_PATTERN,
    HF_FULL_PATTERN,
    HF_LOCAL_HEADS,
    HF_LOCAL_KV_HEADS,
    HF_LOCAL_HEAD_DIM,
    HF_LOCAL_V_HEAD_DIM,
    HF_LOCAL_SINKS,
    HF_GLOBAL_SINKS,
    HF_GLOBAL_KV_HEADS,
    HF_GLOBAL_HEAD_DIM,
    HF_K_EQUALS_V,
    HF_KV_SHARED,
    HF_Q_RANK,
    HF_KV_RANK,
    HF_ROPE_DIM,
    HF_NOPE_DIM,
    HF_EXPERTS,
    HF_TOP_K,
    HF_EXPERT_FF,
    HF_SHARED_EXPERTS,
    HF_SHARED_FF,
    HF_MOE_FROM,
    HF_MOE_EVERY,
    HF_MOE_PATTERN,
    HF_MOE_LAYERS,
    HF_DENSE_LAYERS,
    HF_MLP_TYPES,
    HF_DENSE_FF,
    HF_MOE_ON,
    HF_MTP_LAYERS,
    HF_ALIBI,
    HF_ATTENTION_TYPE,
    HF_BIASED,
    HF_UNBIASED,
    HF_PER_LAYER_INPUT,
    HF_PER_LAYER_VOCAB,
    HF_PER_LAYER,
    HF_WIDE_MLP,
    HF_NESTED,
    HF_UNUSED,
    HF_FIELDS
} hf_field;

/* How the value is written. Absent is not null: an absent field takes its default, null means
 * "none" (0). */
typedef enum hf_type {
    HF_SIZE,    /* a whole number of at least 1, or null where the default is not HF_REQUIRED */
    HF_COUNT,   /* a whole number of at least 0 */
    HF_FLAG,    /* true or false */
    HF_NAME,    /* an activation whose shape is known */
    HF_TEXT,    /* any text */
    HF_NUMBERS, /* a list of whole numbers */
    HF_NUMBERS_OR_COUNT,
    HF_WORDS,     /* a list of texts */
    HF_OFF,       /* understood only as off: null, false, 0 or empty */
    HF_OVERRIDES, /* sizes of single layers */
    HF_OBJECT,    /* an object whose keys are fields themselves */
    HF_ANY        /* known, and without effect in this family */
} hf_type;

enum { HF_REQUIRED = -1, HF_NONE = 0 };

/* The largest number read: four times it is still an int. */
enum { HF_LARGEST = 1 << 28 };

/* One spelling of a field in one family. */
typedef struct hf_rule {
    const char *key;
    hf_field field;
    hf_type type;
    int absent; /* the default of the family, HF_NONE or HF_REQUIRED */
} hf_rule;

typedef struct hf_value {
    bool given;             /* written in the file and not null */
    int number;             /* sizes, counts, flags */
    const char *key;        /* the spelling it came by, or the first one the family knows */
    const json_value *json; /* lists and texts */
} hf_value;

typedef struct hf_family hf_family;

/* A config under reading. */
typedef struct hf_config {
    const json_value *root, *object; /* the document; in it, the config of the language model */
    const json_value *at;            /* the object under reading: that, or an HF_OBJECT in it */
    const hf_family *family;
    hf_value value[HF_FIELDS];
    sm_error *err;
} hf_config;

enum { HF_MAX_GROUPS = 8 };

/* A family of models: how its configs are spelled, and what no field of them says. */
struct hf_family {
    const char *name;                    /* the usual model_type */
    const char *model_types;             /* all of them, space separated */
    const char *architectures;           /* used when model_type is missing */
    const hf_rule *rules[HF_MAX_GROUPS]; /* lists that end in a rule without a key */
    sm_mlp mlp;
    sm_norm norm;
    bool norm_bias;
    int norms; /* per layer */
    bool final_norm, embed_norm, parallel, lm_head_bias;
    bool all_biases, qkv_bias, expert_bias, router_bias, shared_gate;
    bool active_omits_embedding;
    double rope_theta, norm_epsilon;               /* where a config is silent; 0: 10000, 1e-6 */
    bool (*local)(const hf_config *c, int layer);  /* does the window apply here? NULL: never */
    bool (*sparse)(const hf_config *c, int layer); /* has this layer experts? NULL: never */
    void (*adapt)(const hf_config *c, int layer, bool local, bool sparse, sm_layer_kind *kind);
    void (*finish)(const hf_config *c, sm_model *model);
    sm_status (*refuse)(const hf_config *c); /* combinations that are not understood */
};

/* The family of a model_type or an architecture, NULL if unknown. */
const hf_family *hf_family_of_type(const char *type);
const hf_family *hf_family_of_architecture(const char *name);
/* All model_types, for the nearest name; returns how many. */
size_t hf_family_names(const char **names, size_t room);

int hf_number(const hf_config *c, hf_field field);
bool hf_given(const hf_config *c, hf_field field);
int hf_every(const hf_config *c, hf_field field); /* a period: at least 1 */
/* Element of a list field, 0 beyond its end. */
int hf_listed_number(const hf_config *c, hf_field field, int i);
/* Is a per-layer list there? An empty one is not. */
bool hf_given_by_layer(const hf_config *c, hf_field field);
bool hf_lists(const hf_config *c, hf_field field, int number); /* is the number in the list? */
const char *hf_listed_word(const hf_config *c, hf_field field, int i); /* "" beyond its end */

/* A key of the config; of the wrapper around it where that speaks for its text model. */
const json_value *hf_key(const hf_config *c, const char *key);
/* Read every key of the object by the rules of the family. */
sm_status hf_read_fields(hf_config *c);
/* An error at a key of the object under reading (or at the object that lacks it). */
sm_status hf_fail(const hf_config *c, const char *key, bool of_key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Keys that no family needs. hf_key_matters: the name suggests a size or work, so it must not be
 * passed over. */
bool hf_key_is_known_harmless(const char *key);
bool hf_key_matters(const char *key);
/* A key as it may stand in a sentence: cut, control characters replaced. */
const char *hf_shown(const char *key, char *out, size_t size);

/* From the values to the architecture. */
sm_status hf_build(const hf_config *c, sm_model *model);
#endif
