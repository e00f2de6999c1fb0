/* module_names: names to numbers, by hashing. Private to src/module. */
#pragma once
#include "scalemodel/base.h"

typedef struct module_name {
    const char *text; /* NULL: free */
    uint32_t length;
    uint32_t round; /* of which fill: older ones count as free */
    int number;
} module_name;
typedef struct module_names {
    module_name *entry;
    size_t room, used;
    uint32_t round;
} module_names;

/* Empty it, keeping its room. */
void module_names_clear(module_names *names);
void module_names_free(module_names *names);
/* The number of a name; -1 if absent. */
int module_names_find(const module_names *names, const char *text, size_t length);
/* Give a name its number, or another one. text must stay. False when out of memory. */
bool module_names_set(module_names *names, const char *text, size_t length, int number);
