/* validate_layouts: where one source measured many layouts of one model on one machine, do we rank
 * them as they were measured, and what would trusting our best have cost? */
#include "validated.h"

enum { LEAST_LAYOUTS = 8 };
/* Two releases of one software differ by so much on one configuration, in the median. */
#define NOISE 1.037

typedef struct sweep {
    size_t n;
    double *expected, *measured; /* seconds per sequence */
    double *room;                /* 4n */
} sweep;
typedef struct ranking {
    size_t sweeps;
    double *tau, *apart, *lost;
} ranking;

static sm_member *training_members(const sm_validation *v, size_t *n) {
    sm_member *m = sm_arena_array(v->arena, v->compared + 1, sizeof *m);
    *n = 0;
    for (size_t i = 0; m && i < v->compared; i++) {
        const sm_checked *c = &v->row[v->index[i]];
        if (c->row->kind != SM_TRUTH_TRAINING) continue;
        const sm_training_row *t = &c->row->of.training;
        /* sources try numbers of heads under one name */
        const char *key =
            sm_arena_printf(v->arena, "%s\n%s\n%d\n%s\n%d\n%.0f\n%s", c->row->source, t->model.name,
                            t->model.heads, c->chip, t->chips, t->seq_len, t->precision_class);
        if (!key) return NULL;
        m[(*n)++] = (sm_member){key, v->index[i]};
    }
    if (m) sm_members_sort(m, *n);
    return m;
}

/* The layouts of a sweep; one that was measured several times is one layout, at the geometric mean:
 * one plan, where it is stated, of one software and batch. */
static bool fill_sweep(const sm_validation *v, sm_member *m, size_t rows, sweep *s) {
    s->n = 0;
    for (size_t i = 0; i < rows; i++) {
        const sm_truth_row *row = v->row[m[i].at].row;
        const sm_training_row *t = &row->of.training;
        m[i].key = t->plan && t->plan[0]
                       ? sm_arena_printf(v->arena, "%s\n%.0f\n%s", t->plan,
                                         t->global_batch_sequences, sm_truth_software(row))
                       : sm_arena_printf(v->arena, "%zu", i);
        if (!m[i].key) return false;
    }
    sm_members_sort(m, rows);
    for (size_t i = 0, end; i < rows; i = end) {
        const sm_checked *c = &v->row[m[i].at];
        double sequences = c->row->of.training.global_batch_sequences, log_sum = 0.0;
        end = i + sm_members_run(m + i, rows - i, 0);
        for (size_t k = i; k < end; k++) log_sum += log(v->row[m[k].at].row->measured_s);
        s->expected[s->n] = c->p.expected_s / sequences;
        s->measured[s->n++] = exp(log_sum / (double)(end - i)) / sequences;
    }
    return true;
}

static bool add_sweeps(sm_report *r, const sm_validation *v, sm_member *m, size_t n, sweep *s,
                       ranking *k) {
    const sm_listing list =
        sm_page_list(r, r->data, "layouts", "Layouts of one model on one machine",
                     "source|model<model|<on|chip|chips|seq>{=}seq|precision|layouts>{=}layouts|"
                     "kendall_tau|>Kendall tau|kendall_tau_apart|>apart|time_lost>{%}time lost");
    for (size_t i = 0, j; i < n; i = j) {
        j = sm_members_run(m, n, i);
        if (!fill_sweep(v, m + i, j - i, s)) return false;
        if (s->n < LEAST_LAYOUTS) continue;
        double tau = sm_kendall_tau(s->expected, s->measured, s->n, s->room);
        double lost = sm_time_lost(s->expected, s->measured, s->n);
        double apart = sm_kendall_tau_apart(s->expected, s->measured, s->n, NOISE, s->room);
        const sm_checked *c = &v->row[m[i].at];
        const sm_training_row *t = &c->row->of.training;
        sm_list_row(&list, true, c->row->source, t->model.name,
                    sm_textf(r, "%d x %s", t->chips, c->chip), c->chip, t->chips, t->seq_len,
                    t->precision_class, (double)s->n, tau,
                    isfinite(tau) ? sm_textf(r, "%.2f", tau) : "-", apart,
                    isfinite(apart) ? sm_textf(r, "%.2f", apart) : "-", lost);
        k->apart[k->sweeps] = isfinite(apart) ? apart : 0.0;
        k->tau[k->sweeps] = isfinite(tau) ? tau : 0.0;
        k->lost[k->sweeps++] = lost;
    }
    if (k->sweeps == 0) return true;
    double mean = 0.0;
    for (size_t i = 0; i < k->sweeps; i++) mean += k->lost[i] / (double)k->sweeps;
    sm_data *object = sm_put_object(r, r->data, "ranking");
    double tau = sm_quantile(k->tau, k->sweeps, 0.5), worst = sm_quantile(k->tau, k->sweeps, 0.0);
    double lost = sm_quantile(k->lost, k->sweeps, 0.5), most = sm_quantile(k->lost, k->sweeps, 1.0);
    double apart = sm_quantile(k->apart, k->sweeps, 0.5);
    sm_put(r, object,
           "sweeps|median_kendall_tau|median_kendall_tau_apart|least_kendall_tau|"
           "median_time_lost|mean_time_lost|most_time_lost",
           (double)k->sweeps, tau, apart, worst, lost, mean, most);
    if (k->sweeps > 1)
        sm_report_text(
            r,
            "Over %zu sweeps: median tau %.2f, %.2f of the pairs more than %.1f %% apart; "
            "lost %s in the median, %s on average, %s at most.",
            k->sweeps, tau, apart, 100.0 * (NOISE - 1.0), sm_show_percent(r, lost),
            sm_show_percent(r, mean), sm_show_percent(r, most));
    return true;
}

void sm_validate_layouts(sm_report *r, const sm_validation *v) {
    size_t n, room = v->compared + 1;
    sm_member *m = training_members(v, &n);
    sm_arena *arena = v->arena;
    sweep s = {0, sm_arena_array(arena, room, sizeof(double)),
               sm_arena_array(arena, room, sizeof(double)),
               sm_arena_array(arena, 4 * room, sizeof(double))};
    ranking k = {0, sm_arena_array(arena, room, sizeof(double)),
                 sm_arena_array(arena, room, sizeof(double)),
                 sm_arena_array(arena, room, sizeof(double))};
    bool whole = m && s.expected && s.measured && s.room && k.tau && k.apart && k.lost;
    if (!whole || (n > 0 && !add_sweeps(r, v, m, n, &s, &k))) r->out_of_memory = true;
}
