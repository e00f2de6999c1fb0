/* render: report -> text for a terminal, JSON, CSV; charts as SVG; timelines for Perfetto
 * (Chrome trace). */
#pragma once
#include "scalemodel/report.h"

SM_DECLARATIONS_BEGIN

/* The page as text of at most `width` columns (0: 80, never less than the narrowest page): wide
 * tables are fitted by wrapping the last text column. Like the others it returns SM_OK, SM_IO when
 * the stream fails, or SM_INTERNAL when the report ran out of memory. */
sm_status sm_render_text(const sm_report *report, int width, FILE *out, sm_error *err);
/* Text wrapped to `width` columns: `first` leads the first line, `rest` the others. */
void sm_print_wrapped(FILE *out, const char *text, int width, const char *first, const char *rest);
/* The data of the report as JSON (RFC 8259), with one final newline. Numbers read back to the same
 * double. */
sm_status sm_render_json(const sm_report *report, FILE *out, sm_error *err);
/* The records of the report as CSV (RFC 4180), numbers as --json has them; without records every
 * table of the page, an empty line between two. A text that a spreadsheet would take for a formula
 * gets an apostrophe in front. */
sm_status sm_render_csv(const sm_report *report, FILE *out, sm_error *err);
/* One record of CSV: n cells, quoted where they need it. */
void sm_render_record(const char *const *cells, size_t n, FILE *out);

/* The page and the chart of a report as one HTML file, which needs no other. Errors as
 * sm_render_text. */
sm_status sm_render_html(const sm_report *report, FILE *out, sm_error *err);

/* A chart as SVG: panels of lines, marks and stacked areas. SM_IO when the stream fails,
 * SM_INTERNAL when out of memory. */
sm_status sm_render_chart(const sm_chart *chart, FILE *out, sm_error *err);

/* A timeline as trace events in the Chrome JSON format, which Perfetto opens: slices to the
 * nanosecond; what has no finite time from 0 to a century is left out. SM_IO when the stream fails.
 */
sm_status sm_render_tracks(const sm_tracks *tracks, FILE *out, sm_error *err);
SM_DECLARATIONS_END
