/* Data types of array elements: the list is SM_DTYPES in units.h. */
#include "scalemodel/units.h"

#include <string.h>

const char *const sm_dtype_names[SM_DTYPE_COUNT] = {SM_DTYPES(SM_NAME_OF)};

static const char *const aliases[SM_DTYPE_COUNT] = {SM_DTYPES(SM_THIRD_OF)};

static const double bits_of[SM_DTYPE_COUNT] = {
#define X(id, name, alias, bits, help) [SM_##id] = bits,
    SM_DTYPES(X)
#undef X
};

const char *sm_dtype_name(sm_dtype dtype) {
    return (unsigned)dtype < SM_DTYPE_COUNT ? sm_dtype_names[dtype] : "?";
}

double sm_dtype_bytes(sm_dtype dtype) {
    return (unsigned)dtype < SM_DTYPE_COUNT ? bits_of[dtype] / 8 : 0;
}

static bool same(const char *text, size_t length, const char *name) {
    if (strlen(name) != length) return false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
        if (c != name[i]) return false;
    }
    return true;
}

bool sm_dtype_parse(const char *text, size_t length, sm_dtype *dtype) {
    for (int i = 0; i < SM_DTYPE_COUNT; i++) {
        if (!same(text, length, sm_dtype_names[i]) && !same(text, length, aliases[i])) continue;
        *dtype = (sm_dtype)i;
        return true;
    }
    return false;
}
