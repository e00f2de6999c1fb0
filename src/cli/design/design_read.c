/* The file of a study: the machines, what they take, the work. */
#include "design.h"
#include "json_tree.h"
#include "scalemodel/io.h"
#include <assert.h>

const char *const design_measure_names[DESIGN_MEASURES] = {"usd_per_hour", "watts"};

static const char *const usual_formulas[DESIGN_MEASURES] = {"chips * usd_per_chip_hour",
                                                            "chips * tdp_w"};

/* ---- machines ---- */

static sm_status check_axis(const json_value *v) {
    const char *names[SM_RESOURCE_COUNT + 1], *key = v->key;
    bool known = strcmp(key, "on") == 0;
    memcpy(names, sm_resource_names, sizeof sm_resource_names);
    names[SM_RESOURCE_COUNT] = "domain";
    for (int i = 0; i <= SM_RESOURCE_COUNT; i++)
        known |= strncmp(key, "what-if.", 8) == 0 && strcmp(key + 8, names[i]) == 0;
    if (known) return SM_OK;
    const char *name = strncmp(key, "what-if.", 8) == 0 ? key + 8 : key;
    const char *near = sm_nearest(name, strlen(name), names, SM_RESOURCE_COUNT + 1);
    return json_fail_key(v, "expected on or what-if.RESOURCE%s%s%s",
                         near ? "; did you mean what-if." : "", near ? near : "", near ? "?" : "");
}

static sm_status read_over(design *d, const json_value *over) {
    bool on = false;
    sm_status s = json_expect(over, IS_OBJECT, "the machines, {\"on\": \"h100-sxm:8x8\"}");
    assert(over);
    if (!s && over->n > CLI_MAX_LIST)
        return json_fail(over, "at most %d keys are swept", CLI_MAX_LIST);
    for (uint32_t i = 0; i < over->n && !s; i++) {
        const json_value *v = &over->item[i];
        s = check_axis(v);
        if (!s) s = json_expect(v, IS_TEXT, "values as --over of sweep has them, \"1..2:0.5\"");
        if (s) return s;
        on |= strcmp(v->key, "on") == 0;
        const char *text = sm_arena_printf(d->call->arena, "%s=%s", v->key, v->text);
        if (!text) return sm_fail_memory(over->in->err);
        d->over.text[d->over.n++] = text;
    }
    return s || on ? s : json_fail(over, "no \"on\": on which systems?");
}

/* ---- what they take ---- */

typedef struct naming {
    const json_value *at;
    sm_status status;
} naming;

static void check_name(void *context, const char *name) {
    naming *n = context;
    size_t count, at = 0;
    const char *const *names = design_names(&count);
    while (at < count && strcmp(names[at], name) != 0) at++;
    if (n->status || at < count) return;
    const char *near = sm_nearest(name, strlen(name), names, count);
    n->status = json_fail(n->at, "a formula has no name %.40s%s%s%s", name,
                          near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static sm_status read_formula(design *d, const json_value *v, design_measure m, sm_error *err) {
    naming n = {v, SM_OK};
    if (!v) {
        const char *text = usual_formulas[m];
        sm_source usual = sm_source_of(design_measure_names[m], text);
        return expression_parse(&usual, (sm_span){0, strlen(text)}, d->call->arena, &d->formula[m],
                                err);
    }
    sm_status s = json_expect(v, IS_TEXT, "a formula, \"chips * (2 + 0.5 * hbm)\"");
    const sm_span all = json_place(v);
    if (!s)
        s = expression_parse(&d->file, (sm_span){all.offset + 1, all.length - 2}, d->call->arena,
                             &d->formula[m], err);
    if (!s) expression_each_name(d->formula[m], check_name, &n);
    return s ? s : n.status;
}

static sm_status read_most(design *d, const json_value *most) {
    sm_status s = SM_OK;
    if (!most) return SM_OK;
    s = json_expect(most, IS_OBJECT, "bounds, {\"watts\": 2e6}");
    if (!s) s = json_check_keys(most, design_measure_names, DESIGN_MEASURES);
    for (int m = 0; m < DESIGN_MEASURES && !s; m++)
        s = json_read_number(json_get(most, design_measure_names[m]), 1e-9, 1e18, &d->most[m]);
    return s;
}

/* ---- the work ---- */

static sm_status read_work(design *d, const json_value *v, sm_error *err) {
    design_work *w = &d->work[d->works++];
    const char *word[CLI_MAX_POSITIONALS] = {""};
    sm_status s =
        json_expect_keys(v, "work, {\"ask\": [\"train\", \"llama-3.1-70b\"]}", "ask|share");
    const json_value *ask = json_get(v, "ask");
    if (!s && !ask) s = json_fail(v, "no \"ask\": what is asked of each machine?");
    if (!s) s = json_expect(ask, IS_LIST, "a command in words, [\"train\", \"llama-3.1-70b\"]");
    assert(s || ask);
    if (!s && (ask->n == 0 || ask->n > CLI_MAX_POSITIONALS))
        s = json_fail(ask, "expected 1 to %d words", CLI_MAX_POSITIONALS);
    for (uint32_t i = 0; !s && i < ask->n; i++) {
        s = json_expect(&ask->item[i], IS_TEXT, "a word of a command, \"train\"");
        if (!s) word[i] = ask->item[i].text;
    }
    w->share = 1;
    if (!s) s = json_read_number(json_get(v, "share"), 1e-9, 1e18, &w->share);
    if (s) return s;
    if (strcmp(word[0], "train") != 0 && strcmp(word[0], "serve") != 0)
        return json_fail(&ask->item[0], "work is what train or serve answers");
    w->name = sm_arena_printf(d->call->arena, "%s %s", word[0], ask->n > 1 ? word[1] : "");
    if (!w->name) return sm_fail_memory(err);
    s = sweep_new(d->call, &d->over, "tokens_per_s_per_chip,plan", (int)ask->n, word, &w->s, err);
    if (!s) w->s->brief = true;
    return s;
}

sm_status design_read(design *d, sm_error *err) {
    const json_value *root;
    sm_status s = sm_io_read(d->call->positional[0], d->call->arena, &d->file, err);
    if (!s) s = cli_system_file(d->call, &d->chip, &d->chips, err);
    json_document *document = sm_arena_alloc(d->call->arena, sizeof *document);
    if (!s && !document) s = sm_fail_memory(err);
    if (s) return s;
    *document = (json_document){.source = &d->file, .arena = d->call->arena, .err = err};
    s = json_parse(document, &root);
    if (s) return s;
    s = json_expect_keys(root, "a study, {\"over\": ..., \"work\": ...}",
                         "over|usd_per_hour|watts|most|work");
    const json_value *over = json_get(root, "over"), *work = json_get(root, "work");
    if (!s && !over) s = json_fail(root, "no \"over\": which machines?");
    if (!s && !work) s = json_fail(root, "no \"work\": what do they do?");
    if (!s) s = read_over(d, over);
    for (int m = 0; m < DESIGN_MEASURES && !s; m++)
        s = read_formula(d, json_get(root, design_measure_names[m]), (design_measure)m, err);
    if (!s) s = read_most(d, json_get(root, "most"));
    if (!s) s = json_expect(work, IS_LIST, "a list of work");
    assert(s || work);
    if (!s && (work->n == 0 || work->n > DESIGN_MOST_WORK))
        s = json_fail(work, "expected 1 to %d kinds of work", DESIGN_MOST_WORK);
    for (uint32_t i = 0; !s && i < work->n; i++) s = read_work(d, &work->item[i], err);
    if (s) return s;
    d->machines = d->work[0].s->rows;
    if (d->machines > DESIGN_MOST_MACHINES)
        return json_fail(over, "%lld machines: at most %d are compared", (long long)d->machines,
                         DESIGN_MOST_MACHINES);
    return SM_OK;
}
