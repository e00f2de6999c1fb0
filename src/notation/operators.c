/* The table of operators, and the words that configs use for activations. */
#include "tree.h"

const sm_operator_row *sm_operator_at(sm_operator op) {
    static const sm_operator_row rows[] = {
#define X(id, name, least, most, shape, flops, linear, reads)                                      \
    {name, least, most, SM_SHAPE_##shape, flops, linear, reads},
        SM_OPERATORS(X)
#undef X
    };
    return &rows[op];
}

int operator_find(const char *name) {
    for (int i = SM_OPERATOR_SILU; i < SM_OPERATOR_COUNT; i++)
        if (strcmp(sm_operator_at((sm_operator)i)->name, name) == 0) return i;
    return -1;
}

/* transformers' names (ACT2FN). */
int operator_find_activation(const char *word) {
    static const struct {
        const char *word;
        sm_operator op;
    } known[] = {
        {"silu", SM_OPERATOR_SILU},
        {"swish", SM_OPERATOR_SILU},
        {"mish", SM_OPERATOR_SILU},
        {"swigluoai", SM_OPERATOR_SILU}, /* clamped */
        {"gelu", SM_OPERATOR_GELU},
        {"gelu_new", SM_OPERATOR_GELU_TANH},
        {"gelu_fast", SM_OPERATOR_GELU_TANH},
        {"gelu_10", SM_OPERATOR_GELU_TANH},
        {"gelu_python", SM_OPERATOR_GELU},
        {"gelu_python_tanh", SM_OPERATOR_GELU_TANH},
        {"gelu_pytorch_tanh", SM_OPERATOR_GELU_TANH},
        {"gelu_accurate", SM_OPERATOR_GELU_TANH},
        {"quick_gelu", SM_OPERATOR_GELU_QUICK},
        {"laplace", SM_OPERATOR_GELU},
        {"relu", SM_OPERATOR_RELU},
        {"relu6", SM_OPERATOR_RELU},
        {"leaky_relu", SM_OPERATOR_RELU},
        {"relu2", SM_OPERATOR_SQUARE},
        {"relu_2", SM_OPERATOR_SQUARE},
        {"squared_relu", SM_OPERATOR_SQUARE},
        {"tanh", SM_OPERATOR_TANH},
        {"sigmoid", SM_OPERATOR_SIGMOID},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].word, word) == 0) return (int)known[i].op;
    return -1;
}
