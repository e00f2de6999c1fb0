"""A function for each verb, made of the tables that the library reads command lines by."""
import difflib
import functools
import inspect
import json
import keyword
import os
import re
import textwrap

from . import _library, _words
from ._ask import ask

_OTHERWISE = {"sweep"}  # verbs that this package has in a form of its own, whose rows are answers
_OWN = {"json", "csv", "output", "help"}  # the forms of an answer, which has them all


def _measurements():
    """The rows that come with the package (or lie in the project, when it is used from there)."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(here, "truth"), os.path.join(here, "..", "..", "data", "truth")]
    return next((os.path.normpath(place) for place in places if os.path.isdir(place)), None)


def python_name(option):
    """--kv-dtype is kv_dtype; --as is as_, since `as` is Python's."""
    name = option.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def parameters(verb):
    """(name, row) of the verb's arguments and of its options."""
    argument = [re.sub(r"\W", "", word).lower() for word in verb["arguments"].split()]
    options = {}
    for row in verb["options"] + verb["common"]:
        if not (row in verb["common"] and row["name"] in _OWN):
            options.setdefault(python_name(row["name"]), row)
    return [name + "_" if name in options else name for name in argument], options


def verb_of(name):
    """The library's description of a verb."""
    return next(verb for verb in described()["verbs"] if verb["name"] == name)


def asked(words):
    """(arguments, {option as Python names it: text, True of a flag, a list of what is given several
    times}) of a command line's words."""
    rows, places, given = parameters(verb_of(words[0]))[1], [], {}
    rest = iter(words[1:])
    for word in rest:
        if word == "--":
            places += rest
        elif not word.startswith("--"):
            places.append(word)
        else:
            option, equals, value = word[2:].partition("=")
            name = python_name(option)
            if rows[name]["kind"] == "flag":
                value = True
            elif not equals:
                value = next(rest)
            if rows[name]["kind"] == "list":
                value = [*given.get(name, []), value]
            given[name] = value
    return places, given


def _doc(verb, argument, options):
    lines = [verb["summary"][0].upper() + verb["summary"][1:] + ".", ""]
    if argument:
        lines += [f"{', '.join(argument)}: as the command's {verb['arguments']}.", ""]
    for name, row in options.items():
        standard = row.get("default") or row.get("default_says")
        text = row["help"] + (": " + ", ".join(row["words"]) if row.get("words") else "")
        text += f" (default: {standard})" if standard else ""
        lines += textwrap.wrap(f"{name}: {text}", 90, subsequent_indent="    ",
                               break_long_words=False)
    return "\n".join(lines)


def _signature(verb, argument, options):
    kind = inspect.Parameter
    several = verb["arguments"].endswith("...]")
    out = []
    for i, name in enumerate(argument):
        if several:
            out.append(kind(name, kind.VAR_POSITIONAL))
        else:
            default = kind.empty if i < verb["least"] else None
            out.append(kind(name, kind.POSITIONAL_OR_KEYWORD, default=default))
    for name, row in options.items():
        out.append(kind(name, kind.KEYWORD_ONLY, default=False if row["kind"] == "flag" else None))
    out.append(kind("progress", kind.KEYWORD_ONLY, default=None))
    return inspect.Signature(out)


def _known(verb, signature, given):
    """TypeError of a keyword that the verb has not, with the nearest."""
    for name in given:
        if name not in signature.parameters:
            near = difflib.get_close_matches(name, signature.parameters, 1)
            raise TypeError(f"{verb}() has no argument {name!r}" + (f"; the nearest is {near[0]!r}" if near else ""))


def _function(verb):
    argument, options = parameters(verb)
    signature = _signature(verb, argument, options)

    def function(*args, **kwargs):
        _known(verb["name"], signature, kwargs)
        given = signature.bind(*args, **kwargs).arguments
        words = [verb["name"]]
        if verb["name"] == "validate" and not given.get("data") and not given.get("data_"):
            given["data"] = _measurements()  # the program has its own beside it
        for name, row in options.items():
            words += _words.option(row, given.get(name))
        words.append("--")
        for name in argument:
            value = given.get(name)
            several = value if isinstance(value, tuple) else () if value is None else (value,)
            words += [_words.model(item) for item in several]
        if words[-1] == "--":
            words.pop()
        else:  # what begins with no dash needs no mark before it
            at = words.index("--")
            if not any(word.startswith("-") for word in words[at + 1:]):
                words = [words[0], *words[at + 1:], *words[1:at]]
        return ask(words, given.get("progress"))

    function.__name__ = function.__qualname__ = verb["name"]
    function.__module__ = "scalemodel"
    function.__signature__ = signature
    function.__doc__ = _doc(verb, argument, options)
    return function


@functools.lru_cache(maxsize=None)
def described():
    """The library's description of itself, asked for once."""
    return json.loads(_library.describe())


def functions():
    """Of each verb by its name."""
    return {verb["name"]: _function(verb) for verb in described()["verbs"]
            if verb["name"] not in _OTHERWISE}
