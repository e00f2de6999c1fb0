/* The messages of a permute of blocks, over the links of its group: chip (x, y) that has block (x,
 * y) sends it to the chip that has it afterwards. In a transposition over two axes of n chips all
 * but one in n leave their row, and n/4 of them pass each link in the middle of a line, where a
 * shift by one has one message on a link. */
#include "group_links.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CUTS = 1024, MOST_LINKS = 4096 };

typedef struct crossing {
    const sm_placement *placement;
    const sm_group_links *links;
    const sm_mesh *mesh;
    sm_axes axes; /* of the step */
    sm_permutation blocks;
    int at[SM_MAX_AXES], to[SM_MAX_AXES]; /* a member, and where its block goes */
} crossing;

/* The next member of the group; false after the last. */
static bool next_member(crossing *c) {
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

/* Of the message that a member sends. */
static void ends_of(crossing *c, int *from, int *to) {
    sm_permutation_apply(&c->blocks, c->at, c->to);
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

static int places_of(const sm_torus_part *part) { return (part->n + MOST_CUTS - 1) / MOST_CUTS; }

/* The shortest way; to the opposite member of a ring this share each way. */
static void send(cuts *t, int line, const sm_torus_part *part, int from, int to, double opposite) {
    int ahead = (to - from + part->n) % part->n, each = places_of(part);
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

static int distance(const sm_torus_part *part, int from, int to) {
    int far = abs(to - from);
    return part->ring && far > part->n - far ? part->n - far : far;
}

static int place_on(const sm_torus_part *part, const int *position) {
    return position[part->level] / part->stride % part->n;
}

/* The line of a part on which a message that takes one part after the other passes it. */
static int line_of(const crossing *c, int part, const int *from, const int *to) {
    const sm_group_links *links = c->links;
    int line = 0, slices = (int)(links->n / links->torus_members);
    for (int i = 0; i < links->torus_parts; i++)
        if (i != part)
            line = line * links->torus[i].n + place_on(&links->torus[i], i < part ? to : from);
    int first = links->switch_parts > 0 ? links->sw[0].level : SM_MAX_LEVELS;
    return line * slices + child_of(c, from, first) % slices;
}

/* On the mean of the lines of a part, or by fixed routes on the busiest: of more members than are
 * told apart one line takes all. */
static double torus_load(crossing *c, int at, bool fixed, double *farthest) {
    const sm_torus_part *part = &c->links->torus[at];
    bool told = fixed && c->links->n <= MOST_LINKS;
    double lines = c->links->n / part->n;
    int n = told ? (int)lines : 1, places = part->n < MOST_LINKS ? part->n : MOST_LINKS;
    cuts t; /* large, and cleared only as far as it is used */
    memset(t.up, 0, (size_t)(n * places + 1) * sizeof *t.up);
    memset(t.down, 0, (size_t)(n * places + 1) * sizeof *t.down);
    *farthest = 0;
    memset(c->at, 0, sizeof c->at);
    do {
        int from[SM_MAX_LEVELS], to[SM_MAX_LEVELS];
        ends_of(c, from, to);
        if (part_above(c, from, to, 0)) continue;
        int here = place_on(part, from), there = place_on(part, to);
        send(&t, told ? line_of(c, at, from, to) : 0, part, here, there, fixed ? 1 : 0.5);
        *farthest = fmax(*farthest, distance(part, here, there));
    } while (next_member(c));
    double most = fmax(busiest(t.up, n, places), busiest(t.down, n, places));
    return fixed ? most : most / lines;
}

/* ---- switches ---- */

/* Messages out of the child that sends most, of as many as are told apart. */
static double switch_load(crossing *c, const sm_switch_part *part) {
    double sent[MOST_CUTS] = {0}, most = 0;
    int of[MOST_CUTS] = {0};
    memset(c->at, 0, sizeof c->at);
    do {
        int from[SM_MAX_LEVELS], to[SM_MAX_LEVELS];
        ends_of(c, from, to);
        int child = child_of(c, from, part->level) % MOST_CUTS;
        bool above = part_above(c, from, to, part->level + 1);
        of[child]++;
        if (part->scale_up ? !above && from[part->level] != to[part->level]
                           : above || from[part->level] != to[part->level])
            sent[child]++;
    } while (next_member(c));
    for (int i = 0; i < MOST_CUTS; i++)
        if (of[i] > 0) most = fmax(most, sent[i] / of[i]);
    return most * part->members_below;
}

void sm_permute_load_of(const sm_placement *placement, const sm_mesh *mesh, const sm_step *step,
                        const sm_group_links *links, sm_permute_load *load) {
    crossing c = {.placement = placement, .links = links, .mesh = mesh, .axes = step->axes};
    sm_permutation_of(mesh, step->axes, &step->before, &step->after, &c.blocks);
    for (int i = 0; i < links->torus_parts; i++) {
        load->torus[i] = torus_load(&c, i, false, &load->hops[i]);
        load->fixed[i] = torus_load(&c, i, true, &load->hops[i]);
    }
    for (int i = 0; i < links->switch_parts; i++) load->sw[i] = switch_load(&c, &links->sw[i]);
}
