/* YAML 1.1 as settings, by libyaml's events. A key's path is joined by dots; of a sequence of
 * scalars the value is all of them; what is a command line within a value is read as one. Aliases
 * are not followed. */
#include <yaml.h>

#include "scalemodel/io.h"

enum { MOST_DEPTH = 64, MOST_PATH = 512, MOST_LIST = 1000 };

/* A mapping or a sequence that is open. */
typedef struct level {
    bool sequence;
    bool waits;        /* of a mapping: the next scalar is a key */
    size_t path;       /* length of the path of what it stands under */
    const char *items; /* of a sequence: the scalars so far, joined by blanks */
    sm_span at;        /* of its key */
} level;

typedef struct reader {
    sm_settings *out;
    sm_error *err;
    const sm_source *text; /* at byte `begins` of the recipe; stands: where all of it stands */
    size_t begins;
    sm_span stands;
    int depth;
    level level[MOST_DEPTH];
    char path[MOST_PATH];
    sm_span at;           /* of the last key */
    const char *sign;     /* of a variable: "${", OmegaConf's, or that of the shell around it */
    size_t line, line_at; /* a line met before, and the byte it begins at */
} reader;

/* Marks count lines and characters; sources bytes. */
static size_t offset_of(reader *r, yaml_mark_t mark) {
    const sm_source *s = r->text;
    if (mark.line < r->line) r->line = r->line_at = 0;
    size_t at = r->line_at;
    for (; r->line < mark.line && at < s->length; at++) r->line += s->text[at] == '\n';
    r->line_at = at;
    for (size_t column = 0; column < mark.column && at < s->length; column++) {
        uint32_t code;
        size_t n = sm_utf8_decode(s->text + at, s->length - at, &code);
        at += n ? n : 1;
    }
    return at;
}

static sm_span span_of(reader *r, const yaml_event_t *e) {
    size_t from = offset_of(r, e->start_mark), to = offset_of(r, e->end_mark);
    return r->stands.length ? r->stands : (sm_span){r->begins + from, to > from ? to - from : 1};
}

static sm_status add(reader *r, const char *value, sm_span at, bool nothing) {
    const char *key = sm_arena_copy(r->out->arena, r->path, strlen(r->path));
    if (!value) return sm_fail_memory(r->err);
    if (sm_settings_are_words(value)) return sm_settings_add_words(r->out, value, at, r->err);
    const sm_setting setting = {.key = key,
                                .value = value,
                                .unknown = strstr(value, r->sign) ? value : NULL,
                                .at = at,
                                .nothing = nothing};
    return sm_settings_add(r->out, &setting, r->err);
}

/* A value is there: the mapping waits for its next key. */
static void leave(reader *r) {
    level *l = r->depth ? &r->level[r->depth - 1] : NULL;
    if (!l || l->sequence) return;
    l->waits = true;
    r->path[l->path] = '\0';
}

static sm_status open_level(reader *r, const yaml_event_t *e, bool sequence) {
    if (r->depth == MOST_DEPTH)
        return sm_fail_at(r->err, &r->out->source, span_of(r, e), "this is nested too deeply");
    r->level[r->depth++] = (level){.sequence = sequence,
                                   .waits = true,
                                   .path = strlen(r->path),
                                   .items = "",
                                   .at = r->at.length ? r->at : span_of(r, e)};
    return SM_OK;
}

static sm_status close_level(reader *r) {
    const level l = r->level[--r->depth];
    sm_status status = SM_OK;
    r->path[l.path] = '\0';
    if (l.sequence && l.items[0]) status = add(r, l.items, l.at, false);
    leave(r);
    return status;
}

static sm_status read_key(reader *r, const yaml_event_t *e, const char *key) {
    level *l = &r->level[r->depth - 1];
    size_t n = strlen(key);
    r->at = span_of(r, e);
    if (l->path + n + 2 > MOST_PATH)
        return sm_fail_at(r->err, &r->out->source, r->at, "this key has a path that is too long");
    snprintf(r->path + l->path, sizeof r->path - l->path, "%s%s", l->path ? "." : "", key);
    l->waits = false;
    return SM_OK;
}

static sm_status read_scalar(reader *r, const yaml_event_t *e) {
    const char *text =
        sm_arena_copy(r->out->arena, (const char *)e->data.scalar.value, e->data.scalar.length);
    level *l = r->depth ? &r->level[r->depth - 1] : NULL;
    bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (!text) return sm_fail_memory(r->err);
    if (!l) return add(r, text, span_of(r, e), false);
    if (!l->sequence && l->waits) return read_key(r, e, text);
    if (l->sequence) {
        bool quoted = strpbrk(text, " \n") != NULL && strchr(text, '\'') == NULL;
        if (strlen(l->items) < MOST_LIST)
            l->items = sm_arena_printf(r->out->arena, quoted ? "%s%s'%s'" : "%s%s%s", l->items,
                                       l->items[0] ? " " : "", text);
        return l->items ? SM_OK : sm_fail_memory(r->err);
    }
    bool nothing = plain && (!text[0] || strcmp(text, "null") == 0 || strcmp(text, "~") == 0);
    sm_status status = add(r, text, r->at, nothing);
    leave(r);
    return status;
}

static sm_status read_event(reader *r, const yaml_event_t *e) {
    switch (e->type) {
    case YAML_SCALAR_EVENT: return read_scalar(r, e);
    case YAML_ALIAS_EVENT: leave(r); return SM_OK;
    case YAML_MAPPING_START_EVENT: return open_level(r, e, false);
    case YAML_SEQUENCE_START_EVENT: return open_level(r, e, true);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT: return r->depth ? close_level(r) : SM_OK;
    default: return SM_OK;
    }
}

static sm_status fail_parser(reader *r, const yaml_parser_t *parser) {
    if (parser->error == YAML_MEMORY_ERROR) return sm_fail_memory(r->err);
    yaml_mark_t mark = parser->problem_mark;
    size_t at = offset_of(r, mark);
    if (at >= r->text->length && at > 0) at = r->text->length - 1;
    return sm_fail_at(r->err, &r->out->source, (sm_span){r->begins + at, 1}, "this is no YAML: %s",
                      parser->problem ? parser->problem : "it cannot be read");
}

static sm_status read_all(reader *r, yaml_parser_t *parser) {
    sm_status status = SM_OK;
    for (bool ended = false; !ended && !status;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) return fail_parser(r, parser);
        ended = event.type == YAML_STREAM_END_EVENT;
        status = read_event(r, &event);
        yaml_event_delete(&event);
    }
    return status;
}

static sm_status read_yaml(sm_settings *out, const sm_source *text, size_t at, sm_span stands,
                           sm_error *err) {
    yaml_parser_t parser;
    reader *r = sm_arena_alloc(out->arena, sizeof *r);
    if (!r || !yaml_parser_initialize(&parser)) return sm_fail_memory(err);
    *r = (reader){.out = out, .err = err, .text = text, .begins = at, .stands = stands};
    r->sign = text == &out->source ? "${" : "$";
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text->text, text->length);
    sm_status status = read_all(r, &parser);
    yaml_parser_delete(&parser);
    return status;
}

sm_status sm_io_settings(const sm_source *source, sm_arena *arena, sm_settings *out,
                         sm_error *err) {
    return sm_settings_read(source, read_yaml, arena, out, err);
}
