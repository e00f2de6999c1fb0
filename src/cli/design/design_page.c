/* What a study comes to: the machines that no other beats, what more of each resource brings, what
 * a system may cost. */
#include "design.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_SHOWN = 24, MOST_HEADS = CLI_MAX_LIST + 8 };

static const sweep *over(const design *d) { return d->work[0].s; }

static const char *usd_per_million(const design *d, const design_machine *m) {
    return sm_show_usd(d->r, m->takes[DESIGN_USD] / 3600 / m->tokens_per_s * 1e6);
}

static double change(double from, double to) { return to / from - 1; }

/* "tpu-v5p:8x8x8, hbm 1.5x" */
static const char *name_of(const design *d, int64_t machine) {
    const char *text = "";
    for (int i = 0; i < over(d)->axes; i++) {
        const sweep_axis *a = &over(d)->axis[i];
        const char *value = design_value(d, machine, i), *between = *text ? ", " : "";
        text = a->place == SWEEP_MACHINE
                   ? sm_textf(d->r, "%s%s%s %s", text, between, a->name, value)
                   : sm_textf(d->r, "%s%s%s", text, between, value);
    }
    return text;
}

/* ---- all of them ---- */

SM_ORDER_OF_POINTERS(by_rate, design_machine, SM_ASCENDING(tokens_per_s) SM_BY_PLACE)

static void show_best(const design *d, design_machine *const *best, size_t n) {
    sm_report *r = d->r;
    const sweep *s = over(d);
    const char *cell[MOST_HEADS], *heads = "";
    for (int i = 0; i < s->axes; i++) heads = sm_textf(r, "%s<%s|", heads, s->axis[i].name);
    heads = sm_textf(r, "%s>tokens/s|>$ an hour|>power|>$ a million|<plan%s", heads,
                     d->works > 1 ? " of the first" : "");
    sm_table *table = sm_page_table(r, NULL, heads);
    for (size_t i = 0; i < n && i < MOST_SHOWN; i++) {
        const design_machine *m = best[i];
        int k = 0;
        for (; k < s->axes; k++) cell[k] = design_value(d, m - d->machine, k);
        cell[k++] = sm_show_number(r, m->tokens_per_s);
        cell[k++] = sm_show_usd(r, m->takes[DESIGN_USD]);
        cell[k++] = isnan(m->takes[DESIGN_WATTS])
                        ? "-"
                        : sm_textf(r, "%s kW", sm_show_number(r, m->takes[DESIGN_WATTS] / 1000));
        cell[k++] = usd_per_million(d, m);
        cell[k] = m->plan[0];
        sm_page_cells(r, table, cell);
    }
    if (n > MOST_SHOWN) sm_report_text(r, "The first %d of %zu; --json has all.", MOST_SHOWN, n);
}

static void put_machine(const design *d, int64_t i, sm_data *to) {
    sm_report *r = d->r;
    const design_machine *m = &d->machine[i];
    sm_data *o = sm_put_object(r, to, NULL);
    for (int k = 0; k < over(d)->axes; k++) {
        const sweep_axis *a = &over(d)->axis[k];
        const char *value = design_value(d, i, k);
        if (a->place == SWEEP_MACHINE) sm_put(r, o, a->name, strtod(value, NULL));
        else sm_put(r, o, a->name, value);
    }
    sm_put(r, o, "tokens_per_s", m->tokens_per_s);
    for (int k = 0; k < DESIGN_MEASURES; k++) sm_put(r, o, design_measure_names[k], m->takes[k]);
    sm_put(r, o, "usd_per_million_tokens|joules_per_token|pareto|within_bounds|why",
           m->takes[DESIGN_USD] / 3600 / m->tokens_per_s * 1e6,
           m->takes[DESIGN_WATTS] / m->tokens_per_s, m->best, (bool)(!m->beyond), m->why);
    sm_data *work = sm_put_array(r, o, "work");
    for (int k = 0; k < d->works; k++) {
        sm_put(r, sm_put_object(r, work, NULL), "tokens_per_s|plan", m->rate[k], m->plan[k]);
    }
}

/* ---- what more brings ---- */

/* The machine of the cheapest token among those with a value on an axis; of all: axis -1. */
static int64_t cheapest(const design *d, int axis, int place) {
    int64_t best = -1;
    for (int64_t i = 0; i < d->machines; i++) {
        const design_machine *m = &d->machine[i];
        if (!design_counts(m) || (axis >= 0 && design_place(d, i, axis) != place)) continue;
        if (best < 0 || design_per_token(d, m) < design_per_token(d, &d->machine[best])) best = i;
    }
    return best;
}

/* A step pays when it brings more tokens for a dollar than are had without it, and is worth what it
 * may add to an hour until it does not. */
static void tell_step(const design *d, int axis, int64_t from, int64_t to, const sm_listing *list) {
    sm_report *r = d->r;
    const sweep_axis *a = &over(d)->axis[axis];
    const design_machine *m = &d->machine[from], *n = &d->machine[to];
    const int paid = d->compares[DESIGN_USD] ? DESIGN_USD : DESIGN_WATTS;
    const double more = n->tokens_per_s - m->tokens_per_s, cost = n->takes[paid] - m->takes[paid];
    const bool pays = design_per_token(d, n) < design_per_token(d, m);
    const double worth = m->takes[DESIGN_USD] * (n->tokens_per_s / m->tokens_per_s - 1);
    const bool priced = d->compares[DESIGN_USD] && cost > 0;
    const char *has = design_value(d, from, axis), *gets = design_value(d, to, axis);
    sm_list_row(list, true, a->name, has, gets, sm_textf(r, "%s to %s", has, gets), more,
                change(m->tokens_per_s, n->tokens_per_s),
                n->takes[DESIGN_USD] - m->takes[DESIGN_USD],
                change(m->takes[DESIGN_USD], n->takes[DESIGN_USD]),
                n->takes[DESIGN_WATTS] - m->takes[DESIGN_WATTS], worth,
                priced ? more / cost * 3600 : NAN, pays);
}

static void tell_steps(const design *d, int64_t base) {
    sm_report *r = d->r;
    const sm_listing list = sm_page_list(
        r, r->data, "steps", NULL,
        "resource<resource|from|to|<step|tokens_per_s|>{+%}tokens/s|usd_per_hour|>{+%}$ an hour|"
        "watts|worth_usd_per_hour>{$}worth|tokens_per_usd>tokens for a $ more|pays<pays");
    for (int axis = 0; axis < over(d)->axes; axis++) {
        if (over(d)->axis[axis].place != SWEEP_MACHINE) continue;
        const int64_t first = design_neighbour(d, base, axis, -design_place(d, base, axis));
        int64_t from = first;
        for (int64_t to; (to = design_neighbour(d, from, axis, 1)) >= 0; from = to)
            if (design_counts(&d->machine[from]) && design_counts(&d->machine[to])) {
                if (list.table && !list.table->rows)
                    sm_report_heading(r, "What more of a resource brings, all else as on %s",
                                      name_of(d, base));
                tell_step(d, axis, from, to, &list);
            }
    }
}

/* ---- what a system may cost ---- */

/* Of a system none of whose machines counts: some could do the work. */
static const char *why_none(const design *d, int axis, int place) {
    for (int64_t i = 0; i < d->machines; i++)
        if (design_place(d, i, axis) == place && !d->machine[i].why) return "beyond a bound";
    return "cannot do it";
}

/* The price of an hour at which a token costs what it does on the cheapest machine. */
static void tell_prices(const design *d, int64_t base) {
    sm_report *r = d->r;
    int on = 0;
    while (over(d)->axis[on].place == SWEEP_MACHINE) on++;
    if (!d->compares[DESIGN_USD] || over(d)->axis[on].n < 2) return;
    const sm_listing list =
        sm_page_list(r, r->data, "break_even", NULL,
                     "on|<its best|>tokens/s|>$ a million|usd_per_hour>{$}$ an hour|"
                     "break_even_usd_per_hour|>{$}breaks even at");
    const double token = design_per_token(d, &d->machine[base]);
    sm_report_heading(r, "What each system may cost to be as cheap as %s", name_of(d, base));
    for (int i = 0; i < over(d)->axis[on].n; i++) {
        const int64_t at = cheapest(d, on, i);
        const char *name = over(d)->axis[on].value[i];
        const design_machine *m = at < 0 ? NULL : &d->machine[at];
        const double even = m ? token * 3600 * m->tokens_per_s : NAN;
        sm_list_row(&list, true, name, m ? name_of(d, at) : name, m ? m->tokens_per_s : NAN,
                    m ? usd_per_million(d, m) : "-", m ? m->takes[DESIGN_USD] : NAN, even,
                    m ? sm_show_usd(r, even) : why_none(d, on, i));
    }
}

/* ---- the picture ---- */

static void add_point(sm_series *s, double *x, double *y, double at, double value) {
    x[s->n] = at;
    y[s->n++] = value;
    s->x = x;
    s->y = y;
}

/* Throughput against what it takes; tokens for a dollar (or a joule) along each resource, those of
 * the cheapest machine being 1. */
static sm_status draw(const design *d, design_machine *const *best, size_t n, int64_t base,
                      sm_error *err) {
    sm_series front[2] = {{.name = "no other beats it", .mark = SM_MARK_LINE_DOTS},
                          {.name = "others", .mark = SM_MARK_DOT}},
              line[CLI_MAX_LIST];
    const size_t room = (size_t)d->machines * (CLI_MAX_LIST + 2);
    double *x = sm_arena_array(d->r->arena, room, sizeof *x);
    double *y = sm_arena_array(d->r->arena, room, sizeof *y);
    if (!x || !y) return sm_fail_memory(err);
    const bool usd = d->compares[DESIGN_USD];
    const int paid = usd ? DESIGN_USD : DESIGN_WATTS;
    for (size_t i = 0; i < n; i++)
        add_point(&front[0], x, y, best[i]->takes[paid], best[i]->tokens_per_s);
    x += d->machines, y += d->machines;
    for (int64_t i = 0; i < d->machines; i++)
        if (design_counts(&d->machine[i]) && !d->machine[i].best)
            add_point(&front[1], x, y, d->machine[i].takes[paid], d->machine[i].tokens_per_s);
    size_t lines = 0;
    for (int axis = 0; axis < over(d)->axes; axis++) {
        const sweep_axis *a = &over(d)->axis[axis];
        if (a->place != SWEEP_MACHINE || a->n < 2) continue;
        sm_series *s = &line[lines++];
        *s = (sm_series){.name = a->name, .mark = SM_MARK_LINE_DOTS};
        x += d->machines, y += d->machines;
        int64_t at = design_neighbour(d, base, axis, -design_place(d, base, axis));
        for (; at >= 0; at = design_neighbour(d, at, axis, 1))
            if (design_counts(&d->machine[at]))
                add_point(s, x, y, strtod(design_value(d, at, axis), NULL),
                          design_per_token(d, &d->machine[base]) /
                              design_per_token(d, &d->machine[at]));
    }
    const sm_panel panel[] = {{.title = "Throughput and what it takes",
                               .x_label = usd ? "an hour" : "watts",
                               .y_label = "tokens/s",
                               .x_unit = usd ? "USD" : "",
                               .y_unit = "",
                               .x_scale = SM_SCALE_LOG,
                               .y_scale = SM_SCALE_LOG,
                               .n = front[1].n ? 2 : 1,
                               .series = front},
                              {.title = usd ? "Tokens for a dollar" : "Tokens for a joule",
                               .x_label = "times as much of it",
                               .y_label = "of the cheapest machine's",
                               .x_unit = "",
                               .y_unit = "",
                               .x_scale = SM_SCALE_LOG,
                               .n = lines,
                               .series = line}};
    sm_report_chart(d->r,
                    &(sm_chart){"Which machine for this work",
                                sm_textf(d->r, "%s", name_of(d, base)), lines ? 2 : 1, panel});
    return SM_OK;
}

/* ---- the page ---- */

static void tell_counts(const design *d, size_t best) {
    int64_t cannot = 0, beyond = 0, unknown = 0;
    const char *why = NULL;
    for (int64_t i = d->machines; i-- > 0;) {
        const design_machine *m = &d->machine[i];
        if (m->why) cannot++, why = m->why;
        else if (m->beyond) beyond++;
        for (int k = 0; k < DESIGN_MEASURES && !m->why; k++)
            unknown += d->most[k] > 0 && isnan(m->takes[k]);
    }
    sm_report_text(d->r,
                   "Of %lld machines %zu have no other that does as much for as little; %lld are "
                   "beyond a bound%s; %lld cannot do the work%s%s.",
                   (long long)d->machines, best, (long long)beyond,
                   unknown ? sm_textf(d->r, " (%lld may not be: what they take is not known)",
                                      (long long)unknown)
                           : "",
                   (long long)cannot, why ? ": " : "", why ? why : "");
}

sm_status design_tell(design *d, sm_error *err) {
    sm_report *r = d->r;
    size_t n = 0;
    /* The machines that no other beats, the least first. */
    design_machine **best = sm_arena_array(d->r->arena, (size_t)d->machines, sizeof *best);
    for (int64_t i = 0; best && i < d->machines; i++)
        if (d->machine[i].best) best[n++] = &d->machine[i];
    if (best) qsort(best, n, sizeof *best, by_rate);
    const int64_t base = cheapest(d, -1, 0);
    if (!best) return sm_fail_memory(err);
    sm_put(r, r->data, "command", "design");
    sm_data *work = sm_put_array(r, r->data, "work"), *machines;
    sm_report_heading(r, "Machines for %s%s", d->work[0].name,
                      d->works > 1 ? " and other work" : "");
    for (int k = 0; k < d->works; k++) {
        sm_put(r, sm_put_object(r, work, NULL), "ask|share", d->work[k].name, d->work[k].share);
    }
    machines = sm_put_array(r, r->data, "machines");
    for (int64_t i = 0; i < d->machines; i++) put_machine(d, i, machines);
    r->records = machines;
    if (n) show_best(d, best, n);
    tell_counts(d, n);
    if (base < 0) return r->out_of_memory ? sm_fail_memory(err) : SM_NEGATIVE;
    sm_put(r, r->data, "cheapest", name_of(d, base));
    tell_steps(d, base);
    tell_prices(d, base);
    sm_status s = draw(d, best, n, base, err);
    return !s && r->out_of_memory ? sm_fail_memory(err) : s;
}
