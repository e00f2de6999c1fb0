/* The small models of all families whose parameters are known. */
#pragma once
#include "encoder_totals.h"
#include "family_totals.h"
#include <stddef.h>

enum {
    FAMILY_TOTALS = sizeof family_totals / sizeof *family_totals,
    TOTALS = FAMILY_TOTALS + sizeof encoder_totals / sizeof *encoder_totals
};

static inline const struct family_total *total_at(size_t i) {
    return i < FAMILY_TOTALS ? &family_totals[i] : &encoder_totals[i - FAMILY_TOTALS];
}
