/* What of a model the runtime (run_train.h) has no kernel for: `run train` refuses it, and so does
 * `train --as-run`. */
#include "scalemodel/program.h"

#include <string.h>

/* ---- lines ---- */

/* Does the family say that its lines are all there is? `held` has its name: those of encoders often
 * are true in work and size alone. */
static bool is_held(const sm_model *model, int kind) {
    const sm_architecture *a = model->architecture;
    const char *held =
        kind < 0 ? sm_architecture_word(a, "held") : sm_architecture_word_of(a, kind, "held");
    const char *family = kind < 0 ? sm_architecture_family(a) : sm_architecture_family_of(a, kind);
    size_t n = strlen(family);
    for (const char *at = held; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL)
        if (strncmp(at, family, n) == 0 && (at[n] == ' ' || !at[n])) return true;
    return false;
}

/* Served, are all keys there before the first token, of a text that a stack has read? */
static bool reads_all(const sm_text_lines *l, const sm_text_line *line) {
    const sm_mention *keys = &line->operand[1];
    for (int d = 0; d < l->array[keys->array].rank; d++) {
        const sm_text_dim *dim = &l->dim[keys->dim[d]];
        if (dim->role == SM_DIMENSION_KEYS && dim->size > 1) return true;
    }
    return false;
}

static const char *odd_attention(const sm_text_lines *l, const sm_text_line *line, bool serving) {
    if (line->scores > 2) return "scores of more than two products";
    if (line->over >= 0) return "attention to chosen keys";
    if (serving && !line->causal && !reads_all(l, line))
        return "attention to tokens that are not there yet";
    return l->array[line->operand[1].array].piece >= 0 ? "keys and values of another layer" : NULL;
}

/* What an earlier stack passes on is read as it is, by products; what a layer makes, as its own. */
static bool borrows(const sm_text_lines *l, const sm_text_line *line) {
    for (int i = 0; i < line->operands; i++) {
        const sm_text_array *a = &l->array[line->operand[i].array];
        if (a->piece >= 0 && a->there < 0 && a->role == SM_TEXT_ACTIVATION) return true;
    }
    return false;
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
                    op == SM_OPERATOR_SINES || op == SM_OPERATOR_TEMPERED ||
                    op == SM_OPERATOR_RMSNORM || op == SM_OPERATOR_LAYERNORM ||
                    op == SM_OPERATOR_L2NORM;
        if (operates && !runs) return "an expression with a softmax or a mask";
    }
    return borrows(l, line) ? "arrays of another layer" : NULL;
}

/* A table [Np,D] of rows for the positions [T,D]. */
static bool positions(const sm_text_lines *l, const sm_text_line *line) {
    const sm_text_array *made = &l->array[line->result[0].array];
    return made->rank == 2 && l->array[line->operand[0].array].rank == 2 &&
           l->dim[made->dim[0]].role == SM_DIMENSION_POSITIONS;
}

static const char *line_odd(const sm_text_lines *l, const sm_text_line *line, bool held,
                            bool serving) {
    const sm_text_array *first = line->operands ? &l->array[line->operand[0].array] : NULL;
    if (line->kernel >= 0) return NULL; /* see scan_odd */
    switch (line->op) {
    case SM_OPERATOR_EXPRESSION: return odd_expression(l, line);
    case SM_OPERATOR_ATTENTION: return odd_attention(l, line, serving);
    case SM_OPERATOR_PRODUCT:
        return line->operands > 2                           ? "products of three and more arrays"
               : serving && borrows(l, line) && !line->once ? "arrays of another stack in each step"
                                                            : NULL;
    case SM_OPERATOR_TOP:
        return first && l->dim[first->dim[first->rank - 1]].size > SM_RUN_EXPERTS
                   ? "more than 1024 experts"
                   : NULL;
    case SM_OPERATOR_TAKE:
        return !first || (first->role != SM_TEXT_WEIGHT && first->rank != 3) ? "rows of activations"
               : line->operands < 2 && !positions(l, line) ? "a table of other rows than positions"
                                                           : NULL;
    case SM_OPERATOR_CONV:
        return line->operands == 2 && l->array[line->operand[1].array].role == SM_TEXT_WEIGHT
                   ? NULL
                   : "a convolution whose taps are made";
    case SM_OPERATOR_WINDOWS:
        return first && first->rank == 3 && l->array[line->result[0].array].rank == 4
                   ? NULL
                   : "windows of two dimensions";
    case SM_OPERATOR_APPEND: /* texts that are true in size alone stack arrays as they like */
    case SM_OPERATOR_VIEW:
    case SM_OPERATOR_MEAN:
    case SM_OPERATOR_PICK:
        return held && l->array[line->result[0].array].rank > 2 ? NULL
                                                                : "an operator without a kernel";
    case SM_OPERATOR_CACHE:
    case SM_OPERATOR_DISPATCH:
    case SM_OPERATOR_COMBINE:
    case SM_OPERATOR_SAMPLE:
    case SM_OPERATOR_CROSS_ENTROPY: return NULL;
    default: return "an operator without a kernel";
    }
}

/* ---- scans ---- */

static bool line_recurs(const sm_text_lines *l, const sm_text_line *line, bool chunks) {
    bool runs = line->op == SM_OPERATOR_STATE || line->op == SM_OPERATOR_CARRY ||
                line->op == SM_OPERATOR_DECAYS || line->op == SM_OPERATOR_VIEW ||
                line->op == SM_OPERATOR_EXPRESSION ||
                (line->op == SM_OPERATOR_PRODUCT && line->operands == 2 && !line->causal) ||
                (chunks && (line->op == SM_OPERATOR_SUM || line->op == SM_OPERATOR_CUMSUM ||
                            line->op == SM_OPERATOR_INVERSE));
    if (line->op == SM_OPERATOR_STATE) /* along positions, or chunks of them */
        runs = l->dim[line->along].role == SM_DIMENSION_POSITIONS;
    for (int t = 0; runs && t < line->terms; t++) {
        sm_operator op = line->term[t].op;
        runs = line->term[t].kind != SM_TERM_OPERATOR || op == SM_OPERATOR_CARRY ||
               op <= (chunks ? SM_OPERATOR_BELOW : SM_OPERATOR_SQUARE);
    }
    return runs && (line->terms == 0 || has_a_value(line));
}

static const char *scan_odd(const sm_text_lines *l) {
    for (int i = 0; i < l->kernels; i++) {
        const sm_text_kernel *k = &l->kernel[i];
        int states = 0, along = -1;
        if (k->results != 1 || k->lines > SM_RUN_LINES)
            return "a kernel of several results or very many lines";
        for (int n = k->from; n < k->from + k->lines; n++) {
            states += l->line[n].op == SM_OPERATOR_STATE;
            if (l->line[n].op == SM_OPERATOR_STATE) along = l->line[n].along;
        }
        if (states > SM_RUN_STATES) return "a scan of more states than four";
        const sm_text_array *first = &l->array[k->operand[0]];
        bool chunks = first->rank > 1 && first->dim[1] != along;
        for (int n = k->from; n < k->from + k->lines; n++)
            if (!line_recurs(l, &l->line[n], chunks)) return "a kernel that is no recurrence";
    }
    return NULL;
}

/* ---- models ---- */

size_t sm_program_source(const sm_text_lines *l) {
    double most = 1;
    for (int d = 0; l->output >= 0 && d < l->array[l->output].rank; d++) {
        const sm_text_dim *dim = &l->dim[l->array[l->output].dim[d]];
        if (dim->role == SM_DIMENSION_POSITIONS && dim->size > most) most = dim->size;
    }
    return most > 1 ? (size_t)most : 0;
}

/* A table of positions has a row for each. */
static sm_status check_positions(const sm_model *model, const sm_text_lines *l, int tokens,
                                 bool serving, sm_error *err) {
    double first = 0;
    sm_architecture_number(model->architecture, "first_position", &first);
    for (int i = 0; i < l->lines; i++) {
        const sm_text_line *line = &l->line[i];
        if (line->op != SM_OPERATOR_TAKE || line->operands > 1) continue;
        double rows = l->dim[line->operand[0].dim[0]].size - first;
        double read = l->dim[line->result[0].dim[0]].size;
        double asked = serving && read <= 1 ? tokens : read;
        if (rows < asked)
            return sm_fail(err, SM_BAD_INPUT,
                           "%s has a table of %.0f positions, and %.0f are asked for", model->name,
                           rows, asked);
    }
    return SM_OK;
}

static sm_status check_piece(const sm_model *model, sm_piece piece, int kind, int tokens,
                             bool serving, sm_arena *arena, sm_error *err) {
    const sm_text_lines *l;
    const sm_rules rules = sm_rules_of_pass(model, tokens);
    const int at = sm_program_at(model, piece, kind);
    const bool held = is_held(model, model->lines_of[at]);
    sm_status status = sm_program_lines(model, at, serving ? 0 : tokens, &rules, arena, &l, err);
    const char *scan = status ? NULL : scan_odd(l);
    double most = 0;
    sm_architecture_number(model->architecture, "distance_most", &most);
    if (scan)
        return sm_fail(err, SM_BAD_INPUT, "%s has %s, in the kernel %s, which cannot be run",
                       model->name, scan, l->kernel[0].name);
    for (int i = 0; !status && i < l->lines; i++) {
        const sm_text_line *line = &l->line[i];
        const char *odd = line_odd(l, line, held, serving);
        if (!odd && line->distance >= 0 && !(most > 0))
            odd = "a table of distances, whose family does not say the largest (`distance_most`)";
        if (!odd && line->op == SM_OPERATOR_ATTENTION && !line->causal && !held)
            odd = "attention to all positions, whose family does not say that its lines are all of "
                  "it (`held`)";
        if (odd)
            return sm_fail(err, SM_BAD_INPUT, "%s has %s, in the line %s, which cannot be run",
                           model->name, odd, l->line[i].name);
    }
    return status ? status : check_positions(model, l, tokens, serving, err);
}

/* `pools`: what makes one of all positions stands behind what the class gives of each. */
bool sm_model_pools(const sm_model *model) {
    double pools = 0;
    sm_architecture_number(model->architecture, "pools", &pools);
    return pools > 0 && sm_model_reads(model);
}

bool sm_model_reads(const sm_model *model) { return !model->causal && !sm_model_stacked(model); }

sm_rules sm_rules_of_pass(const sm_model *model, int tokens) {
    bool reads = sm_model_reads(model);
    return (sm_rules){.decode = !reads, .read = reads ? tokens : 0};
}

/* Words come in, a loss or a choice of words goes out, and in between everything passes on. Served,
 * a model may end in what it makes of each position. */
static sm_status check_ends(const sm_model *model, int tokens, bool serving, sm_arena *arena,
                            sm_error *err) {
    const sm_rules rules = sm_rules_of_pass(model, tokens);
    const char *odd = model->outside < 2 ? "no head" : NULL;
    bool words = false;
    sm_status status = SM_OK;
    for (int i = 0; !status && !odd && i < model->outside; i++) {
        const sm_text_lines *l;
        status =
            sm_program_lines(model, model->kinds + i, serving ? 0 : tokens, &rules, arena, &l, err);
        if (status) return status;
        sm_operator last = l->lines ? l->line[l->lines - 1].op : SM_OPERATOR_EXPRESSION;
        bool ends = last == SM_OPERATOR_CROSS_ENTROPY || last == SM_OPERATOR_SAMPLE;
        bool head = i == model->outside - 1, told = head && serving && !sm_model_stacked(model);
        if (ends != head && !told) odd = ends ? "two heads" : "a head without a loss";
        for (int k = 0; k < l->arrays; k++) words |= l->array[k].role == SM_TEXT_IDS;
        if (ends && told && sm_model_reads(model)) odd = "words for places, behind which none come";
        else if (ends && !words) odd = "inputs that are no words";
        else if (!ends && l->output < 0) odd = "a piece that ends in nothing";
    }
    return odd ? sm_fail(err, SM_BAD_INPUT, "%s has %s, which cannot be run", model->name, odd)
               : status;
}

sm_status sm_program_runs(const sm_model *model, int tokens, bool serving, sm_error *err) {
    const char *unrun = sm_architecture_word(model->architecture, "unrun");
    if (unrun)
        return sm_fail(err, SM_BAD_INPUT, "%s has %s, which cannot be run", model->name, unrun);
    if (!model->causal && !is_held(model, -1))
        return sm_fail(err, SM_BAD_INPUT,
                       "%s sees both ways, and the family %s does not say that its lines are all "
                       "of it (`held`): it cannot be run",
                       model->name, sm_architecture_family(model->architecture));
    sm_arena *arena = sm_arena_new();
    sm_status status = arena ? SM_OK : sm_fail_memory(err);
    if (!status) status = check_ends(model, tokens, serving, arena, err);
    for (int k = 0; !status && k < model->kinds; k++)
        status = check_piece(model, SM_PIECE_LAYER, k, tokens, serving, arena, err);
    for (int i = 0; !status && i < model->outside - 1; i++)
        status = check_piece(model, SM_PIECE_EMBEDDING, i, tokens, serving, arena, err);
    if (!status && !(serving && sm_model_pools(model)))
        status = check_piece(model, SM_PIECE_HEAD, 0, tokens, serving, arena, err);
    sm_arena_free(arena);
    return status;
}
