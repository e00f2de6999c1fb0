/* The plans, the models, and the job of a rank under one. */
#include "model_of.h"
#include "train_plans.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const double train_tolerance = 2e-5;

/* Sets of ops to run again, ops=0 and so on: of a dense layer and of one with experts. */
static const char *const op_sets[][TRAIN_KINDS] = {
    {"h", "h"},
    {"q+k.2+m+a", "q+k.2+m+a"},
    {"o+h.2", "o+h.2+z"},
    {"a+x.2+h.2", "a+x.2+h.2"},
    {"g+m", "z+g+m"},
    {"v+y+x.3", "v+o.2+y"},
    {"k+k.2", "k+k.2+p"},
    {"h.2+u+x.3", "h.2+p+o.2+y+x.3"},
    {"q.2+o+h.2", "q.2+o+h.2"},
};

/* By ranks: one, two, four and eight; then pipelines. */
const train_plan train_plans[] = {
    /* accumulation and recomputation on one rank */
    {.words = "micro=4"},
    {.words = "micro=1"},
    {.words = "recompute=1"},
    {.words = "recompute=2"},
    {.words = "recompute=3"},
    {.words = "micro=2,recompute=3"},
    {.words = "ops=0"},
    {.words = "micro=2,ops=1"},
    /* two ranks */
    {.words = "data=2"},
    {.words = "data=2,zero=1"},
    {.words = "data=2,zero=2,micro=1"},
    {.words = "data=2,micro=2"},
    {.words = "fsdp=2,zero=3"},
    {.words = "fsdp=2,zero=3,micro=1"},
    {.words = "fsdp=2,zero=3,recompute=3"},
    {.words = "tensor=2"},
    {.words = "tensor=2,seq"},
    {.words = "tensor=2,recompute=1"},
    {.words = "tensor=2,seq,recompute=3"},
    {.words = "tensor=2,seq,recompute=2,micro=2"},
    {.words = "tensor_q=2"},
    {.words = "tensor_q=2,seq"},
    {.words = "context=2"},
    {.words = "context=2,heads"},
    {.words = "context=2,recompute=3"},
    {.words = "context=2,zero=3,spread"},
    {.words = "context=2,zero=1"},
    {.words = "expert=2"},
    {.words = "expert=2,zero=1,micro=1"},
    {.words = "expert=2,recompute=3"},
    {.words = "expert=2,zero=3,spread"},
    {.words = "data=2,zero=1,ops=2"},
    {.words = "tensor=2,seq,ops=3"},
    {.words = "expert=2,ops=4"},
    {.words = "data=2,zero=1,micro=1,host=3"},
    {.words = "expert=2,tensor=2,recompute=1,host=3"},
    {.words = "fsdp=2,zero=3,ops=5"},
    {.words = "context=2,ops=6"},
    /* four */
    {.words = "data=4"},
    {.words = "data=4,zero=1"},
    {.words = "data=4,zero=1,copies=2"},
    {.words = "data=4,zero=2,copies=2,micro=1"},
    {.words = "data=2,fsdp=2,zero=3,copies=2"},
    {.words = "data=2,context=2,zero=1,copies=2"},
    {.words = "data=2,fsdp=2,zero=3"},
    {.words = "data=2,fsdp=2,zero=3,micro=1"},
    {.words = "data=2,tensor=2"},
    {.words = "data=2,tensor=2,seq,zero=1"},
    {.words = "fsdp=2,tensor=2,zero=3,seq"},
    {.words = "fsdp=4,zero=3"},
    {.words = "tensor=2,tensor_q=2"},
    {.words = "tensor=2,tensor_q=2,seq"},
    {.words = "tensor=2,tensor_q=2,seq,recompute=3"},
    {.words = "context=4"},
    {.words = "context=2,tensor=2"},
    {.words = "context=2,tensor=2,seq"},
    {.words = "context=2,tensor_q=2,seq"},
    {.words = "context=2,fsdp=2,zero=3"},
    {.words = "context=2,fsdp=2,zero=3,spread"},
    {.words = "data=2,context=2,zero=2,micro=2"},
    {.words = "expert=4"},
    {.words = "expert=2,tensor=2"},
    {.words = "expert=2,tensor=2,expert_tensor"},
    {.words = "expert=2,tensor=2,seq,expert_tensor"},
    {.words = "expert=2,tensor=2,seq"},
    {.words = "expert=2,fsdp=2,zero=3,spread"},
    {.words = "expert=2,data=2,zero=1"},
    {.words = "expert=2,context=2"},
    {.words = "tensor=2,tensor_q=2,expert_tensor"},
    /* eight */
    {.words = "data=8"},
    {.words = "data=8,zero=2"},
    {.words = "fsdp=8,zero=3"},
    {.words = "data=2,fsdp=2,tensor=2,zero=3,seq"},
    {.words = "data=2,tensor=2,tensor_q=2,seq,zero=1"},
    {.words = "fsdp=2,context=2,tensor=2,seq,zero=3"},
    {.words = "data=2,context=2,tensor=2,seq,recompute=3"},
    {.words = "expert=2,fsdp=2,tensor=2,seq,zero=3"},
    {.words = "expert=2,data=2,tensor=2,expert_tensor,zero=2,micro=1"},
    {.words = "expert=2,context=2,tensor=2,seq,recompute=2"},
    {.words = "expert=4,fsdp=2,zero=3"},
    {.words = "expert=2,tensor=2,context=2,seq,ops=7"},
    {.words = "fsdp=2,tensor=2,tensor_q=2,zero=3,seq,recompute=1"},
    {.words = "context=2,heads,data=2,fsdp=2,zero=3"},
    /* what was gathered is kept: all of it 3, weights 2, activations 1 */
    {.words = "fsdp=2,zero=3,regather=2,micro=1"},
    {.words = "tensor=2,seq,regather=1,recompute=1"},
    {.words = "context=2,heads,regather=3"},
    {.words = "fsdp=2,tensor=2,tensor_q=2,zero=3,seq,regather=3"},
    {.words = "fsdp=2,tensor=2,tensor_q=2,zero=3,seq,table,micro=1"},
    {.words = "data=2,tensor=2,table,zero=2"},
    {.words = "expert=2,fsdp=2,tensor=2,zero=3,seq,expert_tensor,regather=3,ops=4"},
    /* arrays in bf16: 1; gradients too: 2; and no other weights: 3 */
    {.words = "half=1"},
    {.words = "micro=2,recompute=2,half=3"},
    {.words = "data=2,zero=2,micro=1,half=2"},
    {.words = "context=2,half=1"},
    {.words = "fsdp=2,tensor=2,zero=3,seq,half=2"},
    {.words = "expert=2,tensor=2,seq,half=1"},
    {.words = "data=4,zero=1,copies=2,host=3,half=3"},
    {.words = "context=4,half=2"},
    {.words = "tensor=2,tensor_q=2,expert_tensor,half=2"},
    /* pipelines */
    {"micro=1", SM_SCHEDULE_GPIPE, 2, 1},
    {"micro=1", SM_SCHEDULE_1F1B, 2, 1},
    {"micro=2", SM_SCHEDULE_1F1B, 4, 1},
    {"micro=1,recompute=3", SM_SCHEDULE_1F1B, 4, 1},
    {"micro=1", SM_SCHEDULE_INTERLEAVED, 2, 2},
    {"micro=1", SM_SCHEDULE_ZB_H1, 2, 1},
    {"micro=1,recompute=2", SM_SCHEDULE_ZB_H1, 4, 1},
    {"micro=1", SM_SCHEDULE_ZB_V, 2, 2},
    {"micro=1,data=2,zero=1", SM_SCHEDULE_1F1B, 2, 1},
    {"micro=1,data=2,zero=2", SM_SCHEDULE_1F1B, 4, 1},
    {"micro=1,fsdp=2,zero=3", SM_SCHEDULE_INTERLEAVED, 2, 2},
    {"micro=1,tensor=2,seq", SM_SCHEDULE_ZB_H1, 2, 1},
    {"micro=1,context=2,tensor=2,seq", SM_SCHEDULE_1F1B, 2, 1},
    {"micro=1,expert=2,tensor=2,seq", SM_SCHEDULE_ZB_V, 2, 2},
    {"micro=1,expert=2,data=2", SM_SCHEDULE_ZB_H1, 2, 1},
    {"micro=1,ops=8", SM_SCHEDULE_ZB_H1, 2, 1},
    {"micro=1,data=2,zero=2,host=3", SM_SCHEDULE_1F1B, 2, 1},
    {"micro=1,context=2,host=2", SM_SCHEDULE_INTERLEAVED, 2, 2},
    {"micro=1,fsdp=2,tensor=2,zero=3,seq,regather=3", SM_SCHEDULE_ZB_H1, 2, 1},
    /* the model twice */
    {"micro=1", SM_SCHEDULE_DUALPIPE, 2, 2},
    {"micro=1", SM_SCHEDULE_DUALPIPE, 4, 2},
    {"micro=2,recompute=3", SM_SCHEDULE_DUALPIPE, 2, 2},
    {"micro=1,data=2", SM_SCHEDULE_DUALPIPE, 2, 2},
    {"micro=1,data=2,zero=1", SM_SCHEDULE_DUALPIPE, 2, 2},
    {"micro=1,data=2,zero=2", SM_SCHEDULE_DUALPIPE, 2, 2},
    {"micro=1,fsdp=2,zero=3", SM_SCHEDULE_DUALPIPE, 2, 2},
    {"micro=1,tensor=2,seq,zero=1", SM_SCHEDULE_DUALPIPE, 4, 2},
    {"micro=1,context=2,tensor=2,seq", SM_SCHEDULE_DUALPIPE, 2, 2},
    {"micro=1,expert=2,tensor=2,zero=1", SM_SCHEDULE_DUALPIPE, 2, 2},
    {"micro=1,data=2,zero=1,half=2", SM_SCHEDULE_DUALPIPE, 2, 2},
    {"micro=1,context=2,half=1", SM_SCHEDULE_ZB_H1, 2, 1},
};
const size_t train_plan_count = sizeof train_plans / sizeof *train_plans;

/* ---- models ---- */

sm_model train_model_with(train_kind kind, int layers, const char *members) {
    static const char *const mlp[] = {[TRAIN_DENSE] = "\"intermediate_size\": 32",
                                      [TRAIN_EXPERTS] =
                                          "\"num_experts\": 4, \"num_experts_per_tok\": 2, "
                                          "\"moe_intermediate_size\": 16"};
    char *config = sm_arena_printf(
        models_arena(),
        "{\"model_type\": \"transformer\", \"hidden_size\": 16, \"num_hidden_layers\": %d, "
        "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"vocab_size\": 256, %s}",
        layers, mlp[kind]);
    return model_with(kind == TRAIN_EXPERTS ? "experts" : "dense", config, members);
}

sm_model train_model(train_kind kind, int layers) { return train_model_with(kind, layers, ""); }

int train_plan_layers(const train_plan *plan) { return plan->stages ? 4 : 2; }

const unsigned char *train_text(void) {
    static unsigned char text[TRAIN_TEXT_BYTES];
    static const char *const words[] = {"a plan ",  "is a ",    "sharding ", "of the ",
                                        "program ", "and its ", "price. ",   "The "};
    sm_rng rng = {7};
    if (text[0]) return text;
    for (size_t n = 0; n < sizeof text;) {
        const char *word = words[sm_rng_below(&rng, sizeof words / sizeof *words)];
        for (; *word && n < sizeof text; word++) text[n++] = (unsigned char)*word;
    }
    return text;
}

sm_train_setup train_setup_of(const sm_model *model) {
    sm_train_setup s;
    sm_train_setup_defaults(&s);
    s.model = model;
    s.tokens = TRAIN_TOKENS;
    s.sequences = TRAIN_SEQUENCES;
    s.microbatch = TRAIN_SEQUENCES;
    s.data = train_text();
    s.data_bytes = TRAIN_TEXT_BYTES;
    s.seed = 11;
    s.warmup = 2;
    return s;
}

/* ---- plans ---- */

static bool word(const char *words, const char *key, int *value) {
    size_t n = strlen(key);
    for (const char *at = words; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, key, n) == 0 && (at[n] == '=' || at[n] == ',' || !at[n])) {
            *value = at[n] == '=' ? at[n + 1] - '0' : 1;
            return true;
        }
    return false;
}

void train_words_read(const char *words, sm_train_setup *s) {
    static const char *const axes[] = {"data",     "fsdp",   "expert",  "context",
                                       "tensor_w", "tensor", "tensor_q"};
    int value;
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if (word(words, axes[a], &value)) s->degree[a] = value;
    if (word(words, "seq", &value)) s->rules.seq = true;
    if (word(words, "expert_tensor", &value)) s->rules.expert_tensor = true;
    if (word(words, "heads", &value)) s->rules.context_by = SM_CONTEXT_HEADS;
    if (word(words, "table", &value)) s->rules.table_gathered = true;
    if (word(words, "spread", &value)) s->rules.weights_spread = true;
    if (word(words, "zero", &value)) s->zero = value;
    if (word(words, "copies", &value)) s->state_copies = value;
    if (word(words, "recompute", &value)) s->recompute = (sm_recompute)value;
    if (word(words, "regather", &value)) s->regather = (sm_regather)value;
    if (word(words, "host", &value)) {
        s->offload_optimizer = value & 1;
        s->offload_activations = value & 2;
    }
    if (word(words, "half", &value)) {
        s->stored = SM_ELEMENT_BF16;
        s->gradients = value > 1 ? SM_ELEMENT_BF16 : SM_ELEMENT_F32;
        s->rounded = value > 2;
    }
    if (word(words, "ops", &value)) s->recompute_ops = op_sets[value][s->model->kind[0].E > 0];
    int ways = s->degree[SM_AXIS_DATA] * s->degree[SM_AXIS_FSDP] * s->degree[SM_AXIS_EXPERT];
    s->microbatch = TRAIN_SEQUENCES / ways;
    if (word(words, "micro", &value)) s->microbatch = value;
}

static sm_train_act act_of(sm_slot_kind kind) {
    return kind == SM_SLOT_FORWARD          ? SM_TRAIN_FORWARD
           : kind == SM_SLOT_BACKWARD       ? SM_TRAIN_BACKWARD
           : kind == SM_SLOT_BACKWARD_INPUT ? SM_TRAIN_BACKWARD_INPUT
                                            : SM_TRAIN_BACKWARD_WEIGHT;
}

/* The slots of the schedule, in order of time within each stage. False: it cannot be, or is too
 * long for a line. */
static bool list_actions(const sm_pipeline *p, train_line *l) {
    enum { MOST_SLOTS = 1024 };
    static _Alignas(16) char scratch[1 << 16];
    static sm_slot slot[MOST_SLOTS];
    const char *why = "";
    if (!sm_schedule_possible(p->schedule, p->stages, p->chunks_per_stage, p->microbatches, &why))
        return false;
    size_t slots = sm_pipeline_slots(p);
    if (sm_pipeline_scratch(p, true) > sizeof scratch || slots > MOST_SLOTS) return false;
    memset(slot, 0, sizeof slot);
    sm_pipeline_simulate(p, scratch, slot);
    for (size_t i = 0; i < slots; i++) {
        int *n = &l->actions[slot[i].stage];
        if (*n == TRAIN_MOST_ACTIONS) return false;
        bool second =
            p->schedule == SM_SCHEDULE_DUALPIPE && slot[i].microbatch >= p->microbatches / 2;
        l->action[slot[i].stage][(*n)++] = (sm_train_action){
            act_of(slot[i].kind), slot[i].chunk + (second ? p->stages : 0), slot[i].microbatch};
    }
    return true;
}

bool train_line_lay(sm_schedule schedule, int stages, int chunks_per_stage, sm_train_setup *s,
                    train_line *l) {
    sm_chunk_time time[TRAIN_MOST_CHUNKS];
    int chunks = stages * chunks_per_stage, layers = s->model->L;
    if (stages > TRAIN_MOST_STAGES || chunks > TRAIN_MOST_CHUNKS) return false;
    for (int c = 0; c < chunks; c++) time[c] = (sm_chunk_time){1, 1, 1};
    sm_pipeline p = {schedule, stages, chunks_per_stage, sm_train_setup_microbatches(s), time, 0};
    *l = (train_line){.actions = {0}};
    if (!list_actions(&p, l)) return false;
    bool dual = schedule == SM_SCHEDULE_DUALPIPE;
    int once = dual ? stages : chunks; /* chunks of one copy of the model */
    for (int c = 0; c < chunks; c++) {
        int at = c % once, stage = sm_schedule_stage(schedule, stages, chunks_per_stage, at);
        l->chunk[c] = (sm_train_chunk){c < once ? stage : stages - 1 - stage, at * layers / once,
                                       (at + 1) * layers / once};
    }
    for (int i = 0; i < stages; i++) l->of[i] = l->action[i];
    s->stages = stages;
    s->chunks = chunks;
    s->copies = dual ? 2 : 1;
    s->chunk = l->chunk;
    s->actions = l->actions;
    s->action = l->of;
    return true;
}

bool train_job_of(const train_plan *plan, train_kind kind, train_job *job) {
    job->model = train_model(kind, train_plan_layers(plan));
    job->setup = train_setup_of(&job->model);
    train_words_read(plan->words, &job->setup);
    if (!plan->stages) return true;
    return train_line_lay(plan->schedule, plan->stages, plan->chunks_per_stage, &job->setup,
                          &job->line);
}

/* ---- losses ---- */

/* What each rank knows for itself: told by each where the others have nothing, and added. */
typedef struct told {
    double difference, memory[TRAIN_MOST_RANKS];
    double ranks[TRAIN_MOST_STAGES], bytes[TRAIN_MOST_STAGES][SM_COLLECTIVE_COUNT];
} told;

static sm_status tell_all(sm_communicator *world, const sm_trainer *t, const sm_train_result *last,
                          double difference, train_curve *c, sm_error *err) {
    told all = {.difference = difference};
    sm_train_memory memory;
    int stage = sm_trainer_stage(t);
    sm_trainer_memory(t, &memory);
    if (world->rank < TRAIN_MOST_RANKS) all.memory[world->rank] = memory.total;
    all.ranks[stage] = 1;
    memcpy(all.bytes[stage], last->bytes_counted, sizeof all.bytes[stage]);
    sm_status status =
        sm_run_all_reduce(world, &all, sizeof all / sizeof all.difference, SM_ELEMENT_F64, err);
    if (status || world->rank) return status;
    c->difference = all.difference;
    for (int i = 0; i < TRAIN_MOST_RANKS; i++) c->memory = fmax(c->memory, all.memory[i]);
    for (int s = 0; s < TRAIN_MOST_STAGES; s++)
        for (int k = 0; k < SM_COLLECTIVE_COUNT; k++)
            c->of_stage[s][k] = all.bytes[s][k] / fmax(1, all.ranks[s]);
    return SM_OK;
}

sm_status train_curve_run(sm_communicator *world, void *context, sm_error *err) {
    train_curve *c = context;
    sm_trainer *t = NULL;
    sm_train_result r = {.loss = 0};
    sm_status status = sm_trainer_new(world, c->setup, &t, err);
    double difference = 0;
    if (!status) sm_trainer_forget_memory(t);
    for (int i = 0; !status && i < c->steps; i++) {
        status = sm_trainer_step(t, i, &r, err);
        for (int k = 0; k < SM_COLLECTIVE_COUNT; k++)
            difference += fabs(r.bytes_predicted[k] - r.bytes_counted[k]);
        if (world->rank) continue;
        c->loss[i] = r.loss;
        c->norm[i] = r.gradient_norm;
        memcpy(c->predicted, r.bytes_predicted, sizeof c->predicted);
        memcpy(c->counted, r.bytes_counted, sizeof c->counted);
    }
    if (!status) status = tell_all(world, t, &r, difference, c, err);
    sm_trainer_free(t);
    return status;
}

void train_curve_on_threads(const sm_train_setup *setup, int steps, train_curve *c) {
    *c = (train_curve){.setup = setup, .steps = steps};
    c->status = sm_run_threads(sm_train_setup_ranks(setup), train_curve_run, c, &c->err);
    if (c->status) printf("# %s\n", c->err.sentence);
}

bool train_about_equal(double a, double b, double tolerance) {
    return fabs(a - b) <= tolerance * fabs(b);
}

static void tell(const train_plan *plan, const train_curve *one, const train_curve *c) {
    printf("# %s of %s", plan->words, c->setup->model->name);
    if (plan->stages) printf(", %d x %s", plan->stages, sm_schedule_names[plan->schedule]);
    printf(":");
    for (int i = 0; i < one->steps; i++)
        printf(" %.6f/%.6f %.4f/%.4f", c->loss[i], one->loss[i], c->norm[i], one->norm[i]);
    for (int k = 0; k < SM_COLLECTIVE_COUNT; k++)
        if (c->predicted[k] != c->counted[k])
            printf(" %s %g/%g", sm_collective_name((sm_collective)k), c->predicted[k],
                   c->counted[k]);
    printf(" (bytes differ by %g)\n", c->difference);
}

double train_norms_apart(const train_curve *a, const train_curve *b) {
    double most = 0;
    for (int i = 0; i < a->steps; i++) most = fmax(most, fabs(a->norm[i] - b->norm[i]));
    return most;
}

int train_curve_compare(const train_plan *plan, const train_curve *one, const train_curve *c) {
    int wrong = c->difference != 0 || c->status != SM_OK || one->status != SM_OK;
    double loss = train_tolerance, norm = 100 * train_tolerance;
    /* eight bits of each number are there: the curve is that of single precision, about */
    if (c->setup->stored) loss = 5e-3, norm = 5e-2;
    else if (c->setup->gradients || c->setup->optimizer == SM_TRAIN_ADAM_8BIT)
        loss = 1e-3, norm = 1e-2;
    for (int i = 0; i < one->steps; i++) {
        double apart = fabs(c->norm[i] - one->norm[i]);
        bool norms = i == 0 || !(one->rounding > 0); /* an update later rounding grows */
        wrong += !train_about_equal(c->loss[i], one->loss[i], loss) ||
                 (norms && apart > norm * one->norm[i] + 2 * one->rounding);
    }
    if (wrong) tell(plan, one, c);
    return wrong != 0;
}
