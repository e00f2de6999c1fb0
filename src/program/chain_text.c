/* A chain from lines of text, in the notation of layers. Products stay what they are. Norms,
 * softmax and the loss become the kernels that compilers make of them: what is summed along their
 * dimension is an array of its own, which a sharded dimension leaves as partial sums. */
#include "scalemodel/architecture.h"
#include "scalemodel/chain.h"

#include <string.h>

typedef struct reading {
    const sm_source *source;
    const sm_mesh *mesh;
    const sm_text_lines *lines;
    sm_arena *arena;
    sm_chain *chain;
    int index[SM_TEXT_MOST_DIMS]; /* of the chain, of each dimension of the lines */
    sm_error *err;
} reading;

/* ---- sizes ---- */

static const char FAMILY[] = "chain";

/* The index that another repeats, whose name is its own with a digit that nobody wrote: I2 of
 * a[I,I]; -1. */
static int repeated_by(const sm_source *source, const sm_einsum *names, int index) {
    const char *name = names->index[index].name;
    size_t length = strlen(name);
    for (size_t at = 0; at + length <= source->length; at++)
        if (memcmp(source->text + at, name, length) == 0) return -1;
    for (int i = 0; i < names->indices; i++)
        if (strlen(names->index[i].name) == length - 1 &&
            memcmp(names->index[i].name, name, length - 1) == 0)
            return i;
    return -1;
}

/* Names from the text, sizes from --dims. */
static sm_status read_sizes(const sm_library *library, const sm_source *source,
                            const sm_source *dims, sm_einsum *names, sm_error *err) {
    sm_text_mention dim[SM_MAX_INDICES + 1];
    int n = sm_library_dims(library, FAMILY, dim, SM_MAX_INDICES + 1);
    if (n > SM_MAX_INDICES)
        return sm_fail_at(err, source, dim[n - 1].span, "more dimensions than %d, the most",
                          SM_MAX_INDICES);
    memset(names, 0, sizeof *names);
    for (; names->indices < n; names->indices++)
        memcpy(names->index[names->indices].name, dim[names->indices].name,
               strlen(dim[names->indices].name) + 1);
    sm_status status = dims->text ? sm_dims_parse(dims, names, err) : SM_OK;
    for (int i = 0; i < n; i++) {
        int first = repeated_by(source, names, i);
        if (first >= 0) names->index[i].size = names->index[first].size;
        names->index[i].repeats = first + 1;
    }
    for (int i = 0; !status && i < n; i++)
        if (names->index[i].size == 0)
            status = sm_fail_at(err, source, dim[i].span,
                                "index %s has no size, give one such as %s=4096", dim[i].name,
                                dim[i].name);
    return status;
}

/* The family of the one text, with these sizes. */
static sm_status read_family(sm_library *library, const sm_einsum *names, sm_arena *arena,
                             sm_error *err) {
    const char *text = sm_arena_printf(arena, "family \"%s\"\ndims\n", FAMILY);
    for (int i = 0; text && i < names->indices; i++)
        text = sm_arena_printf(arena, "%s%s = %.0f\n", text, names->index[i].name,
                               names->index[i].size);
    if (text) text = sm_arena_printf(arena, "%smodel\npiece %s\n", text, FAMILY);
    if (!text) return sm_fail_memory(err);
    const sm_source source = sm_source_of("sizes", text);
    return sm_library_read(library, &source, err);
}

static sm_status read_lines(reading *r, const sm_source *dims) {
    static const sm_source no_config = {"config", "{}", 2};
    sm_library *library;
    const sm_architecture *made;
    const sm_text_lines_of all = {.T = 1, .S = 1};
    sm_status status = sm_library_new(r->arena, NULL, &library, r->err);
    if (!status) status = sm_library_read_lines(library, r->source, FAMILY, r->err);
    if (!status) status = read_sizes(library, r->source, dims, &r->chain->names, r->err);
    if (!status) status = read_family(library, &r->chain->names, r->arena, r->err);
    if (!status) status = sm_library_check(library, r->err);
    if (!status) status = sm_architecture_new(library, &no_config, FAMILY, r->arena, &made, r->err);
    if (!status) status = sm_architecture_lines(made, &all, r->arena, &r->lines, r->err);
    return status;
}

/* ---- arrays ---- */

static sm_status wrong(const reading *r, const sm_text_line *line, const char *sentence) {
    return sm_fail_at(r->err, r->source, line ? line->span : (sm_span){0, r->source->length}, "%s",
                      sentence);
}

static sm_status too_long(const reading *r) {
    return sm_fail_at(r->err, r->source, (sm_span){0, r->source->length},
                      "more than %d lines or %d arrays, with those that norms, softmax and losses "
                      "are made of",
                      SM_CHAIN_MOST_LINES, SM_CHAIN_MOST_ARRAYS);
}

static int index_of(const sm_einsum *names, const char *name) {
    for (int i = 0; i < names->indices; i++)
        if (strcmp(names->index[i].name, name) == 0) return i;
    return -1;
}

/* The mesh axes that are written at a dimension. */
static sm_status read_axes(const reading *r, const char *axes, sm_array *holder, sm_dim *dim) {
    const char *text = sm_arena_printf(r->arena, "[I_%s]", axes);
    sm_error none;
    sm_einsum one;
    if (!text) return sm_fail_memory(r->err);
    const sm_source source = sm_source_of("axes", text);
    if (sm_array_parse(&source, r->mesh, &one, &none))
        return sm_fail_at(r->err, r->source, holder->span, "%s: %s", holder->name, none.sentence);
    dim->n_axes = one.in[0].dim[0].n_axes;
    memcpy(dim->axis, one.in[0].dim[0].axis, sizeof dim->axis);
    return SM_OK;
}

static sm_status take_array(reading *r, const sm_text_array *from, sm_chain_array *to) {
    sm_status status = SM_OK;
    size_t length = strlen(from->name);
    *to = (sm_chain_array){.line = -1, .given = from->line < 0, .named = true};
    sm_array *array = &to->array;
    array->span =
        from->line < 0 ? (sm_span){0, r->source->length} : r->lines->line[from->line].span;
    if (length >= sizeof array->name)
        return sm_fail_at(r->err, r->source, array->span,
                          "the name of an array has at most %zu letters", sizeof array->name - 1);
    memcpy(array->name, from->name, length);
    array->dtype = from->typed ? from->type : SM_BF16;
    array->dtype_given = from->typed;
    array->rank = from->rank;
    for (int d = 0; !status && d < from->rank; d++) {
        array->dim[d] = (sm_dim){.index = r->index[from->dim[d]]};
        to->given = to->given || from->pinned[d];
        if (from->pinned[d]) status = read_axes(r, from->pinned[d], array, &array->dim[d]);
    }
    return status;
}

static sm_status take_arrays(reading *r) {
    sm_chain *chain = r->chain;
    for (int i = 0; i < r->lines->dims; i++)
        r->index[i] = index_of(&chain->names, r->lines->dim[i].name);
    if (r->lines->arrays > SM_CHAIN_MOST_ARRAYS) return too_long(r);
    sm_status status = SM_OK;
    for (int a = 0; !status && a < r->lines->arrays; a++)
        status = take_array(r, &r->lines->array[a], &chain->array[chain->arrays++]);
    return status;
}

/* ---- lines ---- */

/* A line that makes `result` of some arrays; they are appended by `reads`. */
static sm_chain_line *add_line(reading *r, const char *name, sm_local_work work, double flops,
                               int result) {
    sm_chain *chain = r->chain;
    if (chain->lines == SM_CHAIN_MOST_LINES) return NULL;
    sm_chain_line *line = &chain->line[chain->lines];
    *line = (sm_chain_line){.work = work, .flops = flops, .result = result};
    size_t length = strlen(name);
    memcpy(line->name, name, length < SM_CHAIN_MOST_NAME ? length : SM_CHAIN_MOST_NAME);
    chain->array[result].line = chain->lines++;
    return line;
}

static void reads(sm_chain_line *line, int array) {
    for (int o = 0; line && o < line->operands; o++)
        if (line->operand[o] == array) return;
    if (line && line->operands < SM_MAX_OPERANDS) line->operand[line->operands++] = array;
}

/* What is summed of `of` along some of its dimensions, in single precision. -1: no room. */
static int add_sum(reading *r, int result, const char *what, int of, uint32_t along, double flops) {
    sm_chain *chain = r->chain;
    if (chain->arrays == SM_CHAIN_MOST_ARRAYS) return -1;
    int sum = chain->arrays++;
    const sm_array *from = &chain->array[of].array;
    sm_chain_array *to = &chain->array[sum];
    *to = (sm_chain_array){.line = -1, .array = {.dtype = SM_FP32, .span = from->span}};
    size_t kept = strlen(chain->array[result].array.name), more = strlen(what);
    if (kept + 1 + more >= sizeof to->array.name) kept = sizeof to->array.name - 2 - more;
    memcpy(to->array.name, chain->array[result].array.name, kept);
    to->array.name[kept] = '.';
    memcpy(to->array.name + kept + 1, what, more);
    for (int d = 0; d < from->rank; d++)
        if (!(along >> from->dim[d].index & 1))
            to->array.dim[to->array.rank++] = (sm_dim){.index = from->dim[d].index};
    sm_chain_line *line = add_line(r, what, SM_LOCAL_VECTOR, flops, sum);
    reads(line, of);
    return line ? sum : -1;
}

/* The dimensions that a norm or softmax sums over: those of its scale, or the last one. */
static uint32_t summed_of(const reading *r, const sm_text_line *line, int of) {
    uint32_t along = 0;
    for (int o = 0; o < line->operands; o++) {
        const sm_array *scale = &r->chain->array[line->operand[o].array].array;
        for (int d = 0; r->lines->array[line->operand[o].array].norm && d < scale->rank; d++)
            along |= 1u << scale->dim[d].index;
    }
    const sm_array *array = &r->chain->array[of].array;
    if (along == 0 && array->rank > 0) along = 1u << array->dim[array->rank - 1].index;
    return along;
}

static sm_operator norm_of(const sm_text_line *line) {
    for (int i = 0; i < line->terms; i++)
        if (line->term[i].kind == SM_TERM_OPERATOR && line->term[i].op >= SM_OPERATOR_RMSNORM &&
            line->term[i].op <= SM_OPERATOR_SOFTMAX)
            return line->term[i].op;
    return SM_OPERATOR_EXPRESSION;
}

/* FLOPs for each element of what is summed: square and add; a maximum; an exponential and add. */
enum { SQUARE_FLOPS = 2, MAXIMUM_FLOPS = 1, EXPONENTIAL_FLOPS = 4 };

/* The sums that a norm or softmax needs, each read by those after it. False: no room. */
static bool add_sums(reading *r, const sm_text_line *line, sm_operator op, int *sum, int *n) {
    int result = line->result[0].array, of = line->operand[0].array;
    uint32_t along = summed_of(r, line, of);
    bool soft = op == SM_OPERATOR_SOFTMAX, layer = op == SM_OPERATOR_LAYERNORM;
    *n = 0;
    if (soft || layer)
        sum[(*n)++] = add_sum(r, result, soft ? "max" : "mean", of, along, MAXIMUM_FLOPS);
    if (*n > 0 && sum[0] < 0) return false;
    sum[*n] = add_sum(r, result,
                      soft    ? "sum"
                      : layer ? "var"
                              : "rms",
                      of, along, soft ? EXPONENTIAL_FLOPS : SQUARE_FLOPS + layer);
    if (sum[*n] < 0) return false;
    if (*n > 0) reads(&r->chain->line[r->chain->lines - 1], sum[0]);
    (*n)++;
    return true;
}

static bool add_expression(reading *r, const sm_text_line *line) {
    int sum[2], n = 0;
    sm_operator op = norm_of(line);
    if (line->norm && !add_sums(r, line, op, sum, &n)) return false;
    sm_chain_line *to = add_line(r, line->norm ? sm_operator_at(op)->name : "", SM_LOCAL_VECTOR,
                                 line->flops, line->result[0].array);
    for (int o = 0; o < line->operands; o++) reads(to, line->operand[o].array);
    for (int i = 0; i < n; i++) reads(to, sum[i]);
    return to != NULL;
}

/* The largest logit, the sum of exponentials and the logit of the target: what is sharded along the
 * vocabulary adds three small arrays. */
static bool add_loss(reading *r, const sm_text_line *line) {
    int result = line->result[0].array, logits = line->operand[0].array;
    const sm_array *out = &r->chain->array[result].array, *from = &r->chain->array[logits].array;
    uint32_t along = 0;
    for (int d = 0; d < from->rank; d++) along |= 1u << from->dim[d].index;
    for (int d = 0; d < out->rank; d++) along &= ~(1u << out->dim[d].index);
    int max = add_sum(r, result, "max", logits, along, MAXIMUM_FLOPS);
    if (max < 0) return false;
    int sum = add_sum(r, result, "sum", logits, along, EXPONENTIAL_FLOPS);
    if (sum < 0) return false;
    reads(&r->chain->line[r->chain->lines - 1], max);
    int target = add_sum(r, result, "target", logits, along, 0);
    if (target < 0) return false;
    sm_chain_line *look = &r->chain->line[r->chain->lines - 1];
    look->work = SM_LOCAL_LOOKUP;
    if (line->operands > 1) {
        look->operand[0] = line->operand[1].array;
        look->operand[1] = logits;
        look->operands = 2;
    }
    sm_chain_line *to = add_line(r, "cross_entropy", SM_LOCAL_VECTOR, 3, result);
    reads(to, max);
    reads(to, sum);
    reads(to, target);
    return to != NULL;
}

/* A convolution sees so many positions before each: a chip that has a part of them needs the last
 * ones of the chip before. */
static bool add_window(reading *r, const sm_text_line *line) {
    sm_chain_line *to = add_line(r, "conv", SM_LOCAL_VECTOR, SQUARE_FLOPS, line->result[0].array);
    for (int o = 0; o < line->operands; o++) reads(to, line->operand[o].array);
    if (to && line->along >= 0 && line->taps > 1) {
        to->along = r->index[line->along];
        to->edges = line->taps - 1;
    }
    return to != NULL;
}

/* Rows are added up by their numbers, and the sums to the array: partial sums where chips have rows
 * of their own. */
static bool add_scatter(reading *r, const sm_text_line *line) {
    int result = line->result[0].array;
    int sum = add_sum(r, result, "sum", line->operand[0].array, 0, 0);
    if (sum < 0) return false;
    sm_chain_line *rows = &r->chain->line[r->chain->lines - 1];
    rows->work = SM_LOCAL_SCATTER;
    rows->operands = 0;
    r->chain->array[sum].array.dtype = r->chain->array[line->operand[0].array].array.dtype;
    for (int o = 1; o < line->operands; o++) reads(rows, line->operand[o].array);
    sm_chain_line *to = add_line(r, "scatter", SM_LOCAL_VECTOR, 1, result);
    reads(to, line->operand[0].array);
    reads(to, sum);
    return to != NULL;
}

static bool add_plain(reading *r, const sm_text_line *line) {
    bool product = line->op == SM_OPERATOR_PRODUCT, take = line->op == SM_OPERATOR_TAKE;
    sm_chain_line *to = add_line(r, product ? "" : sm_operator_at(line->op)->name,
                                 product ? SM_LOCAL_PRODUCT
                                 : take  ? SM_LOCAL_LOOKUP
                                         : SM_LOCAL_VECTOR,
                                 MAXIMUM_FLOPS, line->result[0].array);
    /* the table of a look-up comes last; a product may have an array twice */
    for (int o = line->operands - 1; take && o >= 0; o--) reads(to, line->operand[o].array);
    for (int o = 0; to && !take && o < line->operands; o++)
        to->operand[to->operands++] = line->operand[o].array;
    return to != NULL;
}

/* Letters of equal size may stand for each other in a layer; here each says where axes are. */
static sm_status check_letters(const reading *r, const sm_text_line *line) {
    for (int o = 0; o < line->operands + line->results; o++) {
        const sm_mention *m =
            o < line->operands ? &line->operand[o] : &line->result[o - line->operands];
        const sm_text_array *array = &r->lines->array[m->array];
        if (memcmp(m->dim, array->dim, (size_t)array->rank) != 0)
            return sm_fail_at(r->err, r->source, line->span,
                              "%s has other letters here than where it is made", array->name);
    }
    return SM_OK;
}

static sm_status take_line(reading *r, const sm_text_line *line) {
    bool fits = true;
    sm_status status = check_letters(r, line);
    if (!status && line->operands == 0)
        status = wrong(r, line, "a line of a chain reads at least one array");
    if (!status && line->operands > SM_MAX_OPERANDS)
        status = wrong(r, line, "a line of a chain reads at most 10 arrays");
    if (status) return status;
    switch ((int)line->op) {
    case SM_OPERATOR_EXPRESSION: fits = add_expression(r, line); break;
    case SM_OPERATOR_CROSS_ENTROPY: fits = add_loss(r, line); break;
    case SM_OPERATOR_CONV: fits = add_window(r, line); break;
    case SM_OPERATOR_SCATTER:
        if (line->operands < 3)
            return wrong(r, line,
                         "expected what is added to, numbers, and rows: scatter(a[V,D], "
                         "ids[B], u[B,D])");
        fits = add_scatter(r, line);
        break;
    case SM_OPERATOR_PRODUCT:
    case SM_OPERATOR_TAKE:
    case SM_OPERATOR_SUM:
    case SM_OPERATOR_MEAN: fits = add_plain(r, line); break;
    default:
        return wrong(r, line,
                     "a chain is made of products, expressions, norms, softmax, take, scatter, "
                     "conv, sum, mean and cross_entropy");
    }
    return fits ? SM_OK : too_long(r);
}

/* A line on more than one array reads the diagonal of a[I,I] from a line of its own. */
static sm_status take_diagonals(const reading *r) {
    sm_chain *chain = r->chain;
    for (int i = 0; i < chain->names.indices; i++) {
        sm_index *again = &chain->names.index[i];
        if (again->repeats > 0)
            memcpy(again->name, chain->names.index[again->repeats - 1].name, sizeof again->name);
    }
    for (int l = 0; l < chain->lines; l++)
        for (int o = 0; o < chain->line[l].operands; o++) {
            int a = chain->line[l].operand[o];
            const sm_array *result = &chain->array[chain->line[l].result].array;
            if (sm_array_is_diagonal(result, &chain->names))
                return sm_fail_at(r->err, r->source, result->span,
                                  "an index stands twice in %s: what is not on the diagonal is not "
                                  "said",
                                  result->name);
            if (!sm_array_is_diagonal(&chain->array[a].array, &chain->names) ||
                chain->line[l].operands == 1)
                continue;
            if (chain->arrays == SM_CHAIN_MOST_ARRAYS || chain->lines == SM_CHAIN_MOST_LINES)
                return too_long(r);
            sm_chain_take_diagonal(chain, a, l++);
        }
    return SM_OK;
}

/* Each array as the one operand of an einsum: its sizes divide, its axes stand once. */
static sm_status check_arrays(const reading *r) {
    sm_status status = SM_OK;
    for (int a = 0; !status && a < r->chain->arrays; a++) {
        sm_einsum one = r->chain->names;
        one.operands = 1;
        one.in[0] = r->chain->array[a].array;
        status = sm_einsum_check(&one, r->mesh, r->source, r->err);
    }
    return status;
}

sm_status sm_chain_read(const sm_source *text, const sm_source *dims, const sm_mesh *mesh,
                        sm_arena *arena, sm_chain *chain, sm_error *err) {
    reading r = {.source = text, .mesh = mesh, .arena = arena, .chain = chain, .err = err};
    memset(chain, 0, sizeof *chain);
    sm_status status = read_lines(&r, dims);
    if (!status) status = take_arrays(&r);
    for (int i = 0; !status && i < r.lines->lines; i++) status = take_line(&r, &r.lines->line[i]);
    if (!status) status = take_diagonals(&r);
    if (!status) status = check_arrays(&r);
    if (status) return status;
    for (int a = 0; a < chain->arrays; a++) chain->array[a].uses = 0;
    for (int l = 0; l < chain->lines; l++) {
        const sm_chain_line *line = &chain->line[l];
        for (int o = 0; o < line->operands; o++) {
            bool again = false;
            for (int k = 0; k < o; k++) again = again || line->operand[k] == line->operand[o];
            chain->array[line->operand[o]].uses += !again;
        }
    }
    return sm_chain_share_moves(chain, err);
}
