"""Folders that this user alone can write to: what is kept there can be trusted."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def cache_home() -> Path:
    """Where programs keep what they can make again."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "placelogic"


def private(folder: Path) -> bool:
    """Makes the folder where it is missing. False where it cannot be written, or others may write there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
            return False
        return os.access(folder, os.W_OK | os.X_OK)
    except (OSError, RuntimeError, ValueError):
        return False
