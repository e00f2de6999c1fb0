/* operators: finding rows of the table. Private to src/notation. */
#pragma once
#include "scalemodel/architecture.h"

/* The operator that texts call by this name, -1: none. */
int operator_find(const char *name);
/* The activation that configs call by this word, -1: none. */
int operator_find_activation(const char *word);
