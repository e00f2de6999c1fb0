#include "json_load.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* jansson reports a refused allocation as an invalid token, or drops a character and goes on. Its
 * hook has no context to note that in: hence one flag per thread, cleared before each document. */
static _Thread_local bool refused, parsing;

/* A string that jansson could not let grow ends in an assertion of its own: what was refused is
 * noted, and given all the same where it can be, until the document ends and is given up. */
static void *allocate(size_t bytes) {
    void *block = sm_malloc(bytes);
    if (block) return block;
    refused = true;
    return parsing && bytes <= SM_JSON_MAX_BYTES ? malloc(bytes) : NULL;
}

static void route_allocation(void) { json_set_alloc_funcs(allocate, sm_free); }

/* jansson names the byte after the offending token; walk back over the token. */
static sm_span token_before(const sm_source *s, int position) {
    enum { LONGEST = 80 };
    size_t end = position < 0 ? 0 : (size_t)position;
    if (end > s->length) end = s->length;
    bool quoted = end > 1 && s->text[end - 1] == '"';
    size_t start = quoted ? end - 1 : end;
    while (start > 0 && end - start < LONGEST &&
           (quoted ? s->text[start - 1] != '"'
                   : s->text[start - 1] > ' ' && !strchr("{}[]:,\"", s->text[start - 1])))
        start--;
    if (start > 0 && (quoted || start == end)) start--;
    return (sm_span){start, end - start};
}

/* What a person can act on, for the errors whose own text speaks of jansson. */
static const char *plain_words(enum json_error_code code) {
    switch (code) {
    case json_error_numeric_overflow: return "this number is too large";
    case json_error_duplicate_key: return "this key is given twice";
    case json_error_null_character:
    case json_error_null_byte_in_key: return "a text may not hold the character \\u0000";
    case json_error_stack_overflow: return "lists and objects are nested too deep";
    default: return NULL;
    }
}

static sm_status fail_syntax(const sm_source *s, const json_error_t *json, sm_error *err) {
    if (refused || json_error_code(json) == json_error_out_of_memory || json->text[0] == 0)
        return sm_fail_memory(err);
    sm_span span = token_before(s, json->position);
    const char *words = plain_words(json_error_code(json));
    return words ? sm_fail_at(err, s, span, "%s", words)
                 : sm_fail_at(err, s, span, "this is not valid JSON: %s", json->text);
}

sm_status sm_json_load(const sm_source *s, sm_error *err, json_t **root) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    json_error_t json = {0};
    *root = NULL;
    refused = false;
    pthread_once(&once, route_allocation);
    if (s->length > SM_JSON_MAX_BYTES)
        return sm_fail_at(err, s, (sm_span){0, 0},
                          "the document has %zu bytes; at most %d are read", s->length,
                          SM_JSON_MAX_BYTES);
    parsing = true;
    *root = json_loadb(s->text ? s->text : "", s->length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY,
                       &json);
    parsing = false;
    if (*root && !refused) return SM_OK;
    json_decref(*root); /* when refused, it lacks characters that jansson could not store */
    *root = NULL;
    return fail_syntax(s, &json, err);
}
