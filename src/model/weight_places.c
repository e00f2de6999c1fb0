/* Where a weight is in a checkpoint. A family says it in the notation of arrays, for each weight
 * "TENSOR[dimension of the tensor, ...]": a dimension is a product of letters, the last the
 * fastest, or stands side by side with others, a|b, of which <> marks the weight's own:
 *   "self_attn.q_b_proj.weight[K (<H>|Y), Q]"     heads of H and Y numbers each; H are the weight's
 * Names of layers come behind hf.layer, "model.layers.{i}.", or, with "=", in its place; {i} is the
 * layer; {E} counts experts that have a tensor each; {scan} is what the family's hf.scan says, or,
 * of layer i, its number hf.scan[i]. Places are parted by ';', and those of other letters than the
 * weight's are passed over. A checkpoint of the model below the head has the same names without the
 * prefix that hf.base is: each such place comes a second time without it. */
#include <ctype.h>
#include <string.h>

#include "scalemodel/model.h"

typedef struct placing {
    const sm_model *m;
    int kind; /* of its piece, in the architecture */
    const sm_text_lines *l;
    const sm_text_array *a;
    const char *at;
    bool wrong;
    bool own[SM_TEXT_MOST_RANK]; /* dimensions of the weight that were met */
    sm_weight_place *out;
} placing;

enum { MOST_FACTORS = 8, MOST_DEPTH = 4 };

static void skip(placing *p) {
    while (*p->at == ' ' || *p->at == '\n') p->at++;
}

static size_t sum_of(placing *p, size_t stride, bool own, int depth);

/* A letter, 1, (a|b) or <a>: its size; own: strides are noted. */
static size_t factor_of(placing *p, size_t stride, bool own, int depth) {
    char name[8] = "";
    size_t n = 0;
    skip(p);
    char open = *p->at;
    if (open == '(' || open == '<') {
        p->at++;
        n = sum_of(p, stride, own, depth + 1);
        skip(p);
        if (*p->at == (open == '(' ? ')' : '>')) p->at++;
        else p->wrong = true;
        return n;
    }
    while (n + 1 < sizeof name && isalnum((unsigned char)p->at[n])) {
        name[n] = p->at[n];
        n++;
    }
    p->at += n;
    if (strcmp(name, "1") == 0) return 1;
    for (int d = 0; own && d < p->a->rank; d++)
        if (strcmp(p->l->dim[p->a->dim[d]].name, name) == 0) {
            p->own[d] = true;
            p->out->stride[d] = stride;
        }
    for (int d = 0; d < p->l->dims; d++)
        if (strcmp(p->l->dim[d].name, name) == 0) return (size_t)p->l->dim[d].size;
    p->wrong = true;
    return 1;
}

/* Factors side by side; the last is the fastest, so that their sizes come first. */
static size_t product_of(placing *p, size_t stride, bool own, int depth) {
    const char *first[MOST_FACTORS];
    size_t size[MOST_FACTORS], all = 1;
    int n = 0;
    for (skip(p); !(*p->at == 0 || strchr("|),]>=", *p->at) != NULL) && !p->wrong; skip(p)) {
        if (n == MOST_FACTORS || depth > MOST_DEPTH) p->wrong = true;
        if (p->wrong) return 1;
        first[n] = p->at;
        size[n] = factor_of(p, 0, false, depth);
        all *= size[n++];
    }
    const char *end = p->at;
    for (int i = n - 1; own && i >= 0 && !p->wrong; stride *= size[i--]) {
        p->at = first[i];
        factor_of(p, stride, true, depth);
    }
    p->at = end;
    if (n == 0) p->wrong = true;
    return all;
}

/* Products one behind the other: the one in <>, or the only one, is the weight's. */
static size_t sum_of(placing *p, size_t stride, bool own, int depth) {
    size_t before = 0;
    const char *at = p->at;
    int parts = 0, inside = 0;
    for (const char *c = at; *c && inside >= 0; c++) {
        inside += (*c == '(' || *c == '<') - (*c == ')' || *c == '>');
        if (inside == 0 && (*c == ',' || *c == ']')) break;
        parts += inside == 0 && *c == '|';
    }
    for (int i = 0; i <= parts && !p->wrong; i++) {
        skip(p);
        bool mine = own && (parts == 0 || *p->at == '<');
        if (mine) p->out->offset += before * stride;
        before += product_of(p, stride, mine, depth);
        skip(p);
        if (i < parts && *p->at++ != '|') p->wrong = true;
    }
    return before;
}

/* What the family calls a {word} of a name, or counts for this layer; "": it does not say. */
static const char *said_word(const placing *p, size_t length, int layer, char room[24]) {
    char key[24];
    double number;
    int n = snprintf(key, sizeof key, "hf.%.*s", (int)length, p->at + 1);
    const char *word =
        n < (int)sizeof key ? sm_architecture_word_of(p->m->architecture, p->kind, key) : NULL;
    snprintf(key, sizeof key, "hf.%.*s[%d]", (int)length, p->at + 1, layer);
    if (word || !sm_architecture_number_of(p->m->architecture, p->kind, key, &number))
        return word ? word : "";
    snprintf(room, 24, "%.0f", number);
    return room;
}

/* The text up to one of these characters, with the layer's number in it; what is behind the number
 * of an expert apart. */
static void name_of(placing *p, const char *stop, int layer) {
    char *to = p->out->name + strlen(p->out->name);
    const char *end = p->out->name + sizeof p->out->name - 16;
    for (skip(p); *p->at && !strchr(stop, *p->at); p->at++) {
        size_t word = *p->at == '{' ? strcspn(p->at + 1, "}") : 0;
        if (strncmp(p->at, "{i}", 3) == 0) {
            to += snprintf(to, 12, "%d", layer);
        } else if (strncmp(p->at, "{E}", 3) == 0) {
            for (int d = 0; d < p->a->rank; d++)
                if (p->l->dim[p->a->dim[d]].role == SM_DIMENSION_EXPERTS) p->out->counted = d;
            *to = 0;
            to = p->out->behind;
            end = to + sizeof p->out->behind - 16;
        } else if (word > 0) {
            char room[24];
            const char *said = said_word(p, word, layer, room);
            size_t n = strlen(said);
            p->wrong = n == 0 || !p->at[word + 1] || n >= (size_t)(end - to);
            if (p->wrong) return;
            memcpy(to, said, n + 1);
            to += n;
        } else *to++ = *p->at;
        if (to >= end) p->wrong = true;
        if (p->wrong) return;
        if (word > 0) p->at += word + 1;
    }
    *to = 0;
}

/* Does the place have all dimensions of the weight and no more? Sizes of 1 may be left out. */
static bool fits(const placing *p) {
    for (int d = 0; d < p->a->rank; d++)
        if (!p->own[d] && d != p->out->counted && p->l->dim[p->a->dim[d]].size != 1) return false;
    return true;
}

/* A dimension is one of the tensor, or several: X = channels side side, which are facts. */
static void parts_of(placing *p, size_t size) {
    sm_weight_place *o = p->out;
    double part = 1;
    skip(p);
    bool several = *p->at == '=';
    for (p->at += several, skip(p); several && *p->at && !strchr(",]", *p->at); skip(p)) {
        char name[48];
        size_t n = strcspn(p->at, " ,]");
        snprintf(name, sizeof name, "%.*s", (int)n, p->at);
        bool known = sm_architecture_number_of(p->m->architecture, p->kind, name, &part);
        p->at += n;
        p->wrong |= !known || part < 1 || size % (size_t)part || o->rank >= SM_WEIGHT_RANK - 1;
        if (p->wrong) return;
        o->shape[o->rank++] = (size_t)part;
        size /= (size_t)part;
    }
    if (!several) o->shape[o->rank++] = size;
    else p->wrong |= size != 1;
}

static void shape_of(placing *p) {
    sm_weight_place *o = p->out;
    const char *first[SM_WEIGHT_RANK];
    size_t size[SM_WEIGHT_RANK], stride = 1, all = 1, own = 1;
    int n = 0;
    if (*p->at++ != '[') p->wrong = true;
    while (!p->wrong && n < SM_WEIGHT_RANK) {
        first[n] = p->at;
        size[n++] = sum_of(p, 0, false, 0);
        parts_of(p, size[n - 1]);
        if (*p->at == ']') break;
        if (*p->at++ != ',') p->wrong = true;
    }
    const char *end = p->at;
    for (int d = n - 1; d >= 0 && !p->wrong; all *= size[d], stride *= size[d--]) {
        p->at = first[d];
        sum_of(p, stride, true, 0);
    }
    p->at = end + (*end == ']');
    for (int d = 0; d < p->a->rank; d++)
        if (d != o->counted) own *= (size_t)p->l->dim[p->a->dim[d]].size;
    o->alone = own == all;
}

/* The name behind the prefix of this number, of those that hf.prefix has between semicolons, with
 * that of the base model or without it; "=P" stands in its place. false: there is none. */
static bool put_prefix(const placing *p, int number, const char *name) {
    const sm_architecture *a = p->m->architecture;
    const char *base = number % 2 ? sm_architecture_word_of(a, p->kind, "hf.base") : NULL;
    const char *at = sm_architecture_word_of(a, p->kind, "hf.prefix");
    for (at = at ? at : ""; number > 1; number -= 2) {
        at = strchr(at, ';');
        if (!at) return false;
        at++;
    }
    const bool instead = *at == '=';
    if (instead) base = sm_architecture_word_of(a, p->kind, "hf.base");
    at += instead;
    size_t n = strcspn(at, ";"), room = sizeof p->out->name, length = base ? strlen(base) : 0;
    if (length && strncmp(name, base, length) == 0) name += length;
    else if (instead) n = 0;
    return snprintf(p->out->name, room, "%.*s%s", (int)n, at, name) < (int)room;
}

/* What the family says of the name in a place, or, of a stack, else in all: "hf.decoder.ffn.wu",
 * "hf.ffn.wu". */
static const char *said_in(const sm_model *m, int kind, const char *where, bool stack,
                           const char *name, char *key, size_t room) {
    snprintf(key, room, "hf.%s%s%s", where, *where ? "." : "", name);
    const char *said = sm_architecture_word_of(m->architecture, kind, key);
    return said || !stack || !*where ? said : said_in(m, kind, "", stack, name, key, room);
}

/* What a piece of this number (step.h) is called: of layers their stack, in which it is layer *at.
 */
static const char *place_of(const sm_model *m, int number, int *at, int *kind) {
    const sm_model_piece *piece;
    int n = sm_architecture_pieces(m->architecture, &piece), layers = number, i = 0;
    bool inside = number >= 0 && number < m->L;
    while (inside && i + 1 < n && (piece[i].apart || piece[i].layer < 0 || layers-- > 0)) i++;
    if (!inside) i = m->out[number < 0 ? 0 : number == m->L ? m->outside - 1 : number - m->L].piece;
    *at = inside ? piece[i].layer : number;
    *kind = piece[i].kind;
    return inside ? piece[i].stack : piece[i].name;
}

sm_status sm_model_weight_place(const sm_model *m, const sm_text_lines *lines, int array, int layer,
                                int number, sm_weight_place *out, sm_error *err) {
    char key[96];
    const char *name = lines->array[array].name;
    int at, kind;
    const char *where = place_of(m, layer, &at, &kind);
    bool inside = layer >= 0 && layer < m->L;
    const char *before = inside && lines->array[array].piece < 0
                             ? said_in(m, kind, where, inside, "layer", key, sizeof key)
                             : NULL; /* what others read too is named in full */
    const char *said = said_in(m, kind, where, inside, name, key, sizeof key);
    if (!said && layer == m->L) said = said_in(m, kind, "head", false, name, key, sizeof key);
    while (said && *said) {
        *out = (sm_weight_place){.counted = -1};
        placing p = {.m = m,
                     .kind = kind,
                     .l = lines,
                     .a = &lines->array[array],
                     .at = before && *said != '=' ? before : "",
                     .out = out};
        name_of(&p, "", at);
        p.at = said + (*said == '=');
        name_of(&p, "[;", at);
        if (!p.wrong) shape_of(&p);
        skip(&p);
        if (p.wrong || (*p.at && *p.at != ';')) {
            const char *next = strchr(p.at, ';');
            if (!p.wrong || !next)
                return sm_fail(
                    err, SM_BAD_INPUT,
                    "the family %s says of the weight %s that it is \"%.100s\", which is "
                    "no place of it",
                    m->family, name, said);
            said = next + 1;
            continue;
        }
        said = *p.at ? p.at + 1 : "";
        if (!fits(&p)) continue;
        char plain[sizeof out->name];
        memcpy(plain, out->name, sizeof plain);
        for (int i = 0; put_prefix(&p, i, plain); i++)
            if (number-- == 0) return SM_OK;
    }
    return sm_fail(err, SM_BAD_INPUT,
                   "the family %s does not say which tensor of a checkpoint %s%s is: `fields %s = "
                   "\"NAME[...]\"` would",
                   m->family,
                   layer < 0       ? "the embedding's "
                   : layer == m->L ? "the head's "
                                   : "",
                   name, key);
}
