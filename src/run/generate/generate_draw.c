/* Words from scores, and speculative sampling: a word drafted from q is kept with probability
 * min(1, p/q); else one is drawn from max(0, p - q), so that the word follows p in either case
 * (Leviathan et al., arXiv 2211.17192, section 2.3). */
#include <assert.h>
#include <math.h>

#include "scalemodel/run_generate.h"

size_t sm_draw_best(const float *scores, size_t words) {
    size_t best = 0;
    assert(words > 0);
    for (size_t w = 1; w < words; w++)
        if (scores[w] > scores[best]) best = w;
    return best;
}

void sm_draw_distribution(const float *scores, size_t words, double temperature, double *p) {
    assert(temperature > 0);
    double most = (double)scores[sm_draw_best(scores, words)], sum = 0;
    for (size_t w = 0; w < words; w++) sum += p[w] = exp(((double)scores[w] - most) / temperature);
    for (size_t w = 0; w < words; w++) p[w] /= sum;
}

/* What rounding leaves at the end goes to the last word that can be drawn. */
size_t sm_draw_word(const double *p, size_t words, double u) {
    size_t last = 0;
    for (size_t w = 0; w < words; w++) {
        if (!(p[w] > 0)) continue;
        u -= p[w];
        last = w;
        if (u < 0) break;
    }
    return last;
}

/* One word from max(0, p - q). Where rounding leaves nothing of it, p and q are the same. */
static size_t draw_rest(const double *p, const double *q, size_t words, double u) {
    double sum = 0;
    size_t last = words;
    for (size_t w = 0; w < words; w++) sum += fmax(0, p[w] - q[w]);
    if (!(sum > 0)) return sm_draw_word(p, words, u);
    u *= sum;
    for (size_t w = 0; w < words; w++) {
        if (!(p[w] > q[w])) continue;
        u -= p[w] - q[w];
        last = w;
        if (u < 0) break;
    }
    return last;
}

size_t sm_draw_speculative(const double *p, const double *q, size_t words, size_t drafted,
                           double u_keep, double u_word, bool *kept) {
    *kept = u_keep * q[drafted] < p[drafted];
    return *kept ? drafted : draw_rest(p, q, words, u_word);
}
