/* calibration_input: --calibration FILE and --software NAME: the constants that expected times are
 * predicted with, in place of the chip's usual ones. */
#include "options.h"
#include "scalemodel/io.h"
#include <string.h>

enum { MOST_NAMES = 64 };

/* The software generations that are known for a chip, the usual one first. */
static size_t softwares_of(const sm_chip *chip, const char **names) {
    size_t n = 0;
    names[n++] = "default";
    for (size_t i = 0; i < sm_calibration_count() && n < MOST_NAMES; i++) {
        const char *name = sm_calibration_at(i)->software;
        bool known = !sm_calibration_for(chip, name);
        for (size_t k = 0; k < n && !known; k++) known = strcmp(names[k], name) == 0;
        if (!known) names[n++] = name;
    }
    return n;
}

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
    return fail_software(call, chip, given->software, names, softwares_of(chip, names), err);
}

const sm_calibration *cli_calibration_of_operations(const sm_chip *chip) {
    const sm_calibration *kernels = sm_calibration_for(chip, "kernels");
    return kernels ? kernels : sm_calibration_of(chip);
}

sm_status cli_operation_calibration(const cli_call *call, const sm_chip *chip,
                                    const cli_calibration_values *given, const sm_calibration **out,
                                    sm_error *err) {
    if (given->calibration || given->software) return cli_calibration(call, chip, given, out, err);
    *out = cli_calibration_of_operations(chip);
    return SM_OK;
}

size_t cli_softwares(const sm_chip *chip, const char **names, size_t room) {
    const char *all[MOST_NAMES];
    size_t n = softwares_of(chip, all);
    if (n > room) n = room;
    memcpy(names, all, n * sizeof *names);
    return n;
}
