/* The messages of a permute over the links of its group: a compiled program names who sends to
 * whom; of blocks, chip (x, y) that has block (x, y) sends it to the chip that has it afterwards.
 * In a transposition over two axes of n chips all but one in n leave their row, and n/4 of them
 * pass each link in the middle of a line, where a shift by one has one message on a link. */
#include "group_links.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_CUTS = 1024, MOST_LINKS = 4096, MOST_TOLD = 65536 };

typedef struct crossing {
    const sm_placement *placement;
    const sm_group_links *links;
    const sm_mesh *mesh;
    sm_axes axes; /* that messages pass along */
    const sm_messages *messages;
    int pair; /* the one that is looked at, of messages that are pairs */
    int at[SM_MAX_AXES], to[SM_MAX_AXES]; /* who sends, and who gets it */
} crossing;

static void start(crossing *c) {
    memset(c->at, 0, sizeof c->at);
    c->pair = 0;
}

/* The next pair, or the next member of the group; false after the last. */
static bool next_message(crossing *c) {
    if (c->messages->pair) return ++c->pair < c->messages->pairs;
    for (int a = 0; a < c->mesh->axes; a++) {
        if (!(c->axes >> a & 1u)) continue;
        if (++c->at[a] < c->mesh->axis[a].size) return true;
        c->at[a] = 0;
    }
    return false;
}

/* Where chips of these coordinates stand on each level. */
static void stand(const crossing *c, const int *at, int *position) {
    memset(position, 0, SM_MAX_LEVELS * sizeof *position);
    for (int a = 0; a < c->mesh->axes; a++) {
        if (!(c->axes >> a & 1u)) continue;
        int rest = at[a];
        for (int p = 0; p < c->placement->axis[a].parts; p++) {
            const sm_part *part = &c->placement->axis[a].part[p];
            position[part->level] += rest % part->size * part->stride;
            rest /= part->size;
        }
    }
}

static void find(const sm_mesh *mesh, int32_t device, int *at) {
    for (int a = mesh->axes - 1; a >= 0; a--) {
        at[a] = device % mesh->axis[a].size;
        device /= mesh->axis[a].size;
    }
}

static void ends_of(crossing *c, int *from, int *to) {
    const int32_t *pair = c->messages->pair;
    if (pair) {
        find(c->mesh, pair[2 * c->pair], c->at);
        find(c->mesh, pair[2 * c->pair + 1], c->to);
    } else sm_permutation_apply(&c->messages->blocks, c->at, NULL, c->to);
    stand(c, c->at, from);
    stand(c, c->to, to);
}

static bool part_above(const crossing *c, const int *from, const int *to, int level) {
    for (int l = level; l < SM_MAX_LEVELS; l++)
        if (from[l] != to[l] && c->links->system->level[l].kind == SM_LEVEL_SWITCH) return true;
    return false;
}

/* The child of a level below which a chip lies. */
static int child_of(const crossing *c, const int *position, int level) {
    int child = 0;
    for (int l = SM_MAX_LEVELS - 1; l >= level; l--)
        child = child * (l < c->links->system->levels ? c->links->system->level[l].size : 1) +
                position[l];
    return child;
}

/* ---- tori ---- */

/* Messages over each cut, up and down: differences, to be summed. Of more than MOST_CUTS places the
 * cuts at every few. Over links: line by line. */
typedef struct cuts {
    double up[MOST_LINKS + 1], down[MOST_LINKS + 1];
} cuts;

static void pass(double *cut, int from, int to, bool around, double share) {
    cut[from] += share;
    cut[to] -= share;
    if (around) cut[0] += share;
}

/* The shortest way; to the opposite member of a ring this share each way. */
static void send(cuts *t, int line, const sm_torus_part *part, int from, int to, double opposite) {
    int ahead = (to - from + part->n) % part->n;
    int each = (part->n + MOST_CUTS - 1) / MOST_CUTS; /* places */
    bool either = part->ring && ahead * 2 == part->n;
    bool ascends = part->ring ? ahead * 2 < part->n : to > from;
    double up = either ? opposite : ascends ? 1 : 0, down = either ? opposite : ascends ? 0 : 1;
    if (from == to) return;
    from /= each;
    to /= each;
    pass(t->up + line * part->n, from, to, to < from, up);
    pass(t->down + line * part->n, to, from, from < to, down);
}

static double busiest(const double *cut, int lines, int places) {
    double most = 0;
    for (int line = 0; line < lines; line++) {
        double now = 0;
        for (int i = 0; i < places; i++) most = fmax(most, now += cut[line * places + i]);
    }
    return most;
}

static int place_on(const sm_torus_part *part, const int *position) {
    return position[part->level] / part->stride % part->n;
}

/* The line of a part on which a message passes it that takes one dimension after the other, in the
 * system's order, whatever their links are like. */
static int line_of(const crossing *c, int part, const int *from, const int *to) {
    const sm_group_links *links = c->links;
    const sm_torus_part *t = links->torus;
    int line = 0, slices = (int)(links->n / links->torus_members);
    for (int i = 0; i < links->torus_parts; i++) {
        bool before = t[i].level == t[part].level ? i < part : t[i].level < t[part].level;
        if (i != part) line = line * t[i].n + place_on(&t[i], before ? to : from);
    }
    int first = links->switch_parts > 0 ? links->sw[0].level : SM_MAX_LEVELS;
    return line * slices + child_of(c, from, first) % slices;
}

/* MEAN: on the mean of the lines of a part. FIXED: by fixed routes on the busiest line. STRAIGHT:
 * so of the messages that pass this part alone, for which there is no other line. Of more than
 * MOST_TOLD members one line takes all that is fixed, and nothing is known to be straight. */
typedef enum routes { MEAN, STRAIGHT, FIXED } routes;

static bool are_told_apart(const crossing *c, routes by) {
    return by != MEAN && c->links->n <= MOST_TOLD;
}

static bool is_straight(const crossing *c, int part, const int *from, const int *to) {
    bool straight = true;
    for (int i = 0; i < c->links->torus_parts; i++)
        straight &=
            i == part || place_on(&c->links->torus[i], from) == place_on(&c->links->torus[i], to);
    return straight;
}

/* On n lines from the first one on; where lines are not told apart, on one for all of them. */
static double load_of_lines(crossing *c, int at, routes by, int first, int n, double *farthest) {
    const sm_torus_part *part = &c->links->torus[at];
    bool told = are_told_apart(c, by);
    int places = part->n < MOST_LINKS ? part->n : MOST_LINKS;
    cuts t; /* large, and cleared only as far as it is used */
    memset(t.up, 0, (size_t)(n * places + 1) * sizeof *t.up);
    memset(t.down, 0, (size_t)(n * places + 1) * sizeof *t.down);
    start(c);
    do {
        int from[SM_MAX_LEVELS], to[SM_MAX_LEVELS];
        ends_of(c, from, to);
        if (part_above(c, from, to, 0)) continue;
        if (by == STRAIGHT && (!told || !is_straight(c, at, from, to))) continue;
        int here = place_on(part, from), there = place_on(part, to);
        int line = told ? line_of(c, at, from, to) - first : 0;
        int far = abs(there - here);
        *farthest = fmax(*farthest, part->ring && far > part->n - far ? part->n - far : far);
        if (line >= 0 && line < n) send(&t, line, part, here, there, by == FIXED ? 1 : 0.5);
    } while (next_message(c));
    return fmax(busiest(t.up, n, places), busiest(t.down, n, places));
}

static double torus_load(crossing *c, int at, routes by, double *farthest) {
    int length = c->links->torus[at].n, at_once = length < MOST_LINKS ? MOST_LINKS / length : 1;
    int lines = (int)(c->links->n / length), told = are_told_apart(c, by) ? lines : 1;
    double most = 0;
    *farthest = 0;
    for (int first = 0; first < told; first += at_once) {
        int n = told - first < at_once ? told - first : at_once;
        most = fmax(most, load_of_lines(c, at, by, first, n, farthest));
    }
    return by == MEAN ? most / lines : most;
}

/* ---- switches ---- */

/* Messages out of the child that sends most, or into the one that gets most, of as many as are told
 * apart. */
static double switch_load(crossing *c, const sm_switch_part *part) {
    double sent[MOST_CUTS] = {0}, got[MOST_CUTS] = {0}, most = 0;
    double of[MOST_CUTS] = {0};
    double children = c->links->n / part->members_below, each = ceil(children / MOST_CUTS);
    for (int i = 0; i < MOST_CUTS && c->messages->pair; i++) of[i] = part->members_below * each;
    start(c);
    do {
        int from[SM_MAX_LEVELS], to[SM_MAX_LEVELS];
        ends_of(c, from, to);
        int child = child_of(c, from, part->level) % MOST_CUTS;
        bool above = part_above(c, from, to, part->level + 1);
        of[child] += c->messages->pair ? 0 : 1;
        if (part->scale_up ? !above && from[part->level] != to[part->level]
                           : above || from[part->level] != to[part->level]) {
            sent[child]++;
            got[child_of(c, to, part->level) % MOST_CUTS]++;
        }
    } while (next_message(c));
    for (int i = 0; i < MOST_CUTS; i++)
        if (of[i] > 0) most = fmax(most, fmax(sent[i], got[i]) / of[i]);
    return most * part->members_below;
}

void sm_permute_load_of(const sm_placement *placement, const sm_mesh *mesh, sm_axes axes,
                        const sm_messages *messages, const sm_group_links *links,
                        sm_permute_load *load) {
    crossing c = {.placement = placement, .links = links, .mesh = mesh, .axes = axes};
    c.messages = messages;
    for (int i = 0; i < links->torus_parts; i++) {
        double straight = torus_load(&c, i, STRAIGHT, &load->hops[i]);
        load->torus[i] = fmax(straight, torus_load(&c, i, MEAN, &load->hops[i]));
        load->fixed[i] = torus_load(&c, i, FIXED, &load->hops[i]);
    }
    for (int i = 0; i < links->switch_parts; i++) load->sw[i] = switch_load(&c, &links->sw[i]);
}
