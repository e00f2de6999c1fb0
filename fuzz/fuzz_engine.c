/* Settings of engines from any bytes: what is accepted prints in what it differs, and that reads
 * back to the same. */
#include "scalemodel/load.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sm_source source = {"engine", (const char *)data, size};
    sm_software read = *sm_software_of("sglang-2026"), again = read;
    sm_error err;
    char text[1024], twice[1024];
    if (sm_software_set(&read, &source, &err) != SM_OK) return 0;
    sm_software_differs(&read, text, sizeof text);
    source = sm_source_of("engine", text);
    if (text[0] && sm_software_set(&again, &source, &err) != SM_OK) abort();
    sm_software_differs(&again, twice, sizeof twice);
    if (strcmp(text, twice) != 0) abort();
    return 0;
}
