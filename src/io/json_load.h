/* json_load: the one door through which JSON text enters. Private to src/io. */
#ifndef SCALEMODEL_IO_JSON_LOAD_H
#define SCALEMODEL_IO_JSON_LOAD_H
#include "scalemodel/text.h"
#include <jansson.h>

enum { SM_JSON_MAX_BYTES = 16 << 20 };

/* Parse s into *root (to be released with json_decref). Duplicate keys, numbers beyond double,
 * NaN, nesting deeper than jansson's 2048, trailing text and documents over SM_JSON_MAX_BYTES are
 * errors that carry line, column and span. jansson allocates through sm_malloc. */
sm_status sm_json_load(const sm_source *s, sm_error *err, json_t **root);
#endif
