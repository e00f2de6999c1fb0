/* design: which machine to build or to buy for given work; what its parts share. */
#pragma once
#include "expression.h"
#include "sweep.h"

enum { DESIGN_MOST_WORK = 8, DESIGN_MOST_MACHINES = 100000 };

typedef struct design_work {
    sweep *s;         /* its question, on every machine */
    const char *name; /* "train llama-3.1-70b" */
    double share;     /* of the tokens */
} design_work;

/* What a machine takes. */
typedef enum design_measure { DESIGN_USD, DESIGN_WATTS, DESIGN_MEASURES } design_measure;
extern const char *const design_measure_names[DESIGN_MEASURES]; /* "usd_per_hour", "watts" */

typedef struct design_machine {
    int chips;
    double rate[DESIGN_MOST_WORK]; /* tokens/s of each work alone; NAN: it cannot do it */
    const char *plan[DESIGN_MOST_WORK];
    double tokens_per_s; /* of all work, in its shares; NAN */
    double takes[DESIGN_MEASURES];
    bool beyond;     /* more than a bound */
    bool best;       /* no other gives as much for as little, and more or less of one */
    const char *why; /* it cannot do the work; NULL: it can */
} design_machine;

typedef struct design {
    const cli_call *call;
    sm_report *r;
    sm_source file;
    cli_list over; /* what is swept, as --over of sweep has it */
    int works;
    design_work work[DESIGN_MOST_WORK];
    const expression *formula[DESIGN_MEASURES];
    double most[DESIGN_MEASURES];   /* 0: no bound */
    bool compares[DESIGN_MEASURES]; /* known of every machine */
    sm_chip *chip;                  /* of --system */
    size_t chips;
    int64_t machines; /* rows of the sweeps */
    design_machine *machine;
} design;

/* Fill in what the file of the call asks for. SM_BAD_INPUT with the place. */
sm_status design_read(design *d, sm_error *err);
/* The names that formulas may have. */
const char *const *design_names(size_t *n);
/* Ask every question, and fill in the machines. */
sm_status design_ask(design *d, int threads, sm_error *err);
/* The place of a machine's value on an axis, and the machine `step` values further on; -1: none. */
int design_place(const design *d, int64_t machine, int axis);
int64_t design_neighbour(const design *d, int64_t machine, int axis, int step);
const char *design_value(const design *d, int64_t machine, int axis);
/* Does it count: it does the work within the bounds. */
static inline bool design_counts(const design_machine *m) { return !m->why && !m->beyond; }
/* Dollars (where they are not known, joules) a token. */
double design_per_token(const design *d, const design_machine *m);
/* The page, the data and the picture. */
sm_status design_tell(design *d, sm_error *err);
