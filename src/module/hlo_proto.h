/* hlo_proto: a module as protobuf while it is read. Private to src/module. */
#pragma once
#include "module_parts.h"
#include "wire.h"

enum { PROTO_MOST_NUMBERS = 1 << 24 };

typedef struct proto_reader {
    const sm_source *source;
    sm_arena *arena;
    sm_error *err;
    sm_status status;
    sm_module module;
    wire schedule;
    module_frames frames;
    module_names computations, instructions; /* by id */
    int largest_device;
    int64_t members; /* of the module's groups so far */
} proto_reader;

/* The first error. False. */
bool proto_fail(proto_reader *r, const char *sentence);
bool proto_no_memory(proto_reader *r);
/* Room for n elements, at least one. */
void *proto_array(proto_reader *r, size_t n, size_t bytes);
const char *proto_text(proto_reader *r, wire w);
/* All numbers of fields of this number. */
bool proto_numbers(proto_reader *r, wire w, int number, sm_module_list *out);
/* Results that lie in arguments or operands: of each field of this number, an entry with the path
 * of the result, the first step of that path; -1: all of it. */
bool proto_aliases(proto_reader *r, wire w, int number, sm_module_list *out);
/* The number of an id, -1 if absent. */
int proto_find(const module_names *names, int64_t id);

bool proto_instruction(proto_reader *r, wire w, sm_instruction *it);

sm_status hlo_proto_parse(const sm_source *source, sm_arena *arena, sm_module *out, sm_error *err);
