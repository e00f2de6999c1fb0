/* Pieces of JSON (RFC 8259), written to a stream or, up to a limit, to memory. */
#ifndef SM_RENDER_JSON_H
#define SM_RENDER_JSON_H
#include <stdio.h>
#include "scalemodel/base.h"

typedef struct json_sink {
    FILE *out;    /* NULL: into memory */
    char *memory; /* of `room` bytes; not terminated */
    size_t room, length;
    bool full; /* memory was too small */
} json_sink;

void sm_json_put_raw(json_sink *sink, const char *text, size_t length);
void sm_json_put_text(json_sink *sink, const char *text); /* as it is */
/* Quoted; malformed UTF-8 becomes U+FFFD. */
void sm_json_put_string(json_sink *sink, const char *text);
/* The shortest form that reads back; null if not finite. */
void sm_json_put_number(json_sink *sink, double value);
#endif
