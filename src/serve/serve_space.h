/* Private to serve: a job with its partitioned programs, and the stages through which a step is
 * priced.
 *
 *   degrees -> placed collectives -> ops of each piece -> a step -> a point -> the frontier
 *
 * Programs are of one query and one key, so that one partition stands for every length. */
#pragma once
#include "partition.h"
#include "scalemodel/load.h"

#include <math.h>

enum {
    MAX_PIECES = SM_MAX_LAYER_KINDS + SM_MAX_OUTSIDE, /* kinds, embedding and others, head */
    VARIANTS = 256,
    CURVES = 256,
    FOUND_CURVES = 2048,
    MOST_VERIFIED = 16 /* queries of a sequence up to which a step is priced as decoding */
};

/* Matmuls of one input run as one kernel (Q, K and V; gate and up): work[first .. first + n). */
typedef struct fused {
    uint8_t first, n;
    /* Positions and keys of an encoder, whose number is its own: 1 where they are those of the
     * sequence. What runs over them does so once for each request, as it begins. */
    int positions, keys;
    bool keyed;               /* some size of it grows with the keys */
    bool streams, multiplies; /* what it has, but for weights, each token has alone: streaming work,
                                 or a matmul */
} fused;
static inline bool is_encoding(const fused *f) { return f->positions > 1; }
typedef struct piece {
    sm_partition part;
    int ops;
    bool encodes;             /* all of them do */
    bool begins[SM_MAX_COMM]; /* which collectives are of what does */
    fused op[SM_MAX_WORK];
    struct {
        double bytes; /* of one token of an activation, of what else 0 */
        sm_axes axes; /* that shard it */
    } token[SM_MAX_TENSORS];
} piece;
typedef struct variant {
    uint64_t code; /* of the rules */
    sm_rules rules;
    int loans, widest; /* the layer before which most of them cross */
    sm_loan loan[SM_MOST_LOANS];
    int pieces;
    piece piece[];
} variant;

typedef struct programs {
    sm_lowerings lowerings; /* of the variants */
    variant *variant[VARIANTS];
} programs;
typedef struct work_memo work_memo;
typedef struct engine_table engine_table;
typedef uint16_t layer_counts[SM_MAX_LAYER_KINDS];

struct sm_serve {
    sm_arena *arena;
    sm_model model;
    sm_system system;
    sm_calibration own;    /* a copy: what calibration points to */
    sm_calibration kernel; /* the same for one kernel of a graph: its gap, not its launch */
    const sm_calibration *calibration;
    sm_serve_job job;     /* its model, system and software point here */
    sm_software software; /* with its defaults on the system */
    double usd_per_chip_hour;
    bool starts; /* an engine of a GPU, which measures its memory as it starts */
    int kinds;   /* in use; piece k is kind k */
    bool experts;
    double largest_top_k;
    layer_counts *before; /* layers of each kind before layer i, i = 0 .. L */
    programs *programs;   /* its own, or of a job of the same model */
    sm_curve_memo curves; /* of this system and calibration */
    struct found_curve {  /* of a collective on a placement, without joining its axes again */
        uint64_t key;     /* 0: none */
        const sm_timed_curve *curve;
    } * found_curve;
    work_memo *memo;       /* of a search, which prices the same ops again and again; else NULL */
    engine_table *engines; /* of the plans under loads so far (engine_steps) */
    sm_arena *engines_arena;
    sm_serve *draft; /* the draft model on the same system, NULL without */
};
static inline int embedding_piece(const sm_serve *s) { return s->kinds; }
static inline int head_piece(const sm_serve *s) { return s->kinds + s->model.outside - 1; }
static inline bool is_before_head(const sm_serve *s, int index) {
    return index >= s->kinds && index < head_piece(s);
}
static inline double larger(double a, double b) { return a > b ? a : b; }
static inline double smaller(double a, double b) { return a < b ? a : b; }

/* ---- degrees ---- */
/* Why a plan cannot shard this model, NULL when it can. */
const char *serve_refuse(const sm_serve *s, const sm_plan *plan, char *room, size_t size);
/* Sequences of the fullest of so many groups of chips: whole ones where a whole number is dealt
 * out, else the mean; never less than one. */
double fullest(double groups, double sequences);
/* Groups of chips that hold all experts each: the chips of `expert` share them. */
static inline double expert_groups(const sm_degrees *d) {
    return d->ways[d->sequence_axes & ~(unsigned)SM_BIT(SM_AXIS_EXPERT)];
}

/* ---- placement ---- */
/* The curve of a collective over these axes; hash: of the placement. */
const sm_timed_curve *curve_of(sm_serve *s, const sm_placement *at, uint64_t hash, sm_collective op,
                               sm_axes axes, bool ragged);
/* Of its lines. */
uint64_t curve_hash(sm_serve *s, const sm_placement *at, uint64_t hash, const sm_comm *c);
void curves_forget(sm_serve *s);                 /* of another system or calibration */
uint64_t placement_hash(const sm_placement *at); /* of what lies where */

/* ---- bytes ---- */
/* Bytes of an element of the program's role over the 2 of the program. */
double weight_scale(const sm_serve *s, int index, bool expert);
double role_scale(const sm_serve *s, int index, uint8_t role, bool expert);

/* ---- one step ---- */
/* A group of the step as its fullest chip sees it. */
typedef struct attend {
    double sequences; /* of the fullest replica */
    double queries, past;
} attend;
typedef struct step {
    sm_serve *s;
    const sm_plan *plan;
    const variant *v;
    const variant *prefill; /* of a mixed step: its prompts expand latent keys and scan in chunks */
    sm_degrees d;
    sm_placement at;
    uint64_t at_hash;
    int groups;
    attend group[SM_MAX_GROUPS];
    sm_program_extent tokens;    /* of all groups, as sequences of one query */
    sm_program_extent sequences; /* of all groups */
    sm_program_extent
        routed; /* as if every group that shares experts were as full as the fullest */
    sm_program_extent sampled; /* as tokens, of those the head sees */
    sm_program_extent begun;   /* sequences that begin in this step */
    double decoding;           /* sequences of all chips that decode in it */
    bool expected_alone;       /* nobody asks for the bounds of its price */
} step;
sm_status step_prepare(sm_serve *s, const sm_plan *plan, const sm_step_batch *batch, step *out,
                       sm_error *err);
/* Of a plan that is known to shard the model, and that is not placed: `at` stays as it was. */
sm_status step_unplaced(sm_serve *s, const sm_plan *plan, const sm_step_batch *batch, step *out,
                        sm_error *err);
/* What an op of a piece runs over: the whole step, or of a mixed one the sequences that decode or
 * the prompts, in programs of their own. */
typedef enum step_part { STEP_WHOLE, STEP_DECODING, STEP_PROMPTS } step_part;
typedef struct step_op {
    const fused *f;
    step_part of;
} step_op;
enum { STEP_OPS = 2 * SM_MAX_WORK };
int step_ops(const step *x, int index, step_op *out); /* room: STEP_OPS; returns how many */
step step_part_of(const step *x, step_part of);
double step_part_tokens(const step *x, step_part of); /* of the whole mesh, as sequences */
int step_decoding(const sm_step_batch *batch);        /* of its groups: how many decode */
/* Seconds of a step that the host takes for its sequences. */
double step_host_s(const step *x);
/* The same step with so many sequences in each of its groups. */
void step_resize(step *x, const sm_step_batch *batch);

/* What an op takes on the fullest chip. */
typedef enum op_class { OP_MATMUL, OP_ATTENTION, OP_VECTOR } op_class;
typedef struct op_price {
    const char *name;
    op_class class;
    double expected, upper, launch; /* launch: part of expected */
    double kernels;
    double flops, bytes;
    double kv_bytes; /* attention: of the cache that was there before */
    bool memory_bound;
} op_price;
op_price op_price_of(const step *x, int index, const fused *f);
/* What an op takes at least: its start, and seconds of a token at the best rates, of its bytes and
 * of all weights, which overlap in a matmul. What grows with keys has its start alone. */
typedef struct op_floor {
    bool is_matmul;
    double start_s, math_s, bytes_s, weights_s;
    double mean; /* rows of an expert for each token; 0: no experts */
} op_floor;
void op_least(const step *x, int index, const sm_work *w, const fused *f, op_floor *out);
double reached_share(const step *x, const sm_layer_kind *kind, double rows);
bool op_is_keyed(const sm_work *w);
void op_describe(const sm_partition *part, fused *f);
/* The whole mesh's sequences, queries and held keys of a group in a layer of this kind (NULL:
 * none).
 */
sm_program_extent group_counts(const step *x, const sm_layer_kind *kind, const attend *g);
/* Expected experts of E that n tokens of k choices each reach. */
double experts_reached(double E, double k, double tokens);

typedef struct comm_price {
    double bytes, expected, upper;
    double ideal[SM_MAX_LEVELS]; /* seconds of each level at datasheet bandwidth, no latency */
    uint8_t level;
    const char *algorithm;
} comm_price;
comm_price comm_price_of(const step *x, int index, const sm_comm *c);
comm_price send_price(const step *x); /* of the residual stream to the next stage */
/* Bytes that travel of so many of the program: by the dtype, and what a ragged one has more. */
double bytes_sent(const step *x, int index, const sm_comm *c, double bytes);

/* Of one pass through one piece: parts of expected, and of the bound. */
typedef struct piece_price {
    double weights, kv, compute, scans, other, network; /* seconds, network: exposed */
    double upper, kernels;
    double kv_bytes, attention_flops, weight_bytes, linear_flops;
    double ideal[SM_MAX_LEVELS];
    double flops;                 /* of all chips */
    double matmul_s, attention_s; /* under which collectives may hide */
} piece_price;
void piece_price_of(const step *x, int index, piece_price *out);
/* Of each stream of a piece, by sm_stream, the part that is not hidden by work. */
void piece_shows(const step *x, int index, double *share);
bool step_has(const step *x, int index); /* a prefill that samples nothing has no head */
/* Layers of each piece that one pass goes through: all of them. fullest: as if every stage were as
 * full as the fullest. */
double piece_passes(const step *x, int index, bool fullest_stage);
/* All passes together: parts of expected as if every stage were the fullest, of the bound exact. */
void step_totals(const step *x, piece_price *total);
void step_price(const step *x, sm_step_price *price);
/* The same in two: the ops of all pieces, then the whole with collectives. */
void step_work(const step *x, piece_price *pieces);
void step_price_from(const step *x, const piece_price *pieces, sm_step_price *price);
/* The same from a small memo, whose entries replace each other: ops are of the degrees of a plan
 * but neither of its placement nor of its pipeline, in which the steps of a search differ most. */
work_memo *work_memo_new(sm_arena *arena, int pieces);
void work_of(work_memo *memo, const step *x, piece_price *pieces);
/* Weights of a class that a chip reads, were all of its experts reached; and the share of the
 * experts of a piece that some token reaches. */
double class_read(const step *x, int index, const sm_weight_class *c);
double experts_share(const step *x, int index);
bool reads_weights(const step *x, int index); /* its own: embeddings may lie in the head */

/* ---- points ---- */
/* Cached tokens decoding is priced at; sequences of one pass of a pipeline; a step of one group
 * that samples once for each sequence. */
double point_context(const sm_serve *s);
double point_group(const sm_plan *plan, double batch);
sm_step_batch point_batch(double sequences, double queries, double past);
sm_step_batch point_prompt(const sm_serve *s); /* of one request */
/* Tokens of the longest step: a prompt on each replica; engines take longer ones in chunks. */
double point_step_tokens(const sm_serve *s, const sm_degrees *d, double batch);

/* The step that verifies so many drafted tokens of each sequence, and the tokens it gives each. */
enum { DEEPEST_DRAFT = 10 };
sm_step_batch point_drafted(const sm_serve *s, double sequences, int depth);
double point_tokens(const sm_serve *s, int depth);
/* One step of the draft model. */
sm_status point_draft(sm_serve *s, const sm_plan *plan, double sequences, sm_step_price *price,
                      sm_error *err);
/* A decode step with what it gains; depth -1 finds the best. */
typedef struct decode_time {
    sm_step_price step; /* drafting included */
    double tokens;      /* of a sequence and step */
    int depth;
} decode_time;
sm_status point_decode(sm_serve *s, const sm_plan *plan, double sequences, decode_time *out,
                       sm_error *err);
/* Of requests under a load. The mean has the opening burst of a benchmark in it; without it, and
 * likewise half of them, nine of ten and 99 of 100: steady_s, median_s, p90_s, p99_s. */
typedef struct event_times {
    double mean_s, steady_s, median_s, p90_s, p99_s;
    /* Between other tokens, and between two requests that end, on average of a benchmark; 0: none
     */
    double token_s, request_s;
    double token_p90_s; /* of nine requests in ten that come at a rate; 0: none */
} event_times;
typedef struct point_load {
    double tpot_s, slowest_s; /* expected; where nothing overlaps */
    event_times first;        /* the mean alone unless it is simulated */
    double in_flight;
    double request_s; /* between two requests that end */
} point_load;
typedef struct point_loaded {
    double batch, most_batch;  /* sequences that decode, of at most so many */
    const decode_time *decode; /* a step, alone */
    double first_s;            /* a prefill of one prompt, alone */
    double late_s;    /* 0: first tokens are not simulated; those that are later on average are no
                         longer than it takes to see that */
    double kv_tokens; /* of the cache, for requests that are in flight */
} point_loaded;
/* What the prefills of a load make of a point. */
sm_status point_under_load(sm_serve *s, const sm_plan *plan, const point_loaded *p, point_load *out,
                           sm_error *err);

/* sm_serve_point_of; with first tokens in closed form where `late_s` is 0 and no requests in flight
 * are given, and as in point_under_load where it is a time. */
sm_status point_of(sm_serve *serve, const sm_plan *plan, double batch, double late_s,
                   sm_serve_point *point, sm_error *err);

/* ---- search ---- */
enum { MAX_SLICES = 96, MAX_ORDERS = 1024 };
/* Degrees whose product is so many chips, with every choice that matters for them; keys in
 * o->fixed.given stay, and only plans of o->space are visited. Placement is left as in fixed. Stops
 * when visit says false. */
typedef bool (*plan_visit)(void *context, const sm_plan *plan);
bool each_sharding(const sm_serve *s, const sm_serve_search_options *o, int chips, plan_visit visit,
                   void *context);
/* What a collective takes at least: the lowest of these lines over its bytes. None: nothing. */
enum { MAX_FLOOR_LINES = 16 };
typedef struct comm_floor {
    sm_collective op;
    sm_axes axes;
    bool ragged;
    int n;
    sm_line line[MAX_FLOOR_LINES];
} comm_floor;
/* The orders of axes and dimensions under which a plan lies differently, n of them, and the
 * collectives met so far. */
enum { MAX_FLOORS = 64 };
typedef struct placements {
    sm_serve *s;
    sm_plan of;
    int slice;  /* under s */
    int number; /* of the degrees at hand, as they are listed one after the other */
    sm_degrees d;
    int n;
    sm_plan plan[MAX_ORDERS];
    sm_placement at[MAX_ORDERS];
    uint64_t hash[MAX_ORDERS]; /* of `at` */
    int floors;
    comm_floor floor[MAX_FLOORS];
} placements;
sm_status placements_of(sm_serve *s, const sm_plan *plan, int slice, placements *out,
                        sm_error *err);
/* A plan of these degrees, whatever its choices, laid out in that way. */
sm_plan placed_as(const placements *p, const sm_plan *plan, int way);
/* Of a collective on the placement where it costs least, until others are listed. */
const comm_floor *placements_floor(placements *p, sm_collective op, sm_axes axes, bool ragged);
static inline double floor_s(const comm_floor *f, double bytes) {
    double least = f->n > 0 ? sm_line_at(f->line[0], bytes) : 0;
    for (int i = 1; i < f->n; i++) least = smaller(least, sm_line_at(f->line[i], bytes));
    return least;
}

/* What a step takes at least, whatever the placement, as a function of its sequences: made once for
 * all batches of a sharding. Matmuls take what no tile or wave makes longer, attention what it
 * takes, each collective lies where it costs least, and all that may hide does. Terms for which
 * there is no room are left out. */
enum { MAX_LEAST = 128 };
/* Tokens that a term grows with. */
typedef enum least_tokens {
    LEAST_TOKENS,
    LEAST_SAMPLED,
    LEAST_ROUTED,
    LEAST_DECODING,
    LEAST_PROMPTS,
    LEAST_COUNTS
} least_tokens;
typedef struct step_least {
    double fixed_s, kernels, weight_bytes; /* whatever the batch */
    double read_s;                   /* weights at the datasheet's rate, of the fullest stage */
    double each_s[LEAST_COUNTS];     /* of one token, of what streams */
    double expert_bytes[MAX_PIECES]; /* were all of them reached */
    int attends, products, comms;
    struct least_attend {
        int index;
        const fused *op;
        step_part of;
        double times, exact; /* passes of all pieces that attend alike: of the fullest stage, all */
    } attend[MAX_LEAST];
    struct least_product {
        int index;
        least_tokens of;
        double times;
        op_floor op;
    } product[MAX_LEAST];
    struct least_comm {
        int index; /* of the pipeline: that of the first piece, `of` NULL */
        const sm_comm *of;
        const comm_floor *floor;
        double scale, times; /* of its bytes; of its seconds: passes, and the share that shows */
    } comm[MAX_LEAST];
} step_least;
void step_least_of(const step *x, placements *any, step_least *out);
/* Of the step, resized: what is expected of it; of that, were weights read at the datasheet's rate
 * and nothing multiplied; its bound. */
typedef enum least_kind { LEAST_EXPECTED, LEAST_READ, LEAST_BOUND } least_kind;
double step_least_s(const step_least *f, const step *x, least_kind kind);
/* The same of batches of one plan, made when one is first asked for, and anew where other groups of
 * them decode. */
typedef struct step_floor {
    bool made;
    int decoding;
    sm_plan plan;
    int number; /* of the placements of `least`; 0: there is none */
    step x;
    step_least least;
    double seconds; /* of the kind that was asked for last */
} step_floor;
sm_status step_floor_s(step_floor *f, sm_serve *s, const sm_plan *plan, const sm_step_batch *batch,
                       placements *any, least_kind kind, sm_error *err);
/* What a token of prompts takes at least, however many a step has, alone or beside sequences that
 * decode: its share of a step of very many, without attention. */
sm_status step_token_s(step_floor *f, sm_serve *s, const sm_plan *plan, double decoding,
                       placements *any, double *seconds, sm_error *err);
/* ---- detail ---- */
/* The step of a point that decodes, or that prefills one prompt. */
sm_status point_step(sm_serve *s, const sm_serve_point *point, bool decode, step *out,
                     sm_error *err);
/* The derivation of a point; NULL when out of memory. */
sm_why *explain_point(sm_serve *s, const sm_serve_point *point, sm_arena *arena, sm_error *err);
/* The type of 8 bits that weights and cache would take: floating point, where the chip multiplies
 * it or engines widen it. */
sm_dtype eight_bits_of(const sm_system *system);
/* The one change that helps most; "" when none does. SM_INTERNAL when one could not be priced. */
sm_status advise_point(const sm_serve *s, const sm_serve_point *point, char *out, size_t size,
                       sm_error *err);

/* ---- memory ---- */
/* Bytes a chip holds of each piece, and of one sequence in it. */
typedef struct holding {
    sm_degrees d;
    int stages;
    double params[MAX_PIECES];
    double kv[SM_MAX_LAYER_KINDS]; /* of one sequence on a chip that holds it */
    double shards;                 /* sequences divide over so many chips */
    double token;                  /* activations of one token of a step, at their peak */
    double logits;                 /* of one sequence */
    double gathered;               /* weights of the layer at work and of the next */
    double step, outside;          /* of an engine that starts: its arrays; beside arrays */
} holding;
void find_tokens(piece *piece); /* of its program */
/* Bytes of a sequence's state that a chip has of one layer of this kind. */
double state_held(const sm_serve *s, const piece *layer, int kind, const sm_degrees *d);
sm_status holding_of(sm_serve *s, const sm_plan *plan, double tokens_each, holding *out,
                     sm_error *err);
void holding_memory(const sm_serve *s, const holding *f, double sequences, double step_tokens,
                    sm_serve_memory *memory);
double holding_most(const sm_serve *s, const holding *f, double step_tokens);
/* ---- engines (engine_table.c) ---- */
/* The steps of the engine of a plan, as sm_serve_engine has them without its memory; follows:
 * prompts alone come one after the other, take what keeps a stage of the pipeline busy, and go on
 * when they have passed the others (transfer_latency_s). They are shared, and live until the
 * constants change or the next call for those that do not follow. */
sm_status engine_steps(sm_serve *s, const sm_plan *plan, bool follows, sm_engine *out,
                       sm_error *err);
void engines_forget(sm_serve *s);
/* ---- variants ---- */
const variant *variant_of(sm_serve *s, const sm_plan *plan, bool decode, sm_error *err);
bool has_encoder(const variant *v); /* which reads a source as a request begins; of NULL: none */
/* Put another system under a job: what a search over slices does. Its calibration stays. */
void serve_set_system(sm_serve *s, const sm_system *system);
