/* csv_record: a record of CSV (RFC 4180: quotes, doubled quotes, line ends inside quotes) as places
 * in its text. Measured rows and traces of requests are read through it. Private to src/io. */
#pragma once
#include "scalemodel/text.h"

enum { CSV_MOST_CELLS = 256 };

typedef struct csv_record {
    int n;
    sm_span cell[CSV_MOST_CELLS]; /* with quotes, without blanks around */
    sm_span whole;                /* without its line end */
    sm_span wrong;                /* after an error: where, and what */
    char sentence[100];
} csv_record;

/* The record that begins at *at, which moves behind its line end. columns: those of the header,
 * which every row must have, or 0 for the header itself. False: see wrong and sentence. */
bool csv_read(const sm_source *text, size_t *at, int columns, csv_record *out);
/* What stands between the quotes of a cell, if it has any. */
sm_span csv_inside(const sm_source *text, sm_span cell);
/* A copy of that in which doubled quotes are single; NULL when out of memory. */
char *csv_copy(const sm_source *text, sm_span cell, sm_arena *arena);
