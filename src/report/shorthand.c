/* Shorthand for filling a report. */
#include "scalemodel/page.h"
#include <assert.h>
#include <math.h>
#include <string.h>

enum { NUMBER_ROOM = 48 };

static const char *keep(sm_report *r, const char *text, size_t length) {
    const char *kept = sm_arena_copy(r->arena, text, length);
    if (kept) return kept;
    r->out_of_memory = true;
    return "";
}

typedef char *writer(char *text, size_t size, double value);

static const char *show(sm_report *r, double value, writer *write) {
    char text[NUMBER_ROOM];
    if (!isfinite(value)) return "-";
    write(text, sizeof text, value);
    return keep(r, text, strlen(text));
}
const char *sm_show_count(sm_report *r, double value) { return show(r, value, sm_format_count); }

const char *sm_show_exact(sm_report *r, double value) { return show(r, value, sm_format_exact); }

const char *sm_show_number(sm_report *r, double value) {
    if (!isfinite(value)) return "-";
    if (value >= 1e6) return sm_show_count(r, value);
    if (value >= 1000.0) return sm_textf(r, "%.0f", value);
    return sm_textf(r, "%.4g", value);
}

const char *sm_show_bytes(sm_report *r, double bytes) { return show(r, bytes, sm_format_bytes); }

const char *sm_show_seconds(sm_report *r, double seconds) {
    return show(r, seconds, sm_format_seconds);
}

const char *sm_show_rate(sm_report *r, double per_s, const char *unit) {
    char text[NUMBER_ROOM];
    if (!isfinite(per_s)) return "-";
    sm_format_rate(text, sizeof text, per_s, unit);
    return keep(r, text, strlen(text));
}

const char *sm_show_percent(sm_report *r, double fraction) {
    return show(r, fraction, sm_format_percent);
}

const char *sm_show_signed_percent(sm_report *r, double fraction) {
    return isfinite(fraction) ? sm_textf(r, "%+.1f %%", 100.0 * fraction) : "-";
}

const char *sm_show_usd(sm_report *r, double usd) { return show(r, usd, sm_format_usd); }

const char *sm_textf(sm_report *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = sm_arena_vprintf(r->arena, format, args);
    va_end(args);
    if (text) return text;
    r->out_of_memory = true;
    return "";
}

/* ---- tables ---- */

sm_table *sm_page_table(sm_report *r, const char *title, const char *heads) {
    sm_table *t = sm_report_room(r, 1, sizeof *t);
    if (!t) return NULL;
    t->title = title ? keep(r, title, strlen(title)) : NULL;
    t->heads = sm_report_room(r, SM_PAGE_COLUMNS, sizeof *t->heads);
    t->units = sm_report_room(r, SM_PAGE_COLUMNS, sizeof *t->units);
    t->aligns = sm_report_room(r, SM_PAGE_COLUMNS, sizeof *t->aligns);
    if (!t->heads || !t->units || !t->aligns) return NULL;
    for (size_t i = 0; *heads && i < SM_PAGE_COLUMNS; i++) {
        size_t length = strcspn(heads, "|"), unit = heads[1] == '{' ? strcspn(heads, "}") : 0;
        if (*heads != '-') {
            t->aligns[t->columns] = heads[0] == '>' ? SM_RIGHT : SM_LEFT;
            t->units[i] = unit ? keep(r, heads + 2, unit - 2) : "#";
            t->heads[t->columns++] = keep(r, heads + unit + 1, length - unit - 1);
        }
        heads += length + (heads[length] == '|');
    }
    return t;
}

void sm_page_cells(sm_report *r, sm_table *t, const char *const *cells) {
    if (!t || t->rows == 0) sm_report_table(r, t);
    if (!t) return;
    const char **row = sm_report_room(r, t->columns, sizeof *row);
    const char ***all = sm_arena_grow(r->arena, t->cells, (int)t->rows, &t->room, sizeof *all);
    r->out_of_memory |= !all;
    if (!row || !all) return;
    for (size_t i = 0; i < t->columns; i++)
        row[i] = keep(r, cells[i] ? cells[i] : "", cells[i] ? strlen(cells[i]) : 0);
    t->cells = all;
    all[t->rows++] = row;
}

static const char *shown_in(sm_report *r, const char *unit, double value) {
    switch (unit[0] && unit[1] ? 0 : unit[0]) { /* "": there was no memory for it */
    case 's': return sm_show_seconds(r, value);
    case 'B': return sm_show_bytes(r, value);
    case '$': return sm_show_usd(r, value);
    case '%': return sm_show_percent(r, value);
    case 'n': return sm_show_count(r, value);
    case '=': return sm_show_exact(r, value);
    case '#': return sm_show_number(r, value);
    default: break;
    }
    bool change = strcmp(unit, "+%") == 0;
    return change ? sm_show_signed_percent(r, value) : sm_show_rate(r, value, unit);
}

void sm_page_fields(sm_report *r, sm_table *table, size_t n, const sm_field *field) {
    if (!table) return;
    const char *cells[SM_PAGE_COLUMNS] = {NULL};
    size_t shown = 0;
    assert(n <= SM_PAGE_COLUMNS);
    for (size_t i = 0; i < n; i++)
        if (table->units[i])
            cells[shown++] = field[i].kind == SM_DATA_STRING ? field[i].text
                             : field[i].kind == SM_DATA_BOOL
                                 ? (field[i].number > 0 ? "yes" : "no")
                                 : shown_in(r, table->units[i], field[i].number);
    assert(shown == table->columns);
    sm_page_cells(r, table, cells);
}

/* ---- the JSON answer ---- */

static sm_data *attach(sm_report *r, sm_data *parent, const char *key, sm_data of) {
    sm_data *data = sm_report_room(r, 1, sizeof *data);
    if (!data) return NULL;
    *data = of;
    if (of.string) data->string = keep(r, of.string, strlen(of.string));
    if (!sm_data_put(parent, r->arena, key, data)) r->out_of_memory = true;
    return data;
}

sm_data *sm_put_object(sm_report *r, sm_data *parent, const char *key) {
    return attach(r, parent, key, (sm_data){.kind = SM_DATA_OBJECT});
}

sm_data *sm_put_array(sm_report *r, sm_data *parent, const char *key) {
    return attach(r, parent, key, (sm_data){.kind = SM_DATA_ARRAY});
}

sm_data *sm_put_nested(sm_report *r, sm_data *object, const char **key) {
    for (size_t n; object && (*key)[n = strcspn(*key, ".")]; *key += n + 1) {
        const char *outer = keep(r, *key, n);
        sm_data *inner = object->first;
        while (inner && strcmp(inner->key, outer) != 0) inner = inner->next;
        object = inner || r->out_of_memory ? inner : sm_put_object(r, object, outer);
    }
    return object;
}

sm_field sm_field_number(double value) { return (sm_field){SM_DATA_NUMBER, value, NULL}; }

sm_field sm_field_text(const char *text) { return (sm_field){SM_DATA_STRING, 0, text}; }

sm_field sm_field_truth(bool truth) { return (sm_field){SM_DATA_BOOL, truth, NULL}; }

/* What JSON cannot hold is null. */
static sm_data data_of(sm_field f) {
    if (f.kind == SM_DATA_STRING)
        return (sm_data){.kind = f.text ? SM_DATA_STRING : SM_DATA_NULL, .string = f.text};
    if (f.kind == SM_DATA_BOOL) return (sm_data){.kind = SM_DATA_BOOL, .truth = f.number != 0};
    return isfinite(f.number) ? (sm_data){.kind = SM_DATA_NUMBER, .number = f.number}
                              : (sm_data){.kind = SM_DATA_NULL};
}

/* The next of the keys that '|' separates; NULL of none. */
static const char *next_key(sm_report *r, const char **keys, bool last) {
    size_t length = *keys ? strcspn(*keys, "|") : 0;
    assert(!*keys || r->out_of_memory || (length > 0 && ((*keys)[length] == '|') == !last));
    const char *key = *keys ? keep(r, *keys, length) : NULL;
    if (*keys) *keys += length + ((*keys)[length] == '|');
    return key;
}

void sm_put_fields(sm_report *r, sm_data *object, const char *keys, size_t n,
                   const sm_field *field) {
    for (size_t i = 0; i < n; i++)
        attach(r, object, next_key(r, &keys, i + 1 == n), data_of(field[i]));
}

void sm_put_timed_fields(sm_report *r, sm_data *object, const char *keys, size_t n,
                         const double *value) {
    for (size_t i = 0; i < n; i++) {
        sm_data of = data_of(sm_field_number(value[i]));
        of.timed = true;
        attach(r, object, next_key(r, &keys, i + 1 == n), of);
    }
}

/* ---- lists ---- */

sm_listing sm_page_list(sm_report *r, sm_data *parent, const char *key, const char *title,
                        const char *columns) {
    const char *heads = "";
    for (const char *at = columns; *at; at += strcspn(at, "|"), at += *at == '|') {
        size_t head = strcspn(at, "<>-|"), length = strcspn(at, "|");
        if (head < length)
            heads =
                sm_textf(r, "%s%s%.*s", heads, *heads ? "|" : "", (int)(length - head), at + head);
    }
    sm_data *data = (sm_data *)sm_data_get(parent, key);
    if (!data) data = sm_put_array(r, parent, key);
    return (sm_listing){r, data, sm_page_table(r, title, heads), columns};
}

sm_data *sm_list_fields(const sm_listing *list, bool shown, size_t n, const sm_field *field) {
    sm_report *r = list->report;
    sm_data *row = sm_put_object(r, list->data, NULL);
    sm_field cell[SM_PAGE_COLUMNS];
    size_t cells = 0;
    const char *at = list->columns;
    for (size_t i = 0; i < n; i++) {
        size_t head = strcspn(at, "<>-|"), length = strcspn(at, "|");
        const char *key = sm_textf(r, "%.*s", (int)head, at);
        sm_data *into = head ? sm_put_nested(r, row, &key) : NULL;
        if (head) attach(r, into, key, data_of(field[i]));
        if (head < length) cell[cells++] = field[i];
        at += length + (at[length] == '|');
    }
    assert(!*at);
    if (shown) sm_page_fields(r, list->table, cells, cell);
    return row;
}

static void fill_why(sm_report *r, sm_data *object, const sm_why *why) {
    sm_put(r, object, "label", why->label);
    if (why->formula) sm_put(r, object, "formula", why->formula);
    sm_put(r, object, "value|unit", why->value, why->unit);
    if (why->source) sm_put(r, object, "source", why->source);
    if (!why->first) return;
    sm_data *inputs = sm_put_array(r, object, "inputs");
    for (const sm_why *child = why->first; child; child = child->next)
        fill_why(r, sm_put_object(r, inputs, NULL), child);
}

void sm_put_why(sm_report *r, const sm_why *why) {
    fill_why(r, sm_put_object(r, r->data, "explain"), why);
}

/* ---- derivations ---- */

void sm_why_add(sm_why *parent, sm_why *child) {
    if (parent == NULL || child == NULL) return;
    child->next = NULL;
    if (parent->last != NULL) parent->last->next = child;
    else parent->first = child;
    parent->last = child;
}

static sm_why *add_why(sm_report *r, sm_why *parent, sm_why of) {
    sm_why *why = sm_report_room(r, 1, sizeof *why);
    if (!why) return NULL;
    *why = of;
    why->label = keep(r, of.label, strlen(of.label));
    why->unit = keep(r, of.unit, strlen(of.unit));
    if (of.formula) why->formula = keep(r, of.formula, strlen(of.formula));
    if (of.source) why->source = keep(r, of.source, strlen(of.source));
    sm_why_add(parent, why);
    return why;
}

sm_why *sm_page_why(sm_report *r, sm_why *parent, const char *label, const char *formula,
                    double value, const char *unit) {
    return add_why(r, parent,
                   (sm_why){.label = label, .formula = formula, .value = value, .unit = unit});
}

void sm_page_leaf(sm_report *r, sm_why *parent, const char *label, double value, const char *unit,
                  const char *source) {
    add_why(r, parent, (sm_why){.label = label, .value = value, .unit = unit, .source = source});
}

void sm_page_given(sm_report *r, sm_why *parent, const char *label, double value,
                   const char *unit) {
    sm_page_leaf(r, parent, label, value, unit, "given");
}
