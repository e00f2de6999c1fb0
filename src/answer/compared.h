/* compared: what several systems answer to one question, side by side. */
#pragma once
#include "scalemodel/answer.h"

typedef struct sm_compared {
    const char *system;
    const char *plan;                   /* the best one; NULL: there is none */
    const char *reason;                 /* then why, a sentence */
    const char *cells[SM_PAGE_COLUMNS]; /* of its row, the system the first */
} sm_compared;
/* A row for each system that has a plan, under heads of sm_page_table; their plans; why the others
 * have none. */
void sm_compared_page(sm_report *r, const char *heads, const sm_compared *of, int n);
/* Joules of so many chip-seconds at the rated power; NAN where it is not known. */
double sm_rated_energy_j(const sm_chip *chip, double chip_seconds);
/* "3.86 MWh"; "-" of NAN. */
const char *sm_show_energy(sm_report *r, double joules);
