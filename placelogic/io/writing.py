"""One way of writing a file, for everything that is written: whole or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

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


def put(path: str | os.PathLike[str], content: str | bytes, *, new: bool = False, durable: bool = True) -> None:
    """Written beside the file, then moved over it: at every moment the old content or the new one is there, whole.
    Links are followed; permissions and owner stay. A pipe or a device is written into. `new`: there must be no
    such file. `durable`: wait until it is on the disk. Raises OSError (FileExistsError where `new`)."""
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
        _dress(temporary, before)
        if new:
            _take(temporary, target)
        else:
            os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


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
