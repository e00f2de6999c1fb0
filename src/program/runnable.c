/* What of a model the runtime (run_train.h) has no kernel for: `run train` refuses it, and so does
 * `train --as-run`. */
#include "scalemodel/program.h"

#include <string.h>

/* ---- lines ---- */

static const char *odd_attention(const sm_text_lines *l, const sm_text_line *line) {
    if (line->scores > 2) return "scores of more than two products";
    if (line->distance >= 0) return "attention that adds distances";
    if (line->over >= 0) return "attention to chosen keys";
    if (!line->causal) return "attention in both directions";
    return l->array[line->operand[1].array].piece >= 0 ? "keys and values of another layer" : NULL;
}

/* Each operator takes the last values, and one is left. */
static bool has_a_value(const sm_text_line *line) {
    int n = 0;
    if (line->operands > SM_MAX_INPUTS || line->terms > SM_RUN_TERMS) return false;
    for (int t = 0; t < line->terms; t++, n++) {
        const sm_term *term = &line->term[t];
        if (term->kind != SM_TERM_OPERATOR) continue;
        if (term->arguments > SM_RUN_ARGUMENTS || term->arguments > n) return false;
        n -= term->arguments;
    }
    return n == 1;
}

static const char *odd_expression(const sm_text_lines *l, const sm_text_line *line) {
    if (!has_a_value(line)) return "a line of more than 24 operators";
    for (int t = 0; t < line->terms; t++) {
        sm_operator op = line->term[t].op;
        bool operates = line->term[t].kind == SM_TERM_OPERATOR;
        bool runs = op <= SM_OPERATOR_SQUARE || op == SM_OPERATOR_ROTARY ||
                    op == SM_OPERATOR_RMSNORM || op == SM_OPERATOR_LAYERNORM ||
                    op == SM_OPERATOR_L2NORM;
        if (operates && !runs) return "an expression with a softmax or a mask";
    }
    for (int i = 0; i < line->operands; i++) {
        const sm_text_array *a = &l->array[line->operand[i].array];
        if (a->piece >= 0 && a->role != SM_TEXT_WEIGHT) return "arrays of another layer";
    }
    return NULL;
}

/* A table [Np,D] of rows for the positions [T,D]. */
static bool positions(const sm_text_lines *l, const sm_text_line *line) {
    const sm_text_array *made = &l->array[line->result[0].array];
    return made->rank == 2 && l->array[line->operand[0].array].rank == 2 &&
           l->dim[made->dim[0]].role == SM_DIMENSION_POSITIONS;
}

static const char *choice_odd(const sm_text_lines *l, const sm_text_line *line) {
    const sm_text_array *p = &l->array[line->operand[0].array];
    return l->dim[p->dim[p->rank - 1]].size > SM_RUN_EXPERTS ? "more than 1024 experts" : NULL;
}

static const char *line_odd(const sm_text_lines *l, const sm_text_line *line) {
    const sm_text_array *first = line->operands ? &l->array[line->operand[0].array] : NULL;
    if (line->kernel >= 0) return NULL; /* see scan_odd */
    switch (line->op) {
    case SM_OPERATOR_EXPRESSION: return odd_expression(l, line);
    case SM_OPERATOR_ATTENTION: return odd_attention(l, line);
    case SM_OPERATOR_PRODUCT:
        return line->operands > 2 ? "products of three and more arrays" : NULL;
    case SM_OPERATOR_TOP: return choice_odd(l, line);
    case SM_OPERATOR_TAKE:
        return !first || first->role != SM_TEXT_WEIGHT     ? "rows of activations"
               : line->operands < 2 && !positions(l, line) ? "a table of other rows than positions"
                                                           : NULL;
    case SM_OPERATOR_CONV:
        return line->operands == 2 && l->array[line->operand[1].array].role == SM_TEXT_WEIGHT
                   ? NULL
                   : "a convolution whose taps are made";
    case SM_OPERATOR_CACHE:
    case SM_OPERATOR_DISPATCH:
    case SM_OPERATOR_COMBINE:
    case SM_OPERATOR_SAMPLE:
    case SM_OPERATOR_CROSS_ENTROPY: return NULL;
    default: return "an operator without a kernel";
    }
}

/* ---- scans ---- */

int sm_step_argument(const sm_text_lines *l, const sm_text_kernel *op, int i,
                     const sm_text_lines *steps, const sm_text_kernel *k) {
    const char *name = l->array[op->operand[i]].name;
    for (int n = 0; n < k->operands; n++)
        if (strcmp(steps->array[k->operand[n]].name, name) == 0) return k->operand[n];
    return -1;
}

static const char *scan_odd(const sm_text_lines *l, const sm_text_lines *steps) {
    if (l->kernels != steps->kernels) return "a scan without a step of its own";
    for (int i = 0; i < steps->kernels; i++) {
        const sm_text_kernel *k = &steps->kernel[i];
        if (k->operands != l->kernel[i].operands || k->results != 1 || k->lines > SM_RUN_LINES)
            return "a kernel of several results or very many lines";
        for (int n = 0; n < k->operands; n++)
            if (sm_step_argument(l, &l->kernel[i], n, steps, k) < 0)
                return "a scan whose step reads other arrays";
        int states = 0;
        for (int n = k->from; n < k->from + k->lines; n++) {
            const sm_text_line *line = &steps->line[n];
            states += line->op == SM_OPERATOR_STATE;
            bool runs = line->op == SM_OPERATOR_STATE || line->op == SM_OPERATOR_CARRY ||
                        line->op == SM_OPERATOR_VIEW || line->op == SM_OPERATOR_EXPRESSION ||
                        (line->op == SM_OPERATOR_PRODUCT && line->operands == 2 && !line->causal);
            if (!runs || line->terms > SM_RUN_TERMS) return "a kernel that is no recurrence";
            for (int t = 0; t < line->terms; t++)
                if (line->term[t].kind == SM_TERM_OPERATOR &&
                    line->term[t].op > SM_OPERATOR_SQUARE && line->term[t].op != SM_OPERATOR_CARRY)
                    return "a kernel that is no recurrence";
            if (line->op == SM_OPERATOR_STATE &&
                steps->dim[line->along].role != SM_DIMENSION_POSITIONS)
                return "a scan that has chunks alone";
        }
        if (states > SM_RUN_STATES) return "a scan of more states than four";
    }
    return NULL;
}

/* ---- models ---- */

/* A table of positions has a row for each. */
static sm_status check_positions(const sm_model *model, const sm_text_lines *l, int tokens,
                                 sm_error *err) {
    double first = 0;
    sm_architecture_number(model->architecture, "first_position", &first);
    for (int i = 0; i < l->lines; i++) {
        const sm_text_line *line = &l->line[i];
        if (line->op != SM_OPERATOR_TAKE || line->operands > 1) continue;
        double rows = l->dim[line->operand[0].dim[0]].size - first;
        if (rows < tokens)
            return sm_fail(err, SM_BAD_INPUT,
                           "%s has a table of %.0f positions, and %d are asked for", model->name,
                           rows, tokens);
    }
    return SM_OK;
}

static sm_status check_piece(const sm_model *model, sm_piece piece, int kind, int tokens,
                             bool serving, sm_arena *arena, sm_error *err) {
    const sm_text_lines *l, *steps = NULL;
    const sm_rules rules = {.decode = serving}, decode = {.decode = true};
    sm_status status =
        sm_program_lines(model, piece, kind, tokens, &rules, serving, arena, &l, err);
    if (!status && l->kernels)
        status = sm_program_lines(model, piece, kind, tokens, &decode, true, arena, &steps, err);
    const char *scan = !status && steps ? scan_odd(l, steps) : NULL;
    if (scan)
        return sm_fail(err, SM_BAD_INPUT, "%s has %s, in the kernel %s, which cannot be run",
                       model->name, scan, l->kernel[0].name);
    for (int i = 0; !status && i < l->lines; i++) {
        const char *odd = line_odd(l, &l->line[i]);
        if (odd)
            return sm_fail(err, SM_BAD_INPUT, "%s has %s, in the line %s, which cannot be run",
                           model->name, odd, l->line[i].name);
    }
    return status ? status : check_positions(model, l, tokens, err);
}

sm_status sm_program_runs(const sm_model *model, int tokens, bool serving, sm_error *err) {
    const char *unrun = sm_architecture_word(model->architecture, "unrun");
    if (unrun)
        return sm_fail(err, SM_BAD_INPUT, "%s has %s, which cannot be run", model->name, unrun);
    if (model->outside != 2)
        return sm_fail(err, SM_BAD_INPUT,
                       "%s has %d pieces outside of its layers, which cannot be run: a model that "
                       "can has an embedding and a head",
                       model->name, model->outside);
    sm_arena *arena = sm_arena_new();
    sm_status status = arena ? SM_OK : sm_fail_memory(err);
    for (int k = 0; !status && k < model->kinds; k++)
        status = check_piece(model, SM_PIECE_LAYER, k, tokens, serving, arena, err);
    if (!status) status = check_piece(model, SM_PIECE_EMBEDDING, 0, tokens, serving, arena, err);
    if (!status) status = check_piece(model, SM_PIECE_HEAD, 0, tokens, serving, arena, err);
    sm_arena_free(arena);
    return status;
}
