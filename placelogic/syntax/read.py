"""Files to text."""

from __future__ import annotations

import os

from placelogic.io.reading import MAX_BYTES, Unreadable, read_file
from placelogic.problem import Problem, SpecError
from placelogic.source import Span


def read_source(path: str | os.PathLike[str]) -> str:
    """The text of a spec file.

    Raises SpecError as `read_bytes` and `decode` do."""
    return decode(read_bytes(path), os.fspath(path))


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a spec file.

    Raises SpecError: PL001 no such file, PL002 a folder, PL003 too large, PL004 not readable, or no file but a pipe
    or a device."""
    shown = os.fspath(path)
    try:
        return read_file(path, MAX_BYTES)
    except Unreadable as error:
        match error.kind:
            case "missing":
                problem = _error("PL001", str(error), shown, "check the name, and the folder you are in")
            case "folder":
                problem = _error("PL002", str(error), shown, "name the `.place` files in it")
            case "large":
                problem = _too_large(shown)
            case "special":
                hint = "give `-` to read what another program writes"
                problem = _error("PL004", f"the file cannot be read: {error}", shown, hint)
            case _:
                problem = _error("PL004", f"the file cannot be read: {error}", shown, "check its permissions")
        raise problem from None


def decode(data: bytes, path: str) -> str:
    """The text of a spec, wherever its bytes come from; `path` is what messages call it.

    Raises SpecError: PL003 larger than a million bytes, PL005 not UTF-8, PL006 zero bytes."""
    if len(data) > MAX_BYTES:
        raise _too_large(path)
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise _error("PL006", "the file is not text: it contains zero bytes", path, "save it as UTF-8", line)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _error("PL005", "the file is not UTF-8 text", path, "save it as UTF-8", line) from None


def normalised(text: str) -> str:
    """Without a byte order mark, and with one character for each line end."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _too_large(path: str) -> SpecError:
    message = f"the file is larger than {MAX_BYTES} bytes"
    return _error("PL003", message, path, "a spec is a few dozen lines; split this one with `import`")


def _error(code: str, message: str, path: str, hint: str, line: int = 1) -> SpecError:
    return SpecError(Problem(code, message, Span(path, line, 1, line, 2), hint))
