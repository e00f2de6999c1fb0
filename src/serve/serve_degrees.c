/* Whether the degrees of a plan can serve a model on a system. */
#include <math.h>
#include <stdio.h>

#include "serve_space.h"

double fullest(double groups, double sequences) {
    double each = sequences / groups;
    if (fmod(sequences, 1) == 0) each = ceil(each);
    return each > 1 ? each : 1;
}

#define REFUSE(...) return snprintf(room, size, __VA_ARGS__), room

const char *serve_refuse(const sm_serve *s, const sm_plan *p, char *room, size_t size) {
    int chips = sm_plan_chips(p);
    if (p->data < 1 || p->fsdp < 1 || p->tensor < 1 || p->context < 1 || p->expert < 1 ||
        p->pipeline < 1)
        REFUSE("the degrees of a plan are at least 1");
    if (chips > s->system.chips)
        REFUSE("the plan takes %d chips and %s has %d", chips, s->system.text, s->system.chips);
    const char *why = sm_plan_refuse(p, &s->model, room, size);
    if (!why) why = sm_plan_refuse_dims(p, &s->system, room, size);
    if (why) return why;
    if (s->model.D % p->fsdp) REFUSE("fsdp=%d does not divide the width D=%d", p->fsdp, s->model.D);
    return NULL;
}
