/* A planned step beside the compiled or measured one: predicted and found for each group of ops and
 * each kind of collective.
 *
 * A product of the module belongs to the ops of the plan that have as many FLOPs a run: the forward
 * product of [T,D] by [D,F] and both of its backward ones have the same, whatever the compiler
 * calls them. Batched products that no weight accounts for are attention. A product that has the
 * FLOPs of several ops that follow each other is those ops in one (wq, wk and wv). */
#include "profile_asked.h"

enum { MOST_GROUPS = 128, MOST_JOINED = 4, NAMES = 48 };
static const double SAME = 1e-4; /* FLOPs of two products that are one */

/* ---- groups of products ---- */

typedef struct group {
    double flops; /* of one run */
    bool experts; /* one product for each expert of a chip: batched */
    int first;    /* the group whose name it bears: itself, or one it was joined with */
    char name[NAMES];
} group;

typedef struct planned {
    sm_report *r;
    const sm_plan_detail *detail;
    const profile_file *file;
    int groups;
    group group[MOST_GROUPS];
    profile_side predicted, found;
} planned;

static int group_of(const planned *p, double flops, bool experts) {
    for (int i = 0; i < p->groups; i++)
        if (p->group[i].experts == experts && fabs(p->group[i].flops - flops) <= SAME * flops)
            return i;
    return -1;
}

/* Does an op multiply by weights of experts? */
static bool of_experts(const planned *p, const sm_plan_op *op) {
    if (op->piece < 0) return false;
    const sm_program *b = p->detail->lines.piece[op->piece].program;
    for (int i = 0; i < b->ops; i++) {
        if (strcmp(b->op[i].name, op->op) != 0) continue;
        for (int k = 0; k < b->op[i].inputs; k++) {
            const sm_tensor *t = &b->tensor[b->op[i].in[k]];
            for (int d = 0; d < t->rank && t->role == SM_ROLE_WEIGHT; d++)
                if (b->dim[t->dim[d]].role == SM_DIMENSION_EXPERTS && t->rank > 2) return true;
        }
    }
    return false;
}

static int group_of_op(const planned *p, const sm_plan_op *op) {
    return group_of(p, op->flops / op->count, of_experts(p, op));
}

static bool is_product(const sm_plan_op *op) {
    return op->kind != SM_OP_ATTENTION && op->flops > 0 && op->count > 0;
}

/* "wq, wo": each name once, as many as there is room for. */
static void add_name(char *to, const char *name) {
    size_t used = strlen(to), length = strlen(name);
    for (const char *at = to; (at = strstr(at, name)); at += length) {
        bool begins = at == to || at[-1] == ' ';
        if (begins && (at[length] == 0 || at[length] == ',')) return;
    }
    if (used + length + 3 < NAMES)
        snprintf(to + used, NAMES - used, "%s%s", used ? ", " : "", name);
    else if (used >= 3 && strcmp(to + used - 3, ", …") != 0 && used + 6 < NAMES)
        snprintf(to + used, NAMES - used, ", …");
}

static int named(const planned *p, int at) {
    while (p->group[at].first != at) at = p->group[at].first;
    return at;
}

static void join(planned *p, int a, int b) {
    a = named(p, a);
    b = named(p, b);
    if (a == b) return;
    p->group[b].first = a;
    add_name(p->group[a].name, p->group[b].name);
}

/* Ops of one piece, forward, that follow each other and together have these FLOPs: their groups
 * become one. */
static int join_products(planned *p, double flops) {
    const sm_plan_lines *lines = &p->detail->lines;
    for (int i = 0; i < lines->ops; i++) {
        double sum = 0;
        int taken[MOST_JOINED], n = 0;
        for (int k = i; k < lines->ops && n < MOST_JOINED; k++) {
            const sm_plan_op *op = &lines->op[k];
            if (op->piece != lines->op[i].piece || op->phase != SM_PHASE_FORWARD || op->again)
                break;
            if (op->kind == SM_OP_ATTENTION) break;
            if (!is_product(op)) continue;
            sum += op->flops / op->count;
            if ((taken[n++] = group_of_op(p, op)) < 0) break;
            if (n < 2 || fabs(sum - flops) > SAME * flops) continue;
            for (int t = 1; t < n; t++) join(p, taken[0], taken[t]);
            return taken[0];
        }
    }
    return -1;
}

/* ---- axes ---- */

/* Of a set of axes of the module's mesh those that are axes of plans, as plans call them; true when
 * all are. */
static bool plan_axes_of(const sm_mesh *mesh, sm_axes axes, sm_axes *out) {
    const sm_mesh *plans = sm_program_mesh();
    *out = 0;
    for (int i = 0; i < mesh->axes; i++) {
        int at = 0;
        if (!(axes >> i & 1)) continue;
        while (at < plans->axes && strcmp(plans->axis[at].name, mesh->axis[i].name) != 0) at++;
        if (at == plans->axes) return false;
        *out = (sm_axes)(*out | SM_BIT(at));
    }
    return true;
}

static const char *found_kind(planned *p, const sm_profile_collective *c) {
    const sm_mesh *mesh = &p->file->profile->mesh;
    char text[64];
    sm_axes axes;
    sm_degrees all = p->detail->lines.degrees;
    const char *op = sm_collective_name(c->op);
    if (!c->axes) return sm_textf(p->r, "%s of %d", op, c->members);
    if (!plan_axes_of(mesh, c->axes, &axes))
        return sm_textf(p->r, "%s over %s", op, sm_axes_words(p->r, mesh, c->axes));
    for (int i = 0; i < SM_AXIS_COUNT; i++) all.axis[i] = 2; /* that it is named */
    sm_plan_axes_text(axes, &all, text, sizeof text);
    return sm_textf(p->r, "%s over %s", op, text);
}

/* ---- the two sides ---- */

static const char rest_kind[] = "vectors, optimizer, copies";

/* What a chip sends of V bytes on a ring of n. */
static double sent_of(sm_collective op, double bytes, double n) {
    double others = n > 0 ? (n - 1) / n : 0;
    switch (op) {
    case SM_ALL_REDUCE: return 2 * bytes * others;
    case SM_ALL_TO_ALL: return bytes / n * others;
    case SM_ALL_GATHER:
    case SM_REDUCE_SCATTER: return bytes * others;
    default: return bytes;
    }
}

static void predict_collectives(planned *p) {
    const sm_plan_lines *lines = &p->detail->lines;
    for (int i = 0; i < lines->collectives; i++) {
        const sm_plan_collective *c = &lines->collective[i];
        double n = c->axes ? lines->degrees.ways[c->axes] : 2;
        profile_add_part(
            p->r, &p->predicted,
            (profile_part){
                .kind = sm_textf(p->r, "%s over %s", sm_collective_name(c->op), c->axis),
                .place = sm_show_bytes(p->r, c->bytes),
                .about = sm_textf(p->r, "%s%s, %s", c->returns ? "d" : "", c->array, c->phase),
                .seconds = c->exposed_s,
                .count = c->count,
                .sent = sent_of(c->op, c->bytes, n) * c->count});
    }
}

/* The prediction's own parts add up to it. */
static void predict(planned *p) {
    const sm_price_of_plan *price = &p->detail->price;
    double sum = 0;
    const sm_plan_lines *lines = &p->detail->lines;
    for (int i = 0; i < lines->ops; i++) {
        const sm_plan_op *op = &lines->op[i];
        profile_part part = {.kind = rest_kind, .place = "", .seconds = op->time_s};
        int at = is_product(op) ? group_of_op(p, op) : -1;
        if (at >= 0) part.kind = p->group[named(p, at)].name;
        else if (op->kind == SM_OP_ATTENTION) part.kind = "attention";
        part.count = op->flops > 0 ? op->count : 0;
        part.flops = op->flops;
        profile_add_part(p->r, &p->predicted, part);
    }
    predict_collectives(p);
    if (price->breakdown.bubble > 1e-9 * price->expected_s)
        profile_add_part(p->r, &p->predicted,
                         (profile_part){.kind = "pipeline bubble",
                                        .place = "",
                                        .seconds = price->breakdown.bubble,
                                        .count = 1});
    for (int i = 0; i < p->predicted.n; i++) sum += p->predicted.part[i].seconds;
    p->predicted.total_s = price->expected_s;
    /* The optimizer, the host. */
    profile_add_part(
        p->r, &p->predicted,
        (profile_part){.kind = rest_kind, .place = "", .seconds = price->expected_s - sum});
}

static double largest_product(const sm_module_work *w) { return 2 * w->batch * w->m * w->n * w->k; }

/* The FLOPs of one product of an attention that multiplies what its mask hides too: all keys in
 * place of those that a query meets, and one product of the two. 0: the op is none. */
static double whole_attention(const planned *p, const sm_plan_op *op) {
    if (op->kind != SM_OP_ATTENTION || op->phase != SM_PHASE_FORWARD || op->count <= 0) return 0;
    const sm_program *b = p->detail->lines.piece[op->piece].program;
    double seq = 0, keys = 0;
    for (int d = 0; d < b->dims; d++)
        if (b->dim[d].role == SM_DIMENSION_KEYS) seq = fmax(seq, b->dim[d].size);
    for (int i = 0; i < b->ops; i++)
        if (b->op[i].kind == SM_OP_ATTENTION && !strcmp(b->op[i].name, op->op))
            keys = b->op[i].keys;
    return keys > 0 ? op->flops / op->count / 2 * seq / keys : 0;
}

static bool is_attention(const planned *p, double flops) {
    const sm_plan_lines *lines = &p->detail->lines;
    for (int i = 0; i < lines->ops; i++)
        if (fabs(whole_attention(p, &lines->op[i]) - flops) <= 0.01 * flops) return true;
    return false;
}

/* A windowed einsum multiplies as it gathers: a part for each member of an axis at a time. */
static int group_of_part(const planned *p, double flops) {
    int devices = p->file->module->devices;
    for (int parts = 2; parts <= devices; parts++) {
        int at = devices % parts ? -1 : group_of(p, flops * parts, false);
        if (at >= 0) return at;
    }
    return -1;
}

static const char *found_group(planned *p, const sm_profile_op *op, double *runs) {
    double flops = largest_product(&op->work);
    bool batched = op->work.batch > 1;
    int at = group_of(p, flops, batched);
    *runs = op->work.matrix_flops / flops;
    if (at < 0 && !batched) at = group_of(p, flops, true); /* one expert a chip */
    if (at < 0 && (batched || is_attention(p, flops))) return "attention";
    if (at < 0 && (at = group_of_part(p, flops)) >= 0)
        *runs = op->work.matrix_flops / p->group[at].flops;
    if (at < 0) at = join_products(p, flops);
    return at < 0 ? "products the plan does not have" : p->group[named(p, at)].name;
}

static void find_ops(planned *p, bool measured) {
    const sm_profile *profile = p->file->profile;
    for (int i = 0; i < profile->ops; i++) {
        const sm_profile_op *op = &profile->op[i];
        double seconds = measured     ? isnan(op->measured_s) ? 0 : op->measured_s
                         : op->copies ? 0
                                      : op->expected_s;
        profile_part part = {.kind = rest_kind, .place = "", .seconds = seconds * op->times};
        double flops = largest_product(&op->work);
        if (flops > 0) {
            part.kind = found_group(p, op, &part.count);
            part.count *= op->times;
            part.flops = op->work.matrix_flops * op->times;
        }
        profile_add_part(p->r, &p->found, part);
    }
}

static void find_collectives(planned *p, bool measured) {
    const sm_profile *profile = p->file->profile;
    for (int i = 0; i < profile->collectives; i++) {
        const sm_profile_collective *c = &profile->collective[i];
        double seconds = measured ? isnan(c->measured_s) ? 0 : c->measured_s : c->exposed_s;
        profile_add_part(p->r, &p->found,
                         (profile_part){.kind = found_kind(p, c),
                                        .place = sm_show_bytes(p->r, c->bytes),
                                        .about = c->instruction->op_name,
                                        .seconds = seconds * c->times,
                                        .count = c->times,
                                        .sent = c->bytes_per_chip * c->times});
    }
}

static void find(planned *p, bool measured) {
    const sm_profile *profile = p->file->profile;
    double sum = 0;
    find_ops(p, measured);
    find_collectives(p, measured);
    for (int i = 0; i < p->found.n; i++) sum += p->found.part[i].seconds;
    p->found.total_s = !measured                         ? profile->time.expected_s
                       : isnan(profile->measured.step_s) ? sum
                                                         : profile->measured.step_s;
    profile_add_part(
        p->r, &p->found,
        (profile_part){.kind = measured ? "idle, and what is not in the module" : rest_kind,
                       .place = "",
                       .seconds = p->found.total_s - sum});
}

void profile_beside_plan(sm_report *r, const profile_file *file, const char *plan,
                         const sm_plan_detail *detail, int top) {
    const sm_profile *profile = file->profile;
    bool measured = profile->measured.runs > 0;
    planned *p = sm_report_room(r, 1, sizeof *p);
    if (!p) return;
    *p = (planned){.r = r, .detail = detail, .file = file};
    p->predicted.name = "predicted";
    p->found.name = measured ? "measured" : "compiled";
    const sm_plan_lines *lines = &p->detail->lines;
    for (int i = 0; i < lines->ops; i++) {
        const sm_plan_op *op = &lines->op[i];
        if (!is_product(op)) continue;
        int at = group_of_op(p, op);
        if (at < 0 && p->groups == MOST_GROUPS) continue;
        if (at < 0) {
            at = p->groups++;
            p->group[at] =
                (group){.flops = op->flops / op->count, .experts = of_experts(p, op), .first = at};
        }
        add_name(p->group[at].name, op->op);
    }
    find(p, measured); /* first: it may join groups */
    predict(p);
    sm_report_heading(r, "Beside the plan %s", plan);
    sm_report_text(r, "Predicted: %s a step. %s: %s, %s of it.",
                   sm_show_seconds(r, p->predicted.total_s),
                   measured ? "Measured" : "The compiled program, expected",
                   sm_show_seconds(r, p->found.total_s),
                   sm_show_percent(r, p->found.total_s / p->predicted.total_s));
    const profile_side *side[2] = {&p->predicted, &p->found};
    profile_compare(r, side, PROFILE_ALL_KINDS, 0);
    profile_compare_work(r, side);
    profile_compare_sent(r, side, top);
}
