/* trace: what ran. Readers of profilers' files (XPlane, Chrome JSON of JAX and of PyTorch's Kineto,
 * Perfetto, Nsight Systems) fill one structure: events with a start and a duration on named streams
 * of devices and threads of hosts, joined to what launched them. All later questions are asked of
 * it alone. */
#pragma once
#include "scalemodel/text.h"

SM_DECLARATIONS_BEGIN

typedef enum sm_trace_kind {
    /* on a device */
    SM_TRACE_COMPUTE,    /* a kernel, an instruction */
    SM_TRACE_COLLECTIVE, /* a collective, or a send or receive */
    SM_TRACE_COPY,       /* bytes moved or set by no kernel */
    SM_TRACE_SYNC,       /* a stream waits: no work */
    SM_TRACE_CONTAINER,  /* a loop, branch or call: spans the instructions within, which count */
    SM_TRACE_RUN,        /* of a whole program */
    /* on a host, and annotations of either */
    SM_TRACE_LAUNCH, /* a call of the runtime: cudaLaunchKernel */
    SM_TRACE_OP,     /* of a framework: aten::mm */
    SM_TRACE_MODULE, /* of the user's program: nn.Module: Linear_0 */
    SM_TRACE_STEP,   /* one step of training or of an engine */
    SM_TRACE_MARK,   /* any other annotation */
    SM_TRACE_OTHER,  /* what is not understood: its time is told, and counts as nothing */
    SM_TRACE_KINDS
} sm_trace_kind;

typedef struct sm_trace_event {
    int64_t start_ps, duration_ps; /* from the trace's origin */
    int64_t correlation;           /* of a launch and of what it started the same; 0: none */
    int32_t name;                  /* of sm_trace.name */
    int32_t stream;
    int32_t detail;  /* -1: none */
    int32_t cause;   /* event: what launched it; on a host: what encloses it; -1: unknown */
    int32_t program; /* of sm_trace.program: what it is an instruction or a run of; -1: none */
    uint8_t kind;
    bool async; /* from start to done, beside other work of its stream */
} sm_trace_event;

/* What some events say of themselves; a number that is not known is NAN, a name -1. */
typedef struct sm_trace_detail {
    double bytes, flops;
    double elements_in, elements_out; /* of a collective, of one member */
    int32_t group;                    /* its members; 0: not known */
    int32_t op, dtype, group_name;    /* names: "allreduce", "Float", "default_pg" */
    int32_t shapes, types;            /* names: JSON lists, "[[2, 128], [128, 64]]" */
    int32_t values; /* a name: of an attention the JSON list of what is no array, ["", "True"] */
} sm_trace_detail;

typedef struct sm_trace_stream {
    int device; /* -1: a thread of a host */
    int file;   /* of those that were read */
    int64_t process, thread;
    const char *name;
} sm_trace_stream;

typedef struct sm_trace_device {
    const char *name; /* as the profiler calls it: "NVIDIA H100 80GB HBM3", "TPU v6 Lite"; "" */
    int file, ordinal;
    int rank; /* of the job; -1: not known */
} sm_trace_device;

typedef struct sm_trace_file {
    const char *name, *format; /* "kineto", "xplane", ... */
    int rank;                  /* -1: not known */
    int world;                 /* ranks of the job; 0: not known */
    bool partial;              /* cut short: only what came before is here */
    size_t end;                /* bytes that were read */
} sm_trace_file;

/* An instruction in all its runs on all devices. */
typedef struct sm_trace_op {
    const char *name;
    double count, seconds;
} sm_trace_op;
typedef struct sm_trace_program {
    uint64_t id;
    const char *name;
    double runs, seconds; /* over all devices; 0: the trace does not say when it ran */
    double busy_s;        /* of its ops, those within others too */
    sm_source module;     /* its HloProto; length 0: the trace lacks it */
    int ops;
    const sm_trace_op *op; /* by name */
} sm_trace_program;

typedef struct sm_trace {
    const char *device; /* the name of the first device that has one; "" */
    int devices, streams, names, details, files, programs;
    const sm_trace_device *on; /* devices */
    const sm_trace_stream *stream;
    const char *const *name;
    const sm_trace_detail *detail;
    const sm_trace_file *file;
    const sm_trace_program *program; /* the one that ran longest first */
    int events;
    const sm_trace_event *event; /* by stream, then by start, the longest first */
    double unread;               /* events that no kind has: markers, flows, counters */
} sm_trace;

/* Is it a profile of XLA (XSpace) rather than a module? By its first fields. */
bool sm_trace_is_xplane(const sm_source *source);
/* Read a profile of XLA. Names and modules live in the arena or in the source. SM_BAD_INPUT with
 * the byte where it is damaged. */
sm_status sm_trace_parse_xplane(const sm_source *source, sm_arena *arena, const sm_trace **out,
                                sm_error *err);

SM_DECLARATIONS_END
