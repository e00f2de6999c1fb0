/* Sizes of indices, the output that a product without "->" has, and what makes an einsum valid. */
#include "notation.h"
#include <math.h>

static const double LARGEST_PRODUCT = 1e18; /* beyond it doubles no longer count elements exactly */

int sm_array_dim_of(const sm_array *array, int index) {
    for (int d = 0; d < array->rank; d++)
        if (array->dim[d].index == index) return d;
    return -1;
}

bool sm_array_has(const sm_array *array, int index) { return sm_array_dim_of(array, index) >= 0; }

int sm_operands_with(const sm_einsum *einsum, int index) {
    int n = 0;
    for (int o = 0; o < einsum->operands; o++) n += sm_array_has(&einsum->in[o], index);
    return n;
}

/* ---- "I=1024,J=4k" ---- */

static sm_status index_of_name(sm_cursor *c, const sm_einsum *einsum, sm_span name, int *index,
                               sm_error *err) {
    const char *text = c->source->text + name.offset;
    const char *names[SM_MAX_INDICES];
    size_t n = 0;
    *index = sm_index_named(einsum, text, name.length);
    if (*index >= 0) return SM_OK;
    for (int i = 0; i < einsum->indices; i++)
        if (!einsum->index[i].literal) names[n++] = einsum->index[i].name;
    const char *near = sm_nearest(text, name.length, names, n);
    return sm_fail_at(err, c->source, name, "no index %.*s in the einsum%s%s",
                      (int)(name.length < 40 ? name.length : 40), text,
                      near != NULL ? ", nearest is " : "", near != NULL ? near : "");
}

static sm_status one_size(sm_cursor *c, sm_einsum *einsum, uint32_t *seen, sm_error *err) {
    sm_cursor_blanks(c);
    sm_span name = sm_cursor_name(c);
    int index = 0;
    if (name.length == 0)
        return sm_fail_expected(err, c, "the name of an index, as in I=1024,J=4096");
    sm_status status = index_of_name(c, einsum, name, &index, err);
    if (status != SM_OK) return status;
    if (*seen >> index & 1)
        return sm_fail_at(err, c->source, name, "index %s is given twice",
                          einsum->index[index].name);
    *seen |= 1u << index;
    if (!sm_cursor_accept(c, '=')) return sm_fail_expected(err, c, "'=' and the size of the index");
    /* Everything up to the next comma, blanks at both ends left out. */
    sm_cursor_blanks(c);
    sm_span span = {c->at, 0};
    for (int byte; (byte = sm_cursor_peek(c)) >= 0 && byte != ','; c->at++)
        if (byte > ' ') span.length = c->at + 1 - span.offset;
    double size = 0;
    if (span.length == 0) return sm_fail_expected(err, c, "the size of the index");
    status = sm_quantity_parse(c->source, span, SM_Q_COUNT, &size, err);
    if (status == SM_OK && !(size >= 1 && size <= LARGEST_PRODUCT && floor(size) == size))
        status = sm_fail_at(err, c->source, span, "the size of %s is a whole number from 1 to 1e18",
                            einsum->index[index].name);
    if (status == SM_OK) sm_index_set_size(einsum, index, size);
    return status;
}

sm_status sm_dims_parse(const sm_source *source, sm_einsum *einsum, sm_error *err) {
    sm_cursor c = {source, 0};
    uint32_t seen = 0;
    if (sm_cursor_end(&c)) return SM_OK;
    do {
        sm_status status = one_size(&c, einsum, &seen, err);
        if (status != SM_OK) return status;
    } while (sm_cursor_accept(&c, ','));
    return SM_OK;
}

/* ---- the output of "A[I,J] B[J,K]" ---- */

static bool stands_twice(const sm_einsum *einsum, int index) {
    bool again = einsum->index[index].repeats > 0;
    for (int i = 0; i < einsum->indices; i++)
        again = again || einsum->index[i].repeats == index + 1;
    return again;
}

sm_status sm_einsum_infer_output(sm_einsum *einsum, const sm_source *source, sm_error *err) {
    if (einsum->has_output) return SM_OK;
    sm_array out = {.dtype = einsum->in[0].dtype};
    for (int i = 0; i < einsum->indices; i++) {
        if (sm_operands_with(einsum, i) != 1 || stands_twice(einsum, i)) continue;
        if (out.rank == SM_MAX_RANK)
            return sm_fail_at(err, source, einsum->in[0].span,
                              "the product has more than %d dimensions", SM_MAX_RANK);
        out.dim[out.rank++] = (sm_dim){.index = i};
    }
    einsum->out = out;
    einsum->has_output = true;
    return SM_OK;
}

/* ---- validity ---- */

static sm_status check_in_mesh(const sm_array *array, const sm_mesh *mesh, const sm_source *source,
                               sm_error *err) {
    if (array->unreduced >> mesh->axes != 0)
        return sm_fail_at(err, source, array->span, "an unreduced axis is not in the mesh");
    for (int d = 0; d < array->rank; d++)
        for (int i = 0; i < array->dim[d].n_axes; i++)
            if (array->dim[d].axis[i] >= mesh->axes)
                return sm_fail_at(err, source, array->dim[d].span, "axis %d is not in the mesh",
                                  array->dim[d].axis[i]);
    return SM_OK;
}

sm_status sm_array_check_axes(const sm_array *array, const sm_einsum *einsum, const sm_mesh *mesh,
                              const sm_source *source, sm_error *err) {
    unsigned seen = array->unreduced;
    sm_status status = check_in_mesh(array, mesh, source, err);
    for (int d = 0; d < array->rank && status == SM_OK; d++)
        for (int i = 0; i < array->dim[d].n_axes; i++) {
            int axis = array->dim[d].axis[i];
            if (seen >> axis & 1) {
                char shown[256];
                sm_array_format(array, einsum, mesh, shown, sizeof shown);
                return sm_fail_at(err, source, array->dim[d].span, "axis %s is used twice in %s",
                                  mesh->axis[axis].name, shown);
            }
            seen |= 1u << axis;
        }
    return status;
}

static sm_status check_size(const sm_index *index, const sm_source *source, sm_span span,
                            sm_error *err) {
    if (index->size == 0)
        return sm_fail_at(err, source, span, "index %s has no size, give one such as %s=4096",
                          index->name, index->name);
    if (!(index->size >= 1 && index->size <= LARGEST_PRODUCT && floor(index->size) == index->size))
        return sm_fail_at(err, source, span, "the size of %s is a whole number from 1 to 1e18",
                          index->name);
    return SM_OK;
}

static sm_status check_array(const sm_array *array, const sm_einsum *einsum, const sm_mesh *mesh,
                             const sm_source *source, sm_error *err) {
    sm_status status = sm_array_check_axes(array, einsum, mesh, source, err);
    for (int d = 0; d < array->rank && status == SM_OK; d++) {
        const sm_dim *dim = &array->dim[d];
        status = check_size(&einsum->index[dim->index], source, dim->span, err);
    }
    return status;
}

/* A product sums what two of its arrays have, as in lines; what one alone has is a slip of the pen.
 */
static sm_status check_sums(const sm_einsum *e, const sm_source *source, sm_error *err) {
    for (int o = 0; e->has_output && e->operands > 1 && o < e->operands; o++)
        for (int d = 0; d < e->in[o].rank; d++) {
            int index = e->in[o].dim[d].index;
            if (sm_operands_with(e, index) > 1 || sm_array_has(&e->out, index) ||
                e->index[index].repeats)
                continue;
            return sm_fail_at(err, source, e->in[o].span,
                              "%s stands in %s alone: a product sums what two arrays have",
                              e->index[index].name, *e->in[o].name ? e->in[o].name : "one array");
        }
    return SM_OK;
}

sm_status sm_einsum_check(const sm_einsum *einsum, const sm_mesh *mesh, const sm_source *source,
                          sm_error *err) {
    static const sm_mesh no_mesh;
    if (mesh == NULL) mesh = &no_mesh;
    sm_status status = SM_OK;
    for (int o = 0; o < einsum->operands && status == SM_OK; o++)
        status = check_array(&einsum->in[o], einsum, mesh, source, err);
    if (status == SM_OK && einsum->has_output)
        status = check_array(&einsum->out, einsum, mesh, source, err);
    if (status == SM_OK) status = check_sums(einsum, source, err);
    /* A product of more is made in pairs, so that no loop runs over all indices. */
    double product = 1;
    for (int i = 0; i < einsum->indices; i++)
        product *= sm_index_repeats(einsum, i) < 0 ? einsum->index[i].size : 1;
    if (status == SM_OK && product > LARGEST_PRODUCT && einsum->operands <= 2)
        status =
            sm_fail_at(err, source, einsum->in[0].span,
                       "the product of all dimensions is %.3g, above the limit of 1e18", product);
    for (int o = 0; o <= einsum->operands && status == SM_OK; o++) {
        const sm_array *array = o < einsum->operands ? &einsum->in[o] : &einsum->out;
        if (sm_array_elements(array, einsum) > LARGEST_PRODUCT)
            status = sm_fail_at(err, source, array->span,
                                "an array of %.3g elements, above the limit of 1e18",
                                sm_array_elements(array, einsum));
    }
    return status;
}
