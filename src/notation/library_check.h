/* library_check: what the checks of texts and of families share. Private to src/notation. */
#pragma once
#include "tree.h"

/* Words in the order of strcmp, each once after words_sort. */
typedef struct words {
    const char **word;
    size_t n;
    int room;
} words;

typedef struct checker {
    const sm_library *library;
    sm_arena *arena; /* for the time of the check */
    sm_error *err;
    words texts; /* names of all texts */
    words bound; /* what families bind in their pieces */
    words read;  /* what the values of those read */
    words slots; /* what texts call that is neither op nor text: families bind it */
    words options;
    words reached; /* pieces that texts reach into by piece.name */
} checker;

bool words_have(const words *list, const char *word);
/* The part of a name before its first dot, in the arena of the check; NULL when out of memory. */
const char *before_dot(checker *c, const char *name);

sm_status check_text(checker *c, const tree_text *text);
sm_status check_family(checker *c, const tree_family *family);
