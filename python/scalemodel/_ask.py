"""One question: words to the library, its answer or its error back."""
import sys

from . import _library
from ._errors import ScalemodelError
from .answer import Answer, class_of


def bar(total, layout="{l_bar}{bar}| {elapsed}"):
    """A progress bar of tqdm on a terminal or in a notebook, where tqdm is there; else None."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return None
    return tqdm(total=total, leave=False, delay=0.5, bar_format=layout)


def ask(words, progress=None):
    """The answer of a command line. Raises ScalemodelError. Ctrl-C during a search: the best so far
    is the answer, and says that it was interrupted; where there is no search to stop, KeyboardInterrupt."""
    own = bar(1.0) if progress is None and words and words[0] == "train" else None
    if own is not None:
        progress = lambda fraction, _: own.update(max(fraction - own.n, 0.0))  # noqa: E731
    command, raised = _library.ask([*words, "--json"], progress)
    if own is not None:
        own.close()
    if raised and not isinstance(raised, KeyboardInterrupt):
        raise raised
    if command.status > _library.NEGATIVE:
        raise ScalemodelError.of(command, _library)
    answer: Answer = class_of(words[0] if words else "")(command, words, interrupted=bool(raised))
    if raised and answer.to_dict().get("search", {}).get("optimal", True):
        raise raised
    return answer
