"""One way of writing a file, for everything that is written: whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress

from placelogic.io.reading import Unreadable, read_file
from placelogic.problem import Problem, SpecError
from placelogic.source import Span


def write_file(path: str, content: str | bytes) -> None:
    """Put this content into the file. Raises SpecError PL012 where it cannot be written; then whatever was there is
    there still."""
    try:
        put(path, content)
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from None


def unwritable(path: str, error: OSError | ValueError) -> SpecError:
    """PL012 for this file."""
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    return SpecError(Problem("PL012", f"`{path}` cannot be written: {reason}", Span(path, 1, 1, 1, 1)))


def replace_file(path: str, old: bytes, new: bytes) -> None:
    """Put `new` in the place of `old`. Raises SpecError: PL012 if it cannot be written, PL013 if the file is no
    longer `old`."""
    try:
        put(path, new, old=old)
    except Changed:
        message = f"`{path}` changed while it was being formatted, and is left as it is now"
        raise SpecError(Problem("PL013", message, Span(path, 1, 1, 1, 1), "run the command again")) from None
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from None


class Changed(Exception):
    """The file is not what it was when it was read."""


def put(
    path: str | os.PathLike[str],
    content: str | bytes,
    *,
    new: bool = False,
    old: bytes | None = None,
    durable: bool = True,
    private: bool = False,
) -> None:
    """Written beside the file, then moved over it: at every moment the old content or the new one is there, whole.
    Links are followed; permissions and owner stay. A pipe or a device is written into. `new`: there must be no
    such file. `old`: what must be in it. `durable`: wait until it is on the disk. `private`: a
    new file is for this user only. Raises OSError (FileExistsError
    where `new`), and Changed where it is not `old`."""
    import tempfile

    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    target = os.path.realpath(path)
    before = _status(target)
    if before is not None and new:
        raise FileExistsError(None, "it is there already", target)
    if before is not None and not stat.S_ISREG(before.st_mode):
        with open(target, "wb") as file:  # there is nothing to keep whole; a folder raises
            file.write(data)
        return
    if before is not None and not os.access(target, os.W_OK):
        raise PermissionError(None, "it is read-only", target)
    handle, temporary = tempfile.mkstemp(prefix=".placelogic-", dir=os.path.dirname(target))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if before is not None or not private:
            _dress(temporary, before)
        if old is not None and _content(target, len(old)) != old:
            raise Changed
        if new:
            _take(temporary, target)
        else:
            os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _content(target: str, most: int) -> bytes | None:
    try:
        return read_file(target, most)
    except Unreadable:
        return None


def _status(target: str) -> os.stat_result | None:
    try:
        return os.stat(target)
    except FileNotFoundError:
        return None


def _dress(temporary: str, before: os.stat_result | None) -> None:
    """The permissions and the owner of the file in whose place it comes, or those of any new file."""
    if before is None:
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        return
    with suppress(OSError, AttributeError):
        os.chown(temporary, before.st_uid, before.st_gid)
    os.chmod(temporary, stat.S_IMODE(before.st_mode))


def _take(temporary: str, target: str) -> None:
    """Like a rename, but not over a file that has come meanwhile. Raises FileExistsError."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(target):
            raise FileExistsError(None, "it is there already", target) from None
        os.replace(temporary, target)
        return
    os.unlink(temporary)


def put_all(folder: str | os.PathLike[str], files: Mapping[str, str], old: Iterable[str] = ()) -> None:
    """Files by their names below the folder, all or none: they are written into a folder inside, and moved only when
    every one is whole. `old`: files that go before. Raises OSError."""
    import shutil
    import tempfile

    there = os.path.isdir(folder)
    os.makedirs(folder, exist_ok=True)
    staged = None
    try:
        staged = tempfile.mkdtemp(prefix=".placelogic-", dir=folder)
        for name, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(staged, name)), exist_ok=True)
            put(os.path.join(staged, name), text)
        for name in old:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))
            with suppress(OSError):
                os.rmdir(os.path.dirname(os.path.join(folder, name)))
        for name in files:
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            os.replace(os.path.join(staged, name), os.path.join(folder, name))
    finally:
        if staged is not None:
            shutil.rmtree(staged, ignore_errors=True)
        if not there:
            with suppress(OSError):  # with something in it, it stays
                os.rmdir(folder)
