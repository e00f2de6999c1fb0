/* program_told: what the parts of the answer about a model's program share. */
#pragma once
#include "question.h"

typedef struct sm_program_told {
    const sm_architecture *architecture;
    const char *name;
    sm_text_phase phase;
    bool absorbed;
    double T, S;
    sm_report *report;
    /* under a plan */
    const sm_plan_lines *lines;    /* NULL: without one */
    char subscript[SM_AXIS_COUNT]; /* what the page calls each axis that has more than one chip */
} sm_program_told;

/* ---- beside the lines: comments of sm_program_style, whose `with` is an sm_program_told ---- */
const char *sm_program_axes(void *with, int kind, const sm_text_lines *lines, int array, int i,
                            sm_arena *arena);
const char *sm_program_comment(void *with, int kind, const sm_text_lines *lines, int line,
                               bool inside, sm_arena *arena);
/* Letters for the axes of the plan: X, Y, Z, ... */
void sm_program_name_axes(sm_program_told *told);

/* ---- the same as data ---- */
/* The axes that have letters. */
void sm_program_put_mesh(const sm_program_told *told);
/* What a line's arrays are cut by, its ops in each phase, its collectives, into its object. */
void sm_program_put_line(const sm_program_told *told, sm_data *object, int kind,
                         const sm_text_lines *lines, int line);
/* Collectives of no line, and what the host needs beyond the ops. */
void sm_program_put_rest(const sm_program_told *told);
/* The same as text, "" where there is none. */
const char *sm_program_rest(const sm_program_told *told);
/* "X = fsdp 64, Y = tensor 8" */
const char *sm_program_mesh_words(const sm_program_told *told);

/* ---- with a plan (program_plan.c) ---- */
/* The program with the best plan of a question of training or of serving beside it. */
sm_status sm_program_with_train(sm_program_told *told, const sm_train_question *question,
                                sm_error *err);
sm_status sm_program_with_serve(sm_program_told *told, const sm_serve_question *question,
                                sm_error *err);
/* The page and the data, headed by such lines (answer_program.c). */
sm_status sm_program_tell(sm_program_told *told, const char *const *heads, int n, sm_error *err);
