"""Which files a spec reads, without parsing it: what it says of them must be found again when one changes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from placelogic.io.reading import Unreadable, read_file
from placelogic.syntax.read import normalised

_IMPORT = re.compile(r'^[ \t]*import[ \t]*"([^"\n]*)"', re.MULTILINE)
MAX_FILES = 1_000
MAX_TOTAL = 20_000_000
"""Files that a spec may import, also through others, and their bytes."""


def folder_of(path: str) -> str:
    """Where the imports of a spec start from: the folder of its name, also when that is a link to a file elsewhere."""
    return os.path.realpath(os.path.dirname(path))


def imported(
    data: bytes, folder: str, read: Callable[[str], bytes | None] | None = None
) -> dict[str, bytes | None] | None:
    """Every file that a spec of this content in this folder imports, also through others: its real path, and
    its content, None where it cannot be read, or lies outside the folder and must not be. None altogether where
    there are more than can be followed, which is an error in the spec (PL303).

    An import stands alone on its line, so no line is missed; one too many does no harm. `read` is how files are
    read, without it `content_of`."""
    read = read or content_of
    found: dict[str, bytes | None] = {}
    root, total = folder.rstrip(os.sep) + os.sep, 0
    pending = [(data, folder)]
    while pending:
        content, here = pending.pop()
        for name in _IMPORT.findall(normalised(content.decode("utf-8", "replace"))):
            path = _path(here, name)
            if path is None or path in found:
                continue
            inner = found[path] = read(path) if path.startswith(root) else None
            total += len(inner or b"")
            if len(found) > MAX_FILES or total > MAX_TOTAL:
                return None
            if inner is not None:
                pending.append((inner, os.path.dirname(path)))
    return found


def _path(folder: str, name: str) -> str | None:
    """None for what can be no file name."""
    try:
        return os.path.realpath(os.path.join(folder, name))
    except (OSError, ValueError):
        return None


def content_of(path: str) -> bytes | None:
    """The bytes of a file, None where it cannot be read as a spec."""
    try:
        return read_file(path)
    except Unreadable:
        return None
