/* All orders of one line: a set of operands is the product of any two parts of it, so the best way
 * to make it follows from the best ways to make the parts, sharding by sharding. */
#include "chain_parts.h"

/* With more operands than this only arrays that share an index are multiplied, unless there are
 * none: an outer product of two large arrays is never the way (opt_einsum's rule). */
enum { MOST_OUTER = 4 };

/* ---- parts ---- */

static const sm_array *operand_of(const chain_search *s, const sm_chain_line *line, int o) {
    return &s->in->chain->array[line->operand[o]].array;
}

/* Is the index of a set read by what is outside of it? */
static bool is_kept(const chain_search *s, const sm_chain_line *line, unsigned set, int index) {
    if (sm_array_has(&s->in->chain->array[line->result].array, index)) return true;
    for (int o = 0; o < line->operands; o++)
        if (!(set >> o & 1) && sm_array_has(operand_of(s, line, o), index)) return true;
    return false;
}

/* "AB" of A and B; operands without a name leave it without one. */
static void name_part(const chain_search *s, const sm_chain_line *line, unsigned set,
                      sm_array *part) {
    size_t n = 0;
    for (int o = 0; o < line->operands; o++) {
        const char *name = operand_of(s, line, o)->name;
        size_t length = strlen(name);
        if (!(set >> o & 1)) continue;
        if (length == 0 || n + length >= sizeof part->name) {
            snprintf(part->name, sizeof part->name, "t%u", set);
            return;
        }
        memcpy(part->name + n, name, length);
        n += length;
    }
}

/* False: it has more dimensions than an array may have. */
static bool make_part(const chain_search *s, const sm_chain_line *line, unsigned set,
                      sm_array *part) {
    *part = (sm_array){.rank = 0};
    name_part(s, line, set, part);
    for (int o = line->operands - 1; o >= 0; o--)
        if (set >> o & 1) part->dtype = operand_of(s, line, o)->dtype;
    for (int o = 0; o < line->operands; o++)
        for (int d = 0; (set >> o & 1) && d < operand_of(s, line, o)->rank; d++) {
            int index = operand_of(s, line, o)->dim[d].index;
            if (sm_array_has(part, index) || !is_kept(s, line, set, index)) continue;
            if (part->rank == SM_MAX_RANK) return false;
            part->dim[part->rank++] = (sm_dim){.index = index};
        }
    return true;
}

/* Nothing is summed: one kernel reads all operands. */
static bool sums_nothing(const chain_search *s, const sm_chain_line *line) {
    const sm_array *out = &s->in->chain->array[line->result].array;
    for (int o = 0; o < line->operands; o++)
        for (int d = 0; d < operand_of(s, line, o)->rank; d++)
            if (!sm_array_has(out, operand_of(s, line, o)->dim[d].index)) return false;
    return true;
}

static bool is_one(unsigned set) { return (set & (set - 1)) == 0; }

/* Operands of the set that are reached from its first one over shared indices. */
static bool is_connected(const chain_search *s, const sm_chain_line *line, unsigned set) {
    unsigned reached = set & (0u - set), before = 0;
    while (reached != before) {
        before = reached;
        for (int o = 0; o < line->operands; o++)
            for (int p = 0; p < line->operands; p++)
                for (int d = 0;
                     (reached >> o & 1) && (set >> p & 1) && d < operand_of(s, line, o)->rank; d++)
                    if (sm_array_has(operand_of(s, line, p), operand_of(s, line, o)->dim[d].index))
                        reached |= 1u << p;
    }
    return reached == set;
}

bool chain_line_new(chain_search *s, const sm_chain_line *line, chain_line *l) {
    unsigned sets = 1u << line->operands;
    *l = (chain_line){.line = line, .all = sets - 1, .whole = sets};
    l->at_once = line->work != SM_LOCAL_PRODUCT || line->operands < 3 || sums_nothing(s, line);
    l->part = sm_arena_array(s->arena, sets, sizeof *l->part);
    s->out_of_memory = s->out_of_memory || !l->part;
    bool outer = line->operands <= MOST_OUTER || !is_connected(s, line, l->all);
    for (unsigned set = 1; l->part && !l->at_once && set < sets; set++)
        if (!is_one(set) &&
            ((!outer && !is_connected(s, line, set)) || !make_part(s, line, set, &l->part[set])))
            l->part[set].rank = -1;
    return l->part != NULL;
}

const sm_array *chain_part(const chain_search *s, const chain_line *l, unsigned set) {
    if (set == l->whole) return &s->in->chain->array[l->line->result].array;
    for (int o = 0; o < l->line->operands; o++)
        if (set == 1u << o) return operand_of(s, l->line, o);
    return &l->part[set];
}

int chain_parts_of(const chain_line *l, unsigned set, unsigned left, unsigned *part) {
    unsigned operands = set == l->whole ? l->all : set;
    int n = 0;
    part[n++] = left;
    part[n++] = operands & ~left;
    if (left > 0) return n;
    n = 0;
    for (int o = 0; o < l->line->operands; o++)
        if (operands >> o & 1) part[n++] = 1u << o;
    return n;
}

chain_code chain_comes_from(const chain_line *l, const unsigned *part, int p,
                            const chain_made *made) {
    for (int o = 0; o < l->line->operands; o++)
        if (part[p] == 1u << o) return l->operand[o];
    return p < 2 ? made->from[p] : 0;
}

void chain_line_einsum(const chain_search *s, const chain_line *l, unsigned set,
                       const chain_made *made, chain_code code, sm_einsum *einsum, int *index) {
    unsigned part[SM_MAX_OPERANDS];
    sm_array array[SM_MAX_OPERANDS], out = chain_array_of(s, chain_part(s, l, set), code);
    const sm_array *list[SM_MAX_OPERANDS];
    int n = chain_parts_of(l, set, made->left, part);
    for (int p = 0; p < n; p++) {
        array[p] = chain_array_of(s, chain_part(s, l, part[p]), chain_comes_from(l, part, p, made));
        list[p] = &array[p];
    }
    sm_chain_einsum(s->in->chain, n, list, &out, einsum, index);
}

int chain_along(const sm_chain_line *line, const sm_einsum *einsum, const int *index) {
    int i = einsum->indices - 1;
    while (i > 0 && index[i] != line->along) i--;
    return line->edges > 0 ? i : 0;
}

/* ---- tables ---- */

static bool open_table(chain_search *s, chain_line *l, unsigned set) {
    static const chain_code as_given = AS_GIVEN;
    const sm_array *array = chain_part(s, l, set);
    chain_table *t = &l->table[set];
    chain_code *only = NULL;
    bool given = set == l->whole && s->in->chain->array[l->line->result].given;
    for (int o = 0; o < l->line->operands; o++)
        if (set == 1u << o) only = &l->operand[o];
    bool leaf = only != NULL;
    if (given || leaf) {
        t->n = 1;
        t->code = sm_arena_array(s->arena, 1, sizeof *t->code);
        if (t->code) *t->code = leaf ? *only : as_given;
    } else if (array->rank >= 0) chain_codes_of(s, array, &t->code, &t->n);
    t->made = sm_arena_array(s->arena, (size_t)t->n + 1, sizeof *t->made);
    bool there = t->made && (t->code || t->n == 0);
    for (int i = 0; there && i < t->n; i++) t->made[i].s = leaf ? 0 : INFINITY;
    s->out_of_memory = s->out_of_memory || !there;
    return there;
}

bool chain_line_open(chain_search *s, chain_line *l, const chain_code *operand) {
    memcpy(l->operand, operand, sizeof l->operand);
    l->table = sm_arena_array(s->arena, (size_t)l->whole + 1, sizeof *l->table);
    if (!l->table) s->out_of_memory = true;
    for (unsigned set = 1; !s->out_of_memory && set <= l->whole; set++)
        if (is_one(set) || (!l->at_once && set != l->all)) open_table(s, l, set);
    return !s->out_of_memory;
}

void chain_line_solve_within(chain_search *s, chain_line *l, double within) {
    l->within = within;
    l->beyond = INFINITY;
    for (unsigned set = 1; set <= l->whole; set++) {
        const chain_table *t = &l->table[set];
        if (set == l->all || (set != l->whole && is_one(set)) || t->n == 0) continue;
        for (int i = 0; i < t->n; i++) t->made[i].s = INFINITY;
        /* Each pair of parts once: the first has the lowest operand. */
        unsigned operands = set == l->whole ? l->all : set, lowest = operands & (0u - operands);
        for (unsigned left = (operands - 1) & operands; left > 0; left = (left - 1) & operands)
            if ((left & lowest) && (!l->order || l->order[operands] == left) &&
                l->table[left].n > 0 && l->table[operands & ~left].n > 0)
                chain_join(s, l, set, left);
    }
}

/* Parts that take longer than all of what is best are in no best way, and to price all that can be
 * done with them takes most of the time. So the search goes through what takes little first, then
 * through what takes GROWTH times as long, until every sharding of the whole is within that. */
void chain_line_solve(chain_search *s, chain_line *l) {
    enum { GROWTH = 4, FEWEST_PARTED = 3 };
    const chain_table *whole = &l->table[l->whole];
    l->within = l->beyond = INFINITY;
    if (l->at_once) {
        chain_join(s, l, l->whole, 0);
        return;
    }
    chain_line_solve_within(s, l, l->line->operands < FEWEST_PARTED ? INFINITY : 0);
    while (l->beyond < INFINITY && !s->out_of_memory) {
        bool all = true;
        for (int i = 0; i < whole->n; i++) all = all && whole->made[i].s < INFINITY;
        if (all) return;
        chain_line_solve_within(s, l, l->beyond > 0 ? GROWTH * l->beyond : INFINITY);
    }
}
