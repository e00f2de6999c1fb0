/* The grid of a sweep: --over KEY=VALUES, a list and ranges. */
#include "sweep.h"
#include "program.h"
#include <ctype.h>

/* ---- values ---- */

static sm_status add_value(sweep_axis *axis, const char *text, size_t length, sm_arena *arena,
                           sm_error *err) {
    axis->value = sm_arena_grow(arena, axis->value, axis->n, &axis->room, sizeof *axis->value);
    const char *value = sm_arena_copy(arena, text, length);
    if (!axis->value || !value) return sm_fail_memory(err);
    axis->value[axis->n++] = value;
    return SM_OK;
}

static sm_status add_range(sweep_axis *axis, const sm_source *source, sm_span part, sm_arena *arena,
                           sm_error *err) {
    sm_range range;
    sm_status status = sm_range_parse(source, part, SM_RANGE_NUMBER, &range, err);
    const int n = status ? 0 : sm_range_points(&range);
    if (n > SWEEP_MOST_VALUES - axis->n)
        return sm_fail_at(err, source, part, "a key has at most %d values", SWEEP_MOST_VALUES);
    for (int i = 0; i < n && !status; i++) {
        char number[64];
        sm_format_exact(number, sizeof number, sm_range_value(&range, i));
        status = add_value(axis, number, strlen(number), arena, err);
    }
    return status;
}

/* Values with commas in them have bars between them: plan='fsdp=8,tensor=8|fsdp=64'. */
static sm_status read_values(sweep_axis *axis, const sm_source *source, size_t from,
                             sm_arena *arena, sm_error *err) {
    const sm_span all = {from, source->length - from};
    const char between = strchr(source->text + from, '|') ? '|' : ',';
    sm_status status = SM_OK;
    for (size_t at = from; at <= source->length && !status;) {
        const sm_span part = sm_next_part(source, all, between, &at);
        const char *text = source->text + part.offset;
        const char *dots = part.length ? strstr(text, "..") : NULL;
        if (part.length == 0) return sm_fail_at(err, source, part, "expected a value");
        bool range = dots && dots < text + part.length && isdigit((unsigned char)*text);
        status = range ? add_range(axis, source, part, arena, err)
                       : add_value(axis, text, part.length, arena, err);
        if (!status && axis->n > SWEEP_MOST_VALUES)
            status =
                sm_fail_at(err, source, part, "a key has at most %d values", SWEEP_MOST_VALUES);
    }
    return status;
}

/* ---- keys ---- */

/* "model" of a verb whose arguments begin with "[MODEL]" or "MODEL". */
static bool is_first_argument(const cli_verb *verb, const char *key) {
    const char *name = verb->about->arguments + (verb->about->arguments[0] == '[');
    for (; *key && toupper((unsigned char)*key) == *name; key++) name++;
    return !*key && !isalpha((unsigned char)*name) && name > verb->about->arguments;
}

/* The keys that plans of the verb have. */
static size_t plan_keys(const cli_verb *verb, const char **names) {
    size_t n = 0;
    for (int i = 0; i < SM_PLAN_KEY_COUNT; i++) {
        const sm_plan_key_row *row = sm_plan_key_row_of((sm_plan_key)i);
        if (row->uses & verb->plans) names[n++] = row->name;
    }
    return n;
}

static sm_status refuse_key(const sweep *s, const sweep_axis *axis, const sm_source *source,
                            sm_span span, sm_error *err) {
    const char *names[SM_PLAN_KEY_COUNT + CLI_MAX_OPTIONS];
    const size_t keys = plan_keys(s->verb, names);
    size_t n = keys, at = 0;
    if (axis->place == SWEEP_OPTION)
        for (const cli_option *o = s->verb->about->options; o->name; o++) names[n++] = o->name;
    const char *near = sm_nearest(axis->name, strlen(axis->name), names, n);
    const int other = sm_plan_key_of_nickname(axis->name, strlen(axis->name));
    if (other >= 0 && s->verb->plans) near = sm_plan_key_row_of((sm_plan_key)other)->name;
    while (at < n && names[at] != near) at++;
    return sm_fail_at(err, source, span,
                      "expected an option of %s, plan.KEY or what-if.RESOURCE%s%s%s%s",
                      s->verb->about->name, near ? "; did you mean " : "", at < keys ? "plan." : "",
                      near ? near : "", near ? "?" : "");
}

static sm_status find_key(const sweep *s, sweep_axis *axis, const sm_source *source, sm_span span,
                          sm_error *err) {
    const char *dot = strchr(axis->key, '.'), *names[SM_PLAN_KEY_COUNT];
    axis->name = dot ? dot + 1 : axis->key;
    axis->place = SWEEP_OPTION;
    if (strncmp(axis->key, "plan.", 5) == 0) axis->place = SWEEP_PLAN;
    if (strncmp(axis->key, "what-if.", 8) == 0) axis->place = SWEEP_MACHINE;
    if (is_first_argument(s->verb, axis->key)) axis->place = SWEEP_ARGUMENT;
    if (axis->place == SWEEP_PLAN) {
        for (size_t n = plan_keys(s->verb, names); n > 0; n--)
            if (strcmp(names[n - 1], axis->name) == 0) return SM_OK;
        return refuse_key(s, axis, source, span, err);
    }
    if (axis->place != SWEEP_OPTION) return SM_OK;
    const cli_option *own = cli_own_option(s->verb, axis->key);
    if (own && own->kind == CLI_FLAG) axis->place = SWEEP_FLAG;
    return own ? SM_OK : refuse_key(s, axis, source, span, err);
}

static sm_status read_axis(sweep *s, const char *text, sm_arena *arena, sm_error *err) {
    const sm_source source = sm_source_of("--over", text);
    const size_t length = strcspn(text, "=");
    sweep_axis *axis = &s->axis[s->axes];
    if (length == 0 || !text[length] || memchr(text, '|', length))
        return sm_fail_at(err, &source, (sm_span){0, source.length},
                          "expected KEY=VALUES, as in batch=1M,2M or plan.tensor=1..8*2");
    axis->key = sm_arena_copy(arena, text, length);
    if (!axis->key) return sm_fail_memory(err);
    for (int i = 0; i < s->axes; i++)
        if (strcmp(s->axis[i].key, axis->key) == 0)
            return sm_fail_at(err, &source, (sm_span){0, length}, "%s is swept twice", axis->key);
    s->axes++;
    sm_status status = find_key(s, axis, &source, (sm_span){0, length}, err);
    if (!status) status = read_values(axis, &source, length + 1, arena, err);
    if (status || s->rows <= INT64_C(1000000000000) / axis->n) {
        s->rows *= axis->n;
        return status;
    }
    return sm_fail_at(err, &source, (sm_span){0, source.length}, "more than 1e12 questions");
}

/* ---- columns, words ---- */

static sm_status read_columns(sweep *s, const char *columns, sm_arena *arena, sm_error *err) {
    if (!columns) columns = s->verb->about->columns;
    if (!columns)
        return sm_fail(err, SM_USAGE, "a sweep of %s needs --columns: keys of its --json",
                       s->verb->about->name);
    const sm_source source = sm_source_of("--columns", columns);
    if (columns != s->verb->about->columns) s->asked = source;
    for (size_t at = 0; at <= source.length;) {
        sm_span part = sm_next_part(&source, (sm_span){0, source.length}, ',', &at);
        if (part.length == 0 || s->columns == SWEEP_MOST_COLUMNS ||
            memchr(source.text + part.offset, '|', part.length))
            return sm_fail_at(err, &source, part, "expected 1 to %d columns", SWEEP_MOST_COLUMNS);
        s->column[s->columns] = sm_arena_copy(arena, source.text + part.offset, part.length);
        if (!s->column[s->columns++]) return sm_fail_memory(err);
    }
    return SM_OK;
}

/* Keys of a plan are swept beside those that --plan keeps. */
static void read_words(sweep *s, int words, const char *const *word) {
    for (int i = 0; i < words; i++) {
        bool plan = strcmp(word[i], "--plan") == 0 && i + 1 < words;
        if (plan) s->plan = word[++i];
        else if (strncmp(word[i], "--plan=", 7) == 0) s->plan = word[i] + 7;
        else s->word[s->words++] = word[i];
    }
}

sm_status sweep_read(sweep *s, const cli_list *over, const char *columns, int words,
                     const char *const *word, sm_arena *arena, sm_error *err) {
    s->verb = cli_find_verb(&cli_scalemodel, word[0], err);
    if (!s->verb) return SM_USAGE;
    if (!s->verb->run || s->verb == &cli_sweep || s->verb == &cli_design)
        return sm_fail(err, SM_USAGE, "%s is no verb that a sweep can ask", s->verb->about->name);
    s->word = sm_arena_array(arena, (size_t)words, sizeof *s->word);
    if (!s->word) return sm_fail_memory(err);
    read_words(s, words - 1, word + 1);
    s->rows = 1;
    sm_status status = read_columns(s, columns, arena, err);
    for (int i = 0; i < over->n && !status; i++) status = read_axis(s, over->text[i], arena, err);
    return status;
}

int64_t sweep_stride(const sweep *s, int axis) {
    int64_t rows = 1;
    for (int i = axis + 1; i < s->axes; i++) rows *= s->axis[i].n;
    return rows;
}

int sweep_cells(const sweep *s) { return s->axes + s->columns + 2; }

const char *sweep_head(const sweep *s, int cell) {
    if (cell < s->axes) return s->axis[cell].key;
    if (cell == s->axes) return "answer";
    cell -= s->axes + 1;
    return cell < s->columns ? s->column[cell] : "why";
}

void sweep_part(const sweep *s, const char *cells, const char **cell) {
    for (int i = 0; i < sweep_cells(s); i++, cells += strlen(cells) + 1) cell[i] = cells;
}
