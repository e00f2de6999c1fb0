/* The time of a measured collective: the best algorithm on a system of the row's chips. */
#include "scalemodel/truth.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The operation of the library for the name a benchmark prints; false when there is none. Bytes are
 * counted as nccl-tests does: the gathered or unreduced buffer; for an all-to-all the buffer of one
 * rank, an n-th of the whole array. */
static bool operation(const sm_collective_row *row, sm_collective *op, double *bytes) {
    static const struct {
        const char *name;
        sm_collective op;
        bool per_rank;
    } known[] = {{"all_reduce", SM_ALL_REDUCE, false},
                 {"all_gather", SM_ALL_GATHER, false},
                 {"reduce_scatter", SM_REDUCE_SCATTER, false},
                 {"broadcast", SM_BROADCAST, false},
                 {"send_recv", SM_PERMUTE, false},
                 {"all_to_all", SM_ALL_TO_ALL, true}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(row->op, known[i].name) == 0) {
            *op = known[i].op;
            *bytes = row->bytes * (known[i].per_rank ? row->ranks : 1.0);
            return true;
        }
    return false;
}

/* The shape of a torus as the system's name ends with it ("tpu7x_2x2x1"), or nodes x chips. */
static void shape_of(const sm_truth_row *row, const sm_chip *chip, char *text, size_t size) {
    const sm_collective_row *c = &row->of.collective;
    const char *shape = strrchr(row->chip, '_');
    if (chip->fabric == SM_FABRIC_TORUS && shape)
        snprintf(text, size, "%s:%s", chip->name, shape + 1);
    else if (c->nodes > 1)
        snprintf(text, size, "%s:%dx%d", chip->name, c->nodes, c->ranks / c->nodes);
    else snprintf(text, size, "%s:%d", chip->name, c->ranks);
}

static bool system_of(const sm_truth_row *row, const sm_chip *chip, sm_system *system) {
    char text[160];
    sm_error err;
    shape_of(row, chip, text, sizeof text);
    sm_source source = sm_source_of("system", text);
    return sm_system_parse(&source, chip, 1, system, &err) == SM_OK &&
           system->chips >= row->of.collective.ranks;
}

static const char *what_is_missing(const sm_truth_row *row) {
    if (!(row->of.collective.bytes > 0.0)) return "bytes: the source prints a bandwidth only";
    if (row->of.collective.ranks < 2) return "ranks";
    if (row->of.collective.nodes > 1 && strstr(row->chip, "_multi"))
        return "the network between the nodes";
    return NULL;
}

static void predict(const sm_truth_row *row, const sm_system *system, const sm_calibration *c,
                    sm_prediction *out) {
    sm_collective op;
    double bytes;
    sm_placement placement;
    int size = row->of.collective.ranks, order = 0;
    if (!operation(&row->of.collective, &op, &bytes))
        out->unknown = "this operation";
    else if (!sm_placement_fill(system, 1, &size, &order, NULL, &placement))
        out->unknown = "how the ranks lie on the system";
    else {
        sm_curve curve = sm_collective_curve(system, op, &placement.axis[0], 1.0);
        sm_collective_cost cost = sm_curve_cost(&curve, system, c, bytes);
        out->lower_s = cost.lower_s;
        out->expected_s = cost.expected_s;
        out->upper_s = cost.upper_s;
    }
}

void sm_predict_collective(const sm_truth_row *row, const sm_chip *chip, const sm_calibration *c,
                           sm_prediction *out) {
    sm_system system;
    out->regime = SM_REGIME_collective;
    out->unknown = what_is_missing(row);
    if (out->unknown) return;
    if (!system_of(row, chip, &system)) out->unknown = "a system of this shape";
    else predict(row, &system, c, out);
}
