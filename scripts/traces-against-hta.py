#!/usr/bin/env python3
"""Hold `scalemodel profile` against HolisticTraceAnalysis on Kineto traces: compute, copies with exposed communication, idle
and the span of each, in microseconds.
usage: python3 scripts/traces-against-hta.py TRACE.json[.gz]...
Needs HolisticTraceAnalysis of PyPI in an environment of its own; SCALEMODEL names the program (default build/scalemodel).

HTA leaves things out, or takes them for others, that `profile` does not. Each trace is compared as it is, and once more
without them; there the two must agree, or the exit status is 1:
- steps are marked: HTA cuts the trace to the whole ones but the last; the marks are taken away, so that it keeps all;
- kernels that no launch names (those of CUDA graphs): HTA drops them;
- waits of a stream ("cuda_sync", MTIA's "event_..."): HTA takes them for compute;
- an operation of the host whose arguments name a stream (Triton): HTA takes it for a kernel.
It rounds times to whole microseconds unless HTA_DISABLE_NS_ROUNDING says not to: set here."""
import copy, gzip, json, logging, os, re, subprocess, sys, tempfile, warnings

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis  # noqa: E402 (after what it reads)

PROGRAM = os.environ.get("SCALEMODEL", "build/scalemodel")
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}
LAUNCHES = {"cuda_runtime", "cuda_driver", "Runtime"}
PARTS = ("span", "compute", "other", "idle")


def load(path):
    text = gzip.open(path, "rt").read() if path.endswith(".gz") else open(path).read()
    trace = json.loads(re.sub(r"(:\s*)-?nan\b", r"\1null", text), strict=False)
    return trace if isinstance(trace, dict) else {"traceEvents": trace}


def without_what_differs(trace):
    def args(event):
        return event["args"] if isinstance(event.get("args"), dict) else {}

    trace = copy.deepcopy(trace)
    events = trace["traceEvents"]
    launched = {args(e).get("correlation") for e in events if e.get("cat") in LAUNCHES}
    kept = []
    for e in events:
        category, name = e.get("cat"), str(e.get("name", ""))
        if category in DEVICE and args(e).get("correlation") not in launched:
            continue
        if name.startswith("ProfilerStep") or category == "cuda_sync":
            continue
        if category == "mtia_ccp_events" and name.startswith("event_"):
            continue
        if category == "cpu_op":
            args(e).pop("stream", None)
        kept.append(e)
    trace["traceEvents"] = kept
    return trace


def by_profile(trace, folder):
    path = os.path.join(folder, "ours.json")
    with open(path, "w") as f:
        json.dump(trace, f)
    done = subprocess.run([PROGRAM, "profile", path, "--json"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    device = json.loads(done.stdout)["devices"]
    if len(device) != 1:
        sys.exit("HTA compares one device: this trace has %d" % len(device))
    whole = {k: 1e6 * v for k, v in device[0]["whole_trace"].items()}
    return dict(zip(PARTS, (whole["seconds"], whole["compute_s"], whole["exposed_s"] + whole["copies_s"],
                            whole["host_s"] + whole["gaps_s"] + whole["idle_s"])))


def by_hta(trace, folder):
    trace.setdefault("distributedInfo", {"rank": 0})
    path = os.path.join(folder, "hta.json.gz")
    with gzip.open(path, "wt") as f:
        json.dump(trace, f)
    analysis = TraceAnalysis(trace_files={trace["distributedInfo"].get("rank", 0): path}, trace_dir=folder)
    row = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    names = ("kernel_time(us)", "compute_time(us)", "non_compute_time(us)", "idle_time(us)")
    return {part: float(row[name]) for part, name in zip(PARTS, names)}


def compare(title, trace):
    with tempfile.TemporaryDirectory() as folder:
        a, b = by_profile(trace, folder), by_hta(trace, folder)
    off = max(abs(a[k] - b[k]) for k in PARTS)
    for name, figures in (("profile", a), ("HTA", b)):
        print("  %-22s %-8s" % (title, name) + "".join("  %s %.1f" % (k, figures[k]) for k in PARTS))
    return off <= 1e-6 * a["span"] + 0.1


wrong = 0
for path in sys.argv[1:]:
    print(os.path.basename(path))
    try:
        trace = load(path)
        compare("as it is", trace)
        same = compare("without what differs", without_what_differs(trace))
    except (IndexError, AttributeError) as error:
        print("  HTA does not read it: %r" % error)
        continue
    print("  equal" if same else "  DIFFERENT")
    wrong += not same
sys.exit(wrong > 0)
