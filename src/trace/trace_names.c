/* What the names of kernels and instructions tell. */
#include <string.h>

#include "trace_build.h"

/* Beginnings of names in lower case; the longest that fits decides. */
typedef struct named {
    const char *begins;
    sm_trace_kind kind;
} named;

static bool same_letter(char a, char b) {
    return a == b || (a >= 'A' && a <= 'Z' && a - 'A' + 'a' == b);
}

bool trace_begins(const char *text, size_t length, const char *word) {
    size_t i = 0;
    while (word[i] && i < length && same_letter(text[i], word[i])) i++;
    return !word[i];
}

static bool holds(const char *text, size_t length, const char *word) {
    for (size_t i = 0; i < length; i++)
        if (same_letter(text[i], *word) && trace_begins(text + i, length - i, word)) return true;
    return false;
}

static sm_trace_kind kind_of(const named *list, size_t n, const char *text, size_t length) {
    sm_trace_kind kind = SM_TRACE_COMPUTE;
    size_t longest = 0;
    for (size_t i = 0; i < n; i++)
        if (trace_begins(text, length, list[i].begins) && strlen(list[i].begins) > longest) {
            kind = list[i].kind;
            longest = strlen(list[i].begins);
        }
    return kind;
}

/* ncclKernel_AllReduce_..., ncclDevKernel_..., rcclGenericKernel, and what libraries write instead:
 * MSCCL, NVSHMEM, DeepEP's intra- and internode kernels, the all-reduces of vLLM and TensorRT-LLM.
 */
sm_trace_kind trace_kernel_kind(const char *name) {
    static const char *const words[] = {"nccl",      "rccl",          "msccl",
                                        "nvshmem",   "deep_ep::",     "cross_device_reduce",
                                        "allreduce", "all_reduce",    "all_gather",
                                        "allgather", "reducescatter", "reduce_scatter",
                                        "alltoall",  "all_to_all"};
    static const named copies[] = {
        {"memcpy", SM_TRACE_COPY}, {"memset", SM_TRACE_COPY}, {"dma_request", SM_TRACE_COPY}};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (holds(name, length, words[i])) return SM_TRACE_COLLECTIVE;
    return kind_of(copies, sizeof copies / sizeof *copies, name, length);
}

sm_trace_kind trace_instruction_kind(const char *name, size_t length) {
    static const named list[] = {
        {"all-reduce", SM_TRACE_COLLECTIVE},
        {"all-gather", SM_TRACE_COLLECTIVE},
        {"all-to-all", SM_TRACE_COLLECTIVE},
        {"reduce-scatter", SM_TRACE_COLLECTIVE},
        {"collective", SM_TRACE_COLLECTIVE},
        {"ragged-all-to-all", SM_TRACE_COLLECTIVE},
        {"send", SM_TRACE_COLLECTIVE},
        {"recv", SM_TRACE_COLLECTIVE},
        {"all_reduce", SM_TRACE_COLLECTIVE},
        {"async-collective", SM_TRACE_COLLECTIVE},
        {"async-copy", SM_TRACE_COPY},
        {"copy-start", SM_TRACE_COPY},
        {"copy-done", SM_TRACE_COPY},
        {"slice-start", SM_TRACE_COPY},
        {"slice-done", SM_TRACE_COPY},
        {"dynamic-slice-start", SM_TRACE_COPY},
        {"dynamic-slice-done", SM_TRACE_COPY},
        {"while", SM_TRACE_CONTAINER},
        {"conditional", SM_TRACE_CONTAINER},
        {"call", SM_TRACE_CONTAINER},
        {"infeed", SM_TRACE_COPY},
        {"outfeed", SM_TRACE_COPY},
    };
    if (length > 0 && *name == '%') {
        name++;
        length--;
    }
    return kind_of(list, sizeof list / sizeof *list, name, length);
}

bool trace_is_step(const char *name) { return trace_begins(name, strlen(name), "profilerstep#"); }
