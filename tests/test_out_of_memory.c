/* Every verb of the command line with its n-th allocation refused: it says "out of memory" with
 * status 5, or, where the C library manages without, gives the very answer it gives otherwise;
 * never another, and it never crashes or hangs.
 *
 * A child process runs each command, so that a crash is one failure. Under glibc this file's malloc
 * takes the place of the library's, and so what streams, jansson and zlib ask for is refused too;
 * under a sanitizer, which has a malloc of its own, what passes through sm_malloc is.
 *
 * The suite looks at some 24 of each command's allocations, under a sanitizer at 5, drawn; SEED:
 * others. With FAILING_ALLOC=all, as `make test-all` has it, it looks at each of them, and at
 * `measure`. OUT_OF_MEMORY=INDEX:N runs one, in this process, for a debugger; OUT_OF_MEMORY='VERB
 * WORDS' looks at this alone, and a program's word at the lines that match it.
 */
#define _GNU_SOURCE
#include "unit.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "ranks.h"
#include "sanitized.h"
#include "scalemodel/base.h"

#if !SANITIZED && defined(__GLIBC__)
#define OWN_MALLOC 1
#else
#define OWN_MALLOC 0
#endif

#if OWN_MALLOC
static atomic_long asked, refused_from, refused_to;
static bool refused(void) {
    long n = atomic_fetch_add(&asked, 1) + 1;
    bool no = n >= atomic_load(&refused_from) && n <= atomic_load(&refused_to);
    if (no) errno = ENOMEM;
    return no;
}
#pragma GCC visibility push(default) /* what libraries call too */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *malloc(size_t bytes) { return refused() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return refused() ? NULL : __libc_calloc(count, bytes); }
void *realloc(void *block, size_t bytes) { return refused() ? NULL : __libc_realloc(block, bytes); }
#pragma GCC visibility pop
static long asked_so_far(void) { return atomic_load(&asked); }
static void refuse(long n, bool all) {
    atomic_store(&refused_to, n == 0 ? 0 : all ? INT32_MAX : asked_so_far() + n);
    atomic_store(&refused_from, n == 0 ? INT32_MAX : asked_so_far() + n);
}
#else
static long asked_so_far(void) { return (long)sm_allocation_count(); }
static void refuse(long n, bool all) {
    (void)all;
    sm_allocation_fail_at((uint64_t)n);
}
#endif

/* ---- the commands ---- */

static const cli_verb *const rank_verbs[] = {
    &run_matmul_verb,   &run_collective_verb, &measure_verb,  &run_train_verb,
    &run_generate_verb, &run_serve_verb,      &run_sweep_verb};
static const cli_program on_ranks = {
    .name = "scalemodel run", .verb = rank_verbs, .verbs = sizeof rank_verbs / sizeof *rank_verbs};

#define INPUTS "tests/cli/inputs/"
#define TINY                                                                                       \
    "run train " INPUTS "tiny-llama.json --data " INPUTS                                           \
    "tiny-llama.json --seq 16 --steps 2 --with "

#define TRACES "profile " INPUTS "traces/"

/* Words between blanks; '~' is a blank within a word. What is written goes to a folder of its own,
 * in which "out" is the answer and "file" what is beside it. */
static const char *lines[] = {
    "chip",
    "chip h100-sxm --explain",
    "chip tpu-v5e --calibration --json",
    "chip h100-lab --system " INPUTS "lab.json --json -o file",
    "model",
    "model llama-3.1-8b --explain",
    "model data/models/mixtral-8x7b/config.json --json",
    "model " INPUTS "not-json.json",
    "model " INPUTS "beside/config.json --json",
    "model " INPUTS "beside/index/config.json --json",
    "model " INPUTS "beside/other/config.json",
    "mfu llama-3.1-8b h100-sxm:8 --from ours@2024~40~% --explain --codebases " INPUTS
    "codebase.json",
    "mfu qwen3-8b h100-sxm:8 --json",
    "design machines.json --threads 1 --json",
    "profile tests/cli/inputs/profile/cpu8.scan.hlo.pb.gz --on tpu-v5e:2x4 --html file --json "
    "--against tests/cli/inputs/profile/cpu8.tp.hlo.txt.gz",
    "profile tests/cli/inputs/profile/cpu8.llama_tp.hlo.txt.gz --on tpu-v5e:2x4 --model "
    "tests/cli/inputs/profile/llama.json --plan data=2,tensor=4,zero=0,microbatch=8 --batch 6144 "
    "--seq 384 --json",
    "reshard " INPUTS "spmd.log --on tpu-v5e:2x4 --json",
    "plan fsdp=8,tensor=4,microbatch=2 --json",
    "sweep --threads 1 --over what-if.hbm=1..2 --csv train llama-3.2-1b --on h100-sxm:2 --batch "
    "64k "
    "--plan data=2,microbatch=1",
    "sweep --threads 1 --over what-if.hbm=1..2 -o file roofline B[B,D]~W[D,F] --dims B=1,D=8,F=8 "
    "--on tpu-v5e",
    "run sweep --with threads --ranks 2 --over what-if.hbm=1..2 -o file roofline B[B,D]~W[D,F] "
    "--dims B=1,D=8,F=8 --on tpu-v5e",
    "roofline B[B,D]~W[D,F] --dims B=1..4096,D=4096,F=4096 --on tpu-v5e --csv",
    "matmul A[I_X,J]~B[J_X,K_Y]~->~C[I_X,K_Y] --mesh X=4,Y=4 --dims I=4096,J=4096,K=4096 --on "
    "tpu-v5e:4x4 --explain",
    "matmul A[I_X,J]~B[J_X,K_Y]~->~C[I_X,K_Y] --mesh X=4,Y=4 --dims I=4096,J=4096,K=4096 --on "
    "tpu-v5e:4x4 --json",
    "collective all-gather 1MB..16MB --on tpu-v5e:4x4 --json",
    "train llama-3.1-8b --on h100-sxm:8 --batch 1M --plan fsdp=8,microbatch=1,lora=16,"
    "parameters=nf4 --explain --tokens 1T --checkpoint 9s --repair 1d",
    "train llama-3.1-8b --on h100-sxm:8 --batch 1M --plan fsdp=8,microbatch=1 --as-run --json",
    "train llama-3.1-8b --on h100-sxm:8 --batch 64seqs --plan fsdp=8,microbatch=1 --method ppo "
    "--rollout h100-sxm:2 --reward llama-3.2-1b --explain",
    "train llama-3.2-1b --on h100-sxm:2 --batch 64k --top 2 --json --threads 1",
    "train llama-3.2-1b --on h100-sxm:2 --batch 64k --threads 2 --csv -o file",
    "train mixtral-8x7b --on h100-sxm:2x8 --batch 1M --plan expert=8,data=2,microbatch=1 "
    "--timeline file",
    "serve llama-3.1-8b --on h100-sxm:2 --plan tensor=2 --engine " INPUTS "engine.json --json",
    "serve llama-3.1-8b --on h100-sxm:2 --plan tensor=2 --batch 4 --explain",
    "serve llama-3.1-8b --on h100-sxm:2 --concurrency 4 --json",
    "serve llama-3.1-8b --on h100-sxm:2 --qps 5 --plot file",
    "serve llama-3.1-8b --on h100-sxm:4 --disaggregated --qps 5 --tpot 50ms --csv",
    "simulate llama-3.1-8b --on h100-sxm:1 --plan tensor=1 --arrivals poisson:4/s --requests 60 "
    "--json --timeline file",
    "simulate mixtral-8x7b --on h100-sxm:3 --plan expert=3 --arrivals poisson:4/s --requests 20",
    "simulate llama-3.1-8b --on h100-sxm:1 --plan tensor=1 --trace prefixes.csv --prefix-cache "
    "--csv file",
    "simulate llama-3.1-8b --on h100-sxm:1 --plan tensor=1 --arrivals poisson:4/s --requests 60 "
    "--ttft 1s --tpot 50ms --find-max-qps --plot file",
    "validate " INPUTS "measured-gemm.csv --plot file --json",
    "validate " INPUTS "benchmarks/inferencex.json --set chips=8 --chip absent",
    "support llama-3.1-8b h100-sxm:2 --top 2 --json",
    "validate " INPUTS "measured-training.jsonl --explain",
    "calibrate " INPUTS "steps.jsonl --chip h100-sxm -o file",
    "calibrate " INPUTS "measured-gemm.csv --chip h100-sxm --json",
    "calibrate " INPUTS "traces/kineto-rank1.json.gz --chip h100-sxm",
    "run matmul A[I_X,J]~B[J_X,K]~->~C[I_X,K] --mesh X=2 --dims I=16,J=16,K=16 --all --repeats 1 "
    "--with threads --json",
    "run collective all-reduce 1kB..2kB --mesh X=2 --dtype int --with threads --csv",
    TINY "self --plan data=1 --checkpoint file --record rows --json",
    TINY "threads --plan data=2,zero=1 --curve file --debug",
    TINY "threads --plan pipeline=2,microbatch=1 --plot file",
    "run train " INPUTS "tiny-llama.json --data " INPUTS
    "pairs.jsonl --method dpo --seq 32 --steps 1 "
    "--with threads --plan data=2 --json",
    "run generate " INPUTS "tiny-llama.json --checkpoint model.safetensors --prompt a --tokens 3 "
    "--with threads --plan fsdp=2 --weights fp8 --json",
    "run serve " INPUTS
    "tiny-llama.json --checkpoint model.safetensors --concurrency 2 --requests 3 "
    "--prompt 9 --output 4 --longest 16 --page 4 --batch 2 --chunk 8 --prefix-cache --with threads "
    "--weights int8 --plan tensor=2 --csv file --json",
    "train --from recipe.sh --on h100-sxm --max tensor=1,pipeline=1,context=1 --threads 1 --json",
    "train --from recipe.yaml --on tpu-v5e:2x2 --max tensor=1,pipeline=1,context=1 --threads 1 "
    "--framework maxtext --csv",
    "train llama-3.2-1b --on tpu-v5e:2x2 --batch 16seqs --plan "
    "fsdp=4,tensor=1,microbatch=1,recompute=full --framework mine --frameworks mine.json "
    "--emit mine -o file",
    "train llama-3.1-8b --on h100-sxm:8 --batch 64seqs --plan fsdp=8,microbatch=1 "
    "--emit megatron-lm",
    "train llama-3.2-1b --on tpu-v5e:2x2 --batch 16seqs --plan fsdp=4,microbatch=1 --emit jax",
    "serve --from engine.toml --on h100-sxm:2 --emit vllm -o file",
    "train llama-3.2-1b --on h100-sxm:2,a100:2 --batch 64k --plan fsdp=2,microbatch=1 --json",
    "train llama-3.2-1b --on h100-sxm:2 --batch 64k --plan fsdp=2,microbatch=1 --against "
    "tensor=2,microbatch=1 --what-if link=2x,hbm=1.5x --sensitivity --json",
    "train llama-3.2-1b --on h100-sxm:2,a100:2 --batch 64k --threads 1 --tokens 1B --json",
    "train llama-3.2-1b --on h100-sxm:2 --batch 64k --threads 1 --what-if hbm=1.5x --json",
    "serve llama-3.2-1b --on h100-sxm:2,a100:2 --qps 5 --ttft 1s --json",
    "train llama-3.2-1b --on h100-sxm,a100 --batch 256k --plan "
    "microbatch=1,tensor=1,recompute=none "
    "--tokens 100B --within 30d --budget 100k --threads 1 --csv",
    "train llama-3.2-1b --on h100-sxm:2 --batch max --within 1s --plan fsdp=2,microbatch=1 --json",
    "train tests/cli/inputs/profile/llama.json --on tpu-v5e:2x4 --batch 6144 --seq 384 --plan "
    "data=2,tensor=4,zero=0,microbatch=8 --against "
    "tests/cli/inputs/profile/cpu8.llama_tp.hlo.txt.gz",
    TRACES "kineto-rank0.json " INPUTS
           "traces/kineto-rank1.json.gz --on h100-sxm --html file --json",
    TRACES "kineto-rank0.json --against " INPUTS "traces/kineto-2021.json --timeline file --csv",
    TRACES "jax-tpu.trace.json --top 3",
    TRACES "interned.perfetto.pb --json",
    TRACES "nsys.sqlite.gz --on h100-sxm",
    TRACES "cuda_gpu_trace.csv --partial --explain",
    "profile tests/cli/inputs/traces --json",
    "profile " INPUTS "profile/cut.hlo --on tpu-v5e --partial",
    "profile " INPUTS "profile/loop.mlir --on tpu-v5e:2x4",
    "reshard bf16[16,4096] --from {devices=[8,1]<=[8]} --to {devices=[1,8]<=[8]} --on h100-sxm "
    "--explain",
    "roofline B[B,D]~W[D,F] --dims B=1..64,D=4096,F=4096 --on tpu-v5e --plot file",
    "matmul A[I_X,J]~B[J,K]~->~C[I_X,K] --mesh X=4 --dims I=4095,J=4096,K=33 --on tpu-v5e:4x1",
    "matmul A[I_X,I]~B[I,K] --mesh X=4 --dims I=4095,K=33 --on tpu-v5e:4x1",
    "simulate llama-3.1-8b --on h100-sxm:1 --plan tensor=1 --concurrency 4 --think 1s --turns 2 "
    "--range-ratio 0.8 --requests 20 --json",
    "run measure --quick --with self -o file",
};
enum {
    LINES = sizeof lines / sizeof *lines,
    MOST_WORDS = 64,
    SAMPLES = SANITIZED ? 5 : 24,
    LIMIT_S = 120
};

/* Of conversations and of prompts with a common beginning. */
static const char prefixes[] =
    "timestamp,input_length,output_length,session_id\n0,600,20,a\n100,300,20,b\n900,1200,20,a\n";

static const char script[] =
    "N=${N:-1}\nA=(--tensor-model-parallel-size $((N * 2)) --num-layers 4 --hidden-size 256)\n"
    "torchrun --nproc_per_node 2 --nnodes $N x.py \"${A[@]}\" --lr 1 --bf16 --vocab-size 1024 "
    "--num-attention-heads 4 --seq-length 128 --global-batch-size 8 --micro-batch-size 1 "
    "--swiglu --ffn-hidden-size 512\n";
static const char recipe[] =
    "base_emb_dim: 256\nbase_num_decoder_layers: 2\nbase_num_query_heads: 4\n"
    "base_num_kv_heads: 4\nbase_mlp_dim: 512\nhead_dim: 64\nvocab_size: 1024\n"
    "ici_fsdp_parallelism: 4\nper_device_batch_size: 2\nremat_policy: full\n"
    "learning_rate: 1e-4\n";
static const char engine[] = "model = \"meta-llama/Llama-3.1-8B\"\ntensor-parallel-size = 2\n"
                             "max-num-seqs = 16\nkv-cache-dtype = 'fp8'\n";
static const char framework[] =
    "{\"name\": \"mine\", \"title\": \"Mine\", \"version\": \"1\", \"for\": \"training\", "
    "\"form\": \"json\", \"like\": \"maxtext\", \"keys\": [{\"key\": \"a.tp\", \"write\": "
    "\"text(tensor, 'x', fsdp)\"}], \"rules\": [{\"key\": \"dtype\", \"values\": [\"bf16\"], "
    "\"when\": \"fsdp > 1\"}], \"cannot\": [{\"when\": \"fsdp > 2\", \"say\": \"so\"}]}";

static const char machines[] =
    "{\"over\": {\"on\": \"a100-80:1,h100-sxm:1\"}, \"work\": [{\"ask\": [\"serve\", "
    "\"llama-3.2-1b\", \"--plan\", \"tensor=1\", \"--batch\", \"8\"]}]}";

static const struct {
    const char *name, *text;
} inputs[] = {{"prefixes.csv", prefixes}, {"recipe.sh", script},    {"recipe.yaml", recipe},
              {"engine.toml", engine},    {"mine.json", framework}, {"machines.json", machines}};
enum { FILES = sizeof inputs / sizeof *inputs };

static char folder[] = "/tmp/out-of-memory-XXXXXX"; /* where children write */

/* ---- one run ---- */

/* How a command ended, and all it wrote: its answer, its error, its file, each ended by a zero. */
typedef struct outcome {
    int status;
    char *said;
    size_t length;
    long allocations;
} outcome;

static long *shared; /* with the child: allocations of the command */

static int open_in_folder(const char *name, int flags) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, flags | O_CLOEXEC, 0600);
    assert_true(file >= 0 || errno == ENOENT);
    return file;
}

static void delete (const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

static int split(const char *line, char *room, char **argv) {
    int n = 0;
    strcpy(room, line);
    for (char *at = strtok(room, " "); at; at = strtok(NULL, " ")) {
        assert_true(n < MOST_WORDS - 2);
        for (char *c = at; *c; c++)
            if (*c == '~') *c = ' ';
        argv[n++] = at;
    }
    argv[n] = NULL;
    return n;
}

/* In a child: paths of the repository, outputs in the folder. */
static int command(const char *line, long n, bool all) {
    static char words[512], paths[MOST_WORDS][512];
    char *argv[MOST_WORDS] = {words}, *own[MOST_WORDS];
    static char name[] = "scalemodel", here[256];
    int count = split(line, words, own), argc = 1;
    bool ranks = strcmp(own[0], "run") == 0;
    assert_non_null(getcwd(here, sizeof here - 1));
    argv[0] = name;
    for (int i = ranks; i < count; i++) {
        bool input = strncmp(own[i], "tests/", 6) == 0 || strncmp(own[i], "data/", 5) == 0;
        if (input) snprintf(paths[i], sizeof paths[i], "%s/%s", here, own[i]);
        argv[argc++] = input ? paths[i] : own[i];
    }
    argv[argc] = NULL;
    if (chdir(folder) != 0) return 255;
    refuse(n, all);
    long before = asked_so_far();
    int status = cli_main(ranks ? &on_ranks : &cli_scalemodel, argc, argv);
    *shared = asked_so_far() - before;
    refuse(0, false);
    return status;
}

static void append(outcome *o, const char *name) {
    int file = open_in_folder(name, O_RDONLY);
    struct stat is = {.st_size = 0};
    if (file >= 0) fstat(file, &is);
    o->said = realloc(o->said, o->length + (size_t)is.st_size + 1);
    assert_non_null(o->said);
    if (file >= 0)
        assert_int_equal(read(file, o->said + o->length, (size_t)is.st_size), is.st_size);
    o->length += (size_t)is.st_size;
    o->said[o->length++] = '\0';
    if (file >= 0) close(file);
}

/* What a search took differs from run to run. */
static void without_seconds(outcome *o) {
    static const char *const before[] = {"\"seconds\": ", "The search took "};
    for (size_t i = 0; i < 2; i++)
        for (char *at = o->said, *end = at + o->length;
             (at = memmem(at, (size_t)(end - at), before[i], strlen(before[i]))) != NULL;) {
            at += strlen(before[i]);
            size_t n = strcspn(at, ",\n}");
            memmove(at, at + n, (size_t)(end - at) - n);
            end -= n;
            o->length -= n;
        }
}

/* What commands write by the names that they were given, and what a sweep resumes from. */
static const char *const outputs[] = {"out",  "err",      "file",  "file.sweep",
                                      "rows", "file.txt", "file2", "model.safetensors"};
enum { OUTPUTS = sizeof outputs / sizeof *outputs, WRITTEN_ANEW = 4 };

/* Nothing else is left behind, whatever ended the command. */
static bool is_tidy(void) {
    bool tidy = true;
    DIR *all = opendir(folder);
    assert_non_null(all);
    for (struct dirent *e; (e = readdir(all)) != NULL;) {
        bool known = e->d_name[0] == '.' && strspn(e->d_name, ".") == strlen(e->d_name);
        for (size_t i = 0; i < OUTPUTS; i++) known |= strcmp(e->d_name, outputs[i]) == 0;
        for (int i = 0; i < FILES; i++) known |= strcmp(e->d_name, inputs[i].name) == 0;
        if (known) continue;
        print_error("%s is left\n", e->d_name);
        delete (e->d_name);
        tidy = false;
    }
    closedir(all);
    return tidy;
}

static void take(const char *line, long n, bool all, outcome *o) {
    *o = (outcome){.status = -1};
    for (int i = 0; i < WRITTEN_ANEW; i++) delete (outputs[i]);
    int out = open_in_folder("out", O_RDWR | O_CREAT),
        err = open_in_folder("err", O_RDWR | O_CREAT);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(out, STDOUT_FILENO);
        dup2(err, STDERR_FILENO);
        signal(SIGSEGV, SIG_DFL); /* which cmocka catches */
        signal(SIGABRT, SIG_DFL);
        alarm(LIMIT_S);
        _exit(command(line, n, all));
    }
    close(out);
    close(err);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    o->status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    o->allocations = *shared;
    append(o, "out");
    append(o, "err");
    append(o, "file");
    without_seconds(o);
}

/* ---- every run ---- */

/* What runs on ranks tells what the clock told, which no two runs have alike. */
static bool is_timed(const char *line) { return strncmp(line, "run ", 4) == 0; }

static bool same(const outcome *a, const outcome *b) {
    return a->length == b->length && memcmp(a->said, b->said, a->length) == 0;
}

/* A thread that cannot be started is no sign of which resource it lacked. */
static bool says_so(const outcome *o) {
    static const char sentence[] = "out of memory\n";
    const char *error = o->said + strlen(o->said) + 1;
    size_t length = strlen(error), wanted = sizeof sentence - 1;
    if (o->status == SM_IO && strstr(error, "the system refused to start a thread")) return true;
    return o->status == SM_INTERNAL && o->said[0] == '\0' && length >= wanted &&
           strcmp(error + length - wanted, sentence) == 0;
}

static bool holds(const char *line, long n, bool all, const outcome *usual) {
    outcome o;
    take(line, n, all, &o);
    bool answered = o.status == usual->status && (is_timed(line) || same(&o, usual));
    bool good = is_tidy() && (answered || says_so(&o));
    if (!good)
        print_error("%s: %s allocation %ld of %ld: status %d%s: %.200s\n", line,
                    all ? "all from" : "only", n, usual->allocations, o.status,
                    o.status == usual->status ? ", another answer" : "",
                    o.said + strlen(o.said) + 1);
    free(o.said);
    return good;
}

/* Measuring takes its time, the longer the less idle the machine is. */
static bool is_left_to_the_flag(const char *line) { return strstr(line, " measure ") != NULL; }

static void check_line(void **state) {
    const char *line = *state;
    bool each = getenv("FAILING_ALLOC") != NULL;
    if (!each && is_left_to_the_flag(line)) skip();
    outcome usual;
    take(line, 0, false, &usual);
    if (usual.status > SM_BAD_INPUT) print_error("%s\n", usual.said + strlen(usual.said) + 1);
    assert_true(usual.status <= SM_BAD_INPUT);
    long step = each ? 1 : usual.allocations / SAMPLES + 1, bad = 0;
    long first = 1 + (long)(drawn_from(0) % (uint64_t)step);
    for (long n = first; n <= usual.allocations; n += step) bad += !holds(line, n, false, &usual);
    for (long n = first; n <= usual.allocations; n += 4 * step)
        bad += !holds(line, n, true, &usual);
    if (each) print_message("%6ld allocations, %ld bad: %s\n", usual.allocations, bad, line);
    free(usual.said);
    assert_int_equal(bad, 0);
}

static bool make_inputs(void) {
    bool written = true;
    for (int i = 0; i < FILES; i++) {
        ssize_t n = (ssize_t)strlen(inputs[i].text);
        int file = open_in_folder(inputs[i].name, O_WRONLY | O_CREAT);
        written = write(file, inputs[i].text, (size_t)n) == n && written;
        close(file);
    }
    return written;
}

/* What `run generate` reads. */
static bool make_checkpoint(void) {
    outcome o;
    take(TINY "self --plan data=1 --checkpoint model.safetensors", 0, false, &o);
    free(o.said);
    return o.status == SM_OK;
}

/* OUT_OF_MEMORY=INDEX:N */
static int run_one(const char *asked_for) {
    char *end;
    long index = strtol(asked_for, &end, 10), n = *end == ':' ? strtol(end + 1, NULL, 10) : 0;
    return index >= 0 && index < LINES ? command(lines[index], n, false) : 2;
}

/* OpenBLAS's small products for AVX-512 do not look at what malloc gave them; those for Haswell ask
 * for nothing; products of several threads end the process. It chooses as it is loaded, so this
 * program begins again. */
static void with_plain_blas(char **argv) {
    const char *threads = getenv("OPENBLAS_NUM_THREADS");
    bool wide = false;
#ifdef __x86_64__
    wide = __builtin_cpu_supports("avx512f") && !getenv("OPENBLAS_CORETYPE");
#endif
    if (!wide && threads && strcmp(threads, "1") == 0) return;
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    if (wide) setenv("OPENBLAS_CORETYPE", "Haswell", 1);
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv) {
    static struct CMUnitTest tests[LINES];
    with_plain_blas(argv);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const char *how = getenv("OUT_OF_MEMORY");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || !mkdtemp(folder)) return 1;
    bool written = make_inputs();
    refuse(0, false);
    if (how && how[0] >= '0' && how[0] <= '9') return run_one(how);
    if (how && strchr(how, ' ')) lines[0] = how, cmocka_set_test_filter(how);
    for (size_t i = 0; i < LINES; i++)
        tests[i] = (struct CMUnitTest){.name = lines[i],
                                       .test_func = check_line,
                                       .initial_state = (void *)(uintptr_t)lines[i]};
    written = written && make_checkpoint();
    int failed = written ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
    for (size_t i = 0; i < OUTPUTS; i++) delete (outputs[i]);
    for (int i = 0; i < FILES; i++) delete (inputs[i].name);
    rmdir(folder);
    return failed;
}
