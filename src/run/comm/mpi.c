/* Ranks as processes of MPI-3. Linked only into the programs made for it. */
#include <stdlib.h>
#include <mpi.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "scalemodel/run.h"

/* What a rank says in a split. */
typedef struct place {
    int colour, key;
} place;

typedef struct member {
    sm_communicator c; /* first: freed as one */
    MPI_Comm comm;
    bool crowded;         /* ranks give their cores up while they wait */
    bool used;            /* not freed by its user */
    struct member *whole; /* that it was split from; NULL: the world */
    place *places;        /* of all ranks of the whole, in that split */
    struct member *parts; /* all that were split from it */
    struct member *next;  /* of the same whole */
} member;

static MPI_Comm comm_of(const sm_communicator *c) {
    return ((const member *)(const void *)c)->comm;
}

static sm_status check(int code, sm_error *err) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (code == MPI_SUCCESS) return SM_OK;
    MPI_Error_string(code, text, &length);
    return sm_fail(err, SM_IO, "MPI: %s", text);
}

static MPI_Datatype type_of(sm_element element) {
    switch (element) {
    case SM_ELEMENT_F32: return MPI_FLOAT;
    case SM_ELEMENT_F64: return MPI_DOUBLE;
    case SM_ELEMENT_S32: return MPI_INT32_T;
    case SM_ELEMENT_BF16: return MPI_UINT16_T;
    default: return MPI_INT64_T;
    }
}

static void add_halves(void *in, void *in_out, int *n, MPI_Datatype *type) {
    (void)type;
    sm_elements_add(in_out, in, (size_t)*n, SM_ELEMENT_BF16);
}

static MPI_Op sum_of(sm_element element) {
    static MPI_Op halves = MPI_OP_NULL;
    if (element != SM_ELEMENT_BF16) return MPI_SUM;
    if (halves == MPI_OP_NULL) MPI_Op_create(add_halves, 1, &halves);
    return halves;
}

/* Counts of MPI-3 are ints: a block of more bytes is counted in units that keep within. */
typedef struct counted {
    int n;
    MPI_Datatype type;
    bool made;
} counted;

static counted count_bytes(size_t bytes) {
    counted c = {(int)bytes, MPI_BYTE, false};
    enum { UNIT = 4096 };
    if (bytes <= 1u << 30) return c;
    size_t unit = UNIT;
    while (unit > 1 && bytes % unit) unit /= 2;
    MPI_Type_contiguous((int)unit, MPI_BYTE, &c.type);
    MPI_Type_commit(&c.type);
    c.n = (int)(bytes / unit);
    c.made = true;
    return c;
}

static void done(counted *c) {
    if (c->made) MPI_Type_free(&c->type);
}

/* ---- waiting ----
 * MPI spins while it waits. Where ranks share a core this one gives it up instead: calls are
 * started and tested, because MPICH does not yield within a call that blocks. A rank that only
 * yielded would still take turns from those that work: it sleeps, longer the longer it waits. */

static int wait_politely(int code, MPI_Request *request) {
    enum { YIELDS = 20 };
    struct timespec nap = {.tv_nsec = 20000};
    int arrived = 0;
    for (int turns = 0; !arrived && code == MPI_SUCCESS; turns += turns < YIELDS) {
        code = MPI_Test(request, &arrived, MPI_STATUS_IGNORE);
        if (!arrived && turns < YIELDS) sched_yield();
        else if (!arrived && nanosleep(&nap, NULL) == 0 && nap.tv_nsec < 1000000)
            nap.tv_nsec += 1000;
    }
    return code;
}

static bool is_crowded(const sm_communicator *c) {
    return ((const member *)(const void *)c)->crowded;
}

/* MPI_Call(...), or MPI_Icall(..., &request) and a polite wait. */
#define CALL(c, blocking, started, ...)                                                            \
    (is_crowded(c) ? wait_politely(started(__VA_ARGS__, &request), &request)                       \
                   : blocking(__VA_ARGS__))

/* ---- collectives ---- */

/* Sums of floats are added in an order of MPI's own: equal on all ranks, but not that of threads.
 */
static sm_status collective(sm_communicator *c, const sm_run_call *r, sm_error *err) {
    MPI_Request request;
    const MPI_Comm comm = comm_of(c);
    const MPI_Op sum = sum_of(r->element);
    counted n = {(int)r->n, type_of(r->element), false};
    if (r->element == SM_ELEMENT_S8) n = count_bytes(r->n);
    int code = MPI_ERR_OP;
    switch (r->op) {
    case SM_ALL_GATHER:
        code = CALL(c, MPI_Allgather, MPI_Iallgather, r->send, n.n, n.type, r->recv, n.n, n.type,
                    comm);
        break;
    case SM_ALL_TO_ALL:
        code =
            CALL(c, MPI_Alltoall, MPI_Ialltoall, r->send, n.n, n.type, r->recv, n.n, n.type, comm);
        break;
    case SM_REDUCE_SCATTER:
        code = CALL(c, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, r->send, r->recv, n.n,
                    n.type, sum, comm);
        break;
    case SM_ALL_REDUCE:
        code =
            CALL(c, MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, r->recv, n.n, n.type, sum, comm);
        break;
    case SM_BROADCAST:
        code = CALL(c, MPI_Bcast, MPI_Ibcast, r->recv, n.n, n.type, r->root, comm);
        break;
    case SM_REDUCE:
        code = CALL(c, MPI_Reduce, MPI_Ireduce, r->send, r->recv, n.n, n.type, sum, r->root, comm);
        break;
    default: break;
    }
    done(&n);
    return check(code, err);
}

static sm_status barrier(sm_communicator *c, sm_error *err) {
    MPI_Request request;
    return check(CALL(c, MPI_Barrier, MPI_Ibarrier, comm_of(c)), err);
}

/* ---- sends and receives ---- */

_Static_assert(sizeof(MPI_Request) <= sizeof(sm_request_handle), "a request fits into a handle");

static sm_status started(int code, counted *n, const MPI_Request *request,
                         sm_request_handle *handle, sm_error *err) {
    done(n);
    memcpy(handle, request, sizeof *request);
    return check(code, err);
}

static sm_status start_send(sm_communicator *c, const void *send, size_t bytes, int to, int tag,
                            sm_request_handle *handle, sm_error *err) {
    MPI_Request request;
    counted n = count_bytes(bytes);
    int code = MPI_Isend(send, n.n, n.type, to, tag, comm_of(c), &request);
    return started(code, &n, &request, handle, err);
}

static sm_status start_receive(sm_communicator *c, void *recv, size_t bytes, int from, int tag,
                               sm_request_handle *handle, sm_error *err) {
    MPI_Request request;
    counted n = count_bytes(bytes);
    int code = MPI_Irecv(recv, n.n, n.type, from, tag, comm_of(c), &request);
    return started(code, &n, &request, handle, err);
}

static sm_status wait_for(sm_communicator *c, sm_request_handle *handle, sm_error *err) {
    MPI_Request request;
    memcpy(&request, handle, sizeof request);
    if (is_crowded(c)) return check(wait_politely(MPI_SUCCESS, &request), err);
    return check(MPI_Wait(&request, MPI_STATUS_IGNORE), err);
}

static void poke(sm_communicator *c, sm_request_handle *handle) {
    MPI_Request request;
    int done_now;
    (void)c;
    memcpy(&request, handle, sizeof request);
    MPI_Test(&request, &done_now, MPI_STATUS_IGNORE); /* an error shows in the wait */
    memcpy(handle, &request, sizeof request);
}

static bool is_done(sm_communicator *c, sm_request_handle *handle) {
    MPI_Request request;
    poke(c, handle);
    memcpy(&request, handle, sizeof request);
    return request == MPI_REQUEST_NULL;
}

/* ---- groups ---- */

/* Making a group takes MPI several rounds of waiting, and MPICH spins in them. So a group that its
 * user has freed is kept, with those split from it, for the next split alike; all ranks make and
 * free groups in the same order, so that all find it or none. All go with the world. */
static void free_tree(member *m) {
    for (member *part = m->parts, *next; part; part = next) {
        next = part->next;
        free_tree(part);
    }
    if (m->whole) MPI_Comm_free(&m->comm);
    sm_free(m->places);
    sm_free(m);
}

static void free_member(sm_communicator *c) {
    member *m = (member *)(void *)c;
    if (m->whole) m->used = false;
    else free_tree(m);
}

static void end_all(int rank, const char *sentence, int status) {
    if (sentence && sentence[0]) fprintf(stderr, "scalemodel: rank %d: %s\n", rank, sentence);
    MPI_Abort(MPI_COMM_WORLD, status);
}

static void abort_all(sm_communicator *c, const char *sentence) {
    end_all(c->rank, sentence, SM_INTERNAL);
}

static sm_status split(sm_communicator *c, int colour, int key, sm_communicator **out,
                       sm_error *err);

static const sm_backend backend = {
#ifdef OPEN_MPI
    .name = "openmpi",
#else
    .name = "mpich",
#endif
    .collective = collective,
    .start_send = start_send,
    .start_receive = start_receive,
    .wait = wait_for,
    .poke = poke,
    .done = is_done,
    .barrier = barrier,
    .split = split,
    .free = free_member,
    .abort = abort_all,
};

static sm_status wrap(MPI_Comm comm, bool crowded, bool debug, member **out, sm_error *err) {
    member *m = sm_calloc(1, sizeof *m);
    if (!m) return sm_fail_memory(err);
    m->comm = comm;
    m->crowded = crowded;
    m->used = true;
    m->c.backend = &backend;
    m->c.debug = debug;
    MPI_Comm_rank(comm, &m->c.rank);
    MPI_Comm_size(comm, &m->c.size);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    *out = m;
    return SM_OK;
}

/* The places go with the part. */
static sm_status split_anew(member *whole, place *places, member **part, sm_error *err) {
    const place *mine = &places[whole->c.rank];
    MPI_Comm comm;
    sm_status status = check(MPI_Comm_split(whole->comm, mine->colour, mine->key, &comm), err);
    if (!status) status = wrap(comm, whole->crowded, whole->c.debug, part, err);
    if (status) return status;
    (*part)->whole = whole;
    (*part)->places = places;
    (*part)->next = whole->parts;
    whole->parts = *part;
    return SM_OK;
}

static sm_status split(sm_communicator *c, int colour, int key, sm_communicator **out,
                       sm_error *err) {
    member *whole = (member *)(void *)c, *part = NULL;
    place mine = {colour, key}, *all = sm_calloc((size_t)c->size, sizeof *all);
    if (!all) return sm_fail_memory(err);
    const sm_run_call gather = {SM_ALL_GATHER, &mine, all, sizeof mine, SM_ELEMENT_S8, 0};
    sm_status status = collective(c, &gather, err);
    if (!status) part = whole->parts; /* the same split, made before and free again */
    while (part && (part->used || memcmp(part->places, all, (size_t)c->size * sizeof *all) != 0))
        part = part->next;
    bool anew = !status && !part;
    if (anew) status = split_anew(whole, all, &part, err);
    if (status || !anew) sm_free(all);
    if (status) return status;
    part->used = true;
    part->c.debug = c->debug;
    part->c.traffic = (sm_traffic){.calls = {0}};
    *out = &part->c;
    return SM_OK;
}

/* ---- starting ---- */

/* Are there more ranks than cores on any machine, or are the cores shared with other programs? */
static bool ranks_crowd(void) {
    MPI_Comm here;
    int crowded = 0;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here))
        return false;
    MPI_Comm_size(here, &crowded);
    MPI_Comm_free(&here);
    crowded = (cores > 0 && crowded > cores) || getenv("SCALEMODEL_SHARED_CORES");
    MPI_Allreduce(MPI_IN_PLACE, &crowded, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return crowded != 0;
}

sm_status sm_run_mpi(int *argc, char ***argv, sm_rank_body body, void *context, sm_error *err) {
    member *world = NULL;
    int provided = 0;
    if (MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        return sm_fail(err, SM_IO, "MPI did not start");
    sm_status status = wrap(MPI_COMM_WORLD, ranks_crowd(), false, &world, err);
    if (!status) status = body(&world->c, context, err);
    /* Others may wait for this rank: they are ended, with the one message. */
    if (status > SM_NEGATIVE && world && world->c.size > 1)
        end_all(world->c.rank, err ? err->sentence : NULL, (int)status);
    if (world) free_tree(world);
    MPI_Finalize();
    return status;
}
