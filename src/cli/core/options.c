/* options: parse a command line against the tables. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "program.h"
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

static const cli_place *const common_places =
    CLI_PLACES(CLI_AT(cli_common, "json", json), CLI_AT(cli_common, "csv", csv),
               CLI_AT(cli_common, "explain", explain), CLI_AT(cli_common, "output", output),
               CLI_AT(cli_common, "help", help), CLI_AT(cli_common, "system", system_file));

static const size_t kind_bytes[] = {
#define X(kind, type, told) sizeof(type),
    CLI_KINDS(X)
#undef X
};

const cli_place *cli_place_of(const cli_place *places, const cli_option *o) {
    while (places->option && strcmp(places->option, o->name) != 0) places++;
    assert(places->option && places->bytes == (o->optional ? sizeof(void *) : kind_bytes[o->kind]));
    return places;
}

/* An option, and its place in its table. */
typedef struct slot {
    const cli_option *option; /* NULL: there is none of this name */
    bool common;
    int index;
} slot;

typedef struct parser {
    const cli_verb *verb;
    cli_call *call;
    int argc, at;
    char **argv;
    bool positional_only; /* after "--" */
    const char *common[CLI_MAX_OPTIONS];
} parser;

static bool is_named(const cli_option *option, const char *name, size_t length) {
    if (length == 1 && option->letter[0] == name[0]) return true;
    return strlen(option->name) == length && memcmp(option->name, name, length) == 0;
}

const cli_option *cli_own_option(const cli_verb *verb, const char *name) {
    for (const cli_option *o = verb->about->options; o->name; o++)
        if (strcmp(o->name, name) == 0) return o;
    return NULL;
}

bool cli_is_offered(const cli_verb *verb, const cli_option *option, size_t length) {
    bool named = cli_own_option(verb, option->name), lettered = false;
    for (const cli_option *o = verb->about->options; o->name; o++)
        lettered = lettered || o->letter[0] == option->letter[0];
    if (named && (length > 1 || lettered)) return false;
    return !verb->without_system || strcmp(option->name, "system") != 0;
}

cli_takes cli_verb_takes(const cli_verb *verb) {
    cli_takes t = {0, 0};
    for (const char *at = verb->about->arguments, *word; *at; at = word + strspn(word, " ")) {
        word = at + strcspn(at, " ");
        t.least += *at != '[';
        t.most++;
    }
    if (strstr(verb->about->arguments, "..."))
        t.most = verb->most ? verb->most : CLI_MAX_POSITIONALS;
    return t;
}

static slot find_option(const parser *p, const char *name, size_t length) {
    for (const cli_option *o = verbs_common.options; o->name; o++)
        if (is_named(o, name, length) && cli_is_offered(p->verb, o, length))
            return (slot){o, true, (int)(o - verbs_common.options)};
    for (const cli_option *o = p->verb->about->options; o->name; o++)
        if (is_named(o, name, length)) return (slot){o, false, (int)(o - p->verb->about->options)};
    return (slot){NULL, false, 0};
}

static size_t collect_names(const cli_option *table, const char **names, size_t n) {
    for (const cli_option *o = table; o->name && n < 2 * CLI_MAX_OPTIONS; o++) names[n++] = o->name;
    return n;
}

/* The option of this verb that a name of other programs means; NULL: none. */
static const char *option_meant(const parser *p, const char *name, size_t length) {
    for (size_t i = 0; i < programs_options_count; i++) {
        const cli_other_name *other = &programs_options[i];
        if (strlen(other->name) != length || strncmp(other->name, name, length) != 0) continue;
        for (int k = 0; k < CLI_MOST_MEANT && other->options[k]; k++)
            if (find_option(p, other->options[k], strlen(other->options[k])).option)
                return other->options[k];
    }
    return NULL;
}

static const char *option_alike(const parser *p, const char *name, size_t length) {
    const char *names[2 * CLI_MAX_OPTIONS];
    size_t n = collect_names(verbs_common.options, names, 0);
    n = collect_names(p->verb->about->options, names, n);
    return sm_nearest(name, length, names, n);
}

/* The key of this verb's plans that a name means: tensor, weights-by, tp, tensor-parallel-size,
 * tensor-model-parallel-size. */
static const char *key_meant(const parser *p, const char *name, size_t length) {
    static const char *const longer[] = {"-parallel", "-model-parallel"};
    int nick = sm_plan_key_of_nickname(name, length);
    for (int key = 0; key < SM_PLAN_KEY_COUNT; key++) {
        const sm_plan_key_row *row = sm_plan_key_row_of((sm_plan_key)key);
        const char *other = row->name;
        size_t i = 0;
        if (!(row->uses & p->verb->plans)) continue;
        while (i < length && (other[i] == name[i] || (other[i] == '_' && name[i] == '-'))) i++;
        if (key == nick || (i == length && !other[i])) return other;
        for (int k = 0; k < 2 && !other[i]; k++)
            if (strncmp(name + i, longer[k], strlen(longer[k])) == 0) return other;
    }
    return NULL;
}

static sm_status fail_option(const parser *p, const char *argument, const char *name, size_t length,
                             sm_error *err) {
    int shown = (int)(name - argument) + (int)length;
    const char *near = option_meant(p, name, length);
    const char *key = near ? NULL : key_meant(p, name, length);
    const char *next = p->at < p->argc ? p->argv[p->at] : "...";
    if (key)
        return sm_fail(err, SM_USAGE, "%s has no option %.*s; plans have: --plan %s=%s",
                       p->verb->about->name, shown, argument, key,
                       name[length] == '=' ? name + length + 1 : next);
    if (!near) near = option_alike(p, name, length);
    if (near)
        return sm_fail(err, SM_USAGE, "%s has no option %.*s; did you mean --%s?",
                       p->verb->about->name, shown, argument, near);
    return sm_fail(err, SM_USAGE, "%s has no option %.*s; see 'scalemodel help %s'",
                   p->verb->about->name, shown, argument, p->verb->about->name);
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
    slot found = is_long == (length == 1) ? (slot){.index = 0} : find_option(p, name, length);
    if (!found.option) return fail_option(p, argument, name, length, err);
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    if (found.option->kind == CLI_FLAG && value)
        return sm_fail(err, SM_USAGE, "--%s takes no value", found.option->name);
    if (found.option->kind != CLI_FLAG && !value) value = next_value(p);
    if (found.option->kind != CLI_FLAG && !value)
        return sm_fail(err, SM_USAGE, "--%s needs a value: --%s %s", found.option->name,
                       found.option->name, found.option->value);
    /* Only a list may stand twice: elsewhere a second value is more likely a slip than a wish. */
    const cli_option *o = found.option;
    assert(found.index < CLI_MAX_OPTIONS);
    const char **given = &(found.common ? p->common : p->call->given)[found.index];
    if (*given && o->kind != CLI_LIST)
        return sm_fail(err, SM_USAGE, "--%s is given twice", o->name);
    *given = value ? value : "";
    if (o->kind != CLI_LIST) return SM_OK;
    void *place = (char *)p->call->values + cli_place_of(p->verb->places, o)->offset;
    return cli_value_read(o, p->call->name[found.index], value, place, err);
}

/* An option of this verb within the other's command line, where its questions have no use for it.
 */
static bool is_anywhere(const parser *p, const char *argument) {
    if (!p->verb->asks || !p->call->positionals || argument[0] != '-' || !argument[1]) return false;
    const char *name = argument + (argument[1] == '-' ? 2 : 1);
    const cli_option *o = find_option(p, name, strcspn(name, "=")).option, *own;
    sm_error none = {.status = SM_OK};
    const cli_verb *other =
        o && o->anywhere ? cli_find_verb(p->verb->asks, p->call->positional[0], &none) : NULL;
    return other && (!(own = cli_own_option(other, o->name)) || own->kind == CLI_OUTPUT);
}

static sm_status parse_argument(parser *p, sm_error *err) {
    const char *argument = p->argv[p->at++];
    bool ended = p->positional_only && !is_anywhere(p, argument);
    if (ended || argument[0] != '-' || !argument[1]) {
        cli_call *call = p->call;
        if (call->positionals == cli_verb_takes(p->verb).most)
            return sm_fail(err, SM_USAGE, "%s takes %s, and '%.80s' is one argument too many%s",
                           p->verb->about->name,
                           *p->verb->about->arguments ? p->verb->about->arguments : "no argument",
                           argument, strchr(argument, '[') ? " (quote what holds blanks)" : "");
        assert(call->positionals < (int)(sizeof call->positional / sizeof *call->positional));
        call->positional[call->positionals++] = argument;
        p->positional_only = p->positional_only || p->verb->asks;
        return SM_OK;
    }
    if (strcmp(argument, "--") == 0) {
        p->positional_only = true;
        return SM_OK;
    }
    return parse_option(p, argument, err);
}

/* The values of a table: those given, and the defaults of the others. */
static sm_status read_values(const cli_call *call, const cli_option *table, const cli_place *places,
                             const char *const *given, void *values, sm_error *err) {
    char common[64];
    sm_status status = SM_OK;
    for (int i = 0; table[i].name && !status; i++) {
        const cli_option *o = &table[i];
        const char *text = given[i] ? given[i] : o->by_default;
        if (!text && o->required)
            return sm_fail(err, SM_USAGE, "%s needs --%s %s", call->verb->about->name, o->name,
                           o->value);
        snprintf(common, sizeof common, "--%s", o->name);
        const char *name = table == verbs_common.options ? common : call->name[i];
        void *place = (char *)values + cli_place_of(places, o)->offset;
        if (!text && o->kind == CLI_SOURCE) *(sm_source *)place = (sm_source){.name = name};
        if (!text || o->kind == CLI_LIST) continue;
        if (o->optional) {
            void *value = sm_arena_alloc(call->arena, sizeof(double));
            if (!value) return sm_fail_memory(err);
            *(void **)place = value;
            place = value;
        }
        status = cli_value_read(o, name, text, place, err);
    }
    return status;
}

/* The folder that a file is in, absolute; false: there is none. */
static bool folder_of(const char *path, const char *name, char out[PATH_MAX]) {
    char folder[PATH_MAX];
    int n = snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path);
    return n < (int)sizeof folder && realpath(n ? folder : ".", out);
}

/* Do both name one file, there or yet to be made? Devices take several answers. */
static bool are_one_file(const char *a, const char *b) {
    struct stat x, y;
    bool there = stat(a, &x) == 0, other = stat(b, &y) == 0;
    if (there || other)
        return there && other && S_ISREG(x.st_mode) && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
    char of_a[PATH_MAX], of_b[PATH_MAX];
    const char *last = strrchr(a, '/'), *end = strrchr(b, '/');
    last = last ? last + 1 : a, end = end ? end + 1 : b;
    return strcmp(last, end) == 0 && folder_of(a, last, of_a) && folder_of(b, end, of_b) &&
           strcmp(of_a, of_b) == 0;
}

/* Two answers in one file would leave the later alone. */
static sm_status check_outputs(const cli_call *call, const parser *p, sm_error *err) {
    const cli_option *option[2 * CLI_MAX_OPTIONS];
    const char *path[2 * CLI_MAX_OPTIONS];
    int n = 0;
    for (int i = 0; verbs_common.options[i].name; i++)
        if (verbs_common.options[i].kind == CLI_OUTPUT && p->common[i]) {
            option[n] = &verbs_common.options[i];
            path[n++] = p->common[i];
        }
    for (int i = 0; call->verb->about->options[i].name; i++)
        if (call->verb->about->options[i].kind == CLI_OUTPUT && call->given[i]) {
            option[n] = &call->verb->about->options[i];
            path[n++] = call->given[i];
        }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (are_one_file(path[i], path[k]))
                return sm_fail(err, SM_USAGE, "--%s and --%s both write %.200s", option[k]->name,
                               option[i]->name, path[i]);
    return SM_OK;
}

sm_status cli_parse(const cli_verb *verb, int argc, char **argv, cli_call *call, sm_error *err) {
    parser p = {.verb = verb, .call = call, .argc = argc, .argv = argv};
    call->verb = verb;
    for (int i = 0; verb->about->options[i].name; i++)
        snprintf(call->name[i], sizeof call->name[i], "--%s", verb->about->options[i].name);
    call->values = sm_arena_alloc(call->arena, verb->values_bytes ? verb->values_bytes : 1);
    if (!call->values) return sm_fail_memory(err);
    while (p.at < argc) {
        sm_status status = parse_argument(&p, err);
        if (status) return status;
    }
    sm_status status =
        read_values(call, verbs_common.options, common_places, p.common, &call->common, err);
    if (status || call->common.help) return status;
    if (call->common.json && call->common.csv)
        return sm_fail(err, SM_USAGE, "--json and --csv exclude each other");
    if (call->positionals < cli_verb_takes(verb).least)
        return sm_fail(err, SM_USAGE, "%s needs %s", verb->about->name, verb->about->arguments);
    status = read_values(call, verb->about->options, verb->places, call->given, call->values, err);
    return status ? status : check_outputs(call, &p, err);
}
