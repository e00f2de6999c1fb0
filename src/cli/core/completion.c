/* completion: what may follow the words of a command line, from the tables that it is read by. The
 * scripts of the shells ask for it anew each time, so that they need not know any option. */
#include "named.h"
#include "program.h"

typedef struct asked {
    FILE *out;
    const char *word; /* at the cursor */
} asked;

/* One thing that may stand at the cursor, if what is there begins it. */
static void offer(const asked *a, const char *before, const char *word, const char *after,
                  const char *help) {
    char all[512];
    snprintf(all, sizeof all, "%s%s%s", before, word, after);
    if (strncmp(all, a->word, strlen(a->word)) != 0) return;
    fprintf(a->out, "%s%s%s\n", all, help ? "\t" : "", help ? help : "");
}

static void offer_words(const asked *a, const char *before, sm_words words) {
    for (int i = 0; i < words.n; i++) offer(a, before, words.word[i], "", NULL);
}

/* What is typed up to the last of `ends`: in a list only what follows is at the cursor. */
static const char *done(const asked *a, const char *ends, char *room, size_t size) {
    size_t n = strlen(a->word);
    while (n > 0 && !strchr(ends, a->word[n - 1])) n--;
    snprintf(room, size, "%.*s", (int)n, a->word);
    return room;
}

static void offer_plan(const asked *a, unsigned plans) {
    char before[400];
    done(a, ",=|", before, sizeof before);
    size_t n = strlen(before);
    const char *key = before + n;
    while (key > before && key[-1] != ',') key--;
    bool is_value = n > 0 && before[n - 1] != ',';
    for (int k = 0; k < SM_PLAN_KEY_COUNT; k++) {
        const sm_plan_key_row *row = sm_plan_key_row_of((sm_plan_key)k);
        size_t length = strlen(row->name);
        if (!(row->uses & plans)) continue;
        if (!is_value) offer(a, before, row->name, "=", row->meaning);
        else if (strncmp(key, row->name, length) == 0 && key[length] == '=')
            offer_words(a, before, row->words);
    }
}

static void offer_chips(const asked *a) {
    char before[400];
    done(a, ",", before, sizeof before);
    for (size_t i = 0; i < sm_chip_count(); i++) offer(a, before, sm_chip_at(i)->name, "", NULL);
}

static sm_status offer_frameworks(const asked *a, sm_error *err) {
    sm_arena *arena = sm_arena_new();
    sm_frameworks *all;
    sm_status status = arena ? sm_frameworks_shipped(arena, &all, err) : sm_fail_memory(err);
    for (int i = 0; !status && i < all->n; i++)
        offer(a, "", sm_framework_name(all->of[i]), "", sm_framework_title(all->of[i]));
    sm_arena_free(arena);
    return status;
}

static sm_status offer_value(const asked *a, const cli_verb *verb, const cli_option *o,
                             sm_error *err) {
    char before[400] = "";
    bool list = o->kind == CLI_CHOICES || o->kind == CLI_DTYPES;
    if (list) done(a, ",", before, sizeof before);
    offer_words(a, before, o->words);
    if (o->kind == CLI_DTYPE || o->kind == CLI_DTYPES)
        for (int t = 0; t < SM_DTYPE_COUNT; t++)
            offer(a, before, sm_dtype_name((sm_dtype)t), "", NULL);
    if (strcmp(o->value, "SYSTEM") == 0 || strcmp(o->value, "CHIP") == 0) offer_chips(a);
    if (strcmp(o->value, "PLAN") == 0) offer_plan(a, verb->plans ? verb->plans : ~0u);
    bool framework = strcmp(o->name, "framework") == 0 || strcmp(o->name, "emit") == 0;
    return framework ? offer_frameworks(a, err) : SM_OK;
}

static void offer_options(const asked *a, const cli_verb *verb) {
    for (const cli_option *o = verb->about->options; o->name; o++)
        offer(a, "--", o->name, "", o->help);
    for (const cli_option *o = verbs_common.options; o->name; o++)
        if (cli_is_offered(verb, o, 2) && !cli_own_option(verb, o->name))
            offer(a, "--", o->name, "", o->help);
}

/* The option whose value follows this word; NULL: none does. */
static const cli_option *wants_value(const cli_verb *verb, const char *word) {
    const cli_option *const tables[] = {verb->about->options, verbs_common.options};
    for (int t = 0; t < 2; t++)
        for (const cli_option *o = tables[t]; o->name; o++) {
            bool name = strncmp(word, "--", 2) == 0 && strcmp(word + 2, o->name) == 0;
            bool letter = o->letter[0] && word[0] == '-' && word[1] == o->letter[0] && !word[2];
            if (name || letter) return o->value ? o : NULL;
        }
    return NULL;
}

static sm_status offer_at(const cli_program *p, const asked *a, int words, char **word,
                          sm_error *err) {
    const cli_verb *verb = NULL;
    for (int i = 0; i < p->verbs && words > 1; i++)
        if (strcmp(cli_verb_word(p->verb[i]), word[0]) == 0) verb = p->verb[i];
    if (words <= 1 || (words == 2 && strcmp(word[0], "help") == 0)) {
        for (int i = 0; i < p->verbs; i++)
            offer(a, "", cli_verb_word(p->verb[i]), "", p->verb[i]->about->summary);
        offer(a, "", "help", "", "the options of a verb");
    }
    if (!verb) return SM_OK;
    if (verb->pass_on) {
        char *argv[CLI_MAX_POSITIONALS + CLI_MAX_OPTIONS] = {"completion", "--"};
        int n = 2, most = (int)(sizeof argv / sizeof *argv) - 1;
        for (int i = 1; i < words && n < most; i++) argv[n++] = word[i];
        return verb->pass_on(verb, n, argv, err);
    }
    const cli_option *o = wants_value(verb, words > 2 ? word[words - 2] : "");
    if (o) return offer_value(a, verb, o, err);
    if (a->word[0] == '-') offer_options(a, verb);
    else if (strstr(verb->about->arguments, "MODEL")) {
        for (size_t i = 0; i < sm_catalogue_count(); i++)
            offer(a, "", sm_catalogue_at(i)->name, "", NULL);
    } else if (strstr(verb->about->arguments, "CHIP")) offer_chips(a);
    return SM_OK;
}

static sm_status print_offers(const cli_program *p, int words, char **word, sm_error *err) {
    const asked a = {.out = stdout, .word = words ? word[words - 1] : ""};
    sm_status status = offer_at(p, &a, words, word, err);
    return status ? status : cli_write_stdout("", 0, err);
}

sm_status cli_completion(const cli_program *p, int words, char **word, sm_error *err) {
    if (words > 0 && strcmp(word[0], "--") == 0) return print_offers(p, words - 1, word + 1, err);
    const cli_shell *shell = words == 1 ? NAMED(programs_shells, word[0]) : NULL;
    for (int i = 0; shell && i < CLI_MOST_LINES && shell->line[i]; i++) puts(shell->line[i]);
    if (shell) return cli_write_stdout("", 0, err);
    return sm_fail(err, SM_USAGE, "completion needs the name of a shell: bash, zsh or fish");
}
