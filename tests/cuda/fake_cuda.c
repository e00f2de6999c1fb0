/* GPUs for tests: see fake_cuda.h. Each stream has a clock; ranges that an operation reads and
 * writes are touched, so that a wrong size is seen by AddressSanitizer. */
#include "fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cublas_v2.h"
#include "nccl.h"

fake_gpus fake = {.gpus = 2,
                  .memory_bytes = 1 << 28,
                  .start_s = 2e-6,
                  .flops_per_s = 1e14,
                  .memory_bytes_per_s = 2e12,
                  .host_bytes_per_s = 5e10,
                  .link_bytes_per_s = 1e11};

struct fake_stream {
    double now_s;
};
struct fake_event {
    double at_s;
};
struct fake_blas {
    cudaStream_t stream;
};
struct fake_group {
    int rank, size;
    double sent, received; /* bytes since the group of calls began */
    cudaStream_t stream;
};

static bool fails(void) { return ++fake.calls == fake.failing; }

static void *born(size_t bytes) {
    fake.alive++;
    return calloc(1, bytes);
}

static void dies(void *at) {
    if (at) fake.alive--;
    free(at);
}

static cudaError_t take(cudaStream_t stream, double seconds) {
    stream->now_s += fake.start_s + seconds;
    return cudaSuccess;
}

/* ---- the runtime ---- */

const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaSuccess ? "no error" : "unknown error";
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = 12090;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
    *count = fake.gpus;
    return fails() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    if (device < 0 || device >= fake.gpus) return cudaErrorUnknown;
    return fails() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *device, int number) {
    snprintf(device->name, sizeof device->name, "Fake GPU %d", number);
    return fails() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int device) {
    (void)device;
    *value = which == cudaDevAttrClockRate             ? 1500000
             : which == cudaDevAttrMultiProcessorCount ? 100
             : which == cudaDevAttrL2CacheSize         ? 1 << 20
                                                       : 1 << 17;
    return fails() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    *free_bytes = *total_bytes = (size_t)fake.memory_bytes;
    return fails() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    if (fails()) return cudaErrorUnknown;
    *stream = born(sizeof **stream);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    dies(stream);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    if (fails()) return cudaErrorUnknown;
    *event = born(sizeof **event);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    dies(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    event->at_s = stream->now_s;
    return fails() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    (void)event;
    return fails() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end) {
    *ms = (float)((end->at_s - begin->at_s) * 1e3);
    return fails() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaMalloc(void **at, size_t bytes) {
    if (fails()) return cudaErrorUnknown;
    *at = born(bytes);
    return cudaSuccess;
}

cudaError_t cudaFree(void *at) {
    dies(at);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **at, size_t bytes) { return cudaMalloc(at, bytes); }
cudaError_t cudaFreeHost(void *at) { return cudaFree(at); }

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    (void)kind;
    memcpy(to, from, bytes);
    return fails() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    double n = (double)bytes;
    if (fails()) return cudaErrorUnknown;
    memcpy(to, from, bytes);
    return take(stream, kind == cudaMemcpyHostToDevice ? n / fake.host_bytes_per_s
                                                       : 2.0 * n / fake.memory_bytes_per_s);
}

/* ---- products ---- */

const char *cublasGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS ? "success" : "not supported";
}

cublasStatus_t cublasCreate(cublasHandle_t *handle) {
    if (fails()) return CUBLAS_STATUS_NOT_SUPPORTED;
    *handle = born(sizeof **handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
    dies(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
    handle->stream = stream;
    return fails() ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDaxpy(cublasHandle_t handle, int n, const double *a, const void *x, int of_x,
                           void *y, int of_y) {
    size_t bytes = (size_t)n * sizeof(double);
    if (fails() || of_x != 1 || of_y != 1 || !a) return CUBLAS_STATUS_NOT_SUPPORTED;
    memmove(y, x, bytes);
    take(handle->stream, 3.0 * (double)bytes / fake.memory_bytes_per_s);
    return CUBLAS_STATUS_SUCCESS;
}

static size_t element_bytes(cudaDataType_t type) {
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

static double rate(cudaDataType_t type, cublasComputeType_t computed) {
    if (computed == CUBLAS_COMPUTE_32F_FAST_TF32) return fake.flops_per_s / 2.0;
    return element_bytes(type) == 2 ? fake.flops_per_s : fake.flops_per_s / 16.0;
}

static volatile unsigned char seen;
static void read_end(const void *at, size_t bytes) {
    seen = ((const unsigned char *)at)[bytes - 1];
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                            int m, int n, int k, const void *alpha, const void *a,
                            cudaDataType_t a_type, int lda, const void *b, cudaDataType_t b_type,
                            int ldb, const void *beta, void *c, cudaDataType_t c_type, int ldc,
                            cublasComputeType_t computed, cublasGemmAlgo_t algorithm) {
    size_t size = element_bytes(a_type), rows = (size_t)m, columns = (size_t)n, inner = (size_t)k;
    if (fails() || (fake.no_bf16 && a_type == CUDA_R_16BF) || a_type != b_type ||
        c_type != a_type || !alpha || !beta || of_a != of_b || algorithm != CUBLAS_GEMM_DEFAULT ||
        lda < m || ldb < k || ldc < m)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    read_end(a, rows * inner * size);
    read_end(b, inner * columns * size);
    ((unsigned char *)c)[rows * columns * size - 1] = 1;
    take(handle->stream, 2.0 * m * n * k / rate(a_type, computed));
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- between GPUs: a rank is as long at it as the busier direction of its link ---- */

enum { MOST_CALLED = 64 };
static ncclComm_t called[MOST_CALLED];
static int calls_in_group, depth;

const char *ncclGetErrorString(ncclResult_t error) {
    return error == ncclSuccess ? "no error" : "invalid argument";
}

ncclResult_t ncclGetVersion(int *version) {
    *version = 23203;
    return ncclSuccess;
}

ncclResult_t ncclCommInitAll(ncclComm_t *group, int n, const int *devices) {
    if (fails()) return ncclInvalidArgument;
    for (int i = 0; i < n; i++) {
        if (devices[i] < 0 || devices[i] >= fake.gpus) return ncclInvalidArgument;
        group[i] = born(sizeof **group);
        group[i]->rank = i;
        group[i]->size = n;
    }
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t group) {
    dies(group);
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void) {
    depth++;
    calls_in_group = 0;
    return fails() ? (depth--, ncclInvalidArgument) : ncclSuccess;
}

static ncclResult_t move(ncclComm_t group, cudaStream_t stream, double sent, double received) {
    if (fails() || calls_in_group == MOST_CALLED || depth != 1) return ncclInvalidArgument;
    group->sent += sent;
    group->received += received;
    group->stream = stream;
    called[calls_in_group++] = group;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    depth--;
    for (int i = 0; i < calls_in_group; i++) {
        ncclComm_t g = called[i];
        double busier = g->sent > g->received ? g->sent : g->received;
        if (g->stream) take(g->stream, busier / fake.link_bytes_per_s);
        g->sent = g->received = 0.0;
        g->stream = NULL;
    }
    return fails() ? ncclInvalidArgument : ncclSuccess;
}

static size_t bytes_of(size_t count, ncclDataType_t type) {
    return type == ncclFloat ? 4 * count : count;
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclComm_t group, cudaStream_t stream) {
    size_t part = bytes_of(count, type), n = (size_t)group->size;
    read_end(in, part);
    memset(out, 1, part * n);
    double others = (double)(part * (n - 1));
    return move(group, stream, others, others);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t group, cudaStream_t stream) {
    size_t part = bytes_of(count, type), n = (size_t)group->size;
    read_end(in, part * n);
    memset(out, 1, part);
    double others = (double)(part * (n - 1));
    return op == ncclSum ? move(group, stream, others, others) : ncclInvalidArgument;
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t group, cudaStream_t stream) {
    size_t bytes = bytes_of(count, type), n = (size_t)group->size;
    read_end(in, bytes);
    memset(out, 1, bytes);
    double around = 2.0 * (double)bytes * (double)(n - 1) / (double)n;
    return op == ncclSum ? move(group, stream, around, around) : ncclInvalidArgument;
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t group, cudaStream_t stream) {
    size_t bytes = bytes_of(count, type);
    if (root != 0) return ncclInvalidArgument;
    read_end(in, bytes);
    memset(out, 1, bytes);
    return move(group, stream, (double)bytes, (double)bytes);
}

ncclResult_t ncclReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t group, cudaStream_t stream) {
    size_t bytes = bytes_of(count, type);
    if (root != 0 || op != ncclSum) return ncclInvalidArgument;
    read_end(in, bytes);
    if (group->rank == root) memset(out, 1, bytes);
    return move(group, stream, (double)bytes, (double)bytes);
}

ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int to, ncclComm_t group,
                      cudaStream_t stream) {
    size_t bytes = bytes_of(count, type);
    if (to < 0 || to >= group->size) return ncclInvalidArgument;
    read_end(in, bytes);
    return move(group, stream, to == group->rank ? 0.0 : (double)bytes, 0.0);
}

ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int from, ncclComm_t group,
                      cudaStream_t stream) {
    size_t bytes = bytes_of(count, type);
    if (from < 0 || from >= group->size) return ncclInvalidArgument;
    memset(out, 1, bytes);
    return move(group, stream, 0.0, from == group->rank ? 0.0 : (double)bytes);
}
