/* execution: alternatives of an einsum run on ranks, timed, counted, and held against the product
 * of the whole arrays. */
#pragma once
#include "prediction.h"

/* What ranks multiply and move. */
/* What --dtype says: fp32, fp64 or int. */
typedef enum element_word { ELEMENT_FP32, ELEMENT_FP64, ELEMENT_INT, ELEMENT_WORDS } element_word;
extern const char *const element_words[ELEMENT_WORDS];
/* The type of all arrays of an einsum: that of --dtype, at *given, or the one they are written
 * with, or fp32. The arrays then have it. */
sm_status element_type_read(const cli_call *call, const element_word *given, sm_einsum *einsum,
                            sm_dtype *dtype, sm_element *element, sm_error *err);
bool element_is_whole(sm_element element);
double element_value(const sm_local_block *block, size_t i);
/* The largest difference of two blocks of one size; infinite where the sizes differ. */
double element_difference(const sm_local_block *a, const sm_local_block *b);
/* A number for each position of an array: whole ones from -5 to 5; fractions from -1/2 to 1/2 in
 * steps of 2^-24, exact in every float. array: its number, as a pointer. */
double element_whole_number(const size_t *position, int rank, void *array);
double element_fraction(const size_t *position, int rank, void *array);

/* Of one alternative. Times are medians over the repeats of the slowest rank's. */
typedef struct execution {
    double max_error;           /* over all ranks and elements */
    double bytes[SM_MAX_STEPS]; /* counted; of the rank that differs from the prediction, if any */
    double seconds[SM_MAX_STEPS];
    double total_s;
    /* of the same steps one after the other, when one ran inside the einsum */
    double apart_seconds[SM_MAX_STEPS], apart_total_s;
} execution;

/* What the ranks are told; result is written by rank 0. */
typedef struct execution_job {
    const sm_mesh *mesh;
    const sm_einsum *einsum;
    sm_element element;
    int n; /* alternatives */
    sm_alternative *const *alternative;
    int warmups, repeats, directions;
    execution *result; /* n of them */
} execution_job;
sm_status execution_body(sm_communicator *world, void *job, sm_error *err);

/* The products of a chain one after the other, each from what those before it made. job.einsum and
 * job.alternative are not used; job.result has room for one of each step. All lines are products.
 */
typedef struct execution_chain {
    execution_job job;
    const sm_chain *chain;
    const sm_chain_plan *plan;
} execution_chain;
sm_status execution_chain_body(sm_communicator *world, void *chain, sm_error *err);
/* How far each value of a plan may lie from the exact one, into bound[plan->values]; most has as
 * many places. Returns the largest number that any may hold. */
double execution_chain_bound(const sm_chain_plan *plan, sm_element element, double *bound,
                             double *most);

/* Did every collective move the bytes predicted? */
bool execution_bytes_agree(const sm_alternative *a, const execution *x);
/* A step as a row of a table with these heads. words: what it does. */
#define EXECUTION_HEADS "<step|>{=}bytes|>{=}counted|>{s}predicted|>{s}measured|>ratio|<"
void execution_row(sm_report *r, sm_table *table, const char *words, const sm_alternative *a,
                   const execution *x, int s);

/* How far an element may lie from the exact product: 0 for whole numbers. Sums of n products of
 * numbers up to 1/2 in any order, each rounded by at most u: with lambda = 8 all elements keep
 *   |error| <= lambda sqrt(n) u n / 4
 * but with a probability below 2 n exp(-lambda^2 / 2) (Higham and Mary, "A New Approach to
 * Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41, 2019, theorem 2.4). */
double execution_error_bound(const sm_einsum *einsum, sm_element element);
