/* Private to plan: the row of a key with what reading, printing and the search need of it. */
#pragma once
#include "scalemodel/plan.h"

#include <string.h>

/* Whose programs a choice shards. */
typedef enum sm_plan_phase { PLAN_TRAINS, PLAN_PREFILLS, PLAN_DECODES } sm_plan_phase;

typedef struct plan_row {
    sm_plan_key_row key;
    size_t offset; /* in sm_plan: of an int or an enum, or of a bool for a switch */
    bool is_switch;
    unsigned matters; /* degrees (bit per key) that must exceed 1 for it to mean anything */
    /* Plans of training print it, usual or not, where these exceed 1, or ALWAYS. Otherwise a key is
     * printed where it is not as usual. */
    unsigned always;
    bool experts; /* it means nothing for a model without experts */
    bool (*means)(const sm_plan *plan,
                  const sm_model *model); /* what more it takes; NULL: nothing */
    int idle;                             /* its value where it means nothing */
    /* The value that says the same under the plan's other keys; NULL: each says something else. */
    int (*settled)(const sm_plan *plan, int value);
    unsigned searched; /* bit per use: whose search tries its values */
    /* Bit per phase: where its value is a rule of the program (program.h), and which. */
    unsigned ruled;
    size_t rule;
    bool rule_is_switch;
} plan_row;
enum { ALWAYS = 1 << SM_PLAN_DEGREES };

const plan_row *plan_row_of(sm_plan_key key);
int plan_value(const sm_plan *plan, const plan_row *row);
void plan_set_value(sm_plan *plan, const plan_row *row, int value);
/* Values that say the same as others under the plan's other keys become those. */
void plan_settle_values(sm_plan *plan);
/* Do all degrees of the mask exceed 1? */
bool plan_spreads(const sm_plan *plan, unsigned degrees);
bool plan_has_spare_chips(const sm_plan *plan, const sm_model *model);
/* Read a layout, which has at most SM_PLAN_LAYOUT_TEXT - 1 letters as it is kept; "even" is "". */
sm_status plan_layout_read(const sm_source *source, sm_span value, char *out, sm_error *err);
/* A layout that is the even one is none. */
void plan_settle_layout(sm_plan *plan, int layers);
/* The order of axes that an omitted key means. */
const uint8_t *plan_usual_order(sm_plan_use use);
