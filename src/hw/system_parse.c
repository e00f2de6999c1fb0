/* Systems: the text CHIP[:SHAPE][xNslices] and what it stands for. */
#include "scalemodel/hw.h"
#include <ctype.h>
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Fat trees. A unit of level i holds `degree` children, each on a link of child_bytes_per_s_oneway.
 * A system may use a part of a unit: of a node with k of its n chips, k/n of the NICs are counted
 * (each chip drives its own NIC); above the node a child never sends faster than what is below it:
 * W_i = min(W_i of the full tree, D_{i-1} W_{i-1}). */

/* State of the filling: the link out of the unit built so far. */
typedef struct filling {
    const sm_chip *chip;
    sm_system *system;
    double egress;
} filling;

static void push_level(filling *f, int i, int size) {
    const sm_tree_level *tree = &f->chip->tree[i];
    double full = tree->child_bytes_per_s_oneway.value;
    double link = i < 1 || full < f->egress ? full : f->egress;
    if (size > 1) {
        sm_level *level = &f->system->level[f->system->levels++];
        *level = (sm_level){.kind = SM_LEVEL_SWITCH,
                            .size = size,
                            .bytes_per_s_oneway = link,
                            .hop_latency_s = tree->hop_latency_s.value,
                            .mesh = tree->full_mesh ? tree->degree : 0,
                            .in_network_reduction = tree->in_network_reduction};
        strncpy(level->name, tree->name, sizeof level->name - 1);
    }
    if (i == 0 && f->chip->tree_levels > 1)
        f->egress = f->chip->tree[1].child_bytes_per_s_oneway.value * size / tree->degree;
    else f->egress = link * size;
}

/* Sizes innermost first: the first n - 1 are taken as they are, the last counts the units that the
 * tree is then filled with. Writes system->level and ->levels. False when the tree has no level
 * left for them. 1 <= n <= tree_levels + 1, and each size but the last is at most its degree. */
static bool tree_fill(const sm_chip *chip, const int *size, int n, sm_system *system) {
    filling f = {chip, system, 0};
    int levels = chip->tree_levels, count = size[n - 1], i = 0;
    assert(n >= 1 && n <= levels + 1 && levels <= SM_MAX_TREE);
    for (; i < n - 1; i++) push_level(&f, i, size[i]);
    for (; i < levels; i++) {
        /* the outermost level grows, except that chips beyond a lone node have no network */
        bool grows = i == levels - 1 && i > 0;
        int most = chip->tree[i].degree, degree = grows || count < most ? count : most;
        while (degree > 1 && count % degree != 0) degree--;
        push_level(&f, i, degree);
        count = degree > 1 ? count / degree : count;
    }
    return count == 1;
}

/* Slices of a torus. The rules of wraparound and the shapes come from Google Cloud's tables of
 * slice shapes (docs.cloud.google.com/tpu/docs/v4, v5e, v5p, v6e, tpu7x) and How To Scale Your
 * Model, part 2: v5e and v6e wrap an axis iff its length is 16; v4, v5p and v7 are built of 4x4x4
 * cubes joined by optical switches and wrap every axis iff all are multiples of 4. */

enum { CUBE = 4 };

static void sorted(const int *from, int dims, int *to) {
    assert(dims <= 3);
    for (int i = 0; i < dims; i++) {
        int at = i;
        for (; at > 0 && to[at - 1] > from[i]; at--) to[at] = to[at - 1];
        to[at] = from[i];
    }
}

static bool all_multiples_of(const int *shape, int dims, int factor) {
    for (int i = 0; i < dims; i++)
        if (shape[i] % factor != 0) return false;
    return dims > 0;
}

static bool is_pod(const sm_chip *chip, const int *shape, int dims) {
    int a[3], b[3];
    if (dims != chip->torus_axes) return false;
    sorted(shape, dims, a);
    sorted(chip->pod_shape, dims, b);
    return memcmp(a, b, sizeof *a * (size_t)dims) == 0;
}

bool sm_wraps(const sm_chip *chip, const int *shape, int dims, int axis) {
    if (dims < 1 || dims > 3 || axis < 0 || axis >= dims || shape[axis] < 3) return false;
    switch (chip->wrap_rule) {
    case SM_WRAP_NEVER: return false;
    case SM_WRAP_AXIS_16: return shape[axis] == 16;
    case SM_WRAP_ALL_MULTIPLE_4:
        return dims == chip->torus_axes && all_multiples_of(shape, dims, CUBE);
    case SM_WRAP_FULL_POD: return is_pod(chip, shape, dims);
    case SM_WRAP_ALWAYS: return true;
    }
    return false;
}

static int64_t volume(const int *shape, int dims) {
    int64_t n = 1;
    for (int i = 0; i < dims; i++) n *= shape[i];
    return n;
}

static int torus_pod_chips(const sm_chip *chip) {
    return (int)volume(chip->pod_shape, chip->torus_axes);
}

/* Whether shape (torus_axes lengths, all >= 1) fits in a pod: inside the pod's box in some order of
 * the axes, or made of whole 4x4x4 cubes, which optical switches join in any arrangement. */
static bool torus_fits(const sm_chip *chip, const int *shape) {
    int a[3] = {0}, b[3] = {0};
    int dims = chip->torus_axes;
    assert(dims == 2 || dims == 3);
    if (volume(shape, dims) > volume(chip->pod_shape, dims)) return false;
    if (chip->wrap_rule == SM_WRAP_ALL_MULTIPLE_4 && all_multiples_of(shape, dims, CUBE))
        return true;
    sorted(shape, dims, a);
    sorted(chip->pod_shape, dims, b);
    for (int i = 0; i < dims; i++)
        if (a[i] > b[i]) return false;
    return true;
}

/* Whether slices of this shape are sold: whole cubes or a power-of-two part of one on chips with
 * optical switches; power-of-two axes on the others (or the pod itself). */
static bool is_slice(const sm_chip *chip, const int *shape) {
    int dims = chip->torus_axes;
    if (is_pod(chip, shape, dims)) return true;
    bool cubes = chip->wrap_rule == SM_WRAP_ALL_MULTIPLE_4;
    if (cubes && all_multiples_of(shape, dims, CUBE)) return torus_fits(chip, shape);
    for (int i = 0; i < dims; i++)
        if (sm_odd_part(shape[i]) != 1 || (cubes && shape[i] > CUBE)) return false;
    return torus_fits(chip, shape);
}

/* A slice has a short diameter and a wide bisection when it is nearly a cube. Of all a <= b <= c
 * with a b c = chips that are slices, the one of least a + b + c. */
static bool torus_slice(const sm_chip *chip, int chips, int *shape) {
    int best_sum = INT_MAX;
    if (chip->torus_axes != 2 && chip->torus_axes != 3) return false;
    int pod = torus_pod_chips(chip);
    if (chips < 1 || chips > pod) return false;
    bool cubes = chip->wrap_rule == SM_WRAP_ALL_MULTIPLE_4;
    if (!cubes && chips != pod && sm_odd_part(chips) != 1) return false;
    int a_most = chip->torus_axes == 3 ? chips : 1;
    for (int a = 1; a <= a_most && (int64_t)a * a * a <= chips; a++) {
        if (chips % a != 0) continue;
        for (int b = a, rest = chips / a; (int64_t)b * b <= rest; b++) {
            if (rest % b != 0) continue;
            int three[3] = {a, b, rest / b};
            const int *tried = three + (chip->torus_axes == 2);
            if (a + b + rest / b >= best_sum || !is_slice(chip, tried)) continue;
            best_sum = a + b + rest / b;
            memcpy(shape, tried, sizeof *shape * (size_t)chip->torus_axes);
        }
    }
    if (best_sum == INT_MAX) return false;
    /* Ascending as Google writes them, with the axes of length 1 last (2x2x1); a pod as its maker
     * does.
     */
    int dims = chip->torus_axes, up[3] = {0}, n = 0;
    sorted(shape, dims, up);
    for (int i = 0; i < dims; i++)
        if (up[i] > 1) shape[n++] = up[i];
    while (n < dims) shape[n++] = 1;
    if (is_pod(chip, shape, dims)) memcpy(shape, chip->pod_shape, sizeof *shape * (size_t)dims);
    return true;
}

/* The natural shape of any count: one slice, or the largest equal slices. False when there is none.
 */
static bool torus_natural(const sm_chip *chip, int chips, int *shape, int *slices) {
    int pod = torus_pod_chips(chip);
    *slices = 1;
    if (chips <= pod) return torus_slice(chip, chips, shape);
    for (int each = pod; each >= 1; each--) {
        if (chips % each != 0 || !torus_slice(chip, each, shape)) continue;
        *slices = chips / each;
        return true;
    }
    return false;
}

/* The nearest counts that have a natural shape, at most a pod: 0 when there is none on that side.
 */
static void torus_nearest_counts(const sm_chip *chip, int chips, int *below, int *above) {
    int shape[3], pod = torus_pod_chips(chip);
    assert(chips >= 1);
    int low = chips - 1, high = chips + 1;
    while (low > 0 && !torus_slice(chip, low, shape)) low--;
    while (high <= pod && !torus_slice(chip, high, shape)) high++;
    *below = low > 0 ? low : 0;
    *above = high <= pod ? high : 0;
}

enum { MAX_CHIPS = 1 << 20, MAX_NUMBERS = SM_MAX_TREE + 1 };

/* The text as written: sizes outer to inner for switches, in order of the axes for a torus. */
typedef struct written {
    const sm_source *source;
    sm_span name, shape, whole; /* shape ends before the number of slices, whole after it */
    int n, size[MAX_NUMBERS];
    sm_span span[MAX_NUMBERS];
    int slices; /* 0 when not written */
} written;

static sm_span from_to(size_t from, size_t to) { return (sm_span){from, to - from}; }

static sm_status fail_here(const sm_cursor *c, sm_error *err, const char *expected) {
    sm_span here = {c->at, c->at < c->source->length ? 1 : 0};
    return sm_fail_at(err, c->source, here, "expected %s", expected);
}

static sm_status read_number(sm_cursor *c, written *w, sm_error *err) {
    int64_t value = 0;
    sm_cursor_blanks(c);
    sm_span digits = sm_cursor_digits(c);
    if (digits.length == 0)
        return fail_here(c, err, "a number: a shape is written as in 16x20x28, 128x8 or 8960");
    if (w->n == MAX_NUMBERS)
        return sm_fail_at(err, c->source, digits, "a shape has at most %d numbers",
                          MAX_NUMBERS - 1);
    sm_status status = sm_integer_parse(c->source, digits, 1, MAX_CHIPS, &value, err);
    if (status != SM_OK) return status;
    w->span[w->n] = digits;
    w->size[w->n++] = (int)value;
    w->shape = w->whole = from_to(w->span[0].offset, digits.offset + digits.length);
    return SM_OK;
}

static sm_status read_shape(sm_cursor *c, written *w, sm_error *err) {
    do {
        sm_status status = read_number(c, w, err);
        if (status != SM_OK) return status;
    } while (sm_cursor_accept(c, 'x') || sm_cursor_accept(c, 'X'));
    if (!sm_cursor_accept_word(c, "slices") && !sm_cursor_accept_word(c, "slice"))
        return sm_cursor_end(c) ? SM_OK : fail_here(c, err, "\"x\", \"slices\" or the end");
    if (w->n == 1)
        return sm_fail_at(
            err, c->source, w->span[0],
            "write the shape of a slice before the number of slices, as in 16x16x4slices");
    w->slices = w->size[--w->n];
    w->shape = from_to(w->span[0].offset, w->span[w->n - 1].offset + w->span[w->n - 1].length);
    return sm_cursor_end(c) ? SM_OK : fail_here(c, err, "nothing after \"slices\"");
}

static sm_status read_text(const sm_source *source, written *w, sm_error *err) {
    sm_cursor c = {source, 0};
    *w = (written){.source = source};
    sm_cursor_blanks(&c);
    size_t start = c.at;
    while (c.at < source->length && source->text[c.at] != ':') c.at++;
    w->name = sm_source_trim(source, start, c.at);
    if (w->name.length == 0)
        return fail_here(&c, err, "a system such as tpu-v5p:16x20x28 or h100-sxm:128x8");
    if (sm_cursor_accept(&c, ':')) return read_shape(&c, w, err);
    return sm_cursor_end(&c) ? SM_OK : fail_here(&c, err, "\":\" and a shape, or the end");
}

static const sm_chip *find_name(const char *word, size_t length, const sm_chip *chips, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (sm_is_called(chips[i].name, chips[i].aliases, word, length)) return &chips[i];
    return sm_chip_find(word, length);
}

/* The chip of "h100x8", "h100-8", "8xh100", "8 h100", and where its number stands; NULL: it is none
 * such. */
static const sm_chip *find_counted(const written *w, const sm_chip *chips, size_t n,
                                   sm_span *number) {
    const char *word = w->source->text + w->name.offset;
    size_t first = 0, last = w->name.length;
    while (first < last && isdigit((unsigned char)word[first])) first++;
    if (first > 0) {
        *number = (sm_span){w->name.offset, first};
        while (first < last && strchr("xX* ", word[first])) first++;
    } else {
        while (last > 0 && isdigit((unsigned char)word[last - 1])) last--;
        *number = (sm_span){w->name.offset + last, w->name.length - last};
        while (last > 0 && strchr("xX*- ", word[last - 1])) last--;
    }
    return number->length && last > first ? find_name(word + first, last - first, chips, n) : NULL;
}

static sm_status fail_unknown(const written *w, const sm_chip *chips, size_t n, sm_error *err) {
    enum { MOST = 512 };
    const char *names[MOST];
    size_t count = 0;
    for (size_t i = 0; chips && i < n && count < MOST; i++) names[count++] = chips[i].name;
    const sm_chip *chip;
    for (size_t i = 0; count < MOST && (chip = sm_chip_at(i)) != NULL; i++)
        names[count++] = chip->name;
    const char *word = w->source->text + w->name.offset;
    const char *blank = memchr(word, ' ', w->name.length);
    if (blank && find_name(word, (size_t)(blank - word), chips, n)) {
        sm_cursor c = {w->source, w->name.offset + (size_t)(blank - word) + 1};
        return fail_here(&c, err, "\":\" and a shape, or the end");
    }
    sm_span number;
    chip = find_counted(w, chips, n, &number);
    if (chip)
        return sm_fail_at(err, w->source, w->name, "unknown chip \"%.*s\"; did you mean %s:%.*s?",
                          (int)w->name.length, word, chip->name, (int)number.length,
                          w->source->text + number.offset);
    const char *nearest = sm_nearest(word, w->name.length, names, count);
    int shown = w->name.length > 40 ? 40 : (int)w->name.length;
    if (nearest)
        return sm_fail_at(err, w->source, w->name, "unknown chip \"%.*s\"; the nearest is \"%s\"",
                          shown, word, nearest);
    return sm_fail_at(err, w->source, w->name,
                      "unknown chip \"%.*s\": 'chip' lists all, --system FILE takes your own",
                      shown, word);
}

/* "v6e-8", "v5p-128": Google's names of slices, which count TensorCores. */
static const sm_chip *find_slice(written *w, const sm_chip *chips, size_t n) {
    const char *word = w->source->text + w->name.offset;
    size_t dash = w->name.length;
    int64_t count;
    sm_error none = {.status = SM_OK};
    while (dash > 0 && word[dash - 1] != '-') dash--;
    if (dash < 2 || dash == w->name.length || w->n > 0) return NULL;
    const sm_chip *chip = find_name(word, dash - 1, chips, n);
    sm_span number = {w->name.offset + dash, w->name.length - dash};
    if (!chip || chip->fabric != SM_FABRIC_TORUS || chip->cores < 1 ||
        sm_integer_parse(w->source, number, 1, 1 << 24, &count, &none) || count % chip->cores != 0)
        return NULL;
    w->n = 1;
    w->size[0] = (int)(count / chip->cores);
    w->span[0] = w->shape = number;
    return chip;
}

static const sm_chip *find_chip(written *w, const sm_chip *chips, size_t n) {
    const char *word = w->source->text + w->name.offset;
    const sm_chip *chip = find_name(word, w->name.length, chips, n);
    return chip ? chip : find_slice(w, chips, n);
}

/* ---- torus ---- */

static sm_status fail_too_large(const written *w, const sm_chip *chip, sm_error *err) {
    char pod[48];
    const int *p = chip->pod_shape;
    int at = snprintf(pod, sizeof pod, "%dx%d", p[0], p[1]);
    if (chip->torus_axes == 3) snprintf(pod + at, sizeof pod - (size_t)at, "x%d", p[2]);
    return sm_fail_at(err, w->source, w->shape,
                      "this slice is larger than a pod of %s, which is %s (%d chips); more chips "
                      "are several slices, as in %s:%sx2slices",
                      chip->name, pod, torus_pod_chips(chip), chip->name, pod);
}

static sm_status fail_no_slice(const written *w, const sm_chip *chip, sm_error *err) {
    int below, above;
    torus_nearest_counts(chip, w->size[0], &below, &above);
    if (below > 0 && above > 0)
        return sm_fail_at(err, w->source, w->shape,
                          "no slice of %s has %d chips; the nearest have "
                          "%d and %d",
                          chip->name, w->size[0], below, above);
    return sm_fail_at(err, w->source, w->shape, "no slice of %s has %d chips; the nearest has %d",
                      chip->name, w->size[0], below > 0 ? below : above);
}

static sm_status natural_torus(const written *w, const sm_chip *chip, int *shape, int *slices,
                               sm_error *err) {
    int count = w->n ? w->size[0] : 1;
    if (w->slices > 0) {
        *slices = w->slices;
        if (count > torus_pod_chips(chip)) return fail_too_large(w, chip, err);
        return torus_slice(chip, count, shape) ? SM_OK : fail_no_slice(w, chip, err);
    }
    return torus_natural(chip, count, shape, slices) ? SM_OK : fail_no_slice(w, chip, err);
}

static sm_status torus_shape(const written *w, const sm_chip *chip, int *shape, int *slices,
                             sm_error *err) {
    if (w->n <= 1) return natural_torus(w, chip, shape, slices, err);
    if (w->n > chip->torus_axes)
        return sm_fail_at(err, w->source, w->shape,
                          "%s is a torus of %d axes and this shape has %d; several slices are "
                          "written as in 4x4x2slices",
                          chip->name, chip->torus_axes, w->n);
    for (int i = 0; i < chip->torus_axes; i++) shape[i] = i < w->n ? w->size[i] : 1;
    *slices = w->slices > 0 ? w->slices : 1;
    return torus_fits(chip, shape) ? SM_OK : fail_too_large(w, chip, err);
}

/* A level per axis longer than 1, then the network between slices: a child of it is a slice, whose
 * chips all drive their own share. */
static void torus_levels(const int *shape, int slices, sm_system *s) {
    const sm_chip *chip = &s->chip;
    int dims = chip->torus_axes, chips_of_slice = s->chips / slices;
    for (int i = 0; i < dims; i++) {
        if (shape[i] == 1 && (s->levels > 0 || i < dims - 1 || slices > 1)) continue;
        s->level[s->levels++] =
            (sm_level){.kind = SM_LEVEL_TORUS,
                       .name = "ici",
                       .size = shape[i],
                       .wrap = sm_wraps(chip, shape, dims, i),
                       .bytes_per_s_oneway = chip->link_bytes_per_s_oneway.value,
                       .hop_latency_s = chip->hop_latency_s.value};
    }
    s->torus_dims = s->levels;
    assert(s->levels <= SM_MAX_LEVELS - 1);
    if (slices > 1)
        s->level[s->levels++] =
            (sm_level){.kind = SM_LEVEL_SWITCH,
                       .name = "dcn",
                       .size = slices,
                       .bytes_per_s_oneway = chip->dcn_bytes_per_s_oneway.value * chips_of_slice,
                       .hop_latency_s = chip->dcn_latency_s.value};
}

static void torus_text(const int *shape, sm_system *s) {
    int dims = s->chip.torus_axes;
    int at = snprintf(s->text, sizeof s->text, "%s", s->chip.name);
    assert(dims <= 3);
    if (s->chips == 1) return;
    for (int i = 0; i < dims; i++)
        at += snprintf(s->text + at, sizeof s->text - (size_t)at, "%c%d", i ? 'x' : ':', shape[i]);
    if (s->slices > 1) snprintf(s->text + at, sizeof s->text - (size_t)at, "x%dslices", s->slices);
}

static sm_status fail_too_many(const written *w, sm_error *err) {
    return sm_fail_at(err, w->source, w->whole, "this system has more than %d chips", MAX_CHIPS);
}

static sm_status build_torus(const written *w, sm_system *s, sm_error *err) {
    int shape[3] = {1, 1, 1}, slices = 1;
    if (s->chip.torus_axes < 2 || s->chip.torus_axes > 3)
        return sm_fail(err, SM_INTERNAL, "chip %s has %d torus axes", s->chip.name,
                       s->chip.torus_axes);
    sm_status status = torus_shape(w, &s->chip, shape, &slices, err);
    if (status != SM_OK) return status;
    if ((int64_t)shape[0] * shape[1] * shape[2] * slices > MAX_CHIPS) return fail_too_many(w, err);
    if (slices > 1 && s->chip.dcn_bytes_per_s_oneway.value <= 0)
        return sm_fail_at(err, w->source, w->whole, "no network between slices is known for %s",
                          s->chip.name);
    s->slices = slices;
    s->chips = shape[0] * shape[1] * shape[2] * slices;
    torus_levels(shape, slices, s);
    torus_text(shape, s);
    return SM_OK;
}

/* ---- switches ---- */

static sm_status fail_level_too_large(const written *w, const sm_chip *chip, int level, int at,
                                      sm_error *err) {
    return sm_fail_at(err, w->source, w->span[at],
                      "the %s level of %s holds at most %d, not %d; sizes are written outer to "
                      "inner, as in 128x%d",
                      chip->tree[level].name, chip->name, chip->tree[level].degree, w->size[at],
                      chip->tree[0].degree);
}

/* As few as hold so many chips, alike in each: full, or whole hosts (256 chips of domains of 72 are
 * 64 of each of four). 0: none are. */
static int nodes_of(const sm_chip *chip, int count) {
    const int node = chip->tree[0].degree, host = chip->chips_per_host;
    const int nodes = count / node + (count % node > 0);
    bool full = count % node == 0, hosts = host > 0 && count / nodes % host == 0;
    return count % nodes == 0 && (full || hosts) ? nodes : 0;
}

static sm_status fail_count(const written *w, const sm_chip *chip, int count, sm_error *err) {
    int less = count, more = count; /* a full node on either side ends the search */
    while (!nodes_of(chip, less)) less--;
    while (!nodes_of(chip, more)) more++;
    return sm_fail_at(err, w->source, w->shape,
                      "%d chips are not a whole number of nodes: a node of %s has %d; the nearest "
                      "counts are %d and %d",
                      count, chip->name, chip->tree[0].degree, less, more);
}

/* The written sizes innermost first, checked against the degrees of the tree. */
static sm_status switch_sizes(const written *w, const sm_chip *chip, int *size, int *n,
                              sm_error *err) {
    *n = w->n ? w->n : 1;
    size[0] = w->n ? w->size[w->n - 1] : 1;
    if (w->slices > 0)
        return sm_fail_at(err, w->source, w->shape,
                          "%s has no slices: its groups are written "
                          "outer to inner, as in 128x%d",
                          chip->name, chip->tree[0].degree);
    if (*n > chip->tree_levels)
        return sm_fail_at(err, w->source, w->shape,
                          "%s has %d levels of switches and this shape "
                          "has %d numbers",
                          chip->name, chip->tree_levels, *n);
    if (w->n <= 1 && size[0] > chip->tree[0].degree) {
        const int count = w->size[0], nodes = nodes_of(chip, count);
        if (!nodes) return fail_count(w, chip, count, err);
        size[1] = nodes;
        size[0] = count / nodes;
        *n = 2;
    }
    for (int i = 1; i < w->n; i++) size[i] = w->size[w->n - 1 - i];
    for (int i = 0; i < *n - 1 || i == 0; i++)
        if (size[i] > chip->tree[i].degree)
            return fail_level_too_large(w, chip, i, w->n - 1 - i, err);
    return SM_OK;
}

static bool same_levels(const sm_system *a, const sm_system *b) {
    if (a->levels != b->levels) return false;
    for (int i = 0; i < a->levels; i++)
        if (a->level[i].size != b->level[i].size || strcmp(a->level[i].name, b->level[i].name) != 0)
            return false;
    return true;
}

/* NODESxNODE when the tree fills it the same way, otherwise all numbers as written. */
static void switch_text(const int *size, int n, sm_system *s) {
    int at = snprintf(s->text, sizeof s->text, "%s", s->chip.name);
    if (s->chips == 1) return;
    while (n > 1 && size[n - 1] == 1) n--;
    if (n > 2) {
        sm_system twin = {.levels = 0};
        int two[2] = {size[0], s->chips / size[0]};
        if (tree_fill(&s->chip, two, 2, &twin) && same_levels(&twin, s)) {
            snprintf(s->text + at, sizeof s->text - (size_t)at, ":%dx%d", two[1], two[0]);
            return;
        }
    }
    for (int i = n - 1; i >= 0; i--)
        at += snprintf(s->text + at, sizeof s->text - (size_t)at, "%c%d", i == n - 1 ? ':' : 'x',
                       size[i]);
}

static sm_status build_switch(const written *w, sm_system *s, sm_error *err) {
    int size[MAX_NUMBERS] = {0}, n = 0;
    int64_t chips = 1;
    sm_status status = switch_sizes(w, &s->chip, size, &n, err);
    if (status != SM_OK) return status;
    for (int i = 0; i < n; i++) {
        chips *= size[i];
        if (chips > MAX_CHIPS) return fail_too_many(w, err);
    }
    s->slices = 1;
    s->chips = (int)chips;
    if (!tree_fill(&s->chip, size, n, s))
        return sm_fail_at(err, w->source, w->shape, "no network above a node of %d is known for %s",
                          s->chip.tree[0].degree, s->chip.name);
    if (s->levels == 0) {
        s->levels = 1;
        s->level[0] =
            (sm_level){.kind = SM_LEVEL_SWITCH,
                       .size = 1,
                       .bytes_per_s_oneway = s->chip.tree[0].child_bytes_per_s_oneway.value,
                       .hop_latency_s = s->chip.tree[0].hop_latency_s.value};
        snprintf(s->level[0].name, sizeof s->level[0].name, "%.15s", s->chip.tree[0].name);
    }
    switch_text(size, n, s);
    return SM_OK;
}

/* ---- no fabric ---- */

static sm_status build_alone(const written *w, sm_system *s, sm_error *err) {
    if (w->n > 1 || w->slices > 0 || (w->n == 1 && w->size[0] != 1))
        return sm_fail_at(err, w->source, w->shape,
                          "%s has no network in the catalogue: only one "
                          "chip of it can be asked for",
                          s->chip.name);
    s->chips = s->slices = s->levels = 1;
    s->level[0] = (sm_level){.kind = SM_LEVEL_SWITCH, .name = "none", .size = 1};
    snprintf(s->text, sizeof s->text, "%s", s->chip.name);
    return SM_OK;
}

static sm_status build(const written *w, sm_system *s, sm_error *err) {
    switch (s->chip.fabric) {
    case SM_FABRIC_TORUS: return build_torus(w, s, err);
    case SM_FABRIC_SWITCH: return build_switch(w, s, err);
    case SM_FABRIC_NONE: return build_alone(w, s, err);
    }
    return sm_fail(err, SM_INTERNAL, "chip %s has an unknown kind of fabric", s->chip.name);
}

sm_status sm_system_parse(const sm_source *source, const sm_chip *chips, size_t n_chips,
                          sm_system *system, sm_error *err) {
    written w;
    sm_status status = read_text(source, &w, err);
    if (status != SM_OK) return status;
    const sm_chip *chip = find_chip(&w, chips, n_chips);
    if (!chip) return fail_unknown(&w, chips, n_chips, err);
    *system = (sm_system){.chip = *chip};
    return build(&w, system, err);
}

sm_status sm_system_resize(const sm_system *system, int chips, sm_system *out, sm_error *err) {
    char text[24];
    snprintf(text, sizeof text, "%d", chips);
    sm_source source = sm_source_of("chips", text);
    written w = {.source = &source};
    sm_cursor c = {&source, 0};
    sm_status status = read_shape(&c, &w, err);
    if (status != SM_OK) return status;
    sm_system resized = {.chip = system->chip};
    status = build(&w, &resized, err);
    if (status == SM_OK) *out = resized;
    return status;
}

/* ---- parts ---- */

static int compare_int(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Sizes of a torus of so many dimensions, or of the innermost switches, least first. */
static void sorted_sizes(const sm_system *s, int dims, int size[SM_MAX_LEVELS]) {
    for (int i = 0; i < SM_MAX_LEVELS; i++) size[i] = i < s->levels ? s->level[i].size : 1;
    if (dims > 0) qsort(size, (size_t)dims, sizeof *size, compare_int);
}

/* Has the whole each level of the part, and none of them smaller? A torus may be turned. */
static bool lies_in(const sm_system *part, const sm_system *whole) {
    int inner[SM_MAX_LEVELS], outer[SM_MAX_LEVELS];
    if (part->torus_dims > whole->torus_dims || part->levels > whole->levels) return false;
    sorted_sizes(part, whole->torus_dims, inner);
    sorted_sizes(whole, whole->torus_dims, outer);
    for (int i = 0; i < whole->levels; i++)
        if (inner[i] > outer[i] ||
            (i < part->levels && strcmp(part->level[i].name, whole->level[i].name) != 0))
            return false;
    return true;
}

/* Fewer of the same slices. */
static sm_status fewer_slices(const sm_system *whole, int slices, sm_system *part, sm_error *err) {
    const sm_source source = sm_source_of("slices", "");
    written w = {.source = &source, .n = whole->chip.torus_axes, .slices = slices};
    for (int i = 0; i < w.n; i++) w.size[i] = i < whole->torus_dims ? whole->level[i].size : 1;
    *part = (sm_system){.chip = whole->chip};
    return build_torus(&w, part, err);
}

bool sm_system_part(const sm_system *whole, int chips, sm_system *part) {
    sm_error none = {.status = SM_OK};
    int slice = whole->chips / whole->slices;
    bool slices = whole->slices > 1 && chips % slice == 0;
    if (chips < 1 || chips > whole->chips) return false;
    sm_status status = slices ? fewer_slices(whole, chips / slice, part, &none)
                              : sm_system_resize(whole, chips, part, &none);
    if (status || !lies_in(part, whole)) return false;
    for (int i = 0; i < part->levels; i++) {
        part->level[i].bytes_per_s_oneway = whole->level[i].bytes_per_s_oneway;
        part->level[i].hop_latency_s = whole->level[i].hop_latency_s;
        part->level[i].in_network_reduction = whole->level[i].in_network_reduction;
    }
    return true;
}

bool sm_system_in_part(const sm_system *whole, int chips) {
    return chips < whole->chips && whole->chips % chips != 0;
}
