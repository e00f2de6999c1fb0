/* sm_io_model_parse and sm_io_model_load: a Hugging Face config.json, or the name of a catalogue
 * model, to an architecture. */
#include "scalemodel/io.h"
#include "hf_field.h"
#include "json_load.h"
#include "json_place.h"
#include <stdio.h>
#include <string.h>

/* The config of the language model: the document itself, or text_config of a multimodal wrapper. */
static void choose_object(hf_config *c, json_t *root) {
    json_t *text = json_object_get(root, "text_config");
    bool wrapped = json_is_object(text) && json_object_size(text) > 0;
    c->object = wrapped ? text : root;
    snprintf(c->prefix, sizeof c->prefix, "%s", wrapped ? "text_config." : "");
}

static const char *text_of(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

static const hf_family *family_by_architecture(const json_t *object) {
    const char *name =
        json_string_value(json_array_get(json_object_get(object, "architectures"), 0));
    return name ? hf_family_of_architecture(name) : NULL;
}

static sm_status fail_unknown_type(const hf_config *c, const char *type) {
    const char *names[64];
    char shown[64];
    size_t n = hf_family_names(names, 64);
    const char *near = sm_nearest(type, strlen(type), names, n);
    hf_shown(type, shown, sizeof shown);
    if (near)
        return hf_fail(c, "model_type", false,
                       "model_type \"%s\" is not understood; the nearest known one is \"%s\"",
                       shown, near);
    return hf_fail(c, "model_type", false,
                   "model_type \"%s\" is not understood; known are those such as \"llama\", "
                   "\"qwen3_moe\" or \"gpt2\"",
                   shown);
}

/* model_type decides; the architecture is asked when there is none. Remote code may name its own
 * type over a known architecture (kimi_k2 over DeepseekV3ForCausalLM). */
static sm_status choose_family(hf_config *c, const json_t *root) {
    const char *type = text_of(c->object, "model_type");
    type = type ? type : text_of(root, "model_type");
    c->family = type ? hf_family_of_type(type) : NULL;
    if (!c->family) c->family = family_by_architecture(c->object);
    if (!c->family && c->object == root) c->family = family_by_architecture(root);
    if (c->family) return SM_OK;
    if (json_object_get(c->object, "model_type") && !type)
        return hf_fail(c, "model_type", false, "model_type must be a text");
    if (!type)
        return hf_fail(c, "model_type", false,
                       "this is not a Hugging Face model config: model_type is missing");
    return fail_unknown_type(c, type);
}

/* A wrapper says for its text model what that leaves open. */
static sm_status inherit_from_wrapper(hf_config *c, json_t *root) {
    static const char *const keys[] = {"tie_word_embeddings", "quantization_config"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *outer = json_object_get(root, keys[i]);
        if (c->object == root || !outer || json_object_get(c->object, keys[i])) continue;
        if (json_object_set(c->object, keys[i], outer) != 0) return sm_fail_memory(c->err);
    }
    return SM_OK;
}

/* "models/llama-3.1-8b/config.json" is llama-3.1-8b, "x/tiny.json" is tiny. */
static void name_after_source(const sm_source *source, sm_model *model) {
    const char *name = source->name ? source->name : "", *end = name + strlen(name);
    if (end - name > 12 && strcmp(end - 12, "/config.json") == 0) end -= 12;
    else if (end - name > 5 && strcmp(end - 5, ".json") == 0) end -= 5;
    const char *start = end;
    while (start > name && start[-1] != '/') start--;
    snprintf(model->name, sizeof model->name, "%.*s", (int)(end - start > 90 ? 90 : end - start),
             start);
}

static sm_status read_config(hf_config *c, json_t *root, sm_model *model) {
    if (!json_is_object(root))
        return sm_json_fail(c->err, c->source, "", false, "a model config is a JSON object");
    choose_object(c, root);
    sm_status status = choose_family(c, root);
    if (status != SM_OK) return status;
    status = inherit_from_wrapper(c, root);
    if (status == SM_OK) status = hf_read_fields(c);
    if (status != SM_OK) return status;
    name_after_source(c->source, model);
    snprintf(model->family, sizeof model->family, "%s", c->family->name);
    return hf_build(c, model);
}

sm_status sm_io_model_parse(const sm_source *source, sm_model *model, sm_error *err) {
    hf_config c = {.source = source, .err = err};
    json_t *root;
    memset(model, 0, sizeof *model);
    model->note = "";
    sm_status status = sm_json_load(source, err, &root);
    if (status != SM_OK) return status;
    status = read_config(&c, root, model);
    json_decref(root);
    return status;
}

static bool is_path(const char *text) {
    size_t n = strlen(text);
    return strchr(text, '/') || (n > 5 && strcmp(text + n - 5, ".json") == 0);
}

static const char *nearest_model(const char *name) {
    const char *names[256];
    size_t n = 0;
    for (; n < sm_catalogue_count() && n < 256; n++) names[n] = sm_catalogue_at(n)->name;
    return sm_nearest(name, strlen(name), names, n);
}

/* A pasted Hugging Face id looks like a path: nothing is fetched, but the catalogue may have the
 * model. */
static void suggest_model(const char *path, sm_error *err) {
    const char *slash = strrchr(path, '/');
    const char *near = slash ? nearest_model(slash + 1) : NULL;
    size_t n = err ? strlen(err->sentence) : 0;
    if (!near || !err) return;
    snprintf(err->sentence + n, sizeof err->sentence - n, "; the catalogue has %s", near);
}

static sm_status fail_unknown_name(const char *name, sm_error *err) {
    sm_source source = sm_source_of("model", name);
    sm_span all = {0, source.length};
    const char *near = nearest_model(name);
    if (near)
        return sm_fail_at(err, &source, all,
                          "there is no model of this name in the catalogue; the nearest is %s",
                          near);
    return sm_fail_at(err, &source, all,
                      "there is no model of this name in the catalogue; a path of a config.json "
                      "contains '/' or ends in .json");
}

sm_status sm_io_model_load(const char *name_or_path, sm_arena *arena, sm_model *model,
                           sm_error *err) {
    sm_source source;
    memset(model, 0, sizeof *model);
    model->note = "";
    if (!is_path(name_or_path)) {
        const sm_catalogue_entry *entry = sm_catalogue_find(name_or_path, strlen(name_or_path));
        if (!entry) return fail_unknown_name(name_or_path, err);
        source = sm_source_of(entry->name, entry->config_json);
        return sm_io_model_parse(&source, model, err);
    }
    sm_status status = sm_io_read(name_or_path, arena, &source, err);
    if (status == SM_IO) suggest_model(name_or_path, err);
    return status == SM_OK ? sm_io_model_parse(&source, model, err) : status;
}
