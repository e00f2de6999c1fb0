/* What a kernel and a collective cost: rooflines and curves of cost.h. */

#include "profile_made.h"

const char *sm_profile_bound_name(sm_profile_bound bound) {
    static const char *const names[] = {"compute",        "vector",    "memory",
                                        "on-chip memory", "host link", "launch"};
    return names[bound];
}

typedef struct resource_times { /* at datasheet rates, each resource alone */
    double of[SM_PROFILE_LAUNCH];
} resource_times;

/* A kernel of several products costs as its largest one, in proportion. */
static sm_op_cost cost_of(const sm_chip *chip, const sm_calibration *c, const sm_module_work *w) {
    if (w->attention.heads > 0) {
        sm_attention_shape attention = w->attention;
        attention.dtype = w->dtype;
        return sm_attention_cost(chip, c, &attention, w->backward);
    }
    double vector_flops = w->vector_flops + w->transcendentals;
    sm_op_cost vector = sm_vector_cost(chip, c, vector_flops, w->bytes);
    double largest = 2 * w->batch * w->m * w->n * w->k;
    if (largest <= 0) return vector;
    double parts = fmax(w->matrix_flops / largest, 1);
    sm_product_shape shape = {w->batch, w->m, w->n, w->k};
    sm_op_cost cost = sm_matmul_cost(chip, c, w->dtype, shape, w->bytes / parts);
    cost.lower_s *= parts;
    cost.expected_s = fmax(cost.expected_s * parts - (parts - 1) * c->launch_s, vector.expected_s);
    cost.upper_s = cost.upper_s * parts + vector.math_s;
    return cost;
}

void profile_price_op(const profile_made *made, sm_profile_op *op) {
    const sm_chip *chip = &made->p.system->chip;
    const sm_calibration *c = made->p.calibration;
    const sm_module_work *w = &op->work;
    resource_times t;
    sm_op_cost vector = sm_vector_cost(chip, c, w->vector_flops + w->transcendentals, 0);
    t.of[SM_PROFILE_MATRIX] = at_rate(
        w->matrix_flops, sm_chip_peak(chip, w->matrix_flops > 0 ? w->dtype : SM_BF16, NULL));
    t.of[SM_PROFILE_VECTOR] = vector.math_s;
    t.of[SM_PROFILE_HBM] = at_rate(w->bytes, chip->memory_bytes_per_s.value);
    t.of[SM_PROFILE_ONCHIP] = at_rate(w->onchip_bytes, chip->onchip_bytes_per_s.value);
    t.of[SM_PROFILE_HOST] = at_rate(w->host_bytes, chip->pcie_bytes_per_s_oneway.value);
    sm_op_cost cost = cost_of(chip, c, &op->work);
    int longest = 0;
    for (int i = 1; i < SM_PROFILE_LAUNCH; i++)
        if (t.of[i] > t.of[longest]) longest = i;
    op->tile_efficiency = cost.tile_efficiency;
    op->lower_s = t.of[longest];
    op->expected_s = fmax(cost.expected_s, fmax(t.of[SM_PROFILE_ONCHIP], t.of[SM_PROFILE_HOST]));
    op->upper_s =
        fmax(cost.upper_s + t.of[SM_PROFILE_ONCHIP] + t.of[SM_PROFILE_HOST], op->expected_s);
    /* Part of the kernel that reads it. */
    const sm_computation *in = &made->p.module->computation[op->computation];
    const bool *const *written = made->analysis->written;
    if (written && !written[op->computation][op->instruction - in->instruction])
        op->expected_s = fmax(op->expected_s - c->launch_s, op->lower_s);
    op->bound = op->lower_s < c->launch_s ? SM_PROFILE_LAUNCH : (sm_profile_bound)longest;
}

static sm_collective collective_of(sm_module_opcode opcode) {
    switch (opcode) {
    case SM_OPCODE_ALL_GATHER:
    case SM_OPCODE_ALL_GATHER_START: return SM_ALL_GATHER;
    case SM_OPCODE_REDUCE_SCATTER: return SM_REDUCE_SCATTER;
    case SM_OPCODE_ALL_REDUCE:
    case SM_OPCODE_ALL_REDUCE_START: return SM_ALL_REDUCE;
    case SM_OPCODE_ALL_TO_ALL:
    case SM_OPCODE_RAGGED_ALL_TO_ALL: return SM_ALL_TO_ALL;
    case SM_OPCODE_COLLECTIVE_BROADCAST: return SM_BROADCAST;
    default: return SM_PERMUTE;
    }
}

/* V of one chip's operands, and what it sends on a ring. */
static void set_bytes(sm_profile_collective *c, double operands) {
    double n = c->members, others = n > 0 ? (n - 1) / n : 0;
    c->bytes = operands;
    switch (c->op) {
    case SM_ALL_GATHER:
        c->bytes = operands * n;
        c->bytes_per_chip = c->bytes * others;
        break;
    case SM_ALL_TO_ALL:
        c->bytes = operands * n;
        c->bytes_per_chip = operands * others;
        break;
    case SM_REDUCE_SCATTER: c->bytes_per_chip = operands * others; break;
    case SM_ALL_REDUCE: c->bytes_per_chip = 2 * operands * others; break;
    default: c->bytes_per_chip = operands; break;
    }
}

/* Is of the result only a device's own slice read? */
static bool is_sliced(const profile_made *made, const sm_computation *in,
                      const sm_profile_collective *c) {
    double bytes = sm_module_bytes(c->instruction->shape, -1);
    double read = sm_module_read_bytes(made->p.module, in, (int)(c->instruction - in->instruction));
    return read > 0 && read * c->members <= bytes * 1.01;
}

/* A permute of one array into another is told from one of four by where its pieces begin. */
static bool is_into_another(const sm_computation *in, const sm_instruction *it) {
    if (it->operands != 4 || collective_of(it->opcode) != SM_PERMUTE) return false;
    const sm_module_shape *begins = in->instruction[it->operand[2]].shape;
    while (begins->parts > 0) begins = begins->part;
    return begins->dim.n == 0 && begins->element == SM_HLO_S32;
}

void profile_price_collective(const profile_made *made, const sm_computation *in,
                              sm_profile_collective *c) {
    const sm_instruction *it = c->instruction;
    /* Of the operands that hold what is sent: the others say where it goes. */
    bool one = it->opcode == SM_OPCODE_RAGGED_ALL_TO_ALL || is_into_another(in, it);
    double bytes = 0;
    for (int i = 0; i < (one && it->operands ? 1 : it->operands); i++)
        bytes += sm_module_data_bytes(in->instruction[it->operand[i]].shape);
    const sm_module_shape *from = it->operands ? in->instruction[it->operand[0]].shape : NULL;
    double pieces = (double)it->number, elements = from ? sm_module_elements(from) : 0;
    double operands = one && pieces > 0 && elements > pieces ? bytes * pieces / elements : bytes;
    c->op = collective_of(it->opcode);
    c->axes = profile_axes_of(made, it);
    c->members = c->op == SM_PERMUTE || it->groups.n == 0
                     ? (int)sm_mesh_size(&made->p.mesh, c->axes)
                     : it->groups.size;
    c->group = profile_group_of(made, c->axes, c->members);
    c->sliced = c->op == SM_ALL_REDUCE && c->members > 1 && is_sliced(made, in, c);
    /* A fusion of the two is one reduce-scatter: so TPUs have it. */
    if (c->sliced && in != &made->p.module->computation[c->computation]) c->op = SM_REDUCE_SCATTER;
    set_bytes(c, operands);
    sm_curve curve = c->op == SM_PERMUTE && c->axes && it->groups.size == 2
                         ? profile_permute_curve(made, &it->groups)
                         : sm_collective_curve(made->p.system, c->op, &c->group, 1);
    sm_collective_cost cost = sm_curve_cost(&curve, made->p.system, made->p.calibration, c->bytes);
    c->lower_s = cost.lower_s;
    c->expected_s = cost.expected_s;
    c->upper_s = cost.upper_s;
    c->latency_bound = cost.latency_bound;
    c->algorithm = cost.algorithm ? cost.algorithm : "none";
}
