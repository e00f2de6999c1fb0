/* Recipes: words of shells, TOML and JSON as settings; formulas; and for every framework that is
 * shipped, that a plan which it can run comes back from its recipe. */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "expression.h"
#include "failing_alloc.h"
#include "framework.h"
#include "scalemodel/io.h"

static sm_arena *arena;
static sm_error err;

static sm_settings settings_of(const char *text) {
    static sm_settings s;
    sm_source *source = sm_arena_alloc(arena, sizeof *source);
    *source = sm_source_of("recipe", text);
    if (sm_io_settings(source, arena, &s, &err)) fail_msg("%s: %s", text, err.sentence);
    return s;
}

static const sm_setting *setting(const sm_settings *s, const char *key) {
    for (int i = s->n - 1; i >= 0; i--)
        if (strcmp(s->list[i].key, key) == 0) return &s->list[i];
    fail_msg("no setting %s", key);
    return NULL;
}

static void says(const char *text, const char *key, const char *value) {
    sm_settings s = settings_of(text);
    const sm_setting *found = setting(&s, key);
    assert_string_equal(found->value, value);
    assert_true(found->at.offset + found->at.length <= strlen(text));
}

#define EIGHTS "888888888888888888888888888888888888888888888888888888888888"

static void words_of_scripts(void **state) {
    (void)state;
    says("torchrun x.py --tp 8 --pp=2", "--tp", "8");
    says("torchrun x.py --tp 8 --pp=2", "--pp", "2");
    says("N=4\nG=$((N * 8))\nrun --gpus ${G} --x \"$N nodes\"", "--gpus", "32");
    says("N=4\nG=$((N * 8))\nrun --gpus ${G} --x \"$N nodes\"", "--x", "4 nodes");
    says("N=7\nrun --gpus $((N / 2 * 64)) --x $((N - 9))", "--gpus", "192");
    says("N=7\nrun --gpus $((N / 2 * 64)) --x $((N - 9))", "--x", "-2");
    says("run --seq ${S:-4096}", "--seq", "4096");
    says("S=1024 run --seq ${S:-4096}", "--seq", "1024");
    says("A=(\n --one 1 # said\n --two 2\n)\nrun \"${A[@]}\" --three", "--two", "2");
    says("A=(\n --one 1 # said\n --two 2\n)\nrun \"${A[@]}\" --three", "--three", "");
    says("OPT=\" --tp 4 \\\n --pp 2 \"\nrun $OPT", "--pp", "2");
    says("python train.py base.yml per_device_batch_size=2.5 model_name='llama3-8b'",
         "per_device_batch_size", "2.5");
    says("vllm serve meta-llama/X --tp 2", "serve", "meta-llama/X");
    says("run --modules a b c --last -1", "--modules", "a b c");
    says("run --modules a b c --last -1", "--last", "-1");
    sm_settings s = settings_of("run --addr $HOST --n `nproc`");
    assert_string_equal(setting(&s, "--addr")->unknown, "$HOST");
    assert_string_equal(setting(&s, "--n")->unknown, "`nproc`");
    s = settings_of("N=" EIGHTS "\nrun --n $((N)) --m $((9007199254740993)) --half $((1 * 0.5))");
    assert_string_equal(setting(&s, "--n")->unknown, "$((N))");
    assert_string_equal(setting(&s, "--m")->unknown, "$((9007199254740993))");
    assert_string_equal(setting(&s, "--half")->unknown, "$((1 * 0.5))");
}

/* A file of YAML that a script writes is settings; another script within it is read as it stands.
 */
static void here_documents(void **state) {
    static const char *const script =
        "cat >o.yaml <<-'EOF'\nkv_cache_config:\n  dtype: \"fp8\" # small\n  deep:\n    er: 1\n"
        "after: $B\n- item: 2\n\tEOF\nrun --tp 8 <<<word --pp 2\ncat <<END | sh\nrun --dp 4\nEND\n"
        "run --ep 2 <<NEVER\nrun --cp 3\n";
    (void)state;
    says(script, "kv_cache_config.dtype", "fp8");
    says(script, "kv_cache_config.deep.er", "1");
    sm_settings s = settings_of(script);
    assert_string_equal(setting(&s, "after")->unknown, "$B");
    says(script, "--tp", "8");
    says(script, "--pp", "2");
    says(script, "--dp", "4");
    says(script, "--ep", "2");
    says(script, "--cp", "3");
    for (int i = 0; i < s.n; i++) assert_null(strstr(s.list[i].key, "EOF"));
    static const char *const lists = "cat >o.yaml <<EOF\na: [x, y]\nb:\n  - 1\n  - 2\nEOF\n";
    says(lists, "a", "x y");
    says(lists, "b", "1 2");
    s = settings_of(lists);
    assert_int_equal(s.list[0].at.offset, 18);
    assert_int_equal(s.list[0].at.length, 1);
    settings_of("run --a ${B:-"); /* never closed */
    /* arguments of a container, one of them JSON; of a variable of a compose file; JSON that has
     * flags */
    static const char *const arguments =
        "args:\n- --model=a/b\n- \"--limit={\\\"image\\\": 0}\"\n- --tp=2\n";
    says(arguments, "--model", "a/b");
    says(arguments, "--tp", "2");
    says("environment:\n- T=${T:-x}\n- A= >\n    --model a\n    --tp 8\n", "--tp", "8");
    says("extra: '{\"args\": \"--tp 8\"}'\n", "extra", "{\"args\": \"--tp 8\"}");
}

static void files_of_settings(void **state) {
    (void)state;
    says("[training]\nseq_len = 8_192 # long\n[a.b]\nc = [1,\n 2]\n", "training.seq_len", "8192");
    says("[training]\nseq_len = 8_192 # long\n[a.b]\nc = [1,\n 2]\n", "a.b.c", "1 2");
    says("x = {y = 'z', w = \"v\"}\n", "x.w", "v");
    says("{\"zero\": {\"stage\": 3}, \"list\": [1, 2]}", "zero.stage", "3");
    says("a:\n  b: 4 # four\n  c: [x, y]\n", "a.b", "4");
    says("a:\n  b: 4 # four\n  c: [x, y]\n", "a.c", "x y");
    says("args:\n - --tp=4\n - --len\n - '8'\n", "--len", "8");
    says("run: |\n  vllm serve M --tp 4 \\\n   --len 8\n", "--tp", "4");
    sm_settings s = settings_of("a: null\n");
    assert_true(setting(&s, "a")->nothing);
}

static void what_is_no_recipe_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"[a\nb = 1", "a = ",      "{\"a\": }",
                                        "a: [b\n",   "x = \"y\n", "a: b\n c: d\n  - e"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sm_source source = sm_source_of("recipe", texts[i]);
        sm_settings s;
        if (sm_io_settings(&source, arena, &s, &err) != SM_BAD_INPUT) fail_msg("%s", texts[i]);
        assert_true(err.line > 0 && err.span > 0);
    }
}

/* ---- formulas ---- */

static expression_value name_value(const void *context, const char *name) {
    (void)context;
    if (strcmp(name, "two") == 0) return value_number(2);
    if (strcmp(name, "word") == 0) return value_text("Adam");
    return (expression_value){.kind = VALUE_ABSENT};
}

static expression_value worked(const char *text) {
    sm_source source = sm_source_of("formula", text);
    const expression *e;
    bool broken = false;
    if (expression_parse(&source, (sm_span){0, source.length}, arena, &e, &err))
        fail_msg("%s: %s", text, err.sentence);
    return expression_work(e, name_value, NULL, arena, &broken);
}

static void formulas(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } numbers[] = {{"1 + 2 * 3 - 4 / 2", 5},
                   {"(1 + 2) * -3", -9},
                   {"7 % 4", 3},
                   {"two == 2 && word == 'adam'", 1},
                   {"absent ?? two", 2},
                   {"given(absent + 1)", 0},
                   {"two > 3 ? 1 : two >= 2 ? 20 : 30", 20},
                   {"!absent || 1 / 0", 1},
                   {"max(1, two, 3) - min(4, 5)", -1},
                   {"map(word, 'sgd', 1, 'adam', 2, 3)", 2},
                   {"has('core_attn moe', 'core_attn') + has('core_attn', 'core')", 1},
                   {"ceil(7 / 2) + floor(7 / 2)", 7},
                   {"contains(word, 'dam')", 1}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        expression_value v = worked(numbers[i].text);
        if (v.kind != VALUE_NUMBER || v.number != numbers[i].value)
            fail_msg("%s: %g", numbers[i].text, v.number);
    }
    assert_string_equal(worked("text('x', two * 4, word)").text, "x8Adam");
    assert_int_equal(worked("1 / 0").kind, VALUE_ABSENT);
    assert_int_equal(worked("map(two, 1, 2)").kind, VALUE_ABSENT);
    static const char *const wrong[] = {"", "1 +", "(1", "f(1", "'a", "1 2", "a ? b", "=="};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sm_source source = sm_source_of("formula", wrong[i]);
        const expression *e;
        assert_int_equal(expression_parse(&source, (sm_span){0, source.length}, arena, &e, &err),
                         SM_BAD_INPUT);
    }
}

/* ---- frameworks ---- */

static void check_model(const framework_model *m) {
    if (!sm_catalogue_find(m->ours, strlen(m->ours))) fail_msg("the catalogue has no %s", m->ours);
}

static void frameworks_are_sound(void **state) {
    (void)state;
    sm_frameworks *all;
    if (sm_frameworks_shipped(arena, &all, &err))
        fail_msg("%s:%d:%d: %s", err.source, err.line, err.column, err.sentence);
    assert_true(all->n >= 2);
    for (int i = 0; i < all->n; i++) {
        const sm_framework *f = all->of[i];
        for (int k = 0; k < f->models; k++) check_model(&f->model[k]);
        for (int k = 0; k < f->keys; k++)
            if (framework_key_of(f, f->key[k].key) != &f->key[k])
                fail_msg("%s has %s twice", f->name, f->key[k].key);
        for (int k = 0; k < f->keys; k++)
            if (f->key[k].name && !f->key[k].about[0])
                fail_msg("%s: %s does not say what it is", f->name, f->key[k].key);
        assert_true(f->begins > 0 || strcmp(f->form, "json") == 0);
    }
}

/* ---- layouts ---- */

static void layouts_have_megatrons_pattern(void **state) {
    (void)state;
    static const char *const both[][2] = {{"2.3*29.2", "Et*2|(t*3|)*29t*2L"}, {"7.8", "Et*7|t*8L"},
                                          {"0.1*126.0", "E|(t|)*126L"},       {"4*2", "Et*4|t*4L"},
                                          {"1.2.2*3.1", "Et|t*2|(t*2|)*3tL"}, {"5", "Et*5L"}};
    for (size_t i = 0; i < sizeof both / sizeof *both; i++)
        assert_string_equal(pattern_of_layout(both[i][0], arena), both[i][1]);
    assert_string_equal(layout_of_pattern("Ettt|(tt|)*3,m|L", arena), "3.2.2.2.0.0");
    assert_string_equal(layout_of_pattern("Et*3|(tt|)*2t|mL", arena), "3.2.2.1.0");
    assert_string_equal(layout_of_pattern("", arena), "0");
    assert_string_equal(layout_of_pattern("Et()*999999999|t*x", arena), "1.0");
    assert_string_equal(layout_of_pattern("(t*9999)*9999", arena), "0");
    assert_int_equal(sm_plan_layout_chunks("2.3*29.2"), 31);
}

/* ---- there and back ---- */

static const int powers[] = {1, 1, 2, 4, 8};

static int some(sm_rng *rng) { return powers[sm_rng_below(rng, 5)]; }

/* Any layers of any chunk. */
static void random_layout(const sm_model *m, sm_rng *rng, sm_plan *plan) {
    int chunks = plan->pipeline * plan->virtual_stages, left = m->L;
    char text[256] = "layout=";
    for (int c = 0; c < chunks; c++) {
        int n = c == chunks - 1 ? left : (int)sm_rng_below(rng, (uint64_t)(left / 2) + 1);
        left -= n;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", c ? "." : "", n);
    }
    sm_source source = sm_source_of("plan", text);
    sm_plan with = *plan;
    if (sm_plan_change(&source, &with, &err) == SM_OK)
        memcpy(plan->layout, with.layout, sizeof plan->layout);
}

/* A plan of the framework's space, with whatever its search leaves alone as usual. */
static bool random_plan(const sm_framework *f, const sm_model *m, sm_rng *rng, sm_plan *plan) {
    char why[256];
    sm_plan_defaults(plan);
    for (int key = 0; key < SM_PLAN_DEGREES; key++) *sm_plan_degree(plan, key) = some(rng);
    if (m->kind[m->kinds - 1].E == 0) plan->expert = 1;
    plan->zero = plan->fsdp > 1 ? 3 : (int)sm_rng_below(rng, 3);
    plan->microbatch = some(rng);
    if (plan->pipeline > 1 && sm_rng_below(rng, 2)) plan->virtual_stages = 2;
    if (plan->pipeline > 1 && sm_rng_below(rng, 3) == 0) random_layout(m, rng, plan);
    plan->schedule =
        plan->virtual_stages > 1 ? SM_SCHEDULE_INTERLEAVED : (sm_schedule)sm_rng_below(rng, 2);
    plan->recompute = (sm_recompute)sm_rng_below(rng, SM_RECOMPUTE_COUNT);
    plan->offload = (int)sm_rng_below(rng, SM_OFFLOAD_COUNT);
    plan->context_by = (sm_context_by)sm_rng_below(rng, 3);
    plan->seq = sm_rng_below(rng, 2);
    plan->expert_tensor = sm_rng_below(rng, 2);
    plan->dtype = sm_rng_below(rng, 3) ? SM_BF16 : SM_FP8;
    plan->gradient = sm_rng_below(rng, 2) ? SM_BF16 : SM_FP32;
    plan->loss = (int)sm_rng_below(rng, 2);
    sm_plan_settle(plan, m);
    return !sm_plan_refuse(plan, m, why, sizeof why) &&
           !sm_framework_refuses(f, plan, sm_plan_keys_for(plan, m), &(sm_plan_job){.model = m});
}

static bool random_engine(const sm_framework *f, const sm_model *m, sm_rng *rng, sm_plan *plan) {
    char why[256];
    sm_serve_plan_defaults(plan);
    plan->tensor = some(rng), plan->pipeline = some(rng), plan->data = some(rng);
    plan->expert = m->kind[m->kinds - 1].E ? some(rng) : 1;
    plan->expert_tensor = sm_rng_below(rng, 2);
    plan->cache_by = (sm_cache_by)sm_rng_below(rng, 3);
    sm_plan_settle(plan, m);
    uint64_t keys = sm_plan_keys_for(plan, m);
    if (!(keys >> SM_PLAN_CACHE_BY & 1)) plan->cache_by = SM_CACHE_COPIES; /* it means nothing */
    return !sm_plan_refuse(plan, m, why, sizeof why) &&
           !sm_framework_refuses(f, plan, keys, &(sm_plan_job){.model = m});
}

/* ---- what the engines' own parsers take ---- */

/* The kind of an option as tests/engine_flags.txt records it: "int", "float", "flag", "text" or
 * words with bars between them. NULL: the parser has no such option. */
static const char *recorded_kind(const sm_source *flags, const char *engine, const char *option) {
    const char *line = sm_arena_printf(arena, "\n%s %s ", engine, option);
    const char *found = strstr(flags->text, line), *kind = found ? found + strlen(line) : NULL;
    return kind ? sm_arena_copy(arena, kind, strcspn(kind, "\n")) : NULL;
}

static bool is_of_kind(const char *kind, const char *value, size_t n) {
    const char *text = sm_arena_copy(arena, value, n);
    if (strncmp(text, "\"$", 2) == 0) return strcmp(kind, "flag") != 0; /* what a machine says */
    if (strcmp(kind, "flag") == 0) return n == 0;
    if (strcmp(kind, "int") == 0) return n > 0 && strspn(text, "0123456789") == n;
    if (strcmp(kind, "float") == 0) return n > 0 && strspn(text, "0123456789.") == n;
    if (strcmp(kind, "text") == 0) return n > 0;
    const char *bars = sm_arena_printf(arena, "|%s|", kind);
    return n > 0 && strstr(bars, sm_arena_printf(arena, "|%s|", text));
}

/* Each option that is emitted is one that the engine has, with a value that it takes. */
static void is_parsed(const sm_source *flags, const char *engine, const char *text) {
    for (const char *at = text; (at = strstr(at, " --")); at++) {
        const size_t n = strcspn(at + 1, " \n)"), value = strspn(at + 1 + n, " ");
        const char *option = sm_arena_copy(arena, at + 1, n), *from = at + 1 + n + value;
        const char *kind = recorded_kind(flags, engine, option), *line = at;
        while (line > text && line[-1] != '\n') line--;
        if (memchr(line, '#', (size_t)(at - line))) continue; /* a comment */
        const size_t length = *from == '#' ? 0 : strcspn(from, " \n)");
        if (!kind || !is_of_kind(kind, from, length))
            fail_msg("%s does not take %s %.*s\n%s", engine, option, (int)length, from, text);
    }
}

/* Is the plan one that the recipe can say whole? */
static bool comes_back(const sm_frameworks *all, const sm_source *flags, const sm_framework *f,
                       const sm_model *m, const sm_plan *plan) {
    sm_system system;
    char *text, want[768], got[768], *name;
    int cannot = 0;
    double chips = sm_plan_chips(plan);
    name = sm_arena_printf(arena, "h100-sxm:%.0f", chips);
    sm_source on = sm_source_of("--on", name);
    if (sm_system_parse(&on, NULL, 0, &system, &err)) return false; /* no such number of nodes */
    double replicas = (double)plan->data * plan->fsdp * plan->expert;
    bool serves = f->use == SM_PLAN_SERVING;
    sm_recipe_job job = {.model = m,
                         .system = &system,
                         .plan = plan,
                         .batch = replicas * (serves ? 16 : plan->microbatch) * plan->pipeline,
                         .seq = 8192};
    static const char *const types[] = {"bf16", "fp8", "int8", "int4", "nvfp4"};
    static int drawn;
    if (serves) {
        job.weights = types[drawn % 5];
        job.kv = types[drawn / 5 % 5];
        job.role = drawn % 3 == 0 ? NULL : drawn % 3 == 1 ? "prefill" : "decode";
        job.draft = drawn % 2 ? "llama-3.2-1b" : NULL;
        job.eager = drawn % 7 == 0;
        job.drafted = drawn++ % 4;
    }
    if (sm_recipe_write(f, &job, arena, &text, &cannot, &err)) fail_msg("%s", err.sentence);
    if (cannot && !serves) return false;
    if (serves && strcmp(f->name, "jetstream") != 0) is_parsed(flags, f->name, text);
    sm_settings s = settings_of(text);
    sm_recipe recipe;
    sm_recipe_chips there = {system.chip.name, chips, system.level[0].size, system.slices, 1};
    if (sm_recipe_read(all, serves ? f : NULL, f->use, &s, there, &recipe, &err))
        fail_msg("%s\n%s", text, err.sentence);
    if (recipe.framework != f) fail_msg("%s is read as %s", f->name, recipe.framework->name);
    sm_source read = sm_source_of("read", recipe.plan);
    sm_plan back;
    if ((serves ? sm_serve_plan_parse : sm_plan_parse)(&read, &back, &err))
        fail_msg("%s\n%s", recipe.plan, err.sentence);
    sm_plan_settle(&back, m);
    sm_plan_format(plan, 0, want, sizeof want);
    sm_plan_format(&back, 0, got, sizeof got);
    if (strcmp(want, got) != 0) fail_msg("was %s\nis  %s\n%s", want, got, text);
    if (serves && !cannot && recipe.kv && strcmp(recipe.kv, job.kv) != 0)
        fail_msg("a cache of %s, not %s\n%s", recipe.kv, job.kv, text);
    if (recipe.batch != job.batch || (recipe.seq > 0 && recipe.seq != job.seq))
        fail_msg("%s\nbatch %g, not %g; length %g", text, recipe.batch, job.batch, recipe.seq);
    return true;
}

static void a_plan_comes_back_from_its_recipe(void **state) {
    (void)state;
    static const char *const names[] = {"llama-3.1-70b", "mixtral-8x7b"};
    sm_frameworks *all;
    sm_rng rng = {5};
    sm_source flags;
    assert_int_equal(sm_io_read("tests/engine_flags.txt", arena, &flags, &err), SM_OK);
    assert_int_equal(sm_frameworks_shipped(arena, &all, &err), SM_OK);
    for (int i = 0; i < all->n; i++) {
        int plans = 0;
        for (int k = 0; k < 2; k++) {
            sm_model m;
            assert_int_equal(sm_io_model_load(names[k], arena, &m, &err), SM_OK);
            if (sm_framework_is_program(all->of[i])) continue; /* nothing to be read */
            if (all->of[i]->models && !framework_model_theirs(all->of[i], names[k])) continue;
            for (int n = 0; n < 4000 && plans < 60 * (k + 1); n++) {
                sm_plan plan;
                bool trains = all->of[i]->use == SM_PLAN_TRAINING;
                if (!(trains ? random_plan : random_engine)(all->of[i], &m, &rng, &plan)) continue;
                plans += comes_back(all, &flags, all->of[i], &m, &plan);
            }
        }
        if (plans < 5 && !sm_framework_is_program(all->of[i]))
            fail_msg("%s: only %d plans", all->of[i]->name, plans);
    }
}

/* ---- out of memory ---- */

static const char *const small[] = {
    ("N=2\nA=(--tensor-model-parallel-size $N --num-layers 4 --hidden-size 64)\n"
     "torchrun --nproc_per_node 8 --nnodes $((N * 2)) x.py \"${A[@]}\" --lr 1 --bf16 "
     "--num-attention-heads 4 --seq-length 128 --global-batch-size 64 --swiglu"),
    ("model_name: llama3.1-8b\nici_fsdp_parallelism: 8\nper_device_batch_size: 2\n"
     "args: [--a, 'b c']\n"),
    "[training]\nseq_len = 64\n[model]\nname = \"llama3\"\nflavor = '8B'\n",
    "{\"zero_optimization\": {\"stage\": 3}, \"train_micro_batch_size_per_gpu\": 1}"};

typedef struct outcome {
    sm_status status;
    char plan[512];
    int notes;
    double batch;
} outcome;

static outcome read_small(const sm_frameworks *all, const char *text) {
    outcome out = {.status = SM_INTERNAL};
    sm_arena *own = sm_arena_new();
    sm_source source = sm_source_of("recipe", text);
    sm_settings s;
    sm_recipe recipe;
    sm_error why;
    out.status = own ? sm_io_settings(&source, own, &s, &why) : SM_INTERNAL;
    if (!out.status)
        out.status = sm_recipe_read(all, NULL, SM_PLAN_TRAINING, &s,
                                    (sm_recipe_chips){"h100-sxm", 32, 8, 1, 1}, &recipe, &why);
    if (!out.status) {
        snprintf(out.plan, sizeof out.plan, "%s", recipe.plan);
        out.notes = recipe.notes;
        out.batch = recipe.batch;
    }
    sm_arena_free(own);
    return out;
}

/* A recipe read with an allocation refused is an error, or the same recipe. */
static void any_allocation_may_fail(void **state) {
    (void)state;
    sm_frameworks *all;
    assert_int_equal(sm_frameworks_shipped(arena, &all, &err), SM_OK);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        outcome whole = read_small(all, small[i]);
        assert_int_equal(whole.status, SM_OK);
        FOR_EACH_FAILING_ALLOCATION(loop) {
            outcome out = read_small(all, small[i]);
            if (out.status == SM_INTERNAL) continue;
            assert_int_equal(out.status, SM_OK);
            assert_string_equal(out.plan, whole.plan);
            assert_true(out.notes == whole.notes && out.batch == whole.batch);
        }
    }
}

static int begin(void **state) {
    (void)state;
    arena = sm_arena_new();
    return arena ? 0 : -1;
}
static int end(void **state) {
    (void)state;
    sm_arena_free(arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_scripts),
        cmocka_unit_test(here_documents),
        cmocka_unit_test(files_of_settings),
        cmocka_unit_test(what_is_no_recipe_is_refused),
        cmocka_unit_test(formulas),
        cmocka_unit_test(frameworks_are_sound),
        cmocka_unit_test(layouts_have_megatrons_pattern),
        cmocka_unit_test(a_plan_comes_back_from_its_recipe),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
