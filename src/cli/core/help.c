/* help: the help of a verb, made from its tables: what an option is, its words, bounds and default.
 */
#include "options.h"
#include "scalemodel/render.h"
#include <math.h>

enum { HELP_COLUMN = 24, HELP_WIDTH = 80, HELP_ROOM = 512, NUMBER_ROOM = 32 };

/* ---- what a row says ---- */

/* 64, 0.95, 1M, 1B: as one would type it. */
static const char *number_text(double value, char out[NUMBER_ROOM]) {
    bool billions = value >= 1e9 && fmod(value, 1e9) == 0.0;
    bool millions = value >= 1e6 && fmod(value, 1e6) == 0.0;
    double scale = billions ? 1e9 : millions ? 1e6 : 1.0;
    snprintf(out, NUMBER_ROOM, "%.15g%s", value / scale, billions ? "B" : millions ? "M" : "");
    return out;
}

/* "1 to 64", "at least 1", "above 0"; "" where any number will do. */
static void bounds_text(const cli_option *o, char *out, size_t size) {
    char low[NUMBER_ROOM], high[NUMBER_ROOM];
    number_text(o->lowest, low);
    number_text(o->highest, high);
    if (o->highest > 0.0 && o->above) snprintf(out, size, "above %s, at most %s", low, high);
    else if (o->kind == CLI_RANGE && o->highest > 0.0) snprintf(out, size, "at most %s", high);
    else if (o->highest > 0.0) snprintf(out, size, "%s to %s", low, high);
    else if (o->above) snprintf(out, size, "above %s", low);
    else if (o->lowest > 0.0) snprintf(out, size, "at least %s", low);
    else out[0] = '\0';
}

static void add(char *text, const char *more) {
    size_t used = strlen(text);
    snprintf(text + used, HELP_ROOM - used, "%s", more);
}

/* "limits to the search: a, b or c (1 to 64; default 3)" */
static void option_text(const cli_option *o, char text[HELP_ROOM]) {
    char bounds[2 * NUMBER_ROOM + 16];
    const char *standard = o->by_default ? o->by_default : o->default_says;
    bounds_text(o, bounds, sizeof bounds);
    snprintf(text, HELP_ROOM, "%s", o->help);
    /* ": time, cost or memory" */
    for (int i = 0; i < o->words.n; i++) {
        add(text, i == 0 ? ": " : i + 1 == o->words.n ? " or " : ", ");
        add(text, o->words.word[i]);
    }
    if (!bounds[0] && !standard) return;
    add(text, " (");
    add(text, bounds);
    if (bounds[0] && standard) add(text, "; ");
    if (standard) add(text, o->by_default ? "default " : "default: ");
    if (standard) add(text, standard);
    add(text, ")");
}

/* ---- rows of two columns ---- */

/* On a line of its own; words with bars between them on several where one is too narrow. */
static void print_head(FILE *out, const char *head) {
    int indent = 2;
    for (size_t cut; strlen(head) + (size_t)indent > HELP_WIDTH; head += cut, indent = 8) {
        cut = HELP_WIDTH - (size_t)indent;
        while (cut > 0 && head[cut - 1] != '|') cut--;
        if (cut == 0) break;
        fprintf(out, "%*s%.*s\n", indent, "", (int)cut, head);
    }
    fprintf(out, "%*s%s\n", indent, "", head);
}

static void print_row(FILE *out, const char *head, const char *text) {
    char first[HELP_ROOM], rest[HELP_COLUMN + 1];
    bool alone = strlen(head) > HELP_COLUMN - 4;
    snprintf(rest, sizeof rest, "%*s", HELP_COLUMN, "");
    if (alone) print_head(out, head);
    else snprintf(first, sizeof first, "  %-*s", HELP_COLUMN - 2, head);
    sm_print_wrapped(out, text, HELP_WIDTH, alone ? rest : first, rest);
}

static void print_option(const cli_option *o, bool by_name, FILE *out) {
    char head[80], text[HELP_ROOM];
    int n = o->letter[0] ? snprintf(head, sizeof head, by_name ? "-%s, " : "-%s", o->letter) : 0;
    snprintf(head + n, sizeof head - (size_t)n, "%s%s%s%s", by_name ? "--" : "",
             by_name ? o->name : "", o->value ? " " : "", o->value ? o->value : "");
    option_text(o, text);
    print_row(out, head, text);
}

/* ---- keys of plans ---- */

/* "tensor=1..1048576" */
static void print_key(FILE *out, sm_plan_key key, const char *text) {
    char head[HELP_ROOM], values[HELP_ROOM];
    snprintf(head, sizeof head, "%s=%s", sm_plan_key_row_of(key)->name,
             sm_plan_key_values(key, values, sizeof values));
    print_row(out, head, text);
}

static void default_of(sm_plan_key key, sm_plan_use use, char *out, size_t size) {
    sm_plan plan;
    if (use == SM_PLAN_SERVING) sm_serve_plan_defaults(&plan);
    else sm_plan_defaults(&plan);
    sm_plan_key_print(&plan, key, 3, out, size);
}

/* "tensor-parallel degree; shards heads (default 1)" */
static void key_text(sm_plan_key key, char text[HELP_ROOM]) {
    enum { BOTH = 1 << SM_PLAN_TRAINING | 1 << SM_PLAN_SERVING };
    const sm_plan_key_row *row = sm_plan_key_row_of(key);
    char training[128], serving[128];
    bool both = (row->uses & BOTH) == BOTH;
    default_of(key, SM_PLAN_TRAINING, training, sizeof training);
    default_of(key, SM_PLAN_SERVING, serving, sizeof serving);
    snprintf(text, HELP_ROOM, "%s", row->meaning);
    if (row->shards[0]) add(text, "; shards: ");
    add(text, row->shards);
    add(text, row->uses == 1u << SM_PLAN_SERVING ? " (serving alone; default "
              : both                             ? " (default "
                                                 : " (training alone; default ");
    add(text, row->uses == 1u << SM_PLAN_SERVING ? serving : training);
    if (both && strcmp(training, serving) != 0) {
        add(text, "; serving: ");
        add(text, serving);
    }
    add(text, ")");
}

void cli_help_plan(FILE *out) {
    char text[HELP_ROOM];
    fputs("usage: --plan KEY=VALUE,KEY=VALUE,...\n\n", out);
    sm_print_wrapped(
        out,
        "A plan says how a model is spread over chips: degrees, whose product is the "
        "chips it uses, choices of what they shard, and where their axes lie. The search "
        "of 'train' and 'serve' chooses the keys that are left out; in a plan that is "
        "only priced or run they have their defaults.",
        HELP_WIDTH, "", "");
    fputs("\nkeys:\n", out);
    for (int key = 0; key < SM_PLAN_KEY_COUNT; key++) {
        key_text((sm_plan_key)key, text);
        print_key(out, (sm_plan_key)key, text);
    }
    fputs("\nexample: --plan fsdp=64,tensor=8,seq=on,microbatch=1,recompute=selective\n", out);
}

/* ---- the page ---- */

void cli_help_verb(const cli_verb *verb, FILE *out) {
    fprintf(out, "usage: scalemodel %s %s%s[options]\n\n", verb->about->name,
            verb->about->arguments, verb->about->arguments[0] ? " " : "");
    sm_print_wrapped(out, verb->about->summary, HELP_WIDTH, "", "");
    fputs("\noptions:\n", out);
    for (const cli_option *o = verb->about->options; o->name; o++) print_option(o, true, out);
    for (const cli_option *o = verbs_common.options; o->name; o++)
        if (cli_is_offered(verb, o, 1)) print_option(o, !cli_own_option(verb, o->name), out);
    if (verb->plans) {
        fputs("\nkeys of a plan ('scalemodel help plan' has more of each):\n", out);
        for (int key = 0; key < SM_PLAN_KEY_COUNT; key++) {
            const sm_plan_key_row *row = sm_plan_key_row_of((sm_plan_key)key);
            if (row->uses & verb->plans) print_key(out, (sm_plan_key)key, row->meaning);
        }
    }
    if (verb->about->notes[0]) fprintf(out, "\n%s", verb->about->notes);
}
