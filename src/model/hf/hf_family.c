/* The families whose configs are understood, found by model_type or architecture. The rows
 * themselves stand in hf_llama_like.c, hf_gemma_like.c, hf_sparse.c, hf_gpt_like.c, hf_plain.c. */
#include "hf_family.h"
#include <string.h>

static const struct {
    const hf_family *rows;
    size_t n;
} sections[] = {
    {hf_llama_like, HF_LLAMA_LIKE}, {hf_gemma_like, HF_GEMMA_LIKE}, {hf_sparse, HF_SPARSE},
    {hf_gpt_like, HF_GPT_LIKE},     {hf_plain, HF_PLAIN},
};

/* Is the word one of a space-separated list? */
static bool has_word(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *at = list; n > 0 && *at;) {
        size_t length = strcspn(at, " ");
        if (length == n && memcmp(at, word, n) == 0) return true;
        at += length + strspn(at + length, " ");
    }
    return false;
}

static const hf_family *find(const char *word, bool by_type) {
    for (size_t s = 0; s < sizeof sections / sizeof *sections; s++)
        for (size_t i = 0; i < sections[s].n; i++) {
            const hf_family *f = &sections[s].rows[i];
            if (has_word(by_type ? f->model_types : f->architectures, word)) return f;
        }
    return NULL;
}

const hf_family *hf_family_of_type(const char *type) { return find(type, true); }

const hf_family *hf_family_of_architecture(const char *name) { return find(name, false); }

size_t hf_family_names(const char **names, size_t room) {
    size_t n = 0;
    for (size_t s = 0; s < sizeof sections / sizeof *sections; s++)
        for (size_t i = 0; i < sections[s].n && n < room; i++)
            names[n++] = sections[s].rows[i].name;
    return n;
}
