/* The programs of a training run and their tasks on its mesh. */

#include "train_parts.h"

/* The lines of a program, which stay with the trainer. */
static sm_status read_lines(sm_trainer *t, const sm_rules *rules, sm_error *err) {
    if (t->lines[t->lists]) return SM_OK;
    if (!t->texts) t->texts = sm_arena_new();
    if (!t->texts) return sm_fail_memory(err);
    train_numbers_read(t->setup->model, t->setup->model->lines_of[t->lists], &t->numbers[t->lists]);
    return sm_program_lines(t->setup->model, t->lists, t->serving ? 0 : t->setup->tokens, rules,
                            t->texts, &t->lines[t->lists], err);
}

/* No price has blocks that change places among chips, which the low rank of adapters does where
 * tensor has more chips than there are KV heads. */
static sm_status check_moves(const sm_trainer *t, const sm_task_list *list, sm_error *err) {
    for (int i = 0; i < list->tasks; i++)
        for (int k = 0; k < list->task[i].lowering.steps; k++) {
            const sm_step *step = &list->task[i].lowering.step[k];
            if (step->kind == SM_STEP_COLLECTIVE && step->op == SM_PERMUTE)
                return sm_fail(err, SM_BAD_INPUT,
                               "%s under this plan has arrays whose blocks change places among "
                               "chips, which cannot be run",
                               t->setup->model->name);
        }
    return SM_OK;
}

/* Weights travel as they are stored, with their scales. */
static void size_weights(const sm_trainer *t, sm_program *b) {
    size_t box[SM_MAX_RANK];
    for (int i = 0; i < b->tensors; i++) {
        sm_tensor *w = &b->tensor[i];
        if (w->role != SM_ROLE_WEIGHT) continue;
        sm_element element = train_weight_element(t, t->lists, b, i, box);
        w->bytes_per_element = sm_element_scaled(element)
                                   ? sm_scaled_element_bytes(element, w->rank, box)
                                   : (double)sm_element_bytes(element);
    }
}

static sm_status new_list(sm_trainer *t, sm_piece piece, int kind, sm_error *err) {
    const sm_train_setup *s = t->setup;
    sm_rules rules = sm_rules_of_runtime(s->rules);
    if (!t->serving) rules.width = (int)sm_element_bytes(s->stored);
    rules.heads_copied = s->degree[SM_AXIS_TENSOR_W] > 1;
    sm_program b;
    double size[SM_MAX_DIMENSIONS];
    sm_status status = read_lines(t, &rules, err);
    size_t source = !status && t->serving ? sm_program_source(t->lines[t->lists]) : 0;
    if (source > t->source) t->source = source; /* rows may be left out on the way */
    if (source) rules.decode = false;           /* all of them at once, as in training */
    if (!status)
        status = t->serving ? sm_program_build_serving(s->model, piece, kind, &rules, &b, err)
                            : sm_program_build(s->model, piece, kind, s->tokens, &rules, &b, err);
    if (!status) status = train_turns_new(t, t->lists, &b, err);
    if (status) return status;
    size_weights(t, &b);
    if (piece == SM_PIECE_EMBEDDING && kind == 0 && b.input >= 0)
        t->pictures = (size_t)b.dim[b.tensor[b.input].dim[0]].size;
    if (b.lent >= 0 && b.input < 0) {
        t->seen = (size_t)b.dim[b.tensor[b.lent].dim[1]].size;
        if (t->pictures) t->each = t->seen / t->pictures;
        if (t->serving && s->pictures) t->pictures = (size_t)s->pictures; /* programs are of one */
        if (t->pictures) t->seen = t->each * t->pictures;
        while (t->side * t->side < t->each) t->side++;
    }
    sm_program_extent extent = t->extent;
    if (piece == SM_PIECE_HEAD && t->serving) extent.sequences = t->scored;
    sm_program_sizes(&b, &extent, size);
    sm_bits again = piece != SM_PIECE_LAYER ? 0
                    : s->recompute_ops      ? sm_recompute_named(&b, s->recompute_ops)
                                            : sm_recompute_set(&b, s->recompute);
    assert(t->lists < TRAIN_LISTS);
    sm_task_list *list = &t->list[t->lists++];
    status = sm_task_list_new(&b, &t->mesh->mesh, size, again, s->regather, list, err);
    return status ? status : check_moves(t, list, err);
}

/* Where two stacks read words, the first has the first of a sequence, as many as it has positions.
 */
static sm_status find_source(sm_trainer *t, sm_error *err) {
    const sm_train_setup *s = t->setup;
    const sm_program *first = t->list[s->model->kinds].program;
    for (int i = 1; i < s->model->outside - 1; i++) {
        const sm_program *b = t->list[s->model->kinds + i].program;
        if (b->input >= 0 || b->still) continue;
        const sm_tensor *x = &first->tensor[first->output];
        for (int d = 0; d < x->rank; d++)
            if (first->dim[x->dim[d]].role == SM_DIMENSION_POSITIONS)
                t->source = (size_t)first->dim[x->dim[d]].size;
    }
    t->ahead = t->source && first->input < 0 ? t->source - 1 : 0;
    if (t->seen >= (size_t)s->tokens)
        return sm_fail(err, SM_BAD_INPUT,
                       "a picture is %zu rows of a sequence, and %d tokens leave no room for words",
                       t->seen, s->tokens);
    if (t->source && s->data_bytes < (size_t)s->tokens + t->ahead + 2)
        return sm_fail(err, SM_BAD_INPUT,
                       "%zu bytes of text are too few for %zu and %d behind them", s->data_bytes,
                       t->ahead + 1, s->tokens);
    return SM_OK;
}

sm_status train_programs_new(sm_trainer *t, sm_error *err) {
    sm_status status = train_layer_programs(t, err);
    if (!status) status = train_head_program(t, err);
    if (!status) status = find_source(t, err);
    if (status) return status;
    /* Every op to run again is one of some layer. */
    const sm_program *program[SM_MAX_LAYER_KINDS];
    size_t n;
    int kinds = t->setup->model->kinds;
    if (!t->setup->recompute_ops) return SM_OK;
    for (int k = 0; k < kinds; k++) program[k] = t->list[k].program;
    const char *odd = sm_recompute_unknown(program, kinds, t->setup->recompute_ops, &n);
    if (!odd) return SM_OK;
    return sm_fail(err, SM_BAD_INPUT, "recompute names \"%.*s\", which no layer has", (int)n, odd);
}

sm_status train_layer_programs(sm_trainer *t, sm_error *err) {
    sm_status status = SM_OK;
    t->lists = 0;
    for (int k = 0; !status && k < t->setup->model->kinds; k++)
        status = new_list(t, SM_PIECE_LAYER, k, err);
    for (int i = 0; !status && i < t->setup->model->outside - 1; i++)
        status = new_list(t, SM_PIECE_EMBEDDING, i, err);
    return status;
}

sm_status train_head_program(sm_trainer *t, sm_error *err) {
    t->lists = t->setup->model->kinds + t->setup->model->outside - 1;
    return new_list(t, SM_PIECE_HEAD, 0, err);
}

void train_programs_free(sm_trainer *t) {
    for (int i = 0; i < t->lists; i++) sm_task_list_free(&t->list[i]);
    t->lists = 0;
}
