/* chip_facts: the facts of a chip as rows, its links with their ridge points, and both as data. */
#pragma once
#include "scalemodel/answer.h"

typedef struct sm_fact_row {
    const char *key, *label;
    const char *unit; /* "B", "B/s", "FLOP/s", "s", "Hz" or "W" */
    size_t offset;    /* of the fact in sm_chip */
} sm_fact_row;
extern const sm_fact_row sm_fact_rows[]; /* ends with a NULL key */
const sm_fact *sm_fact_of(const sm_chip *chip, const sm_fact_row *row);

/* Where bytes come from when a matmul waits for them: a memory or a link, with its rate. */
enum { SM_MAX_FEEDS = 4 + SM_MAX_TREE };
typedef struct sm_feed {
    const char *name;    /* "memory", "vmem", "ici", "nvlink", "leaf" */
    bool link;           /* to other chips */
    int chips;           /* that share it: a node's uplink serves the node */
    const sm_fact *rate; /* bytes per second, one way */
    double latency_s;
    bool in_network_reduction;
    int mesh; /* so many chips share it out over links to one another; 0: no full mesh */
} sm_feed;
/* All feeds of a chip, memories first; returns how many (SM_MAX_FEEDS at most). */
int sm_chip_feeds(const sm_chip *chip, sm_feed *feeds);

/* The chip as --system reads it (sm_io_chip_put), and the ridge points and links that follow. */
void sm_chip_fields(sm_report *r, sm_data *object, const sm_chip *chip);

/* A value of a fact in its unit. */
const char *sm_chip_value(sm_report *r, const char *unit, double value);
/* Chips side by side (chip_compare.c). */
sm_status sm_chip_compare(const sm_chip_question *q, sm_report *r, sm_error *err);

/* A value of a constant in its unit: seconds with their prefix, all else as a number. */
const char *sm_constant_text(sm_report *r, const sm_constant_info *info, double value);
