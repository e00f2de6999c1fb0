/* Private to train: a job with its partitioned programs, and the stages through which a plan is
 * priced.
 *
 *   degrees -> piece_time (local work) -> piece_comm (placed collectives) -> chunks -> pipeline ->
 * step, memory
 *
 * Work depends on the degrees and the microbatch alone, so it is memoised; everything else is a few
 * sums. */
#pragma once
#include "partition.h"
#include "scalemodel/train.h"

enum {
    MAX_PIECES = SM_MAX_LAYER_KINDS + SM_MAX_OUTSIDE, /* kinds, embedding and others, head */
    MAX_LOADS = MAX_PIECES + 1,                       /* then the head's copy of a tied embedding */
    MAX_SETS = SM_RECOMPUTE_COUNT + 1, /* named recomputation policies, then the plan's own set */
    CUSTOM_SET = SM_RECOMPUTE_COUNT,
    MAX_SLOTS = 64, /* distinct (collective, axes) of a variant */
    MAX_KEPT = 12,
    MAX_EAGER = 64,
    MAX_CHUNKS = 1024,
    VARIANTS = 384
};

/* Elements of an array that one op makes and that software of separate kernels keeps more of. */
typedef enum eager_kind {
    EAGER_NORM,
    EAGER_GATE,
    EAGER_HEADS,
    EAGER_LOSS,
    OPERAND, /* kept for matmuls alone */
    WEIGHTED /* experts' results, kept for the gradient of their weights alone */
} eager_kind;
typedef struct eager_array {
    eager_kind kind;
    sm_size elements;
} eager_array;

/* What a recomputation set means for one piece, beside what regather keeps. */
typedef struct piece_set {
    sm_bits again;
    int kept;
    sm_size kept_bytes[MAX_KEPT];
    int eager; /* what software without fused kernels keeps more */
    eager_array *eager_array;
} piece_set;

/* A collective of a microbatch, as it is added up. */
typedef enum comm_kind { BLOCKING, EXCHANGE, RING, STREAM, COMM_KINDS } comm_kind;
typedef struct sent {
    uint16_t like;      /* the first that takes as long, of the main kind of layers or of its own
                           piece: piece x SM_MAX_COMM + nth */
    uint8_t slot;       /* its curve */
    uint8_t sum, kind;  /* of piece_comm; of comm_kind */
    bool may_run_again; /* with the op that it serves */
} sent;

typedef struct piece {
    sm_partition part;
    sent sent[SM_MAX_COMM];        /* each collective */
    bool sends_as_main;            /* those of the main kind of layers, in their order */
    piece_set set[MAX_SETS];       /* what is gathered is gathered again */
    piece_set set_whole[MAX_SETS]; /* activations are kept as they were gathered */
    int eager;                     /* arrays of these, one after the other; CUSTOM_SET's are last */
    eager_array eager_array[2 * MAX_SETS * MAX_EAGER];
    int gradients; /* of the op with most of them: made while its operands live */
    sm_size gradient_bytes[SM_MAX_OPERANDS];
} piece;

/* Collectives of weights at the end of a step, and of every microbatch under ZeRO-2. */
typedef struct class_slots {
    uint8_t reduce_scatter, all_reduce, all_gather, across, broadcast;
} class_slots;

/* Of a group over data, where the plan keeps copies of the optimizer's state: all of it, the chips
 * of one copy, or those that have the same part of each. */
typedef enum slot_part { ALL_COPIES, ONE_COPY, ACROSS_COPIES } slot_part;
typedef struct slot_key {
    sm_collective op;
    sm_axes axes;
    bool ragged;
    slot_part part;
} slot_key;

typedef struct variant {
    uint64_t code; /* of the rules */
    uint64_t work; /* equal for equal local work */
    sm_rules rules;
    int pieces;
    piece *piece;
    int loans, widest; /* the layer before which most of them cross */
    sm_loan loan[SM_MOST_LOANS];
    int slots, main_slots; /* those before: of the main kind of layers in a microbatch */
    slot_key key[MAX_SLOTS];
    sm_axes over; /* of the collectives of a microbatch */
    class_slots weight[MAX_PIECES][SM_MAX_WEIGHT_CLASSES];
} variant;

typedef struct pieces pieces;
typedef struct stages stages;

struct sm_train {
    sm_model model;
    sm_system system;      /* that the plan at hand runs on */
    sm_system whole;       /* of which it is a part, where part > 0 */
    int part;              /* chips of the part; 0: it is the whole */
    sm_calibration own;    /* a copy: what calibration points to */
    sm_calibration kernel; /* the same for one kernel of a full queue: its gap, not its launch */
    const sm_calibration *calibration;
    sm_software_memory software_memory;
    double seq, sequences, tokens, usd_per_chip_hour;
    double memory_margin; /* part of the memory that stays free */
    sm_train_software software;
    double weight_bytes;          /* of a weight as it is stored and gathered */
    int kinds, main_kind;         /* layer kinds in use, piece k is kind k; that with most layers */
    double model_flops_per_token; /* without padding */
    double padding;               /* share of a forward pass; 0: the model is as it was given */
    double matmul_flops_per_token;     /* forward, of products with weights */
    double layers[SM_MAX_LAYER_KINDS]; /* of each kind */
    double most_experts;               /* E of the kinds, 0 when dense */
    double largest_top_k;
    const sm_text_lines *lines[MAX_PIECES]; /* of each piece, once a program was built */
    variant *variant[VARIANTS];             /* the first are built, in any order */
    sm_arena *arena;
    sm_lowerings lowerings; /* of the variants */
    struct pieces *one;
    struct stages *one_stages; /* scratch of sm_train_price */
};
/* Ops of the forward pass that run again under a set. */
static inline sm_bits piece_again(const sm_train *t, const piece *p, int set) {
    return set == SM_RECOMPUTE_FULL && t->software_memory.runs_whole ? ~(sm_bits)0
                                                                     : p->set[set].again;
}

static inline double larger(double a, double b) { return a > b ? a : b; }
static inline double smaller(double a, double b) { return a < b ? a : b; }

/* What the backward pass does not gather again: by the plan, and by what its software keeps. */
static inline sm_regather kept_gathered(const sm_train *t, const sm_plan *plan) {
    return (sm_regather)(plan->regather |
                         (t->software_memory.gathered_kept ? SM_KEEPS_ACTIVATIONS : 0));
}
/* How often its software makes a collective of the program: gate_reduced. */
int comm_times(const sm_train *t, const sm_program *program, const sm_comm *comm);

/* ---- sizes ---- */
static inline double size_at(const sm_size *s, const sm_degrees *d) {
    if (!s->per_sequence) return sm_size_share(s, d);
    const double sequences = d->sequences / d->ways[s->mask & d->sequence_axes];
    return s->base * sequences / d->ways[s->mask & ~(unsigned)d->sequence_axes];
}

/* ---- local work of a piece, one microbatch ---- */
typedef struct piece_time {
    /* expected seconds; in them attention, under which a ring hides, and waiting for the host */
    double forward, backward_input, backward_weight, again[MAX_SETS];
    double ring[2], idle[SM_PHASE_COUNT]; /* ring: forward, backward */
    /* the rest tells of a plan what a search does not ask */
    double memory[2], again_memory[MAX_SETS]; /* part of them bound by HBM */
    double math[2], math_again[MAX_SETS];     /* seconds at peak: forward, backward */
    double flops[2], flops_again[MAX_SETS];
    double kernels[SM_PHASE_COUNT], kernels_again[MAX_SETS];
    double traffic[2]; /* seconds of HBM no implementation avoids: weights and kept arrays */
    double launches;   /* seconds of the host, in the passes that it bounds */
} piece_time;
void piece_time_compute(const sm_train *t, const variant *v, int index, const sm_degrees *d,
                        sm_dtype dtype, piece_time *out);
/* No microbatch of n sequences takes less in a phase: max(n x each, read) + gaps, or `host`. Work
 * of several pieces is added up. */
typedef struct work_floor {
    double each[SM_PHASE_COUNT], read[SM_PHASE_COUNT], gaps[SM_PHASE_COUNT], host[SM_PHASE_COUNT];
} work_floor;
/* d: of microbatches of one sequence. */
void piece_floor_add(const sm_train *t, const variant *v, int index, const sm_degrees *d,
                     sm_dtype dtype, work_floor *to);

/* One op of a piece: what it takes and why. */
typedef struct priced {
    double expected, math, flops, bytes, kernels;
    bool memory_bound;
} priced;
priced piece_work_price(const sm_train *t, const variant *v, const sm_work *w, const sm_degrees *d,
                        sm_dtype dtype);

/* ---- placed collectives ---- */
/* Of one plan, or of no placement; of a lane of a search, which meets some thousands of groups. */
enum { CURVES = 1024, SEARCH_CURVES = 6144, LEASTS = 2 * MAX_SLOTS };
typedef struct placed { /* a plan's placement with its curves */
    sm_placement placement;
    int copies; /* of the optimizer's state */
    const sm_timed_curve *slot[MAX_SLOTS];
    const sm_timed_curve *send;   /* one stage to the next */
    sm_curve_memo memo, unplaced; /* the second: of a search, where no axis lies anywhere */
    /* of place_least, by what they are of */
    int leasts;
    slot_key least_of[LEASTS];
    sm_timed_curve least[LEASTS];
} placed;
/* The axes of the program that a degree of a plan gives members to. */
sm_axes axes_of_key(int key);
/* Whether two levels are dimensions of a torus that can change places without a difference. */
bool dims_alike(const sm_system *system, int a, int b);
/* Every collective of a variant on the placement at hand: p->placement must be filled. */
void place_curves(const sm_train *t, const variant *v, bool main_alone, placed *p);
/* Curves that no placement on the system beats, each for itself, in which placed_axes lie where
 * p->placement has them (0: none). On a torus they keep every dimension busy for as long as the
 * average one: use them together or not at all, and place no axes. */
void place_hopeful(const sm_train *t, const variant *v, const sm_plan *plan, const sm_degrees *d,
                   sm_axes placed_axes, placed *p);
/* The i-th collective of a variant, and after those of its slots what goes to the next stage. */
slot_key place_slot(const variant *v, int i);
/* The group of these axes, or of the part that a slot has of them. */
sm_group place_group(const sm_train *t, const sm_placement *at, int copies, sm_axes axes,
                     slot_part part);
/* The least of a collective that was made last; NULL: none was. Make that of n groups. */
const sm_timed_curve *place_least_made(const slot_key *key, const placed *p);
void place_least(const sm_train *t, const slot_key *key, int n, const sm_group *of, placed *p);

/* Some of the collectives of a microbatch: their seconds, and how long each level is busy. */
typedef struct comm_sums {
    double s[COMM_KINDS];       /* exchange: all-to-all of routed tokens; streams: if nothing
                                   overlapped */
    double latency;             /* inside them, but for streams */
    double busy[SM_MAX_LEVELS]; /* with streams */
    double all[SM_MAX_LEVELS];  /* with everything */
} comm_sums;
/* Forward; backward, but for what the forward pass made too: weights and activations, where
 * regather does not keep them. */
enum { SUM_FORWARD, SUM_BACKWARD, SUM_WEIGHTS, SUM_ACTIVATIONS, COMM_SUMS };
typedef struct piece_comm {
    comm_sums sum[COMM_SUMS];
    comm_sums again[MAX_SETS]; /* what recomputation asks for */
} piece_comm;
/* Of one collective: seconds, how many of them are latency, and those of each level that is busy.
 */
typedef struct comm_time {
    double s, latency, busy[SM_MAX_LEVELS];
} comm_time;
/* What a plan makes of them in one direction: seconds, and how long the busiest level is busy. */
typedef struct comm_way {
    double blocking, exchange, ring, serial, latency;
    double busy, all; /* with streams, with everything */
} comm_way;
comm_way piece_comm_way(const sm_train *t, const piece_comm *comm, int way, int set,
                        const sm_plan *plan);
/* Seconds that a level is busy with everything, both ways. */
double piece_comm_busy(const sm_train *t, const piece_comm *comm, int level, int set,
                       const sm_plan *plan);
/* Bytes of one collective of a piece under a plan: in the dtype its gradients or 8-bit operands
 * travel in, and of as many heads as its software sends (keys_whole). */
double comm_bytes(const sm_train *t, int index, const sm_comm *c, const sm_degrees *d,
                  const sm_plan *plan);
/* All but what recomputation asks for, of the main kind of layers first; and that, after all. */
void piece_comm_compute(const sm_train *t, int index, const sm_plan *plan, pieces *p);
void piece_comm_again(const sm_train *t, int index, pieces *p);

/* Seconds each level is busy with the collectives of a microbatch at datasheet rates. */
void piece_ideal_compute(const sm_train *t, int index, int set, const sm_plan *plan, pieces *p);

/* ---- layers over chunks ---- */
typedef struct chunk_layout {
    int chunks;
    char given[SM_PLAN_LAYOUT_TEXT];        /* by the plan */
    uint16_t (*kind)[SM_MAX_LAYER_KINDS];   /* layers of each kind in a chunk */
    uint16_t (*before)[SM_MAX_LAYER_KINDS]; /* and in all chunks before it */
} chunk_layout;
int chunk_count(const sm_plan *plan);
/* The embedding and the head may be chunks of their own, without layers. */
static inline int most_chunks(const sm_train *t) { return t->model.L + 2; }
/* Why the layout of a plan is not one of its chunks and of the model's layers; NULL. */
const char *layout_refuse(const sm_train *t, const sm_plan *plan, char *room, size_t size);
void chunk_layout_fill(const sm_train *t, const sm_plan *plan, chunk_layout *layout);

/* Bytes of a weight of this class, as it is stored and gathered. */
static inline double class_bytes(const sm_train *t, const sm_plan *plan, const sm_weight_class *c) {
    return c->narrow ? sm_stored_as_bytes[plan->parameters] : t->weight_bytes;
}
/* The axes that shard what each of its chips gathers before use. */
static inline sm_axes class_shards(const variant *v, const sm_weight_class *c) {
    return sm_weight_shards(&v->rules, c->expert);
}
/* FLOPs that the model itself needs for a token: three times the forward pass; with adapters the
 * gradients of weights that stay as they are fall away. */
double model_flops_of(const sm_train *t, const sm_plan *plan);
/* Parameters that are trained; how many arrays (weights NULL: not asked). */
double variant_trained(const sm_train *t, const variant *v, double *weights);

/* ---- a whole plan ---- */
typedef struct pass {
    double forward, backward_input, backward_weight;
} pass;
typedef struct piece_pass { /* of one piece under one recomputation set and schedule */
    pass expected, serial, math;
    double compute, memory, exposed; /* parts of expected, forward + backward */
    double latency;                  /* of collectives on the path */
} piece_pass;
/* expected alone, which is all that a search looks at. */
void piece_pass_compute(const sm_train *t, const piece_time *time, const comm_way sums[2], int set,
                        const sm_plan *plan, double offload_s, piece_pass *out);
/* All else, after it. */
void piece_pass_parts(const sm_train *t, const piece_time *time, const piece_comm *comm, int set,
                      const sm_plan *plan, double offload_s, piece_pass *out);

/* What one piece adds to its stage per step: bytes per chip and seconds. */
typedef struct stage_load {
    double params, gradients, optimizer, more; /* more: what the software holds beside */
    double sums; /* in place of the gradients, from a step's second microbatch on: as much more */
    double reduce_s, gather_s; /* gradient reduction and weight gathering at the end of a step */
    double reduce_ideal[SM_MAX_LEVELS], busy[SM_MAX_LEVELS];
    double update_s, offload_s;
    double shared, stages; /* gradients of weights that layers of several stages share, in bytes; of
                              how many stages, at most */
} stage_load;
int set_of(const sm_plan *plan);
double gradient_bytes(const sm_plan *plan);
/* Whether every chip gets the sum of all gradients of its weights at the end of a step, and the
 * bytes of each that travel there. */
bool reduces_whole(const sm_train *t, const sm_plan *plan);
double reduced_bytes(const sm_train *t, const sm_plan *plan);
double state_bytes(const sm_train *t, const sm_plan *plan);  /* of the optimizer, per weight */
double moment_share(const sm_train *t, const sm_plan *plan); /* of it, one of two moments */
void piece_load(const sm_train *t, const variant *v, int index, const sm_degrees *d,
                const placed *p, const sm_plan *plan, stage_load *load);
/* Bytes of one microbatch: activations gathered again, and kept as they were gathered. */
typedef struct kept_bytes {
    double sharded[MAX_SETS], whole[MAX_SETS];
    double gradients; /* beside them in the backward pass, of one op's operands */
} kept_bytes;
void piece_kept_bytes(const sm_train *t, const variant *v, int index, const sm_degrees *d,
                      sm_dtype dtype, kept_bytes *out);
static inline double kept_of(const kept_bytes *kept, int set, const sm_plan *plan) {
    return (plan->regather & SM_KEEPS_ACTIVATIONS ? kept->whole : kept->sharded)[set];
}
/* What fsdp gathers of a piece: its weights, with their gradient before it is scattered; that
 * gradient alone; the weights that the backward pass would gather again. */
typedef struct gathered_bytes {
    double both, gradient, again;
} gathered_bytes;
gathered_bytes piece_gathered_bytes(const sm_train *t, const variant *v, int index,
                                    const sm_degrees *d, const sm_plan *plan);

/* Everything of a plan that the pieces contribute, before schedule and stages. */
struct pieces {
    const variant *v;
    sm_degrees d;
    placed at;
    piece_time time[MAX_PIECES];
    piece_comm comm[MAX_PIECES];
    comm_time sent[MAX_PIECES * SM_MAX_COMM]; /* by their first like */
    comm_way way[MAX_PIECES][2];              /* forward, backward */
    stage_load *load, own_load[MAX_LOADS];    /* those at hand */
    kept_bytes kept[MAX_PIECES];
    gathered_bytes gathered[MAX_PIECES];
    piece_pass pass[MAX_PIECES];
    double ideal[MAX_PIECES][SM_MAX_LEVELS]; /* with pieces_parts alone */
    double send_s, send_serial_s;            /* of the residual stream to the next stage */
};
/* Fill degrees, placement, curves, times, collectives, loads; false when the order cannot be laid
 * out. */
bool pieces_place(const sm_train *t, const sm_plan *plan, pieces *p);
void pieces_time(const sm_train *t, const sm_plan *plan, pieces *p);
void pieces_kept(const sm_train *t, const sm_plan *plan, pieces *p);
void pieces_gathered(const sm_train *t, const sm_plan *plan, pieces *p);
/* Bytes that a stage hands on to the next where most arrays cross. */
double pieces_handed(const sm_train *t, const pieces *p);
/* Of the main kind of layers, which come first, and of all other pieces. */
void pieces_comm(const sm_train *t, const sm_plan *plan, bool main, bool others, pieces *p);
void pieces_comm_again(const sm_train *t, pieces *p);
void pieces_load(const sm_train *t, const sm_plan *plan, pieces *p);
/* What a plan makes of the collectives of the pieces first .. end - 1; layer kinds come first. */
void pieces_ways(const sm_train *t, const sm_plan *plan, int first, int end, pieces *p);
/* Their expected passes, after pieces_ways, whatever the schedule was there. */
void pieces_pass(const sm_train *t, const sm_plan *plan, int first, int end, pieces *p);
/* What else a price tells of all passes. */
void pieces_parts(const sm_train *t, const sm_plan *plan, pieces *p);

typedef enum timing { EXPECTED, SERIAL, MATH } timing;

/* Stages: what each holds and how the pipeline runs. Scratch of one thread, no allocation while
 * pricing. */
enum { LAYOUTS = 131, KINDS_OF = 1024 };
/* What a stage has: layers, and layers times microbatches in flight, of each kind; the embedding,
 * the head and the microbatches in flight there. */
typedef struct stage_kind {
    int stage; /* the first that is so */
    bool first, last;
    double held_last, layers[SM_MAX_LAYER_KINDS], held[SM_MAX_LAYER_KINDS];
} stage_kind;
typedef struct kinds_at { /* of schedule, stages, chunks of a stage, microbatches, layers */
    uint32_t key[5];
    stage_kind *kind;
    int n;
} kinds_at;
/* A pipeline that was simulated: of passes, schedule and layout, by 128 bits of hash. */
enum { SIMULATED = 4096 };
typedef struct simulated {
    uint64_t key[2];
    double total_s;
} simulated;
struct stages {
    simulated *simulated; /* SIMULATED of them; NULL: none is kept */
    uint64_t key[2];      /* of the chunks at hand */
    const chunk_layout *layout;
    int n_layouts;
    chunk_layout *layouts; /* found by their chunks */
    const kinds_at *kinds; /* of the plan at hand */
    kinds_at kinds_of[KINDS_OF];
    stage_kind *kind; /* kinds_room, of which some are used */
    int kinds_room, kinds_used;
    int held[MAX_CHUNKS];
    sm_chunk_time chunk[MAX_CHUNKS];
    sm_pipeline pipeline;
    void *scratch;
    size_t scratch_bytes;
};
bool stages_init(const sm_train *t, stages *s, int layouts, sm_arena *arena);
/* Keep what is simulated, for whoever prices many plans; stages of several layouts do. */
bool stages_remember(stages *s, sm_arena *arena);
void stages_layout(const sm_train *t, const sm_plan *plan, stages *s);
int microbatches_of(const sm_train *t, const sm_plan *plan);
/* Layout and schedule without times: enough for memory. */
void stages_shape(const sm_train *t, const sm_plan *plan, stages *s);
void stages_chunks(const sm_train *t, const sm_plan *plan, const pieces *p, timing which,
                   stages *s);
/* Seconds of the pipeline by simulation; its bound where a fold of too many stages has no room. */
double stages_simulated(stages *s);
sm_pipeline_time stages_run(stages *s); /* with its busiest stage */
/* Bytes of a chip that the arrays of a plan may take: what there are, less the margin. */
double memory_capacity(const sm_train *t);
bool memory_fits(const sm_train *t, const sm_memory *memory);
static inline bool host_fits(const sm_memory *m) {
    return m->host_capacity <= 0 || m->host <= m->host_capacity;
}
void stages_memory(const sm_train *t, const sm_plan *plan, const pieces *p, stages *s,
                   sm_memory *memory);
/* No less is needed, of each of these recomputation sets, with activations on the chip and in host
 * memory and what is gathered kept or not (ways: a bit of each that is asked), where piece i has no
 * less than state[n][i] of weights, gradients and the optimizer's state: of each n. */
typedef struct floors_of {
    int sets, set[SM_RECOMPUTE_COUNT];
    unsigned ways[2];
} floors_of;
typedef double memory_floors[2][SM_REGATHER_COUNT][SM_RECOMPUTE_COUNT];
void stages_floors(const sm_train *t, const sm_plan *plan, const pieces *p, stages *s,
                   const floors_of *asked, const double *const state[2], memory_floors most[2]);
/* Of each stage of the pipeline. */
void stages_each_memory(const sm_train *t, const sm_plan *plan, const pieces *p, stages *s,
                        sm_memory *memory);

/* What follows the pipeline: gradient reduction, update, gathering of weights. step_end_of sums
 * them over the stages, step_close says how much of them is exposed after a pipeline of so many
 * seconds and returns the whole step. */
typedef struct step_end {
    double reduce, gather, parts; /* streams of the stage with most; how many layers bring them */
    double reduce_s, gather_s;    /* their exposed parts */
    double updates_s[2];          /* the optimizer on the chip, and on the host */
    double update_s, tie_s, other_s, total_s, serial_s;
    double share_sends, share_bytes; /* between stages that share weights; of one */
    double network_s; /* the busiest level of any stage over the whole step: no step takes less */
} step_end;
step_end step_end_of(const sm_train *t, const sm_plan *plan, const pieces *p, stages *s);
/* That of a plan which differs in where the optimizer is. */
void step_end_offload(const sm_plan *plan, step_end *e);
double step_close(const sm_train *t, const sm_plan *plan, double pipeline_s, step_end *end);

/* Room for the pieces and stages of one plan. */
sm_status price_scratch(sm_train *t, sm_error *err);
/* Fill t->one for a plan, made canonical; the reason when it is impossible. */
sm_status price_prepare(sm_train *t, sm_plan *plan, sm_error *err);
/* A plan of so many chips is looked at next: on a part of the system where sm_system_in_part says
 * so, which is t->system until then; false: it has no such part. */
bool train_take(sm_train *t, int chips);
/* What software that runs tasks one by one (step.h) has in use: the worst stage. */
sm_status step_memory(const sm_train *t, const sm_plan *plan, const pieces *p, sm_memory *memory,
                      sm_error *err);
/* The same in place of the planner's sums, where that is the software. */
sm_status price_step_memory(const sm_train *t, const sm_plan *plan, const pieces *p,
                            sm_price_of_plan *price, sm_error *err);
/* Seconds that sends between stages add to the busiest one, whose chunks are filled in. */
double price_sends_s(const sm_train *t, const sm_plan *plan, const pieces *p, stages *s,
                     const sm_pipeline_time *time);
/* The whole price from filled pieces and stages. */
void price_fill(const sm_train *t, const sm_plan *plan, pieces *p, stages *s,
                sm_price_of_plan *price);
/* Make a plan consistent: zero 3 where fsdp shards, virtual stages the schedule fixes, axes that do
 * not matter. */
void plan_canonical(const sm_train *t, sm_plan *plan);
/* What a piece keeps under set number `index`, which recomputes the ops in `set`: both ways. */
sm_status piece_set_fill(piece *p, int index, sm_bits set, sm_error *err);
/* An array of so many bytes is kept too; set_check tells when a set has too many shardings. */
void set_keep(piece_set *set, const sm_size *bytes);
sm_status set_check(const piece_set *set, sm_error *err);
/* Curves for the collectives of a piece that has been partitioned. */
sm_status variant_slots(const sm_train *t, variant *v, int index, sm_error *err);
/* Why the degrees cannot shard this model and batch, and why the plan is impossible; NULL when they
 * can, when it is not. */
const char *degrees_refuse(const sm_train *t, const sm_plan *plan, char *room, size_t size);
const char *plan_refuse(const sm_train *t, const sm_plan *plan, char *room, size_t size);
const variant *train_variant(sm_train *t, const sm_plan *plan, sm_error *err);
/* The one that exists already, NULL when there is none. */
variant *built_variant(const sm_train *t, const sm_plan *plan);
sm_status train_custom_set(sm_train *t, const sm_plan *plan,
                           sm_error *err); /* of the plan's variant, which must exist */
static inline int head_piece(const sm_train *t) { return t->kinds + t->model.outside - 1; }
/* The load of a head's tied weights: none where a stage holds the embedding too. */
static inline int copy_piece(const sm_train *t) { return head_piece(t) + 1; }
static inline int embedding_piece(const sm_train *t) { return t->kinds; }
