/* Private to train: the space of plans as nodes (degrees), each with all its leaves. */
#pragma once
#include "scalemodel/search.h"
#include "space.h"

#include <assert.h>
#include <math.h>

/* A bound is a sum of other terms than the price it bounds: so much of it may be rounding. */
#define ROUNDING 1e-12

enum { MAX_MICROBATCH = 32, MAX_DIMS_ORDERS = 6, MAX_PLACEMENTS = MAX_DIMS_ORDERS * 720 };
enum { MAX_VIRTUAL = 8, MAX_DIVISORS = 1536 }; /* no int has more */

typedef struct node {
    int32_t degree[SM_PLAN_DEGREES];
    double reach; /* what a plan of it takes; HUGE_VAL: none is known, 0: it is not refined */
} node;

typedef struct pipeline_choice {
    sm_schedule schedule;
    int virtual_stages;
} pipeline_choice;

/* Spaces of the search's list, a bit each; a search of all plans has one, which has every value. */
typedef uint32_t space_set;

/* Of choices.pipeline, a bit each. */
typedef uint32_t schedule_set;
enum { PASS_KINDS = 3 }; /* schedules of one kind have the same passes */

/* What a leaf may choose, after the fixed keys. */
typedef struct choices {
    int n_zero, n_recompute, n_offload, n_pipeline, n_microbatch;
    int zero[3];
    int recompute[SM_RECOMPUTE_COUNT];
    int offload[SM_OFFLOAD_COUNT];
    pipeline_choice pipeline[SM_SCHEDULE_COUNT + MAX_VIRTUAL];
    int microbatch[MAX_MICROBATCH];
    space_set spaces; /* that have plans of these degrees, but those within another of them */
    struct spaces_of_values { /* those that have this value: a plan is in what all its values are */
        space_set zero[4], seq[2], expert_tensor[2], context_by[SM_CONTEXT_HEADS + 1];
        space_set recompute[SM_RECOMPUTE_COUNT], regather[SM_REGATHER_COUNT];
        space_set offload[SM_OFFLOAD_COUNT];
        space_set pipeline[SM_SCHEDULE_COUNT + MAX_VIRTUAL], microbatch[MAX_MICROBATCH]; /* nth */
        space_set unusual; /* orders of axes */
    } in;
} choices;
/* What is known of plans of some degrees: the spaces that have any, and the limits of each there.
 */
typedef struct known_limits {
    space_set spaces;
    sm_plan_limits of[SM_MOST_SPACES];
} known_limits;
/* False: no space has a plan of these degrees, whose limits are asked where they are not known
 * (NULL). */
bool choices_fill(const sm_train *t, const sm_search_options *o, const sm_plan *plan,
                  const known_limits *known, choices *c);
/* The spaces that have plans with these choices of what shards the program. */
static inline space_set choices_allow(const choices *c, const sm_plan *plan) {
    return c->spaces & c->in.seq[plan->seq] & c->in.expert_tensor[plan->expert_tensor] &
           c->in.context_by[plan->context_by];
}
/* What a plan may gather again, under its other keys but for offload, or with activations in host
 * memory: from what keeps most to what keeps least, with the spaces that have it. Returns how many.
 */
typedef struct regather_choice {
    sm_regather regather;
    space_set in;
} regather_choice;
int choices_regather(const sm_search_options *o, const choices *c, const sm_plan *plan,
                     bool on_host, regather_choice regather[SM_REGATHER_COUNT]);
static inline bool offloads_activations(int offload) {
    return offload == SM_OFFLOAD_ACTIVATIONS || offload == SM_OFFLOAD_BOTH;
}
/* Plans of these degrees: placements and choices. */
double choices_leaves(const sm_train *t, const sm_search_options *o, const sm_plan *plan,
                      const choices *c);

/* Local work depends on the rules, the tensor, context and expert degrees and the microbatch alone,
 * so nodes share it; where gradients are added apart (adding_bytes), on whether fsdp shards them.
 */
static inline uint64_t work_key(const sm_train *t, const variant *v, const sm_plan *plan) {
    bool added = t->software_memory.adding_bytes > 0 && plan->fsdp == 1;
    uint64_t key = sm_hash_mixed(sm_hash_mixed(v->work, added), (uint32_t)plan->tensor);
    return sm_hash_mixed(sm_hash_mixed(key, (uint32_t)plan->context), (uint32_t)plan->expert);
}
#define TIMED_BYTES offsetof(piece_time, memory)
typedef struct timed {
    uint64_t key;
    unsigned char *time; /* TIMED_BYTES of each piece */
    kept_bytes *kept;
    bool has_time, has_kept;
} timed;
/* Passes of each kind of layer, of what comes before all of them and of the head, with the
 * collectives of no placement, which depend on fsdp and the rules beside: for each kind of
 * schedule. With the least work, those of the main kind of layers alone; all; with all work timed.
 */
typedef enum passes_of_what { MAIN_COMM, ALL_COMM, ALL_TIMED } passes_of_what;
typedef struct placed_passes {
    uint64_t key;
    pass *at;
    passes_of_what of;
} placed_passes;
/* What no microbatch takes less than, by which most are ruled out before they are timed. */
typedef struct timed_floor {
    uint64_t key;
    work_floor *at; /* of each piece */
} timed_floor;
typedef struct counted { /* plans of nodes that have as many */
    uint64_t key;
    double leaves;
} counted;
static inline int passes_of(const sm_train *t) { return t->kinds + 2; }
/* What a lane keeps, where the nodes are many; where they are few it is not worth its clearing.
 * Most of its bytes are of tables that are found by keys and never filled. */
enum {
    LANE_BYTES = 1 << 26,
    TIMED = 8192,
    FEW_NODES = 256,
    FEW_TIMED = 512,
    FEW_LAYOUTS = 17, /* the chunks of a stage fall into as many places */
    HOPEFUL = 4,
    COUNTED = 512
};

/* Of the schedules that were asked those that may fit: with any plan; without ZeRO-2 and with it,
 * with activations on the chip and in host memory, of each recomputation and of what is gathered
 * again. */
typedef struct fit_memo {
    uint32_t stamp;
    schedule_set asked, any, fit[2][2][SM_REGATHER_COUNT][SM_RECOMPUTE_COUNT];
} fit_memo;

/* A placement of the axes of a node, or of those that come first in the order and leave the rest to
 * what follows: a tree, of which the placements that begin so are listed once they are needed. */
typedef struct listed {
    sm_placement placement;
    uint8_t order[SM_PLAN_DEGREES], dims[3];
    uint64_t key[SM_PLACED_AXES]; /* of the parts of each axis */
    sm_axes axes;                 /* that are placed */
    bool whole;                   /* all are */
    bool usual;                   /* their order is */
    int depth;                    /* how many are */
    int first, count;             /* in the list, those that begin so; -1: not listed */
} listed;

/* Some chunks of a stage of a schedule: the layers before them, and theirs of every microbatch;
 * whether they have the head. */
typedef struct schedule_spot {
    double before[SM_MAX_LAYER_KINDS], own[SM_MAX_LAYER_KINDS];
    bool has_head;
} schedule_spot;
/* Those that make a step long: the innermost stage; where a V turns back, the last chunk too. */
typedef struct schedule_shape {
    schedule_spot spot[2];
    int spots;
} schedule_shape;

/* Nodes that share all degrees but how many of their replicas are of fsdp have the same schedules,
 * rules and local work: the rules of them whose work leaves a chance. */
enum { MOST_RULES = 48 };
typedef struct family_rules {
    sm_plan plan;
    const variant *v;
    schedule_set alive[MAX_MICROBATCH];
} family_rules;
typedef struct family_key {      /* compared as bytes */
    int degree[SM_PLAN_DEGREES]; /* for data and fsdp the product, and whether fsdp exceeds 1 */
    pipeline_choice pipeline[SM_SCHEDULE_COUNT + MAX_VIRTUAL];
    int microbatch[MAX_MICROBATCH];
} family_key;
typedef struct family {
    family_key key;
    schedule_set passes[PASS_KINDS]; /* of a kind */
    int n;
    family_rules rules[MOST_RULES];
} family;

typedef struct lane_scratch {
    pieces p;
    stages s;
    stage_load load[4][MAX_LOADS]; /* of each ZeRO stage */
    timed *memo;                   /* n_timed of them */
    size_t n_timed;
    timed_floor *floor;     /* n_timed of them */
    placed_passes *hopeful; /* HOPEFUL times as many */
    /* What places have that are used, one after the other: few pages are touched. */
    unsigned char *time_room;
    kept_bytes *kept_room;
    work_floor *floor_room;
    pass *pass_room;
    /* Memory does not depend on the placement: kept for all placements of a node (those of an older
     * stamp are void). */
    uint32_t stamp;
    fit_memo *fit;                                         /* of each microbatch */
    double least_memory;                                   /* of all that were looked at */
    schedule_shape shape[SM_SCHEDULE_COUNT + MAX_VIRTUAL]; /* of the node at hand */
    schedule_set possible[MAX_MICROBATCH];                 /* with so many microbatches */
    family family;                                         /* that of the node at hand */
    int placements, axes;           /* of the node at hand: in the list; that shard anything */
    uint8_t usual[SM_PLAN_DEGREES]; /* the order that spaces of the usual order alone have */
    listed none, *placement;        /* with no axis placed; the list */
    int placement_room;
    sm_group *group;                   /* of some axes, as many */
    uint64_t seen[MAX_PLACEMENTS * 2]; /* of which seen_room are used for axes of such a number */
    size_t seen_room;
} lane_scratch;

typedef struct outcome {
    bool found;
    double objective;
    sm_plan plan;
    double evaluated;
} outcome;

/* A node with a plan that takes no more than so much. */
typedef struct near_node {
    size_t node;
    double objective;
    bool visited; /* a climb looked at its neighbours */
} near_node;

typedef struct plan_search {
    const sm_search_options *options;
    const sm_train *train;
    bool count_only; /* the chips in use cannot win: count the plans, look at none */
    int divisors, divisor[MAX_DIVISORS]; /* of the chips in use, in their order */
    size_t nodes, room;
    node *node;
    double *bound;
    int n_near;
    near_node near[SM_MAX_TOP]; /* those of these chips that reach least, in their order */
    double space;
    double floor_s; /* no plan on the chips in use takes less */
    counted counted[COUNTED];
    lane_scratch *lane;
    int lanes;
    bool roomy;             /* the lanes are made for many nodes */
    int microbatches, axes; /* the most that a node has to choose from, and that shard anything */
    int made_for[2];        /* of them, the lanes */
    sm_arena *scratch;      /* of the lanes */
    outcome place[SM_BATCH];
    int found;
    sm_plan best[SM_MAX_TOP];
    double objective[SM_MAX_TOP];
    double until_s, unseen; /* when to stop; no plan that was not looked at is better */
    sm_search_effort effort;
} plan_search;
/* The order in which they are enumerated: as strcmp. */
int search_order(const void *a, const void *b);
/* The nodes that use exactly `chips` chips. */
sm_status search_enumerate(plan_search *h, int chips, sm_error *err);
/* Whether the model can ever use this degree on this axis. */
bool search_splits(const sm_train *t, int key, int degree);
/* No plan on so few chips takes less. */
double search_floor(const sm_train *t, const sm_plan *plan, int chips);
/* A bound of a node from the least of its plans with collectives that no placement beats; HUGE_VAL:
 * none fits, or none is below the threshold. */
double search_refine(void *context, int lane, size_t number, double threshold);
/* A node that was refined joins those that reach least. Returns the threshold from then on. */
double search_refined(void *context, size_t number);
/* The best plan of a node. */
void search_expand(void *context, int lane, int place, size_t number, double threshold);
/* What plans must be better than; what the node looked into at `place` has joins the best. Returns
 * the threshold from then on. */
double search_threshold(const plan_search *h);
double search_merge(void *context, int place, size_t number);
/* Look into a few nodes that reach least; their bounds become infinite. */
void search_climb(plan_search *h);
/* List those that begin with a placement of the plan's degrees: on switches with one axis more,
 * else, or without bounds, whole. Each stands once in l->placement. */
void placements_list(const plan_search *h, const sm_plan *plan, lane_scratch *l, listed *of);
/* On a torus: the curves at hand, or those of the main kind of layers alone, become the least of
 * the listed placements, which are those of a whole node: each is made once for all its rules. */
void placements_least(const sm_train *t, bool main_alone, lane_scratch *l);
/* What the search makes least: seconds, chip-seconds or bytes. */
double objective_of(const sm_search_options *o, const sm_plan *plan, double expected_s,
                    double memory);

/* ---- one node ---- */
/* Schedules of plans that were looked at in some spaces, of which none was too large. */
typedef struct settled_set {
    space_set in;
    schedule_set schedules;
} settled_set;
typedef enum curves_of { REST_NONE, REST_PLACED, REST_LEAST } curves_of;
typedef struct expansion {
    const plan_search *h;
    const sm_train *t;
    lane_scratch *l;
    sm_plan plan;
    choices c;
    /* Collectives are those of no placement, but cost no more than those of any: what is found is
     * no plan but a bound. */
    bool bounding;
    bool one;         /* such a bound is enough, and need not be the least */
    double threshold; /* only better plans matter */
    bool found;       /* one, which is `best` and made the threshold */
    sm_plan best;
    double evaluated;
    int n_regather[2]; /* activations on the chip; in host memory */
    regather_choice regather[2][SM_REGATHER_COUNT];
    space_set in;      /* the spaces that have what is chosen of the plan at hand */
    bool squeezed;     /* some plan of the schedule at hand did not fit */
    schedule_set open; /* that may win with the microbatch at hand */
    const family_rules *rules, *best_rules; /* of the plan at hand, of the best */
    double microbatches;                    /* of it */
    double end_s[2];                        /* no step ends in less; under dualpipe */
    bool loaded;                            /* the ends of a step with the curves at hand */
    bool known;       /* schedules that the curves at hand leave no chance are out */
    bool laid;        /* the curves at hand are those of no placement */
    curves_of rest;   /* curves of others than the main layers that are still to be made */
    bool host_beside; /* plans with activations in host memory have one each without */
    settled_set done[2][SM_RECOMPUTE_COUNT][SM_REGATHER_COUNT]; /* on the chip; in host memory */
    double state[2][2][MAX_LOADS]; /* without ZeRO-2 and with it the least that each piece has of
                                      weights, gradients and optimizer; under dualpipe */
    double simulated_s;            /* of the schedule at hand, < 0 before it is needed */
    double time_1f1b_s;            /* the same of 1F1B beside GPipe, where that was asked for too */
    bool gpipe_beaten;             /* unless it is quicker than that */
    step_end end;                  /* of it under the ZeRO stage at hand; parts 0: not known yet */
    int microbatch, recompute;     /* indices in choices, for what is kept of a node */
} expansion;
/* The schedules of a node. */
void leaves_shape(expansion *x);
/* Of each microbatch the schedules by which its local work leaves a chance; false: none. Of those
 * of microbatch c.microbatch[i], those that do with the collectives of no placement, which become
 * the curves at hand. */
bool leaves_work(expansion *x, schedule_set *alive);
schedule_set leaves_hopeful(expansion *x, int i, schedule_set of);
/* Every plan of microbatch c.microbatch[i] by these schedules with the curves at hand; those that
 * their collectives leave a chance become `open`. */
void leaves_try(expansion *x, int i, schedule_set of);
