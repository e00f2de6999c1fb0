/* chip_facts: the facts of a chip as rows, its links with their ridge points, and both as JSON. */
#ifndef SCALEMODEL_CLI_CHIP_FACTS_H
#define SCALEMODEL_CLI_CHIP_FACTS_H
#include "scalemodel/page.h"
#include "scalemodel/cost.h"
#include "scalemodel/hw.h"

typedef enum cli_fact_unit {
    CLI_BYTES,
    CLI_BYTES_PER_S,
    CLI_FLOPS_PER_S,
    CLI_SECONDS,
    CLI_HERTZ,
    CLI_WATT
} cli_fact_unit;
typedef struct cli_fact_row {
    const char *key, *label;
    cli_fact_unit unit;
    size_t offset;
} cli_fact_row;
extern const cli_fact_row cli_fact_rows[]; /* ends with a NULL key */

const sm_fact *cli_fact_of(const sm_chip *chip, const cli_fact_row *row);
const char *cli_fact_show(sm_report *r, cli_fact_unit unit, double value);

/* Where bytes come from when a matmul waits for them: a memory or a link, with its rate. */
enum { CLI_MAX_FEEDS = 4 + SM_MAX_TREE };
typedef struct cli_feed {
    const char *name;    /* "memory", "vmem", "ici", "nvlink", "leaf" */
    bool link;           /* to other chips */
    int chips;           /* that share it: a node's uplink serves the node */
    const sm_fact *rate; /* bytes per second, one way */
    double latency_s;
    bool in_network_reduction;
} cli_feed;
/* All feeds of a chip, memories first; returns how many. */
int cli_feeds(const sm_chip *chip, cli_feed *feeds);

/* Every fact, ridge point, link, source and price of the chip into the object. */
void cli_chip_fields(sm_report *r, sm_data *object, const sm_chip *chip);

/* The constants of expected times, their origin and error bars (chip_calibration.c). */
void cli_chip_calibration(sm_report *r, const sm_chip *chip, const sm_calibration *c);
#endif
