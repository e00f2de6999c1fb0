/* launch: fork, filter, wait. */
#include "ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- signals: what ends this process ends mpirun, which ends the ranks ---- */

static volatile sig_atomic_t child_pid = 0, ended_by = 0, gentle = 0;

/* mpirun passes SIGUSR1 on to the ranks, and ends them on the others. */
static void forward(int number) {
    int as = gentle ? SIGUSR1 : number;
    if (!gentle) ended_by = number;
    gentle = 0;
    if (child_pid > 0) kill((pid_t)child_pid, as);
}

void launch_gently(void) { gentle = 1; }

static const int endings[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDINGS = sizeof endings / sizeof *endings };

/* A verb may have blocked them for ranks in this process. */
static void unblock_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < ENDINGS; i++) sigaddset(&set, endings[i]);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* ---- the child ---- */

void launch_end_with(pid_t parent, int number) {
    prctl(PR_SET_PDEATHSIG, number);
    if (getppid() != parent) raise(number); /* it has ended before we asked */
}

/* Open MPI asks its user to say so when he means to run as root. */
static void become_mpirun(char *const *word, pid_t parent, int out_fd, int err_fd, int words_fd) {
    static const char *const as_root[] = {"OMPI_ALLOW_RUN_AS_ROOT",
                                          "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"};
    launch_end_with(parent, SIGTERM); /* on which it ends the ranks, on other machines too */
    unblock_signals();
    if (err_fd >= 0 && isatty(STDERR_FILENO)) setenv(LAUNCH_WATCHED, "1", 1);
    char words[64];
    snprintf(words, sizeof words, "/proc/%d/fd/%d", (int)parent, words_fd);
    if (words_fd >= 0) setenv(LAUNCH_LAST_WORDS, words, 1);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    if (out_fd >= 0) dup2(out_fd, STDOUT_FILENO);
    if (err_fd >= 0) dup2(err_fd, STDERR_FILENO);
    for (int i = 0; i < 2; i++) setenv(as_root[i], "1", 0);
    execvp(word[0], word);
    execvp("mpirun", word);
    fprintf(stderr, "scalemodel: cannot start %s: %s\n", word[0], strerror(errno));
    _exit(SM_IO);
}

/* ---- what it says ---- */

typedef struct noise {
    bool named;   /* a rank has said what is wrong */
    bool watched; /* the line that tells of progress is open */
    int signal;   /* that mpirun tells of */
} noise;

static const char ours[] = "scalemodel: ";

static void read_line(noise *n, const char *line) {
    const char *signal_at = strstr(line, "signal ");
    if (strncmp(line, LAUNCH_PROGRESS, sizeof LAUNCH_PROGRESS - 1) == 0) {
        const char *text = line + sizeof LAUNCH_PROGRESS - 1;
        fprintf(stderr, "\r%.*s ", (int)strcspn(text, "\n"), text); /* over the one before */
        n->watched = true;
        return;
    }
    if (strncmp(line, ours, sizeof ours - 1) != 0) {
        if (signal_at && !n->signal) n->signal = atoi(signal_at + 7);
        return;
    }
    bool error = strncmp(line + sizeof ours - 1, "rank ", 5) == 0;
    if (n->watched) fputc('\n', stderr);
    n->watched = false;
    if (!error || !n->named) fputs(line, stderr);
    n->named = n->named || error;
}

static void read_noise(int fd, noise *n) {
    char *line = NULL;
    size_t room = 0;
    FILE *in = fdopen(fd, "r");
    while (in && getline(&line, &room, in) > 0) read_line(n, line);
    if (n->watched) fputc('\n', stderr);
    n->watched = false;
    free(line);
    if (in) fclose(in);
    else close(fd);
}

/* The answer is the whole of standard output, but MPICH tells of failures there. */
static sm_status read_answer(FILE *answer, bool good, noise *n, sm_error *err) {
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    bool written = true;
    rewind(answer);
    while ((length = getline(&line, &room, answer)) > 0)
        if (!good) read_line(n, line);
        else written = written && fwrite(line, 1, (size_t)length, stdout) == (size_t)length;
    free(line);
    errno = 0;
    if (written && fflush(stdout) == 0) return SM_OK;
    if (errno != EPIPE) sm_fail(err, SM_IO, "cannot write to standard output");
    return SM_IO;
}

/* ---- how it ended ---- */

static sm_status status_of(int code, const noise *n, sm_error *err) {
    if (n->named || (code <= SM_INTERNAL && !n->signal))
        return code <= SM_INTERNAL ? (sm_status)code : SM_INTERNAL; /* said already */
    if (n->signal || code > 128)
        return sm_fail(err, SM_INTERNAL,
                       "a rank was killed or has crashed (signal %d), and all ranks were ended; "
                       "--debug shows what mpirun says",
                       n->signal ? n->signal : code - 128);
    return sm_fail(err, SM_INTERNAL, "mpirun has failed with status %d; --debug shows what it says",
                   code);
}

static int wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return 255;
    /* What ended the ranks ends this process, so that a script stops. MPICH's mpirun may say 0. */
    if (ended_by) {
        signal(ended_by, SIG_DFL);
        raise(ended_by);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* What ranks of this machine said, where mpirun has lost it. */
static void read_last_words(FILE *words, noise *n) {
    char *line = NULL;
    size_t room = 0;
    rewind(words);
    while (!n->named && getline(&line, &room, words) > 0) read_line(n, line);
    free(line);
}

/* answer, words: for what it prints on standard output, and what ranks say last; NULL: nothing is
 * kept from the user. */
static sm_status run_and_listen(char *const *word, FILE *answer, FILE *words, sm_error *err) {
    int ends[2] = {-1, -1};
    noise n = {false, false, 0};
    if (answer && pipe(ends) != 0)
        return sm_fail(err, SM_IO, "cannot make a pipe: %s", strerror(errno));
    pid_t self = getpid(), child = fork();
    if (child == 0)
        become_mpirun(word, self, answer ? fileno(answer) : -1, ends[1],
                      words ? fileno(words) : -1);
    if (answer) close(ends[1]);
    if (child < 0) return sm_fail(err, SM_IO, "cannot start mpirun: %s", strerror(errno));
    child_pid = child;
    struct sigaction action = {.sa_handler = forward, .sa_flags = SA_RESTART};
    for (int i = 0; i < ENDINGS; i++) sigaction(endings[i], &action, NULL);
    unblock_signals();
    if (answer) read_noise(ends[0], &n);
    int code = wait_for(child);
    bool good = code <= SM_NEGATIVE;
    if (!good && words) read_last_words(words, &n);
    sm_status status = answer ? read_answer(answer, good, &n, err) : SM_OK;
    if (status) return status;
    return good ? (sm_status)code : status_of(code, &n, err);
}

sm_status launch_mpirun(char *const *word, bool verbose, sm_error *err) {
    fflush(stdout);
    FILE *answer = verbose ? NULL : tmpfile(), *words = answer ? tmpfile() : NULL;
    sm_status status = SM_OK;
    if (!verbose && !words)
        status = sm_fail(err, SM_IO, "cannot make a temporary file: %s", strerror(errno));
    if (!status) status = run_and_listen(word, answer, words, err);
    if (answer) fclose(answer);
    if (words) fclose(words);
    return status;
}
