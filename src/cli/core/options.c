/* options: parse a command line against the tables, and print help from them. */
#include "options.h"
#include <stdio.h>
#include <string.h>

enum { MAX_NAMES = 64, HELP_COLUMN = 24, HELP_WIDTH = 80 };

const cli_option cli_common_options[] = {
    {"json", 0, CLI_FLAG, offsetof(cli_common, json), NULL,
     "machine form: SI units, the unit in the key"},
    {"csv", 0, CLI_FLAG, offsetof(cli_common, csv), NULL, "the tables as comma-separated values"},
    {"explain", 0, CLI_FLAG, offsetof(cli_common, explain), NULL,
     "the derivation of the numbers, down to their sources"},
    {"output", 'o', CLI_TEXT, offsetof(cli_common, output), "FILE",
     "write the answer to FILE instead of standard output"},
    {"system", 0, CLI_TEXT, offsetof(cli_common, system_file), "FILE",
     "chips of your own, from a JSON file"},
    {"help", 'h', CLI_FLAG, offsetof(cli_common, help), NULL, "this text"},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

/* An option together with the struct that its value goes into. */
typedef struct slot {
    const cli_option *option;
    char *base;
} slot;

typedef struct parser {
    const cli_verb *verb;
    cli_call *call;
    int argc, at;
    char **argv;
    bool positional_only;            /* after "--" */
    uint64_t common_seen, verb_seen; /* which flags and texts were given */
} parser;

static bool is_named(const cli_option *option, const char *name, size_t length) {
    if (length == 1 && option->letter == name[0]) return true;
    return strlen(option->name) == length && memcmp(option->name, name, length) == 0;
}

/* A name that the verb has itself means what the verb says; a letter that it lacks stays common. */
static bool has_name(const cli_verb *verb, const cli_option *option) {
    for (const cli_option *o = verb->options; o->name; o++)
        if (strcmp(o->name, option->name) == 0) return true;
    return false;
}

static bool has_letter(const cli_verb *verb, const cli_option *option) {
    for (const cli_option *o = verb->options; o->name; o++)
        if (o->letter == option->letter) return true;
    return false;
}

/* A common option that the verb has use for, by a name of this many bytes. */
static bool is_offered(const cli_verb *verb, const cli_option *option, size_t length) {
    if (has_name(verb, option) && (length > 1 || has_letter(verb, option))) return false;
    return !verb->without_system || strcmp(option->name, "system") != 0;
}

static slot find_option(const parser *p, const char *name, size_t length) {
    for (const cli_option *o = cli_common_options; o->name; o++)
        if (is_named(o, name, length) && is_offered(p->verb, o, length))
            return (slot){o, (char *)&p->call->common};
    for (const cli_option *o = p->verb->options; o->name; o++)
        if (is_named(o, name, length)) return (slot){o, p->call->values};
    return (slot){NULL, NULL};
}

static size_t collect_names(const cli_option *table, const char **names, size_t n) {
    for (const cli_option *o = table; o->name && n < MAX_NAMES; o++) names[n++] = o->name;
    return n;
}

static sm_status fail_unknown(const parser *p, const char *argument, const char *name,
                              size_t length, sm_error *err) {
    const char *names[MAX_NAMES];
    size_t n = collect_names(cli_common_options, names, 0);
    n = collect_names(p->verb->options, names, n);
    const char *near = sm_nearest(name, length, names, n);
    int shown = (int)(name - argument) + (int)length;
    if (near)
        return sm_fail(err, SM_USAGE, "%s has no option %.*s; did you mean --%s?", p->verb->name,
                       shown, argument, near);
    return sm_fail(err, SM_USAGE, "%s has no option %.*s; see 'scalemodel help %s'", p->verb->name,
                   shown, argument, p->verb->name);
}

/* Flags and texts may stand once: a second one is more likely a slip than a wish. */
static sm_status note_seen(parser *p, slot found, sm_error *err) {
    bool common = found.base == (char *)&p->call->common;
    uint64_t *seen = common ? &p->common_seen : &p->verb_seen;
    const cli_option *table = common ? cli_common_options : p->verb->options;
    uint64_t bit = UINT64_C(1) << (found.option - table);
    if ((*seen & bit) && found.option->kind != CLI_LIST)
        return sm_fail(err, SM_USAGE, "--%s is given twice", found.option->name);
    *seen |= bit;
    return SM_OK;
}

static sm_status store(slot found, const char *value, sm_error *err) {
    char *place = found.base + found.option->offset;
    if (found.option->kind == CLI_FLAG) {
        *(bool *)(void *)place = true;
        return SM_OK;
    }
    if (found.option->kind == CLI_TEXT) {
        *(const char **)(void *)place = value;
        return SM_OK;
    }
    cli_list *list = (cli_list *)(void *)place;
    if (list->n == CLI_MAX_LIST)
        return sm_fail(err, SM_USAGE, "--%s is given more than %d times", found.option->name,
                       CLI_MAX_LIST);
    list->text[list->n++] = value;
    return SM_OK;
}

/* The argument after an option that wants a value; another option in its place means that the value
 * was forgotten. */
static const char *next_value(parser *p) {
    if (p->at >= p->argc) return NULL;
    const char *next = p->argv[p->at];
    bool option = next[0] == '-' && next[1] == '-' && next[2];
    if (option && find_option(p, next + 2, strcspn(next + 2, "=")).option) return NULL;
    p->at++;
    return next;
}

static sm_status parse_option(parser *p, const char *argument, sm_error *err) {
    const char *name = argument + (argument[1] == '-' ? 2 : 1);
    size_t length = strcspn(name, "=");
    bool is_long = argument[1] == '-';
    slot found = is_long == (length == 1) ? (slot){NULL, NULL} : find_option(p, name, length);
    if (!found.option) return fail_unknown(p, argument, name, length, err);
    sm_status status = note_seen(p, found, err);
    if (status) return status;
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    if (found.option->kind == CLI_FLAG && value)
        return sm_fail(err, SM_USAGE, "--%s takes no value", found.option->name);
    if (found.option->kind != CLI_FLAG && !value) value = next_value(p);
    if (found.option->kind != CLI_FLAG && !value)
        return sm_fail(err, SM_USAGE, "--%s needs a value: --%s %s", found.option->name,
                       found.option->name, found.option->value);
    return store(found, value, err);
}

static sm_status add_positional(parser *p, const char *argument, sm_error *err) {
    cli_call *call = p->call;
    if (call->positionals == p->verb->most)
        return sm_fail(err, SM_USAGE, "%s takes %s, and '%.80s' is one argument too many%s",
                       p->verb->name, *p->verb->arguments ? p->verb->arguments : "no argument",
                       argument, strchr(argument, '[') ? " (quote what holds blanks)" : "");
    call->positional[call->positionals++] = argument;
    return SM_OK;
}

static sm_status parse_argument(parser *p, sm_error *err) {
    const char *argument = p->argv[p->at++];
    if (p->positional_only || argument[0] != '-' || !argument[1])
        return add_positional(p, argument, err);
    if (strcmp(argument, "--") == 0) {
        p->positional_only = true;
        return SM_OK;
    }
    return parse_option(p, argument, err);
}

static sm_status check_call(const cli_verb *verb, const cli_call *call, sm_error *err) {
    if (call->common.help) return SM_OK;
    if (call->common.json && call->common.csv)
        return sm_fail(err, SM_USAGE, "--json and --csv exclude each other");
    if (call->common.output && !call->common.output[0])
        return sm_fail(err, SM_USAGE, "--output needs the name of a file");
    if (call->common.system_file && !call->common.system_file[0])
        return sm_fail(err, SM_USAGE, "--system needs the name of a file");
    if (call->positionals < verb->least)
        return sm_fail(err, SM_USAGE, "%s needs %s", verb->name, verb->arguments);
    return SM_OK;
}

sm_status cli_parse(const cli_verb *verb, int argc, char **argv, cli_call *call, sm_error *err) {
    parser p = {.verb = verb, .call = call, .argc = argc, .argv = argv};
    call->verb = verb;
    call->values = sm_arena_alloc(call->arena, verb->values_bytes ? verb->values_bytes : 1);
    if (!call->values) return sm_fail_memory(err);
    while (p.at < argc) {
        sm_status status = parse_argument(&p, err);
        if (status) return status;
    }
    return check_call(verb, call, err);
}

/* ---- help ---- */

/* Print words from `column` on, continuing there after each line break. */
static void print_wrapped(FILE *out, const char *text, int column) {
    int at = column;
    while (*text) {
        size_t word = strcspn(text, " ");
        bool breaks = at > column && at + 1 + (int)word > HELP_WIDTH;
        if (breaks) at = column;
        if (breaks) fprintf(out, "\n%*s", column, "");
        if (at > column) fputc(' ', out);
        at += (int)word + (at > column);
        fprintf(out, "%.*s", (int)word, text);
        text += word + strspn(text + word, " ");
    }
    fputc('\n', out);
}

static void help_option(const cli_option *option, bool by_name, FILE *out) {
    char head[80];
    int n =
        option->letter ? snprintf(head, sizeof head, by_name ? "-%c, " : "-%c", option->letter) : 0;
    n += snprintf(head + n, sizeof head - (size_t)n, "%s%s%s%s", by_name ? "--" : "",
                  by_name ? option->name : "", option->value ? " " : "",
                  option->value ? option->value : "");
    fprintf(out, "  %s", head);
    int at = 2 + n;
    if (at > HELP_COLUMN - 2) {
        fputc('\n', out);
        at = 0;
    }
    fprintf(out, "%*s", HELP_COLUMN - at, "");
    print_wrapped(out, option->help, HELP_COLUMN);
}

void cli_help_verb(const cli_verb *verb, FILE *out) {
    fprintf(out, "usage: scalemodel %s %s%s[options]\n\n", verb->name, verb->arguments,
            verb->arguments[0] ? " " : "");
    print_wrapped(out, verb->summary, 0);
    fputs("\noptions:\n", out);
    for (const cli_option *o = verb->options; o->name; o++) help_option(o, true, out);
    for (const cli_option *o = cli_common_options; o->name; o++)
        if (is_offered(verb, o, 1)) help_option(o, !has_name(verb, o), out);
    if (verb->notes) fprintf(out, "\n%s", verb->notes);
}
