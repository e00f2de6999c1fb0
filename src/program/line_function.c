/* What the expression of a line computes, as those see it who run or price it. */
#include "program_parts.h"

#include <string.h>

/* act(g), act(g) * u; norm(x); rotary(x), rotary(norm(x)); x + y. */
sm_function program_function_of(const sm_text_line *line) {
    int norms = 0, turns = 0, acts = 0, sums = 0, times = 0, others = 0;
    for (int i = 0; i < line->terms; i++) {
        if (line->term[i].kind == SM_TERM_NUMBER) others++;
        if (line->term[i].kind != SM_TERM_OPERATOR) continue;
        sm_operator op = line->term[i].op;
        if (op == SM_OPERATOR_RMSNORM || op == SM_OPERATOR_LAYERNORM || op == SM_OPERATOR_L2NORM)
            norms++;
        else if (op == SM_OPERATOR_ROTARY) turns++;
        else if (op >= SM_OPERATOR_SILU && op <= SM_OPERATOR_SQUARE) acts++;
        else if (op == SM_OPERATOR_ADD) sums++;
        else if (op == SM_OPERATOR_MULTIPLY) times++;
        else others++;
    }
    if (others) return SM_FUNCTION_OTHER;
    if (turns == 1 && !acts && !sums && !times) return SM_FUNCTION_ROTATE;
    if (norms == 1 && !turns && !acts && !sums && !times) return SM_FUNCTION_NORM;
    bool first = line->terms > 1 && line->term[1].kind == SM_TERM_OPERATOR;
    if (acts == 1 && first && times == line->operands - 1 && !norms && !turns && !sums)
        return SM_FUNCTION_GATE;
    if (sums == line->operands - 1 && !norms && !turns && !acts && !times) return SM_FUNCTION_ADD;
    return SM_FUNCTION_OTHER;
}

/* x * f(others): the value before the last term, a product of two, is made without the first. */
bool program_scales_first(const sm_text_line *line) {
    int last = line->terms - 1, values = 0;
    const sm_term *t = line->term;
    if (last < 2 || t[0].kind != SM_TERM_ARRAY || t[0].operand != 0) return false;
    if (t[last].kind != SM_TERM_OPERATOR || t[last].op != SM_OPERATOR_MULTIPLY) return false;
    for (int i = 1; i < last; i++) {
        if (t[i].kind == SM_TERM_ARRAY && t[i].operand == 0) return false;
        values += t[i].kind == SM_TERM_OPERATOR ? 1 - t[i].arguments : 1;
        if (values < 1) return false; /* it took the first */
    }
    return values == 1 && t[last].arguments == 2;
}

bool sm_line_adds_to_stream(const sm_text_lines *l, const sm_text_line *line) {
    if (l->input < 0 || line->operands != 2 || line->terms != 3) return false;
    const char *stream = l->array[l->input].name;
    const char *first = l->array[line->operand[0].array].name;
    const char *made = l->array[line->result[0].array].name;
    size_t n = strcspn(stream, ".");
    return strncmp(first, stream, n) == 0 && strcspn(first, ".") == n &&
           strncmp(made, stream, n) == 0 && strcspn(made, ".") == n;
}
