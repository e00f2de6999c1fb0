/* trace_build: a trace while readers fill it. Every function notes the first failure in b->status
 * and then does nothing. Private to src/trace; lent to the readers of src/io. */
#pragma once
#include "scalemodel/trace.h"

typedef struct trace_build {
    sm_arena *arena;
    sm_error *err;
    sm_status status;
    bool partial;      /* what is cut short is read up to there */
    bool began;        /* origin_ns is set */
    int64_t origin_ns; /* absolute time of the trace's 0 */
    sm_trace t;
    sm_trace_device *device;
    sm_trace_stream *stream;
    sm_trace_detail *detail;
    sm_trace_file *file;
    sm_trace_program *program;
    sm_trace_event *event; /* of sm_realloc */
    int device_room, stream_room, detail_room, file_room, program_room, event_room;
    sm_texts names;
    sm_numbers streams;
} trace_build;

/* Begin a trace whose lists live in the arena. */
void trace_begin(trace_build *b, sm_arena *arena, sm_error *err);
/* A file was read to its end, or (bad) to where it is damaged, which is an error unless the build
 * takes parts of files. what: "trace". */
void trace_file_end(trace_build *b, int file, const sm_source *source, const unsigned char *bad,
                    const char *what);
/* Release what is not the arena's; after trace_end too. */
void trace_drop(trace_build *b);
/* Sort, join events to their causes, collect programs. */
sm_status trace_end(trace_build *b, const sm_trace **out);

/* Of the lists: the number of an element, made where it is new; -1 on failure. */
int32_t trace_name(trace_build *b, const char *text, size_t length);
int trace_file(trace_build *b, const char *name, const char *format);
int trace_device(trace_build *b, int file, int ordinal);
int trace_stream(trace_build *b, int device, int64_t process, int64_t thread);
int32_t trace_program(trace_build *b, uint64_t id);
/* A new event, all 0 but its numbers, which are -1; NULL on failure. Until trace_end the cause is
 * the framework's number of the op that an event belongs to, and the correlation of an op is its
 * own. */
sm_trace_event *trace_event(trace_build *b);
/* The detail of an event, made where it has none; NULL on failure. */
sm_trace_detail *trace_detail(trace_build *b, sm_trace_event *e);
/* The time of ns nanoseconds and ps picoseconds since the epoch of the file. */
int64_t trace_time(trace_build *b, int64_t ns, int64_t ps);

/* Work of the host's ops as that of a device, where nothing ran on one; events are sorted. False on
 * failure. */
bool trace_add_host_work(trace_build *b);

/* ---- readers: each adds a file ---- */
sm_status trace_read_xplane(trace_build *b, const sm_source *source);
bool trace_is_perfetto(const sm_source *source);
sm_status trace_read_perfetto(trace_build *b, const sm_source *source);
/* Chrome's trace format: Kineto, JAX. */
sm_status trace_read_chrome(trace_build *b, const sm_bytes *bytes);

/* ---- what names tell ---- */
/* A GPU kernel or copy by its name: collectives of NCCL, RCCL and their like; copies. */
sm_trace_kind trace_kernel_kind(const char *name);
/* An instruction of XLA by its name or its opcode: "all-reduce-start.3", "while.5". */
sm_trace_kind trace_instruction_kind(const char *name, size_t length);
/* "ProfilerStep#12" */
bool trace_is_step(const char *name);
/* The word is in lower case, the text in any. */
bool trace_begins(const char *text, size_t length, const char *word);
