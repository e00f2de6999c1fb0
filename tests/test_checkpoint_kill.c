/* A training that dies while it writes a checkpoint, at every call to the system: what is left is
 * the checkpoint before or the new one, whole. The same with calls that fail and calls that write
 * half of what they were given. The calls are ours: a program's own functions come before those of
 * the C library. */
#define _GNU_SOURCE /* syscall */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include "unit.h"
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model_of.h"
#include "sanitized.h"
#include "train_checkpoint.h"

/* ---- the calls ---- */

typedef enum harm { KILL, FULL_DISK, BAD_DISK, HALF_WRITE, HARMS } harm;

static atomic_bool armed, removing; /* removing: the call that failed was to remove something */
static atomic_long calls, strike_at;
static harm how;

/* Does this call fail? A full disk stays full, for calls that need room. */
static bool strikes(bool needs_room) {
    if (!atomic_load(&armed)) return false;
    long number = atomic_fetch_add(&calls, 1) + 1;
    if (how == FULL_DISK) errno = ENOSPC;
    else errno = EIO;
    if (how == FULL_DISK) return needs_room && number >= atomic_load(&strike_at);
    if (number != atomic_load(&strike_at)) return false;
    if (how == KILL) kill(getpid(), SIGKILL);
    return how == BAD_DISK;
}

static bool halves(size_t bytes) {
    return how == HALF_WRITE && atomic_load(&armed) &&
           atomic_load(&calls) == atomic_load(&strike_at) && bytes > 1;
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    unsigned mode = flags & O_CREAT ? va_arg(more, unsigned) : 0;
    va_end(more);
    if (strikes(flags & O_CREAT)) return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t write(int file, const void *bytes, size_t n) {
    if (strikes(true)) return -1;
    return syscall(SYS_write, file, bytes, halves(n) ? n / 2 : n);
}

ssize_t pread(int file, void *bytes, size_t n, off_t at) {
    if (strikes(false)) return -1;
    return syscall(SYS_pread64, file, bytes, halves(n) ? n / 2 : n, at);
}

int fsync(int file) { return strikes(true) ? -1 : (int)syscall(SYS_fsync, file); }

int rename(const char *from, const char *to) {
    if (strikes(true)) return -1;
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int mkdir(const char *path, mode_t mode) {
    if (strikes(true)) return -1;
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int unlink(const char *path) {
    if (strikes(false)) return atomic_store(&removing, true), -1;
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int rmdir(const char *path) {
    if (strikes(false)) return atomic_store(&removing, true), -1;
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

/* ---- a training of two ranks: a step from the checkpoint that is there, and a checkpoint ---- */

static char place[64]; /* a folder of this test */
static unsigned char text[256];

static sm_model small_model(void) {
    return model_of("small", "{\"model_type\": \"llama\", \"hidden_size\": 4, "
                             "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
                             "\"num_key_value_heads\": 1, \"intermediate_size\": 4, "
                             "\"vocab_size\": 256}");
}

typedef struct training {
    const char *path;
    sm_model model;
    sm_train_setup setup;
    sm_safetensors from; /* n 0: a new one */
    bool stays;          /* no step is made */
} training;

static sm_status train_rank(sm_communicator *world, void *context, sm_error *err) {
    training *job = context;
    sm_trainer *t = NULL;
    sm_train_result r;
    train_checkpoint_place to = {.path = job->path, .keep = 1, .config = "{}\n"};
    sm_status status = sm_trainer_new(world, &job->setup, &t, err);
    if (!status && job->from.n)
        status = train_checkpoint_take(t, &job->model, &job->from, job->path, err);
    if (!status && !job->stays) status = sm_trainer_step(t, (int)sm_trainer_updates(t), &r, err);
    if (!status) status = sm_run_barrier(world, err);
    atomic_store(&armed, atomic_load(&strike_at) > 0);
    if (!status) status = train_checkpoint_write(t, world, &job->model, &to, err);
    sm_trainer_free(t);
    return status;
}

static sm_status train(const char *path, bool resumed, sm_error *err) {
    training job = {.path = path, .model = small_model()};
    sm_arena *arena = sm_arena_new();
    sm_train_setup_defaults(&job.setup);
    job.setup.model = &job.model;
    job.setup.tokens = 4;
    job.setup.sequences = 2;
    job.setup.microbatch = 1;
    job.setup.degree[SM_AXIS_DATA] = 2;
    job.setup.zero = 1;
    job.setup.data = text;
    job.setup.data_bytes = sizeof text;
    sm_status status = resumed ? sm_io_safetensors_read(path, arena, &job.from, err) : SM_OK;
    if (!status) status = sm_run_threads(2, train_rank, &job, err);
    sm_arena_free(arena);
    return status;
}

/* ---- what is there ---- */

typedef struct seen {
    sm_status status;
    sm_error err;
    uint64_t steps, digest; /* of all names and numbers */
} seen;

static void digest(seen *s, const void *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        s->digest = (s->digest ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
}

static void see_tensor(seen *s, const sm_safetensor *t) {
    size_t n = 1;
    for (int d = 0; d < t->rank; d++) n *= t->shape[d];
    float *data = malloc(n * sizeof *data);
    s->status = sm_io_safetensor_load(t, data, &s->err);
    digest(s, t->name, strlen(t->name));
    if (!s->status) digest(s, data, n * sizeof *data);
    free(data);
}

/* Loads every number of the checkpoint. */
static seen look(const char *path) {
    seen s = {.status = SM_OK};
    sm_safetensors all;
    sm_arena *arena = sm_arena_new();
    s.status = sm_io_safetensors_read(path, arena, &all, &s.err);
    for (size_t i = 0; !s.status && i < all.n; i++) see_tensor(&s, &all.tensor[i]);
    if (!s.status) s.steps = all.steps;
    sm_arena_free(arena);
    return s;
}

static bool same(const seen *a, const seen *b) {
    return !a->status && !b->status && a->steps == b->steps && a->digest == b->digest;
}

typedef void (*visitor)(const char *path, const char *name, void *context);

static void each_entry(const char *folder, visitor visit, void *context) {
    char path[600];
    DIR *dir = opendir(folder);
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%.300s/%.256s", folder, e->d_name);
        visit(path, e->d_name, context);
    }
    if (dir) closedir(dir);
}

static void count_unfinished(const char *path, const char *name, void *context) {
    (void)path;
    *(int *)context += strstr(name, ".tmp") != NULL;
}

static void count_entry(const char *path, const char *name, void *context) {
    (void)path;
    (void)name;
    ++*(int *)context;
}

static int entries(const char *folder, visitor count) {
    int n = 0;
    each_entry(folder, count, &n);
    return n;
}

static void remove_entry(const char *path, const char *name, void *context) {
    (void)name;
    if (unlink(path) == 0) return;
    each_entry(path, remove_entry, context);
    rmdir(path);
}

/* ---- a folder as it was ---- */

static void copy_entry(const char *path, const char *name, void *context) {
    char to[700];
    struct stat of;
    snprintf(to, sizeof to, "%s/%s", (const char *)context, name);
    if (stat(path, &of) == 0 && S_ISDIR(of.st_mode)) {
        mkdir(to, 0700);
        each_entry(path, copy_entry, to);
        return;
    }
    static char bytes[1 << 20];
    FILE *in = fopen(path, "rb"), *out = fopen(to, "wb");
    size_t n = fread(bytes, 1, sizeof bytes, in);
    assert_true(n < sizeof bytes && fwrite(bytes, 1, n, out) == n);
    fclose(in);
    fclose(out);
}

static const char *in_place(const char *name) {
    static char path[4][128];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", place, name);
    return path[turn];
}

/* Every turn begins with the checkpoint of one step, and nothing else. */
static void begin_turn(void) {
    char work[128];
    snprintf(work, sizeof work, "%s", in_place("work"));
    each_entry(work, remove_entry, NULL);
    mkdir(work, 0700);
    each_entry(in_place("first"), copy_entry, work);
}

/* ---- turns ---- */

enum { ANSWERED = 0, REFUSED = 10, WRONG_WORDS = 20, LEFTOVERS = 30 };

static bool good_words(const char *sentence) {
    bool names = strncmp(sentence, "cannot ", 7) == 0;
    return names && (strstr(sentence, ": No space left on device") ||
                     strstr(sentence, ": Input/output error"));
}

/* In a process of its own. */
static int child(const char *path, harm with, long number) {
    sm_error err = {.status = SM_OK};
    how = with;
    atomic_store(&strike_at, number);
    sm_status status = train(path, true, &err);
    atomic_store(&armed, false);
    if (!status) return ANSWERED; /* a call whose failure does no harm */
    if (!good_words(err.sentence)) fprintf(stderr, "# %s\n", err.sentence);
    if (!good_words(err.sentence)) return WRONG_WORDS;
    bool left = entries(in_place("work"), count_unfinished) ||
                entries(in_place("work/ck"), count_unfinished);
    return left && !atomic_load(&removing) ? LEFTOVERS : REFUSED;
}

/* How many calls a checkpoint makes when none fails. */
static long count_calls(const char *path) {
    sm_error err;
    begin_turn();
    how = BAD_DISK;
    atomic_store(&calls, 0);
    atomic_store(&strike_at, 1 << 30);
    assert_int_equal(train(path, true, &err), SM_OK);
    atomic_store(&armed, false);
    atomic_store(&strike_at, 0);
    return atomic_exchange(&calls, 0);
}

static int run_child(const char *path, harm with, long number) {
    int status = 0;
    fflush(stdout);
    fflush(stderr);
    pid_t id = fork();
    assert_true(id >= 0);
    if (id == 0) _exit(child(path, with, number));
    assert_true(waitpid(id, &status, 0) == id);
    return status;
}

typedef struct form {
    const char *name; /* below place */
    char path[128];
    seen before, after;
} form;

static void check_turn(const form *f, harm with, long number, int status) {
    seen now = look(f->path);
    bool whole = same(&now, &f->before) || same(&now, &f->after);
    bool ended = with == KILL ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                              : WIFEXITED(status) && WEXITSTATUS(status) <= REFUSED;
    if (with == HALF_WRITE) whole = same(&now, &f->after);
    if (!whole || !ended)
        print_message("harm %d at call %ld: status %x, step %d: %s\n", with, number,
                      (unsigned)status, (int)now.steps, now.status ? now.err.sentence : "");
    assert_true(whole && ended);
}

/* After a kill the next checkpoint clears up what was left. */
static void check_next(const form *f) {
    sm_error err = {.status = SM_OK};
    if (train(f->path, true, &err)) print_message("%s\n", err.sentence);
    assert_int_equal(err.status, SM_OK);
    assert_int_equal(entries(in_place("work/ck"), count_unfinished), 0);
    assert_in_range(entries(in_place("work/ck"), count_entry), 0, 2); /* latest, one version */
}

/* A process under AddressSanitizer takes long to begin: there, and where the same is run a second
 * time by another compiler, some of the calls must do. */
#if REPEATED
enum { STRIDE = 7 };
#else
enum { STRIDE = 1 };
#endif

static void every_call(form *f, harm with) {
    const char *path = f->path;
    long n = count_calls(path), refused = 0;
    f->after = look(path);
    assert_int_equal(f->after.steps, 2);
    for (long number = 1 + with % STRIDE; number <= n; number += STRIDE) {
        begin_turn();
        int status = run_child(path, with, number);
        check_turn(f, with, number, status);
        refused += WIFEXITED(status) && WEXITSTATUS(status) == REFUSED;
        if (with == KILL && number % 8 == 0) check_next(f);
    }
    print_message("%s: %ld calls, %ld of them refused\n", f->name, n, refused);
    assert_true(n > 20 && (with == KILL || with == HALF_WRITE) == (refused == 0));
}

/* The number of calls that were made; the one of this number comes to harm. */
static long look_harmed(const char *path, harm with, long number, seen *now) {
    how = with;
    atomic_store(&strike_at, number);
    atomic_store(&armed, true);
    *now = look(path);
    atomic_store(&armed, false);
    atomic_store(&strike_at, 0);
    return atomic_exchange(&calls, 0);
}

/* A call that fails while the checkpoint is read is told; one that reads half does no harm. */
static void every_reading_call(const char *name, harm with) {
    seen before, now;
    char path[128];
    snprintf(path, sizeof path, "%s", in_place(name));
    long n = look_harmed(path, with, 1 << 30, &before);
    assert_true(n > 50 && before.steps == 1);
    for (long number = 1; number <= n; number++) {
        look_harmed(path, with, number, &now);
        if (with == HALF_WRITE) assert_true(same(&before, &now));
        else assert_true(now.status == SM_IO && good_words(now.err.sentence));
    }
}

static void reading_tells_of_a_bad_disk(void **state) {
    every_reading_call("first/ck", BAD_DISK);
    every_reading_call("first/file.safetensors", BAD_DISK);
}

static void reading_survives_half_reads(void **state) {
    every_reading_call("first/ck", HALF_WRITE);
    every_reading_call("first/file.safetensors", HALF_WRITE);
}

static form forms[] = {{.name = "ck"}, {.name = "file.safetensors"}};

static bool make_first(form *f) {
    char first[128];
    sm_error err = {.status = SM_OK};
    snprintf(f->path, sizeof f->path, "%.64s/work/%s", place, f->name);
    snprintf(first, sizeof first, "%.64s/first/%s", place, f->name);
    if (train(first, false, &err)) print_message("%s\n", err.sentence);
    f->before = look(first);
    return !err.status;
}

static int make_place(void **state) {
    /* in memory where there is such a place: thousands of calls wait for the disk otherwise */
    snprintf(place, sizeof place, "/dev/shm/test_checkpoint_kill_XXXXXX");
    if (!mkdtemp(place)) snprintf(place, sizeof place, "/tmp/test_checkpoint_kill_XXXXXX");
    if (place[1] == 't' && !mkdtemp(place)) return -1;
    for (size_t i = 0; i < sizeof text; i++) text[i] = (unsigned char)(i * i % 251);
    mkdir(in_place("first"), 0700);
    mkdir(in_place("first/ck"), 0700);
    if (!make_first(&forms[0]) || !make_first(&forms[1])) return -1;
    return !same(&forms[0].before, &forms[1].before);
}

static int remove_place(void **state) {
    each_entry(place, remove_entry, NULL);
    return rmdir(place);
}

#define TURNS(name, form, harm)                                                                    \
    static void name(void **state) {                                                               \
        (void)state;                                                                               \
        every_call(&forms[form], harm);                                                            \
    }
TURNS(folder_survives_kills, 0, KILL)
TURNS(folder_survives_a_full_disk, 0, FULL_DISK)
TURNS(folder_survives_a_bad_disk, 0, BAD_DISK)
TURNS(folder_survives_half_writes, 0, HALF_WRITE)
TURNS(file_survives_kills, 1, KILL)
TURNS(file_survives_a_full_disk, 1, FULL_DISK)
TURNS(file_survives_a_bad_disk, 1, BAD_DISK)
TURNS(file_survives_half_writes, 1, HALF_WRITE)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_tells_of_a_bad_disk),
        cmocka_unit_test(reading_survives_half_reads),
        cmocka_unit_test(folder_survives_kills),
        cmocka_unit_test(folder_survives_a_full_disk),
        cmocka_unit_test(folder_survives_a_bad_disk),
        cmocka_unit_test(folder_survives_half_writes),
        cmocka_unit_test(file_survives_kills),
        cmocka_unit_test(file_survives_a_full_disk),
        cmocka_unit_test(file_survives_a_bad_disk),
        cmocka_unit_test(file_survives_half_writes),
    };
    return cmocka_run_group_tests(tests, make_place, remove_place);
}
