/* evidence: how near what was measured comes to a question, and so how far off its answer may be.
 * data/evidence has a line for the rows of each architecture on each chip under each software, with
 * the sizes that they span and the median of their errors where they had no part in the fit. */
#pragma once
#include "scalemodel/cost.h"
#include "scalemodel/model.h"
#include "scalemodel/plan.h"

SM_DECLARATIONS_BEGIN

typedef enum sm_evidence_use { SM_EVIDENCE_TRAINING, SM_EVIDENCE_SERVING } sm_evidence_use;
typedef struct sm_evidence {
    sm_evidence_use use;
    const char *model; /* as its sources print it */
    int layers, d_model, experts;
    double params;
    const char *chip;
    const char *software; /* "": of any, and then the errors are of one that is not known */
    int rows;
    const char *range; /* as sm_range_outside reads it; last "layouts t8 t4e2", of serving */
    const char *types; /* of weights, or of training: "bf16 fp8" */
    double error, first_error; /* medians, relative: of a step or a token; of a first token. NAN */
} sm_evidence;
/* What sets a question apart from rows adds to their error as a variance of its own: so much rows
 * were off by more in the median when the fit that predicts them had none such (relative). */
#define SM_EVIDENCE_APART(X)                                                                       \
    X(whole, "rows that are left out, with nothing else apart")                                    \
    X(model, "their model was")                                                                    \
    X(experts, "all models of the chip with experts were, or all without, as theirs has")          \
    X(size, "all models near to theirs in size, on each unit of log(parameters / of the nearest)") \
    X(chip, "their chip was")                                                                      \
    X(software, "their software was")                                                              \
    X(sizes, "they lie beyond the sizes of others")
typedef struct sm_evidence_apart {
    SM_EVIDENCE_APART(SM_NUMBER_MEMBER)
} sm_evidence_apart;
/* As data/evidence has it. */
const sm_evidence_apart *sm_evidence_apart_of(sm_evidence_use use, bool software_known);

/* How a plan of serving lays a model with experts, or without, out over chips, whatever its
 * replicas: "t4e2", by tensor, expert, fsdp and pipeline ("w": experts whole where tensor divides
 * the rest). */
enum { SM_EVIDENCE_LAYOUT = 64 };
void sm_evidence_layout(const sm_plan *plan, bool experts, char out[SM_EVIDENCE_LAYOUT]);

/* How many lines there are, and the i-th of them, from 0; NULL beyond the end. */
size_t sm_evidence_count(void);
const sm_evidence *sm_evidence_at(size_t i);

/* What is asked, as far as evidence can be near to it. */
typedef struct sm_evidence_question {
    sm_evidence_use use;
    const sm_model *model;
    const sm_chip *chip;
    const char *software; /* NULL: not known */
    sm_dtype type;        /* of weights, or of training; SM_DTYPE_COUNT: any */
    const sm_plan *plan;  /* of serving; NULL: any */
    const sm_asked_size *size;
    int sizes;
} sm_evidence_question;
typedef struct sm_evidence_near {
    const sm_evidence *of;
    bool same_model, same_chip, same_constants, same_software;
    char beyond[96]; /* what of the question lies beyond its rows: "chips, layout"; or "" */
    /* Of the question: the error of the rows, and what rows left out of the fits were off by more
     * for the like of what sets the question apart from them. NAN: of chips that are joined
     * otherwise or are of another strength altogether, which say nothing. */
    double error;
    double wider; /* an 80 % interval by so much on the logarithm */
} sm_evidence_near;
/* The nearest evidence, nearest first, at most `room` of it. Returns how much. */
size_t sm_evidence_find(const sm_evidence_question *q, sm_evidence_near *near, size_t room);
/* The same among n lines, which such things set questions apart from. */
size_t sm_evidence_find_in(const sm_evidence *line, size_t n, const sm_evidence_apart *apart,
                           const sm_evidence_question *q, sm_evidence_near *near, size_t room);
SM_DECLARATIONS_END
