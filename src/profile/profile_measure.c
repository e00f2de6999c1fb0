/* What ran, beside what it should take: instructions are the same by name. */

#include "profile_made.h"

static const sm_trace_op *op_of(const sm_trace_program *ran, const sm_instruction *it) {
    const sm_trace_op key = {.name = it->name};
    return ran->ops ? bsearch(&key, ran->op, (size_t)ran->ops, sizeof key, sm_compare_texts) : NULL;
}

/* Seconds of one run of an instruction that runs `times` times in a run of the module. */
static double seconds_of(const sm_trace_program *ran, double runs, const sm_instruction *it,
                         double times) {
    const sm_trace_op *op = it ? op_of(ran, it) : NULL;
    return op && times > 0 ? op->seconds / runs / times : NAN;
}

/* A start and what awaits it count together. */
static double with_wait(const sm_trace_program *ran, double runs, const sm_instruction *by,
                        const sm_instruction *done, double times) {
    double own = seconds_of(ran, runs, by, times), wait = seconds_of(ran, runs, done, times);
    return isnan(own) ? wait : isnan(wait) ? own : own + wait;
}

void profile_measure(profile_made *made, const sm_trace_program *ran) {
    sm_profile_measured *m = &made->p.measured;
    for (int i = 0; i < made->p.ops; i++) made->op[i].measured_s = NAN;
    for (int i = 0; i < made->p.collectives; i++) made->collective[i].measured_s = NAN;
    made->p.measured.step_s = made->p.measured.idle_s = NAN;
    if (!ran) return;
    /* Runs of the module over all devices: as the trace has them, else as often as the instruction
     * ran that ran most often for how often it runs in one. */
    double runs = ran->runs;
    for (int i = 0; i < made->p.ops && ran->runs <= 0; i++) {
        const sm_trace_op *op = op_of(ran, made->op[i].instruction);
        if (op && made->op[i].times > 0) runs = fmax(runs, op->count / made->op[i].times);
    }
    if (runs <= 0) return;
    m->runs = runs;
    for (int i = 0; i < made->p.ops; i++) {
        sm_profile_op *op = &made->op[i];
        op->measured_s = with_wait(ran, runs, op->instruction, op->done, op->times);
        if (isnan(op->measured_s)) continue;
        *(op->copies ? &m->copies_s : &m->kernels_s) += op->measured_s * op->times;
    }
    for (int i = 0; i < made->p.collectives; i++) {
        sm_profile_collective *c = &made->collective[i];
        c->measured_s = with_wait(ran, runs, c->by, c->done, c->times);
        if (!isnan(c->measured_s)) m->collectives_s += c->measured_s * c->times;
    }
    if (ran->seconds <= 0) return;
    m->step_s = ran->seconds / runs;
    m->idle_s = fmax(m->step_s - m->kernels_s - m->collectives_s - m->copies_s, 0);
}
