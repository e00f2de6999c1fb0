/* Pairs of answers, as data sets of preferences have them: lines of JSON with a prompt and an
 * answer that is chosen and one that is rejected, all of them texts. */
#include "run_train.h"

#include "json_tree.h"

static const char *const keys[] = {"prompt", "chosen", "rejected"};

static sm_status read_pair(const json_document *d, sm_train_pair *pair) {
    const json_value *root, *text[3];
    sm_status status = json_parse(d, &root);
    if (!status) status = json_expect(root, IS_OBJECT, "an object");
    if (!status) status = json_check_keys(root, keys, 3);
    for (int i = 0; !status && i < 3; i++) {
        text[i] = json_get(root, keys[i]);
        if (!text[i]) return json_fail(root, "%s is missing", keys[i]);
        status = json_expect(text[i], IS_TEXT, "a text");
        if (!status && text[i]->n == 0) return json_fail(text[i], "%s is empty", keys[i]);
    }
    if (status) return status;
    pair->prompt = text[0]->n;
    for (int k = 0; k < 2; k++) {
        char *all = sm_arena_printf(d->arena, "%s%s", text[0]->text, text[k + 1]->text);
        if (!all) return sm_fail_memory(d->err);
        pair->text[k] = (const unsigned char *)all;
        pair->bytes[k] = strlen(all);
    }
    return SM_OK;
}

sm_status train_pairs_read(train_run *q, const sm_source *file, sm_error *err) {
    sm_arena *arena = q->call->arena;
    size_t lines = 1;
    for (size_t i = 0; i < file->length; i++) lines += file->text[i] == '\n';
    sm_train_pair *pair = sm_arena_array(arena, lines, sizeof *pair);
    if (!pair) return sm_fail_memory(err);
    q->setup.pair = pair;
    q->setup.beta = q->given.beta;
    int line = 1;
    for (const char *at = file->text, *end = at + file->length; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const sm_source source = {file->name, at, (size_t)((stop ? stop : end) - at)};
        const json_document d = {.source = &source, .arena = arena, .err = err, .line = line};
        bool blank = strspn(at, " \t\r") >= source.length;
        sm_status status = blank ? SM_OK : read_pair(&d, &pair[q->setup.pairs]);
        if (status) return status;
        q->setup.pairs += !blank;
        at += source.length + 1;
    }
    return q->setup.pairs ? SM_OK : sm_fail(err, SM_BAD_INPUT, "%.200s holds no pair", file->name);
}
