/* What the columns and keys of request traces are called. */
#include "request_row.h"

#include <string.h>

/* arrival_s .. conversation_id are our own; then the public traces: Azure LLM inference (2023,
 * 2024), Mooncake (2024; timestamps in ms, a hash for each block of 512 tokens), BurstGPT (2024).
 */
const request_name request_names[REQUEST_NAMES] = {
    {"arrival_s", REQUEST_ARRIVAL, 1.0},
    {"prompt_tokens", REQUEST_PROMPT, 0},
    {"output_tokens", REQUEST_OUTPUT, 0},
    {"prefix_id", REQUEST_PREFIX, 0},
    {"prefix_tokens", REQUEST_PREFIX_TOKENS, 0},
    {"conversation_id", REQUEST_CONVERSATION, 0},
    {"TIMESTAMP", REQUEST_ARRIVAL, 1.0},
    {"ContextTokens", REQUEST_PROMPT, 0},
    {"GeneratedTokens", REQUEST_OUTPUT, 0},
    {"timestamp", REQUEST_ARRIVAL, 1e-3},
    {"input_length", REQUEST_PROMPT, 0},
    {"output_length", REQUEST_OUTPUT, 0},
    {"hash_ids", REQUEST_BLOCKS, 0},
    {"Timestamp", REQUEST_ARRIVAL, 1.0},
    {"Request tokens", REQUEST_PROMPT, 0},
    {"Response tokens", REQUEST_OUTPUT, 0},
    {"session_id", REQUEST_CONVERSATION, 0},
};

const request_name *request_name_of(const char *text, size_t length) {
    for (int i = 0; i < REQUEST_NAMES; i++) {
        const char *name = request_names[i].name;
        if (strlen(name) == length && memcmp(name, text, length) == 0) return &request_names[i];
    }
    return NULL;
}

const char *request_field_names(request_field field) {
    switch (field) {
    case REQUEST_ARRIVAL: return "arrival_s (seconds), TIMESTAMP (a date) or timestamp (ms)";
    case REQUEST_PROMPT: return "prompt_tokens, ContextTokens or input_length";
    case REQUEST_OUTPUT: return "output_tokens, GeneratedTokens or output_length";
    case REQUEST_PREFIX_TOKENS: return "prefix_tokens, the tokens that prefix_id stands for";
    default: return "";
    }
}
