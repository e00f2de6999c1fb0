/* The time of a training row that prints FLOP/s or a share of the peak and no seconds, by what its
 * source counts (codebase.h). */
#include <math.h>

#include "truth_parts.h"

/* FLOP/s of a chip as the source counts them; NAN: not printed. Of a count that has the forward
 * pass of layers twice sources print hardware FLOP/s. */
static double printed_flops_per_s(const sm_truth_row *row, const sm_flops_count *count) {
    const sm_training_row *t = &row->of.training;
    bool twice = count->again != SM_COUNTED_NOTHING;
    double printed = 1e12 * (twice ? t->hw_tflops_per_chip : t->model_tflops_per_chip);
    const sm_chip *chip = sm_truth_row_chip(row);
    if (printed > 0 || !chip) return printed;
    return (twice ? t->hfu : t->mfu) * sm_flops_peak(count, chip, truth_dtype(t));
}

static sm_status count_time(sm_truth_row *row, const sm_model *model, sm_error *err) {
    const sm_training_row *t = &row->of.training;
    sm_source text = sm_source_of("flops_counted", t->flops_counted);
    const sm_codebase *of;
    sm_flops_count count;
    if (sm_flops_count_parse(&text, (sm_span){0, text.length}, NULL, 0, &count, &of, NULL) ||
        !(t->seq_len > 0))
        return SM_OK;
    double flops = sm_flops_counted(&count, model, t->seq_len);
    if (isnan(flops)) return sm_fail_memory(err);
    double seconds = flops * t->seq_len * t->global_batch_sequences /
                     (printed_flops_per_s(row, &count) * t->chips);
    if (seconds > 0 && isfinite(seconds)) row->measured_s = seconds;
    return SM_OK;
}

sm_status sm_truth_counted_times(sm_truth_row *row, size_t n, sm_error *err) {
    row_models *models = NULL;
    sm_status status = SM_OK;
    for (size_t i = 0; !status && i < n; i++) {
        const sm_model *model;
        const char *why;
        const sm_training_row *t = &row[i].of.training;
        if (row[i].kind != SM_TRUTH_TRAINING || !isnan(row[i].measured_s) || !t->flops_counted ||
            !t->flops_counted[0] || !(t->chips > 0))
            continue;
        if (!models && !(models = row_models_new())) status = sm_fail_memory(err);
        else if (truth_model(t, models, &model, &why)) {
            status = count_time(&row[i], model, err);
            row_models_drop(models, model);
        } else if (!why) status = sm_fail_memory(err);
    }
    row_models_free(models);
    return status;
}
