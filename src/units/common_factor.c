/* The greatest common divisor (Euclid, Elements, book VII, proposition 2): the most parts into
 * which two sizes can both be cut. */
#include "scalemodel/units.h"

int sm_common_factor(int a, int b) {
    while (b != 0) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}
