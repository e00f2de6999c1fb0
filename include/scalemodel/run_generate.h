/* run_generate: text from a trained model on real ranks, by the program of serving. Several
 * sequences at once, each of its own length, share the ranks by the axes of the batch; keys and
 * values are cached where the program stores them: sequences over data, fsdp and expert, heads over
 * tensor, positions over context. Whatever the ranks, greedy output is that of one. */
#pragma once
#include "scalemodel/run_train.h"

SM_DECLARATIONS_BEGIN

/* Can this be generated from? SM_BAD_INPUT with a sentence when not; the setup of a generator. */
sm_status sm_generator_check(const sm_train_setup *setup, sm_error *err);
/* A cache in pages that sequences take one by one, for passes of sm_generator_step alone. */
typedef struct sm_generator_pages {
    size_t pages;       /* of each group of ranks (sm_generator_groups) */
    size_t page_tokens; /* a multiple of context */
} sm_generator_pages;
/* setup: model, degrees, stages (with chunks: one to a stage), expert_tensor of the rules;
 * sequences, a multiple of data x fsdp x expert; tokens, the room of each sequence's cache, a
 * multiple of context. With pages sequences are the slots for states of scans, of all groups, and
 * tokens the most of one; NULL: a sequence has its room. The setup must outlive the generator, and
 * all ranks of world make every call. SM_BAD_INPUT says what cannot be run or does not divide. */
sm_status sm_generator_new(sm_communicator *world, const sm_train_setup *setup,
                           const sm_generator_pages *pages, sm_generator **out, sm_error *err);
/* Groups of ranks that hold sequences, pages and slots of their own: data x fsdp x expert. */
size_t sm_generator_groups(const sm_generator *g);
/* Free a generator. NULL is fine. */
void sm_generator_free(sm_generator *g);

typedef struct sm_generator_size {
    size_t sequences, room, vocabulary; /* room: positions of a sequence's cache */
    bool writes;     /* the vocabulary is of words to choose from; false: of each position so many
                        numbers are told, states or scores of other kinds (sm_generator_states) */
    bool scans;      /* it holds states, which are not rewound: nothing can be drafted for it */
    size_t source;   /* positions that the first of two stacks reads, at most; 0: one stack */
    bool listens;    /* these are no words, but numbers that are given */
    size_t numbers;  /* of these, for a sequence or a picture */
    size_t pictures; /* that a sequence may have; 1 of what sees none */
    size_t rows; /* of a picture: row r of the k-th of a sequence has the word V + k x rows + r; 0:
                    it sees none */
    bool whole;  /* rows of a picture see each other: one pass has all of them */
} sm_generator_size;
/* The sizes that the generator was made for. */
sm_generator_size sm_generator_size_of(const sm_generator *g);

/* Bytes of the weights, with their scales, on the rank that holds most. Made by every rank; the
 * status of the backend, or SM_INTERNAL when out of memory. */
sm_status sm_generator_weight_bytes(const sm_generator *g, double *bytes, sm_error *err);

/* One pass through the model. */
typedef struct sm_generator_pass {
    size_t queries;       /* rows of each sequence in tokens */
    const int32_t *token; /* [sequences, queries]: words of the vocabulary, bytes of a text */
    const size_t *count;  /* [sequences]: of the queries so many are meant, the rest pad */
    bool each;            /* scores after each query, otherwise after the last one meant */
} sm_generator_pass;
typedef struct sm_generator_result {
    double seconds;
    /* V as in sm_step, by collective, of this rank: what the partition says and what went through
     * the communicators. */
    double bytes_predicted[SM_COLLECTIVE_COUNT], bytes_counted[SM_COLLECTIVE_COUNT];
    double collective_s[SM_COLLECTIVE_COUNT];
} sm_generator_result;
/* Of a model of two stacks: what the first reads of some sequences before anything of it is fed.
 * Row i of group k is row k x rows + i. */
typedef struct sm_generator_source {
    size_t rows;          /* of each group */
    const int32_t *token; /* [groups x rows, source] (sm_generator_size); of a model that listens
                             not read */
    const float *given;   /* of one that listens, [groups x rows, positions, channels]; NULL: drawn
                             from the seed */
    const size_t *count;  /* [groups x rows]: positions that are meant, the others pad; of what is
                             listened to all; 0: the row pads */
    const size_t *place;  /* [groups x rows]: where what the other stack attends to is kept, within
                             the group: in the slot of its sequence, of pictures in `pictures` x
                             slot + number of the picture */
} sm_generator_source;
/* result may be NULL. SM_BAD_INPUT when there is one stack, a text is too long, or a token is none
 * of the vocabulary. Programs of each number of rows are kept (sm_generator_prepare). */
sm_status sm_generator_read(sm_generator *g, const sm_generator_source *source,
                            sm_generator_result *result, sm_error *err);
/* Tokens are put behind those cached. scores: [sequences, queries (each) or 1, V], of which this
 * rank fills its own sequences; each == false and count 0: anything. result may be NULL.
 * SM_BAD_INPUT when a cache is full, or a token is none of the vocabulary. */
sm_status sm_generator_feed(sm_generator *g, const sm_generator_pass *pass, float *scores,
                            sm_generator_result *result, sm_error *err);
/* Of a model that chooses no words what it makes of each position: states, [sequences, queries,
 * vocabulary], filled on every rank; each is set. What sees both ways is read whole: queries is the
 * source, given what it listens to (sm_generator_source). Else as sm_generator_feed, with its
 * errors. */
sm_status sm_generator_states(sm_generator *g, const sm_generator_pass *pass, const float *given,
                              float *states, sm_generator_result *result, sm_error *err);
/* A pass of tokens of any sequences, a row for each; those of one sequence in their order, behind
 * what it has cached. Row i of group k is row k x rows + i. */
typedef struct sm_generator_rows {
    size_t rows, table, scored; /* rows, scored: of each group; table: pages of a row */
    const int32_t *token;       /* [groups x rows] */
    const size_t *count;        /* [groups x rows]: 1, or 0 of a row that pads */
    const size_t *position;     /* [groups x rows]: of the token in its sequence; at 0 a state is
                                   new */
    const size_t *slot;         /* [groups x rows]: of the sequence, within its group */
    const size_t *begun;        /* [groups x rows, pictures]: where in its sequence each picture
                                   does; SIZE_MAX: there is none. NULL of a model without */
    const int32_t *page;        /* [groups x rows, table]: of its sequence, within its group; those
                                   up to its position are read */
    const size_t *score;        /* [groups x scored]: rows, within their group, whose scores are
                                   wanted */
} sm_generator_rows;
/* Programs for passes of so many rows and scores, before the first of them: those of the last 64
 * sizes are kept. Made by every rank. */
sm_status sm_generator_prepare(sm_generator *g, size_t rows, size_t scored, sm_error *err);
/* The scores of a pass over paged caches: [groups x scored, V], of which this rank fills those of
 * its group. result may be NULL. SM_BAD_INPUT for what lies in no page, slot or vocabulary. */
sm_status sm_generator_step(sm_generator *g, const sm_generator_rows *pass, float *scores,
                            sm_generator_result *result, sm_error *err);
/* Positions of a sequence's cache that are filled. */
size_t sm_generator_cached(const sm_generator *g, size_t sequence);
/* Forgets what lies behind the first `cached` positions; of a model that scans 0 or all of them. */
void sm_generator_rewind(sm_generator *g, size_t sequence, size_t cached);

/* Sequences, or scored rows of all, [first, first + n) whose scores of the last pass this rank has:
 * none before the last stage. */
typedef struct sm_generator_part {
    size_t first, n;
} sm_generator_part;
sm_generator_part sm_generator_own(const sm_generator *g);
/* records: [sequences], or [groups x scored], of `bytes` each, those of its own filled by each
 * rank: afterwards all, on every rank the same. The status of the backend, or SM_INTERNAL when out
 * of memory. */
sm_status sm_generator_share(sm_generator *g, void *records, size_t bytes, sm_error *err);

/* ---- drawing from scores ----
 * Of the first `words` words. Drawing takes numbers that depend on seed, sequence and place alone,
 * so that the text does not depend on the ranks. */
/* A number in [0, 1) for the word at this place of a sequence. */
double sm_draw_unit(uint64_t seed, size_t sequence, size_t place);
/* The first word of the highest score. */
size_t sm_draw_best(const float *scores, size_t words);
/* Fill p[0 .. words) with the softmax of scores / temperature; temperature > 0. */
void sm_draw_distribution(const float *scores, size_t words, double temperature, double *p);
/* The word at which the cumulated distribution passes u, 0 <= u < 1. */
size_t sm_draw_word(const double *p, size_t words, double u);
/* Speculative sampling (Leviathan et al. 2023; Chen et al. 2023): a word drawn from q stays with
 * probability min(1, p/q), else one is drawn from max(0, p - q): what comes out is distributed as
 * p. Returns the word; *kept: is it the drafted one? */
size_t sm_draw_speculative(const double *p, const double *q, size_t words, size_t drafted,
                           double u_keep, double u_word, bool *kept);

/* ---- texts ---- */
typedef struct sm_generate_job {
    sm_generator *target;
    sm_generator *draft;  /* NULL: none; of the same vocabulary, sequences and ranks */
    int depth;            /* tokens drafted for each pass of the target, >= 1 with a draft */
    size_t sequences;     /* those of the setup may be more: they pad */
    size_t words;         /* of the vocabulary, the first ones, that may be chosen */
    const size_t *prompt; /* tokens of each sequence's prompt, >= 1 */
    size_t tokens;        /* to be generated behind each prompt */
    double temperature;   /* 0: the best word each time */
    uint64_t seed;
    /* What each sequence reads first, of a model of two stacks, and how many tokens that is; of one
     * that sees, how many pictures. */
    const int32_t *const *source;
    const size_t *read;
    const float *given; /* what it listens to, one sequence, or picture, behind the other */
} sm_generate_job;
typedef struct sm_generate_phase {
    double passes, seconds;
    sm_generator_result sum;
} sm_generate_phase;
typedef struct sm_generate_result {
    /* Of the target; what a first stack reads is half of the first pass. */
    sm_generate_phase prefill, decode;
    sm_generate_phase draft_prefill, draft;
    double seconds;           /* after the prompts: choosing, drafting and sharing too */
    double drafted, accepted; /* tokens, over all sequences */
    double bytes_apart;       /* |predicted - counted|, of this rank, over all passes */
} sm_generate_result;
/* text[i]: the prompt, with room for prompt[i] + tokens of them, filled on every rank. With a
 * draft greedy output is the same, in fewer passes of the target: these score depth + 1 bytes at
 * once, and what the draft had right stays. SM_BAD_INPUT when the job cannot be run, SM_INTERNAL
 * when out of memory, or the status of the backend. */
sm_status sm_generate(const sm_generate_job *job, int32_t *const *text, sm_generate_result *result,
                      sm_error *err);
/* What a model that chooses no words makes of each token of the prompts, text[i]: states,
 * [sequences of the generator, tokens of the longest prompt or its source, numbers of each]
 * (sm_generator_size), on every rank. Of the job sequences and prompt are read; of the result the
 * first pass is set. The errors of sm_generator_states. */
sm_status sm_generate_states(const sm_generate_job *job, int32_t *const *text, float *states,
                             sm_generate_result *result, sm_error *err);
SM_DECLARATIONS_END
