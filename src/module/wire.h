/* wire: protobuf's encoding, field by field: tags, varints, bytes. What is damaged ends a message
 * and marks it. Private to src/module. (The encoding is described at protobuf.dev.) */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wire {
    const unsigned char *at, *end;
    const unsigned char **bad; /* set to the place of the first damage */
} wire;
typedef struct wire_field {
    int number;
    bool is_bytes;
    uint64_t value; /* of a varint, or of 4 or 8 bytes */
    wire bytes;
} wire_field;

/* The next field; false at the end, and where the rest cannot be read. */
bool wire_next(wire *w, wire_field *field);
/* The next message, bytes or text of this number; others are passed over. */
bool wire_each(wire *w, int number, wire *out);
/* The next number of a packed list, or of a field that holds one alone. */
bool wire_number(wire_field *field, int64_t *value);
/* How many fields have this number. */
size_t wire_count(wire w, int number);
/* The first message, bytes or text of this number. */
bool wire_has(wire w, int number, wire *out);
/* The same; an empty one where there is none. */
wire wire_message(wire w, int number);
/* The last value of this number. */
int64_t wire_value(wire w, int number, int64_t otherwise);
