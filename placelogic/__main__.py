"""The program: `python -m placelogic`, and `placelogic` where it is installed."""

# `-m` looks for modules in the current folder first, which may be anybody's: not after this. So nothing is imported
# above, not even by `from __future__`; and `placelogic` itself has been found already.
import sys

if __name__ == "__main__" and __spec__ is not None and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

import gc  # noqa: E402

OBJECTS = 10_000
"""New ones between two searches for garbage, instead of Python's few hundred: a start makes a hundred thousand
objects, and none of them is garbage."""


def run() -> int:
    """One run, in a process of its own that ends after it."""
    gc.set_threshold(OBJECTS)
    from placelogic.cli import main

    try:
        return main()
    finally:
        gc.freeze()  # or the interpreter would go through all that is left, to clear what ends with the process


if __name__ == "__main__":
    sys.exit(run())
