/* What running a model asks for beside its sizes: facts of its config by their names, defaults of
 * its family where that is silent. Rotary positions turn pair i of a head by position x f(i), f =
 * base^(-2i/n) (Su et al., arXiv 2104.09864, eq. 34); for texts longer than a model was trained on
 * f is stretched: linear (Chen et al., arXiv 2306.15595), by parts of the spectrum (yarn, Peng et
 * al., arXiv 2309.00071, section 3.2; llama3, its smooth form) or by a factor of each pair
 * (longrope, Ding et al., arXiv 2402.13753). */

#include "train_parts.h"

/* Pieces of a kind, whose facts are asked for. */
typedef struct facts {
    const sm_architecture *a;
    int kind;
} facts;

static double number(facts f, const char *name, double otherwise) {
    double value;
    return sm_architecture_number_of(f.a, f.kind, name, &value) ? value : otherwise;
}

/* The first of these that the config or the family has. */
static double first_of(facts a, const char *const *names, double otherwise) {
    for (; *names; names++) {
        double value = number(a, *names, -1);
        if (value > 0) return value;
    }
    return otherwise;
}

void train_numbers_read(const sm_model *m, int kind, train_numbers *n) {
    static const char *const rms[] = {"rms_norm_eps",       "norm_eps",       "norm_epsilon",
                                      "layer_norm_epsilon", "layer_norm_eps", NULL};
    static const char *const layer[] = {"layer_norm_eps",    "layer_norm_epsilon", "norm_epsilon",
                                        "layernorm_epsilon", "norm_eps",           NULL};
    const facts a = {m->architecture, kind};
    const char *scores = sm_architecture_word_of(a.a, a.kind, "scoring_func");
    *n = (train_numbers){.kind = kind,
                         .norm_epsilon = first_of(a, rms, 1e-6),
                         .layer_norm_epsilon = first_of(a, layer, 1e-5),
                         .rope_score_scale = 1,
                         .shares_sigmoid = scores && strcmp(scores, "sigmoid") == 0};
#define X(name, otherwise) n->name = number(a, #name, otherwise);
    TRAIN_NUMBERS(X)
#undef X
    if (!(n->final_logit_softcapping > 0)) n->final_logit_softcapping = 1;
}

/* ---- rotary positions ---- */

typedef struct stretch {
    facts a;
    char where[64]; /* "rope_scaling.", "rope_parameters.full_attention." */
    double base, size, longest, tokens;
} stretch;

static double of(const stretch *s, const char *name, double otherwise) {
    char path[128];
    snprintf(path, sizeof path, "%s%s", s->where, name);
    return number(s->a, path, otherwise);
}

static const char *type_of(const stretch *s) {
    static const char *const names[] = {"rope_type", "type"};
    char path[128];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s%s", s->where, names[i]);
        const char *type = sm_architecture_word_of(s->a.a, s->a.kind, path);
        if (type) return type;
    }
    return "default";
}

/* Layers with a window may have rotary positions of their own (Gemma 3). */
static stretch stretch_of(facts a, bool local, double tokens) {
    static const char *const places[] = {"rope_parameters.sliding_attention.",
                                         "rope_parameters.full_attention.", "rope_parameters.",
                                         "rope_scaling."};
    stretch s = {.a = a, .where = "rope_scaling.", .tokens = tokens};
    for (int i = local ? 0 : 1; i < 4; i++) {
        snprintf(s.where, sizeof s.where, "%s", places[i]);
        double theta = of(&s, "rope_theta", 0);
        if (theta > 0 || strcmp(type_of(&s), "default") != 0) break;
    }
    double own = number(a, "rope_local_base_freq", 0);
    s.base = of(&s, "rope_theta", number(a, "rope_theta", 10000));
    if (local && own > 0 && strcmp(s.where, places[0]) != 0) {
        s.base = own;
        s.where[0] = 0; /* not stretched */
    }
    s.longest = of(
        &s, "original_max_position_embeddings",
        number(a, "original_max_position_embeddings", number(a, "max_position_embeddings", 2048)));
    return s;
}

static double mscale(double factor, double by) {
    return factor > 1 ? 0.1 * by * log(factor) + 1 : 1;
}

/* Pair that turns `turns` times within the longest text that the model was trained on. */
static double pair_of(const stretch *s, double turns) {
    return s->size * log(s->longest / (turns * 2 * 3.14159265358979323846)) / (2 * log(s->base));
}

static double yarn(const stretch *s, int i, double f) {
    double factor = of(s, "factor", 1), low = pair_of(s, of(s, "beta_fast", 32));
    double high = pair_of(s, of(s, "beta_slow", 1));
    if (of(s, "truncate", 1) != 0) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, s->size - 1);
    double ramp = fmin(fmax((i - low) / (high == low ? 0.001 : high - low), 0), 1);
    return f / factor * ramp + f * (1 - ramp);
}

static double llama3(const stretch *s, double f) {
    double factor = of(s, "factor", 1), low = of(s, "low_freq_factor", 1);
    double high = of(s, "high_freq_factor", 4);
    double length = 2 * 3.14159265358979323846 / f;
    if (length > s->longest / low) return f / factor;
    if (length < s->longest / high) return f;
    double smooth = (s->longest / length - low) / (high - low);
    return (1 - smooth) * f / factor + smooth * f;
}

static double longrope(const stretch *s, int i, double f) {
    char name[64];
    snprintf(name, sizeof name, "%s_factor[%d]", s->tokens > s->longest ? "long" : "short", i);
    return f / of(s, name, 1);
}

/* What cosines and sines are multiplied by. */
static double size_of_turns(const stretch *s, const char *type, double whole) {
    double factor = of(s, "factor", whole / s->longest), said = of(s, "attention_factor", 0);
    if (said > 0) return said;
    if (strcmp(type, "yarn") == 0) {
        double by = of(s, "mscale", 0), all = of(s, "mscale_all_dim", 0);
        return by > 0 && all > 0 ? mscale(factor, by) / mscale(factor, all) : mscale(factor, 1);
    }
    bool longer = strcmp(type, "longrope") == 0 && factor > 1;
    return longer ? sqrt(1 + log(factor) / log(s->longest)) : 1;
}

/* Which place each pair turns by: 0 that of a word, 1 the row of a picture's row of numbers, 2 its
 * column. Of words some pairs have each (M-RoPE, Qwen2-VL, arXiv 2409.12191, section 2.1), one
 * behind the other or in turn; a tower has none of the first. */
static void find_sections(const stretch *s, train_turns *t) {
    const double place = of(s, "mrope_section[0]", 0), row = of(s, "mrope_section[1]", 0),
                 column = of(s, "mrope_section[2]", 0);
    const bool in_turn = of(s, "mrope_interleaved", 0) != 0;
    for (size_t i = 0; i < t->half; i++) {
        const double at = (double)i, turn = in_turn ? (double)(i % 3) : 0;
        if (t->side) t->section[i] = 2 * i >= t->half ? 2 : 1;
        else if (in_turn) t->section[i] = at < 3 * (turn == 1 ? row : column) ? (uint8_t)turn : 0;
        else t->section[i] = at < place ? 0 : at < place + row ? 1 : 2;
    }
}

static sm_status fill(const stretch *s, train_turns *t, sm_error *err) {
    const char *type = s->where[0] ? type_of(s) : "default";
    static const char *const known[] = {"default",  "linear",  "yarn",  "llama3",
                                        "longrope", "dynamic", "mrope", "axial"};
    int is = 0;
    while (is < 8 && strcmp(known[is], type) != 0) is++;
    double whole = number(s->a, "max_position_embeddings", s->longest);
    if (is == 8 || (is == 5 && s->tokens > whole))
        return sm_fail(err, SM_BAD_INPUT, "rotary positions stretched by \"%.40s\" cannot be run%s",
                       type, is == 5 ? " beyond max_position_embeddings" : "");
    double times = size_of_turns(s, type, whole);
    for (size_t i = 0; i < t->half; i++) {
        /* In a picture the first half turn by the row, the others by the column: their frequencies
         * are those in between (Pixtral, arXiv 2410.07073, section 2.1), or the same. */
        const size_t passed = 2 * i < t->half ? 0 : t->half - (number(s->a, "rope_alike", 0) == 0);
        double f = pow(s->base, -2.0 * (double)(t->side ? 2 * i - passed : i) / s->size);
        if (is == 1) f /= of(s, "factor", 1);
        if (is == 2) f = yarn(s, (int)i, f);
        if (is == 3) f = llama3(s, f);
        if (is == 4) f = longrope(s, (int)i, f);
        for (size_t at = 0; at < t->positions; at++) {
            t->table[2 * at * t->half + i] = (float)(times * cos((double)at * f));
            t->table[(2 * at + 1) * t->half + i] = (float)(times * sin((double)at * f));
        }
    }
    if (t->section) find_sections(s, t);
    return SM_OK;
}

/* The dimensions of a head that turn, or of a row that sines are added to. */
static double turning(const sm_program *b, const sm_text_lines *lines, const stretch *s,
                      bool *sines) {
    for (int i = 0; i < b->ops; i++) {
        const sm_text_line *line = &lines->line[b->op[i].line];
        bool turns = false;
        *sines = false;
        for (int t = 0; t < line->terms; t++) {
            bool operates = line->term[t].kind == SM_TERM_OPERATOR;
            turns |= operates && line->term[t].op == SM_OPERATOR_ROTARY;
            *sines |= operates && line->term[t].op == SM_OPERATOR_SINES;
        }
        if (!turns && !*sines) continue;
        if (line->first >= 0) return lines->dim[line->first].size;
        const sm_tensor *out = &b->tensor[b->op[i].out];
        double head = b->dim[out->dim[out->rank - 1]].size;
        if (*sines) return head;
        double part = of(s, "partial_rotary_factor",
                         number(s->a, "partial_rotary_factor", number(s->a, "rotary_pct", 1)));
        if (b->op[i].inputs && number(s->a, "qk_rope_head_dim", 0) > 0) part = 1;
        return fmin(number(s->a, "rotary_dim", floor(head * part)), head);
    }
    return 0;
}

sm_status train_turns_new(sm_trainer *t, int number_of, const sm_program *b, sm_error *err) {
    train_turns *turns = &t->turns[number_of];
    const sm_text_lines *lines = t->lines[number_of];
    double window = 0, places = 1, positions;
    if (turns->table) return SM_OK;
    for (int d = 0; d < lines->dims; d++)
        if (lines->dim[d].role == SM_DIMENSION_POSITIONS) places = fmax(places, lines->dim[d].size);
    positions = fmax(places, t->setup->tokens);
    for (int i = 0; i < lines->lines; i++) window = fmax(window, lines->line[i].window);
    const sm_model *m = t->setup->model;
    stretch s =
        stretch_of((facts){m->architecture, m->lines_of[number_of]}, window > 0, t->setup->tokens);
    bool sines = false;
    s.size = turning(b, lines, &s, &sines);
    const bool axial = s.where[0] && strcmp(type_of(&s), "axial") == 0;
    *turns = (train_turns){.first = sines ? (size_t)t->numbers[number_of].first_position : 0,
                           .positions = (size_t)positions,
                           .half = (size_t)s.size / 2,
                           .side = axial ? (size_t)(sqrt(places) + 0.5) : 0,
                           .interleaved = number(s.a, "rope_interleaved", 0) != 0};
    turns->positions += turns->first;
    if (axial && turns->side * turns->side != (size_t)places)
        return sm_fail(err, SM_BAD_INPUT, "a picture of %.0f patches is no square, as %s sees it",
                       places, m->name);
    if (sines) s.size -= 2; /* the last pair has the lowest frequency of all, 1 / base */
    if (turns->half == 0) return SM_OK;
    /* the scores of latent attention grow with the texts that yarn stretches to (DeepSeek-V2) */
    double all = of(&s, "mscale_all_dim", 0);
    if (s.where[0] && strcmp(type_of(&s), "yarn") == 0 && all > 0 &&
        number(s.a, "qk_rope_head_dim", 0) > 0)
        t->numbers[number_of].rope_score_scale = pow(mscale(of(&s, "factor", 1), all), 2);
    const size_t numbers = 2 * turns->positions * turns->half;
    turns->table = sm_malloc(numbers * sizeof *turns->table + turns->half);
    if (!turns->table) return sm_fail_memory(err);
    if (axial || of(&s, "mrope_section[1]", 0) > 0)
        turns->section = (uint8_t *)(turns->table + numbers);
    return fill(&s, turns, err);
}

void train_turns_free(sm_trainer *t) {
    for (size_t i = 0; i < sizeof t->turns / sizeof *t->turns; i++) sm_free(t->turns[i].table);
}
