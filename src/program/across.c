/* What parts of a model share that a pipeline may part: arrays that one makes and others than the
 * next one read, and weights of which several hold a copy. */
#include "program_parts.h"

/* ---- the parts of a model, by the numbers of sm_step_layer ---- */

int sm_model_list(const sm_model *m, int part) {
    if (part >= 0 && part < m->L) return m->layer[part];
    return m->kinds + (part < 0 ? 0 : part == m->L ? m->outside - 1 : part - m->L);
}

/* What stands between layers comes before the one it stands before. */
static int order_of(const sm_model *m, int part) {
    return part > m->L ? 2 * m->out[part - m->L].before : part < 0 ? part : 2 * part + 1;
}

static int last_part(const sm_model *m) { return m->L + m->outside - 2; }

static int part_of(const sm_model *m, int piece) {
    const sm_model_piece *all;
    int part = -1;
    for (int i = 0; i < m->outside; i++)
        if (m->out[i].piece == piece) return i == 0 ? -1 : i == m->outside - 1 ? m->L : m->L + i;
    sm_architecture_pieces(m->architecture, &all);
    for (int i = 0; i <= piece; i++) part += all[i].layer >= 0 && !all[i].apart;
    return part;
}

bool sm_model_stands_before(const sm_model *m, int part, int layer) {
    return order_of(m, part) < 2 * layer;
}

/* ---- arrays ---- */

/* Where a stack ends the next piece that reads no stream begins another one. */
static int begins_behind(const sm_model *m, const sm_program *const *program, int piece) {
    for (int i = 1; i < m->outside - 1; i++) {
        const sm_program *b = program[m->kinds + i];
        if (b->input < 0 && !b->still && m->out[i].piece > piece) return m->L + i;
    }
    return m->L;
}

sm_status sm_program_loans(const sm_model *m, const sm_program *const *program, int *n,
                           sm_loan *loan, sm_error *err) {
    *n = 0;
    for (int part = -1; part <= last_part(m); part++) {
        const int list = sm_model_list(m, part);
        const sm_program *b = program[list];
        const sm_tensor *read = b->lent < 0 ? NULL : &b->tensor[b->lent];
        int i = 0;
        if (!read) continue;
        while (i < *n && (loan[i].of != read->of || loan[i].there != read->there)) i++;
        if (i == SM_MOST_LOANS)
            return sm_fail_limit(err, "arrays that later layers read", i + 1, SM_MOST_LOANS);
        if (i == *n) {
            int by = read->there < 0 ? begins_behind(m, program, read->of) : part_of(m, read->of);
            loan[(*n)++] = (sm_loan){read->of, read->there, by, part, list};
        }
        if (order_of(m, part) > order_of(m, loan[i].last)) loan[i].last = part;
    }
    return SM_OK;
}

bool sm_loan_crosses(const sm_model *m, const sm_loan *loan, int layer) {
    return sm_model_stands_before(m, loan->by, layer) &&
           !sm_model_stands_before(m, loan->last, layer);
}

int sm_loans_widest(const sm_model *m, const sm_loan *loan, int n) {
    int widest = 0, most = 0;
    for (int layer = 1; n && layer < m->L; layer++) {
        int crossing = 0;
        for (int i = 0; i < n; i++) crossing += sm_loan_crosses(m, &loan[i], layer);
        if (crossing > most) most = crossing, widest = layer;
    }
    return widest;
}

/* ---- weights ---- */

/* As which tensor it is a part's; -1: not. */
static int held_as(const sm_stage *s, int part, const sm_tie *tie) {
    const int list = sm_model_list(s->model, part);
    const sm_program *b = s->list[list].program;
    bool own = !b->still && list >= s->model->kinds &&
               s->model->out[list - s->model->kinds].piece == tie->of;
    if (own) return b->tensor_of[tie->there];
    for (int k = 0; k < b->tensors; k++)
        if (b->tensor[k].tied && b->tensor[k].of == tie->of && b->tensor[k].there == tie->there)
            return k;
    return -1;
}

int sm_stage_first_of(const sm_stage *s, const sm_tensor *tied, int *as) {
    const sm_tie tie = {.of = tied->of, .there = tied->there};
    int first = s->model->L;
    for (int part = last_part(s->model); part >= -1; part--)
        if (order_of(s->model, part) <= order_of(s->model, first) && held_as(s, part, &tie) >= 0)
            first = part;
    *as = held_as(s, first, &tie);
    return first;
}

static int chunk_of(const sm_stage *s, int part) {
    int c = sm_stage_model_chunks(s) - 1;
    while (c > 0 && sm_model_stands_before(s->model, part, s->chunk[c].first)) c--;
    return c;
}

/* Where the model is there twice both stages of a chunk sum what they hold. */
static int stage_of(const sm_stage *s, int part) {
    const sm_train_chunk *first = &s->chunk[chunk_of(s, part)];
    const sm_train_chunk *again = first + (s->copies - 1) * sm_stage_model_chunks(s);
    return first->stage < again->stage ? first->stage : again->stage;
}

bool sm_stage_holds(const sm_stage *s, int stage, int tie) {
    for (int part = -1; part <= last_part(s->model); part++)
        if (held_as(s, part, &s->tie[tie]) >= 0 && stage_of(s, part) == stage) return true;
    return false;
}

static bool is_parted(const sm_stage *s, const sm_tensor *tied) {
    const sm_tie tie = {.of = tied->of, .there = tied->there};
    int as, first = stage_of(s, sm_stage_first_of(s, tied, &as));
    for (int part = -1; part <= last_part(s->model); part++)
        if (held_as(s, part, &tie) >= 0 && stage_of(s, part) != first) return true;
    return false;
}

sm_status stage_ties(sm_stage *s, sm_error *err) {
    for (int l = 0; s->chunks && l < s->model->kinds + s->model->outside; l++)
        for (int k = 0; k < s->list[l].program->tensors; k++) {
            const sm_tensor *w = &s->list[l].program->tensor[k];
            int i = 0;
            while (i < s->ties && (s->tie[i].of != w->of || s->tie[i].there != w->there)) i++;
            if (!w->tied || i < s->ties || !is_parted(s, w)) continue;
            if (i == SM_MOST_TIES)
                return sm_fail_limit(err, "weights that stages share", i + 1, SM_MOST_TIES);
            s->tie[s->ties++] = (sm_tie){.of = w->of, .there = w->there};
        }
    if (!s->ties || s->copies < 2) return SM_OK;
    return sm_fail(err, SM_BAD_INPUT,
                   "two copies of the model need whoever holds a tied weight on one stage");
}

int stage_tie_of(const sm_stage *s, const sm_step_layer *layer, int tensor) {
    for (int i = 0; i < s->ties; i++)
        if (held_as(s, layer->number, &s->tie[i]) == tensor) return i + 1;
    return 0;
}

sm_step_layer *sm_stage_owner(const sm_stage *s, sm_step_layer *layer, int tensor, int *as) {
    const sm_tensor *w = &layer->list->program->tensor[tensor];
    const sm_tie tie = {.of = w->of, .there = w->there};
    for (int i = 0; w->tied && i < s->layers; i++)
        if ((*as = held_as(s, s->layer[i].number, &tie)) >= 0) return &s->layer[i];
    *as = tensor;
    return layer;
}

bool sm_stage_is_copy(const sm_stage *s, const sm_step_layer *layer, int tensor) {
    int as;
    sm_step_layer *own = &s->layer[layer - s->layer];
    return sm_stage_owner(s, own, tensor, &as) != layer;
}
