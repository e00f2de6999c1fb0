/* The small models of all families whose parameters are known. */
#pragma once
#include "encoder_totals.h"
#include "family_totals.h"
#include "newest_totals.h"
#include <stddef.h>

enum {
    FAMILY_TOTALS = sizeof family_totals / sizeof *family_totals,
    ENCODER_TOTALS = sizeof encoder_totals / sizeof *encoder_totals,
    TOTALS = FAMILY_TOTALS + ENCODER_TOTALS + sizeof newest_totals / sizeof *newest_totals
};

static inline const struct family_total *total_at(size_t i) {
    return i < FAMILY_TOTALS ? &family_totals[i]
           : i < FAMILY_TOTALS + ENCODER_TOTALS
               ? &encoder_totals[i - FAMILY_TOTALS]
               : &newest_totals[i - FAMILY_TOTALS - ENCODER_TOTALS];
}
