/* Weights that two stages of a pipeline hold: all of them under dualpipe, which keeps the model
 * twice, and an embedding that is the unembedding too where the pipeline parts the two. At the end
 * of a step both stages sum their gradients (rows.c of program), so that both copies stay equal to
 * the last bit. */
#include "train_parts.h"

int train_copies(const sm_train_setup *s) { return s->copies > 1 ? s->copies : 1; }

static bool tie_parted(const sm_train_setup *s) {
    return s->model->tied && s->chunks && s->chunk[0].stage != s->chunk[s->chunks - 1].stage;
}

/* That of the other copy of its chunk, or of the tied embedding. The stage itself: it has none. */
static int peer_of(const sm_train_setup *s, int stage) {
    for (int c = 0; train_copies(s) == 2 && c < s->chunks; c++)
        if (s->chunk[c].stage == stage) return s->chunk[(c + s->chunks / 2) % s->chunks].stage;
    if (!tie_parted(s)) return stage;
    int first = s->chunk[0].stage, last = s->chunk[s->chunks - 1].stage;
    return stage == first ? last : stage == last ? first : stage;
}

static bool mirrored(const sm_train_setup *s) {
    if (s->chunks % 2) return false;
    for (int c = 0; c < s->chunks; c++) {
        const sm_train_chunk *a = &s->chunk[c], *b = &s->chunk[(c + s->chunks / 2) % s->chunks];
        if (a->first != b->first || a->last != b->last || a->stage == b->stage) return false;
        if (peer_of(s, a->stage) != b->stage) return false;
    }
    return true;
}

sm_status train_check_copies(const sm_train_setup *s, sm_error *err) {
    if (s->copies < 0 || s->copies > 2 || (s->copies == 2 && !s->chunks))
        return sm_fail(err, SM_BAD_INPUT, "a pipeline holds the model once or twice, not %d times",
                       s->copies);
    if (train_copies(s) == 1) return SM_OK;
    if (!mirrored(s))
        return sm_fail(err, SM_BAD_INPUT,
                       "two copies of the model need their stages in pairs that hold the same "
                       "layers");
    if (s->model->tied && s->chunk[0].stage != s->chunk[s->chunks - 1].stage)
        return sm_fail(err, SM_BAD_INPUT,
                       "two copies of a tied embedding need each beside an unembedding");
    return sm_train_setup_microbatches(s) % 2
               ? sm_fail(err, SM_BAD_INPUT,
                         "%d microbatches do not halve over two copies of the "
                         "model",
                         sm_train_setup_microbatches(s))
               : SM_OK;
}

/* Made by every stage, also by those that have none. */
sm_status train_peer_new(sm_trainer *t, sm_error *err) {
    const sm_train_setup *s = t->setup;
    if (train_copies(s) == 1 && !tie_parted(s)) return SM_OK;
    int peer = peer_of(s, t->stage.number);
    sm_communicator *line = t->mesh->over[1 << TRAIN_PIPELINE];
    return line->backend->split(line, t->stage.number < peer ? t->stage.number : peer,
                                t->stage.number, &t->peer, err);
}
