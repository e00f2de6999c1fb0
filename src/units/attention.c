/* How many keys a query of an attention meets. */
#include "scalemodel/attention.h"
#include <math.h>

/* Sum over positions 1..n of the keys that each may attend to. */
static double keys_until(double n, double window, double chunk) {
    if (n <= 0) return 0;
    if (chunk > 0) { /* its own chunk only; the last may be shorter */
        double whole = floor(n / chunk), rest = n - whole * chunk;
        return whole * chunk * (chunk + 1) / 2 + rest * (rest + 1) / 2;
    }
    double full = window > 0 ? fmin(n, window) : n;
    return full * (full + 1) / 2 + (n - full) * full;
}

double sm_keys_met(double T, double S, bool causal, double window, double chunk) {
    double reach = chunk > 0 ? chunk : window > 0 ? window : S;
    if (!(T > 0)) return 0;
    if (!causal) return fmin(reach, S);
    return (keys_until(S, window, chunk) - keys_until(S - T, window, chunk)) / T;
}
