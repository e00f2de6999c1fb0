/* serve_traffic: what lies beyond one replica: pools of their own for prefill and decode, and the
 * replicas for a traffic. */
#include "scalemodel/page.h"
#include "serve.h"

void cli_serve_pools_page(sm_report *r, const cli_served *a) {
    const sm_disaggregated *p = a->pools;
    const sm_system *s = &a->q->system;
    sm_report_heading(r, "Disaggregated");
    sm_table *t = sm_page_table(r, NULL, "<pool|>chips|>batch|>step|<plan");
    sm_page_row(r, t, "prefill", sm_show_exact(r, p->prefill.chips),
                sm_show_exact(r, p->prefill_batch),
                sm_show_seconds(r, p->prefill.prefill.expected_s),
                cli_serve_plan_words(r, s, &p->prefill.plan));
    sm_page_row(r, t, "decode", sm_show_exact(r, p->decode.chips),
                sm_show_exact(r, p->decode.batch), sm_show_seconds(r, p->decode.decode.expected_s),
                cli_serve_plan_words(r, s, &p->decode.plan));
    sm_report_table(r, t);
    sm_report_text(
        r,
        "%s prefill chips for each decode chip. The cache of a request, %s, moves in "
        "%s. Together %s tokens/s per chip%s.",
        sm_show_number(r, p->prefill_per_decode_chips), sm_show_bytes(r, p->kv_bytes),
        sm_show_seconds(r, p->kv_transfer_s), sm_show_number(r, p->tokens_per_s_per_chip),
        p->usd_per_million_tokens > 0
            ? sm_textf(r, ", %s per million tokens", sm_show_usd(r, p->usd_per_million_tokens))
            : "");
    if (a->q->search.ttft_s <= 0.0)
        sm_report_text(r, "Without --ttft the prefill batch is that of most prompts per chip.");
}

void cli_serve_fleet_page(sm_report *r, const cli_served *a) {
    const sm_fleet *f = a->fleet;
    const sm_system *s = &a->q->system;
    sm_report_heading(r, "Fleet for %s requests a second", sm_show_exact(r, a->q->requests_per_s));
    const char *all =
        sm_textf(r, "%s chip%s", sm_show_exact(r, f->chips), f->chips > 1.0 ? "s" : "");
    sm_report_text(
        r, "%s replica%s of %d chip%s, %s in all%s.", sm_show_exact(r, f->replicas),
        f->replicas > 1.0 ? "s" : "", f->point.chips, f->point.chips > 1 ? "s" : "", all,
        f->usd_per_hour > 0 ? sm_textf(r, ", %s an hour", sm_show_usd(r, f->usd_per_hour)) : "");
    if (s->chips > 1 && f->chips > s->chips)
        sm_report_text(r, "That is %s times %s.", sm_show_number(r, f->chips / s->chips), s->text);
    sm_report_text(r, "Each takes %s requests a second and is busy %s of the time.",
                   sm_show_number(r, f->requests_per_s_per_replica),
                   sm_show_percent(r, f->utilisation));
    sm_report_text(r, "Batch %s, %s per token, first token after %s: %s",
                   sm_show_exact(r, f->point.batch), sm_show_seconds(r, f->point.tpot_s[1]),
                   sm_show_seconds(r, f->point.ttft_s[1]),
                   cli_serve_plan_words(r, s, &f->point.plan));
}
