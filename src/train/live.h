/* live: memory of software that runs the tasks of the program one after the other and keeps an
 * array from the task that makes it to the last that reads it (src/run). The walk tells the tasks
 * with their sizes on a chip; adding up what lives gives the memory at every moment. */
#ifndef SM_TRAIN_LIVE_H
#define SM_TRAIN_LIVE_H
#include "space.h"

typedef enum live_part { LIVE_GRADIENTS, LIVE_ACTIVATIONS, LIVE_BUFFERS, LIVE_PARTS } live_part;
/* Bytes by part, as they change from the beginning of something on: at its greatest, at its end. */
typedef struct live_effect {
    double peak[LIVE_PARTS], end[LIVE_PARTS];
} live_effect;
void live_add(live_effect *e, live_part part, double bytes);
/* `next` follows e. */
void live_then(live_effect *e, const live_effect *next);
double live_sum(const double *part);

/* One microbatch through one piece. A backward finds the gradient of its weights there already or,
 * first, makes it. Streams between pieces are buffers. */
typedef struct live_piece {
    live_effect forward;
    live_effect backward[2], inputs, weights[2]; /* [first] */
    double input, output;                        /* bytes of the residual stream */
} live_piece;
sm_status live_piece_of(const piece *what, int set, const sm_degrees *d, live_piece *out,
                        sm_error *err);

/* The memory of the worst stage under a plan whose pieces and stages are filled. */
sm_status live_memory(const sm_train *t, const sm_plan *plan, const pieces *p, stages *s,
                      sm_memory *memory, sm_error *err);
#endif
