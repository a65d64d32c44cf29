"""Files to text."""

from __future__ import annotations

import os

from placelogic.problem import Problem, SpecError
from placelogic.source import Span

MAX_BYTES = 1_000_000


def read_source(path: str | os.PathLike[str]) -> str:
    """The text of a spec file.

    Raises SpecError as `read_bytes` and `decode` do."""
    return decode(read_bytes(path), os.fspath(path))


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a spec file; of a larger one only as much as `decode` needs to refuse it.

    Raises SpecError: PL001 no such file, PL002 a folder, PL004 not readable."""
    shown = os.fspath(path)
    try:
        with open(path, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _error("PL001", "there is no such file", shown, "check the name, and the folder you are in") from None
    except IsADirectoryError:
        raise _error("PL002", "this is a folder", shown, "name the `.place` files in it") from None
    except (OSError, ValueError) as error:
        if os.path.isdir(path):  # some systems report a folder as a lack of permission
            raise _error("PL002", "this is a folder", shown, "name the `.place` files in it") from None
        reason = getattr(error, "strerror", None) or "this is no file name"
        raise _error("PL004", f"the file cannot be read: {reason}", shown, "check its permissions") from None


def decode(data: bytes, path: str) -> str:
    """The text of a spec, wherever its bytes come from; `path` is what messages call it.

    Raises SpecError: PL003 larger than a million bytes, PL005 not UTF-8, PL006 zero bytes."""
    if len(data) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES} bytes"
        raise _error("PL003", message, path, "a spec is a few dozen lines; split this one with `import`")
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


def _error(code: str, message: str, path: str, hint: str, line: int = 1) -> SpecError:
    return SpecError(Problem(code, message, Span(path, line, 1, line, 2), hint))
