/* The array and einsum notation of "How To Scale Your Model", chapter 3, in ASCII:
 *   bf16 A[I_X,J] int8 B[J,K_Y] -> C[I_X,K_Y]        C[I,K] {U_X}
 * Blanks may stand anywhere between tokens; '*' or a middle dot may stand between operands.
 *
 * A single word before '[' is a data type if it names one, else the name of the array.
 *
 * Literal sizes carry no name, so this rule ties them: the first dimension of an operand is the
 * last dimension of the operand before it when both are literal and equal (a matmul); a literal of
 * the output is the next literal of that size that stands in one operand only. Where that leaves
 * equal literals untied in operands that share nothing, the meaning is open and names are asked
 * for. */
#include "notation.h"

static const int64_t LARGEST_SIZE = 1000000000000000000; /* 1e18 */
static const char *const DOTS[] = {"*", "\xC2\xB7", "\xE2\x8B\x85", "\xE2\x80\xA2"};
static const char *const ARROWS[] = {"->", "\xE2\x86\x92"};

typedef struct parse {
    sm_cursor at;
    const sm_mesh *mesh;
    sm_einsum *einsum;
    bool output; /* the array being read stands after the arrow */
    sm_error *err;
} parse;

static bool accept_any(sm_cursor *c, const char *const *words, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (sm_cursor_accept_word(c, words[i])) return true;
    return false;
}

static const char *text_of(const parse *p, sm_span span) {
    return p->at.source->text + span.offset;
}

/* ---- indices ---- */

int sm_index_named(const sm_einsum *einsum, const char *text, size_t length) {
    for (int i = 0; i < einsum->indices; i++) {
        const sm_index *index = &einsum->index[i];
        if (!index->literal && strlen(index->name) == length &&
            memcmp(index->name, text, length) == 0)
            return i;
    }
    return -1;
}

static sm_status new_index(parse *p, sm_span span, double size, bool literal, int *index) {
    sm_einsum *e = p->einsum;
    if (e->indices == SM_MAX_INDICES)
        return sm_fail_at(p->err, p->at.source, span, "an einsum has at most %d indices",
                          SM_MAX_INDICES);
    sm_index *fresh = &e->index[e->indices];
    if (span.length >= sizeof fresh->name)
        return sm_fail_at(p->err, p->at.source, span,
                          "the name of an index has at most %zu letters", sizeof fresh->name - 1);
    *fresh = (sm_index){.size = size, .literal = literal};
    memcpy(fresh->name, text_of(p, span), span.length);
    *index = e->indices++;
    return SM_OK;
}

static sm_status unknown_output_index(parse *p, sm_span span) {
    const char *names[SM_MAX_INDICES];
    for (int i = 0; i < p->einsum->indices; i++) names[i] = p->einsum->index[i].name;
    const char *near = sm_nearest(text_of(p, span), span.length, names, (size_t)p->einsum->indices);
    return sm_fail_at(p->err, p->at.source, span,
                      "index %.*s of the output stands in no operand%s%s",
                      (int)(span.length < 40 ? span.length : 40), text_of(p, span),
                      near != NULL ? ", nearest is " : "", near != NULL ? near : "");
}

static sm_status named_index(parse *p, sm_span span, int *index) {
    *index = sm_index_named(p->einsum, text_of(p, span), span.length);
    if (*index >= 0) return SM_OK;
    return p->output ? unknown_output_index(p, span) : new_index(p, span, 0, false, index);
}

/* A[I,I]: the second I is an index of its own, which says what it repeats. */
static sm_status repeated_index(parse *p, sm_span span, int *index) {
    int first = *index;
    if (p->output)
        return sm_fail_at(p->err, p->at.source, span,
                          "index %s stands twice in the output: what is not on the diagonal is not "
                          "said",
                          p->einsum->index[first].name);
    sm_status status = new_index(p, span, 0, false, index);
    if (status == SM_OK) p->einsum->index[*index].repeats = first + 1;
    return status;
}

static sm_status literal_of_output(parse *p, sm_span span, double size, int *index) {
    const sm_einsum *e = p->einsum;
    for (int i = 0; i < e->indices; i++)
        if (e->index[i].literal && e->index[i].size == size && sm_operands_with(e, i) == 1 &&
            !sm_array_has(&e->out, i)) {
            *index = i;
            return SM_OK;
        }
    return sm_fail_at(p->err, p->at.source, span,
                      "no operand has a free dimension of size %.0f left for the output", size);
}

/* The last dimension of the operand before, when it is a literal of this size; else -1. */
static int tied_literal(const sm_einsum *einsum, const sm_array *array, double size) {
    int o = einsum->operands - 1;
    if (array->rank > 0 || o < 0 || einsum->in[o].rank == 0) return -1;
    int last = einsum->in[o].dim[einsum->in[o].rank - 1].index;
    return einsum->index[last].literal && einsum->index[last].size == size ? last : -1;
}

static sm_status literal_index(parse *p, const sm_array *array, sm_span span, int *index) {
    int64_t size = 0;
    sm_status status = sm_integer_parse(p->at.source, span, 1, LARGEST_SIZE, &size, p->err);
    if (status != SM_OK) return status;
    if (p->output) return literal_of_output(p, span, (double)size, index);
    *index = tied_literal(p->einsum, array, (double)size);
    if (*index >= 0) return SM_OK;
    /* The name is the canonical decimal: "0128" is 128. */
    while (span.length > 1 && *text_of(p, span) == '0')
        span = (sm_span){span.offset + 1, span.length - 1};
    return new_index(p, span, (double)size, true, index);
}

/* ---- one array ---- */

static sm_status one_dim(parse *p, sm_array *array) {
    sm_cursor_blanks(&p->at);
    if (array->rank == SM_MAX_RANK) return sm_fail_expected(p->err, &p->at, "at most 8 dimensions");
    sm_dim dim = {.span.offset = p->at.at};
    sm_span name = sm_cursor_name(&p->at), digits = {0, 0};
    if (name.length == 0) digits = sm_cursor_digits(&p->at);
    if (name.length + digits.length == 0)
        return sm_fail_expected(p->err, &p->at, "an index such as I, or a size such as 1024");
    sm_status status = name.length > 0 ? named_index(p, name, &dim.index)
                                       : literal_index(p, array, digits, &dim.index);
    if (status == SM_OK && sm_array_has(array, dim.index))
        status = repeated_index(p, name, &dim.index);
    if (status == SM_OK && sm_cursor_accept(&p->at, '_'))
        status = sm_axes_parse(&p->at, p->mesh, &dim.n_axes, dim.axis, p->err);
    dim.span.length = p->at.at - dim.span.offset;
    if (status == SM_OK) array->dim[array->rank++] = dim;
    return status;
}

static sm_status dims_in_brackets(parse *p, sm_array *array) {
    if (!sm_cursor_accept(&p->at, '['))
        return sm_fail_expected(p->err, &p->at, "'[' and the dimensions of an array");
    if (sm_cursor_accept(&p->at, ']')) return SM_OK;
    do {
        sm_status status = one_dim(p, array);
        if (status != SM_OK) return status;
    } while (sm_cursor_accept(&p->at, ','));
    if (sm_cursor_accept(&p->at, ']')) return SM_OK;
    return sm_fail_expected(p->err, &p->at, "',' or ']' after a dimension");
}

static sm_status unreduced_axes(parse *p, sm_array *array) {
    if (!sm_cursor_accept(&p->at, '{')) return SM_OK;
    sm_cursor_blanks(&p->at);
    sm_span from = {p->at.at, 1};
    if (!sm_cursor_accept(&p->at, 'U') || !sm_cursor_accept(&p->at, '_'))
        return sm_fail_expected(p->err, &p->at, "U_ and the unreduced axes, as in {U_X}");
    int n = 0;
    uint8_t axis[SM_MAX_AXES];
    sm_status status = sm_axes_parse(&p->at, p->mesh, &n, axis, p->err);
    if (status != SM_OK) return status;
    from.length = p->at.at - from.offset;
    for (int i = 0; i < n; i++) {
        if (array->unreduced >> axis[i] & 1)
            return sm_fail_at(p->err, p->at.source, from, "axis %s is named twice in {U_..}",
                              p->mesh->axis[axis[i]].name);
        array->unreduced |= (sm_axes)(1u << axis[i]);
    }
    return sm_cursor_accept(&p->at, '}') ? SM_OK
                                         : sm_fail_expected(p->err, &p->at, "'}' after the axes");
}

static sm_status set_name(parse *p, sm_array *array, sm_span word) {
    if (word.length >= sizeof array->name)
        return sm_fail_at(p->err, p->at.source, word,
                          "the name of an array has at most %zu letters", sizeof array->name - 1);
    memcpy(array->name, text_of(p, word), word.length);
    return SM_OK;
}

static sm_status type_and_name(parse *p, sm_array *array) {
    sm_cursor_blanks(&p->at);
    sm_span first = sm_cursor_name(&p->at);
    sm_cursor_blanks(&p->at);
    sm_span second = first.length > 0 ? sm_cursor_name(&p->at) : first;
    if (first.length == 0) return SM_OK;
    array->dtype_given = sm_dtype_parse(text_of(p, first), first.length, &array->dtype);
    if (second.length == 0) return array->dtype_given ? SM_OK : set_name(p, array, first);
    if (array->dtype_given) return set_name(p, array, second);
    const char *near = sm_nearest(text_of(p, first), first.length, sm_dtype_names, SM_DTYPE_COUNT);
    return sm_fail_at(p->err, p->at.source, first, "no data type %.*s%s%s",
                      (int)(first.length < 40 ? first.length : 40), text_of(p, first),
                      near != NULL ? ", nearest is " : "", near != NULL ? near : "");
}

static sm_status one_array(parse *p, sm_array *array) {
    memset(array, 0, sizeof *array);
    array->dtype = SM_BF16;
    sm_cursor_blanks(&p->at);
    array->span.offset = p->at.at;
    sm_status status = type_and_name(p, array);
    if (status == SM_OK) status = dims_in_brackets(p, array);
    size_t end = p->at.at;
    if (status == SM_OK) status = unreduced_axes(p, array);
    if (array->unreduced != 0) end = p->at.at;
    array->span.length = end - array->span.offset;
    if (status == SM_OK && p->mesh != NULL)
        status = sm_array_check_axes(array, p->einsum, p->mesh, p->at.source, p->err);
    return status;
}

/* ---- an einsum ---- */

/* Two operands that share no index, yet hold equal literals: is that a product or an accident? */
static sm_status literals_settled(parse *p, const sm_array *array) {
    const sm_einsum *e = p->einsum;
    double size = 0;
    for (int d = 0; d < array->rank; d++) {
        const sm_index *index = &e->index[array->dim[d].index];
        if (sm_operands_with(e, array->dim[d].index) > 0) return SM_OK;
        for (int i = 0; i < e->indices && index->literal && size == 0; i++)
            if (e->index[i].literal && e->index[i].size == index->size && !sm_array_has(array, i))
                size = index->size;
    }
    if (size == 0) return SM_OK;
    return sm_fail_at(p->err, p->at.source, array->span,
                      "which dimensions of size %.0f are the same is open here: write names, as in "
                      "A[I,J] B[J,K] with sizes for I, J and K",
                      size);
}

static sm_status one_operand(parse *p) {
    sm_einsum *e = p->einsum;
    sm_array array;
    sm_cursor_blanks(&p->at);
    if (e->operands == SM_MAX_OPERANDS)
        return sm_fail_expected(p->err, &p->at, "at most 10 operands");
    sm_status status = one_array(p, &array);
    if (status == SM_OK) status = literals_settled(p, &array);
    if (status == SM_OK) e->in[e->operands++] = array;
    return status;
}

static sm_status operands(parse *p) {
    do {
        sm_status status = one_operand(p);
        if (status != SM_OK) return status;
        sm_cursor ahead = p->at;
        if (sm_cursor_end(&ahead) || accept_any(&ahead, ARROWS, 2)) return SM_OK;
        accept_any(&p->at, DOTS, sizeof DOTS / sizeof *DOTS);
    } while (true);
}

static sm_status output(parse *p) {
    sm_einsum *e = p->einsum;
    if (!accept_any(&p->at, ARROWS, 2)) return SM_OK;
    p->output = true;
    e->has_output = e->out_sharding_given = true;
    sm_status status = one_array(p, &e->out);
    if (status != SM_OK) return status;
    return sm_cursor_end(&p->at) ? SM_OK
                                 : sm_fail_expected(p->err, &p->at, "the end of the einsum");
}

/* Of the places where an index stands in an operand the others follow one; over the axes of the
 * rest the diagonal is a partial sum. That one is best sharded as other arrays have the index, else
 * most finely. */
static double fitness(const sm_einsum *e, const sm_mesh *mesh, int operand, const sm_dim *dim,
                      int index) {
    double shared = 0, ways = 1;
    for (int i = 0; i < dim->n_axes; i++) {
        ways *= mesh->axis[dim->axis[i]].size;
        for (int o = 0; o <= e->operands; o++) {
            const sm_array *other = o < e->operands ? &e->in[o] : &e->out;
            int d = o != operand ? sm_array_dim_of(other, index) : -1;
            for (int k = 0; d >= 0 && k < other->dim[d].n_axes; k++)
                shared += other->dim[d].axis[k] == dim->axis[i];
        }
    }
    return shared * 0x1p32 + ways;
}

static void settle_repeated(sm_einsum *e, const sm_mesh *mesh, int operand) {
    sm_array *array = &e->in[operand];
    for (int d = 0; d < array->rank; d++) {
        int index = array->dim[d].index, best = d;
        for (int k = d + 1; k < array->rank; k++)
            if (e->index[array->dim[k].index].repeats == index + 1 &&
                fitness(e, mesh, operand, &array->dim[k], index) >
                    fitness(e, mesh, operand, &array->dim[best], index))
                best = k;
        array->dim[d].index = array->dim[best].index;
        array->dim[best].index = index;
    }
}

sm_status sm_einsum_parse(const sm_source *source, const sm_mesh *mesh, sm_einsum *einsum,
                          sm_error *err) {
    memset(einsum, 0, sizeof *einsum);
    parse p = {.at = {source, 0}, .mesh = mesh, .einsum = einsum, .err = err};
    sm_status status = operands(&p);
    if (status == SM_OK) status = output(&p);
    for (int o = 0; status == SM_OK && o < einsum->operands; o++) settle_repeated(einsum, mesh, o);
    return status;
}

sm_status sm_array_parse(const sm_source *source, const sm_mesh *mesh, sm_einsum *holder,
                         sm_error *err) {
    memset(holder, 0, sizeof *holder);
    parse p = {.at = {source, 0}, .mesh = mesh, .einsum = holder, .err = err};
    sm_status status = one_operand(&p);
    if (status != SM_OK) return status;
    return sm_cursor_end(&p.at) ? SM_OK : sm_fail_expected(err, &p.at, "the end of the array");
}
