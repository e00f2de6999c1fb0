/* Names of modules in the lists of quantised checkpoints. The regular expressions are those that
 * occur there: . \. \d [..] (a|b) * + ? ^ $; another one matches nothing. */
#include "stored.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PATTERN = 256, MOST_DEPTH = 200 };

typedef struct matcher {
    long *steps;
    int depth;
} matcher;

static bool match_here(matcher *m, const char *p, const char *s);

/* The end of the atom at p: one character, an escape or a class; NULL: not closed. */
static const char *atom_end(const char *p) {
    if (*p == '\\') return p[1] ? p + 2 : NULL;
    if (*p != '[') return p + 1;
    const char *end = strchr(p[1] == ']' ? p + 2 : p + 1, ']');
    return end ? end + 1 : NULL;
}

static bool in_class(const char *p, const char *end, unsigned char c) {
    bool negated = p[1] == '^', found = false;
    for (p += negated ? 2 : 1; p < end - 1; p++) {
        bool range = p[1] == '-' && p + 2 < end - 1;
        found = found || (range ? c >= (unsigned char)p[0] && c <= (unsigned char)p[2]
                                : c == (unsigned char)*p);
        if (range) p += 2;
    }
    return found != negated;
}

static bool match_atom(const char *p, const char *end, char c) {
    if (!c) return false;
    if (*p == '[') return in_class(p, end, (unsigned char)c);
    if (*p != '\\') return *p == '.' || *p == c;
    if (p[1] == 'd') return isdigit((unsigned char)c);
    if (p[1] == 'w') return isalnum((unsigned char)c) || c == '_';
    return p[1] == c;
}

/* The bar that splits p at this level, the bracket that closes the group, or the end. */
static const char *branch_end(const char *p) {
    for (int level = 0; *p; p++) {
        if (*p == '\\' && p[1]) p++;
        else if (*p == '(') level++;
        else if (*p == ')' && level-- == 0) return p;
        else if (*p == '|' && level == 0) return p;
    }
    return p;
}

/* Each branch of (a|b) in turn, with what follows the group behind it. */
static bool match_group(matcher *m, const char *p, const char *s) {
    const char *from = p + 1, *close = from;
    if (strncmp(from, "?:", 2) == 0) from += 2;
    for (close = branch_end(from); *close == '|'; close = branch_end(close + 1)) {
    }
    if (*close != ')' || (close[1] && strchr("*+?{", close[1]))) return false;
    for (const char *end; from <= close; from = end + 1) {
        char joined[MOST_PATTERN];
        end = branch_end(from);
        int n = snprintf(joined, sizeof joined, "%.*s%s", (int)(end - from), from, close + 1);
        if (n < (int)sizeof joined && match_here(m, joined, s)) return true;
    }
    return false;
}

static bool match_repeated(matcher *m, const char *p, const char *end, const char *s) {
    size_t n = 0, least = *end == '+';
    size_t most = *end == '?' ? 1 : (size_t)-1;
    while (n < most && match_atom(p, end, s[n])) n++;
    for (; n + 1 > least; n--) {
        if (match_here(m, end + 1, s + n)) return true;
        if (n == 0) break;
    }
    return false;
}

static bool match_next(matcher *m, const char *p, const char *s) {
    if (!*p) return true;
    if (*p == '^') return match_here(m, p + 1, s);
    if (*p == '$' && !p[1]) return !*s;
    if (*p == '(') return match_group(m, p, s);
    const char *end = atom_end(p);
    if (!end) return false;
    if (*end == '*' || *end == '+' || *end == '?') return match_repeated(m, p, end, s);
    return match_atom(p, end, *s) && match_here(m, end, s + 1);
}

/* Does the pattern match from the beginning of s? */
static bool match_here(matcher *m, const char *p, const char *s) {
    if (--*m->steps < 0 || m->depth >= MOST_DEPTH) return false;
    m->depth++;
    bool matched = match_next(m, p, s);
    m->depth--;
    return matched;
}

static bool match_stars(const char *p, const char *s, long *steps) {
    const char *star = NULL, *at = s;
    while (*s) {
        if (--*steps < 0) return false;
        if (*p == '*') star = p++, at = s;
        else if (*p == *s || *p == '?') p++, s++;
        else if (star) p = star + 1, s = ++at;
        else return false;
    }
    while (*p == '*') p++;
    return !*p;
}

/* A name that stands in another between dots or its ends. */
static bool has_part(const char *name, const char *part) {
    size_t n = strlen(part);
    for (const char *at = strstr(name, part); n && at; at = strstr(at + 1, part))
        if ((at == name || at[-1] == '.') && (!at[n] || at[n] == '.')) return true;
    return false;
}

static void cut(char *text, const char *word) {
    for (char *at = strstr(text, word); at; at = strstr(at, word))
        memmove(at, at + strlen(word), strlen(at + strlen(word)) + 1);
}

static void cut_start(char *text, const char *word) {
    size_t n = strlen(word);
    if (strncmp(text, word, n) == 0) memmove(text, text + n, strlen(text + n) + 1);
}

bool pattern_matches(pattern_syntax syntax, const char *pattern, const char *name, long *steps) {
    char p[MOST_PATTERN];
    bool expression = syntax == PATTERN_EXACT && strncmp(pattern, "re:", 3) == 0;
    if (strlen(pattern) >= sizeof p || --*steps < 0) return false;
    snprintf(p, sizeof p, "%s", expression ? pattern + 3 : pattern);
    cut_start(p, "^");
    cut(p, "language_model.");
    cut(p, "language_model\\.");
    cut_start(p, "model.");
    cut_start(p, "model\\.");
    matcher m = {.steps = steps};
    if (!expression && has_part(name, p)) return true;
    if (syntax == PATTERN_STARS) return strchr(p, '*') && match_stars(p, name, steps);
    if (syntax == PATTERN_MODULES && !strpbrk(p, "*[(\\+$")) return false;
    if (syntax == PATTERN_EXACT && !expression) return false;
    for (const char *from = p, *end; from; from = *end ? end + 1 : NULL) {
        char branch[MOST_PATTERN];
        end = branch_end(from);
        if (*end == ')') return false;
        snprintf(branch, sizeof branch, "%.*s", (int)(end - from), from);
        if (match_here(&m, branch, name)) return true;
    }
    return false;
}
