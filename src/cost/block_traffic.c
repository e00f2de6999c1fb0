/* The messages of a permute of blocks, over the links of its group: chip (x, y) that has block (x,
 * y) sends it to the chip that has it afterwards. In a transposition over two axes of n chips all
 * but one in n leave their row, and n/4 of them pass each link in the middle of a line, where a
 * shift by one has one message on a link. */
#include "group_links.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CUTS = 1024 };

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

/* ---- tori ---- */

/* Messages over each cut, up and down: differences, to be summed. Of more than MOST_CUTS places the
 * cuts at every few. */
typedef struct cuts {
    double up[MOST_CUTS + 1], down[MOST_CUTS + 1];
} cuts;

static void pass(double *cut, int from, int to, bool around, double share) {
    cut[from] += share;
    cut[to] -= share;
    if (around) cut[0] += share;
}

/* The shortest way; half each way to the opposite member of a ring. */
static void send(cuts *t, const sm_torus_part *part, int from, int to) {
    int ahead = (to - from + part->n) % part->n, each = (part->n + MOST_CUTS - 1) / MOST_CUTS;
    double up = !part->ring ? to > from : ahead * 2 < part->n ? 1 : ahead * 2 == part->n ? 0.5 : 0;
    if (from == to) return;
    from /= each;
    to /= each;
    if (up > 0) pass(t->up, from, to, to < from, up);
    if (up < 1) pass(t->down, to, from, from < to, 1 - up);
}

static double busiest(const double *cut) {
    double most = 0, now = 0;
    for (int i = 0; i < MOST_CUTS; i++) most = fmax(most, now += cut[i]);
    return most;
}

static int distance(const sm_torus_part *part, int from, int to) {
    int far = abs(to - from);
    return part->ring && far > part->n - far ? part->n - far : far;
}

static double torus_load(crossing *c, const sm_torus_part *part, double *farthest) {
    cuts t;
    memset(&t, 0, sizeof t);
    *farthest = 0;
    memset(c->at, 0, sizeof c->at);
    do {
        int from[SM_MAX_LEVELS], to[SM_MAX_LEVELS];
        ends_of(c, from, to);
        if (part_above(c, from, to, 0)) continue;
        int here = from[part->level] / part->stride % part->n,
            there = to[part->level] / part->stride % part->n;
        send(&t, part, here, there);
        *farthest = fmax(*farthest, distance(part, here, there));
    } while (next_member(c));
    return fmax(busiest(t.up), busiest(t.down)) / (c->links->n / part->n);
}

/* ---- switches ---- */

/* The child of a level below which a chip lies. */
static int child_of(const crossing *c, const int *position, int level) {
    int child = 0;
    for (int l = SM_MAX_LEVELS - 1; l >= level; l--)
        child = child * (l < c->links->system->levels ? c->links->system->level[l].size : 1) +
                position[l];
    return child;
}

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
    for (int i = 0; i < links->torus_parts; i++)
        load->torus[i] = torus_load(&c, &links->torus[i], &load->hops[i]);
    for (int i = 0; i < links->switch_parts; i++) load->sw[i] = switch_load(&c, &links->sw[i]);
}
