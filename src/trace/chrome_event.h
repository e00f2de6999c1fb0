/* chrome_event: one event of Chrome's trace format as it is written. Private to src/trace. */
#pragma once
#include "json_lexer.h"
#include "trace_build.h"

typedef enum chrome_category {
    CHROME_NONE, /* JAX writes none */
    CHROME_KERNEL,
    CHROME_COPY,
    CHROME_SYNC,
    CHROME_DEVICE_MARK,
    CHROME_LAUNCH,
    CHROME_OP,
    CHROME_MARK,
    CHROME_PYTHON,
    CHROME_PASSED, /* flows, overhead of the profiler, the profiler's own span */
    CHROME_UNKNOWN
} chrome_category;

/* Numbers of args; what is not there is `absent`. */
typedef enum chrome_number {
    CHROME_EXTERNAL,
    CHROME_CORRELATION,
    CHROME_DEVICE,
    CHROME_STREAM,
    CHROME_BYTES,
    CHROME_FLOPS,
    CHROME_IN,
    CHROME_OUT,
    CHROME_GROUP,
    CHROME_ORDINAL,
    CHROME_STEP,
    CHROME_NUMBERS
} chrome_number;
/* Texts of args, as names of the trace; -1: absent. */
typedef enum chrome_text {
    CHROME_NAME, /* of a process or thread */
    CHROME_HLO_OP,
    CHROME_HLO_MODULE,
    CHROME_COLLECTIVE,
    CHROME_DTYPE,
    CHROME_GROUP_NAME,
    CHROME_SHAPES,
    CHROME_TYPES,
    CHROME_VALUES, /* of attention alone */
    CHROME_TEXTS
} chrome_text;

typedef struct chrome_event {
    char phase;
    chrome_category category;
    int32_t name;
    int64_t process, thread;
    int64_t start_ns, start_ps; /* ps beyond whole ns */
    int64_t duration_ps;
    bool timed;
    int64_t number[CHROME_NUMBERS];
    bool has[CHROME_NUMBERS];
    int32_t text[CHROME_TEXTS];
} chrome_event;

/* Nothing yet. */
void chrome_event_clear(chrome_event *e);
/* The category that a profiler writes, "cpu_op". */
chrome_category chrome_category_of(const char *text, size_t length);
/* Which of the args a key is, or -1: numbers from 0, texts from CHROME_NUMBERS on. */
int chrome_arg_of(const char *key, size_t length);

/* Events of a file as they come, from any reader that has them. */
typedef struct chrome_device {
    int64_t id;
    int32_t name;
} chrome_device;
typedef struct chrome_events {
    trace_build *b;
    int file, first_event, first_stream;
    sm_numbers names; /* of processes and threads */
    chrome_device *device;
    int devices, device_room;
    bool kineto;   /* categories of Kineto were seen */
    int32_t *open; /* of each stream: the event begun and not ended, -1 */
    int opens, open_room;
} chrome_events;
/* Begin a file; failures are noted in b->status. */
void chrome_begin(chrome_events *c, trace_build *b, const char *name, const char *format);
/* Take an event: phases X, B and E, and M of names; others are counted. */
void chrome_take(chrome_events *c, const chrome_event *in);
/* What processes and threads are called. name: of the trace. */
void chrome_name(chrome_events *c, bool is_thread, int64_t process, int64_t thread, int32_t name);
/* Once all is read: streams get their names and devices, events their kinds. */
void chrome_end(chrome_events *c);

/* Read an event from behind its opening brace. */
bool chrome_event_read(json_lexer *l, trace_build *b, chrome_event *e);
/* A whole number as it is written, or within quotes, or the digits at the end of a text. */
int64_t chrome_whole(const json_raw *raw);
/* Is the key this word? */
bool chrome_is(const json_raw *key, const char *word);
