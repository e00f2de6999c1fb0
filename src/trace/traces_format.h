/* traces_format: what profilers call things: tables of data/formats/traces.json, which says of each
 * what it is. Private to src/trace. */
#pragma once
#include "chrome_event.h"
#include "named.h"
#include "scalemodel/units.h"

typedef enum trace_formula {
    TRACE_PRODUCT,
    TRACE_ATTENTION,
    TRACE_HEADS_LAST,
    TRACE_POINTWISE
} trace_formula;
typedef struct trace_op {
    const char *name;
    trace_formula formula;
    int first, causal;
} trace_op;
typedef struct trace_type {
    const char *begins;
    sm_dtype dtype;
    double bytes;
} trace_type;
typedef struct trace_named {
    const char *name;
    sm_trace_kind kind;
} trace_named;
typedef struct trace_called {
    const char *name, *called;
} trace_called;
typedef struct chrome_category_name {
    const char *name;
    chrome_category category;
} chrome_category_name;
typedef struct chrome_number_name {
    const char *name;
    chrome_number number;
} chrome_number_name;
typedef struct chrome_text_name {
    const char *name;
    chrome_text text;
} chrome_text_name;

extern const trace_op traces_ops[];
extern const trace_type traces_types[];
extern const trace_named traces_libraries[], traces_copies[], traces_instructions[];
extern const trace_called traces_collectives[];
extern const chrome_category_name traces_categories[];
extern const chrome_number_name traces_numbers[];
extern const chrome_text_name traces_texts[];
extern const size_t traces_ops_count, traces_types_count, traces_libraries_count,
    traces_copies_count, traces_instructions_count, traces_categories_count, traces_numbers_count,
    traces_texts_count, traces_collectives_count;
