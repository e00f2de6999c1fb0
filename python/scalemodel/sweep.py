"""The same question over many values."""
from __future__ import annotations

import itertools
from typing import Any, Callable

from ._ask import bar
from ._errors import ScalemodelError
from .answer import _flat


def _shown(answer: dict[str, Any]) -> dict[str, Any]:
    """The figures of an answer that a table of many answers shows: its best, where there are several,
    and the fleet of it that serves a rate."""
    best = answer.get("best") or next(iter(answer.get("plans") or answer.get("frontier") or ()), None)
    if answer.get("command") not in ("train", "serve") or best is None:
        return _flat(answer)
    fleet = {name: value for name, value in answer.get("fleet", {}).items() if name != "replica"}
    return _flat({**best, "fleet": fleet})


class Sweep:
    """Answers in the order they were asked: a list of (arguments, answer or error)."""

    def __init__(self, names: list[str], items: list[tuple[dict[str, Any], Any]]) -> None:
        self.names, self.items = names, items

    def __iter__(self) -> Any:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        refused = sum(isinstance(answer, ScalemodelError) for _, answer in self.items)
        over = ", ".join(self.names) or "nothing"
        return (f"Sweep over {over}: {len(self)} answers, {refused} of them errors; rows(), to_frame() and "
                "plot() show them")

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each question: what varied, then the best of its answer, flat; `error` where
        there is none."""
        out = []
        for given, answer in self.items:
            row = dict(given)
            if isinstance(answer, ScalemodelError):
                row["error"] = answer.sentence
            else:
                row.update(_shown(answer.to_dict()))
            out.append(row)
        return out

    def to_frame(self) -> Any:
        """The rows as a pandas.DataFrame (needs pandas)."""
        import pandas
        return pandas.DataFrame(self.rows())

    def plot(self, y: str, x: str | None = None, **options: Any) -> Any:
        """A figure of one column over what varied (needs matplotlib)."""
        from . import plots
        return plots.lines(self.rows(), x or self.names[0], y, self.names, **options)


def sweep(verb: Callable[..., Any], *args: Any, **kwargs: Any) -> Sweep:
    """Ask a verb for every combination of the arguments given as lists.

    >>> import scalemodel as sm
    >>> s = sm.sweep(sm.train, "llama-3.1-8b", on=["tpu-v5e:4x4", "tpu-v5p:4x4"], batch="512k")
    >>> len(s)
    2

    A list in the place of the model varies the model. A question that has no answer becomes a row
    with its error; Ctrl-C ends the sweep with what it has."""
    values = {f"arg{i}" if i else "model": value for i, value in enumerate(args)}
    values.update(kwargs)
    names = [name for name, value in values.items() if isinstance(value, list)]
    items: list[tuple[dict[str, Any], Any]] = []
    combinations = list(itertools.product(*(values[name] for name in names)))
    shown = bar(len(combinations), "{l_bar}{bar}| {n_fmt} of {total_fmt}, {elapsed}")
    try:
        for chosen in combinations:
            one = {**values, **dict(zip(names, chosen))}
            positional = [one.pop(name) for name in list(values)[:len(args)]]
            try:
                answer = verb(*positional, **one)
            except ScalemodelError as error:
                answer = error
            items.append((dict(zip(names, chosen)), answer))
            if shown is not None:
                shown.update()
            if getattr(answer, "interrupted", False):
                break
    except KeyboardInterrupt:
        pass
    if shown is not None:
        shown.close()
    return Sweep(names, items)
