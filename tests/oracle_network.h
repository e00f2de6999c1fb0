/* A network of directed links that delivers explicit messages: the slow and obvious oracle of
 * collectives.
 *
 * Chips are numbered by their coordinates on the levels of a system, innermost fastest. A torus
 * level gives each chip a link to either neighbour; a switch level gives each of its children one
 * link up and one link down. Messages between members of a group are sent by every group of the
 * system at once and routed link by link: below one switch of the innermost level, or across a
 * torus: over that level's links, the torus in dimension order by the shorter way; otherwise up
 * through the scale-out links of the sender and down those of the receiver. Rounds take the longest
 * latency of their messages. Within a block of rounds bytes are pipelined: the block takes the load
 * of its busiest link over that link's rate. Blocks follow one another. */
#pragma once
#include "scalemodel/cost.h"

typedef struct oracle_message {
    int from, to; /* ranks in the group */
    int piece;    /* what is sent, for the bookkeeping of the collective */
    double bytes;
    unsigned minus; /* bit l: on a tie between both ways round level l go down */
} oracle_message;

typedef struct oracle_schedule {
    oracle_message *message;
    size_t messages, room;
    size_t *round_end; /* message index after the last of each round */
    bool *block_end;   /* the block closes with this round */
    size_t rounds, round_room;
} oracle_schedule;

void oracle_send(oracle_schedule *s, oracle_message message);
void oracle_round(oracle_schedule *s, bool closes_block); /* empty rounds are dropped */
void oracle_schedule_free(oracle_schedule *s);

typedef struct oracle_network oracle_network;
oracle_network *oracle_network_new(const sm_system *system, const sm_group *group);
void oracle_network_free(oracle_network *net);
int oracle_members(const oracle_network *net);
int oracle_torus_dims(const oracle_network *net);

typedef struct oracle_time {
    double latency_s;              /* sum over rounds */
    double transfer_s;             /* sum over blocks */
    double level_s[SM_MAX_LEVELS]; /* all the load of the busiest link of a level over its rate */
    double busiest_bytes;          /* on one link, of all */
} oracle_time;
oracle_time oracle_deliver(const oracle_network *net, const oracle_schedule *schedule);

/* A tree through the switches of levels first..last that sums what all members send and returns it
 * to all: each link between a child that holds members and its switch carries `bytes` once up and
 * once down. Adds to the time. */
void oracle_sum_in_switches(const oracle_network *net, int first, int last, double bytes,
                            oracle_time *time);

/* Cut bound of an all-gather, seconds per byte of V: over one chip, which must receive V(n-1)/n
 * over its torus links (n: members of its slice), and over the link of each child of a switch,
 * which must let in what its members lack for every group that has members below it (the scale-up
 * fabric only what the node itself holds). */
double oracle_gather_cut(const oracle_network *net);
