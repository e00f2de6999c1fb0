/* Bodies of completion requests: read, or refused with a sentence; what was read is within the
 * limits. */
#include "scalemodel/io.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const sm_completion *c, const sm_completion_limits *limits) {
    assert(c->prompt_tokens >= 1 && c->most >= 1);
    assert(c->prompt_tokens + c->most <= limits->most_tokens);
    assert(c->temperature >= 0 && c->temperature <= 100);
    assert(c->stops >= 0 && c->stops <= SM_COMPLETION_STOPS);
    assert(c->stop_words <= SM_COMPLETION_STOP_WORDS);
    const int rows = (int)(c->pictures * limits->seen.rows); /* words behind the others */
    assert(c->pictures <= limits->pictures);
    for (size_t i = 0; i < c->prompt_tokens; i++)
        assert(c->prompt[i] >= 0 && c->prompt[i] < limits->vocabulary + rows);
    for (size_t i = 0; i < c->stop_words; i++)
        assert(c->stop_word[i] >= 0 && c->stop_word[i] < limits->vocabulary);
    for (int i = 0; i < c->stops; i++)
        assert(c->bytes && c->stop[i][0] && strlen(c->stop[i]) <= SM_COMPLETION_STOP_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const sm_completion_limits limits[] = {
        {.model = "tiny", .most_tokens = 64, .vocabulary = 256},
        {.model = "tiny", .most_tokens = 2, .vocabulary = 5},
        {.model = "", .most_tokens = 1000, .vocabulary = 70000},
        {"tiny", 64, 256, 2, {256, 7, 4}},
        {"tiny", 64, 256, 3, {256, -1, 5}}};
    const sm_source source = {"fuzz", (const char *)data, size};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        sm_arena *arena = sm_arena_new();
        sm_completion c;
        sm_error err = {.status = SM_OK};
        if (!arena) return 0;
        sm_status status = sm_completion_parse(&source, &limits[i], arena, &c, &err);
        if (status) assert(status == SM_BAD_INPUT && err.sentence[0]);
        else check(&c, &limits[i]);
        sm_arena_free(arena);
    }
    return 0;
}
