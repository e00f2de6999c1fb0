/* sm_model_parse: a Hugging Face config.json to an architecture. */
#include "hf_field.h"
#include <stdio.h>
#include <string.h>

/* model_type decides; the architecture is asked when there is none. Remote code may name its own
 * type over a known architecture (kimi_k2 over DeepseekV3ForCausalLM). */
static sm_status choose_family(hf_config *c) {
    const char *type = json_text(json_get(c->object, "model_type"));
    type = type ? type : json_text(json_get(c->root, "model_type"));
    c->family = type ? hf_family_of_type(type) : NULL;
    const char *architecture = json_text(json_find(c->object, "architectures[0]"));
    if (!c->family && architecture) c->family = hf_family_of_architecture(architecture);
    if (c->family) return SM_OK;
    if (json_get(c->object, "model_type") && !type)
        return hf_fail(c, "model_type", false, "model_type must be a text");
    if (!type)
        return hf_fail(c, "model_type", false,
                       "this is not a Hugging Face model config: model_type is missing");
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

static sm_status read_config(hf_config *c, const sm_source *source, sm_model *model) {
    if (c->root->kind != IS_OBJECT) return json_fail(c->root, "a model config is a JSON object");
    /* the config of the language model: the document, or text_config of a multimodal wrapper */
    const json_value *text = json_get(c->root, "text_config");
    c->at = c->object = json_is(text, IS_OBJECT) && text->n > 0 ? text : c->root;
    sm_status status = choose_family(c);
    if (!status) status = hf_read_fields(c);
    if (status) return status;
    /* "models/llama-3.1-8b/config.json" is llama-3.1-8b, "x/tiny.json" is tiny. */
    const char *name = source->name ? source->name : "", *end = name + strlen(name);
    if (end - name > 12 && strcmp(end - 12, "/config.json") == 0) end -= 12;
    else if (end - name > 5 && strcmp(end - 5, ".json") == 0) end -= 5;
    const char *start = end;
    while (start > name && start[-1] != '/') start--;
    snprintf(model->name, sizeof model->name, "%.*s", (int)(end - start > 90 ? 90 : end - start),
             start);
    snprintf(model->family, sizeof model->family, "%s", c->family->name);
    return hf_build(c, model);
}

/* The kind of lines of each kind of layer, of the embedding and of the head. */
static void find_lines(sm_model *model) {
    const sm_model_piece *piece;
    int n = sm_architecture_pieces(model->architecture, &piece), layer = 0;
    int *outside = &model->lines_of[model->kinds];
    outside[0] = outside[1] = -1;
    for (int i = 0; i < n; i++) {
        if (piece[i].apart) continue;
        if (piece[i].layer >= 0) {
            if (layer < model->L) model->lines_of[model->layer[layer++]] = piece[i].kind;
            continue;
        }
        outside[1] = piece[i].kind;
        if (outside[0] < 0) outside[0] = piece[i].kind;
    }
}

static sm_status read_lines(const sm_source *source, sm_arena *arena, sm_model *model,
                            sm_error *err) {
    const sm_library *library;
    sm_status status = sm_library_shipped(arena, &library, err);
    if (!status)
        status = sm_architecture_new(library, source, NULL, arena, &model->architecture, err);
    if (!status) find_lines(model);
    return status;
}

sm_status sm_model_parse(const sm_source *source, sm_arena *arena, sm_model *model, sm_error *err) {
    const json_document document = {.source = source, .arena = arena, .err = err, .python = true};
    hf_config c = {.root = NULL};
    memset(model, 0, sizeof *model);
    model->note = "";
    sm_status status = json_parse(&document, &c.root);
    if (!status) status = read_config(&c, source, model);
    return status ? status : read_lines(source, arena, model, err);
}
