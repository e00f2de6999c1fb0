/* radix: the prefix cache of one replica: a radix tree over runs of tokens, in whole pages. A run
 * is known by a label (a shared prefix, a conversation, a block), not by its tokens, so a node is
 * one run: equal labels after equal runs hold equal tokens. Least recently used pages go first,
 * from the ends of branches, to host memory and then for good. Private to src/serve. */
#pragma once
#include "scalemodel/base.h"

#include <assert.h>

/* A prompt as runs: run i has label[i] and reaches up to page end[i] of the prompt. */
typedef struct sim_run_list {
    int n;
    const uint64_t *label;
    const int64_t *end;
} sim_run_list;

/* Where pages lie, and what of them may go from there: a list of nodes by last use. */
typedef enum sim_tier { SIM_HOT, SIM_COLD, SIM_TIERS } sim_tier; /* HBM, host memory */

typedef struct sim_node {
    uint64_t label;
    int64_t start;           /* pages before it */
    int64_t hot, cold;       /* pages in HBM and, after them, in host memory */
    int parent, first_child; /* -1: none */
    int next, previous;      /* siblings */
    int chain;               /* of its hash bucket; of the free list */
    struct {
        int newer, older; /* -1: none */
    } use[SIM_TIERS];
    int pins;      /* sequences that use it or what follows it */
    int32_t place; /* of its page in memory, where nodes are single pages that have one; -1 */
} sim_node;

typedef struct sim_radix {
    sim_node *node; /* 0 is the root */
    int nodes, room, free;
    int *bucket;
    int buckets;                              /* a power of two */
    int oldest[SIM_TIERS], newest[SIM_TIERS]; /* -1: none */
    int64_t hot, pinned;                      /* pages in HBM, and of them those of pinned nodes */
    int64_t cold, cold_most;
    void (*given)(void *context, int32_t place); /* of a page that is given back; NULL */
    void *context;
} sim_radix;

sm_status sim_radix_begin(sim_radix *tree, int64_t host_pages, sm_error *err);
void sim_radix_end(sim_radix *tree);
/* Pages of the longest cached beginning of the runs. *node: where it ends, to be pinned. *cold: how
 * many of the pages are in host memory. */
int64_t sim_radix_match(const sim_radix *tree, const sim_run_list *runs, int *node, int64_t *cold);
/* A pinned node stays, with all before it. */
void sim_radix_pin(sim_radix *tree, int node);
void sim_radix_unpin(sim_radix *tree, int node);
/* Bring what lies in host memory of the first `pages` pages back; returns how many came. */
int64_t sim_radix_warm(sim_radix *tree, int node, int64_t pages);
/* Make HBM hold all runs; *added pages are new there. *node: where the last run ends. */
sm_status sim_radix_insert(sim_radix *tree, const sim_run_list *runs, int64_t *added, int *node,
                           sm_error *err);
/* Give back at most so many pages of HBM; returns how many. */
int64_t sim_radix_evict(sim_radix *tree, int64_t pages);
/* Host memory for something else: at least so many of the pages are free after it, or all. */
void sim_radix_set_host(sim_radix *tree, int64_t host_pages);
