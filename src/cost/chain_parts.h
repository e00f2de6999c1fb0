/* chain_parts: the search over a chain, in parts: moves of one array, one product, all orders of a
 * line, all lines. Private to src/cost. */
#pragma once
#include "lowering_local.h"

/* Where each axis stands, a decimal digit for each: 0 nowhere, 1 partial sums, 2 + d dimension d;
 * before them the number of the order that the axes of a dimension are in, the least of those that
 * say the same. AS_GIVEN: as the array itself says. */
typedef uint32_t chain_code;
#define AS_GIVEN UINT32_MAX
enum { NOWHERE, PARTIAL, DIMENSION };

/* The step at the end of a move that can run inside an einsum: the last gather of an operand, the
 * first scatter of an output. */
typedef struct chain_edge {
    double move_s, s, chunks; /* of the whole move; of the step */
    int index;                /* of the chain; -1: no such step */
} chain_edge;
/* The ways of an array from one sharding to another. Axes that it has at neither end may help to
 * gather it; and it may be gathered to be sliced, which is quicker than a permute at times. */
enum { MOST_MOVE_WAYS = 2 * SM_MOST_WAYS + 2 };
typedef struct chain_ways {
    int n;
    sm_lowering way[MOST_MOVE_WAYS];
    chain_edge edge[MOST_MOVE_WAYS];
} chain_ways;

/* What it takes at least to move an array, and with a step inside an einsum. */
typedef struct chain_move {
    const sm_array *array;
    chain_code from, to;
    bool output;
    double s; /* infinite: it cannot be */
    int edges;
    chain_edge edge[MOST_MOVE_WAYS];
} chain_move;

enum { MOST_ORDERED_AXES = 3, MOST_ORDERS = 6 }; /* more axes keep one order */

typedef struct chain_search {
    const sm_chain_input *in;
    sm_arena *arena;
    int axes, orders;                    /* axes of more than one chip */
    int order[MOST_ORDERS][SM_MAX_AXES]; /* the first: as arrays given share a dimension */
    uint32_t likely[SM_MAX_INDICES];     /* axes (bit) that some array given has on the
                                        index, or none anywhere */
    chain_move *moves;
    size_t n_moves, room;
    struct chain_arrival *arrival; /* of the product at hand */
    bool out_of_memory;
} chain_search;

/* Fill in what the members above say. */
void chain_search_begin(chain_search *s, const sm_chain_input *in, sm_arena *arena);
/* Every sharding that divides: the codes, and how many. False when out of memory. */
bool chain_codes_of(chain_search *s, const sm_array *array, chain_code **code, int *n);
chain_code chain_digit_at(int axis, int digit);
chain_code chain_order_at(int order);
/* The code of these digits with the axes in this order. */
chain_code chain_code_in(const chain_search *s, chain_code digits, int order);
/* The array with the axes where the code has them. */
sm_array chain_array_of(const chain_search *s, const sm_array *array, chain_code code);
/* The price of a move; infinite too when out of memory. Arrays are told apart by their address. */
chain_move chain_move_price(chain_search *s, const sm_array *array, chain_code from, chain_code to,
                            bool output);
/* None where it cannot be. */
void chain_move_ways(const chain_search *s, const sm_array *array, chain_code from, chain_code to,
                     bool output, chain_ways *ways);
/* May the axis stand on the index of the chain? Where there would be too many ways, only where some
 * array given has it. */
bool chain_may_split(const chain_search *s, bool many, int axis, int index);

/* ---- one line ---- */
/* How an array is made in one sharding, at the least price. */
typedef struct chain_made {
    double s;
    unsigned left;      /* the operands of the first part; 0: of all at once */
    chain_code from[2]; /* of the two parts */
    int8_t at[SM_MAX_AXES];
    int order; /* of the axes that split one index */
} chain_made;
typedef struct chain_table {
    int n;
    chain_code *code;
    chain_made *made;
} chain_table;

/* A line with operands in shardings that are settled. Sets of operands are bits; `whole` is the
 * line's own result, which is told apart from the product of all operands. part[set] is the product
 * of the set, table[set] how to make it. */
typedef struct chain_line {
    const sm_chain_line *line;
    unsigned all, whole;
    bool at_once; /* one kernel, whatever the operands */
    sm_array *part;
    chain_table *table;
    chain_code operand[SM_MAX_OPERANDS];
    double within, beyond; /* what takes as long is left out; the least of that */
    const unsigned *order; /* of each set its first part, 0: the set is not made; NULL: any */
} chain_line;
/* A line with its parts; they serve every sharding of its operands. False: out of memory. */
bool chain_line_new(chain_search *s, const sm_chain_line *line, chain_line *l);
const sm_array *chain_part(const chain_search *s, const chain_line *l, unsigned set);
/* The sets that are multiplied to make a set whose first part is `left` (0: of all at once), at
 * most SM_MAX_OPERANDS; returns how many. */
int chain_parts_of(const chain_line *l, unsigned set, unsigned left, unsigned *part);
/* The sharding that a part of it comes from. */
chain_code chain_comes_from(const chain_line *l, const unsigned *part, int p,
                            const chain_made *made);
/* Where the axes are on an array when the local product is made; index: as of sm_chain_einsum. */
chain_code chain_code_local(const chain_search *s, const chain_made *made, const int *index,
                            const sm_array *array, bool output);
/* That product, each part in the sharding that it comes from. index: as of sm_chain_einsum. */
void chain_line_einsum(const chain_search *s, const chain_line *l, unsigned set,
                       const chain_made *made, chain_code code, sm_einsum *einsum, int *index);
/* The index of that product along which the line's window slides; 0 where it has none. */
int chain_along(const sm_chain_line *line, const sm_einsum *einsum, const int *index);
/* Empty tables for these shardings of the operands. False when out of memory. */
bool chain_line_open(chain_search *s, chain_line *l, const chain_code *operand);
/* Fill them, over all orders: what no way to make the whole has may be missing. */
void chain_line_solve(chain_search *s, chain_line *l);
/* Of a line of several products: what takes as long is left out. */
void chain_line_solve_within(chain_search *s, chain_line *l, double within);
/* Improve the table of a set by the product of `left` and the rest; left 0: of all at once. */
void chain_join(chain_search *s, chain_line *l, unsigned set, unsigned left);

/* ---- plans ---- */
typedef struct chain_writer {
    chain_search *s;
    sm_chain_plan *plan;
    int room;
    struct chain_arrays *arrays; /* of the step at hand; NULL: none yet */
    sm_status status;
    sm_error *err;
} chain_writer;
/* Append the steps that make a set in a sharding; *value is the number of what they make. The order
 * in words, "(A B)". */
const char *chain_write(chain_writer *w, const chain_line *l, unsigned set, chain_code code,
                        int *value);
/* Sums over the steps, and the peak. */
void chain_plan_sums(const sm_chain_input *in, sm_chain_plan *plan);
