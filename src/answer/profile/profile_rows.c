/* Kernels and collectives by where they come from in the user's program. */
#include "profile_asked.h"
#include "named.h"
#include <stdlib.h>

const char *const profile_kind_names[PROFILE_KINDS] = {"matmul", "vector", "copy", "custom"};

/* ---- the place of an instruction ---- */

typedef struct piece { /* of an op_name: between two '/' that are in no parentheses */
    const char *text;
    int length;
} piece;

static piece inside(piece p) {
    while (p.length > 0 && *p.text != '(') {
        p.text++;
        p.length--;
    }
    return p.length >= 2 ? (piece){p.text + 1, p.length - 2} : (piece){p.text, 0};
}

/* Pieces that JAX adds around the names of the user's program. */
static bool is_wrapping(piece p) {
    static const char *const words[] = {"jit(",
                                        "pjit",
                                        "while",
                                        "body",
                                        "closed_call",
                                        "checkpoint",
                                        "rematted_computation",
                                        "cond",
                                        "custom_jvp_call",
                                        "custom_vjp_call",
                                        "shard_map",
                                        "jit_"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (part_begins_with(p.text, (size_t)p.length, words[i])) return true;
    return false;
}

enum { PLACE = 160 };

static void put_piece(char *out, piece p) {
    size_t used = strlen(out);
    if (p.length == 0 || used + (size_t)p.length + 2 >= PLACE) return;
    snprintf(out + used, PLACE - used, "%s%.*s", used ? "/" : "", p.length, p.text);
}

/* Who tells where an instruction comes from: itself, or of a fusion the last one inside. */
static const sm_instruction *told_by(const sm_profile *p, const sm_instruction *it) {
    bool wraps = it->opcode == SM_OPCODE_FUSION || it->opcode == SM_OPCODE_ASYNC_START;
    if (it->op_name[0] || !wraps || !it->calls) return it;
    const sm_computation *body = &p->module->computation[it->call[0]];
    for (int i = body->n - 1; i >= 0; i--)
        if (body->instruction[i].op_name[0] && body->instruction[i].opcode != SM_OPCODE_PARAMETER)
            return &body->instruction[i];
    return it;
}

/* "jit(f)/transpose(jvp(layer0))/mlp/bsd,df->bsf/dot_general" is layer0/mlp/bsd,df->bsf backward:
 * without what JAX adds and without the primitive at the end. */
static const char *place_of(const sm_profile *p, sm_arena *arena, const sm_instruction *it) {
    char out[PLACE] = "";
    bool backward = false;
    const char *op_name = told_by(p, it)->op_name;
    if (!op_name[0]) return it->opcode == SM_OPCODE_CUSTOM_CALL ? it->target : it->opcode_name;
    for (const char *at = op_name; *at;) {
        piece word = {at, 0};
        int depth = 0;
        for (; *at && (depth > 0 || *at != '/'); ++at) {
            depth += *at == '(';
            depth -= *at == ')';
            word.length++;
        }
        at += *at == '/';
        bool last = !*at;
        if (part_begins_with(word.text, (size_t)word.length, "transpose(")) {
            backward = true;
            word = inside(word);
        }
        if (part_begins_with(word.text, (size_t)word.length, "jvp(") ||
            part_begins_with(word.text, (size_t)word.length, "vmap("))
            word = inside(word);
        else if (last && out[0]) continue;
        if (!is_wrapping(word)) put_piece(out, word);
    }
    if (!out[0]) return sm_arena_copy(arena, op_name, strlen(op_name));
    return sm_arena_printf(arena, "%s%s", out, backward ? " backward" : "");
}

static const char *source_of(const sm_profile *p, sm_arena *arena, const sm_instruction *it) {
    it = told_by(p, it);
    if (!it->file[0]) return "";
    return sm_arena_printf(arena, "%s:%d", it->file, it->file_line);
}

/* ---- kernels ---- */

profile_kind profile_kind_of(const sm_profile_op *op) {
    if (op->work.matrix_flops > 0) return PROFILE_MATMUL;
    if (!sm_module_is_understood(op->instruction)) return PROFILE_CUSTOM;
    return op->copies || op->moves ? PROFILE_COPY : PROFILE_VECTOR;
}

SM_ORDER(by_place, profile_row, SM_BY_TEXT(name) SM_ASCENDING(kind))

/* Those of one place as they stand in the module: a sum depends on the order of its terms. */
SM_ORDER(by_turn, profile_row, SM_BY(by_place) SM_ASCENDING(turn))

static int by_time(const void *a, const void *b) {
    const profile_row *x = a, *y = b;
    double s = isnan(x->measured_s) ? x->expected_s : x->measured_s;
    double t = isnan(y->measured_s) ? y->expected_s : y->measured_s;
    return s != t ? (s < t ? 1 : -1) : by_place(a, b);
}

/* a + b, of which each may be missing (NAN). */
static double profile_sum(double a, double b) { return isnan(a) ? b : isnan(b) ? a : a + b; }

static void merge(profile_row *to, const profile_row *from) {
    if (from->longest_s > to->longest_s) {
        to->longest_s = from->longest_s;
        to->bound = from->bound;
        to->source = from->source;
    }
    to->count += from->count;
    to->flops += from->flops;
    to->vector_flops += from->vector_flops;
    to->bytes += from->bytes;
    to->lower_s += from->lower_s;
    to->expected_s += from->expected_s;
    to->upper_s += from->upper_s;
    to->step_s += from->step_s;
    to->measured_s = profile_sum(to->measured_s, from->measured_s);
}

static profile_row row_of(const sm_profile *p, const sm_profile_op *op, sm_arena *arena) {
    double n = op->times;
    return (profile_row){.name = place_of(p, arena, op->instruction),
                         .source = source_of(p, arena, op->instruction),
                         .kind = profile_kind_of(op),
                         .bound = op->bound,
                         .longest_s = op->expected_s * n,
                         .count = n,
                         .flops = op->work.matrix_flops * n,
                         .vector_flops = (op->work.vector_flops + op->work.transcendentals) * n,
                         .bytes = op->work.bytes * n,
                         .lower_s = op->lower_s * n,
                         .expected_s = op->expected_s * n,
                         .upper_s = op->upper_s * n,
                         .step_s = op->copies ? 0 : op->expected_s * n,
                         .measured_s = op->measured_s * n};
}

static bool kernel_rows(const sm_profile *p, sm_arena *arena, profile_rows *out) {
    out->row = sm_arena_array(arena, (size_t)p->ops + 1, sizeof *out->row);
    if (!out->row) return false;
    int n = 0, kept = 0;
    for (int i = 0; i < p->ops; i++) {
        const sm_profile_op *op = &p->op[i];
        profile_row row = row_of(p, op, arena);
        if (!row.name || !row.source) return false;
        out->of_kind[row.kind] += row.step_s;
        out->flops_of_kind[row.kind] += row.flops;
        out->bytes_of_kind[row.kind] += row.bytes;
        row.turn = i;
        out->row[n++] = row;
    }
    qsort(out->row, (size_t)n, sizeof *out->row, by_turn);
    for (int i = 0; i < n; i++)
        if (kept && !by_place(&out->row[kept - 1], &out->row[i]))
            merge(&out->row[kept - 1], &out->row[i]);
        else out->row[kept++] = out->row[i];
    qsort(out->row, (size_t)kept, sizeof *out->row, by_time);
    out->n = kept;
    return true;
}

/* ---- collectives ---- */

SM_ORDER(same_comm, profile_comm_row,
         SM_ASCENDING(first->op) SM_ASCENDING(first->axes) SM_DESCENDING(first->bytes)
             SM_BY_TEXT(name))

SM_ORDER(by_first, profile_comm_row, SM_BY(same_comm) SM_ASCENDING(first))

SM_ORDER(by_exposed, profile_comm_row, SM_DESCENDING(exposed_s) SM_BY(same_comm))

static bool comm_rows(const sm_profile *p, sm_arena *arena, profile_rows *out) {
    out->comm = sm_arena_array(arena, (size_t)p->collectives + 1, sizeof *out->comm);
    if (!out->comm) return false;
    int kept = 0, n = p->collectives;
    for (int i = 0; i < n; i++) {
        const sm_profile_collective *c = &p->collective[i];
        profile_comm_row *row = &out->comm[i];
        *row = (profile_comm_row){place_of(p, arena, c->instruction),
                                  source_of(p, arena, c->instruction),
                                  c,
                                  c->times,
                                  c->lower_s * c->times,
                                  c->expected_s * c->times,
                                  c->exposed_s * c->times,
                                  c->bytes_per_chip * c->times,
                                  c->measured_s * c->times};
        if (!row->name || !row->source) return false;
    }
    qsort(out->comm, (size_t)n, sizeof *out->comm, by_first);
    for (int i = 0; i < n; i++) {
        profile_comm_row *row = &out->comm[i];
        if (!kept || same_comm(&out->comm[kept - 1], row)) {
            out->comm[kept++] = *row;
            continue;
        }
        profile_comm_row *to = &out->comm[kept - 1];
        to->count += row->count;
        to->lower_s += row->lower_s;
        to->expected_s += row->expected_s;
        to->exposed_s += row->exposed_s;
        to->bytes_per_chip += row->bytes_per_chip;
        to->measured_s = profile_sum(to->measured_s, row->measured_s);
    }
    qsort(out->comm, (size_t)kept, sizeof *out->comm, by_exposed);
    out->comms = kept;
    return true;
}

bool profile_rows_of(const sm_profile *p, sm_arena *arena, profile_rows *out) {
    *out = (profile_rows){0};
    return kernel_rows(p, arena, out) && comm_rows(p, arena, out);
}

double profile_mfu(const sm_profile *p) {
    double peak = sm_chip_peak(&p->system->chip, SM_BF16, NULL);
    return p->time.expected_s > 0 && peak > 0 ? p->work.matrix_flops / peak / p->time.expected_s
                                              : 0;
}
