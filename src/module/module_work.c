/* FLOPs and bytes of instructions. The rules are those of XLA's HloCostAnalysis but for loops,
 * which count as often as they run, and padding, which counts. */
#include <assert.h>
#include <math.h>

#include "module_parts.h"

enum { HBM = 0, ON_CHIP = 1, HOST = 5 };

static double product(const sm_module_shape *shape, sm_module_list dims) {
    double n = 1;
    for (int i = 0; i < dims.n; i++)
        if (dims.at[i] >= 0 && dims.at[i] < shape->dim.n) n *= (double)shape->dim.at[dims.at[i]];
    return n;
}

/* ---- matrix products ---- */

void module_add_product(sm_module_work *w, sm_module_product p, const sm_module_shape *lhs,
                        const sm_module_shape *rhs) {
    double flops = 2 * p.batch * p.m * p.n * p.k;
    if (flops > 2 * w->batch * w->m * w->n * w->k) {
        sm_dtype both[2] = {sm_module_dtype(lhs->element), sm_module_dtype(rhs->element)};
        w->batch = p.batch;
        w->m = p.m;
        w->n = p.n;
        w->k = p.k;
        w->dtype = sm_dtype_bytes(both[0]) >= sm_dtype_bytes(both[1]) ? both[0] : both[1];
    }
    w->matrix_flops += flops;
}

void module_dot(const sm_computation *in, const sm_instruction *it, sm_module_work *w) {
    const sm_module_shape *lhs = operand_shape(in, it, 0), *rhs = operand_shape(in, it, 1);
    if (!lhs || !rhs) return;
    double k = product(lhs, it->lhs_contracting), batch = product(lhs, it->lhs_batch);
    double left = sm_module_elements(lhs) / fmax(k * batch, 1);
    double right = sm_module_elements(rhs) / fmax(k * batch, 1);
    module_add_product(w, (sm_module_product){batch, left, right, k}, lhs, rhs);
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int64_t at_or(sm_module_list list, int i, int64_t otherwise) {
    return i < list.n ? list.at[i] : otherwise;
}

static int64_t ceil_div(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

/* x with a x = 1 modulo m, which have no common factor (the extended Euclidean algorithm). */
static int64_t inverse_of(int64_t a, int64_t m) {
    int64_t x = 1, y = 0, b = m;
    while (b) {
        int64_t q = a / b, rest = a - q * b, z = x - q * y;
        a = b;
        b = rest;
        x = y;
        y = z;
    }
    return (x % m + m) % m;
}

/* How many outputs o, 0 <= o < outputs, meet an element of the input that is no padding:
 * o stride + from = dilation i with 0 <= i < inputs. */
static double meetings(int64_t outputs, int64_t inputs, int64_t stride, int64_t dilation,
                       int64_t from) {
    assert(stride > 0 && dilation > 0);
    int64_t common = gcd(stride, dilation), period = dilation / common;
    if (from % common) return 0;
    int64_t wanted = (-from / common % period + period) % period;
    int64_t first = wanted * inverse_of(stride / common % period, period) % period;
    int64_t low = ceil_div(-from, stride);
    int64_t high = ceil_div((inputs - 1) * dilation + 1 - from, stride); /* the first beyond */
    if (low < 0) low = 0;
    if (high > outputs) high = outputs;
    if (low > first) first += ceil_div(low - first, period) * period;
    int64_t many = (high - first + period - 1) / period;
    return first < high ? (double)many : 0;
}

/* Of a dimension, and of a window: what is larger is no convolution that a compiler made. */
enum { LARGEST_SIZE = 1 << 28, LARGEST_WINDOW = 1 << 16 };

typedef struct spatial { /* one spatial dimension of a convolution */
    int64_t window, outputs, inputs;
} spatial;

/* Pairs of window and output that multiply something else than padding. */
static double valid_pairs(const sm_module_convolution *c, int i, const spatial *s) {
    int64_t stride = at_or(c->stride, i, 1), dilation = at_or(c->dilated_base, i, 1);
    int64_t by = at_or(c->dilated_window, i, 1), low = at_or(c->pad_low, i, 0);
    double pairs = 0;
    const int64_t sizes[] = {stride, dilation, by, s->inputs, s->outputs, low + LARGEST_SIZE};
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
        if (sizes[n] < 0 || sizes[n] > 2 * (int64_t)LARGEST_SIZE) return 0;
    if (stride < 1 || dilation < 1) return 0;
    for (int64_t k = 0; k < s->window && k < LARGEST_WINDOW; k++)
        pairs += meetings(s->outputs, s->inputs, stride, dilation, k * by - low);
    return pairs;
}

/* The size that a letter of the labels names: part 0 input, 1 kernel, 2 result. */
static int64_t labelled(const char *labels, const sm_module_shape *shape, int part, char letter) {
    for (; part > 0 && *labels; labels++) part -= *labels == '_' || *labels == '>';
    for (int i = 0; labels[i] && labels[i] != '_' && labels[i] != '-'; i++)
        if (labels[i] == letter) return i < shape->dim.n ? shape->dim.at[i] : 1;
    return 1;
}

static void convolution(const sm_computation *in, const sm_instruction *it, sm_module_work *w) {
    const sm_module_shape *lhs = operand_shape(in, it, 0), *rhs = operand_shape(in, it, 1);
    const sm_module_convolution *c = it->convolution;
    if (!lhs || !rhs || !c) return;
    double multiplies = (double)labelled(c->labels, rhs, 1, 'i') *
                        (double)labelled(c->labels, it->shape, 2, 'f') *
                        (double)labelled(c->labels, it->shape, 2, 'b') / (double)c->batches;
    for (int i = 0; i < c->window.n; i++) {
        char letter = (char)('0' + i);
        spatial s = {c->window.at[i], labelled(c->labels, it->shape, 2, letter),
                     labelled(c->labels, lhs, 0, letter)};
        multiplies *= valid_pairs(c, i, &s);
    }
    double out = fmax(sm_module_elements(it->shape), 1), k = fmax(multiplies / out, 1);
    double n = fmin(fmax(sm_module_elements(rhs) / k, 1), out);
    if (multiplies > 0)
        module_add_product(w, (sm_module_product){1, out / n, n, multiplies / (out / n) / n}, lhs,
                           rhs);
}

/* ---- what is called ---- */

static void add_flops(sm_module_work *w, const sm_module_work *inner, double times) {
    w->vector_flops += inner->vector_flops * times;
    w->transcendentals += inner->transcendentals * times;
    w->matrix_flops += inner->matrix_flops * times;
    if (inner->batch * inner->m * inner->n * inner->k <= w->batch * w->m * w->n * w->k) return;
    w->batch = inner->batch;
    w->m = inner->m;
    w->n = inner->n;
    w->k = inner->k;
    w->dtype = inner->dtype;
}

/* Elements that each result of a window adds up. A window that covers a dimension is a running or
 * a whole sum of it: one more addition an element, as the cumulative form has it. */
static double window_of(const sm_instruction *it) {
    const sm_module_shape *shape = it->shape->parts ? &it->shape->part[0] : it->shape;
    double window = 1;
    for (int i = 0; it->convolution && i < it->convolution->window.n; i++) {
        int64_t size = it->convolution->window.at[i];
        bool covers = size > 2 && i < shape->dim.n && size >= shape->dim.at[i];
        window *= covers ? 2 : (double)size;
    }
    return window;
}

/* Applications of the function of a reduction, one for each element that disappears. */
static double applications(const sm_computation *in, const sm_instruction *it) {
    double out = sm_module_elements(it->shape), results = 1;
    if (it->shape->parts) results = it->shape->parts;
    if (it->opcode != SM_OPCODE_REDUCE) return out / results * (window_of(it) - 1);
    double before = 0;
    for (int i = 0; i < it->operands / 2; i++)
        before += sm_module_elements(operand_shape(in, it, i));
    return fmax((before - out) / results, 0);
}

static void reduction(const sm_computation *in, const sm_instruction *it,
                      const sm_module_work *inner, sm_module_work *w) {
    double times = applications(in, it);
    if (it->calls) add_flops(w, &inner[it->call[0]], times);
    else w->vector_flops += times;
}

static void sorting(const sm_computation *in, const sm_instruction *it, sm_module_work *w) {
    const sm_module_shape *shape = operand_shape(in, it, 0);
    double n = shape ? sm_module_elements(shape) : 0;
    if (n > 1) w->vector_flops += n * ceil(log2(n));
}

void module_flops_of(const sm_computation *in, const sm_instruction *it,
                     const sm_module_work *inner, sm_module_work *w) {
    double elements = sm_module_elements(it->shape);
    switch (sm_module_class_of(it->opcode)) {
    case SM_CLASS_POINTWISE: w->vector_flops += elements; break;
    case SM_CLASS_TRANSCENDENTAL: w->transcendentals += elements; break;
    case SM_CLASS_REDUCE: reduction(in, it, inner, w); break;
    case SM_CLASS_MATMUL:
        if (it->opcode == SM_OPCODE_CONVOLUTION) convolution(in, it, w);
        else module_dot(in, it, w);
        break;
    case SM_CLASS_SORT: sorting(in, it, w); break;
    case SM_CLASS_SCATTER:
        if (it->calls && it->operands > 2)
            add_flops(w, &inner[it->call[0]], sm_module_elements(operand_shape(in, it, 2)));
        break;
    case SM_CLASS_CUSTOM: module_custom_flops(in, it, w); break;
    case SM_CLASS_COLLECTIVE: /* one that reduces adds once an element of its operands */
        for (int i = 0; it->calls && i < it->operands; i++)
            w->vector_flops += sm_module_elements(operand_shape(in, it, i));
        break;
    case SM_CLASS_CALL:
        if (it->opcode == SM_OPCODE_FUSION || it->opcode == SM_OPCODE_CALL)
            for (int i = 0; i < it->calls; i++) add_flops(w, &inner[it->call[i]], 1);
        break;
    default: break;
    }
}

/* ---- bytes ---- */

/* A part of an array in place of the whole: the same memory, other elements. */
static double part_bytes(const sm_module_shape *part, const sm_module_shape *of, int memory) {
    if (of->parts || of->memory != memory) return 0;
    sm_module_shape as = *part;
    as.memory = memory;
    return sm_module_bytes(&as, memory);
}

/* Views of views that are looked through, and instructions of a kernel: beyond them all is read. */
enum { DEEPEST = 16, LARGEST = 1 << 14 };

static double bytes_read(const sm_computation *in, int from, const sm_module_shape *of, int memory,
                         int depth);

/* What one user inside a kernel reads of an array: the slice it takes. -1: all. */
static double read_by(const sm_computation *in, int user, int operand, const sm_module_shape *of,
                      int memory, int depth) {
    const sm_instruction *it = &in->instruction[user];
    switch (it->opcode) {
    case SM_OPCODE_SLICE:
    case SM_OPCODE_DYNAMIC_SLICE:
    case SM_OPCODE_GATHER: return operand == 0 ? part_bytes(it->shape, of, memory) : -1;
    case SM_OPCODE_DYNAMIC_UPDATE_SLICE: return operand == 0 ? 0 : -1;
    case SM_OPCODE_BITCAST:
    case SM_OPCODE_CONVERT:
    case SM_OPCODE_GET_TUPLE_ELEMENT: {
        /* Slices of a converted array are read before they are converted. */
        double bytes = depth < DEEPEST ? bytes_read(in, user, of, memory, depth + 1) : -1;
        double wider = sm_module_element_bits(it->shape->element);
        return bytes > 0 && it->opcode == SM_OPCODE_CONVERT && wider > 0
                   ? bytes * sm_module_element_bits(of->element) / wider
                   : bytes;
    }
    default: return -1;
    }
}

/* What users of instruction `from` read of an array of shape `of`; -1 when one reads all. */
static double bytes_read(const sm_computation *in, int from, const sm_module_shape *of, int memory,
                         int depth) {
    double bytes = 0;
    if (from == in->root) return 0; /* passed through */
    for (int i = from + 1; i < in->n; i++) {
        const sm_instruction *user = &in->instruction[i];
        for (int o = 0; o < user->operands; o++) {
            if (user->operand[o] != from) continue;
            double part = read_by(in, i, o, of, memory, depth);
            if (part < 0) return -1;
            bytes += part;
        }
    }
    return bytes;
}

/* What a fusion reads of its operand `number`. */
static double fused_read(const sm_computation *body, int number, const sm_module_shape *of,
                         int memory) {
    double whole = sm_module_bytes(of, memory);
    for (int i = 0; i < body->n && body->n < LARGEST && whole > 0; i++) {
        const sm_instruction *it = &body->instruction[i];
        if (it->opcode != SM_OPCODE_PARAMETER || it->number != number) continue;
        double part = bytes_read(body, i, of, memory, 0);
        return part < 0 || part > whole ? whole : part;
    }
    return whole;
}

/* What a fusion writes: of a result that is updated in place the update alone. */
static double fused_written(const sm_computation *body, int at, const sm_module_shape *of,
                            int memory) {
    const sm_instruction *it = &body->instruction[at];
    while (it->opcode == SM_OPCODE_BITCAST && it->operands == 1)
        it = &body->instruction[it->operand[0]];
    if (it->opcode == SM_OPCODE_TUPLE && of->parts == it->operands) {
        double bytes = 0;
        for (int i = 0; i < it->operands; i++)
            bytes += fused_written(body, it->operand[i], &of->part[i], memory);
        return bytes;
    }
    if (it->opcode == SM_OPCODE_DYNAMIC_UPDATE_SLICE && it->operands > 1)
        return part_bytes(body->instruction[it->operand[1]].shape, of, memory);
    if (it->opcode == SM_OPCODE_PARAMETER) return 0; /* passed through */
    return sm_module_bytes(of, memory);
}

static double fusion_bytes(const sm_module *module, const sm_computation *in,
                           const sm_instruction *it, int memory) {
    const sm_computation *body = &module->computation[it->call[0]];
    double bytes = fused_written(body, body->root, it->shape, memory);
    for (int i = 0; i < it->operands; i++)
        bytes += fused_read(body, i, operand_shape(in, it, i), memory);
    return bytes;
}

static double read_bytes(const sm_module *module, const sm_computation *in, int instruction,
                         int depth);

/* Another form of its only operand: another type, order or shape. */
static bool is_another_form(const sm_module *module, const sm_instruction *it) {
    sm_module_opcode o = it->opcode;
    if (it->operands != 1) return false;
    if (o == SM_OPCODE_FUSION && it->calls) {
        const sm_computation *body = &module->computation[it->call[0]];
        for (int i = 0; i < body->n; i++)
            if (body->instruction[i].opcode != SM_OPCODE_PARAMETER &&
                (body->instruction[i].opcode == SM_OPCODE_FUSION ||
                 !is_another_form(module, &body->instruction[i])))
                return false;
        return true;
    }
    return o == SM_OPCODE_CONVERT || o == SM_OPCODE_COPY || o == SM_OPCODE_RESHAPE ||
           o == SM_OPCODE_TRANSPOSE || o == SM_OPCODE_BITCAST;
}

/* What one reader takes of an instruction's result. */
static double taken_by(const sm_module *module, const sm_computation *in, int user, int operand,
                       int depth) {
    const sm_instruction *it = &in->instruction[user];
    const sm_module_shape *of = in->instruction[it->operand[operand]].shape;
    if (it->opcode == SM_OPCODE_GET_TUPLE_ELEMENT && depth < DEEPEST)
        return read_bytes(module, in, user, depth + 1);
    if (of->parts) return sm_module_bytes(of, -1);
    if (is_another_form(module, it) && depth < DEEPEST)
        return sm_module_bytes(of, -1) * read_bytes(module, in, user, depth + 1) /
               fmax(sm_module_bytes(it->shape, -1), 1);
    double part = it->opcode == SM_OPCODE_FUSION && it->calls
                      ? fused_read(&module->computation[it->call[0]], operand, of, of->memory)
                      : read_by(in, user, operand, of, of->memory, 0);
    return part < 0 ? sm_module_bytes(of, -1) : part;
}

/* Of an array the most that a reader takes; of a tuple the sum over its elements. */
static double read_bytes(const sm_module *module, const sm_computation *in, int instruction,
                         int depth) {
    const sm_module_shape *of = in->instruction[instruction].shape;
    double bytes = 0;
    for (int i = instruction + 1; i < in->n; i++) {
        const sm_instruction *user = &in->instruction[i];
        for (int o = 0; o < user->operands; o++) {
            if (user->operand[o] != instruction) continue;
            double part = taken_by(module, in, i, o, depth);
            bytes = of->parts ? bytes + part : fmax(bytes, part);
        }
    }
    return instruction == in->root ? sm_module_bytes(of, -1) : bytes;
}

double sm_module_read_bytes(const sm_module *module, const sm_computation *in, int instruction) {
    return read_bytes(module, in, instruction, 0);
}

static double all_operands(const sm_computation *in, const sm_instruction *it, int memory) {
    double bytes = 0;
    for (int i = 0; i < it->operands; i++)
        bytes += sm_module_bytes(operand_shape(in, it, i), memory);
    return bytes;
}

/* An update in place reads and writes what changes. */
static double update_bytes(const sm_computation *in, const sm_instruction *it, int update,
                           int memory) {
    const sm_module_shape *part = operand_shape(in, it, update), *whole = it->shape;
    while (whole->parts) whole = &whole->part[0];
    return part ? 2 * part_bytes(part, whole, memory) : 0;
}

bool module_is_fusable(sm_module_opcode opcode) {
    sm_module_class class = sm_module_class_of(opcode);
    return class == SM_CLASS_POINTWISE || class == SM_CLASS_TRANSCENDENTAL ||
           class == SM_CLASS_MOVE || class == SM_CLASS_SLICE;
}

/* Where nothing is fused yet: what is written, of operands those that were. */
static double unfused_bytes(const sm_computation *in, const sm_instruction *it, const bool *written,
                            int memory) {
    double bytes = written[it - in->instruction] ? sm_module_bytes(it->shape, memory) : 0;
    for (int i = 0; i < it->operands; i++)
        if (written[it->operand[i]])
            bytes += fmin(sm_module_bytes(operand_shape(in, it, i), memory),
                          it->opcode == SM_OPCODE_REDUCE ? INFINITY
                                                         : sm_module_bytes(it->shape, memory));
    return bytes;
}

static double bytes_of(const sm_module *module, const sm_computation *in, const sm_instruction *it,
                       int memory) {
    const sm_module_shape *first = operand_shape(in, it, 0);
    const sm_module_shape *part;
    double out = sm_module_bytes(it->shape, memory);
    switch (sm_module_class_of(it->opcode)) {
    case SM_CLASS_FREE:
    case SM_CLASS_DONE: return 0;
    case SM_CLASS_CALL:
        return it->opcode == SM_OPCODE_FUSION && it->calls ? fusion_bytes(module, in, it, memory)
                                                           : 0;
    case SM_CLASS_SLICE:
        /* The result of slice-start holds its operand too. */
        part = it->shape->parts > 1 ? &it->shape->part[1] : it->shape;
        return sm_module_bytes(part, memory) + (first ? part_bytes(part, first, memory) : 0);
    case SM_CLASS_UPDATE: return update_bytes(in, it, 1, memory);
    case SM_CLASS_SCATTER: return update_bytes(in, it, 2, memory);
    case SM_CLASS_MOVE:
        if (it->opcode == SM_OPCODE_COPY_START && it->shape->parts > 1)
            return sm_module_bytes(&it->shape->part[0], memory) +
                   sm_module_bytes(&it->shape->part[1], memory);
        return out + all_operands(in, it, memory);
    default: return out + all_operands(in, it, memory);
    }
}

sm_module_work sm_module_work_of(const sm_module_analysis *analysis, const sm_computation *in,
                                 const sm_instruction *instruction) {
    sm_module_work w = {0};
    if (instruction->opcode == SM_OPCODE_CALL) return w;
    if (instruction->opcode == SM_OPCODE_ASYNC_START && instruction->calls) {
        /* It wraps one instruction, which the text may write as NAME-start. */
        const sm_computation *body = &analysis->module->computation[instruction->call[0]];
        const sm_instruction *root = &body->instruction[body->root];
        return root->opcode == SM_OPCODE_ASYNC_START ? w : sm_module_work_of(analysis, body, root);
    }
    module_flops_of(in, instruction, analysis->inner, &w);
    const int spaces[] = {HBM, ON_CHIP, HOST};
    double *bytes[] = {&w.bytes, &w.onchip_bytes, &w.host_bytes};
    bool fuses = analysis->written && (module_is_fusable(instruction->opcode) ||
                                       instruction->opcode == SM_OPCODE_REDUCE);
    for (int i = 0; i < 3; i++)
        *bytes[i] =
            fuses ? unfused_bytes(in, instruction,
                                  analysis->written[in - analysis->module->computation], spaces[i])
                  : bytes_of(analysis->module, in, instruction, spaces[i]);
    if (sm_module_moves_to_host(instruction) || sm_module_moves_to_device(instruction))
        w.bytes = w.host_bytes = sm_module_data_bytes(instruction->shape);
    return w;
}
