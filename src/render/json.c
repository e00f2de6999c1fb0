/* Pieces of JSON: strings and numbers. */
#include "json.h"

#include <math.h>
#include <string.h>

#include "scalemodel/units.h"

void sm_json_put_raw(json_sink *sink, const char *text, size_t length) {
    if (sink->out != NULL) {
        fwrite(text, 1, length, sink->out);
        return;
    }
    if (sink->full || length > sink->room - sink->length) {
        sink->full = true;
        return;
    }
    memcpy(sink->memory + sink->length, text, length);
    sink->length += length;
}

void sm_json_put_text(json_sink *sink, const char *text) {
    sm_json_put_raw(sink, text, strlen(text));
}

/* The escapes that RFC 8259 section 7 asks for. */
static void put_escaped(json_sink *sink, uint32_t code) {
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    char text[16];
    const char *found = code != 0 ? memchr(named, (int)code, sizeof named - 1) : NULL;
    if (found != NULL) snprintf(text, sizeof text, "\\%c", letters[found - named]);
    else snprintf(text, sizeof text, "\\u%04x", (unsigned)code);
    sm_json_put_text(sink, text);
}

void sm_json_put_string(json_sink *sink, const char *text) {
    size_t length = strlen(text), n = 0;
    sm_json_put_raw(sink, "\"", 1);
    for (size_t at = 0; at < length && !sink->full; at += n) {
        uint32_t code = 0;
        n = sm_utf8_decode(text + at, length - at, &code);
        if (n == 0) sm_json_put_text(sink, "\xEF\xBF\xBD"); /* U+FFFD */
        else if (code < 0x20 || code == '"' || code == '\\' || code == 0x7F)
            put_escaped(sink, code);
        else sm_json_put_raw(sink, text + at, n);
        if (n == 0) n = 1;
    }
    sm_json_put_raw(sink, "\"", 1);
}

void sm_json_put_number(json_sink *sink, double value) {
    char text[64];
    if (!isfinite(value)) sm_json_put_text(sink, "null");
    else sm_json_put_text(sink, sm_format_exact(text, sizeof text, value));
}
