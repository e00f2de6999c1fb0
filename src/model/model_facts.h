/* model_facts: what the rest of the product asks of a model, from the lines of its pieces. Private
 * to src/model. */
#pragma once
#include "scalemodel/model.h"

/* Of one token that is decoded: T = 1 and S = 1. */
typedef struct model_lines {
    const sm_text_lines
        *of[SM_MAX_LAYER_KINDS + SM_MAX_OUTSIDE]; /* kinds of layers, what is outside */
} model_lines;

/* The product of the sizes of an array's dimensions that have this role; 0: none has. */
double facts_size(const sm_text_lines *lines, int array, sm_dimension_role role);
/* Is it a weight of this piece? A tied one is another's. */
bool facts_is_own_weight(const sm_text_array *a);
/* Has this part of the piece ("ffn" of "ffn.wg") a weight with a dimension of this role? */
bool facts_scope_has(const sm_text_lines *lines, const char *name, sm_dimension_role role);
