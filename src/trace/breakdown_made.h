/* breakdown_made: a breakdown while it is made. Private to src/trace. */
#pragma once
#include "scalemodel/breakdown.h"

typedef struct breakdown_made {
    sm_trace_breakdown b;
    const sm_trace *trace;
    sm_arena *arena;
    sm_error *err;
    /* Events that are work of devices, by device, then by start. */
    int32_t *work, *first; /* of device d: work[first[d]] to work[first[d + 1]] */
    int64_t *exposed_ps;   /* of each event */
} breakdown_made;

/* The window of a step; more is filled in later. */
typedef struct step_list {
    sm_trace_step *step;
    int n, room;
} step_list;

/* The steps of a device, in order. False when out of memory. */
bool breakdown_steps(breakdown_made *made, int device, step_list *out);
/* Kernels and collectives. False when out of memory. */
bool breakdown_rows(breakdown_made *made);
bool breakdown_comms(breakdown_made *made);

/* The first event of this kind that an event was caused by; NULL: none. */
const sm_trace_event *trace_cause(const sm_trace *t, const sm_trace_event *e, sm_trace_kind kind);

/* ---- what an op computes, by its name and the shapes of its inputs ---- */
typedef struct op_work {
    double flops, bytes; /* NAN: not known */
    sm_dtype dtype;
    double m, n, k; /* of one product of matrices; else 0 */
    sm_trace_attention attention;
} op_work;
/* values: what stands for inputs that are no arrays; "": not recorded. */
op_work trace_op_work(const char *op, const char *shapes, const char *types, const char *values);
/* "[2, 3] x [3, 4]", of JSON's "[[2, 3], [3, 4], []]"; in the arena, NULL when out of memory. */
const char *trace_shapes_text(const char *shapes, sm_arena *arena);
/* Bytes of an element as frameworks call its type; 0: not known. */
double trace_element_bytes(const char *type, sm_dtype *dtype);
/* The product of the first shape of the list; 0: it has none. */
double trace_elements(const char *shapes);
