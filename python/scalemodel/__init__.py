"""scalemodel: how to scale a Transformer, and why.

    >>> import scalemodel as sm
    >>> best = sm.train("llama-3.1-8b", on="tpu-v5e:4x4", batch="512k", seq=4096)
    >>> best.plans[0].bound
    'compute'

One function for each verb of the command, with its options as keyword arguments (help(sm.train));
answers have the keys of --json as attributes. Numbers are SI: seconds, bytes, FLOPs, dollars.
"""
from . import _verbs
from ._ask import ask as _ask
from ._errors import ScalemodelError
from .answer import Answer, Record, class_of
from .engine import Engine, step_time
from .sweep import Sweep, sweep

__version__ = _verbs.described()["version"]


def command(*words):
    """The answer of a command line, word by word: command("chip", "tpu-v5p")."""
    return _ask([str(word) for word in words])


_functions = _verbs.functions()
_classes = {kind.__name__: kind for kind in map(class_of, _functions)}  # TrainAnswer and the others
globals().update({**_functions, **_classes})
__all__ = ["Answer", "Engine", "Record", "ScalemodelError", "Sweep", "command", "einsum",
           "step_time", "sweep", *_functions, *_classes]


def __getattr__(name):
    """scalemodel.jax and scalemodel.torch, imported when first used."""
    if name in ("jax", "torch"):
        import importlib
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'scalemodel' has no attribute {name!r}")


def einsum(text, **options):
    """A sharded einsum, or lines of them: the same as matmul(text, ...)."""
    return globals()["matmul"](text, **options)
