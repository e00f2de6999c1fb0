/* Where two steps differ: each is cut into parts that add up to it, and the differences of parts of
 * one name therefore add up to the difference of the steps. */
#include "profile_asked.h"
#include <stdlib.h>

void profile_add_part(sm_report *r, profile_side *side, profile_part part) {
    profile_part *list =
        sm_arena_grow(r->arena, side->part, side->n, &side->room, sizeof *side->part);
    r->out_of_memory |= !list;
    if (list) side->part = list, list[side->n++] = part;
}

/* ---- the parts of a step ---- */

static double or_zero(double value) { return isnan(value) ? 0 : value; }

static const char *collective_kind(sm_report *r, const sm_profile *p,
                                   const sm_profile_collective *c) {
    if (!c->axes) return sm_textf(r, "%s of %d", sm_collective_name(c->op), c->members);
    return sm_textf(r, "%s over %s", sm_collective_name(c->op),
                    sm_axes_words(r, &p->mesh, c->axes));
}

/* The step of a file, as measured or as expected: kernels by kind and place, collectives by what
 * they are, and a part for the rest. */
static void profile_side_of(sm_report *r, const profile_file *file, bool measured,
                            profile_side *side) {
    const sm_profile *p = file->profile;
    const profile_rows *rows = &file->rows;
    double sum = 0;
    for (int i = 0; i < rows->n; i++) {
        const profile_row *row = &rows->row[i];
        double s = measured ? or_zero(row->measured_s) : row->step_s;
        sum += s;
        profile_add_part(r, side,
                         (profile_part){profile_kind_names[row->kind], row->name, s, row->count,
                                        row->flops, 0, NULL});
    }
    for (int i = 0; i < rows->comms; i++) {
        const profile_comm_row *row = &rows->comm[i];
        double s = measured ? or_zero(row->measured_s) : row->exposed_s;
        sum += s;
        profile_add_part(r, side,
                         (profile_part){collective_kind(r, p, row->first), row->name, s, row->count,
                                        0, row->bytes_per_chip, NULL});
    }
    if (!measured && p->time.copies_s > 0) {
        sum += p->time.copies_s;
        profile_add_part(r, side,
                         (profile_part){"copies waited for", "", p->time.copies_s, 1, 0, 0, NULL});
    }
    side->total_s = measured && !isnan(p->measured.step_s) ? p->measured.step_s
                    : measured                             ? sum
                                                           : p->time.expected_s;
    double rest = side->total_s - sum;
    if (fabs(rest) <= 1e-9 * side->total_s) return;
    profile_add_part(r, side,
                     (profile_part){measured ? "idle, and what is not in the module"
                                             : "links busy, other branches",
                                    "", rest, 1, 0, 0, NULL});
}

/* ---- differences ---- */

typedef struct change {
    const char *kind, *place;
    double seconds[2], count[2], flops[2], sent[2]; /* of the other, of this */
    const char *about[2];
    int turn; /* of its part: what is added up in one order has one sum */
} change;

SM_ORDER(by_name, change, SM_BY_TEXT(kind) SM_BY_TEXT(place))

SM_ORDER(by_turn, change, SM_BY(by_name) SM_ASCENDING(turn))

/* Sums of the same terms in another order differ in their last bits. */
static double difference(const change *c) {
    double d = c->seconds[1] - c->seconds[0];
    return fabs(d) <= 1e-9 * fmax(fabs(c->seconds[0]), fabs(c->seconds[1])) ? 0 : d;
}

SM_ORDER(by_difference, change, SM_BY_KEY(fabs(difference(y)), fabs(difference(x))) SM_BY(by_name))

static void add(change *to, const change *from) {
    for (int s = 0; s < 2; s++) {
        to->seconds[s] += from->seconds[s];
        to->count[s] += from->count[s];
        to->flops[s] += from->flops[s];
        to->sent[s] += from->sent[s];
        if (!to->about[s]) to->about[s] = from->about[s];
    }
}

static void take(change *list, int *n, const profile_side *side, int which, bool places) {
    for (int i = 0; i < side->n; i++) {
        const profile_part *part = &side->part[i];
        change *c = &list[*n];
        *c = (change){.kind = part->kind, .place = places ? part->place : "", .turn = (*n)++};
        c->seconds[which] = part->seconds;
        c->count[which] = part->count;
        c->flops[which] = part->flops;
        c->sent[which] = part->sent;
        c->about[which] = part->about;
    }
}

/* The parts of both sides that take time or send bytes, those of one name added up, the largest
 * difference first.
 */
static change *changes_of(sm_report *r, const profile_side *side[2], bool places, int *count) {
    int n = 0, kept = 0;
    change *list = sm_report_room(r, (size_t)(side[0]->n + side[1]->n) + 1, sizeof *list);
    *count = 0;
    if (!list) return NULL;
    for (int s = 0; s < 2; s++) take(list, &n, side[s], s, places);
    qsort(list, (size_t)n, sizeof *list, by_turn);
    for (int i = 0; i < n; i++) {
        if (!kept || by_name(&list[kept - 1], &list[i])) {
            list[kept++] = list[i];
            continue;
        }
        add(&list[kept - 1], &list[i]);
    }
    for (int i = n = 0; i < kept; i++)
        if (list[i].seconds[0] != 0 || list[i].seconds[1] != 0 || list[i].sent[0] > 0 ||
            list[i].sent[1] > 0)
            list[n++] = list[i];
    qsort(list, (size_t)n, sizeof *list, by_difference);
    *count = n;
    return list;
}

static const char *signed_seconds(sm_report *r, double seconds) {
    return sm_textf(r, "%s%s",
                    seconds < 0   ? "-"
                    : seconds > 0 ? "+"
                                  : "",
                    sm_show_seconds(r, fabs(seconds)));
}

/* Of the difference of the steps: parts of opposite sign have shares beyond it. */
static void put_row(sm_report *r, sm_table *table, const change *c, double whole) {
    double time[2], part = difference(c);
    for (int s = 0; s < 2; s++)
        time[s] = c->count[s] > 0 || c->seconds[s] != 0 ? c->seconds[s] : NAN;
    sm_page_row(r, table, c->kind, profile_tail(r, c->place, 26), time[0], time[1],
                signed_seconds(r, part), whole != 0 ? part / whole : NAN);
}

static void page_table(sm_report *r, const char *title, const profile_side *side[2], bool places,
                       int top) {
    int n;
    const change *list = changes_of(r, side, places, &n);
    const change total = {.kind = "the step",
                          .place = "",
                          .seconds = {side[0]->total_s, side[1]->total_s},
                          .count = {1, 1}};
    sm_table *table =
        sm_page_table(r, title,
                      sm_textf(r, "<part|%s<place|>{s}%s|>{s}%s|>difference|>{%%}of it",
                               places ? "" : "-", side[0]->name, side[1]->name));
    if (!list) return;
    for (int i = 0; i < n && i < top; i++) put_row(r, table, &list[i], difference(&total));
    if (n > top) {
        /* The rows beyond the first ones, as one. */
        change rest = {.kind = sm_textf(r, "%d others", n - top), .place = ""};
        for (int i = top; i < n; i++) add(&rest, &list[i]);
        put_row(r, table, &rest, difference(&total));
    }
    put_row(r, table, &total, difference(&total));
}

void profile_compare(sm_report *r, const profile_side *side[2], int kinds, int top) {
    page_table(r, "By kind", side, false, kinds);
    if (top) page_table(r, "By place", side, true, top);
    int n;
    const change *list = changes_of(r, side, true, &n);
    sm_data *object = sm_put_object(r, r->data, "against");
    sm_put(r, object, "other|this|other_s|this_s|difference_s", side[0]->name, side[1]->name,
           side[0]->total_s, side[1]->total_s, side[1]->total_s - side[0]->total_s);
    sm_data *parts = sm_put_array(r, object, "parts");
    for (int i = 0; list && i < n; i++) {
        sm_data *part = sm_put_object(r, parts, NULL);
        sm_put(r, part, "part|place", list[i].kind, list[i].place);
        for (int s = 0; s < 2; s++)
            if (list[i].about[s]) sm_put(r, part, s ? "this_is" : "other_is", list[i].about[s]);
        sm_put(r, part, "other_s|this_s|difference_s|other_count|this_count", list[i].seconds[0],
               list[i].seconds[1], difference(&list[i]), list[i].count[0], list[i].count[1]);
        sm_put(r, part, "other_flops|this_flops|other_sent_bytes|this_sent_bytes", list[i].flops[0],
               list[i].flops[1], list[i].sent[0], list[i].sent[1]);
    }
}

SM_ORDER(by_amount, change,
         SM_BY_KEY(fmax(y->flops[0], y->flops[1]), fmax(x->flops[0], x->flops[1]))
             SM_BY_KEY(fmax(y->sent[0], y->sent[1]), fmax(x->sent[0], x->sent[1])) SM_BY(by_name))

void profile_compare_work(sm_report *r, const profile_side *side[2]) {
    int n;
    change *list = changes_of(r, side, false, &n);
    sm_table *table = sm_page_table(
        r, "What each does, whatever it takes",
        sm_textf(r, "<part|>%s|>runs|>%s|>runs|>ratio", side[0]->name, side[1]->name));
    if (list) qsort(list, (size_t)n, sizeof *list, by_amount);
    for (int i = 0; list && i < n; i++) {
        const change *c = &list[i];
        bool works = c->flops[0] > 0 || c->flops[1] > 0;
        const double *amount = works ? c->flops : c->sent;
        const char *shown[2], *runs[2];
        if (!(amount[0] > 0) && !(amount[1] > 0)) continue;
        for (int s = 0; s < 2; s++) {
            shown[s] = amount[s] <= 0 ? "-"
                       : works        ? sm_textf(r, "%s FLOPs", sm_show_count(r, amount[s]))
                                      : sm_show_bytes(r, amount[s]);
            runs[s] = amount[s] <= 0 ? "" : sm_show_number(r, c->count[s]);
        }
        bool both = amount[0] > 0 && amount[1] > 0;
        sm_page_row(r, table, c->kind, shown[0], runs[0], shown[1], runs[1],
                    both ? sm_show_number(r, amount[1] / amount[0]) : "-");
    }
}

void profile_compare_sent(sm_report *r, const profile_side *side[2], int top) {
    int n, shown = 0;
    change *list = changes_of(r, side, true, &n);
    sm_table *table = sm_page_table(
        r, "Collectives, array by array",
        sm_textf(r, "<collective|<whole array|<of|>%s|>%s", side[0]->name, side[1]->name));
    if (list) qsort(list, (size_t)n, sizeof *list, by_amount);
    for (int i = 0; list && i < n && shown < top; i++) {
        const change *c = &list[i];
        const char *runs[2];
        if (!(c->sent[0] > 0) && !(c->sent[1] > 0)) continue;
        for (int s = 0; s < 2; s++)
            runs[s] = c->sent[s] > 0 ? sm_textf(r, "%s x", sm_show_number(r, c->count[s])) : "-";
        const char *about = c->about[0] ? c->about[0] : c->about[1] ? c->about[1] : "";
        sm_page_row(r, table, c->kind, c->place, profile_tail(r, about, 24), runs[0], runs[1]);
        shown++;
    }
}

void profile_against(sm_report *r, const profile_file *this, const profile_file *other, int top) {
    bool measured = this->profile->measured.runs > 0 && other->profile->measured.runs > 0;
    profile_side was = {.name = "other"}, is = {.name = "this"};
    profile_side_of(r, other, measured, &was);
    profile_side_of(r, this, measured, &is);
    double difference = is.total_s - was.total_s;
    sm_report_heading(r, "Against %s", other->name);
    sm_report_text(r, "A step takes %s %s, %s there (%s on %s): %s, %s.",
                   sm_show_seconds(r, is.total_s), measured ? "measured" : "expected",
                   sm_show_seconds(r, was.total_s), other->module->name,
                   other->profile->system->text, signed_seconds(r, difference),
                   was.total_s > 0 ? sm_textf(r, "%s%s of it", difference < 0 ? "-" : "+",
                                              sm_show_percent(r, fabs(difference) / was.total_s))
                                   : "-");
    if (this->profile->measured.runs > 0 && !measured)
        sm_report_text(r, "Only one of both was measured: expected times are compared.");
    profile_compare(r, (const profile_side *[]){&was, &is}, PROFILE_ALL_KINDS, top);
}
