/* Words of shell scripts (POSIX.1-2017 XCU 2.2 to 2.6, as far as launch scripts go): quotes,
 * continued lines, comments, variables and what they expand to, $((arithmetic)). Commands are not
 * run and branches not followed: the last assignment holds. What only a shell could know (a
 * command's output, a variable nobody sets) is kept as unknown. */

#include <math.h>

#include "framework.h"

enum {
    MOST_VARIABLES = 2000,
    MOST_LIST = 1000,
    MOST_NESTING = 4,
    MOST_WORD = 1 << 16,
    MOST_EXPANDED = 16 << 20
};

typedef struct variable {
    const char *name, *value; /* value NULL: unknown */
} variable;

typedef struct word {
    const char *text, *unknown;
    sm_span at;
    bool quoted;
} word;

typedef struct shell {
    sm_settings *out;
    sm_error *err;
    variable *variables; /* MOST_VARIABLES of them, of the whole script */
    int *n;
    size_t *expanded; /* bytes put so far, of the whole script */
    sm_source source;
    size_t at;
    sm_span stands; /* where settings of an inner text stand; length 0: where they are */
    int nesting, parens;
    sm_span
        here; /* the word that ends the here-document of the next line; length 0: there is none */
    bool broken; /* out of memory */
} shell;

static bool is_among(char c, const char *set) { return c && strchr(set, c); }

/* ---- texts that grow ---- */

typedef struct growing {
    char *text;
    int n, room;
} growing;

static void put(shell *s, growing *g, const char *text, size_t n) {
    for (size_t i = 0; i < n && g->n < MOST_WORD && *s->expanded < MOST_EXPANDED; i++) {
        ++*s->expanded;
        char *list = sm_arena_grow(s->out->arena, g->text, g->text ? g->n + 1 : 0, &g->room, 1);
        if (!list) s->broken = true;
        if (!list) return;
        g->text = list;
        g->text[g->n++] = text[i];
        g->text[g->n] = '\0';
    }
}

static const char *text_of(const growing *g) { return g->text ? g->text : ""; }

/* ---- variables ---- */

static const variable *find(const shell *s, const char *name, size_t length) {
    for (int i = *s->n - 1; i >= 0; i--)
        if (strlen(s->variables[i].name) == length &&
            memcmp(s->variables[i].name, name, length) == 0)
            return &s->variables[i];
    return NULL;
}

static void assign(shell *s, const char *name, size_t length, const char *value) {
    variable *old = (variable *)find(s, name, length);
    if (old) {
        old->value = value;
        return;
    }
    if (*s->n == MOST_VARIABLES) return;
    const char *copy = sm_arena_copy(s->out->arena, name, length);
    if (!copy) s->broken = true;
    else s->variables[(*s->n)++] = (variable){copy, value};
}

static bool is_name(char c, bool first) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    return letter || (!first && c >= '0' && c <= '9');
}

static size_t name_length(const char *text, size_t most) {
    size_t n = 0;
    while (n < most && is_name(text[n], n == 0)) n++;
    return n;
}

/* ---- expansions: at a '$' or a '`' ---- */

static const char *rest(const shell *s, size_t *left) {
    *left = s->source.length - s->at;
    return s->source.text + s->at;
}

/* The end of what opens here, the closing sign included: parentheses and braces balance. */
static size_t closing(const char *text, size_t left, char open, char close) {
    int depth = 0;
    for (size_t i = 0; i < left; i++) {
        if (text[i] == open) depth++;
        else if (text[i] == close && --depth == 0) return i + 1;
    }
    return left;
}

static void mark_unknown(shell *s, word *w, const char *from, size_t length) {
    if (w->unknown) return;
    w->unknown = sm_arena_copy(s->out->arena, from, length < 60 ? length : 60);
    if (!w->unknown) s->broken = true;
}

static expression_value variable_number(const void *context, const char *name) {
    const variable *v = find(context, name, strlen(name));
    double number;
    sm_source text = sm_source_of("", v && v->value ? v->value : "");
    if (!text.length ||
        sm_quantity_parse(&text, (sm_span){0, text.length}, SM_Q_COUNT, &number, NULL))
        return (expression_value){.kind = VALUE_ABSENT};
    return value_number(number);
}

/* $(( NNODES * 8 )): the shell's whole numbers, as far as they are exact; a '$' before a name
 * changes nothing. */
static void expand_arithmetic(shell *s, word *w, growing *g, const char *text, size_t n) {
    growing formula = {0};
    const expression *e;
    char number[24];
    for (size_t i = 3; i + 2 < n; i++)
        if (text[i] != '$' && text[i] != '{' && text[i] != '}') put(s, &formula, text + i, 1);
    sm_source source = sm_source_of("", text_of(&formula));
    expression_value v = {.kind = VALUE_ABSENT};
    sm_status status =
        expression_parse(&source, (sm_span){0, source.length}, s->out->arena, &e, NULL);
    if (!status) v = expression_work_whole(e, variable_number, s, s->out->arena, &s->broken);
    s->broken = s->broken || status == SM_INTERNAL;
    bool exact = v.kind == VALUE_NUMBER && v.number == trunc(v.number) && fabs(v.number) < 0x1p53;
    if (!exact) mark_unknown(s, w, text, n);
    else put(s, g, number, (size_t)snprintf(number, sizeof number, "%.0f", v.number));
}

/* ${NAME}, ${NAME:-usual}; other forms are not known, and arrays have been read where they are
 * made. */
static void expand_braces(shell *s, word *w, growing *g, const char *text, size_t n) {
    size_t name = name_length(text + 2, n - 2), after = 2 + name;
    const variable *v = find(s, text + 2, name);
    if (text[n - 1] != '}') { /* it is never closed */
        mark_unknown(s, w, text, n);
        return;
    }
    if (after < n && text[after] == '[') return;
    if (v && v->value && name) {
        put(s, g, v->value, sm_settings_are_words(v->value) ? 0 : strlen(v->value));
        return;
    }
    if (after < n && text[after] == ':') after++;
    bool usual = name && after < n && (text[after] == '-' || text[after] == '=');
    const char *value = text + after + 1;
    size_t length = usual ? n - after - 2 : 0;
    if (usual && length >= 2 && value[0] == '"') value++, length -= 2;
    if (!usual || memchr(value, '$', length)) mark_unknown(s, w, text, n);
    else put(s, g, value, length);
}

static void expand(shell *s, word *w, growing *g) {
    size_t left, n = 1;
    const char *text = rest(s, &left);
    if (text[0] == '`') {
        const char *end = left > 1 ? memchr(text + 1, '`', left - 1) : NULL;
        n = end ? (size_t)(end - text) + 1 : left;
        mark_unknown(s, w, text, n);
    } else if (left > 2 && text[1] == '(') {
        n = 1 + closing(text + 1, left - 1, '(', ')');
        if (text[2] == '(') expand_arithmetic(s, w, g, text, n);
        else mark_unknown(s, w, text, n);
    } else if (left > 2 && text[1] == '{') {
        n = 1 + closing(text + 1, left - 1, '{', '}');
        if (n > 3) expand_braces(s, w, g, text, n);
    } else if (left > 1 && (n = 1 + name_length(text + 1, left - 1)) > 1) {
        const variable *v = find(s, text + 1, n - 1);
        if (!v || !v->value) mark_unknown(s, w, text, n);
        else if (!sm_settings_are_words(v->value)) put(s, g, v->value, strlen(v->value));
    } else if (left > 1 && is_among(text[1], "@*#?!0123456789")) n = 2;
    s->at += n;
}

/* ---- words ---- */

static void read_single(shell *s, growing *g) {
    size_t left;
    const char *text = rest(s, &left);
    const char *end = left > 1 ? memchr(text + 1, '\'', left - 1) : NULL;
    if (!end) put(s, g, text, 1); /* an apostrophe */
    else put(s, g, text + 1, (size_t)(end - text) - 1);
    s->at += end ? (size_t)(end - text) + 1 : 1;
}

static void read_double(shell *s, word *w, growing *g) {
    size_t left;
    const char *text = rest(s, &left);
    if (left < 2 || !memchr(text + 1, '"', left - 1)) {
        s->at++;
        return;
    }
    for (s->at++; s->at < s->source.length && s->source.text[s->at] != '"';) {
        char c = s->source.text[s->at];
        bool escaped = c == '\\' && s->at + 1 < s->source.length;
        if (c == '$' || c == '`') {
            expand(s, w, g);
            continue;
        }
        if (escaped && s->source.text[s->at + 1] == '\n') c = ' ';
        else if (escaped && is_among(s->source.text[s->at + 1], "\"\\$`"))
            c = s->source.text[s->at + 1];
        else escaped = false;
        s->at += escaped ? 2 : 1;
        put(s, g, &c, 1);
    }
    s->at++;
}

/* ---- here-documents ---- */

static sm_status add(shell *s, sm_setting setting) {
    if (s->stands.length) setting.at = s->stands;
    return sm_settings_add(s->out, &setting, s->err);
}

static const char *part(shell *s, const char *from, size_t length) {
    const char *copy = sm_arena_copy(s->out->arena, from, length);
    if (!copy) s->broken = true;
    return copy ? copy : "";
}

/* "<<EOF", "<<-'EOF'": what ends the document; a "<<<" begins a word. */
static void begin_here(shell *s) {
    size_t left, n = 2;
    const char *text = rest(s, &left);
    if (left > 2 && text[2] == '<') return;
    n += n < left && text[n] == '-';
    while (n < left && is_among(text[n], " \t'\"\\")) n++;
    s->here = (sm_span){s->at + n, name_length(text + n, left - n)};
    for (n += s->here.length; n < left && is_among(text[n], "'\"");) n++;
    s->at += n - 1;
}

static bool at_here(const shell *s) {
    return s->here.length && s->at < s->source.length && s->source.text[s->at] == '\n';
}

/* From the line after that of "<<EOF" to EOF: a file of YAML is settings; what else it may be is
 * read as commands are. */
static sm_status read_here(shell *s) {
    const sm_span here = s->here;
    s->at++;
    const char *text = s->source.text, *all = text + s->source.length, *end = text + s->at, *stop;
    s->here.length = 0;
    for (;; end = stop + 1) {
        const char *first = end;
        while (first < all && *first == '\t') first++;
        stop = end < all ? memchr(end, '\n', (size_t)(all - end)) : NULL;
        stop = stop ? stop : all;
        if ((size_t)(stop - first) == here.length &&
            memcmp(first, text + here.offset, here.length) == 0)
            break;
        if (stop == all) return SM_OK; /* it is never closed */
    }
    const sm_source body = {s->source.name, text + s->at, (size_t)(end - text) - s->at};
    if (sm_recipe_form_of(&body) != SM_RECIPE_YAML) return SM_OK;
    sm_status status = s->out->yaml(s->out, &body, s->at, s->stands, s->err);
    s->at = (size_t)(stop - text);
    /* What the shell has to fill in need be no YAML yet. */
    return status == SM_BAD_INPUT && s->out->n < SM_MOST_SETTINGS ? SM_OK : status;
}

/* Blanks, comments and continued lines. True at the end of a command; at the end of a line, too,
 * where a here-document begins. */
static bool skip(shell *s) {
    bool ended = false;
    while (s->at < s->source.length && !at_here(s)) {
        size_t left;
        const char *text = rest(s, &left);
        bool continued = text[0] == '\\' && left > 1 && (text[1] == '\n' || text[1] == '\r');
        bool comment = text[0] == '#' && (s->at == 0 || is_among(text[-1], " \t\n;("));
        if (text[0] == ' ' || text[0] == '\t' || text[0] == '\r') s->at++;
        else if (continued) s->at += text[1] == '\r' && left > 2 ? 3 : 2;
        else if (comment) {
            const char *end = memchr(text, '\n', left);
            s->at = end ? (size_t)(end - s->source.text) : s->source.length;
        } else if (is_among(text[0], "\n;|&<>()")) {
            if (text[0] == '<' && left > 1 && text[1] == '<' && (s->at == 0 || text[-1] != '<'))
                begin_here(s);
            if (text[0] == '(') s->parens++;
            if (text[0] == ')' && s->parens > 0) s->parens--;
            ended |= text[0] != '\n' || s->parens == 0;
            s->at++;
        } else break;
    }
    return ended;
}

static bool next_word(shell *s, word *w) {
    growing g = {0};
    *w = (word){.at.offset = s->at};
    if (s->at >= s->source.length) return false;
    while (s->at < s->source.length && !s->broken) {
        char c = s->source.text[s->at];
        bool escaped = c == '\\' && s->at + 1 < s->source.length;
        if (c == '\0') s->at++;
        else if (is_among(c, " \t\r\n;|&<>()")) break;
        else if (c == '$' || c == '`') expand(s, w, &g);
        else if (c == '\'' || c == '"') {
            w->quoted = true;
            if (c == '"') read_double(s, w, &g);
            else read_single(s, &g);
        } else if (escaped && is_among(s->source.text[s->at + 1], "\r\n")) break;
        else {
            s->at += escaped;
            put(s, &g, s->source.text + s->at++, 1);
        }
    }
    if (s->at == w->at.offset) s->at++; /* a byte that begins nothing */
    w->text = text_of(&g);
    w->at.length = s->at > w->at.offset ? s->at - w->at.offset : 1;
    return true;
}

/* ---- commands ---- */

/* A command's words become settings as they come: the key that still waits for its values. */
typedef struct command {
    sm_setting waiting; /* key NULL: none */
    const char *before; /* the word before, for bare words */
    bool begun;         /* a word that is no assignment has come */
} command;

static sm_status finish(shell *s, command *c) {
    sm_setting setting = c->waiting;
    c->waiting.key = NULL;
    return setting.key ? add(s, setting) : SM_OK;
}

static sm_status read_text(shell *outer, const char *text, sm_span at);

static sm_status add_flag(shell *s, command *c, const word *w) {
    const char *sign = strchr(w->text, '=');
    sm_status status = finish(s, c);
    c->begun = true;
    c->before = "";
    size_t n = sign ? (size_t)(sign - w->text) : strlen(w->text);
    sm_setting setting = {.key = part(s, w->text, n),
                          .value = sign ? sign + 1 : "",
                          .unknown = w->unknown,
                          .at = {w->at.offset, n < w->at.length ? n : w->at.length}};
    if (status || !sign) {
        c->waiting = setting;
        return status;
    }
    return add(s, setting);
}

/* NAME=value: an assignment before a command's first word, key=value of the program after it. */
static sm_status add_assignment(shell *s, command *c, const word *w, const char *sign) {
    const char *name = w->text + strspn(w->text, "+");
    size_t n = (size_t)(sign - name);
    if (n > 0 && name[n - 1] == '+') n--;
    sm_status status = finish(s, c);
    bool loose = !c->begun;
    if (loose) assign(s, name, n, w->unknown && !sign[1] ? NULL : sign + 1);
    if (status) return status;
    if (sm_settings_are_words(sign + 1)) return read_text(s, sign + 1, w->at);
    return add(s, (sm_setting){.key = part(s, name, n),
                               .value = sign + 1,
                               .unknown = w->unknown,
                               .at = {w->at.offset, n < w->at.length ? n : w->at.length},
                               .loose = loose});
}

/* A program that a launcher starts (mpirun -n 8 trtllm-serve ...) ends the launcher's options. The
 * first few are no flag's value, as "vllm" may be. */
static bool is_program(const word *w, bool has_value) {
    static const char *const programs[] = {
        "python", "python3", "torchrun",   "trtllm-serve", "trtllm-llmapi-launch",
        "vllm",   "sglang",  "accelerate", "deepspeed"};
    enum { NO_VALUES = 5 };
    int n = has_value ? (int)(sizeof programs / sizeof *programs) : NO_VALUES;
    for (int i = 0; i < n && !w->quoted; i++)
        if (strcmp(w->text, programs[i]) == 0) return true;
    return false;
}

/* A bare word is one more value of the flag that waits, or stands after the word before it. */
static sm_status add_bare(shell *s, command *c, const word *w) {
    bool keyword = !c->begun && strcmp(w->text, "export") == 0;
    if (keyword) return SM_OK;
    c->begun = true;
    if (c->waiting.key && is_program(w, c->waiting.value[0])) {
        sm_status status = finish(s, c);
        c->before = w->text;
        return status;
    }
    if (c->waiting.key) {
        const char *all = c->waiting.value;
        if (strlen(all) < MOST_LIST)
            all = sm_arena_printf(s->out->arena, "%s%s%s", all, all[0] ? " " : "", w->text);
        if (!all) return sm_fail_memory(s->err);
        c->waiting.value = all;
        if (!c->waiting.unknown) c->waiting.unknown = w->unknown;
        return SM_OK;
    }
    const char *key = c->before ? c->before : "";
    c->before = w->text;
    if (!key[0]) return SM_OK;
    return add(
        s, (sm_setting){
               .key = key, .value = w->text, .unknown = w->unknown, .at = w->at, .loose = true});
}

static bool is_flag(const char *text) {
    const char *name = text + (text[0] == '-') + (text[0] == '-' && text[1] == '-');
    return text[0] == '-' && is_name(name[0], true);
}

static sm_status add_word(shell *s, command *c, const word *w) {
    /* The '=' of key=value, whose key is made of names and dots; NULL when it is no such word. */
    const char *at = w->text + strspn(w->text, "+");
    const char *from = at;
    while (is_name(*at, at == from) || (at > from && (*at == '.' || *at == '-' || *at == '/')))
        at++;
    if (at > from && *at == '+') at++;
    const char *sign = at > from && *at == '=' ? at : NULL;
    if (s->broken) return sm_fail_memory(s->err);
    if (w->text[0] == '\0' && w->unknown && !c->waiting.key) return SM_OK;
    if (is_flag(w->text) && !(w->quoted && strpbrk(w->text, " \n"))) return add_flag(s, c, w);
    if (sign) return add_assignment(s, c, w, sign);
    if (w->quoted && sm_settings_are_words(w->text)) {
        sm_status status = finish(s, c);
        return status ? status : read_text(s, w->text, w->at);
    }
    return add_bare(s, c, w);
}

static sm_status read_commands(shell *s) {
    sm_status status = SM_OK;
    command c = {{0}, NULL, false};
    word w;
    for (bool first = true; !status; first = false) {
        if (skip(s) || first) {
            status = finish(s, &c);
            c = (command){{0}, NULL, false};
        }
        if (!status && at_here(s)) {
            status = read_here(s);
            continue;
        }
        if (status || !next_word(s, &w)) break;
        status = add_word(s, &c, &w);
    }
    return status ? status : finish(s, &c);
}

/* A text within the script that holds words: OPTIONS=" --tp 8 --pp 2 ". */
static sm_status read_text(shell *outer, const char *text, sm_span at) {
    shell inner = *outer;
    if (outer->nesting == MOST_NESTING) return SM_OK;
    inner.source = sm_source_of(outer->source.name, text);
    inner.at = 0;
    inner.parens = 0;
    inner.nesting++;
    if (!inner.stands.length) inner.stands = at;
    return read_commands(&inner);
}

static sm_status read_source(sm_settings *settings, const sm_source *source, sm_span stands,
                             sm_error *err) {
    int n = 0;
    size_t expanded = 0;
    shell s = {.out = settings,
               .err = err,
               .variables = sm_arena_array(settings->arena, MOST_VARIABLES, sizeof *s.variables),
               .n = &n,
               .expanded = &expanded,
               .source = *source,
               .stands = stands};
    return s.variables ? read_commands(&s) : sm_fail_memory(err);
}

sm_status settings_read_shell(sm_settings *settings, sm_error *err) {
    return read_source(settings, &settings->source, (sm_span){0, 0}, err);
}

sm_status sm_settings_add_words(sm_settings *settings, const char *words, sm_span at,
                                sm_error *err) {
    sm_source source = sm_source_of(settings->source.name, words);
    return read_source(settings, &source, at, err);
}
