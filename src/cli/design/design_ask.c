/* The machines of a study: what they do, what they take, which are worth it. */
#include "design.h"
#include <math.h>
#include <stdlib.h>

/* ---- which they are: the last axis varies fastest ---- */

int design_place(const design *d, int64_t machine, int axis) {
    return (int)(machine / sweep_stride(d->work[0].s, axis) % d->work[0].s->axis[axis].n);
}

int64_t design_neighbour(const design *d, int64_t machine, int axis, int step) {
    const int at = design_place(d, machine, axis) + step;
    if (at < 0 || at >= d->work[0].s->axis[axis].n) return -1;
    return machine + step * sweep_stride(d->work[0].s, axis);
}

const char *design_value(const design *d, int64_t machine, int axis) {
    return d->work[0].s->axis[axis].value[design_place(d, machine, axis)];
}

static sm_status system_of(const design *d, int64_t machine, sm_system *system, sm_error *err) {
    const sweep *s = d->work[0].s;
    sm_arena *arena = d->r->arena;
    const char *changes = NULL;
    sm_status status = SM_OK;
    sm_system plain;
    for (int i = 0; i < s->axes && !status; i++) {
        const sweep_axis *a = &s->axis[i];
        const char *value = design_value(d, machine, i);
        if (a->place == SWEEP_MACHINE) {
            changes = sm_arena_printf(arena, "%s%s%s=%s", changes ? changes : "",
                                      changes ? "," : "", a->name, value);
            if (!changes) return sm_fail_memory(err);
            continue;
        }
        const sm_source on = sm_source_of("on", value);
        status = sm_system_parse(&on, d->chip, d->chips, &plain, err);
    }
    if (status || !changes) return *system = plain, status;
    const sm_source text = sm_source_of("what-if", changes);
    return sm_system_what_if(&text, &plain, system, err);
}

/* ---- formulas ---- */

#define FACTS(X)                                                                                   \
    X("chips", s->chips)                                                                           \
    X("peak_flops_per_s", s->chip.flops_per_s[SM_BF16].value)                                      \
    X("memory_bytes", s->chip.memory_bytes.value)                                                  \
    X("memory_bytes_per_s", s->chip.memory_bytes_per_s.value)                                      \
    X("link_bytes_per_s_oneway", s->level[0].bytes_per_s_oneway)                                   \
    X("domain_chips", s->torus_dims ? s->chips / s->slices : s->level[0].size)                     \
    X("tdp_w", s->chip.tdp_w.value)                                                                \
    X("usd_per_chip_hour", sm_chip_usd_per_hour(&s->chip))

const char *const *design_names(size_t *n) {
#define X(name, value) name,
    static const char *const names[] = {"chip", FACTS(X) SM_RESOURCES(SM_NAME_OF)};
#undef X
    *n = sizeof names / sizeof *names;
    return names;
}

typedef struct naming {
    const design *d;
    int64_t machine;
    const sm_system *system;
} naming;

/* A fact that is not known is absent; a resource that is not swept is as it is. */
static expression_value value_of(const void *context, const char *name) {
    const naming *n = context;
    const sm_system *s = n->system;
    const sweep *over = n->d->work[0].s;
    if (strcmp(name, "chip") == 0) return value_text(s->chip.name);
#define X(known, value)                                                                            \
    if (strcmp(name, known) == 0)                                                                  \
        return (value) > 0 ? value_number(value) : (expression_value){.kind = VALUE_ABSENT};
    FACTS(X)
#undef X
    for (int i = 0; i < over->axes; i++)
        if (over->axis[i].place == SWEEP_MACHINE && strcmp(over->axis[i].name, name) == 0)
            return value_number(strtod(design_value(n->d, n->machine, i), NULL));
    return value_number(1);
}

static sm_status fill_takes(design *d, int64_t i, sm_error *err) {
    sm_system system;
    bool out_of_memory = false;
    design_machine *m = &d->machine[i];
    sm_status s = system_of(d, i, &system, err);
    if (s) return s;
    m->chips = system.chips;
    const naming n = {d, i, &system};
    for (int k = 0; k < DESIGN_MEASURES; k++) {
        expression_value v =
            expression_work(d->formula[k], value_of, &n, d->r->arena, &out_of_memory);
        m->takes[k] = v.kind == VALUE_NUMBER && v.number > 0 ? v.number : NAN;
        d->compares[k] &= !isnan(m->takes[k]);
        m->beyond |= d->most[k] > 0 && !(m->takes[k] <= d->most[k]);
    }
    return out_of_memory ? sm_fail_memory(err) : SM_OK;
}

/* ---- what they do ---- */

typedef struct taking {
    design *d;
    int work;
    int64_t next;
} taking;

static sm_status take(void *context, const char *cells, sm_error *err) {
    taking *t = context;
    const design_work *w = &t->d->work[t->work];
    const char *cell[SWEEP_MOST_CELLS];
    design_machine *m = &t->d->machine[t->next++];
    sweep_part(w->s, cells, cell);
    const int axes = w->s->axes;
    m->rate[t->work] = NAN;
    if (*cell[axes] == 'y') {
        m->rate[t->work] = strtod(cell[axes + 1], NULL) * m->chips;
        m->plan[t->work] = sm_arena_copy(t->d->r->arena, cell[axes + 2], strlen(cell[axes + 2]));
        return m->plan[t->work] ? SM_OK : sm_fail_memory(err);
    }
    if (!m->why) m->why = sm_textf(t->d->r, "%s: %s", w->name, cell[sweep_cells(w->s) - 1]);
    return t->d->r->out_of_memory ? sm_fail_memory(err) : SM_OK;
}

/* ---- which are worth it ---- */

double design_per_token(const design *d, const design_machine *m) {
    return d->compares[DESIGN_USD] ? m->takes[DESIGN_USD] / 3600 / m->tokens_per_s
                                   : m->takes[DESIGN_WATTS] / m->tokens_per_s;
}

/* As good in all that is compared. */
static bool is_as_good(const design *d, const design_machine *a, const design_machine *b) {
    for (int k = 0; k < DESIGN_MEASURES; k++)
        if (d->compares[k] && a->takes[k] > b->takes[k]) return false;
    return a->tokens_per_s >= b->tokens_per_s;
}

typedef struct entry {
    double takes[DESIGN_MEASURES]; /* 0 where it is not compared */
    double tokens_per_s;
    design_machine *m;
} entry;

/* One that is as good as another in all comes before it. */
SM_ORDER(by_goodness, entry,
         SM_ASCENDING(takes[DESIGN_USD]) SM_ASCENDING(takes[DESIGN_WATTS])
             SM_DESCENDING(tokens_per_s) SM_ASCENDING(m))

static sm_status find_best(design *d, sm_error *err) {
    entry *all = sm_arena_array(d->r->arena, (size_t)d->machines, sizeof *all);
    size_t n = 0, best = 0;
    if (!all) return sm_fail_memory(err);
    for (int64_t i = 0; i < d->machines; i++) {
        design_machine *m = &d->machine[i];
        if (!design_counts(m)) continue;
        entry *e = &all[n++];
        *e = (entry){.tokens_per_s = m->tokens_per_s, .m = m};
        for (int k = 0; k < DESIGN_MEASURES; k++) e->takes[k] = d->compares[k] ? m->takes[k] : 0;
    }
    qsort(all, n, sizeof *all, by_goodness);
    for (size_t i = 0; i < n; i++) {
        bool beaten = false;
        for (size_t k = 0; k < best && !beaten; k++) beaten = is_as_good(d, all[k].m, all[i].m);
        if (beaten) continue;
        all[i].m->best = true;
        all[best++] = all[i];
    }
    return SM_OK;
}

sm_status design_ask(design *d, int threads, sm_error *err) {
    sm_status s = SM_OK;
    d->machine = sm_arena_array(d->r->arena, (size_t)d->machines, sizeof *d->machine);
    if (!d->machine) return sm_fail_memory(err);
    for (int k = 0; k < DESIGN_MEASURES; k++) d->compares[k] = true;
    for (int64_t i = 0; i < d->machines && !s; i++) s = fill_takes(d, i, err);
    if (s) return s;
    if (!d->compares[DESIGN_USD] && !d->compares[DESIGN_WATTS])
        return sm_fail(err, SM_BAD_INPUT,
                       "neither dollars nor watts are known of every machine: give formulas, "
                       "\"usd_per_hour\" or \"watts\"");
    const sweep_askers askers = {.threads = threads};
    for (int k = 0; k < d->works && !s; k++) {
        taking t = {d, k, 0};
        const sweep_taker taker = {take, &t, false};
        s = sweep_spread(d->work[k].s, 0, &askers, &taker, err);
    }
    /* Tokens come in the shares of the work, which takes turns. */
    for (int64_t i = 0; i < d->machines && !s; i++) {
        double tokens = 0, seconds = 0;
        for (int k = 0; k < d->works; k++) {
            tokens += d->work[k].share;
            seconds += d->work[k].share / d->machine[i].rate[k];
        }
        d->machine[i].tokens_per_s = d->machine[i].why ? NAN : tokens / seconds;
    }
    return s ? s : find_best(d, err);
}
