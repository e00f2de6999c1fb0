/* validate_suspects: rows that look wrong rather than hard to predict. */
#include "pages.h"
#include "validate.h"
#include <math.h>

/* A thousand times off, give or take what any prediction is off by. */
static const double least_factor = 300.0, most_factor = 3000.0;
/* The same configuration in the same source, this much apart, cannot both be right. */
static const double contradiction = 1.5;
enum { MOST_SHOWN = 20 };

/* ---- units ---- */

static const char *suspicion(const cli_checked *c) {
    double ratio = c->row->measured_s / c->p.expected_s;
    if (ratio > least_factor && ratio < most_factor)
        return "a thousand times too long: is it in a smaller unit than the file says?";
    if (ratio * most_factor > 1.0 && ratio * least_factor < 1.0)
        return "a thousand times too short: is it in a larger unit than the file says?";
    return NULL;
}

static void add_units(sm_report *r, const cli_validation *v) {
    sm_data *list = cli_array(r, r->data, "suspected_units");
    sm_table *table =
        cli_table(r, "Suspected units", "<row|>line|>measured|>expected|<the time looks");
    size_t n = 0;
    for (size_t i = 0; i < v->compared; i++) {
        const cli_checked *c = &v->row[v->index[i]];
        const char *why = suspicion(c);
        if (!why) continue;
        sm_data *object = cli_object(r, list, NULL);
        cli_put_row_id(r, object, v, c);
        cli_put(r, object, "line", c->row->line);
        cli_put_text(r, object, "the time looks", why);
        if (n++ < MOST_SHOWN)
            cli_row(r, table, c->row->id, cli_exact(r, c->row->line),
                    cli_seconds(r, c->row->measured_s), cli_seconds(r, c->p.expected_s), why);
    }
    if (table && n) sm_report_table(r, table);
    if (n > MOST_SHOWN) sm_report_text(r, "and %zu more", n - MOST_SHOWN);
}

/* ---- contradictions ---- */

static const char *training_key(sm_arena *arena, const sm_training_row *t) {
    const char *machine = sm_arena_printf(arena, "%d/%d/%s/%s/%s/%s/%d", t->chips,
                                          t->chips_per_node, t->inter_node_network,
                                          t->intra_node_link, t->hardware_notes, t->title, t->year);
    const char *model =
        sm_arena_printf(arena, "%s/%s/%d/%d/%d/%d", t->model.name, t->model.notes, t->model.layers,
                        t->model.d_model, t->model.vocab, t->model.n_experts);
    const char *work = sm_arena_printf(arena, "%s/%s/%s/%g/%g/%g/%g", t->task, t->precision,
                                       t->optimizer, t->seq_len, t->global_batch_sequences,
                                       t->microbatch, t->per_device_batch_size);
    const char *layout = sm_arena_printf(arena, "%d/%d/%d/%d/%d/%d/%d/%d/%d", t->tp, t->cp, t->pp,
                                         t->vp, t->ep, t->dp, t->sp, t->fsdp, t->zero_stage);
    const char *detail =
        sm_arena_printf(arena, "%s/%s/%s/%s/%s/%s", t->recompute, t->recompute_detail,
                        t->attention_kernel, t->schedule, t->schedule_detail, t->flags);
    if (!machine || !model || !work || !layout || !detail) return NULL;
    return sm_arena_printf(arena, "%s\n%s\n%s\n%s\n%s\n%s", machine, model, work, layout, detail,
                           t->notes);
}

/* All that a row says of what was measured. */
static const char *what_of(sm_arena *arena, const sm_truth_row *row) {
    switch (row->kind) {
    case SM_TRUTH_GEMM:
        return sm_arena_printf(arena, "%s/%g/%g/%g", row->of.gemm.dtype, row->of.gemm.m,
                               row->of.gemm.n, row->of.gemm.k);
    case SM_TRUTH_ATTENTION: {
        const sm_attention_row *a = &row->of.attention;
        return sm_arena_printf(arena, "%s/%s/%g/%g/%g/%d/%d/%d", a->phase, a->dtype, a->batch,
                               a->q_len, a->kv_len, a->n_heads, a->n_kv_heads, a->d_head);
    }
    case SM_TRUTH_COLLECTIVE: {
        const sm_collective_row *x = &row->of.collective;
        return sm_arena_printf(arena, "%s/%d/%d/%g", x->op, x->ranks, x->nodes, x->bytes);
    }
    case SM_TRUTH_MEMOP: {
        const sm_memop_row *x = &row->of.memop;
        return sm_arena_printf(arena, "%s/%s/%g/%g/%g", x->op, x->dtype, x->rows, x->cols,
                               x->bytes);
    }
    default: return training_key(arena, &row->of.training);
    }
}

static cli_member *members_of(const cli_validation *v) {
    sm_arena *arena = v->call->arena;
    cli_member *m = sm_arena_array(arena, v->compared + 1, sizeof *m);
    for (size_t i = 0; m && i < v->compared; i++) {
        const sm_truth_row *row = v->row[v->index[i]].row;
        const char *what = what_of(arena, row);
        const char *key =
            what ? sm_arena_printf(arena, "%s\n%s\n%s", row->chip, row->source, what) : NULL;
        if (!key) return NULL;
        m[i] = (cli_member){key, v->index[i]};
    }
    if (m) cli_members_sort(m, v->compared);
    return m;
}

static const cli_checked *extreme_of(const cli_validation *v, const cli_member *m, size_t n,
                                     double sign) {
    const cli_checked *found = &v->row[m[0].at];
    for (size_t i = 1; i < n; i++) {
        const cli_checked *c = &v->row[m[i].at];
        if (sign * c->row->measured_s > sign * found->row->measured_s) found = c;
    }
    return found;
}

static void add_contradiction(sm_report *r, const cli_validation *v, sm_table *table, sm_data *list,
                              const cli_checked *least, const cli_checked *most, bool shown) {
    double ratio = most->row->measured_s / least->row->measured_s;
    sm_data *object = cli_object(r, list, NULL);
    cli_put_row_id(r, cli_object(r, object, "least"), v, least);
    cli_put_row_id(r, cli_object(r, object, "most"), v, most);
    cli_put(r, object, "ratio", ratio);
    if (shown)
        cli_row(r, table, least->row->id, cli_seconds(r, least->row->measured_s), most->row->id,
                cli_seconds(r, most->row->measured_s), cli_textf(r, "%.2f x", ratio));
}

static void add_contradictions(sm_report *r, const cli_validation *v, const cli_member *m) {
    sm_data *list = cli_array(r, r->data, "contradictory");
    sm_table *table = cli_table(r, "Contradictory: one configuration, one source",
                                "<row|>measured|<row|>measured|>apart");
    size_t n = 0;
    for (size_t i = 0, j; i < v->compared; i = j) {
        j = cli_members_run(m, v->compared, i);
        const cli_checked *least = extreme_of(v, &m[i], j - i, -1.0);
        const cli_checked *most = extreme_of(v, &m[i], j - i, 1.0);
        if (most->row->measured_s < contradiction * least->row->measured_s) continue;
        add_contradiction(r, v, table, list, least, most, n++ < MOST_SHOWN);
    }
    if (table && n) sm_report_table(r, table);
    if (n > MOST_SHOWN) sm_report_text(r, "and %zu more", n - MOST_SHOWN);
}

void cli_validate_suspects(sm_report *r, const cli_validation *v) {
    cli_member *m = members_of(v);
    add_units(r, v);
    if (m) add_contradictions(r, v, m);
    else r->out_of_memory = true;
}
