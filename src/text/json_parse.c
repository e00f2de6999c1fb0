/* JSON text as values with places: one pass over the tokens, by recursive descent. */
#include <stdlib.h>
#include <string.h>

#include "json_lexer.h"

enum {
    MOST_DEPTH = 2048,
    FEW = 16 /* keys that are compared each with each */
};

/* The values of lists and objects that are not closed yet wait on a stack; closed, they stand
 * together in the arena. */
typedef struct parser {
    json_lexer l;
    json_value *waiting;
    size_t n, room;
    int depth;
} parser;

/* ---- lists and objects ---- */

SM_ORDER_OF_POINTERS(by_key, json_value, SM_BY_TEXT(key) SM_ASCENDING(key_at))

static bool fail_twice(parser *p, const json_value *v) {
    return json_lexer_fail(&p->l, (sm_span){v->key_at, v->key_length}, "this key is given twice");
}

static bool check_keys(parser *p, const json_value *item, size_t n) {
    if (n <= FEW) {
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < i; k++)
                if (strcmp(item[i].key, item[k].key) == 0) return fail_twice(p, &item[i]);
        return true;
    }
    const json_value **sorted = sm_malloc(n * sizeof *sorted), *twice = NULL;
    if (!sorted) return json_lexer_fail_memory(&p->l);
    for (size_t i = 0; i < n; i++) sorted[i] = &item[i];
    qsort(sorted, n, sizeof *sorted, by_key);
    for (size_t i = 1; i < n; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0 &&
            (!twice || sorted[i]->key_at < twice->key_at))
            twice = sorted[i];
    sm_free(sorted);
    return !twice || fail_twice(p, twice);
}

static bool wait(parser *p, const json_value *v) {
    json_value *more = sm_grow(p->waiting, p->n, &p->room, sizeof *more);
    if (!more) return json_lexer_fail_memory(&p->l);
    p->waiting = more;
    p->waiting[p->n++] = *v;
    return true;
}

static bool take_value(parser *p, json_value *v);

static bool take_key(parser *p, json_value *v) {
    uint32_t length;
    if (json_next(&p->l) != '"') return json_lexer_fail_token(&p->l, "string or '}' expected");
    v->key_at = (uint32_t)p->l.at;
    v->key = json_take_text(&p->l, &length);
    v->key_length = (uint32_t)(p->l.at - v->key_at);
    if (!v->key) return false;
    return json_take(&p->l, ':') || json_lexer_fail_token(&p->l, "':' expected");
}

/* From behind the opening bracket on. */
static bool take_items(parser *p, json_value *v, bool object) {
    size_t first = p->n, n;
    char close = object ? '}' : ']';
    bool more = json_next(&p->l) != close;
    for (; more; more = json_take(&p->l, ',')) {
        json_value item = {.in = p->l.in};
        if (object && !take_key(p, &item)) return false;
        if (!take_value(p, &item) || !wait(p, &item)) return false;
    }
    if (!json_take(&p->l, close))
        return json_lexer_fail_token(&p->l, object ? "'}' expected" : "']' expected");
    n = p->n - first;
    json_value *items = sm_arena_array(p->l.in->arena, n, sizeof *items);
    if (!items) return json_lexer_fail_memory(&p->l);
    if (n) memcpy(items, p->waiting + first, n * sizeof *items);
    p->n = first;
    v->kind = object ? IS_OBJECT : IS_LIST;
    v->n = (uint32_t)n;
    v->item = items;
    return !object || check_keys(p, items, n);
}

static bool take_word_value(parser *p, json_value *v) {
    static const char *const words[] = {"null", "false", "true"};
    for (int i = 0; i < 3; i++)
        if (json_take_word(&p->l, words[i])) {
            v->kind = i ? IS_BOOL : IS_NULL;
            if (i) v->truth = i == 2;
            return true;
        }
    return json_lexer_fail_token(&p->l, "invalid token");
}

static bool take_value(parser *p, json_value *v) {
    char begins = json_next(&p->l);
    bool done;
    v->at = (uint32_t)p->l.at;
    if (begins == '{' || begins == '[') {
        if (++p->depth > MOST_DEPTH)
            return json_lexer_fail(&p->l, json_token_here(&p->l),
                                   "lists and objects are nested too deep");
        p->l.at++;
        done = take_items(p, v, begins == '{');
        p->depth--;
    } else if (begins == '"') {
        v->kind = IS_TEXT;
        v->text = json_take_text(&p->l, &v->n);
        done = v->text != NULL;
    } else if (begins && strchr("-0123456789NI", begins)) done = json_take_number(&p->l, v);
    else if (begins && !strchr("}],:", begins)) done = take_word_value(p, v);
    else done = json_lexer_fail_token(&p->l, "value expected");
    v->length = (uint32_t)(p->l.at - v->at);
    return done;
}

/* ---- the document ---- */

static bool check_document(parser *p) {
    const sm_source *s = p->l.in->source;
    char sentence[96];
    if (s->length > JSON_MOST_BYTES) {
        snprintf(sentence, sizeof sentence, "the document has %zu bytes; at most %d are read",
                 s->length, JSON_MOST_BYTES);
        return json_lexer_fail(&p->l, (sm_span){0, 0}, sentence);
    }
    const char *zero = memchr(p->l.text, 0, p->l.length);
    return !zero || json_lexer_fail(&p->l, (sm_span){(size_t)(zero - p->l.text), 1},
                                    "this is not valid JSON: a byte is 0");
}

sm_status json_parse(const json_document *in, const json_value **root) {
    const sm_source *s = in->source;
    parser p = {.l = {in, s->text ? s->text : "", s->text ? s->length : 0, .kept = SIZE_MAX}};
    *root = NULL;
    if (!check_document(&p)) return p.l.status;
    json_value *value = sm_arena_alloc(in->arena, sizeof *value);
    if (value) *value = (json_value){.in = in};
    bool done = value ? take_value(&p, value) : json_lexer_fail_memory(&p.l);
    if (done && (json_next(&p.l), p.l.at < p.l.length))
        done = json_lexer_fail_token(&p.l, "end of file expected");
    sm_free(p.waiting);
    if (done) *root = value;
    return done ? SM_OK : p.l.status;
}
