"""The program: `python -m placelogic`, and `placelogic` where it is installed."""

# `-m` looks for modules in the current folder first, which may be anybody's: not after this. So nothing is imported
# above, not even by `from __future__`; and `placelogic` itself has been found already.
import sys

if __name__ == "__main__" and __spec__ is not None and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

import _thread  # noqa: E402
import gc  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
from time import sleep  # noqa: E402

from placelogic.commands import INTERRUPTED  # noqa: E402

OBJECTS = 10_000
"""New ones between two searches for garbage, instead of Python's few hundred: a start makes a hundred thousand
objects, and none of them is garbage."""


GRACE_S = 1.0
"""From an interrupt to the end, whatever does not listen: a query to a solver, a thread that computes."""


def run() -> int:
    """One run, in a process of its own that ends after it."""
    gc.set_threshold(OBJECTS)
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # and is not in the background
    if listens:
        signal.signal(signal.SIGINT, _leave)  # while modules are loaded there is nothing to undo
        _thread.start_new_thread(_watch, (_wakened(),))
    from placelogic.cli import main

    try:
        if listens:
            signal.signal(signal.SIGINT, _interrupt)
        return main()
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        if listens:
            signal.signal(signal.SIGINT, _leave)
        gc.freeze()  # or the interpreter would go through all that is left, to clear what ends with the process


def _interrupt(number: int, frame: object) -> None:
    # What is only half made (a context of z3) complains when it goes: not now.
    sys.unraisablehook = lambda _: None
    raise KeyboardInterrupt


def _leave(number: int, frame: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def _wakened() -> int:
    """Where a signal can be read the moment that it comes; what runs may hear of it later."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    return reads


def _watch(pipe: int) -> None:
    while number := os.read(pipe, 1):
        if number[0] == signal.SIGINT:
            sleep(GRACE_S)
            os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(run())
