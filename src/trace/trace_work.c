/* FLOPs and bytes of an op of PyTorch by the shapes of its inputs, as Kineto records them where
 * record_shapes is set: "Input Dims" [[8, 512], [512, 2048]] and "Input type". */

#include "breakdown_made.h"
#include "traces_format.h"

enum { MOST_DIMS = 8, MOST_SHAPES = 8 };

typedef struct shapes {
    int n;
    int dims[MOST_SHAPES];
    double size[MOST_SHAPES][MOST_DIMS];
} shapes;

/* Nested lists (of a list of tensors) count as their first shape. */
static shapes read_shapes(const char *text) {
    shapes s = {0};
    int depth = 0;
    for (const char *at = text; *at && s.n <= MOST_SHAPES; at++) {
        if (*at == '[' && ++depth == 2 && s.n < MOST_SHAPES) s.dims[s.n] = 0;
        if (*at == ']' && depth-- == 2) s.n++;
        if (*at < '0' || *at > '9' || s.n >= MOST_SHAPES) continue;
        double value = 0;
        for (; *at >= '0' && *at <= '9'; at++) value = value * 10 + (*at - '0');
        if (depth == 2 && s.dims[s.n] < MOST_DIMS) s.size[s.n][s.dims[s.n]++] = value;
        at--;
    }
    if (s.n > MOST_SHAPES) s.n = MOST_SHAPES;
    return s;
}

static double product(const shapes *s, int i) {
    double all = i < s->n && s->dims[i] > 0 ? 1 : 0;
    for (int d = 0; i < s->n && d < s->dims[i]; d++) all *= s->size[i][d];
    return all;
}

double trace_elements(const char *text) {
    shapes s = read_shapes(text);
    return product(&s, 0);
}

const char *trace_shapes_text(const char *text, sm_arena *arena) {
    enum { LONGEST = 96 };
    shapes s = read_shapes(text);
    char out[LONGEST + 32] = "";
    size_t used = 0;
    for (int i = 0; i < s.n && used < LONGEST; i++) {
        if (s.dims[i] == 0) continue;
        used += (size_t)snprintf(out + used, sizeof out - used, "%s[", used ? " x " : "");
        for (int d = 0; d < s.dims[i] && used < LONGEST; d++)
            used += (size_t)snprintf(out + used, sizeof out - used, "%s%.0f", d ? "," : "",
                                     s.size[i][d]);
        used += (size_t)snprintf(out + used, sizeof out - used, "]");
    }
    return sm_arena_copy(arena, out, strlen(out));
}

/* ---- types ---- */

double trace_element_bytes(const char *type, sm_dtype *dtype) {
    if (trace_begins(type, strlen(type), "c10::")) type += 5;
    if (trace_begins(type, strlen(type), "at::")) type += 4;
    for (size_t i = 0; i < traces_types_count; i++)
        if (trace_begins(type, strlen(type), traces_types[i].begins)) {
            *dtype = traces_types[i].dtype;
            return traces_types[i].bytes;
        }
    return 0;
}

/* The i-th text of a JSON list. */
static const char *text_at(const char *list, int i) {
    for (; list && i >= 0; i--) {
        list = strchr(list, '"');
        if (list && i == 0) return list + 1;
        list = list ? strchr(list + 1, '"') : NULL;
        list = list ? list + 1 : NULL;
    }
    return "";
}

/* ---- ops ---- */

typedef struct product_shape {
    double batch, m, n, k;
} product_shape;

/* [.., m, k] x [.., k, n] of the i-th and the next shape. */
static product_shape product_of(const shapes *s, int i) {
    product_shape p = {0, 0, 0, 0};
    if (i + 1 >= s->n || s->dims[i] < 2 || s->dims[i + 1] < 2) return p;
    int a = s->dims[i], b = s->dims[i + 1];
    p.k = s->size[i][a - 1];
    p.n = s->size[i + 1][b - 1];
    p.m = s->size[i][a - 2];
    p.batch = 1;
    for (int d = 0; d < a - 2; d++) p.batch *= s->size[i][d];
    bool fits = s->size[i + 1][b - 2] == p.k;
    return fits ? p : (product_shape){0, 0, 0, 0};
}

/* Of q, k and v, which stand from the i-th shape on: [batch, heads, sequence, head], or heads after
 * the sequence. Heads may share keys. */
static sm_attention_shape attention_of(const shapes *s, int i, bool heads_last) {
    if (i + 2 >= s->n || s->dims[i] != 4 || s->dims[i + 1] != 4 || s->dims[i + 2] != 4)
        return (sm_attention_shape){.batch = 0};
    const double *q = s->size[i], *k = s->size[i + 1], *v = s->size[i + 2];
    int heads = heads_last ? 2 : 1, length = heads_last ? 1 : 2;
    return (sm_attention_shape){.batch = q[0],
                                .heads = q[heads],
                                .kv_heads = k[heads],
                                .q_len = q[length],
                                .kv_len = k[length],
                                .head_size = q[3],
                                .v_head_size = v[3]};
}

/* Two products forward, five backward: 2 s t (d + e) a head, and 2.5 times that. A causal mask lets
 * the last query meet the last key, as FlashAttention's does; PyTorch's lets the i-th meet the
 * first i, and it asks that kernel for masks of one length alone, where they are the same. */
static double attention_flops(const sm_trace_attention *a) {
    const sm_attention_shape *s = &a->shape;
    return 2 * s->batch * s->heads * s->q_len * s->keys * (s->head_size + s->v_head_size) *
           (a->backward ? 2.5 : 1);
}

/* "True" or a kind of mask that is not 0; stated: it is recorded. */
static bool is_set(const char *values, int input, bool *stated) {
    const char *text = text_at(values, input);
    *stated = trace_begins(text, strlen(text), "true") ||
              trace_begins(text, strlen(text), "false") || (*text >= '0' && *text <= '9');
    return trace_begins(text, strlen(text), "true") || (*text >= '1' && *text <= '9');
}

/* Bytes of all inputs; of results as many elements as `results`. */
static double bytes_of(const shapes *s, const char *types, double results, double element) {
    double all = results * element;
    for (int i = 0; i < s->n; i++) {
        sm_dtype ignored;
        all += product(s, i) * trace_element_bytes(text_at(types, i), &ignored);
    }
    return all;
}

op_work trace_op_work(const char *op, const char *text, const char *types, const char *values) {
    op_work w = {NAN, NAN, SM_BF16, 0, 0, 0, {.causal = false}};
    const trace_op *is = NAMED(traces_ops, op);
    if (!is) return w;
    shapes s = read_shapes(text);
    double element = trace_element_bytes(text_at(types, is->first), &w.dtype);
    product_shape p = product_of(&s, is->first);
    double flops = 2 * p.batch * p.m * p.n * p.k, results = p.batch * p.m * p.n;
    if (is->formula == TRACE_ATTENTION || is->formula == TRACE_HEADS_LAST) {
        sm_attention_shape *a = &w.attention.shape;
        *a = attention_of(&s, is->first, is->formula == TRACE_HEADS_LAST);
        w.attention.causal = is_set(values, is->causal, &w.attention.masked);
        w.attention.backward = is->first == 1;
        a->keys = sm_keys_met(a->q_len, a->kv_len, w.attention.causal, 0, 0);
        flops = attention_flops(&w.attention);
        results = product(&s, is->first);
    }
    if (is->formula == TRACE_POINTWISE) {
        results = fmax(product(&s, 0), product(&s, 1));
        if (results > 0 && element > 0) w.bytes = bytes_of(&s, types, results, element);
        w.flops = 0;
        return w;
    }
    if (flops <= 0) return w;
    w.flops = flops;
    if (is->formula == TRACE_PRODUCT && p.batch == 1) {
        w.m = p.m;
        w.n = p.n;
        w.k = p.k;
    }
    if (element > 0) w.bytes = bytes_of(&s, types, results, element);
    return w;
}
