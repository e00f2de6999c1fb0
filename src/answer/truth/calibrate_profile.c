/* Rows of a profile: what ran with its shapes and times, as a file of measured rows would state it.
 * Of traces with shapes (PyTorch) by the ops that launched kernels; of XLA's by the instructions of
 * the module that is in the profile. */
#include "validated.h"
#include "scalemodel/profile.h"

typedef struct row_list {
    const char *chip, *source;
    sm_arena *arena;
    sm_truth *out;
    int room;
    bool failed;
} row_list;

static sm_truth_row *add(row_list *l, sm_truth_kind kind, double seconds) {
    sm_truth_row *list =
        sm_arena_grow(l->arena, l->out->row, (int)l->out->n, &l->room, sizeof *list);
    if (!list) {
        l->failed = true;
        return NULL;
    }
    l->out->row = list;
    sm_truth_row *row = &list[l->out->n++];
    sm_truth_row_blank(kind, row);
    row->kind = kind;
    row->line = (int)l->out->n;
    row->id = sm_arena_printf(l->arena, "%zu", l->out->n);
    row->chip = l->chip;
    row->source = l->source;
    row->measured_s = seconds;
    l->failed = l->failed || !row->id;
    return row;
}

static void add_product(row_list *l, sm_dtype dtype, double m, double n, double k, double seconds) {
    if (!(m >= 1 && n >= 1 && k >= 1 && seconds > 0)) return;
    sm_truth_row *row = add(l, SM_TRUTH_GEMM, seconds);
    if (row) row->of.gemm = (sm_gemm_row){sm_dtype_name(dtype), m, n, k, SM_UNSTATED};
}

/* A forward attention whose mask was recorded: rows have no backward one. */
static void add_attention(row_list *l, const sm_kernel_row *of) {
    const sm_attention_shape *a = &of->attention.shape;
    double seconds = of->seconds / of->calls;
    bool row_has_it =
        of->attention.masked && !of->attention.backward && a->head_size == a->v_head_size;
    if (!(a->batch >= 1 && a->q_len >= 1 && a->kv_len >= a->q_len && seconds > 0)) return;
    if (!row_has_it || a->heads > INT16_MAX || a->head_size > INT16_MAX) return;
    sm_truth_row *row = add(l, SM_TRUTH_ATTENTION, seconds);
    if (row)
        row->of.attention =
            (sm_attention_row){.phase = of->attention.causal ? "prefill" : "prefill_noncausal",
                               .dtype = sm_dtype_name(of->dtype),
                               .batch = a->batch,
                               .q_len = a->q_len,
                               .kv_len = a->kv_len,
                               .n_heads = (int)a->heads,
                               .n_kv_heads = (int)a->kv_heads,
                               .d_head = (int)a->head_size};
}

/* bytes: as nccl-tests counts them. */
static void add_collective(row_list *l, const sm_chip *chip, const char *op, int members,
                           double bytes, double seconds) {
    if (members < 2 || !(bytes > 0 && seconds > 0)) return;
    sm_truth_row *row = add(l, SM_TRUTH_COLLECTIVE, seconds);
    char *name = sm_arena_copy(l->arena, op, strlen(op));
    if (!row || !name) {
        l->failed = true;
        return;
    }
    for (char *at = name; *at; at++)
        if (*at == '-') *at = '_';
    row->of.collective.op = name;
    row->of.collective.ranks = members;
    row->of.collective.bytes = bytes;
    row->of.collective.nodes = 1;
    int node = chip->tree_levels ? chip->tree[0].degree : 0;
    if (node > 0 && members > node && members % node == 0)
        row->of.collective.nodes = members / node;
}

static void add_breakdown(row_list *l, const sm_chip *chip, const sm_trace_breakdown *b) {
    for (int i = 0; i < b->rows; i++) {
        if (!(b->row[i].calls > 0)) continue;
        add_product(l, b->row[i].dtype, b->row[i].m, b->row[i].n, b->row[i].k,
                    b->row[i].seconds / b->row[i].calls);
        add_attention(l, &b->row[i]);
    }
    for (int i = 0; i < b->comms; i++)
        add_collective(l, chip, b->comm[i].op, b->comm[i].members, b->comm[i].bytes,
                       b->comm[i].least_s);
}

/* Instructions that are one product and nothing that is longer, and collectives that others do not
 * hide. */
static void add_module(row_list *l, const sm_profile *p) {
    for (int i = 0; i < p->ops; i++) {
        const sm_module_work *w = &p->op[i].work;
        bool one = w->batch == 1 && w->matrix_flops <= 2 * w->m * w->n * w->k * 1.001;
        if (one && !isnan(p->op[i].measured_s))
            add_product(l, w->dtype, w->m, w->n, w->k, p->op[i].measured_s);
    }
    for (int i = 0; i < p->collectives; i++) {
        const sm_profile_collective *c = &p->collective[i];
        if (!c->starts && !isnan(c->measured_s))
            add_collective(l, &p->system->chip, sm_collective_name(c->op), c->members, c->bytes,
                           c->measured_s);
    }
}

/* The programs of the devices that the profile holds, each priced on as many chips as it runs on.
 */
static sm_status add_programs(row_list *l, const sm_chip *chip, const sm_trace *trace,
                              sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; i < trace->programs && !status; i++) {
        const sm_module *module;
        const sm_profile *profile;
        sm_system *system = sm_arena_alloc(l->arena, sizeof *system);
        sm_source on = sm_source_of("--chip", chip->name);
        if (!system) return sm_fail_memory(err);
        if (!trace->program[i].module.length || trace->program[i].runs <= 0) continue;
        status = sm_module_parse(&trace->program[i].module, l->arena, &module, err);
        if (!status) status = sm_system_parse(&on, chip, 1, system, err);
        if (!status && module->devices > 1)
            status = sm_system_resize(system, module->devices, system, err);
        sm_profile_setup setup = {.module = module,
                                  .system = system,
                                  .calibration = sm_calibration_of(chip),
                                  .measured = &trace->program[i]};
        if (!status) status = sm_profile_new(&setup, l->arena, &profile, err);
        if (!status) add_module(l, profile);
    }
    return status;
}

/* The catalogue's chip that the profile names, or the one that is asked for. */
static const sm_chip *chip_of(const sm_trace *trace, const sm_chip *asked) {
    for (int i = 0; i < trace->devices; i++) {
        const sm_chip *named = sm_truth_chip(trace->on[i].name);
        if (named) return named;
    }
    return asked;
}

static sm_status rows_of(const sm_profiled *profiled, const char *path, const sm_chip *asked,
                         sm_arena *arena, sm_truth *out, sm_error *err) {
    const sm_trace_breakdown *b;
    const sm_trace *trace = profiled->trace;
    const sm_chip *chip = chip_of(trace, asked);
    row_list l = {.chip = chip->name, .arena = arena, .out = out};
    *out = (sm_truth){.file = path, .kind = SM_TRUTH_GEMM};
    l.source = sm_arena_printf(arena, "profile: %s", path);
    if (!l.source) return sm_fail_memory(err);
    sm_status status = add_programs(&l, chip, trace, err);
    if (!status && out->n == 0) {
        status = sm_trace_break_down(trace, arena, &b, err);
        if (!status) add_breakdown(&l, chip, b);
    }
    return status ? status : l.failed ? sm_fail_memory(err) : SM_OK;
}

sm_status calibrate_read(const char *path, const sm_chip *chip, const sm_truth_given *given,
                         sm_arena *arena, sm_truth *out, sm_error *err) {
    sm_error as_rows, as_profile;
    sm_profiled profiled;
    sm_status status = sm_truth_read_given(path, given, arena, out, &as_rows);
    if (status == SM_BAD_INPUT || status == SM_IO) {
        sm_status other = sm_io_read_profiled(&path, 1, false, arena, &profiled, &as_profile);
        if (other == SM_OK && profiled.trace)
            return rows_of(&profiled, path, chip, arena, out, err);
        if (other == SM_INTERNAL) return sm_fail_memory(err);
    }
    if (status && err) *err = as_rows;
    return status;
}
