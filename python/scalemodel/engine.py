"""How long the steps of a serving engine take, for simulators of others."""
from __future__ import annotations

from typing import Any, Iterable

from . import _library, _verbs, _words
from ._errors import ScalemodelError


class Engine:
    """A replica of a model on chips under a plan, with the options of simulate.

    >>> import scalemodel as sm
    >>> engine = sm.Engine("llama-3.1-8b", on="h100-sxm:1", plan={"tensor": 1})
    >>> 0.001 < engine.step_time([(1, 2000)] * 32) < engine.step_time([(1, 2000)] * 32 + [(512, 0)])
    True
    """

    def __init__(self, model: Any, **options: Any) -> None:
        rows = _verbs.parameters(_verbs.verb_of("simulate"))[1]
        for name in options:
            if name not in rows:
                raise TypeError(f"simulate has no option {name!r}")
        if not {"arrivals", "qps", "trace", "concurrency"} & set(options):
            options = {**options, "arrivals": "uniform:1/s", "requests": 1}
        words = ["simulate", _words.model(model)]
        for name, value in options.items():
            words += _words.option(rows[name], value)
        self._command, _ = _library.ask(words, keep_engine=True)
        if self._command.status > _library.NEGATIVE:
            raise ScalemodelError.of(self._command, _library)
        if self._command.status == _library.NEGATIVE:
            raise ValueError(self._command.text(_library.TEXT).strip())

    def step_time(self, batch: Iterable[tuple[float, float]]) -> float:
        """Seconds of one step of a batch of sequences: (new tokens, cached tokens) of each. What
        simulate takes for the same step, in a few microseconds."""
        status, seconds = self._command.step_time(batch)
        if status:
            raise ScalemodelError.of(self._command, _library)
        return seconds


def step_time(engine: Engine, batch: Iterable[tuple[float, float]]) -> float:
    """engine.step_time(batch)."""
    return engine.step_time(batch)
