/* hf_family: the table of families, in sections, and the rules that most of them share. Private to
 * src/io. */
#ifndef SCALEMODEL_MODEL_HF_FAMILY_H
#define SCALEMODEL_MODEL_HF_FAMILY_H
#include "hf_field.h"

enum { HF_LLAMA_LIKE = 9, HF_GEMMA_LIKE = 4, HF_SPARSE = 10, HF_GPT_LIKE = 8, HF_PLAIN = 1 };
extern const hf_family hf_llama_like[HF_LLAMA_LIKE]; /* RMS norm, gated MLP, dense */
extern const hf_family hf_gemma_like[HF_GEMMA_LIKE];
extern const hf_family hf_sparse[HF_SPARSE];     /* mixtures of experts */
extern const hf_family hf_gpt_like[HF_GPT_LIKE]; /* LayerNorm, plain MLP */
extern const hf_family hf_plain[HF_PLAIN];       /* any of them */

extern const hf_rule hf_rules_core[]; /* sizes under the names most families use */
extern const hf_rule
    hf_rules_gqa[]; /* KV heads (default: all) and head size (default: width / heads) */
extern const hf_rule hf_rules_untied[];  /* tie_word_embeddings, default false */
extern const hf_rule hf_rules_tied[];    /* tie_word_embeddings, default true */
extern const hf_rule hf_rules_no_bias[]; /* attention_bias and mlp_bias, default false */
extern const hf_rule hf_rules_experts[]; /* number, top k, width of experts; required */

bool hf_in_all(const hf_config *c, int layer);
bool hf_in_even(const hf_config *c, int layer);          /* layers 0, 2, 4, ... */
bool hf_in_all_but_every(const hf_config *c, int layer); /* not in every HF_WINDOW_EVERY-th layer */
void hf_adapt_qk_norm(const hf_config *c, int layer, bool local, bool sparse,
                      sm_layer_kind *k); /* norms of H */
void hf_adapt_wide_qk_norm(const hf_config *c, int layer, bool local, bool sparse,
                           sm_layer_kind *k); /* NH and KH */
void hf_adapt_latent(const hf_config *c, int layer, bool local, bool sparse,
                     sm_layer_kind *k); /* latent attention */
#endif
