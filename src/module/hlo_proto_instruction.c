/* Instructions, shapes and groups of devices of a protobuf. */

#include "hlo_proto.h"

/* ---- shapes ---- */

enum { DEEPEST = 64, MOST_RANK = 32 };

static bool read_shape(proto_reader *r, wire w, int depth, sm_module_shape *shape);

static sm_module_element element_of(int64_t number) {
    static const struct {
        int number;
        sm_module_element element;
    } elements[] = {
#define X(id, name, number, bits) {number, SM_HLO_##id},
        SM_MODULE_ELEMENTS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (elements[i].number == number) return elements[i].element;
    return SM_HLO_OPAQUE;
}

static bool read_layout(proto_reader *r, wire w, sm_module_shape *shape) {
    wire sizes;
    shape->memory = (int)(wire_value(w, 8, 0) & 255);
    shape->element_bits = (int)(wire_value(w, 7, 0) & 127);
    if (!proto_numbers(r, w, 1, &shape->minor)) return false;
    if (shape->minor.n != shape->dim.n) shape->minor = (sm_module_list){0};
    for (int i = 0; i < shape->minor.n; i++)
        if (shape->minor.at[i] < 0 || shape->minor.at[i] >= shape->dim.n)
            return proto_fail(r, "a layout orders dimensions that an array lacks");
    while (shape->tiles < SM_MODULE_TILES && wire_each(&w, 6, &sizes)) {
        sm_module_list *tile = &shape->tile[shape->tiles++];
        if (!proto_numbers(r, sizes, 1, tile)) return false;
        for (int i = 0; i < tile->n; i++) /* INT64_MIN joins a dimension with the next */
            if (tile->at[i] < 1) *tile = (sm_module_list){0};
    }
    return true;
}

static bool read_parts(proto_reader *r, wire w, int depth, sm_module_shape *shape) {
    size_t n = wire_count(w, 4);
    if (depth > DEEPEST) return proto_fail(r, "tuples within tuples are too deep");
    sm_module_shape *part = proto_array(r, n, sizeof *part);
    if (!part) return false;
    shape->part = part;
    for (wire one; wire_each(&w, 4, &one);)
        if (!read_shape(r, one, depth + 1, &part[shape->parts++])) return false;
    return true;
}

static bool read_shape(proto_reader *r, wire w, int depth, sm_module_shape *shape) {
    wire layout;
    shape->element = element_of(wire_value(w, 2, 0));
    if (shape->element == SM_HLO_TUPLE) return read_parts(r, w, depth, shape);
    if (!proto_numbers(r, w, 3, &shape->dim)) return false;
    if (shape->dim.n > MOST_RANK) return proto_fail(r, "an array has too many dimensions");
    for (int i = 0; i < shape->dim.n; i++)
        if (shape->dim.at[i] < 0) return proto_fail(r, "an array has a size below 0");
    return !wire_has(w, 5, &layout) || read_layout(r, layout, shape);
}

/* ---- groups of devices ---- */

static bool keep_groups(proto_reader *r, sm_module_groups *g) {
    r->members += (int64_t)g->n * g->size;
    if (r->members > MODULE_MOST_MEMBERS) return proto_fail(r, "groups name too many devices");
    for (int i = 0; g->member && i < g->n * g->size; i++)
        if (g->member[i] > r->largest_device) r->largest_device = g->member[i];
    return true;
}

static bool made(proto_reader *r, module_groups_made how, sm_module_groups *g) {
    if (how == MODULE_GROUPS_NO_MEMORY) return proto_no_memory(r);
    if (how == MODULE_GROUPS_WRONG) return proto_fail(r, "groups do not divide the devices");
    if (how == MODULE_GROUPS_PART) return proto_fail(r, "a part of an axis does not divide it");
    if (how == MODULE_GROUPS_TWICE) return proto_fail(r, "groups name an axis twice");
    return keep_groups(r, g);
}

/* Messages of number `number`, each with its members under `members`: all of one size. */
static bool listed(proto_reader *r, wire w, int number, int members, sm_module_groups *g) {
    size_t n = wire_count(w, number), at = 0;
    sm_module_list one;
    wire group;
    int32_t *list = NULL;
    for (size_t i = 0; wire_each(&w, number, &group);) {
        if (!proto_numbers(r, group, members, &one)) return false;
        if (i++ == 0) {
            g->size = one.n;
            if (n * (size_t)one.n > PROTO_MOST_NUMBERS) return proto_fail(r, "too many devices");
            if (!(list = proto_array(r, n * (size_t)one.n, sizeof *list))) return false;
        }
        if (one.n != g->size) return proto_fail(r, "groups of different sizes");
        for (int k = 0; k < one.n; k++) {
            if (one.at[k] < 0 || one.at[k] >= 1 << 20) return proto_fail(r, "a device below 0");
            list[at++] = (int32_t)one.at[k];
        }
        g->n = (int)i;
    }
    g->member = list;
    if (g->size == 0) *g = (sm_module_groups){0};
    return keep_groups(r, g);
}

static bool iota(proto_reader *r, wire w, sm_module_groups *g) {
    sm_module_list sizes, order;
    if (!proto_numbers(r, w, 3, &sizes) || !proto_numbers(r, w, 4, &order)) return false;
    return made(r, module_groups_of_order(r->arena, sizes, order, wire_value(w, 2, 1), g), g);
}

static bool of_mesh(proto_reader *r, wire w, sm_module_groups *g) {
    int64_t size[MODULE_MOST_AXES];
    module_part part[MODULE_MOST_AXES];
    int axes = 0, parts = 0;
    wire mesh = {0}, one, sub;
    sm_module_list devices;
    if (!wire_has(w, 1, &mesh) || wire_count(mesh, 1) > MODULE_MOST_AXES ||
        wire_count(w, 2) > MODULE_MOST_AXES)
        return proto_fail(r, "a mesh of groups cannot be read");
    if (!proto_numbers(r, mesh, 2, &devices)) return false;
    while (wire_each(&mesh, 1, &one)) size[axes++] = wire_value(one, 2, 1);
    while (wire_each(&w, 2, &one)) {
        int64_t axis = wire_value(one, 1, 0);
        if (axis < 0 || axis >= axes) return proto_fail(r, "groups name no axis of their mesh");
        part[parts] = (module_part){axis, 1, size[axis]};
        if (wire_has(one, 2, &sub))
            part[parts] = (module_part){axis, wire_value(sub, 1, 1), wire_value(sub, 2, 1)};
        parts++;
    }
    return made(
        r, module_groups_of_mesh(r->arena, (sm_module_list){axes, size}, part, parts, devices, g),
        g);
}

static bool proto_groups(proto_reader *r, wire w, sm_instruction *it) {
    wire inner, list;
    if (wire_has(w, 93, &inner)) return of_mesh(r, inner, &it->groups);
    if (wire_has(w, 92, &inner)) return iota(r, inner, &it->groups);
    if (wire_has(w, 87, &inner)) {
        if (wire_has(inner, 2, &list)) return iota(r, list, &it->groups);
        return listed(r, inner, 1, 1, &it->groups);
    }
    if (wire_count(w, 52) == 0) return listed(r, w, 49, 1, &it->groups);
    /* Pairs: source 1, target 2; zeros are left out. */
    size_t n = wire_count(w, 52), at = 0;
    int32_t *member = proto_array(r, 2 * n, sizeof *member);
    if (!member) return false;
    for (wire pair; wire_each(&w, 52, &pair);)
        for (int k = 1; k <= 2; k++) {
            int64_t device = wire_value(pair, k, 0);
            if (device < 0 || device >= 1 << 20) return proto_fail(r, "a device below 0");
            member[at++] = (int32_t)device;
        }
    it->groups = (sm_module_groups){(int)(at / 2), 2, member};
    return keep_groups(r, &it->groups);
}

/* ---- convolutions ---- */

static void put_label(char *labels, size_t room, int64_t at, char letter) {
    if (at >= 0 && at < (int64_t)room) labels[at] = letter;
}

/* "b01f" of one array: its batch or input feature, its feature, its spatial dimensions. */
static bool labels_of(proto_reader *r, wire w, const int number[3], const char letters[2],
                      char *out) {
    sm_module_list spatial;
    if (!proto_numbers(r, w, number[2], &spatial)) return false;
    if (spatial.n > MOST_RANK - 2) return proto_fail(r, "a convolution has too many dimensions");
    size_t room = (size_t)spatial.n + 2;
    memset(out, '?', room);
    put_label(out, room, wire_value(w, number[0], 0), letters[0]);
    put_label(out, room, wire_value(w, number[1], 0), letters[1]);
    for (int i = 0; i < spatial.n; i++) put_label(out, room, spatial.at[i], (char)('0' + i));
    out[room] = '\0';
    return true;
}

static bool read_labels(proto_reader *r, wire w, sm_module_convolution *c) {
    static const int input[] = {7, 8, 11}, kernel[] = {3, 4, 6}, result[] = {9, 10, 12};
    char a[MOST_RANK + 1], b[MOST_RANK + 1], d[MOST_RANK + 1];
    if (!labels_of(r, w, input, "bf", a) || !labels_of(r, w, kernel, "io", b) ||
        !labels_of(r, w, result, "bf", d))
        return false;
    c->labels = sm_arena_printf(r->arena, "%s_%s->%s", a, b, d);
    return c->labels || proto_no_memory(r);
}

/* One number of each dimension of a window. */
static bool window_list(proto_reader *r, wire w, int number, int64_t otherwise,
                        sm_module_list *out) {
    size_t n = wire_count(w, 1), i = 0;
    int64_t *list = proto_array(r, n, sizeof *list);
    if (!list) return false;
    for (wire one; wire_each(&w, 1, &one);) list[i++] = wire_value(one, number, otherwise);
    *out = (sm_module_list){(int)i, list};
    return true;
}

static bool read_window(proto_reader *r, wire w, sm_instruction *it) {
    wire window, numbers;
    bool has_window = wire_has(w, 15, &window), has_labels = wire_has(w, 16, &numbers);
    if (!has_window && !has_labels) return true;
    sm_module_convolution *c = proto_array(r, 1, sizeof *c);
    if (!c) return false;
    it->convolution = c;
    c->labels = "";
    c->features = wire_value(w, 50, 1);
    c->batches = wire_value(w, 61, 1);
    if (c->features < 1 || c->batches < 1) return proto_fail(r, "a convolution of no groups");
    if (has_labels && !read_labels(r, numbers, c)) return false;
    if (!has_window) return true;
    return window_list(r, window, 1, 1, &c->window) && window_list(r, window, 2, 1, &c->stride) &&
           window_list(r, window, 3, 0, &c->pad_low) &&
           window_list(r, window, 4, 0, &c->pad_high) &&
           window_list(r, window, 5, 1, &c->dilated_window) &&
           window_list(r, window, 6, 1, &c->dilated_base);
}

/* ---- the rest of an instruction ---- */

/* The value of a constant of one whole number. */
static void read_literal(wire w, sm_instruction *it) {
    wire literal;
    wire_field f;
    if (it->opcode != SM_OPCODE_CONSTANT || !wire_has(w, 8, &literal)) return;
    while (wire_next(&literal, &f))
        if (f.number >= 4 && f.number <= 7 && it->shape->dim.n == 0)
            it->known = wire_number(&f, &it->number);
}

static void read_metadata(proto_reader *r, wire w, sm_instruction *it) {
    wire metadata, text;
    if (!wire_has(w, 7, &metadata)) return;
    if (wire_has(metadata, 2, &text)) it->op_name = proto_text(r, text);
    if (wire_has(metadata, 3, &text)) it->file = proto_text(r, text);
    it->file_line = (int)(wire_value(metadata, 4, 0) & INT32_MAX);
    module_place(&r->frames, wire_value(metadata, 15, 0), &it->file, &it->file_line);
}

static bool read_ids(proto_reader *r, wire w, int number, const module_names *names, int *n,
                     const int **out) {
    sm_module_list ids;
    if (!proto_numbers(r, w, number, &ids)) return false;
    int *list = proto_array(r, (size_t)ids.n, sizeof *list);
    if (!list) return false;
    for (int i = 0; i < ids.n; i++)
        if ((list[i] = proto_find(names, ids.at[i])) < 0)
            return proto_fail(r, "an instruction names what the module lacks");
    *n = ids.n;
    *out = list;
    return true;
}

static bool read_calls(proto_reader *r, wire w, sm_instruction *it) {
    if (!read_ids(r, w, 38, &r->computations, &it->calls, &it->call)) return false;
    if (it->opcode != SM_OPCODE_WHILE || it->calls != 2) return true;
    int *call = (int *)(uintptr_t)it->call, body = call[0]; /* the body comes first there */
    call[0] = call[1];
    call[1] = body;
    return true;
}

static bool read_dot(proto_reader *r, wire w, sm_instruction *it) {
    wire numbers;
    if (!wire_has(w, 30, &numbers)) return true;
    return proto_numbers(r, numbers, 1, &it->lhs_contracting) &&
           proto_numbers(r, numbers, 2, &it->rhs_contracting) &&
           proto_numbers(r, numbers, 3, &it->lhs_batch) &&
           proto_numbers(r, numbers, 4, &it->rhs_batch);
}

static bool read_texts(proto_reader *r, wire w, sm_instruction *it) {
    wire text;
    if (wire_has(w, 1, &text)) it->name = proto_text(r, text);
    if (wire_has(w, 28, &text)) it->target = proto_text(r, text);
    else if (wire_has(w, 11, &text)) it->target = proto_text(r, text);
    if (it->opcode == SM_OPCODE_WHILE && wire_has(w, 43, &text))
        it->trips = module_number_after((const char *)text.at, (size_t)(text.end - text.at),
                                        "known_trip_count");
    if (it->opcode == SM_OPCODE_CUSTOM_CALL && wire_has(w, 43, &text) &&
        !module_config(r->arena, (const char *)text.at, (size_t)(text.end - text.at), it))
        return proto_no_memory(r);
    return true;
}

bool proto_instruction(proto_reader *r, wire w, sm_instruction *it) {
    wire text, shape;
    sm_module_shape *kept = proto_array(r, 1, sizeof *kept);
    *it = (sm_instruction){
        .op_name = "", .file = "", .target = "", .name = "", .trips = -1, .shape = kept};
    if (!kept || !wire_has(w, 2, &text) || !wire_has(w, 3, &shape))
        return proto_fail(r, "an instruction has no opcode or no shape");
    it->opcode = module_opcode_of((const char *)text.at, (size_t)(text.end - text.at));
    it->opcode_name =
        it->opcode == SM_OPCODE_OTHER ? proto_text(r, text) : sm_module_opcode_name(it->opcode);
    if (!read_shape(r, shape, 0, kept)) return false;
    if (wire_has(w, 63, &text))
        it->direction = module_direction_of((const char *)text.at, (size_t)(text.end - text.at));
    read_literal(w, it);
    read_metadata(r, w, it);
    if (it->opcode == SM_OPCODE_PARAMETER) it->number = wire_value(w, 9, 0);
    if (it->opcode == SM_OPCODE_GET_TUPLE_ELEMENT) it->number = wire_value(w, 13, 0);
    it->channel = wire_value(w, 26, 0);
    return proto_numbers(r, w, 14, &it->dimensions) && read_dot(r, w, it) && read_texts(r, w, it) &&
           read_window(r, w, it) && proto_groups(r, w, it) &&
           proto_aliases(r, w, 74, &it->in_place) && read_calls(r, w, it) &&
           read_ids(r, w, 36, &r->instructions, &it->operands, &it->operand) && !r->status;
}
