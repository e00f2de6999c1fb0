/* XLA's shardings as layouts on one mesh. A sharding is an array of devices: tiles of each
 * dimension of the data, and perhaps more dimensions over which the data is replicated,
 *
 *   {devices=[2,1,4]<=[2,4]T(1,0) last_tile_dim_replicate}      {devices=[2,2]0,2,1,3} {replicated}
 *
 * Each dimension is a product of strides of the device number, major first. All ends of strides of
 * both shardings cut the devices into the axes of a mesh on which each dimension of either is a
 * list of axes. */
#include "scalemodel/shard.h"
#include <ctype.h>
#include <string.h>

enum { MOST_DIMS = 16, MOST_DEVICES = 1 << 20 };

typedef sm_xla_piece piece;
typedef struct tiles {
    const sm_source *source;
    size_t at, end;
    int dims, atoms, pieces;
    int64_t dim[MOST_DIMS], devices;
    piece atom[MOST_DIMS], piece[SM_XLA_MOST_PIECES];
} tiles;

/* ---- reading ---- */

static sm_status refuse(const tiles *t, const char *sentence, sm_error *err) {
    size_t at = t->at < t->end ? t->at : t->end;
    return sm_fail_at(err, t->source, (sm_span){at, at < t->end}, "%s", sentence);
}

static char here(const tiles *t) { return t->at < t->end ? t->source->text[t->at] : '\0'; }

static bool accept(tiles *t, const char *word) {
    size_t n = strlen(word);
    while (here(t) == ' ') t->at++;
    if (t->end - t->at < n || memcmp(t->source->text + t->at, word, n) != 0) return false;
    t->at += n;
    return true;
}

static bool number(tiles *t, int64_t *out) {
    if (!isdigit((unsigned char)here(t))) return false;
    for (*out = 0; isdigit((unsigned char)here(t)); t->at++)
        if (*out <= MOST_DEVICES) *out = *out * 10 + (here(t) - '0');
    return *out <= MOST_DEVICES;
}

/* Numbers up to `end`, which is passed. */
static bool numbers(tiles *t, const char *end, int64_t *list, int *n) {
    for (*n = 0; *n < MOST_DIMS; (*n)++) {
        if (*n && accept(t, end)) return true;
        if (*n && !accept(t, ",")) return false;
        if (!number(t, &list[*n])) return false;
    }
    return accept(t, end);
}

/* [2,4]T(1,0) after "<=": dimensions of the device number, transposed. */
static sm_status read_order(tiles *t, sm_error *err) {
    int64_t size[MOST_DIMS], order[MOST_DIMS], stride[MOST_DIMS], all = 1;
    int n, orders;
    if (!accept(t, "[") || !numbers(t, "]", size, &n))
        return refuse(t, "expected sizes in brackets: <=[2,4]", err);
    for (int i = 0; i < n; i++) order[i] = i;
    if (accept(t, "T(") && (!numbers(t, ")", order, &orders) || orders != n))
        return refuse(t, "expected an order of as many dimensions: T(1,0)", err);
    for (int i = n - 1; i >= 0; i--) {
        if (size[i] < 1 || size[i] > MOST_DEVICES / all) return refuse(t, "too many devices", err);
        stride[i] = all;
        all *= size[i];
    }
    bool seen[MOST_DIMS] = {false};
    for (int i = 0; i < n; i++) {
        if (order[i] >= n || seen[order[i]])
            return refuse(t, "an order names each dimension once", err);
        seen[order[i]] = true;
        t->atom[t->atoms++] = (piece){0, size[order[i]], stride[order[i]]};
    }
    return all == t->devices ? SM_OK : refuse(t, "the sizes are not those of the devices", err);
}

/* 0,2,1,3: each dimension must be a stride. */
static sm_status read_list(tiles *t, sm_error *err) {
    int64_t *device = sm_malloc((size_t)t->devices * sizeof *device), step = t->devices;
    sm_status status = device ? SM_OK : sm_fail_memory(err);
    for (int64_t i = 0; i < t->devices && !status; i++)
        if ((i && !accept(t, ",")) || !number(t, &device[i]))
            status = refuse(t, "expected as many devices as tiles", err);
    for (int d = 0; d < t->dims && !status; d++) {
        step /= t->dim[d];
        int64_t stride = t->dim[d] > 1 ? device[step] - device[0] : 1;
        if (stride < 1) status = refuse(t, "devices in no order that a mesh has", err);
        else t->atom[t->atoms++] = (piece){0, t->dim[d], stride};
    }
    for (int64_t i = 0; i < t->devices && !status; i++) {
        int64_t is = 0, rest = i;
        for (int d = t->dims - 1; d >= 0; d--) {
            is += rest % t->dim[d] * t->atom[d].stride;
            rest /= t->dim[d];
        }
        if (device[i] != is) status = refuse(t, "devices in no order that a mesh has", err);
    }
    sm_free(device);
    return status;
}

/* Deal the strides out to the dimensions, major first. */
static sm_status deal(tiles *t, int rank, sm_error *err) {
    int a = 0;
    for (int d = 0; d < t->dims; d++)
        for (int64_t need = t->dim[d]; need > 1;) {
            while (a < t->atoms && t->atom[a].size == 1) a++;
            if (a == t->atoms || t->pieces == SM_XLA_MOST_PIECES)
                return refuse(t, "tiles that are no mesh of devices", err);
            piece *from = &t->atom[a];
            int64_t take = from->size <= need ? from->size : need;
            if (need % take || from->size % take)
                return refuse(t, "tiles that are no mesh of devices", err);
            from->size /= take;
            t->piece[t->pieces++] = (piece){d < rank ? d : -1, take, from->stride * from->size};
            need /= take;
        }
    return SM_OK;
}

static sm_status read_tiles(const sm_source *source, sm_span text, int rank, tiles *t,
                            sm_error *err) {
    *t = (tiles){
        .source = source, .at = text.offset, .end = text.offset + text.length, .devices = 1};
    if (!accept(t, "{")) return refuse(t, "expected a sharding: {devices=[2,4]<=[8]}", err);
    if (accept(t, "replicated")) return SM_OK;
    if (!accept(t, "devices=[") || !numbers(t, "]", t->dim, &t->dims))
        return refuse(t, "expected {devices=[2,4]<=[8]} or {replicated}", err);
    if (t->dims < rank) return refuse(t, "fewer tiles than the array has dimensions", err);
    for (int i = 0; i < t->dims; i++) {
        if (t->dim[i] < 1 || t->dim[i] > MOST_DEVICES / t->devices)
            return refuse(t, "too many devices", err);
        t->devices *= t->dim[i];
    }
    sm_status status = accept(t, "<=") ? read_order(t, err) : read_list(t, err);
    return status ? status : deal(t, rank, err);
}

sm_status sm_xla_tiles_read(const sm_source *source, sm_span text, int rank, sm_xla_tiles *out,
                            sm_error *err) {
    tiles t;
    sm_status status = read_tiles(source, text, rank, &t, err);
    *out = (sm_xla_tiles){.devices = t.devices, .pieces = t.pieces};
    memcpy(out->piece, t.piece, sizeof out->piece);
    return status;
}

/* ---- a mesh for both ---- */

static void cut_by(sm_mesh_cuts *c, const piece *p) {
    sm_mesh_cut(c, p->stride);
    sm_mesh_cut(c, p->stride * p->size);
}

void sm_xla_cut(sm_mesh_cuts *cuts, const sm_xla_tiles *t) {
    for (int i = 0; i < t->pieces; i++) cut_by(cuts, &t->piece[i]);
}

int sm_xla_axes(const sm_mesh_cuts *c, const sm_xla_piece *p, int axis[SM_MAX_AXES]) {
    int n = 0;
    for (int i = c->n - 1; i > 0; i--)
        if (c->at[i - 1] >= p->stride && c->at[i] <= p->stride * p->size) axis[n++] = c->n - 1 - i;
    return n;
}

/* The letters of the axes between the ends of a piece, major first. */
static void put_axes(const sm_mesh *mesh, const sm_mesh_cuts *c, const piece *p, char *out) {
    int axis[SM_MAX_AXES], axes = sm_xla_axes(c, p, axis);
    size_t n = strlen(out);
    for (int i = 0; i < axes; i++) out[n++] = mesh->axis[axis[i]].name[0];
    out[n] = 0;
}

static const char *array_of(const tiles *t, const sm_mesh *mesh, const sm_mesh_cuts *c, int rank,
                            sm_arena *arena) {
    static const char index[] = "IJKLMNOPQR";
    const char *text = "A[";
    for (int d = 0; d < rank && text; d++) {
        char axes[SM_MAX_AXES + 1] = "";
        for (int i = 0; i < t->pieces; i++)
            if (t->piece[i].dim == d) put_axes(mesh, c, &t->piece[i], axes);
        text = sm_arena_printf(arena, "%s%s%c%s%s", text, d ? "," : "", index[d],
                               axes[0] ? "_" : "", axes);
    }
    return text ? sm_arena_printf(arena, "%s]", text) : NULL;
}

sm_status sm_xla_resharding(const sm_source *from, const sm_source *to, int rank, sm_arena *arena,
                            sm_mesh *mesh, const char **einsum, sm_error *err) {
    tiles *t = sm_arena_array(arena, 2, sizeof *t);
    sm_mesh_cuts c = {.n = 0};
    if (!t) return sm_fail_memory(err);
    if (rank < 1 || rank > SM_MAX_RANK)
        return sm_fail(err, SM_BAD_INPUT, "arrays of 1 to %d dimensions are resharded here",
                       SM_MAX_RANK);
    sm_status status = read_tiles(from, (sm_span){0, from->length}, rank, &t[0], err);
    if (!status) status = read_tiles(to, (sm_span){0, to->length}, rank, &t[1], err);
    if (status) return status;
    if (t[0].devices > 1 && t[1].devices > 1 && t[0].devices != t[1].devices)
        return refuse(&t[1], "the two shardings have different numbers of devices", err);
    int64_t devices = t[0].devices > t[1].devices ? t[0].devices : t[1].devices;
    if (devices == 1) return refuse(&t[1], "both are replicated: nothing moves", err);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < t[s].pieces; i++) cut_by(&c, &t[s].piece[i]);
    sm_mesh_of_cuts(&c, devices, mesh);
    if (c.crossed)
        return refuse(&t[1],
                      mesh->axes == SM_MAX_AXES
                          ? "more axes than a mesh has here"
                          : "the two shardings cut the devices across each other",
                      err);
    const char *a = array_of(&t[0], mesh, &c, rank, arena);
    const char *b = array_of(&t[1], mesh, &c, rank, arena);
    *einsum = a && b ? sm_arena_printf(arena, "%s -> %s", a, b) : NULL;
    return *einsum ? SM_OK : sm_fail_memory(err);
}
