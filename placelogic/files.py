"""Which files a command is about, how a file is replaced without ever being lost, and folders that can be trusted."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from placelogic.problem import Problem, SpecError
from placelogic.source import Span

SUFFIX = ".place"


def whole(path: str) -> Span:
    """The place of a problem that concerns a file as such."""
    return Span(path, 1, 1, 1, 1)


class Found(Struct, frozen=True):
    """A file to read. `in_folder`: it was not named but found, so it may be a library. `problem`:
    there is nothing to read, and why. `data`: its content, where it is no file."""

    path: str
    in_folder: bool = False
    problem: Problem | None = None
    data: bytes | None = None


CONFIGS = (".json", ".yaml", ".yml", ".toml", ".sh", ".args")
"""What configurations of frameworks are called."""


def find(paths: Iterable[str], *, configs: bool = False) -> tuple[Found, ...]:
    """The files named, and every `*.place` file (or every configuration) below the folders named, each once
    and in order; what is hidden is left out. A path that does not exist is kept: reading it will say so."""
    found: dict[str, Found] = {}
    suffixes = CONFIGS if configs else (SUFFIX,)
    for path in paths:
        for one in _below(path, suffixes) if os.path.isdir(path) else (Found(path),):
            key = os.path.abspath(one.path)
            # A file that is also named is no library by chance.
            if key not in found or (found[key].in_folder and not one.in_folder):
                found[key] = one
    return tuple(found.values())


def _below(folder: str, suffixes: tuple[str, ...]) -> list[Found]:
    found: list[Found] = []

    def unreadable(error: OSError) -> None:
        path = str(error.filename)
        reason = (error.strerror or "it cannot be read").lower()
        found.append(
            Found(path, True, Problem("PL011", f"the folder `{path}` cannot be searched: {reason}", whole(path)))
        )

    for parent, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(suffixes) and not name.startswith("."):
                found.append(Found(os.path.join(parent, name), True))
    if not found:
        message = f"there is no {suffixes[0] if len(suffixes) == 1 else 'configuration'} file in `{folder}`"
        found.append(Found(folder, True, Problem("PL010", message, whole(folder), "name a file, or another folder")))
    return found


def replace(path: str, old: bytes, new: bytes) -> None:
    """Put `new` in the place of `old`: written beside the file, then moved over it, so that at every
    moment one of the two is there, whole. Links are followed; permissions and owner stay.

    Raises SpecError: PL012 if it cannot be written, PL013 if the file is no longer `old`."""
    import tempfile

    target = os.path.realpath(path)
    temporary: str | None = None
    try:
        if not os.access(target, os.W_OK):
            raise PermissionError(None, "it is read-only")
        before = os.stat(target)
        handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(target)}.", dir=os.path.dirname(target))
        with os.fdopen(handle, "wb") as file:
            file.write(new)
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError, AttributeError):
            os.chown(temporary, before.st_uid, before.st_gid)
        os.chmod(temporary, stat.S_IMODE(before.st_mode))
        with open(target, "rb") as file:
            if file.read() != old:
                message = f"`{path}` changed while it was being formatted, and is left as it is now"
                raise SpecError(Problem("PL013", message, whole(path), "run the command again"))
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SpecError(Problem("PL012", f"`{path}` cannot be written: {reason}", whole(path))) from None
    finally:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


def cache_home() -> Path:
    """Where programs keep what they can make again."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "placelogic"


def private(folder: Path) -> bool:
    """Whether this user alone can write to the folder, so that what is kept there can be trusted; made where it is
    missing."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
            return False
        return os.access(folder, os.W_OK | os.X_OK)
    except (OSError, RuntimeError, ValueError):
        return False
