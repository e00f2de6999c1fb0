/* page: shorthand for filling a report: numbers as people read them, rows of tables, fields of the
 * data. Where memory runs out each marks the report instead of failing, so that an answer reads as
 * a plain list of what it says. Texts live in the report's arena. */
#ifndef SCALEMODEL_PAGE_H
#define SCALEMODEL_PAGE_H
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
/* An amount of US dollars: $1.23M. */
const char *sm_show_usd(sm_report *r, double usd);
/* Print as printf does into the report's arena. "" when out of memory, which marks the report. */
const char *sm_textf(sm_report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- tables ---- */
enum { SM_PAGE_COLUMNS = 12 };
/* A table from "<chip|>bf16|<links": < aligns a column left, > right. title may be NULL. It becomes
 * part of the page by sm_report_table. */
sm_table *sm_page_table(sm_report *r, const char *title, const char *heads);
/* Append a row: as many `const char *` as the table has columns. They are copied. */
void sm_page_row(sm_report *r, sm_table *table, ...);
/* Append a row from an array with one text a column. They are copied. */
void sm_page_cells(sm_report *r, sm_table *table, const char *const *cells);

/* ---- data: fields of an object; a NULL key appends to an array ---- */
/* Put an empty object into an object under the key, or append it to an array (key NULL). Returns
 * it, to be filled; NULL when out of memory. */
sm_data *sm_put_object(sm_report *r, sm_data *parent, const char *key);
/* Put an empty array, as sm_put_object puts an object. Returns it, to be filled; NULL when out of
 * memory. */
sm_data *sm_put_array(sm_report *r, sm_data *parent, const char *key);
/* Put a number. NaN and infinity become null. */
void sm_put(sm_report *r, sm_data *object, const char *key, double value);
/* The same of what a clock gave: sm_data_timed. */
void sm_put_timed(sm_report *r, sm_data *object, const char *key, double value);
/* Put a copy of a text. NULL becomes null. */
void sm_put_text(sm_report *r, sm_data *object, const char *key, const char *text);
/* Put true or false. */
void sm_put_bool(sm_report *r, sm_data *object, const char *key, bool truth);
/* Numbers under the keys that '|' separates: sm_put_all(r, o, "mean|p50", s->mean, s->p50). As many
 * numbers as keys; keys NULL: all are appended to an array. */
#define sm_put_all(r, object, keys, ...)                                                           \
    sm_put_numbers((r), (object), (keys), sizeof((const double[]){__VA_ARGS__}) / sizeof(double),  \
                   (const double[]){__VA_ARGS__})
/* Put n numbers under the n keys that '|' separates, or append them to an array (keys NULL). What
 * sm_put_all calls. */
void sm_put_numbers(sm_report *r, sm_data *object, const char *keys, size_t n, const double *value);
/* A derivation as the field "explain" of the report: label, formula, value, unit, source, inputs.
 */
void sm_put_why(sm_report *r, const sm_why *why);

/* ---- derivations: labels and formulas are copied ---- */
/* A value that a formula makes of its inputs. NULL when out of memory, which marks the report. */
sm_why *sm_page_why(sm_report *r, const char *label, const char *formula, double value,
                    const char *unit);
/* Add to parent an input that is not derived further, with the source it comes from. */
void sm_page_leaf(sm_report *r, sm_why *parent, const char *label, double value, const char *unit,
                  const char *source);
/* Add to parent an input that the question gives: a leaf of source "given". */
void sm_page_given(sm_report *r, sm_why *parent, const char *label, double value, const char *unit);
SM_DECLARATIONS_END
#endif
