/* A step on a rank: its stage, boundaries sent to other stages, then loss, norm and update. The
 * rate follows a cosine (Loshchilov and Hutter, arXiv 1608.03983, eq. 5); a gradient whose norm
 * exceeds `clip` is scaled down to it (Pascanu et al., arXiv 1211.5063, algorithm 1). */
#include "train_parts.h"

/* Cross-entropy over a sharded vocabulary. The loss of a token is log S - x[target] with S the sum
 * of exp(x) over the vocabulary; S is the array that the program calls loss: a sum in double
 * precision, so that no maximum has to be agreed on first, made by one reduction. log S and
 * x[target] are only ever needed summed over tokens, so they travel as one number a step. */

/* exp of more than this leaves double precision's range when summed. */
static const double MOST_LOGIT = 690;

typedef struct words {
    size_t sequences, positions, words, first_sequence, first_position, first_word;
    const float *logit;
} words;

static words words_of(const sm_local_block *b, const size_t *offset) {
    return (words){b->size[0], b->size[1], b->size[2], offset[0], offset[1], offset[2], b->data};
}

enum { NONE = -1, ELSEWHERE = -2 };

/* The target of a token as a word of this rank; ELSEWHERE: another rank has it. */
static long target(const train_call *c, const words *w, size_t sequence, size_t position) {
    int word = train_target(c->t, w->first_sequence + sequence, w->first_position + position);
    long at = word - (long)w->first_word;
    return word < 0 ? NONE : at < 0 || at >= (long)w->words ? ELSEWHERE : at;
}

/* exp(most) sum of exp(x - most): the largest apart, so that single precision does for the rest. */
static double sum_of_exponentials(const float *x, float most, size_t n) {
    enum { SOME = 256 };
    float y[SOME];
    double sum = 0;
    for (size_t at = 0; at < n; at += SOME)
        sum += (double)row_exponential(x + at, most, n - at < SOME ? n - at : SOME, y);
    return exp((double)most) * sum;
}

sm_status train_loss_forward(train_call *c, sm_error *err) {
    words w = words_of(c->in[0].block, c->in[0].offset);
    double *sums = c->out->data;
    train_pairs *pairs = c->t->setup->pairs ? &c->t->pairs : NULL;
    c->t->pairs.first = w.first_sequence;
    for (size_t s = 0; s < w.sequences; s++)
        for (size_t p = 0; p < w.positions; p++) {
            const float *x = w.logit + (s * w.positions + p) * w.words;
            long want = target(c, &w, s, p);
            sums[s * w.positions + p] = 0; /* on every rank: no word is wanted */
            if (want == NONE) continue;
            float most = row_most(x, w.words);
            double sum = sum_of_exponentials(x, most, w.words);
            if (!(fabs((double)most) < MOST_LOGIT) || !(sum < INFINITY))
                return sm_fail(err, SM_BAD_INPUT,
                               "training diverged in step %d: a score reached %g", c->t->step,
                               sum < INFINITY ? (double)most : NAN);
            sums[s * w.positions + p] = sum;
            if (want >= 0) *(pairs ? &pairs->nll[s] : &c->t->loss) -= (double)x[want];
        }
    return SM_OK;
}

/* d x[v] = exp(x[v]) / S - (v is the target), times what the token counts: the operand is the
 * gradient of S. */
void train_loss_backward(train_call *c) {
    words w = words_of(c->input[0], c->out_offset);
    const double *slope = c->in[0].block->data;
    float *out = c->out->data;
    for (size_t s = 0; s < w.sequences; s++)
        for (size_t p = 0; p < w.positions; p++) {
            size_t at = s * w.positions + p;
            long want = target(c, &w, s, p);
            const float *x = w.logit + at * w.words;
            float *dx = out + at * w.words, most = row_most(x, w.words);
            float scale = (float)(exp((double)most) * slope[at]);
            row_exponential(x, most, w.words, dx);
            for (size_t v = 0; v < w.words; v++) dx[v] *= scale;
            if (want >= 0) dx[want] -= (float)train_weight_of(c->t, w.first_sequence + s);
        }
}

/* ---- boundaries between stages ---- */

static sm_communicator *pipeline(const sm_trainer *t) { return t->mesh->over[1 << TRAIN_PIPELINE]; }

/* The blocks of messages that have arrived are not read any more. */
static sm_status free_arrived(sm_trainer *t, sm_error *err) {
    sm_communicator *c = pipeline(t);
    sm_status status = SM_OK;
    for (int i = 0; !status && i < t->messages; i++) {
        train_message *m = &t->message[i];
        if (!m->block.data || !c->backend->done(c, &m->handle)) continue;
        status = c->backend->wait(c, &m->handle, err);
        sm_local_block_free(&m->block);
    }
    return status;
}

sm_status train_send(void *context, int stage, int tag, bool backward, sm_local_block *block,
                     sm_error *err) {
    sm_trainer *t = context;
    (void)backward; /* the tag says it too */
    sm_communicator *c = pipeline(t);
    sm_status status = free_arrived(t, err);
    assert(t->messages < t->stage.room);
    train_message *m = &t->message[t->messages++];
    *m = (train_message){.block = *block};
    t->handed_bytes += sm_local_block_bytes(block);
    block->data = NULL;
    if (status) return status;
    return c->backend->start_send(c, m->block.data, (size_t)sm_local_block_bytes(&m->block), stage,
                                  tag, &m->handle, err);
}

sm_status train_receive(void *context, int stage, int tag, sm_local_block *block, sm_error *err) {
    sm_trainer *t = context;
    sm_communicator *c = pipeline(t);
    sm_request_handle handle = {{NULL}};
    double begun_s = sm_clock_s();
    sm_status status = c->backend->start_receive(
        c, block->data, (size_t)sm_local_block_bytes(block), stage, tag, &handle, err);
    if (!status) status = c->backend->wait(c, &handle, err);
    double waited_s = sm_clock_s() - begun_s;
    t->time_s[SM_TRAIN_TIME_PIPELINE] += waited_s;
    train_outside_took(t, TRAIN_HAND_OVER, waited_s);
    return status ? status : free_arrived(t, err);
}

/* Every send is waited for, or taken back by a rank that has failed: else memory that is still read
 * would be freed. */
sm_status train_run_stage(sm_trainer *t, const sm_train_action *action, int n, sm_error *err) {
    sm_status status = sm_stage_run(&t->stage, action, n, err);
    for (int i = 0; i < t->messages; i++) {
        train_message *m = &t->message[i];
        const sm_backend *b = pipeline(t)->backend;
        if (!status && m->block.data) status = b->wait(pipeline(t), &m->handle, err);
        else if (m->block.data && b->cancel) b->cancel(pipeline(t), &m->handle);
        sm_local_block_free(&m->block);
    }
    t->messages = 0;
    return status;
}

/* log S of each token, counted once though several ranks may hold it. */
sm_status train_add_loss(sm_trainer *t, const sm_program *b, const sm_local_block *sums,
                         sm_error *err) {
    const sm_tensor *loss = &b->tensor[b->op[b->ops - 1].out];
    double copies = train_degree(t, (1u << SM_AXIS_COUNT) - 1);
    const double *sum = sums->data;
    for (int d = 0; d < loss->rank; d++) copies /= train_degree(t, loss->at[d]);
    for (size_t s = 0; s < sums->size[0]; s++, sum += sums->size[1]) {
        double total = 0;
        for (size_t i = 0; i < sums->size[1]; i++)
            if (sum[i] > 0) total += log(sum[i]);
        *(t->setup->pairs ? &t->pairs.nll[s] : &t->loss) += total / copies;
    }
    return t->setup->pairs ? train_pairs_told(t, err) : SM_OK;
}

/* ---- steps ---- */

/* Linear warm-up, then a cosine from the rate to a tenth of it. */
static double rate_of(const sm_train_setup *s, int step) {
    if (step < s->warmup) return s->rate * (step + 1) / s->warmup;
    if (step >= s->steps) return s->rate / 10;
    double part = (double)(step - s->warmup) / (double)(s->steps - s->warmup);
    return s->rate * (0.55 + 0.45 * cos(3.14159265358979323846 * part));
}

static sm_status run_batch(sm_trainer *t, int step, bool updating, sm_error *err) {
    assert(step >= 0);
    t->step = step;
    t->loss = 0;
    memset(t->time_s, 0, sizeof t->time_s);
    train_times_begin(t);
    t->stage.updating = updating;
    const sm_train_setup *s = t->setup;
    bool line = s->chunks > 0;
    return train_run_stage(t, line ? s->action[t->stage.number] : NULL,
                           line ? s->actions[t->stage.number] : 0, err);
}

static sm_status learn(sm_trainer *t, sm_train_result *result, sm_error *err) {
    sm_status status = sm_stage_reduce(&t->stage, err);
    if (status) return status;
    double begun_s = sm_clock_s(), sums[2] = {t->loss, train_norm_share(t)};
    status = sm_run_all_reduce(t->world, sums, 2, SM_ELEMENT_F64, err);
    train_outside_took(t, TRAIN_LOSS_AND_NORM, sm_clock_s() - begun_s);
    if (status) return status;
    result->loss = sums[0] / train_targets(t);
    result->gradient_norm = sqrt(sums[1]);
    if (!isfinite(result->loss) || !isfinite(result->gradient_norm))
        return sm_fail(err, SM_BAD_INPUT, "training diverged in step %d: the loss is no number",
                       t->step);
    result->rate = rate_of(t->setup, t->step);
    double clip = t->setup->clip, scale = 1;
    if (clip > 0 && result->gradient_norm > clip) scale = clip / result->gradient_norm;
    train_traffic before;
    double updating_s = sm_clock_s();
    train_traffic_now(t, &before);
    status = train_update(t, result->rate, scale, err);
    t->time_s[SM_TRAIN_TIME_OPTIMIZER] +=
        train_step_end_took(t, TRAIN_OPTIMIZER, updating_s, &before);
    return status;
}

int sm_trainer_stage(const sm_trainer *t) { return t->stage.number; }

sm_status sm_trainer_step(sm_trainer *t, int step, sm_train_result *result, sm_error *err) {
    double begun_s = sm_clock_s();
    train_traffic before;
    memset(result, 0, sizeof *result);
    train_traffic_now(t, &before);
    memory_scope scope = memory_enter(&t->memory, SM_TRAIN_MEMORY_BUFFERS);
    sm_status status = run_batch(t, step, true, err);
    if (!status) status = learn(t, result, err);
    memory_restore(scope);
    result->seconds = sm_clock_s() - begun_s;
    /* What was not measured is the rest. */
    double total = 0;
    train_traffic_since(t, &before, result->bytes_counted, result->collective_s);
    train_times_end(t);
    train_bytes_predicted(t, result->bytes_predicted);
    memcpy(result->time_s, t->time_s, sizeof result->time_s);
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++)
        result->time_s[SM_TRAIN_TIME_COLLECTIVE] += result->collective_s[i];
    for (int i = 0; i < SM_TRAIN_TIME_REST; i++) total += result->time_s[i];
    result->time_s[SM_TRAIN_TIME_REST] = result->seconds - total;
    return status;
}

sm_status sm_trainer_score_pairs(sm_trainer *t, sm_error *err) {
    const size_t pairs = t->setup->pairs, each = (size_t)t->setup->sequences / 2;
    sm_status status = SM_OK;
    memory_scope scope = memory_enter(&t->memory, SM_TRAIN_MEMORY_BUFFERS);
    for (size_t i = 0; i < 2 * pairs; i++) t->pairs.reference[i] = 0;
    t->pairs.scoring = true; /* nothing counts, and all gradients are 0 */
    for (size_t at = 0; !status && at < pairs; at += each)
        status = run_batch(t, (int)(at / each), false, err);
    t->pairs.scoring = false;
    if (!status && pairs)
        status = sm_run_all_reduce(t->world, t->pairs.reference, 2 * pairs, SM_ELEMENT_F64, err);
    memory_restore(scope);
    return status;
}

sm_status sm_trainer_gradients(sm_trainer *t, int step, sm_train_result *result, sm_error *err) {
    memset(result, 0, sizeof *result);
    memory_scope scope = memory_enter(&t->memory, SM_TRAIN_MEMORY_BUFFERS);
    sm_status status = run_batch(t, step, false, err);
    double loss = t->loss;
    if (!status) status = sm_run_all_reduce(t->world, &loss, 1, SM_ELEMENT_F64, err);
    memory_restore(scope);
    result->loss = loss / train_targets(t);
    return status;
}
