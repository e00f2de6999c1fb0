/* An index of shards, as Hugging Face has it: {"metadata":{"total_size":..},"weight_map":{TENSOR:
 * FILE, ..}}. Ours says in its metadata, which others pass over, the steps made and the checksum of
 * each file's header ("headers"), so that files of two checkpoints are not taken for one. */

#include "safetensors_front.h"
#include "json_tree.h"
#include "scalemodel/json.h"
#include "scalemodel/page.h"

bool is_plain_name(const char *name) {
    return *name && *name != '.' && strlen(name) < 256 && !strpbrk(name, "/\\\n");
}

/* ---- reading ---- */

/* place: in weight_map, the name of a tensor and of the file that holds it. */
static sm_status new_shard(const json_value *place, const json_value *headers,
                           sm_shard_index *out) {
    sm_shard *s = &out->shard[out->shards++];
    const json_document *in = place->in;
    const json_value *sum = json_get(headers, place->text);
    if (!is_plain_name(place->text))
        return sm_fail(in->err, SM_BAD_INPUT, "%.200s places %.100s outside its folder, in %.100s",
                       in->source->name, place->key, place->text);
    const char *digits = json_text(sum);
    if (sum && (!digits || strlen(digits) != 8 || strspn(digits, "0123456789abcdef") != 8))
        return sm_fail(in->err, SM_BAD_INPUT, "%.200s gives no checksum of eight digits for %.100s",
                       in->source->name, place->text);
    s->checked = sum != NULL;
    if (sum) s->checksum = (uint32_t)strtoul(digits, NULL, 16);
    s->name = place->text;
    return SM_OK;
}

static sm_status read_place(const json_value *place, const json_value *headers,
                            sm_shard_index *out) {
    sm_shard_place *p = &out->place[out->n++];
    if (place->kind != IS_TEXT)
        return sm_fail(place->in->err, SM_BAD_INPUT, "%.200s names no file for %.100s",
                       place->in->source->name, place->key);
    p->name = place->key;
    while (p->shard < out->shards && strcmp(out->shard[p->shard].name, place->text) != 0)
        p->shard++;
    return p->shard < out->shards ? SM_OK : new_shard(place, headers, out);
}

sm_status sm_io_shard_index_parse(const sm_source *source, sm_arena *arena, sm_shard_index *out,
                                  sm_error *err) {
    const json_document document = {.source = source, .arena = arena, .err = err};
    const json_value *root;
    *out = (sm_shard_index){.n = 0};
    sm_status status = json_parse(&document, &root);
    if (status) return status;
    const json_value *map = json_get(root, "weight_map");
    const json_value *bytes = json_find(root, "metadata.total_size");
    const char *steps = json_text(json_find(root, "metadata.steps"));
    if (!json_is(map, IS_OBJECT) || map->n == 0)
        return sm_fail(err, SM_BAD_INPUT, "%.200s is no index of shards: it has no weight_map",
                       source->name);
    out->steps = steps ? strtoull(steps, NULL, 10) : 0;
    out->bytes = json_is(bytes, IS_NUMBER) && bytes->whole && bytes->integer > 0
                     ? (uint64_t)bytes->integer
                     : 0;
    out->shard = sm_arena_array(arena, map->n, sizeof *out->shard);
    out->place = sm_arena_array(arena, map->n, sizeof *out->place);
    if (!out->shard || !out->place) return sm_fail_memory(err);
    for (uint32_t i = 0; !status && i < map->n; i++)
        status = read_place(&map->item[i], json_find(root, "metadata.headers"), out);
    if (!status) qsort(out->place, out->n, sizeof *out->place, sm_compare_texts);
    return status;
}

/* ---- writing ---- */

sm_status sm_io_shard_index_write(const char *path, const sm_shard_index *index, sm_error *err) {
    char *text;
    size_t length;
    sm_report *r = sm_report_new();
    if (!r) return sm_fail_memory(err);
    sm_data *metadata = sm_put_object(r, r->data, "metadata");
    sm_data *map = sm_put_object(r, r->data, "weight_map");
    sm_put(r, metadata, "total_size|steps", (double)index->bytes,
           sm_textf(r, "%llu", (unsigned long long)index->steps));
    sm_data *headers = sm_put_object(r, metadata, "headers");
    for (size_t i = 0; i < index->shards; i++)
        sm_put(r, headers, index->shard[i].name,
               sm_textf(r, "%08lx", (unsigned long)index->shard[i].checksum));
    for (size_t i = 0; i < index->n; i++)
        sm_put(r, map, index->place[i].name, index->shard[index->place[i].shard].name);
    sm_status status = r->out_of_memory
                           ? sm_fail_memory(err)
                           : sm_json_format(r->data, SM_JSON_PAGE, r->arena, &text, &length, err);
    if (!status) status = sm_io_write(path, text, length, err);
    sm_report_free(r);
    return status;
}
