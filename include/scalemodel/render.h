/* render: report -> text for a terminal, JSON, CSV; charts as SVG; timelines for Perfetto
 * (Chrome trace). */
#ifndef SCALEMODEL_RENDER_H
#define SCALEMODEL_RENDER_H
#include <stdio.h>
#include "scalemodel/report.h"

SM_DECLARATIONS_BEGIN

/* All return SM_OK, or SM_IO when the stream fails. Text is at most `width` columns (80 by
 * default); wide tables drop to fitting by wrapping the last text column. */
sm_status sm_render_text(const sm_report *report, int width, FILE *out, sm_error *err);
sm_status sm_render_json(const sm_report *report, FILE *out,
                         sm_error *err); /* numbers round-trip; one final newline */
sm_status sm_render_csv(const sm_report *report, FILE *out,
                        sm_error *err); /* every table, RFC 4180 */
sm_status sm_render_why(const sm_why *why, int width, FILE *out, sm_error *err);

/* Panels of lines, marks and stacked areas as SVG. */
sm_status sm_render_chart(const sm_chart *chart, FILE *out, sm_error *err);

/* A timeline as trace events in the Chrome JSON format, which Perfetto opens. */
sm_status sm_render_tracks(const sm_tracks *tracks, FILE *out, sm_error *err);
/* The same, written event by event. */
typedef struct sm_trace sm_trace;
sm_trace *sm_trace_begin(FILE *out); /* NULL when out of memory */
void sm_trace_thread(sm_trace *t, int process, const char *process_name, int thread,
                     const char *thread_name);
void sm_trace_slice(sm_trace *t, int process, int thread, const char *name, const char *category,
                    double start_s, double duration_s);
void sm_trace_counter(sm_trace *t, int process, const char *name, double at_s, double value);
sm_status sm_trace_end(sm_trace *t, sm_error *err); /* frees it */
SM_DECLARATIONS_END
#endif
