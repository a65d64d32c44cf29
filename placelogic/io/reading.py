"""One way of reading a file, with its limits, for everything that is read."""

from __future__ import annotations

import errno
import os
import stat
from typing import Literal

MAX_BYTES = 1_000_000
"""Of a file that a person writes: specs, configurations, what they import or name."""

Kind = Literal["missing", "folder", "special", "large", "name", "denied"]

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)  # or opening a pipe would wait for somebody to write into it
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


class Unreadable(Exception):
    """Why there is nothing to read, in words that follow "the file cannot be read"."""

    def __init__(self, kind: Kind, reason: str) -> None:
        super().__init__(reason)
        self.kind: Kind = kind


def read_file(path: str | os.PathLike[str], most: int = MAX_BYTES) -> bytes:
    """The content of a regular file of at most `most` bytes. Raises Unreadable: for folders, for pipes and devices,
    which may wait or never end, and for larger files. What is looked at is what has been opened, so nobody can
    put something else in its place in between."""
    try:
        handle = os.open(path, _FLAGS)
    except FileNotFoundError:
        raise Unreadable("missing", "there is no such file") from None
    except ValueError:
        raise Unreadable("name", "this is no file name") from None
    except OSError as error:
        raise _denied(path, error) from None
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise Unreadable("folder", "this is a folder")
        if not stat.S_ISREG(mode):
            raise Unreadable("special", "it is a pipe or a device, and not a file")
        with open(handle, "rb", closefd=False) as file:
            data = file.read(most + 1)
    except OSError as error:
        raise _denied(path, error) from None
    finally:
        os.close(handle)
    if len(data) > most:
        raise Unreadable("large", f"the file is larger than {most} bytes")
    return data


def _denied(path: str | os.PathLike[str], error: OSError) -> Unreadable:
    if os.path.isdir(path):  # some systems report a folder as a lack of permission
        return Unreadable("folder", "this is a folder")
    if error.errno in (errno.ENXIO, errno.ENODEV):  # a socket, a device without a driver
        return Unreadable("special", "it is a pipe or a device, and not a file")
    return Unreadable("denied", (error.strerror or str(error)).lower())


def read_text(path: str | os.PathLike[str], most: int = MAX_BYTES) -> str:
    """The same for text. Raises Unreadable, also for what is not UTF-8."""
    try:
        return read_file(path, most).decode("utf-8")
    except UnicodeDecodeError:
        raise Unreadable("denied", "it is not UTF-8 text") from None


def shown_text(path: str | os.PathLike[str]) -> str:
    """The text of a file whose problems are told, to show their lines; nothing where it cannot be read."""
    try:
        return read_file(path).decode("utf-8", "replace")
    except Unreadable:
        return ""
