/* A cold start of the command: seconds from exec to exit and peak memory, for one plan; and what
 * some questions take of the processor. The first argument is the program, otherwise the one beside
 * this benchmark's folder. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include "scalemodel/base.h"

typedef struct question {
    const char *name; /* of the figure */
    const char *argument[16];
} question;

static const question one_plan = {
    "startup",
    {"scalemodel", "train", "llama-3.1-405b", "--on", "h100-sxm:2048x8", "--batch", "16M", "--seq",
     "8192", "--plan",
     "fsdp=128,tensor=8,pipeline=16,schedule=interleaved,virtual=4,microbatch=1"}};

static const question questions[] = {
    {"serve_fleet_all_chips",
     {"scalemodel", "serve", "llama-3.1-70b", "--on", "all:8", "--qps", "10", "--tpot", "50ms",
      "--ttft", "2s"}},
    {"serve_frontier", {"scalemodel", "serve", "deepseek-v3", "--on", "h100-sxm:64x8"}},
    {"serve_any_framework",
     {"scalemodel", "serve", "deepseek-v3", "--on", "h100-sxm:8x8", "--ttft", "300ms",
      "--framework", "any"}},
    {"sweep_first_tokens",
     {"scalemodel", "sweep", "--threads", "1", "--over", "what-if.hbm=1..2:0.01", "serve",
      "llama-3.1-8b", "--on", "h100-sxm:8", "--ttft", "500ms"}}};

typedef struct sample {
    double seconds, processor_s;
    long peak_kib;
    bool ok;
} sample;

static void become(const char *program, const question *q) {
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, 1);
    dup2(nowhere, 2);
    execv(program, (char *const *)(uintptr_t)q->argument);
    _exit(127);
}

static double seconds_of(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

static sample run(const char *program, const question *q) {
    struct rusage usage;
    int status = 0;
    double start = sm_clock_s();
    pid_t child = fork();
    if (child == 0) become(program, q);
    bool ok = child > 0 && wait4(child, &status, 0, &usage) == child && WIFEXITED(status) &&
              WEXITSTATUS(status) <= 1; /* 1: answered that it does not fit */
    double processor_s = ok ? seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime) : 0;
    return (sample){sm_clock_s() - start, processor_s, ok ? usage.ru_maxrss : 0, ok};
}

/* build/bench/bench_small -> build/scalemodel */
static void beside(const char *self, char *out, size_t size) {
    const char *end = strrchr(self, '/');
    snprintf(out, size, "%.*s/../scalemodel", end ? (int)(end - self) : 1, end ? self : ".");
}

int main(int argc, char **argv) {
    enum { TIMES = 20 };
    char program[4096];
    double least = 1e9, total = 0;
    long peak = 0;
    if (argc > 1) snprintf(program, sizeof program, "%s", argv[1]);
    else beside(argv[0], program, sizeof program);
    if (access(program, X_OK) != 0) {
        fprintf(stderr, "bench_small: no program at %s (make first)\n", program);
        return 0;
    }
    for (int i = 0; i < TIMES; i++) {
        sample s = run(program, &one_plan);
        if (!s.ok) {
            fprintf(stderr, "bench_small: %s train failed\n", program);
            return 1;
        }
        total += s.seconds;
        if (s.seconds < least) least = s.seconds;
        if (s.peak_kib > peak) peak = s.peak_kib;
    }
    printf("bench: startup_ms %.3g ms\n", least * 1e3);
    printf("bench: startup_mean_ms %.3g ms\n", total / TIMES * 1e3);
    printf("bench: startup_peak_memory_mb %.3g MB\n", (double)peak * 1024 / 1e6);
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        printf("bench: %s %.3g s\n", questions[i].name, run(program, &questions[i]).processor_s);
    return 0;
}
