/* The walk of a program of serving tells the collectives that its partition prices: the same bytes
 * by kind, for dense models, routed and shared
 * experts, under rules of prompts and of decoding. */
#include "unit.h"
#include <string.h>

#include "model_of.h"
#include "scalemodel/program.h"
#include "partition.h"

enum { SEQUENCES = 64, QUERIES = 32, KEYS = 256, MOST_MOVES = 200 };

typedef struct told {
    int tensor, array;
    sm_layout after;
} told;
typedef struct walked {
    const sm_program *program;
    const sm_mesh *mesh;
    int moves, routed;
    told move[MOST_MOVES];
    double bytes[SM_COLLECTIVE_COUNT];
} walked;

/* What several ops read goes there once. */
static bool again(walked *w, int tensor, const sm_layout *after) {
    for (int i = 0; i < w->moves; i++)
        if (w->move[i].tensor == tensor && sm_layout_same(w->mesh, &w->move[i].after, after))
            return true;
    assert_true(w->moves < MOST_MOVES);
    w->move[w->moves++] = (told){.tensor = tensor, .after = *after};
    return false;
}

static sm_status tell(const sm_program_task *task, void *context, sm_error *err) {
    walked *w = context;
    (void)err;
    assert_int_equal(task->kind, SM_TASK_FORWARD);
    w->routed += w->program->op[task->op].function == SM_FUNCTION_COMBINE;
    for (int i = 0; i < task->lowering.steps; i++) {
        const sm_step *s = &task->lowering.step[i];
        int tensor = s->array < 0 ? task->result : task->tensor[s->array];
        const sm_tensor *t = &w->program->tensor[tensor];
        if (s->kind != SM_STEP_COLLECTIVE || s->op == SM_PERMUTE || t->role == SM_ROLE_IDS)
            continue;
        if (s->array >= 0 && again(w, tensor, &s->after)) continue;
        w->bytes[s->op] += s->bytes / sm_dtype_bytes((sm_dtype)0) * t->bytes_per_element;
    }
    return SM_OK;
}

static double priced(const sm_partition *p, const sm_mesh *mesh, sm_collective op) {
    double sum = 0;
    for (int i = 0; i < p->comms; i++) {
        const sm_size *s = &p->comm[i].bytes;
        if (p->comm[i].op != op || !(sm_mesh_size(mesh, p->comm[i].axes) > 1)) continue;
        double bytes = s->base / sm_mesh_size(mesh, s->mask);
        if (s->per_sequence) bytes *= SEQUENCES;
        if (s->per_query) bytes *= QUERIES;
        if (s->per_key) bytes *= KEYS;
        sum += bytes;
    }
    return sum;
}

/* What does no work of its own rides in a norm: it is compared without. */
static void drop_riders(sm_program *b) {
    for (int i = 0; i < b->tensors; i++) {
        sm_tensor *t = &b->tensor[i];
        if (!t->norm) continue;
        t->elements = 1;
        for (int d = 0; d < t->rank; d++) t->elements *= b->dim[t->dim[d]].size;
    }
}

static void compare(const sm_model *model, int kind, const sm_rules *rules, const sm_mesh *mesh) {
    static sm_partition part;
    static walked w;
    sm_error err = {.status = SM_OK};
    sm_program b;
    assert_int_equal(sm_program_build_serving(model, SM_PIECE_LAYER, kind, rules, &b, &err), SM_OK);
    drop_riders(&b);
    assert_int_equal(sm_program_partition_forward(&b, NULL, &part, &err), SM_OK);
    w = (walked){.program = &b, .mesh = mesh};
    double size[SM_MAX_DIMENSIONS];
    sm_program_sizes(&b, &(sm_program_extent){SEQUENCES, QUERIES, KEYS}, size);
    if (sm_program_walk(&b, mesh, size, tell, &w, &err))
        fail_msg("%s: %s", model->name, err.sentence);
    int routed = 0;
    for (int i = 0; i < b.ops; i++) routed += b.op[i].function == SM_FUNCTION_COMBINE;
    assert_int_equal(w.routed, routed);
    for (int op = 0; op < SM_COLLECTIVE_COUNT; op++) {
        double expected = priced(&part, mesh, (sm_collective)op);
        if (w.bytes[op] - expected > 1e-9 * expected || expected - w.bytes[op] > 1e-9 * expected)
            fail_msg("%s, %s: %g bytes told and %g priced", model->name,
                     sm_collective_name((sm_collective)op), w.bytes[op], expected);
    }
}

static sm_mesh mesh_of(const int *degrees) {
    sm_mesh mesh = *sm_program_mesh();
    for (int a = 0; a < SM_AXIS_COUNT; a++) mesh.axis[a].size = degrees[a];
    return mesh;
}

/* data, fsdp, expert, context, tensor_w, tensor, tensor_q */
static const int meshes[][SM_AXIS_COUNT] = {
    {2, 1, 1, 1, 1, 1, 1}, {1, 2, 1, 1, 1, 2, 1}, {1, 1, 2, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 4, 1},
    {1, 1, 1, 1, 1, 2, 2}, {2, 2, 2, 1, 1, 2, 1}, {1, 1, 2, 1, 1, 2, 2}};
static const sm_rules rules_tried[] = {{.decode = true},
                                       {.decode = true, .expert_tensor = true},
                                       {.seq = true},
                                       {.seq = true, .expert_tensor = true},
                                       {.stationary = true, .decode = true}};
/* llama-4-scout has 5 query heads for each of K and V: 4 divide. */
static const struct {
    const char *name, *members;
} models[] = {{"llama-3.1-8b", ""},
              {"mixtral-8x7b", ""},
              {"llama-4-scout", "\"text_config\": {\"num_attention_heads\": 32}"},
              {"qwen3-30b-a3b", ""}};

static void what_is_told_is_what_is_priced(void **state) {
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        sm_model model = catalogue_with(models[m].name, models[m].members);
        for (size_t r = 0; r < sizeof rules_tried / sizeof *rules_tried; r++)
            for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
                sm_mesh mesh = mesh_of(meshes[i]);
                for (int k = 0; k < model.kinds; k++) compare(&model, k, &rules_tried[r], &mesh);
            }
    }
}

static void what_does_not_divide_is_told(void **state) {
    sm_model model = catalogue_with("mixtral-8x7b", "");
    sm_error err = {.status = SM_OK};
    sm_program b;
    walked w;
    const sm_rules rules = {.decode = true};
    assert_int_equal(sm_program_build_serving(&model, SM_PIECE_LAYER, 0, &rules, &b, &err), SM_OK);
    sm_mesh mesh = mesh_of((const int[]){1, 1, 3, 1, 1, 1, 1});
    w = (walked){.program = &b, .mesh = &mesh};
    double size[SM_MAX_DIMENSIONS];
    sm_program_sizes(&b, &(sm_program_extent){48, 1, 1}, size);
    assert_int_equal(sm_program_walk(&b, &mesh, size, tell, &w, &err), SM_BAD_INPUT);
    assert_true(strstr(err.sentence, "E") != NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_is_what_is_priced),
        cmocka_unit_test(what_does_not_divide_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
