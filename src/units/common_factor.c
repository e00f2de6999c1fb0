/* Factors of sizes. */
#include "scalemodel/units.h"

#include <math.h>

/* The greatest common divisor (Euclid, Elements, book VII, proposition 2): the most parts into
 * which two sizes can both be cut. */
int sm_common_factor(int a, int b) {
    while (b != 0) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

double sm_odd_part(double n) {
    while (n > 1 && fmod(n, 2) == 0) n /= 2;
    return n;
}
