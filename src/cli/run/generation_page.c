/* The page of `run generate`: texts, passes predicted and measured, bytes predicted and counted. */
#include "generation.h"
#include "scalemodel/page.h"
#include "prediction.h"

/* ---- texts ---- */

static void show_texts(sm_report *r, const generation *g) {
    sm_data *list = sm_put_array(r, r->data, "texts");
    for (size_t i = 0; i < g->prompts; i++) {
        size_t n = g->prompt_bytes[i] + g->tokens, room = 4 * n + 1;
        char *clean = sm_arena_alloc(r->arena, room);
        if (!clean) r->out_of_memory = true;
        if (!clean) return;
        sm_utf8_clean(clean, room, (const char *)g->text[i], n);
        sm_data *one = sm_put_object(r, list, NULL);
        sm_put_text(r, one, "text", clean);
        sm_data *bytes = sm_put_array(r, one, "bytes");
        for (size_t k = g->prompt_bytes[i]; k < n; k++) sm_put(r, bytes, NULL, g->text[i][k]);
        sm_report_text(r, "%s", clean);
    }
}

/* ---- passes ---- */

typedef struct row {
    const char *key, *name;
    const sm_generate_phase *phase;
    double predicted_s; /* of a pass */
} row;
enum { ROWS = 4 };

static int rows_of(const generation *g, row *rows) {
    const sm_generate_result *s = &g->result;
    const row all[ROWS] = {
        {"prefill", "prompts", &s->prefill, g->price.prefill_s},
        {"decode", g->drafts ? "bytes that are verified" : "a byte of each text", &s->decode,
         g->price.decode_s},
        {"draft_prefill", "draft: prompts", &s->draft_prefill, g->price.draft_prefill_s},
        {"draft", "draft: a byte of each text", &s->draft, g->price.draft_s}};
    int n = 0;
    for (int i = 0; i < ROWS; i++)
        if (all[i].phase->passes > 0) rows[n++] = all[i];
    return n;
}

static void show_passes(sm_report *r, const generation *g) {
    row rows[ROWS];
    int n = rows_of(g, rows);
    sm_table *table =
        sm_page_table(r, "A pass on the first rank", "<|>passes|>predicted|>measured|>ratio");
    for (int i = 0; i < n; i++) {
        sm_data *one = sm_put_object(r, r->data, rows[i].key);
        double measured_s = rows[i].phase->seconds / rows[i].phase->passes;
        sm_put(r, one, "passes", rows[i].phase->passes);
        sm_put(r, one, "predicted_s", rows[i].predicted_s);
        sm_put(r, one, "measured_s", measured_s);
        sm_page_row(r, table, rows[i].name, sm_show_exact(r, rows[i].phase->passes),
                    sm_show_seconds(r, rows[i].predicted_s), sm_show_seconds(r, measured_s),
                    prediction_ratio(r, rows[i].predicted_s, measured_s));
    }
    sm_report_table(r, table);
}

/* After the first byte, which comes with the prompts. */
static void show_rate(sm_report *r, const generation *g) {
    double bytes = (double)g->prompts * (double)(g->tokens - 1), seconds = g->result.seconds;
    double predicted_s =
        g->price.decode_s * g->result.decode.passes + g->price.draft_s * g->result.draft.passes;
    if (g->tokens < 2) return;
    sm_data *pair = sm_put_object(r, r->data, "tokens_per_s");
    sm_put(r, pair, "predicted", bytes / predicted_s);
    sm_put(r, pair, "measured", bytes / seconds);
    sm_report_text(r, "%s after the prompts; predicted for %s: %s.",
                   sm_show_rate(r, bytes / seconds, "tokens/s"), g->system.text,
                   sm_show_rate(r, bytes / predicted_s, "tokens/s"));
}

static void show_speculation(sm_report *r, const generation *g) {
    const sm_generate_result *s = &g->result;
    if (!g->drafts || !(s->decode.passes > 0)) return;
    double rate = s->drafted > 0 ? s->accepted / s->drafted : 0;
    double each = (double)g->prompts * (double)(g->tokens - 1) / s->decode.passes;
    sm_data *one = sm_put_object(r, r->data, "speculation");
    sm_put_text(r, one, "draft", g->draft.model.name);
    sm_put(r, one, "depth", g->depth);
    sm_put(r, one, "drafted", s->drafted);
    sm_put(r, one, "accepted", s->accepted);
    sm_put(r, one, "acceptance", rate);
    sm_put(r, one, "tokens_per_pass", each);
    sm_report_text(r,
                   "%s proposed %s bytes, of which %s stayed (%s): %s bytes for each pass of %s.",
                   g->draft.model.name, sm_show_exact(r, s->drafted), sm_show_exact(r, s->accepted),
                   sm_show_percent(r, rate), sm_show_number(r, each), g->target.model.name);
}

/* ---- collectives ---- */

static void show_row(sm_report *r, const row *w, sm_data *list, sm_table *table) {
    for (int k = 0; k < SM_COLLECTIVE_COUNT; k++) {
        const sm_generator_result *s = &w->phase->sum;
        double predicted = s->bytes_predicted[k], counted = s->bytes_counted[k];
        if (!(predicted > 0 || counted > 0)) continue;
        const char *name = sm_collective_name((sm_collective)k);
        sm_data *one = sm_put_object(r, list, NULL);
        sm_put_text(r, one, "phase", w->key);
        sm_put_text(r, one, "op", name);
        sm_put(r, one, "bytes_predicted", predicted);
        sm_put(r, one, "bytes_counted", counted);
        sm_put(r, one, "measured_s", s->collective_s[k]);
        sm_page_row(r, table, w->name, name, sm_show_exact(r, predicted), sm_show_exact(r, counted),
                    sm_show_seconds(r, s->collective_s[k]));
    }
}

/* ---- all of it ---- */

sm_status generation_show(sm_report *r, const generation *g) {
    char plan[256];
    int ranks = sm_train_setup_ranks(&g->target.setup);
    sm_plan_format(&g->plan, 0, plan, sizeof plan);
    sm_put_text(r, r->data, "command", "run generate");
    sm_put_text(r, r->data, "model", g->target.model.name);
    sm_put_text(r, r->data, "plan", plan);
    sm_put_text(r, r->data, "backend", ranks_backend());
    sm_put(r, r->data, "ranks", ranks);
    show_texts(r, g);
    sm_report_text(r, "%s on %d rank%s (%s): %zu text%s, %zu bytes each after prompts of up to %d.",
                   g->target.model.name, ranks, ranks == 1 ? "" : "s", ranks_backend(), g->prompts,
                   g->prompts == 1 ? "" : "s", g->tokens, g->target.setup.tokens - (int)g->tokens);
    show_passes(r, g);
    show_speculation(r, g);
    row rows[ROWS];
    int n = rows_of(g, rows);
    sm_data *list = sm_put_array(r, r->data, "collectives");
    sm_table *table = sm_page_table(r, "Collectives of all passes on the first rank",
                                    "<|<|>predicted|>counted|>measured");
    for (int i = 0; i < n; i++) show_row(r, &rows[i], list, table);
    if (table && table->rows) sm_report_table(r, table);
    prediction_say_bytes(r, "pass", g->bytes_apart);
    show_rate(r, g);
    prediction_say_placeholder(r, &g->system);
    return g->bytes_apart > 0 ? SM_NEGATIVE : SM_OK;
}
