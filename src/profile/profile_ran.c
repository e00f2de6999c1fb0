/* A trace against the chip that it ran on: rooflines of ops whose shapes are known, what would save
 * time. */

#include "profile_made.h"

enum { MOST_FINDINGS = 10, CANDIDATES = 64 };
static const double LEAST_SHARE = 0.03;

typedef struct ran_made {
    sm_profile_ran r;
    sm_arena *arena;
    double *lower_s;
    sm_profile_bound *bound;
    sm_profile_finding *finding;
    double steps; /* of all devices together */
} ran_made;

/* ---- rooflines ---- */

static bool price_rows(ran_made *m) {
    const sm_trace_breakdown *b = m->r.time;
    m->lower_s = sm_arena_array(m->arena, (size_t)b->rows + 1, sizeof *m->lower_s);
    m->bound = sm_arena_array(m->arena, (size_t)b->rows + 1, sizeof *m->bound);
    if (!m->lower_s || !m->bound) return false;
    for (int i = 0; i < b->rows; i++) {
        const sm_kernel_row *row = &b->row[i];
        bool known = m->r.system && row->kind == SM_TRACE_COMPUTE && row->bytes > 0;
        if (row->flops > 0) m->r.flops += row->flops / m->steps;
        m->lower_s[i] = NAN;
        if (!known) continue;
        const sm_chip *chip = &m->r.system->chip;
        /* What has no rate of its own runs through the matrix unit as the chip has it. */
        double math_s = at_rate(row->flops, sm_chip_peak(chip, row->dtype, NULL));
        double bytes_s = at_rate(row->bytes, chip->memory_bytes_per_s.value);
        m->lower_s[i] = fmax(math_s, bytes_s);
        m->bound[i] = math_s > bytes_s ? SM_PROFILE_MATRIX : SM_PROFILE_HBM;
    }
    return true;
}

/* ---- findings ---- */

typedef struct candidates {
    ran_made *made;
    sm_profile_finding list[CANDIDATES];
    int n;
    bool failed;
} candidates;

static void propose(candidates *c, double seconds, double count, const char *about,
                    const char *change, const char *what) {
    double step = (double)c->made->r.time->mean.end_ps * 1e-12;
    if (!what || !about) c->failed = true;
    if (c->n == CANDIDATES || !(seconds >= LEAST_SHARE * step) || !what || !about) return;
    c->list[c->n++] = (sm_profile_finding){seconds, (int)fmin(count, 1e9), about, what, change};
}

static const char *bytes_text(sm_arena *arena, double bytes) {
    static const char *const units[] = {"B", "kB", "MB", "GB"};
    int i = 0;
    for (; bytes >= 1000 && i < 3; i++) bytes /= 1000;
    return isnan(bytes) ? "" : sm_arena_printf(arena, " of %.3g %s", bytes, units[i]);
}

/* Of ranks: who waits in collectives waits for the slowest. */
static void propose_ranks(candidates *c) {
    const sm_trace_breakdown *b = c->made->r.time;
    const sm_device_time *least = NULL;
    double wait = 0;
    for (int i = 0; i < b->devices; i++) {
        const sm_device_time *d = &b->device[i];
        if (isnan(d->wait_s)) return;
        wait += d->wait_s / b->devices;
        if (!least || d->wait_s < least->wait_s) least = d;
    }
    if (!least || b->devices < 2) return;
    const sm_trace_device *on = &b->trace->on[least->device];
    propose(c, wait, 0,
            sm_arena_printf(c->made->arena, "most wait for %s %d",
                            on->rank >= 0 ? "rank" : "device",
                            on->rank >= 0 ? on->rank : on->ordinal),
            "give the slow one less work, or find what holds it up",
            "collectives in which ranks wait for others that come later");
}

static void propose_kernels(candidates *c) {
    const sm_trace_breakdown *b = c->made->r.time;
    for (int i = 0; i < b->rows && i < CANDIDATES; i++) {
        const sm_kernel_row *row = &b->row[i];
        double over = (row->seconds - c->made->lower_s[i]) / c->made->steps;
        if (isnan(over) || c->made->lower_s[i] > 0.5 * row->seconds) continue;
        bool single = row->dtype == SM_FP32 && c->made->bound[i] == SM_PROFILE_MATRIX;
        propose(c, over, row->count, row->shapes,
                single ? "multiply in bf16, or allow TF32"
                       : "other shapes (multiples of the tile), a faster kernel, or fusion with "
                         "what reads it",
                sm_arena_printf(c->made->arena, "%s at %.2g %% of its roofline", row->op,
                                100 * c->made->lower_s[i] / row->seconds));
    }
}

SM_ORDER(by_seconds, sm_profile_finding, SM_DESCENDING(seconds) SM_BY_TEXT(what))

static bool find(ran_made *m) {
    candidates c = {.made = m};
    const double *part = c.made->r.time->mean.part_s;
    propose(&c, part[SM_PART_HOST], 0, "",
            "launch more at once (CUDA graphs, torch.compile, a larger batch), load data in other "
            "processes, and let nothing on the host wait for a result",
            "the device waits for the host to launch its next kernel");
    propose(
        &c, part[SM_PART_GAP], 0, "",
        "fuse small kernels or launch them as a graph; where a stream waits for another, let it "
        "wait later",
        "gaps before kernels that were launched already");
    propose(&c, part[SM_PART_COPIES], 0, "",
            "copy from pinned memory on a stream of its own, a step ahead",
            "copies beside no compute");
    const sm_trace_breakdown *b = c.made->r.time;
    for (int i = 0; i < b->comms && i < CANDIDATES; i++) {
        const sm_comm_row *row = &b->comm[i];
        const char *bytes = bytes_text(c.made->arena, row->bytes);
        if (!bytes) c.failed = true;
        propose(
            &c, row->exposed_s / c.made->steps, row->count, row->group_name,
            "start it earlier (prefetch, buckets of another size), send less, or shard so that "
            "it is not needed",
            sm_arena_printf(c.made->arena, "%s%s beside no compute", row->op, bytes ? bytes : ""));
    }
    propose_ranks(&c);
    propose_kernels(&c);
    qsort(c.list, (size_t)c.n, sizeof *c.list, by_seconds);
    int n = c.n < MOST_FINDINGS ? c.n : MOST_FINDINGS;
    m->finding = sm_arena_array(m->arena, (size_t)n + 1, sizeof *m->finding);
    if (!m->finding || c.failed) return false;
    if (n) memcpy(m->finding, c.list, (size_t)n * sizeof *m->finding);
    m->r.findings = n;
    return true;
}

sm_status sm_profile_ran_on(const sm_trace_breakdown *time, const sm_system *system,
                            sm_arena *arena, const sm_profile_ran **out, sm_error *err) {
    ran_made *m = sm_arena_alloc(arena, sizeof *m);
    if (!m) return sm_fail_memory(err);
    m->r.time = time;
    m->r.system = system;
    const double link = system ? system->chip.link_bytes_per_s_oneway.value : 0;
    m->r.link_bytes_per_s = link > 0 ? link : NAN;
    m->arena = arena;
    for (int i = 0; i < time->devices; i++) m->steps += time->device[i].steps;
    if (!price_rows(m) || !find(m)) return sm_fail_memory(err);
    m->r.lower_s = m->lower_s;
    m->r.bound = m->bound;
    m->r.finding = m->finding;
    *out = &m->r;
    return SM_OK;
}
