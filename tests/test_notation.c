/* Meshes, arrays and einsums as text: what they mean, that they read back, and what bad ones are
 * told. */
#include "unit.h"
#include "scalemodel/shard.h"
#include <stdio.h>
#include <string.h>

static sm_mesh mesh_of(const char *text) {
    sm_mesh mesh;
    sm_error err = {0};
    sm_source source = sm_source_of("--mesh", text);
    if (sm_mesh_parse(&source, &mesh, &err) != SM_OK) fail_msg("%s: %s", text, err.sentence);
    return mesh;
}

static sm_einsum einsum_of(const char *text, const sm_mesh *mesh) {
    sm_einsum einsum;
    sm_error err = {0};
    sm_source source = sm_source_of("", text);
    if (sm_einsum_parse(&source, mesh, &einsum, &err) != SM_OK)
        fail_msg("%s: %s", text, err.sentence);
    return einsum;
}

static void reads_as(const char *text, const char *mesh_text, const char *expected) {
    sm_mesh mesh = mesh_of(mesh_text);
    sm_einsum einsum = einsum_of(text, &mesh);
    char out[512];
    size_t n = sm_einsum_format(&einsum, &mesh, out, sizeof out);
    assert_string_equal(out, expected);
    assert_int_equal(n, strlen(expected));
}

/* ---- meshes ---- */

static void meshes_read_and_print(void **state) {
    static const char *const same[] = {"X=4", "X=4,Y=8", "X=4@0,Y=8@1", "X=32@0.1,fsdp=2",
                                       "a1=1,b2=16777216"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        sm_mesh mesh = mesh_of(same[i]);
        char out[128];
        sm_mesh_format(&mesh, out, sizeof out);
        assert_string_equal(out, same[i]);
    }
    sm_mesh mesh = mesh_of(" X = 32 @ 0 . 1 , Y=8 ");
    assert_int_equal(mesh.axes, 2);
    assert_int_equal(mesh.axis[0].size, 32);
    assert_int_equal(mesh.axis[0].placed, 2);
    assert_int_equal(mesh.axis[0].level[1], 1);
    assert_int_equal(mesh.axis[1].placed, 0);
    assert_int_equal(sm_mesh_find(&mesh, "Y", 1), 1);
    assert_int_equal(sm_mesh_find(&mesh, "Z", 1), -1);
    assert_true(sm_mesh_size(&mesh, 3) == 256);
    assert_true(sm_mesh_size(&mesh, 0) == 1);
}

static void sets_of_axes_print(void **state) {
    sm_mesh letters = mesh_of("X=2,Y=2,Z=2"), words = mesh_of("fsdp=2,tensor=4");
    char out[64];
    sm_axes_format(&letters, 5, out, sizeof out);
    assert_string_equal(out, "XZ");
    sm_axes_format(&words, 3, out, sizeof out);
    assert_string_equal(out, "fsdp,tensor");
    sm_axes_format(&words, 0, out, sizeof out);
    assert_string_equal(out, "");
    assert_int_equal(sm_axes_format(&words, 3, out, 4), 11);
    assert_string_equal(out, "fsd");
}

/* ---- einsums ---- */

static void the_books_notation_reads(void **state) {
    reads_as("A[I_X,J] B[J_X,K] -> C[I_X,K]", "X=4", "A[I_X,J] B[J_X,K] -> C[I_X,K]");
    reads_as("A[I_X, J]", "X=4", "A[I_X,J]");
    reads_as("A[I_XY,J] {U_Z}", "X=4,Y=2,Z=2", "A[I_XY,J] {U_Z}");
    reads_as("bf16[B,D] int8[D,F] -> bf16[B,F]", "X=1", "bf16[B,D] int8[D,F] -> bf16[B,F]");
    reads_as("bf16 A[I_X,J] int8 B[J,K_Y] -> C[I_X,K_Y]", "X=4,Y=8",
             "bf16 A[I_X,J] int8 B[J,K_Y] -> C[I_X,K_Y]");
    reads_as("A[I_{fsdp,tensor},J]", "fsdp=2,tensor=4", "A[I_{fsdp,tensor},J]");
    reads_as("A[I_fsdp,J_tensor]", "fsdp=2,tensor=4", "A[I_fsdp,J_tensor]");
    reads_as("A[I_fsdptensor,J]", "fsdp=2,tensor=4", "A[I_{fsdp,tensor},J]");
    reads_as("A[I_{XY},J]", "X=2,Y=2", "A[I_XY,J]");
    reads_as("fp32[1024,4096]", "X=1", "fp32[1024,4096]");
    reads_as("A[I] B[I] -> C[]", "X=1", "A[I] B[I] -> C[]");
    reads_as(" A [ I _ X , J ] * B[J,K] \xC2\xB7 D[K,L]\n \xE2\x86\x92\tC [ I _ X,L]{ U _ Y } ",
             "X=2,Y=2", "A[I_X,J] B[J,K] D[K,L] -> C[I_X,L] {U_Y}");
    reads_as("[0128,04]", "X=1", "[128,4]");
    reads_as("A[I,J]*B[J,K]->C[I,K]", "X=1", "A[I,J] B[J,K] -> C[I,K]");
}

static void the_longest_axis_wins(void **state) {
    sm_mesh mesh = mesh_of("X=2,XY=3,Y=5");
    sm_einsum einsum = einsum_of("A[I_XY,J]", &mesh);
    assert_int_equal(einsum.in[0].dim[0].n_axes, 1);
    assert_int_equal(einsum.in[0].dim[0].axis[0], 1);
    einsum = einsum_of("A[I_{X,Y},J]", &mesh);
    assert_int_equal(einsum.in[0].dim[0].n_axes, 2);
    reads_as("A[I_{X,Y},J_XY]", "X=2,XY=3,Y=5", "A[I_{X,Y},J_XY]");
}

static void literals_tie_like_a_matmul(void **state) {
    sm_einsum e = einsum_of("bf16[128,8192] bf16[8192,4096]", NULL);
    assert_int_equal(e.indices, 3);
    assert_int_equal(e.in[0].dim[1].index, e.in[1].dim[0].index);
    assert_true(e.index[2].size == 4096 && e.index[2].literal);
    e = einsum_of("bf16[4096,4096] int8[4096,4096] -> bf16[4096,4096]", NULL);
    assert_int_equal(e.indices, 3);
    assert_int_equal(e.out.dim[0].index, 0);
    assert_int_equal(e.out.dim[1].index, 2);
    e = einsum_of("[8,8] -> [8]", NULL);
    assert_int_equal(e.indices, 2);
    e = einsum_of("bf16[128,4096] bf16[4096,F]", NULL);
    assert_int_equal(e.indices, 3);
    reads_as("bf16[128,8192] bf16[8192,128] -> bf16[128,128]", "X=1",
             "bf16[128,8192] bf16[8192,128] -> bf16[128,128]");
}

static void outputs_are_inferred(void **state) {
    sm_error err = {0};
    char out[128];
    sm_einsum e = einsum_of("int8 A[B,I,J] B[J,K]", NULL);
    assert_false(e.has_output);
    assert_int_equal(sm_einsum_infer_output(&e, NULL, &err), SM_OK);
    sm_einsum_format(&e, NULL, out, sizeof out);
    assert_string_equal(out, "int8 A[B,I,J] B[J,K] -> [B,I,K]");
    assert_false(e.out_sharding_given);
    assert_int_equal(e.out.dtype, SM_INT8);
    sm_einsum given = einsum_of("A[I,J] B[J,K] -> C[K,I]", NULL);
    assert_true(given.out_sharding_given);
    assert_int_equal(sm_einsum_infer_output(&given, NULL, &err), SM_OK);
    assert_int_equal(given.out.dim[0].index, 2);
}

static void sizes_make_bytes_and_flops(void **state) {
    sm_error err = {0};
    sm_mesh mesh = mesh_of("X=8,Y=2");
    sm_einsum e = einsum_of("fp32 A[I_XY,J] int8 B[J,K] -> C[I_XY,K]", &mesh);
    sm_source dims = sm_source_of("--dims", " I = 1024 , J=4096,K=8k ");
    assert_int_equal(sm_dims_parse(&dims, &e, &err), SM_OK);
    assert_int_equal(sm_einsum_check(&e, &mesh, &dims, &err), SM_OK);
    assert_true(sm_array_elements(&e.in[0], &e) == 1024.0 * 4096);
    assert_true(sm_array_local_bytes(&e.in[0], &e, &mesh) ==
                1048576); /* the book's pop quiz: 1 MiB */
    assert_true(sm_array_local_bytes(&e.in[1], &e, &mesh) == 4096.0 * 8000);
    e.index[0].size = 1000; /* over 16: 63 each, the last has 55 and padding */
    assert_int_equal(sm_einsum_check(&e, &mesh, &dims, &err), SM_OK);
    assert_true(sm_array_local_bytes(&e.in[0], &e, &mesh) == 4.0 * 63 * 4096);
    e.index[0].size = 1024;
    assert_true(sm_einsum_flops(&e) == 2.0 * 1024 * 4096 * 8000);
    sm_einsum copy = einsum_of("[4,8] -> [8,4]", NULL), sum = einsum_of("[4,8] -> [8]", NULL);
    assert_true(sm_einsum_flops(&copy) == 0);
    assert_true(sm_einsum_flops(&sum) == 64);
}

/* ---- errors: the exact sentence and its place ---- */

typedef struct bad {
    const char *text, *mesh, *dims, *sentence;
    int line, column, span;
} bad;

static void is_told(const bad *b) {
    sm_mesh mesh = mesh_of(b->mesh);
    sm_einsum e;
    sm_error err = {0};
    sm_source source = sm_source_of("einsum", b->text);
    sm_source dims = sm_source_of("--dims", b->dims != NULL ? b->dims : "");
    sm_status status = sm_einsum_parse(&source, &mesh, &e, &err);
    if (status == SM_OK) status = sm_dims_parse(&dims, &e, &err);
    if (status == SM_OK && b->dims != NULL) status = sm_einsum_check(&e, &mesh, &source, &err);
    if (status != SM_BAD_INPUT) fail_msg("'%s' passes", b->text);
    assert_string_equal(err.sentence, b->sentence);
    if (err.line != b->line || err.column != b->column || err.span != b->span)
        fail_msg("'%s': place %d:%d+%d", b->text, err.line, err.column, err.span);
}

static void bad_einsums_are_explained(void **state) {
    static const bad all[] = {
        {"A[I_X,J_X]", "X=4", NULL, "axis X is used twice in A[I_X,J_X]", 1, 7, 3},
        {"A[I_X,J] {U_X}", "X=4", NULL, "axis X is used twice in A[I_X,J] {U_X}", 1, 3, 3},
        {"A[I_Q,J]", "X=4,Y=8", NULL, "no axis Q in the mesh X=4,Y=8", 1, 5, 1},
        {"A[I_tensr,J]", "fsdp=4,tensor=8", NULL,
         "no axis tensr in the mesh fsdp=4,tensor=8, nearest is tensor", 1, 5, 5},
        {"A[I,J] B[J,K] -> C[I,L]", "X=1", NULL, "index L of the output stands in no operand", 1,
         22, 1},
        {"A[I,J] -> C[I,I]", "X=1", NULL,
         "index I stands twice in the output: what is not on the diagonal is not said", 1, 15, 1},
        {"A[I,J] B[K] -> C[I,K]", "X=1", "I=2,J=2,K=2",
         "J stands in A alone: a product sums what two arrays have", 1, 1, 6},
        {"[4,8] [16,2] -> [4,2]", "X=1", "",
         "8 stands in one array alone: a product sums what two arrays have", 1, 1, 5},
        {"bf61 A[I]", "X=1", NULL, "no data type bf61, nearest is bf16", 1, 1, 4},
        {"A[I,J", "X=1", NULL, "expected ',' or ']' after a dimension, found the end", 1, 6, 1},
        {"A[I,J] ->", "X=1", NULL, "expected '[' and the dimensions of an array, found the end", 1,
         10, 1},
        {"A[I;J]", "X=1", NULL, "expected ',' or ']' after a dimension, found ';'", 1, 4, 1},
        {"A[,J]", "X=1", NULL, "expected an index such as I, or a size such as 1024, found ','", 1,
         3, 1},
        {"A[I,\n  J_\xFF]", "X=1", NULL,
         "expected the name of a mesh axis after '_', found byte 0xFF", 2, 5, 1},
        {"A[I_{X,},J]", "X=4", NULL, "expected the name of a mesh axis, found '}'", 1, 8, 1},
        {"A[I_XQ]", "X=4", NULL, "no axis Q in the mesh X=4", 1, 6, 1},
        {"A[I_{X,Q}]", "X=4", NULL, "no axis Q in the mesh X=4", 1, 8, 1},
        {"A[I_{X;Y}]", "X=4,Y=2", NULL, "expected ',' or '}' after an axis, found ';'", 1, 7, 1},
        {"A[I] {V_X}", "X=4", NULL, "expected U_ and the unreduced axes, as in {U_X}, found 'V'", 1,
         7, 1},
        {"A[I] {U_X", "X=4", NULL, "expected '}' after the axes, found the end", 1, 10, 1},
        {"A[I] {U_XX}", "X=4", NULL, "axis X is named twice in {U_..}", 1, 7, 4},
        {"A[I_XXXXXXXXX]", "X=4", NULL, "axis X is used twice in one dimension", 1, 13, 1},
        {"A[a,b,c,d,e,f,g,h,i]", "X=1", NULL, "expected at most 8 dimensions, found 'i'", 1, 19, 1},
        {"A[a,b,c,d,e,f,g,h] B[i,j,k,l,m,n,o,p] C[q]", "X=1", NULL,
         "an einsum has at most 16 indices", 1, 41, 1},
        {"A[sixteen1letters2]", "X=1", NULL, "the name of an index has at most 15 letters", 1, 3,
         16},
        {"sixteen1letters2[I]", "X=1", NULL, "the name of an array has at most 15 letters", 1, 1,
         16},
        {"A[I]", "X=1", "=4", "expected the name of an index, as in I=1024,J=4096, found '='", 1, 1,
         1},
        {"A[I]", "X=1", "I=", "expected the size of the index, found the end", 1, 3, 1},
        {"", "X=1", NULL, "expected '[' and the dimensions of an array, found the end", 1, 1, 1},
        {"A[I,J] B[J,K] -> C[I,K] D", "X=1", NULL, "expected the end of the einsum, found 'D'", 1,
         25, 1},
        {"A[I] B[I] C[I] D[I] E[I] F[I] G[I] H[I] K[I] L[I] M[I]", "X=1", NULL,
         "expected at most 10 operands, found 'M'", 1, 51, 1},
        {"bf16[8,128,64] bf16[8,64,128]", "X=1", NULL,
         "which dimensions of size 8 are the same is open here: write names, as in "
         "A[I,J] B[J,K] with sizes for I, J and K",
         1, 16, 14},
        {"bf16[128,8192] bf16[8192,64] -> bf16[128,32]", "X=1", NULL,
         "no operand has a free dimension of size 32 left for the output", 1, 42, 2},
        {"A[I,J] B[J,K]", "X=1", "I=10,J=2", "index K has no size, give one such as K=4096", 1, 12,
         1},
        {"A[I,J] B[J,K]", "X=1", "I=1T,J=1T,K=2",
         "the product of all dimensions is 2e+24, above the limit of 1e18", 1, 1, 6},
        {"A[I,J] B[J,K]", "X=1", "I=1,I=2", "index I is given twice", 1, 5, 1},
        {"A[Batch,J]", "X=1", "Bach=1", "no index Bach in the einsum, nearest is Batch", 1, 1, 4},
        {"A[I]", "X=1", "I=0", "the size of I is a whole number from 1 to 1e18", 1, 3, 1},
        {"A[I]", "X=1", "I=1.5", "the size of I is a whole number from 1 to 1e18", 1, 3, 3},
        {"A[I]", "X=1", "I", "expected '=' and the size of the index, found the end", 1, 2, 1},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) is_told(&all[i]);
}

static void bad_meshes_are_explained(void **state) {
    static const bad all[] = {
        {"", "", NULL, "expected the name of a mesh axis, as in X=4,Y=8, found the end", 1, 1, 1},
        {"X", "", NULL, "expected '=' and the size of the axis, as in X=4, found the end", 1, 2, 1},
        {"X=4,X=2", "", NULL, "axis X stands twice in the mesh", 1, 5, 1},
        {"X=4;Y=2", "", NULL, "expected ',' or the end of the mesh, found ';'", 1, 4, 1},
        {"averylongaxis=4", "", NULL, "the name of a mesh axis has at most 11 letters", 1, 1, 13},
        {"a=65536,b=65536", "", NULL, "the mesh has more than 2^31 chips", 1, 9, 1},
        {"a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1", "", NULL, "a mesh has at most 8 axes", 1, 33, 1},
        {"X=4@0.1.2.3.4", "", NULL, "expected at most 4 levels for one axis, found '4'", 1, 13, 1},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sm_mesh mesh;
        sm_error err = {0};
        sm_source source = sm_source_of("--mesh", all[i].text);
        assert_int_equal(sm_mesh_parse(&source, &mesh, &err), SM_BAD_INPUT);
        assert_string_equal(err.sentence, all[i].sentence);
        assert_int_equal(err.line, all[i].line);
        assert_int_equal(err.column, all[i].column);
        assert_int_equal(err.span, all[i].span);
    }
}

static void an_axis_needs_a_mesh(void **state) {
    sm_einsum e;
    sm_error err = {0};
    sm_source source = sm_source_of("", "A[I_X,J]");
    assert_int_equal(sm_einsum_parse(&source, NULL, &e, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "axis X: there is no mesh, give one such as X=4");
    source = sm_source_of("", "A[I,J] B[J,K]");
    assert_int_equal(sm_array_parse(&source, NULL, &e, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "expected the end of the array, found 'B'");
}

static void shardings_made_by_hand_are_checked_too(void **state) {
    sm_mesh mesh = mesh_of("X=4");
    sm_error err = {0};
    sm_einsum e = einsum_of("A[8,8]", &mesh);
    e.in[0].unreduced = 2;
    assert_int_equal(sm_einsum_check(&e, &mesh, NULL, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "an unreduced axis is not in the mesh");
    assert_int_equal(err.line, 0);
    e.in[0].unreduced = 0;
    e.in[0].dim[1] = (sm_dim){.index = 1, .n_axes = 1, .axis = {200}};
    assert_int_equal(sm_einsum_check(&e, &mesh, NULL, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "axis 200 is not in the mesh");
    assert_int_equal(sm_einsum_check(&e, NULL, NULL, &err), SM_BAD_INPUT);
    e.in[0].dim[1].n_axes = 0;
    e.index[1].size = 0.5;
    assert_int_equal(sm_einsum_check(&e, &mesh, NULL, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "the size of 8 is a whole number from 1 to 1e18");
    e = einsum_of("A[a,b,c,d,e] B[f,g,h,i,j]", &mesh);
    assert_int_equal(sm_einsum_infer_output(&e, NULL, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "the product has more than 8 dimensions");
}

static void an_axis_in_both_operands_is_no_error(void **state) {
    sm_mesh mesh = mesh_of("X=4"); /* the book's case 4: lowered, not refused */
    sm_error err = {0};
    sm_einsum e = einsum_of("A[I_X,J] B[J,K_X]", &mesh);
    sm_source dims = sm_source_of("", "I=8,J=8,K=8");
    assert_int_equal(sm_dims_parse(&dims, &e, &err), SM_OK);
    assert_int_equal(sm_einsum_check(&e, &mesh, NULL, &err), SM_OK);
}

/* ---- parse(format(x)) = x ---- */

static const char *const MESHES[] = {"X=2,Y=4,Z=8", "fsdp=2,tensor=4,X=2", "a=2,ab=2,b=2,ba=2"};

static void random_array(sm_rng *rng, const sm_mesh *mesh, sm_einsum *e, sm_array *array) {
    memset(array, 0, sizeof *array);
    unsigned free_axes = (1u << mesh->axes) - 1, free_indices = (1u << e->indices) - 1;
    array->dtype_given = sm_rng_below(rng, 2) != 0;
    array->dtype = array->dtype_given ? (sm_dtype)sm_rng_below(rng, SM_DTYPE_COUNT) : SM_BF16;
    if (sm_rng_below(rng, 3) != 0)
        snprintf(array->name, sizeof array->name, "A%d", (int)sm_rng_below(rng, 100));
    array->rank = (int)sm_rng_below(rng, 4);
    for (int d = 0; d < array->rank; d++) {
        sm_dim *dim = &array->dim[d];
        do dim->index = (int)sm_rng_below(rng, (uint64_t)e->indices);
        while (!(free_indices >> dim->index & 1));
        free_indices &= ~(1u << dim->index);
        for (int a; sm_rng_below(rng, 2) != 0; free_axes &= ~(1u << a)) {
            a = (int)sm_rng_below(rng, (uint64_t)mesh->axes);
            if (!(free_axes >> a & 1)) break;
            dim->axis[dim->n_axes++] = (uint8_t)a;
        }
    }
    if (sm_rng_below(rng, 3) == 0) array->unreduced = (sm_axes)(free_axes & sm_rng_next(rng));
}

static void arrays_agree(const sm_array *a, const sm_array *b, const sm_einsum *ea,
                         const sm_einsum *eb) {
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->dtype_given, b->dtype_given);
    assert_int_equal(a->unreduced, b->unreduced);
    assert_int_equal(a->rank, b->rank);
    for (int d = 0; d < a->rank; d++) {
        assert_string_equal(ea->index[a->dim[d].index].name, eb->index[b->dim[d].index].name);
        assert_int_equal(a->dim[d].n_axes, b->dim[d].n_axes);
        assert_memory_equal(a->dim[d].axis, b->dim[d].axis, (size_t)a->dim[d].n_axes);
    }
}

static void one_round_trip(sm_rng *rng) {
    sm_mesh mesh = mesh_of(MESHES[sm_rng_below(rng, 3)]);
    sm_einsum e = {.operands = 1 + (int)sm_rng_below(rng, 4), .indices = 6};
    static const char *const names[] = {"I", "J", "K", "Batch", "d0", "F"};
    for (int i = 0; i < 6; i++) snprintf(e.index[i].name, sizeof e.index[i].name, "%s", names[i]);
    unsigned known = 0;
    for (int o = 0; o < e.operands; o++) {
        random_array(rng, &mesh, &e, &e.in[o]);
        for (int d = 0; d < e.in[o].rank; d++) known |= 1u << e.in[o].dim[d].index;
    }
    random_array(rng, &mesh, &e, &e.out);
    e.has_output = sm_rng_below(rng, 2) != 0;
    for (int d = 0; d < e.out.rank; d++)
        e.has_output = e.has_output && (known >> e.out.dim[d].index & 1);
    char text[1024], again[1024];
    sm_einsum_format(&e, &mesh, text, sizeof text);
    sm_einsum back = einsum_of(text, &mesh);
    assert_int_equal(back.operands, e.operands);
    assert_int_equal(back.has_output, e.has_output);
    for (int o = 0; o < e.operands; o++) arrays_agree(&e.in[o], &back.in[o], &e, &back);
    if (e.has_output) arrays_agree(&e.out, &back.out, &e, &back);
    sm_einsum_format(&back, &mesh, again, sizeof again);
    assert_string_equal(text, again);
}

static void random_einsums_read_back(void **state) {
    sm_rng rng = {20261121};
    for (int i = 0; i < 5000; i++) one_round_trip(&rng);
}

static void collectives_have_names(void **state) {
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++) {
        const char *name = sm_collective_name((sm_collective)i);
        sm_collective back = SM_COLLECTIVE_COUNT;
        assert_true(sm_collective_parse(name, strlen(name), &back));
        assert_int_equal(back, i);
    }
    sm_collective op;
    assert_false(sm_collective_parse("all-gathe", 9, &op));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meshes_read_and_print),
        cmocka_unit_test(sets_of_axes_print),
        cmocka_unit_test(the_books_notation_reads),
        cmocka_unit_test(the_longest_axis_wins),
        cmocka_unit_test(literals_tie_like_a_matmul),
        cmocka_unit_test(outputs_are_inferred),
        cmocka_unit_test(sizes_make_bytes_and_flops),
        cmocka_unit_test(bad_einsums_are_explained),
        cmocka_unit_test(bad_meshes_are_explained),
        cmocka_unit_test(an_axis_needs_a_mesh),
        cmocka_unit_test(shardings_made_by_hand_are_checked_too),
        cmocka_unit_test(an_axis_in_both_operands_is_no_error),
        cmocka_unit_test(random_einsums_read_back),
        cmocka_unit_test(collectives_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
