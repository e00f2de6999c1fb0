/* breakdown: of a trace, where each device's time went: steps, and of each step the time of
 * compute, of communication that no compute hides, of copies, and of idling by its cause. The parts
 * are disjoint and add up to the step. Then kernels by the op, shapes and module that launched
 * them, and collectives by what they send. */
#pragma once
#include "scalemodel/attention.h"
#include "scalemodel/trace.h"

SM_DECLARATIONS_BEGIN

typedef enum sm_time_part {
    SM_PART_COMPUTE,
    SM_PART_EXPOSED, /* collectives, beside no compute */
    SM_PART_COPIES,  /* beside neither */
    SM_PART_HOST,    /* idle until the host had launched what came next */
    SM_PART_GAP,     /* idle although it was launched: start-up, dependencies between streams */
    SM_PART_IDLE,    /* idle; the trace does not say what launched what */
    SM_PARTS
} sm_time_part;
/* "compute", "exposed communication", "copies", "waiting for the host", "launch gaps", "idle".
 * Static text. */
const char *sm_time_part_name(sm_time_part part);

typedef struct sm_trace_step {
    int64_t start_ps, end_ps;
    double part_s[SM_PARTS]; /* add up to the step */
    double overlapped_s;     /* collectives beside compute: within its part */
} sm_trace_step;

/* Steps of one device, in order. */
typedef struct sm_device_time {
    int device; /* of the trace */
    int steps;
    const sm_trace_step *step;
    sm_trace_step mean;               /* of a step; start 0 */
    sm_trace_step whole;              /* from its first to its last event */
    double median_s, least_s, most_s; /* of its steps */
    double collective_s, wait_s; /* of a step: collectives; of that waiting for other ranks, NAN
                                    where no other rank is there */
} sm_device_time;

typedef enum sm_steps_from {
    SM_STEPS_MARKED,   /* by the profiler or the program: ProfilerStep#, StepTraceAnnotation */
    SM_STEPS_PROGRAM,  /* runs of the program that ran longest */
    SM_STEPS_REPEATED, /* the same kernels again and again */
    SM_STEPS_NONE      /* the whole trace as one */
} sm_steps_from;

/* Kernels that one op launches with the same shapes, in the same module, over all devices. Times
 * are sums. */
/* An attention, forward or backward, by the shapes of its queries and keys. */
typedef struct sm_trace_attention {
    sm_attention_shape shape; /* batch 0: it is none */
    bool causal, masked;      /* later keys are not met; whether that is so was recorded */
    bool backward;
} sm_trace_attention;

typedef struct sm_kernel_row {
    sm_trace_kind kind; /* COMPUTE or COPY */
    const char *op;     /* "aten::mm"; of kernels that no op launched, the kernel */
    const char *kernel; /* the one that takes longest */
    const char *module; /* "" */
    const char *shapes; /* "[2048, 4096] x [4096, 14336]", "" */
    double count;       /* kernels */
    double calls;       /* of the op */
    double seconds, longest_s;
    double flops, bytes;          /* of all calls; NAN: not known */
    sm_dtype dtype;               /* of the FLOPs */
    double m, n, k;               /* of each call, where it is one product of matrices; else 0 */
    sm_trace_attention attention; /* of each call */
} sm_kernel_row;

/* Collectives of one kind, size and group. Times are of the ranks that are in the trace. */
typedef struct sm_comm_row {
    const char *op; /* "all-reduce" */
    const char *dtype, *group_name;
    int members;       /* 0: not known */
    double bytes;      /* as nccl-tests counts them; NAN: not known */
    double count;      /* kernels */
    double seconds;    /* of all of them */
    double least_s;    /* of one: where ranks are compared, what is transfer and no waiting */
    double exposed_s;  /* of `seconds` */
    double bus_factor; /* bytes on the bus over bytes, (n-1)/n and the like; NAN: not known */
} sm_comm_row;

typedef struct sm_trace_breakdown {
    const sm_trace *trace;
    sm_steps_from steps_from;
    int devices; /* that ran something; the one whose step takes longest first */
    const sm_device_time *device;
    sm_trace_step mean; /* over devices and steps; start 0 */
    int rows, comms;
    const sm_kernel_row *row; /* the one that takes longest first */
    const sm_comm_row *comm;
    double other_s; /* of events that are not understood */
} sm_trace_breakdown;
/* Break a trace down; all lives in the arena. SM_BAD_INPUT when nothing ran on a device. */
sm_status sm_trace_break_down(const sm_trace *trace, sm_arena *arena,
                              const sm_trace_breakdown **out, sm_error *err);

SM_DECLARATIONS_END
