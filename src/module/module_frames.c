#include "module_parts.h"

static const module_row *row_of(const module_frames *frames, module_table table, int64_t number) {
    return number >= 1 && (uint64_t)number <= frames->n[table] ? &frames->row[table][number - 1]
                                                               : NULL;
}

void module_place(const module_frames *frames, int64_t frame, const char **file, int *line) {
    const module_row *f = row_of(frames, MODULE_FRAMES, frame);
    const module_row *location = f ? row_of(frames, MODULE_LOCATIONS, f->of) : NULL;
    const module_row *name = location ? row_of(frames, MODULE_FILES, location->of) : NULL;
    if (!name) return;
    *file = name->text;
    *line = (int)(location->line & INT32_MAX);
}
