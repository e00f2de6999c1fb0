/* load: an engine of serving software under a load. How requests come (a static batch, so many in
 * flight, so many a second, all at once) and what the software does with them decide how many
 * sequences decode at once, and so the time per token, the time to the first and the throughput.
 * serve, simulate and validate all ask here. */
#pragma once
#include "scalemodel/serve.h"

SM_DECLARATIONS_BEGIN

/* ---- serving software: data/engines ---- */
/* key of the file, value where it is silent, what */
#define SM_SOFTWARE_FLAGS(X)                                                                       \
    X(mixed_steps, true, "prefill and decode share a step")                                        \
    X(schedules_ahead, false, "a step is scheduled while the one before it runs")                  \
    X(eager_launches, false, "kernels are launched one by one")                                    \
    X(reserves_whole_requests, false, "a request is admitted when its full length fits")           \
    X(kv_in_8_bits, false, "weights in 8 bits and below come with a cache in 8 bits")              \
    X(cache_by_batch, false, "chips beyond the KV heads hold other sequences, not copies")         \
    X(share_is_static, false, "memory_share is of weights and cache, a step lies beyond it")       \
    X(share_is_of_rest, false, "memory_share is of what weights and a step leave")
/* key, value where it is silent, least and most, what */
#define SM_SOFTWARE_NUMBERS(X)                                                                     \
    X(budget_tokens, 8192, 1, 1e9, "of prefill in a step")                                         \
    X(budget_of_all, 0, 0, 1e9, "the same of all groups of chips together; 0: of each")            \
    X(most_running, 1024, 1, 1e6, "sequences")                                                     \
    X(most_of_all, 0, 0, 1e6, "the same of all groups of chips together; 0: of each")              \
    X(memory_share, 0.9, 0, 1, "of a chip's memory, as its option has it; 0: by its rule")         \
    X(left_bytes_per_token, 0, 0, 1e9, "by that rule, of a step's budget of tokens")               \
    X(sampler_bytes, 14.2, 0, 1e4, "to draw the token of a sequence, for each of the vocabulary")  \
    X(runtime_bytes, 2.7e8, 0, 1e12, "beside arrays that starting the engine takes")               \
    X(group_bytes, 1.95e9, 0, 1e12, "more for communicators where chips share an engine")          \
    X(peer_bytes, 3e7, 0, 1e12, "and for each of them but one")                                    \
    X(window_tokens, 0, 0, 1e9, "beyond its window, of a local layer in the size it prints")       \
    X(graph_bytes, 0, 0, 1e9, "of recorded steps, of each token of one, where they count")         \
    X(peer_kernel, 2, 0, 2,                                                                        \
      "all-reduce in a node: 1, one kernel, 2, and barriers, 0, a library's")                      \
    X(admission_s, 0.05, 0, 3600, "before its prefill a request is parsed, queued and scheduled")  \
    X(handover_s, 0.05, 0, 3600, "beside it where prefill is apart: router and way to decode")     \
    X(look_steps, 1, 1, 1e6, "of decoding between two looks for new requests")                     \
    X(gather_steps, 0, 0, 1e6, "at most that prompts wait until every group of chips has one")     \
    X(host_s_per_sequence, 0, 0, 1, "of a step: scheduling, sampling, detokenising")               \
    X(expert_imbalance, 1, 0.01, 100,                                                              \
      "what the matmuls of experts take over dense ones as large: grouped "                        \
      "kernels, padding, the fullest chip")                                                        \
    X(widening_rate, 1, 0.05, 1, "what products of experts reach whose weights are widened to 16") \
    X(drafted_tokens, 3, 1, 64, "of a step of multi-token prediction")                             \
    X(accepted, 0.68, 0, 1, "probability of each drafted token")
/* What an engine takes where its launch does not say it: on chips whose driver reports so much
 * memory, with this in their name and not that (NULL: any), for models of a family (NULL: any),
 * where tokens are drafted. 0: it does not say that number. */
typedef struct sm_software_default {
    double memory_at_least;
    const char *chip, *not_chip, *family;
    bool drafts;
    double budget_tokens, budget_of_all, most_running, most_of_all, widening_rate;
} sm_software_default;
struct sm_software {
    const char *name, *title;
    const char *aliases; /* other names, with spaces between; NULL: none */
    const char *like;    /* the version whose constants stand in where it has none; NULL: none */
    const sm_software_default *defaults; /* those that hold come one after the other */
    int n_defaults;
    bool budget_given, most_given, share_given, widening_given; /* no default changes them */
    SM_SOFTWARE_FLAGS(SM_FLAG_MEMBER)
    SM_SOFTWARE_NUMBERS(SM_NUMBER_MEMBER)
};
/* The software of this name; "serving", which has the usual values, for NULL and any other. */
const sm_software *sm_software_of(const char *name);
/* What differs of a software: look_steps=30,most_running=128, the keys of data/engines, flags on or
 * off. SM_BAD_INPUT with the place of what is none of them. */
sm_status sm_software_set(sm_software *software, const sm_source *source, sm_error *err);
/* An engine of one's own: the text of a file as data/engines has them (docs/serving.md, 3). Its
 * texts live in the arena. SM_BAD_INPUT with the place. */
sm_status sm_software_parse(const sm_source *source, sm_arena *arena, sm_software *out,
                            sm_error *err);
/* Its defaults on a chip, for a model, with drafts or without: idempotent. */
void sm_software_on(sm_software *software, const sm_chip *chip, const sm_model *model, bool drafts);
/* The software of a job with them. */
const sm_software *sm_serve_software(const sm_serve *serve);
/* Of chips in so many groups with sequences of their own: tokens of prefill in a step of all, and
 * sequences that decode at once, as the software lets. */
double sm_software_budget(const sm_software *software, double groups);
double sm_software_most(const sm_software *software, double groups);
/* That text again: in what it differs from the software of its name, which is returned; of a name
 * that nothing ships has, from what it is like. Empty: in nothing. */
const sm_software *sm_software_differs(const sm_software *software, char *out, size_t size);
/* The constants of this chip under this software, else under the version that it is like, and so
 * on; else in the same order those of the chip's relatives. NULL: there are none. */
const sm_calibration *sm_software_calibration(const sm_chip *chip, const char *name);

/* ---- a load ---- */
typedef enum sm_load_kind {
    SM_LOAD_BATCH,  /* one static batch */
    SM_LOAD_CLOSED, /* so many in flight: each that ends is followed by another */
    SM_LOAD_OPEN,   /* so many a second */
    SM_LOAD_QUEUE   /* all are there: as many run as the memory holds */
} sm_load_kind;
/* Lengths are those of the jobs. */
typedef struct sm_load {
    sm_load_kind kind;
    double requests;            /* batch, in flight, or a second; over all engines */
    bool no_prefill, no_decode; /* phases that do not count */
    double rounds;              /* of those in flight: requests of each client; 0: SM_LOAD_ROUNDS */
    /* Of those in flight, lengths: lognormal of this coefficient of variation; else drawn evenly
     * from this share of the longest (0: SM_LOAD_SHORTEST). */
    double spread, shortest;
    /* Of requests at a rate: limits to nine first tokens in ten, and times per token, 0: none.
     * Where they are surely missed nothing is simulated on, and first tokens come after INFINITY.
     */
    double most_ttft_s, most_tpot_s;
    /* A measured time to first token, 0: none. Of those in flight the ones that wait for it are not
     * in decode, which a bound must not count. */
    double waited_s;
} sm_load;

/* Equal engines that share the requests; with `apart` others prefill for those that decode. */
typedef struct sm_engines {
    sm_serve *decode, *prefill; /* one and the same unless apart; priced under their jobs'
                                   software */
    sm_plan plan, prefill_plan;
    double n, prefill_n; /* engines */
    bool apart;
    double most_running;  /* sequences that one engine decodes at once */
    double most_possible; /* that memory could hold, for the bound; 0: as most_running */
    double kv_tokens;     /* of its cache, which then says who runs; 0: most_running do */
} sm_engines;
/* So many of a plan, whose chips prefill and decode. */
sm_engines sm_engines_of(sm_serve *serve, const sm_plan *plan, double n);

/* Means, but for those named otherwise. request_s: seconds between two requests that end; running:
 * sequences that decode in each engine, in steady state. Of the mean of requests in flight the
 * opening burst of a benchmark has its share; half of those after it, and 99 of
 * 100, have their first token within the next two. Nine of ten have a first token, and at a rate
 * a time per token, within the last two. */
typedef struct sm_load_times {
    double ttft_s, tpot_s, latency_s, request_s, running;
    double ttft_median_s, ttft_p99_s; /* of a batch or a queue: as the mean */
    double ttft_p90_s, tpot_p90_s;    /* likewise; tpot in flight too */
} sm_load_times;
#define SM_LOAD_SHORTEST 0.8 /* of the longest prompt and output, as benchmark tools draw them */
#define SM_LOAD_ROUNDS 10    /* requests of each client, the first of which all begin at once */
/* What a load comes to; lower: under the bounds of the steps in place of what is expected. Requests
 * in flight are simulated (sm_simulate) as a benchmark of ten requests of each client, with lengths
 * as such tools draw them, from SM_LOAD_SHORTEST to all of it. Requests that come at a rate are
 * simulated: Poisson arrivals, lengths all alike; of more than the engines can take, first tokens
 * are those of nine tenths of that. SM_BAD_INPUT with the reason when a step of the plan is
 * impossible. */
sm_status sm_serve_load(const sm_engines *engines, const sm_load *load, bool lower,
                        sm_load_times *times, sm_error *err);
SM_DECLARATIONS_END
