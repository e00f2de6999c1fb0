/* switch_tree: the levels of a system of switches, filled from the chip's tree. Private to src/hw.
 */
#ifndef SCALEMODEL_HW_SWITCH_TREE_H
#define SCALEMODEL_HW_SWITCH_TREE_H
#include "scalemodel/hw.h"

/* Sizes innermost first: the first n - 1 are taken as they are, the last counts the units that the
 * tree is then filled with. Writes system->level and ->levels. False when the tree has no level
 * left for them. 1 <= n <= tree_levels + 1, and each size but the last is at most its degree. */
bool sm_tree_fill(const sm_chip *chip, const int *size, int n, sm_system *system);
#endif
