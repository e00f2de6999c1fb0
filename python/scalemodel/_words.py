"""Python values as the words of a command line, by the kind that the option's row says."""
import collections.abc
import json
import numbers
import os

_UNITS = {"seconds": "s", "bytes": "B"}


def number(value):
    """In the shortest form that reads back to the same double; whole numbers without a point."""
    if isinstance(value, numbers.Integral):
        return str(int(value))
    value = float(value)
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _word(value):
    if isinstance(value, bool):
        return "on" if value else "off"
    return number(value) if isinstance(value, numbers.Real) else str(value)


def text(value):
    """A mapping as key=value,key=value; a sequence joined by commas."""
    if isinstance(value, collections.abc.Mapping):
        return ",".join(f"{key}={text(item)}" for key, item in value.items())
    if isinstance(value, range):
        last = value[-1] if len(value) else value.stop
        return f"{value.start}..{last}" + (f":{value.step}" if value.step != 1 else "")
    if isinstance(value, (list, tuple)):
        return ",".join(_word(item) for item in value)
    return _word(value)


def model(value):
    """A name or path as it is; a config (a mapping, or an object of transformers) as its JSON."""
    if hasattr(value, "to_dict") and not isinstance(value, collections.abc.Mapping):
        value = value.to_dict()
    if isinstance(value, collections.abc.Mapping):
        return json.dumps(dict(value), default=str)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def option(row, value):
    """The words of one option, none where it is left to its default."""
    kind, name = row["kind"], "--" + row["name"]
    if value is None or (kind == "flag" and value is False):
        return []
    if kind == "flag":
        if value is not True:
            raise TypeError(f"{row['name']} is True or False, not {value!r}")
        return [name]
    if kind == "output" and value is True:
        value = os.devnull  # wanted in the answer, in no file
    if kind == "list":
        several = value if isinstance(value, (list, tuple)) else [value]
        return [f"{name}={_word(item)}" for item in several]
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    unit = _UNITS.get(kind, "")
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and unit:
        return [f"{name}={number(value)}{unit}"]
    return [f"{name}={text(value)}"]
