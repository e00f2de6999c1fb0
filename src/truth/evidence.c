/* What measured rows come near to a question.
 *
 * What sets them apart adds to the error as a variance of its own:
 *     error^2 = (error of the rows)^2 + sum of apart^2,
 * where apart is what left-out rows were off by more (sm_evidence_apart, of the fits:
 * scripts/fit-serving.c, scripts/fit-steps.c). That rows without experts are predicted better than
 * is usual says nothing of a model with experts, nor the other way round. */
#include "evidence_table.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const sm_evidence_apart *sm_evidence_apart_of(sm_evidence_use use, bool software_known) {
    return &sm_evidence_apart_table[use][software_known ? 0 : 1];
}

size_t sm_evidence_count(void) { return sm_evidence_table_count; }
const sm_evidence *sm_evidence_at(size_t i) {
    return i < sm_evidence_table_count ? &sm_evidence_table[i] : NULL;
}

/* ---- how alike ---- */

void sm_evidence_layout(const sm_plan *plan, bool experts, char out[SM_EVIDENCE_LAYOUT]) {
    const struct {
        char letter;
        int degree;
    } of[] = {{'t', plan->tensor}, {'e', plan->expert}, {'f', plan->fsdp}, {'p', plan->pipeline}};
    size_t used = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].degree > 1 || i == 0)
            used += (size_t)snprintf(out + used, SM_EVIDENCE_LAYOUT - used, "%c%d", of[i].letter,
                                     of[i].degree);
    if (experts && plan->tensor > 1 && !plan->expert_tensor)
        snprintf(out + used, SM_EVIDENCE_LAYOUT - used, "w");
}

/* Whether the layouts of a range, its last part, are told, and this one (if any) is not among them.
 */
static bool is_other_layout(const char *range, const char *layout) {
    size_t n = strlen(layout);
    const char *word = n > 0 ? strstr(range, "layouts ") : NULL;
    if (!word) return false;
    for (word = strchr(word, ' '); word; word = strchr(word + 1, ' '))
        if (strncmp(word + 1, layout, n) == 0 && (!word[1 + n] || word[1 + n] == ' ')) return false;
    return true;
}

/* Sources leave sizes open, and count the layer that predicts tokens or do not. */
#define ALIKE 0.03
static const char *type_words(sm_dtype type) {
    switch (type) {
    case SM_FP16: return "bf16";
    case SM_MXFP4:
    case SM_NVFP4: return "fp4";
    case SM_DTYPE_COUNT: return "";
    default: return sm_dtype_name(type);
    }
}

static void add_beyond(sm_evidence_near *n, const char *what) {
    size_t used = strlen(n->beyond);
    snprintf(n->beyond + used, sizeof n->beyond - used, "%s%s", used ? ", " : "", what);
}

/* Letters that both names begin with, of any case. */
static size_t common_letters(const char *a, const char *b) {
    size_t n = 0;
    while (isalpha((unsigned char)a[n]) &&
           tolower((unsigned char)a[n]) == tolower((unsigned char)b[n]))
        n++;
    return n;
}

static double ratio(double a, double b) { return a > 0.0 && b > 0.0 ? fabs(log(a / b)) : 3.0; }

static int experts_of(const sm_model *m) {
    int most = 0;
    for (int i = 0; i < m->kinds; i++)
        if (m->kind[i].E > most) most = m->kind[i].E;
    return most;
}

/* Which of two that are as far off is nearer: sizes of the model, its family and kind, the strength
 * of the chip, whether it is the software itself or another version of it, how many rows. Small
 * beside what sets them apart.
 */
static double rank_of(const sm_evidence_question *q, const sm_evidence_near *n, double params,
                      double chip_far) {
    const sm_evidence *e = n->of;
    double far = chip_far + 0.01 / (1 + e->rows);
    if (!n->same_model) {
        far += 0.01 * ratio(e->params, params);
        far += common_letters(e->model, q->model->name) < 3 ? 0.02 : 0.0;
        far += (e->experts > 0) != (experts_of(q->model) > 0) ? 0.04 : 0.0;
    }
    if (!n->same_software && q->software)
        far += common_letters(e->software, q->software) < 3 ? 0.06 : 0.001;
    return far;
}

/* ---- the nearest ---- */

/* The chip of evidence, beside that of the question: chips that are joined otherwise, or are ten
 * times as strong, say nothing of it. */
#define NEAR 2.3
#define SAYS_NOTHING 10.0 /* further than all that does */
typedef struct machine {
    const char *name;
    bool same, same_constants, near, asked_own;
    double far;
} machine;
static machine machine_of(const char *name, const sm_chip *asked, const sm_calibration *its) {
    machine m = {.name = name, .same = strcmp(name, asked->name) == 0, .far = 0.3};
    m.asked_own = sm_calibration_is_own(its, asked);
    const sm_chip *chip = sm_chip_find(name, strlen(name));
    double peak =
        chip ? ratio(chip->flops_per_s[SM_BF16].value, asked->flops_per_s[SM_BF16].value) : 0.0;
    double memory =
        chip ? ratio(chip->memory_bytes_per_s.value, asked->memory_bytes_per_s.value) : 0.0;
    m.near = chip && chip->fabric == asked->fabric && fmax(peak, memory) < NEAR;
    m.same_constants = m.same || (chip && sm_calibration_of(chip) == its &&
                                  sm_calibration_is_own(its, chip) && m.asked_own);
    if (m.same) m.far = 0.0;
    else if (chip)
        m.far = (m.same_constants ? 0.001 : 0.01) + 0.02 * (peak + memory) +
                (chip->fabric == asked->fabric ? 0.0 : 0.05) +
                (strcmp(chip->vendor, asked->vendor) == 0 ? 0.0 : 0.05);
    return m;
}

/* Of another model: whether it has experts where this one has none, or the other way round, and how
 * much larger or smaller it is. */
#define OTHER_SIZE 1.1 /* three times as large: what is told */
static double model_apart(const sm_evidence_question *q, double params, const sm_evidence_apart *a,
                          sm_evidence_near *n, bool *other_kind) {
    bool experts = experts_of(q->model) > 0;
    double size = ratio(n->of->params, params);
    *other_kind = experts != (n->of->experts > 0);
    if (*other_kind) add_beyond(n, experts ? "experts" : "no experts");
    if (size > OTHER_SIZE) add_beyond(n, "model size");
    return hypot(hypot(a->model, *other_kind ? a->experts : 0.0), a->size * size);
}

static double look(const sm_evidence_question *q, const sm_evidence_apart *a, double params,
                   const char *layout, const machine *on, sm_evidence_near *n) {
    const sm_evidence *e = n->of;
    bool other_kind = false;
    const double experts = experts_of(q->model), spare = fabs(e->experts - experts);
    n->same_model = abs(e->layers - q->model->L) <= 1 && e->d_model == q->model->D &&
                    8.0 * spare <= fmin(e->experts, experts) && /* that an engine keeps */
                    fabs(log(e->params / params)) < ALIKE;
    n->same_chip = on->same;
    n->same_constants = on->same_constants;
    n->same_software = !q->software || strcmp(e->software, q->software) == 0;
    /* Sizes of the job, and its type. */
    const char *type = type_words(q->type);
    sm_range_outside(n->of->range, q->size, q->sizes, n->beyond, sizeof n->beyond);
    if (!strstr(n->of->types, type)) add_beyond(n, type);
    if (is_other_layout(n->of->range, layout)) add_beyond(n, "layout");
    double sizes = n->beyond[0] ? a->sizes : 0.0;
    double model = n->same_model ? 0.0 : model_apart(q, params, a, n, &other_kind);
    /* Beside constants of its own, this model elsewhere says no less than other models here. */
    double chips = on->asked_own && n->same_model ? fmin(a->chip, a->model) : a->chip;
    if (n->same_constants) chips = 0.0;
    double software = n->same_software ? 0.0 : a->software;
    double more = sqrt(model * model + sizes * sizes + chips * chips + software * software);
    /* Of few rows the median says little: they count beside as many that say what is usual. */
    enum { USUAL_ROWS = 5 };
    double error = isfinite(e->error)
                       ? (e->rows * e->error + USUAL_ROWS * a->whole) / (e->rows + USUAL_ROWS)
                       : a->whole;
    if (other_kind) error = fmax(error, a->whole);
    n->error = on->same || on->near ? sqrt(error * error + more * more) : NAN;
    /* What constants of another chip cost, the interval holds already. */
    n->wider =
        sqrt(a->whole * a->whole + model * model + sizes * sizes + software * software) / a->whole;
    return more + rank_of(q, n, params, on->far) + (isnan(n->error) ? SAYS_NOTHING : 0.0);
}

size_t sm_evidence_find_in(const sm_evidence *line, size_t n, const sm_evidence_apart *apart,
                           const sm_evidence_question *q, sm_evidence_near *near, size_t room) {
    enum { MOST = 64 };
    double far[MOST], params = sm_model_params(q->model).total;
    machine on = {.name = ""};
    const sm_calibration *its = sm_calibration_of(q->chip);
    size_t found = 0;
    char layout[SM_EVIDENCE_LAYOUT] = "";
    if (q->plan) sm_evidence_layout(q->plan, experts_of(q->model) > 0, layout);
    if (room > MOST) room = MOST;
    for (size_t i = 0; i < n; i++) {
        sm_evidence_near now = {.of = &line[i]};
        if (now.of->use != q->use || (now.of->software[0] == 0) != !q->software) continue;
        if (strcmp(on.name, now.of->chip) != 0) on = machine_of(now.of->chip, q->chip, its);
        double how = look(q, apart, params, layout, &on, &now);
        size_t at = found < room ? found++ : room;
        if (at == room && (room == 0 || far[--at] <= how)) continue;
        for (; at > 0 && far[at - 1] > how; at--) far[at] = far[at - 1], near[at] = near[at - 1];
        far[at] = how, near[at] = now;
    }
    return found;
}

size_t sm_evidence_find(const sm_evidence_question *q, sm_evidence_near *near, size_t room) {
    return sm_evidence_find_in(sm_evidence_table, sm_evidence_table_count,
                               sm_evidence_apart_of(q->use, q->software != NULL), q, near, room);
}
