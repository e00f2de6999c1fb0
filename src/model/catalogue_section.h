/* catalogue_section: the catalogue is written in sections, one file each. Private to src/model. */
#ifndef SCALEMODEL_MODEL_CATALOGUE_SECTION_H
#define SCALEMODEL_MODEL_CATALOGUE_SECTION_H
#include "scalemodel/model.h"

/* The config as it would stand in a file; commas and quotes pass through the preprocessor
 * unchanged. */
#define CONFIG(...) #__VA_ARGS__

typedef struct catalogue_section {
    const sm_catalogue_entry *entries;
    size_t n;
} catalogue_section;
extern const catalogue_section catalogue_llama, catalogue_qwen, catalogue_gemma, catalogue_experts,
    catalogue_gpt, catalogue_open;
#endif
