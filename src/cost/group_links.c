/* From a group to the links it uses and shares. */
#include "group_links.h"
#include <assert.h>
#include <string.h>

void sm_group_normalise(sm_group *group) {
    assert(group->parts <= SM_MAX_PARTS);
    for (int i = 1; i < group->parts; i++)
        for (int j = i; j > 0; j--) {
            const sm_part a = group->part[j], b = group->part[j - 1];
            if (a.level != b.level ? a.level > b.level : a.stride >= b.stride) break;
            group->part[j] = b;
            group->part[j - 1] = a;
        }
    int kept = 0;
    for (int i = 0; i < group->parts; i++) {
        sm_part part = group->part[i];
        sm_part *last = kept > 0 ? &group->part[kept - 1] : NULL;
        if (part.size <= 1) continue;
        if (last && last->level == part.level && last->size * last->stride == part.stride)
            last->size *= part.size;
        else group->part[kept++] = part;
    }
    group->parts = kept;
}

/* The quickest first, whichever dimension it lies on: equal dimensions can change places and no sum
 * over the parts differs, not even by rounding. */
static bool goes_before(const sm_torus_part *a, const sm_torus_part *b) {
    if (a->rate_bytes_per_s != b->rate_bytes_per_s)
        return a->rate_bytes_per_s > b->rate_bytes_per_s;
    if (a->n != b->n) return a->n < b->n;
    return a->stride < b->stride;
}

static void add_torus_part(sm_group_links *links, const sm_part *part) {
    const sm_level *level = &links->system->level[part->level];
    sm_torus_part t = {.level = part->level,
                       .n = part->size,
                       .stride = part->stride,
                       .ring = level->wrap && part->size * part->stride == level->size,
                       .link_bytes_per_s = level->bytes_per_s_oneway,
                       .hop_s = level->hop_latency_s};
    t.rate_bytes_per_s = (t.ring ? 2.0 : 1.0) * level->bytes_per_s_oneway / part->stride;
    int at = links->torus_parts++;
    for (int i = 0; i < at; i++) links->shared_dimension |= links->torus[i].level == t.level;
    for (; at > 0 && goes_before(&t, &links->torus[at - 1]); at--)
        links->torus[at] = links->torus[at - 1];
    links->torus[at] = t;
    links->torus_members *= part->size;
}

/* Nodes of one chip have no scale-up level: the innermost level is then a scale-out one. */
bool sm_level_scales_up(const sm_system *system, int index) {
    const char *inner = system->chip.tree_levels > 0 ? system->chip.tree[0].name : NULL;
    return index == 0 && system->level[0].kind == SM_LEVEL_SWITCH &&
           (!inner || strcmp(inner, system->level[0].name) == 0);
}

static void add_switch_part(sm_group_links *links, int index, int members, double chips_below,
                            double members_below) {
    const sm_level *level = &links->system->level[index];
    sm_switch_part *s = &links->sw[links->switch_parts++];
    s->level = index;
    s->n = members;
    s->scale_up = sm_level_scales_up(links->system, index);
    s->in_network = level->in_network_reduction;
    s->link_bytes_per_s = level->bytes_per_s_oneway;
    s->peer_bytes_per_s = level->bytes_per_s_oneway / (level->mesh > 1 ? level->mesh - 1.0 : 1.0);
    if (members > 1 && members < level->mesh)
        s->link_bytes_per_s = s->peer_bytes_per_s * (members - 1.0);
    s->members_below = members_below;
    s->groups = chips_below / members_below;
    s->hop_s = level->hop_latency_s;
}

int sm_first_passed(const sm_group_links *links, int stage) {
    return stage > 0 && links->sw[0].scale_up ? 1 : 0;
}

void sm_group_links_of(const sm_system *system, const sm_group *group, sm_group_links *links) {
    sm_group sorted = *group;
    sm_group_normalise(&sorted);
    links->system = system;
    links->torus_members = 1.0;
    links->torus_parts = links->switch_parts = 0;
    links->shared_dimension = false;
    double chips_below = 1.0, members_below = 1.0;
    int p = 0;
    for (int l = 0; l < system->levels; l++) {
        int members = 1;
        for (; p < sorted.parts && sorted.part[p].level == l; p++) {
            members *= sorted.part[p].size;
            if (system->level[l].kind == SM_LEVEL_TORUS) add_torus_part(links, &sorted.part[p]);
        }
        if (system->level[l].kind == SM_LEVEL_SWITCH)
            add_switch_part(links, l, members, chips_below, members_below);
        chips_below *= system->level[l].size;
        members_below *= members;
    }
    assert(p == sorted.parts); /* every part lies on a level of the system */
    links->n = members_below;
    /* Levels above the last member carry nothing; an unused scale-up level carries nothing either.
     */
    while (links->switch_parts > 0 && links->sw[links->switch_parts - 1].n == 1)
        links->switch_parts--;
    if (links->switch_parts > 0 && links->sw[0].scale_up && links->sw[0].n == 1) {
        links->switch_parts--;
        for (int i = 0; i < links->switch_parts; i++) links->sw[i] = links->sw[i + 1];
    }
}

/* At which a child of this level sends: a permute has one receiver, all others have every member.
 */
static double sending_bytes_per_s(const sm_curve *curve, const sm_group_links *links, int level) {
    for (int i = 0; i < links->switch_parts; i++)
        if (links->sw[i].level == level)
            return curve->op == SM_PERMUTE ? links->sw[i].peer_bytes_per_s
                                           : links->sw[i].link_bytes_per_s;
    return links->system->level[level].bytes_per_s_oneway;
}

sm_algorithm *sm_curve_add(sm_curve *curve, const sm_group_links *links, const char *name,
                           double latency_s, const double *busy, double serial_s_per_byte) {
    sm_algorithm *a = &curve->algorithm[curve->n++];
    double most = 0.0;
    a->name = name;
    a->line.latency_s = latency_s + links->system->chip.launch_latency_s.value;
    a->level = 0;
    for (int l = 0; l < SM_MAX_LEVELS; l++) {
        a->level_s_per_byte[l] = busy[l];
        if (busy[l] > most) {
            most = busy[l];
            a->level = (uint8_t)l;
        }
    }
    a->serial = serial_s_per_byte > 0.0;
    a->line.s_per_byte = a->serial ? serial_s_per_byte : most;
    a->link_bytes_per_byte = most * sending_bytes_per_s(curve, links, a->level);
    a->book = a->peer_kernel = false;
    a->hops_s = latency_s;
    a->steps = a->fill_s = a->start = 0.0;
    a->excess = 1.0;
    return a;
}

void sm_algorithm_by_library(sm_algorithm *a, const sm_group_links *links, double steps,
                             double hops_s, double excess) {
    if (links->torus_parts > 0) return;
    a->steps = steps;
    a->hops_s = hops_s;
    a->excess = excess;
    /* Bytes in flight per chip before the slowest of its links is full: part of the fit above. */
    static const double fill_bytes = 6.4e6;
    double slowest = links->system->level[0].bytes_per_s_oneway;
    for (int i = 0; i < links->switch_parts; i++) {
        const sm_switch_part *w = &links->sw[i];
        slowest = fmin(slowest, w->link_bytes_per_s / (w->groups * w->members_below));
    }
    a->fill_s = slowest > 0.0 ? fill_bytes / slowest : 0.0;
}

void sm_curve_add_book(sm_curve *curve, const sm_group_links *links, double latency_s,
                       const double *busy) {
    sm_algorithm *a = sm_curve_add(curve, links, "book", latency_s, busy, 0.0);
    a->line.latency_s = latency_s;
    a->book = true;
}
