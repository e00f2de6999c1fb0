/* StableHLO: shardings in XLA's own form, mhlo.sharding = "{devices=[4,1,2]<=[2,4]T(1,0)
 * last_tile_dim_replicate}". No mesh is written down: it is the one on which each dimension of all
 * of them is a list of axes. */

#include "mlir_reader.h"

/* The next mhlo.sharding that cuts an array, from its brace to the quote that ends it; length 0:
 * there is none. */
static sm_span next_sharding(const sm_source *source, size_t from) {
    const char *at = source->text + from, *end = source->text + source->length, *quote;
    while ((at = module_word_after(at, end, "mhlo.sharding"))) {
        while (at < end && strchr("= ", *at)) at++;
        if (end - at < 2 || memcmp(at, "\"{", 2) != 0) continue;
        at++;
        quote = memchr(at, '"', (size_t)(end - at));
        if (quote && module_word_after(at, quote, "devices="))
            return (sm_span){(size_t)(at - source->text), (size_t)(quote - at)};
    }
    return (sm_span){0, 0};
}

/* The cuts of all shardings of the text. */
static bool find_cuts(mlir_reader *m, sm_mesh_cuts *cuts, int64_t *devices) {
    hlo_reader *r = m->r;
    *cuts = (sm_mesh_cuts){.n = 0};
    *devices = 1;
    sm_span text = next_sharding(r->source, 0);
    for (; text.length; text = next_sharding(r->source, text.offset + text.length)) {
        sm_xla_tiles tiles;
        r->status = sm_xla_tiles_read(r->source, text, 0, &tiles, r->err);
        if (r->status) return false;
        if (*devices > 1 && tiles.devices != *devices)
            return hlo_fail(r, text, "shardings over different numbers of devices");
        *devices = tiles.devices;
        sm_xla_cut(cuts, &tiles);
    }
    return true;
}

bool mlir_xla_mesh(mlir_reader *m) {
    hlo_reader *r = m->r;
    sm_mesh_cuts cuts;
    int64_t devices;
    sm_mesh mesh;
    if (!find_cuts(m, &cuts, &devices)) return false;
    if (devices == 1) return true;
    sm_mesh_of_cuts(&cuts, devices, &mesh);
    if (cuts.crossed) return hlo_fail_here(r, "the shardings cut the devices across each other");
    m->cuts = sm_arena_alloc(r->arena, sizeof *m->cuts);
    sm_module_axis *axis = sm_arena_array(r->arena, (size_t)mesh.axes, sizeof *axis);
    if (!m->cuts || !axis) return hlo_no_memory(r);
    *m->cuts = cuts;
    for (int i = 0; i < mesh.axes; i++) {
        axis[i] =
            (sm_module_axis){sm_arena_printf(r->arena, "%s", mesh.axis[i].name), mesh.axis[i].size};
        if (!axis[i].name) return hlo_no_memory(r);
    }
    r->module.axes_of_shardings = true;
    r->module.axes = mesh.axes;
    r->module.axis = axis;
    return true;
}

static bool keep_axes(mlir_reader *m, const sm_xla_tiles *tiles, int dim, sm_module_list *out) {
    hlo_reader *r = m->r;
    r->numbers.n = 0;
    for (int i = 0; i < tiles->pieces; i++) {
        int axis[SM_MAX_AXES], n = 0;
        if (tiles->piece[i].dim == dim) n = sm_xla_axes(m->cuts, &tiles->piece[i], axis);
        for (int k = 0; k < n; k++) {
            int64_t *number = hlo_push(r, &r->numbers, sizeof *number);
            if (number) *number = axis[k];
        }
    }
    return hlo_keep_numbers(r, out);
}

bool mlir_xla_sharding(mlir_reader *m, sm_instruction *it) {
    (void)it; /* its shape comes later */
    return hlo_quoted(m->r, &m->asked) || hlo_fail_here(m->r, "expected a sharding in quotes");
}

static bool says(const hlo_reader *r, sm_span text, const char *word) {
    const char *at = r->source->text + text.offset;
    return module_word_after(at, at + text.length, word) != NULL;
}

bool mlir_xla_asked(mlir_reader *m, sm_instruction *it) {
    hlo_reader *r = m->r;
    sm_span text = m->asked;
    sm_xla_tiles tiles;
    m->asked.length = 0;
    if (!text.length || it->shape->parts || says(r, text, "{manual}") || says(r, text, "{maximal"))
        return !r->status; /* a shard_map's, whose shapes say it; of no array of many devices */
    if (says(r, text, "manual"))
        return hlo_fail(r, text,
                        "axes that the program divides itself beside others are read in Shardy's "
                        "form alone (jax_use_shardy_partitioner)");
    int rank = it->shape->dim.n;
    r->status = sm_xla_tiles_read(r->source, text, rank, &tiles, r->err);
    if (r->status) return false;
    if (tiles.devices > 1 && !m->cuts)
        return hlo_fail(r, text, "a sharding in XLA's form in a module with a mesh of Shardy's");
    sm_module_sharding *s = sm_arena_alloc(r->arena, sizeof *s);
    sm_module_list *list = sm_arena_array(r->arena, (size_t)rank + 1, sizeof *list);
    if (!s || !list) return hlo_no_memory(r);
    for (int d = 0; d < rank; d++)
        if (!keep_axes(m, &tiles, d, &list[d])) return false;
    *s = (sm_module_sharding){.dims = rank, .dim = list};
    it->sharding = s;
    return true;
}
