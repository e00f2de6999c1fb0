/* lowering_words: the book's four cases, told for one mesh axis at a time. */
#include "scalemodel/answer_words.h"

#include <string.h>

const char *sm_array_words(sm_report *r, const sm_einsum *einsum, int array) {
    const char *name = array < 0 ? einsum->out.name : einsum->in[array].name;
    if (name[0]) return name;
    return array < 0 ? "the output" : sm_textf(r, "operand %d", array + 1);
}

/* ---- steps ---- */

const char *sm_step_op(const sm_step *step) {
    if (step->kind == SM_STEP_EINSUM) return "einsum";
    return step->kind == SM_STEP_SLICE ? "slice" : sm_collective_name(step->op);
}

const char *sm_step_words(sm_report *r, const sm_einsum *einsum, const sm_mesh *mesh,
                          const sm_lowering *lowering, int number) {
    const sm_step *step = &lowering->step[number];
    sm_mesh parts;
    if (step->kind == SM_STEP_EINSUM) return sm_step_op(step);
    sm_lowering_mesh(lowering, mesh, &parts);
    const char *name = sm_array_words(r, einsum, step->array),
               *axes = sm_axes_words(r, &parts, step->axes);
    const char *onto = step->to >= 0 ? sm_textf(r, " onto %s", einsum->index[step->to].name) : "";
    return sm_textf(r, "%s %s over %s%s", sm_step_op(step), name, axes, onto);
}

const char *sm_lowering_words(sm_report *r, const sm_einsum *einsum, const sm_mesh *mesh,
                              const sm_lowering *lowering, int overlapped) {
    const char *text = "";
    for (int s = 0; s < lowering->steps; s++)
        if (!lowering->moves_only || lowering->step[s].kind != SM_STEP_EINSUM)
            text = sm_textf(r, "%s%s%s%s", text, text[0] ? ", " : "",
                            sm_step_words(r, einsum, mesh, lowering, s),
                            s == overlapped ? " inside the einsum" : "");
    return text[0] ? text : "nothing to do";
}

static void shard(sm_array *array, const sm_layout *layout) {
    array->unreduced = 0;
    for (int d = 0; d < array->rank; d++) array->dim[d].n_axes = 0;
    for (int place = 0; place < SM_MAX_AXES; place++)
        for (int a = 0; a < SM_MAX_AXES; a++) {
            if (layout->dim[a] < 0 || layout->place[a] != place) continue;
            sm_dim *dim = &array->dim[layout->dim[a]];
            dim->axis[dim->n_axes++] = (uint8_t)a;
        }
    for (int a = 0; a < SM_MAX_AXES; a++)
        if (layout->dim[a] == SM_UNREDUCED) array->unreduced |= (sm_axes)(1u << a);
}

/* An array as it is after the steps before `step`. */
static sm_array array_before(const sm_einsum *einsum, const sm_lowering *lowering, int array,
                             int step) {
    bool out = array < 0;
    sm_array a = sm_lowering_array(lowering, out ? &einsum->out : &einsum->in[array]);
    for (int s = 0; s < step; s++) {
        const sm_step *earlier = &lowering->step[s];
        if (earlier->array == array || (out && earlier->kind == SM_STEP_EINSUM))
            shard(&a, &earlier->after);
    }
    a.dtype_given = false;
    return a;
}

const char *sm_step_notation(sm_report *r, const sm_einsum *einsum, const sm_mesh *mesh,
                             const sm_lowering *lowering, int number) {
    const sm_step *step = &lowering->step[number];
    bool multiplies = step->kind == SM_STEP_EINSUM;
    const char *text = "";
    sm_mesh parts;
    sm_lowering_mesh(lowering, mesh, &parts);
    for (int o = 0; o < einsum->operands; o++) {
        if (!multiplies && o != step->array) continue;
        sm_array a = array_before(einsum, lowering, o, number);
        text = sm_textf(r, "%s%s ", text, sm_array_notation(r, &a, einsum, &parts));
    }
    if (!multiplies && step->array < 0) {
        sm_array a = array_before(einsum, lowering, -1, number);
        text = sm_textf(r, "%s ", sm_array_notation(r, &a, einsum, &parts));
    }
    sm_array after = sm_lowering_array(
        lowering, multiplies || step->array < 0 ? &einsum->out : &einsum->in[step->array]);
    shard(&after, &step->after);
    after.dtype_given = false;
    return sm_textf(r, "%s-> %s", text, sm_array_notation(r, &after, einsum, &parts));
}

/* ---- what an axis meets ---- */

/* Where the operands hold one axis. */
typedef struct meeting {
    int operands, operand[SM_MAX_OPERANDS], index[SM_MAX_OPERANDS];
    bool partial_sums; /* some operand comes unreduced over the axis */
} meeting;

static bool is_contracted(const sm_einsum *einsum, int index) {
    for (int d = 0; d < einsum->out.rank; d++)
        if (einsum->out.dim[d].index == index) return false;
    return true;
}

static bool all_on_one_index(const meeting *m) {
    for (int i = 1; i < m->operands; i++)
        if (m->index[i] != m->index[0]) return false;
    return true;
}

static const char *single_words(sm_report *r, const sm_einsum *einsum, const meeting *m) {
    const char *name = sm_array_words(r, einsum, m->operand[0]),
               *index = einsum->index[m->index[0]].name;
    if (sm_index_repeats(einsum, m->index[0]) >= 0)
        return sm_textf(r, "only %s is sharded, along %s, of which it has another dimension", name,
                        index);
    if (is_contracted(einsum, m->index[0]))
        return sm_textf(r, "only %s is sharded along the contracted %s (case 2)", name, index);
    return sm_textf(r, "only %s is sharded, along %s which is kept (case 1)", name, index);
}

static const char *several_words(sm_report *r, const sm_einsum *einsum, const meeting *m) {
    if (!all_on_one_index(m))
        return sm_textf(
            r, "%s is sharded along %s and %s along %s, and one axis cannot serve both (case 4)",
            sm_array_words(r, einsum, m->operand[0]), einsum->index[m->index[0]].name,
            sm_array_words(r, einsum, m->operand[1]), einsum->index[m->index[1]].name);
    const char *index = einsum->index[m->index[0]].name;
    if (is_contracted(einsum, m->index[0]))
        return sm_textf(r, "both operands are sharded along the contracted %s (case 3)", index);
    return sm_textf(r, "the operands are sharded along the batch index %s (case 1)", index);
}

static const char *meeting_words(sm_report *r, const sm_einsum *einsum, const meeting *m) {
    if (m->partial_sums) return "an operand comes as partial sums";
    if (m->operands == 0) return "no operand is sharded on it";
    return m->operands == 1 ? single_words(r, einsum, m) : several_words(r, einsum, m);
}

/* ---- what is done about it ---- */

static const char *einsum_action(sm_report *r, const sm_einsum *einsum, const sm_lowering *lowering,
                                 int axis) {
    int8_t at = lowering->at[axis];
    if (at == SM_ASSISTING) return "its links help the all-gathers";
    if (at < 0) return "every chip along it multiplies the same";
    const char *index = einsum->index[at].name;
    if (sm_index_repeats(einsum, at) >= 0)
        return sm_textf(r, "each chip has what its block holds of the diagonal: partial sums");
    if (is_contracted(einsum, at))
        return sm_textf(r, "each chip sums its part of %s: partial sums", index);
    return sm_textf(r, "each chip does its part of %s", index);
}

static const char *step_action(sm_report *r, const sm_einsum *einsum, const sm_step *step) {
    const char *name = sm_array_words(r, einsum, step->array);
    const char *onto = step->to >= 0 ? sm_textf(r, " onto %s", einsum->index[step->to].name) : "";
    return sm_textf(r, "%s of %s%s", sm_step_op(step), name, onto);
}

const char *sm_axis_words(sm_report *r, const sm_einsum *einsum, const sm_mesh *mesh,
                          const sm_lowering *lowering, int axis) {
    meeting m = {.operands = 0};
    for (int o = 0; o < einsum->operands; o++) {
        const sm_array *array = &einsum->in[o];
        m.partial_sums = m.partial_sums || (array->unreduced >> axis & 1);
        for (int d = 0; d < array->rank; d++)
            for (int i = 0; i < array->dim[d].n_axes; i++)
                if (array->dim[d].axis[i] == axis) {
                    m.operand[m.operands] = o;
                    m.index[m.operands++] = array->dim[d].index;
                }
    }
    const char *text = sm_textf(r, "%s: %s", mesh->axis[axis].name, meeting_words(r, einsum, &m));
    bool talks = false;
    for (int s = 0; s < lowering->steps; s++) {
        const sm_step *step = &lowering->step[s];
        bool middle = step->kind == SM_STEP_EINSUM;
        if (!middle && !(sm_lowering_axes(lowering, step->axes) >> axis & 1)) continue;
        talks = talks || step->kind == SM_STEP_COLLECTIVE;
        text = sm_textf(r, "%s; %s", text,
                        middle ? einsum_action(r, einsum, lowering, axis)
                               : step_action(r, einsum, step));
    }
    return sm_textf(r, "%s%s.", text, talks ? "" : "; nothing to communicate");
}

const char *sm_cost_formula(sm_report *r, const sm_lowering_cost *cost) {
    if (cost->overlapped < 0) return "sum of the steps";
    return sm_textf(r, "%d x max(chunk einsum, chunk transfer) + chunk einsum, + other steps",
                    cost->chunks - 1);
}

/* ---- padding ---- */

static void tell_padding(sm_report *r, const sm_einsum *einsum, const sm_mesh *mesh,
                         const sm_dim *dim, sm_padding_told *told) {
    const sm_index *index = &einsum->index[dim->index];
    sm_axes axes = 0;
    for (int i = 0; i < dim->n_axes; i++) axes |= (sm_axes)(1u << dim->axis[i]);
    double ways = sm_mesh_size(mesh, axes), block = sm_cut(index->size, ways);
    if (!sm_dim_padded(einsum, mesh, dim, 0) || told->n == SM_MAX_INDICES) return;
    const char *sentence = sm_textf(
        r, "%s of %.0f over %s is padded to %.0f: %.0f blocks of %.0f, %s of them padding.",
        index->name, index->size, sm_axes_words(r, mesh, axes), block * ways, ways, block,
        sm_show_percent(r, 1 - index->size / (block * ways)));
    for (int i = 0; i < told->n; i++)
        if (strcmp(told->sentence[i], sentence) == 0) return;
    told->sentence[told->n++] = sentence;
    if (!told->list) told->list = sm_put_array(r, r->data, "padded");
    sm_put(r, sm_put_object(r, told->list, NULL), "index|size|over|padded_size|block", index->name,
           index->size, sm_axes_words(r, mesh, axes), block * ways, block);
    sm_report_text(r, "%s", sentence);
}

static sm_dim assigned(const sm_mesh *mesh, const sm_lowering *lowering, int index) {
    sm_dim dim = {.index = index};
    for (int a = 0; a < mesh->axes; a++)
        if (lowering->at[a] == index) dim.axis[dim.n_axes++] = (uint8_t)a;
    return dim;
}

void sm_padding_of_array(sm_report *r, const sm_einsum *einsum, const sm_array *array,
                         const sm_mesh *mesh, sm_padding_told *told) {
    for (int d = 0; d < array->rank; d++) tell_padding(r, einsum, mesh, &array->dim[d], told);
}

void sm_padding_page(sm_report *r, const sm_einsum *einsum, const sm_mesh *mesh,
                     const sm_lowering *lowering, sm_padding_told *told) {
    for (int o = 0; o < einsum->operands; o++)
        sm_padding_of_array(r, einsum, &einsum->in[o], mesh, told);
    sm_padding_of_array(r, einsum, &lowering->out, mesh, told);
    for (int i = 0; i < einsum->indices; i++) {
        sm_dim dim = assigned(mesh, lowering, i);
        tell_padding(r, einsum, mesh, &dim, told);
    }
}

double sm_padding_of(const sm_einsum *einsum, const sm_mesh *mesh, const sm_lowering *lowering) {
    double needed = 1;
    for (int i = 0; i < einsum->indices; i++) {
        sm_dim dim = assigned(mesh, lowering, i);
        double ways = sm_dim_ways(mesh, &dim, 0), size = einsum->index[i].size;
        needed *= size / (sm_cut(size, ways) * ways);
    }
    return 1 - needed;
}
