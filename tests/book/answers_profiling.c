/* "How to Profile TPU Programs": part 9. */
#include "book.h"
#include "instruments.h"
#include <stddef.h>

static const book_answer answers[] = {
    {"pf.tile", NULL, "tiled layouts come with the reading of HLO"},
    {"pf.tile.bf16", NULL, "tiled layouts come with the reading of HLO"},
    {"pf.ffw", NULL, "profiles come later"},
    {"pf.rs", NULL, "profiles come later"},
    {"pf.attn", NULL, "profiles come later"},
    {"pf.q1", NULL, "the reading of HLO comes later"}};

const book_chapter book_profiling = {"profiling", false, answers,
                                     (int)(sizeof answers / sizeof *answers)};
