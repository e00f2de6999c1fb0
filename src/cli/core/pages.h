/* pages: short hands for filling a report: numbers as people read them, rows of tables, fields of
 * the JSON answer. Each marks the report out of memory instead of failing, so that verbs read as
 * plain lists of what they say. */
#ifndef SCALEMODEL_CLI_PAGES_H
#define SCALEMODEL_CLI_PAGES_H
#include "scalemodel/cost.h"
#include "scalemodel/report.h"

enum { CLI_MAX_COLUMNS = 12 };

/* Numbers in short human form; a value that is not known (NaN, infinity) shows as "-". Never NULL.
 */
const char *cli_count(sm_report *r, double value);     /* 70.6B */
const char *cli_exact(sm_report *r, double value);     /* 4096, 136.086 */
const char *cli_number(sm_report *r, double value);    /* four significant digits: 240.2 */
const char *cli_bytes(sm_report *r, double bytes);     /* 95.7 GB */
const char *cli_seconds(sm_report *r, double seconds); /* 559 us */
const char *cli_rate(sm_report *r, double per_s, const char *unit); /* 459 TFLOP/s */
const char *cli_percent(sm_report *r, double fraction);             /* 45.3 % */
const char *cli_usd(sm_report *r, double usd);
const char *cli_textf(sm_report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A table from "<chip|>bf16|<links": < left, > right. */
sm_table *cli_table(sm_report *r, const char *title, const char *heads);
/* A row: as many `const char *` as the table has columns. */
void cli_row(sm_report *r, sm_table *table, ...);
void cli_cells(sm_report *r, sm_table *table, const char *const *cells);

/* Fields of the JSON answer. A NULL key pushes onto an array. */
sm_data *cli_object(sm_report *r, sm_data *parent, const char *key);
sm_data *cli_array(sm_report *r, sm_data *parent, const char *key);
void cli_put(sm_report *r, sm_data *object, const char *key,
             double value); /* NaN and infinity become null */
void cli_put_text(sm_report *r, sm_data *object, const char *key, const char *text);
void cli_put_bool(sm_report *r, sm_data *object, const char *key, bool truth);

/* The derivation as the field "explain": label, formula, value, unit, source, inputs. */
void cli_put_why(sm_report *r, const sm_why *why);

/* Derivations. Labels and formulas are copied when they come from cli_textf, and must outlive the
 * report otherwise. */
sm_why *cli_why(sm_report *r, const char *label, const char *formula, double value,
                const char *unit);
/* A child that is given, or a datasheet fact. */
void cli_why_given(sm_report *r, sm_why *parent, const char *label, double value, const char *unit);
void cli_why_fact(sm_report *r, sm_why *parent, const char *label, const sm_fact *fact,
                  const char *unit);
void cli_why_leaf(sm_report *r, sm_why *parent, const char *label, double value, const char *unit,
                  const char *source);
#endif
