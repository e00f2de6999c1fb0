/* Which calibration a chip takes: its own, or that of its nearest relative. */
#include "calibration_table.h"
#include <string.h>

static const sm_calibration *find_among(const sm_calibration *list, size_t n, const char *word,
                                        const char *software) {
    const sm_calibration *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; word && i < n; i++) {
        size_t length = strlen(list[i].chip);
        if (length <= longest || strncmp(word, list[i].chip, length) != 0) continue;
        if (software && strcmp(software, list[i].software) != 0) continue;
        found = &list[i];
        longest = length;
    }
    return found;
}

/* Without a software: "default". Constants of one code base or of single operations do not stand
 * for the chip, so that its relative's default is preferred. */
const sm_calibration *sm_calibration_find(const char *word, const char *software) {
    return find_among(sm_shipped_calibrations, sm_shipped_calibration_count, word,
                      software ? software : "default");
}

static bool begins(const char *word, const char *beginning) {
    return word && strncmp(word, beginning, strlen(beginning)) == 0;
}

/* Chips of one generation stand in for one another, the nearest first; a longer beginning stands
 * before a shorter one. */
enum { MOST_RELATIVES = 4 };
static const struct {
    const char *chip, *relative[MOST_RELATIVES];
} kin[] = {
    {"gh200", {"h200", "h100"}},
    {"h200", {"h100"}},
    {"h20", {"h100"}},
    {"h800", {"h100"}},
    {"h100", {"h200"}},
    {"gb300", {"gb200", "b300", "b200"}},
    {"gb200", {"gb300", "b200", "b300"}},
    {"b300", {"b200", "gb300", "gb200"}},
    {"b200", {"gb200", "b300", "gb300"}},
    {"b100", {"b200", "gb200"}},
    {"rubin", {"gb300", "gb200"}},
    {"l4", {"l40s", "a100"}},
    {"a40", {"a100"}},
    {"rtx-a", {"rtx-a6000", "a100"}},
    {"rtx-3", {"rtx-3090", "a100"}},
    {"rtx-4", {"rtx-4090", "l40s", "a100"}},
    {"rtx-pro", {"rtx-pro-6000", "l40s", "a100"}},
    {"arc", {"arc-pro-b60", "a100"}},
    {"v100", {"a100"}},
    {"mi300x", {"mi325x"}},
    {"mi325x", {"mi300x"}},
    {"mi35", {"mi355x", "mi300x"}},
    {"mi3", {"mi300x", "mi355x"}},
    {"mi2", {"mi250x", "mi300x"}},
    {"tpu-v6e", {"tpu-v5e", "tpu-v5p"}},
    {"tpu-v5e", {"tpu-v6e", "tpu-v5p"}},
    {"tpu-v5p", {"tpu-v4", "tpu-v6e", "tpu-v7"}},
    {"tpu-v4", {"tpu-v5p"}},
    {"tpu-v7", {"tpu-v6e", "tpu-v5p"}},
    {"tpu-v8", {"tpu-v7", "tpu-v6e"}},
    {"trn", {"trn2", "trn1"}},
    {"inf2", {"trn1", "trn2"}},
};

static const sm_calibration *of_relative(const char *word, const char *software) {
    const sm_calibration *found = NULL;
    size_t i = 0;
    while (i < sizeof kin / sizeof kin[0] && !begins(word, kin[i].chip)) i++;
    if (i == sizeof kin / sizeof kin[0]) return NULL;
    for (int r = 0; r < MOST_RELATIVES && !found; r++)
        found = sm_calibration_find(kin[i].relative[r], software);
    return found;
}

/* What a chip is called when calibrations are sought: a --system file may name another chip. A
 * name that only says more than that ("h100-sxm" of "h100") is kept whole. */
static const char *sought(const sm_chip *chip) {
    if (!chip->calibration || begins(chip->name, chip->calibration)) return chip->name;
    return chip->calibration;
}

static const sm_calibration *choose(const sm_chip *chip, const char *software) {
    const sm_calibration *found = sm_calibration_find(sought(chip), software);
    if (!found) found = of_relative(sought(chip), software);
    if (!found) found = sm_calibration_find(chip->name, software);
    return found ? found : of_relative(chip->name, software);
}

static const char *by_fabric(const sm_chip *chip) {
    if (chip->fabric == SM_FABRIC_TORUS) return "tpu";
    return chip->fabric == SM_FABRIC_NONE ? "cpu" : "h100";
}

const sm_calibration *sm_calibration_of(const sm_chip *chip) {
    const sm_calibration *found = choose(chip, NULL);
    return found ? found : sm_calibration_find(by_fabric(chip), NULL);
}

const sm_calibration *sm_calibration_for(const sm_chip *chip, const char *software) {
    return choose(chip, software);
}

const sm_calibration *sm_calibration_among(const sm_calibration *list, size_t n,
                                           const sm_chip *chip, const char *software) {
    const sm_calibration *found = find_among(list, n, sought(chip), software);
    return found ? found : find_among(list, n, chip->name, software);
}

bool sm_calibration_is_own(const sm_calibration *c, const sm_chip *chip) {
    return begins(chip->name, c->chip) || (chip->calibration && begins(chip->calibration, c->chip));
}
