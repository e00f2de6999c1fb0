/* prediction: the system under a run, and predicted against measured. */
#include "prediction.h"
#include "scalemodel/io.h"

#include <limits.h>
#include <unistd.h>

static const char placeholder[] = "cpu-host";

sm_status prediction_system(const cli_call *call, const prediction_values *given, int ranks,
                            sm_system *system, const sm_calibration **constants, sm_error *err) {
    const char *on = given->on, *chip = placeholder;
    sm_chip *chips;
    size_t n;
    sm_status status = SM_OK;
    if (!on) status = cli_system_file(call, &chips, &n, err);
    if (!status && !on && n > 1)
        return sm_fail(err, SM_USAGE, "--system holds %zu chips: name the one with --on", n);
    if (!status && !on && n == 1) chip = chips[0].name;
    if (!on) on = sm_arena_printf(call->arena, "%s:%d", chip, ranks);
    if (!status && !on) status = sm_fail_memory(err);
    if (!status) status = cli_system(call, on, system, err);
    return status || !constants
               ? status
               : cli_calibration(call, &system->chip, &given->constants, constants, err);
}

sm_status prediction_read(const cli_call *call, const prediction_values *given, const char *mesh,
                          sm_placed_mesh *m, const sm_calibration **calibration, sm_error *err) {
    sm_source source = sm_source_of("--mesh", mesh);
    sm_status status = sm_mesh_parse(&source, &m->mesh, err);
    double ranks = status ? 1 : sm_mesh_size(&m->mesh, (sm_axes)((1u << m->mesh.axes) - 1));
    if (ranks > INT_MAX) ranks = INT_MAX;
    if (!status) status = prediction_system(call, given, (int)ranks, &m->system, NULL, err);
    if (!status) status = sm_placed_mesh_read(&m->system, &source, m, err);
    if (status) return status;
    *calibration = sm_calibration_of_operations(&m->system.chip);
    return cli_calibration(call, &m->system.chip, &given->constants, calibration, err);
}

void prediction_say_placeholder(sm_report *r, const sm_system *system) {
    if (strcmp(system->chip.name, placeholder) == 0)
        sm_report_text(r, "The prediction is that of cpu-host, whose numbers are placeholders: "
                          "'scalemodel measure -o FILE' describes this machine for --system FILE.");
}

void prediction_say_bytes(sm_report *r, const char *each, double apart) {
    bool equal = !(apart > 0);
    sm_put(r, r->data, "bytes_equal", equal);
    if (equal)
        sm_report_text(r, "On every rank and in every %s the bytes were those predicted.", each);
    else sm_report_text(r, "A collective moved OTHER bytes than predicted.");
}

void prediction_put_times(sm_report *r, sm_data *object, double predicted_s, double measured_s) {
    sm_put(r, sm_put_object(r, object, "time_s"), "predicted|measured", predicted_s, measured_s);
}

const char *prediction_ratio(sm_report *r, double predicted, double measured) {
    if (!(measured > 0.0)) return "-";
    return sm_textf(r, "%.2f", predicted / measured);
}

void prediction_verdict(sm_report *r, const sm_placed_mesh *m, double predicted_s,
                        double measured_s) {
    double ratio = predicted_s / measured_s;
    const char *side = ratio < 1.0 ? "less" : "more";
    sm_report_text(r, "Predicted %s, measured %s: %s %s than measured.",
                   sm_show_seconds(r, predicted_s), sm_show_seconds(r, measured_s),
                   sm_show_percent(r, fabs(ratio - 1.0)), side);
    prediction_say_placeholder(r, &m->system);
}

/* ---- before and after a run ---- */

sm_status machine_memory_holds(sm_report *r, const char *what, double bytes_of_rank, int ranks,
                               const char *advice) {
    double pages = (double)sysconf(_SC_PHYS_PAGES), page_bytes = (double)sysconf(_SC_PAGESIZE);
    double here = ranks_are_here() ? ranks : 1, bytes = here * bytes_of_rank;
    if (pages <= 0 || page_bytes <= 0 || bytes <= pages * page_bytes) return SM_OK;
    sm_put(r, r->data, "needed_bytes|memory_bytes", bytes, pages * page_bytes);
    sm_report_text(r, "Not started: %s needs %s of memory on this machine, which has %s. %s", what,
                   sm_show_bytes(r, bytes), sm_show_bytes(r, pages * page_bytes), advice);
    return SM_NEGATIVE;
}

sm_status timing_check(const timing_values *given, sm_truth_kind kind, sm_dtype dtype,
                       sm_error *err) {
    if (given->record && dtype != SM_FP32)
        return sm_fail(err, SM_USAGE, "--record keeps what ran in fp32");
    return record_check(given->record, kind, err);
}

/* ---- rows of what was run ---- */

sm_status record_check(const char *path, sm_truth_kind kind, sm_error *err) {
    if (!path) return SM_OK;
    sm_status status = sm_truth_append_check(path, kind, err);
    return status || !ranks_are_here() ? status : sm_io_write_check(path, err);
}

sm_truth_row record_begin(sm_truth_kind kind, const char *chip, double measured_s) {
    sm_truth_row row;
    sm_truth_row_blank(kind, &row);
    row.chip = chip;
    row.source = SM_TRUTH_RUN;
    row.software = SM_TRUTH_RUN_SOFTWARE;
    row.measured_s = measured_s;
    return row;
}

sm_status record_rows(sm_report *r, const char *path, const sm_truth_row *row, int n,
                      sm_error *err) {
    for (int i = 0; i < n; i++) {
        sm_status status = sm_truth_append(path, &row[i], err);
        if (status) return status;
    }
    sm_report_text(r, "%d %s of %s for 'validate' %s added to %s.", n, n == 1 ? "row" : "rows",
                   sm_truth_kind_name(row->kind), n == 1 ? "was" : "were", path);
    return SM_OK;
}
