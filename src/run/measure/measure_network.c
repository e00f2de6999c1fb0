/* What lies between ranks: messages from one to another, and each collective by size and by ranks,
 * as a step of a lowering runs it. */
#include "measure_parts.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- messages: there and back ---- */

typedef struct sending {
    sm_communicator *world;
    char *data;
    size_t bytes;
    int trips;
} sending;

static sm_status pass(sending *s, bool send, int other, sm_error *err) {
    enum { TAG = 7 };
    sm_request_handle handle = {{NULL}};
    const sm_backend *b = s->world->backend;
    sm_status status =
        send ? b->start_send(s->world, s->data, s->bytes, other, TAG, &handle, err)
             : b->start_receive(s->world, s->data, s->bytes, other, TAG, &handle, err);
    return status ? status : b->wait(s->world, &handle, err);
}

static sm_status there_and_back(void *state, sm_error *err) {
    sending *s = state;
    int rank = s->world->rank;
    sm_status status = SM_OK;
    for (int i = 0; !status && rank < 2 && i < s->trips; i++) {
        status = pass(s, rank == 0, 1 - rank, err);
        if (!status) status = pass(s, rank == 1, 1 - rank, err);
    }
    return status;
}

static sm_status measure_send(sm_communicator *world, const sm_measure_job *job, size_t bytes,
                              sm_error *err) {
    sending s = {.world = world, .bytes = bytes, .trips = bytes > 65536 ? 2 : 20};
    sm_measured_send found = {bytes, {.n = 0}};
    timed_call timed = {there_and_back, NULL, &s, 2.0 * s.trips, true};
    s.data = sm_calloc(bytes, 1);
    if (!s.data) return sm_fail_memory(err);
    memset(s.data, 1, bytes);
    sm_status status = measure_repeatedly(world, job, &timed, &found.seconds, err);
    if (!status && world->rank == 0) job->out->send[job->out->sends++] = found;
    sm_free(s.data);
    return status;
}

sm_status measure_sends(sm_communicator *world, const sm_measure_job *job, sm_error *err) {
    static const size_t sizes[] = {8, 65536, 4194304, 512, 4096, 16384, 262144, 1048576, 16777216};
    enum { SIZES = sizeof sizes / sizeof *sizes, QUICK_SIZES = 3 };
    _Static_assert((int)SIZES <= (int)SM_MOST_MEASURED_SENDS, "room for all messages");
    sm_status status = SM_OK;
    for (int i = 0; !status && world->size > 1 && i < (job->quick ? QUICK_SIZES : SIZES); i++)
        status = measure_send(world, job, sizes[i], err);
    return status;
}

/* ---- collectives ---- */

/* Axis 1 of the mesh is the group; axis 0 counts the groups. */
enum { GROUP = 1 };
typedef struct collecting {
    sm_rank_mesh *m;
    sm_communicator *group;
    sm_step step;
    sm_layout before;
    sm_local_block in, out;
} collecting;

/* Layouts of a matrix before and after, and which of its dimensions a rank holds in part. */
static const struct {
    int8_t before, after;
} layouts[SM_COLLECTIVE_COUNT] = {
    [SM_ALL_GATHER] = {0, SM_REPLICATED},
    [SM_REDUCE_SCATTER] = {SM_UNREDUCED, 0},
    [SM_ALL_REDUCE] = {SM_UNREDUCED, SM_REPLICATED},
    [SM_ALL_TO_ALL] = {0, 1},
    [SM_PERMUTE] = {0, 0},
    [SM_BROADCAST] = {SM_REPLICATED, SM_REPLICATED},
    [SM_REDUCE] = {SM_UNREDUCED, SM_REPLICATED},
};

static sm_status collect(void *state, sm_error *err) {
    collecting *s = state;
    return sm_local_block_step(s->m, &s->step, &s->before, &s->in, &s->out, err);
}

/* These are no steps of a lowering: to the next rank, from the first, and to the first. */
static sm_status collect_directly(void *state, sm_error *err) {
    collecting *s = state;
    int n = s->group->size, rank = s->group->rank;
    size_t bytes = sm_local_block_count(&s->in) * sizeof(float);
    sm_status status = sm_local_block_new(s->in.element, s->in.rank, s->in.size, &s->out, err);
    if (status) return status;
    if (s->step.op == SM_BROADCAST) return sm_run_broadcast(s->group, s->out.data, bytes, 0, err);
    if (s->step.op == SM_REDUCE)
        return sm_run_collective(s->group,
                                 &(sm_run_call){SM_REDUCE, s->in.data, s->out.data,
                                                sm_local_block_count(&s->in), s->in.element, 0},
                                 err);
    return sm_run_permute(s->group, s->in.data, (rank + 1) % n, s->out.data, (rank + n - 1) % n,
                          bytes, err);
}

static void drop_result(void *state) {
    collecting *s = state;
    sm_local_block_free(&s->out);
}

static sm_status measure_collective(sm_communicator *world, const sm_measure_job *job,
                                    collecting *s, sm_collective op, size_t bytes, sm_error *err) {
    bool direct = op == SM_PERMUTE || op == SM_BROADCAST || op == SM_REDUCE;
    size_t size[2];
    s->step = (sm_step){.kind = SM_STEP_COLLECTIVE, .op = op, .axes = 1u << GROUP};
    memset(s->before.dim, SM_REPLICATED, sizeof s->before.dim);
    memset(s->before.place, 0, sizeof s->before.place);
    s->step.after = s->before;
    s->before.dim[GROUP] = layouts[op].before;
    s->step.after.dim[GROUP] = layouts[op].after;
    /* A matrix of about `bytes` whose sides the group divides, V as the product counts it. */
    size_t n = (size_t)s->group->size;
    size_t side = (size_t)sqrt((double)bytes / sizeof(float));
    size_t rows = (side + n - 1) / n * n, columns = rows;
    bool in_part = layouts[s->step.op].before == 0 && s->step.op != SM_PERMUTE;
    assert(rows % n == 0 && rows >= n);
    size[0] = in_part ? rows / n : rows;
    size[1] = columns;
    double whole = (double)(rows * columns * sizeof(float));
    sm_measured_collective found = {op, s->group->size, whole, {.n = 0}};
    timed_call timed = {direct ? collect_directly : collect, drop_result, s, 1.0, true};
    sm_status status = sm_local_block_new(SM_ELEMENT_F32, 2, size, &s->in, err);
    if (status) return status;
    for (size_t i = 0; i < sm_local_block_count(&s->in); i++) ((float *)s->in.data)[i] = 1.0F;
    status = measure_repeatedly(world, job, &timed, &found.seconds, err);
    sm_measurements *out = job->out;
    if (!status && world->rank == 0 && out->collectives < SM_MOST_MEASURED_COLLECTIVES)
        out->collective[out->collectives++] = found;
    sm_local_block_free(&s->in);
    return status;
}

static sm_status measure_group(sm_communicator *world, const sm_measure_job *job, collecting *s,
                               sm_error *err) {
    static const size_t sizes[] = {4096, 65536, 1048576, 16384, 262144, 4194304, 16777216};
    enum { SIZES = sizeof sizes / sizeof *sizes, QUICK_SIZES = 3 };
    sm_status status = SM_OK;
    for (int op = 0; op < SM_COLLECTIVE_COUNT; op++)
        for (int i = 0; !status && i < (job->quick ? QUICK_SIZES : SIZES); i++)
            status = measure_collective(world, job, s, (sm_collective)op, sizes[i], err);
    return status;
}

/* Groups of n ranks, all at once. */
static sm_status measure_groups_of(sm_communicator *world, const sm_measure_job *job, int n,
                                   sm_error *err) {
    sm_mesh mesh = {.axes = 2, .axis = {{.name = "Y", .size = world->size / n}, {.name = "X"}}};
    mesh.axis[GROUP].size = n;
    collecting s = {.m = NULL};
    sm_status status = sm_rank_mesh_new(world, &mesh, &s.m, err);
    if (status) return status;
    s.group = sm_rank_mesh_over(s.m, 1u << GROUP, err);
    status = s.group ? measure_group(world, job, &s, err) : SM_INTERNAL;
    sm_rank_mesh_free(s.m);
    return status;
}

/* The ranks together, and their halves, quarters, ... as far as they divide. */
sm_status measure_collectives(sm_communicator *world, const sm_measure_job *job, sm_error *err) {
    sm_status status = SM_OK;
    for (int n = world->size; !status && n > 1; n /= 2) {
        status = measure_groups_of(world, job, n, err);
        if (n % 2) break;
    }
    return status;
}
