/* calibrate_profile: measured rows of a file, or of a profile. Private to src/answer/truth. */
#pragma once
#include "scalemodel/io.h"

/* Read a file of measured rows; or, where it is none, a profile (of any form that `profile` reads),
 * of which each product of matrices and each collective with a known size becomes a row: the mean
 * time of a product's calls, the shortest run of a collective, which has no waiting in it. The rows
 * are of mixed kinds. Chip: whose they are where the profile names none of the catalogue's. Errors
 * as sm_truth_read. */
sm_status calibrate_read(const char *path, const sm_chip *chip, const sm_truth_given *given,
                         sm_arena *arena, sm_truth *out, sm_error *err);
