/* A module as protobuf: HloModuleProto, or HloProto, which holds one. Field numbers are those of
 * XLA's hlo.proto and xla_data.proto. */

#include "hlo_proto.h"

bool proto_fail(proto_reader *r, const char *sentence) {
    if (!r->status) r->status = sm_fail(r->err, SM_BAD_INPUT, "%s: %s", r->source->name, sentence);
    return false;
}

bool proto_no_memory(proto_reader *r) {
    if (!r->status) r->status = sm_fail_memory(r->err);
    return false;
}

void *proto_array(proto_reader *r, size_t n, size_t bytes) {
    void *array = sm_arena_array(r->arena, n + 1, bytes);
    if (!array) proto_no_memory(r);
    return array;
}

const char *proto_text(proto_reader *r, wire w) {
    const char *copy = sm_arena_copy(r->arena, (const char *)w.at, (size_t)(w.end - w.at));
    if (!copy) proto_no_memory(r);
    return copy ? copy : "";
}

/* A field may hold all its numbers, or stand once for each. */
static size_t count_numbers(wire w, int number) {
    wire_field f;
    int64_t value;
    size_t n = 0;
    while (wire_next(&w, &f))
        if (f.number == number)
            while (wire_number(&f, &value)) n++;
    return n;
}

bool proto_numbers(proto_reader *r, wire w, int number, sm_module_list *out) {
    size_t n = count_numbers(w, number), at = 0;
    *out = (sm_module_list){0};
    if (n == 0) return true;
    if (n > PROTO_MOST_NUMBERS) return proto_fail(r, "a list is too long");
    int64_t *list = proto_array(r, n, sizeof *list);
    if (!list) return false;
    wire_field f;
    while (wire_next(&w, &f))
        if (f.number == number)
            while (at < n && wire_number(&f, &list[at])) at++;
    *out = (sm_module_list){(int)n, list};
    return true;
}

/* ---- computations ---- */

/* The text of a key that stays: module_names keeps it. */
static bool remember(proto_reader *r, module_names *names, int64_t id, int number) {
    int64_t *key = proto_array(r, 1, sizeof *key);
    if (!key) return false;
    *key = id;
    return module_names_set(names, (const char *)key, sizeof *key, number) || proto_no_memory(r);
}

int proto_find(const module_names *names, int64_t id) {
    return module_names_find(names, (const char *)&id, sizeof id);
}

/* The ids of a computation's instructions in the order of the schedule; n 0: it has none. */
static bool schedule_of(proto_reader *r, int64_t computation, sm_module_list *out) {
    *out = (sm_module_list){0};
    for (wire w = r->schedule, entry, sequence; wire_each(&w, 1, &entry);)
        if (wire_value(entry, 1, 0) == computation)
            return !wire_has(entry, 2, &sequence) || proto_numbers(r, sequence, 1, out);
    return true;
}

/* Numbers by the schedule where it has them all, otherwise in the order of the message. */
static bool number_instructions(proto_reader *r, wire w, sm_computation *c,
                                sm_module_list schedule) {
    bool scheduled = schedule.n == c->n;
    wire instruction;
    int n = 0;
    module_names_free(&r->instructions);
    for (int i = 0; scheduled && i < schedule.n; i++)
        if (!remember(r, &r->instructions, schedule.at[i], i)) return false;
    while (wire_each(&w, 2, &instruction)) {
        int64_t id = wire_value(instruction, 35, 0);
        if (scheduled ? proto_find(&r->instructions, id) < 0
                      : !remember(r, &r->instructions, id, n++))
            return proto_fail(r, "a schedule names other instructions than its computation has");
    }
    return true;
}

static bool read_computation(proto_reader *r, wire w, sm_computation *c) {
    sm_module_list schedule;
    size_t n = wire_count(w, 2);
    wire all = w, part;
    if (n == 0 || n > PROTO_MOST_NUMBERS) return proto_fail(r, "a computation has no instruction");
    sm_instruction *list = proto_array(r, n, sizeof *list);
    c->n = (int)n;
    c->instruction = list;
    c->name = "";
    if (!list || !schedule_of(r, wire_value(w, 5, 0), &schedule) ||
        !number_instructions(r, w, c, schedule))
        return false;
    r->module.scheduled = r->module.scheduled || schedule.n > 0;
    if (wire_has(w, 1, &part)) c->name = proto_text(r, part);
    while (wire_each(&w, 2, &part)) {
        int at = proto_find(&r->instructions, wire_value(part, 35, 0));
        if (!proto_instruction(r, part, &list[at])) return false;
    }
    c->root = proto_find(&r->instructions, wire_value(all, 6, 0));
    if (c->root < 0) c->root = c->n - 1;
    for (int i = 0; i < c->n; i++) {
        if (!c->instruction[i].shape) return proto_fail(r, "an instruction stands twice");
        for (int o = 0; o < c->instruction[i].operands; o++)
            if (c->instruction[i].operand[o] >= i)
                return proto_fail(r, "an instruction stands before its operands");
    }
    return true;
}

static bool read_computations(proto_reader *r, wire w) {
    size_t n = wire_count(w, 3), i = 0;
    if (n == 0 || n > PROTO_MOST_NUMBERS) return proto_fail(r, "the module has no computation");
    sm_computation *list = proto_array(r, n, sizeof *list);
    if (!list) return false;
    for (wire all = w, one; wire_each(&all, 3, &one);)
        if (!remember(r, &r->computations, wire_value(one, 5, 0), (int)i++)) return false;
    i = 0;
    for (wire all = w, one; wire_each(&all, 3, &one);)
        if (!read_computation(r, one, &list[i++])) return false;
    r->module.computations = (int)i;
    r->module.computation = list;
    r->module.entry = proto_find(&r->computations, wire_value(w, 6, 0));
    return (i > 0 && r->module.entry >= 0) || proto_fail(r, "the module has no entry");
}

/* ---- the module ---- */

bool proto_aliases(proto_reader *r, wire w, int number, sm_module_list *out) {
    size_t n = wire_count(w, number), i = 0;
    wire alias;
    sm_module_list path;
    if (n == 0) return true;
    int64_t *list = proto_array(r, n, sizeof *list);
    if (!list) return false;
    while (wire_each(&w, number, &alias)) {
        if (!proto_numbers(r, alias, 1, &path)) return false;
        list[i++] = path.n ? path.at[0] : -1;
    }
    *out = (sm_module_list){(int)i, list};
    return true;
}

/* Rows of one table, each {file or location = 1, line = 3}, or the name of a file itself. */
static bool read_table(proto_reader *r, wire index, int number, module_table table) {
    size_t n = wire_count(index, number), i = 0;
    module_row *row = proto_array(r, n, sizeof *row);
    if (!row) return false;
    for (wire one; wire_each(&index, number, &one); i++)
        if (table == MODULE_FILES) row[i].text = proto_text(r, one);
        else row[i] = (module_row){wire_value(one, 1, 0), wire_value(one, 3, 0), ""};
    r->frames.row[table] = row;
    r->frames.n[table] = i;
    return true;
}

static bool read_frames(proto_reader *r, wire w) {
    wire index;
    return !wire_has(w, 17, &index) ||
           (read_table(r, index, 1, MODULE_FILES) && read_table(r, index, 3, MODULE_LOCATIONS) &&
            read_table(r, index, 4, MODULE_FRAMES));
}

static bool read_module(proto_reader *r, wire w) {
    wire name = {0}, aliases;
    if (!read_frames(r, w)) return false;
    wire_has(w, 7, &r->schedule);
    r->module.name = wire_has(w, 1, &name) ? proto_text(r, name) : "module";
    if (wire_has(w, 8, &aliases) && !proto_aliases(r, aliases, 1, &r->module.in_place))
        return false;
    if (!read_computations(r, w)) return false;
    wire assignment;
    sm_module *m = &r->module;
    m->replicas = m->partitions = 1;
    if (wire_has(w, 15, &assignment)) {
        int64_t replicas = wire_value(assignment, 1, 1), partitions = wire_value(assignment, 2, 1);
        if (replicas > 0 && replicas < PROTO_MOST_NUMBERS) m->replicas = (int)replicas;
        if (partitions > 0 && partitions < PROTO_MOST_NUMBERS / m->replicas)
            m->partitions = (int)partitions;
    }
    m->devices = m->replicas * m->partitions;
    if (r->largest_device >= m->devices) m->devices = r->largest_device + 1;
    return !r->status;
}

/* BufferAssignmentProto: allocations = 3, each {size = 2, of one thread = 3, argument = 5, result =
 * 7, memory space = 8, constant = 12}. */
static void read_assignment(wire w, sm_module_assigned *out) {
    for (wire one; wire_each(&w, 3, &one);) {
        double bytes = (double)wire_value(one, 2, 0);
        bool elsewhere = wire_value(one, 3, 0) || wire_value(one, 8, 0);
        out->known = true;
        if (elsewhere || wire_value(one, 12, 0) || !(bytes > 0)) continue;
        if (wire_value(one, 5, 0)) out->argument_bytes += bytes;
        else if (wire_value(one, 7, 0)) out->result_bytes += bytes;
        else out->temporary_bytes += bytes;
    }
}

/* Its allocations, field 3, have a size where a computation has an instruction. */
static bool is_assignment(wire w) {
    wire first;
    wire_field f;
    if (!wire_has(w, 3, &first)) return false;
    while (wire_next(&first, &f))
        if (f.number == 2) return !f.is_bytes;
    return false;
}

/* HloProto holds the module as its field 1, where the module itself has its name. */
static bool is_module(wire w) {
    wire inner;
    return wire_count(w, 3) > 0 && wire_count(w, 2) > 0 && wire_has(w, 2, &inner);
}

sm_status hlo_proto_parse(const sm_source *source, sm_arena *arena, sm_module *out, sm_error *err) {
    const unsigned char *begin = (const unsigned char *)source->text, *bad = NULL;
    proto_reader r = {.source = source, .arena = arena, .err = err};
    wire w = {begin, begin + source->length, &bad}, inner;
    r.schedule = (wire){begin, begin, &bad};
    if (is_assignment(w)) {
        proto_fail(&r, "a buffer assignment without its module: give the HloProto that XLA dumps "
                       "(--xla_dump_hlo_as_proto), which has both");
    } else if (!is_module(w) && wire_has(w, 1, &inner)) {
        wire assignment;
        if (wire_has(w, 3, &assignment)) read_assignment(assignment, &r.module.assigned);
        w = inner;
    }
    if (r.status) return r.status;
    if (is_module(w)) read_module(&r, w);
    else proto_fail(&r, "no HLO: neither text that begins with \"HloModule NAME\" nor a protobuf");
    if (!r.status && bad)
        r.status =
            sm_fail(err, SM_BAD_INPUT, "%s: the protobuf is damaged or cut short at byte %zu",
                    source->name, (size_t)(bad - begin));
    module_names_free(&r.instructions);
    module_names_free(&r.computations);
    *out = r.module;
    return r.status;
}
