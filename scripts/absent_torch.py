"""Stands in for torch and its kin where a framework imports them on the way to its argument parser, which computes nothing with
them: every name is a class, false, that makes more of its kind and leaves alone what it decorates."""
import importlib.abc
import importlib.machinery
import sys
import types
import typing

ROOTS = ("torch", "triton", "transformer_engine", "apex")


class Kind(type(typing.Protocol)):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = Kind(name, (Nothing,), {})
        setattr(cls, name, made)
        return made

    def __call__(cls, *arguments, **named):
        decorates = len(arguments) == 1 and not named and callable(arguments[0])
        return arguments[0] if decorates else type.__call__(cls)

    def __bool__(cls):
        return False

    def __or__(cls, other):
        return object

    def __ror__(cls, other):
        return object

    def __getitem__(cls, key):
        return cls

    def __iter__(cls):
        return iter(())


class Nothing(metaclass=Kind):
    def __init__(self, *arguments, **named):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing

    def __call__(self, *arguments, **named):
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else Nothing()

    def __bool__(self):
        return False

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        return False

    def __int__(self):
        return 0

    __index__ = __int__

    def __getitem__(self, key):
        return 0

    def __lt__(self, other):
        return False

    __ge__ = __lt__

    def __iter__(self):
        return iter(())


class Module(types.ModuleType):
    __path__ = []
    __version__ = "2.6.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = Kind(name, (Nothing,), {})
        setattr(self, name, made)
        return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in ROOTS:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        pass


def stand_in():
    """For whatever of them is not installed."""
    if not hasattr(typing, "override"):
        import typing_extensions
        typing.override = typing_extensions.override
    sys.meta_path.append(Finder())
