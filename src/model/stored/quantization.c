/* quantization_config: which modules of a checkpoint are stored how. A row of a table for each
 * method; what packs the weights how is in the libraries that write such checkpoints: transformers
 * (fp8, mxfp4), AutoAWQ, GPTQModel, bitsandbytes, compressed-tensors, ModelOpt, Quark, MLX. */
#include "stored.h"

enum { NVFP4_GROUP = 16, MX_GROUP = 32, MOST_GROUP = 1 << 24, MOST_NAMES = 64 };

typedef struct reader {
    const json_value *json; /* the whole object */
    sm_arena *arena;
    quantization *out;
    const struct method *method;
} reader;

/* A method: its words, what its lists are called, and how it stores a matrix. */
typedef struct method {
    const char *name;
    pattern_syntax syntax;
    const char *skip; /* the key of the modules left alone; without a list the head is one */
    bool with_head;   /* the head is quantised where no list names it */
    bool experts_only;
    sm_status (*format)(reader *r, stored_format *format);
    sm_status (*groups)(reader *r); /* instead of one format */
} method;

/* ---- values ---- */

static bool truth(const json_value *object, const char *key) {
    const json_value *v = json_get(object, key);
    return json_is(v, IS_BOOL) && v->truth;
}

static bool is_there(const json_value *v) { return v && v->kind != IS_NULL; }

/* A whole number of 1 to most; absent or null leave *out as it is. -1 is 0, all. */
static sm_status read_size(const json_value *object, const char *key, int most, int *out) {
    const json_value *v = json_get(object, key);
    if (!is_there(v)) return SM_OK;
    if (v->kind == IS_NUMBER && v->whole && v->integer == -1) return *out = 0, SM_OK;
    if (v->kind != IS_NUMBER || !v->whole || v->integer < 1 || v->integer > most)
        return json_fail(v, "%s must be a whole number from 1 to %d", key, most);
    *out = (int)v->integer;
    return SM_OK;
}

/* A list of texts; absent and null are none. */
static sm_status read_list(const json_value *list, sm_arena *arena, const char *const **out,
                           int *n) {
    *n = 0;
    *out = NULL;
    if (!is_there(list)) return SM_OK;
    if (list->kind != IS_LIST) return json_fail(list, "%s must be a list of texts", list->key);
    const char **text = sm_arena_array(arena, list->n + 1, sizeof *text);
    if (!text) return sm_fail_memory(list->in->err);
    for (uint32_t i = 0; i < list->n; i++) {
        text[i] = json_text(&list->item[i]);
        if (!text[i]) return json_fail(&list->item[i], "%s must be a list of texts", list->key);
    }
    *out = text;
    *n = (int)list->n;
    return SM_OK;
}

static sm_status read_bits(const json_value *object, const char *key, int usual, stored_format *f) {
    int bits = usual;
    sm_status status = read_size(object, key, 16, &bits);
    if (!status && bits == 0)
        status = json_fail(json_get(object, key), "%s must be a whole number from 1 to 16", key);
    f->bits = bits;
    f->type = bits <= 4 ? SM_INT4 : SM_INT8;
    return status;
}

/* ---- methods of one format ---- */

/* Blocks that share a scale of single precision; one for all where weight_block_size is null. */
static sm_status fp8(reader *r, stored_format *f) {
    const json_value *size = json_get(r->json, "weight_block_size");
    int block[2] = {0, 0}, n = 0;
    if (is_there(size)) {
        sm_status status = json_read_counts(size, 2, 2, MOST_GROUP, block, &n);
        if (status) return status;
    }
    const char *scheme = json_text(json_get(r->json, "activation_scheme"));
    *f = (stored_format){.type = SM_FP8,
                         .bits = 8,
                         .block_rows = block[0],
                         .block_columns = block[1],
                         .scale_bytes = 4,
                         .matrix_bytes = scheme && strcmp(scheme, "static") == 0 ? 4 : 0};
    return SM_OK;
}

static sm_status as_named(reader *r, stored_format *f) {
    const stored_algorithm *known = NAMED(stored_algorithms, r->method->name);
    *f = known->format;
    return SM_OK;
}

/* Groups of inputs with a scale of 16 bits and a packed zero point. */
static sm_status grouped(reader *r, stored_format *f) {
    *f = (stored_format){.block_rows = 1, .block_columns = 128, .scale_bytes = 2};
    sm_status status = read_bits(r->json, "bits", 4, f);
    if (!status) status = read_bits(r->json, "w_bit", (int)f->bits, f);
    if (!status) status = read_size(r->json, "group_size", MOST_GROUP, &f->block_columns);
    if (!status) status = read_size(r->json, "q_group_size", MOST_GROUP, &f->block_columns);
    f->zero_bits = f->bits;
    return status;
}

/* GPTQ keeps the group of each input besides, in 32 bits. */
static sm_status gptq(reader *r, stored_format *f) {
    sm_status status = grouped(r, f);
    const char *packing = json_text(json_get(r->json, "packing_format"));
    f->column_bytes = packing && strstr(packing, "awq") ? 0 : 4;
    r->out->with_head = truth(r->json, "lm_head");
    return status;
}

/* bitsandbytes: one scale of 64 weights, itself in 8 bits and groups of 256 where it is quantised
 * twice, and the tables of 16 and 256 values; of 8 bits one scale a row. */
static sm_status bitsandbytes(reader *r, stored_format *f) {
    bool four = truth(r->json, "load_in_4bit") || truth(r->json, "_load_in_4bit");
    bool twice = truth(r->json, "bnb_4bit_use_double_quant");
    enum { GROUP = 64 };
    *f = (stored_format){.type = SM_INT8, .bits = 8, .block_rows = 1, .scale_bytes = 4};
    if (four)
        *f = (stored_format){.type = SM_INT4,
                             .bits = 4,
                             .block_rows = 1,
                             .block_columns = GROUP,
                             .scale_bytes = twice ? 1 + 4.0 / 256 : 4,
                             .matrix_bytes = twice ? 16 * 4 + 256 * 4 : 16 * 4};
    return SM_OK;
}

/* ---- ModelOpt's names of formats ---- */

/* The format of an object with "quant_algo", or "mode", and perhaps "group_size". */
static sm_status read_algorithm(const json_value *object, stored_format *f) {
    const json_value *mode = json_get(object, "mode"), *v = json_get(object, "quant_algo");
    const char *names[MOST_NAMES], *name = json_text(v = mode ? mode : v);
    const stored_algorithm *known = NAMED(stored_algorithms, name);
    size_t n = 0;
    sm_status status = json_expect(object, IS_OBJECT, "an object with \"quant_algo\"");
    if (status) return status;
    if (known) *f = known->format;
    if (known) return read_size(object, "group_size", MOST_GROUP, &f->block_columns);
    if (!v) return json_fail(object, "quant_algo is missing");
    for (; n < stored_algorithms_count && n < MOST_NAMES; n++) names[n] = stored_algorithms[n].name;
    const char *near = name ? sm_nearest(name, strlen(name), names, n) : NULL;
    return json_fail(v, "a %s that is not understood; %s%s", v->key,
                     near ? "the nearest known one is " : "one that is known: ",
                     near ? near : stored_algorithms[0].name);
}

/* MLX: {"group_size": 64, "bits": 4, "model.layers.0.mlp.gate": {"bits": 8, ...}, ...}. What is no
 * object is no module, or one that stays as it was. */
static sm_status mlx_scheme(const json_value *module, stored_format *f) {
    const stored_algorithm *affine = NAMED(stored_algorithms, "affine");
    *f = json_is(module, IS_OBJECT) ? affine->format : (stored_format){.bits = 16};
    sm_status status = json_get(module, "mode")
                           ? read_algorithm(module, f)
                           : read_size(module, "group_size", MOST_GROUP, &f->block_columns);
    return status || f->type != SM_INT4 ? status : read_bits(module, "bits", (int)f->bits, f);
}

/* ---- "weights": {"num_bits": 4, "type": "float", "strategy": "group", ...} ---- */

static double scale_bytes_of(const json_value *weights, double usual) {
    const char *name = json_text(json_get(weights, "scale_dtype"));
    for (size_t i = 0; name && i < stored_scales_count; i++)
        if (strstr(name, stored_scales[i].name)) return stored_scales[i].bytes;
    return usual;
}

static bool is_strategy(const json_value *weights, const char *name) {
    const char *strategy = json_text(json_get(weights, "strategy"));
    return strategy && strcmp(strategy, name) == 0;
}

/* Order of the groups where activations decided it, zero points where it is not symmetric. */
static void add_tables(const json_value *weights, bool packed, stored_format *f) {
    const json_value *symmetric = json_get(weights, "symmetric"), *order;
    order = json_get(weights, "actorder");
    bool asymmetric = json_is(symmetric, IS_BOOL) && !symmetric->truth;
    bool by_group =
        truth(weights, "actorder") || (json_text(order) && strcmp(json_text(order), "group") == 0);
    if (asymmetric) f->zero_bits = packed ? f->bits : 8;
    if (by_group) f->column_bytes += 4;
    if (packed) f->matrix_bytes += 2 * 8; /* weight_shape */
}

static sm_status read_scheme(reader *r, const json_value *group, stored_format *f) {
    const json_value *weights = json_get(group, "weights"), *inputs;
    const char *type = json_text(json_get(weights, "type"));
    const char *packing = json_text(json_get(group, "format"));
    bool modelopt = strcmp(r->method->name, "modelopt") == 0;
    *f = (stored_format){.bits = 16};
    if (!is_there(weights)) return SM_OK; /* activations alone */
    sm_status status = read_bits(weights, "num_bits", 8, f);
    if (!status) {
        const json_value *structure = json_get(weights, "block_structure");
        int block[2] = {0, 0}, n = 0;
        if (is_strategy(weights, "block") && json_is(structure, IS_LIST))
            status = json_read_counts(structure, 2, 2, MOST_GROUP, block, &n);
        f->block_rows = block[0];
        f->block_columns = block[1];
        if (!status) status = read_size(weights, "group_size", MOST_GROUP, &f->block_columns);
        if (!n && (f->block_columns || is_strategy(weights, "channel"))) f->block_rows = 1;
    }
    if (status) return status;
    bool floats = type && strcmp(type, "float") == 0;
    bool nvfp4 = floats && f->bits == 4 && f->block_columns == NVFP4_GROUP;
    bool mx = floats && f->block_columns == MX_GROUP;
    if (floats) f->type = f->bits > 4 ? SM_FP8 : mx ? SM_MXFP4 : SM_FP4;
    f->scale_bytes = nvfp4 || mx ? 1 : scale_bytes_of(weights, modelopt ? 4 : 2);
    inputs = json_get(group, "input_activations");
    const json_value *dynamic = json_get(inputs, "dynamic");
    bool measured = is_there(inputs) && !(json_is(dynamic, IS_BOOL) && dynamic->truth);
    if (nvfp4) f->matrix_bytes = is_there(inputs) ? 8 : 4;
    else if (measured) f->matrix_bytes = modelopt ? 4 : 2;
    if (!packing) packing = json_text(json_get(r->json, "format"));
    if (!floats) add_tables(weights, packing && strcmp(packing, "pack-quantized") == 0, f);
    return SM_OK;
}

static sm_status read_config_groups(reader *r) {
    const json_value *groups = json_get(r->json, "config_groups");
    if (!groups) return json_fail(r->json, "expected \"config_groups\" of %s", r->method->name);
    sm_status status = json_expect(groups, IS_OBJECT, "an object of groups");
    if (status) return status;
    stored_group *group = sm_arena_array(r->arena, groups->n + 1, sizeof *group);
    if (!group) return sm_fail_memory(groups->in->err);
    for (uint32_t i = 0; !status && i < groups->n; i++) {
        const json_value *one = &groups->item[i];
        status = json_expect(one, IS_OBJECT, "a group with \"weights\" and \"targets\"");
        if (!status) status = read_scheme(r, one, &group[i].format);
        if (!status)
            status =
                read_list(json_get(one, "targets"), r->arena, &group[i].target, &group[i].targets);
    }
    r->out->group = group;
    r->out->groups = (int)groups->n;
    return status;
}

static const char *const linear[] = {"Linear"};

static sm_status one_group(reader *r, const stored_format *format) {
    stored_group *group = sm_arena_alloc(r->arena, sizeof *group);
    if (!group) return sm_fail_memory(r->json->in->err);
    *group = (stored_group){.format = *format, .target = linear, .targets = 1};
    r->out->group = group;
    r->out->groups = 1;
    return SM_OK;
}

/* Modules by their names, each with a format of its own, and (has_rest) what the others have. */
static sm_status read_modules(reader *r, const json_value *modules, bool has_rest,
                              const json_value *rest,
                              sm_status (*read)(const json_value *, stored_format *)) {
    uint32_t n = json_is(modules, IS_OBJECT) ? modules->n : 0;
    stored_group *group = sm_arena_array(r->arena, n + 1, sizeof *group);
    const char **name = sm_arena_array(r->arena, n + 1, sizeof *name);
    if (!group || !name) return sm_fail_memory(r->json->in->err);
    sm_status status = SM_OK;
    for (uint32_t i = 0; !status && i < n; i++) {
        name[i] = modules->item[i].key;
        group[i] = (stored_group){.target = &name[i], .targets = 1};
        status = read(&modules->item[i], &group[i].format);
    }
    group[n] = (stored_group){.target = linear, .targets = 1};
    if (!status && has_rest) status = read(rest, &group[n].format);
    r->out->group = group;
    r->out->groups = (int)n + has_rest;
    return status;
}

static sm_status modelopt(reader *r) {
    const json_value *own = json_get(r->json, "quantization"); /* as hf_quant_config.json has it */
    if (json_is(own, IS_OBJECT)) r->json = own;
    if (is_there(json_get(r->json, "config_groups"))) return read_config_groups(r);
    const json_value *layers = json_get(r->json, "quantized_layers");
    if (is_there(layers)) {
        /* {"model.layers.0.mlp.experts": {"quant_algo": "NVFP4"}, ...} */
        sm_status status = json_expect(layers, IS_OBJECT, "an object of modules");
        return status ? status : read_modules(r, layers, false, NULL, read_algorithm);
    }
    stored_format format;
    sm_status status = read_algorithm(r->json, &format);
    return status ? status : one_group(r, &format);
}

/* ---- Quark ---- */

static sm_status quark_scheme(const json_value *module, stored_format *f) {
    const json_value *weight = json_get(module, "weight");
    const char *type = json_text(json_get(weight, "dtype"));
    const char *scheme = json_text(json_get(weight, "qscheme"));
    *f = (stored_format){.bits = 16};
    if (!type) return SM_OK;
    bool four = strstr(type, "4") == type + strlen(type) - 1 || strstr(type, "fp4") != NULL;
    bool floats = strncmp(type, "fp", 2) == 0;
    f->bits = four && !strstr(type, "e4m3") ? 4 : 8;
    f->type = floats ? (f->bits < 8 ? SM_MXFP4 : SM_FP8) : f->bits < 8 ? SM_INT4 : SM_INT8;
    f->scale_bytes = scheme && strcmp(scheme, "per_tensor") == 0 ? 4 : 2;
    if (scheme && strcmp(scheme, "per_tensor") != 0) f->block_rows = 1;
    sm_status status = SM_OK;
    if (scheme && strcmp(scheme, "per_group") == 0)
        status = read_size(weight, "group_size", MOST_GROUP, &f->block_columns);
    const char *scale = json_text(json_get(weight, "scale_format"));
    if (scale && strcmp(scale, "e8m0") == 0) f->scale_bytes = 1;
    return status;
}

static sm_status quark(reader *r) {
    return read_modules(r, json_get(r->json, "layer_quant_config"), true,
                        json_get(r->json, "global_quant_config"), quark_scheme);
}

static sm_status mlx(reader *r) {
    r->out->everything = true;
    return read_modules(r, r->json, true, r->json, mlx_scheme);
}

/* ---- the table ---- */

static const method methods[] = {
    {"fp8", PATTERN_MODULES, "modules_to_not_convert", false, false, fp8, NULL},
    {"fbgemm_fp8", PATTERN_MODULES, "modules_to_not_convert", false, false, as_named, NULL},
    {"mxfp4", PATTERN_MODULES, "modules_to_not_convert", false, true, as_named, NULL},
    {"awq", PATTERN_MODULES, "modules_to_not_convert", false, false, grouped, NULL},
    {"gptq", PATTERN_MODULES, "modules_to_not_convert", false, false, gptq, NULL},
    {"auto-round", PATTERN_MODULES, "modules_to_not_convert", false, false, gptq, NULL},
    {"bitsandbytes", PATTERN_MODULES, "llm_int8_skip_modules", false, false, bitsandbytes, NULL},
    {"compressed-tensors", PATTERN_EXACT, "ignore", true, false, NULL, read_config_groups},
    {"modelopt", PATTERN_STARS, "ignore", true, false, NULL, modelopt},
    {"modelopt_fp4", PATTERN_STARS, "ignore", true, false, NULL, modelopt},
    {"quark", PATTERN_STARS, "exclude", true, false, NULL, quark},
    {"mlx", PATTERN_EXACT, "ignore", true, false, NULL, mlx},
};

static const method *method_of(const json_value *json) {
    const char *name = json_text(json_get(json, "quant_method"));
    if (!name && is_there(json_get(json, "config_groups"))) name = "compressed-tensors";
    if (!name && json_find(json, "quantization.quant_algo")) name = "modelopt";
    if (!name && truth(json, "load_in_8bit")) name = "bitsandbytes";
    if (!name && json_get(json, "group_size") && json_get(json, "bits")) name = "mlx";
    for (size_t i = 0; name && i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i].name, name) == 0) return &methods[i];
    return NULL;
}

/* "expert_dtype": what routed experts are stored in beside matrices of 8 bits (DeepSeek-V4), whose
 * scales are powers of two in a byte then. */
static sm_status read_experts(reader *r, const json_value *type, stored_format *other) {
    const char *name = json_text(type);
    if (!is_there(type) || (name && strcmp(name, "fp8") == 0)) return SM_OK;
    if (!name || strcmp(name, "fp4") != 0)
        return json_fail(type, "an expert_dtype that is not understood; fp4 or fp8");
    const stored_algorithm *experts = NAMED(stored_algorithms, "mxfp4");
    r->out->experts = &experts->format;
    other->scale_bytes = 1;
    return SM_OK;
}

sm_status quantization_read(const json_value *json, const json_value *experts, sm_arena *arena,
                            quantization *out) {
    memset(out, 0, sizeof *out);
    sm_status status = json_expect(json, IS_OBJECT, "an object with \"quant_method\"");
    if (status) return status;
    reader r = {.json = json, .arena = arena, .out = out, .method = method_of(json)};
    const char *name = json_text(json_get(json, "quant_method"));
    out->method = name ? name : r.method ? r.method->name : "";
    out->unknown = !r.method;
    if (!r.method) return SM_OK;
    out->syntax = r.method->syntax;
    out->with_head = r.method->with_head;
    out->experts_only = r.method->experts_only;
    if (r.method->groups) {
        status = r.method->groups(&r);
    } else {
        stored_format format;
        const json_value *own = json_get(r.json, "expert_dtype");
        status = r.method->format(&r, &format);
        if (!status && r.method->format == fp8)
            status = read_experts(&r, own ? own : experts, &format);
        if (!status) status = one_group(&r, &format);
    }
    const json_value *skip = json_get(r.json, r.method->skip);
    if (!is_there(skip)) skip = json_get(r.json, "exclude_modules");
    if (!status) status = read_list(skip, arena, &out->skip, &out->skips);
    /* A list of transformers' own says everything, the head too. */
    if (out->syntax == PATTERN_MODULES && r.method->format == fp8 && out->skips > 0)
        out->with_head = true;
    return status;
}
