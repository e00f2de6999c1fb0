#include "wire.h"

static bool damaged(wire *w) {
    if (!*w->bad) *w->bad = w->at;
    w->at = w->end;
    return false;
}

static bool varint(wire *w, uint64_t *value) {
    *value = 0;
    for (int shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        unsigned char byte = *w->at++;
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return damaged(w);
}

static bool fixed(wire *w, size_t bytes, uint64_t *value) {
    *value = 0;
    if ((size_t)(w->end - w->at) < bytes) return damaged(w);
    for (size_t i = 0; i < bytes; i++) *value |= (uint64_t)*w->at++ << 8 * i;
    return true;
}

static bool bytes_of(wire *w, wire *out) {
    uint64_t length;
    if (!varint(w, &length)) return false;
    if (length > (uint64_t)(w->end - w->at)) return damaged(w);
    *out = (wire){w->at, w->at + length, w->bad};
    w->at += length;
    return true;
}

bool wire_next(wire *w, wire_field *field) {
    uint64_t tag;
    if (w->at >= w->end || !varint(w, &tag)) return false;
    *field = (wire_field){.number = (int)(tag >> 3 & INT32_MAX)};
    if (field->number == 0) return damaged(w);
    switch (tag & 7) {
    case 0: return varint(w, &field->value);
    case 1: return fixed(w, 8, &field->value);
    case 2: field->is_bytes = true; return bytes_of(w, &field->bytes);
    case 5: return fixed(w, 4, &field->value);
    default: return damaged(w);
    }
}

bool wire_number(wire_field *field, int64_t *value) {
    uint64_t bits;
    if (field->is_bytes) {
        if (field->bytes.at >= field->bytes.end || !varint(&field->bytes, &bits)) return false;
        *value = (int64_t)bits;
        return true;
    }
    if (field->number == 0) return false;
    *value = (int64_t)field->value;
    field->number = 0; /* taken */
    return true;
}

size_t wire_count(wire w, int number) {
    wire_field f;
    size_t n = 0;
    while (wire_next(&w, &f)) n += f.number == number;
    return n;
}

bool wire_each(wire *w, int number, wire *out) {
    wire_field f;
    while (wire_next(w, &f))
        if (f.number == number && f.is_bytes) return *out = f.bytes, true;
    return false;
}

bool wire_has(wire w, int number, wire *out) { return wire_each(&w, number, out); }

wire wire_message(wire w, int number) {
    wire found = {w.at, w.at, w.bad};
    wire_has(w, number, &found);
    return found;
}

int64_t wire_value(wire w, int number, int64_t otherwise) {
    wire_field f;
    while (wire_next(&w, &f))
        if (f.number == number && !f.is_bytes) otherwise = (int64_t)f.value;
    return otherwise;
}
