/* What the names of kernels and instructions tell. */

#include "traces_format.h"

bool trace_begins(const char *text, size_t length, const char *word) {
    size_t i = 0;
    for (; word[i] && i < length; i++) {
        bool large = text[i] >= 'A' && text[i] <= 'Z';
        if (text[i] != word[i] && !(large && text[i] - 'A' + 'a' == word[i])) break;
    }
    return !word[i];
}

/* The longest that the text begins with decides. */
static sm_trace_kind kind_of(const trace_named *list, size_t n, const char *text, size_t length) {
    sm_trace_kind kind = SM_TRACE_COMPUTE;
    size_t longest = 0;
    for (size_t i = 0; i < n; i++)
        if (trace_begins(text, length, list[i].name) && strlen(list[i].name) > longest) {
            kind = list[i].kind;
            longest = strlen(list[i].name);
        }
    return kind;
}

sm_trace_kind trace_kernel_kind(const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < traces_libraries_count; i++)
        for (size_t k = 0; k < length; k++)
            if (trace_begins(name + k, length - k, traces_libraries[i].name))
                return traces_libraries[i].kind;
    return kind_of(traces_copies, traces_copies_count, name, length);
}

sm_trace_kind trace_instruction_kind(const char *name, size_t length) {
    if (length > 0 && *name == '%') {
        name++;
        length--;
    }
    return kind_of(traces_instructions, traces_instructions_count, name, length);
}

bool trace_is_step(const char *name) { return trace_begins(name, strlen(name), "profilerstep#"); }
