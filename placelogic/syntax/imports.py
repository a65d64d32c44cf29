"""Which files a spec reads, without parsing it: what it says of them must be found again when one changes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from placelogic.syntax.read import normalised

_IMPORT = re.compile(r'^[ \t]*import[ \t]*"([^"\n]*)"', re.MULTILINE)
_MAX = 10_000
"""Files; far more than imports may be nested."""


def folder_of(path: str) -> str:
    """Where the imports of a spec start from: the folder of its name, also when that is a link to a file elsewhere."""
    return os.path.realpath(os.path.dirname(path))


def imported(data: bytes, folder: str, read: Callable[[str], bytes | None] | None = None) -> dict[str, bytes | None]:
    """Every file that a spec of this content in this folder imports, also through others: its real path, and
    its content, None where it cannot be read.

    An import stands alone on its line, so no line is missed; one too many does no harm. `read` is how files are
    read, without it `content_of`."""
    read = read or content_of
    found: dict[str, bytes | None] = {}
    pending = [(data, folder)]
    while pending and len(found) < _MAX:
        content, here = pending.pop()
        for name in _IMPORT.findall(normalised(content.decode("utf-8", "replace"))):
            path = os.path.realpath(os.path.join(here, name))
            if path in found:
                continue
            found[path] = read(path)
            if (inner := found[path]) is not None:
                pending.append((inner, os.path.dirname(path)))
    return found


def content_of(path: str) -> bytes | None:
    """The bytes of a file, None where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError):
        return None
