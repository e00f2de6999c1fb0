/* train_told: a model under a plan while it is told as a program, its kinds of pieces one by one.
 */
#pragma once
#include "program_told.h"
#include "train_asked.h"

enum { PIPELINE = SM_AXIS_COUNT, AXES };

/* An array that was moved or varied, under a name of its own: all readers share it, so that its
 * gradients are added before they travel back. */
typedef struct sm_told_move {
    int array;
    sm_axes varied;  /* over which it was made to vary; 0: it was moved */
    sm_layout after; /* as it is then */
    const char *name;
} sm_told_move;
enum { MOST_MOVED = 64 };

typedef struct sm_told {
    const sm_train_asked *q;
    const sm_plan *plan;
    sm_program_told told;
    sm_report *r;
    sm_error *err;
    int kind;
    const sm_text_lines *lines; /* of that kind */
    const sm_program *program;  /* of that kind */
    sm_task_list tasks;         /* of the same */
    sm_mesh mesh;
    const char *out;
    int degree[AXES], small[AXES]; /* members of each axis, and on SMALL_CHIPS */
    /* of the kind: */
    int moves;
    sm_told_move move[MOST_MOVED];
    sm_axes varies[SM_MAX_LINE_ARRAYS]; /* over which its values are not known to be the same */
    /* of the line: */
    const sm_program_task *task;
    const char *name[SM_MAX_LINE_ARRAYS]; /* of an array that was moved; NULL: its own */
    sm_layout layout[SM_MAX_LINE_ARRAYS];
} sm_told;

#define PUT(e, ...) ((e)->out = sm_textf((e)->r, "%s%s", (e)->out, sm_textf((e)->r, __VA_ARGS__)))

/* SM_BAD_INPUT: the framework has no translation of this, of the kind at hand or of the model. */
sm_status sm_told_refuse(const sm_told *e, const char *what);
/* The lines of a kind, and its tasks on the mesh of the plan; errors as sm_task_list_new. */
sm_status sm_told_set_kind(sm_told *e, int kind);
/* The name of a kind, with its number where an earlier one has the same. */
const char *sm_told_kind(const sm_told *e, int kind);
/* "q.2" as a name of Python. */
const char *sm_told_variable(const sm_told *e, const char *name);
/* Is the kind at hand one of layers? */
bool sm_told_is_layers(const sm_told *e);
const char *sm_told_axis_name(int axis);
/* Of the config or its family; otherwise: where they are silent. */
double sm_told_number(const sm_told *e, const char *name, double otherwise);
/* "fsdp", ("fsdp", "context") or (), of a set of axes. */
const char *sm_told_axes(const sm_told *e, sm_axes axes);
/* The axes that cut an array as it is stored, and the same in the words of a PartitionSpec. */
sm_axes sm_told_cut_by(const sm_told *e, int array);
const char *sm_told_spec(const sm_told *e, int array);
/* Over which axes a microbatch leaves partial sums of the gradient of a weight. */
sm_axes sm_told_partial(const sm_told *e, int array);
/* def layer(w, x, ids, targets, all): ..., of the kind at hand. SM_BAD_INPUT when a line has no
 * translation. */
sm_status sm_told_function(sm_told *e);
