"""The types of the package, as a type checker and an editor read them (__init__.pyi): the verbs' options out of the library's own
tables, and the keys of each verb's answer as it answers the questions below. Run when a wheel is built.
usage: python stub.py FOLDER      FOLDER: where the package lies, with its library"""
import keyword
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
HEAD = '''
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .engine import Engine as Engine, step_time as step_time
from .sweep import Sweep as Sweep, sweep as sweep

__version__: str

class Record(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def to_dict(self) -> dict[str, Any]: ...

class Answer(Record):
    ok: bool
    words: tuple[str, ...]
    interrupted: bool
    json: str
    csv: str
    svg: str | None
    timeline: str | None
    def text(self, width: int = 80) -> str: ...
    def command_line(self) -> str: ...
    def rows(self, of: str | None = None) -> list[dict[str, Any]]: ...
    def to_frame(self, of: str | None = None) -> Any: ...
    def explain(self) -> str: ...
    def step(self) -> dict[str, Any]: ...
    def jax(self) -> Any: ...
    def plot(self, kind: str | None = None) -> Any: ...

class ScalemodelError(ValueError):
    status: int
    sentence: str
    source: str
    line: int | None
    column: int | None
    span: int | None
    excerpt: str | None

def command(*words: object) -> Answer: ...
def einsum(text: str, **options: Any) -> Answer: ...
'''

TYPES = {"flag": "bool", "whole": "int | str", "number": "float | str", "bytes": "float | str",
          "seconds": "float | str", "usd": "float | str", "rate": "float | str", "list": "str | list[str]",
          "choices": "str | list[str]", "dtypes": "str | list[str]", "range": "int | range | str",
          "input": "str | os.PathLike[str]", "output": "bool | str | os.PathLike[str]",
          "text": "str | dict | list | float"}

# Of each verb questions whose answers have, together, the keys that one meets.
QUESTIONS = {
    "chip": ["tpu-v5p", "h100-sxm --calibration", ""],
    "model": ["mixtral-8x7b --seq 8192", "llama-3.1-8b --program", "llama-3.1-8b --program --on tpu-v5p:4x4 --batch 1M --plan fsdp=8,tensor=2"],
    "plan": ["fsdp=8,tensor=4,microbatch=2"],
    "roofline": ["A[B,D]W[D,F] --on tpu-v5e --dims B=64,D=4096,F=4096 --critical B", "A[B,D]W[D,F] --on tpu-v5e --dims B=1..64,D=4096,F=4096"],
    "matmul": ["A[I_X,J]B[J_X,K_Y] --on tpu-v5e:4x4 --mesh X=4,Y=4 --dims I=8k,J=8k,K=8k"],
    "collective": ["all-gather bf16[E_Y,F] --on tpu-v5e:8x4 --mesh X=8,Y=4 --over Y --dims E=2048,F=8192"],
    "train": ["llama-3.1-8b --on tpu-v5e:4x4 --batch 512k --tokens 1T --plan pipeline=1",
              "mixtral-8x7b --on h100-sxm:4x8 --batch 1M --plan data=4,expert=8,microbatch=1 --failures 1e-5 --tokens 1T",
              "llama-3.1-8b --on h100-sxm:8 --batch 1M --chips 4..8 --plan tensor=1",
              "llama-3.1-8b --on h100-sxm:8 --batch 1M --plan fsdp=8,microbatch=1 --what-if hbm=2x",
              "llama-3.1-8b --on h100-sxm:8 --batch 1M --plan fsdp=8,microbatch=1 --sensitivity"],
    "serve": ["llama-3.1-8b --on h100-sxm:2 --qps 5", "llama-3.1-8b --on h100-sxm:2 --plan tensor=2 --batch 8"],
    "simulate": ["llama-3.1-8b --on h100-sxm --plan tensor=1 --qps 2 --requests 20 --ttft 1s"],
    "validate": ["--kind gemm --by chip --data {root}/data/truth"],
    "calibrate": ["{root}/tests/cli/inputs/steps.jsonl --chip h100-sxm"],
    "reshard": ["{root}/tests/cli/inputs/spmd.log --on tpu-v5e:4x4"],
    "profile": ["{root}/tests/cli/inputs/profile/cpu8.fsdp.hlo.txt.gz --on tpu-v5e:2x4"],
    "mfu": ["llama-3.1-70b tpu-v5p:8x8x8", "llama-3.1-70b tpu-v5p:8x8x8 --from 3.2s --batch 4M"],
    "support": ["qwen3-32b h100-sxm:8 --top 3"],
    "design": ["{root}/tests/cli/inputs/design/chip.json"],
}


METHODS = set()  # whose names hide a key


class Shape:
    """What is known of a value: the kinds of its numbers and texts, its keys, its items."""

    def __init__(self):
        self.kinds, self.keys, self.items = set(), {}, None

    def see(self, value):
        if isinstance(value, dict):
            self.kinds.add("dict")
            for key, item in value.items():
                self.keys.setdefault(key, Shape()).see(item)
        elif isinstance(value, list):
            self.kinds.add("list")
            self.items = self.items or Shape()
            for item in value:
                self.items.see(item)
        else:
            self.kinds.add("None" if value is None else type(value).__name__)

    def name(self, path, key, classes):
        """The type, and into `classes` those of the objects in it."""
        named = []
        for kind in sorted(self.kinds):
            if kind == "dict":
                named.append(class_of("_" + path.lstrip("_"), self, classes) if all(k.isidentifier() for k in self.keys) else "Record")
            elif kind == "list":
                named.append(f"list[{self.items.name(path, key, classes) if self.items.kinds else 'Any'}]")
            elif kind in ("int", "float"):  # counts apart, a number may have no fraction today and one tomorrow
                named.append("int" if self.kinds <= {"int", "None"} and counted(key) else "float")
            else:
                named.append(kind)
        named = [kind for kind in dict.fromkeys(named) if kind != "None"]
        return " | ".join((named or ["Any"]) + (["None"] if "None" in self.kinds and named else []))


def counted(key):
    return key in ("chips", "size", "count", "tokens", "sequences", "seq", "layers", "params", "active_params", "trained_params",
                   "microbatches", "level", "stride", "replicas", "batch", "evaluated", "pruned", "space")


def class_of(path, shape, classes, base="Record"):
    lines = []
    for key, item in shape.keys.items():
        if key.isidentifier() and not keyword.iskeyword(key) and key not in METHODS:
            lines.append(f"    {key}: {item.name(f'{path}_{key}', key, classes)}")
    classes.append(f"class {path}({base}):\n" + ("\n".join(lines) or "    ..."))
    return path


def main(folder):
    sys.path.insert(0, folder)
    import scalemodel
    from scalemodel import _verbs, answer
    METHODS.update(dir(answer.Answer))
    print(HEAD.strip())
    for verb in _verbs.described()["verbs"]:
        if verb["name"] not in _verbs.functions():
            continue
        shape, classes = Shape(), []
        for question in QUESTIONS.get(verb["name"], []):
            words = question.format(root=ROOT).split()
            shape.see(scalemodel.command(verb["name"], *words).to_dict())
        told = class_of(answer.class_of(verb["name"]).__name__, shape, classes, "Answer")
        print("\n" + "\n".join(classes) + "\n")
        argument, options = _verbs.parameters(verb)
        several = verb["arguments"].endswith("...]") or verb["arguments"].endswith("...")
        parts = [f"*{name}: str | os.PathLike[str]" if several else
                 f"{name}: Any" + ("" if i < verb["least"] else " | None = ...")
                 for i, name in enumerate(argument)]
        if not several:
            parts.append("*")
        for name, row in options.items():
            kind = TYPES.get(row["kind"], "str")
            parts.append(f"{name}: {kind}" + ("" if row["kind"] == "flag" else " | None") + " = ...")
        parts.append("progress: Callable[[float, float], object] | None = ...")
        print(f"def {verb['name']}(\n    " + ",\n    ".join(parts) + f",\n) -> {told}: ...")


main(sys.argv[1])
