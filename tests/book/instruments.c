/* Questions about chips, einsums and collectives. */
#include "instruments.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static sm_error last;

const char *book_last_error(void) { return last.sentence; }
sm_error *book_error(void);
sm_error *book_error(void) { return &last; }

/* ---- chips and systems ---- */

sm_chip book_chip(const char *name) {
    const sm_chip *chip = sm_chip_find(name, strlen(name));
    if (chip != NULL) return *chip;
    sm_fail(&last, SM_BAD_INPUT, "the catalogue has no chip %s", name);
    return (sm_chip){.name = "none"};
}

void book_give(sm_fact *fact, double value) { *fact = (sm_fact){value, "stated in the question"}; }

static sm_system parse_system(const sm_chip *chip, const char *text) {
    sm_system system = {0};
    sm_source source = sm_source_of("system", text);
    if (sm_system_parse(&source, chip, chip != NULL, &system, &last) != SM_OK)
        memset(&system, 0, sizeof system);
    return system;
}

sm_system book_system(const char *text) { return parse_system(NULL, text); }
sm_system book_system_of(const sm_chip *chip, const char *text) { return parse_system(chip, text); }

/* ---- einsums ---- */

sm_mesh book_mesh(const char *text) {
    sm_mesh mesh = {0};
    sm_source source = sm_source_of("mesh", text);
    if (sm_mesh_parse(&source, &mesh, &last) != SM_OK) memset(&mesh, 0, sizeof mesh);
    return mesh;
}

sm_einsum book_einsum(const char *text, const char *dims, const sm_mesh *mesh) {
    sm_einsum einsum = {0};
    sm_source source = sm_source_of("einsum", text), sizes = sm_source_of("dims", dims);
    bool ok = sm_einsum_parse(&source, mesh, &einsum, &last) == SM_OK &&
              (dims[0] == '\0' || sm_dims_parse(&sizes, &einsum, &last) == SM_OK);
    if (!ok) memset(&einsum, 0, sizeof einsum);
    return einsum;
}

sm_roofline book_roofline_of(const sm_chip *chip, const char *text, const char *dims,
                             sm_memory_level level) {
    sm_roofline roofline = {0};
    sm_einsum einsum = book_einsum(text, dims, NULL);
    if (sm_roofline_einsum(chip, &einsum, level, NULL, &roofline, &last) != SM_OK)
        roofline.math_s = roofline.memory_s = roofline.intensity = NAN;
    return roofline;
}

double book_critical(const sm_chip *chip, const char *text, const char *dims, const char *index,
                     sm_memory_level level) {
    sm_einsum einsum = book_einsum(text, dims, NULL);
    double size = NAN;
    for (int i = 0; i < einsum.indices; i++)
        if (strcmp(einsum.index[i].name, index) == 0 &&
            sm_roofline_critical(chip, &einsum, level, NULL, i, &size, &last) != SM_OK)
            return NAN;
    return size;
}

double book_flops(const char *text, const char *dims) {
    sm_einsum einsum = book_einsum(text, dims, NULL);
    return sm_einsum_flops(&einsum);
}

double book_local_bytes(const char *array, const char *mesh_text, const char *dims) {
    sm_mesh mesh = book_mesh(mesh_text);
    sm_einsum holder = {0};
    sm_source source = sm_source_of("array", array), sizes = sm_source_of("dims", dims);
    if (sm_array_parse(&source, &mesh, &holder, &last) != SM_OK ||
        (dims[0] != '\0' && sm_dims_parse(&sizes, &holder, &last) != SM_OK))
        return NAN;
    double bytes = sm_array_local_bytes(&holder.in[0], &holder, &mesh);
    for (int d = 0; d < holder.in[0].rank; d++) { /* the book tells the mean of all chips */
        const sm_dim *dim = &holder.in[0].dim[d];
        double ways = 1, size = holder.index[dim->index].size;
        for (int i = 0; i < dim->n_axes; i++) ways *= mesh.axis[dim->axis[i]].size;
        bytes *= size / (sm_cut(size, ways) * ways);
    }
    return bytes;
}

double book_read_s(const sm_chip *chip, double bytes) {
    return sm_vector_cost(chip, sm_calibration_of(chip), 0, bytes).memory_s;
}

static int8_t index_named(const sm_einsum *einsum, char letter) {
    for (int i = 0; i < einsum->indices; i++)
        if (einsum->index[i].name[0] == letter) return (int8_t)i;
    return SM_REPLICATED;
}

sm_lowering book_lowering(const char *text, const char *dims, const char *mesh_text,
                          const char *at) {
    sm_lowering lowering = {0};
    sm_mesh mesh = book_mesh(mesh_text);
    sm_einsum einsum = book_einsum(text, dims, &mesh);
    int8_t indices[SM_MAX_AXES];
    for (int i = 0; i < mesh.axes; i++) indices[i] = index_named(&einsum, at[i]);
    const sm_array *want = einsum.out_sharding_given ? &einsum.out : NULL;
    if (sm_einsum_lower(&einsum, &mesh, indices, want, false, &lowering, &last) != SM_OK)
        lowering.flops_per_chip = NAN;
    return lowering;
}

double book_step_bytes(const sm_lowering *lowering, sm_collective op) {
    double bytes = 0;
    for (int i = 0; i < lowering->steps; i++)
        if (lowering->step[i].kind == SM_STEP_COLLECTIVE && lowering->step[i].op == op)
            bytes += lowering->step[i].bytes;
    return bytes;
}

/* ---- collectives ---- */

static sm_axes axes_named(const sm_mesh *mesh, const char *letters) {
    sm_axes axes = 0;
    for (; *letters != '\0'; letters++) {
        int axis = sm_mesh_find(mesh, letters, 1);
        if (axis >= 0) axes = (sm_axes)(axes | 1u << axis);
    }
    return axes;
}

sm_curve book_curve(const sm_system *system, sm_collective op, const char *mesh_text,
                    const char *letters) {
    sm_curve curve = {0};
    sm_placement placement;
    sm_mesh mesh = book_mesh(mesh_text);
    sm_source source = sm_source_of("mesh", mesh_text);
    if (sm_placement_of_mesh(system, &mesh, &source, &placement, &last) != SM_OK) return curve;
    sm_group group = sm_group_join(&placement, axes_named(&mesh, letters));
    return sm_collective_curve(system, op, &group, 1);
}

sm_algorithm book_line(const sm_curve *curve, const char *algorithm) {
    for (int i = 0; i < curve->n; i++)
        if (algorithm == NULL ? curve->algorithm[i].book
                              : strcmp(curve->algorithm[i].name, algorithm) == 0)
            return curve->algorithm[i];
    if (curve->n > 0)
        sm_fail(&last, SM_BAD_INPUT, "no algorithm %s here", algorithm ? algorithm : "of the book");
    return (sm_algorithm){.name = "none", .line = {NAN, NAN}, .link_bytes_per_byte = NAN};
}

double book_s_per_byte(const sm_system *system, sm_collective op, const char *mesh,
                       const char *axes) {
    sm_curve curve = book_curve(system, op, mesh, axes);
    return book_line(&curve, NULL).line.s_per_byte;
}
