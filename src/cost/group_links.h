/* What a collective sees of a group: torus parts and switch levels with the chips and groups that
 * share their links. */
#pragma once
#include "scalemodel/cost.h"

#include <math.h>

/* A part of a group on one torus dimension. The `stride` interleaved groups share its links, and a
 * message to the next member passes `stride` of them. */
typedef struct sm_torus_part {
    int level, n, stride;
    bool ring;               /* the members close the whole dimension */
    double link_bytes_per_s; /* of one link, one way */
    double rate_bytes_per_s; /* at which a member can receive: 2W/stride on a ring, W/stride on a
                                line */
    double hop_s;
} sm_torus_part;

/* One switch level. A message between members below different children of the level passes the
 * links of both children at this level and, on the way up, those of the scale-out levels beneath.
 * The innermost level of a switched system is the scale-up fabric (NVLink) with ports of its own:
 * messages that leave it do not load it. */
typedef struct sm_switch_part {
    int level, n; /* members: children of this level that hold members; 1 when only levels above are
                     used */
    bool scale_up, in_network;
    double link_bytes_per_s; /* of one child, one way: of a full mesh, of its links to members */
    double peer_bytes_per_s; /* to one other child: all of that through a switch */
    double members_below;    /* of the group, below one child */
    double groups;           /* that share the link of one child: chips below / members below */
    double hop_s;
} sm_switch_part;

typedef struct sm_group_links {
    const sm_system *system;
    double n; /* members */
    int torus_parts;
    sm_torus_part torus[SM_MAX_PARTS]; /* the quickest first */
    double torus_members;
    bool shared_dimension; /* two torus parts on one dimension */
    int switch_parts;
    sm_switch_part sw[SM_MAX_LEVELS];
} sm_group_links;

/* The innermost of the switch parts whose links a message that turns round at part `stage` passes.
 */
int sm_first_passed(const sm_group_links *links, int stage);

void sm_group_links_of(const sm_system *system, const sm_group *group, sm_group_links *links);

/* Whether this level is the fabric inside a node (NVLink), with ports apart from the scale-out
 * ones. */
bool sm_level_scales_up(const sm_system *system, int index);

/* Parts sorted by level and stride, neighbours on one level merged, parts of size 1 dropped. */
void sm_group_normalise(sm_group *group);

/* The next line of a curve from the busy time of each level (seconds per byte of V). Pipelined
 * levels: the busiest decides. serial_s_per_byte > 0: they work one after the other and take that.
 */
sm_algorithm *sm_curve_add(sm_curve *curve, const sm_group_links *links, const char *name,
                           double latency_s, const double *busy, double serial_s_per_byte);
/* The book's closed form: no launch, and never what is chosen. */
void sm_curve_add_book(sm_curve *curve, const sm_group_links *links, double latency_s,
                       const double *busy);

/* How a library runs it over switches: `steps` waits of hops_s together, excess bytes per byte. */
void sm_algorithm_by_library(sm_algorithm *a, const sm_group_links *links, double steps,
                             double hops_s, double excess);
double sm_library_steps(double n); /* of a ring or tree of n members */

void sm_curve_gather(sm_curve *curve, const sm_group_links *links); /* all-gather, reduce-scatter */
void sm_curve_all_reduce(sm_curve *curve, const sm_group_links *links);
void sm_curve_all_to_all(sm_curve *curve, const sm_group_links *links, double ragged);
/* Messages of V bytes that a permute sends over the busiest link of each part of a group (of a
 * torus: cut by cut, on the mean of the links side by side, for which way a message goes is the
 * network's, and no less than those that have one way; fixed: where it takes one part after the
 * other), and how many members of the part its longest one passes. */
typedef struct sm_permute_load {
    double torus[SM_MAX_PARTS], fixed[SM_MAX_PARTS], hops[SM_MAX_PARTS], sw[SM_MAX_LEVELS];
} sm_permute_load;
/* The group is along these axes of the mesh, which are placed so. */
void sm_permute_load_of(const sm_placement *placement, const sm_mesh *mesh, sm_axes axes,
                        const sm_messages *messages, const sm_group_links *links,
                        sm_permute_load *load);
/* load NULL: a shift by one. */
void sm_curve_permute(sm_curve *curve, const sm_group_links *links, const sm_permute_load *load);
/* A reduce is a broadcast run backwards: each message goes the other way, over the other direction
 * of the same links, in the opposite order. by_switches: what to call it when the switches do it.
 */
void sm_curve_broadcast(sm_curve *curve, const sm_group_links *links, const char *by_switches);
