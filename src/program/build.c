/* The program of a piece from its lines: each line is an op, but for what is a part of another.
 *   cache(k) in training       k itself: its positions are the keys
 *   top(p) before dispatch     the kernel of dispatch chooses
 *   q + bq, bq a weight        an epilogue of the product that makes q
 *   take(w[N,D]) without ids   a table that is added to another: an epilogue as well
 *   lines of a kernel          one op
 * Weights of epilogues ride along: they do no work of their own and count as the first norm's; but
 * what corrects the choice of experts has no gradient (DeepSeek-V3, arXiv 2412.19437, section
 * 2.1.2), and no other weight's storage. */
#include <string.h>

#include "program_parts.h"

const char *sm_phase_name(sm_phase phase) {
    static const char *const names[] = {"forward", "backward", "backward-weight"};
    return phase < SM_PHASE_COUNT ? names[phase] : "?";
}

enum { UNMADE = -1, RIDES = -2, BF16 = 2, QUANTISE_FLOPS = 2 };

typedef struct builder {
    const sm_text_lines *l;
    sm_program *b;
    int *tensor; /* of each array; UNMADE, RIDES */
    double rides, fixed;
    int line; /* at hand */
    bool decodes;
    sm_error *err;
    sm_status status;
} builder;

/* ---- arrays ---- */

static const sm_role roles[] = {[SM_TEXT_ACTIVATION] = SM_ROLE_ACTIVATION,
                                [SM_TEXT_WEIGHT] = SM_ROLE_WEIGHT,
                                [SM_TEXT_CACHE] = SM_ROLE_CACHE,
                                [SM_TEXT_STATE] = SM_ROLE_STATE,
                                [SM_TEXT_IDS] = SM_ROLE_IDS};

static int new_tensor(builder *x, const sm_tensor *t, const char *name) {
    sm_program *b = x->b;
    if (b->tensors == SM_MAX_TENSORS) {
        x->status = sm_fail_limit(x->err, "arrays of a layer", SM_MAX_TENSORS + 1, SM_MAX_TENSORS);
        return 0;
    }
    sm_tensor *to = &b->tensor[b->tensors];
    *to = *t;
    if (to->share == 0) to->share = 1;
    /* "mixer.wq" is called wq where the program has no other. */
    const char *dot = strrchr(name, '.');
    const char *last = dot && (dot[1] < '0' || dot[1] > '9') ? dot + 1 : name;
    for (int i = 0; i < x->b->tensors; i++)
        if (strcmp(x->b->tensor[i].name, last) == 0) last = name;
    snprintf(to->name, sizeof to->name, "%s", last);
    sm_dimensions dims = program_dims(to);
    to->per_sequence =
        program_has(b, dims, SM_DIMENSION_SEQUENCES) || program_has(b, dims, SM_DIMENSION_SLOTS);
    return b->tensors++;
}

static int tensor_of(builder *x, int array) {
    if (x->tensor[array] >= 0) return x->tensor[array]; /* what rides is made where it is read */
    const sm_text_array *a = &x->l->array[array];
    bool lasts = a->role == SM_TEXT_CACHE || a->role == SM_TEXT_STATE;
    sm_tensor t = {.role = roles[a->role],
                   .rank = a->rank,
                   .elements = a->elements,
                   .bytes_per_element = a->role == SM_TEXT_IDS ? 0
                                        : a->typed             ? sm_dtype_bytes(a->type)
                                                               : BF16,
                   .producer = -1,
                   .norm = a->norm,
                   .share = a->share,
                   .of = a->piece,
                   .there = a->there,
                   .tied = a->role == SM_TEXT_WEIGHT && a->piece >= 0,
                   .typed = a->role == SM_TEXT_CACHE && a->typed,
                   .kept = lasts && a->piece < 0};
    memcpy(t.dim, a->dim, sizeof t.dim);
    return x->tensor[array] = new_tensor(x, &t, a->name);
}

static bool is_weight(const builder *x, int array) {
    return x->tensor[array] == RIDES || x->l->array[array].role == SM_TEXT_WEIGHT;
}

static void ride(builder *x, int array, double *with) {
    const sm_text_array *a = &x->l->array[array];
    if (x->tensor[array] == UNMADE && a->piece < 0) *with += a->elements * a->share;
    x->tensor[array] = RIDES;
}

static void ride_weights(builder *x, const sm_text_line *line, int from, double *with) {
    for (int i = from; i < line->operands; i++)
        if (is_weight(x, line->operand[i].array)) ride(x, line->operand[i].array, with);
}

/* ---- ops ---- */

static sm_op *new_op(builder *x, const char *name, sm_op_kind kind, sm_function function) {
    sm_program *b = x->b;
    if (b->ops == SM_MAX_OPS) {
        x->status = sm_fail_limit(x->err, "ops of a layer", SM_MAX_OPS + 1, SM_MAX_OPS);
        b->ops--; /* never looked at */
    }
    sm_op *op = &b->op[b->ops++];
    *op = (sm_op){
        .kind = kind, .function = function, .out = -1, .chosen = -1, .state = -1, .line = x->line};
    op->once = x->decodes && x->l->line[x->line].once;
    snprintf(op->name, sizeof op->name, "%s", name);
    return op;
}

static void makes_tensor(const builder *x, sm_op *op, int tensor) {
    if (op->out < 0) op->out = tensor;
    x->b->tensor[tensor].producer = (int)(op - x->b->op);
}

static void makes(builder *x, sm_op *op, int array) { makes_tensor(x, op, tensor_of(x, array)); }

/* The number of the input. An array that stands for another is read in the other's shape; one that
 * is named in other letters, by those. */
static int takes(builder *x, sm_op *op, int array, const uint8_t *as) {
    int tensor = tensor_of(x, array);
    const sm_tensor *t = &x->b->tensor[tensor];
    for (int i = 0; i < op->inputs; i++)
        if (op->in[i] == tensor && op->kind == SM_OP_ATTENTION) return i;
    if (op->inputs == SM_MAX_INPUTS) {
        x->status =
            sm_fail_limit(x->err, "arrays that an op reads", SM_MAX_INPUTS + 1, SM_MAX_INPUTS);
        return 0;
    }
    bool alike = t->rank == x->l->array[array].rank;
    for (int d = 0; d < t->rank && alike; d++)
        alike = x->b->dim[as[d]].size == x->b->dim[t->dim[d]].size;
    op->in[op->inputs] = tensor;
    memcpy(op->as[op->inputs], alike ? as : t->dim, sizeof op->as[0]);
    bool lent = x->decodes && t->role == SM_ROLE_ACTIVATION && t->of >= 0; /* lies as keys do */
    if ((t->tied || lent) && alike)
        memcpy(x->b->tensor[tensor].dim, as, (size_t)t->rank); /* its letters here */
    return op->inputs++;
}

static void takes_tensor(const builder *x, sm_op *op, int tensor) {
    op->in[op->inputs] = tensor;
    memcpy(op->as[op->inputs++], x->b->tensor[tensor].dim, sizeof op->as[0]);
}

static int reads(builder *x, sm_op *op, const sm_mention *m) {
    return takes(x, op, m->array, m->dim);
}

static double elements_of(const builder *x, int tensor) { return x->b->tensor[tensor].elements; }

static double bytes_of(const builder *x, int tensor) {
    return elements_of(x, tensor) * x->b->tensor[tensor].bytes_per_element;
}

static sm_op *vector(builder *x, const sm_text_line *line, sm_function function) {
    sm_op *op = new_op(x, line->name, SM_OP_VECTOR, function);
    /* What a line reads, with what its backward pass reads. */
    for (int i = 0; i < line->operands; i++) {
        if (x->tensor[line->operand[i].array] == RIDES) continue;
        int at = reads(x, op, &line->operand[i]);
        sm_tensor *t = &x->b->tensor[op->in[at]];
        t->norm |= x->b->rules.each_line && t->role == SM_ROLE_WEIGHT;
        op->reads = (uint16_t)(op->reads | (line->reads >> i & 1u) << at);
    }
    op->reads_output = line->reads & SM_READS_RESULT;
    for (int i = 0; i < line->results; i++) makes(x, op, line->result[i].array);
    op->flops_per_element = line->flops;
    return op;
}

/* ---- products ---- */

/* Latent attention on the compressed cache: products of one token alone, into its low rank and out
 * of it (DeepSeek-V2, arXiv 2405.04434, section 2.1.2). */
static bool is_absorbed(const builder *x, const sm_text_line *product) {
    for (int i = 0; x->b->rules.absorbed && i < x->l->lines; i++) {
        const sm_text_line *a = &x->l->line[i];
        if (a->op != SM_OPERATOR_ATTENTION) continue;
        bool latent = false, into = false;
        for (int k = 0; k < a->scores; k++) {
            latent |= a->operand[2 * k + 1].array == a->operand[2 * a->scores].array;
            into |= a->operand[2 * k].array == product->result[0].array &&
                    a->operand[2 * k + 1].array == a->operand[2 * a->scores].array;
        }
        if (latent && (into || product->operand[0].array == a->result[0].array)) return true;
    }
    return false;
}

static void product(builder *x, const sm_text_line *line) {
    bool two = line->operands == 2;
    sm_op *op = new_op(x, line->name, two ? SM_OP_EINSUM : SM_OP_KERNEL, SM_FUNCTION_NONE);
    bool turned = two && is_weight(x, line->operand[0].array);
    if (turned) reads(x, op, &line->operand[1]);
    for (int i = 0; i < line->operands - turned; i++) reads(x, op, &line->operand[i]);
    op->reads = (uint16_t)((1u << op->inputs) - 1);
    op->matrix_flops = line->matrix_flops;
    if (two && is_absorbed(x, line)) op->function = SM_FUNCTION_ABSORBED;
    makes(x, op, line->result[0].array);
}

/* ---- adapters ---- */

/* A dimension that no line has. */
static uint8_t new_dim(builder *x, const char *name, sm_dimension_role role, double size) {
    sm_program *b = x->b;
    if (b->dims == SM_MAX_DIMENSIONS) {
        x->status = sm_fail_limit(x->err, "dimensions of a layer", b->dims + 1, SM_MAX_DIMENSIONS);
        return 0;
    }
    b->of_role[role] |= 1ull << b->dims;
    b->dim[b->dims] = (sm_program_dimension){.role = role, .size = size};
    snprintf(b->dim[b->dims].name, sizeof b->dim[0].name, "%s", name);
    return (uint8_t)b->dims++;
}

/* The dimension between the two matrices of an adapter. */
static uint8_t rank_dim(builder *x) {
    const int last = x->b->dims - 1;
    if (last >= 0 && strcmp(x->b->dim[last].name, "rank") == 0) return (uint8_t)last;
    return new_dim(x, "rank", SM_DIMENSION_WHOLE, x->b->rules.lora);
}

/* An array of the dimensions among `order` that are in `dims`, and of the rank. */
static int array_of(builder *x, sm_role role, sm_dimensions dims, const uint8_t *order, int n,
                    const char *name) {
    sm_tensor t = {.role = role, .elements = 1, .bytes_per_element = BF16, .producer = -1};
    for (int i = 0; i < n && t.rank < SM_MAX_RANK - 1; i++)
        if (dims >> order[i] & 1u) t.dim[t.rank++] = order[i];
    t.dim[t.rank++] = rank_dim(x);
    for (int i = 0; i < t.rank; i++) t.elements *= x->b->dim[t.dim[i]].size;
    return new_tensor(x, &t, name);
}

/* A product of two arrays, or a function of them. */
static sm_op *linear_op(builder *x, const char *line, const char *suffix, sm_function function,
                        int left, int right, int out) {
    char name[sizeof x->b->op[0].name];
    snprintf(name, sizeof name, "%.12s%s", line, suffix);
    sm_op *op = new_op(x, name, function ? SM_OP_VECTOR : SM_OP_EINSUM, function);
    takes_tensor(x, op, left);
    takes_tensor(x, op, right);
    makes_tensor(x, op, out);
    return op;
}

static bool part_attends(const builder *x, int part) {
    for (int i = 0; part && i < x->l->lines; i++)
        if (x->l->line[i].part == part && x->l->line[i].op == SM_OPERATOR_ATTENTION) return true;
    return false;
}

static bool is_target(const builder *x, const sm_text_line *line, const sm_tensor *w) {
    sm_dimensions dims = program_dims(w);
    bool heads = program_has(x->b, dims, SM_DIMENSION_HEADS) ||
                 program_has(x->b, dims, SM_DIMENSION_GROUP) || part_attends(x, line->part);
    bool mlp = !heads && program_has(x->b, dims, SM_DIMENSION_WIDTH);
    if (program_has(x->b, dims, SM_DIMENSION_VOCABULARY)) return false;
    switch (x->b->rules.targets) {
    case SM_LORA_ATTENTION: return heads;
    case SM_LORA_MLP: return mlp;
    case SM_LORA_QV: return strcmp(w->name, "wq") == 0 || strcmp(w->name, "wv") == 0;
    case SM_LORA_ALL: break;
    }
    return heads || mlp;
}

/* y = x W becomes y = x W + (x A) B, as two more products and a sum. */
static void adapt(builder *x, const sm_text_line *line) {
    sm_program *b = x->b;
    if (!b->rules.lora || x->status) return;
    const sm_op op = b->op[b->ops - 1];
    if (op.kind != SM_OP_EINSUM || b->tensor[op.in[1]].role != SM_ROLE_WEIGHT) return;
    const sm_tensor in = b->tensor[op.in[0]], w = b->tensor[op.in[1]], y = b->tensor[op.out];
    if (!is_target(x, line, &w)) return;
    sm_dimensions from = 0, into = program_dims(&y);
    for (int d = 0; d < in.rank; d++) from |= 1ull << op.as[0][d];
    int down = array_of(x, SM_ROLE_WEIGHT, from, op.as[1], w.rank, "lora_a");
    int low = array_of(x, SM_ROLE_ACTIVATION, into, op.as[0], in.rank, "low");
    int up = array_of(x, SM_ROLE_WEIGHT, into, op.as[1], w.rank, "lora_b");
    int added = new_tensor(x, &y, "added"), sum = new_tensor(x, &y, line->name);
    if (x->status) return;
    const int made[] = {down, low, up, added, sum};
    for (int i = 0; i < 5; i++) {
        b->tensor[made[i]].adapter = (sm_adapter)(SM_ADAPTER_A + i);
        b->tensor[made[i]].beside = op.in[1];
    }
    sm_op *first = linear_op(x, line->name, ".a", SM_FUNCTION_NONE, op.in[0], down, low);
    memcpy(first->as[0], op.as[0], sizeof first->as[0]);
    first->reads = 3;
    linear_op(x, line->name, ".b", SM_FUNCTION_NONE, low, up, added)->reads = 3;
    linear_op(x, line->name, ".sum", SM_FUNCTION_ADD, op.out, added, sum)->flops_per_element = 1;
    x->tensor[line->result[0].array] = sum;
}

/* Of adapters all else is as it was: weights have no gradient, and the inputs of their products are
 * not read again. */
static void freeze(sm_program *b) {
    for (int i = 0; i < b->tensors; i++) {
        sm_tensor *t = &b->tensor[i];
        bool words = program_has(b, program_dims(t), SM_DIMENSION_VOCABULARY);
        if (t->role != SM_ROLE_WEIGHT || t->adapter) continue;
        t->fixed = b->rules.lora > 0;
        t->narrow = b->rules.stored != SM_STORED_BF16 && !t->norm && !words;
        if (t->narrow) t->bytes_per_element = sm_stored_as_bytes[b->rules.stored];
    }
    for (int i = 0; i < b->ops; i++)
        if (b->op[i].kind == SM_OP_EINSUM && b->tensor[b->op[i].in[1]].fixed) b->op[i].reads &= 2;
}

/* ---- attention ---- */

/* Attention as separate kernels (Megatron before flash attention): the probabilities, their dropout
 * mask and what dropout leaves are kept, 5 bytes a score (Korthikanti et al. 2022, section 4.1).
 * Bytes that cross memory per score between the matmuls: scaling, masking and softmax read and
 * write 2 + 2 each, dropout 2 + 1 + 2; backward dropout 5 again, softmax 6 (gradient and result
 * read), masking and scaling 4 each. The scores that the matmuls write and read are priced with
 * them (sm_attention_cost). */
static void softmax(builder *x, const sm_text_line *line) {
    enum { KEPT = 5, FORWARD = 17, BACKWARD = 19 };
    sm_program *b = x->b;
    const sm_mention *q = &line->operand[0], *k = &line->operand[1];
    sm_tensor probs = {
        .role = SM_ROLE_ACTIVATION, .elements = 1, .bytes_per_element = KEPT, .producer = b->ops};
    for (int d = 0; d < x->l->array[q->array].rank; d++)
        if (b->dim[q->dim[d]].role != SM_DIMENSION_WHOLE) probs.dim[probs.rank++] = q->dim[d];
    for (int d = 0; d < x->l->array[k->array].rank; d++)
        if (b->dim[k->dim[d]].role == SM_DIMENSION_KEYS) probs.dim[probs.rank++] = k->dim[d];
    for (int d = 0; d < probs.rank; d++) probs.elements *= b->dim[probs.dim[d]].size;
    sm_op *op = new_op(x, "softmax", SM_OP_VECTOR, SM_FUNCTION_SOFTMAX);
    reads(x, op, q);
    op->out = new_tensor(x, &probs, "probs");
    op->reads_output = true;
    op->flops_per_element = 8;
    op->passes[0] = (double)FORWARD / KEPT;
    op->passes[1] = (double)BACKWARD / KEPT;
}

static double size_of_role(const sm_program *b, const sm_mention *m, int rank,
                           sm_dimension_role role) {
    double size = 1;
    for (int d = 0; d < rank; d++)
        if (b->dim[m->dim[d]].role == role) size *= b->dim[m->dim[d]].size;
    return size;
}

static void attention(builder *x, const sm_text_line *line) {
    bool unfused = x->b->rules.attention == SM_ATTENTION_UNFUSED;
    const sm_mention *value = &line->operand[2 * line->scores];
    if (unfused) softmax(x, line);
    sm_op *op = new_op(x, line->name, SM_OP_ATTENTION, SM_FUNCTION_NONE);
    for (int i = 0; i < 2 * line->scores; i++) {
        const sm_mention *m = &line->operand[i];
        reads(x, op, m);
        if (i % 2 == 0)
            op->query_size += size_of_role(x->b, m, x->l->array[m->array].rank, SM_DIMENSION_WHOLE);
    }
    op->values = reads(x, op, value);
    op->value_size = size_of_role(x->b, value, x->l->array[value->array].rank, SM_DIMENSION_WHOLE);
    /* what its attributes name: a table of distances or sinks does no work of its own */
    for (int i = 2 * line->scores + 1; i < line->operands; i++)
        if (!is_weight(x, line->operand[i].array)) op->chosen = reads(x, op, &line->operand[i]);
        else if (!x->b->rules.each_line) ride(x, line->operand[i].array, &x->rides);
        else x->b->tensor[op->in[reads(x, op, &line->operand[i])]].norm = i == line->sinks;
    op->window = line->window;
    op->chunk = line->chunk;
    op->reads = (uint16_t)((1u << op->inputs) - 1);
    op->reads_output = !unfused;
    makes(x, op, line->result[0].array);
    op->keys = line->keys;
    if (unfused) /* masked scores are computed too */
        op->keys = x->b->dim[program_first(x->b, ~0ull, SM_DIMENSION_KEYS)].size;
}

/* ---- the cache ---- */

/* One kernel writes keys and values. */
static void append(builder *x, const sm_text_line *line) {
    if (!x->b->serving) {
        for (int i = 0; i < line->results; i++)
            x->tensor[line->result[i].array] = tensor_of(x, line->operand[i].array);
        return;
    }
    sm_op *op = new_op(x, line->name, SM_OP_VECTOR, SM_FUNCTION_APPEND);
    for (int i = 0; i < line->results; i++) {
        /* positions are written where keys are held */
        takes(x, op, line->operand[i].array, line->result[i].dim);
        makes(x, op, line->result[i].array);
    }
    op->flops_per_element = QUANTISE_FLOPS;
}

/* ---- convolutions along the sequence ---- */

/* What the runtime serves of a convolution: its inputs are a cache like keys and values, so that
 * a sequence can be taken back to any of its positions. */
static int remember(builder *x, int tensor) {
    enum { POSITIONS = 1 };
    sm_tensor past = x->b->tensor[tensor];
    past.role = SM_ROLE_CACHE;
    past.kept = true;
    int keys = program_first(x->b, ~0ull, SM_DIMENSION_KEYS);
    past.dim[POSITIONS] = keys < 0 ? new_dim(x, "S", SM_DIMENSION_KEYS, 1) : (uint8_t)keys;
    int made = new_tensor(x, &past, "past");
    sm_op *op = new_op(x, "past", SM_OP_VECTOR, SM_FUNCTION_APPEND);
    takes_tensor(x, op, tensor);
    memcpy(op->as[0], past.dim, sizeof op->as[0]); /* positions are written where keys are held */
    op->flops_per_element = QUANTISE_FLOPS;
    makes_tensor(x, op, made);
    return made;
}

static void convolve(builder *x, const sm_text_line *line) {
    bool remembers = x->decodes && x->b->rules.each_line;
    int past = remembers ? remember(x, tensor_of(x, line->operand[0].array)) : -1;
    sm_op *op = vector(x, line, SM_FUNCTION_OTHER);
    if (remembers && op->inputs < SM_MAX_INPUTS) takes_tensor(x, op, past);
}

/* ---- routed experts ---- */

static bool is_choice(const builder *x, int array) {
    bool any = false;
    for (int i = 0; i < x->l->lines; i++)
        for (int k = 0; k < x->l->line[i].operands; k++) {
            if (x->l->line[i].operand[k].array != array) continue;
            sm_operator op = x->l->line[i].op;
            if (op != SM_OPERATOR_DISPATCH && op != SM_OPERATOR_COMBINE) return false;
            any = true;
        }
    return any;
}

/* The share of each expert in the shape of their scores: what the runtime makes of a choice. */
static void share_out(builder *x, const sm_text_line *line) {
    const sm_text_array *made = &x->l->array[line->result[0].array];
    sm_tensor t = x->b->tensor[tensor_of(x, line->operand[0].array)];
    t.producer = -1;
    x->tensor[line->result[0].array] = new_tensor(x, &t, made->name);
    vector(x, line, SM_FUNCTION_OTHER);
}

static void choose(builder *x, const sm_text_line *line) {
    int made = line->result[0].array;
    bool choice = is_choice(x, made);
    if (choice && x->b->rules.each_line) {
        share_out(x, line);
        return;
    }
    ride_weights(x, line, 1, &x->fixed);
    if (choice) {
        x->tensor[made] = tensor_of(x, line->operand[0].array);
        return;
    }
    sm_op *op = vector(x, line, SM_FUNCTION_OTHER);
    op->flops_per_element = elements_of(x, op->in[0]) / elements_of(x, op->out);
}

static void route(builder *x, const sm_text_line *line) {
    const sm_text_array *c = &x->l->array[line->operand[1].array];
    sm_op *op = vector(
        x, line, line->op == SM_OPERATOR_DISPATCH ? SM_FUNCTION_DISPATCH : SM_FUNCTION_COMBINE);
    x->b->top_k = x->b->dim[c->dim[c->rank - 1]].size;
    if (line->op == SM_OPERATOR_COMBINE) op->flops_per_element = 2 * x->b->top_k;
    op->reads ^= line->weighed; /* the side that shares weigh, for their gradient */
}

/* ---- tables and scores ---- */

/* The op that looks up rows of a table: ids are the matrix of ones and zeros they stand for. */
static void gather(builder *x, const sm_text_line *line, int ids) {
    sm_op *op = new_op(x, line->name, SM_OP_GATHER, SM_FUNCTION_LOOKUP);
    takes_tensor(x, op, ids);
    reads(x, op, &line->operand[0]);
    op->reads = 1;
    makes(x, op, line->result[0].array);
}

static int one_hot(builder *x, const char *name, const uint8_t *dim, int rank, uint8_t row,
                   double elements) {
    sm_tensor t = {.role = SM_ROLE_IDS, .rank = rank + 1, .elements = elements, .producer = -1};
    memcpy(t.dim, dim, (size_t)rank);
    t.dim[rank] = row;
    return new_tensor(x, &t, name);
}

/* A table with a row for each position: looked up by every sequence, whose positions differ where
 * they are served. */
static void look_up_positions(builder *x, const sm_text_line *line) {
    const sm_mention *table = &line->operand[0], *made = &line->result[0];
    int sequences = program_first(x->b, ~0ull, SM_DIMENSION_SEQUENCES);
    uint8_t dim[] = {(uint8_t)sequences, made->dim[0], made->dim[1]};
    double positions = x->b->dim[made->dim[0]].size;
    sm_tensor rows = {.role = SM_ROLE_ACTIVATION,
                      .rank = 3,
                      .elements = x->l->array[made->array].elements,
                      .bytes_per_element = BF16,
                      .producer = -1};
    memcpy(rows.dim, dim, sizeof dim);
    x->tensor[made->array] = new_tensor(x, &rows, line->name);
    gather(x, line, one_hot(x, "places", dim, 2, table->dim[0], positions));
    x->b->tensor[x->tensor[table->array]].norm = true;
}

static void look_up(builder *x, const sm_text_line *line) {
    const sm_mention *table = &line->operand[0], *ids = &line->operand[1];
    if (line->operands == 1 && x->b->rules.each_line) {
        look_up_positions(x, line);
        return;
    }
    if (line->operands == 1) {
        ride(x, table->array, &x->rides);
        x->tensor[line->result[0].array] = RIDES;
        return;
    }
    const sm_text_array *a = &x->l->array[ids->array];
    const bool rows = !is_weight(x, table->array); /* [B,U,D]: of the sequence itself */
    if (a->role != SM_TEXT_IDS || (rows && x->l->array[table->array].rank != 3)) {
        vector(x, line, rows ? SM_FUNCTION_OTHER : SM_FUNCTION_LOOKUP);
        return;
    }
    int *places = &x->tensor[ids->array];
    if (*places == UNMADE || x->b->tensor[*places].dim[a->rank] != table->dim[rows])
        *places = one_hot(x, a->name, ids->dim, a->rank, table->dim[rows], a->elements);
    gather(x, line, *places);
}

static void score(builder *x, const sm_text_line *line) {
    enum { LOSS_FLOPS = 8, SAMPLE_FLOPS = 5 };
    bool loss = line->op == SM_OPERATOR_CROSS_ENTROPY;
    sm_op *op = vector(x, line, loss ? SM_FUNCTION_LOSS : SM_FUNCTION_SAMPLE);
    op->flops_per_element =
        (loss ? LOSS_FLOPS : SAMPLE_FLOPS) * elements_of(x, op->in[0]) / elements_of(x, op->out);
}

/* ---- expressions ---- */

/* x + w where w are weights and x was made by a product or looked up: its epilogue. */
static bool is_epilogue(const builder *x, const sm_text_line *line, int *base) {
    *base = -1;
    if (program_function_of(line) != SM_FUNCTION_ADD || x->b->rules.each_line) return false;
    for (int i = 0; i < line->operands; i++) {
        int array = line->operand[i].array;
        if (is_weight(x, array)) continue;
        if (*base >= 0) return false;
        *base = array;
    }
    if (*base < 0 || x->tensor[*base] < 0) return false;
    int producer = x->b->tensor[x->tensor[*base]].producer;
    sm_op_kind kind = producer < 0 ? SM_OP_VECTOR : x->b->op[producer].kind;
    bool adapted = producer >= 0 && x->b->rules.lora && x->b->op[producer].line >= 0 &&
                   x->l->line[x->b->op[producer].line].op == SM_OPERATOR_PRODUCT;
    return kind == SM_OP_EINSUM || kind == SM_OP_GATHER || adapted ||
           (producer >= 0 && x->b->op[producer].function == SM_FUNCTION_COMBINE);
}

static void expression(builder *x, const sm_text_line *line) {
    int base;
    if (is_epilogue(x, line, &base)) {
        ride_weights(x, line, 0, &x->rides);
        x->tensor[line->result[0].array] = x->tensor[base];
        return;
    }
    sm_function function = program_function_of(line);
    /* the shift of a norm rides along with its scale */
    if (function == SM_FUNCTION_NORM && !x->b->rules.each_line) ride_weights(x, line, 2, &x->rides);
    vector(x, line, function)->scales = program_scales_first(line);
}

/* ---- kernels: one op, whose inner arrays never reach memory; but a scan in chunks is several
 * (state-spaces/mamba, flash-linear-attention), which pass the state before each chunk on and read
 * the inputs anew ---- */

static void kernel(builder *x, const sm_text_kernel *k) {
    sm_op *op = new_op(x, k->name, SM_OP_KERNEL, SM_FUNCTION_OTHER);
    double flops = 0;
    for (int i = 0; i < k->operands; i++)
        takes(x, op, k->operand[i], x->l->array[k->operand[i]].dim);
    for (int i = 0; i < k->results; i++) makes(x, op, k->result[i]);
    for (int i = k->from; i < k->from + k->lines; i++) {
        const sm_text_line *line = &x->l->line[i];
        op->matrix_flops += line->matrix_flops;
        flops += line->flops * x->l->array[line->result[0].array].elements;
        if (x->l->array[line->result[0].array].role == SM_TEXT_STATE)
            op->state = tensor_of(x, line->result[0].array);
        if (line->op == SM_OPERATOR_STATE && x->l->array[k->operand[0]].dim[1] != line->along)
            op->passed_bytes += 2 * bytes_of(x, op->state);
    }
    for (int i = 0; i < op->inputs && op->passed_bytes > 0; i++)
        op->passed_bytes += bytes_of(x, op->in[i]);
    if (op->state >= 0) makes_tensor(x, op, op->state);
    op->reads = (uint16_t)((1u << op->inputs) - 1);
    op->flops_per_element = flops / elements_of(x, op->out);
}

/* ---- lines ---- */

static void add_line(builder *x, const sm_text_line *line) {
    if (line->once && x->decodes && !x->b->rules.each_line) {
        /* It is there when a sequence is decoded; its weights are stored all the same. The runtime
         * makes it, by the same program. */
        ride_weights(x, line, 0, &x->rides);
        for (int i = 0; i < line->results; i++)
            if (line->op == SM_OPERATOR_CACHE) tensor_of(x, line->result[i].array);
        return;
    }
    switch (line->op) {
    case SM_OPERATOR_PRODUCT:
        product(x, line);
        adapt(x, line);
        break;
    case SM_OPERATOR_ATTENTION: attention(x, line); break;
    case SM_OPERATOR_CACHE: append(x, line); break;
    case SM_OPERATOR_CONV: convolve(x, line); break;
    case SM_OPERATOR_TOP: choose(x, line); break;
    case SM_OPERATOR_DISPATCH:
    case SM_OPERATOR_COMBINE: route(x, line); break;
    case SM_OPERATOR_TAKE: look_up(x, line); break;
    case SM_OPERATOR_CROSS_ENTROPY:
    case SM_OPERATOR_SAMPLE: score(x, line); break;
    case SM_OPERATOR_EXPRESSION: expression(x, line); break;
    case SM_OPERATOR_VIEW:
    case SM_OPERATOR_SPLIT:
    case SM_OPERATOR_WINDOWS: vector(x, line, SM_FUNCTION_VIEW); break;
    default: vector(x, line, SM_FUNCTION_OTHER); break;
    }
}

/* ---- the whole ---- */

static void add_dimensions(builder *x) {
    sm_program *b = x->b;
    b->dims = x->l->dims;
    for (int d = 0; d < b->dims; d++) {
        b->dim[d].role = x->l->dim[d].role;
        b->dim[d].size = x->l->dim[d].size;
        snprintf(b->dim[d].name, sizeof b->dim[d].name, "%s", x->l->dim[d].name);
        b->of_role[b->dim[d].role] |= 1ull << d;
    }
}

/* What lives in a pass comes first, for which sets have a bit each; weights come last. */
static void number_arrays(builder *x) {
    sm_program *b = x->b;
    sm_tensor sorted[SM_MAX_TENSORS];
    int to[SM_MAX_TENSORS], n = 0;
    for (int rank = 0; rank < 3; rank++) {
        for (int i = 0; i < b->tensors; i++) {
            sm_role role = b->tensor[i].role;
            if ((role == SM_ROLE_ACTIVATION ? 0 : role == SM_ROLE_WEIGHT ? 2 : 1) != rank) continue;
            sorted[n] = b->tensor[i];
            to[i] = n++;
        }
        if (rank == 0 && n > SM_MAX_BITS)
            x->status = sm_fail_limit(x->err, "activations of a layer", n, SM_MAX_BITS);
    }
    memcpy(b->tensor, sorted, (size_t)n * sizeof *sorted);
    for (int i = 0; i < n; i++)
        if (b->tensor[i].adapter) b->tensor[i].beside = to[b->tensor[i].beside];
    for (int i = 0; i < b->ops; i++) {
        sm_op *op = &b->op[i];
        op->out = to[op->out];
        for (int k = 0; k < op->inputs; k++) op->in[k] = to[op->in[k]];
        if (op->state >= 0) op->state = to[op->state];
    }
    for (int i = 0; i < SM_MAX_LINE_ARRAYS; i++)
        b->tensor_of[i] = (int16_t)(i < x->l->arrays && x->tensor[i] >= 0 ? to[x->tensor[i]] : -1);
    b->input = x->l->input < 0 ? -1 : b->tensor_of[x->l->input];
    b->output = x->l->output < 0 ? -1 : b->tensor_of[x->l->output];
    if (b->input >= 0 && b->tensor[b->input].role == SM_ROLE_IDS) b->input = -1;
    const sm_op *last = b->ops ? &b->op[b->ops - 1] : NULL;
    bool ends =
        last && (last->function == SM_FUNCTION_LOSS || last->function == SM_FUNCTION_SAMPLE);
    b->still = b->input < 0 && b->output >= 0 && !b->tensor[b->output].per_sequence;
    if (ends && last->out == b->output) b->output = -1;
    b->lent = -1;
    for (int i = 0; i < b->tensors; i++) {
        const sm_tensor *t = &b->tensor[i];
        if (t->role == SM_ROLE_ACTIVATION && t->producer < 0 && t->of >= 0) b->lent = i;
    }
}

/* With the weight that layers share least, of those a norm's; a piece without any has a class of
 * them alone (finish of partition.c). */
static void place_rides(const builder *x) {
    sm_tensor *host = NULL;
    for (int i = 0; i < x->b->tensors; i++) {
        sm_tensor *t = &x->b->tensor[i];
        if (t->role != SM_ROLE_WEIGHT || t->tied) continue;
        bool better =
            host && (t->share != host->share ? t->share > host->share : t->norm && !host->norm);
        if (!host || better) host = t;
    }
    if (host) host->elements += x->rides / host->share;
    else x->b->rides = x->rides;
}

static sm_status of_lines(const sm_text_lines *lines, const sm_rules *rules, bool serving,
                          sm_program *program, sm_error *err) {
    builder x = {.l = lines,
                 .b = program,
                 .tensor = sm_malloc(((size_t)lines->arrays + 1) * sizeof(int)),
                 .decodes = serving && rules->decode,
                 .err = err};
    memset(program, 0, sizeof *program);
    program->rules = *rules;
    program->serving = serving;
    if (serving) program->rules.attention = SM_ATTENTION_FUSED;
    if (lines->dims > SM_MAX_DIMENSIONS) {
        sm_free(x.tensor);
        return sm_fail_limit(err, "dimensions of a layer", lines->dims, SM_MAX_DIMENSIONS);
    }
    if (!x.tensor) return sm_fail_memory(err);
    snprintf(program->name, sizeof program->name, "%s", lines->name);
    for (int i = 0; i < lines->arrays; i++) x.tensor[i] = UNMADE;
    add_dimensions(&x);
    if (lines->input >= 0 && lines->array[lines->input].role != SM_TEXT_IDS)
        tensor_of(&x, lines->input);
    for (int i = 0; !x.status && i < x.l->lines; i++) {
        const sm_text_line *line = &x.l->line[i];
        x.line = i;
        if (line->kernel < 0) add_line(&x, line);
        else if (x.l->kernel[line->kernel].from == i) kernel(&x, &x.l->kernel[line->kernel]);
    }
    if (!x.status) {
        number_arrays(&x);
        place_rides(&x);
        program->fixed = x.fixed;
        freeze(program);
        program_settle(program);
        program_fit_software(program);
    }
    sm_free(x.tensor);
    if (!x.status || !program->rules.lora) return x.status;
    return sm_fail(err, SM_BAD_INPUT,
                   "adapters beside so many matrices make a layer of this model too large (at most "
                   "%d ops, %d arrays); targets=attention, mlp or qv are fewer",
                   SM_MAX_OPS, SM_MAX_TENSORS);
}

int sm_program_at(const sm_model *model, sm_piece piece, int kind) {
    return piece == SM_PIECE_LAYER       ? kind
           : piece == SM_PIECE_EMBEDDING ? model->kinds + kind
                                         : model->kinds + model->outside - 1;
}

sm_status sm_program_lines(const sm_model *model, int at, double T, const sm_rules *rules,
                           sm_arena *arena, const sm_text_lines **out, sm_error *err) {
    const double read = rules->read ? rules->read : 1;
    const bool serving = !(T > 0);
    const sm_text_lines_of of = {.kind = model->lines_of[at],
                                 .phase = !serving        ? SM_TEXT_TRAIN
                                          : rules->decode ? SM_TEXT_DECODE
                                                          : SM_TEXT_PREFILL,
                                 .absorbed = serving && rules->absorbed,
                                 .T = serving ? read : T,
                                 .S = serving ? read : T,
                                 .each_token = serving && !rules->decode && !rules->read};
    return sm_architecture_lines(model->architecture, &of, arena, out, err);
}

sm_status sm_program_of_lines(const sm_text_lines *lines, const sm_rules *rules,
                              sm_program *program, sm_error *err) {
    return of_lines(lines, rules, false, program, err);
}

sm_status sm_program_build(const sm_model *model, sm_piece piece, int kind, double T,
                           const sm_rules *rules, sm_program *program, sm_error *err) {
    sm_arena *arena = sm_arena_new();
    const sm_text_lines *lines;
    if (!arena) return sm_fail_memory(err);
    sm_status status =
        sm_program_lines(model, sm_program_at(model, piece, kind), T, rules, arena, &lines, err);
    if (!status) status = of_lines(lines, rules, !(T > 0), program, err);
    sm_arena_free(arena);
    return status;
}

sm_status sm_program_build_serving(const sm_model *model, sm_piece piece, int kind,
                                   const sm_rules *rules, sm_program *program, sm_error *err) {
    return sm_program_build(model, piece, kind, 0, rules, program, err);
}
