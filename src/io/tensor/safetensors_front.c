/* The front of a safetensors file: eight bytes with the length of a JSON header, little-endian; the
 * header, which gives each tensor's dtype, shape and place; then the data
 * (github.com/huggingface/safetensors, "Format"). Written in single precision; the machine is
 * little-endian as the file is. Its metadata, which others pass over, also holds the steps made and
 * "crc32": the checksum of each tensor, in order of the data, eight hexadecimal digits each. */
#include "safetensors_front.h"

#include "json_tree.h"
#include "scalemodel/json.h"
#include "scalemodel/page.h"

enum { ALIGNMENT = 8, DIGITS = 8 };

static size_t count_of(const sm_safetensor *t) {
    size_t n = 1;
    for (int d = 0; d < t->rank; d++) n *= t->shape[d];
    return n;
}

size_t tensor_bytes(const sm_safetensor *t) { return FRONT_SINGLE_BYTES * count_of(t); }

/* ---- writing ---- */

static void put_numbers(sm_report *r, sm_data *object, const char *key, const size_t *value,
                        int n) {
    sm_data *list = sm_put_array(r, object, key);
    for (int i = 0; i < n; i++) sm_put(r, list, NULL, (double)value[i]);
}

static sm_data *header_data(size_t n, const sm_safetensor *tensor, uint64_t steps,
                            const uint32_t *checksum, sm_report *r) {
    sm_data *header = sm_data_object(r->arena);
    sm_data *metadata = sm_put_object(r, header, "__metadata__");
    char *digits = sm_report_room(r, DIGITS * n + 1, 1);
    for (size_t i = 0; digits && i < n; i++)
        snprintf(digits + DIGITS * i, DIGITS + 1, "%08lx",
                 checksum ? (unsigned long)checksum[i] : 0);
    sm_put(r, metadata, "format|steps|crc32", "pt", sm_textf(r, "%llu", (unsigned long long)steps),
           digits);
    size_t place[] = {0, 0}; /* counted from the first byte of all data */
    for (size_t i = 0; i < n && !r->out_of_memory; i++) {
        sm_data *data = sm_put_object(r, header, tensor[i].name);
        place[0] = place[1];
        place[1] += tensor_bytes(&tensor[i]);
        sm_put(r, data, "dtype", "F32");
        put_numbers(r, data, "shape", tensor[i].shape, tensor[i].rank);
        put_numbers(r, data, "data_offsets", place, 2);
    }
    return header;
}

sm_status front_write(size_t n, const sm_safetensor *tensor, uint64_t steps,
                      const uint32_t *checksum, sm_arena *arena, sm_source *front, sm_error *err) {
    char *header;
    size_t bytes = 0;
    sm_report r = {.arena = arena}; /* of which no more is used than whether memory ran out */
    const sm_data *data = header_data(n, tensor, steps, checksum, &r);
    if (r.out_of_memory) return sm_fail_memory(err);
    sm_status status = sm_json_format(data, SM_JSON_LINE, arena, &header, &bytes, err);
    if (status) return status;
    size_t aligned = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (aligned + FRONT_PREFIX_BYTES > JSON_MOST_BYTES)
        return sm_fail(err, SM_BAD_INPUT, "%zu arrays are too many for one safetensors file", n);
    size_t length = aligned + FRONT_PREFIX_BYTES;
    char *text = sm_arena_alloc(arena, length);
    if (!text) return sm_fail_memory(err);
    for (int i = 0; i < FRONT_PREFIX_BYTES; i++) text[i] = (char)(aligned >> 8 * i & 0xff);
    memset(text + FRONT_PREFIX_BYTES, ' ', aligned);
    memcpy(text + FRONT_PREFIX_BYTES, header, bytes);
    *front = (sm_source){"", text, length};
    return SM_OK;
}

/* ---- reading ---- */

sm_status front_refuse(const char *path, const char *tensor, const char *what, sm_error *err) {
    return sm_fail(err, SM_BAD_INPUT, "%.200s is no whole safetensors file: %.100s%s%s", path,
                   tensor, *tensor ? " " : "", what);
}

typedef struct reading {
    const char *path;
    uint64_t bytes; /* of the data */
    sm_safetensors *out;
    sm_error *err;
} reading;

static sm_status refuse(const reading *r, const char *name, const char *what) {
    return front_refuse(r->path, name, what, r->err);
}

static bool whole_number(const json_value *value, size_t *out) {
    if (!json_is(value, IS_NUMBER) || !value->whole || value->integer < 0) return false;
    *out = (size_t)value->integer;
    return true;
}

static bool read_shape(const json_value *list, sm_safetensor *t, uint64_t most) {
    if (!json_is(list, IS_LIST) || list->n > SM_SAFETENSOR_RANK) return false;
    size_t n = 1;
    t->rank = (int)list->n;
    for (int d = 0; d < t->rank; d++) {
        if (!whole_number(&list->item[d], &t->shape[d])) return false;
        if (t->shape[d] == 0 || n > most / t->shape[d]) return false;
        n *= t->shape[d];
    }
    return true;
}

/* Types of other names are carried along, as bytes. */
static sm_dtype type_of(const char *name, size_t *bytes) {
    static const struct {
        const char *name;
        sm_dtype type;
        size_t bytes;
    } types[] = {{"F32", SM_FP32, 4},
                 {"F16", SM_FP16, 2},
                 {"BF16", SM_BF16, 2},
                 {"F8_E4M3", SM_FP8, 1},
                 {"I8", SM_INT8, 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(name, types[i].name) == 0) {
            *bytes = types[i].bytes;
            return types[i].type;
        }
    *bytes = 0;
    return SM_DTYPE_COUNT;
}

static sm_status read_tensor(reading *r, const json_value *value, sm_safetensor *t) {
    const char *dtype = json_text(json_get(value, "dtype"));
    size_t from, to, bytes = 0;
    t->name = value->key;
    if (!dtype) return refuse(r, t->name, "has no dtype");
    t->type = type_of(dtype, &bytes);
    if (!read_shape(json_get(value, "shape"), t, r->bytes))
        return refuse(r, t->name, "has no shape that fits the file");
    if (!whole_number(json_find(value, "data_offsets[0]"), &from) ||
        !whole_number(json_find(value, "data_offsets[1]"), &to) || from > to || to > r->bytes ||
        (bytes && to - from != bytes * count_of(t)))
        return refuse(r, t->name, "does not lie inside the file");
    t->path = r->path;
    t->at = from;
    t->bytes = to - from;
    return SM_OK;
}

SM_ORDER(by_place, sm_safetensor, SM_ASCENDING(at))

/* One after the other, from the first byte of the data to the last. */
static sm_status check_places(const reading *r) {
    uint64_t end = 0;
    qsort(r->out->tensor, r->out->n, sizeof *r->out->tensor, by_place);
    for (size_t i = 0; i < r->out->n; i++) {
        const sm_safetensor *t = &r->out->tensor[i];
        if (t->at != end) return refuse(r, t->name, "does not begin where the one before it ends");
        end = t->at + t->bytes;
    }
    return end == r->bytes ? SM_OK : refuse(r, "", "bytes follow its last array");
}

void tensors_sort(sm_safetensors *file) {
    if (file->n) qsort(file->tensor, file->n, sizeof *file->tensor, sm_compare_texts);
}

static sm_status read_tensors(reading *r, const json_value *root) {
    sm_status status = SM_OK;
    sm_safetensors *out = r->out;
    const json_value *metadata = json_get(root, "__metadata__");
    const char *steps = json_text(json_get(metadata, "steps"));
    if (root->kind != IS_OBJECT) return refuse(r, "", "its header is no object");
    out->tensor = sm_arena_array(root->in->arena, root->n + 1, sizeof *out->tensor);
    if (!out->tensor) return sm_fail_memory(r->err);
    out->steps = steps ? strtoull(steps, NULL, 10) : 0;
    for (uint32_t i = 0; !status && i < root->n; i++)
        if (&root->item[i] != metadata)
            status = read_tensor(r, &root->item[i], &out->tensor[out->n++]);
    if (!status) status = check_places(r);
    /* The checksums, in the order of the data. */
    const json_value *digits = json_get(metadata, "crc32");
    const char *text = json_text(digits);
    if (!status && digits &&
        (!text || digits->n != DIGITS * out->n || strspn(text, "0123456789abcdef") != digits->n))
        status = refuse(r, "", "its checksums are not those of its arrays");
    for (size_t i = 0; !status && digits && i < out->n; i++) {
        char copy[DIGITS + 1] = "";
        memcpy(copy, text + DIGITS * i, DIGITS);
        out->tensor[i].checksum = (uint32_t)strtoul(copy, NULL, 16);
        out->tensor[i].checked = true;
    }
    if (status) out->n = 0;
    else tensors_sort(out);
    return status;
}

sm_status sm_io_safetensors_parse(const sm_source *header, uint64_t data_bytes, sm_arena *arena,
                                  sm_safetensors *out, sm_error *err) {
    const json_document document = {.source = header, .arena = arena, .err = err};
    const json_value *root;
    reading r = {header->name, data_bytes, out, err};
    *out = (sm_safetensors){.n = 0};
    sm_status status = json_parse(&document, &root);
    return status ? status : read_tensors(&r, root);
}

const sm_safetensor *sm_safetensors_find(const sm_safetensors *file, const char *name) {
    const sm_safetensor key = {.name = name};
    return file->n ? bsearch(&key, file->tensor, file->n, sizeof key, sm_compare_texts) : NULL;
}
