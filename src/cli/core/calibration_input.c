/* calibration_input: --calibration FILE and --software NAME: the constants that expected times are
 * predicted with, in place of the chip's usual ones. */
#include "options.h"
#include "scalemodel/io.h"
#include <string.h>

enum { MOST_NAMES = 64 };

static const char *joined(const char *const *names, size_t n, sm_arena *arena) {
    const char *out = "";
    for (size_t i = 0; i < n && out; i++)
        out = sm_arena_printf(arena, "%s%s%s", out, i ? ", " : "", names[i]);
    return out ? out : "";
}

static sm_status fail_software(const cli_call *call, const sm_chip *chip, const char *software,
                               const char *const *names, size_t n, sm_error *err) {
    sm_source source = sm_source_of("--software", software);
    const char *near = sm_nearest(software, source.length, names, n);
    return sm_fail_at(err, &source, (sm_span){0, source.length},
                      "%s has no calibration for '%.60s'%s%s%s", chip->name, software,
                      near ? "; did you mean " : "; it has ",
                      near ? near : joined(names, n, call->arena), near ? "?" : "");
}

static sm_status from_file(const cli_call *call, const sm_chip *chip, const char *path,
                           const char *software, const sm_calibration **out, sm_error *err) {
    sm_source source;
    sm_calibration *list = NULL;
    size_t n = 0;
    sm_status status = sm_io_read(path, call->arena, &source, err);
    if (!status) status = sm_calibration_parse(&source, call->arena, &list, &n, err);
    if (status) return status;
    *out = sm_calibration_among(list, n, chip, software);
    if (*out) return SM_OK;
    return sm_fail(err, SM_BAD_INPUT, "%.200s has no calibration of %s%s%.60s; its first is %s %s",
                   path, chip->name, software ? " for " : "", software ? software : "",
                   list[0].chip, list[0].software);
}

sm_status cli_calibration(const cli_call *call, const sm_chip *chip,
                          const cli_calibration_values *given, const sm_calibration **out,
                          sm_error *err) {
    const char *names[MOST_NAMES];
    if (given->calibration)
        return from_file(call, chip, given->calibration, given->software, out, err);
    *out = sm_calibration_of(chip);
    if (!given->software) return SM_OK;
    *out = sm_calibration_for(chip, given->software);
    if (*out) return SM_OK;
    return fail_software(call, chip, given->software, names,
                         sm_calibration_softwares(chip, names, MOST_NAMES), err);
}

sm_status cli_operation_calibration(const cli_call *call, const sm_chip *chip,
                                    const cli_calibration_values *given, const sm_calibration **out,
                                    sm_error *err) {
    if (given->calibration || given->software) return cli_calibration(call, chip, given, out, err);
    *out = sm_calibration_of_operations(chip);
    return SM_OK;
}
