/* The bytes of a checkpoint: each matrix under the name that checkpoints give it, in the format
 * that the quantization_config has for it. Norms, biases, routers and embeddings are never
 * quantised. */
#include "stored.h"
#include <ctype.h>
#include <regex.h>

/* Names of modules in the lists of quantised checkpoints. */

enum { MOST_PATTERN = 256, STEPS_OF_EXPRESSION = 64 };

/* Does the regular expression match from the beginning of s? It is one of Python's, of which \d, \w
 * and (?: are written as POSIX has them, and a brace is itself; another one matches nothing. */
static bool match_expression(const char *p, const char *s) {
    char text[8 * MOST_PATTERN] = "^(";
    size_t n = 2;
    regex_t found;
    while (*p) {
        const bool escaped = *p == '\\' && p[1], group = *p == '(' && p[1] == '?';
        if ((group && p[2] != ':') || (escaped && isdigit((unsigned char)p[1]))) return false;
        const char *as = escaped && p[1] == 'd'   ? "[0-9]"
                         : escaped && p[1] == 'w' ? "[[:alnum:]_]"
                         : *p == '{'              ? "\\{"
                                                  : p;
        const int length = as != p ? (int)strlen(as) : escaped ? 2 : 1;
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s", length, as);
        p += group ? 3 : escaped ? 2 : 1;
    }
    snprintf(text + n, sizeof text - n, ")");
    if (regcomp(&found, text, REG_EXTENDED | REG_NOSUB)) return false;
    const bool matched = regexec(&found, s, 0, NULL, 0) == 0;
    regfree(&found);
    return matched;
}

static bool match_stars(const char *p, const char *s, long *steps) {
    const char *star = NULL, *at = s;
    while (*s) {
        if (--*steps < 0) return false;
        if (*p == '*') star = p++, at = s;
        else if (*p == *s || *p == '?') p++, s++;
        else if (star) p = star + 1, s = ++at;
        else return false;
    }
    while (*p == '*') p++;
    return !*p;
}

/* A name that stands in another between dots or its ends. */
static bool has_part(const char *name, const char *part) {
    size_t n = strlen(part);
    for (const char *at = strstr(name, part); n && at; at = strstr(at + 1, part))
        if ((at == name || at[-1] == '.') && (!at[n] || at[n] == '.')) return true;
    return false;
}

static void cut(char *text, const char *word) {
    for (char *at = strstr(text, word); at; at = strstr(at, word))
        memmove(at, at + strlen(word), strlen(at + strlen(word)) + 1);
}

static void cut_start(char *text, const char *word) {
    size_t n = strlen(word);
    if (strncmp(text, word, n) == 0) memmove(text, text + n, strlen(text + n) + 1);
}

bool pattern_matches(pattern_syntax syntax, const char *pattern, const char *name, long *steps) {
    char p[MOST_PATTERN];
    bool expression = syntax == PATTERN_EXACT && strncmp(pattern, "re:", 3) == 0;
    if (strlen(pattern) >= sizeof p || --*steps < 0) return false;
    snprintf(p, sizeof p, "%s", expression ? pattern + 3 : pattern);
    cut_start(p, "^");
    cut(p, "language_model.");
    cut(p, "language_model\\.");
    cut_start(p, "model.");
    cut_start(p, "model\\.");
    if (!expression && has_part(name, p)) return true;
    if (syntax == PATTERN_STARS) return strchr(p, '*') && match_stars(p, name, steps);
    if (syntax == PATTERN_MODULES && !strpbrk(p, "*[(\\+$")) return false;
    if (syntax == PATTERN_EXACT && !expression) return false;
    return (*steps -= STEPS_OF_EXPRESSION) > 0 && match_expression(p, name);
}

double stored_bytes(const stored_format *f, double rows, double columns) {
    double down = f->block_rows > 0 ? ceil(rows / f->block_rows) : 1;
    double across = f->block_columns > 0 ? ceil(columns / f->block_columns) : 1;
    return rows * columns * f->bits / 8 + down * across * (f->scale_bytes + f->zero_bits / 8) +
           columns * f->column_bytes + f->matrix_bytes;
}

typedef struct sum {
    double bytes, params;
} sum;

typedef struct counter {
    const quantization *q;
    bool by_name;
    double float_bytes;
    double layers; /* that are counted at once */
    long steps;
    double of_type[SM_DTYPE_COUNT]; /* parameters */
    bool blocks;
} counter;

static bool any_matches(counter *c, const char *const *pattern, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (pattern_matches(c->q->syntax, pattern[i], name, &c->steps)) return true;
    return false;
}

static bool names_all(const stored_group *g) {
    for (int i = 0; i < g->targets; i++)
        if (strcmp(g->target[i], "Linear") == 0) return true;
    return false;
}

/* Does what a matrix is called, and so its layer, say how it is stored? */
static bool goes_by_name(const quantization *q) {
    bool by_name = q && q->skips > 0;
    for (int i = 0; q && i < q->groups; i++)
        by_name |= q->group[i].targets > 1 || !names_all(&q->group[i]);
    return by_name;
}

/* NULL: as it was. A group that names the module goes before one of all matrices. */
static const stored_format *format_of(counter *c, const char *name) {
    const quantization *q = c->q;
    if (!q || q->unknown || any_matches(c, q->skip, q->skips, name)) return NULL;
    for (int i = 0; i < q->groups; i++)
        if (any_matches(c, q->group[i].target, q->group[i].targets, name))
            return &q->group[i].format;
    for (int i = 0; i < q->groups; i++)
        if (names_all(&q->group[i])) return &q->group[i].format;
    return NULL;
}

/* ---- names ---- */

/* "layers.3.mlp.experts.0.gate_proj" */
static void name_matrix(const sm_text_lines *l, int array, int layer, bool one, char *name,
                        size_t size) {
    const char *weight = l->array[array].name;
    bool heads = facts_scope_has(l, weight, SM_DIMENSION_HEADS), attends = false;
    bool experts = facts_scope_has(l, weight, SM_DIMENSION_EXPERTS);
    for (int i = 0; i < l->lines; i++) attends |= l->line[i].op == SM_OPERATOR_ATTENTION;
    const char *part = facts_size(l, array, SM_DIMENSION_EXPERTS) > 0 ? "mlp.experts.0"
                       : experts          ? (one ? "mlp.shared_expert" : "mlp.shared_experts")
                       : heads && attends ? "self_attn"
                       : heads            ? "linear_attn"
                                          : "mlp";
    weight += facts_scope(weight);
    weight += *weight == '.';
    const stored_module *known = NAMED(stored_modules, weight);
    snprintf(name, size, "layers.%d.%s.%s", layer, part, known ? known->called : weight);
}

/* ---- matrices ---- */

/* Outputs by inputs: dimensions of the product's result, and the others; experts are copies. False:
 * no product reads it. */
static bool shape_of(const sm_text_lines *l, int array, double *rows, double *columns,
                     double *copies) {
    const sm_text_array *a = &l->array[array];
    *rows = *columns = *copies = 1;
    for (int i = 0; i < l->lines; i++) {
        const sm_text_line *line = &l->line[i];
        if (line->op != SM_OPERATOR_PRODUCT) continue;
        for (int k = 0; k < line->operands; k++) {
            if (line->operand[k].array != array) continue;
            for (int d = 0; d < a->rank; d++) {
                int dim = line->operand[k].dim[d], out = l->array[line->result[0].array].rank;
                bool made = memchr(line->result[0].dim, dim, (size_t)out) != NULL;
                double size = l->dim[dim].size;
                if (l->dim[dim].role == SM_DIMENSION_EXPERTS) *copies *= size;
                else if (made) *rows *= size;
                else *columns *= size;
            }
            return true;
        }
    }
    return false;
}

static sum add_matrix(counter *c, const stored_format *f, double rows, double columns,
                      double copies) {
    sum s = {.params = rows * columns * copies};
    bool kept = !f || f->bits >= 8 * c->float_bytes;
    s.bytes = kept ? s.params * c->float_bytes : copies * stored_bytes(f, rows, columns);
    if (!kept) c->of_type[f->type] += c->layers * s.params;
    c->blocks |= !kept && f->block_rows > 1;
    return s;
}

/* Routers, of which no matrix has a width or heads, stay as they are. */
static bool may_be_quantised(const sm_text_lines *l, int array, bool experts_only) {
    bool experts = facts_size(l, array, SM_DIMENSION_EXPERTS) > 0;
    bool wide = facts_size(l, array, SM_DIMENSION_WIDTH) > 0;
    if (experts_only) return experts;
    return experts || wide || !facts_scope_has(l, l->array[array].name, SM_DIMENSION_EXPERTS);
}

/* Matrices of routed experts, then all else of a layer. What a text has a type for is of this type
 * in every checkpoint. */
static void count_layer(counter *c, const sm_text_lines *l, int layer, sum *experts, sum *other) {
    for (int i = 0; i < l->arrays; i++) {
        const sm_text_array *a = &l->array[i];
        double rows, columns, copies;
        char name[96];
        if (!facts_is_own_weight(a) || a->shared > 0) continue;
        bool routed = facts_size(l, i, SM_DIMENSION_EXPERTS) > 0 && a->rank > 2;
        sum s = {.bytes = a->elements * (a->typed ? sm_dtype_bytes(a->type) : c->float_bytes),
                 .params = a->elements};
        if (!a->typed && a->rank > 1 && shape_of(l, i, &rows, &columns, &copies) &&
            may_be_quantised(l, i, c->q && c->q->experts_only)) {
            name[0] = 0;
            if (c->by_name) name_matrix(l, i, layer, false, name, sizeof name);
            if (strstr(name, "shared_experts")) {
                char alias[96];
                name_matrix(l, i, layer, true, alias, sizeof alias);
                if (!format_of(c, alias)) memcpy(name, alias, sizeof name);
            }
            const stored_format *own = routed && c->q ? c->q->experts : NULL;
            s = add_matrix(c, own ? own : format_of(c, name), rows, columns, copies);
        }
        sum *to = routed ? experts : other;
        to->bytes += c->layers * s.bytes;
        to->params += c->layers * s.params;
    }
}

static double mean(sum s, double otherwise) {
    return s.params > 0 ? s.bytes / s.params : otherwise;
}

/* The head's matrix, where it has one. */
static sum count_head(counter *c, const sm_text_lines *l) {
    double rows, columns, copies;
    bool fixed = !c->q || !c->q->with_head || c->q->experts_only;
    for (int i = 0; i < l->arrays; i++) {
        if (!facts_is_own_weight(&l->array[i]) || facts_size(l, i, SM_DIMENSION_VOCABULARY) <= 0 ||
            !shape_of(l, i, &rows, &columns, &copies))
            continue;
        if (!fixed) return add_matrix(c, format_of(c, "lm_head"), rows, columns, 1);
        return (sum){rows * columns * c->float_bytes, rows * columns};
    }
    return (sum){0, 0};
}

/* Fill in what the checkpoint of a model takes; float_bytes each where weights are not quantised. q
 * NULL: none is. */
static void stored_count(sm_model *m, const model_lines *lines, const quantization *q,
                         double float_bytes) {
    sm_stored *out = &m->stored;
    counter c = {.q = q,
                 .by_name = goes_by_name(q),
                 .float_bytes = float_bytes,
                 .layers = 1,
                 .steps = PATTERN_MOST_STEPS};
    sum experts[SM_MAX_LAYER_KINDS] = {{0, 0}}, other[SM_MAX_LAYER_KINDS] = {{0, 0}};
    double counted = 0;
    *out =
        (sm_stored){.type = SM_BF16, .method = q ? q->method : "", .quantised = q && !q->unknown};
    int last[SM_MAX_LAYER_KINDS], of_kind[SM_MAX_LAYER_KINDS] = {0};
    for (int l = 0; l < m->L; l++) {
        last[m->layer[l]] = l;
        of_kind[m->layer[l]]++;
    }
    for (int l = 0; l < m->L; l++) { /* layers of a kind are alike unless their names matter */
        int k = m->layer[l];
        if (!c.by_name && l < last[k]) continue;
        c.layers = c.by_name ? 1 : of_kind[k];
        count_layer(&c, lines->of[k], l, &experts[k], &other[k]);
    }
    c.layers = 1;
    for (int k = 0; k < m->kinds; k++) {
        m->kind[k].expert_bytes = mean(experts[k], float_bytes);
        m->kind[k].other_bytes = mean(other[k], float_bytes);
        out->bytes += experts[k].bytes + other[k].bytes;
        counted += experts[k].params + other[k].params;
    }
    sum head = count_head(&c, lines->of[m->kinds + m->outside - 1]);
    out->head = mean(head, float_bytes);
    out->bytes += head.bytes + (sm_model_params(m).total - counted - head.params) * float_bytes;
    for (int k = m->kinds; k < m->kinds + m->outside; k++)
        for (int i = 0; i < lines->of[k]->arrays; i++) {
            const sm_text_array *a = &lines->of[k]->array[i];
            if (facts_is_own_weight(a) && a->typed)
                out->bytes += a->elements * (sm_dtype_bytes(a->type) - float_bytes);
        }
    out->blocks = c.blocks;
    for (int t = 0; t < SM_DTYPE_COUNT; t++)
        if (c.of_type[t] > c.of_type[out->type]) out->type = (sm_dtype)t;
}

/* ---- the config ---- */

/* A value of the config, or of the first object in it that has it: wrappers keep it within. */
static const json_value *key_of(const json_value *root, const char *key) {
    const json_value *v = json_get(root, key);
    for (uint32_t i = 0; !v && json_is(root, IS_OBJECT) && i < root->n; i++)
        if (json_is(&root->item[i], IS_OBJECT)) v = json_get(&root->item[i], key);
    return v;
}

/* What is not quantised is stored as dtype says; in 16 bits where it is silent. */
static sm_dtype float_type(const json_value *root) {
    const char *name = json_text(key_of(root, "dtype"));
    if (!name) name = json_text(key_of(root, "torch_dtype"));
    if (name && strstr(name, "float32")) return SM_FP32;
    return name && strcmp(name, "float16") == 0 ? SM_FP16 : SM_BF16;
}

sm_status stored_read(const sm_source *source, const model_lines *lines, sm_arena *arena,
                      sm_model *m, sm_error *err) {
    const json_document document = {.source = source, .arena = arena, .err = err, .python = true};
    const json_value *root;
    quantization q = {.method = ""};
    sm_status status = json_parse(&document, &root);
    if (status) return status;
    sm_dtype type = float_type(root);
    const json_value *json = key_of(root, "quantization_config");
    if (!json) json = key_of(root, "compression_config");
    bool given = json && json->kind != IS_NULL;
    if (given) status = quantization_read(json, key_of(root, "expert_dtype"), arena, &q);
    if (status) return status;
    stored_count(m, lines, given ? &q : NULL, sm_dtype_bytes(type));
    if (!m->stored.quantised) m->stored.type = type;
    return SM_OK;
}
