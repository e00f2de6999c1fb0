/* Engines by the name of their software. */
#include "engine_table.h"

#include <assert.h>
#include <string.h>

static const truth_engine *find(const char *name) {
    for (size_t i = 0; i < truth_engine_table_count; i++)
        if (strcmp(truth_engine_table[i].name, name) == 0) return &truth_engine_table[i];
    return NULL;
}

const truth_engine *truth_engine_of(const char *software) {
    const truth_engine *own = find(software), *any = own ? own : find("serving");
    assert(any);
    return any;
}
