/* train_timeline: the simulated step of a plan as a trace that Perfetto opens: a track for each
 * pipeline stage. */
#include "scalemodel/io.h"
#include "scalemodel/render.h"
#include "train.h"
#include <stdio.h>
#include <stdlib.h>

static const char *slot_letters(sm_slot_kind kind) {
    static const char *const letters[] = {"F", "B", "Bi", "Bw"};
    return letters[kind];
}

static const char *slot_category(sm_slot_kind kind) {
    static const char *const categories[] = {"forward", "backward", "backward of inputs",
                                             "backward of weights"};
    return categories[kind];
}

/* "F 3" is the forward of microbatch 3; where stages hold several chunks, "F 3, chunk 5" with
 * chunks numbered over the whole model. */
static void put_slot(sm_trace *trace, const sm_slot *slot, bool chunked) {
    char name[48];
    if (chunked)
        snprintf(name, sizeof name, "%s %d, chunk %d", slot_letters(slot->kind), slot->microbatch,
                 slot->chunk);
    else snprintf(name, sizeof name, "%s %d", slot_letters(slot->kind), slot->microbatch);
    sm_trace_slice(trace, 0, slot->stage, name, slot_category(slot->kind), slot->start_s,
                   slot->end_s - slot->start_s);
}

static void put_part(sm_trace *trace, int stage, const char *name, double start, double end) {
    if (end > start) sm_trace_slice(trace, 0, stage, name, "end of the step", start, end - start);
}

/* What follows the last microbatch, on every stage the time of the slowest. */
static void put_end(sm_trace *trace, const sm_timeline *t) {
    double updated = t->optimizer_start_s + t->optimizer_s;
    for (int stage = 0; stage < t->stages; stage++) {
        put_part(trace, stage, "reduction of gradients", t->optimizer_start_s - t->reduce_s,
                 t->optimizer_start_s);
        put_part(trace, stage, "optimizer", t->optimizer_start_s, updated);
        put_part(trace, stage, "gathering of weights, host", updated, t->end_s);
    }
}

static sm_status write_trace(const cli_training *q, const sm_timeline *t, bool chunked, FILE *out,
                             sm_error *err) {
    sm_trace *trace = sm_trace_begin(out);
    if (!trace) return sm_fail_memory(err);
    char process[256];
    snprintf(process, sizeof process, "a step of %.90s on %.90s", q->model.name, q->system.text);
    for (int stage = 0; stage < t->stages; stage++) {
        char name[32];
        snprintf(name, sizeof name, "stage %d", stage);
        sm_trace_thread(trace, 0, stage == 0 ? process : NULL, stage, name);
    }
    for (int i = 0; i < t->slots; i++) put_slot(trace, &t->slot[i], chunked);
    put_end(trace, t);
    return sm_trace_end(trace, err);
}

sm_status cli_train_timeline(const cli_training *q, sm_train *train, const cli_plan_shown *shown,
                             sm_error *err) {
    sm_timeline timeline = {0};
    sm_status status = sm_train_timeline(train, shown->plan, q->call->arena, &timeline, err);
    if (status) return status;
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    if (!memory) return sm_fail_memory(err);
    status = write_trace(q, &timeline, shown->plan->virtual_stages > 1, memory, err);
    if (fclose(memory) != 0 && !status) status = sm_fail_memory(err);
    if (!status) status = sm_io_write(q->timeline, text, length, err);
    free(text);
    return status;
}
