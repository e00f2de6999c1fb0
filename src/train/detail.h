/* Private to train: the parts of sm_train_detail. */
#pragma once
#include "space.h"

/* Seconds of each stream of a piece that are exposed; forward, backward. */
typedef struct piece_exposed {
    double blocking[2], exchange[2], ring[2];
} piece_exposed;
piece_exposed piece_exposed_of(const sm_train *t, const piece_time *time, const piece_comm *comm,
                               int set, const sm_plan *plan);
/* The part of a chunk's microbatches that a stage works on: all, half under dualpipe, none. */
double stage_share(const sm_plan *plan, int stage, int chunk);
/* How often a piece stands in a chunk. */
double stage_pieces(const sm_train *t, const stages *s, int chunk, int index);
/* The same over all chunks of a stage. */
double stage_holds(const sm_train *t, const sm_plan *plan, const stages *s, int stage, int index);
/* Ops of detail->stage; false when memory is short. */
bool list_ops(const sm_train *t, const sm_plan *plan, const pieces *p, const stages *s,
              sm_arena *arena, sm_plan_detail *detail);

/* The derivation of a price that has been filled; NULL when memory is short. */
sm_why *explain_plan(const sm_train *t, const sm_plan *plan, const pieces *p, stages *s,
                     const sm_price_of_plan *price, sm_arena *arena);
/* One sentence on what to change; empty when nothing helps. False when memory is short. */
bool advise(sm_train *t, const sm_plan *plan, const sm_price_of_plan *price, char *out,
            size_t size);
