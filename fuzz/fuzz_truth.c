/* Fuzz target: any bytes as a file of measured rows. Accepted rows are of one kind, in the order of
 * their lines, with times above 0 or none; warnings name rows; a refusal has a place. */
#include "scalemodel/io.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds) abort();
}

static void check_training(const sm_training_row *t) {
    require(t->chips >= 0 && t->tp >= 0 && t->zero_stage >= -1 && t->model.layers >= 0);
    require(isnan(t->step_time_s) || t->step_time_s > 0);
    require(t->sp >= SM_UNSTATED && t->sp <= SM_YES);
    require(t->title && t->flags && t->recompute && t->notes && t->model.name && t->precision);
}

static void check_rows(const sm_truth *t) {
    for (size_t i = 0; i < t->n; i++) {
        const sm_truth_row *r = &t->row[i];
        require(r->kind == t->kind && r->id && r->id[0] && r->chip && r->source);
        require(i == 0 || r->line > r[-1].line);
        require(isnan(r->measured_s) || r->measured_s >= 0);
        if (r->kind == SM_TRUTH_TRAINING) check_training(&r->of.training);
    }
}

static void check_warnings(const sm_truth *t) {
    for (size_t i = 0; i < t->warnings; i++) {
        require(t->warning[i].text && t->warning[i].text[0] && t->warning[i].id);
        require(t->warning[i].line >= 1);
        require(i == 0 || t->warning[i].line >= t->warning[i - 1].line);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sm_arena *arena = sm_arena_new();
    sm_source source = {"rows", (const char *)data, size};
    sm_truth truth;
    sm_error err = {0};
    if (sm_truth_parse(&source, arena, &truth, &err) == SM_OK) {
        check_rows(&truth);
        check_warnings(&truth);
    } else {
        require(err.status == SM_BAD_INPUT && err.sentence[0] != 0 && truth.n == 0);
        bool packed = strstr(err.sentence, "at byte") != NULL; /* and damaged */
        require(packed || (err.line >= 1 && err.column >= 1 && err.span >= 1));
    }
    sm_arena_free(arena);
    return 0;
}
