/* Generating on ranks: the program of serving, with its cache, gives the scores of the program of
 * training; texts are those of one rank and one sequence, whatever the plan, the other sequences
 * and the draft; and speculative sampling leaves the distribution as it is. */
#include <math.h>
#include "unit.h"
#include "sanitized.h"
#include <stdio.h>
#include <string.h>

#include "scalemodel/run_generate.h"
#include "kept_weights.h"

enum { WORDS = 256, ROOM = 32, TEXTS = 5, NEW = 9, RANKS = 8 };

/* ---- scores ---- */

enum { TOKENS = 12 };
/* Sequences begin at byte 0 or 1 of it. */
static const unsigned char short_text[TOKENS + 2] = "the cache tel";

typedef struct asked {
    const kept *kept;
    const sm_train_setup *setup;
    int first; /* byte of the text the sequence begins with */
    float scores[TOKENS][WORDS];
} asked;

static sm_status score(sm_communicator *world, void *context, sm_error *err) {
    asked *q = context;
    sm_generator *g = NULL;
    const size_t one = 1;
    sm_status status = sm_generator_new(world, q->setup, NULL, &g, err);
    if (!status) status = sm_generator_load(g, find, (void *)(uintptr_t)q->kept, err);
    for (size_t at = 0; !status && at < TOKENS; at++) {
        const int32_t token = short_text[(size_t)q->first + at];
        sm_generator_pass pass = {1, &token, &one, false};
        status = sm_generator_feed(g, &pass, q->scores[at], NULL, err);
    }
    sm_generator_free(g);
    return status;
}

static double loss_of(asked *q, const kept *k, const sm_train_setup *s, int first) {
    sm_error err = {.status = SM_OK};
    *q = (asked){.kept = k, .setup = s, .first = first};
    expect_ok(sm_run_threads(1, score, q, &err), &err);
    double loss = 0;
    for (int i = 0; i < TOKENS; i++) {
        double sum = 0;
        for (int v = 0; v < WORDS; v++) sum += exp((double)q->scores[i][v]);
        loss += log(sum) - (double)q->scores[i][short_text[first + i + 1]];
    }
    return loss / TOKENS;
}

static void scores_are_those_of_training(void **state) {
    static kept k;
    static asked q;
    for (int kind = 0; kind < TRAIN_KINDS; kind++) {
        sm_model model = train_model((train_kind)kind, 2);
        sm_train_setup s = train_setup_of(&model);
        s.tokens = TOKENS;
        s.sequences = s.microbatch = 1;
        s.data = short_text;
        s.data_bytes = sizeof short_text;
        train_on_one(&k, &s, 3);
        double a = loss_of(&q, &k, &s, 0), b = loss_of(&q, &k, &s, 1);
        double error = fmin(fabs(a - k.loss), fabs(b - k.loss));
        if (error > 1e-5) fail_msg("%s: %g %g, %g", model.name, a, b, k.loss);
        drop(&k);
    }
}

/* ---- texts ---- */

static const char *const prompts[TEXTS] = {"a plan is", "The p", "o", "program and its ", "zz "};

typedef struct written {
    const kept *kept, *draft_kept;
    const sm_train_setup *setup, *draft_setup;
    int texts, first; /* prompts [first, first + texts) */
    int depth;
    double temperature;
    int32_t text[RANKS][TEXTS][ROOM];
    sm_generate_result result[RANKS];
} written;

static sm_status new_generator(sm_communicator *world, const kept *k, const sm_train_setup *s,
                               sm_generator **g, sm_error *err) {
    sm_status status = sm_generator_new(world, s, NULL, g, err);
    return status ? status : sm_generator_load(*g, find, (void *)(uintptr_t)k, err);
}

static sm_status write_texts(sm_communicator *world, void *context, sm_error *err) {
    written *w = context;
    sm_generator *target = NULL, *draft = NULL;
    int32_t *text[TEXTS];
    size_t bytes[TEXTS];
    for (int i = 0; i < w->texts; i++) {
        text[i] = w->text[world->rank][i];
        bytes[i] = strlen(prompts[w->first + i]);
        for (size_t c = 0; c < bytes[i]; c++) text[i][c] = (unsigned char)prompts[w->first + i][c];
    }
    sm_status status = new_generator(world, w->kept, w->setup, &target, err);
    if (!status && w->depth)
        status = new_generator(world, w->draft_kept, w->draft_setup, &draft, err);
    sm_generate_job job = {target, draft, w->depth, (size_t)w->texts,
                           WORDS,  bytes, NEW,      w->temperature,
                           3,      NULL,  NULL,     NULL};
    if (!status) status = sm_generate(&job, text, &w->result[world->rank], err);
    sm_generator_free(draft);
    sm_generator_free(target);
    return status;
}

static sm_status run_written(written *w, sm_error *err) {
    err->status = SM_OK;
    return sm_run_threads(sm_train_setup_ranks(w->setup), write_texts, w, err);
}

/* Every text on every rank is that of `one`, which holds all of them; and the bytes are right. */
static void expect_texts(const written *w, const written *one, const char *plan) {
    for (int r = 0; r < sm_train_setup_ranks(w->setup); r++) {
        for (int i = 0; i < w->texts; i++)
            if (memcmp(w->text[r][i], one->text[0][w->first + i], sizeof w->text[r][i]) != 0)
                fail_msg("%s, rank %d: text %d is another than on one rank", plan, r, i);
        if (w->result[r].bytes_apart > 0)
            fail_msg("%s, rank %d: %g bytes apart", plan, r, w->result[r].bytes_apart);
    }
}

static sm_train_setup room_for(const sm_train_setup *trained, int sequences) {
    sm_train_setup s = *trained;
    s.tokens = ROOM;
    s.stored = SM_ELEMENT_F32;
    s.sequences = sequences;
    return s;
}

/* One prompt at a time on one rank. */
static void write_alone(written *all, const kept *k, const sm_train_setup *trained,
                        double temperature) {
    static written w;
    sm_error err;
    sm_train_setup s = room_for(trained, 1);
    memset(all, 0, sizeof *all);
    for (int i = 0; i < TEXTS; i++) {
        w = (written){.kept = k, .setup = &s, .texts = 1, .first = i, .temperature = temperature};
        expect_ok(run_written(&w, &err), &err);
        memcpy(all->text[0][i], w.text[0][0], sizeof w.text[0][0]);
        assert_true(w.result[0].decode.passes == NEW - 1 && w.result[0].prefill.passes == 1);
    }
}

/* Rules of training alone make no plan of their own. */
static bool generates(const train_plan *plan, train_kind kind) {
    static const char *const training[] = {"seq", "heads", "recompute", "zero=1", "zero=2"};
    for (size_t i = 0; i < sizeof training / sizeof *training; i++)
        if (!plan->stages && strstr(plan->words, training[i])) return false;
    if (!plan->stages && strstr(plan->words, "micro")) return false;
    return plan->chunks_per_stage < 2 &&
           (kind == TRAIN_EXPERTS || !strstr(plan->words, "expert_tensor"));
}

static size_t numbers_of(const sm_train_array *a) {
    size_t n = 1;
    for (int d = 0; d < a->rank; d++) n *= a->size[d];
    return n;
}

/* The weights of a model after 25 steps, which several tests begin with: trained once. */
static void train_whole(kept *k, sm_train_setup *s, train_kind kind, int layers) {
    static kept trained[TRAIN_KINDS][2];
    kept *from = &trained[kind][layers / 2 - 1];
    s->rate = 2e-2;
    if (!from->n) train_on_one(from, s, 25);
    *k = *from;
    k->setup = s;
    for (int i = 0; i < k->n; i++) {
        size_t bytes = numbers_of(&k->array[i]) * sizeof(float);
        k->array[i].data = sm_malloc(bytes);
        assert_non_null(k->array[i].data);
        memcpy(k->array[i].data, from->array[i].data, bytes);
    }
}

static void texts_do_not_depend_on_the_plan(void **state) {
    static kept k;
    static written one, w;
    static train_job job;
    sm_error err;
    for (int kind = 0; kind < TRAIN_KINDS; kind++)
        for (int layers = 2; layers <= 4; layers += 2) {
            sm_model model = train_model((train_kind)kind, layers);
            sm_train_setup s = train_setup_of(&model);
            train_whole(&k, &s, (train_kind)kind, layers);
            write_alone(&one, &k, &s, 0);
            for (size_t p = TRAIN_FIRST; p < train_plan_count; p += TRAIN_EVERY) {
                const train_plan *plan = &train_plans[p];
                if (train_plan_layers(plan) != layers || !generates(plan, (train_kind)kind))
                    continue;
                if (!train_job_of(plan, (train_kind)kind, &job)) continue;
                sm_train_setup room = room_for(&job.setup, 8);
                w = (written){.kept = &k, .setup = &room, .texts = TEXTS};
                if (run_written(&w, &err)) fail_msg("%s: %s", plan->words, err.sentence);
                expect_texts(&w, &one, plan->words);
            }
            drop(&k);
        }
}

static void give_degrees(const char *words, int sequences, sm_train_setup *s) {
    train_words_read(words, s);
    *s = room_for(s, sequences);
}

/* ---- layers of other kinds: sums of several branches are reduced once ---- */

static sm_model with_shared_expert(void) {
    return train_model_with(TRAIN_EXPERTS, 2, "\"n_shared_experts\": 1");
}

static sm_model with_parallel_branches(void) {
    return train_model_with(TRAIN_DENSE, 2,
                            "\"use_parallel_residual\": true, \"norms_per_layer\": 1");
}

static sm_model with_four_norms(void) {
    return train_model_with(TRAIN_EXPERTS, 2, TRAIN_TIED ", \"norms_per_layer\": 4");
}

static void layers_of_other_kinds_are_generated_from(void **state) {
    static const char *const plans[] = {"tensor=2", "expert=2,tensor=2", "fsdp=2,context=2",
                                        "tensor=2,tensor_q=2,expert_tensor", "pipeline"};
    static train_line line;
    static sm_model (*const models[])(void) = {with_shared_expert, with_parallel_branches,
                                               with_four_norms};
    static kept k;
    static written one, w;
    sm_error err;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        sm_model model = models[m]();
        sm_train_setup s = train_setup_of(&model);
        s.rate = 2e-2;
        train_on_one(&k, &s, 12);
        write_alone(&one, &k, &s, 0);
        for (size_t p = 0; p < sizeof plans / sizeof *plans; p++) {
            if (SANITIZED && (p + m) % 2) continue;
            sm_train_setup split = s;
            bool parted =
                strcmp(plans[p], "pipeline") == 0; /* also a tied embedding from its head */
            give_degrees(parted ? "" : plans[p], 8, &split);
            if (parted) assert_true(train_line_lay(SM_SCHEDULE_GPIPE, 2, 1, &split, &line));
            w = (written){.kept = &k, .setup = &split, .texts = TEXTS};
            if (run_written(&w, &err)) fail_msg("%zu, %s: %s", m, plans[p], err.sentence);
            expect_texts(&w, &one, plans[p]);
        }
        drop(&k);
    }
}

/* ---- weights of 8 and 4 bits ---- */

/* A trained model whose arrays are rounded to what an element can be, with one scale each. */
typedef struct few_bits {
    kept kept;
    float scale[MOST_KEPT];
    double matrices, experts, others; /* elements */
} few_bits;

static bool is_router(const sm_train_array *a, const char *name) {
    return a->rank == 2 && strcmp(name, "wr") == 0;
}

static bool of_words(const sm_train_array *a) {
    return a->rank == 2 && (a->size[0] == WORDS || a->size[1] == WORDS);
}

static void round_to_halves(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        sm_elements_write(SM_ELEMENT_BF16, &half, 0, 1, &x[i]);
        sm_elements_read(SM_ELEMENT_BF16, &half, 0, 1, &x[i]);
    }
}

static void round_array(const sm_train_array *a, sm_element element, float *scale) {
    size_t n = numbers_of(a);
    sm_local_block b = {.element = element, .rank = 1, .size = {n}, .box = {n}};
    size_t at = sm_local_block_scales(&b);
    char *room = sm_calloc(1, at + sizeof *scale);
    assert_non_null(room);
    b.data = room;
    sm_local_block_write(&b, a->data, NULL);
    sm_local_block_read(&b, 0, n, a->data);
    if (element == SM_ELEMENT_E2M1) *scale = ldexpf(1, (unsigned char)room[at] - 127);
    else memcpy(scale, room + at, sizeof *scale);
    sm_free(room);
}

static void round_all(few_bits *f, sm_element element, bool ends_apart) {
    f->matrices = f->experts = f->others = 0;
    for (int i = 0; i < f->kept.n; i++) {
        const sm_train_array *a = &f->kept.array[i];
        double n = (double)numbers_of(a);
        bool narrow = a->rank > 1 && !is_router(a, f->kept.name[i]);
        if (!narrow) f->others += n;
        else if (strchr("gud", f->kept.name[i][1]) && a->rank == 3) f->experts += n;
        else f->matrices += n;
        if (ends_apart && of_words(a)) round_to_halves(a->data, numbers_of(a));
        else if (narrow) round_array(a, element, &f->scale[i]);
    }
}

static sm_status find_few_bits(sm_train_array *a, void *context, sm_error *err) {
    static _Thread_local float scale[1 << 17];
    const few_bits *f = context;
    sm_status status = find(a, (void *)(uintptr_t)&f->kept, err);
    size_t n = numbers_of(a);
    assert_true(n <= sizeof scale / sizeof *scale);
    for (int i = 0; i < f->kept.n && a->scaled; i++)
        if (f->kept.array[i].data == a->data)
            for (size_t e = 0; e < n; e++) scale[e] = f->scale[i];
    if (a->scaled) a->scale = scale;
    return status;
}

typedef struct few_bits_run {
    const few_bits *few;
    written *written;
    double held;
} few_bits_run;

static sm_status write_few_bits(sm_communicator *world, void *context, sm_error *err) {
    few_bits_run *run = context;
    written *w = run->written;
    sm_generator *g = NULL;
    int32_t *text[TEXTS];
    size_t bytes[TEXTS];
    double held;
    for (int i = 0; i < TEXTS; i++) {
        text[i] = w->text[world->rank][i];
        bytes[i] = strlen(prompts[i]);
        for (size_t c = 0; c < bytes[i]; c++) text[i][c] = (unsigned char)prompts[i][c];
    }
    sm_status status = sm_generator_new(world, w->setup, NULL, &g, err);
    if (!status) status = sm_generator_load(g, find_few_bits, (void *)(uintptr_t)run->few, err);
    if (!status) status = sm_generator_weight_bytes(g, &held, err);
    if (!status && !world->rank) run->held = held;
    sm_generate_job job = {g, NULL, 0, TEXTS, WORDS, bytes, NEW, 0, 3, NULL, NULL, NULL};
    if (!status) status = sm_generate(&job, text, &w->result[world->rank], err);
    sm_generator_free(g);
    return status;
}

static double codes_bytes(const few_bits *f, sm_element element, bool experts, bool ends) {
    double bytes = element == SM_ELEMENT_E2M1 ? 0.5 : 1, others = bytes, of_ends = 0;
    if (experts && element == SM_ELEMENT_E2M1) others = 2;
    for (int i = 0; i < f->kept.n && ends; i++) {
        const sm_train_array *a = &f->kept.array[i];
        if (of_words(a)) of_ends += (double)numbers_of(a) * (2 - others);
    }
    return f->experts * bytes + f->matrices * others + f->others * 4 + of_ends;
}

/* Texts are those of the same numbers in single precision on one rank, bytes are those predicted,
 * and so much is held: matrices in their bits, with the scales of small ones. */
static void weights_of_few_bits_give_the_texts_of_their_numbers(void **state) {
    static const char *const plans[] = {
        "", "tensor=2", "fsdp=2,tensor=2", "context=2,fsdp=2", "expert=2", "data=2,tensor=2"};
    static const sm_element elements[] = {SM_ELEMENT_S8, SM_ELEMENT_E4M3, SM_ELEMENT_E2M1};
    static few_bits f;
    static written one, w;
    sm_error err;
    for (int kind = 0; kind < TRAIN_KINDS; kind++)
        for (int e = 0; e < 3; e++) {
            sm_model model = train_model((train_kind)kind, 4);
            sm_train_setup s = train_setup_of(&model);
            train_whole(&f.kept, &s, (train_kind)kind, 4);
            bool ends_apart = elements[e] == SM_ELEMENT_E4M3;
            round_all(&f, elements[e], ends_apart);
            write_alone(&one, &f.kept, &s, 0);
            for (size_t p = 0; p < sizeof plans / sizeof *plans; p++) {
                sm_train_setup split = s;
                give_degrees(plans[p], 8, &split);
                if (kind == TRAIN_DENSE && split.degree[SM_AXIS_EXPERT] > 1) continue;
                if (SANITIZED && (p + (size_t)e) % 3) continue; /* each element has two */
                split.stored = elements[e];
                split.by_rows = p % 2;
                split.ends_apart = ends_apart;
                w = (written){.setup = &split, .texts = TEXTS};
                few_bits_run run = {.few = &f, .written = &w};
                err.status = SM_OK;
                if (sm_run_threads(sm_train_setup_ranks(&split), write_few_bits, &run, &err))
                    fail_msg("%s, %s: %s", model.name, plans[p], err.sentence);
                expect_texts(&w, &one, plans[p]);
                double codes = codes_bytes(&f, elements[e], kind == TRAIN_EXPERTS, ends_apart);
                double ranks = sm_train_setup_ranks(&split);
                if (!(run.held * ranks >= codes && (p || run.held <= codes * 1.25)))
                    fail_msg("%s, %s: %g bytes held, %g are codes", model.name, plans[p], run.held,
                             codes);
            }
            drop(&f.kept);
        }
}

/* ---- speculation ---- */

typedef enum draft_kind { SAME, GOOD, BAD, DRAFTS } draft_kind;
typedef struct drafts {
    kept target, good, bad;
    sm_model model, small;
    sm_train_setup setup, small_setup;
} drafts;

/* Good: fewer layers, trained on the same text. Bad: of other weights, not trained. */
static void train_drafts(drafts *d, train_kind kind) {
    d->model = train_model(kind, 4);
    d->small = train_model(TRAIN_DENSE, 2);
    d->setup = train_setup_of(&d->model);
    d->small_setup = train_setup_of(&d->small);
    train_whole(&d->target, &d->setup, kind, 4);
    train_whole(&d->good, &d->small_setup, TRAIN_DENSE, 2);
    train_on_one(&d->bad, &d->small_setup, 0);
}

static void drop_drafts(drafts *d) {
    drop(&d->target);
    drop(&d->good);
    drop(&d->bad);
}

static void speculate(written *w, drafts *d, draft_kind which, const char *plan, int depth,
                      double temperature) {
    static sm_train_setup target, draft;
    sm_error err;
    target = d->setup;
    draft = which == SAME ? d->setup : d->small_setup;
    give_degrees(plan, 8, &target);
    give_degrees(plan, 8, &draft);
    *w = (written){.kept = &d->target,
                   .draft_kept = which == SAME   ? &d->target
                                 : which == GOOD ? &d->good
                                                 : &d->bad,
                   .setup = &target,
                   .draft_setup = &draft,
                   .texts = TEXTS,
                   .depth = depth,
                   .temperature = temperature};
    if (run_written(w, &err)) fail_msg("%s: %s", plan, err.sentence);
}

static void drafts_leave_greedy_texts_as_they_are(void **state) {
    static const char *const plans[] = {"",
                                        "data=2",
                                        "tensor=2",
                                        "context=2,tensor_q=2",
                                        "fsdp=2",
                                        "expert=4",
                                        "expert=2,tensor=2,data=2"};
    static drafts d;
    static written one, w;
    for (int kind = 0; kind < TRAIN_KINDS; kind++) {
        train_drafts(&d, (train_kind)kind);
        write_alone(&one, &d.target, &d.setup, 0);
        for (size_t p = 0; p < sizeof plans / sizeof *plans; p += REPEATED ? 6 : 1)
            for (int which = 0; which < DRAFTS; which++) {
                int depth = 1 + (int)(p + (size_t)which) % 4;
                speculate(&w, &d, (draft_kind)which, plans[p], depth, 0);
                expect_texts(&w, &one, plans[p]);
            }
        drop_drafts(&d);
    }
}

/* The first byte comes with the prompts; of the others a pass makes depth + 1 with a draft that is
 * always right, and one with a draft that never is. */
static void a_draft_saves_passes(void **state) {
    static drafts d;
    static written w;
    train_drafts(&d, TRAIN_DENSE);
    speculate(&w, &d, SAME, "", 3, 0);
    const sm_generate_result *r = &w.result[0];
    assert_true(r->decode.passes == (NEW - 1) / 4 && r->accepted == r->drafted);
    assert_true(r->drafted == TEXTS * (NEW - 1 - 2));
    speculate(&w, &d, GOOD, "", 3, 0);
    double good = r->accepted / r->drafted;
    assert_true(r->decode.passes < NEW - 1);
    speculate(&w, &d, BAD, "", 3, 0);
    assert_true(r->accepted / r->drafted < good && r->decode.passes <= NEW - 1);
    drop_drafts(&d);
}

static void speculated_draws_do_not_depend_on_the_plan(void **state) {
    static const char *const plans[] = {"tensor=2", "data=2,context=2"};
    static drafts d;
    static written one, w;
    train_drafts(&d, TRAIN_DENSE);
    speculate(&one, &d, GOOD, "", 3, 0.7);
    assert_true(one.result[0].accepted > 0 && one.result[0].accepted < one.result[0].drafted);
    for (size_t p = 0; p < sizeof plans / sizeof *plans; p++) {
        speculate(&w, &d, GOOD, plans[p], 3, 0.7);
        expect_texts(&w, &one, plans[p]);
        assert_true(!(fabs(w.result[0].accepted - one.result[0].accepted) > 0));
    }
    speculate(&one, &d, SAME, "", 3, 0.7);
    assert_true(!(one.result[0].accepted < one.result[0].drafted));
    drop_drafts(&d);
}

/* ---- draws ---- */

static void draws_do_not_depend_on_the_plan(void **state) {
    static const char *const plans[] = {"data=4", "tensor=2,context=2", "fsdp=2,tensor_q=2"};
    static kept k;
    static written one, greedy, w;
    sm_error err;
    sm_model model = train_model(TRAIN_DENSE, 2);
    sm_train_setup s = train_setup_of(&model);
    train_on_one(&k, &s, 3);
    write_alone(&greedy, &k, &s, 0);
    sm_train_setup room = room_for(&s, 8);
    one = (written){.kept = &k, .setup = &room, .texts = TEXTS, .temperature = 1};
    expect_ok(run_written(&one, &err), &err);
    assert_memory_not_equal(one.text[0], greedy.text[0], sizeof one.text[0]);
    for (size_t p = 0; p < sizeof plans / sizeof *plans; p++) {
        sm_train_setup split = s;
        give_degrees(plans[p], 8, &split);
        w = (written){.kept = &k, .setup = &split, .texts = TEXTS, .temperature = 1};
        expect_ok(run_written(&w, &err), &err);
        expect_texts(&w, &one, plans[p]);
    }
    drop(&k);
}

enum { SMALL = 5, DRAWS = 200000 };
static const double wanted[SMALL] = {0.05, 0.4, 0.25, 0.3, 0};

/* Chi-squared of 3 degrees of freedom: above 16.3 once in 1000. */
static double misfit(const int *count) {
    double sum = 0;
    for (int w = 0; w < SMALL - 1; w++) {
        double expected = DRAWS * wanted[w];
        sum += (count[w] - expected) * (count[w] - expected) / expected;
    }
    return sum;
}

static double speculated(const double *q, int *count, sm_rng *rng) {
    double kept_words = 0;
    memset(count, 0, SMALL * sizeof *count);
    for (int i = 0; i < DRAWS; i++) {
        bool stays;
        size_t word = sm_draw_word(q, SMALL, sm_rng_unit(rng));
        double u_keep = sm_rng_unit(rng), u_word = sm_rng_unit(rng);
        count[sm_draw_speculative(wanted, q, SMALL, word, u_keep, u_word, &stays)]++;
        kept_words += stays;
    }
    return kept_words / DRAWS;
}

/* What stays is the sum of min(p, q) (Leviathan et al. 2023, theorem 3.5). */
static void speculation_leaves_the_distribution(void **state) {
    static const double proposals[][SMALL] = {{0.05, 0.4, 0.25, 0.3, 0},
                                              {0.2, 0.2, 0.2, 0.2, 0.2},
                                              {0.9, 0.025, 0.025, 0.025, 0.025},
                                              {0, 0, 0, 0, 1},
                                              {0, 1, 0, 0, 0}};
    sm_rng rng = {12};
    for (size_t d = 0; d < sizeof proposals / sizeof *proposals; d++) {
        int count[SMALL];
        double share = speculated(proposals[d], count, &rng), expected = 0;
        for (int w = 0; w < SMALL; w++) expected += fmin(wanted[w], proposals[d][w]);
        assert_true(fabs(share - expected) < 0.005);
        assert_int_equal(count[SMALL - 1], 0);
        if (misfit(count) > 16.3) fail_msg("draft %zu: chi-squared %g", d, misfit(count));
    }
}

static void words_follow_their_distribution(void **state) {
    static const float scores[] = {1, 3, 3, -2};
    double p[4];
    int count[SMALL] = {0};
    sm_rng rng = {4};
    for (int i = 0; i < DRAWS; i++) count[sm_draw_word(wanted, SMALL, sm_rng_unit(&rng))]++;
    assert_true(misfit(count) < 16.3 && count[SMALL - 1] == 0);
    assert_int_equal(sm_draw_best(scores, 4), 1);
    assert_int_equal(sm_draw_word((double[]){0, 1, 0}, 3, 1), 1); /* rounding at the end */
    sm_draw_distribution(scores, 4, 2, p);
    assert_true(fabs(p[0] + p[1] + p[2] + p[3] - 1) < 1e-12);
    assert_true(fabs(p[0] / p[1] - exp(-1)) < 1e-12 && fabs(p[3] / p[2] - exp(-2.5)) < 1e-12);
}

/* ---- a cache that forgets ---- */

static sm_status rewound(sm_communicator *world, void *context, sm_error *err) {
    asked *q = context;
    sm_generator *g = NULL;
    static const int32_t wrong[] = {'#', '#', '#', '#'};
    int32_t text[TOKENS];
    for (int i = 0; i < TOKENS; i++) text[i] = short_text[i];
    sm_status status = new_generator(world, q->kept, q->setup, &g, err);
    sm_generator_pass pass = {6, text, (size_t[]){6}, false};
    if (!status) status = sm_generator_feed(g, &pass, q->scores[0], NULL, err);
    pass = (sm_generator_pass){4, wrong, (size_t[]){4}, true};
    if (!status) status = sm_generator_feed(g, &pass, q->scores[2], NULL, err);
    sm_generator_rewind(g, 0, 6);
    assert_int_equal(sm_generator_cached(g, 0), 6);
    sm_generator_rewind(g, 0, 9); /* nothing lies there to go back to */
    assert_int_equal(sm_generator_cached(g, 0), 6);
    pass = (sm_generator_pass){3, text + 6, (size_t[]){3}, false};
    if (!status) status = sm_generator_feed(g, &pass, q->scores[0], NULL, err);
    sm_generator_rewind(g, 0, 0);
    pass = (sm_generator_pass){9, text, (size_t[]){9}, false};
    if (!status) status = sm_generator_feed(g, &pass, q->scores[1], NULL, err);
    sm_generator_free(g);
    return status;
}

static void what_is_rewound_leaves_no_trace(void **state) {
    static kept k;
    static asked q;
    sm_error err = {.status = SM_OK};
    sm_model model = train_model(TRAIN_EXPERTS, 2);
    sm_train_setup s = train_setup_of(&model), room = room_for(&s, 1);
    train_on_one(&k, &s, 1);
    q = (asked){.kept = &k, .setup = &room};
    expect_ok(sm_run_threads(1, rewound, &q, &err), &err);
    for (int v = 0; v < WORDS; v++)
        assert_true(fabs((double)q.scores[0][v] - (double)q.scores[1][v]) < 1e-5);
    drop(&k);
}

/* ---- refusals ---- */

static void expect_refused(const sm_train_setup *s, const char *sentence) {
    sm_communicator *self;
    sm_generator *g;
    sm_error err = {.status = SM_OK};
    assert_int_equal(sm_communicator_self(&self, &err), SM_OK);
    assert_int_equal(sm_generator_new(self, s, NULL, &g, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, sentence);
    sm_communicator_free(self);
}

static void refuses_what_it_cannot(void **state) {
    sm_model model = train_model(TRAIN_DENSE, 2);
    sm_train_setup first = train_setup_of(&model), s = room_for(&first, 3);
    s.degree[SM_AXIS_DATA] = 2;
    expect_refused(&s, "3 sequences do not divide over 2 ranks");
    s = room_for(&first, 1);
    s.tokens = 15;
    s.degree[SM_AXIS_CONTEXT] = 2;
    expect_refused(&s, "a cache of 15 positions does not divide over 2 ranks");
    s = room_for(&first, 1);
    s.stages = 2;
    expect_refused(&s, "2 stages generate with one chunk of layers each");
    s = room_for(&first, 1);
    s.degree[SM_AXIS_TENSOR] = 0;
    expect_refused(&s, "a degree of 0 is none");
}

static void expect_failed(sm_status status, const sm_error *err, const char *sentence) {
    assert_int_equal(status, SM_BAD_INPUT);
    assert_string_equal(err->sentence, sentence);
}

static void fills_no_more_than_the_cache(void **state) {
    sm_model model = train_model(TRAIN_DENSE, 2);
    sm_train_setup first = train_setup_of(&model), s = room_for(&first, 1);
    sm_communicator *self;
    sm_generator *g;
    static const int32_t bytes[ROOM] = {'x'};
    static float scores[WORDS];
    sm_error err = {.status = SM_OK};
    s.tokens = TOKENS;
    assert_int_equal(sm_communicator_self(&self, &err), SM_OK);
    assert_int_equal(sm_generator_new(self, &s, NULL, &g, &err), SM_OK);
    sm_generator_pass pass = {TOKENS, bytes, (size_t[]){0}, false};
    expect_failed(sm_generator_feed(g, &pass, scores, NULL, &err), &err,
                  "a pass brings at least one token");
    pass.count = (size_t[]){TOKENS};
    assert_int_equal(sm_generator_feed(g, &pass, scores, NULL, &err), SM_OK);
    pass = (sm_generator_pass){1, bytes, (size_t[]){1}, false};
    expect_failed(sm_generator_feed(g, &pass, scores, NULL, &err), &err,
                  "the cache has room for 12 tokens, and 1 come after 12");
    sm_generator_free(g);
    sm_communicator_free(self);
}

static void expect_no_texts(const sm_generate_job *job, const char *sentence) {
    static int32_t room[ROOM];
    int32_t *text[] = {room, room};
    sm_generate_result result;
    sm_error err = {.status = SM_OK};
    expect_failed(sm_generate(job, text, &result, &err), &err, sentence);
}

static void refuses_jobs_that_do_not_fit(void **state) {
    sm_model model = train_model(TRAIN_DENSE, 2);
    sm_model wide = train_model_with(TRAIN_DENSE, 2, "\"vocab_size\": 300");
    sm_train_setup trained = train_setup_of(&model), s = room_for(&trained, 1), other = s, two = s;
    other.model = &wide;
    two.sequences = 2;
    sm_communicator *self;
    sm_generator *g, *draft, *more;
    sm_error err = {.status = SM_OK};
    assert_int_equal(sm_communicator_self(&self, &err), SM_OK);
    assert_int_equal(sm_generator_new(self, &s, NULL, &g, &err), SM_OK);
    assert_int_equal(sm_generator_new(self, &other, NULL, &draft, &err), SM_OK);
    assert_int_equal(sm_generator_new(self, &two, NULL, &more, &err), SM_OK);
    const sm_generate_job fits = {g, NULL, 2, 1, WORDS, (size_t[]){4}, NEW, 0, 1, NULL, NULL, NULL};
    sm_generate_job job = fits;
    job.sequences = 2;
    expect_no_texts(&job, "2 texts of 9 more tokens are none, or too many");
    job = fits;
    job.prompt = (size_t[]){ROOM};
    expect_no_texts(&job, "a prompt of 32 tokens and 9 more do not go into a cache of 32");
    job = fits;
    job.draft = draft;
    expect_no_texts(&job, "the draft has a vocabulary of 300 words and the model one of 256");
    job.draft = more;
    expect_no_texts(&job, "the draft holds other sequences than the model");
    job.depth = 0;
    expect_no_texts(&job, "a draft proposes at least one token");
    sm_generator_free(g);
    sm_generator_free(draft);
    sm_generator_free(more);
    sm_communicator_free(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_of_training),
        cmocka_unit_test(texts_do_not_depend_on_the_plan),
        cmocka_unit_test(layers_of_other_kinds_are_generated_from),
        cmocka_unit_test(weights_of_few_bits_give_the_texts_of_their_numbers),
        cmocka_unit_test(drafts_leave_greedy_texts_as_they_are),
        cmocka_unit_test(a_draft_saves_passes),
        cmocka_unit_test(speculated_draws_do_not_depend_on_the_plan),
        cmocka_unit_test(draws_do_not_depend_on_the_plan),
        cmocka_unit_test(speculation_leaves_the_distribution),
        cmocka_unit_test(words_follow_their_distribution),
        cmocka_unit_test(what_is_rewound_leaves_no_trace),
        cmocka_unit_test(refuses_what_it_cannot),
        cmocka_unit_test(fills_no_more_than_the_cache),
        cmocka_unit_test(refuses_jobs_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
