/* The algebra of sharded einsums: the book's cases as exact steps, and thousands of random ones
 * executed chip by chip by the oracle and compared exactly with the whole einsum. */
#include "unit.h"
#include "oracle_shard.h"
#include "sanitized.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- building ---- */

typedef struct problem {
    sm_mesh mesh;
    sm_einsum einsum;
} problem;

static problem problem_of(const char *text, const char *mesh, const char *dims) {
    problem p;
    sm_error err = {0};
    sm_source m = sm_source_of("", mesh), e = sm_source_of("", text), d = sm_source_of("", dims);
    if (sm_mesh_parse(&m, &p.mesh, &err) != SM_OK ||
        sm_einsum_parse(&e, &p.mesh, &p.einsum, &err) || sm_dims_parse(&d, &p.einsum, &err) ||
        sm_einsum_infer_output(&p.einsum, &e, &err) ||
        sm_einsum_check(&p.einsum, &p.mesh, &e, &err))
        fail_msg("%s: %s", text, err.sentence);
    return p;
}

/* "I - +": for each axis of the mesh an index, replicated, or assisting. */
static void assign(const problem *p, const char *text, int8_t *at) {
    for (int a = 0; a < p->mesh.axes; a++, text += 2) {
        at[a] = text[0] == '+' ? SM_ASSISTING : SM_REPLICATED;
        for (int i = 0; i < p->einsum.indices; i++)
            if (p->einsum.index[i].name[0] == text[0]) at[a] = (int8_t)i;
    }
}

static void describe_step(const problem *p, const sm_step *step, char *out, size_t size) {
    char axes[64];
    const sm_array *array = step->array < 0 ? &p->einsum.out : &p->einsum.in[step->array];
    sm_axes_format(&p->mesh, step->axes, axes, sizeof axes);
    if (step->kind == SM_STEP_EINSUM) snprintf(out, size, "einsum %.0f", step->flops);
    else if (step->kind == SM_STEP_SLICE) snprintf(out, size, "slice %s %s", array->name, axes);
    else
        snprintf(out, size, "%s %s %s %.0f", sm_collective_name(step->op), array->name, axes,
                 step->bytes);
    if (step->kind != SM_STEP_EINSUM && step->from >= 0)
        snprintf(out + strlen(out), size - strlen(out), " from %s",
                 p->einsum.index[step->from].name);
    if (step->kind != SM_STEP_EINSUM && step->to >= 0)
        snprintf(out + strlen(out), size - strlen(out), " to %s", p->einsum.index[step->to].name);
}

/* The einsum and the mesh that the steps are on. */
static problem on_parts(const problem *whole, const sm_lowering *l) {
    problem p = *whole;
    sm_lowering_mesh(l, &whole->mesh, &p.mesh);
    for (int o = 0; o < p.einsum.operands; o++)
        p.einsum.in[o] = sm_lowering_array(l, &whole->einsum.in[o]);
    p.einsum.out = sm_lowering_array(l, &l->out);
    return p;
}

static void describe(const problem *whole, const sm_lowering *l, char *out, size_t size) {
    const problem split = on_parts(whole, l), *p = &split;
    char one[128];
    out[0] = '\0';
    for (int s = 0; s < l->steps; s++) {
        describe_step(p, &l->step[s], one, sizeof one);
        snprintf(out + strlen(out), size - strlen(out), "%s; ", one);
    }
    sm_array_format(&l->out, &whole->einsum, &whole->mesh, one, sizeof one);
    snprintf(out + strlen(out), size - strlen(out), "%s", one);
}

/* ---- the oracle ---- */

static void fill(sm_rng *rng, int64_t *data, int64_t n) {
    for (int64_t i = 0; i < n; i++) data[i] = (int64_t)sm_rng_below(rng, 9) - 4;
}

static void execute(const problem *whole, const sm_lowering *l, sm_rng *rng) {
    const problem split = on_parts(whole, l), *p = &split;
    oracle_run run = {.einsum = &p->einsum, .mesh = &p->mesh};
    for (int o = 0; o < p->einsum.operands; o++) {
        int64_t n = oracle_elements(&p->einsum.in[o], &p->einsum);
        run.dense[o] = malloc((size_t)n * sizeof(int64_t));
        fill(rng, run.dense[o], n);
    }
    sm_lowering steps = *l;
    steps.out = sm_lowering_array(l, &l->out);
    bool good = oracle_execute(&run, &steps);
    for (int o = 0; o < p->einsum.operands; o++) free(run.dense[o]);
    if (!good) {
        char told[4096], text[512], mesh[128];
        describe(whole, l, told, sizeof told);
        sm_einsum_format(&p->einsum, &p->mesh, text, sizeof text);
        sm_mesh_format(&p->mesh, mesh, sizeof mesh);
        fail_msg("%s on %s: %s\n%s", text, mesh, run.why, told);
    }
}

/* ---- the book's cases ---- */

typedef struct book_case {
    const char *text, *mesh, *dims, *at, *steps;
} book_case;

static void lowers_as(const book_case *c) {
    problem p = problem_of(c->text, c->mesh, c->dims);
    sm_rng rng = {1};
    int8_t at[SM_MAX_AXES];
    sm_lowering l;
    sm_error err = {0};
    char out[2048];
    assign(&p, c->at, at);
    const sm_array *want = p.einsum.out_sharding_given ? &p.einsum.out : NULL;
    if (sm_einsum_lower(&p.einsum, &p.mesh, at, want, false, &l, &err) != SM_OK)
        fail_msg("%s: %s", c->text, err.sentence);
    describe(&p, &l, out, sizeof out);
    assert_string_equal(out, c->steps);
    execute(&p, &l, &rng);
}

static void the_books_cases_lower(void **state) {
    const char *const d = "I=8,J=16,K=4";
    const book_case all[] = {
        /* case 1 */
        {"A[I_X,J] B[J,K_Y] -> C[I_X,K_Y]", "X=4,Y=2", d, "I K", "einsum 128; C[I_X,K_Y]"},
        /* case 2: 8 x 16 bf16 gathered = 256 bytes */
        {"A[I,J_X] B[J,K] -> C[I,K]", "X=4", d, "-",
         "all-gather A X 256 from J; einsum 1024; C[I,K]"},
        /* case 3, all-reduced or scattered: 8 x 4 bf16 = 64 bytes */
        {"A[I,J_X] B[J_X,K] -> C[I,K]", "X=4", d, "J", "einsum 256; all-reduce C X 64; C[I,K]"},
        {"A[I,J_X] B[J_X,K] -> C[I,K_X]", "X=4", d, "J",
         "einsum 256; reduce-scatter C X 64 to K; C[I,K_X]"},
        {"A[I,J_X] B[J_X,K] -> C[I,K] {U_X}", "X=4", d, "J", "einsum 256; C[I,K] {U_X}"},
        /* case 4, either side gathered */
        {"A[I_X,J] B[J,K_X] -> C[I_X,K]", "X=4", d, "I",
         "all-gather B X 128 from K; einsum 256; C[I_X,K]"},
        {"A[I_X,J] B[J,K_X] -> C[I,K_X]", "X=4", d, "K",
         "all-gather A X 256 from I; einsum 256; C[I,K_X]"},
        /* question 4: slice the replicated side instead of gathering the other */
        {"A[B,D] W[D_X,F] -> C[B,F]", "X=4", "B=2,D=8,F=4", "D",
         "slice A X to D; einsum 32; all-reduce C X 16; C[B,F]"},
        /* an axis moves between dimensions of an operand: a chip holds 64 bytes of 4 chips */
        {"A[I_X,J] B[J_X,K] -> C[I,K]", "X=4", d, "J",
         "all-to-all A X 256 from I to J; einsum 256; all-reduce C X 64; C[I,K]"},
        /* and of the output */
        {"A[I_X,J] B[J,K] -> C[I,K_X]", "X=4", d, "I",
         "einsum 256; all-to-all C X 64 from I to K; C[I,K_X]"},
        /* partial operands */
        {"A[I,J] {U_X} B[J_X,K] -> C[I,K] {U_X}", "X=4", d, "J",
         "reduce-scatter A X 256 to J; einsum 256; C[I,K] {U_X}"},
        {"A[I,J] {U_X} B[J,K] -> C[I,K]", "X=4", d, "-", "all-reduce A X 256; einsum 1024; C[I,K]"},
        /* several axes in one step */
        {"A[I_XY,J] B[J,K] -> C[I,K]", "X=2,Y=4", d, "- -",
         "all-gather A XY 256 from I; einsum 1024; C[I,K]"},
        {"A[I_X,J_Y] B[J,K] -> C[I,K]", "X=2,Y=4", d, "- -",
         "all-gather A XY 256; einsum 1024; C[I,K]"},
        {"A[I_X,J_Y] B[J_Y,K] -> C[I_X,K]", "X=2,Y=4", d, "I J",
         "einsum 128; all-reduce C Y 32; C[I_X,K]"},
        /* FSDP and tensor parallelism: gather the weights over X only */
        {"A[I_X,J] B[J_X,K_Y] -> C[I_X,K_Y]", "X=4,Y=2", d, "I K",
         "all-gather B X 64 from J; einsum 128; C[I_X,K_Y]"},
        /* the minor axis leaves without more ado; for the major one the blocks change chips first
         */
        {"A[I_XY,J] B[J,K] -> C[I_X,K]", "X=2,Y=4", d, "I -",
         "all-gather A Y 128 from I; einsum 512; C[I_X,K]"},
        {"A[I_XY,J] B[J,K] -> C[I_Y,K]", "X=2,Y=4", d, "- I",
         "permute A XY 32; all-gather A X 64 from I; einsum 256; C[I_Y,K]"},
        {"A[I_XY,J] B[J,K] -> C[I_YX,K]", "X=2,Y=4", d, "I I",
         "einsum 128; permute C XY 8; C[I_YX,K]"},
        {"A[I_X,J] B[J,K] -> C[I_X,K]", "X=1", d, "-", "einsum 1024; C[I_X,K]"},
        /* two dimensions that swap axes and have no room for both at once */
        {"A[I_X,J_Y] B[J,K] -> C[I_Y,K] {U_X}", "X=2,Y=2", "I=2,J=2,K=2", "J I",
         "permute A XY 2; slice B X to J; einsum 4; C[I_Y,K] {U_X}"},
        /* a slice that divides only once the axis before it has gone */
        {"A[I_X,J] B[J,K] -> C[I_Y,K]", "X=2,Y=2", "I=2,J=2,K=2", "- I",
         "all-gather A X 8 from I; slice A Y to I; einsum 8; C[I_Y,K]"},
        /* question 2: the idle Z axis makes the gather faster, for a free slice before */
        {"A[B_X,D_Y] W[D,F] -> C[B,F]", "X=4,Y=2,Z=2", "B=8,D=4,F=2", "- D +",
         "slice A Z to B; all-gather A XZ 32 from B; slice W Y to D; einsum 64; "
         "all-reduce C Y 32; C[B,F]"},
        {"A[B_X,D_Y] W[D,F] -> C[B,F]", "X=4,Y=2,Z=2", "B=8,D=4,F=2", "- - +",
         "slice A Z to B; all-gather A XYZ 64; einsum 128; C[B,F]"},
        /* three operands: attention scores against values, heads over X, sequence over Y */
        {"Q[N_X,T_Y,H] K[N_X,S_Y,H] V[N_X,S_Y,D] -> O[N_X,T_Y,D]", "X=2,Y=2", "N=2,T=4,S=4,H=2,D=2",
         "N T", "all-gather K Y 16 from S; all-gather V Y 16 from S; einsum 64; O[N_X,T_Y,D]"},
        {"A[I_X] B[I_X] -> C[]", "X=4", "I=8", "I", "einsum 4; all-reduce C X 2; C[]"},
        {"A[I_X,J] -> C[J,I_X]", "X=4", "I=8,J=4", "I", "einsum 0; C[J,I_X]"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) lowers_as(&all[i]);
}

static void the_peak_counts_live_arrays(void **state) {
    sm_lowering l;
    const int8_t none[SM_MAX_AXES] = {-1, -1}, at_j[SM_MAX_AXES] = {1};
    /* A stored 64, gathered 256; B 128; C 64 */
    problem p = problem_of("A[I_X,J] B[J,K] -> C[I,K]", "X=4", "I=8,J=16,K=4");
    assert_int_equal(sm_einsum_lower(&p.einsum, &p.mesh, none, &p.einsum.out, false, &l, NULL),
                     SM_OK);
    assert_true(l.peak_bytes == 64 + 256 + 128 + 64);
    assert_true(l.flops_per_chip == 1024);
    assert_true(l.step[1].local_bytes == 256 + 128 + 64);
    /* A 64 and B 32 stored, C{U} 64, all-reduced 64 */
    p = problem_of("A[I,J_X] B[J_X,K] -> C[I,K]", "X=4", "I=8,J=16,K=4");
    assert_int_equal(sm_einsum_lower(&p.einsum, &p.mesh, at_j, &p.einsum.out, false, &l, NULL),
                     SM_OK);
    assert_true(l.peak_bytes == 64 + 32 + 64 + 64);
}

static void impossible_lowerings_are_explained(void **state) {
    static const struct {
        const char *text, *dims, *at, *sentence;
    } all[] = {
        {"A[I,J] B[J,K] -> C[I,K] {U_X}", "I=8,J=8,K=8", "I",
         "the output cannot be unreduced over X, which splits no contracted index"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        problem p = problem_of(all[i].text, "X=4", all[i].dims);
        int8_t at[SM_MAX_AXES];
        sm_lowering l;
        sm_error err = {0};
        assign(&p, all[i].at, at);
        assert_int_equal(sm_einsum_lower(&p.einsum, &p.mesh, at, &p.einsum.out, false, &l, &err),
                         SM_BAD_INPUT);
        assert_string_equal(err.sentence, all[i].sentence);
    }
    problem p = problem_of("A[I,J] B[J,K] -> C[I,K]", "X=4", "I=8,J=8,K=2");
    sm_lowering l;
    sm_error err = {0};
    int8_t at[SM_MAX_AXES] = {7};
    sm_array want = p.einsum.out;
    assert_int_equal(sm_einsum_lower(&p.einsum, &p.mesh, at, NULL, false, &l, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "axis X is assigned to index 7, which does not exist");
    at[0] = SM_REPLICATED;
    want.dim[1].n_axes = want.dim[0].n_axes = 1;
    assert_int_equal(sm_einsum_lower(&p.einsum, &p.mesh, at, &want, false, &l, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "axis X is used twice in C[I_X,K_X]");
    want = p.einsum.out;
    want.rank = 1;
    assert_int_equal(sm_einsum_lower(&p.einsum, &p.mesh, at, &want, false, &l, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence,
                        "the wanted output has other indices than the einsum's output");
}

/* ---- random cases ---- */

static int below(sm_rng *rng, int n) { return (int)sm_rng_below(rng, (uint64_t)n); }

static void random_mesh(sm_rng *rng, sm_mesh *mesh) {
    static const int sizes[] = {2, 2, 3, 4, 1};
    int chips = 1;
    memset(mesh, 0, sizeof *mesh);
    mesh->axes = 1 + below(rng, 3);
    for (int a = 0; a < mesh->axes; a++) {
        snprintf(mesh->axis[a].name, sizeof mesh->axis[a].name, "%c", 'X' + a);
        mesh->axis[a].size = sizes[below(rng, 5)];
        if (chips * mesh->axis[a].size > 16) mesh->axis[a].size = 1;
        chips *= mesh->axis[a].size;
    }
}

/* Sizes made of the axes' sizes, so that many shardings divide, and some do not: those are padded.
 */
static void random_indices(sm_rng *rng, problem *p, int indices) {
    double product = 1;
    p->einsum.indices = indices;
    for (int i = 0; i < indices; i++) {
        sm_index *index = &p->einsum.index[i];
        snprintf(index->name, sizeof index->name, "%c", 'I' + i);
        index->size = 1 + below(rng, 2);
        for (int a = 0; a < p->mesh.axes; a++)
            if (below(rng, 4) != 0 && product * index->size * p->mesh.axis[a].size <= 2000)
                index->size *= p->mesh.axis[a].size;
        if (below(rng, 5) == 0) index->size += 1 + below(rng, 3);
        product *= index->size;
    }
}

/* Does it divide? If not, one in three is cut all the same. */
static bool is_cut(sm_rng *rng, const problem *p, const sm_dim *dim, int axis) {
    return !sm_dim_padded(&p->einsum, &p->mesh, dim, (sm_axes)(1u << axis)) || below(rng, 3) == 0;
}

/* Random places for every axis; `unreduced` are the axes that may stay partial. */
static void random_sharding(sm_rng *rng, const problem *p, sm_array *array, sm_axes unreduced) {
    int order[SM_MAX_AXES];
    array->unreduced = 0;
    for (int d = 0; d < array->rank; d++) array->dim[d].n_axes = 0;
    for (int a = 0; a < p->mesh.axes; a++) {
        int other = below(rng, a + 1);
        order[a] = order[other];
        order[other] = a;
    }
    for (int k = 0; k < p->mesh.axes; k++) {
        int a = order[k], d = below(rng, array->rank + 2);
        if (d == array->rank && (unreduced >> a & 1) && below(rng, 2) == 0)
            array->unreduced |= (sm_axes)(1u << a);
        if (d < array->rank && is_cut(rng, p, &array->dim[d], a))
            array->dim[d].axis[array->dim[d].n_axes++] = (uint8_t)a;
    }
}

static void random_dims(sm_rng *rng, sm_array *array, unsigned from) {
    static const sm_dtype types[] = {SM_BF16, SM_FP32, SM_INT8};
    memset(array, 0, sizeof *array);
    array->dtype = types[below(rng, 3)];
    array->dtype_given = true;
    while (from != 0 && array->rank < 3 && below(rng, 6) != 0) {
        int i = below(rng, 5);
        if (!(from >> i & 1)) continue;
        array->dim[array->rank++].index = i;
        from &= ~(1u << i);
    }
}

/* An index of the operand stands in it once more: the einsum reads the diagonal. */
static void repeat_one(sm_rng *rng, problem *p, sm_array *array) {
    sm_einsum *e = &p->einsum;
    if (array->rank == 0 || array->rank == SM_MAX_RANK || below(rng, 3) != 0) return;
    int first = array->dim[below(rng, array->rank)].index;
    if (e->index[first].repeats > 0 || e->index[first].size > 24) return;
    e->index[e->indices] = e->index[first];
    e->index[e->indices].repeats = first + 1;
    array->dim[array->rank++] = (sm_dim){.index = e->indices++};
}

static bool has_index(const sm_array *array, int index) {
    int d = 0;
    while (d < array->rank && array->dim[d].index != index) d++;
    return d < array->rank;
}

/* What one operand of several has alone stands in the output: it would be no sum of a product. */
static void keep_lone_indices(problem *p, int indices) {
    sm_einsum *e = &p->einsum;
    for (int i = 0; i < indices && e->operands > 1; i++) {
        int operands = 0;
        for (int o = 0; o < e->operands; o++) operands += has_index(&e->in[o], i);
        if (operands == 1 && !has_index(&e->out, i))
            e->out.dim[e->out.rank++] = (sm_dim){.index = i};
    }
}

/* Every index must stand in some operand: the indices are those that do. */
static void random_problem(sm_rng *rng, problem *p) {
    unsigned known = 0;
    int indices = 1 + below(rng, 5);
    memset(p, 0, sizeof *p);
    random_mesh(rng, &p->mesh);
    random_indices(rng, p, indices);
    p->einsum.operands = 1 + below(rng, 3);
    for (int o = 0; o < p->einsum.operands; o++) {
        sm_array *array = &p->einsum.in[o];
        random_dims(rng, array, (1u << indices) - 1);
        snprintf(array->name, sizeof array->name, "%c", 'A' + o);
        for (int d = 0; d < array->rank; d++) known |= 1u << array->dim[d].index;
        repeat_one(rng, p, array);
        random_sharding(rng, p, array, below(rng, 3) == 0 ? 7 : 0);
    }
    for (int i = 0; i < indices; i++)
        if (!(known >> i & 1)) { /* give the index to the last operand */
            sm_array *array = &p->einsum.in[p->einsum.operands - 1];
            array->dim[array->rank++] = (sm_dim){.index = i};
            known |= 1u << i;
        }
    random_dims(rng, &p->einsum.out, known);
    keep_lone_indices(p, indices);
    snprintf(p->einsum.out.name, sizeof p->einsum.out.name, "Z");
    p->einsum.has_output = true;
}

static sm_axes random_assignment(sm_rng *rng, const problem *p, int8_t *at) {
    sm_dim split[SM_MAX_INDICES];
    unsigned partial = 0;
    memset(split, 0, sizeof split);
    for (int a = 0; a < p->mesh.axes; a++) {
        int i = below(rng, p->einsum.indices + 1) - 1, kept = 0;
        at[a] = below(rng, 2) == 0 ? SM_REPLICATED : SM_ASSISTING;
        if (i < 0) continue;
        split[i].index = i;
        if (!is_cut(rng, p, &split[i], a)) continue;
        split[i].axis[split[i].n_axes++] = (uint8_t)a;
        at[a] = (int8_t)i;
        for (int d = 0; d < p->einsum.out.rank; d++) kept |= p->einsum.out.dim[d].index == i;
        partial |= kept ? 0 : 1u << a;
    }
    return (sm_axes)partial;
}

static void one_random_lowering(sm_rng *rng, int *permutes, int *exchanges) {
    problem p;
    int8_t at[SM_MAX_AXES];
    sm_lowering l;
    sm_error err = {0};
    random_problem(rng, &p);
    sm_axes partial = random_assignment(rng, &p, at);
    bool keep = below(rng, 2) == 0, wanted = below(rng, 2) == 0;
    random_sharding(rng, &p, &p.einsum.out, partial);
    sm_array want = p.einsum.out;
    if (sm_einsum_lower(&p.einsum, &p.mesh, at, wanted ? &want : NULL, keep, &l, &err) != SM_OK)
        fail_msg("%s", err.sentence);
    execute(&p, &l, rng);
    if (wanted) assert_int_equal(l.out.unreduced, want.unreduced);
    for (int s = 0; s < l.steps; s++) {
        *permutes += l.step[s].op == SM_PERMUTE;
        *exchanges += l.step[s].op == SM_ALL_TO_ALL;
    }
}

static void random_lowerings_equal_the_whole_einsum(void **state) {
    sm_rng rng = {drawn_from(42)};
    int permutes = 0, exchanges = 0;
    for (int i = 0; i < (SANITIZED ? 500 : 1500); i++)
        one_random_lowering(&rng, &permutes, &exchanges);
    assert_true(SANITIZED || (permutes > 100 && exchanges > 100)); /* the hard moves were met */
}

/* ---- compositions: every array by a way of its own ---- */

/* The axes of the assignment on the dimensions of an array, those of one index in a given order. */
static sm_array split_as(const problem *p, const int8_t *at, const int *order,
                         const sm_array *array, bool product) {
    sm_array split = *array;
    split.unreduced = 0;
    for (int d = 0; d < split.rank; d++) split.dim[d].n_axes = 0;
    for (int k = 0; k < p->mesh.axes; k++) {
        bool kept = at[order[k]] < 0;
        for (int d = 0; d < split.rank; d++)
            if (split.dim[d].index == at[order[k]]) {
                split.dim[d].axis[split.dim[d].n_axes++] = (uint8_t)order[k];
                kept = true;
            }
        if (product && !kept) split.unreduced |= (sm_axes)(1u << order[k]);
    }
    return split;
}

/* One of the ways of a lone array, with axes that help or without. False: on parts that no other
 * array may be on. */
static bool lone_way(sm_rng *rng, const problem *p, const sm_array *from, const sm_array *to,
                     const sm_lowering *parts, sm_lowering *taken) {
    sm_einsum lone = p->einsum;
    sm_lowering way[SM_MOST_WAYS];
    sm_error err = {0};
    int8_t at[SM_MAX_AXES];
    sm_axes stays = from->unreduced & to->unreduced;
    lone.operands = 1;
    lone.in[0] = *from;
    lone.out = *to;
    lone.in[0].unreduced &= (sm_axes)~stays;
    lone.out.unreduced &= (sm_axes)~stays;
    bool helped = below(rng, 2) == 0;
    for (int a = 0; a < p->mesh.axes; a++)
        at[a] = helped && !(stays >> a & 1) ? SM_ASSISTING : SM_REPLICATED;
    for (int d = 0; d < to->rank; d++)
        for (int k = 0; k < to->dim[d].n_axes; k++)
            at[to->dim[d].axis[k]] = (int8_t)to->dim[d].index;
    int n = sm_einsum_lower_ways(&lone, &p->mesh, at, &lone.out, way, &err);
    if (n == 0) fail_msg("%s", err.sentence);
    *taken = way[below(rng, n)];
    bool same = taken->parts == 0 || taken->parts == parts->parts;
    for (int k = 0; k < taken->parts && same; k++)
        same = taken->part[k].axis == parts->part[k].axis &&
               taken->part[k].size == parts->part[k].size;
    return same;
}

static bool one_composition(sm_rng *rng, int *in_parts) {
    problem p;
    int8_t at[SM_MAX_AXES];
    int order[SM_MAX_AXES];
    sm_lowering move[SM_MAX_OPERANDS + 1], l, parts = {.parts = 0};
    sm_error err = {0};
    random_problem(rng, &p);
    sm_axes partial = random_assignment(rng, &p, at);
    random_sharding(rng, &p, &p.einsum.out, partial);
    for (int a = 0; a < p.mesh.axes; a++) {
        int other = below(rng, a + 1);
        order[a] = order[other];
        order[other] = a;
        if (at[a] == SM_ASSISTING) at[a] = SM_REPLICATED;
    }
    int n = p.einsum.operands;
    sm_composition c = {.einsum = &p.einsum, .mesh = &p.mesh, .at = at};
    for (int o = 0; o <= n; o++)
        c.split[o] = split_as(&p, at, order, o < n ? &p.einsum.in[o] : &p.einsum.out, o == n);
    sm_lowering_split(&parts, &p.mesh);
    for (int o = 0; o <= n; o++) {
        c.move[o] = &move[o];
        if (!lone_way(rng, &p, o < n ? &p.einsum.in[o] : &c.split[n],
                      o < n ? &c.split[o] : &p.einsum.out, &parts, &move[o]))
            return false;
    }
    if (sm_einsum_compose(&c, &l, &err) != SM_OK) fail_msg("%s", err.sentence);
    execute(&p, &l, rng);
    double bytes = 0;
    for (int o = 0; o <= n; o++) bytes += move[o].wire_bytes;
    assert_true(fabs(l.wire_bytes - bytes) <= 1e-9 * bytes);
    *in_parts += l.parts > 0;
    return true;
}

static void compositions_equal_the_whole_einsum(void **state) {
    sm_rng rng = {drawn_from(43)};
    int composed = 0, in_parts = 0;
    for (int i = 0; i < (SANITIZED ? 120 : 800); i++) composed += one_composition(&rng, &in_parts);
    assert_true(composed > (SANITIZED ? 50 : 400));
    if (!SANITIZED && drawn_from(43) == 43)
        assert_true(in_parts > 0); /* few are: not of every seed */
}

/* ---- alternatives ---- */

typedef struct gathered {
    const problem *p;
    sm_rng *rng;
    int n;
    char text[512][512];
} gathered;

static bool collect(const sm_lowering *l, void *context) {
    gathered *g = context;
    if (g->n == 512) return false;
    char *text = g->text[g->n++];
    describe(g->p, l, text, 512);
    snprintf(text + strlen(text), 512 - strlen(text), " |");
    for (int a = 0; a < g->p->mesh.axes; a++)
        snprintf(text + strlen(text), 512 - strlen(text), " %d", l->at[a]);
    for (int i = 0; i + 1 < g->n; i++)
        if (strcmp(g->text[i], text) == 0) fail_msg("twice: %s", text);
    if (g->rng != NULL) execute(g->p, l, g->rng);
    return true;
}

static int alternatives(const problem *p, sm_rng *rng, gathered *g) {
    sm_error err = {0};
    g->p = p;
    g->rng = rng;
    g->n = 0;
    sm_status status = sm_einsum_alternatives(&p->einsum, &p->mesh, collect, g, &err);
    if (status != SM_OK && status != SM_NEGATIVE) fail_msg("%s", err.sentence);
    return g->n;
}

static void has(const gathered *g, const char *start) {
    for (int i = 0; i < g->n; i++)
        if (strncmp(g->text[i], start, strlen(start)) == 0) return;
    for (int i = 0; i < g->n; i++) print_message("%s\n", g->text[i]);
    fail_msg("not found: %s", start);
}

static void the_books_choices_are_all_there(void **state) {
    static gathered g;
    const char *const d = "I=8,J=16,K=4";
    /* question 4: gather the weights, or sum partial products; and two more */
    problem p = problem_of("A[I,J] B[J_X,K] -> C[I,K]", "X=4", d);
    assert_int_equal(alternatives(&p, NULL, &g), 4);
    has(&g, "slice A X to J; einsum 256; all-reduce C X 64; C[I,K]");
    has(&g, "all-gather B X 128 from J; einsum 1024; C[I,K]");
    has(&g,
        "slice A X to I; all-gather B X 128 from J; einsum 256; all-gather C X 64 from I; C[I,K]");
    has(&g, "all-to-all B X 128 from J to K; einsum 256; all-gather C X 64 from K; C[I,K]");
    /* case 4 with no output asked for: both sides, neither, and both ways to scatter over J */
    p = problem_of("A[I_X,J] B[J,K_X]", "X=4", d);
    alternatives(&p, NULL, &g);
    has(&g, "all-gather B X 128 from K; einsum 256; [I_X,K]");
    has(&g, "all-gather A X 256 from I; einsum 256; [I,K_X]");
    has(&g, "all-gather A X 256 from I; all-gather B X 128 from K; einsum 1024; [I,K]");
    has(&g, "all-to-all A X 256 from I to J; all-to-all B X 128 from K to J; einsum 256; "
            "reduce-scatter  X 64 to I; [I_X,K]");
    assert_int_equal(g.n, 6);
    /* a wanted slice is never computed whole first */
    p = problem_of("A[I_X,J] B[J,K] -> C[I_X,K]", "X=4", d);
    alternatives(&p, NULL, &g);
    for (int i = 0; i < g.n; i++) assert_null(strstr(g.text[i], "einsum 1024"));
    has(&g, "einsum 256; C[I_X,K]");
    /* idle axes may be used or left */
    p = problem_of("A[I_X,J] B[J,K] -> C[I_X,K]", "X=4,Z=2", d);
    alternatives(&p, NULL, &g);
    has(&g, "einsum 256; C[I_X,K]");
    has(&g, "slice A Z to I; einsum 128; all-gather C Z 16 from I; C[I_X,K]");
    p = problem_of("A[I_X,J] B[J,K] -> C[I,K]", "X=4,Z=2", d);
    alternatives(&p, NULL, &g);
    has(&g, "slice A Z to I; all-gather A XZ 256 from I; einsum 1024; C[I,K]");
    has(&g, "einsum 256; slice C Z to I; all-gather C XZ 64 from I; C[I,K]");
    has(&g, "slice A Z to I; einsum 128; all-gather C XZ 64 from I; C[I,K]");
}

/* A chip has the part of the diagonal that its block holds; the rest adds up to it. */
static void a_diagonal_moves_as_one_dimension(void **state) {
    static gathered g;
    problem p = problem_of("A[I_X,I_Y] -> C[I_X]", "X=4,Y=2", "I=16");
    alternatives(&p, NULL, &g);
    has(&g, "einsum 0; all-reduce C Y 8; C[I_X]");
    p = problem_of("A[I_X,I_Y] -> C[I_Y]", "X=4,Y=2", "I=16");
    alternatives(&p, NULL, &g);
    has(&g, "einsum 0; all-reduce C X 16; C[I_Y]");
    p = problem_of("A[I_X,I]", "X=4", "I=16"); /* a trace, as numpy.einsum("ii") */
    alternatives(&p, NULL, &g);
    has(&g, "einsum 8; all-reduce  X 2; []");
    p = problem_of("A[I,J,I] B[I,J] -> C[J]", "X=1", "I=16,J=2");
    assert_true(sm_einsum_flops(&p.einsum) == 2 * 16 * 2);
}

static void no_way_is_a_negative_answer(void **state) {
    static gathered g;
    sm_error err = {0};
    /* partial sums of J, which no axis shortens: the output can never be {U_X} */
    problem p = problem_of("A[I,J] B[J,K] -> C[I,K] {U_X}", "X=4", "I=8,J=1,K=4");
    g.p = &p;
    assert_int_equal(sm_einsum_alternatives(&p.einsum, &p.mesh, collect, &g, &err), SM_NEGATIVE);
    assert_string_equal(err.sentence, "no assignment of the mesh axes gives this output");
    p.einsum.index[0].size = 0;
    assert_int_equal(sm_einsum_alternatives(&p.einsum, &p.mesh, collect, &g, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "index I has no size, give one such as I=4096");
}

static void random_alternatives_equal_the_whole_einsum(void **state) {
    static gathered g;
    sm_rng rng = {drawn_from(7)};
    int visited = 0;
    for (int i = 0; i < (SANITIZED ? 12 : 60); i++) {
        problem p;
        random_problem(&rng, &p);
        p.einsum.out_sharding_given = below(&rng, 2) == 0;
        if (p.einsum.out_sharding_given) random_sharding(&rng, &p, &p.einsum.out, 0);
        visited += alternatives(&p, &rng, &g);
    }
    print_message("%d executed\n", visited);
    assert_true(visited > (SANITIZED ? 80 : 400));
}

typedef struct executed {
    const problem *p;
    sm_rng *rng;
    double least; /* bytes */
} executed;

static bool execute_one(const sm_lowering *l, void *context) {
    executed *e = context;
    execute(e->p, l, e->rng);
    e->least = fmin(e->least, l->wire_bytes);
    return true;
}

/* Sizes that do not divide: parts of an axis cut elsewhere than the axis does. */
static void parts_of_padded_axes_equal_the_whole_array(void **state) {
    static const struct {
        const char *text, *mesh, *dims;
        double bytes; /* with whole axes 3700, 3924, 7336, 15720 */
    } all[] = {{"fp32 A[I,J_X] -> fp32 C[I_X,J_Y]", "X=2,Y=8", "I=50,J=131", 1900},
               {"fp32 A[I_X,J] -> fp32 C[I_Y,J_X]", "X=2,Y=8", "I=50,J=131", 2640},
               {"fp32 A[I_X,J] -> fp32 C[I_Y,J]", "X=2,Y=8", "I=50,J=131", 5240},
               {"fp32 A[I_X,J] -> fp32 C[I_Y,J]", "X=4,Y=2", "I=50,J=131", 14148}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        problem p = problem_of(all[i].text, all[i].mesh, all[i].dims);
        sm_rng rng = {1};
        executed e = {&p, &rng, INFINITY};
        sm_error err = {0};
        assert_int_equal(sm_einsum_alternatives(&p.einsum, &p.mesh, execute_one, &e, &err), SM_OK);
        print_message("%s: %.0f bytes\n", all[i].text, e.least);
        assert_true(e.least == all[i].bytes);
    }
}

static bool count(const sm_lowering *l, void *context) {
    (void)l;
    return ++*(int *)context > 0;
}

static void alternatives_are_quick_and_bounded(void **state) {
    int n = 0;
    problem p = problem_of("A[I_X,J_Y] B[J_X,K_Z]", "X=8,Y=4,Z=4", "I=4096,J=4096,K=4096");
    double start = sm_clock_s();
    assert_int_equal(sm_einsum_alternatives(&p.einsum, &p.mesh, count, &n, NULL), SM_OK);
    print_message("3 axes: %d alternatives in %.2f ms\n", n, 1e3 * (sm_clock_s() - start));
    n = 0;
    p = problem_of("A[a,b,c,d,e,f,g,h] B[a,b,c,d,i,j,k,l] C[i,j,k,l,m,n,o,p]",
                   "q=2,r=2,s=2,t=2,u=2,v=2,w=2,x=2",
                   "a=4,b=4,c=4,d=4,e=4,f=4,g=4,h=4,i=4,j=4,k=4,l=4,m=4,n=4,o=4,p=4");
    start = sm_clock_s();
    assert_int_equal(sm_einsum_alternatives(&p.einsum, &p.mesh, count, &n, NULL), SM_OK);
    print_message("8 axes, 16 indices: %d in %.1f ms\n", n, 1e3 * (sm_clock_s() - start));
    assert_in_range(n, 1, 4096);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_books_cases_lower),
        cmocka_unit_test(the_peak_counts_live_arrays),
        cmocka_unit_test(impossible_lowerings_are_explained),
        cmocka_unit_test(random_lowerings_equal_the_whole_einsum),
        cmocka_unit_test(compositions_equal_the_whole_einsum),
        cmocka_unit_test(the_books_choices_are_all_there),
        cmocka_unit_test(no_way_is_a_negative_answer),
        cmocka_unit_test(random_alternatives_equal_the_whole_einsum),
        cmocka_unit_test(a_diagonal_moves_as_one_dimension),
        cmocka_unit_test(parts_of_padded_axes_equal_the_whole_array),
        cmocka_unit_test(alternatives_are_quick_and_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
