/* stored: how a checkpoint stores its weights, from the quantization_config of its config.json.
 * Private to src/model. */
#pragma once

#include "json_tree.h"
#include "model_facts.h"
#include "named.h"

/* A matrix [rows, columns] of outputs by inputs takes
 *
 *   rows columns bits / 8 + blocks (scale_bytes + zero_bits / 8) + columns column_bytes
 *     + matrix_bytes,   blocks = ceil(rows / block_rows) ceil(columns / block_columns). */
typedef struct stored_format {
    sm_dtype type; /* the nearest one of the product */
    double bits;
    int block_rows, block_columns; /* weights that share a scale; 0: all of them */
    double scale_bytes, zero_bits; /* of a block; zero points are packed as weights are */
    double column_bytes;           /* order of the groups, scale of the activations */
    double matrix_bytes;           /* global scales, a shape */
} stored_format;
/* Tables of data/formats/stored.json. */
typedef struct stored_algorithm {
    const char *name;
    stored_format format;
} stored_algorithm;
typedef struct stored_scale {
    const char *name;
    double bytes;
} stored_scale;
typedef struct stored_id {
    const char *ending, *config;
} stored_id;
extern const stored_algorithm stored_algorithms[];
extern const stored_scale stored_scales[];
extern const stored_id stored_ids[];
extern const size_t stored_algorithms_count, stored_scales_count;
extern const size_t stored_ids_count;
double stored_bytes(const stored_format *format, double rows, double columns);

/* How names of modules are written in lists: as transformers has them (a prefix as a regular
 * expression, or an end), with * (modelopt, Quark), or whole, or as re: and a regular expression
 * (compressed-tensors). */
typedef enum pattern_syntax { PATTERN_MODULES, PATTERN_STARS, PATTERN_EXACT } pattern_syntax;
enum { PATTERN_MOST_STEPS = 1 << 24 }; /* of all patterns of a model */
/* Does the module, or one that it is part of, have this name? Names and patterns are compared
 * without a leading "model." and without "language_model.". *steps counts down, and none matches
 * when they are spent. */
bool pattern_matches(pattern_syntax syntax, const char *pattern, const char *name, long *steps);

/* Modules of a format. "Linear" is every matrix. */
typedef struct stored_group {
    stored_format format;
    const char *const *target;
    int targets;
} stored_group;
typedef struct quantization {
    const char *method;
    pattern_syntax syntax;
    int groups, skips;
    const stored_group *group;
    const char *const *skip;      /* modules that stay as they were */
    const stored_format *experts; /* of matrices of routed experts, where it is their own */
    bool with_head;               /* the unembedding is quantised unless a list says otherwise */
    bool experts_only;
    bool everything; /* routers and the embedding too */
    bool unknown;    /* a method that is not understood: everything is counted as unquantised */
} quantization;
/* Read the quantization_config, and the expert_dtype of the whole config (NULL: it has none).
 * SM_BAD_INPUT with the place of what is no such value. */
sm_status quantization_read(const json_value *json, const json_value *experts, sm_arena *arena,
                            quantization *out);

/* The same from the text of its config. SM_BAD_INPUT as quantization_read. */
sm_status stored_read(const sm_source *source, const model_lines *lines, sm_arena *arena,
                      sm_model *model, sm_error *err);
