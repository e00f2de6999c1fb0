/* answer_plan: what the text of a plan means, key by key, from the table of keys (plan.h). */
#include "question.h"

enum { VALUE_ROOM = 256, REASON_ROOM = 256 };

typedef struct asked_plan {
    sm_plan_question in;
    sm_plan plan;
    double chips;       /* the product of its degrees */
    const char *reason; /* why it cannot be, NULL when it can */
} asked_plan;

/* The keys that such a plan has: those given in a table, the others in a sentence. */
static void keys(sm_report *r, const asked_plan *q) {
    const sm_listing list = sm_page_list(r, r->data, "keys", NULL,
                                         "key<key|given|value<value|values|meaning|shards|<means");
    const sm_system *system = q->in.system;
    const char *left_out = "";
    for (int k = 0; k < SM_PLAN_KEY_COUNT; k++) {
        const sm_plan_key key = (sm_plan_key)k;
        const sm_plan_key_row *row = sm_plan_key_row_of(key);
        const bool given = sm_plan_given(&q->plan, key);
        char value[VALUE_ROOM], values[VALUE_ROOM];
        if (!(row->uses >> q->plan.use & 1)) continue;
        /* "" where the system has no such thing (dims of switches) */
        sm_plan_key_print(&q->plan, key, system ? system->torus_dims : 3, value, sizeof value);
        sm_list_row(
            &list, given, row->name, given, value, sm_plan_key_values(key, values, sizeof values),
            row->meaning, row->shards,
            sm_textf(r, "%s%s%s", row->meaning, row->shards[0] ? "; shards: " : "", row->shards));
        if (!given && value[0])
            left_out =
                sm_textf(r, "%s%s%s=%s", left_out, left_out[0] ? ", " : "", row->name, value);
    }
    if (left_out[0])
        sm_report_text(r, "Left out, for a search to choose; otherwise their defaults hold: %s.",
                       left_out);
}

/* Why the model cannot be sharded so. A search may still set expert_tensor where it is left out. */
static const char *model_reason(sm_report *r, const asked_plan *q) {
    char room[REASON_ROOM];
    sm_model model = *q->in.model;
    sm_plan plan = q->plan;
    sm_plan_keep_used_kinds(&model);
    const char *why = sm_plan_refuse(&plan, &model, room, sizeof room);
    if (why && !sm_plan_given(&plan, SM_PLAN_EXPERT_TENSOR)) {
        plan.expert_tensor = true;
        why = sm_plan_refuse(&plan, &model, room, sizeof room);
    }
    return why ? sm_textf(r, "%s", why) : NULL;
}

/* Chips taken and left; degrees that are left out may take what they divide. */
static void chips(sm_report *r, asked_plan *q) {
    enum { ALL_DEGREES = (1 << SM_PLAN_DEGREES) - 1 };
    const sm_system *system = q->in.system;
    bool open = (q->plan.given & ALL_DEGREES) != ALL_DEGREES;
    if (!system) return;
    sm_put(r, r->data, "system|system_chips", system->text, system->chips);
    double left = system->chips - q->chips;
    if (left < 0.0)
        q->reason = sm_textf(r, "the degrees take %.0f chips, and %s has %d", q->chips,
                             system->text, system->chips);
    else if (left > 0.0 && open && fmod(system->chips, q->chips) == 0.0)
        sm_report_text(r, "On %s the degrees left out may multiply to %.0f.", system->text,
                       system->chips / q->chips);
    else if (left > 0.0)
        sm_report_text(r, "On %s %.0f of the %d chips stay idle.", system->text, left,
                       system->chips);
}

static void explain(sm_report *r, const asked_plan *q) {
    r->why = sm_page_why(r, NULL, "chips", "product of the degrees", q->chips, "");
    for (int key = 0; key < SM_PLAN_DEGREES; key++)
        sm_page_leaf(r, r->why, sm_plan_key_row_of((sm_plan_key)key)->name,
                     sm_plan_degree_of(&q->plan, key), "",
                     sm_plan_given(&q->plan, (sm_plan_key)key) ? "given" : "default");
}

sm_status sm_answer_plan(const sm_plan_question *question, sm_report *r, sm_error *err) {
    asked_plan q = {.chips = 1.0};
    sm_status status = sm_sized_take(&q.in, sizeof q.in, question, err);
    if (status) return status;
    bool serving = q.in.use == SM_PLAN_SERVING;
    if (!q.in.plan.text) q.in.plan = sm_source_of("plan", "");
    status = serving ? sm_serve_plan_parse(&q.in.plan, &q.plan, err)
                     : sm_plan_parse(&q.in.plan, &q.plan, err);
    if (status) return status;
    for (int key = 0; key < SM_PLAN_DEGREES; key++) q.chips *= sm_plan_degree_of(&q.plan, key);
    const char *use = serving ? "serving" : "training";
    sm_report_heading(r, "A plan of %s: %s chip%s", use, sm_show_exact(r, q.chips),
                      q.chips == 1.0 ? "" : "s");
    sm_put(r, r->data, "command|use|chips", "plan", use, q.chips);
    keys(r, &q);
    chips(r, &q);
    if (q.in.model) sm_put(r, r->data, "model", q.in.model->name);
    if (q.in.model && !q.reason) q.reason = model_reason(r, &q);
    sm_padding padding;
    bool pads = q.in.model && sm_plan_padding(&q.plan, q.in.model, &padding);
    if (q.reason)
        sm_report_text(r, "Not possible: %s.%s", q.reason,
                       !pads ? ""
                             : sm_textf(r,
                                        " '%s' prices it all the same, on the model padded for it.",
                                        serving ? "serve" : "train"));
    else if (q.in.model && sm_plan_heads_times(&q.plan, q.in.model) > 1)
        sm_copies_note(r, &q.plan, q.in.model);
    else if (q.in.model)
        sm_report_text(r, "Heads, widths, experts and layers of %s divide.", q.in.model->name);
    sm_put(r, r->data, "possible|reason", (bool)(!q.reason), q.reason ? q.reason : "");
    if (q.in.explain) explain(r, &q);
    return q.reason ? SM_NEGATIVE : SM_OK;
}
