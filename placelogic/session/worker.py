"""The process at the other end of parallel.py: files and settings come in, reports go out."""

from __future__ import annotations

import os
import pickle
import sys


def main() -> None:
    """Serve until the other end is closed."""
    tasks = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    # What anything prints by mistake must not get between the reports.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    from placelogic.session.files import check_files

    while True:
        try:
            found, settings = pickle.load(tasks)
        except EOFError:
            break
        answer, *_ = check_files([found], settings)
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        try:
            answers.flush()
        except BrokenPipeError:
            break
    sys.stdout.flush()
    os._exit(0)  # nothing is left to clean up, and the solver takes its time
