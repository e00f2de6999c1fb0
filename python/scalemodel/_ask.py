"""One question: words to the library, its answer or its error back."""
import sys

from . import _library
from ._errors import ScalemodelError
from .answer import Answer


def _bar():
    """A progress bar of tqdm on a terminal or in a notebook, where tqdm is there."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return None
    bar = tqdm(total=1.0, leave=False, delay=0.5, bar_format="{l_bar}{bar}| {elapsed}")

    def show(fraction, _):
        bar.update(max(fraction - bar.n, 0.0))

    show.close = bar.close
    return show


def ask(words, progress=None):
    """The answer of a command line. Raises ScalemodelError. Ctrl-C during a search: the best so far
    is the answer."""
    own = None
    if progress is None and words and words[0] == "train":
        own = progress = _bar()
    command, raised = _library.ask([*words, "--json"], progress)
    if own:
        own.close()
    if raised and not isinstance(raised, KeyboardInterrupt):
        raise raised
    if command.status > _library.NEGATIVE:
        raise ScalemodelError.of(command, _library)
    return Answer(command, words)
