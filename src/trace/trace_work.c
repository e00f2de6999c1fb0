/* FLOPs and bytes of an op of PyTorch by the shapes of its inputs, as Kineto records them where
 * record_shapes is set: "Input Dims" [[8, 512], [512, 2048]] and "Input type". */
#include <math.h>
#include <string.h>

#include "breakdown_made.h"
#include "trace_build.h"

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

double trace_elements(const char *text, int i) {
    shapes s = read_shapes(text);
    return product(&s, i);
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

typedef struct element_type {
    const char *name; /* as it begins, in lower case */
    sm_dtype dtype;
    double bytes;
} element_type;

double trace_element_bytes(const char *type, sm_dtype *dtype) {
    static const element_type all[] = {
        {"bfloat16", SM_BF16, 2},    {"half", SM_FP16, 2},          {"float16", SM_FP16, 2},
        {"float8", SM_FP8, 1},       {"double", SM_FP64, 8},        {"float64", SM_FP64, 8},
        {"float", SM_FP32, 4},       {"int8", SM_INT8, 1},          {"char", SM_INT8, 1},
        {"signed char", SM_INT8, 1}, {"unsigned char", SM_INT8, 1}, {"byte", SM_INT8, 1},
        {"uint8", SM_INT8, 1},       {"bool", SM_INT8, 1},          {"long", SM_INT32, 8},
        {"int64", SM_INT32, 8},      {"int", SM_INT32, 4},          {"short", SM_INT32, 2}};
    if (trace_begins(type, strlen(type), "c10::")) type += 5;
    if (trace_begins(type, strlen(type), "at::")) type += 4;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (trace_begins(type, strlen(type), all[i].name)) {
            *dtype = all[i].dtype;
            return all[i].bytes;
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

typedef enum formula { PRODUCT, ATTENTION, HEADS_LAST, POINTWISE } formula;

typedef struct known_op {
    const char *name;
    formula formula;
    int first;  /* shape that the formula begins with */
    int causal; /* of attention, the input that says whether it is */
} known_op;

static const known_op *known(const char *op) {
    /* Ops that work themselves: what calls others (aten::linear) counts with those. Inputs of
     * attention are those of PyTorch's schemas; what begins with the gradient is backward. */
    static const known_op all[] = {
        {"aten::mm", PRODUCT, 0, 0},
        {"aten::bmm", PRODUCT, 0, 0},
        {"aten::addmm", PRODUCT, 1, 0},
        {"aten::addmm_", PRODUCT, 1, 0},
        {"aten::_addmm_activation", PRODUCT, 1, 0},
        {"aten::baddbmm", PRODUCT, 1, 0},
        {"aten::_scaled_mm", PRODUCT, 0, 0},
        {"aten::_int_mm", PRODUCT, 0, 0},
        {"aten::_scaled_dot_product_flash_attention", ATTENTION, 0, 4},
        {"aten::_scaled_dot_product_efficient_attention", ATTENTION, 0, 6},
        {"aten::_scaled_dot_product_cudnn_attention", ATTENTION, 0, 6},
        {"aten::_scaled_dot_product_flash_attention_for_cpu", ATTENTION, 0, 4},
        {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", ATTENTION, 1, 7},
        {"aten::_scaled_dot_product_flash_attention_backward", ATTENTION, 1, 11},
        {"aten::_scaled_dot_product_efficient_attention_backward", ATTENTION, 1, 11},
        {"aten::_scaled_dot_product_cudnn_attention_backward", ATTENTION, 1, 14},
        {"aten::_flash_attention_forward", HEADS_LAST, 0, 8},
        {"aten::_flash_attention_backward", HEADS_LAST, 1, 11},
        {"aten::_efficient_attention_forward", HEADS_LAST, 0, 9},
        {"aten::_efficient_attention_backward", HEADS_LAST, 1, 14},
        {"aten::_cudnn_attention_forward", ATTENTION, 0, 10},
        {"aten::_cudnn_attention_backward", ATTENTION, 1, 14},
        {"flash_attn::_flash_attn_forward", HEADS_LAST, 0, 5},
        {"flash_attn::_flash_attn_backward", HEADS_LAST, 1, 11},
        {"aten::add", POINTWISE, 0, 0},
        {"aten::add_", POINTWISE, 0, 0},
        {"aten::mul", POINTWISE, 0, 0},
        {"aten::mul_", POINTWISE, 0, 0},
        {"aten::div", POINTWISE, 0, 0},
        {"aten::sub", POINTWISE, 0, 0},
        {"aten::gelu", POINTWISE, 0, 0},
        {"aten::relu", POINTWISE, 0, 0},
        {"aten::silu", POINTWISE, 0, 0},
        {"aten::_softmax", POINTWISE, 0, 0},
        {"aten::native_layer_norm", POINTWISE, 0, 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(op, all[i].name)) return &all[i];
    return NULL;
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
    const known_op *is = known(op);
    if (!is) return w;
    shapes s = read_shapes(text);
    double element = trace_element_bytes(text_at(types, is->first), &w.dtype);
    product_shape p = product_of(&s, is->first);
    double flops = 2 * p.batch * p.m * p.n * p.k, results = p.batch * p.m * p.n;
    if (is->formula == ATTENTION || is->formula == HEADS_LAST) {
        sm_attention_shape *a = &w.attention.shape;
        *a = attention_of(&s, is->first, is->formula == HEADS_LAST);
        w.attention.causal = is_set(values, is->causal, &w.attention.masked);
        w.attention.backward = is->first == 1;
        a->keys = sm_keys_met(a->q_len, a->kv_len, w.attention.causal, 0, 0);
        flops = attention_flops(&w.attention);
        results = product(&s, is->first);
    }
    if (is->formula == POINTWISE) {
        results = fmax(product(&s, 0), product(&s, 1));
        if (results > 0 && element > 0) w.bytes = bytes_of(&s, types, results, element);
        w.flops = 0;
        return w;
    }
    if (flops <= 0) return w;
    w.flops = flops;
    if (is->formula == PRODUCT && p.batch == 1) {
        w.m = p.m;
        w.n = p.n;
        w.k = p.k;
    }
    if (element > 0) w.bytes = bytes_of(&s, types, results, element);
    return w;
}
