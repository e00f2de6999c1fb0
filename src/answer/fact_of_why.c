/* A fact of a chip in a derivation. */
#include "scalemodel/answer.h"

void sm_page_fact(sm_report *r, sm_why *parent, const char *label, const sm_fact *fact,
                  const char *unit) {
    sm_page_leaf(r, parent, label, fact->value, unit, fact->source ? fact->source : "not known");
}
