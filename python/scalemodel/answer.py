"""Answers: the figures of a verb, its page, and its pictures."""
import collections.abc
import html
import json

from . import _library

# What of an answer is its table, the first that it has.
_TABLES = ("plans", "frontier", "sizes", "points", "alternatives", "ops", "rows", "chips", "models",
           "fleet", "statistics", "groups", "collectives", "series", "algorithms", "counts", "serving", "layers")


class Record(collections.abc.Mapping):
    """An object of an answer: a mapping whose keys are attributes too, as --json names them."""
    __slots__ = ("_of",)

    def __init__(self, of):
        object.__setattr__(self, "_of", of)

    def __getitem__(self, key):
        return _wrapped(self._of[key])

    def __getattr__(self, name):
        if not name.startswith("__") and name in self._of:
            return _wrapped(self._of[name])
        raise AttributeError(f"there is no {name!r} here; there are {', '.join(self._of)}")

    def __setattr__(self, name, value):
        raise AttributeError("answers do not change")

    def __dir__(self):
        return sorted(set(object.__dir__(self)) | set(self._of))

    def __iter__(self):
        return iter(self._of)

    def __len__(self):
        return len(self._of)

    def __repr__(self):
        return repr(self._of)

    def to_dict(self):
        """The same as dicts, lists, strings and numbers. Not a copy."""
        return self._of


def _wrapped(value):
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return [_wrapped(item) for item in value]
    return value


def _flat(record, prefix=""):
    """One level: step_time_s.expected."""
    out = {}
    for key, value in record.items():
        if isinstance(value, dict):
            out.update(_flat(value, f"{prefix}{key}."))
        elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
            continue
        elif isinstance(value, list):
            out.update({f"{prefix}{key}.{i}": item for i, item in enumerate(value)})
        else:
            out[prefix + key] = value
    return out


class Answer(Record):
    """What a verb answers. The keys of --json are attributes: answer.plans[0].step_time_s.expected.

    ok: False where the answer is no: it does not fit, there is no plan.
    words: the command line that asks the same.
    interrupted: True of a search that Ctrl-C ended: the best so far.
    """
    __slots__ = ("_command", "ok", "words", "interrupted")

    def __init__(self, command, words, interrupted=False):
        object.__setattr__(self, "_command", command)
        object.__setattr__(self, "ok", command.status == _library.OK)
        object.__setattr__(self, "words", tuple(words))
        object.__setattr__(self, "interrupted", interrupted)
        super().__init__(json.loads(self.json))

    def __reduce__(self):
        """To other processes and files: the texts of the answer."""
        return _again, (self.words, self.interrupted, _library.Texts(self._command))

    def __bool__(self):
        return self.ok

    @property
    def json(self):
        """As --json prints it, to the byte."""
        return self._command.text(_library.JSON)

    @property
    def csv(self):
        """As --csv prints it."""
        return self._command.text(_library.CSV)

    @property
    def svg(self):
        """The picture, where plot= asked for one; else None."""
        return self._command.text(_library.CHART)

    @property
    def timeline(self):
        """The timeline for Perfetto, where timeline= asked for one; else None."""
        return self._command.text(_library.TIMELINE)

    def text(self, width=80):
        """The page that the command prints."""
        return self._command.text(_library.TEXT, width)

    def command_line(self):
        """The command line for a shell."""
        import shlex
        return "scalemodel " + " ".join(shlex.quote(word) for word in self.words)

    def rows(self, of=None):
        """The records of the answer's table, or of another of its lists ("plans.0.collectives"),
        flat: a list of dicts."""
        key = of or next((name for name in _TABLES if isinstance(self._of.get(name), list)), None)
        if key is None:
            return [_flat(self._of)]
        table = self._of
        for name in key.split("."):
            table = table[int(name) if isinstance(table, list) else name]
        return [_flat(record) if isinstance(record, dict) else {key: record} for record in table]

    def to_frame(self, of=None):
        """The same as a pandas.DataFrame (needs pandas)."""
        import pandas
        return pandas.DataFrame(self.rows(of))

    def explain(self):
        """The derivation of the numbers down to their sources, as text: the question once more with
        explain=True, unless that is what was asked."""
        if "--explain" in self.words:
            return self.text()
        from ._ask import ask
        return ask([*self.words, "--explain"]).text()

    def step(self):
        """Of train: the options by which other verbs ask about the step of the best plan, among them
        model, on, plan and batch."""
        if self.words[0] != "train" or not self._of.get("plans"):
            raise TypeError("an answer of train with a plan has a step")
        from . import _verbs
        places, given = _verbs.asked(self.words)
        alike = ("seq", "families", "layers", "as_", "system", "calibration", "software")
        return {**{name: given[name] for name in alike if name in given}, "model": places[0],
                "on": self.system.name, "batch": self.batch.tokens, "plan": self.plans[0].plan}

    def jax(self):
        """Of train: the mesh of the best plan, and the PartitionSpec of every array under it, as
        scalemodel.jax.shardings gives them (needs jax)."""
        from .jax import shardings
        asked = self.step()
        return shardings(asked.pop("model"), **asked)

    def plot(self, kind=None):
        """A picture of the answer: the command's own SVG where the verb draws one, else a figure of
        matplotlib. In a notebook it is shown. kind: of train "breakdown" or "memory" (both where it
        is not given), "timeline" or "sensitivity"; of simulate "timeline" too."""
        from . import plots
        return plots.of(self, kind)

    def __str__(self):
        return self.text()

    def __repr__(self):
        return self.text()

    def _repr_html_(self):
        page = f"<pre>{html.escape(self.text())}</pre>"
        return page + (self.svg or "")


def class_of(verb):
    """TrainAnswer of train: the verb's own class of answers, whose types the package's stub tells."""
    name = verb.title().replace("-", "") + "Answer"
    if name not in _CLASSES:
        _CLASSES[name] = type(name, (Answer,), {"__slots__": (), "__module__": "scalemodel",
                                                "__doc__": f"What {verb!r} answers. " + Answer.__doc__})
    return _CLASSES[name]


_CLASSES = {}


def _again(words, interrupted, texts):
    return class_of(words[0])(texts, words, interrupted)
