/* json_lexer: tokens of JSON text (RFC 8259), of a text in memory or of a stream through a window
 * that does not grow with it. The tree of json_parse is built of them; readers of large files take
 * them one by one. Lent to the layers that read JSON. */
#pragma once
#include "json_tree.h"

typedef struct json_lexer {
    const json_document *in;
    const char *text;  /* the window */
    size_t length, at; /* at never passes length */
    sm_status status;
    /* of a stream */
    sm_bytes bytes; /* read NULL: all is in the text */
    char *buffer;   /* of sm_realloc */
    size_t room;
    size_t kept;     /* from here on bytes stay in the window; SIZE_MAX: from `at` on */
    uint64_t before; /* bytes before the window */
    bool ended;      /* of the stream nothing follows */
} json_lexer;

typedef struct json_raw { /* a token as it is written, until the next one is asked for */
    json_kind kind;
    const char *text; /* of a text what is between the quotes */
    size_t length;
    bool escapes; /* of a text: it holds some */
} json_raw;

/* ---- tokens ---- */
/* The byte that the next token begins with; 0 at the end. */
char json_next(json_lexer *l);
/* Take this mark if it is next. */
bool json_take(json_lexer *l, char mark);
/* Take the word if it is next, and not only a longer one's beginning. */
bool json_take_word(json_lexer *l, const char *word);
/* The token that begins here, for errors. */
sm_span json_token_here(const json_lexer *l);
/* Note the first error; false. */
bool json_lexer_fail(json_lexer *l, sm_span span, const char *sentence);
bool json_lexer_fail_token(json_lexer *l, const char *what);
bool json_lexer_fail_memory(json_lexer *l);
/* The text at the opening quote, decoded into the arena, 0-terminated. NULL on failure. */
const char *json_take_text(json_lexer *l, uint32_t *length);
/* The number here. */
bool json_take_number(json_lexer *l, json_value *v);

/* ---- values of a stream, which need not be valid within ---- */
/* Begin to read a stream. in->source has its name. */
void json_stream_begin(json_lexer *l, const json_document *in, const sm_bytes *bytes);
void json_stream_end(json_lexer *l);
/* Bytes of the stream up to here. */
uint64_t json_stream_at(const json_lexer *l);
/* Within a list or an object: does another item follow? Its closing mark is taken where none does.
 */
bool json_stream_more(json_lexer *l, char close);
/* The key of the next item, as it is written, and its colon. */
bool json_stream_key(json_lexer *l, json_raw *key);
/* The next text, number or word; an object or a list is passed over, and has its kind alone. */
bool json_stream_scalar(json_lexer *l, json_raw *value);
/* Any value as it is written. */
bool json_stream_value(json_lexer *l, json_raw *value);
/* Pass over any value. */
bool json_stream_skip(json_lexer *l);
/* A text of the stream with its escapes resolved, into `to`, which has room for as many bytes;
 * what is no escape stays as it is. Returns its length. */
size_t json_raw_decode(const json_raw *raw, char *to);
