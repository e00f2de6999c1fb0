/* The partition: each op of the program, forward and backward, goes through the algebra of shard
 * with symbolic sizes; what comes out is local work and collectives. */
#include "partition_parts.h"
#include "program_parts.h"

static sm_axes out_mask(const sm_program *b, const term *out, const int *at) {
    sm_dimensions dims = part_dims(b, out);
    sm_axes mask = 0;
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if (at[a] >= 0 && dims >> at[a] & 1u) mask = (sm_axes)(mask | SM_BIT(a));
    return mask;
}

/* ---- sums of partial sums; dispatch and combine of whole tokens ---- */

/* A step of one array after the others of the op; its lowering had it as operand 0. */
static bool add_step(job *j, sm_lowering *all, const sm_step *step, int array) {
    if (all->steps == SM_MAX_STEPS) {
        sm_fail(j->err, SM_INTERNAL, "an op moves its arrays in more than %d steps", SM_MAX_STEPS);
        return false;
    }
    all->step[all->steps] = *step;
    all->step[all->steps++].array = array;
    return true;
}

/* Moves one array, as it stands, to where it is wanted. */
static bool settle(job *j, const sm_op *op, term from, term to, int array, sm_lowering *all) {
    int at[SM_AXIS_COUNT];
    sm_lowering low;
    sm_tensor wanted = j->b->tensor[to.tensor];
    memcpy(wanted.at, to.at, sizeof wanted.at);
    part_assign_home(&wanted, at);
    if (!part_lower(j, 1, &from, &to, at, false, &low)) return false;
    sm_axes mask = part_mask(from.at, wanted.rank);
    for (int i = 0; i < low.steps; i++) {
        if (low.step[i].kind == SM_STEP_EINSUM) continue;
        low.step[i].array = array;
        if (!add_step(j, all, &low.step[i], array)) return false;
    }
    part_emit(j, op, (traveller){array, from.tensor, false, mask}, &low, SM_PHASE_FORWARD);
    return true;
}

static void drop_axes(term *t, unsigned axes) {
    for (int d = 0; d < SM_MAX_RANK; d++) t->at[d] = (sm_axes)(t->at[d] & ~axes);
}

/* Every chip of a tensor group takes from all the group's tokens those of its experts; what experts
 * made of them stays where it is. */
static bool settle_tokens(job *j, const sm_op *op, sm_lowering *all) {
    for (int i = 0; i < op->inputs; i++) {
        term from = part_stored(j->b, op->in[i]), to = from;
        if (part_of_experts(j->b, op->in[i])) continue;
        drop_axes(&to, SM_AXES_TENSOR);
        if (!settle(j, op, from, to, i, all)) return false;
    }
    return true;
}

static bool adds_partial(const sm_program *b, const sm_op *op) {
    bool combines = program_tokens_whole(b) && op->function == SM_FUNCTION_COMBINE;
    return op->kind == SM_OP_VECTOR && (combines || b->tensor[op->in[0]].unreduced);
}

/* What the experts of a chip make of a token is a part of its sum, and partial sums are added
 * before they are reduced. */
static term made_by(const job *j, const sm_op *op) {
    term made = part_stored(j->b, op->out);
    if (!adds_partial(j->b, op) || made.unreduced) return made;
    made.unreduced = part_sums_over(j->b, op->in[0]);
    drop_axes(&made, made.unreduced);
    return made;
}

static bool forward_comms(job *j, const sm_op *op, const term *in, const term *out, const int *at) {
    sm_lowering low;
    bool crosses = part_crosses(j->b, op);
    if (adds_partial(j->b, op) || (crosses && program_tokens_whole(j->b))) {
        sm_lowering all = {.steps = 0};
        sm_step make = {.kind = SM_STEP_EINSUM, .op = SM_COLLECTIVE_COUNT};
        term made = made_by(j, op);
        sm_einsum e;
        if (part_crosses(j->b, op) && !settle_tokens(j, op, &all)) return false;
        part_einsum(j, 1, &made, out, &e);
        make.after = sm_layout_of(&e.in[0]);
        if (!add_step(j, &all, &make, -1)) return false;
        if (made.unreduced != out->unreduced && !settle(j, op, made, *out, -1, &all)) return false;
        part_task_arrays(j, op->inputs, in, out, &all);
        return true;
    }
    if (crosses) {
        part_task_arrays(j, op->inputs, in, out, NULL);
        return true;
    }
    if (!part_lower(j, op->inputs, in, out, at, false, &low)) return false;
    for (int i = 0; i < op->inputs; i++)
        if (j->b->tensor[op->in[i]].role != SM_ROLE_IDS)
            part_emit(j, op, (traveller){i, op->in[i], false, part_stored_mask(j->b, op->in[i])},
                      &low, SM_PHASE_FORWARD);
    part_emit(j, op, (traveller){-1, op->out, false, out_mask(j->b, out, at)}, &low,
              SM_PHASE_FORWARD);
    return true;
}

static bool forward_op(job *j, const sm_op *op) {
    int at[SM_AXIS_COUNT];
    term in[SM_MAX_OPERANDS] = {{0}}, out = part_stored(j->b, op->out);
    bool append = part_appends(j->b, op);
    part_assign(j->b, op, at);
    for (int i = 0; i < op->inputs; i++) in[i] = part_operand(j->b, op, i);
    if (!forward_comms(j, op, in, &out, at) || !part_task_forward(j, op)) return false;
    if (op->kind == SM_OP_EINSUM) part_einsum_work(j, op, in, &out, at, SM_PHASE_FORWARD);
    else if (op->kind == SM_OP_ATTENTION) part_attention_work(j, op, at, SM_PHASE_FORWARD);
    else if (op->kind == SM_OP_KERNEL) part_kernel_work(j, op, at, SM_PHASE_FORWARD);
    else if (append) part_append_work(j, op, at);
    else part_vector_work(j, op, SM_PHASE_FORWARD);
    return true;
}

static void record(sm_partition *p, const sm_weight_class *c) {
    for (int i = 0; i < p->classes && i < SM_MAX_WEIGHT_CLASSES; i++) {
        sm_weight_class *of = &p->weight[i];
        if (of->stored != c->stored || of->partial != c->partial || of->expert != c->expert ||
            of->tied != c->tied || of->fixed != c->fixed || of->narrow != c->narrow ||
            of->share != c->share)
            continue;
        of->elements += c->elements;
        of->rows += c->rows;
        of->weights += c->weights;
        return;
    }
    if (p->classes < SM_MAX_WEIGHT_CLASSES) p->weight[p->classes] = *c;
    p->classes++; /* finish tells when that is too many */
}

/* Is it a table of which no op reads more than rows? */
static bool is_looked_up(const sm_program *b, int tensor) {
    bool rows = false;
    for (int i = 0; i < b->ops; i++)
        for (int k = 0; k < b->op[i].inputs; k++) {
            if (b->op[i].in[k] != tensor) continue;
            rows = b->op[i].function == SM_FUNCTION_LOOKUP;
            if (!rows) return false;
        }
    return rows;
}

/* A weight that several ops read is one; where their gradients are partial over other axes they are
 * added as partial sums. by_tokens: that of one which stands alone, for others to read, is partial
 * over these, unless they share out its heads. */
static void record_weights(const job *j, sm_axes by_tokens) {
    const bool exchanged = j->b->rules.context_by == SM_CONTEXT_HEADS;
    for (int i = j->b->tensors - 1; i >= 0; i--) {
        const sm_tensor *t = &j->b->tensor[i];
        if (t->role != SM_ROLE_WEIGHT) continue;
        const bool cut = exchanged && (program_dims(t) & j->b->of_role[SM_DIMENSION_HEADS]);
        const unsigned shared = cut ? SM_BIT(SM_AXIS_CONTEXT) : 0;
        record(j->out, &(sm_weight_class){.elements = t->elements,
                                          .rows = is_looked_up(j->b, i) ? t->elements : 0,
                                          .weights = 1,
                                          .stored = part_stored_mask(j->b, i),
                                          .partial = j->b->still ? (sm_axes)(by_tokens & ~shared)
                                                                 : j->partial[i],
                                          .expert = part_of_experts(j->b, i),
                                          .tied = t->tied,
                                          .share = t->share,
                                          .fixed = t->fixed,
                                          .narrow = t->narrow});
    }
}

static sm_status finish(const job *j, bool backward, sm_error *err) {
    sm_partition *out = j->out;
    const sm_program *program = j->b;
    const unsigned tokens = SM_BIT(SM_AXIS_DATA) | SM_BIT(SM_AXIS_EXPERT) | SM_BIT(SM_AXIS_CONTEXT);
    const sm_axes by_tokens =
        backward ? (sm_axes)(tokens & ~sm_weight_shards(&program->rules, false)) : 0;
    record_weights(j, by_tokens);
    if (program->rides > 0)
        record(out,
               &(sm_weight_class){
                   .elements = program->rides, .weights = 1, .share = 1, .partial = by_tokens});
    if (program->fixed > 0)
        record(out, &(sm_weight_class){.elements = program->fixed, .share = 1, .fixed = true});
    if (out->comms > SM_MAX_COMM)
        return sm_fail_limit(err, "collectives of a layer", out->comms, SM_MAX_COMM);
    if (j->moves > SM_MAX_COMM)
        return sm_fail_limit(err, "moves of arrays in a layer", j->moves, SM_MAX_COMM);
    if (out->classes > SM_MAX_WEIGHT_CLASSES)
        return sm_fail_limit(err, "ways in which the weights of a layer are sharded", out->classes,
                             SM_MAX_WEIGHT_CLASSES);
    int edge = program->output >= 0 ? program->output : program->input;
    if (edge >= 0)
        out->boundary = part_stored_size(program, edge, program->tensor[edge].bytes_per_element);
    const int lent = program->lent;
    if (lent >= 0)
        out->lent = part_stored_size(program, lent, program->tensor[lent].bytes_per_element);
    return SM_OK;
}

static job start(const sm_program *program, sm_lowerings *known, sm_partition *out, sm_error *err) {
    const size_t program_end = sizeof out->program;
    memcpy(&out->program, program,
           offsetof(sm_program, tensor) + (size_t)program->tensors * sizeof *program->tensor);
    memcpy(out->program.op, program->op, (size_t)program->ops * sizeof *program->op);
    memset((char *)out + program_end, 0, offsetof(struct sm_partition, weight) - program_end);
    return (job){.out = out, .b = &out->program, .err = err, .known = known};
}

/* Weights that stand alone are moved by what reads them. */
bool part_forward(job *j) {
    for (int i = 0; i < j->b->ops && !j->b->still; i++)
        if (!forward_op(j, &j->b->op[i])) return false;
    return true;
}

bool part_backward_ops(job *j) {
    const sm_program *b = j->b;
    if (!b->ops || b->still) return true;
    for (int i = b->ops - 1; i >= 0; i--)
        if (!part_backward(j, &b->op[i])) return false;
    return (b->lent < 0 || part_flush(j, &b->op[0], b->lent)) &&
           (b->input < 0 || part_flush(j, &b->op[0], b->input));
}

static sm_status failed(const sm_error *err) {
    return err && err->status ? err->status : SM_INTERNAL;
}

sm_status sm_program_partition(const sm_program *program, sm_lowerings *known, sm_partition *out,
                               sm_error *err) {
    job j = start(program, known, out, err);
    if (program->serving)
        return sm_fail(err, SM_INTERNAL, "a program of serving has no backward pass");
    if (!part_forward(&j) || !part_backward_ops(&j)) return failed(err);
    /* Tensors (bit) that the backward ops read; adds to as_stored those that kernels do beside
     * their operands. */
    sm_bits read = 0;
    for (int i = 0; i < j.b->ops; i++) {
        const sm_op *op = &j.b->op[i];
        sm_bits inputs = 0, result = op->reads_output ? sm_bit_of(op->out) : 0;
        for (int k = 0; k < op->inputs; k++)
            if ((op->reads >> k & 1) && j.b->tensor[op->in[k]].role == SM_ROLE_ACTIVATION)
                inputs |= sm_bit_of(op->in[k]);
        bool own = op->kind == SM_OP_VECTOR || op->kind == SM_OP_GATHER; /* not operands alone */
        out->as_stored |= result | (own ? inputs : 0);
        read |= inputs | result;
    }
    out->needed = read;
    return finish(&j, true, err);
}

sm_status sm_program_partition_forward(const sm_program *program, sm_lowerings *known,
                                       sm_partition *out, sm_error *err) {
    job j = start(program, known, out, err);
    if (!part_forward(&j)) return failed(err);
    for (int i = 0; i < program->tensors; i++) {
        const sm_tensor *t = &program->tensor[i];
        if (!t->kept) continue;
        sm_size *to = t->role == SM_ROLE_CACHE ? &out->cache : &out->state;
        double held = to->base;
        *to = part_stored_size(j.b, i, t->bytes_per_element);
        to->base += held;
    }
    return finish(&j, false, err);
}

/* ---- what runs a step asks of it ---- */

int sm_partition_comms(const sm_partition *p) { return p->comms; }
const sm_comm *sm_partition_comm(const sm_partition *p, int i) { return &p->comm[i]; }
int sm_partition_weight_classes(const sm_partition *p) { return p->classes; }
const sm_weight_class *sm_partition_weight_class(const sm_partition *p, int i) {
    return &p->weight[i];
}
sm_size sm_partition_handed(const sm_partition *p, bool lent) {
    return lent ? p->lent : p->boundary;
}
