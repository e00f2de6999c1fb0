#include "oracle_network.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct oracle_network {
    sm_system system;
    sm_group group;
    int chips, members, groups;
    int below[SM_MAX_LEVELS + 1]; /* chips below one child of a level */
    int *at;                      /* coordinates: chips x SM_MAX_LEVELS */
    int *base;                    /* the chip of rank 0 of each group */
    int *offset;                  /* of rank r from its base */
};

/* ---- schedules ---- */

static void *grown(void *block, size_t *room, size_t used, size_t size) {
    if (used < *room) return block;
    *room = *room ? *room * 2 : 64;
    block = realloc(block, *room * size);
    assert(block);
    return block;
}

void oracle_send(oracle_schedule *s, oracle_message message) {
    s->message = grown(s->message, &s->room, s->messages, sizeof *s->message);
    s->message[s->messages++] = message;
}

void oracle_round(oracle_schedule *s, bool closes_block) {
    size_t begin = s->rounds ? s->round_end[s->rounds - 1] : 0;
    if (s->messages == begin) {
        if (s->rounds && closes_block) s->block_end[s->rounds - 1] = true;
        return;
    }
    size_t room = s->round_room;
    s->round_end = grown(s->round_end, &s->round_room, s->rounds, sizeof *s->round_end);
    s->block_end = grown(s->block_end, &room, s->rounds, sizeof *s->block_end);
    s->round_end[s->rounds] = s->messages;
    s->block_end[s->rounds++] = closes_block;
}

void oracle_schedule_free(oracle_schedule *s) {
    free(s->message);
    free(s->round_end);
    free(s->block_end);
    memset(s, 0, sizeof *s);
}

/* ---- members ---- */

static int coordinate(const oracle_network *net, int chip, int level) {
    return net->at[chip * SM_MAX_LEVELS + level];
}

static bool is_base(const oracle_network *net, int chip) {
    for (int p = 0; p < net->group.parts; p++) {
        const sm_part *part = &net->group.part[p];
        if (coordinate(net, chip, part->level) / part->stride % part->size != 0) return false;
    }
    return true;
}

static int offset_of(const oracle_network *net, int rank) {
    int offset = 0;
    for (int p = 0; p < net->group.parts; p++) {
        const sm_part *part = &net->group.part[p];
        offset += rank % part->size * part->stride * net->below[part->level];
        rank /= part->size;
    }
    return offset;
}

oracle_network *oracle_network_new(const sm_system *system, const sm_group *group) {
    oracle_network *net = calloc(1, sizeof *net);
    assert(net);
    net->system = *system;
    net->group = *group;
    net->below[0] = net->members = 1;
    for (int l = 0; l < system->levels; l++)
        net->below[l + 1] = net->below[l] * system->level[l].size;
    net->chips = net->below[system->levels];
    for (int p = 0; p < group->parts; p++) net->members *= group->part[p].size;
    net->base = malloc((size_t)net->chips * sizeof(int));
    net->offset = malloc((size_t)net->members * sizeof(int));
    net->at = calloc((size_t)net->chips * SM_MAX_LEVELS, sizeof(int));
    assert(net->base && net->offset && net->at);
    for (int c = 0; c < net->chips; c++)
        for (int l = 0; l < system->levels; l++)
            net->at[c * SM_MAX_LEVELS + l] = c / net->below[l] % system->level[l].size;
    for (int c = 0; c < net->chips; c++)
        if (is_base(net, c)) net->base[net->groups++] = c;
    for (int r = 0; r < net->members; r++) net->offset[r] = offset_of(net, r);
    assert(net->groups * net->members == net->chips);
    return net;
}

void oracle_network_free(oracle_network *net) {
    free(net->at);
    free(net->base);
    free(net->offset);
    free(net);
}

int oracle_members(const oracle_network *net) { return net->members; }

int oracle_torus_dims(const oracle_network *net) { return net->system.torus_dims; }

/* ---- links: two directions for each chip (torus: plus, minus) or child (switch: up, down) of each
 * level ---- */

typedef struct loads {
    double *bytes;
} loads;

static size_t link_of(const oracle_network *net, int level, int child, int direction) {
    return ((size_t)level * (size_t)net->chips + (size_t)child) * 2u + (size_t)direction;
}

static double walk_dimension(const oracle_network *net, int level, int *chip, int to,
                             unsigned minus, double bytes, loads *l) {
    const sm_level *dim = &net->system.level[level];
    int at = coordinate(net, *chip, level), hops = abs(to - at), step = to > at ? 1 : -1;
    int plus_way = to >= at ? to - at : to - at + dim->size, minus_way = dim->size - plus_way;
    if (to == at) return 0.0;
    if (dim->wrap && plus_way != minus_way) {
        step = plus_way < minus_way ? 1 : -1;
        hops = plus_way < minus_way ? plus_way : minus_way;
    } else if (dim->wrap) {
        step = minus >> level & 1u ? -1 : 1;
    }
    double *bytes_of_level = &l->bytes[link_of(net, level, 0, step > 0 ? 0 : 1)];
    for (int h = 0; h < hops; h++) {
        bytes_of_level[2 * *chip] += bytes;
        *chip += step * net->below[level];
        at += step;
        if (at < 0 || at == dim->size) { /* over the wrap */
            *chip -= step * net->below[level + 1];
            at -= step * dim->size;
        }
    }
    return hops * dim->hop_latency_s;
}

/* The highest switch level at which two chips part, -1 when none. */
static int turning_level(const oracle_network *net, int a, int b) {
    for (int l = net->system.levels - 1; l >= net->system.torus_dims; l--)
        if (coordinate(net, a, l) != coordinate(net, b, l)) return l;
    return -1;
}

/* Loads the links from a to b and returns the latency. */
static double route(const oracle_network *net, int a, int b, unsigned minus, double bytes,
                    loads *l) {
    int turn = turning_level(net, a, b);
    double latency = 0.0;
    if (turn < 0) {
        for (int d = 0; d < net->system.torus_dims; d++)
            latency += walk_dimension(net, d, &a, coordinate(net, b, d), minus, bytes, l);
        return latency;
    }
    int lowest = turn == 0 ? 0 : net->system.torus_dims > 0 ? net->system.torus_dims : 1;
    for (int s = lowest; s <= turn; s++) {
        l->bytes[link_of(net, s, a / net->below[s], 0)] += bytes;
        l->bytes[link_of(net, s, b / net->below[s], 1)] += bytes;
    }
    return net->system.level[turn].hop_latency_s;
}

static loads no_loads(const oracle_network *net) {
    loads l = {calloc((size_t)net->system.levels * (size_t)net->chips * 2u, sizeof(double))};
    assert(l.bytes);
    return l;
}

static double busiest_of_level(const oracle_network *net, const loads *l, int level) {
    double most = 0.0;
    for (size_t i = link_of(net, level, 0, 0); i < link_of(net, level + 1, 0, 0); i++)
        most = fmax(most, l->bytes[i]);
    return most;
}

static double transfer_s(const oracle_network *net, const loads *l) {
    double slowest = 0.0;
    for (int v = 0; v < net->system.levels; v++)
        slowest =
            fmax(slowest, busiest_of_level(net, l, v) / net->system.level[v].bytes_per_s_oneway);
    return slowest;
}

static bool same_way(const oracle_message *a, const oracle_message *b) {
    return a->from == b->from && a->to == b->to && a->minus == b->minus;
}

/* Pieces that go the same way one after the other are one message. */
static double deliver_round(const oracle_network *net, const oracle_schedule *s, size_t round,
                            loads *block) {
    double longest = 0.0;
    size_t end = s->round_end[round];
    for (size_t i = round ? s->round_end[round - 1] : 0; i < end;) {
        const oracle_message *m = &s->message[i];
        double bytes = 0.0;
        for (; i < end && same_way(m, &s->message[i]); i++) bytes += s->message[i].bytes;
        for (int g = 0; g < net->groups; g++) {
            int from = net->base[g] + net->offset[m->from], to = net->base[g] + net->offset[m->to];
            longest = fmax(longest, route(net, from, to, m->minus, bytes, block));
        }
    }
    return longest;
}

static void move_loads(const oracle_network *net, loads *from, loads *to) {
    for (size_t i = 0; i < (size_t)net->system.levels * (size_t)net->chips * 2u; i++) {
        to->bytes[i] += from->bytes[i];
        from->bytes[i] = 0.0;
    }
}

static void add_levels(const oracle_network *net, const loads *all, oracle_time *time) {
    for (int v = 0; v < net->system.levels; v++) {
        double bytes = busiest_of_level(net, all, v);
        time->level_s[v] = bytes / net->system.level[v].bytes_per_s_oneway;
        time->busiest_bytes = fmax(time->busiest_bytes, bytes);
    }
}

oracle_time oracle_deliver(const oracle_network *net, const oracle_schedule *schedule) {
    oracle_time time = {0};
    loads block = no_loads(net), all = no_loads(net);
    for (size_t r = 0; r < schedule->rounds; r++) {
        time.latency_s += deliver_round(net, schedule, r, &block);
        if (schedule->block_end[r] || r + 1 == schedule->rounds) {
            time.transfer_s += transfer_s(net, &block);
            move_loads(net, &block, &all);
        }
    }
    add_levels(net, &all, &time);
    free(block.bytes);
    free(all.bytes);
    return time;
}

/* ---- trees inside switches ---- */

void oracle_sum_in_switches(const oracle_network *net, int first, int last, double bytes,
                            oracle_time *time) {
    loads l = no_loads(net);
    for (int g = 0; g < net->groups; g++) {
        for (int level = first; level <= last; level++) {
            /* One flow for each set of members that differ only at levels first..last. */
            for (int r = 0; r < net->members; r++) {
                int chip = net->base[g] + net->offset[r], lower = 0;
                for (int q = 0; q < r;
                     q++) { /* an earlier member of this flow below the same child? */
                    int other = net->base[g] + net->offset[q];
                    if (other / net->below[level] == chip / net->below[level] &&
                        other % net->below[first] == chip % net->below[first])
                        lower++;
                }
                if (lower == 0)
                    for (int way = 0; way < 2; way++)
                        l.bytes[link_of(net, level, chip / net->below[level], way)] += bytes;
            }
        }
    }
    time->transfer_s += transfer_s(net, &l);
    for (int v = first; v <= last; v++)
        time->level_s[v] += busiest_of_level(net, &l, v) / net->system.level[v].bytes_per_s_oneway;
    time->latency_s += net->system.level[last].hop_latency_s;
    free(l.bytes);
}

/* ---- cuts ---- */

static bool has_neighbour(const oracle_network *net, int chip, int level, int step) {
    int at = coordinate(net, chip, level), size = net->system.level[level].size;
    return net->system.level[level].wrap || (at + step >= 0 && at + step < size);
}

/* Into one chip over the torus links that lead to other members of its group. */
static double chip_ingress(const oracle_network *net, int chip) {
    double rate = 0.0;
    for (int p = 0; p < net->group.parts; p++) {
        const sm_part *part = &net->group.part[p];
        const sm_level *level = &net->system.level[part->level];
        if (level->kind != SM_LEVEL_TORUS) continue;
        int at = coordinate(net, chip, part->level) % part->size;
        bool all = part->size == level->size;
        for (int step = -1; step <= 1; step += 2) {
            bool inside = all || (at + step >= 0 && at + step < part->size);
            if (inside && has_neighbour(net, chip, part->level, step))
                rate += level->bytes_per_s_oneway;
        }
    }
    return rate;
}

static int positions(const oracle_network *net, int level) {
    int n = 1;
    for (int p = 0; p < net->group.parts; p++)
        if (net->group.part[p].level == level) n *= net->group.part[p].size;
    return n;
}

double oracle_gather_cut(const oracle_network *net) {
    double worst = 0.0, slice = 1.0, n = net->members;
    for (int l = 0; l < net->system.torus_dims; l++) slice *= positions(net, l);
    for (int c = 0; c < net->chips && slice > 1.0; c++)
        worst = fmax(worst, (1.0 - 1.0 / slice) / chip_ingress(net, c));
    double members_below = slice;
    for (int l = net->system.torus_dims; l < net->system.levels; l++) {
        double groups = net->below[l] / members_below,
               rate = net->system.level[l].bytes_per_s_oneway;
        double outside = l == 0 ? 1.0 - 1.0 / positions(net, 0) : 1.0 - members_below / n;
        worst = fmax(worst, groups * outside / rate);
        members_below *= positions(net, l);
    }
    return worst;
}
