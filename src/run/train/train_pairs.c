/* Learning from pairs of answers (DPO): which bytes a batch holds, and what a token counts. The
 * loss of a pair needs -log p of both answers whole, which the ranks of a sequence add up before
 * the backward pass begins: d loss / d log p = -+ beta sigmoid(-z) / pairs, z = beta (log p/p' of
 * the first - that of the second). */
#include "train_parts.h"

/* Of all pairs, one after the other, the one that a sequence is an answer of. */
static size_t pair_number(const sm_trainer *t, size_t sequence) {
    return (size_t)t->step * (size_t)t->setup->sequences / 2 + train_sequence(t, sequence) / 2;
}

static const sm_train_pair *pair_of(const sm_trainer *t, size_t sequence) {
    return &t->setup->pair[pair_number(t, sequence) % t->setup->pairs];
}

int train_pair_byte(const sm_trainer *t, size_t sequence, size_t position) {
    const sm_train_pair *p = pair_of(t, sequence);
    size_t side = train_sequence(t, sequence) % 2;
    return position < p->bytes[side] ? p->text[side][position] : 0;
}

int train_pair_target(const sm_trainer *t, size_t sequence, size_t position) {
    const sm_train_pair *p = pair_of(t, sequence);
    bool told = position >= p->prompt && position < p->bytes[train_sequence(t, sequence) % 2];
    return told ? train_pair_byte(t, sequence, position) : -1;
}

sm_status train_pairs_new(sm_trainer *t, sm_error *err) {
    const sm_train_setup *s = t->setup;
    if (!s->pairs) return SM_OK;
    t->pairs.reference = sm_calloc(2 * s->pairs, sizeof(double));
    t->pairs.nll = sm_calloc((size_t)s->microbatch, sizeof(double));
    t->pairs.weight = sm_calloc((size_t)s->sequences, sizeof(double));
    bool there = t->pairs.reference && t->pairs.nll && t->pairs.weight;
    return there ? SM_OK : sm_fail_memory(err);
}

void train_pairs_free(sm_trainer *t) {
    sm_free(t->pairs.reference);
    sm_free(t->pairs.nll);
    sm_free(t->pairs.weight);
}

double train_weight_of(const sm_trainer *t, size_t sequence) {
    return t->setup->pairs ? t->pairs.weight[train_sequence(t, sequence)] : 1 / train_targets(t);
}

sm_axes train_within_sequence(const sm_trainer *t) {
    const unsigned batch = SM_BIT(SM_AXIS_DATA) | SM_BIT(SM_AXIS_FSDP) | SM_BIT(SM_AXIS_EXPERT);
    return sm_mesh_real_axes(&t->mesh->mesh, ((1u << SM_AXIS_COUNT) - 1) & ~batch);
}

sm_status train_pairs_told(sm_trainer *t, sm_error *err) {
    const sm_train_setup *s = t->setup;
    const sm_axes within = train_within_sequence(t);
    sm_communicator *group = within ? t->mesh->over[within] : NULL;
    double *nll = t->pairs.nll;
    sm_status status = SM_OK;
    if (group) status = sm_run_all_reduce(group, nll, (size_t)s->microbatch, SM_ELEMENT_F64, err);
    bool tells = !group || group->rank == 0;
    for (size_t i = 0; !status && i < (size_t)s->microbatch; i += 2) {
        size_t number = pair_number(t, t->pairs.first + i);
        size_t at = train_sequence(t, t->pairs.first + i);
        double *reference = &t->pairs.reference[2 * (number % s->pairs)];
        if (t->pairs.scoring) {
            for (size_t k = 0; tells && number < s->pairs && k < 2; k++) reference[k] = nll[i + k];
            continue;
        }
        double z = s->beta * (nll[i + 1] - reference[1] - (nll[i] - reference[0]));
        double slope = s->beta / (1 + exp(z)) / train_targets(t);
        t->pairs.weight[at] = slope;
        t->pairs.weight[at + 1] = -slope;
        if (tells) t->loss += z > 0 ? log1p(exp(-z)) : log1p(exp(z)) - z;
    }
    for (size_t i = 0; i < (size_t)s->microbatch; i++) nll[i] = 0;
    return status;
}
