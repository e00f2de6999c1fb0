/* GPUs of this host under the same timings as ranks: products by cuBLAS, copies and triads in
 * device memory, the link to the host, and with several GPUs the collectives and messages of NCCL.
 * Built only where the CUDA toolkit is (see the Makefile); SCALEMODEL_NCCL: NCCL is there too.
 * Times are those between two events on the stream, so that what the host does meanwhile counts
 * only where the device waits for it. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#ifdef SCALEMODEL_NCCL
#include <nccl.h>
#endif

#include "measure_parts.h"

enum { MOST_GPUS = 16, LEAST_REPEATS = 5, MOST_SIDE = 8192 };

typedef struct gpu {
    int number;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    cublasHandle_t blas;
    void *room[3];
#ifdef SCALEMODEL_NCCL
    ncclComm_t group; /* of the size at hand */
#endif
} gpu;

typedef struct host {
    const sm_measure_job *job;
    int gpus;
    gpu gpu[MOST_GPUS];
    size_t room_bytes, pinned_bytes; /* of each array of a GPU, and of the host's */
    void *pinned;
} host;

static sm_status cuda(cudaError_t error, const char *what, sm_error *err) {
    if (error == cudaSuccess) return SM_OK;
    return sm_fail(err, SM_IO, "CUDA: %s: %s", what, cudaGetErrorString(error));
}

static sm_status blas(cublasStatus_t error, const char *what, sm_error *err) {
    if (error == CUBLAS_STATUS_SUCCESS) return SM_OK;
    return sm_fail(err, SM_IO, "cuBLAS: %s: %s", what, cublasGetStatusString(error));
}

/* ---- what is there ---- */

static sm_status attribute(enum cudaDeviceAttr which, double *value, sm_error *err) {
    int got = 0;
    sm_status status = cuda(cudaDeviceGetAttribute(&got, which, 0), "asking the device", err);
    *value = got;
    return status;
}

static void name_software(sm_gpu_facts *facts) {
    int runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    int n = snprintf(facts->software, sizeof facts->software, "CUDA %d.%d", runtime / 1000,
                     runtime % 1000 / 10);
#ifdef SCALEMODEL_NCCL
    int nccl = 0;
    ncclGetVersion(&nccl);
    snprintf(facts->software + n, sizeof facts->software - (size_t)n, ", NCCL %d.%d.%d",
             nccl / 10000, nccl % 10000 / 100, nccl % 100);
#else
    (void)n;
#endif
}

static sm_status read_facts(sm_gpu_facts *facts, sm_error *err) {
    size_t free_bytes, total_bytes = 0;
    double cores = 0, clock_khz = 0, shared = 0;
    struct cudaDeviceProp device;
    sm_status status = cuda(cudaGetDeviceProperties(&device, 0), "asking the device", err);
    if (!status) status = attribute(cudaDevAttrMultiProcessorCount, &cores, err);
    if (!status) status = attribute(cudaDevAttrClockRate, &clock_khz, err);
    if (!status) status = attribute(cudaDevAttrL2CacheSize, &facts->cache_bytes, err);
    if (!status) status = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, &shared, err);
    if (!status) status = cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "asking the device", err);
    if (status) return status;
    snprintf(facts->name, sizeof facts->name, "%s", device.name);
    facts->cores = (int)cores;
    facts->clock_hz = clock_khz * 1e3;
    facts->shared_bytes = shared * cores;
    facts->memory_bytes = (double)total_bytes;
    name_software(facts);
    return SM_OK;
}

/* ---- getting ready ---- */

static sm_status ready_gpu(host *h, gpu *g, int number, sm_error *err) {
    g->number = number;
    sm_status status = cuda(cudaSetDevice(number), "choosing a GPU", err);
    if (!status) status = cuda(cudaStreamCreate(&g->stream), "making a stream", err);
    if (!status) status = cuda(cudaEventCreate(&g->begin), "making an event", err);
    if (!status) status = cuda(cudaEventCreate(&g->end), "making an event", err);
    for (int i = 0; !status && i < 3; i++)
        status = cuda(cudaMalloc(&g->room[i], h->room_bytes), "allocating memory", err);
    if (!status) status = blas(cublasCreate(&g->blas), "starting", err);
    if (!status) status = blas(cublasSetStream(g->blas, g->stream), "choosing a stream", err);
    return status;
}

/* Bits of floats between 1/2 and 1 of either sign in every type: what a chip draws, and with it the
 * clock, depends on the numbers, and zeros would flatter it. */
static void fill_pinned(unsigned char *at, size_t bytes) {
    sm_rng rng = {3};
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t bits = (sm_rng_next(&rng) & 0x8007800780078007u) | 0x3f003f003f003f00u;
        memcpy(at + i, &bits, sizeof bits);
    }
}

enum { MOST_PINNED = 64 << 20 };

static sm_status fill_rooms(host *h, gpu *g, sm_error *err) {
    sm_status status = cuda(cudaSetDevice(g->number), "choosing a GPU", err);
    for (int i = 0; i < 3; i++)
        for (size_t at = 0; !status && at < h->room_bytes; at += h->pinned_bytes) {
            size_t left = h->room_bytes - at, n = left < h->pinned_bytes ? left : h->pinned_bytes;
            status = cuda(cudaMemcpy((char *)g->room[i] + at, h->pinned, n, cudaMemcpyHostToDevice),
                          "copying to the device", err);
        }
    return status;
}

/* Arrays of an eighth of the memory, 2 GiB at most. */
static sm_status ready(host *h, const sm_gpu_facts *facts, sm_error *err) {
    double most = fmin(facts->memory_bytes / 8.0, 2147483648.0);
    h->room_bytes = (size_t)most / 4096 * 4096;
    h->pinned_bytes = h->room_bytes < MOST_PINNED ? h->room_bytes : MOST_PINNED;
    sm_status status = cuda(cudaMallocHost(&h->pinned, h->pinned_bytes), "pinning memory", err);
    if (!status) fill_pinned(h->pinned, h->pinned_bytes);
    for (int i = 0; !status && i < h->gpus; i++) status = ready_gpu(h, &h->gpu[i], i, err);
    for (int i = 0; !status && i < h->gpus; i++) status = fill_rooms(h, &h->gpu[i], err);
    return status;
}

static void release(host *h) {
    for (int i = 0; i < h->gpus; i++) {
        gpu *g = &h->gpu[i];
        cudaSetDevice(i);
        if (g->blas) cublasDestroy(g->blas);
        for (int k = 0; k < 3; k++)
            if (g->room[k]) cudaFree(g->room[k]);
        if (g->end) cudaEventDestroy(g->end);
        if (g->begin) cudaEventDestroy(g->begin);
        if (g->stream) cudaStreamDestroy(g->stream);
    }
    if (h->pinned) cudaFreeHost(h->pinned);
}

/* ---- timing ---- */

typedef struct work work;
typedef sm_status (*begin_work)(host *h, const work *w, sm_error *err);
struct work {
    begin_work start; /* puts it on the streams of the first `gpus` */
    int gpus, times;
    int product, m, n, k; /* product: which of the products of types below */
    size_t bytes;
    sm_collective op;
    int ranks; /* of a group */
};

static sm_status each_event(host *h, int gpus, bool end, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; !status && i < gpus; i++) {
        gpu *g = &h->gpu[i];
        status = cuda(cudaSetDevice(i), "choosing a GPU", err);
        if (!status)
            status = cuda(cudaEventRecord(end ? g->end : g->begin, g->stream), "recording", err);
    }
    return status;
}

/* Seconds of the slowest GPU. */
static sm_status wait_all(host *h, int gpus, double *seconds, sm_error *err) {
    sm_status status = SM_OK;
    *seconds = 0.0;
    for (int i = 0; !status && i < gpus; i++) {
        float ms = 0.0F;
        status = cuda(cudaEventSynchronize(h->gpu[i].end), "waiting", err);
        if (!status)
            status = cuda(cudaEventElapsedTime(&ms, h->gpu[i].begin, h->gpu[i].end), "timing", err);
        *seconds = fmax(*seconds, (double)ms * 1e-3);
    }
    return status;
}

static sm_status once(host *h, const work *w, double *seconds, sm_error *err) {
    sm_status status = each_event(h, w->gpus, false, err);
    for (int i = 0; !status && i < w->times; i++) status = w->start(h, w, err);
    if (!status) status = each_event(h, w->gpus, true, err);
    if (!status) status = wait_all(h, w->gpus, seconds, err);
    *seconds /= w->times;
    return status;
}

/* The first call warms up, the second tells how often the budget allows. */
static sm_status time_work(host *h, const work *w, sm_spread *out, sm_error *err) {
    double one = 0.0, budget_s = h->job->budget_s;
    assert(w->times >= 1 && w->gpus >= 1 && w->gpus <= h->gpus);
    sm_status status = once(h, w, &one, err);
    if (!status) status = once(h, w, &one, err);
    if (status) return status;
    double fitting = one > 0.0 ? budget_s / (one * w->times) : h->job->most_repeats;
    int n = (int)fmax(LEAST_REPEATS, fmin(fitting, h->job->most_repeats));
    double *sample = sm_calloc((size_t)n, sizeof *sample);
    if (!sample) return sm_fail_memory(err);
    for (int i = 0; !status && i < n; i++) status = once(h, w, &sample[i], err);
    if (!status) *out = sm_spread_of(sample, n);
    sm_free(sample);
    return status;
}

/* ---- products ---- */

static const struct {
    sm_dtype dtype;
    cudaDataType_t stored;
    cublasComputeType_t computed;
} products[] = {
    {SM_BF16, CUDA_R_16BF, CUBLAS_COMPUTE_32F},          {SM_FP16, CUDA_R_16F, CUBLAS_COMPUTE_32F},
    {SM_TF32, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32}, {SM_FP32, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {SM_FP64, CUDA_R_64F, CUBLAS_COMPUTE_64F},
};
enum { PRODUCTS = sizeof products / sizeof *products };

/* Row-major C = A B is column-major C' = B' A'. */
static sm_status multiply(host *h, const work *w, sm_error *err) {
    static const float one = 1.0F, zero = 0.0F;
    static const double one_64 = 1.0, zero_64 = 0.0;
    const gpu *g = &h->gpu[0];
    bool twice = products[w->product].dtype == SM_FP64;
    cudaDataType_t type = products[w->product].stored;
    return blas(cublasGemmEx(g->blas, CUBLAS_OP_N, CUBLAS_OP_N, w->n, w->m, w->k,
                             twice ? (const void *)&one_64 : (const void *)&one, g->room[1], type,
                             w->n, g->room[0], type, w->k,
                             twice ? (const void *)&zero_64 : (const void *)&zero, g->room[2], type,
                             w->n, products[w->product].computed, CUBLAS_GEMM_DEFAULT),
                "a product", err);
}

static const struct {
    int m, n, k;
    bool quick;
} shapes[] = {
    {1, 1, 1, true},          {512, 512, 512, true},    {1024, 1024, 1024, false},
    {2048, 2048, 2048, true}, {4096, 4096, 4096, true}, {MOST_SIDE, MOST_SIDE, MOST_SIDE, false},
    {16, 4096, 4096, true},   {128, 8192, 8192, false}, {4096, 4096, 128, true},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };
_Static_assert((int)(SHAPES *PRODUCTS) <= (int)SM_MOST_MEASURED_MATMULS, "room for all shapes");

/* A type that this GPU does not multiply is left out. */
static sm_status measure_products(host *h, sm_error *err) {
    for (int p = 0; p < PRODUCTS; p++)
        for (int i = 0; i < SHAPES; i++) {
            bool small = shapes[i].k == 1;
            work w = {.start = multiply,
                      .gpus = 1,
                      .times = small ? 100 : 1,
                      .product = p,
                      .m = shapes[i].m,
                      .n = shapes[i].n,
                      .k = shapes[i].k};
            double ignored;
            sm_error quiet = {.status = SM_OK};
            if (h->job->quick && !shapes[i].quick) continue;
            if (i == 0 && once(h, &w, &ignored, &quiet)) break;
            double side = fmax(w.m, fmax(w.n, w.k)), other = fmin(fmax(w.m, w.n), fmax(w.k, w.n));
            double bytes = side * fmax(side, other) * sm_dtype_bytes(products[p].dtype);
            if (bytes > (double)h->room_bytes) continue;
            sm_measured_matmul *found = &h->job->out->matmul[h->job->out->matmuls];
            *found = (sm_measured_matmul){
                .dtype = products[p].dtype, .m = (size_t)w.m, .n = (size_t)w.n, .k = (size_t)w.k};
            sm_status status = time_work(h, &w, &found->seconds, err);
            if (status) return status;
            h->job->out->matmuls++;
        }
    return SM_OK;
}

/* ---- memory ---- */

static sm_status copy(host *h, const work *w, sm_error *err) {
    const gpu *g = &h->gpu[0];
    return cuda(
        cudaMemcpyAsync(g->room[0], g->room[1], w->bytes, cudaMemcpyDeviceToDevice, g->stream),
        "copying", err);
}

/* y = a x + y: the triad with its result in place, of doubles. */
static sm_status triad(host *h, const work *w, sm_error *err) {
    static const double a = 1e-9;
    const gpu *g = &h->gpu[0];
    return blas(cublasDaxpy(g->blas, (int)(w->bytes / 8), &a, g->room[1], 1, g->room[2], 1),
                "a triad", err);
}

static sm_status from_host(host *h, const work *w, sm_error *err) {
    const gpu *g = &h->gpu[0];
    return cuda(cudaMemcpyAsync(g->room[0], h->pinned, w->bytes, cudaMemcpyHostToDevice, g->stream),
                "copying from the host", err);
}

static sm_status measure_stream(host *h, begin_work start, size_t bytes, double moved, double flops,
                                sm_measured_stream *out, sm_error *err) {
    work w = {.start = start, .gpus = 1, .times = bytes > MOST_PINNED ? 1 : 20, .bytes = bytes};
    out->bytes = (double)bytes / 8.0 * moved;
    out->flops = (double)bytes / 8.0 * flops;
    return time_work(h, &w, &out->seconds, err);
}

static sm_status measure_memory(host *h, sm_gpu_facts *facts, sm_error *err) {
    sm_measured_stream *out = h->job->out->stream;
    size_t all = h->room_bytes;
    size_t near = (size_t)(facts->cache_bytes / 8.0) / 4096 * 4096;
    sm_status status = measure_stream(h, copy, all, 16.0, 0.0, &out[SM_SWEEP_COPY], err);
    if (!status) status = measure_stream(h, triad, all, 24.0, 2.0, &out[SM_SWEEP_TRIAD], err);
    if (!status && near > 0 && near <= all)
        status = measure_stream(h, triad, near, 24.0, 2.0, &out[SM_SWEEP_CACHED], err);
    if (!status)
        status = measure_stream(h, from_host, h->pinned_bytes, 8.0, 0.0, &facts->host_link, err);
    return status;
}

/* ---- between GPUs ---- */
#ifdef SCALEMODEL_NCCL

static sm_status nccl(ncclResult_t error, const char *what, sm_error *err) {
    if (error == ncclSuccess) return SM_OK;
    return sm_fail(err, SM_IO, "NCCL: %s: %s", what, ncclGetErrorString(error));
}

/* To everyone and from everyone, a part each; a permute: to the next alone. */
static ncclResult_t exchange(const gpu *g, size_t part, int rank, int n, bool all) {
    ncclResult_t error = ncclSuccess;
    for (int i = 1; error == ncclSuccess && i < (all ? n + 1 : 2); i++) {
        int to = (rank + i) % n, from = (rank + n - i) % n;
        char *out = (char *)g->room[0] + (all ? (size_t)to * part : 0);
        char *in = (char *)g->room[1] + (all ? (size_t)from * part : 0);
        error = ncclSend(out, part, ncclChar, to, g->group, g->stream);
        if (error == ncclSuccess) error = ncclRecv(in, part, ncclChar, from, g->group, g->stream);
    }
    return error;
}

/* bytes: V as in sm_step. Sums are of floats. */
static ncclResult_t collect(const gpu *g, const work *w, int rank) {
    size_t n = (size_t)w->ranks, floats = w->bytes / sizeof(float), part = w->bytes / n;
    const void *in = g->room[0];
    void *out = g->room[1];
    switch (w->op) {
    case SM_ALL_GATHER: return ncclAllGather(in, out, part, ncclChar, g->group, g->stream);
    case SM_REDUCE_SCATTER:
        return ncclReduceScatter(in, out, floats / n, ncclFloat, ncclSum, g->group, g->stream);
    case SM_ALL_REDUCE:
        return ncclAllReduce(in, out, floats, ncclFloat, ncclSum, g->group, g->stream);
    case SM_ALL_TO_ALL: return exchange(g, part / n, rank, w->ranks, true);
    case SM_PERMUTE: return exchange(g, w->bytes, rank, w->ranks, false);
    case SM_BROADCAST: return ncclBroadcast(in, out, w->bytes, ncclChar, 0, g->group, g->stream);
    case SM_REDUCE: return ncclReduce(in, out, floats, ncclFloat, ncclSum, 0, g->group, g->stream);
    default: return ncclInvalidArgument;
    }
}

/* All groups at once. */
static sm_status collect_all(host *h, const work *w, sm_error *err) {
    sm_status status = nccl(ncclGroupStart(), "a group of calls", err);
    for (int i = 0; !status && i < w->gpus; i++)
        status = nccl(collect(&h->gpu[i], w, i % w->ranks), sm_collective_name(w->op), err);
    sm_error quiet = {.status = SM_OK};
    sm_status ended = nccl(ncclGroupEnd(), "a group of calls", status ? &quiet : err);
    return status ? status : ended;
}

static sm_status send_once(host *h, const work *w, sm_error *err) {
    const gpu *a = &h->gpu[0], *b = &h->gpu[1];
    sm_status status = nccl(ncclGroupStart(), "a group of calls", err);
    if (status) return status;
    ncclResult_t sent = ncclSend(a->room[0], w->bytes, ncclChar, 1, a->group, a->stream);
    ncclResult_t received = ncclRecv(b->room[1], w->bytes, ncclChar, 0, b->group, b->stream);
    ncclResult_t ended = ncclGroupEnd();
    status = nccl(sent, "sending", err);
    if (!status) status = nccl(received, "receiving", err);
    return status ? status : nccl(ended, "a group of calls", err);
}

static void leave_groups(host *h) {
    for (int i = 0; i < h->gpus; i++) {
        if (h->gpu[i].group) ncclCommDestroy(h->gpu[i].group);
        h->gpu[i].group = NULL;
    }
}

/* GPUs in groups of `ranks` neighbours; those left over stay out. */
static sm_status join_groups(host *h, int ranks, sm_error *err) {
    sm_status status = SM_OK;
    for (int first = 0; !status && first + ranks <= h->gpus; first += ranks) {
        ncclComm_t made[MOST_GPUS];
        int number[MOST_GPUS];
        for (int i = 0; i < ranks; i++) number[i] = first + i;
        status = nccl(ncclCommInitAll(made, ranks, number), "forming a group", err);
        for (int i = 0; !status && i < ranks; i++) h->gpu[first + i].group = made[i];
    }
    return status;
}

static sm_status measure_collective(host *h, int ranks, sm_collective op, size_t bytes,
                                    sm_error *err) {
    sm_measurements *out = h->job->out;
    size_t unit = sizeof(float) * (size_t)(ranks * ranks);
    work w = {.start = collect_all,
              .gpus = h->gpus / ranks * ranks,
              .times = 5,
              .op = op,
              .ranks = ranks,
              .bytes = (bytes + unit - 1) / unit * unit};
    sm_measured_collective found = {op, ranks, (double)w.bytes, {.n = 0}};
    if (w.bytes > h->room_bytes || out->collectives == SM_MOST_MEASURED_COLLECTIVES) return SM_OK;
    sm_status status = time_work(h, &w, &found.seconds, err);
    if (!status) out->collective[out->collectives++] = found;
    return status;
}

static sm_status measure_groups(host *h, int ranks, sm_error *err) {
    sm_status status = join_groups(h, ranks, err);
    for (int op = 0; op < SM_COLLECTIVE_COUNT; op++)
        for (size_t bytes = 4096; !status && bytes <= (size_t)1 << 30;
             bytes *= h->job->quick ? 256 : 8)
            status = measure_collective(h, ranks, (sm_collective)op, bytes, err);
    leave_groups(h);
    return status;
}

static sm_status measure_messages(host *h, sm_error *err) {
    sm_measurements *out = h->job->out;
    sm_status status = join_groups(h, 2, err);
    for (size_t bytes = 8; !status && bytes <= h->room_bytes && out->sends < SM_MOST_MEASURED_SENDS;
         bytes *= h->job->quick ? 512 : 8) {
        work w = {.start = send_once, .gpus = 2, .times = 5, .bytes = bytes};
        sm_measured_send *found = &out->send[out->sends];
        found->bytes = bytes;
        status = time_work(h, &w, &found->seconds, err);
        if (!status) out->sends++;
    }
    leave_groups(h);
    return status;
}

static sm_status measure_between(host *h, sm_error *err) {
    sm_status status = SM_OK;
    if (h->gpus > 1) status = measure_messages(h, err);
    for (int ranks = h->gpus; !status && ranks > 1; ranks /= 2) {
        status = measure_groups(h, ranks, err);
        if (h->job->quick) break;
    }
    return status;
}

#else

static sm_status measure_between(host *h, sm_error *err) {
    (void)h;
    (void)err;
    return SM_OK;
}

#endif

/* ---- all of it ---- */

/* Without NCCL there is nothing between GPUs to measure: the first alone. */
static sm_status count_gpus(int *gpus, sm_error *err) {
    sm_status status = cuda(cudaGetDeviceCount(gpus), "looking for GPUs", err);
    if (!status && *gpus < 1) status = sm_fail(err, SM_IO, "CUDA finds no GPU on this host");
    if (*gpus > MOST_GPUS) *gpus = MOST_GPUS;
#ifndef SCALEMODEL_NCCL
    *gpus = 1;
#endif
    return status;
}

sm_status sm_measure_gpus(const sm_measure_job *job, sm_gpu_facts *facts, sm_error *err) {
    host *h = sm_calloc(1, sizeof *h);
    if (!h) return sm_fail_memory(err);
    memset(facts, 0, sizeof *facts);
    h->job = job;
    sm_status status = count_gpus(&h->gpus, err);
    if (!status) status = cuda(cudaSetDevice(0), "choosing a GPU", err);
    if (!status) status = read_facts(facts, err);
    facts->gpus = job->out->ranks = h->gpus;
    if (!status) status = ready(h, facts, err);
    if (!status) status = measure_memory(h, facts, err);
    if (!status) status = measure_products(h, err);
    if (!status) status = measure_between(h, err);
    release(h);
    sm_free(h);
    return status;
}
