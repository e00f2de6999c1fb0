/* describe: what a program understands, from the tables that it reads by. */
#include "program.h"

static const char *const kinds[] = {
#define X(kind, type, told) told,
    CLI_KINDS(X)
#undef X
};

static sm_data *words_of(sm_words words, sm_arena *arena) {
    sm_data *list = sm_data_array(arena);
    for (int i = 0; i < words.n; i++)
        if (!sm_data_push(list, sm_data_string(arena, words.word[i]))) return NULL;
    return list;
}

static sm_data *option_data(const cli_option *o, sm_arena *arena) {
    sm_data *data = sm_data_object(arena);
    bool put = sm_data_put_string(data, arena, "name", o->name) &&
               sm_data_put_string(data, arena, "kind", kinds[o->kind]) &&
               sm_data_put_string(data, arena, "help", o->help);
    if (o->value) put = put && sm_data_put_string(data, arena, "value", o->value);
    if (o->lowest > 0.0 || o->highest > 0.0)
        put = put && sm_data_put_number(data, arena, "least", o->lowest);
    if (o->highest > 0.0) put = put && sm_data_put_number(data, arena, "most", o->highest);
    if (o->above) put = put && sm_data_put_bool(data, arena, "above", true);
    if (o->required) put = put && sm_data_put_bool(data, arena, "required", true);
    if (o->words.n) put = put && sm_data_put(data, arena, "words", words_of(o->words, arena));
    if (o->by_default) put = put && sm_data_put_string(data, arena, "default", o->by_default);
    if (o->default_says)
        put = put && sm_data_put_string(data, arena, "default_says", o->default_says);
    return put ? data : NULL;
}

/* Of the common options those that the verb offers; verb NULL: the table as it is. */
static sm_data *options_data(const cli_option *table, const cli_verb *verb, sm_arena *arena) {
    sm_data *list = sm_data_array(arena);
    for (const cli_option *o = table; o->name; o++)
        if (!verb || (cli_is_offered(verb, o, 2) && !cli_own_option(verb, o->name)))
            if (!sm_data_push(list, option_data(o, arena))) return NULL;
    return list;
}

static sm_data *verb_data(const cli_verb *v, sm_arena *arena) {
    const cli_takes takes = cli_verb_takes(v);
    sm_data *data = sm_data_object(arena);
    bool put = sm_data_put_string(data, arena, "name", v->about->name) &&
               sm_data_put_string(data, arena, "summary", v->about->summary) &&
               sm_data_put_string(data, arena, "arguments", v->about->arguments) &&
               sm_data_put_number(data, arena, "least", takes.least) &&
               sm_data_put_number(data, arena, "most", takes.most) &&
               sm_data_put_string(data, arena, "notes", v->about->notes) &&
               sm_data_put(data, arena, "options", options_data(v->about->options, NULL, arena)) &&
               sm_data_put(data, arena, "common", options_data(verbs_common.options, v, arena));
    return put ? data : NULL;
}

sm_status cli_describe(const cli_program *p, sm_report *r, sm_error *err) {
    sm_data *verbs = sm_data_array(r->arena);
    bool put = sm_data_put_string(r->data, r->arena, "version", sm_version());
    for (int i = 0; i < p->verbs && put; i++)
        if (!p->verb[i]->pass_on) put = sm_data_push(verbs, verb_data(p->verb[i], r->arena));
    put = put && sm_data_put(r->data, r->arena, "verbs", verbs);
    return put ? SM_OK : sm_fail_memory(err);
}
