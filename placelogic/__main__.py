"""The program: `python -m placelogic`, and `placelogic` where it is installed."""

from __future__ import annotations

import gc
import sys

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
