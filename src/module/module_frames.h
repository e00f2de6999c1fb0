/* module_frames: the tables that say where in the user's program an instruction was made: a stack
 * frame names a location, that a file. Rows count from 1. Private to src/module. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef enum module_table {
    MODULE_FILES,
    MODULE_FUNCTIONS,
    MODULE_LOCATIONS,
    MODULE_FRAMES,
    MODULE_TABLES
} module_table;
typedef struct module_row {
    int64_t of, line; /* of: the file of a location, the location of a frame */
    const char *text; /* of a file */
} module_row;
typedef struct module_frames {
    const module_row *row[MODULE_TABLES];
    size_t n[MODULE_TABLES];
} module_frames;

/* The file and line of a frame; both stay as they are where it has none. */
void module_place(const module_frames *frames, int64_t frame, const char **file, int *line);
