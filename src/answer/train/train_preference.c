/* train_preference: what comes after pretraining: an iteration of DPO, GRPO or PPO, phase by phase.
 *
 *   sequences --engines--> rollouts --forward--> scores of the reference, the reward model, the
 *   critic --training--> new weights --network--> engines
 *
 * Training is the step of the plan; a model that only scores takes the forward part of such a step,
 * pipeline's bubble included; rollouts are priced as `serve` prices a decode step and a prefill
 * (Rafailov et al., arXiv 2305.18290; Shao et al., arXiv 2402.03300; Ouyang et al., 2203.02155). */
#include "runners.h"
#include "serve_asked.h"
#include "train_asked.h"

enum { USUAL_SAMPLES = 8 };

/* ---- models that score, and one that learns ---- */

typedef struct scorer {
    double forward_s, step_s, weights, state; /* bytes of a chip: weights alone; all that trains */
    const char *plan;
} scorer;

static double forward_of(const sm_plan_detail *d) {
    const sm_price_of_plan *p = &d->price;
    double s = 0;
    for (int i = 0; i < d->lines.ops; i++)
        if (d->lines.op[i].phase == SM_PHASE_FORWARD && !d->lines.op[i].again)
            s += d->lines.op[i].time_s;
    for (int i = 0; i < d->lines.collectives; i++)
        if (strcmp(d->lines.collective[i].phase, "forward") == 0)
            s += d->lines.collective[i].exposed_s;
    double busy = p->expected_s - p->breakdown.bubble;
    return busy > 0 ? s * p->expected_s / busy : s;
}

static scorer scorer_of(const sm_plan_shown *plan) {
    const sm_memory *m = &plan->detail.price.memory;
    return (scorer){forward_of(&plan->detail), plan->detail.price.expected_s, m->params,
                    m->params + m->optimizer + m->gradients, plan->text};
}

static sm_status take_scorer(void *context, sm_train *train, const sm_plans_shown *plans,
                             sm_error *err) {
    (void)train;
    scorer *out = context;
    if (plans->n == 0)
        return sm_fail(err, SM_NEGATIVE, "%s does not fit on %s", plans->q->in.model->name,
                       plans->q->system->text);
    *out = scorer_of(&plans->plan[0]);
    return SM_OK;
}

/* Another model on the same sequences and chips, its plan searched as this one's. */
static sm_status ask_scorer(const sm_train_asked *q, const sm_model *model, double sequences,
                            scorer *out, sm_error *err) {
    sm_train_question other = q->in;
    char batch[64];
    snprintf(batch, sizeof batch, "%.0fseqs", sequences);
    other.model = model;
    other.plan = sm_source_of("--plan", "");
    other.batch = sm_source_of("--batch", sm_textf(q->report, "%s", batch));
    other.batch_tokens = 0;
    other.seq = q->job.seq;
    other.top = 1;
    other.recipe = NULL;
    other.method = SM_PREFER_NONE;
    return sm_train_ask(&other, q->report, take_scorer, out, err);
}

/* ---- rollouts ---- */

typedef struct rollout {
    double seconds, replicas, batch; /* batch: sequences that an engine decodes at once */
    int chips;                       /* of an engine */
    double weights, kv;              /* bytes of a chip */
    const char *plan;
} rollout;

static sm_status try_engines(const sm_train_asked *q, const sm_serve_job *job,
                             const sm_serve_search_options *options, double sequences,
                             double samples, rollout *best, sm_error *err) {
    sm_serve_search_options o = *options;
    double replicas = floor((double)job->system->chips / o.chips_least);
    double n = ceil(sequences / replicas), prompts = ceil(n / samples);
    sm_serve_result found = {.n = 0};
    sm_error none = {.status = SM_OK};
    if (n < 1 || replicas > sequences) return SM_OK;
    o.batch = n;
    sm_status status = sm_serve_search(job, NULL, &o, q->report->arena, &found, &none);
    if (status == SM_NEGATIVE) {
        o.batch = 0;
        status = sm_serve_search(job, NULL, &o, q->report->arena, &found, &none);
    }
    if (status == SM_NEGATIVE) return SM_OK;
    if (status) *err = none;
    for (size_t i = 0; i < found.n && !status; i++) {
        const sm_serve_point *p = &found.point[i];
        /* An engine has n sequences, of which `batch` decode at once; their prompts come first,
         * each prefilled once for all samples of it. */
        double waves = fmax(n / p->batch, 1);
        double s = prompts * p->prefill.expected_s + waves * job->output * p->tpot_alone_s[1];
        if (p->batch > n || (best->seconds > 0 && s >= best->seconds)) continue;
        *best = (rollout){s,
                          replicas,
                          p->batch,
                          o.chips_least,
                          p->memory.params,
                          p->memory.kv,
                          sm_serve_plan_words(q->report, job->system, &p->plan)};
    }
    return status;
}

/* The quickest engines, each of a power of two of the chips, beside what else a chip holds. */
static sm_status find_rollout(const sm_train_asked *q, const sm_system *system, double sequences,
                              double held, rollout *best, sm_error *err) {
    const sm_plan_space any = {.name = NULL};
    const sm_runners engines = {
        .all = q->frameworks, .job = {q->in.model, system, 0}, .use = SM_PLAN_SERVING};
    double usual = system->chip.fabric == SM_FABRIC_SWITCH ? 0.1 : 0;
    double share = held / sm_chip_memory(&system->chip)->value + usual;
    const double prompt = fmax(1, floor(q->in.prompt > 0 ? q->in.prompt : q->job.seq / 4));
    sm_serve_job job = {.size = sizeof(sm_serve_job),
                        .model = q->in.model,
                        .system = system,
                        .software = sm_software_of(NULL),
                        .alone = true,
                        .prompt = prompt,
                        .output = fmax(1, q->job.seq - prompt),
                        .reserve = share,
                        .usd_per_chip_hour = -1,
                        .dtypes = {SM_BF16, SM_BF16, SM_BF16}};
    sm_serve_search_options o;
    sm_serve_search_defaults(&o);
    *best = (rollout){.seconds = 0};
    if (share > 0.9) return SM_OK;
    sm_status status = SM_OK;
    bool kept;
    if (q->frameworks)
        status = sm_runners_any(&engines, q->report, &o.fixed, &any, &o.space, &kept, err);
    double samples = q->in.samples > 0                ? q->in.samples
                     : q->in.method == SM_PREFER_GRPO ? USUAL_SAMPLES
                                                      : 1;
    for (int chips = 1; chips <= system->chips && chips <= 64 && !status; chips *= 2) {
        o.chips_least = o.chips_most = chips;
        status = try_engines(q, &job, &o, sequences, samples, best, err);
    }
    return status;
}

/* ---- the phases ---- */

typedef struct iteration {
    const sm_train_asked *q;
    sm_report *r;
    const sm_system *engines; /* whose chips roll out */
    bool apart;
    double sequences, epochs, state; /* state: bytes of a chip that all models hold */
    scorer policy, reward, critic;
    rollout out;
    bool rests; /* each model is in the host's memory while others work */
    double moved_s, sync_s, reference_s, reward_s, value_s, train_s, critic_s, total_s;
} iteration;

/* All models stay on the chips where they fit beside the activations of training; else each goes
 * to the host's memory while others work, and comes back once an iteration. */
static sm_status place_models(iteration *x, const sm_price_of_plan *price, sm_error *err) {
    const sm_chip *chip = &x->q->system->chip;
    double rate = sm_chip_host_bytes_per_s_oneway(chip), host = sm_chip_host_bytes(chip);
    double working = price->memory.total - x->policy.state;
    double room = sm_chip_memory(chip)->value * (1 - sm_train_margin(x->q));
    x->rests = x->state + working > room;
    if (!x->rests || (rate > 0 && (host <= 0 || host >= x->state))) return SM_OK;
    return sm_fail(err, SM_NEGATIVE,
                   "the models that take part need %s of each chip, which has %s, and its host "
                   "cannot hold those that wait; a plan with fsdp shards them",
                   sm_show_bytes(x->q->report, x->state + working),
                   sm_show_bytes(x->q->report, sm_chip_memory(chip)->value));
}

/* On the chips that train, engines find room beside its models, or while the host has them,
 * whichever is quicker. */
static sm_status roll_out(iteration *x, sm_error *err) {
    const sm_chip *chip = &x->q->system->chip;
    rollout beside = {.seconds = 0}, alone = {.seconds = 0};
    double rate = sm_chip_host_bytes_per_s_oneway(chip), host = sm_chip_host_bytes(chip);
    bool may_rest = !x->apart && rate > 0 && (host <= 0 || host >= x->state);
    double held = x->apart || x->rests ? 0 : x->state;
    sm_status status = find_rollout(x->q, x->engines, x->sequences, held, &beside, err);
    if (!status && may_rest && held > 0)
        status = find_rollout(x->q, x->engines, x->sequences, 0, &alone, err);
    if (status) return status;
    double rested_s = alone.seconds + 2 * x->state / rate;
    bool better = alone.seconds > 0 && (beside.seconds <= 0 || rested_s < beside.seconds);
    x->rests |= better;
    x->out = better ? alone : beside;
    if (x->out.seconds <= 0)
        return sm_fail(
            err, SM_NEGATIVE,
            "no engine for %s fits on %s beside what training holds, with %.0f sequences",
            x->q->in.model->name, x->engines->text, x->sequences);
    /* Every engine takes the weights anew. */
    double weights = 2 * sm_model_params(x->q->in.model).total;
    x->sync_s = sm_serve_transfer_s(x->engines, weights * x->out.replicas,
                                    (int)(x->out.replicas * x->out.chips), x->q->system->chips);
    return SM_OK;
}

static sm_status work_out(iteration *x, const sm_price_of_plan *price, sm_error *err) {
    const sm_train_question *in = &x->q->in;
    sm_status status = SM_OK;
    bool ppo = in->method == SM_PREFER_PPO, learns = in->method != SM_PREFER_DPO;
    x->critic = x->policy;
    if (in->reward && learns) status = ask_scorer(x->q, in->reward, x->sequences, &x->reward, err);
    if (!status && in->critic && ppo)
        status = ask_scorer(x->q, in->critic, x->sequences, &x->critic, err);
    if (status) return status;
    x->reference_s = in->no_reference ? 0 : x->policy.forward_s;
    x->reward_s = in->reward && learns ? x->reward.forward_s : 0;
    x->value_s = ppo ? x->critic.forward_s : 0;
    x->train_s = x->epochs * x->policy.step_s;
    x->critic_s = ppo ? x->epochs * x->critic.step_s : 0;
    x->state = x->policy.state + (in->no_reference ? 0 : x->policy.weights) +
               (in->reward && learns ? x->reward.weights : 0) + (ppo ? x->critic.state : 0);
    status = place_models(x, price, err);
    if (!status && learns) status = roll_out(x, err);
    if (x->rests) x->moved_s = 2 * x->state / sm_chip_host_bytes_per_s_oneway(&x->q->system->chip);
    x->total_s = x->out.seconds + x->moved_s + x->sync_s + x->reference_s + x->reward_s +
                 x->value_s + x->train_s + x->critic_s;
    return status;
}

/* ---- the page ---- */

static void row(iteration *x, const sm_listing *list, const char *phase, double s, const char *by) {
    if (s > 0) sm_list_row(list, true, phase, s, s / x->total_s, by);
}

static void phases_page(iteration *x, sm_data *object) {
    sm_report *r = x->r;
    const char *times = x->epochs > 1 ? sm_textf(r, "%.0f times, ", x->epochs) : "";
    const sm_listing list =
        sm_page_list(r, object, "phases", NULL, "phase<phase|time_s>{s}time|>{%}part|<by");
    if (x->out.seconds > 0)
        row(x, &list, "rollouts", x->out.seconds,
            sm_textf(r, "%.0f engines of %d, batch %.0f: %s", x->out.replicas, x->out.chips,
                     x->out.batch, x->out.plan));
    row(x, &list, "moves", x->moved_s, "of models to the host and back");
    row(x, &list, "reference", x->reference_s, "forward, as the plan");
    row(x, &list, "reward", x->reward_s,
        x->reward.plan ? sm_textf(r, "forward of %s", x->q->in.reward->name) : "");
    row(x, &list, "values", x->value_s, "forward of the critic");
    row(x, &list, "training", x->train_s, sm_textf(r, "%sthe plan", times));
    row(x, &list, "critic", x->critic_s, sm_textf(r, "%s%s", times, x->critic.plan));
    row(x, &list, "weights", x->sync_s, "from training to the engines");
}

static void memory_lines(iteration *x, sm_data *object) {
    sm_report *r = x->r;
    double others = x->state - x->policy.state,
           capacity = sm_chip_memory(&x->q->system->chip)->value;
    sm_put(r, object, "state_bytes|rests_in_host", x->state, x->rests);
    if (x->rests)
        sm_report_text(r,
                       "Models take turns on the chips: %s of each chip's share lies in its host's "
                       "memory while others work.",
                       sm_show_bytes(r, x->state));
    else if (others > 0)
        sm_report_text(r, "Beside the plan's memory a chip holds %s of the models that score%s.",
                       sm_show_bytes(r, others),
                       x->q->in.method == SM_PREFER_PPO ? " and of the critic" : "");
    if (x->out.seconds <= 0) return;
    sm_put(r, object, "engine_weights_bytes|engine_kv_bytes", x->out.weights, x->out.kv);
    sm_report_text(r, "Engines take %s of weights and %s of cache on a chip of %s%s.",
                   sm_show_bytes(r, x->out.weights), sm_show_bytes(r, x->out.kv),
                   sm_show_bytes(r, capacity),
                   x->apart   ? ", on chips of their own"
                   : x->rests ? ""
                              : sm_textf(r, ", beside %s of models", sm_show_bytes(r, x->state)));
}

static void page(iteration *x) {
    static const char *const names[] = {"", "DPO", "GRPO", "PPO"};
    sm_report *r = x->r;
    const sm_train_question *in = &x->q->in;
    sm_data *object = sm_put_object(r, r->data, "iteration");
    sm_report_heading(r, "%s: %s an iteration", names[in->method], sm_show_seconds(r, x->total_s));
    sm_put(r, object, "method", names[in->method]);
    phases_page(x, object);
    double chips = x->q->system->chips + (x->apart ? x->engines->chips : 0);
    double tokens = x->sequences * x->q->job.seq;
    sm_put(r, object, "time_s|tokens_per_s_per_chip", x->total_s, tokens / x->total_s / chips);
    sm_report_text(r, "%s sequences of %s tokens: %s tokens/s, %s of each of %s chips.",
                   sm_show_exact(r, x->sequences), sm_show_exact(r, x->q->job.seq),
                   sm_show_number(r, tokens / x->total_s),
                   sm_show_number(r, tokens / x->total_s / chips), sm_show_exact(r, chips));
    memory_lines(x, object);
    if (x->apart) {
        double made = x->out.seconds + x->sync_s, used = x->total_s - made;
        double both = fmax(made, used);
        sm_put(r, object, "one_off_time_s", both);
        sm_report_text(r,
                       "One iteration off-policy both pools work at once: %s, %s tokens/s; the %s "
                       "wait %s of the time.",
                       sm_show_seconds(r, both), sm_show_number(r, tokens / both),
                       made < used ? "engines" : "chips that train",
                       sm_show_percent(r, fabs(made - used) / both));
    }
    if (in->method == SM_PREFER_DPO)
        sm_report_text(r,
                       "A pair is two of the sequences. The reference can score them once, before "
                       "training (--no-reference).");
    else sm_report_text(r, "All rollouts have the same length; nothing waits for the longest.");
}

sm_status sm_train_preference(const sm_train_asked *q, const sm_plans_shown *plans, sm_error *err) {
    sm_error none = {.status = SM_OK};
    iteration x = {.q = q,
                   .r = q->report,
                   .engines = q->in.rollout ? q->in.rollout : q->system,
                   .apart = q->in.rollout != NULL,
                   .sequences = plans->sequences,
                   .epochs = q->in.epochs > 0 ? q->in.epochs : 1,
                   .policy = scorer_of(&plans->plan[0])};
    sm_status status = work_out(&x, &plans->plan[0].detail.price, &none);
    if (status == SM_NEGATIVE) {
        sm_report_text(q->report, "No iteration: %s.", none.sentence);
        return SM_NEGATIVE;
    }
    if (status) *err = none;
    else page(&x);
    return status;
}
