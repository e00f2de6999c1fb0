/* values: read the texts that options hold; the option's name is the source that errors show. */
#include "options.h"
#include "scalemodel/io.h"
#include <string.h>

sm_status cli_quantity(const char *option, const char *text, sm_quantity_kind kind, double *value,
                       sm_error *err) {
    if (!text) return SM_OK;
    sm_source source = sm_source_of(option, text);
    return sm_quantity_parse(&source, (sm_span){0, source.length}, kind, value, err);
}

sm_status cli_whole(const char *option, const char *text, int64_t lowest, int64_t highest,
                    int64_t *value, sm_error *err) {
    if (!text) return SM_OK;
    sm_source source = sm_source_of(option, text);
    return sm_integer_parse(&source, (sm_span){0, source.length}, lowest, highest, value, err);
}

sm_status cli_dtype(const char *option, const char *text, sm_dtype *value, sm_error *err) {
    if (!text || sm_dtype_parse(text, strlen(text), value)) return SM_OK;
    sm_source source = sm_source_of(option, text);
    const char *near = sm_nearest(text, source.length, sm_dtype_names, SM_DTYPE_COUNT);
    return sm_fail_at(
        err, &source, (sm_span){0, source.length}, "'%.40s' is no data type%s%s%s", text,
        near ? "; did you mean " : "; they are bf16, fp16, fp32, fp8, int8, int4, fp4, ...",
        near ? near : "", near ? "?" : "");
}

sm_status cli_need(const cli_call *call, const char *option, const char *text, sm_error *err) {
    if (text) return SM_OK;
    for (const cli_option *o = call->verb->options; o->name; o++)
        if (strcmp(o->name, option) == 0)
            return sm_fail(err, SM_USAGE, "%s needs --%s %s", call->verb->name, option, o->value);
    return sm_fail(err, SM_INTERNAL, "%s has no option --%s", call->verb->name, option);
}

sm_status cli_system_file(const cli_call *call, sm_chip **chips, size_t *n, sm_error *err) {
    *chips = NULL;
    *n = 0;
    if (!call->common.system_file) return SM_OK;
    sm_source source;
    sm_status status = sm_io_read(call->common.system_file, call->arena, &source, err);
    if (status) return status;
    return sm_io_chips_parse(&source, call->arena, chips, n, err);
}

sm_status cli_system(const cli_call *call, const char *on, sm_system *system, sm_error *err) {
    sm_chip *chips;
    size_t n;
    sm_status status = cli_system_file(call, &chips, &n, err);
    if (status) return status;
    if (!on && n == 1) on = chips[0].name;
    status = cli_need(call, "on", on, err);
    if (status) return status;
    sm_source source = sm_source_of("--on", on);
    return sm_system_parse(&source, chips, n, system, err);
}
