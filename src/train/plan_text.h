/* The closed sets of words of the plan grammar, shared by the reader and the printer. */
#ifndef SCALEMODEL_TRAIN_PLAN_TEXT_H
#define SCALEMODEL_TRAIN_PLAN_TEXT_H
#include "scalemodel/train.h"

enum { PLAN_MOST_DEGREE = 1 << 20, PLAN_MOST_VIRTUAL = 64 };

/* How the value of a key is written. */
typedef enum plan_value {
    PLAN_INTEGER, /* lowest .. highest */
    PLAN_SWITCH,  /* on | off */
    PLAN_WORD,    /* one of words */
    PLAN_DTYPE,   /* a data type that words names */
    PLAN_RECOMPUTE,
    PLAN_ORDER,
    PLAN_DIMS
} plan_value;

typedef struct plan_field {
    plan_value value;
    size_t offset; /* in sm_plan: of an int, or of a bool for a switch */
    int lowest, highest;
    sm_words words;
} plan_field;

extern const char *const sm_plan_keys[SM_PLAN_KEY_COUNT];
const plan_field *sm_plan_field(sm_plan_key key);
/* Ops that recompute= may name: those of every program that program.h builds. */
sm_words sm_plan_ops(void);
#endif
