/* describe: what a program understands, from the tables that it reads by. */
#include "program.h"

static const char *const kinds[] = {CLI_KINDS(SM_THIRD_OF)};

static void put_option(sm_report *r, sm_data *list, const cli_option *o) {
    sm_data *data = sm_put_object(r, list, NULL);
    sm_put(r, data, "name|kind|help", o->name, kinds[o->kind], o->help);
    if (o->value) sm_put(r, data, "value", o->value);
    if (o->lowest > 0.0 || o->highest > 0.0) sm_put(r, data, "least", o->lowest);
    if (o->highest > 0.0) sm_put(r, data, "most", o->highest);
    if (o->above) sm_put(r, data, "above", (bool)true);
    if (o->required) sm_put(r, data, "required", (bool)true);
    sm_data *words = o->words.n ? sm_put_array(r, data, "words") : NULL;
    for (int i = 0; i < o->words.n; i++) sm_put(r, words, NULL, o->words.word[i]);
    if (o->by_default) sm_put(r, data, "default", o->by_default);
    if (o->default_says) sm_put(r, data, "default_says", o->default_says);
}

static void put_verb(sm_report *r, sm_data *list, const cli_verb *v) {
    const cli_takes takes = cli_verb_takes(v);
    sm_data *data = sm_put_object(r, list, NULL);
    sm_put(r, data, "name|summary|arguments|least|most|notes", v->about->name, v->about->summary,
           v->about->arguments, takes.least, takes.most, v->about->notes);
    sm_data *own = sm_put_array(r, data, "options"), *common = sm_put_array(r, data, "common");
    for (const cli_option *o = v->about->options; o->name; o++) put_option(r, own, o);
    for (const cli_option *o = verbs_common.options; o->name; o++) /* those that the verb offers */
        if (cli_is_offered(v, o, 2) && !cli_own_option(v, o->name)) put_option(r, common, o);
}

sm_status cli_describe(const cli_program *p, sm_report *r, sm_error *err) {
    sm_put(r, r->data, "version", sm_version());
    sm_data *verbs = sm_put_array(r, r->data, "verbs");
    for (int i = 0; i < p->verbs; i++)
        if (!p->verb[i]->pass_on) put_verb(r, verbs, p->verb[i]);
    return r->out_of_memory ? sm_fail_memory(err) : SM_OK;
}
