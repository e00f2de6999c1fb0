/* What of a model the runtime does not execute: it knows Llama-like layers. */
#include "model_facts.h"

#include <string.h>

static const char NORMS[] = "norms other than RMS norms", EXPERTS[] = "gated or biased experts",
                  OWN[] = "parameters of its own";

typedef struct used {
    bool norm, layer_norm, rotary, activation, other_activation, multiplies, adds, sigmoid, other;
} used;

static used terms_of(const sm_text_line *line) {
    used u = {0};
    for (int i = 0; i < line->terms; i++) {
        if (line->term[i].kind != SM_TERM_OPERATOR) continue;
        switch (line->term[i].op) {
        case SM_OPERATOR_RMSNORM: u.norm = true; break;
        case SM_OPERATOR_LAYERNORM:
        case SM_OPERATOR_L2NORM: u.layer_norm = true; break;
        case SM_OPERATOR_ROTARY: u.rotary = true; break;
        case SM_OPERATOR_SILU: u.activation = true; break;
        case SM_OPERATOR_GELU:
        case SM_OPERATOR_RELU:
        case SM_OPERATOR_TANH:
        case SM_OPERATOR_SQUARE: u.other_activation = true; break;
        case SM_OPERATOR_SIGMOID: u.sigmoid = true; break;
        case SM_OPERATOR_MULTIPLY: u.multiplies = true; break;
        case SM_OPERATOR_ADD: u.adds = true; break;
        default: u.other = true; break;
        }
    }
    return u;
}

static const sm_text_array *weight_of(const sm_text_lines *l, const sm_text_line *line, int *at) {
    for (int i = 0; i < line->operands; i++) {
        *at = line->operand[i].array;
        if (l->array[*at].role == SM_TEXT_WEIGHT) return &l->array[*at];
    }
    return NULL;
}

static const char *odd_expression(const sm_text_lines *l, const sm_text_line *line) {
    used u = terms_of(line);
    int at = 0;
    const sm_text_array *w = weight_of(l, line, &at);
    bool expert = w && facts_scope_has(l, w->name, SM_DIMENSION_EXPERTS);
    if (u.layer_norm) return NORMS;
    if (u.norm && (u.rotary || (w && facts_size(l, at, SM_DIMENSION_MODEL) <= 0)))
        return "norms of queries and keys";
    if (u.norm && !w) return NORMS;
    if (u.sigmoid) return EXPERTS;
    if (w && !u.norm && expert) return EXPERTS;
    if (w && u.adds && !u.norm)
        return facts_size(l, at, SM_DIMENSION_WIDTH) > 0 ? OWN : "biases in attention";
    if (w && !u.norm) return OWN;
    if (u.other_activation && u.multiplies) return "an activation other than silu";
    if ((u.activation || u.other_activation) && !u.multiplies) return "an MLP without a gate";
    return u.other ? "an activation other than silu" : NULL;
}

static const char *odd_attention(const sm_text_lines *l, const sm_text_line *line) {
    if (line->scores > 1) return "latent attention";
    if (line->window > 0 || line->chunk > 0) return "attention within a window";
    if (line->sinks >= 0) return "attention sinks";
    if (line->capped || line->distance >= 0 || line->over >= 0) return "scores of another kind";
    if (!line->causal) return "attention in both directions";
    return l->array[line->operand[1].array].piece >= 0 ? "shared keys and values" : NULL;
}

static const char *odd_line(const sm_text_lines *l, const sm_text_line *line) {
    switch (line->op) {
    case SM_OPERATOR_EXPRESSION: return odd_expression(l, line);
    case SM_OPERATOR_ATTENTION: return odd_attention(l, line);
    case SM_OPERATOR_TOP: return line->operands > 1 ? EXPERTS : NULL;
    case SM_OPERATOR_CACHE:
        return line->operands == 2 && line->operand[0].array == line->operand[1].array
                   ? "shared keys and values"
                   : NULL;
    case SM_OPERATOR_PRODUCT:
    case SM_OPERATOR_DISPATCH:
    case SM_OPERATOR_COMBINE:
    case SM_OPERATOR_TAKE:
    case SM_OPERATOR_SAMPLE:
    case SM_OPERATOR_CROSS_ENTROPY: return NULL;
    default: return "layers of another kind";
    }
}

static const char *odd_lines(const sm_text_lines *l) {
    const char *odd = NULL;
    for (int i = 0; !odd && i < l->lines; i++) odd = odd_line(l, &l->line[i]);
    return odd;
}

static const char *odd_layer(const sm_text_lines *l, const sm_layer_kind *k) {
    enum { MOST_EXPERTS = 512 };
    bool turns = false;
    if (k->attention != SM_ATTENTION_GQA) return "latent attention";
    const char *odd = odd_lines(l);
    for (int i = 0; i < l->lines; i++) turns = turns || terms_of(&l->line[i]).rotary;
    if (odd) return odd;
    if (k->E > MOST_EXPERTS) return "more than 512 experts";
    if (k->N == 0) return "layers without attention";
    if (!turns) return "layers without rotary positions";
    return k->H % 2 ? "heads of an odd size" : NULL;
}

static bool is_said(const sm_model *m, const char *fact) {
    double value = 0;
    return sm_architecture_number(m->architecture, fact, &value) && value != 0;
}

const char *facts_odd(const sm_model *m, const model_lines *lines) {
    const sm_text_lines *embedding = lines->of[m->kinds], *head = lines->of[m->kinds + 1];
    bool normed = false;
    for (int i = 0; i < head->lines; i++) normed = normed || terms_of(&head->line[i]).norm;
    if (!m->causal) return "attention in both directions";
    for (int k = 0; k < m->kinds; k++) {
        const char *odd = odd_layer(lines->of[k], &m->kind[k]);
        if (odd) return odd;
    }
    if (embedding->lines > 1)
        return embedding->line[1].op == SM_OPERATOR_TAKE ? "learned positions"
                                                         : "a projected embedding";
    if (!normed) return NORMS;
    if (odd_lines(head)) return odd_lines(head) == NORMS ? NORMS : OWN;
    if (is_said(m, "odd_positions")) return "stretched rotary positions (rope_scaling)";
    if (is_said(m, "scaled")) return "an embedding, residuals or logits multiplied by constants";
    return NULL;
}
