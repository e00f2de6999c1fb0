/* ranks: start them here, or give the command line to those who do. */
#include "ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "program.h"

enum { MOST_ARGUMENTS = 1024, DIGITS = 16 };

static const char *backend_used = "";
static int rank_here = 0; /* of this process, once known */
static bool done_elsewhere = false;

const char *ranks_backend(void) { return backend_used; }

/* ---- launchers: of MPI, or a user's own ---- */

/* What a launcher tells each process it starts. */
static const struct launcher {
    const char *variable, *rank, *backend; /* backend NULL: either */
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "openmpi"},
    {"PMI_SIZE", "PMI_RANK", "mpich"},
    {"PMIX_RANK", "PMIX_RANK", "openmpi"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", NULL},
};

static const struct launcher *launcher_around(void) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (getenv(launchers[i].variable)) return &launchers[i];
    return NULL;
}

bool ranks_are_here(void) { return !launcher_around(); }

int ranks_number(void) {
    const struct launcher *l = launcher_around();
    const char *rank = l ? getenv(l->rank) : NULL;
    return rank ? atoi(rank) : 0;
}

bool ranks_speak(void) { return !done_elsewhere && rank_here == 0 && ranks_number() == 0; }

/* ---- programs ---- */

/* The program of a backend, beside this one. False when it was not built. */
static bool program_of(const char *backend, char path[CLI_PATH_ROOM]) {
    char name[64];
    snprintf(name, sizeof name, "scalemodel-run-%s", backend);
    return cli_beside(name, path) && access(path, X_OK) == 0;
}

const char *const ranks_with_names[RANKS_WITH_COUNT] = {"openmpi", "mpich", "threads", "self",
                                                        "cuda"};

static bool is_mpi(const char *backend) { return backend[0] == 'o' || backend[0] == 'm'; }

/* That of --with; otherwise MPI where it was built, Open MPI first. */
static sm_status choose(const cli_call *call, const ranks_values *given, const char **backend,
                        sm_error *err) {
    char path[CLI_PATH_ROOM] = "";
    const struct launcher *l = launcher_around();
    *backend = cli_given(call, &given->with) ? ranks_with_names[given->with]
               : l && l->backend             ? l->backend
               : program_of("openmpi", path) ? "openmpi"
               : program_of("mpich", path)   ? "mpich"
                                             : "threads";
    if (is_mpi(*backend) && !program_of(*backend, path))
        return sm_fail(err, SM_IO, "%s is not there: it is built where mpicc.%s is installed", path,
                       *backend);
    return SM_OK;
}

/* ---- processes ---- */

typedef struct command {
    char *word[MOST_ARGUMENTS + 1];
    int n;
} command;

static void say(command *c, const char *word) {
    if (c->n < MOST_ARGUMENTS) c->word[c->n++] = (char *)(uintptr_t)word;
}

static void say_call(command *c, const cli_call *call, const char *path) {
    const char *blank = strrchr(call->verb->about->name, ' ');
    say(c, path);
    say(c, blank ? blank + 1 : call->verb->about->name);
    for (char **a = call->argv; *a; a++) say(c, *a);
}

/* Open MPI is asked not to mind more ranks than cores. */
sm_status ranks_launch(const cli_call *call, const ranks_values *given, int ranks, sm_error *err) {
    char path[CLI_PATH_ROOM] = "", number[DIGITS];
    command c = {.n = 0};
    sm_status status = choose(call, given, &backend_used, err);
    if (status) return status;
    bool open_mpi = backend_used[0] == 'o', mpi = is_mpi(backend_used);
    if (!(mpi ? program_of(backend_used, path) : cli_beside("scalemodel-run", path)))
        return sm_fail(err, SM_IO, "%s has gone", path);
    snprintf(number, sizeof number, "%d", ranks);
    if (mpi) {
        say(&c, open_mpi ? "mpirun.openmpi" : "mpirun.mpich");
        say(&c, "-n");
        say(&c, number);
    }
    if (open_mpi) say(&c, "--oversubscribe");
    say_call(&c, call, path);
    status = launch_mpirun(c.word, given->debug, err);
    done_elsewhere = status <= SM_NEGATIVE; /* an error without a sentence has been told, too */
    return status;
}

/* Inside a user's own launcher this process becomes a rank. */
static sm_status become_rank(const cli_call *call, const char *backend, sm_error *err) {
    char path[CLI_PATH_ROOM] = "";
    command c = {.n = 0};
    if (!program_of(backend, path)) return sm_fail(err, SM_IO, "%s has gone", path);
    say_call(&c, call, path);
    execv(path, c.word);
    return sm_fail(err, SM_IO, "cannot start %s: %s", path, strerror(errno));
}

sm_status ranks_measure_gpus(const cli_call *call, const sm_measure_job *job, sm_gpu_facts *facts,
                             sm_error *err) {
    static const char cuda[] = "cuda";
    char path[CLI_PATH_ROOM] = "";
    backend_used = cuda;
    if (ranks_of_program.measure_gpus) return ranks_of_program.measure_gpus(job, facts, err);
    if (!program_of(cuda, path))
        return sm_fail(err, SM_IO, "%s is not there: it is built where the CUDA toolkit is", path);
    return become_rank(call, cuda, err);
}

/* ---- here ---- */

typedef struct start {
    sm_rank_body body;
    void *context;
    int ranks, started; /* wanted, and found */
    bool debug;
} start;

static sm_status on_rank(sm_communicator *world, void *context, sm_error *err) {
    const start *s = context;
    world->debug = s->debug;
    return s->body(world, s->context, err);
}

/* All processes see the same wrong number: none need be ended. */
static sm_status on_process(sm_communicator *world, void *context, sm_error *err) {
    start *s = context;
    rank_here = world->rank;
    s->started = world->size;
    return world->size == s->ranks ? on_rank(world, context, err) : SM_OK;
}

sm_status ranks_run(const cli_call *call, const ranks_values *given, int ranks, sm_rank_body body,
                    void *context, sm_error *err) {
    start s = {.body = body, .context = context, .ranks = ranks, .debug = given->debug};
    sm_status status = choose(call, given, &backend_used, err);
    if (status) return status;
    if (strcmp(backend_used, "self") == 0) {
        sm_communicator *self;
        if (s.ranks != 1)
            return sm_fail(err, SM_BAD_INPUT, "the mesh has %d ranks and --with self is one",
                           s.ranks);
        status = sm_communicator_self(&self, err);
        if (status) return status;
        status = on_rank(self, &s, err);
        sm_communicator_free(self);
        return status;
    }
    if (strcmp(backend_used, "threads") == 0) return sm_run_threads(ranks, on_rank, &s, err);
    if (strcmp(backend_used, ranks_of_program.backend) != 0)
        return launcher_around() ? become_rank(call, backend_used, err)
                                 : ranks_launch(call, given, ranks, err);
    status = ranks_of_program.start(ranks, on_process, &s, err);
    if (!status && s.started != ranks)
        return sm_fail(err, SM_BAD_INPUT, "the mesh has %d ranks and %d were started", ranks,
                       s.started);
    return status;
}

/* ---- what ranks found, put together ---- */

sm_status same_over_ranks(sm_communicator *world, uint64_t number, bool *same, sm_error *err) {
    size_t ranks = (size_t)world->size;
    uint64_t *all = sm_calloc(ranks, sizeof *all);
    *same = true;
    if (!all) return sm_fail_memory(err);
    sm_status status = sm_run_all_gather(world, &number, sizeof number, all, err);
    for (size_t i = 0; !status && i < ranks; i++) *same = *same && all[i] == number;
    sm_free(all);
    return status;
}
