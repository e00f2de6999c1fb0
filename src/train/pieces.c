/* The pieces of a plan: from degrees to what each layer kind takes. */

#include "space.h"

bool pieces_place(const sm_train *t, const sm_plan *plan, pieces *p) {
    sm_degrees_set(&p->d, plan, &t->model);
    if (!sm_plan_place(plan, &p->d, &t->system, &p->at.placement)) return false;
    p->at.copies = plan->state_copies > 1 ? plan->state_copies : 1;
    place_curves(t, p->v, false, &p->at);
    return true;
}

void pieces_time(const sm_train *t, const sm_plan *plan, pieces *p) {
    for (int i = 0; i < p->v->pieces; i++)
        piece_time_compute(t, p->v, i, &p->d, plan->dtype, &p->time[i]);
}

void pieces_kept(const sm_train *t, const sm_plan *plan, pieces *p) {
    for (int i = 0; i < p->v->pieces; i++)
        piece_kept_bytes(t, p->v, i, &p->d, plan->dtype, &p->kept[i]);
}

void pieces_gathered(const sm_train *t, const sm_plan *plan, pieces *p) {
    for (int i = 0; i < p->v->pieces; i++)
        p->gathered[i] = piece_gathered_bytes(t, p->v, i, &p->d, plan);
}

double pieces_handed(const sm_train *t, const pieces *p) {
    const variant *v = p->v;
    double bytes = size_at(&v->piece[0].part.boundary, &p->d);
    for (int i = 0; v->widest && i < v->loans; i++)
        if (sm_loan_crosses(&t->model, &v->loan[i], v->widest))
            bytes += size_at(&v->piece[v->loan[i].list].part.lent, &p->d);
    return bytes;
}

void pieces_comm(const sm_train *t, const sm_plan *plan, bool main, bool others, pieces *p) {
    const sm_timed_line *line;
    if (main) piece_comm_compute(t, t->main_kind, plan, p);
    for (int i = 0; others && i < p->v->pieces; i++)
        if (i != t->main_kind) piece_comm_compute(t, i, plan, p);
    double bytes = pieces_handed(t, p);
    p->send_serial_s = p->at.send ? sm_timed_curve_s(p->at.send, bytes, &line) : 0;
    /* a stage works on its next microbatch while the last one travels */
    p->send_s = p->send_serial_s * (1 - t->calibration->overlap);
}

void pieces_comm_again(const sm_train *t, pieces *p) {
    for (int i = 0; i < p->v->pieces; i++) piece_comm_again(t, i, p);
}

void pieces_load(const sm_train *t, const sm_plan *plan, pieces *p) {
    memset(p->load, 0, sizeof p->own_load);
    for (int i = 0; i < p->v->pieces; i++) piece_load(t, p->v, i, &p->d, &p->at, plan, p->load);
}

static int piece_set_of(const sm_train *t, const sm_plan *plan, int index) {
    return index < t->kinds ? set_of(plan) : SM_RECOMPUTE_NONE;
}

/* Seconds that what a layer keeps takes to host memory or back. */
static double offload_s(const sm_train *t, const sm_plan *plan, const pieces *p, int index) {
    bool offload = plan->offload == SM_OFFLOAD_ACTIVATIONS || plan->offload == SM_OFFLOAD_BOTH;
    if (!offload || index >= t->kinds) return 0;
    double pcie = sm_chip_host_bytes_per_s_oneway(&t->system.chip);
    return pcie > 0 ? kept_of(&p->kept[index], set_of(plan), plan) / pcie : 0;
}

void pieces_ways(const sm_train *t, const sm_plan *plan, int first, int end, pieces *p) {
    for (int i = first; i < end; i++)
        for (int way = 0; way < 2; way++)
            p->way[i][way] = piece_comm_way(t, &p->comm[i], way, piece_set_of(t, plan, i), plan);
}

void pieces_pass(const sm_train *t, const sm_plan *plan, int first, int end, pieces *p) {
    for (int i = first; i < end; i++)
        piece_pass_compute(t, &p->time[i], p->way[i], piece_set_of(t, plan, i), plan,
                           offload_s(t, plan, p, i), &p->pass[i]);
}

void pieces_parts(const sm_train *t, const sm_plan *plan, pieces *p) {
    for (int i = 0; i < p->v->pieces; i++) {
        int set = piece_set_of(t, plan, i);
        piece_pass_parts(t, &p->time[i], &p->comm[i], set, plan, offload_s(t, plan, p, i),
                         &p->pass[i]);
        piece_ideal_compute(t, i, set, plan, p);
    }
}
