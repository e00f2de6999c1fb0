/* model_input: --families FILE, --layers FILE and --as FAMILY: what a MODEL is read by. */
#include "options.h"
#include "scalemodel/io.h"

static sm_status check_family(const cli_call *call, const sm_library *library, const char *name,
                              sm_error *err) {
    const char *const *names;
    size_t n;
    if (!name) return SM_OK;
    const sm_source source = sm_source_of("--as", name);
    const sm_span all = {0, source.length};
    sm_status status = sm_library_families(library, call->arena, &names, &n, err);
    if (status) return status;
    const sm_words words = {names, (int)n};
    if (sm_words_find(words, &source, all) >= 0) return SM_OK;
    return sm_words_fail(words, &source, all, "no family is called", err);
}

sm_status cli_library(const cli_call *call, const cli_model_values *given, const sm_library **out,
                      sm_error *err) {
    const cli_list *files = &given->families;
    sm_status status = sm_io_library(files->text, (size_t)files->n, call->arena, out, err);
    return status ? status : check_family(call, *out, given->as, err);
}

sm_status cli_read_model(const cli_call *call, const cli_model_values *given, const char *name,
                         sm_model *model, sm_error *err) {
    sm_source config;
    const sm_library *library;
    sm_status status = sm_io_model_source(name, call->arena, &config, err);
    if (!status) status = cli_library(call, given, &library, err);
    return status ? status : sm_model_parse(library, given->as, &config, call->arena, model, err);
}
