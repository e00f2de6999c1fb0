#include "oracle_shard.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- chips ---- */

static int chips_of(const sm_mesh *mesh) {
    int chips = 1;
    for (int a = 0; a < mesh->axes; a++) chips *= mesh->axis[a].size;
    return chips;
}

static int coordinate(const sm_mesh *mesh, int chip, int axis) {
    for (int a = mesh->axes - 1; a > axis; a--) chip /= mesh->axis[a].size;
    return chip % mesh->axis[axis].size;
}

/* The chips that differ from one along these axes only. */
enum { MOST_CHIPS = 64 };
typedef struct chip_group {
    int n, member[MOST_CHIPS];
} chip_group;

static bool same_group(const sm_mesh *mesh, int chip, int other, sm_axes axes) {
    for (int a = 0; a < mesh->axes; a++)
        if (!(axes >> a & 1) && coordinate(mesh, chip, a) != coordinate(mesh, other, a))
            return false;
    return true;
}

static chip_group group_of(const sm_mesh *mesh, int chip, sm_axes axes) {
    chip_group g = {0};
    if (chips_of(mesh) > MOST_CHIPS) abort();
    for (int c = 0; c < chips_of(mesh); c++)
        if (same_group(mesh, chip, c, axes)) g.member[g.n++] = c;
    return g;
}

/* ---- blocks ---- */

static void block_range(const oracle_array *array, const sm_mesh *mesh, int chip, int d,
                        oracle_block *block) {
    int64_t room = array->size[d], lo = 0, end = array->size[d], outer_room = room, outer_lo = lo;
    int64_t outer_end = end, parts = 1, number = 0;
    int last = -2;
    for (int place = 0; place < SM_MAX_AXES; place++)
        for (int a = 0; a < mesh->axes; a++)
            if (array->layout.dim[a] == d && array->layout.place[a] == place) {
                if (!mesh->axis[a].joined || last != a - 1) {
                    outer_room = room, outer_lo = lo, outer_end = end;
                    parts = 1, number = 0;
                }
                last = a;
                parts *= mesh->axis[a].size;
                number = number * mesh->axis[a].size + coordinate(mesh, chip, a);
                room = (outer_room + parts - 1) / parts;
                lo = outer_lo + room * number;
                end = lo + room < outer_end ? lo + room : outer_end;
            }
    block->lo[d] = lo;
    block->len[d] = end > lo ? end - lo : 0;
    block->room[d] = room;
}

/* Elements that one chip sends another: the shorter of its blocks before and after. */
static double box_elements(const oracle_array *a, const oracle_array *b) {
    double n = 1;
    for (int d = 0; d < a->rank; d++)
        n *= (double)(a->chip->room[d] < b->chip->room[d] ? a->chip->room[d] : b->chip->room[d]);
    return n;
}

static bool padded(const oracle_array *a) {
    for (int c = 0; c < a->chips; c++)
        for (int d = 0; d < a->rank; d++)
            if (a->chip[c].len[d] < a->chip[c].room[d]) return true;
    return false;
}

static int64_t block_elements(const oracle_array *array, const oracle_block *block) {
    int64_t n = 1;
    for (int d = 0; d < array->rank; d++) n *= block->len[d];
    return n;
}

static oracle_array new_array(const sm_array *like, const sm_einsum *einsum, const sm_mesh *mesh,
                              sm_layout layout) {
    oracle_array array = {.rank = like->rank,
                          .chips = chips_of(mesh),
                          .layout = layout,
                          .bytes_per_element = sm_dtype_bytes(like->dtype)};
    for (int d = 0; d < like->rank; d++)
        array.size[d] = (int64_t)einsum->index[like->dim[d].index].size;
    array.chip = calloc((size_t)array.chips, sizeof *array.chip);
    for (int c = 0; c < array.chips; c++) {
        for (int d = 0; d < like->rank; d++) block_range(&array, mesh, c, d, &array.chip[c]);
        int64_t n = block_elements(&array, &array.chip[c]);
        array.chip[c].data = calloc((size_t)(n > 0 ? n : 1), sizeof(int64_t));
    }
    return array;
}

static void free_array(oracle_array *array) {
    for (int c = 0; c < array->chips; c++) free(array->chip[c].data);
    free(array->chip);
    memset(array, 0, sizeof *array);
}

/* The place of a global position in a block, or -1. */
static int64_t place_of(const oracle_array *array, const oracle_block *block, const int64_t *at) {
    int64_t place = 0;
    for (int d = 0; d < array->rank; d++) {
        if (at[d] < block->lo[d] || at[d] >= block->lo[d] + block->len[d]) return -1;
        place = place * block->len[d] + at[d] - block->lo[d];
    }
    return place;
}

/* The global position of the n-th element of a block. */
static void position(const oracle_array *array, const oracle_block *block, int64_t n, int64_t *at) {
    for (int d = array->rank - 1; d >= 0; d--) {
        at[d] = block->lo[d] + n % block->len[d];
        n /= block->len[d];
    }
}

static int64_t dense_place(const oracle_array *array, const int64_t *at) {
    int64_t place = 0;
    for (int d = 0; d < array->rank; d++) place = place * array->size[d] + at[d];
    return place;
}

/* ---- whole arrays ---- */

int64_t oracle_elements(const sm_array *array, const sm_einsum *einsum) {
    return (int64_t)sm_array_elements(array, einsum);
}

/* Where the elements of an array lie in a block, for positions of all indices: at first, and how
 * much further with each index. */
typedef struct walk {
    int64_t first, step[SM_MAX_INDICES];
} walk;

static walk walk_of(const sm_array *named, const oracle_array *array, const oracle_block *block,
                    const int64_t *lo, const int64_t *len) {
    walk w = {0};
    int64_t stride = 1, last[SM_MAX_RANK], first[SM_MAX_RANK];
    for (int d = array->rank - 1; d >= 0; stride *= block->len[d--]) {
        int i = named->dim[d].index;
        w.step[i] += stride;
        first[d] = lo[i];
        last[d] = lo[i] + len[i] - 1;
    }
    w.first = place_of(array, block, first);
    if (w.first < 0 || place_of(array, block, last) < 0) abort(); /* the ranges leave the block */
    return w;
}

/* Of the places in the arrays, those one further, the last index fastest; false behind the last. */
static bool next_position(const sm_einsum *e, const int64_t *len, int64_t *at, const walk *w,
                          int arrays, int64_t *place) {
    for (int i = e->indices - 1; i >= 0; i--) {
        int64_t by = ++at[i] < len[i] ? 1 : 1 - len[i];
        for (int o = 0; o < arrays; o++) place[o] += by * w[o].step[i];
        if (by == 1) return true;
        at[i] = 0;
    }
    return false;
}

/* The sum over the ranges lo[i] .. lo[i]+len[i]-1 of every index, added into out. Blocks give the
 * places. */
static void sum_products(const sm_einsum *e, const int64_t *lo, const int64_t *len,
                         const oracle_array *const *in, const oracle_block *const *block,
                         const oracle_array *out, oracle_block *result) {
    int64_t at[SM_MAX_INDICES] = {0}, place[SM_MAX_OPERANDS + 1];
    walk w[SM_MAX_OPERANDS + 1];
    int n = e->operands;
    for (int i = 0; i < e->indices; i++)
        if (len[i] <= 0) return;
    for (int o = 0; o < n; o++) w[o] = walk_of(&e->in[o], in[o], block[o], lo, len);
    w[n] = walk_of(&e->out, out, result, lo, len);
    for (int o = 0; o <= n; o++) place[o] = w[o].first;
    do {
        bool on_diagonal = true;
        int64_t product = 1;
        for (int i = 0; i < e->indices; i++) {
            int same = e->index[i].repeats - 1;
            on_diagonal = on_diagonal && (same < 0 || lo[i] + at[i] == lo[same] + at[same]);
        }
        for (int o = 0; on_diagonal && o < n; o++) product *= block[o]->data[place[o]];
        if (on_diagonal) result->data[place[n]] += product;
    } while (next_position(e, len, at, w, n + 1, place));
}

static sm_layout replicated(void) {
    sm_array nothing = {.rank = 0};
    return sm_layout_of(&nothing);
}

int64_t *oracle_dense_einsum(const sm_einsum *e, int64_t *const *dense) {
    static const sm_mesh one_chip;
    oracle_array whole[SM_MAX_OPERANDS + 1];
    const oracle_array *in[SM_MAX_OPERANDS];
    const oracle_block *block[SM_MAX_OPERANDS];
    int64_t lo[SM_MAX_INDICES] = {0}, len[SM_MAX_INDICES];
    for (int i = 0; i < e->indices; i++) len[i] = (int64_t)e->index[i].size;
    for (int o = 0; o < e->operands; o++) {
        whole[o] = new_array(&e->in[o], e, &one_chip, replicated());
        memcpy(whole[o].chip->data, dense[o],
               sizeof(int64_t) * (size_t)oracle_elements(&e->in[o], e));
        in[o] = &whole[o];
        block[o] = whole[o].chip;
    }
    oracle_array out = new_array(&e->out, e, &one_chip, replicated());
    sum_products(e, lo, len, in, block, &out, out.chip);
    int64_t *result = out.chip->data;
    out.chip->data = NULL;
    free_array(&out);
    for (int o = 0; o < e->operands; o++) free_array(&whole[o]);
    return result;
}

/* ---- failing ---- */

static bool wrong(oracle_run *run, int step, const char *what, double got, double expected) {
    snprintf(run->why, sizeof run->why, "step %d: %s: %g, expected %g", step, what, got, expected);
    return false;
}

/* ---- collectives ---- */

static bool adds(const sm_step *step) {
    return step->op == SM_REDUCE_SCATTER || step->op == SM_ALL_REDUCE;
}

/* One element of the new block of a chip, from the old blocks of its group; received: elements that
 * it gets from others. */
static bool fetch(oracle_run *run, int number, const sm_step *step, const oracle_array *old,
                  int chip, const chip_group *g, const int64_t *at, int64_t *value,
                  double *received) {
    int found = 0;
    for (int m = 0; m < g->n; m++) {
        const int c = g->member[m];
        if (step->kind == SM_STEP_SLICE && c != chip) continue;
        int64_t place = place_of(old, &old->chip[c], at);
        if (place < 0) continue;
        found++;
        *value += old->chip[c].data[place];
        *received += c != chip;
    }
    int expected = adds(step) ? g->n : 1;
    return found == expected || wrong(run, number, "holders of an element", found, expected);
}

/* A chip gets one box from each of the others. Padding is sent too, and holds no elements. */
static bool check_bytes(oracle_run *run, int number, const sm_step *step, const oracle_array *old,
                        const oracle_array *fresh, double received) {
    double group = sm_mesh_size(run->mesh, step->axes), bytes = 0;
    double box = box_elements(old, fresh) * old->bytes_per_element;
    double before = box_elements(old, old) * old->bytes_per_element, sent = box * (group - 1);
    switch (step->op) {
    case SM_ALL_GATHER: /* V after */
    case SM_REDUCE_SCATTER: /* V before */ bytes = box * group; break;
    case SM_ALL_REDUCE: /* V before; here each chip naively gets everything from all others */
        bytes = before;
        sent = before * (group - 1);
        break;
    case SM_ALL_TO_ALL: /* V = what a chip holds times the group; it keeps one part of its own */
        bytes = box * group * group;
        break;
    default: sent = 0; break;
    }
    if (step->bytes != bytes) return wrong(run, number, "bytes of the step", step->bytes, bytes);
    bool fits = received == sent || (received < sent && (padded(old) || padded(fresh)));
    return fits || wrong(run, number, "bytes received by a chip", received, sent);
}

/* The declared indices of an all-to-all, a scatter or a slice are the ones cut otherwise. */
static bool check_direction(oracle_run *run, int number, const sm_step *step, const sm_array *array,
                            const oracle_array *old, const oracle_array *fresh) {
    for (int d = 0; d < old->rank; d++) {
        size_t before = sm_layout_parts(run->mesh, &old->layout, d, (sm_axes)~0u);
        size_t after = sm_layout_parts(run->mesh, &fresh->layout, d, (sm_axes)~0u);
        int index = array->dim[d].index;
        if (step->to >= 0 && (after > before) != (index == step->to))
            return wrong(run, number, "`to` index", step->to, index);
        if (step->from >= 0 && (after < before) != (index == step->from))
            return wrong(run, number, "`from` index", step->from, index);
    }
    return true;
}

/* ---- permutes ---- */

static bool same_block(const oracle_array *a, int chip, const oracle_array *b, int other) {
    for (int d = 0; d < a->rank; d++)
        if (a->chip[chip].len[d] != b->chip[other].len[d] ||
            (a->chip[chip].len[d] > 0 && a->chip[chip].lo[d] != b->chip[other].lo[d]))
            return false;
    return true;
}

/* Gives a chip a sender of its own that holds its new block, moving others to other senders where
 * it must: an augmenting path. */
static bool give_sender(const oracle_run *run, const sm_step *step, const oracle_array *old,
                        const oracle_array *fresh, int chip, int *receiver, bool *seen) {
    for (int c = 0; c < old->chips; c++) {
        if (seen[c] || !same_group(run->mesh, chip, c, step->axes) ||
            !same_block(fresh, chip, old, c))
            continue;
        seen[c] = true;
        if (receiver[c] >= 0 && !give_sender(run, step, old, fresh, receiver[c], receiver, seen))
            continue;
        receiver[c] = chip;
        return true;
    }
    return false;
}

/* The number of a chip's block among those of a dimension. */
static int number_of(const oracle_array *array, const sm_mesh *mesh, int chip, int d) {
    int at[SM_MAX_AXES];
    for (int a = 0; a < mesh->axes; a++) at[a] = coordinate(mesh, chip, a);
    return (int)sm_layout_part(mesh, &array->layout, d, (sm_axes)~0u, at);
}

/* Of each dimension the longest of the pieces that come from a block so many further, all such
 * added up: where blocks are the same ones, a block. */
static double pieces_bytes(const oracle_run *run, const oracle_array *old,
                           const oracle_array *fresh) {
    double bytes = old->bytes_per_element;
    for (int d = 0; d < old->rank; d++) {
        double longest[2 * MOST_CHIPS] = {0}, sum = 0;
        for (int c = 0; c < old->chips; c++)
            for (int e = 0; e < old->chips; e++) {
                const oracle_block *to = &fresh->chip[c], *from = &old->chip[e];
                int64_t lo = to->lo[d] > from->lo[d] ? to->lo[d] : from->lo[d];
                int64_t end = to->lo[d] + to->len[d], other = from->lo[d] + from->len[d];
                double common = (double)((end < other ? end : other) - lo);
                int shift = number_of(old, run->mesh, e, d) - number_of(fresh, run->mesh, c, d);
                double *most = &longest[MOST_CHIPS + shift];
                if (common > *most) *most = common;
            }
        for (int i = 0; i < 2 * MOST_CHIPS; i++) sum += longest[i];
        bytes *= sum;
    }
    return bytes;
}

/* Blocks that are cut at other places come in pieces, each from a chip of the group. */
static bool permute_pieces(oracle_run *run, int number, const sm_step *step,
                           const oracle_array *old, oracle_array *fresh) {
    int64_t at[SM_MAX_RANK];
    for (int c = 0; c < fresh->chips; c++)
        for (int64_t i = 0; i < block_elements(fresh, &fresh->chip[c]); i++) {
            int holders = 0;
            position(fresh, &fresh->chip[c], i, at);
            for (int e = 0; e < old->chips && holders == 0; e++) {
                int64_t place = place_of(old, &old->chip[e], at);
                if (place < 0 || !same_group(run->mesh, c, e, step->axes)) continue;
                fresh->chip[c].data[i] = old->chip[e].data[place];
                holders++;
            }
            if (holders == 0) return wrong(run, number, "holders of an element", 0, 1);
        }
    return true;
}

/* Each chip gets one whole block from one chip, and each sends to one. */
static bool permute_blocks(oracle_run *run, int number, const sm_step *step,
                           const oracle_array *old, oracle_array *fresh) {
    int receiver[MOST_CHIPS];
    if (old->chips > MOST_CHIPS) return wrong(run, number, "chips", old->chips, MOST_CHIPS);
    double bytes = pieces_bytes(run, old, fresh), block = box_elements(old, old);
    if (step->bytes != bytes) return wrong(run, number, "bytes of the step", step->bytes, bytes);
    if (bytes != block * old->bytes_per_element)
        return permute_pieces(run, number, step, old, fresh);
    for (int c = 0; c < old->chips; c++) receiver[c] = -1;
    for (int c = 0; c < old->chips; c++) {
        bool seen[MOST_CHIPS] = {false};
        if (!give_sender(run, step, old, fresh, c, receiver, seen))
            return wrong(run, number, "a permute is one block from one chip; none is left for", c,
                         c);
    }
    for (int c = 0; c < old->chips; c++) {
        int64_t n = block_elements(old, &old->chip[c]);
        memcpy(fresh->chip[receiver[c]].data, old->chip[c].data, sizeof(int64_t) * (size_t)n);
    }
    return true;
}

static bool move_elements(oracle_run *run, int number, const sm_step *step, const oracle_array *old,
                          oracle_array *fresh) {
    int64_t at[SM_MAX_RANK];
    bool good = true;
    if (step->op == SM_PERMUTE) return permute_blocks(run, number, step, old, fresh);
    for (int c = 0; c < old->chips && good; c++) {
        double received = 0, unit = old->bytes_per_element;
        const chip_group g = group_of(run->mesh, c, step->axes);
        int64_t n = block_elements(fresh, &fresh->chip[c]);
        for (int64_t i = 0; i < n && good; i++) {
            position(fresh, &fresh->chip[c], i, at);
            good = fetch(run, number, step, old, c, &g, at, &fresh->chip[c].data[i], &received);
        }
        good = good && check_bytes(run, number, step, old, fresh, received * unit);
    }
    return good;
}

static bool same_layout(const sm_layout *a, const sm_layout *b, const sm_mesh *mesh) {
    for (int i = 0; i < mesh->axes; i++)
        if (mesh->axis[i].size > 1 && a->dim[i] != b->dim[i]) return false;
    return true;
}

static bool run_move(oracle_run *run, int number, const sm_step *step) {
    oracle_array *array = step->array < 0 ? &run->out : &run->in[step->array];
    const sm_array *named = step->array < 0 ? &run->einsum->out : &run->einsum->in[step->array];
    oracle_array fresh = new_array(named, run->einsum, run->mesh, step->after);
    bool good = move_elements(run, number, step, array, &fresh) &&
                check_direction(run, number, step, named, array, &fresh);
    free_array(array);
    *array = fresh;
    return good;
}

/* ---- the local einsum ---- */

static bool local_ranges(oracle_run *run, int number, int chip, int64_t *lo, int64_t *len) {
    const sm_einsum *e = run->einsum;
    for (int i = 0; i < e->indices; i++) len[i] = -1;
    for (int o = 0; o <= e->operands; o++) {
        const sm_array *array = o < e->operands ? &e->in[o] : &e->out;
        const oracle_array *held = o < e->operands ? &run->in[o] : &run->out;
        for (int d = 0; d < array->rank; d++) {
            int i = array->dim[d].index;
            if (len[i] >= 0 &&
                (lo[i] != held->chip[chip].lo[d] || len[i] != held->chip[chip].len[d]))
                return wrong(run, number, "operands disagree on an index", i, chip);
            lo[i] = held->chip[chip].lo[d];
            len[i] = held->chip[chip].len[d];
        }
    }
    return true;
}

static bool run_einsum(oracle_run *run, int number, const sm_step *step) {
    const sm_einsum *e = run->einsum;
    double most = 0;
    run->out = new_array(&e->out, e, run->mesh, step->after);
    for (int c = 0; c < run->out.chips; c++) {
        const oracle_array *in[SM_MAX_OPERANDS];
        const oracle_block *block[SM_MAX_OPERANDS];
        int64_t lo[SM_MAX_INDICES] = {0}, len[SM_MAX_INDICES];
        double flops = sm_einsum_flops(e) > 0 ? 2 : 0;
        for (int o = 0; o < e->operands; o++) {
            in[o] = &run->in[o];
            block[o] = &run->in[o].chip[c];
        }
        if (!local_ranges(run, number, c, lo, len)) return false;
        for (int i = 0; i < e->indices; i++) flops *= e->index[i].repeats == 0 ? (double)len[i] : 1;
        most = flops > most ? flops : most;
        if (flops > step->flops) return wrong(run, number, "local FLOPs", step->flops, flops);
        sum_products(e, lo, len, in, block, &run->out, &run->out.chip[c]);
    }
    return most == step->flops || wrong(run, number, "FLOPs of the fullest", step->flops, most);
}

/* ---- the whole ---- */

/* The shards of an operand; where it is unreduced, parts that add up to it. */
static oracle_array shards(const oracle_run *run, int operand) {
    const sm_array *named = &run->einsum->in[operand];
    oracle_array array = new_array(named, run->einsum, run->mesh, sm_layout_of(named));
    int64_t at[SM_MAX_RANK];
    int group = (int)sm_mesh_size(run->mesh, named->unreduced);
    for (int c = 0; c < array.chips; c++) {
        int member = 0;
        for (int a = 0; a < run->mesh->axes; a++)
            if (named->unreduced >> a & 1)
                member = member * run->mesh->axis[a].size + coordinate(run->mesh, c, a);
        int64_t n = block_elements(&array, &array.chip[c]);
        for (int64_t i = 0; i < n; i++) {
            position(&array, &array.chip[c], i, at);
            int64_t value = run->dense[operand][dense_place(&array, at)];
            /* parts 1, 2, .. and the last takes what is missing */
            int64_t others = (int64_t)group * (group - 1) / 2;
            array.chip[c].data[i] = member < group - 1 ? member + 1 : value - others;
        }
    }
    return array;
}

static bool check_output(oracle_run *run, const sm_lowering *l, const int64_t *expected) {
    int64_t at[SM_MAX_RANK];
    const sm_layout declared = sm_layout_of(&l->out);
    if (!same_layout(&declared, &run->out.layout, run->mesh))
        return wrong(run, l->steps, "the output is not sharded as declared", 0, 0);
    oracle_array told = new_array(&l->out, run->einsum, run->mesh, declared);
    const sm_step sum = {.kind = SM_STEP_COLLECTIVE, .op = SM_ALL_REDUCE, .axes = l->out.unreduced};
    bool good = true;
    for (int c = 0; c < run->out.chips && good; c++) {
        const chip_group g = group_of(run->mesh, c, sum.axes);
        double received = 0;
        for (int64_t i = 0; i < block_elements(&told, &told.chip[c]) && good; i++) {
            int64_t value = 0;
            position(&told, &told.chip[c], i, at);
            good = fetch(run, l->steps, &sum, &run->out, c, &g, at, &value, &received);
            if (good && value != expected[dense_place(&told, at)])
                good = wrong(run, l->steps, "value of the output", (double)value,
                             (double)expected[dense_place(&told, at)]);
        }
    }
    free_array(&told);
    return good;
}

bool oracle_execute(oracle_run *run, const sm_lowering *lowering) {
    const sm_einsum *e = run->einsum;
    int64_t *expected = oracle_dense_einsum(e, run->dense);
    bool good = true, done = false;
    run->why[0] = '\0';
    for (int o = 0; o < e->operands; o++) run->in[o] = shards(run, o);
    for (int s = 0; s < lowering->steps && good; s++) {
        const sm_step *step = &lowering->step[s];
        bool early = step->array >= 0 || step->kind == SM_STEP_EINSUM;
        if (early == done)
            good = wrong(run, s, "operands before the einsum, output after", step->array, 0);
        else
            good = step->kind == SM_STEP_EINSUM ? run_einsum(run, s, step) : run_move(run, s, step);
        done = done || step->kind == SM_STEP_EINSUM;
    }
    good = good && check_output(run, lowering, expected);
    for (int o = 0; o < e->operands; o++) free_array(&run->in[o]);
    free_array(&run->out);
    free(expected);
    return good;
}
