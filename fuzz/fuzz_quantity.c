/* Quantities, whole numbers, data types, and the errors they end in: the first byte chooses. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scalemodel/text.h"
#include "scalemodel/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A parsed quantity, printed exactly, reads back as itself. */
static void read_back(sm_quantity_kind kind, double value) {
    char text[64];
    double again = -1;
    sm_error err;
    sm_source source = sm_source_of("again", sm_format_exact(text, sizeof text, value));
    sm_span whole = {0, source.length};
    if (sm_quantity_parse(&source, whole, kind, &again, &err) != SM_OK || again != value) abort();
}

static void check_error(const sm_error *err) {
    char text[1200];
    if (err->line < 1 || err->column < 1 || err->span < 1 || err->sentence[0] == '\0') abort();
    if (sm_error_format(err, text, sizeof text) >= sizeof text) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sm_error err;
    double value = 0;
    int64_t integer = 0;
    sm_dtype dtype;
    if (size == 0) return 0;
    sm_source source = {"fuzz", (const char *)data + 1, size - 1};
    sm_quantity_kind kind = (sm_quantity_kind)(data[0] % (SM_Q_USD + 1));
    sm_span span = {data[0] / 16, size - 1};
    if (sm_quantity_parse(&source, span, kind, &value, &err) == SM_OK) read_back(kind, value);
    else check_error(&err);
    if (sm_integer_parse(&source, span, -5, 1 << 20, &integer, &err) != SM_OK) check_error(&err);
    else if (integer < -5 || integer > 1 << 20) abort();
    if (sm_dtype_parse(source.text, source.length, &dtype) && dtype >= SM_DTYPE_COUNT) abort();
    sm_nearest(source.text, source.length, sm_dtype_names, SM_DTYPE_COUNT);
    return 0;
}
