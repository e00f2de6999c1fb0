/* page: shorthand for filling a report: numbers as people read them, rows of tables, fields of the
 * data. Where memory runs out each marks the report instead of failing, so that an answer reads as
 * a plain list of what it says. Texts live in the report's arena. */
#pragma once
#include "scalemodel/report.h"

SM_DECLARATIONS_BEGIN

/* ---- numbers in short human form; "-" where a value is not known (NaN, infinity). Never NULL. */
/* A count: 70.6B. */
const char *sm_show_count(sm_report *r, double value);
/* The shortest decimal that reads back to the same double: 4096, 136.086. */
const char *sm_show_exact(sm_report *r, double value);
/* A plain number: four significant digits below 1e3, whole below 1e6, then as a count. 240.2, 4096,
 * 4.19M. */
const char *sm_show_number(sm_report *r, double value);
/* Bytes with decimal prefixes: 95.7 GB. */
const char *sm_show_bytes(sm_report *r, double bytes);
/* A time: 559 us. */
const char *sm_show_seconds(sm_report *r, double seconds);
/* A rate per second in the unit given: 459 TFLOP/s. */
const char *sm_show_rate(sm_report *r, double per_s, const char *unit);
/* A fraction in per cent: 45.3 %. */
const char *sm_show_percent(sm_report *r, double fraction);
/* With its sign: +12.3 %. */
const char *sm_show_signed_percent(sm_report *r, double fraction);
/* An amount of US dollars: $1.23M. */
const char *sm_show_usd(sm_report *r, double usd);
/* Print as printf does into the report's arena. "" when out of memory, which marks the report. */
const char *sm_textf(sm_report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- tables ---- */
enum { SM_PAGE_COLUMNS = 24 };
/* A table from "<chip|>{s}step|>{%}MFU": < aligns a column left, > right, and braces hold the unit
 * that its numbers are shown in: s, B, $, a rate as FLOP/s, % of a fraction, +% with its sign; n a
 * count, = exact, # a plain number (which is usual). "-" before < or > leaves a column out, with
 * what rows have for it. title may be NULL. It stands on the page where its first row is appended;
 * without rows it is not there. */
sm_table *sm_page_table(sm_report *r, const char *title, const char *heads);
/* Append a row: a value for each column, texts as they are, numbers in the unit of the column and
 * "-" where not known. Texts are copied. */
#define sm_page_row(r, table, ...)                                                                 \
    sm_page_fields((r), (table), SM_N_FIELDS(__VA_ARGS__),                                         \
                   (const sm_field[]){SM_FIELDS(__VA_ARGS__)})
/* Append a row from an array with one text a column. They are copied. */
void sm_page_cells(sm_report *r, sm_table *table, const char *const *cells);

/* ---- lists: rows that stand in the data and on the page ---- */
typedef struct sm_listing {
    sm_report *report;
    sm_data *data;
    sm_table *table;
    const char *columns;
} sm_listing;
/* A list under a key of parent, and its table, from one list of columns "op<what|time_s.mean>{s}":
 * each a key (nested as sm_put_nested has it), then a column of sm_page_table. A column without a
 * key stands on the page alone, one without < and > in the data alone. A list that is there already
 * is gone on with. */
sm_listing sm_page_list(sm_report *r, sm_data *parent, const char *key, const char *title,
                        const char *columns);
/* Append a row: a value for each column. shown: on the page, too. Returns its object, for what only
 * some rows have; NULL when out of memory. */
#define sm_list_row(list, shown, ...)                                                              \
    sm_list_fields((list), (shown), SM_N_FIELDS(__VA_ARGS__),                                      \
                   (const sm_field[]){SM_FIELDS(__VA_ARGS__)})

/* ---- data: fields of an object; a NULL key appends to an array ---- */
/* Put an empty object into an object under the key, or append it to an array (key NULL). Returns
 * it, to be filled; NULL when out of memory. */
sm_data *sm_put_object(sm_report *r, sm_data *parent, const char *key);
/* Put an empty array, as sm_put_object puts an object. Returns it, to be filled; NULL when out of
 * memory. */
sm_data *sm_put_array(sm_report *r, sm_data *parent, const char *key);
/* Where "a.b.c" goes: into the object b of the object a of this one, made where they are not there.
 * *key moves to what it is called there. NULL when out of memory. */
sm_data *sm_put_nested(sm_report *r, sm_data *object, const char **key);
/* What a field is given: a number, a text or a truth, as its C type tells. */
typedef struct sm_field {
    sm_data_kind kind; /* SM_DATA_NUMBER, SM_DATA_STRING or SM_DATA_BOOL */
    double number;     /* of a truth 0 or 1 */
    const char *text;
} sm_field;
/* A number as a field. */
sm_field sm_field_number(double value);
/* A text as a field; it is not copied. */
sm_field sm_field_text(const char *text);
/* True or false as a field. */
sm_field sm_field_truth(bool truth);
/* Put n fields under the n keys that '|' separates, or append them to an array (keys NULL). What
 * sm_put calls, for languages without _Generic. */
void sm_put_fields(sm_report *r, sm_data *object, const char *keys, size_t n,
                   const sm_field *field);
/* Put what is given under the keys that '|' separates: sm_put(r, o, "mean|fits|plan", s->mean,
 * s->fits, text). As many values as keys, at most 16; keys NULL: all are appended to an array.
 * Texts are copied; NULL, NaN and infinity become null. A comparison is an int in C, hence a
 * number, where it is not cast: (bool)(a < b). */
#define sm_put(r, object, keys, ...)                                                               \
    sm_put_fields((r), (object), (keys), SM_N_FIELDS(__VA_ARGS__),                                 \
                  (const sm_field[]){SM_FIELDS(__VA_ARGS__)})
/* What sm_page_row and sm_list_row call, as sm_put_fields. */
void sm_page_fields(sm_report *r, sm_table *table, size_t n, const sm_field *field);
sm_data *sm_list_fields(const sm_listing *list, bool shown, size_t n, const sm_field *field);
#define SM_FIELD(x)                                                                                \
    _Generic((x),                                                                                  \
        bool: sm_field_truth,                                                                      \
        char *: sm_field_text,                                                                     \
        const char *: sm_field_text,                                                               \
        default: sm_field_number)(x)
#define SM_N_FIELDS(...) (sizeof((const sm_field[]){SM_FIELDS(__VA_ARGS__)}) / sizeof(sm_field))
/* SM_FIELD of each of up to 16 values. */
#define SM_FIELDS(...)                                                                             \
    SM_FIELDS_N(__VA_ARGS__, SM_F16, SM_F15, SM_F14, SM_F13, SM_F12, SM_F11, SM_F10, SM_F9, SM_F8, \
                SM_F7, SM_F6, SM_F5, SM_F4, SM_F3, SM_F2, SM_F1, 0)                                \
    (__VA_ARGS__)
#define SM_FIELDS_N(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, each, ...) each
#define SM_F1(x) SM_FIELD(x)
#define SM_F2(x, ...) SM_FIELD(x), SM_F1(__VA_ARGS__)
#define SM_F3(x, ...) SM_FIELD(x), SM_F2(__VA_ARGS__)
#define SM_F4(x, ...) SM_FIELD(x), SM_F3(__VA_ARGS__)
#define SM_F5(x, ...) SM_FIELD(x), SM_F4(__VA_ARGS__)
#define SM_F6(x, ...) SM_FIELD(x), SM_F5(__VA_ARGS__)
#define SM_F7(x, ...) SM_FIELD(x), SM_F6(__VA_ARGS__)
#define SM_F8(x, ...) SM_FIELD(x), SM_F7(__VA_ARGS__)
#define SM_F9(x, ...) SM_FIELD(x), SM_F8(__VA_ARGS__)
#define SM_F10(x, ...) SM_FIELD(x), SM_F9(__VA_ARGS__)
#define SM_F11(x, ...) SM_FIELD(x), SM_F10(__VA_ARGS__)
#define SM_F12(x, ...) SM_FIELD(x), SM_F11(__VA_ARGS__)
#define SM_F13(x, ...) SM_FIELD(x), SM_F12(__VA_ARGS__)
#define SM_F14(x, ...) SM_FIELD(x), SM_F13(__VA_ARGS__)
#define SM_F15(x, ...) SM_FIELD(x), SM_F14(__VA_ARGS__)
#define SM_F16(x, ...) SM_FIELD(x), SM_F15(__VA_ARGS__)
/* The same of numbers that a clock gave, which are not the same in every run. */
#define sm_put_timed(r, object, keys, ...)                                                         \
    sm_put_timed_fields((r), (object), (keys),                                                     \
                        sizeof((const double[]){__VA_ARGS__}) / sizeof(double),                    \
                        (const double[]){__VA_ARGS__})
/* What sm_put_timed calls, as sm_put_fields. */
void sm_put_timed_fields(sm_report *r, sm_data *object, const char *keys, size_t n,
                         const double *value);
/* A derivation as the field "explain" of the report: label, formula, value, unit, source, inputs.
 */
void sm_put_why(sm_report *r, const sm_why *why);

/* ---- derivations: labels and formulas are copied ---- */
/* Add to parent, if any, a value that a formula makes of its inputs. NULL when out of memory, which
 * marks the report. */
sm_why *sm_page_why(sm_report *r, sm_why *parent, const char *label, const char *formula,
                    double value, const char *unit);
/* Add to parent an input that is not derived further, with the source it comes from. */
void sm_page_leaf(sm_report *r, sm_why *parent, const char *label, double value, const char *unit,
                  const char *source);
/* Add to parent an input that the question gives: a leaf of source "given". */
void sm_page_given(sm_report *r, sm_why *parent, const char *label, double value, const char *unit);
SM_DECLARATIONS_END
