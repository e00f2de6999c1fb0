/* Random einsums on ranks, against the product of the whole arrays. */
#include "random_einsums.h"

#include <stdio.h>
#include <string.h>

#include "scalemodel/lowering.h"

/* Indices are 8, 16 and 24 long in turn: any mesh divides them, and few matrices are square. In
 * every other case some have 1 to ODD elements, which most meshes pad. */
enum { SIZE = 8, LENGTHS = 3, ODD = 13, MOST_WAYS = 24, MOST_TEXT = 200 };

/* ---- random einsums ---- */

static const char *const meshes[] = {"X=1", "X=2",         "X=4",    "X=2,Y=2",
                                     "X=8", "X=2,Y=2,Z=2", "X=4,Y=2"};
enum { MESHES = sizeof meshes / sizeof *meshes };
/* without shardings */
static const char *const forms[] = {
    "IJ,JK>IK", "IJ,JK>KI",  "BIJ,BJK>BIK", "BIJ,JK>BIK", "IJ,KJ>IK", "JI,JK>IK",    "BIJ,KBJ>IBK",
    "IJ,IJ>I",  "IJK,KJ>IJ", "IJ,JKL>IKL",  "IJ,JI>IJ",   "IJ>J",     "IJ,JK,KL>IL", "IJ>IJ",
    "IJK>IJK",  "IJK>KIJ",   "II>I",        "IJI>JI",     "IIJ>J"};

typedef struct text {
    char of[MOST_TEXT];
    size_t n;
} text;

static void say(text *t, const char *words) {
    t->n += (size_t)snprintf(t->of + t->n, sizeof t->of - t->n, "%s", words);
}

/* One array with each free axis on a random dimension, or none. */
static void say_array(text *t, const char *dims, size_t n, const char *axes, sm_rng *rng,
                      sm_element element) {
    char on[8][8] = {{0}};
    for (const char *a = axes; *a; a++) {
        uint64_t at = sm_rng_below(rng, 2 * n);
        if (at < n) on[at][strlen(on[at])] = *a;
    }
    say(t, element == SM_ELEMENT_F32 ? "fp32 [" : "int32 [");
    for (size_t d = 0; d < n; d++) {
        if (d) say(t, ",");
        say(t, (char[]){dims[d], 0});
        if (on[d][0]) say(t, "_");
        say(t, on[d]);
    }
    say(t, "]");
}

static void random_einsum(const char *form, const sm_mesh *mesh, sm_rng *rng, sm_element element,
                          text *t) {
    char axes[8] = {0};
    for (int a = 0; a < mesh->axes; a++) axes[a] = mesh->axis[a].name[0];
    *t = (text){.n = 0};
    while (*form) {
        size_t n = strcspn(form, ",>");
        say_array(t, form, n, axes, rng, element);
        form += n;
        if (*form == ',') say(t, " * ");
        if (*form == '>') say(t, " -> ");
        if (*form) form++;
    }
}

/* ---- one case on one rank ---- */

typedef struct ways {
    int n;
    sm_lowering way[MOST_WAYS];
} ways;
static bool keep(const sm_lowering *lowering, void *context) {
    ways *w = context;
    w->way[w->n++] = *lowering;
    return w->n < MOST_WAYS;
}

typedef struct job {
    sm_mesh mesh;
    sm_einsum einsum;
    ways ways;
    const char *text;
    sm_element element; /* of 4 bytes; small whole numbers are exact in either */
} job;

/* A small whole number that every position has of its own. */
static double small_number(const size_t *position, int rank, void *context) {
    uint64_t hash = (uint64_t)(uintptr_t)context + 7;
    for (int d = 0; d < rank; d++) hash = hash * 31 + position[d] * 17 + 3;
    return (double)(hash % 11) - 5.0;
}

static sm_status whole_product(const job *j, sm_local_block *out, sm_error *err) {
    const sm_einsum *e = &j->einsum;
    sm_local_block in[SM_MAX_OPERANDS] = {{.rank = 0}};
    int8_t label[SM_MAX_OPERANDS][SM_MAX_RANK] = {{0}}, to[SM_MAX_RANK] = {0};
    size_t size[SM_MAX_RANK] = {0};
    sm_communicator *self = NULL;
    sm_rank_mesh *m = NULL;
    sm_mesh none = {.axes = 0};
    sm_status status = sm_communicator_self(&self, err);
    if (!status) status = sm_rank_mesh_new(self, &none, &m, err);
    for (int i = 0; !status && i < e->operands; i++) {
        sm_array bare = e->in[i];
        for (int d = 0; d < bare.rank; d++) {
            int index = bare.dim[d].index, first = sm_index_repeats(e, index);
            bare.dim[d].n_axes = 0;
            label[i][d] = (int8_t)(first >= 0 ? first : index);
        }
        status = sm_local_block_of(m, e, &bare, j->element,
                                   &(sm_filling){small_number, (void *)(uintptr_t)i}, &in[i], err);
    }
    for (int d = 0; d < e->out.rank; d++) {
        to[d] = (int8_t)e->out.dim[d].index;
        size[d] = (size_t)e->index[to[d]].size;
    }
    if (!status) status = sm_local_block_new(j->element, e->out.rank, size, out, err);
    if (!status)
        status =
            sm_local_einsum(e->operands, in, (const int8_t(*)[SM_MAX_RANK])label, to, out, err);
    for (int i = 0; i < e->operands; i++) sm_local_block_free(&in[i]);
    sm_rank_mesh_free(m);
    sm_communicator_free(self);
    return status;
}

static double value_at(const sm_local_block *b, size_t at) {
    if (b->element == SM_ELEMENT_F32) return (double)((const float *)b->data)[at];
    return ((const int32_t *)b->data)[at];
}

static double looked_up(const size_t *position, int rank, void *context) {
    const sm_local_block *whole = context;
    size_t at = 0;
    for (int d = 0; d < rank; d++) at = at * whole->size[d] + position[d];
    return value_at(whole, at);
}

static sm_status same(const sm_rank_mesh *m, const job *j, const sm_lowering *way,
                      sm_local_block *whole, const sm_local_block *got, sm_error *err) {
    sm_local_block wanted;
    sm_status status = sm_local_block_of(m, &j->einsum, &way->out, j->element,
                                         &(sm_filling){looked_up, whole}, &wanted, err);
    if (status) return status;
    size_t count = sm_local_block_count(&wanted);
    bool equal = count == sm_local_block_count(got);
    for (size_t i = 0; equal && i < count; i++) equal = value_at(&wanted, i) == value_at(got, i);
    sm_local_block_free(&wanted);
    return equal ? SM_OK : sm_fail(err, SM_NEGATIVE, "%s differs from the whole product", j->text);
}

static sm_status bytes_as_predicted(const job *j, const sm_lowering *way, const sm_run_result *r,
                                    sm_error *err) {
    for (int i = 0; i < way->steps; i++)
        if (way->step[i].kind == SM_STEP_COLLECTIVE &&
            r->step[i].bytes_counted != way->step[i].bytes)
            return sm_fail(err, SM_NEGATIVE, "%s: %s counts %.0f bytes, predicted %.0f", j->text,
                           sm_collective_name(way->step[i].op), r->step[i].bytes_counted,
                           way->step[i].bytes);
    return SM_OK;
}

static sm_status run_way(sm_rank_mesh *m, const job *j, const sm_lowering *way, int overlapped,
                         int directions, const sm_local_block *in, sm_local_block *whole,
                         sm_error *err) {
    sm_run_result result;
    sm_status status = sm_run_lowering(m, &j->einsum, way, &(sm_run_way){overlapped, directions},
                                       in, &result, err);
    if (status) return status;
    status = same(m, j, way, whole, &result.out, err);
    if (!status) status = bytes_as_predicted(j, way, &result, err);
    sm_local_block_free(&result.out);
    return status;
}

/* As it is, and with each step inside the einsum that can be. */
static sm_status run_variants(sm_rank_mesh *m, const job *j, const sm_lowering *way,
                              const sm_local_block *in, sm_local_block *whole, sm_error *err) {
    int steps[SM_MAX_STEPS], n = sm_lowering_overlaps(way, steps);
    sm_status status = run_way(m, j, way, -1, 1, in, whole, err);
    for (int i = 0; !status && i < n; i++)
        status = run_way(m, j, way, steps[i], 1 + (way->steps + i) % 2, in, whole, err);
    return status;
}

static sm_status run_all(sm_rank_mesh *m, const job *j, sm_error *err) {
    sm_local_block in[SM_MAX_OPERANDS] = {{.rank = 0}}, whole = {.rank = 0};
    sm_status status = whole_product(j, &whole, err);
    for (int i = 0; !status && i < j->einsum.operands; i++)
        status = sm_local_block_of(m, &j->einsum, &j->einsum.in[i], j->element,
                                   &(sm_filling){small_number, (void *)(uintptr_t)i}, &in[i], err);
    for (int i = 0; !status && i < j->ways.n; i++)
        status = run_variants(m, j, &j->ways.way[i], in, &whole, err);
    for (int i = 0; i < j->einsum.operands; i++) sm_local_block_free(&in[i]);
    sm_local_block_free(&whole);
    return status;
}

/* ---- many cases ---- */

static sm_status prepare(job *j, const char *words, sm_rng *rng, sm_error *err) {
    sm_source source = sm_source_of("einsum", words);
    sm_status status = sm_einsum_parse(&source, &j->mesh, &j->einsum, err);
    if (status) return status;
    bool padded = sm_rng_below(rng, 2);
    for (int i = 0; i < j->einsum.indices; i++)
        if (j->einsum.index[i].repeats == 0)
            sm_index_set_size(&j->einsum, i,
                              padded && sm_rng_below(rng, 3) ? (double)(1 + sm_rng_below(rng, ODD))
                                                             : SIZE * (1 + i % LENGTHS));
    j->text = words;
    j->ways.n = 0;
    status = sm_einsum_alternatives(&j->einsum, &j->mesh, keep, &j->ways, err);
    return status == SM_NEGATIVE ? SM_OK : status;
}

/* A mesh that these ranks fill. */
static sm_status random_mesh(int ranks, sm_rng *rng, sm_mesh *mesh, sm_error *err) {
    sm_status status = SM_OK;
    do {
        const char *words = meshes[sm_rng_below(rng, MESHES)];
        sm_source source = sm_source_of("mesh", words);
        status = sm_mesh_parse(&source, mesh, err);
    } while (!status && (int)sm_mesh_size(mesh, (sm_axes)((1u << mesh->axes) - 1)) != ranks);
    return status;
}

static sm_status run_case(sm_rank_mesh *m, sm_rng *rng, job *j, sm_error *err) {
    text words;
    const char *form = forms[sm_rng_below(rng, sizeof forms / sizeof *forms)];
    j->mesh = m->mesh;
    j->element = sm_rng_below(rng, 2) ? SM_ELEMENT_F32 : SM_ELEMENT_S32;
    random_einsum(form, &j->mesh, rng, j->element, &words);
    sm_status status = prepare(j, words.of, rng, err);
    return status ? status : run_all(m, j, err);
}

/* Ten on one mesh: groups of processes are slow to make. */
static sm_status run_cases(sm_communicator *world, random_einsums *all, sm_rng *rng, job *j,
                           sm_error *err) {
    sm_mesh mesh;
    sm_rank_mesh *m = NULL;
    sm_status status = random_mesh(world->size, rng, &mesh, err);
    if (!status) status = sm_rank_mesh_new(world, &mesh, &m, err);
    for (int i = 0; !status && i < 10; i++) {
        status = run_case(m, rng, j, err);
        if (world->rank == 0) all->ways += j->ways.n;
    }
    sm_rank_mesh_free(m);
    return status;
}

sm_status random_einsums_run(sm_communicator *world, void *context, sm_error *err) {
    random_einsums *all = context;
    sm_rng rng = {all->seed};
    job *j = sm_malloc(sizeof *j);
    sm_status status = j ? SM_OK : sm_fail_memory(err);
    for (int i = 0; !status && i < all->cases; i += 10)
        status = run_cases(world, all, &rng, j, err);
    sm_free(j);
    return status;
}
