/* The lines of a chain one after the other. What is open is how the arrays are sharded that later
 * lines read: a state is one sharding of each, with the least time to get there; a line takes every
 * state to every sharding of its result. */
#include "chain_parts.h"

#include <stdlib.h>

enum { MOST_STATES = 2048 }; /* the cheapest are kept */

typedef struct state {
    double s;
    const struct state *before;
    const chain_line *line; /* that led here, and in which sharding its result is */
    chain_code result;
    chain_code code[SM_CHAIN_MOST_ARRAYS]; /* 0 of an array that nobody reads any more */
} state;

typedef struct states {
    int n, room;
    state *list;
} states;

typedef struct searching {
    chain_search s;
    sm_error *err;
    int kept; /* an array that states tell apart by to the end; -1: none */
    states now, next;
    int *table, slots; /* of next: by the codes */
} searching;

/* ---- states ---- */

static int compare(const void *a, const void *b) {
    const state *x = a, *y = b;
    if (x->s < y->s) return -1;
    if (x->s > y->s) return 1;
    return memcmp(x->code, y->code, sizeof x->code);
}

static int *slot_of(const searching *g, const state *x) {
    size_t mask = (size_t)g->slots - 1;
    size_t at = (size_t)sm_hash_bytes(x->code, sizeof x->code) & mask;
    while (g->table[at] > 0 &&
           memcmp(g->next.list[g->table[at] - 1].code, x->code, sizeof x->code) != 0)
        at = (at + 1) & mask;
    return &g->table[at];
}

static bool grow(searching *g) {
    int room = g->next.room > 0 ? 2 * g->next.room : 64;
    state *list = sm_arena_array(g->s.arena, (size_t)room, sizeof *list);
    int *table = sm_arena_array(g->s.arena, 2 * (size_t)room, sizeof *table);
    if (!list || !table) {
        g->s.out_of_memory = true;
        return false;
    }
    if (g->next.n > 0) memcpy(list, g->next.list, (size_t)g->next.n * sizeof *list);
    g->next.list = list;
    g->next.room = room;
    g->table = table;
    g->slots = 2 * room;
    for (int i = 0; i < g->next.n; i++) *slot_of(g, &list[i]) = i + 1;
    return true;
}

static void add_state(searching *g, const state *x) {
    if (g->next.n == g->next.room && !grow(g)) return;
    int *slot = slot_of(g, x);
    if (*slot == 0) {
        g->next.list[g->next.n++] = *x;
        *slot = g->next.n;
    } else if (x->s < g->next.list[*slot - 1].s) g->next.list[*slot - 1] = *x;
}

/* ---- one line ---- */

/* Tables of a line for each sharding of its operands that some state has. */
typedef struct solved {
    chain_line *line;
    struct solved *next;
} solved;

static const chain_line *solution(searching *g, const chain_line *open, solved **list,
                                  const state *x) {
    chain_code code[SM_MAX_OPERANDS] = {0};
    for (int o = 0; o < open->line->operands; o++) code[o] = x->code[open->line->operand[o]];
    for (const solved *known = *list; known; known = known->next)
        if (memcmp(known->line->operand, code, sizeof code) == 0) return known->line;
    solved *fresh = sm_arena_alloc(g->s.arena, sizeof *fresh);
    chain_line *l = sm_arena_alloc(g->s.arena, sizeof *l);
    g->s.out_of_memory = g->s.out_of_memory || !fresh || !l;
    if (!fresh || !l) return NULL;
    *l = *open;
    *fresh = (solved){l, *list};
    *list = fresh;
    if (!chain_line_open(&g->s, l, code)) return NULL;
    chain_line_solve(&g->s, l);
    return g->s.out_of_memory ? NULL : l;
}

/* Do states after a line differ by the sharding of the array? */
static bool is_told(const searching *g, int line, int array) {
    const sm_chain *chain = g->s.in->chain;
    for (int l = line + 1; l < chain->lines; l++)
        for (int o = 0; o < chain->line[l].operands; o++)
            if (chain->line[l].operand[o] == array) return true;
    return array == g->kept;
}

static void lead_on(searching *g, const state *x, const chain_line *l, int line) {
    const chain_table *t = &l->table[l->whole];
    int result = l->line->result;
    for (int i = 0; i < t->n; i++) {
        state y = *x;
        if (!(t->made[i].s < INFINITY)) continue;
        y.s += t->made[i].s;
        y.before = x;
        y.line = l;
        y.result = t->code[i];
        y.code[result] = is_told(g, line, result) ? t->code[i] : 0;
        for (int o = 0; o < l->line->operands; o++)
            if (!is_told(g, line, l->line->operand[o])) y.code[l->line->operand[o]] = 0;
        add_state(g, &y);
    }
}

/* What it takes at most to go on from one state as from another: every line that still reads an
 * array of another sharding moves it there first. */
static double way_between(searching *g, const state *from, const state *to, int line) {
    const sm_chain *chain = g->s.in->chain;
    double s = 0;
    if (g->kept >= 0 && from->code[g->kept] != to->code[g->kept]) return INFINITY;
    for (int l = line + 1; l < chain->lines; l++)
        for (int o = 0; o < chain->line[l].operands; o++) {
            int a = chain->line[l].operand[o];
            if (from->code[a] != to->code[a])
                s += chain_move_price(&g->s, &chain->array[a].array, from->code[a], to->code[a],
                                      false)
                         .s;
        }
    return s;
}

enum { MOST_RIVALS = 16, MANY_STATES = 64 };

/* Of many, drop those that are no better than to get there from a cheaper one. (From there a gather
 * may yet be hidden in a product, which is lost: so of few none is dropped.) */
static void drop_states(searching *g, int line) {
    int n = 0;
    if (g->now.n <= MANY_STATES) return;
    for (int i = 0; i < g->now.n && n < MOST_STATES; i++) {
        const state *x = &g->now.list[i];
        bool dropped = false;
        for (int k = 0; k < n && k < MOST_RIVALS && !dropped; k++)
            dropped = x->s >= g->now.list[k].s + way_between(g, &g->now.list[k], x, line);
        if (!dropped) g->now.list[n++] = *x;
    }
    g->now.n = n;
}

static bool run_line(searching *g, int line) {
    solved *list = NULL;
    chain_line open;
    g->next = (states){.n = 0};
    g->slots = 0;
    if (!chain_line_new(&g->s, &g->s.in->chain->line[line], &open)) return false;
    for (int i = 0; i < g->now.n; i++) {
        const chain_line *l = solution(g, &open, &list, &g->now.list[i]);
        if (!l) return false;
        lead_on(g, &g->now.list[i], l, line);
    }
    if (g->s.out_of_memory) return false;
    if (g->next.n > 0) qsort(g->next.list, (size_t)g->next.n, sizeof *g->next.list, compare);
    g->now = g->next;
    drop_states(g, line);
    return !g->s.out_of_memory;
}

/* ---- the whole ---- */

static void write_lines(chain_writer *w, const state *x) {
    if (!x->line) return;
    write_lines(w, x->before);
    int value;
    const char *order = chain_write(w, x->line, x->line->whole, x->result, &value);
    w->plan->order = order;
}

static sm_status write_plan(searching *g, const state *x, sm_chain_plan *plan) {
    chain_writer w = {.s = &g->s, .plan = plan, .err = g->err};
    *plan = (sm_chain_plan){.values = g->s.in->chain->arrays};
    write_lines(&w, x);
    if (w.status) return w.status;
    chain_plan_sums(g->s.in, plan);
    return SM_OK;
}

static bool begin(searching *g) {
    const sm_chain *chain = g->s.in->chain;
    state *first = sm_arena_alloc(g->s.arena, sizeof *first);
    if (!first) return false;
    for (int a = 0; a < chain->arrays; a++)
        if (chain->array[a].line < 0) first->code[a] = AS_GIVEN;
    g->now = (states){1, 1, first};
    return true;
}

/* The last states, the cheapest first. */
static sm_status run_lines(searching *g) {
    if (!begin(g)) return sm_fail_memory(g->err);
    for (int line = 0; line < g->s.in->chain->lines; line++)
        if (!run_line(g, line)) return sm_fail_memory(g->err);
    if (g->now.n > 0) return SM_OK;
    return sm_fail(g->err, SM_NEGATIVE, "no assignment of the mesh axes gives these arrays");
}

sm_status sm_chain_best(const sm_chain_input *input, sm_arena *arena, sm_chain_plan *plan,
                        sm_error *err) {
    searching g = {.err = err, .kept = -1};
    chain_search_begin(&g.s, input, arena);
    sm_status status = run_lines(&g);
    return status ? status : write_plan(&g, &g.now.list[0], plan);
}

sm_status sm_chain_shardings(const sm_chain_input *input, int array, sm_arena *arena,
                             sm_chain_plan **plan, sm_array **shape, int *n, sm_error *err) {
    searching g = {.err = err, .kept = array};
    const int most = *n;
    *n = 0;
    chain_search_begin(&g.s, input, arena);
    sm_status status = run_lines(&g);
    if (status) return status;
    int found = g.now.n < most ? g.now.n : most;
    *plan = sm_arena_array(arena, (size_t)found, sizeof **plan);
    *shape = sm_arena_array(arena, (size_t)found, sizeof **shape);
    if (!*plan || !*shape) return sm_fail_memory(err);
    for (; !status && *n < found; (*n)++) {
        const state *x = &g.now.list[*n];
        (*shape)[*n] = chain_array_of(&g.s, &input->chain->array[array].array, x->code[array]);
        status = write_plan(&g, x, &(*plan)[*n]);
    }
    return status;
}

SM_ORDER(cheaper, sm_chain_plan, SM_ASCENDING(expected_s))

/* ---- every order of one product ---- */

typedef struct ordering {
    searching g;
    chain_line line;
    unsigned left[1 << SM_CHAIN_MOST_ORDERED]; /* the order at hand, as chain_line.order */
    double within;
    sm_chain_plan *list;
    int n, dear, room;
} ordering;

/* The order at hand, written where it is not dear. */
static sm_status take_order(ordering *o) {
    chain_line *l = &o->line;
    chain_line_solve_within(&o->g.s, l, o->within);
    const chain_table *table = &l->table[l->whole];
    sm_chain_plan *list = sm_arena_grow(o->g.s.arena, o->list, o->n, &o->room, sizeof *o->list);
    if (!list || o->g.s.out_of_memory) return sm_fail_memory(o->g.err);
    o->list = list;
    int best = 0;
    for (int i = 1; i < table->n; i++)
        if (table->made[i].s < table->made[best].s) best = i;
    bool dear = !(table->made[best].s < INFINITY);
    const state root = {.line = NULL};
    const state x = {.before = &root, .line = l, .result = table->code[best]};
    sm_status status = dear ? SM_NEGATIVE : write_plan(&o->g, &x, &list[o->n]);
    *(status == SM_OK ? &o->n : &o->dear) += 1;
    return status > SM_NEGATIVE ? status : SM_OK;
}

/* Every way to split the last of the open sets, and then the others. */
static sm_status split_sets(ordering *o, const unsigned *open, int n) {
    unsigned next[SM_CHAIN_MOST_ORDERED + 1], set = n > 0 ? open[n - 1] : 0;
    sm_status status = SM_OK;
    if (n == 0) return take_order(o);
    if ((set & (set - 1)) == 0) return split_sets(o, open, n - 1);
    memcpy(next, open, (size_t)n * sizeof *next);
    for (unsigned left = (set - 1) & set; left > 0 && !status; left = (left - 1) & set) {
        const chain_table *table = o->line.table;
        if (!(left & set & (0u - set)) || table[left].n == 0 || table[set & ~left].n == 0) continue;
        o->left[set] = next[n] = left;
        next[n - 1] = set & ~left;
        status = split_sets(o, next, n + 1);
    }
    o->left[set] = 0;
    return status;
}

sm_status sm_chain_orders(const sm_chain_input *input, sm_arena *arena, sm_chain_plan **plan,
                          int *n, int *dear, sm_error *err) {
    const sm_chain_line *line = &input->chain->line[0];
    chain_code operand[SM_MAX_OPERANDS];
    ordering *o = sm_arena_alloc(arena, sizeof *o);
    *n = *dear = 0;
    if (!o) return sm_fail_memory(err);
    *o = (ordering){.g = {.err = err, .kept = -1}};
    chain_search_begin(&o->g.s, input, arena);
    if (!chain_line_new(&o->g.s, line, &o->line)) return sm_fail_memory(err);
    if (o->line.at_once || line->operands > SM_CHAIN_MOST_ORDERED) return SM_OK;
    for (int i = 0; i < SM_MAX_OPERANDS; i++) operand[i] = AS_GIVEN;
    if (!chain_line_open(&o->g.s, &o->line, operand)) return sm_fail_memory(err);
    chain_line_solve(&o->g.s, &o->line);
    const chain_table *whole = &o->line.table[o->line.whole];
    double best = INFINITY;
    for (int i = 0; i < whole->n; i++) best = fmin(best, whole->made[i].s);
    o->within = SM_CHAIN_DEAR * best;
    o->line.order = o->left;
    sm_status status = split_sets(o, &o->line.all, 1);
    if (status) return status;
    if (o->n > 0) qsort(o->list, (size_t)o->n, sizeof *o->list, cheaper);
    *plan = o->list;
    *n = o->n;
    *dear = o->dear;
    return SM_OK;
}
