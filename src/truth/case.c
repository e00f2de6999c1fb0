/* A row made ready and predicted: what its kind needs is looked up once. */
#include <string.h>

#include "scalemodel/load.h"
#include "truth_parts.h"

struct sm_truth_case {
    const sm_truth_row *row;
    row_models *models, *own; /* own: nobody shares them */
    const sm_chip *chip;
    const sm_calibration *shipped;
    sm_calibration usual; /* of serving software that has no constants on this chip, nor those that
                             it is like */
    const char *unknown;
    truth_training *training;
    truth_serving *serving;
    const sm_software_memory *held; /* of a code base of the caller's; NULL: its software's */
    bool bounds, resting;
    char why[160]; /* of a resting case, whose parts are gone */
    bool known;    /* `last` is under the constants `under`: rows that share a case ask again */
    sm_calibration under;
    sm_prediction last;
};

const char *sm_truth_kind_name(sm_truth_kind kind) {
    static const char *const names[SM_TRUTH_KIND_COUNT] = {"gemm",  "attention", "collective",
                                                           "memop", "training",  "inference"};
    return kind < SM_TRUTH_KIND_COUNT ? names[kind] : "?";
}

static sm_status make_ready(sm_truth_case *c, sm_error *err) {
    sm_status status = SM_OK;
    if (c->row->kind == SM_TRUTH_TRAINING)
        status = truth_training_new(c->row, c->models, c->chip, &c->training, &c->unknown, err);
    if (!status && c->training && c->held) truth_training_held(c->training, c->held);
    if (c->row->kind == SM_TRUTH_INFERENCE)
        return truth_serving_new(c->row, c->models, c->chip, &c->serving, &c->unknown, err);
    return status;
}

sm_status sm_truth_case_new(const sm_truth_row *row, sm_truth_case **out, sm_error *err) {
    return truth_case_new(row, NULL, true, out, err);
}

sm_status truth_case_new(const sm_truth_row *row, row_models *models, bool bounds,
                         sm_truth_case **out, sm_error *err) {
    sm_truth_case *c = sm_malloc(sizeof *c);
    *out = c;
    if (!c) return sm_fail_memory(err);
    *c = (sm_truth_case){.row = row, .bounds = bounds, .chip = sm_truth_row_chip(row)};
    c->own = models ? NULL : row_models_new();
    c->models = models ? models : c->own;
    if (!c->chip) c->unknown = "the chip is not in the catalogue";
    if (c->unknown) return SM_OK;
    const char *software = sm_truth_software(row);
    if (row->kind == SM_TRUTH_INFERENCE) {
        c->shipped = sm_software_calibration(c->chip, software);
        if (!c->shipped) c->usual = sm_serve_usual_calibration(c->chip);
        if (!c->shipped) c->shipped = &c->usual;
    } else {
        const sm_calibration *own = sm_calibration_for(c->chip, software);
        c->shipped = own ? own : sm_calibration_of(c->chip);
    }
    sm_status s = c->models ? make_ready(c, err) : sm_fail_memory(err);
    if (s) {
        sm_truth_case_free(c);
        *out = NULL;
    }
    return s;
}

const sm_model *sm_truth_case_model(const sm_truth_case *c) {
    if (c->unknown) return NULL;
    return c->training  ? truth_training_model(c->training)
           : c->serving ? truth_serving_model(c->serving)
                        : NULL;
}

const sm_plan *sm_truth_case_plan(const sm_truth_case *c) {
    return c->unknown || !c->serving ? NULL : truth_serving_plan(c->serving);
}

void sm_truth_case_free(sm_truth_case *c) {
    if (!c) return;
    truth_training_free(c->training);
    truth_serving_free(c->serving);
    row_models_free(c->own);
    sm_free(c);
}

static void predict_kind(sm_truth_case *c, const sm_calibration *k, sm_prediction *out) {
    switch (c->row->kind) {
    case SM_TRUTH_GEMM: sm_predict_gemm(c->row, c->chip, k, out); return;
    case SM_TRUTH_ATTENTION: sm_predict_attention(c->row, c->chip, k, out); return;
    case SM_TRUTH_COLLECTIVE: sm_predict_collective(c->row, c->chip, k, out); return;
    case SM_TRUTH_MEMOP: sm_predict_memop(c->row, c->chip, k, out); return;
    case SM_TRUTH_TRAINING: truth_training_predict(c->training, k, out); return;
    case SM_TRUTH_INFERENCE: truth_serving_predict(c->serving, c->chip, k, c->bounds, out); return;
    default: return;
    }
}

void sm_truth_case_rest(sm_truth_case *c) {
    const char **unknown = c->unknown ? &c->unknown : &c->last.unknown;
    if (c->resting || (!c->training && !c->serving)) return;
    if (*unknown) {
        snprintf(c->why, sizeof c->why, "%s", *unknown);
        *unknown = c->last.unknown = c->why;
    }
    truth_training_free(c->training);
    truth_serving_free(c->serving);
    c->training = NULL;
    c->serving = NULL;
    c->resting = true;
}

static void predict(sm_truth_case *c, const sm_calibration *calibration, sm_prediction *out) {
    memset(out, 0, sizeof *out);
    out->unknown = c->unknown;
    out->regime = truth_regime(c->row->kind);
    if (c->resting && !c->unknown) c->resting = make_ready(c, NULL) != SM_OK;
    if (c->resting && !c->unknown) {
        out->unknown = "out of memory";
        out->out_of_memory = true;
    }
    if (c->unknown || out->unknown) return;
    out->calibration = calibration;
    predict_kind(c, out->calibration, out);
    if (out->unknown) return;
    sm_regime regime = out->regime;
    if (regime == SM_REGIME_step)
        regime =
            sm_calibration_step_regime(calibration, sm_model_has_experts(sm_truth_case_model(c)));
    sm_calibration_interval(calibration, c->chip, regime, out->expected_s, &out->low_s,
                            &out->high_s);
}

void sm_truth_predict(sm_truth_case *c, const sm_calibration *calibration, sm_prediction *out) {
    if (!calibration) calibration = c->shipped;
    /* Byte for byte: what differs in padding alone is predicted once more. */
    const void *under = &c->under, *now = calibration;
    bool same = c->known && calibration && memcmp(under, now, sizeof c->under) == 0;
    if (!same) {
        predict(c, calibration, &c->last);
        if (calibration) memcpy(&c->under, calibration, sizeof c->under);
        c->known = calibration && !c->last.out_of_memory;
    }
    *out = c->last;
    if (out->calibration) out->calibration = calibration; /* equal, but this is the caller's */
}

void sm_truth_case_engine(sm_truth_case *c, const sm_software *engine) {
    if (c->serving) (void)truth_serving_engine(c->serving, engine, NULL); /* read before */
    c->known = false;
}

void sm_truth_case_codebases(sm_truth_case *c, const sm_codebase *list, size_t n) {
    const char *software = sm_truth_software(c->row);
    const sm_codebase *of = sm_codebase_among(list, n, software, strlen(software));
    if (!of || of->memories == 0) return;
    c->held = sm_codebase_memory_in(of, truth_month(&c->row->of.training));
    if (c->training) truth_training_held(c->training, c->held);
    c->known = false;
}

sm_status sm_truth_why(sm_truth_case *c, sm_arena *arena, sm_why **why, sm_error *err) {
    *why = NULL;
    return c->training ? truth_training_why(c->training, &c->under, arena, why, err) : SM_OK;
}
