/* Cross-entropy over a sharded vocabulary. The loss of a token is log S - x[target] with S the sum
 * of exp(x) over the vocabulary; S is the array that the program calls loss: a sum in double
 * precision, so that no maximum has to be agreed on first, made by one reduction. log S and
 * x[target] are only ever needed summed over tokens, so they travel as one number a step. */
#include <math.h>

#include "row_math.h"
#include "train_parts.h"

/* exp of more than this leaves double precision's range when summed. */
static const double MOST_LOGIT = 690;

typedef struct words {
    size_t sequences, positions, words, first_sequence, first_position, first_word;
    const float *logit;
} words;

static words words_of(const sm_local_block *b, const size_t *offset) {
    return (words){b->size[0], b->size[1], b->size[2], offset[0], offset[1], offset[2], b->data};
}

/* The target of a token as a word of this rank; words when another rank has it. */
static size_t target(const train_call *c, const words *w, size_t sequence, size_t position) {
    size_t word =
        (size_t)train_byte(c->t, w->first_sequence + sequence, w->first_position + position + 1);
    bool here = word >= w->first_word && word < w->first_word + w->words;
    return here ? word - w->first_word : w->words;
}

/* exp(most) sum of exp(x - most): the largest apart, so that single precision does for the rest. */
static double sum_of_exponentials(const float *x, float most, size_t n) {
    enum { SOME = 256 };
    float y[SOME];
    double sum = 0;
    for (size_t at = 0; at < n; at += SOME) {
        size_t some = n - at < SOME ? n - at : SOME;
        row_exponential(x + at, most, some, y);
        sum += (double)row_sum(y, some);
    }
    return exp((double)most) * sum;
}

sm_status train_loss_forward(train_call *c, sm_error *err) {
    words w = words_of(c->in[0].block, c->in[0].offset);
    double *sums = c->out->data;
    for (size_t s = 0; s < w.sequences; s++)
        for (size_t p = 0; p < w.positions; p++) {
            const float *x = w.logit + (s * w.positions + p) * w.words;
            size_t want = target(c, &w, s, p);
            float most = row_most(x, w.words);
            double sum = sum_of_exponentials(x, most, w.words);
            if (!(fabs((double)most) < MOST_LOGIT) || !(sum < INFINITY))
                return sm_fail(err, SM_BAD_INPUT,
                               "training diverged in step %d: a score reached %g", c->t->step,
                               sum < INFINITY ? (double)most : NAN);
            sums[s * w.positions + p] = sum;
            if (want < w.words) c->t->loss -= (double)x[want];
        }
    return SM_OK;
}

/* d x[v] = exp(x[v]) / S - (v is the target), over the tokens of the batch: the operand is the
 * gradient of S, 1 / (S tokens). */
void train_loss_backward(train_call *c) {
    words w = words_of(c->input[0], c->out_offset);
    const double *slope = c->in[0].block->data;
    double tokens = (double)c->t->setup->sequences * c->t->setup->tokens;
    float *out = c->out->data;
    for (size_t s = 0; s < w.sequences; s++)
        for (size_t p = 0; p < w.positions; p++) {
            size_t at = s * w.positions + p, want = target(c, &w, s, p);
            const float *x = w.logit + at * w.words;
            float *dx = out + at * w.words, most = row_most(x, w.words);
            float scale = (float)(exp((double)most) * slope[at]);
            row_exponential(x, most, w.words, dx);
            for (size_t v = 0; v < w.words; v++) dx[v] *= scale;
            if (want < w.words) dx[want] -= (float)(1 / tokens);
        }
}
