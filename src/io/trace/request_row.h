/* request_row: one request of a trace as it stands in a file, whether a line of CSV or of JSON: its
 * values by field, and their places for errors. Private to src/io. */
#pragma once
#include "csv_record.h"
#include "file_parts.h"

typedef enum request_field {
    REQUEST_ARRIVAL,
    REQUEST_PROMPT,
    REQUEST_OUTPUT, /* up to here every row has them */
    REQUEST_PREFIX,
    REQUEST_PREFIX_TOKENS,
    REQUEST_CONVERSATION,
    REQUEST_BLOCKS,
    REQUEST_THINK, /* of the client, between the turn above and this one */
    REQUEST_DELAY, /* the same, where a prompt is only what the turn adds */
    REQUEST_CLASS,
    REQUEST_FIELDS
} request_field;
enum { REQUEST_NEEDED = REQUEST_PREFIX };

/* What a column or key may be called, by whom, and the seconds of one unit of a time. */
typedef struct request_name {
    const char *name;
    request_field field;
    double unit_s;
} request_name;
enum { REQUEST_NAMES = 16 };                /* of one field, for the nearest */
extern const request_name requests_names[]; /* of data/formats/requests.json */
extern const size_t requests_names_count;

typedef enum request_kind { CELL_ABSENT, CELL_IS_TEXT, CELL_IS_NUMBER, CELL_IS_LIST } request_kind;
typedef struct request_cell {
    request_kind kind;
    sm_span text; /* in the line; of JSON texts without the quotes */
    double number;
    double unit_s;
} request_cell;
typedef struct request_row {
    request_cell cell[REQUEST_FIELDS];
    uint64_t *block; /* kept from row to row */
    int blocks, block_room;
} request_row;

/* CSV: which field each column holds. */
typedef struct request_header {
    int columns;
    const request_name *name[CSV_MOST_CELLS]; /* NULL: passed over */
} request_header;

/* A decimal number that is all of the text: false when it is none. */
bool request_number(const char *text, size_t length, double *value);
/* "2023-11-16 18:15:46.6805900", with T for the blank, with Z or +01:00 behind it: whole seconds
 * since 1970 and the rest. */
bool request_date(const char *text, size_t length, int64_t *seconds, double *rest);
