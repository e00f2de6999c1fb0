/* json_place: where in the text of a JSON document a value or its key stands. jansson keeps no
 * positions, so the text is scanned again, only when an error needs them. Private to src/io. */
#ifndef SCALEMODEL_IO_JSON_PLACE_H
#define SCALEMODEL_IO_JSON_PLACE_H
#include "scalemodel/text.h"

/* The span of the value at path, or of its key with of_key (quotes included). A path is keys and
 * indices as in "text_config.layer_types[3]"; "" is the whole document. Length 0 when absent.
 * The text must be a JSON document that parsed; on any other text the span may be absent or wrong,
 * but lies inside the text. Never recurses: the time is linear in text times the depth of path. */
sm_span sm_json_place(const sm_source *s, const char *path, bool of_key);
/* As above, or the opening brace of the nearest enclosing value that is there: the place to name
 * when something is missing. Never of length 0 unless the text is empty. */
sm_span sm_json_nearest_place(const sm_source *s, const char *path, bool of_key);
/* sm_fail_at on sm_json_nearest_place; of an object only the opening brace is underlined. */
sm_status sm_json_fail(sm_error *err, const sm_source *s, const char *path, bool of_key,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));
#endif
