/* The bytes of reshardings against shortest paths by brute force: every layout of an array on a
 * mesh is a node, every collective that leads from one to another an edge, and nothing is pruned.
 * The suite draws some; `test_route all` takes every pair on meshes up to 2x2x4, the parts of its
 * axes as axes: 786,159 pairs in half a minute, all equal. And against what XLA's partitioner
 * moves. */
#include "unit.h"
#include "../src/shard/route.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scalemodel/shard.h"

enum { MOST_LAYOUTS = 1024, AXES = 4, RANK = 3 };

typedef struct space {
    int axes, rank;
    int chips[AXES];
    double size[RANK];
    int n;
    sm_layout layout[MOST_LAYOUTS];
    float *bytes;         /* of each edge, infinite where there is none */
    unsigned char *moved; /* the axes it moves that are replicated before or after it */
} space;

/* ---- layouts ---- */

static double ways(const space *s, const sm_layout *l, int dim) {
    double n = 1;
    for (int a = 0; a < s->axes; a++)
        if (l->dim[a] == dim) n *= s->chips[a];
    return n;
}

static double local(const space *s, const sm_layout *l) {
    double bytes = 1;
    for (int d = 0; d < s->rank; d++) bytes *= s->size[d] / ways(s, l, d);
    return bytes;
}

/* Each axis in turn at every place. Numbers of places are closed up in the end: only lists without
 * gaps are kept. */
static void add_layouts(space *s, sm_layout *l, int axis, bool sums) {
    if (axis < s->axes) {
        for (int dim = sums ? SM_UNREDUCED : SM_REPLICATED; dim < s->rank; dim++)
            for (int place = 0; place < (dim < 0 ? 1 : s->axes); place++) {
                l->dim[axis] = (int8_t)dim;
                l->place[axis] = (int8_t)(dim < 0 ? -1 : place);
                add_layouts(s, l, axis + 1, sums);
            }
        return;
    }
    for (int d = 0; d < s->rank; d++) {
        unsigned seen = 0;
        for (int a = 0; a < s->axes; a++) {
            if (l->dim[a] != d) continue;
            if (seen >> l->place[a] & 1u) return;
            seen |= 1u << l->place[a];
        }
        if ((seen & (seen + 1)) != 0 || fmod(s->size[d], ways(s, l, d)) != 0) return;
    }
    assert_true(s->n < MOST_LAYOUTS);
    s->layout[s->n++] = *l;
}

/* ---- edges ---- */

/* Do the axes of a dimension before begin those after it? */
static bool begins(const space *s, const sm_layout *a, const sm_layout *b, int dim) {
    for (int i = 0; i < s->axes; i++)
        if (a->dim[i] == dim && (b->dim[i] != dim || b->place[i] != a->place[i])) return false;
    return true;
}

/* The place that all axes that differ have in a layout: SM_REPLICATED, SM_UNREDUCED, 0 for
 * dimensions; -9 when they differ in that too. */
static int place_of_moved(const space *s, const sm_layout *a, const sm_layout *b,
                          const sm_layout *in) {
    int place = -8;
    for (int i = 0; i < s->axes; i++) {
        if (a->dim[i] == b->dim[i]) continue;
        int here = in->dim[i] < 0 ? in->dim[i] : 0;
        if (place != -8 && place != here) return -9;
        place = here;
    }
    return place;
}

static double edge_bytes(const space *s, const sm_layout *a, const sm_layout *b) {
    bool grows = true, shrinks = true, either = true, alike = true;
    double chips = 1, v = local(s, a);
    for (int d = 0; d < s->rank; d++) {
        bool longer = begins(s, a, b, d), shorter = begins(s, b, a, d);
        grows = grows && longer;
        shrinks = shrinks && shorter;
        either = either && (longer || shorter);
        alike = alike && ways(s, a, d) == ways(s, b, d);
    }
    for (int i = 0; i < s->axes; i++) {
        if (a->dim[i] != b->dim[i]) chips *= s->chips[i];
        alike = alike && (a->dim[i] == SM_UNREDUCED) == (b->dim[i] == SM_UNREDUCED);
    }
    int from = place_of_moved(s, a, b, a), to = place_of_moved(s, a, b, b);
    double least = alike ? v : INFINITY;
    if (grows && from == SM_REPLICATED && to == 0) least = 0;
    if (grows && from == SM_UNREDUCED && to == 0) least = fmin(least, v * (1 - 1 / chips));
    if (grows && shrinks && from == SM_UNREDUCED && to == SM_REPLICATED)
        least = fmin(least, 2 * v * (1 - 1 / chips));
    if (either && from == 0 && to == 0) least = fmin(least, v * (1 - 1 / chips));
    if (shrinks && from == 0 && to == SM_REPLICATED) least = fmin(least, v * (chips - 1));
    return least;
}

static void make_space(space *s, const char *mesh, const char *sizes, bool sums) {
    sm_layout l;
    *s = (space){.axes = 0};
    for (; *mesh; mesh++) s->chips[s->axes++] = *mesh - '0';
    for (const char *at = sizes; *at; at += strcspn(at, ","), at += *at == ',')
        s->size[s->rank++] = atoi(at);
    memset(&l, SM_REPLICATED, sizeof l);
    add_layouts(s, &l, 0, sums);
    s->bytes = malloc((size_t)MOST_LAYOUTS * MOST_LAYOUTS * sizeof *s->bytes);
    s->moved = malloc((size_t)MOST_LAYOUTS * MOST_LAYOUTS);
    assert_true(s->bytes && s->moved);
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->n; k++) {
            unsigned moved = 0;
            for (int a = 0; a < s->axes; a++)
                if (s->layout[i].dim[a] != s->layout[k].dim[a]) moved |= 1u << a;
            s->moved[i * s->n + k] = (unsigned char)moved;
            s->bytes[i * s->n + k] = (float)edge_bytes(s, &s->layout[i], &s->layout[k]);
        }
}

static void free_space(space *s) {
    free(s->bytes);
    free(s->moved);
}

/* ---- shortest paths (Dijkstra), in which the axes of a set stay where they are ---- */

static void shortest(const space *s, int from, unsigned still, double *bytes) {
    bool done[MOST_LAYOUTS] = {false};
    for (int i = 0; i < s->n; i++) bytes[i] = INFINITY;
    bytes[from] = 0;
    for (;;) {
        int at = -1;
        for (int i = 0; i < s->n; i++)
            if (!done[i] && bytes[i] < INFINITY && (at < 0 || bytes[i] < bytes[at])) at = i;
        if (at < 0) return;
        done[at] = true;
        for (int k = 0; k < s->n; k++)
            if (!(s->moved[at * s->n + k] & still))
                bytes[k] = fmin(bytes[k], bytes[at] + (double)s->bytes[at * s->n + k]);
    }
}

/* ---- ours ---- */

static void problem_of(const space *s, int from, int to, sm_mesh *mesh, sm_einsum *e) {
    memset(mesh, 0, sizeof *mesh);
    memset(e, 0, sizeof *e);
    mesh->axes = s->axes;
    for (int a = 0; a < s->axes; a++) {
        snprintf(mesh->axis[a].name, sizeof mesh->axis[a].name, "%c", 'W' + a);
        mesh->axis[a].size = s->chips[a];
    }
    e->operands = 1;
    e->indices = s->rank;
    e->has_output = e->out_sharding_given = true;
    for (int o = 0; o < 2; o++) {
        sm_array *array = o == 0 ? &e->in[0] : &e->out;
        const sm_layout *l = &s->layout[o == 0 ? from : to];
        snprintf(array->name, sizeof array->name, "%c", 'A' + o);
        array->dtype = SM_INT8;
        array->rank = s->rank;
        for (int d = 0; d < s->rank; d++) {
            snprintf(e->index[d].name, sizeof e->index[d].name, "%c", 'I' + d);
            e->index[d].size = s->size[d];
            array->dim[d].index = d;
        }
        for (int a = 0; a < s->axes; a++) {
            if (l->dim[a] == SM_UNREDUCED) array->unreduced |= (sm_axes)(1u << a);
            if (l->dim[a] < 0) continue;
            sm_dim *dim = &array->dim[l->dim[a]];
            dim->axis[l->place[a]] = (uint8_t)a;
            dim->n_axes++;
        }
    }
}

static double ours(const space *s, int from, int to, char *text, size_t room) {
    sm_mesh mesh;
    sm_einsum e;
    sm_lowering l;
    sm_error err;
    int8_t at[SM_MAX_AXES];
    problem_of(s, from, to, &mesh, &e);
    memset(at, SM_REPLICATED, sizeof at);
    for (int a = 0; a < s->axes; a++)
        if (s->layout[to].dim[a] >= 0) at[a] = s->layout[to].dim[a];
    sm_einsum_format(&e, &mesh, text, room);
    if (sm_einsum_lower(&e, &mesh, at, &e.out, false, &l, &err))
        fail_msg("%s: %s", text, err.sentence);
    return l.wire_bytes;
}

/* ---- the comparison ---- */

static unsigned replicated(const space *s, int at) {
    unsigned set = 0;
    for (int a = 0; a < s->axes; a++)
        if (s->layout[at].dim[a] == SM_REPLICATED) set |= 1u << a;
    return set;
}

/* Partial sums only go away, and who begins without them cannot end with them. */
static bool possible(const space *s, int from, int to) {
    for (int a = 0; a < s->axes; a++)
        if (s->layout[to].dim[a] == SM_UNREDUCED && s->layout[from].dim[a] != SM_UNREDUCED)
            return false;
    return true;
}

static int compare_from(const space *s, const char *mesh, int from) {
    double *bytes = malloc((size_t)s->n * sizeof *bytes);
    unsigned idle = replicated(s, from);
    int pairs = 0;
    char text[256];
    assert_non_null(bytes);
    for (unsigned still = idle;; still = (still - 1) & idle) {
        shortest(s, from, still, bytes);
        for (int to = 0; to < s->n; to++) {
            if ((idle & replicated(s, to)) != still || !possible(s, from, to)) continue;
            double got = ours(s, from, to, text, sizeof text);
            if (fabs(got - bytes[to]) > 1e-4 * (1 + bytes[to]))
                fail_msg("%s on %s: %g bytes, brute force %g", text, mesh, got, bytes[to]);
            pairs++;
        }
        if (still == 0) break;
    }
    free(bytes);
    return pairs;
}

/* As digits: the axes of the mesh. */
static const struct {
    const char *mesh, *sizes;
    bool sums;
} spaces[] = {{"22", "4,4", true},     {"44", "16,64", false},    {"222", "2,8", true},
              {"222", "8,8,8", false}, {"24", "8,16", true},      {"23", "12,36", false},
              {"224", "16,16", false}, {"223", "12,24", false},   {"2222", "16,16", false},
              {"2222", "4,16", true},  {"2222", "2,4,16", false}, {"2222", "16,16,16", false}};
enum { SPACES = sizeof spaces / sizeof *spaces };

static void routes_are_shortest_paths(void **state) {
    sm_rng rng = {drawn_from(20261123)};
    int pairs = 0;
    for (int i = 0; i < SPACES; i++) {
        space s;
        if (strcmp(spaces[i].sizes, "16,16,16") == 0 || (spaces[i].sums && i > 8)) continue;
        make_space(&s, spaces[i].mesh, spaces[i].sizes, spaces[i].sums);
        for (int k = 0; k < 6; k++)
            pairs += compare_from(&s, spaces[i].mesh, (int)sm_rng_below(&rng, (uint64_t)s.n));
        free_space(&s);
    }
    print_message("%d pairs\n", pairs);
    assert_true(pairs > 5000);
}

static void all_routes(void **state) {
    for (int i = 0; i < SPACES; i++) {
        space s;
        int pairs = 0;
        double begun_s = sm_clock_s();
        make_space(&s, spaces[i].mesh, spaces[i].sizes, spaces[i].sums);
        for (int from = 0; from < s.n; from++) pairs += compare_from(&s, spaces[i].mesh, from);
        print_message("%s, sizes %s: %d layouts, %d pairs, %.1f s\n", spaces[i].mesh,
                      spaces[i].sizes, s.n, pairs, sm_clock_s() - begun_s);
        free_space(&s);
    }
}

/* ---- what XLA's partitioner moves, as scripts/reshard-against-xla.py recorded it ---- */

typedef struct least {
    double flops, bytes; /* a way may compute so much; the least bytes of those that do */
} least;

static bool take_least(const sm_lowering *l, void *context) {
    least *best = context;
    if (l->flops_per_chip <= best->flops) best->bytes = fmin(best->bytes, l->wire_bytes);
    return true;
}

static double least_bytes(const char *mesh, const char *sizes, const char *text, double flops) {
    sm_source m = sm_source_of("mesh", mesh), e = sm_source_of("einsum", text),
              d = sm_source_of("sizes", sizes);
    sm_mesh on;
    sm_einsum einsum;
    sm_error err;
    least best = {flops, INFINITY};
    if (sm_mesh_parse(&m, &on, &err) || sm_einsum_parse(&e, &on, &einsum, &err) ||
        sm_dims_parse(&d, &einsum, &err) ||
        sm_einsum_alternatives(&einsum, &on, take_least, &best, &err))
        fail_msg("%s: %s", text, err.sentence);
    return best.bytes;
}

typedef struct counts {
    int cases, less, more; /* bytes than XLA */
} counts;

static counts count_cases(const char *path) {
    FILE *file = fopen(path, "r");
    char line[512], *field[5];
    int cases = 0, less = 0, more = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#') continue;
        field[0] = strtok(line, ";");
        for (int i = 1; i < 5; i++) field[i] = strtok(NULL, ";");
        double xla = atof(field[3]);
        double ours_bytes = least_bytes(field[0], field[1], field[2], atof(field[4]));
        cases++;
        less += ours_bytes < xla * (1 - 1e-9);
        if (ours_bytes > xla * (1 + 1e-9)) {
            print_message("%s on %s: %.0f bytes, XLA %.0f\n", field[2], field[0], ours_bytes, xla);
            more++;
        }
    }
    fclose(file);
    print_message("%d cases: less than XLA in %d, more in %d\n", cases, less, more);
    return (counts){cases, less, more};
}

static void xla_moves_no_less(void **state) {
    counts n = count_cases("tests/reshard_xla.csv");
    assert_true(n.cases >= 300);
    assert_int_equal(n.more, 0);
}

/* Of sizes that do not divide XLA cuts a dimension by all its axes at once, I_XY as by one axis of
 * as many chips: all four have two axes on such a dimension, and so ask for other blocks there. */
static void xla_moves_seldom_less_that_is_padded(void **state) {
    counts n = count_cases("tests/reshard_xla_padded.csv");
    assert_int_equal(n.cases, 600);
    assert_int_equal(n.more, 4);
    assert_true(n.less > 460);
}

/* K_X1X2 of 61 has blocks of 16, two of which are longer than half of 61 over X1 alone: X2 cannot
 * leave it for J_X1 before the permute, but does behind it, which only the search from the end
 * sees. */
static void parts_that_cannot_leave_first_leave_last(void **state) {
    double bytes = least_bytes("X=4,Y=2,Z=2", "I=50,J=131,K=61",
                               "fp32 A[I_Y,J_Z,K_X] -> fp32 C[I_Z,J_X,K_Y]", 0);
    assert_true(bytes == 4 * (25 * 66 * 17 + 25 * 33 * 16));
}

/* Partial sums over parts of two axes of three: what an exchange among them has ahead is bounded
 * too, or more layouts are looked at than there is room for, and one of 68,608 bytes is taken. */
static void sums_over_many_axes_are_searched_to_the_end(void **state) {
    static const int8_t from[6] = {SM_UNREDUCED, SM_UNREDUCED, 2, 2, SM_UNREDUCED, SM_UNREDUCED};
    static const int8_t place[6] = {4, 5, 2, 3, 0, 1};
    sm_journey j;
    sm_route route;
    memset(&j, 0, sizeof j);
    j.axes = 6, j.rank = 3, j.element_bytes = 1;
    memset(&j.from, SM_REPLICATED, sizeof j.from);
    memset(&j.to, SM_REPLICATED, sizeof j.to);
    for (int d = 0; d < j.rank; d++) j.size[d] = 64;
    for (int a = 0; a < j.axes; a++) {
        j.chips[a] = 2;
        j.from.dim[a] = from[a];
        j.from.place[a] = (int8_t)(from[a] < 0 ? -1 : a - 2);
        j.to.dim[a] = 0;
        j.to.place[a] = place[a];
    }
    assert_true(sm_route_find(&j, &route) && route.least);
    assert_true(route.bytes == 65280);
}

/* Drawn: each axis nowhere, on a dimension, or with sums that are added up, its parts together. */
static void draw_journey(sm_rng *rng, const int *chips, int axes, int parts, sm_journey *whole,
                         sm_journey *split) {
    memset(whole, 0, sizeof *whole);
    whole->axes = axes, whole->rank = 2, whole->element_bytes = 1;
    sm_layout *end[2] = {&whole->from, &whole->to};
    for (int e = 0; e < 2; e++) {
        int n[2] = {0, 0}, first = (int)sm_rng_below(rng, (uint64_t)axes);
        memset(end[e], SM_REPLICATED, sizeof *end[e]);
        for (int i = 0; i < axes; i++) {
            int a = (first + i) % axes, dim = (int)sm_rng_below(rng, e == 0 ? 4 : 3) - 1;
            end[e]->dim[a] = (int8_t)(dim == 2 ? SM_UNREDUCED : dim);
            if (dim == 0 || dim == 1) end[e]->place[a] = (int8_t)n[dim]++;
        }
    }
    *split = *whole;
    memset(&split->from, SM_REPLICATED, sizeof split->from);
    memset(&split->to, SM_REPLICATED, sizeof split->to);
    split->axes = axes * parts;
    whole->size[0] = whole->size[1] = split->size[0] = split->size[1] = 4096;
    for (int p = 0; p < split->axes; p++) {
        int a = p / parts;
        whole->chips[a] = chips[a];
        split->chips[p] = p % parts > 0 ? 2 : chips[a] >> (parts - 1);
        if (p % parts > 0) split->joined |= (sm_axes)(1u << p);
        for (int e = 0; e < 2; e++) {
            sm_layout *to = e == 0 ? &split->from : &split->to;
            to->dim[p] = end[e]->dim[a];
            if (to->dim[p] >= 0) to->place[p] = (int8_t)(end[e]->place[a] * parts + p % parts);
        }
    }
}

/* A route on parts of axes receives no more than that of whole axes, and less only where axes of
 * several sizes move: the search that does not know which parts are of one axis finds no less. */
static void parts_gain_where_sizes_differ(void **state) {
    static const int chips[][3] = {{4, 4, 4}, {4, 4, 1}, {8, 8, 4}, {8, 4, 4}};
    sm_rng rng = {drawn_from(20261201)};
    int gained = 0;
    for (int k = 0; k < 400; k++) {
        const int *c = chips[k % 4], axes = c[2] > 1 ? 3 : 2;
        sm_journey whole, split;
        sm_route on_whole, on_parts, plain;
        draw_journey(&rng, c, axes, 2, &whole, &split);
        assert_true(sm_route_find(&whole, &on_whole));
        assert_true(sm_route_find(&split, &on_parts));
        split.joined = 0;
        assert_true(sm_route_find(&split, &plain));
        bool less = on_parts.bytes < on_whole.bytes * (1 - 1e-9);
        assert_true(on_parts.bytes <= on_whole.bytes * (1 + 1e-9));
        assert_true(on_parts.bytes <= plain.bytes * (1 + 1e-9));
        assert_false(k % 4 < 2 && less);
        gained += less;
    }
    print_message("parts gain in %d\n", gained);
    assert_true(gained > 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest some[] = {cmocka_unit_test(routes_are_shortest_paths),
                                      cmocka_unit_test(sums_over_many_axes_are_searched_to_the_end),
                                      cmocka_unit_test(parts_gain_where_sizes_differ),
                                      cmocka_unit_test(xla_moves_no_less),
                                      cmocka_unit_test(xla_moves_seldom_less_that_is_padded),
                                      cmocka_unit_test(parts_that_cannot_leave_first_leave_last)};
    const struct CMUnitTest all[] = {cmocka_unit_test(all_routes)};
    if (argc > 1 && strstr(argv[1], ".csv")) return count_cases(argv[1]).more > 0;
    if (argc > 1 && strcmp(argv[1], "all") == 0) return cmocka_run_group_tests(all, NULL, NULL);
    return cmocka_run_group_tests(some, NULL, NULL);
}
