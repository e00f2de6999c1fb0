/* The local part of an einsum. Two operands become a batch of matrix products: their dimensions are
 * sorted into batch (in both and the output), left, right and contracted ones, transposed only
 * where they do not stand so already, and handed to BLAS; whole numbers are multiplied by plain
 * loops. Operands in bf16 and in scaled types give a result in single precision, which they are
 * converted to panel by panel. */
#include "einsum_parts.h"

#include <cblas.h>

#include "memory_account.h"

enum { MOST = 2 * SM_MAX_RANK };

/* A list of labels with their sizes, and the room that each has in memory: more than its size where
 * a part of an array is used where it lies. */
typedef struct labels {
    int n;
    int8_t label[MOST];
    size_t size[MOST], room[MOST];
} labels;

static bool has(const labels *l, int8_t label) {
    return memchr(l->label, label, (size_t)l->n) != NULL;
}

static void add(labels *l, int8_t label, size_t size) {
    assert(l->n < MOST);
    l->label[l->n] = label;
    l->room[l->n] = size;
    l->size[l->n++] = size;
}

static labels labels_of(const sm_local_block *b, const int8_t *label) {
    labels l = {.n = 0};
    for (int d = 0; d < b->rank; d++) add(&l, label[d], b->size[d]);
    return l;
}

static size_t product(const labels *l) {
    size_t n = 1;
    for (int i = 0; i < l->n; i++) n *= l->size[i];
    return n;
}

static void append(labels *to, const labels *from) {
    for (int i = 0; i < from->n; i++) add(to, from->label[i], from->size[i]);
}

static bool same_order(const labels *a, const labels *b) {
    return a->n == b->n && memcmp(a->label, b->label, (size_t)a->n) == 0;
}

/* Does every label fill its room, but for the first and that at `apart` (0: no other)? Of an array
 * that BLAS is to take as it lies, only rows may be apart. */
static bool dense(const labels *l, int apart) {
    for (int i = 1; i < l->n; i++)
        if (l->room[i] != l->size[i] && i != apart) return false;
    return true;
}

/* ---- transposing ---- */

/* to, in `order`, from an array in its own order. */
static void transpose(const void *from, const labels *array, const labels *order, void *to,
                      size_t width) {
    sm_copied dim[MOST];
    size_t written = 1;
    for (int i = order->n - 1; i >= 0; i--) {
        size_t step = 1;
        dim[i] = (sm_copied){.count = order->size[i], .to = written};
        written *= order->size[i];
        for (int d = array->n - 1; d >= 0; d--) {
            if (array->label[d] == order->label[i]) dim[i].from += step;
            step *= array->room[d];
        }
    }
    sm_copy_strided(dim, order->n, from, to, width);
}

/* A scaled block in single precision; another as it is. *copy: what the caller frees. */
static sm_status unscaled(const sm_local_block *b, sm_local_block *out, void **copy,
                          sm_error *err) {
    *out = *b;
    *copy = NULL;
    if (!sm_element_scaled(b->element)) return SM_OK;
    size_t n = sm_local_block_count(b);
    *copy = memory_new((n + 1) * sizeof(float));
    if (!*copy) return sm_fail_memory(err);
    sm_local_block_read(b, 0, n, *copy);
    out->element = SM_ELEMENT_F32;
    out->data = *copy;
    return SM_OK;
}

/* An operand in the order wanted: itself, or a transposed copy that the caller frees. */
static sm_status in_order(const sm_local_block *b, const labels *array, const labels *order,
                          sm_local_block *out, void **copy, sm_error *err) {
    void *single;
    *out = *b;
    *copy = NULL;
    if (same_order(array, order) && dense(array, 0)) return SM_OK;
    sm_status status = unscaled(b, out, &single, err);
    if (status) return status;
    size_t width = sm_element_bytes(out->element);
    *copy = memory_new(product(order) * width + 1);
    if (*copy) transpose(out->data, array, order, *copy, width);
    out->data = *copy;
    memory_free(single);
    return *copy ? SM_OK : sm_fail_memory(err);
}

/* ---- summing what one operand alone has ---- */

#define SUM(type, unsigned_type)                                                                   \
    do {                                                                                           \
        const type *x = from;                                                                      \
        type *y = to;                                                                              \
        for (size_t i = 0; i < outer; i++) {                                                       \
            unsigned_type sum = 0;                                                                 \
            for (size_t k = 0; k < inner; k++) sum += (unsigned_type)x[i * inner + k];             \
            y[i] = (type)sum;                                                                      \
        }                                                                                          \
    } while (0)

/* Rows of bf16, whose sums are single. */
static void sum_halves(const void *from, size_t outer, size_t inner, float *to) {
    for (size_t i = 0; i < outer; i++) {
        double sum = 0;
        float x;
        for (size_t k = 0; k < inner; k++) {
            sm_elements_read(SM_ELEMENT_BF16, from, i * inner + k, 1, &x);
            sum += (double)x;
        }
        to[i] = (float)sum;
    }
}

static void sum_rows(const void *from, size_t outer, size_t inner, sm_element element, void *to) {
    switch (element) {
    case SM_ELEMENT_F32: SUM(float, double); break;
    case SM_ELEMENT_F64: SUM(double, double); break;
    case SM_ELEMENT_S32: SUM(int32_t, uint32_t); break;
    case SM_ELEMENT_S64: SUM(int64_t, uint64_t); break;
    case SM_ELEMENT_BF16: sum_halves(from, outer, inner, to); break;
    default: break; /* scaled ones are made single first */
    }
}

/* out[order] = the sum of b over its labels that are not in order. */
static sm_status sum_out(const sm_local_block *b, const labels *array, const labels *order,
                         void *out, sm_error *err) {
    labels gone = {.n = 0}, all = *order;
    for (int d = 0; d < array->n; d++)
        if (!has(order, array->label[d]) && !has(&gone, array->label[d]))
            add(&gone, array->label[d], array->size[d]);
    append(&all, &gone);
    void *single, *copy = NULL;
    sm_local_block plain, from;
    sm_status status = unscaled(b, &plain, &single, err);
    if (!status) status = in_order(&plain, array, &all, &from, &copy, err);
    if (!status) sum_rows(from.data, product(order), product(&gone), from.element, out);
    memory_free(copy);
    memory_free(single);
    return status;
}

/* ---- matrix products ---- */

typedef struct product_of {
    sm_element element;
    const sm_local_block *of_a, *of_b; /* the arrays that a and b are of, */
    size_t first_a, first_b;           /* from these elements on */
    size_t batch, m, n, k;
    bool a_transposed, b_transposed; /* a is [k,m], b is [n,k] in memory */
    size_t lda, ldb, ldc;            /* from row to row */
    bool add;                        /* to what c holds */
    const void *a, *b;               /* of the element that is multiplied */
    void *c;
} product_of;

/* Row by row of c: multiples of the rows of b are added to it, or, where b is transposed, each
 * element is the product of two rows. */
#define LOOPS(type, unsigned_type)                                                                 \
    for (size_t i = 0; i < p->m; i++) {                                                            \
        const type *a = p->a, *b = p->b;                                                           \
        unsigned_type *row = (unsigned_type *)p->c + i * p->n;                                     \
        if (!p->add) memset(row, 0, p->n * sizeof *row);                                           \
        for (size_t t = 0; t < p->k; t++) {                                                        \
            unsigned_type x = (unsigned_type)a[p->a_transposed ? t * p->lda + i : i * p->lda + t]; \
            const type *column = p->b_transposed ? b + t : b + t * p->ldb;                         \
            size_t step = p->b_transposed ? p->ldb : 1;                                            \
            if (step == 1)                                                                         \
                for (size_t j = 0; j < p->n; j++) row[j] += x * (unsigned_type)column[j];          \
            else                                                                                   \
                for (size_t j = 0; j < p->n; j++) row[j] += x * (unsigned_type)column[j * step];   \
        }                                                                                          \
    }

static void multiply(const product_of *p) {
    int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    CBLAS_TRANSPOSE ta = p->a_transposed ? CblasTrans : CblasNoTrans;
    CBLAS_TRANSPOSE tb = p->b_transposed ? CblasTrans : CblasNoTrans;
    int lda = (int)p->lda, ldb = (int)p->ldb;
    double beta = p->add ? 1.0 : 0.0;
    switch (p->element) {
    case SM_ELEMENT_F32:
        cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1.0F, p->a, lda, p->b, ldb, (float)beta, p->c,
                    (int)p->ldc);
        break;
    case SM_ELEMENT_F64:
        cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1.0, p->a, lda, p->b, ldb, beta, p->c, n);
        break;
    case SM_ELEMENT_S32: LOOPS(int32_t, uint32_t) break;
    case SM_ELEMENT_S64: LOOPS(int64_t, uint64_t) break;
    default: break;
    }
}

/* ---- operands of 16 bits and less ----
 * The matrix [rows,columns] of a panel in single precision, as the operand lies (turned or not):
 * where it is, or in the room. */
typedef struct panel_of {
    size_t row, rows, column, columns;
} panel_of;

static bool is_packed(const sm_local_block *b) {
    return b->element == SM_ELEMENT_BF16 || sm_element_scaled(b->element);
}

static const float *panel(const sm_local_block *x, size_t first, bool turned, panel_of p,
                          float *room, size_t *lead) {
    if (turned) p = (panel_of){p.column, p.columns, p.row, p.rows};
    first += p.row * *lead + p.column;
    if (!is_packed(x)) return (const float *)x->data + first;
    for (size_t i = 0; i < p.rows; i++)
        sm_local_block_read(x, first + i * *lead, p.columns, room + i * p.columns);
    *lead = p.columns;
    return room;
}

/* Few rows of c are made of a matrix that is read once, as it is stored, where BLAS would lay it
 * out first: steps of a few sequences. */
enum { FEW_TURNED = 3 };

static size_t part_of(size_t at, size_t end, size_t most) {
    return end - at < most ? end - at : most;
}

/* room: for the rows of a, one behind the other; NULL: they lie so. */
static void multiply_few(const product_of *p, float *room) {
    const size_t run = p->a_transposed ? 1 : p->k;
    for (size_t i = 0; room && i < p->m; i++)
        for (size_t t = 0; t < p->k; t += run)
            sm_local_block_read(p->of_a,
                                p->first_a + (p->a_transposed ? i + t * p->lda : i * p->lda), run,
                                room + i * p->k + t);
    for (size_t i = 0; i < p->m && !p->add; i++)
        memset((float *)p->c + i * p->ldc, 0, p->n * sizeof(float));
    const sm_few_rows rows = {.x = room ? room : p->a,
                              .m = p->m,
                              .k = p->k,
                              .n = p->n,
                              .y = p->c,
                              .apart = p->ldc,
                              .first = p->first_b,
                              .lead = p->ldb,
                              .turned = p->b_transposed};
    sm_local_block_add_product(p->of_b, &rows);
}

static void multiply_panels(const product_of *p, float *room_a, float *room_b) {
    for (size_t i = 0; i < p->m; i += SM_PANEL_SIDE)
        for (size_t t = 0; t < p->k; t += SM_PANEL_SIDE) {
            product_of part = *p;
            part.m = part_of(i, p->m, SM_PANEL_SIDE), part.k = part_of(t, p->k, SM_PANEL_SIDE);
            part.add = p->add || t;
            part.a = panel(p->of_a, p->first_a, p->a_transposed, (panel_of){i, part.m, t, part.k},
                           room_a, &part.lda);
            for (size_t j = 0; j < p->n; j += SM_PANEL_SIDE) {
                part.n = part_of(j, p->n, SM_PANEL_SIDE);
                part.ldb = p->ldb;
                part.b = panel(p->of_b, p->first_b, p->b_transposed,
                               (panel_of){t, part.k, j, part.n}, room_b, &part.ldb);
                part.c = (float *)p->c + i * p->n + j;
                multiply(&part);
            }
        }
}

static sm_status multiply_batch(product_of p, sm_error *err) {
    size_t width = sm_element_bytes(p.element);
    if (p.m == 0 || p.n == 0) return SM_OK;
    if (p.k == 0) {
        if (!p.add) memset(p.c, 0, p.batch * p.m * p.n * width);
        return SM_OK;
    }
    bool packed = is_packed(p.of_a) || is_packed(p.of_b);
    size_t m = part_of(0, p.m, SM_PANEL_SIDE), n = part_of(0, p.n, SM_PANEL_SIDE);
    size_t k = part_of(0, p.k, SM_PANEL_SIDE);
    size_t of_a = is_packed(p.of_a) ? m * k : 0, panels = of_a + (is_packed(p.of_b) ? k * n : 0);
    const bool few = p.m <= (p.b_transposed ? FEW_TURNED : SM_FEW_ROWS) &&
                     (is_packed(p.of_b) || p.element == SM_ELEMENT_F32);
    const bool lies = p.lda == p.k && !p.a_transposed && !is_packed(p.of_a);
    const size_t apart = !few ? panels : lies ? 0 : p.m * p.k;
    float *room = apart ? memory_new(apart * sizeof *room) : NULL;
    if (apart && !room) return sm_fail_memory(err);
    for (size_t i = 0; i < p.batch; i++) {
        p.a = (const char *)p.of_a->data + p.first_a * width;
        p.b = (const char *)p.of_b->data + p.first_b * width;
        if (few) multiply_few(&p, room);
        else if (!packed) multiply(&p);
        else multiply_panels(&p, room, room + of_a);
        p.first_a += (p.a_transposed ? p.k : p.m) * p.lda;
        p.first_b += (p.b_transposed ? p.n : p.k) * p.ldb;
        p.c = (char *)p.c + p.m * p.n * width;
    }
    memory_free(room);
    return SM_OK;
}

/* ---- two operands ---- */

typedef struct pair {
    const sm_local_block *a, *b;
    labels la, lb, out; /* of both operands as they stand, of the output */
    labels batch, left, right, contracted;
    bool add; /* to what the output holds */
} pair;

/* In the order of the output where they are in it, so that it need not be transposed; contracted
 * ones in the order of the first operand. */
static void sort_labels(pair *p) {
    for (int i = 0; i < p->out.n; i++) {
        int8_t label = p->out.label[i];
        bool in_a = has(&p->la, label), in_b = has(&p->lb, label);
        add(in_a && in_b ? &p->batch : in_a ? &p->left : &p->right, label, p->out.size[i]);
    }
    for (int i = 0; i < p->la.n; i++) {
        int8_t label = p->la.label[i];
        if (!has(&p->out, label) && has(&p->lb, label)) add(&p->contracted, label, p->la.size[i]);
    }
}

static labels joined(const labels *x, const labels *y, const labels *z) {
    labels l = *x;
    append(&l, y);
    append(&l, z);
    return l;
}

/* An operand of BLAS, and how far its rows are apart. */
typedef struct matrix {
    sm_local_block block;
    bool transposed;
    size_t lead;
    void *copy;
} matrix;

/* Either order of the last two groups will do; anything else is copied. */
static sm_status as_matrix(const pair *p, const sm_local_block *b, const labels *array,
                           const labels *rows, const labels *columns, matrix *m, sm_error *err) {
    labels usual = joined(&p->batch, rows, columns), turned = joined(&p->batch, columns, rows);
    bool crossed = same_order(array, &turned) && !same_order(array, &usual);
    const labels *first = crossed ? columns : rows, *second = crossed ? rows : columns;
    int before_columns = p->batch.n + first->n;
    size_t lead = 1;
    for (int i = 0; i < second->n; i++) lead *= array->room[before_columns + i];
    *m = (matrix){*b, crossed, lead, NULL};
    bool lies_so = crossed || same_order(array, &usual);
    if (lies_so && dense(array, before_columns)) return SM_OK;
    m->transposed = false;
    m->lead = product(columns);
    return in_order(b, array, &usual, &m->block, &m->copy, err);
}

static sm_status multiply_into(pair *p, sm_element element, void *c, sm_error *err) {
    matrix a = {.copy = NULL}, b = {.copy = NULL};
    sm_status status = as_matrix(p, p->a, &p->la, &p->left, &p->contracted, &a, err);
    if (!status) status = as_matrix(p, p->b, &p->lb, &p->contracted, &p->right, &b, err);
    product_of m = {.element = element,
                    .of_a = &a.block,
                    .of_b = &b.block,
                    .batch = product(&p->batch),
                    .m = product(&p->left),
                    .n = product(&p->right),
                    .k = product(&p->contracted),
                    .a_transposed = a.transposed,
                    .b_transposed = b.transposed,
                    .lda = a.lead,
                    .ldb = b.lead,
                    .add = p->add,
                    .c = c};
    m.ldc = m.n;
    if (!status) status = multiply_batch(m, err);
    memory_free(a.copy);
    memory_free(b.copy);
    return status;
}

/* The output as the product leaves it, and as it is wanted. When left and right only need to change
 * places, the operands do. */
static sm_status multiply_pair(pair *p, sm_local_block *out, sm_error *err) {
    sort_labels(p);
    labels made = joined(&p->batch, &p->left, &p->right);
    if (same_order(&made, &p->out)) return multiply_into(p, out->element, out->data, err);
    labels swapped = joined(&p->batch, &p->right, &p->left);
    if (same_order(&swapped, &p->out)) {
        pair turned = {
            .a = p->b, .b = p->a, .la = p->lb, .lb = p->la, .out = p->out, .add = p->add};
        sort_labels(&turned);
        return multiply_into(&turned, out->element, out->data, err);
    }
    /* Into a matrix of its own, which is then transposed. */
    size_t count = product(&made), width = sm_element_bytes(out->element);
    char *c = memory_new(2 * count * width + 1);
    if (!c) return sm_fail_memory(err);
    void *turned = p->add ? c + count * width : out->data;
    bool plus = p->add;
    p->add = false;
    sm_status status = multiply_into(p, out->element, c, err);
    if (!status) transpose(c, &made, &p->out, turned, width);
    if (!status && plus) sm_elements_add(out->data, turned, count, out->element);
    memory_free(c);
    return status;
}

/* What only this operand has is summed first; so is a label that stands twice in it. */
static sm_status reduced(const sm_local_block *b, const labels *array, const labels *others,
                         const labels *out, sm_local_block *room, labels *kept, sm_error *err) {
    *kept = (labels){.n = 0};
    for (int d = 0; d < array->n; d++)
        if ((has(others, array->label[d]) || has(out, array->label[d])) &&
            !has(kept, array->label[d]))
            add(kept, array->label[d], array->size[d]);
    *room = *b;
    if (kept->n == array->n) {
        *kept = *array;
        return SM_OK;
    }
    sm_element element = is_packed(b) ? SM_ELEMENT_F32 : b->element;
    sm_status status = sm_local_block_new(element, kept->n, kept->size, room, err);
    if (!status) status = sum_out(b, array, kept, room->data, err);
    return status;
}

static sm_status einsum_pair(const sm_local_block *in, const labels *l, const labels *lo, bool plus,
                             sm_local_block *out, sm_error *err) {
    const sm_local_block *a = &in[0], *b = &in[1];
    sm_local_block ra = {.data = NULL}, rb = {.data = NULL};
    pair p = {.a = &ra, .b = &rb, .out = *lo, .add = plus};
    sm_status status = reduced(a, &l[0], &l[1], lo, &ra, &p.la, err);
    if (!status) status = reduced(b, &l[1], &l[0], lo, &rb, &p.lb, err);
    if (!status) status = multiply_pair(&p, out, err);
    if (ra.data != a->data) sm_local_block_free(&ra);
    if (rb.data != b->data) sm_local_block_free(&rb);
    return status;
}

/* ---- any number of operands: from the left, keeping what is needed later ---- */

static sm_status fold(int operands, const sm_local_block *in, const int8_t (*label)[SM_MAX_RANK],
                      const labels *lo, bool plus, sm_local_block *out, sm_error *err) {
    labels l[2] = {labels_of(&in[0], label[0]), labels_of(&in[1], label[1])};
    if (operands == 2) return einsum_pair(in, l, lo, plus, out, err);
    labels both = l[0], kept = {.n = 0}, later = *lo;
    append(&both, &l[1]);
    for (int i = 2; i < operands; i++) {
        labels more = labels_of(&in[i], label[i]);
        for (int d = 0; d < more.n; d++)
            if (!has(&later, more.label[d])) add(&later, more.label[d], more.size[d]);
    }
    for (int i = 0; i < both.n; i++)
        if (has(&later, both.label[i]) && !has(&kept, both.label[i]))
            add(&kept, both.label[i], both.size[i]);
    if (kept.n > SM_MAX_RANK)
        return sm_fail(err, SM_BAD_INPUT, "a product of operands has more than %d dimensions",
                       SM_MAX_RANK);
    sm_local_block rest[SM_MAX_OPERANDS];
    int8_t labels_left[SM_MAX_OPERANDS][SM_MAX_RANK];
    memcpy(labels_left[0], kept.label, SM_MAX_RANK);
    for (int i = 2; i < operands; i++) {
        rest[i - 1] = in[i];
        memcpy(labels_left[i - 1], label[i], SM_MAX_RANK);
    }
    sm_status status = sm_local_block_new(out->element, kept.n, kept.size, &rest[0], err);
    if (!status) status = einsum_pair(in, l, &kept, false, &rest[0], err);
    if (!status)
        status =
            fold(operands - 1, rest, (const int8_t(*)[SM_MAX_RANK])labels_left, lo, plus, out, err);
    sm_local_block_free(&rest[0]);
    return status;
}

/* A label has one size wherever it stands: of arrays that disagree, a product would read what lies
 * behind the smaller. */
static sm_status same_sizes(int operands, const sm_local_block *in,
                            const int8_t (*label)[SM_MAX_RANK], const sm_local_block *out,
                            const int8_t *out_labels, sm_error *err) {
    size_t above[INT8_MAX + 1] = {0}; /* a size and 1; 0: not met */
    for (int i = 0; i <= operands; i++) {
        const sm_local_block *b = i < operands ? &in[i] : out;
        const int8_t *own = i < operands ? label[i] : out_labels;
        for (int d = 0; d < b->rank; d++) {
            size_t *known = &above[own[d]];
            if (*known && *known != b->size[d] + 1)
                return sm_fail(err, SM_INTERNAL,
                               "a dimension of a product has %zu elements and %zu", *known - 1,
                               b->size[d]);
            *known = b->size[d] + 1;
        }
    }
    return SM_OK;
}

sm_status local_einsum(int operands, const sm_local_block *in, const int8_t (*label)[SM_MAX_RANK],
                       const int8_t *out_labels, bool plus, sm_local_block *out, sm_error *err) {
    labels lo = labels_of(out, out_labels);
    sm_status status = same_sizes(operands, in, label, out, out_labels, err);
    if (status) return status;
    if (operands == 1) {
        labels la = labels_of(&in[0], label[0]);
        if (!plus) return sum_out(&in[0], &la, &lo, out->data, err);
        sm_local_block sum;
        status = sm_local_block_new(out->element, out->rank, out->size, &sum, err);
        if (!status) status = sum_out(&in[0], &la, &lo, sum.data, err);
        if (!status) sm_elements_add(out->data, sum.data, sm_local_block_count(out), out->element);
        sm_local_block_free(&sum);
        return status;
    }
    return fold(operands, in, label, &lo, plus, out, err);
}

static labels labels_of_part(const sm_local_block *b, const int8_t *label, local_part part) {
    labels l = labels_of(b, label);
    if (part.dim >= 0) l.room[part.dim] = part.whole;
    return l;
}

sm_status local_einsum_of_parts(const sm_local_block *in, const local_part *part,
                                const int8_t (*label)[SM_MAX_RANK], const int8_t *out_labels,
                                bool plus, sm_local_block *out, sm_error *err) {
    labels l[2] = {labels_of_part(&in[0], label[0], part[0]),
                   labels_of_part(&in[1], label[1], part[1])};
    labels lo = labels_of(out, out_labels);
    return einsum_pair(in, l, &lo, plus, out, err);
}

sm_status sm_local_einsum(int operands, const sm_local_block *in,
                          const int8_t (*label)[SM_MAX_RANK], const int8_t *out_labels,
                          sm_local_block *out, sm_error *err) {
    return local_einsum(operands, in, label, out_labels, false, out, err);
}
