/* Fuzz target: any bytes as a trace of requests. What is accepted is sorted, of whole positive
 * lengths, and the same when read again; a refusal has a place, but of packed data cut short. */
#include "scalemodel/io.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds) abort();
}

static void check_request(const sm_request *q, double last_s) {
    if (q->follows) require(q->think_s >= 0 && isfinite(q->think_s) && q->conversation != 0);
    else require(isfinite(q->arrival_s) && q->arrival_s >= last_s);
    require(!q->kind || (q->kind[0] && strlen(q->kind) < 64));
    require(q->prompt >= 1 && q->prompt <= SM_MAX_TOKENS && q->prompt == floor(q->prompt));
    require(q->output >= 1 && q->output <= SM_MAX_TOKENS && q->output == floor(q->output));
    require(q->shared_prefix >= 0 && q->shared_prefix <= q->prompt);
    require(q->blocks == 0 || q->block != NULL);
}

static double read_all(sm_request_file *file, bool packed, double *requests) {
    sm_arrivals arrivals = sm_request_arrivals(file);
    sm_request request;
    sm_error err = {.status = SM_OK};
    double last_s = -HUGE_VAL, sum = 0;
    int got = 0;
    *requests = 0;
    while ((got = arrivals.next(arrivals.context, &request, &err)) == 1) {
        check_request(&request, last_s);
        if (!request.follows) last_s = request.arrival_s;
        sum += request.prompt + request.output;
        ++*requests;
    }
    bool placed = err.line >= 1 && err.column >= 1;
    if (got < 0) require(err.status == SM_BAD_INPUT && (placed || packed));
    return sum;
}

static bool is_packed(const uint8_t *data, size_t size) {
    static const uint8_t of_gzip[] = {0x1f, 0x8b}, of_xz[] = {0xfd, '7'}, of_zstd[] = {0x28, 0xb5};
    return size > 1 && (memcmp(data, of_gzip, 2) == 0 || memcmp(data, of_xz, 2) == 0 ||
                        memcmp(data, of_zstd, 2) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sm_source source = {"trace", (const char *)data, size};
    sm_request_file *file = NULL;
    sm_error err = {.status = SM_OK};
    bool packed = is_packed(data, size);
    if (sm_request_file_of(&source, &file, &err) != SM_OK) {
        require(err.status == SM_BAD_INPUT && err.sentence[0] != 0 && (packed || err.line >= 1));
        return 0;
    }
    double first = 0, second = 0, sum = read_all(file, packed, &first);
    require(sm_request_file_rewind(file, NULL) == SM_OK);
    require(read_all(file, packed, &second) == sum && first == second);
    sm_request_file_close(file);
    return 0;
}
