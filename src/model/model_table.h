/* model_table: the models of data/models, as scripts/embed.c writes them when the library is built,
 * in the order of data/models/catalogue.json. Private to src/model. */
#pragma once
#include "scalemodel/model.h"

extern const sm_catalogue_entry sm_model_table[];
extern const size_t sm_model_table_count;
