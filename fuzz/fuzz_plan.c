/* Plans from any bytes: what is accepted prints and reads back to the same text. */
#include "scalemodel/train.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sm_source source = {"plan", (const char *)data, size};
    sm_plan plan, again;
    sm_error err;
    char text[1024], twice[1024];
    if (sm_plan_parse(&source, &plan, &err) != SM_OK) return 0;
    if (sm_plan_format(&plan, 3, text, sizeof text) >= sizeof text) abort();
    source = sm_source_of("plan", text);
    if (sm_plan_parse(&source, &again, &err) != SM_OK) abort();
    sm_plan_format(&again, 3, twice, sizeof twice);
    if (strcmp(text, twice) != 0) abort();
    return 0;
}
