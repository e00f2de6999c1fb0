/* json: the one writer of JSON text (RFC 8259): answers, chips, measured rows, timelines, headers
 * of checkpoints. Numbers are written in the shortest form that reads back to the same double. */
#pragma once
#include "scalemodel/report.h"

SM_DECLARATIONS_BEGIN

typedef enum sm_json_layout {
    SM_JSON_LINE, /* one line without blanks and without its end */
    SM_JSON_PAGE  /* two blanks a level; what fits into 100 columns stays on a line; a final newline
                   */
} sm_json_layout;

/* The tree to a stream, whose failures are left to the caller to ask it for. SM_INTERNAL when the
 * tree is nested more than 512 levels deep. */
sm_status sm_json_write(FILE *out, const sm_data *data, sm_json_layout layout, sm_error *err);
/* Write the tree into the arena, 0-terminated; *length: its bytes. SM_INTERNAL when out of memory,
 * as when data is NULL, or when the tree is nested too deep. */
sm_status sm_json_format(const sm_data *data, sm_json_layout layout, sm_arena *arena, char **text,
                         size_t *length, sm_error *err);

/* Write one string in quotes, escaped; malformed UTF-8 becomes U+FFFD. */
void sm_json_write_string(FILE *out, const char *text);
/* Write one number in the shortest form that reads back to the same double; null when it is not
 * finite. */
void sm_json_write_number(FILE *out, double value);
SM_DECLARATIONS_END
