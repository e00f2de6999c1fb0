/* The catalogue chip for the name that a file of measurements prints. */
#include "scalemodel/truth.h"
#include <ctype.h>
#include <string.h>

enum { LONGEST = 64 };

/* Names whose meaning their words do not tell. Where a source cannot tell two chips apart ("a|b"),
 * the faster one, so that a bound stays a bound. Pairs bridged by NVLink are PCIe cards. */
static const char *const meanings[][2] = {
    {"mi300x|mi325x", "mi325x"},
    {"mi350x|mi355x", "mi355x"},
    {"b200|gb200", "b200"},
    {"h100|h800", "h100-sxm"},
    {"a100-sxm-40gb", "a100-40"},
    {"a100-sxm4-40gb", "a100-40"},
    {"a100-pairwise-nvlink", "a100-pcie"},
    {"h100-pairwise-nvlink", "h100-pcie"},
    {"a40-pairwise-nvlink", "a40"},
    {"gh200-480gb", "gh200"},
};

/* Last words that do not change the chip: where it sits, and what its name implies. */
static const char *const implied[] = {"node", "cluster", "multi",  "sxm",   "sxm2", "sxm4",
                                      "sxm5", "oam",     "nvl72",  "16gb",  "32gb", "80gb",
                                      "96gb", "gpu",     "server", "hbm2e", "hbm3", "hbm3e"};

/* Words before the name of a chip. */
static const char *const makers[] = {"nvidia-", "amd-",    "intel-",    "google-", "cloud-",
                                     "aws-",    "amazon-", "instinct-", "geforce-"};

static bool same(const char *a, const char *b, size_t n) {
    return strlen(b) == n && strncmp(a, b, n) == 0;
}

/* Lower case, words joined by '-', what stands in brackets left out. false: too long to be one. */
static bool plain_name(const char *printed, char *out) {
    size_t n = 0;
    int depth = 0;
    for (; *printed; printed++) {
        char c = (char)tolower((unsigned char)*printed);
        depth += c == '(';
        bool gap = c == ' ' || c == '_' || c == '-';
        if (depth == 0 && !(gap && (n == 0 || out[n - 1] == '-'))) {
            if (n + 1 >= LONGEST) return false;
            out[n++] = gap ? '-' : c;
        }
        if (c == ')' && depth > 0) depth--;
    }
    while (n > 0 && out[n - 1] == '-') n--;
    out[n] = '\0';
    return n > 0;
}

static bool is_implied(const char *word, size_t n) {
    for (size_t i = 0; i < sizeof implied / sizeof implied[0]; i++)
        if (same(word, implied[i], n)) return true;
    /* "2x2x1", "4gpu", "2": numbers of chips. */
    size_t digits = strspn(word, "0123456789x");
    return n > 0 && isdigit((unsigned char)word[0]) &&
           (digits >= n || same(word + digits, "gpu", n - digits));
}

static const sm_chip *chip_called(const char *name, size_t n) {
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (same(name, meanings[i][0], n))
            return sm_chip_find(meanings[i][1], strlen(meanings[i][1]));
    return sm_chip_find(name, n);
}

const sm_chip *sm_truth_row_chip(const sm_truth_row *row) {
    return row->on ? row->on : sm_truth_chip(row->chip);
}

const sm_chip *sm_truth_chip(const char *printed) {
    char buffer[LONGEST];
    if (!printed || !plain_name(printed, buffer)) return NULL;
    const char *name = buffer;
    for (size_t i = 0; i < sizeof makers / sizeof makers[0];) {
        size_t n = strlen(makers[i]);
        bool has = strncmp(name, makers[i], n) == 0;
        if (has) name += n;
        i = has ? 0 : i + 1;
    }

    for (size_t n = strlen(name); n > 0;) {
        const sm_chip *chip = chip_called(name, n);
        if (chip) return chip;
        size_t last = n;
        while (last > 0 && name[last - 1] != '-') last--;
        if (last == 0 || !is_implied(name + last, n - last)) return NULL;
        n = last - 1;
    }
    return NULL;
}
