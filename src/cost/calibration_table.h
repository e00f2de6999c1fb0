/* calibration_table: the shipped calibrations, made from data/calibration when the library is
 * built, in the order of the files. */
#pragma once
#include "scalemodel/cost.h"

extern const sm_calibration sm_shipped_calibrations[];
extern const size_t sm_shipped_calibration_count;

/* The shipped calibration of this software (NULL: "default") that goes by this name, or that the
 * chip of the catalogue so named calls its own; NULL when there is none. */
const sm_calibration *sm_calibration_find(const char *word, const char *software);
