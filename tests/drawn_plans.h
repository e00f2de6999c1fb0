/* drawn_plans: small models of every family that tests/reference holds, and plans of training and
 * of serving drawn for them over every key that runs: the words of a command line, which are read,
 * checked and laid out as `run train` and `run generate` do. */
#pragma once
#include "run_train.h"
#include "train_plans.h"

enum { DRAWN_MODELS = 128, DRAWN_WORDS = 512, DRAWN_RANKS = 8 };

typedef struct drawn_model {
    const char *name;
    sm_model model;
    int tokens; /* of a sequence that it is trained on; all degrees divide it where it is free */
} drawn_model;
/* All of them, in the order of their names, deep enough for a pipeline where a config has its
 * layers by number. Returns how many. */
int drawn_models(drawn_model *to, int room);

/* What it is trained on, one rank, at a rate at which a step of the wildest is no leap. */
sm_train_setup drawn_setup(const drawn_model *m);
/* The same under a plan in words, as `run train` lays it out: *plan and *setup, and what they hold
 * lives in the arena. SM_BAD_INPUT when it is refused. */
static inline sm_status drawn_setup_of(const drawn_model *m, const char *words, sm_arena *arena,
                                       sm_plan *plan, sm_train_setup *setup, sm_error *err) {
    const sm_source source = sm_source_of("--plan", words);
    err->status = SM_OK;
    *setup = drawn_setup(m);
    sm_status status = sm_plan_parse(&source, plan, err);
    if (!status && sm_plan_chips(plan) % 3 == 0) setup->sequences = 12;
    return status ? status : train_setup_of_plan(plan, arena, setup, err);
}
/* One rank that does what the setup does: its batch, types, optimizer and adapters. */
sm_train_setup drawn_reference(const drawn_model *m, const sm_train_setup *setup);

/* The same in single precision; false: it is. */
bool drawn_exact(const sm_train_setup *setup, sm_train_setup *exact);

/* A plan of training on at most DRAWN_RANKS ranks; often refused, seldom absurd. */
void draw_training(const sm_model *model, sm_rng *rng, char words[DRAWN_WORDS]);
/* A plan of serving. */
void draw_serving(const sm_model *model, sm_rng *rng, char words[DRAWN_WORDS]);
