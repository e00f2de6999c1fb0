/* train: what the parts of the `train` verb share. */
#pragma once
#include "options.h"

typedef struct cli_train_values {
    cli_list codebases;
    const char *on, *batch, *plan, *dtype, *optimizer, *most, *timeline, *plot, *against, *what_if;
    double tokens, price, margin, within, budget;
    int64_t seq, top, threads;
    double seconds;
    sm_objective objective;
    double failures, checkpoint, restart, interval, stragglers, repair;
    sm_range chips;
    bool as_run, sensitivity, why;
    sm_preference method;
    int64_t prompt, samples, epochs;
    bool no_reference;
    const char *reward, *critic, *rollout;
    cli_calibration_values constants;
    cli_model_values read_by;
    cli_recipe_values recipe;
} cli_train_values;
extern const cli_option cli_train_options[];

/* The question with what it points to (train_input.c). */
typedef struct cli_training {
    sm_train_question question;
    sm_model model, reward, critic;
    sm_system rollout;
    sm_system system, systems[SM_MAX_COMPARED]; /* the first of several; all of them */
    const sm_calibration *calibrations[SM_MAX_COMPARED];
    int chips[SM_MAX_TRAIN_SIZES];
    sm_recipe recipe;
} cli_training;
sm_status cli_training_read(const cli_call *call, cli_training *training, sm_error *err);

/* ---- a search that a person waits for (train_watch.c) ---- */
typedef struct cli_watch {
    double begun_s, shown_s;
    bool terminal, shown, lent;
} cli_watch;
/* Whom the call names listens. Else Ctrl-C stops the search, which keeps the best so far; a second
 * one ends the program. After a second a line on a terminal says how far the search is. */
void cli_watch_begin(cli_watch *watch, const cli_call *call, sm_train_question *question);
void cli_watch_end(cli_watch *watch);
