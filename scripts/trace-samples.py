#!/usr/bin/env python3
"""Write the traces that the tests read: tests/cli/inputs/traces. Small, made up, and each with what
real ones trip readers with: times beyond 2^53 ns, bare nan, names of 2021, kernels that begin before
their launch returns, kernels of a CUDA graph, ncclDevKernel_, synchronisations on the timeline.
usage: scripts/trace-samples.py"""
import gzip
import json
import os
import sqlite3

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "cli", "inputs", "traces")
BASE = 9007199254740993  # ns: 2^53 + 1, which a double does not hold


def us(ns):
    """Microseconds with three digits, as Kineto writes them."""
    return f"{ns // 1000}.{ns % 1000:03d}"


class Kineto:
    """A PyTorch trace, written event by event as text, since json cannot write its numbers."""

    def __init__(self, rank, world):
        self.rank, self.world, self.events, self.id = rank, world, [], 0

    def add(self, cat, name, start, dur, pid, tid, **args):
        text = ", ".join(f'"{k}": {v if v == "nan" else json.dumps(v)}' for k, v in args.items())
        self.events.append(f'{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": {pid}, "tid": {tid}, '
                           f'"ts": {us(BASE + start)}, "dur": {us(dur)}, "args": {{{text}}}}}')

    def op(self, name, start, dur, dims, dtype="c10::BFloat16"):
        self.id += 1
        self.add("cpu_op", name, start, dur, 4000, 4000, **{"External id": self.id, "Input Dims": dims,
                 "Input type": [dtype] * len(dims)})

    def kernel(self, name, launch, start, dur, stream=7, cat="kernel", call="cudaLaunchKernel", **args):
        self.id += 1
        if call:
            self.add("cuda_runtime", call, launch, 5000, 4000, 4000, correlation=self.id)
        self.add(cat, name, start, dur, 0, stream, device=0, stream=stream, correlation=self.id, **args)

    def write(self, path):
        head = (f'{{"schemaVersion": 1, "deviceProperties": [{{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}}], '
                f'"distributedInfo": {{"backend": "nccl", "rank": {self.rank}, "world_size": {self.world}}}, '
                f'"displayTimeUnit": "ms",\n"traceEvents": [\n')
        save(path, head + ",\n".join(self.events) + '\n], "traceName": "made up"}\n')


def save(path, text):
    data = text if isinstance(text, bytes) else text.encode()
    if path.endswith(".gz"):
        data = gzip.compress(data, 9, mtime=0)
    with open(os.path.join(HERE, path), "wb") as f:
        f.write(data)


def kineto_rank(rank):
    """Three steps of 1 ms: two products, an all-reduce half hidden, a copy, a graph; rank 1 comes late to it."""
    t = Kineto(rank, 2)
    ms = 1000000
    for step in range(3):
        at = step * ms
        t.add("user_annotation", f"ProfilerStep#{step + 7}", at, ms, 4000, 4000, **{"External id": 900 + step})
        t.add("python_function", "nn.Module: Linear_0", at + 1000, 60000, 4000, 4000)
        t.add("python_function", "torch/nn/functional.py(12): linear", at + 1500, 50000, 4000, 4000)
        t.op("aten::linear", at + 2000, 50000, [[2048, 8192], [8192, 8192]])
        t.op("aten::mm", at + 3000, 20000, [[2048, 8192], [8192, 8192]])
        # begins before its launch returns
        t.kernel("void cutlass::Kernel2<gemm_bf16>(Params)", at + 4000, at + 8000, 400000, occupancy="nan")
        late = 50000 if rank else 0
        t.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", at + 70000,
                 at + 308000 + late, 200000 - late, stream=20,
                 **{"Collective name": "allreduce", "In msg nelems": 4194304, "Out msg nelems": 4194304,
                    "Group size": 2, "dtype": "BFloat16", "Process Group Name": "0",
                    "Process Group Ranks": "[0, 1]"})
        t.kernel("Memcpy HtoD (Pinned -> Device)", at + 90000, at + 530000, 20000, stream=22, cat="gpu_memcpy",
                 call="cudaMemcpyAsync", bytes=1048576)
        t.add("cuda_sync", "Stream Sync", at + 508000, 300000, 0, 7, device=0, stream=7, correlation=0)
        # two kernels of a graph: one launch, one of them with a number of its own that nothing launched
        t.kernel("graph_relu\x01", at + 600000, at + 620000, 100000, call="cudaGraphLaunch")
        t.kernel("graph_add", 0, at + 730000, 50000, call=None)
    t.write(f"kineto-rank{rank}.json" + (".gz" if rank else ""))


def kineto_2021():
    """Names of 2021: Kernel, Runtime, Operator; steps are operators; times are whole microseconds."""
    e = []
    for step in range(2):
        at = 1610366728298088 + step * 1000
        e.append({"ph": "X", "cat": "Operator", "name": f"ProfilerStep#{step}", "pid": 12, "tid": "99", "ts": at, "dur": 1000,
                  "args": {"Input dims": [], "External id": 1}})
        e.append({"ph": "X", "cat": "Operator", "name": "aten::addmm", "pid": 12, "tid": "99", "ts": at + 10, "dur": 50,
                  "args": {"Input dims": [[256], [128, 512], [512, 256]], "Input type": ["float", "float", "float"],
                           "External id": 2 + step}})
        e.append({"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 12, "tid": "99", "ts": at + 20, "dur": 10,
                  "args": {"correlation": 70 + step, "external id": 2 + step}})
        e.append({"ph": "X", "cat": "Kernel", "name": "volta_sgemm_128x64_tn", "pid": 0, "tid": "stream 7", "ts": at + 40,
                  "dur": 800, "args": {"device": 0, "stream": 7, "correlation": 70 + step, "external id": 2 + step}})
        e.append({"ph": "X", "cat": "Memset", "name": "Memset (Device)", "pid": 0, "tid": "stream 7", "ts": at + 850,
                  "dur": 50, "args": {"device": 0, "stream": 7, "correlation": 0, "bytes": 2097152}})
    save("kineto-2021.json", json.dumps({"schemaVersion": 1, "traceEvents": e}))


def kineto_amd():
    """HIP: runtime calls with cid, device 2, RCCL's generic kernel."""
    t = Kineto(0, 1)
    t.kernel("void at::native::elementwise_kernel<128, 2>(int)", 1000, 9000, 20000, call="hipLaunchKernel")
    t.kernel("rcclGenericKernel(ncclDevComm*)", 40000, 60000, 30000, stream=1, call="hipLaunchKernel")
    text = ",\n".join(t.events).replace('"pid": 0,', '"pid": 2,').replace('"device": 0', '"device": 2')
    save("kineto-amd.json", f'{{"schemaVersion": 1, "traceEvents": [\n{text}\n]}}\n')


def jax_tpu():
    """The trace viewer's JSON of JAX: what a line is, its name says, and the last event is empty."""
    e = []
    for pid, name in ((3, "/device:TPU:0"), (701, "/host:CPU")):
        e.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}})
    for tid, name in ((1, "Steps"), (2, "XLA Modules"), (3, "XLA Ops"), (4, "Async XLA Ops"), (5, "Source code")):
        e.append({"ph": "M", "pid": 3, "tid": tid, "name": "thread_name", "args": {"name": name}})
    for step in range(2):
        at = step * 1000.0
        for tid, name, start, dur in ((1, str(step), 0, 950), (2, "jit_step(77)", 0, 900), (3, "while.1", 0, 600),
                                      (3, "fusion.2", 0, 400), (3, "all-reduce.3", 400, 200), (3, "all-gather-done.4", 700, 50),
                                      (4, "all-gather-start.4", 300, 450), (3, "fusion.5", 600, 100), (3, "copy-done.6", 800, 100),
                                      (5, "model.py:12", 0, 900)):
            e.append({"ph": "X", "pid": 3, "tid": tid, "ts": at + start, "dur": dur, "name": name,
                      "args": {"bytes_accessed": "1000000"} if tid == 3 else {}})
    e.append({})
    save("jax-tpu.trace.json", json.dumps({"displayTimeUnit": "ns", "traceEvents": e}))


def varint(n):
    out = bytearray()
    while True:
        out.append(n & 127 | (128 if n > 127 else 0))
        n >>= 7
        if not n:
            return bytes(out)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def perfetto(interned):
    """Slices of two threads as TrackEvents: names inline and absolute times, or interned and a clock that counts."""
    slices = [(0, 1000, "ProfilerStep#1", "user_annotation"), (10, 400, "aten::linear", "cpu_op"),
              (20, 300, "aten::mm", "cpu_op"), (500, 900, "aten::gelu", "cpu_op")]
    marks = sorted([(s, 1, n, c) for s, _, n, c in slices] + [(e, 2, n, c) for _, e, n, c in slices])
    base, last, known, out = BASE, BASE, {}, b""
    head = field(10, 1) + field(60, field(1, 77) + field(4, field(1, 5) + field(2, 6) + field(5, "main")))
    out += field(1, head)
    if interned:
        clocks = field(1, field(1, 6) + field(2, base)) + field(1, field(1, 64) + field(2, base) + field(3, 1))
        out += field(1, field(6, clocks) + field(10, 1) + field(13, 1) +
                     field(59, field(11, field(11, 77)) + field(58, 64)))
    for at, kind, name, category in marks:
        time = base + at * 1000
        if interned:
            table = b""
            for number, word in ((1, category), (2, name)):
                if (number, word) not in known:
                    known[number, word] = len(known) + 1
                    table += field(number, field(1, known[number, word]) + field(2, word))
            event = field(9, kind) + (field(3, known[1, category]) + field(10, known[2, name]) if kind == 1 else b"")
            out += field(1, field(8, time - last) + field(10, 1) + field(13, 2) + field(11, event) +
                         (field(12, table) if table else b""))
            last = time
        else:
            event = field(9, kind) + field(11, 77) + (field(22, category) + field(23, name) if kind == 1 else b"")
            out += field(1, field(8, time) + field(10, 1) + field(11, event))
    save("interned.perfetto.pb" if interned else "inline.perfetto.pb", out)


def nsys():
    """The tables that Nsight Systems exports, of two steps that NVTX marks; and its table of GPU events."""
    path = os.path.join(HERE, "nsys.sqlite")
    if os.path.exists(path):
        os.remove(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA page_size = 512")
    db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    db.execute("CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT)")
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, demangledName)")
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, streamId, correlationId, globalPid, bytes, copyKind)")
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId)")
    db.execute("CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid)")
    db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(1, "sm90_xmma_gemm_bf16"), (2, "cudaLaunchKernel"),
                   (3, "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)")])
    db.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3')")
    pid, rows = 77 << 24, ["Start (us),Duration (us),CorrId,Bytes (MB),Device,Strm,Name"]
    for step in range(2):
        at = 1000000 + step * 1000000
        db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?)", (at, at + 1000000, f"ProfilerStep#{step}", pid + 5))
        for k, (start, dur, name) in enumerate(((100000, 400000, 1), (520000, 100000, 3))):
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 2)",
                       (at + start - 20000, at + start - 10000, pid + 5, 10 * step + k + 1))
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, ?, ?, ?)",
                       (at + start, at + start + dur, 10 * step + k + 1, pid, name))
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 0, 8, 0, ?, 4096, 1)", (at + 700000, at + 720000, pid))
        rows.append(f'{(at + 100000) / 1000},400,{10 * step + 1},,NVIDIA H100 80GB HBM3 (0),7,"sm90_xmma_gemm_bf16<a, b>"')
        rows.append(f"{(at + 700000) / 1000},20,,0.004,NVIDIA H100 80GB HBM3 (0),8,[CUDA memcpy Host-to-Device]")
    db.commit()
    db.close()
    with open(path, "rb") as f:
        save("nsys.sqlite.gz", f.read())
    os.remove(path)
    save("cuda_gpu_trace.csv", "\n".join(rows) + "\n")


def main():
    os.makedirs(HERE, exist_ok=True)
    kineto_rank(0)
    kineto_rank(1)
    kineto_2021()
    kineto_amd()
    jax_tpu()
    perfetto(False)
    perfetto(True)
    nsys()


if __name__ == "__main__":
    main()
