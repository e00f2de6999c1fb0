/* Which calibration a chip takes. Its row says: its own calibrations go by the names in
 * `calibration` (or by its name); where none of them is of the software asked for, those of
 * `constants_like` stand in, nearest first. Where nothing is said, the constants of any chip on the
 * same kind of fabric do, and sm_calibration_origin_of tells so. */
#include "calibration_table.h"
#include <assert.h>
#include <string.h>

/* A list of calibrations and the software sought in it; NULL: any. */
typedef struct shelf {
    const sm_calibration *list;
    size_t n;
    const char *software;
} shelf;

static const sm_calibration *find_exact(const shelf *s, const char *name, size_t length) {
    for (size_t i = 0; i < s->n; i++) {
        const sm_calibration *c = &s->list[i];
        bool named = strlen(c->chip) == length && strncmp(c->chip, name, length) == 0;
        if (named && (!s->software || strcmp(c->software, s->software) == 0)) return c;
    }
    return NULL;
}

/* The first of the words under which the shelf has a calibration. */
static const sm_calibration *find_words(const shelf *s, const char *words) {
    const sm_calibration *found = NULL;
    const char *word;
    for (size_t n; !found && words && (n = sm_next_word(&words, &word)) > 0;)
        found = find_exact(s, word, n);
    return found;
}

/* As find_words; a word that is the name of a chip of the catalogue stands for all of its own. */
static const sm_calibration *find_chips(const shelf *s, const char *words) {
    const sm_calibration *found = NULL;
    const char *word;
    for (size_t n; !found && words && (n = sm_next_word(&words, &word)) > 0;) {
        const sm_chip *chip = sm_chip_find(word, n);
        found = find_exact(s, word, n);
        if (!found && chip && strlen(chip->name) == n) found = find_words(s, chip->calibration);
    }
    return found;
}

static const sm_calibration *find_own(const shelf *s, const sm_chip *chip) {
    const sm_calibration *found = find_chips(s, chip->calibration);
    return found ? found : find_chips(s, chip->name);
}

static shelf shipped(const char *software) {
    return (shelf){sm_shipped_calibrations, sm_shipped_calibration_count, software};
}

const sm_calibration *sm_calibration_find(const char *name, const char *software) {
    shelf s = shipped(software ? software : "default");
    return find_chips(&s, name);
}

const sm_calibration *sm_calibration_for(const sm_chip *chip, const char *software) {
    assert(chip && software);
    shelf s = shipped(software);
    const sm_calibration *found = find_own(&s, chip);
    return found ? found : find_chips(&s, chip->constants_like);
}

/* Those that stand for a whole kind of machine. */
static const char *by_fabric(const sm_chip *chip) {
    if (chip->fabric == SM_FABRIC_TORUS) return "tpu";
    return chip->fabric == SM_FABRIC_NONE ? "cpu" : "h100";
}

const sm_calibration *sm_calibration_of(const sm_chip *chip) {
    shelf s = shipped("default");
    const sm_calibration *found = sm_calibration_for(chip, "default");
    if (!found) found = find_words(&s, by_fabric(chip));
    assert(found);
    return found;
}

const sm_calibration *sm_calibration_among(const sm_calibration *list, size_t n,
                                           const sm_chip *chip, const char *software) {
    return find_own(&(shelf){list, n, software}, chip);
}

sm_constants_origin sm_calibration_origin_of(const sm_calibration *c, const sm_chip *chip) {
    shelf only = {c, 1, NULL};
    if (find_own(&only, chip)) return SM_CONSTANTS_OWN;
    if (find_chips(&only, chip->constants_like)) return SM_CONSTANTS_OF_RELATIVE;
    return SM_CONSTANTS_OF_FABRIC;
}

bool sm_calibration_is_usual(const sm_calibration *c, const sm_chip *chip) {
    const sm_calibration *usual = sm_calibration_of(chip);
    bool same = true;
    for (int k = 0; k < SM_CONSTANT_COUNT && same; k++)
        same = sm_calibration_get(c, (sm_constant)k) == sm_calibration_get(usual, (sm_constant)k);
    return same;
}

bool sm_calibration_is_own(const sm_calibration *c, const sm_chip *chip) {
    return sm_calibration_origin_of(c, chip) == SM_CONSTANTS_OWN;
}
