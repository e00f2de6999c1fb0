/* Checkpoints in a folder: what every rank writes of it, going on from it under any plan, versions,
 * and what is refused in which words. */
#include <dirent.h>
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train_checkpoint.h"
#include "failing_alloc.h"
#include "train_plans.h"
#include "written_tensors.h"

/* ---- a folder for each test ---- */

static char place[64];

static const char *at(const char *name) {
    static char path[8][256];
    static int turn;
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%.60s/%.180s", place, name);
    return path[turn];
}

static void remove_all(const char *folder) {
    char path[600];
    DIR *dir = opendir(folder);
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(path, sizeof path, "%.300s/%.256s", folder, e->d_name);
        if (unlink(path) != 0) remove_all(path);
    }
    if (dir) closedir(dir);
    rmdir(folder);
}

static int begin(void **state) {
    /* in memory where there is such a place: every file waits for the disk otherwise */
    snprintf(place, sizeof place, "/dev/shm/test_checkpoint_XXXXXX");
    if (mkdtemp(place)) return 0;
    snprintf(place, sizeof place, "/tmp/test_checkpoint_XXXXXX");
    return mkdtemp(place) ? 0 : -1;
}

static int end(void **state) {
    remove_all(place);
    return 0;
}

/* ---- trainings in two halves ---- */

typedef struct half {
    const sm_train_setup *setup;
    const char *from, *to; /* checkpoints; NULL: none */
    int first, end, keep;
    double loss[TRAIN_STEPS];
    sm_safetensors start;
} half;

static sm_status run_rank(sm_communicator *world, void *context, sm_error *err) {
    half *h = context;
    sm_trainer *t = NULL;
    const train_checkpoint_place to = {.path = h->to, .keep = h->keep, .config = "{}\n"};
    sm_status status = sm_trainer_new(world, h->setup, &t, err);
    if (!status && h->from)
        status = train_checkpoint_take(t, h->setup->model, &h->start, h->from, err);
    for (int i = h->first; !status && i < h->end; i++) {
        sm_train_result r;
        status = sm_trainer_step(t, i, &r, err);
        if (world->rank == 0) h->loss[i] = r.loss;
    }
    if (!status && h->to) status = train_checkpoint_write(t, world, h->setup->model, &to, err);
    sm_trainer_free(t);
    return status;
}

static sm_status run_half(half *h, sm_error *err) {
    sm_arena *arena = sm_arena_new();
    sm_status status = h->from ? sm_io_safetensors_read(h->from, arena, &h->start, err) : SM_OK;
    if (!status) status = sm_run_threads(sm_train_setup_ranks(h->setup), run_rank, h, err);
    sm_arena_free(arena);
    return status;
}

static void must_run(half *h) {
    sm_error err = {.status = SM_OK};
    if (run_half(h, &err)) print_message("%s\n", err.sentence);
    assert_int_equal(err.status, SM_OK);
}

/* The steps of `words` written to a place of the test. */
static void write_steps(const char *words, train_kind kind, int steps, const char *to, int keep) {
    sm_model model = train_model(kind, 2);
    sm_train_setup s = train_setup_of(&model);
    train_words_read(words, &s);
    half h = {.setup = &s, .to = to, .end = steps, .keep = keep};
    must_run(&h);
}

/* ---- under any plan ---- */

static const train_plan pairs[][2] = {
    {{.words = ""}, {.words = "data=2,zero=1"}},
    {{.words = "data=4,zero=1"}, {.words = "fsdp=2,tensor=2,zero=3,seq"}},
    {{.words = "fsdp=4,zero=3"}, {.words = "tensor=2,tensor_q=2,seq"}},
    {{.words = "data=2,zero=2,micro=1"}, {.words = "context=2,fsdp=2,zero=3,over_context"}},
    {{.words = "expert=2,tensor=2,expert_tensor"}, {.words = "data=2,context=2,zero=2,micro=2"}},
    {{.words = "micro=1,data=2,zero=1",
      .schedule = SM_SCHEDULE_ZB_V,
      .stages = 2,
      .chunks_per_stage = 2},
     {.words = "fsdp=2,zero=3"}},
    {{.words = "data=2,zero=1"},
     {.words = "micro=1", .schedule = SM_SCHEDULE_1F1B, .stages = 2, .chunks_per_stage = 1}},
};

/* Both on models of as many layers. */
static void make_job(const train_plan *plan, train_kind kind, bool tied, train_job *job) {
    assert_true(train_job_of(plan, kind, job));
    assert_int_equal(job->model.L, train_plan_layers(plan));
    if (tied) job->model = train_model_with(kind, train_plan_layers(plan), TRAIN_TIED);
}

static bool four_layers(const train_plan *pair) { return pair[0].stages || pair[1].stages; }

static void deepen(const train_plan *pair, train_job *job) {
    if (!four_layers(pair) || job->model.L == 4) return;
    train_kind kind = job->model.kind[0].E > 0 ? TRAIN_EXPERTS : TRAIN_DENSE;
    job->model = train_model_with(kind, 4, job->model.tied ? TRAIN_TIED : "");
}

static void go_on(const train_plan *pair, train_kind kind, bool tied, const char *path) {
    static train_job first, second;
    static train_curve one;
    static const train_plan alone = {.words = ""};
    half a = {.setup = &first.setup, .to = path, .end = TRAIN_STEPS / 2, .keep = 1};
    half b = {.setup = &second.setup, .from = path, .first = TRAIN_STEPS / 2, .end = TRAIN_STEPS};
    make_job(&alone, kind, tied, &first);
    deepen(pair, &first);
    train_curve_on_threads(&first.setup, TRAIN_STEPS, &one);
    make_job(&pair[0], kind, tied, &first);
    make_job(&pair[1], kind, tied, &second);
    deepen(pair, &first);
    deepen(pair, &second);
    must_run(&a);
    must_run(&b);
    for (int i = 0; i < TRAIN_STEPS; i++)
        if (!train_about_equal(i < TRAIN_STEPS / 2 ? a.loss[i] : b.loss[i], one.loss[i],
                               train_tolerance))
            fail_msg("%s then %s: step %d", pair[0].words, pair[1].words, i);
}

static void goes_on_under_any_plan(void **state) {
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int kind = 0; kind < TRAIN_KINDS; kind++) {
            char name[32];
            snprintf(name, sizeof name, "ck%zu-%d%s", i, kind, i % 3 == 2 ? "" : "/");
            if (i % 3 == 2) snprintf(name, sizeof name, "%zu-%d.safetensors", i, kind);
            go_on(pairs[i], (train_kind)kind, false, at(name));
        }
    go_on(pairs[0], TRAIN_DENSE, true, at("tied/"));
    go_on(pairs[1], TRAIN_DENSE, true, at("tied.safetensors"));
}

/* ---- parts ---- */

static size_t numbers_of(const sm_safetensor *t) {
    size_t n = 1;
    for (int d = 0; d < t->rank; d++) n *= t->shape[d];
    return n;
}

static void assert_same_tensor(const sm_safetensor *a, const sm_safetensor *b) {
    size_t n = numbers_of(a);
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->rank, b->rank);
    assert_memory_equal(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape);
    float *x = sm_malloc(2 * n * sizeof *x);
    assert_int_equal(sm_io_safetensor_load(a, x, NULL), SM_OK);
    assert_int_equal(sm_io_safetensor_load(b, x + n, NULL), SM_OK);
    assert_memory_equal(x, x + n, n * sizeof *x);
    sm_free(x);
}

static void read_place(const char *path, sm_arena *arena, sm_safetensors *out) {
    sm_error err = {.status = SM_OK};
    if (sm_io_safetensors_read(path, arena, out, &err)) print_message("%s\n", err.sentence);
    assert_int_equal(err.status, SM_OK);
}

/* Numbers in the file of each rank. */
static double most_in_a_file(const sm_safetensors *all, const char *kind, double *total) {
    double in[16] = {0}, most = 0;
    *total = 0;
    for (size_t i = 0; i < all->n; i++) {
        const char *number = strstr(all->tensor[i].path, kind);
        if (!number) continue;
        long file = strtol(number + strlen(kind), NULL, 10);
        assert_in_range(file, 1, 15);
        in[file] += (double)numbers_of(&all->tensor[i]);
        *total += (double)numbers_of(&all->tensor[i]);
    }
    for (int i = 0; i < 16; i++) most = in[i] > most ? in[i] : most;
    return most;
}

/* Every tensor once over all files, with the numbers of the one file, evenly. */
static void parts_make_up_the_whole(void **state) {
    for (int kind = 0; kind < TRAIN_KINDS; kind++) {
        sm_safetensors whole, parts;
        sm_arena *arena = sm_arena_new();
        double total, largest = 256 * 16;
        remove_all(at("ck"));
        write_steps("data=2,tensor=2,zero=1", (train_kind)kind, 2, at("ck/"), 1);
        write_steps("data=2,tensor=2,zero=1", (train_kind)kind, 2, at("one.safetensors"), 1);
        read_place(at("ck"), arena, &parts);
        read_place(at("one.safetensors"), arena, &whole);
        assert_int_equal(parts.n, whole.n);
        assert_true(parts.steps == 2 && whole.steps == 2);
        for (size_t i = 0; i < whole.n; i++) assert_same_tensor(&whole.tensor[i], &parts.tensor[i]);
        assert_true(most_in_a_file(&parts, "/model-", &total) <= total / 4 + largest);
        assert_true(most_in_a_file(&parts, "/optimizer-", &total) <= total / 4 + largest);
        sm_arena_free(arena);
    }
}

/* ---- versions ---- */

static bool there(const char *name) { return access(at(name), F_OK) == 0; }

static void put_text(const char *path, const char *text) {
    assert_int_equal(sm_io_write(path, text, strlen(text), NULL), SM_OK);
}

static void assert_latest(const char *expected) {
    sm_source text;
    sm_arena *arena = sm_arena_new();
    assert_int_equal(sm_io_read(at("ck/latest"), arena, &text, NULL), SM_OK);
    assert_int_equal(text.length, strlen(expected) + 1);
    assert_memory_equal(text.text, expected, strlen(expected));
    sm_arena_free(arena);
}

static void keeps_versions(void **state) {
    for (int steps = 1; steps <= 4; steps++) write_steps("", TRAIN_DENSE, steps, at("ck/"), 2);
    assert_latest("step-000004");
    assert_true(there("ck/step-000003") && !there("ck/step-000002") && !there("ck/step-000001"));
    assert_true(there("ck/step-000004/config.json"));
    /* the same steps once more: the version that latest names is never written over */
    write_steps("", TRAIN_DENSE, 4, at("ck"), 2);
    assert_latest("step-000004-2");
    assert_true(there("ck/step-000004") && !there("ck/step-000003"));
    /* fewer steps, as after going back: the latest is kept whatever its number */
    write_steps("", TRAIN_DENSE, 1, at("ck"), 1);
    assert_latest("step-000001");
    assert_true(!there("ck/step-000004") && !there("ck/step-000004-2"));
}

/* What a killed process left goes; what is not ours stays. */
static void clears_up(void **state) {
    mkdir(at("ck"), 0700);
    mkdir(at("ck/step-000007.tmp"), 0700);
    put_text(at("ck/step-000007.tmp/model-00001-of-00001.safetensors"), "half");
    put_text(at("ck/latest.123-0.tmp"), "step-");
    mkdir(at("ck/step-000002"), 0700);
    put_text(at("ck/step-000002/notes"), "mine");
    mkdir(at("ck/step-one"), 0700);
    mkdir(at("ck/other.tmp"), 0700);
    write_steps("data=2", TRAIN_DENSE, 3, at("ck"), 1);
    assert_latest("step-000003");
    assert_true(!there("ck/step-000007.tmp") && !there("ck/latest.123-0.tmp"));
    assert_true(there("ck/step-000002/notes") && there("ck/step-one") && there("ck/other.tmp"));
}

static void says_where_it_cannot_write(void **state) {
    static const char *const to[] = {"none/ck/", "file/"};
    static const char *const words[] = {"cannot make the folder ", ": Not a directory"};
    sm_model model = train_model(TRAIN_DENSE, 2);
    put_text(at("file"), "text");
    for (int i = 0; i < 2; i++) {
        sm_train_setup s = train_setup_of(&model);
        sm_error err = {.status = SM_OK};
        train_words_read("data=2", &s);
        half h = {.setup = &s, .to = at(to[i]), .keep = 1};
        assert_int_equal(run_half(&h, &err), SM_IO);
        if (!strstr(err.sentence, words[i])) print_message("%s\n", err.sentence);
        assert_non_null(strstr(err.sentence, words[i]));
    }
}

/* ---- refusals ---- */

static void make_two_files(void) {
    remove_all(at("ck"));
    write_steps("data=2", TRAIN_DENSE, 2, at("ck/"), 1);
}

static void expect(const char *words) {
    sm_safetensors all;
    sm_error err = {.status = SM_OK};
    sm_arena *arena = sm_arena_new();
    sm_status status = sm_io_safetensors_read(at("ck"), arena, &all, &err);
    if (status != SM_BAD_INPUT || !strstr(err.sentence, words))
        print_message("%d %s\nnot: %s\n", status, err.sentence, words);
    assert_int_equal(status, SM_BAD_INPUT);
    assert_non_null(strstr(err.sentence, words));
    sm_arena_free(arena);
}

#define V "ck/step-000002/"
#define MODEL_1 V "model-00001-of-00002.safetensors"
#define MODEL_2 V "model-00002-of-00002.safetensors"
#define INDEX V "model.safetensors.index.json"

/* Replace the first `from` of a file by `to`. */
static void edit(const char *path, const char *from, const char *to) {
    sm_source text;
    sm_arena *arena = sm_arena_new();
    assert_int_equal(sm_io_read(path, arena, &text, NULL), SM_OK);
    const char *found = strstr(text.text, from);
    assert_non_null(found);
    size_t before = (size_t)(found - text.text);
    char *out =
        sm_arena_printf(arena, "%.*s%s%s", (int)before, text.text, to, found + strlen(from));
    put_text(path, out);
    sm_arena_free(arena);
}

static void refuses_missing_files(void **state) {
    make_two_files();
    assert_int_equal(unlink(at(MODEL_2)), 0);
    expect("model-00002-of-00002.safetensors is missing, which its index names");
    make_two_files();
    assert_int_equal(rename(at("ck/step-000002"), at("ck/elsewhere")), 0);
    expect("step-000002 is missing, which latest beside it names");
    make_two_files();
    assert_int_equal(unlink(at(INDEX)), 0);
    expect("holds no checkpoint: neither latest nor model.safetensors.index.json is in it");
    remove_all(at("ck"));
    mkdir(at("ck"), 0700);
    expect("/ck holds no checkpoint");
}

static void refuses_files_of_others(void **state) {
    make_two_files(); /* renamed */
    assert_int_equal(rename(at(MODEL_2), at(MODEL_1)), 0);
    assert_int_equal(link(at(MODEL_1), at(MODEL_2)), 0);
    expect("is not the file of that name that its index was written with");
    make_two_files(); /* of another training */
    write_steps("tensor=2,seq", TRAIN_EXPERTS, 2, at("other/"), 1);
    assert_int_equal(rename(at("other/step-000002/model-00001-of-00002.safetensors"), at(MODEL_1)),
                     0);
    expect("is not the file of that name that its index was written with");
    make_two_files(); /* of another step */
    write_steps("data=2", TRAIN_DENSE, 3, at("later/"), 1);
    assert_int_equal(rename(at("later/step-000003/model-00001-of-00002.safetensors"), at(MODEL_1)),
                     0);
    expect("model-00001-of-00002.safetensors is of step 3, and its index of step 2");
    make_two_files();
    assert_int_equal(rename(at("later/step-000003/optimizer.safetensors.index.json"),
                            at(V "optimizer.safetensors.index.json")),
                     0);
    expect("is of step 3, and model.safetensors.index.json beside it of step 2");
}

/* An index that was written without checksums, or tampered with. */
static void refuses_wrong_indexes(void **state) {
    make_two_files();
    put_text(at(INDEX), "{\"weight_map\":{\"a\":\"../../one.safetensors\"}}");
    expect("places a outside its folder, in ../../one.safetensors");
    put_text(at(INDEX), "{\"weight_map\":{\"a\":\"/etc/passwd\"}}");
    expect("places a outside its folder");
    put_text(at(INDEX), "{\"weight_map\":{\"a\":\"..\"}}");
    expect("places a outside its folder");
    put_text(at(INDEX), "{\"weight_map\":{\"a\":7}}");
    expect("names no file for a");
    put_text(at(INDEX), "{\"weight_map\":[]}");
    expect("is no index of shards: it has no weight_map");
    put_text(at(INDEX), "[]");
    expect("is no index of shards: it has no weight_map");
    put_text(at(INDEX), "{\"weight_map\":");
    expect("this is not valid JSON");
    put_text(at(INDEX), "{\"metadata\":{\"headers\":{\"x\":\"12\"}},\"weight_map\":{\"a\":\"x\"}}");
    expect("gives no checksum of eight digits for x");
    make_two_files();
    edit(at(INDEX), "\"lm_head.weight\"", "\"lm_heat.weight\"");
    expect("lm_head.weight, which its index does not place there");
    make_two_files();
    edit(at(INDEX), "\"weight_map\": {",
         "\"weight_map\": {\"a\":\"model-00001-of-00002.safetensors\",");
    expect("model-00001-of-00002.safetensors does not hold a, which its index places there");
}

static void refuses_wrong_latest(void **state) {
    static const char *const wrong[] = {
        "",       "\n",  "..\n",   "../ck\n",
        "/tmp\n", ".\n", "a\nb\n", "step-000002/model-00001-of-00002.safetensors\n"};
    make_two_files();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put_text(at("ck/latest"), wrong[i]);
        expect("ck/latest names no folder beside it");
    }
    char longer[200];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    put_text(at("ck/latest"), longer);
    expect("ck/latest names no folder beside it");
}

/* Cut at any byte, a part is refused when it is read. */
static void refuses_cut_files(void **state) {
    struct stat of;
    make_two_files();
    assert_int_equal(stat(at(MODEL_1), &of), 0);
    for (off_t n = of.st_size - 1; n >= 0; n -= n > 4096 ? 997 : 61) {
        assert_int_equal(truncate(at(MODEL_1), n), 0);
        expect("is no whole safetensors file");
    }
}

/* A folder as other tools write it: no latest, no checksums; or one file in it. */
static void reads_what_others_wrote(void **state) {
    sm_safetensors all;
    sm_arena *arena = sm_arena_new();
    const float row[] = {1, 2, 3};
    const sm_safetensor a = {.name = "a", .rank = 1, .shape = {3}, .data = row};
    mkdir(at("hf"), 0700);
    assert_int_equal(write_safetensors(at("hf/model.safetensors"), 1, &a, 0, NULL), SM_OK);
    read_place(at("hf"), arena, &all);
    assert_true(all.n == 1 && all.steps == 0);
    put_text(at("hf/model.safetensors.index.json"),
             "{\"metadata\":{\"total_size\":12},\"weight_map\":{\"a\":\"model.safetensors\"}}");
    read_place(at("hf/"), arena, &all);
    assert_true(all.n == 1 && sm_safetensors_find(&all, "a"));
    sm_arena_free(arena);
}

static void survives_failing_allocations(void **state) {
    make_two_files();
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_safetensors all;
        sm_arena *arena = sm_arena_new();
        if (!arena) continue;
        sm_status status = sm_io_safetensors_read(at("ck"), arena, &all, NULL);
        if (!failing_alloc_refused(&loop)) assert_int_equal(status, SM_OK);
        sm_arena_free(arena);
    }
}

/* Memory that is refused while a checkpoint is written: there is a whole one all the same. */
static void write_refused(sm_trainer *t, sm_communicator *world, const sm_model *model,
                          const char *path) {
    const train_checkpoint_place to = {.path = path, .keep = 1, .config = "{}\n"};
    assert_int_equal(train_checkpoint_write(t, world, model, &to, NULL), SM_OK);
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_safetensors all;
        sm_status status = train_checkpoint_write(t, world, model, &to, NULL);
        if (!failing_alloc_refused(&loop)) assert_int_equal(status, SM_OK);
        if (!failing_alloc_refused(&loop)) continue;
        assert_int_equal(status, SM_INTERNAL);
        sm_arena *arena = sm_arena_new();
        read_place(path, arena, &all);
        sm_arena_free(arena);
    }
}

static void writing_survives_failing_allocations(void **state) {
    sm_communicator *world;
    sm_trainer *t;
    char path[128];
    sm_model model = train_model(TRAIN_EXPERTS, 1);
    sm_train_setup s = train_setup_of(&model);
    assert_int_equal(sm_communicator_self(&world, NULL), SM_OK);
    assert_int_equal(sm_trainer_new(world, &s, &t, NULL), SM_OK);
    snprintf(path, sizeof path, "%s", at("ck/"));
    write_refused(t, world, &model, path);
    snprintf(path, sizeof path, "%s", at("file"));
    write_refused(t, world, &model, path);
    sm_trainer_free(t);
    sm_communicator_free(world);
}

/* ---- of another model ---- */

static void expect_resume(const sm_model *model, const char *from, const char *words) {
    sm_error err = {.status = SM_OK};
    sm_train_setup s = train_setup_of(model);
    train_words_read("data=2", &s);
    half h = {.setup = &s, .from = from, .first = 2, .end = 3};
    assert_int_equal(run_half(&h, &err), SM_BAD_INPUT);
    if (!strstr(err.sentence, words)) print_message("%s\n", err.sentence);
    assert_non_null(strstr(err.sentence, words));
}

static void refuses_other_models(void **state) {
    make_two_files();
    sm_model deeper = train_model(TRAIN_DENSE, 4), other = train_model(TRAIN_EXPERTS, 2),
             tied = train_model_with(TRAIN_DENSE, 2, TRAIN_TIED),
             wide = train_model_with(TRAIN_DENSE, 2, "\"head_dim\": 8"),
             shallow = train_model(TRAIN_DENSE, 1), same = train_model(TRAIN_DENSE, 2);
    expect_resume(&deeper, at("ck"), "ck holds no model.layers.2.");
    expect_resume(&shallow, at("ck"), "holds model.layers.1.");
    expect_resume(&other, at("ck"), "holds no model.layers.0.block_sparse_moe.");
    expect_resume(&tied, at("ck"), "holds lm_head.weight, which ");
    expect_resume(&wide, at("ck"), "has another shape than that of ");
    /* weights alone cannot be gone on from */
    assert_int_equal(unlink(at(V "optimizer.safetensors.index.json")), 0);
    expect_resume(&same, at("ck"), "holds no optimizer.first.model.embed_tokens.weight");
}

/* A number that has changed on the disk. */
static void refuses_damage(void **state) {
    make_two_files();
    sm_model model = train_model(TRAIN_DENSE, 2);
    FILE *file = fopen(at(MODEL_2), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -2, SEEK_END), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, -2, SEEK_END), 0);
    fputc(byte ^ 4, file);
    fclose(file);
    expect_resume(&model, at("ck"), "is damaged: its checksum is ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(goes_on_under_any_plan),
        TEST(parts_make_up_the_whole),
        TEST(keeps_versions),
        TEST(clears_up),
        TEST(says_where_it_cannot_write),
        TEST(refuses_missing_files),
        TEST(refuses_files_of_others),
        TEST(refuses_wrong_indexes),
        TEST(refuses_wrong_latest),
        TEST(refuses_cut_files),
        TEST(reads_what_others_wrote),
        TEST(survives_failing_allocations),
        TEST(writing_survives_failing_allocations),
        TEST(refuses_other_models),
        TEST(refuses_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
