/* values: the texts of options as typed values, within the bounds that their rows give. */
#include "options.h"
#include "scalemodel/io.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* 2^53: whole numbers are exact up to here. */
#define LARGEST INT64_C(9007199254740992)

static const sm_words dtype_words = {sm_dtype_names, SM_DTYPE_COUNT};

/* ---- numbers ---- */

/* What a number of this kind is called, and in which units it is read. */
static const struct {
    const char *noun;
    sm_quantity_kind quantity;
} numbers[] = {[CLI_NUMBER] = {"a number", SM_Q_COUNT},
               [CLI_SIZE] = {"a size", SM_Q_BYTES},
               [CLI_TIME] = {"a time", SM_Q_SECONDS},
               [CLI_RATE] = {"a rate", SM_Q_PER_S},
               [CLI_USD] = {"an amount in dollars", SM_Q_USD}};

static sm_status fail_bounds(const cli_option *o, const sm_source *source, sm_error *err) {
    sm_span all = {0, source->length};
    const char *what = numbers[o->kind].noun, *low = o->above ? "above" : "of at least";
    if (o->highest > 0.0 && !o->above)
        return sm_fail_at(err, source, all, "expected %s from %.15g to %.15g, found %.40s", what,
                          o->lowest, o->highest, source->text);
    if (o->highest > 0.0)
        return sm_fail_at(err, source, all,
                          "expected %s above %.15g and at most %.15g, found %.40s", what, o->lowest,
                          o->highest, source->text);
    return sm_fail_at(err, source, all, "expected %s %s %.15g, found %.40s", what, low, o->lowest,
                      source->text);
}

/* A number alone may be meant in seconds as well as in milliseconds. */
sm_status cli_time_read(const sm_source *source, sm_span span, double *seconds, sm_error *err) {
    sm_status status = sm_quantity_parse(source, span, SM_Q_SECONDS, seconds, err);
    const char *text = source->text + span.offset;
    char last = span.length ? text[span.length - 1] : 's';
    if (status || *seconds <= 0.0 || !((last >= '0' && last <= '9') || last == '.')) return status;
    int shown = span.length < 40 ? (int)span.length : 40;
    return sm_fail_at(err, source, span, "a time needs its unit, as in %.*sms or %.*ss", shown,
                      text, shown, text);
}

static sm_status read_number(const cli_option *o, const sm_source *source, double *value,
                             sm_error *err) {
    assert(o->kind < sizeof numbers / sizeof *numbers && numbers[o->kind].noun);
    sm_span all = {0, source->length};
    sm_status status = o->kind == CLI_TIME
                           ? cli_time_read(source, all, value, err)
                           : sm_quantity_parse(source, all, numbers[o->kind].quantity, value, err);
    if (status) return status;
    bool low = *value < o->lowest || (o->above && *value <= o->lowest);
    if (low || (o->highest > 0.0 && *value > o->highest)) return fail_bounds(o, source, err);
    return SM_OK;
}

/* ---- ranges ---- */

static sm_status read_range(const cli_option *o, const sm_source *source, sm_range *range,
                            sm_error *err) {
    sm_span all = {0, source->length};
    sm_status status = sm_range_parse(source, all, SM_RANGE_WHOLE, range, err);
    if (status || (o->highest <= 0.0 || range->last <= o->highest)) return status;
    return sm_fail_at(err, source, all, "expected at most %.15g, found %.15g", o->highest,
                      range->last);
}

/* ---- words ---- */

static sm_status find_word(const cli_option *o, sm_words words, const sm_source *source,
                           sm_span span, int *found, sm_error *err) {
    char what[48];
    *found = sm_words_find(words, source, span);
    if (*found >= 0) return SM_OK;
    snprintf(what, sizeof what, "%s cannot be", o->name);
    return sm_words_fail(words, source, span, what, err);
}

/* Types have aliases too. */
static sm_status read_dtype(const cli_option *o, const sm_source *source, sm_span span,
                            sm_dtype *type, sm_error *err) {
    int none;
    if (sm_dtype_parse(source->text + span.offset, span.length, type)) return SM_OK;
    return find_word(o, dtype_words, source, span, &none, err);
}

static sm_status read_dtypes(const cli_option *o, const sm_source *source, sm_dtype_list *list,
                             sm_error *err) {
    list->n = 0;
    for (size_t at = 0; at <= source->length;) {
        sm_span part = sm_next_part(source, (sm_span){0, source->length}, ',', &at);
        if (list->n == SM_MAX_DTYPES)
            return sm_fail_at(err, source, part, "at most %d types are compared", SM_MAX_DTYPES);
        sm_dtype *type = &list->type[list->n];
        sm_status status = read_dtype(o, source, part, type, err);
        if (status) return status;
        for (int i = 0; i < list->n; i++)
            if (list->type[i] == *type)
                return sm_fail_at(err, source, part, "%s is named twice", sm_dtype_name(*type));
        list->n++;
    }
    return SM_OK;
}

static sm_status read_choices(const cli_option *o, const sm_source *source, cli_choices *chosen,
                              sm_error *err) {
    assert(o->words.n <= CLI_MAX_LIST);
    chosen->n = 0;
    for (size_t at = 0; at <= source->length;) {
        int found;
        sm_span part = sm_next_part(source, (sm_span){0, source->length}, ',', &at);
        sm_status status = find_word(o, o->words, source, part, &found, err);
        if (status) return status;
        for (int i = 0; i < chosen->n; i++)
            if (chosen->word[i] == found)
                return sm_fail_at(err, source, part, "%s is named twice", o->words.word[found]);
        chosen->word[chosen->n++] = found;
    }
    return SM_OK;
}

/* ---- names to give ---- */

sm_status cli_name_check(const sm_source *source, sm_span span, sm_error *err) {
    enum { MOST_NAME = 40 };
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const char *text = source->text + span.offset;
    size_t good = strspn(text, letters);
    sm_span odd = {span.offset + good, good < span.length};
    bool begins = span.length > 0 && !strchr("._-", text[0]);
    if (begins && good >= span.length && span.length <= MOST_NAME) return SM_OK;
    if (!begins || good > MOST_NAME) odd = span;
    return sm_fail_at(err, source, odd,
                      "a name has 1 to %d letters, digits, '.', '_' and '-', and begins with a "
                      "letter or digit",
                      MOST_NAME);
}

/* ---- any value ---- */

sm_status cli_value_read(const cli_option *o, const char *name, const char *text, void *place,
                         sm_error *err) {
    int64_t whole = 0;
    sm_source source = sm_source_of(name, text);
    sm_span all = {0, source.length};
    switch (o->kind) {
    case CLI_FLAG: *(bool *)place = true; return SM_OK;
    case CLI_INPUT:
    case CLI_OUTPUT:
        if (!text[0]) return sm_fail(err, SM_USAGE, "--%s needs the name of a file", o->name);
        *(const char **)place = text;
        return SM_OK;
    case CLI_TEXT: *(const char **)place = text; return SM_OK;
    case CLI_SOURCE: *(sm_source *)place = source; return SM_OK;
    case CLI_NAME:
        *(const char **)place = source.text;
        return cli_name_check(&source, (sm_span){0, source.length}, err);
    case CLI_LIST: {
        cli_list *list = place;
        if (list->n == CLI_MAX_LIST)
            return sm_fail(err, SM_USAGE, "--%s is given more than %d times", o->name,
                           CLI_MAX_LIST);
        list->text[list->n++] = text;
        return SM_OK;
    }
    case CLI_WHOLE:
    case CLI_INT:
    case CLI_COUNT: {
        assert(o->highest <= (double)LARGEST && (o->kind != CLI_INT || o->highest > 0.0));
        sm_status status =
            sm_integer_parse(&source, all, (int64_t)o->lowest,
                             o->highest > 0.0 ? (int64_t)o->highest : INT64_MAX, &whole, err);
        if (o->kind == CLI_WHOLE) *(int64_t *)place = whole;
        else if (o->kind == CLI_INT) *(int *)place = (int)whole;
        else *(double *)place = (double)whole;
        return status;
    }
    case CLI_NUMBER:
    case CLI_SIZE:
    case CLI_TIME:
    case CLI_RATE:
    case CLI_USD: return read_number(o, &source, place, err);
    case CLI_CHOICE: return find_word(o, o->words, &source, all, place, err);
    case CLI_CHOICES: return read_choices(o, &source, place, err);
    case CLI_DTYPE: return read_dtype(o, &source, all, place, err);
    case CLI_DTYPES: return read_dtypes(o, &source, place, err);
    case CLI_RANGE: return read_range(o, &source, place, err);
    }
    return sm_fail(err, SM_INTERNAL, "--%s has no kind", o->name);
}

/* ---- options by their values ---- */

static int place_of(const cli_call *call, const void *value) {
    size_t offset = (size_t)((const char *)value - (const char *)call->values);
    for (int i = 0; call->verb->about->options[i].name; i++)
        if (cli_place_of(call->verb->places, &call->verb->about->options[i])->offset == offset)
            return i;
    assert(0 && "a value of no option");
    return 0;
}

bool cli_given(const cli_call *call, const void *value) {
    return call->given[place_of(call, value)] != NULL;
}

sm_source cli_source(const cli_call *call, const void *value) {
    int i = place_of(call, value);
    const cli_option *o = &call->verb->about->options[i];
    const char *text = call->given[i] ? call->given[i] : o->by_default;
    return sm_source_of(call->name[i], text ? text : "");
}

sm_source cli_text(const cli_call *call, const void *value) {
    sm_source source = cli_source(call, value);
    if (!cli_given(call, value)) source.text = NULL;
    return source;
}

sm_status cli_refuse(const cli_call *call, const void *value, sm_error *err, const char *format,
                     ...) {
    sm_source source = cli_source(call, value);
    va_list args;
    va_start(args, format);
    sm_status status = sm_vfail_at(err, &source, (sm_span){0, source.length}, format, args);
    va_end(args);
    return status;
}

sm_status cli_need(const cli_call *call, const void *value, sm_error *err) {
    const cli_option *o = &call->verb->about->options[place_of(call, value)];
    if (cli_given(call, value)) return SM_OK;
    return sm_fail(err, SM_USAGE, "%s needs --%s %s", call->verb->about->name, o->name, o->value);
}

/* ---- systems ---- */

sm_status cli_system_file(const cli_call *call, sm_chip **chips, size_t *n, sm_error *err) {
    *chips = NULL;
    *n = 0;
    if (!call->common.system_file) return SM_OK;
    sm_source source;
    sm_status status = sm_io_read(call->common.system_file, call->arena, &source, err);
    if (status) return status;
    return sm_io_chips_parse(&source, call->arena, chips, n, err);
}

/* The option that was given this text, or what else it may be. */
static const char *name_of(const cli_call *call, const char *text, const char *usual) {
    for (int i = 0; call->verb->about->options[i].name; i++)
        if (call->given[i] && call->given[i] == text) return call->name[i];
    return call->positionals > 1 && text == call->positional[1] ? "SYSTEM" : usual;
}

sm_status cli_system(const cli_call *call, const char *on, sm_system *system, sm_error *err) {
    sm_chip *chips;
    size_t n;
    sm_status status = cli_system_file(call, &chips, &n, err);
    if (status) return status;
    if (!on && n == 1) on = chips[0].name;
    const cli_option *own = on ? NULL : cli_own_option(call->verb, "on");
    if (own) return sm_fail(err, SM_USAGE, "%s needs --on %s", call->verb->about->name, own->value);
    sm_source source = sm_source_of(name_of(call, on, "--on"), on ? on : "");
    status = sm_system_parse(&source, chips, n, system, err);
    if (status || !call->machine) return status;
    const sm_system as_it_is = *system;
    source = sm_source_of("what-if", call->machine);
    return sm_system_what_if(&source, &as_it_is, system, err);
}

/* "h100-sxm:64x8,tpu-v5p:8x8x8": several are compared; "all:8": all chips that come so. */
sm_status cli_systems(const cli_call *call, const char *const *on, const sm_system **systems,
                      int *n, sm_error *err) {
    const sm_source text = *on ? cli_source(call, on) : sm_source_of("--on", "");
    const sm_span whole = {0, text.length};
    const bool several = *on && (strchr(*on, ',') || strncmp(*on, "all", 3) == 0);
    sm_system *list = sm_arena_array(call->arena, several ? SM_MAX_COMPARED : 1, sizeof *list);
    *systems = list;
    *n = !several;
    if (!list) return sm_fail_memory(err);
    if (!several) return cli_system(call, *on, list, err);
    for (size_t at = 0; at <= text.length;) {
        sm_span part = sm_next_part(&text, whole, ',', &at);
        const char *one = sm_arena_copy(call->arena, text.text + part.offset, part.length);
        if (!one) return sm_fail_memory(err);
        if (part.length == 0)
            return sm_fail_at(err, &text, part, "expected a system before and behind a comma");
        const bool all = strncmp(one, "all", 3) == 0 && (!one[3] || one[3] == ':');
        const int before = *n;
        for (size_t i = 0; i < (all ? sm_chip_count() : 1); i++) {
            sm_error none = {.status = SM_OK};
            const char *shape = all ? one + 3 : "", *chip = all ? sm_chip_at(i)->name : one;
            const char *name = sm_arena_printf(call->arena, "%s%s", chip, shape);
            if (!name) return sm_fail_memory(err);
            if (*n == SM_MAX_COMPARED)
                return sm_fail_at(err, &text, part, "at most %d systems are compared", *n);
            sm_status status = cli_system(call, name, &list[*n], all ? &none : err);
            if (status && all && status != SM_BAD_INPUT) *err = none;
            if (status && (!all || status != SM_BAD_INPUT)) return status;
            *n += !status && (!all || sm_chip_peak(&list[*n].chip, SM_BF16, NULL) > 0);
        }
        if (*n == before)
            return sm_fail_at(err, &text, part, "no chip of the catalogue comes in this shape");
    }
    return SM_OK;
}

sm_status cli_collective_read(const char *text, sm_collective *op, sm_error *err) {
    size_t length = strlen(text);
    if (sm_collective_parse(text, length, op)) return SM_OK;
    sm_source source = sm_source_of("OP", text);
    sm_words words = {sm_collective_names, SM_COLLECTIVE_COUNT};
    return sm_words_fail(words, &source, (sm_span){0, length}, "there is no collective", err);
}

/* --calibration FILE and --software NAME: the constants that expected times are
 * predicted with, in place of the chip's usual ones. */

enum { MOST_NAMES = 64 };

static const char *joined(const char *const *names, size_t n, sm_arena *arena) {
    const char *out = "";
    for (size_t i = 0; i < n && out; i++)
        out = sm_arena_printf(arena, "%s%s%s", out, i ? ", " : "", names[i]);
    return out ? out : "";
}

sm_status cli_fail_software(const cli_call *call, const sm_chip *chip, const char *option,
                            const char *software, sm_error *err) {
    const char *names[2 * MOST_NAMES];
    const size_t n = sm_calibration_softwares(chip, names, MOST_NAMES);
    size_t known = n; /* those of code bases that were measured on no such chip, too */
    for (size_t i = 0; i < sm_codebase_count() && i < MOST_NAMES; i++)
        if (sm_codebase_at(i)->memories > 0) names[known++] = sm_codebase_at(i)->name;
    sm_source source = sm_source_of(option, software);
    const char *near = sm_nearest(software, source.length, names, known);
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
    if (given->calibration)
        return from_file(call, chip, given->calibration, given->software, out, err);
    if (!given->software) return SM_OK;
    *out = sm_software_calibration(chip, given->software);
    sm_status status =
        *out ? SM_OK : sm_codebase_calibration(chip, given->software, call->arena, out, err);
    if (status || *out) return status;
    return cli_fail_software(call, chip, "--software", given->software, err);
}

sm_status cli_serving_constants(const cli_call *call, const sm_chip *chip,
                                const cli_calibration_values *given, const sm_calibration **out,
                                sm_error *err) {
    const char *name = given->calibration ? NULL : given->software;
    if (!name || (sm_software_of(name) == sm_software_of(NULL) && strcmp(name, "serving") != 0))
        return cli_calibration(call, chip, given, out, err);
    *out = sm_software_calibration(chip, name);
    return SM_OK;
}

/* --codebases FILE. */

sm_status cli_codebases(const cli_call *call, const cli_list *files, const sm_codebase **out,
                        size_t *n, sm_error *err) {
    sm_codebase *list = sm_arena_array(call->arena, (size_t)files->n + 1, sizeof *list);
    sm_status status = list ? SM_OK : sm_fail_memory(err);
    for (int i = 0; i < files->n && !status; i++) {
        sm_source source;
        status = sm_io_read(files->text[i], call->arena, &source, err);
        if (!status) status = sm_codebase_parse(&source, call->arena, &list[i], err);
    }
    *out = list;
    *n = (size_t)files->n;
    return status;
}

/* --families FILE, --layers FILE and --as FAMILY: what a MODEL is read by. */

const sm_source *cli_columns(const cli_call *call, const cli_list *given) {
    sm_source *list = sm_arena_array(call->arena, (size_t)given->n + 1, sizeof *list);
    for (int i = 0; list && i < given->n; i++) list[i] = sm_source_of("--set", given->text[i]);
    return list;
}

sm_status cli_library(const cli_call *call, const cli_model_values *given, const sm_library **out,
                      sm_error *err) {
    const cli_list *files = &given->families;
    sm_status status = sm_io_library(files->text, (size_t)files->n, call->arena, out, err);
    if (status || !given->as) return status;
    const char *const *names;
    size_t n;
    const sm_source source = sm_source_of("--as", given->as);
    const sm_span all = {0, source.length};
    status = sm_library_families(*out, call->arena, &names, &n, err);
    if (status) return status;
    const sm_words words = {names, (int)n};
    if (sm_words_find(words, &source, all) >= 0) return SM_OK;
    return sm_words_fail(words, &source, all, "no family is called", err);
}

/* --picture-size 1280x720. */
static sm_status read_pixels(const cli_call *call, const cli_model_values *given,
                             const sm_model *model, sm_padding *to, sm_error *err) {
    enum { MOST = 1 << 14 };
    double grain = 0;
    int end = 0;
    const char *asked = given->picture_size;
    if (!asked) return SM_OK;
    if (strspn(asked, "0123456789x") < strlen(asked) ||
        sscanf(asked, "%5dx%5d%n", &to->picture_width, &to->picture_height, &end) != 2 ||
        asked[end] || to->picture_width < 1 || to->picture_height < 1 || to->picture_width > MOST ||
        to->picture_height > MOST)
        return cli_refuse(call, &given->picture_size, err,
                          "expected pixels across and down, at most %d each: 1280x720", MOST);
    sm_architecture_number(model->architecture, "picture_grain", &grain);
    if (grain > 0) return SM_OK;
    return cli_refuse(call, &given->picture_size, err,
                      "%s is read with pictures of one size alone, that of its config",
                      model->name);
}

/* With the tower that reads its pictures, or its encoder, for so many of them. */
static sm_status read_source(const cli_call *call, const cli_model_values *given,
                             const sm_library *library, const sm_source *config, sm_model *model,
                             sm_error *err) {
    const bool sees = given->pictures > 0;
    const int64_t *asked = sees ? &given->pictures : &given->source;
    const char *seeing = sm_architecture_word(model->architecture, "seeing");
    double source = 0, rows = 0, seen = 0;
    sm_architecture_number(model->architecture, "seen_rows", &rows);
    sm_architecture_number(model->architecture, "seen", &seen);
    if (sees && given->source > 0)
        return cli_refuse(call, &given->source, err,
                          "a model that sees pictures reads no text before it writes");
    if (sees && !seeing && seen == 0)
        return cli_refuse(call, asked, err, "%s sees no pictures", model->name);
    if (!sees && (!sm_architecture_number(model->architecture, "source", &source) ||
                  !(source > 0) || rows > 0))
        return cli_refuse(call, asked, err, "%s has no encoder that reads a text", model->name);
    if (sees && seen == 0) {
        sm_status status = sm_model_parse(library, seeing, config, call->arena, model, err);
        if (status) return status;
    }
    sm_model *unpadded = sm_arena_alloc(call->arena, sizeof *unpadded);
    if (!unpadded) return sm_fail_memory(err);
    *unpadded = *model;
    sm_padding padding = {.source = (int)*asked};
    sm_status status = read_pixels(call, given, model, &padding, err);
    return status ? status : sm_model_pad(unpadded, &padding, call->arena, model, err);
}

static sm_status read_model(const cli_call *call, const cli_model_values *given, const char *name,
                            sm_model *model, sm_error *err) {
    sm_source config;
    const sm_library *library;
    sm_status status = sm_io_model_source(name, call->arena, &config, err);
    if (status == SM_BAD_INPUT && strcmp(err->source, "model") == 0)
        snprintf(err->source, sizeof err->source, "%s", name_of(call, name, "model"));
    if (!status) status = cli_library(call, given, &library, err);
    if (!status) status = sm_model_parse(library, given->as, &config, call->arena, model, err);
    if (!status && given->picture_size && !given->pictures)
        return cli_refuse(call, &given->picture_size, err, "a size of pictures needs --pictures");
    if (status || (!given->pictures && !given->source)) return status;
    return read_source(call, given, library, &config, model, err);
}

/* With the memo's lock. What cannot be read is not kept, and only so much is tried. */
static sm_status read_kept(const cli_call *call, const cli_model_values *given, const char *name,
                           sm_model *model, sm_error *err) {
    cli_memo *memo = call->memo;
    const cli_list *files = &given->families;
    char *key = sm_arena_printf(call->arena, "%s\n%s\n%" PRId64 "\n%s\n%" PRId64, name,
                                given->as ? given->as : "", given->pictures,
                                given->picture_size ? given->picture_size : "", given->source);
    for (int i = 0; i < files->n && key; i++)
        key = sm_arena_printf(call->arena, "%s\n%s", key, files->text[i]);
    if (!key) return sm_fail_memory(err);
    for (int i = 0; i < memo->models; i++)
        if (strcmp(memo->model[i].key, key) == 0) {
            *model = memo->model[i].model;
            return SM_OK;
        }
    if (memo->readings == CLI_MOST_KEPT) return read_model(call, given, name, model, err);
    memo->readings++;
    const cli_call lasting = {.verb = call->verb, .arena = memo->arena};
    sm_status status = read_model(&lasting, given, name, model, err);
    if (status) return status;
    key = sm_arena_copy(memo->arena, key, strlen(key));
    if (!key) return sm_fail_memory(err);
    memo->model[memo->models].key = key;
    memo->model[memo->models++].model = *model;
    return SM_OK;
}

sm_status cli_read_model(const cli_call *call, const cli_model_values *given, const char *name,
                         sm_model *model, sm_error *err) {
    if (!call->memo) return read_model(call, given, name, model, err);
    pthread_mutex_lock(&call->memo->lock);
    sm_status status = read_kept(call, given, name, model, err);
    pthread_mutex_unlock(&call->memo->lock);
    return status;
}

/* "mine.json", "mine.json,look_steps=30" */
static sm_status engine_file(const cli_call *call, sm_source *settings, sm_software *out,
                             const char **software, sm_error *err) {
    static const char ending[] = ".json";
    enum { LENGTH = sizeof ending - 1 };
    size_t next = 0;
    const sm_span file = sm_next_part(settings, (sm_span){0, settings->length}, ',', &next);
    const char *end = settings->text + file.offset + file.length;
    if (file.length <= LENGTH || memcmp(end - LENGTH, ending, LENGTH) != 0) return SM_OK;
    sm_source source;
    const char *path = sm_arena_copy(call->arena, settings->text + file.offset, file.length);
    if (!path) return sm_fail_memory(err);
    sm_status status = sm_io_read(path, call->arena, &source, err);
    if (!status) status = sm_software_parse(&source, call->arena, out, err);
    if (!status && !*software) *software = out->like;
    next = next < settings->length ? next : settings->length;
    settings->text += next;
    settings->length -= next;
    return status;
}

sm_status cli_engine(const cli_call *call, cli_engine_values *given, const char **software,
                     const sm_software **out, sm_error *err) {
    if (!given->differs && !given->recipe) return SM_OK;
    sm_source source = given->differs ? cli_source(call, &given->differs)
                                      : sm_source_of("the recipe's engine", given->recipe);
    given->own = *sm_software_of(*software);
    *out = &given->own;
    sm_status status = SM_OK;
    if (given->differs) status = engine_file(call, &source, &given->own, software, err);
    return status || source.length == 0 ? status : sm_software_set(&given->own, &source, err);
}

/* "4:0.8", "best:0.8" */
sm_status cli_speculation(const cli_call *call, cli_speculation_values *given,
                          const cli_model_values *read_by, sm_speculation *out, sm_error *err) {
    enum { MOST_DEPTH = 15 };
    if (!given->speculate && given->drafter)
        return sm_fail(err, SM_USAGE, "--draft needs --speculate, as in --speculate 4:0.8");
    if (!given->speculate) return SM_OK;
    sm_source source = cli_source(call, &given->speculate);
    const char *colon = strchr(given->speculate, ':');
    if (!colon)
        return cli_refuse(call, &given->speculate, err,
                          "expected a depth and an acceptance, as in 4:0.8 or best:0.8");
    sm_span depth = {0, (size_t)(colon - given->speculate)};
    sm_span share = {depth.length + 1, source.length - depth.length - 1};
    bool best = depth.length == 4 && memcmp(given->speculate, "best", 4) == 0;
    int64_t k = -1;
    sm_status status = best ? SM_OK : sm_integer_parse(&source, depth, 1, MOST_DEPTH, &k, err);
    out->depth = (int)k;
    if (!status) status = sm_quantity_parse(&source, share, SM_Q_COUNT, &out->acceptance, err);
    if (!status && out->acceptance > 1.0)
        return sm_fail_at(err, &source, share, "expected a number from 0 to 1");
    if (status || !given->drafter) return status;
    out->draft = &given->draft;
    const cli_model_values families = {.families = read_by->families};
    return cli_read_model(call, &families, given->drafter, &given->draft, err);
}
