/* A request of OpenAI's completions API (platform.openai.com/docs/api-reference/completions), as
 * far as an engine of this kind can answer it: what it cannot do is refused by name, unless it asks
 * for what happens anyway. */
#include "json_tree.h"
#include "scalemodel/io.h"

#include <string.h>

enum { USUAL_TOKENS = 16 };

/* Keys whose usual value is what is done; null stands for it, too. */
typedef struct neutral {
    const char *key;
    double value;
} neutral;
static const neutral neutrals[] = {
    {"n", 1}, {"best_of", 1}, {"top_p", 1}, {"frequency_penalty", 0}, {"presence_penalty", 0},
};

static const json_value *present(const json_value *root, const char *key) {
    const json_value *v = json_get(root, key);
    return json_is(v, IS_NULL) ? NULL : v;
}

static sm_status check_neutral(const json_value *root) {
    for (size_t i = 0; i < sizeof neutrals / sizeof *neutrals; i++) {
        const json_value *v = present(root, neutrals[i].key);
        if (v && !(json_is(v, IS_NUMBER) && json_number(v) == neutrals[i].value))
            return json_fail(v, "%s can be %g here and nothing else", neutrals[i].key,
                             neutrals[i].value);
    }
    const json_value *echo = present(root, "echo"), *bias = present(root, "logit_bias");
    if (echo && !(json_is(echo, IS_BOOL) && !echo->truth))
        return json_fail(echo, "a prompt is not sent back: echo can be false alone");
    if (bias && !(json_is(bias, IS_OBJECT) && bias->n == 0))
        return json_fail(bias, "words have no bias of their own here");
    if (present(root, "logprobs"))
        return json_fail(present(root, "logprobs"), "probabilities of words are not told");
    const json_value *suffix = present(root, "suffix");
    if (suffix && !(json_text(suffix) && suffix->n == 0))
        return json_fail(suffix, "nothing is written before a suffix");
    return SM_OK;
}

/* ---- numbers of words ---- */

static sm_status read_words(const json_value *list, size_t most, int vocabulary, sm_arena *arena,
                            int32_t **out, size_t *n, sm_error *err) {
    if (list->n > most)
        return json_fail(list, "%u words are too many: at most %zu go here", list->n, most);
    int32_t *word = sm_arena_array(arena, (size_t)list->n + 1, sizeof *word);
    if (!word) return sm_fail_memory(err);
    for (size_t i = 0; i < list->n; i++) {
        const json_value *v = &list->item[i];
        if (!json_is(v, IS_NUMBER) || !v->whole || v->integer < 0 || v->integer >= vocabulary)
            return json_fail(v, "a word is a whole number from 0 to %d", vocabulary - 1);
        word[i] = (int32_t)v->integer;
    }
    *out = word;
    *n = list->n;
    return SM_OK;
}

static sm_status read_prompt(const json_value *root, const sm_completion_limits *limits,
                             sm_arena *arena, sm_completion *out, sm_error *err) {
    const json_value *v = present(root, "prompt");
    if (!v) return json_fail(root, "a completion needs a prompt");
    bool lists = json_is(v, IS_LIST) && v->n > 0 && !json_is(&v->item[0], IS_NUMBER);
    if (lists && v->n > 1) return json_fail(v, "one prompt a request");
    if (lists) v = &v->item[0];
    const char *text = json_text(v);
    size_t most = limits->most_tokens - 1;
    sm_status status = SM_OK;
    if (text) {
        if (limits->vocabulary < SM_COMPLETION_BYTES)
            return json_fail(v,
                             "a vocabulary of %d words cannot hold the 256 bytes of a text: "
                             "give the numbers of words",
                             limits->vocabulary);
        out->bytes = true;
        out->prompt_tokens = v->n;
        out->prompt = sm_arena_array(arena, (size_t)v->n + 1, sizeof *out->prompt);
        if (!out->prompt) return sm_fail_memory(err);
        for (size_t i = 0; i < v->n; i++) out->prompt[i] = (unsigned char)text[i];
    } else if (json_is(v, IS_LIST)) {
        status =
            read_words(v, most, limits->vocabulary, arena, &out->prompt, &out->prompt_tokens, err);
    } else {
        return json_fail(v, "a prompt is a text or a list of the numbers of words");
    }
    if (status) return status;
    if (out->prompt_tokens < 1 || out->prompt_tokens > most)
        return json_fail(v, "a prompt has from 1 to %zu %s, and this one has %zu", most,
                         out->bytes ? "bytes" : "words", out->prompt_tokens);
    return SM_OK;
}

/* ---- pictures ---- */

sm_status sm_pictures_place(const sm_picture_words *p, size_t pictures, const int32_t *words,
                            size_t *count, sm_arena *arena, int32_t **out, sm_error *err) {
    const size_t n = *count;
    size_t said = 0, put = 0, all = p->rows * pictures;
    for (size_t k = 0; words && k < n; k++) said += words[k] == p->word;
    if (said && said != pictures && said != all)
        return sm_fail(err, SM_BAD_INPUT,
                       "a prompt has the word %d, a row of its picture, %zu times: %zu, once for a "
                       "picture, or %zu, for each row, is right",
                       p->word, said, pictures, all);
    int32_t *to = sm_arena_array(arena, n + all + 1, sizeof *to);
    if (!to) return sm_fail_memory(err);
    *out = to;
    while (!said && put < all) *to++ = p->vocabulary + (int32_t)put++;
    for (size_t k = 0; words && k < n; k++) {
        const size_t stands = said && words[k] == p->word ? all / said : 0;
        for (size_t r = 0; r < stands; r++) *to++ = p->vocabulary + (int32_t)put++;
        if (!stands) *to++ = words[k];
    }
    *count = (size_t)(to - *out);
    return SM_OK;
}

static int digit_of(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* RFC 4648, section 4, without line ends; what comes out is shorter than what goes in. */
static sm_status decode_base64(const json_value *v, char *to, size_t *bytes) {
    const char *text = json_text(v);
    size_t n = text && v->n % 4 == 0 ? v->n : 0;
    unsigned held = 0;
    *bytes = 0;
    while (n > 0 && v->n - n < 2 && text[n - 1] == '=') n--;
    for (size_t i = 0; i < n; i++) {
        const int digit = digit_of(text[i]);
        if (digit < 0) n = 0;
        held = held << 6 | (unsigned)digit;
        if (i % 4) to[(*bytes)++] = (char)(held >> (6 - 2 * (i % 4)) & 0xff);
    }
    return n ? SM_OK : json_fail(v, "a picture is a file of safetensors in base64");
}

static sm_status read_pictures(const json_value *root, const sm_completion_limits *limits,
                               sm_arena *arena, sm_completion *out, sm_error *err) {
    const json_value *list = present(root, "images");
    const size_t most = limits->most_tokens - 1;
    sm_picture_words seen = limits->seen;
    sm_error why = {.status = SM_OK};
    if (out->bytes) seen.word = -1;
    sm_status status = list ? json_expect(list, IS_LIST, "a list of pictures") : SM_OK;
    if (status || !list || !list->n) return status;
    if (list->n > limits->pictures)
        return json_fail(list, "%u pictures are too many: this engine sees %zu in a prompt",
                         list->n, limits->pictures);
    out->picture = sm_arena_array(arena, list->n, sizeof *out->picture);
    if (!out->picture) return sm_fail_memory(err);
    for (; !status && out->pictures < list->n; out->pictures++) {
        const json_value *v = &list->item[out->pictures];
        sm_source *to = &out->picture[out->pictures];
        char *bytes = sm_arena_alloc(arena, v->n + 1);
        if (!bytes) return sm_fail_memory(err);
        *to = (sm_source){"a picture", bytes, 0};
        status = decode_base64(v, bytes, &to->length);
    }
    if (status) return status;
    status = sm_pictures_place(&seen, out->pictures, out->prompt, &out->prompt_tokens, arena,
                               &out->prompt, &why);
    if (status) return json_fail(list, "%s", why.sentence);
    if (out->prompt_tokens <= most) return SM_OK;
    return json_fail(list, "with its pictures the prompt has %zu words, and at most %zu go here",
                     out->prompt_tokens, most);
}

/* ---- where it ends ---- */

static sm_status read_stop(const json_value *v, sm_completion *out) {
    const char *text = json_text(v);
    if (!text || v->n < 1 || v->n > SM_COMPLETION_STOP_BYTES)
        return json_fail(v, "a stop is a text of 1 to %d bytes", SM_COMPLETION_STOP_BYTES);
    out->stop[out->stops++] = text;
    return SM_OK;
}

static sm_status read_stops(const json_value *root, const sm_completion_limits *limits,
                            sm_arena *arena, sm_completion *out, sm_error *err) {
    const json_value *v = present(root, "stop"), *words = present(root, "stop_token_ids");
    sm_status status = SM_OK;
    bool list = v && json_is(v, IS_LIST);
    if (v && !out->bytes)
        return json_fail(v, "what words spell is not known here: stop_token_ids ends them");
    if (list && v->n > SM_COMPLETION_STOPS)
        return json_fail(v, "at most %d stops", SM_COMPLETION_STOPS);
    if (v && !list) status = read_stop(v, out);
    for (uint32_t i = 0; list && !status && i < v->n; i++) status = read_stop(&v->item[i], out);
    if (!words || status) return status;
    status = json_expect(words, IS_LIST, "a list of the numbers of words");
    if (status) return status;
    return read_words(words, SM_COMPLETION_STOP_WORDS, limits->vocabulary, arena, &out->stop_word,
                      &out->stop_words, err);
}

/* ---- the rest ---- */

static sm_status read_flag(const json_value *root, const char *key, bool *out) {
    return json_read_bool(present(root, key), out);
}

static sm_status read_numbers(const json_value *root, const sm_completion_limits *limits,
                              sm_completion *out) {
    const json_value *most = present(root, "max_tokens"), *seed = present(root, "seed"),
                     *heat = present(root, "temperature");
    size_t room = limits->most_tokens - out->prompt_tokens;
    out->most = room < USUAL_TOKENS ? room : USUAL_TOKENS;
    out->temperature = 1;
    if (most && !(json_is(most, IS_NUMBER) && most->whole && most->integer >= 1 &&
                  (uint64_t)most->integer <= room))
        return json_fail(most, "max_tokens is a whole number from 1 to %zu after this prompt",
                         room);
    if (most) out->most = (size_t)most->integer;
    if (heat && !(json_is(heat, IS_NUMBER) && json_number(heat) >= 0 && json_number(heat) <= 100))
        return json_fail(heat, "a temperature lies between 0 and 100");
    if (heat) out->temperature = json_number(heat);
    if (seed && !(json_is(seed, IS_NUMBER) && seed->whole))
        return json_fail(seed, "a seed is a whole number");
    if (seed) out->seed = (uint64_t)seed->integer;
    out->seeded = seed != NULL;
    return SM_OK;
}

static sm_status read_model(const json_value *root, const sm_completion_limits *limits) {
    const json_value *v = present(root, "model");
    if (!v || (json_text(v) && strcmp(json_text(v), limits->model) == 0)) return SM_OK;
    return json_fail(v, "the model that is served is \"%.100s\"", limits->model);
}

static sm_status read_stream(const json_value *root, sm_completion *out) {
    const json_value *options = present(root, "stream_options");
    sm_status status = read_flag(root, "stream", &out->stream);
    if (status || !options) return status;
    if (!out->stream) return json_fail(options, "stream_options are of a stream");
    status = json_expect_keys(options, "an object", "include_usage");
    return status ? status : read_flag(options, "include_usage", &out->usage);
}

sm_status sm_completion_parse(const sm_source *source, const sm_completion_limits *limits,
                              sm_arena *arena, sm_completion *out, sm_error *err) {
    json_document *d = sm_arena_alloc(arena, sizeof *d);
    const json_value *root;
    bool ignored = false;
    *out = (sm_completion){.stops = 0};
    if (!d) return sm_fail_memory(err);
    *d = (json_document){.source = source, .arena = arena, .err = err};
    sm_status status = json_parse(d, &root);
    if (!status)
        status = json_expect_keys(
            root, "an object",
            "model|prompt|images|max_tokens|temperature|seed|stream|stop|n|best_of|"
            "top_p|stop_token_ids|echo|logprobs|suffix|frequency_penalty|"
            "logit_bias|ignore_eos|user|return_token_ids|presence_penalty|"
            "stream_options");
    if (!status) status = check_neutral(root);
    if (!status) status = read_model(root, limits);
    if (!status) status = read_prompt(root, limits, arena, out, err);
    if (!status) status = read_pictures(root, limits, arena, out, err);
    if (!status) status = read_numbers(root, limits, out);
    if (!status) status = read_stops(root, limits, arena, out, err);
    if (!status) status = read_stream(root, out);
    if (!status) status = read_flag(root, "ignore_eos", &ignored);
    return status ? status : read_flag(root, "return_token_ids", &ignored);
}
