/* The tokens of texts and families. An array begins with a small letter, a dimension with a
 * capital, and name[ and name( are one token each: so the grammar needs one token ahead and no
 * more. */
#include "lexer.h"

#include <ctype.h>
#include <string.h>

const char *const lexer_keywords[] = {LEXER_KEYWORDS(SM_NAME_OF)};

static int byte_at(const lexer *l, size_t at) {
    return at < l->end ? (unsigned char)l->source->text[at] : -1;
}

static bool is_small(int c) { return (unsigned)c - 'a' < 26 || c == '_'; }
static bool is_capital(int c) { return (unsigned)c - 'A' < 26; }
static bool is_letter(int c) {
    return ((unsigned)c | 32) - 'a' < 26 || (unsigned)c - '0' < 10 || c == '_';
}

static size_t letters_end(const lexer *l, size_t at) {
    const char *text = l->source->text;
    while (at < l->end && is_letter((unsigned char)text[at])) at++;
    return at;
}

/* Past word{.word}; a dot without a letter after it is not of the name. */
static size_t name_end(const lexer *l, size_t at) {
    at = letters_end(l, at);
    while (byte_at(l, at) == '.' && is_letter(byte_at(l, at + 1)) && !isdigit(byte_at(l, at + 1)))
        at = letters_end(l, at + 1);
    return at;
}

static size_t digits_end(const lexer *l, size_t at) {
    while (isdigit(byte_at(l, at))) at++;
    return at;
}

static size_t number_end(const lexer *l, size_t at) {
    at = digits_end(l, at);
    if (byte_at(l, at) == '.' && isdigit(byte_at(l, at + 1))) at = digits_end(l, at + 1);
    if (byte_at(l, at) != 'e') return at;
    size_t digits = at + 1 + (byte_at(l, at + 1) == '-' || byte_at(l, at + 1) == '+');
    return isdigit(byte_at(l, digits)) ? digits_end(l, digits) : at;
}

/* Past _X, _{fsdp,tensor} and the /4 that may follow; `at` itself when it is none of them. */
static size_t axes_end(const lexer *l, size_t at) {
    size_t end = at + 1;
    if (byte_at(l, end) == '{') {
        do end++;
        while (is_letter(byte_at(l, end)) || byte_at(l, end) == ',' || byte_at(l, end) == '/');
        if (byte_at(l, end++) != '}') return at;
    } else {
        end = letters_end(l, end);
    }
    if (end == at + 1) return at;
    return byte_at(l, end) == '/' ? digits_end(l, end + 1) : end;
}

/* Past blanks, comments and those ends of lines that end nothing. */
static void skip_blanks(lexer *l) {
    const char *text = l->source->text, *end = text + l->end, *at = text + l->at;
    /* Does a line go on after the end of this one? */
    bool on = l->brackets > 0 || l->last == TOKEN_OF(':') || l->last == TOKEN_OF(',');
    for (; at < end; at++) {
        if (*at == ' ') continue;
        if (*at == '#' && !l->formula) {
            const char *last = memchr(at, '\n', (size_t)(end - at));
            at = (last ? last : end) - 1;
        } else if (*at != '\t' && *at != '\r' && !(*at == '\n' && on)) break;
    }
    l->at = (size_t)(at - text);
}

enum { SHORTEST_KEYWORD = 2, LONGEST_KEYWORD = 7 };

static token_kind word_kind(const lexer *l, sm_span span) {
    const char *word = l->source->text + span.offset;
    if (l->formula || span.length < SHORTEST_KEYWORD || span.length > LONGEST_KEYWORD)
        return TOKEN_NAME;
    for (int i = 0; i < LEXER_KEYWORD_COUNT; i++)
        if (lexer_keywords[i][0] == word[0] && lexer_keywords[i][1] == word[1] &&
            strncmp(lexer_keywords[i], word, span.length) == 0 &&
            lexer_keywords[i][span.length] == 0)
            return (token_kind)(TOKEN_IF + i);
    return TOKEN_NAME;
}

static token name_token(lexer *l) {
    token t = {.span = {l->at, name_end(l, l->at) - l->at}};
    int after = byte_at(l, l->at + t.span.length);
    t.kind = word_kind(l, t.span);
    if (t.kind != TOKEN_NAME || (after != '(' && (after != '[' || l->formula))) return t;
    t.kind = after == '[' ? TOKEN_ARRAY : TOKEN_CALL;
    t.span.length++;
    l->brackets++;
    return t;
}

static token two_bytes_or_one(lexer *l, int c) {
    static const struct {
        char text[3];
        token_kind kind;
    } pairs[] = {{"->", TOKEN_ARROW},
                 {"==", TOKEN_EQUAL},
                 {"!=", TOKEN_UNEQUAL},
                 {"<=", TOKEN_AT_MOST},
                 {">=", TOKEN_AT_LEAST},
                 /* of formulas */
                 {"&&", TOKEN_AND},
                 {"||", TOKEN_OR},
                 {"??", TOKEN_OTHERWISE}};
    const size_t n = l->formula ? 8 : 5;
    int next = byte_at(l, l->at + 1);
    for (size_t i = 0; (next == '=' || next == '>' || next == c) && i < n; i++)
        if (c == pairs[i].text[0] && next == pairs[i].text[1])
            return (token){pairs[i].kind, {l->at, 2}};
    if (l->formula && (c == '!' || c == '?'))
        return (token){c == '!' ? TOKEN_NOT : TOKEN_IF, {l->at, 1}};
    if (c == '(' || c == '[') l->brackets++;
    if ((c == ')' || c == ']') && l->brackets > 0) l->brackets--;
    bool known = c > 0 && strchr("+-*/%()[],:=<>", c);
    return (token){known ? TOKEN_OF(c) : TOKEN_END, {l->at, 1}};
}

static sm_status word_token(lexer *l, token *t, sm_error *err) {
    size_t end = l->at + 1;
    int quote = byte_at(l, l->at);
    while (byte_at(l, end) >= 0 && byte_at(l, end) != quote && byte_at(l, end) >= ' ') end++;
    *t = (token){TOKEN_WORD, {l->at, end + 1 - l->at}};
    if (byte_at(l, end) == quote) return SM_OK;
    return sm_fail_at(err, l->source, (sm_span){l->at, end - l->at},
                      "a word in quotes ends on its line, and has no control characters");
}

static sm_status no_token(const lexer *l, int c, sm_error *err) {
    sm_span one = {l->at, 1};
    if (c > ' ' && c < 127) return sm_fail_at(err, l->source, one, "no token begins with '%c'", c);
    return sm_fail_at(err, l->source, one, "no token begins with byte 0x%02X", (unsigned)c);
}

sm_status lexer_next(lexer *l, token *out, sm_error *err) {
    skip_blanks(l);
    int c = byte_at(l, l->at);
    bool touches = l->at > 0 && out->span.offset + out->span.length == l->at;
    size_t axes = touches && l->last == TOKEN_DIM && c == '_' ? axes_end(l, l->at) : l->at;
    sm_status status = SM_OK;
    if (c < 0) *out = (token){TOKEN_END, {l->at, 1}};
    else if (c == '\n' || c == ';') *out = (token){TOKEN_BREAK, {l->at, 1}};
    else if (axes > l->at) *out = (token){TOKEN_AXES, {l->at, axes - l->at}};
    else if (is_small(c) || (l->formula && is_capital(c))) *out = name_token(l);
    else if (is_capital(c)) {
        size_t end = l->at;
        while (is_letter(byte_at(l, end)) && byte_at(l, end) != '_') end++;
        *out = (token){TOKEN_DIM, {l->at, end - l->at}};
    } else if (isdigit(c)) *out = (token){TOKEN_NUMBER, {l->at, number_end(l, l->at) - l->at}};
    else if (c == (l->formula ? '\'' : '"')) status = word_token(l, out, err);
    else if (c == '.' && touches && l->last == TOKEN_OF(']') && is_small(byte_at(l, l->at + 1)))
        *out = (token){TOKEN_MEMBER, {l->at, name_end(l, l->at + 1) - l->at}};
    else *out = two_bytes_or_one(l, c);
    if (!status && c >= 0 && out->kind == TOKEN_END) status = no_token(l, c, err);
    if (status) *out = (token){TOKEN_END, {l->at, 1}};
    else if (c >= 0) l->at = out->span.offset + out->span.length;
    l->last = out->kind;
    return status;
}

const char *lexer_describe(const lexer *l, token t, char *room) {
    int shown = t.span.length < 32 ? (int)t.span.length : 32;
    const char *text = l->source->text + t.span.offset;
    if (t.kind == TOKEN_END) return l->formula ? "the end of the formula" : "the end of the file";
    if (t.kind == TOKEN_BREAK) return *text == ';' ? "';'" : "the end of the line";
    bool reserved = t.kind >= TOKEN_IF && t.kind < TOKEN_BYTE && !l->formula;
    snprintf(room, LEXER_WORD_ROOM,
             reserved               ? "the reserved word %.*s"
             : t.kind == TOKEN_WORD ? "%.*s"
                                    : "'%.*s'",
             shown, text);
    return room;
}
