/* measure: the rooflines of this machine, as a chip and constants that every verb reads. */
#include "measuring.h"
#include "scalemodel/io.h"
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Processor, memory, caches and libraries, as the system tells of them. */

/* Where the libraries are linked, they say what they are. */
extern char *openblas_get_config(void) __attribute__((weak));
extern char *openblas_get_corename(void) __attribute__((weak));
extern int MPI_Get_library_version(char *version, int *length) __attribute__((weak));

enum { LINE = 256, VERSION_ROOM = 8192 };

/* Into files whose texts have no '#' and no control characters; at most `most` bytes. */
static char *plain(sm_arena *arena, const char *text, size_t most) {
    char *copy = sm_arena_copy(arena, text, strlen(text) < most ? strlen(text) : most);
    for (char *c = copy; c && *c; c++)
        if (*c == '#' || *c < ' ' || *c > '~') *c = ' ';
    for (size_t n = copy ? strlen(copy) : 0; n > 0 && copy[n - 1] == ' ';) copy[--n] = 0;
    return copy;
}

/* What follows "key :" in a file of such lines. */
static bool find_field(const char *path, const char *key, char value[LINE]) {
    char line[LINE];
    FILE *file = fopen(path, "r");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)) != 0) continue;
        colon++;
        while (*colon == ' ' || *colon == '\t') colon++;
        snprintf(value, LINE, "%s", colon);
        found = true;
    }
    if (file) fclose(file);
    return found;
}

static double number_field(const char *path, const char *key) {
    char value[LINE];
    return find_field(path, key, value) ? strtod(value, NULL) : 0.0;
}

/* "512K" of /sys/devices/system/cpu/cpu0/cache/index2/size. */
static size_t cache_bytes(int index) {
    char path[128], text[32] = "", *end;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    if (!fgets(text, sizeof text, file)) text[0] = 0;
    fclose(file);
    unsigned long size = strtoul(text, &end, 10);
    if (*end == 'K') size <<= 10;
    if (*end == 'M') size <<= 20;
    return size < (1ul << 40) ? size : 0;
}

static const char *mpi_version(sm_arena *arena) {
    char text[VERSION_ROOM] = "";
    int length = 0;
    if (!MPI_Get_library_version) return "";
    if (MPI_Get_library_version(text, &length) != 0) return "";
    text[strcspn(text, ",\n")] = 0; /* the rest tells how it was built */
    return plain(arena, text, 80);
}

/* "OpenBLAS 0.3.21" of a line that tells all its options, and the kernels it chose. */
static const char *blas_version(sm_arena *arena) {
    if (!openblas_get_config || !openblas_get_corename) return "cblas";
    char *name = plain(arena, openblas_get_config(), 80);
    char *core = plain(arena, openblas_get_corename(), 40);
    if (!name || !core) return NULL;
    size_t n = strcspn(name, " ");
    if (name[n]) n += 1 + strcspn(name + n + 1, " ");
    return sm_arena_printf(arena, "%.*s (%s)", (int)n, name, core);
}

static sm_status machine_read(sm_arena *arena, machine *m, sm_error *err) {
    char text[LINE] = "unknown processor", date[16] = "";
    time_t now = time(NULL);
    struct tm day;
    if (gmtime_r(&now, &day)) strftime(date, sizeof date, "%Y-%m-%d", &day);
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    find_field("/proc/cpuinfo", "model name", text);
    *m = (machine){.cpu = plain(arena, text, 80),
                   .blas = blas_version(arena),
                   .mpi = mpi_version(arena),
                   .date = sm_arena_copy(arena, date, strlen(date)),
                   .cpus = cpus > 0 && cpus < 65536 ? (int)cpus : 1,
                   .memory_bytes = 1024.0 * number_field("/proc/meminfo", "MemTotal"),
                   .clock_hz = 1e6 * number_field("/proc/cpuinfo", "cpu MHz")};
    /* Index 2 is the second level and index 3 the third, where there are such. */
    m->private_cache_bytes = cache_bytes(2);
    m->last_cache_bytes = cache_bytes(3);
    if (m->last_cache_bytes < m->private_cache_bytes) m->last_cache_bytes = m->private_cache_bytes;
    return m->cpu && m->blas && m->mpi && m->date ? SM_OK : sm_fail_memory(err);
}

typedef struct values {
    ranks_values ranks;
    int64_t count;
    const char *name, *output, *constants, *plot;
    bool quick;
} measure_values;

/* ---- reading ---- */

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

static sm_status read_files(const measure_values *given, measuring *q, sm_error *err) {
    q->output = given->output;
    q->plot = given->plot;
    q->constants = given->constants;
    /* "machine.json" -> "machine.txt"; "machine" -> "machine.txt". */
    if (q->output && !q->constants) {
        size_t n = strlen(q->output);
        if (n > 5 && strcmp(q->output + n - 5, ".json") == 0) n -= 5;
        q->constants = sm_arena_printf(q->call->arena, "%.*s.txt", (int)n, q->output);
    }
    if (q->output && !q->constants) return sm_fail_memory(err);
    const char *const written[] = {q->output, q->constants, q->plot};
    sm_status status = SM_OK;
    for (int i = 0; !status && i < 3 && ranks_are_here(); i++)
        if (written[i]) status = sm_io_write_check(written[i], err);
    return status;
}

/* --with cuda: not the processors but the GPUs. */
static bool is_gpu(const cli_call *call) {
    const measure_values *o = call->values;
    return cli_given(call, &o->ranks.with) && o->ranks.with == RANKS_CUDA;
}

static sm_status read_options(measuring *q, int64_t *ranks, sm_error *err) {
    const measure_values *o = q->call->values;
    bool gpu = is_gpu(q->call);
    q->name = o->name ? o->name : gpu ? "gpu-measured" : "cpu-measured";
    sm_status status = read_files(o, q, err);
    if (!status) status = machine_read(q->call->arena, &q->machine, err);
    if (!status && gpu && o->count)
        status = sm_fail(err, SM_USAGE, "--with cuda measures every GPU it finds: no --ranks");
    if (status) return status;
    bool self = cli_given(q->call, &o->ranks.with) && o->ranks.with == RANKS_SELF;
    *ranks = o->count ? o->count : self ? 1 : usual_ranks(&q->machine);
    return SM_OK;
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
    if (!is_gpu(call)) status = measured_runs(q, (int)ranks, given->quick, &trainings, err);
    job.training = trainings;
    job.trainings = q->runs;
    if (status) return status;
    if (is_gpu(call)) status = ranks_measure_gpus(call, &job, &q->gpu, err);
    else status = ranks_run(call, &given->ranks, (int)ranks, sm_measure_body, &job, err);
    if (status || !ranks_speak()) return status;
    q->backend = ranks_backend();
    status = measured_chip(q, err);
    if (!status) status = measured_files(r, q, err);
    if (!status) measured_page(r, q);
    return status;
}

const cli_verb measure_verb = {
    .about = &verbs_measure,
    CLI_VALUES(AT("ranks", count), RANKS_PLACES(ranks), AT("quick", quick), AT("name", name),
               AT("output", output), AT("constants", constants), AT("plot", plot)),
    .without_system = true,
    .run = run_measure,
};
