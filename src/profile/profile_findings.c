/* What would save time, each with the seconds it would save at most. A finding is about one thing
 * of the program; what many kernels share is added up. */

#include "profile_made.h"

enum { MOST_FINDINGS = 10 };
static const double LEAST_SHARE = 0.03; /* of the step */

typedef struct found { /* findings of one kind, by what they are about */
    const profile_made *made;
    sm_arena *arena;
    int n, room;
    sm_profile_finding *list;
    bool failed;
} found;

/* Add to the finding about the same thing, or begin one. */
static void add(found *f, double seconds, const char *about, const char *what, const char *change) {
    if (!(seconds > 0)) return;
    for (int i = 0; i < f->n; i++) {
        if (strcmp(f->list[i].what, what) != 0 || strcmp(f->list[i].about, about) != 0) continue;
        f->list[i].seconds += seconds;
        f->list[i].count++;
        return;
    }
    sm_profile_finding *list = sm_arena_grow(f->arena, f->list, f->n, &f->room, sizeof *list);
    if (!list) {
        f->failed = true;
        return;
    }
    f->list = list;
    f->list[f->n++] = (sm_profile_finding){seconds, 1, about, what, change};
}

static const char *said(found *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *said(found *f, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = sm_arena_vprintf(f->arena, format, args);
    va_end(args);
    if (!text) f->failed = true;
    return text ? text : "";
}

static const char *over_axes(found *f, sm_axes axes) {
    char text[128];
    sm_axes_format(&f->made->p.mesh, axes, text, sizeof text);
    return axes ? said(f, " over %s", text) : "";
}

/* ---- collectives ---- */

/* Gathered twice from one array, one after the other. */
static bool is_repeated(const found *f, const sm_profile_collective *a,
                        const sm_profile_collective *b) {
    const sm_instruction *x = a->instruction, *y = b->instruction;
    (void)f;
    if (x->operands != 1 || y->operands != 1 || a->op != b->op || a->axes != b->axes) return false;
    return a->computation == b->computation && x->operand[0] == y->operand[0] &&
           x->shape->dim.n == y->shape->dim.n && a->bytes == b->bytes;
}

static bool stands_in(const sm_profile_collective *c, const sm_module *m) {
    const sm_computation *in = &m->computation[c->computation];
    return c->instruction >= in->instruction && c->instruction < in->instruction + in->n;
}

static void repeated_gathers(found *f) {
    const sm_profile_collective *c = f->made->collective;
    enum { REACH = 256 };
    for (int i = 1; i < f->made->p.collectives; i++) {
        if (c[i].op != SM_ALL_GATHER || !stands_in(&c[i], f->made->p.module)) continue;
        for (int k = i - 1; k >= 0 && k >= i - REACH; k--) {
            if (!stands_in(&c[k], f->made->p.module) || !is_repeated(f, &c[k], &c[i])) continue;
            add(f, c[i].exposed_s * c[i].times, c[i].instruction->op_name,
                said(f, "all-gather%s of an array that was gathered before",
                     over_axes(f, c[i].axes)),
                "keep what was gathered, where memory allows it");
            break;
        }
    }
}

static void exposed(found *f) {
    for (int i = 0; i < f->made->p.collectives; i++) {
        const sm_profile_collective *c = &f->made->collective[i];
        const char *name = sm_collective_name(c->op), *over = over_axes(f, c->axes);
        if (f->made->analysis->written) { /* nothing is scheduled yet */
            add(f, c->exposed_s * c->times, "", said(f, "%s%s", name, over),
                "shard so that it is not needed; what a compiler hides of it beside compute is not "
                "known yet");
            continue;
        }
        if (c->latency_bound)
            add(f, c->exposed_s * c->times, "",
                said(f, "%s%s of few bytes: latency alone", name, over),
                "send several arrays at once");
        else if (c->starts)
            add(f, c->exposed_s * c->times, "",
                said(f, "%s%s, started too late to be hidden", name, over),
                "start it a layer earlier; or fewer bytes: a larger batch a device, fewer devices "
                "on the axis");
        else
            add(f, c->exposed_s * c->times, "", said(f, "%s%s, beside no compute", name, over),
                "let it run beside compute (latency-hiding scheduler, windowed einsum), or shard "
                "so that it is not needed");
    }
}

/* ---- kernels ---- */

static const char *about_op(found *f, const sm_profile_op *op) {
    const sm_instruction *it = op->instruction;
    return it->op_name[0] ? it->op_name : said(f, "%s", it->name);
}

static bool is_matmul(const sm_profile_op *op) { return op->work.matrix_flops > 0; }

static void wide_products(found *f, const sm_profile_op *op) {
    const sm_chip *chip = &f->made->p.system->chip;
    sm_dtype used;
    double wide = sm_chip_peak(chip, op->work.dtype, &used),
           narrow = sm_chip_peak(chip, SM_BF16, NULL);
    if (op->work.dtype != SM_FP32 || op->bound != SM_PROFILE_MATRIX || wide >= narrow) return;
    add(f, op->expected_s * (1 - wide / narrow) * op->times, "", "matrix products in fp32",
        "multiply in bf16 and add up in fp32");
}

static void padded_tiles(found *f, const sm_profile_op *op) {
    const sm_chip *chip = &f->made->p.system->chip;
    const sm_module_work *w = &op->work;
    if (op->bound != SM_PROFILE_MATRIX || !(op->tile_efficiency < 0.9)) return;
    if (op->instruction->estimated_flops > 0) return; /* its shapes are not known */
    add(f, op->expected_s * (1 - op->tile_efficiency) * op->times, about_op(f, op),
        said(f, "product of [%.0f,%.0f] by [%.0f,%.0f]: tiles are %.0f %% full", w->m, w->k, w->k,
             w->n, 100 * op->tile_efficiency),
        said(f, "sizes that are multiples of the chip's %d x %d x %d", chip->tile_m, chip->tile_n,
             chip->tile_k));
}

static void moves(found *f, const sm_profile_op *op) {
    if (op->copies || is_matmul(op) || !op->moves || op->bound == SM_PROFILE_HOST) return;
    add(f, op->expected_s * op->times, "", "kernels that only copy, transpose or convert",
        "keep the array in the layout and type that its reader wants");
}

static void memory_bound(found *f, const sm_profile_op *op) {
    if (op->copies || op->bound != SM_PROFILE_HBM) return;
    if (is_matmul(op)) {
        double math =
            op->work.matrix_flops / sm_chip_peak(&f->made->p.system->chip, op->work.dtype, NULL);
        add(f, (op->expected_s - math) * op->times, about_op(f, op),
            "matrix product that memory bounds",
            "more rows a device: a larger batch, or less tensor parallelism");
    } else if (!op->moves) {
        add(f, (op->expected_s - op->lower_s) * op->times, "",
            "vector kernels above their memory bound", "fuse them into what reads their results");
    }
}

static void offloads(found *f, const sm_profile_op *op) {
    if (op->copies || op->bound != SM_PROFILE_HOST) return;
    add(f, op->expected_s * op->times, "", "moves to the host's memory and back",
        "offload less, or have it run beside compute; what a compiler hides of it is not known "
        "yet");
}

/* ---- all ---- */

SM_ORDER(by_seconds, sm_profile_finding, SM_DESCENDING(seconds) SM_BY_TEXT(what) SM_BY_TEXT(about))

sm_status profile_findings(profile_made *made, sm_error *err) {
    found f = {.made = made, .arena = made->arena};
    for (int i = 0; i < f.made->p.collectives; i++) {
        const sm_profile_collective *c = &f.made->collective[i];
        if (c->op != SM_ALL_REDUCE || !c->sliced) continue;
        sm_curve as = sm_collective_curve(f.made->p.system, SM_REDUCE_SCATTER, &c->group, 1);
        double then_s =
            sm_curve_cost(&as, f.made->p.system, f.made->p.calibration, c->bytes).expected_s;
        add(&f, (c->expected_s - then_s) * c->times, "",
            said(&f, "all-reduce%s of which each device keeps a slice", over_axes(&f, c->axes)),
            "shard its result as its readers are: a reduce-scatter moves half");
    }
    repeated_gathers(&f);
    exposed(&f);
    const sm_profile_time *t = &f.made->p.time;
    add(&f, t->copies_s, "", "copies that are waited for", "start them earlier, or keep the array");
    for (int i = 0; i < made->p.ops; i++) {
        wide_products(&f, &made->op[i]);
        padded_tiles(&f, &made->op[i]);
        if (made->analysis->written) { /* the compiler has not chosen kernels yet */
            offloads(&f, &made->op[i]);
            continue;
        }
        moves(&f, &made->op[i]);
        memory_bound(&f, &made->op[i]);
        const sm_profile_op *op = &made->op[i];
        if (!op->copies && op->bound == SM_PROFILE_LAUNCH)
            add(&f, op->expected_s * op->times, "", "kernels too small to be worth their launch",
                "fuse them, or run more work at once");
    }
    if (f.failed) return sm_fail_memory(err);
    if (f.n) qsort(f.list, (size_t)f.n, sizeof *f.list, by_seconds);
    for (int i = 0; f.list && i < f.n && i < MOST_FINDINGS; i++)
        if (f.list[i].seconds >= LEAST_SHARE * made->p.time.expected_s) made->p.findings = i + 1;
    made->p.finding = f.list;
    return SM_OK;
}
