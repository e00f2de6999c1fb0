/* measure: the rooflines of this machine, as a chip and constants that every verb reads. */
#include <stdlib.h>
#include <string.h>

#include "measured_training.h"
#include "measuring.h"
#include "run_verbs.h"
#include "scalemodel/io.h"

typedef struct measure_values {
    ranks_values ranks;
    const char *count, *name, *output, *constants, *plot;
    bool quick;
} measure_values;

#define TEXT(name, letter, member, value, help)                                                    \
    { name, letter, CLI_TEXT, offsetof(measure_values, member), value, help }

static const cli_option measure_table[] = {
    TEXT("ranks", 0, count, "N",
         "measure on N ranks at once, a core each (one for each processor of the machine)"),
    RANKS_OPTIONS(measure_values, ranks),
    {"quick", 0, CLI_FLAG, offsetof(measure_values, quick), NULL,
     "fewer shapes and sizes, and fewer repeats: seconds instead of a minute"},
    TEXT("name", 0, name, "NAME", "what the chip is called (cpu-measured, gpu-measured)"),
    TEXT("output", 'o', output, "FILE",
         "write the chip to FILE, for --system FILE, and its constants beside it"),
    TEXT("constants", 0, constants, "FILE",
         "write the constants to FILE, for --calibration FILE (that of -o with .txt for .json)"),
    TEXT("plot", 0, plot, "FILE.svg", "draw the roofline with what was measured"),
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

/* ---- reading ---- */

static bool is_name(const char *text) {
    enum { MOST_NAME = 40 };
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    size_t n = strlen(text);
    if (n == 0 || n > MOST_NAME || !strchr(first, text[0])) return false;
    return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

/* As many as a launcher has started, or one for each processor. */
static int usual_ranks(const machine *m) {
    enum { MOST_USUAL = 64 };
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"};
    for (int i = 0; i < 3; i++) {
        const char *text = getenv(variables[i]);
        int n = text ? atoi(text) : 0;
        if (n > 0) return n;
    }
    return m->cpus < MOST_USUAL ? m->cpus : MOST_USUAL;
}

/* "machine.json" -> "machine.txt"; "machine" -> "machine.txt". */
static const char *beside(sm_arena *arena, const char *output) {
    size_t n = strlen(output);
    if (n > 5 && strcmp(output + n - 5, ".json") == 0) n -= 5;
    return sm_arena_printf(arena, "%.*s.txt", (int)n, output);
}

static sm_status read_files(const measure_values *given, measuring *q, sm_error *err) {
    const char *path[] = {given->output, given->constants, given->plot};
    static const char *const option[] = {"output", "constants", "plot"};
    for (int i = 0; i < 3; i++)
        if (path[i] && !path[i][0])
            return sm_fail(err, SM_USAGE, "--%s needs the name of a file", option[i]);
    q->output = given->output;
    q->plot = given->plot;
    q->constants = given->constants;
    if (q->output && !q->constants) q->constants = beside(q->call->arena, q->output);
    if (q->output && !q->constants) return sm_fail_memory(err);
    const char *const written[] = {q->output, q->constants, q->plot};
    sm_status status = SM_OK;
    for (int i = 0; !status && i < 3 && ranks_are_here(); i++)
        if (written[i]) status = sm_io_write_check(written[i], err);
    return status;
}

/* --with cuda: not the processors but the GPUs. */
static bool is_gpu(const measure_values *given) {
    return given->ranks.with && strcmp(given->ranks.with, "cuda") == 0;
}

static sm_status read_options(measuring *q, int64_t *ranks, sm_error *err) {
    const measure_values *given = q->call->values;
    q->name = given->name ? given->name : is_gpu(given) ? "gpu-measured" : "cpu-measured";
    if (!is_name(q->name)) {
        sm_source source = sm_source_of("--name", q->name);
        return sm_fail_at(err, &source, (sm_span){0, source.length},
                          "a name has 1 to 40 letters, digits, \".\", \"_\" and \"-\", and begins "
                          "with a letter or digit");
    }
    sm_status status = read_files(given, q, err);
    if (!status) status = machine_read(q->call->arena, &q->machine, err);
    if (!status && is_gpu(given) && given->count)
        status = sm_fail(err, SM_USAGE, "--with cuda measures every GPU it finds: no --ranks");
    if (status) return status;
    *ranks =
        given->ranks.with && strcmp(given->ranks.with, "self") == 0 ? 1 : usual_ranks(&q->machine);
    return cli_whole("--ranks", given->count, 1, 4096, ranks, err);
}

/* ---- measuring ---- */

/* Arrays beyond the caches: together four times the last cache, an eighth of the memory at most. */
static size_t stream_bytes(const machine *m, int64_t ranks, bool quick) {
    size_t most = (size_t)(m->memory_bytes / 8.0) / 3 / (size_t)ranks;
    size_t least = (size_t)8 << 20, cache = m->last_cache_bytes;
    size_t wanted = (quick ? cache : 4 * cache) / (size_t)ranks;
    if (wanted > most) wanted = most;
    return wanted > least ? wanted : least;
}

static sm_measure_job make_job(const measuring *q, int64_t ranks) {
    const measure_values *given = q->call->values;
    size_t near = q->machine.private_cache_bytes / 2;
    return (sm_measure_job){.quick = given->quick,
                            .budget_s = given->quick ? 0.03 : 0.3,
                            .most_repeats = given->quick ? 21 : 201,
                            .stream_bytes = stream_bytes(&q->machine, ranks, given->quick),
                            .cached_bytes = near > 65536 ? near : 65536,
                            .out = q->found};
}

static sm_status run_measure(const cli_call *call, sm_report *r, sm_error *err) {
    const measure_values *given = call->values;
    measuring *q = sm_arena_alloc(call->arena, sizeof *q);
    int64_t ranks = 1;
    if (!q) return sm_fail_memory(err);
    q->call = call;
    q->found = sm_arena_alloc(call->arena, sizeof *q->found);
    sm_status status = q->found ? read_options(q, &ranks, err) : sm_fail_memory(err);
    if (status) return status;
    sm_measure_job job = make_job(q, ranks);
    sm_train_setup *trainings = NULL;
    if (!is_gpu(given)) status = measured_runs(q, (int)ranks, given->quick, &trainings, err);
    job.training = trainings;
    job.trainings = q->runs;
    if (status) return status;
    if (is_gpu(given)) status = ranks_measure_gpus(call, &job, &q->gpu, err);
    else status = ranks_run(call, &given->ranks, (int)ranks, sm_measure_body, &job, err);
    if (status || !ranks_speak()) return status;
    q->backend = ranks_backend();
    status = measured_chip(q, err);
    if (!status) status = measured_files(q, err);
    if (!status) measured_page(r, q);
    return status;
}

const cli_verb measure_verb = {
    .name = "measure",
    .summary = "the rooflines of this machine, for --system and --calibration",
    .arguments = "",
    .options = measure_table,
    .values_bytes = sizeof(measure_values),
    .without_system = true,
    .notes =
        "--with cuda measures the GPUs of this machine, where the CUDA toolkit was there to build "
        "with.\n"
        "example: scalemodel measure -o machine.json\n",
    .run = run_measure,
};
