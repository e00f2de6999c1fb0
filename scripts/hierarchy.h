/* One hierarchical fit: the constants of a cell, a chip with a software, on the line of
 * docs/calibration-file.md (shares by their logit, all else by the logarithm), are
 *     x = base + fabric + chip + family + software + both,
 * where each term is shared by all cells of its group and drawn to 0 by a prior. It minimises
 *     sum w rho(r / s) + sum (term / sigma)^2 / 2,     r = log expected / measured,
 * rho the soft loss of search.h, by steps of Levenberg (1944) and Marquardt (1963) on derivatives
 * of r that Broyden's updates (1965) keep up. A step is solved as a whole, in the x of each chip
 * and software, whose prior is what their terms let them share; terms follow from x. Programs that
 * fit end with one sentence where memory runs out. */
#pragma once
#include "scalemodel/truth.h"
#include <stdio.h>

enum {
    LEVELS = 5,
    COMPUTE = SM_CONSTANT_COUNT, /* the parameter that moves several constants */
    MOST_PARAMETERS = SM_CONSTANT_COUNT + 6,
    MOST_GROUPS = 400,
    MOST_NAMES = 4000
};
enum { FABRIC, CHIP, FAMILY, SOFTWARE, BOTH };

/* Physical bounds, and the deviations of the prior of each level on the line; a constant that a
 * level does not move has none there, and one that none moves stays as it starts. */
typedef struct parameter {
    double low, high, sigma[LEVELS];
} parameter;

typedef struct names {
    const char *name[MOST_NAMES];
    int n;
} names;

/* A chip and a software, and its group on each level. */
typedef struct cell {
    const sm_chip *chip;
    const char *software;
    int group[LEVELS];
    double base[MOST_PARAMETERS];
    sm_calibration start;
    double x[MOST_PARAMETERS]; /* where its residuals and slopes are of */
} cell;

/* One measured quantity; at: log expected / measured, NAN: it has no say. */
typedef struct residual {
    int cell;
    bool masked;
    double weight, spread, at, slope[MOST_PARAMETERS];
} residual;

typedef struct hierarchy {
    const char *program;
    const parameter *parameter;
    int parameters;
    cell cell[MOST_GROUPS];
    int cells;
    names group[LEVELS];
    residual *residual;
    int residuals;
    /* The residuals of one cell whose parameters are x, each at its place in `at`. */
    void (*predict)(int cell, const double *x, double *at);
    double term[LEVELS][MOST_GROUPS][MOST_PARAMETERS];
    bool held[MOST_GROUPS]; /* of BOTH: those that a fit leaves where they are */
    struct problem *problem; /* its linear ones */
    double deviation[LEVELS][MOST_GROUPS][MOST_PARAMETERS];
    sm_arena *arena;
} hierarchy;

void *fit_array(hierarchy *h, size_t n, size_t size);
_Noreturn void fit_stop(const hierarchy *h, const char *why);
int name_index(hierarchy *h, names *list, const char *name);

double to_line(const hierarchy *h, int parameter, double value);
double from_line(const hierarchy *h, int parameter, double u);
/* The calibration of a cell whose parameters are x. */
sm_calibration constants_at(const hierarchy *h, const cell *c, const double *x);
/* The parameters of a cell by its first `levels` terms. */
void place(const hierarchy *h, const cell *c, int levels, double *x);

/* The cell of a chip and a software. A new one (*is_new) has its groups, and its base by `start`.
 */
int cell_index(hierarchy *h, const sm_chip *chip, const char *software, const char *family,
               const sm_calibration *start, bool *is_new);
/* Memories and forms of one GPU share their constants: the last of the names that its row gives;
 * generations of TPU are apart. */
const char *constants_name(const sm_chip *chip);

/* Terms whose sums in each cell are x (NAN: not known), of the least that the priors make of it. */
void fit_start(hierarchy *h, double x[][MOST_PARAMETERS]);
/* At most so many steps, until one on derivatives worked out anew changes little; 0: the residuals
 * and derivatives where the terms are. */
void fit_terms(hierarchy *h, int most);
/* The undamped step from the terms there are, with all rows: what none that lowers the objective
 * takes. */
void fit_drift(hierarchy *h);
/* The step, less that one, after rows have been masked. */
void fit_without(hierarchy *h);

/* What the rows say more about than the prior did, on these levels: a bit of each constant. */
unsigned identified(const hierarchy *h, const cell *c, int from, int to);
/* To the four digits that a file has of it. */
double rounded(double value);
void round_constants(sm_calibration *k);
/* FOLDER/NAME with a first line of comment, unless that is NULL. */
FILE *open_file(const hierarchy *h, const char *folder, const char *name, const char *what);
