/* Memory of a training: gathered over the ranks, laid beside the prediction. */
#include "memory_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prediction.h"

/* ---- measuring ---- */

/* VmHWM of Linux: the most of this process that ever lay in memory at once. */
static double resident_bytes(void) {
    char line[256];
    double kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0) kib = strtod(line + 6, NULL);
    if (file) fclose(file);
    return kib * 1024;
}

typedef struct rank_memory {
    sm_train_memory memory;
    double process_bytes;
} rank_memory;

static void fold(const rank_memory *all, int ranks, train_memory *out) {
    *out = (train_memory){.rank = 0};
    for (int i = 0; i < ranks; i++) {
        if (all[i].process_bytes > out->process_bytes) out->process_bytes = all[i].process_bytes;
        if (i > 0 && all[i].memory.total <= out->most.total) continue;
        out->rank = i;
        out->most = all[i].memory;
    }
}

sm_status train_memory_gather(sm_communicator *world, const sm_trainer *t, train_memory *out,
                              sm_error *err) {
    rank_memory mine, *all = sm_calloc((size_t)world->size, sizeof *all);
    bool shared = strcmp(world->backend->name, "threads") == 0; /* one process, many ranks */
    memset(&mine, 0, sizeof mine);
    sm_trainer_memory(t, &mine.memory);
    if (!shared) mine.process_bytes = resident_bytes();
    if (!all) return sm_fail_memory(err);
    sm_status status = sm_run_all_gather(world, &mine, sizeof mine, all, err);
    if (!status && world->rank == 0) fold(all, world->size, out);
    sm_free(all);
    return status;
}

/* ---- showing ---- */

static void put_part(sm_report *r, sm_table *table, sm_data *object, const char *name,
                     double predicted, double measured) {
    sm_data *part = sm_put_object(r, object, name);
    sm_put(r, part, "predicted", predicted);
    sm_put(r, part, "measured", measured);
    sm_page_row(r, table, name, sm_show_bytes(r, predicted), sm_show_bytes(r, measured),
                prediction_ratio(r, predicted, measured));
}

void train_memory_show(sm_report *r, const sm_memory *predicted, const train_memory *measured) {
    const double parts[SM_TRAIN_MEMORY_COUNT] = {[SM_TRAIN_MEMORY_PARAMS] = predicted->params,
                                                 [SM_TRAIN_MEMORY_GRADIENTS] = predicted->gradients,
                                                 [SM_TRAIN_MEMORY_OPTIMIZER] = predicted->optimizer,
                                                 [SM_TRAIN_MEMORY_ACTIVATIONS] =
                                                     predicted->activations,
                                                 [SM_TRAIN_MEMORY_BUFFERS] = predicted->buffers,
                                                 [SM_TRAIN_MEMORY_HOST] = predicted->host};
    sm_data *object = sm_put_object(r, r->data, "memory");
    sm_table *table = sm_page_table(
        r, sm_textf(r, "Memory at its highest, on rank %d, which has most", measured->rank),
        "<|>predicted|>measured|>ratio");
    for (int i = 0; i < SM_TRAIN_MEMORY_COUNT; i++) {
        double seen =
            i == SM_TRAIN_MEMORY_HOST ? measured->most.most[i] : measured->most.at_most[i];
        if (i == SM_TRAIN_MEMORY_HOST && !(parts[i] > 0 || seen > 0)) continue;
        put_part(r, table, object, sm_train_memory_names[i], parts[i], seen);
    }
    put_part(r, table, object, "total", predicted->total, measured->most.total);
    if (table) sm_report_table(r, table);
    if (!(measured->process_bytes > 0)) return;
    sm_put(r, object, "process", measured->process_bytes);
    sm_report_text(r,
                   "The process of a rank had %s in memory at most, libraries and text included.",
                   sm_show_bytes(r, measured->process_bytes));
}
