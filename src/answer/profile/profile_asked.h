/* profile_asked: the answer of `profile` while it is made. Private to src/answer/profile. */
#pragma once
#include "question.h"
#include "scalemodel/answer_words.h"
#include "scalemodel/profile.h"

#include <string.h>

typedef enum profile_kind {
    PROFILE_MATMUL,
    PROFILE_VECTOR,
    PROFILE_COPY,
    PROFILE_CUSTOM,
    PROFILE_KINDS
} profile_kind;
extern const char *const profile_kind_names[PROFILE_KINDS];

/* Kernels of one kind from one place of the user's program, added up over all their runs. */
typedef struct profile_row {
    const char *name, *source;
    profile_kind kind;
    sm_profile_bound bound; /* of the one that takes longest */
    double longest_s;
    double count, flops, vector_flops, bytes, lower_s, expected_s, upper_s;
    double step_s;     /* of expected_s: without copies that run beside the compute */
    double measured_s; /* NAN: nothing of it was */
    int turn;          /* of its op: what is added up in one order has one sum */
} profile_row;
/* Collectives of one kind over the same axes, of as many bytes, from one place. */
typedef struct profile_comm_row {
    const char *name, *source;
    const sm_profile_collective *first;
    double count, lower_s, expected_s, exposed_s, bytes_per_chip;
    double measured_s;
} profile_comm_row;

typedef struct profile_rows {
    int n, comms;
    profile_row *row; /* the one that takes longest first */
    profile_comm_row *comm;
    double of_kind[PROFILE_KINDS]; /* expected seconds, copies beside the compute apart */
    double flops_of_kind[PROFILE_KINDS], bytes_of_kind[PROFILE_KINDS];
} profile_rows;
/* False when out of memory. */
bool profile_rows_of(const sm_profile *p, sm_arena *arena, profile_rows *out);
profile_kind profile_kind_of(const sm_profile_op *op);
/* Model FLOPs utilisation: matrix FLOPs over the peak of bf16 in the expected time. */
double profile_mfu(const sm_profile *p);

/* A part of a whole in per cent; "-" where there is no whole. */
const char *profile_share(sm_report *r, double part, double whole);
/* At most so many letters of a name, from its end, which says more than its start. */
const char *profile_tail(sm_report *r, const char *text, size_t width);
/* What would save time, as page and data. of: what the times are of, "the step"; before: between
 * what is the matter and where, ", in ". */
void profile_tell_findings(sm_report *r, const sm_profile_finding *finding, int n, const char *of,
                           const char *before, double whole_s);

/* A file of the question, read and priced. */
typedef struct profile_file {
    const char *name; /* of the file */
    const sm_module *module;
    const sm_trace *trace;           /* NULL: a module alone */
    const sm_trace_program *program; /* of the trace */
    const sm_profile *profile;
    profile_rows rows;
} profile_file;

/* ---- where two steps differ (profile_compare.c) ---- */
/* A part of a step. Those of a side add up to its total, and those of one kind and place are one.
 */
typedef struct profile_part {
    const char *kind, *place;
    double seconds, count;
    double flops, sent; /* matrix FLOPs; bytes that a chip sends on a ring */
    const char *about;  /* what it is, for people: of parts of one kind and place the first; or NULL
                         */
} profile_part;
typedef struct profile_side {
    const char *name; /* the head of its column */
    double total_s;
    int n, room;
    profile_part *part;
} profile_side;
/* Add a part; a failed allocation marks the report. */
void profile_add_part(sm_report *r, profile_side *side, profile_part part);
/* The differences, second - first, as page and data: by kind so many, and by place the `top`
 * largest (0: not by place). */
enum { PROFILE_ALL_KINDS = 64 };
void profile_compare(sm_report *r, const profile_side *side[2], int kinds, int top);
/* What both do, whatever it takes: runs and FLOPs of products, runs and bytes of collectives. */
void profile_compare_work(sm_report *r, const profile_side *side[2]);
/* Collectives by kind and place: runs and bytes of each. */
void profile_compare_sent(sm_report *r, const profile_side *side[2], int top);
/* Two files of one question. */
void profile_against(sm_report *r, const profile_file *this, const profile_file *other, int top);

/* The timeline and the roofline plot, as the report's tracks and chart. */
void profile_pictures(sm_report *r, const profile_file *file);
void profile_page(sm_report *r, const sm_profile *p, const profile_rows *rows, int top);
void profile_data(sm_report *r, const sm_profile *p, const profile_rows *rows, bool trace);

/* ---- a trace (profile_trace.c) ---- */
/* Parts of a step over the devices, and each device: beside the price of a module. */
void profile_steps(sm_report *r, const sm_trace_breakdown *b, int top);
/* The whole answer to a trace without a module. */
sm_status profile_trace_answer(const sm_profile_question *q, int top, sm_report *r, sm_error *err);

/* ---- a step as planned beside the one that was compiled or measured ---- */
/* Predicted beside found, as page and data. plan: its words. */
void profile_beside_plan(sm_report *r, const profile_file *file, const char *plan,
                         const sm_plan_detail *detail, int top);
/* Read and price the module or profile of a question and lay it beside a plan: what `train
 * --against` shows. Errors as sm_answer_profile. */
sm_status profile_against_plan(sm_report *r, const sm_profile_question *q, const char *plan,
                               const sm_plan_detail *detail, sm_error *err);
