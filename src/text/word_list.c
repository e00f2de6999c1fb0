/* Closed sets of words and lists of them: what the grammars of plans are made of. */
#include <ctype.h>
#include <string.h>

#include "scalemodel/text.h"

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

int sm_compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t sm_next_word(const char **rest, const char **word) {
    *word = *rest + strspn(*rest, " ");
    size_t length = strcspn(*word, " ");
    *rest = *word + length;
    return length;
}

/* What separates the parts of a name is written in many ways: "NVIDIA H200", h100_sxm. */
static int plain(char c) { return c == ' ' || c == '_' ? '-' : tolower((unsigned char)c); }

static bool same_word(const char *a, const char *b, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (plain(a[i]) != plain(b[i])) return false;
    return length > 0;
}

bool sm_is_called(const char *name, const char *aliases, const char *word, size_t length) {
    if (strlen(name) == length && same_word(name, word, length)) return true;
    const char *alias;
    for (size_t n; aliases && (n = sm_next_word(&aliases, &alias)) > 0;)
        if (n >= length && same_word(alias + (n - length), word, length) &&
            (n == length || alias[n - length - 1] == '/'))
            return true;
    return false;
}

sm_span sm_source_trim(const sm_source *source, size_t from, size_t to) {
    const char *text = source->text;
    while (from < to && is_blank(text[from])) from++;
    while (to > from && is_blank(text[to - 1])) to--;
    return (sm_span){from, to - from};
}

sm_span sm_next_part(const sm_source *source, sm_span span, char separator, size_t *at) {
    size_t end = span.offset + span.length, from = *at;
    const char *found = memchr(source->text + from, separator, end - from);
    size_t to = found != NULL ? (size_t)(found - source->text) : end;
    *at = to + 1;
    return sm_source_trim(source, from, to);
}

int sm_words_find(sm_words words, const sm_source *source, sm_span span) {
    for (int i = 0; i < words.n; i++)
        if (strlen(words.word[i]) == span.length &&
            memcmp(words.word[i], source->text + span.offset, span.length) == 0)
            return i;
    return -1;
}

sm_status sm_words_fail(sm_words words, const sm_source *source, sm_span span, const char *what,
                        sm_error *err) {
    char all[560];
    const char *text = source->text + span.offset;
    int shown = span.length < 40 ? (int)span.length : 40;
    const char *near = sm_nearest(text, span.length, words.word, (size_t)words.n);
    if (near != NULL)
        return sm_fail_at(err, source, span, "%s \"%.*s\"; the nearest is \"%s\"", what, shown,
                          text, near);
    size_t size = sizeof all;
    size_t at = 0;
    for (int i = 0; i < words.n && at < size; i++) {
        int n = snprintf(all + at, size - at, "%s%s",
                         i == 0 ? "" : (i + 1 == words.n ? " or " : ", "), words.word[i]);
        at += n > 0 ? (size_t)n : 0;
    }
    return sm_fail_at(err, source, span, "%s \"%.*s\"; expected %s", what, shown, text, all);
}

sm_status sm_words_order(sm_words words, const sm_source *source, sm_span span, const char *what,
                         const uint8_t *rest, uint8_t *list, sm_error *err) {
    int n = 0;
    for (size_t at = span.offset; at <= span.offset + span.length;) {
        sm_span part = sm_next_part(source, span, '.', &at);
        int found = sm_words_find(words, source, part);
        if (found < 0) return sm_words_fail(words, source, part, what, err);
        if (memchr(list, found, (size_t)n) != NULL)
            return sm_fail_at(err, source, part, "%s is named twice", words.word[found]);
        list[n++] = (uint8_t)found;
    }
    for (int i = 0; i < words.n; i++)
        if (n < words.n && memchr(list, rest[i], (size_t)n) == NULL) list[n++] = rest[i];
    return SM_OK;
}
