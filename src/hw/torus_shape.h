/* torus_shape: which shapes a torus chip comes in, which of their axes wrap. Private to src/hw. */
#ifndef SCALEMODEL_HW_TORUS_SHAPE_H
#define SCALEMODEL_HW_TORUS_SHAPE_H
#include "scalemodel/hw.h"

int sm_torus_pod_chips(const sm_chip *chip);
/* Whether shape (torus_axes lengths, all >= 1) fits in a pod: inside the pod's box in some order of
 * the axes, or made of whole 4x4x4 cubes, which optical switches join in any arrangement. */
bool sm_torus_fits(const sm_chip *chip, const int *shape);
/* The natural slice of that many chips: as cubic as possible. False when no slice has that many. */
bool sm_torus_slice(const sm_chip *chip, int chips, int *shape);
/* The natural shape of any count: one slice, or the largest equal slices. False when there is none.
 */
bool sm_torus_natural(const sm_chip *chip, int chips, int *shape, int *slices);
/* The nearest counts that have a natural shape, at most a pod: 0 when there is none on that side.
 */
void sm_torus_nearest_counts(const sm_chip *chip, int chips, int *below, int *above);
#endif
