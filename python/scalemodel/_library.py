"""The shared library, through ctypes: words in, an answer out (scalemodel/command.h)."""
import contextlib
import ctypes
import os
import signal
import threading

PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_double, ctypes.c_void_p)
TEXT, JSON, CSV, CHART, TIMELINE, ERROR, ERROR_JSON = range(7)
OK, NEGATIVE, USAGE, BAD_INPUT, IO, INTERNAL = range(6)


class Watch(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("stop", ctypes.POINTER(ctypes.c_int)),
                ("progress", PROGRESS), ("context", ctypes.c_void_p),
                ("keep_engine", ctypes.c_int)]


def _open():
    path = os.environ.get("SCALEMODEL_LIBRARY") or os.path.join(os.path.dirname(__file__),
                                                                "libscalemodel.so")
    library = ctypes.CDLL(path)
    library.sm_command_ask.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p),
                                       ctypes.POINTER(Watch)]
    library.sm_command_ask.restype = ctypes.c_void_p
    library.sm_command_describe.argtypes = []
    library.sm_command_describe.restype = ctypes.c_void_p
    library.sm_command_free.argtypes = [ctypes.c_void_p]
    library.sm_command_free.restype = None
    library.sm_command_status.argtypes = [ctypes.c_void_p]
    library.sm_command_status.restype = ctypes.c_int
    library.sm_command_text.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    library.sm_command_text.restype = ctypes.c_char_p
    # With the interpreter held: shorter than letting it go, and one step at a time.
    library.step_time = ctypes.PyDLL(path).sm_command_step_time
    library.step_time.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_double), ctypes.c_size_t,
                                  ctypes.POINTER(ctypes.c_double)]
    return library


_own = _open()


class Command:
    """An answered command line. Frees itself."""

    def __init__(self, pointer):
        if not pointer:
            raise MemoryError("scalemodel is out of memory")
        self._pointer = pointer
        self._free = _own.sm_command_free  # the module may be gone before the last answer is
        self.status = _own.sm_command_status(pointer)

    def __del__(self):
        pointer, self._pointer = getattr(self, "_pointer", None), None
        if pointer:
            self._free(pointer)

    def text(self, form, width=0):
        """The answer in a form; None where there is none in it."""
        raw = _own.sm_command_text(self._pointer, form, width)
        return None if raw is None else raw.decode("utf-8", "replace")

    def step_time(self, batch):
        """(status, seconds) of a step of the engine that this answer of simulate keeps."""
        numbers = [float(number) for new, cached in batch for number in (new, cached)]
        seconds = ctypes.c_double()
        status = _own.step_time(self._pointer, (ctypes.c_double * len(numbers))(*numbers),
                                len(numbers) // 2, seconds)
        return status, seconds.value


class Texts:
    """What an answered command said, without the library's answer: for another process. The page is
    as wide as the usual one."""

    def __init__(self, command):
        self.status = command.status
        self._texts = {form: command.text(form, 80 if form == TEXT else 0) for form in range(ERROR_JSON + 1)}

    def text(self, form, _=0):
        return self._texts[form]


def ask(words, progress=None, keep_engine=False):
    """Answer a command line. progress(fraction, best) is called while a search runs; what it raises
    stops the search with the best so far, and KeyboardInterrupt is kept until the answer is there.
    Returns the Command and the exception, or None. The interpreter is free meanwhile."""
    raw = [word.encode("utf-8") for word in words]
    for word in raw:
        if b"\0" in word:
            raise ValueError("an argument holds a zero byte")
    stop, raised = ctypes.c_int(0), []

    def listen(fraction, best, _):
        try:
            if progress and not raised:
                progress(fraction, best)
        except BaseException as why:  # pylint: disable=broad-except
            raised.append(why)
            stop.value = 1

    watch = Watch(ctypes.sizeof(Watch), ctypes.pointer(stop), PROGRESS(listen), None, keep_engine)
    array = (ctypes.c_char_p * max(len(raw), 1))(*raw)
    with _interrupts(lambda: (raised.append(KeyboardInterrupt()), setattr(stop, "value", 1))):
        command = Command(_own.sm_command_ask(len(raw), array, ctypes.byref(watch)))
    return command, raised[0] if raised else None


@contextlib.contextmanager
def _interrupts(told):
    """Ctrl-C calls told() meanwhile. As an exception it would be lost: between two lines of a function
    that the library calls back there is nobody to catch it."""
    own = threading.current_thread() is threading.main_thread()
    if not own or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: told())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def describe():
    """What the library understands: its version, verbs and their options, as JSON text."""
    return Command(_own.sm_command_describe()).text(JSON)
