/* How long arrays live: the last use of each in a pass against a plain reading of the tasks. */
#include "unit.h"
#include <string.h>

#include "program_parts.h"
#include "train_plans.h"
#include "partition.h"

enum { TOKENS = 16, SEQUENCES = 8 };

/* A layer under degrees of expert, tensor and context, as it is run. */
static void walk(train_kind kind, int expert, int tensor, int context, sm_recompute policy,
                 sm_task_list *w) {
    sm_error err = {.status = SM_OK};
    sm_model model = train_model(kind, 2);
    sm_rules rules =
        sm_rules_of_runtime((sm_rules){.seq = tensor > 1, .context_by = SM_CONTEXT_GATHER});
    sm_program program;
    sm_mesh mesh = *sm_program_mesh();
    double size[SM_MAX_DIMENSIONS];
    assert_int_equal(sm_program_build(&model, SM_PIECE_LAYER, 0, TOKENS, &rules, &program, &err),
                     SM_OK);
    for (int a = 0; a < SM_AXIS_COUNT; a++) mesh.axis[a].size = 1;
    mesh.axis[SM_AXIS_EXPERT].size = expert;
    mesh.axis[SM_AXIS_TENSOR].size = tensor;
    mesh.axis[SM_AXIS_CONTEXT].size = context;
    sm_program_sizes(&program, &(sm_program_extent){.sequences = SEQUENCES}, size);
    if (sm_task_list_new(&program, &mesh, size, sm_recompute_set(&program, policy), SM_REGATHER_ALL,
                         w, &err))
        fail_msg("%s", err.sentence);
}

static const int degrees[][3] = {{1, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 1}, {2, 2, 2}};
enum { MESHES = sizeof degrees / sizeof *degrees };

static void for_every(void (*check)(const sm_task_list *w)) {
    sm_task_list w;
    for (int kind = 0; kind < TRAIN_KINDS; kind++)
        for (int m = 0; m < MESHES; m++)
            for (int policy = 0; policy < SM_RECOMPUTE_COUNT; policy++) {
                if (kind == TRAIN_DENSE && degrees[m][0] > 1) continue;
                walk((train_kind)kind, degrees[m][0], degrees[m][1], degrees[m][2],
                     (sm_recompute)policy, &w);
                check(&w);
                sm_task_list_free(&w);
            }
}

static bool is_weight(const sm_task_list *w, const sm_program_task *t) {
    return t->kind == SM_TASK_WEIGHT_GRADIENT ||
           (t->kind == SM_TASK_HOME && w->program->tensor[t->result].role == SM_ROLE_WEIGHT);
}

/* Every gradient once, in the order of the walk; what runs again before them. */
static void check_order(const sm_task_list *w) {
    for (int order = 0; order < SM_PASS_ORDERS; order++) {
        const sm_last_use *last = w->last[order];
        int weights = w->weights[order], n = w->entries[order], want = 0;
        bool forward = order == SM_PASS_FORWARD;
        for (int i = 0; i < w->tasks; i++)
            want += w->task[i].kind == SM_TASK_FORWARD ? forward || (w->again >> w->task[i].op & 1)
                                                       : !forward;
        assert_int_equal(n, want);
        for (int i = 1; i < n; i++)
            assert_true(last[i].task > last[i - 1].task || (i == weights && !forward));
        for (int i = 0; i < n && order == SM_PASS_SPLIT; i++)
            assert_true(is_weight(w, &w->task[last[i].task]) == (i >= weights));
        if (order == SM_PASS_BACKWARD) assert_int_equal(weights, n);
    }
}

static void passes_run_every_task_once(void **state) { for_every(check_order); }

/* Does the task read this value, or this gradient, as an operand or beside them? */
static bool reads(const sm_task_list *w, const sm_program_task *t, int tensor, bool gradient) {
    const sm_op *op = &w->program->op[t->op];
    if (t->kind == SM_TASK_HOME || t->kind == SM_TASK_JOIN) return false;
    for (int i = 0; i < t->einsum.operands; i++)
        if (t->tensor[i] == tensor && t->gradient[i] == gradient && !task_operand_is_shape(w, t, i))
            return true;
    if (gradient || t->kind == SM_TASK_FORWARD) return false;
    if (op->reads_output && op->out == tensor) return true;
    for (int i = 0; i < op->inputs; i++)
        if (op->in[i] == tensor && (op->reads >> i & 1) &&
            (op->kind == SM_OP_VECTOR || op->kind == SM_OP_GATHER))
            return true;
    return false;
}

/* What is let go is not read later, is let go once, and what is read is let go in the end. */
static void check_ends(const sm_task_list *w) {
    for (int order = 0; order < SM_PASS_ORDERS; order++) {
        const sm_last_use *last = w->last[order];
        int n = w->entries[order];
        sm_bits gone[2] = {0, 0}, read[2] = {0, 0};
        for (int i = 0; i < n; i++) {
            sm_bits now[2] = {last[i].values, last[i].gradients};
            for (int k = 0; k < w->program->tensors; k++)
                for (int g = 0; g < 2; g++) {
                    if (!reads(w, &w->task[last[i].task], k, g)) continue;
                    assert_false(gone[g] >> k & 1);
                    read[g] |= sm_bit_of(k);
                }
            for (int g = 0; g < 2; g++) {
                assert_true((gone[g] & now[g]) == 0);
                gone[g] |= now[g];
            }
        }
        assert_true((read[0] & ~gone[0]) == 0 && (read[1] & ~gone[1]) == 0);
    }
}

static void arrays_end_with_their_last_reader(void **state) { for_every(check_ends); }

/* A version of an operand is let go by its last use, once. */
static void check_versions(const sm_task_list *w) {
    for (int order = 0; order < SM_PASS_ORDERS; order++) {
        const sm_last_use *last = w->last[order];
        int n = w->entries[order];
        for (int i = 0; i < n; i++)
            for (int o = 0; o < SM_MAX_OPERANDS; o++)
                for (int k = 0; last[i].moved[o] >> k; k++) {
                    if (!(last[i].moved[o] >> k & 1)) continue;
                    task_move gone = task_move_of(&w->task[last[i].task], o, k);
                    for (int j = i + 1; j < n; j++)
                        for (int p = 0; p < SM_MAX_OPERANDS; p++)
                            for (int s = 0; last[j].moved[p] >> s; s++) {
                                task_move later = task_move_of(&w->task[last[j].task], p, s);
                                assert_false((last[j].moved[p] >> s & 1) &&
                                             task_move_same(w, &gone, &later));
                            }
                }
    }
}

static void moved_arrays_end_once(void **state) { for_every(check_versions); }

/* Slots that reach their experts by all-to-all are kept as they arrive, and only so; on one chip
 * they do not travel. */
static void slots_are_kept_as_they_arrive(void **state) {
    sm_task_list w;
    int slots = -1;
    walk(TRAIN_EXPERTS, 2, 1, 1, SM_RECOMPUTE_NONE, &w);
    for (int i = 0; i < w.program->ops; i++)
        if (w.program->op[i].function == SM_FUNCTION_DISPATCH) slots = w.program->op[i].out;
    assert_true(slots >= 0 && !(w.kept >> slots & 1));
    assert_true(task_list_arrives(&w) == 1ull << slots);
    sm_task_list_free(&w);
    walk(TRAIN_EXPERTS, 1, 1, 1, SM_RECOMPUTE_NONE, &w);
    assert_true(task_list_arrives(&w) == 0 && (w.kept >> slots & 1));
    sm_task_list_free(&w);
    walk(TRAIN_DENSE, 1, 2, 1, SM_RECOMPUTE_FULL, &w);
    assert_true(task_list_arrives(&w) == 0);
    sm_task_list_free(&w);
}

/* Axes of one chip do not matter, nor does where they stand. */
static void layouts_of_one_chip_are_one(void **state) {
    sm_mesh mesh = *sm_program_mesh();
    sm_layout a, b;
    memset(&a, SM_REPLICATED, sizeof a);
    mesh.axis[SM_AXIS_DATA].size = 1;
    b = a;
    a.dim[SM_AXIS_DATA] = 0, a.place[SM_AXIS_DATA] = 0;
    a.dim[SM_AXIS_FSDP] = 0, a.place[SM_AXIS_FSDP] = 1;
    b.dim[SM_AXIS_FSDP] = 0, b.place[SM_AXIS_FSDP] = 0;
    assert_true(sm_layout_same(&mesh, &a, &b));
    b.dim[SM_AXIS_TENSOR] = 0, b.place[SM_AXIS_TENSOR] = 1;
    assert_false(sm_layout_same(&mesh, &a, &b));
    a.dim[SM_AXIS_TENSOR] = 0, a.place[SM_AXIS_TENSOR] = 0; /* before fsdp */
    assert_false(sm_layout_same(&mesh, &a, &b));
    a.place[SM_AXIS_TENSOR] = 2;
    assert_true(sm_layout_same(&mesh, &a, &b));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_run_every_task_once),
        cmocka_unit_test(arrays_end_with_their_last_reader),
        cmocka_unit_test(moved_arrays_end_once),
        cmocka_unit_test(slots_are_kept_as_they_arrive),
        cmocka_unit_test(layouts_of_one_chip_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
