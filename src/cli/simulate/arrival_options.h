/* arrival_options: which requests come, and when, for those who simulate an engine and those who
 * run one. */
#pragma once
#include "options.h"

enum { ARRIVALS_MOST_RATE = 1000000000 };

typedef struct arrival_values {
    const char *trace, *arrivals;
    sm_synthetic draw;
    double requests; /* at most so many; 0: not said */
    double concurrency;
    cli_list classes;
    sm_request_class kind[SM_MOST_CLASSES]; /* what classes say: arrivals_read fills it in */
    int kinds;
    bool drawn; /* times are, and without a trace the lengths: arrivals_read fills it in */
} arrival_values;
/* clang-format off */
#define ARRIVAL_OPTIONS(values, member)                                                            \
    {"trace", 0, CLI_INPUT, offsetof(values, member.trace), "FILE",                                \
     .help = "requests from a file: CSV or JSON lines, also packed"},                              \
    {"arrivals", 0, CLI_TEXT, offsetof(values, member.arrivals), "HOW",                            \
     .help = "poisson:50/s, gamma:50/s:CV, uniform:50/s, and rates that change, over and over: "   \
             "poisson:20/s@8h,2/s@16h; with --trace the times are drawn and the lengths read",     \
     .default_says = "replay, with --trace"},                                                      \
    {"qps", 0, CLI_RATE, offsetof(values, member.draw.rate_per_s), "RATE",                         \
     .help = "requests a second, or 3000/min: as --arrivals poisson:RATE", .above = true,          \
     .highest = ARRIVALS_MOST_RATE},                                                               \
    {"concurrency", 0, CLI_COUNT, offsetof(values, member.concurrency), "N",                       \
     .help = "a closed loop, in place of --arrivals: so many clients, each with one request in "   \
             "flight",                                                                             \
     .lowest = 1, .highest = 1 << 20},                                                             \
    {"turns", 0, CLI_COUNT, offsetof(values, member.draw.turns), "N",                             \
     .help = "what comes are conversations of so many turns on average; each has all before it "   \
             "in its prompt, and --prompt more",                                                   \
     .lowest = 1, .highest = SM_MOST_TURNS, .default_says = "requests by themselves"},             \
    {"turns-cv", 0, CLI_NUMBER, offsetof(values, member.draw.turns_cv), "CV",                      \
     .help = "coefficient of variation of --turns", .highest = SM_MAX_CV, .by_default = "0"},      \
    {"think", 0, CLI_TIME, offsetof(values, member.draw.think_s), "TIME",                          \
     .help = "of a client between an answer and its next request or turn",                         \
     .default_says = "none"},                                                                      \
    {"think-cv", 0, CLI_NUMBER, offsetof(values, member.draw.think_cv), "CV",                      \
     .help = "coefficient of variation of --think between turns", .highest = SM_MAX_CV,            \
     .by_default = "0"},                                                                           \
    {"shared-prefix", 0, CLI_COUNT, offsetof(values, member.draw.shared_prefix), "TOKENS",         \
     .help = "at the beginning of every drawn prompt, beside --prompt: of the system, of tools",   \
     .highest = SM_MAX_TOKENS, .by_default = "0"},                                                 \
    {"class", 0, CLI_LIST, offsetof(values, member.classes), "CLASS",                              \
     .help = "of requests, with its own SLO: chat:share=0.8,priority=0,ttft=500ms,tpot=50ms; "     \
             "lower priorities go first (several times); a trace says in its column class who "    \
             "is of which"},                                                                       \
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

/* --csv: the header and the row of a request; its times count from from_s. */
void requests_header(FILE *rows);
void requests_row(FILE *rows, const sm_request_served *served, const sm_simulation *options,
                  double from_s);
/* Were any requests asked for? */
bool arrivals_asked(const arrival_values *v);
/* Read them into draw, drawn and requests. SM_USAGE for what does not go together, SM_BAD_INPUT
 * with the place of what is no rate. */
sm_status arrivals_read(const cli_call *call, arrival_values *v, sm_error *err);
