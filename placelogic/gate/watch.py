"""`--watch`: look at the files again and again, and run when one has changed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence

from placelogic.gate.config import OWN, PROJECT, Loaded
from placelogic.gate.run import baseline_path, discover
from placelogic.problem import SpecError
from placelogic.syntax.imports import content_of, folder_of, imported

SECONDS = 0.3
"""Between two looks."""

Stamp = dict[str, tuple[int, int] | None]


def watch_files(
    load: Callable[[], Loaded],
    loaded: Loaded,
    files: Sequence[str],
    run: Callable[[Loaded], int],
    tell: Callable[[SpecError], None],
    seconds: float = SECONDS,
) -> int:
    """Run, then again whenever a file, one it imports, the configuration or the baseline has changed. Ends with an
    interrupt only. A configuration that cannot be read is told, and waited for."""
    config = loaded.config
    options = {name: getattr(config, name) for name, origin in loaded.origins.items() if origin.startswith("--")}
    while True:
        before = stamp(watched(loaded, files))
        try:
            loaded = load().with_options(options)
            run(loaded)
        except SpecError as error:
            tell(error)
        sys.stdout.flush()
        print("watching; interrupt to end", file=sys.stderr, flush=True)
        while stamp(watched(loaded, files)) == before:
            time.sleep(seconds)


def watched(loaded: Loaded, files: Sequence[str]) -> set[str]:
    """Everything the outcome depends on."""
    found = {one.path for one in discover(loaded, files) if one.problem is None}
    for path in list(found):
        data = content_of(path)
        found |= set(imported(data, folder_of(path)) or ()) if data else set()
    found.add(loaded.path or OWN)
    found |= {OWN, PROJECT, baseline_path(loaded)}
    return found


def stamp(paths: Iterable[str]) -> Stamp:
    """When each was changed last, and its size; None where it is not there."""
    stamps: Stamp = {}
    for path in paths:
        try:
            status = os.stat(path)
            stamps[path] = (status.st_mtime_ns, status.st_size)
        except OSError:
            stamps[path] = None
    return stamps
