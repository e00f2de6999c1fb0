/* "How to Profile TPU Programs": part 9. */
#include "book.h"
#include "instruments.h"
#include "partition.h"
#include "scalemodel/module.h"
#include <stddef.h>
#include <string.h>

/* The machine of the chapter: 8 cores of a TPU v2, 23e12 FLOP/s each. */
static sm_chip core(void) {
    sm_chip chip = book_chip("tpu-v2");
    book_give(&chip.flops_per_s[SM_BF16], 23e12);
    return chip;
}

/* The layer of the chapter: 32 sequences of 1024 tokens, width 8192, 32 heads of 256. */
enum { T = 1024, SEQUENCES = 32, CORES = 8 };
static sm_model layer_model(void) {
    return book_transformer_with((const int[]){8192, 32768, 32, 32, 256, 1, 1},
                                 "\"gated_mlp\": false");
}

static void up_projection(book_item *item) {
    sm_chip chip = core();
    sm_lowering low =
        book_lowering("bf16[B,D] bf16[D,F_X] -> bf16[B,F_X]", "B=32768,D=8192,F=32768", "X=8", "F");
    book_is(item, "seconds", low.flops_per_chip / sm_chip_peak(&chip, SM_BF16, NULL), 0.0956097);
}

static void reduce_scatter(book_item *item) {
    double bytes = book_local_bytes("bf16[B,T,D]", "X=1", "B=8,T=1024,D=8192");
    sm_chip chip = book_chip("tpu-v5p");
    book_give(&chip.link_bytes_per_s_oneway, 1.2e11);
    sm_system slice = book_system_of(&chip, "tpu-v5p:4x4x4");
    book_exactly(item, "bytes", bytes, 134217728);
    book_is(item, "seconds over one hop",
            bytes * book_s_per_byte(&slice, SM_PERMUTE, "X=4,Y=4,Z=4", "X"), 0.00111848);
}

static double forward_s(const char *op) {
    sm_model model = layer_model();
    sm_chip chip = core();
    const sm_partition *layer = book_layer(&model, T);
    book_degrees d = book_ones();
    d.axis[SM_AXIS_TENSOR] = CORES;
    double flops = 0;
    for (int i = 0; layer != NULL && i < layer->works; i++) {
        const sm_work *w = &layer->work[i];
        bool wanted = op == NULL ? w->kind == SM_OP_EINSUM || w->kind == SM_OP_ATTENTION
                                 : strcmp(w->name, op) == 0;
        /* attention of all pairs, as the chapter counts: the mask keeps about half of them */
        double keys = w->kind == SM_OP_ATTENTION ? T / layer->program.op[w->op].keys : 1;
        if (wanted && w->phase == SM_PHASE_FORWARD)
            flops += book_size(w->flops, &d, SEQUENCES) * keys;
    }
    return flops / sm_chip_peak(&chip, SM_BF16, NULL);
}

static void attention_layer(book_item *item) {
    book_is(item, "query projection", forward_s("q"), 0.0239024);
    book_is(item, "scores", forward_s("o") / 2, 0.0029878); /* and as much for the values */
    book_is(item, "layer", forward_s(NULL), 0.292805);
}

/* Local shapes of the fusion, of a mesh whose 8 model shards lie 16 apart. */
static void fusion_shapes(book_item *item) {
    const char *mesh = "Y=8,X=16", *dims = "D=8192,F=32768";
    book_exactly(item, "elements of the local weights",
                 book_local_bytes("int8 W[F_Y,D]", mesh, dims), 4096.0 * 8192);
    book_exactly(item, "elements of the local result",
                 book_local_bytes("int8 C[B,F_Y]", mesh, "B=8,F=32768"), 8 * 4096.0);
    sm_mesh axes = book_mesh(mesh);
    book_holds(item, "the axis of 8 has stride 16", axes.axes == 2 && axes.axis[1].size == 16);
}

typedef struct tiled {
    double size[8], bytes, padded_bytes; /* in whole tiles; without and with them */
} tiled;

static tiled read_tiled(const char *text) {
    tiled t = {.bytes = 0};
    sm_error err = {.status = SM_OK};
    sm_source source = sm_source_of("hlo", text);
    sm_arena *arena = sm_arena_new();
    const sm_module_shape *shape;
    if (!sm_module_shape_parse(&source, arena, &shape, &err)) {
        sm_module_padded(shape, t.size);
        t.bytes = sm_module_data_bytes(shape);
        t.padded_bytes = sm_module_bytes(shape, -1);
    }
    sm_arena_free(arena);
    return t;
}

static void tile(book_item *item) {
    tiled a = read_tiled("f32[3,5]{1,0:T(2,2)}");
    book_exactly(item, "rows", a.size[0], 4);
    book_exactly(item, "columns", a.size[1], 6);
    book_is(item, "expansion", a.padded_bytes / a.bytes, 1.6);
}

static void tile_bf16(book_item *item) {
    book_exactly(item, "bytes", read_tiled("bf16[32,32,8192]{2,1,0:T(8,128)(2,1)}").padded_bytes,
                 16777216);
    book_exactly(item, "of [3,5]", read_tiled("bf16[3,5]{1,0:T(8,128)(2,1)}").padded_bytes, 2048);
}

static const book_answer answers[] = {
    {"pf.tile", tile, 0},         {"pf.tile.bf16", tile_bf16, 0},  {"pf.ffw", up_projection, 0},
    {"pf.rs", reduce_scatter, 0}, {"pf.attn", attention_layer, 0}, {"pf.q1", fusion_shapes, 0}};

const book_chapter book_profiling = {"09-profiling", answers,
                                     (int)(sizeof answers / sizeof *answers)};
