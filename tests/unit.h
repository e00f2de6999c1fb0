/* unit: cmocka with what it needs before it. It hands every test a state, for which most have no
 * use.
 */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

/* The seed of a test's random cases: always the same ones, or others for each SEED that the
 * environment has (scripts/ask-longer.sh). */
static inline uint64_t drawn_from(uint64_t usual) {
    const char *other = getenv("SEED");
    return other ? usual + 1000003 * strtoull(other, NULL, 10) : usual;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
