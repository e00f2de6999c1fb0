/* arrival_options: which requests come, and when, for those who simulate an engine and those who
 * run one. */
#pragma once
#include "options.h"

enum { ARRIVALS_MOST_RATE = 1000000000 };

typedef struct arrival_values {
    const char *trace, *arrivals;
    sm_synthetic draw;
    double requests; /* at most so many; 0: not said */
    double concurrency, think_s;
    bool drawn; /* times are, and without a trace the lengths: arrivals_read fills it in */
} arrival_values;
/* clang-format off */
#define ARRIVAL_OPTIONS(values, member)                                                            \
    {"trace", 0, CLI_INPUT, offsetof(values, member.trace), "FILE",                                \
     .help = "requests from a file: CSV or JSON lines, also gzip"},                                \
    {"arrivals", 0, CLI_TEXT, offsetof(values, member.arrivals), "HOW",                            \
     .help = "poisson:50/s, gamma:50/s:CV, uniform:50/s; with --trace the times are drawn and "    \
             "the lengths read",                                                                   \
     .default_says = "replay, with --trace"},                                                      \
    {"qps", 0, CLI_RATE, offsetof(values, member.draw.rate_per_s), "RATE",                         \
     .help = "requests a second, or 3000/min: as --arrivals poisson:RATE", .above = true,          \
     .highest = ARRIVALS_MOST_RATE},                                                               \
    {"concurrency", 0, CLI_COUNT, offsetof(values, member.concurrency), "N",                       \
     .help = "a closed loop, in place of --arrivals: so many clients, each with one request in "   \
             "flight",                                                                             \
     .lowest = 1, .highest = 1 << 20},                                                             \
    {"think", 0, CLI_TIME, offsetof(values, member.think_s), "TIME",                               \
     .help = "of a client between an answer and its next request", .default_says = "none"},        \
    {"requests", 0, CLI_COUNT, offsetof(values, member.requests), "N",                             \
     .help = "at most so many", .lowest = 1,                                                       \
     .highest = 1e9, .default_says = "10000 drawn, ten for each client, all of a trace"},          \
    {"prompt", 0, CLI_COUNT, offsetof(values, member.draw.lengths.prompt), "TOKENS",               \
     .help = "mean prompt of drawn requests", .lowest = 1, .highest = SM_MAX_TOKENS,               \
     .by_default = "2048"},                                                                        \
    {"output", 0, CLI_COUNT, offsetof(values, member.draw.lengths.output), "TOKENS",               \
     .help = "mean output of drawn requests", .lowest = 1, .highest = SM_MAX_TOKENS,               \
     .by_default = "512"},                                                                         \
    {"prompt-cv", 0, CLI_NUMBER, offsetof(values, member.draw.lengths.prompt_cv), "CV",            \
     .help = "coefficient of variation of prompts: 0 all alike, else lognormal",                   \
     .highest = SM_MAX_CV, .by_default = "0"},                                                     \
    {"output-cv", 0, CLI_NUMBER, offsetof(values, member.draw.lengths.output_cv), "CV",            \
     .help = "the same of outputs",                                                                \
     .highest = SM_MAX_CV, .by_default = "0"},                                                     \
    {"range-ratio", 0, CLI_NUMBER, offsetof(values, member.draw.least_share), "SHARE",             \
     .help = "lengths are drawn evenly from this share of --prompt and --output to all of it, "    \
             "as benchmark tools do",                                                              \
     .above = true, .highest = 1, .default_says = "all alike"}
/* clang-format on */

/* Were any requests asked for? */
bool arrivals_asked(const arrival_values *v);
/* Read them into draw, drawn and requests. SM_USAGE for what does not go together, SM_BAD_INPUT
 * with the place of what is no rate. */
sm_status arrivals_read(const cli_call *call, arrival_values *v, sm_error *err);
