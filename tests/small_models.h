/* The small models of all families whose parameters are known. */
#pragma once
#include "class_totals.h"
#include "encoder_totals.h"
#include "family_totals.h"
#include "newest_totals.h"
#include "published_totals.h"
#include "remote_totals.h"
#include "served_totals.h"
#include <stddef.h>

#define TOTALS_OF(list) sizeof list / sizeof *list

static const struct {
    const struct family_total *total;
    size_t n;
} total_lists[] = {
    {family_totals, TOTALS_OF(family_totals)},       {encoder_totals, TOTALS_OF(encoder_totals)},
    {newest_totals, TOTALS_OF(newest_totals)},       {class_totals, TOTALS_OF(class_totals)},
    {published_totals, TOTALS_OF(published_totals)}, {remote_totals, TOTALS_OF(remote_totals)},
    {served_totals, TOTALS_OF(served_totals)},
};

enum {
    TOTALS = TOTALS_OF(family_totals) + TOTALS_OF(encoder_totals) + TOTALS_OF(newest_totals) +
             TOTALS_OF(class_totals) + TOTALS_OF(published_totals) + TOTALS_OF(remote_totals) +
             TOTALS_OF(served_totals)
};

static inline const struct family_total *total_at(size_t i) {
    size_t list = 0;
    for (; i >= total_lists[list].n; list++) i -= total_lists[list].n;
    return &total_lists[list].total[i];
}
