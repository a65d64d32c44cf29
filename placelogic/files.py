"""Which files a command is about, and folders that can be trusted."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from placelogic.problem import Problem
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


def is_configuration(paths: Iterable[str]) -> bool:
    """Whether all of these are called as configurations of frameworks are, and not as specs."""
    return all(path.lower().endswith(CONFIGS) and not os.path.isdir(path) for path in paths)


MOST_BEHIND_LINKS = 10_000
"""Files and folders that are looked at where links lead out of a folder: a link may lead to a whole disk."""


def find(paths: Iterable[str], *, configs: bool = False, links: bool = True) -> tuple[Found, ...]:
    """The files named, and every `*.place` file (or every configuration) below the folders named, each once
    and in order; what is hidden is left out. `links`: also below folders that links lead to. A path that does not
    exist is kept: reading it will say so."""
    found: dict[str, Found] = {}
    suffixes = CONFIGS if configs else (SUFFIX,)
    for path in paths:
        for one in _below(path, suffixes, links) if os.path.isdir(path) else (Found(path),):
            key = os.path.abspath(one.path)
            # A file that is also named is no library by chance.
            if key not in found or (found[key].in_folder and not one.in_folder):
                found[key] = one
    return tuple(found.values())


def _below(folder: str, suffixes: tuple[str, ...], links: bool) -> list[Found]:
    found: list[Found] = []

    def unreadable(error: OSError) -> None:
        path = str(error.filename)
        reason = (error.strerror or "it cannot be read").lower()
        found.append(
            Found(path, True, Problem("PL011", f"the folder `{path}` cannot be searched: {reason}", whole(path)))
        )

    def walk(top: str) -> Iterator[int]:
        """Puts what is below into `found` and `linked`, and says how much was looked at."""
        for parent, folders, names in os.walk(top, onerror=unreadable):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            seen.add(os.path.realpath(parent))
            linked.extend(path for name in folders if os.path.islink(path := os.path.join(parent, name)))
            for name in sorted(names):
                if name.lower().endswith(suffixes) and not name.startswith("."):
                    found.append(Found(os.path.join(parent, name), True))
            yield len(folders) + len(names)

    seen: set[str] = set()
    linked: list[str] = []
    for _ in walk(folder):
        pass
    room = MOST_BEHIND_LINKS
    while links and linked:
        path = linked.pop(0)
        if os.path.realpath(path) in seen:
            continue
        for looked in walk(path):
            room -= looked
            if room < 0:
                message = f"the folder `{path}` is a link to one that is too large to be searched"
                hint = "name the file or folder that it is about, or exclude the link"
                return [*found, Found(path, True, Problem("PL011", message, whole(path), hint))]
    if not found:
        message = f"there is no {suffixes[0] if len(suffixes) == 1 else 'configuration'} file in `{folder}`"
        found.append(Found(folder, True, Problem("PL010", message, whole(folder), "name a file, or another folder")))
    return found


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
