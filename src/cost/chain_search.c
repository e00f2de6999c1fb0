/* The lines of a chain one after the other. What is open is how the arrays are sharded that later
 * lines read: a state is one sharding of each, with the least time to get there; a line takes every
 * state to every sharding of its result. */
#include "chain_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

sm_status sm_chain_shardings(const sm_chain_input *input, int array, int most, sm_arena *arena,
                             sm_chain_plan **plan, sm_array **shape, int *n, sm_error *err) {
    searching g = {.err = err, .kept = array};
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

static int cheaper(const void *a, const void *b) {
    const sm_chain_plan *x = a, *y = b;
    return (x->expected_s > y->expected_s) - (x->expected_s < y->expected_s);
}

/* ---- every order of one product ---- */

/* The trees over one set are those of any two parts of it, each with each: a tree keeps its own
 * table, so that larger ones build on it. */
typedef struct tree {
    chain_table table;
    unsigned left;
    const struct tree *part[2];
} tree;
typedef struct trees {
    int n;
    tree *list;
} trees;

typedef struct ordering {
    searching g;
    chain_line line;
    trees of[1 << SM_CHAIN_MOST_ORDERED];
} ordering;

static double trees_of(int operands) { /* 1 x 3 x 5 x ... */
    double n = 1;
    for (int i = 2 * operands - 3; i > 1; i -= 2) n *= i;
    return n;
}

static int count(unsigned set) {
    int n = 0;
    for (; set > 0; set &= set - 1) n++;
    return n;
}

/* The tables of a tree's parts, down to the operands, where the line has its own. */
static void use_tree(ordering *o, const tree *t, unsigned set) {
    unsigned operands = set == o->line.whole ? o->line.all : set;
    const unsigned part[2] = {t->left, operands & ~t->left};
    o->line.table[set] = t->table;
    for (int p = 0; p < 2; p++)
        if (t->part[p]) use_tree(o, t->part[p], part[p]);
}

static bool join_trees(ordering *o, unsigned set, unsigned left, const tree *a, const tree *b) {
    chain_line *l = &o->line;
    trees *to = &o->of[set == l->whole ? l->all : set];
    tree *t = &to->list[to->n];
    const chain_table open = l->table[set];
    unsigned right = (set == l->whole ? l->all : set) & ~left;
    *t = (tree){.table = open, .left = left, .part = {a, b}};
    t->table.made = sm_arena_array(o->g.s.arena, (size_t)open.n + 1, sizeof *open.made);
    if (!t->table.made) return false;
    for (int i = 0; i < open.n; i++) t->table.made[i].s = INFINITY;
    if (a) l->table[left] = a->table;
    if (b) l->table[right] = b->table;
    l->table[set] = t->table;
    chain_join(&o->g.s, l, set, left);
    l->table[set] = open;
    to->n++;
    return !o->g.s.out_of_memory;
}

/* Every tree of the one part with every tree of the other; an operand is a tree by itself. */
static bool join_parts(ordering *o, unsigned set, unsigned left) {
    unsigned right = (set == o->line.whole ? o->line.all : set) & ~left;
    const trees *a = &o->of[left], *b = &o->of[right];
    bool one_a = count(left) == 1, one_b = count(right) == 1;
    for (int i = 0; i < (one_a ? 1 : a->n); i++)
        for (int k = 0; k < (one_b ? 1 : b->n); k++)
            if (!join_trees(o, set, left, one_a ? NULL : &a->list[i], one_b ? NULL : &b->list[k]))
                return false;
    return true;
}

static bool make_trees(ordering *o, unsigned set) {
    unsigned operands = set == o->line.whole ? o->line.all : set;
    unsigned lowest = operands & (0u - operands);
    trees *to = &o->of[operands];
    to->list = sm_arena_array(o->g.s.arena, (size_t)trees_of(count(operands)), sizeof *to->list);
    if (!to->list) return false;
    if (o->line.table[set].n == 0) return true; /* more dimensions than an array may have */
    for (unsigned left = (operands - 1) & operands; left > 0; left = (left - 1) & operands)
        if ((left & lowest) && !join_parts(o, set, left)) return false;
    return true;
}

static sm_status write_tree(ordering *o, const tree *t, sm_chain_plan *to) {
    const chain_table *table = &t->table;
    int best = 0;
    for (int i = 1; i < table->n; i++)
        if (table->made[i].s < table->made[best].s) best = i;
    if (!(table->made[best].s < INFINITY)) return SM_NEGATIVE;
    use_tree(o, t, o->line.whole);
    const state root = {.line = NULL};
    const state x = {.before = &root, .line = &o->line, .result = table->code[best]};
    return write_plan(&o->g, &x, to);
}

sm_status sm_chain_orders(const sm_chain_input *input, sm_arena *arena, sm_chain_plan **plan,
                          int *n, int *dear, sm_error *err) {
    const sm_chain_line *line = &input->chain->line[0];
    chain_code operand[SM_MAX_OPERANDS];
    ordering *o = sm_arena_alloc(arena, sizeof *o);
    *n = *dear = 0;
    if (!o) return sm_fail_memory(err);
    o->g = (searching){.err = err, .kept = -1};
    chain_search_begin(&o->g.s, input, arena);
    if (!chain_line_new(&o->g.s, line, &o->line)) return sm_fail_memory(err);
    if (o->line.at_once || line->operands > SM_CHAIN_MOST_ORDERED) return SM_OK;
    for (int i = 0; i < SM_MAX_OPERANDS; i++) operand[i] = AS_GIVEN;
    if (!chain_line_open(&o->g.s, &o->line, operand)) return sm_fail_memory(err);
    chain_line_solve(&o->g.s, &o->line);
    const chain_table *whole = &o->line.table[o->line.whole];
    double best = INFINITY;
    for (int i = 0; i < whole->n; i++) best = fmin(best, whole->made[i].s);
    o->line.within = SM_CHAIN_DEAR * best;
    for (unsigned set = 3; set < o->line.all; set++)
        if (count(set) > 1 && !make_trees(o, set)) return sm_fail_memory(err);
    if (!make_trees(o, o->line.whole)) return sm_fail_memory(err);
    const trees *all = &o->of[o->line.all];
    sm_chain_plan *list = sm_arena_array(o->g.s.arena, (size_t)all->n + 1, sizeof *list);
    if (!list) return sm_fail_memory(o->g.err);
    for (int i = 0; i < all->n; i++) {
        sm_status status = write_tree(o, &all->list[i], &list[*n]);
        if (status > SM_NEGATIVE) return status;
        *(status == SM_OK ? n : dear) += 1;
    }
    if (*n > 0) qsort(list, (size_t)*n, sizeof *list, cheaper);
    *plan = list;
    return SM_OK;
}
