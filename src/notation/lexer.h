/* lexer: the tokens of texts and families, and of formulas, one ahead. Private to src/notation. */
#pragma once
#include "scalemodel/text.h"

/* Reserved words. Those from ROLES on begin a statement, those up to FAMILY one of the file. */
#define LEXER_KEYWORDS(X)                                                                          \
    X(IF, "if")                                                                                    \
    X(ELSE, "else")                                                                                \
    X(AND, "and")                                                                                  \
    X(OR, "or")                                                                                    \
    X(NOT, "not")                                                                                  \
    X(IN, "in")                                                                                    \
    X(ROLES, "roles")                                                                              \
    X(SIZES, "sizes")                                                                              \
    X(MATTERS, "matters")                                                                          \
    X(TEXT, "text")                                                                                \
    X(KERNEL, "kernel")                                                                            \
    X(FAMILY, "family")                                                                            \
    X(LIKE, "like")                                                                                \
    X(FIELDS, "fields")                                                                            \
    X(DIMS, "dims")                                                                                \
    X(MODEL, "model")                                                                              \
    X(STACK, "stack")                                                                              \
    X(ALL, "all")                                                                                  \
    X(PIECE, "piece")                                                                              \
    X(LAYERS, "layers")                                                                            \
    X(INERT, "inert")

typedef enum token_kind {
    TOKEN_END,    /* of the source, or after an error */
    TOKEN_BREAK,  /* ';', or the end of a line outside of brackets and not after ':' or ',' */
    TOKEN_NUMBER, /* 3, 0.5, 1e6 */
    TOKEN_WORD,   /* "sliding_attention", with its quotes */
    TOKEN_NAME,   /* hidden_size, vision_config.depth */
    TOKEN_ARRAY,  /* name[ */
    TOKEN_CALL,   /* name( */
    TOKEN_DIM,    /* D, Tc */
    TOKEN_AXES,   /* _X, _{fsdp,tensor}, _tensor/4: right after a dimension */
    TOKEN_MEMBER, /* .attention.heads: right after ']' */
    TOKEN_ARROW,  /* -> */
    TOKEN_EQUAL,  /* == */
    TOKEN_UNEQUAL,
    TOKEN_AT_MOST,
    TOKEN_AT_LEAST,
    TOKEN_OTHERWISE, /* ?? */
#define X(id, word) TOKEN_##id,
    LEXER_KEYWORDS(X)
#undef X
    /* One byte each: + - * / % ( ) [ ] , : = < > */
    TOKEN_BYTE = 128
} token_kind;
/* The kind of a token that is one byte. */
#define TOKEN_OF(byte) ((token_kind)(TOKEN_BYTE + (byte)))

typedef struct token {
    token_kind kind;
    sm_span span;
} token;

typedef struct lexer {
    const sm_source *source;
    size_t at, end;
    /* A formula: names have capitals too and none is reserved, words stand in single quotes, and
     * or not if are && || ! ?. */
    bool formula;
    int brackets;    /* open ones */
    token_kind last; /* of the token before */
} lexer;

/* The next token. SM_BAD_INPUT with the place of a byte that begins none. */
sm_status lexer_next(lexer *l, token *out, sm_error *err);
/* What a token is called in an error: "a dimension", "'('"; of a keyword or name the word itself.
 * Into room of 48 bytes. */
const char *lexer_describe(const lexer *l, token t, char *room);
extern const char *const lexer_keywords[]; /* from TOKEN_IF on */
enum { LEXER_KEYWORD_COUNT = TOKEN_INERT - TOKEN_IF + 1, LEXER_WORD_ROOM = 48 };
