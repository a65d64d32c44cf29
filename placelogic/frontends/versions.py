"""Versions of frameworks, compared."""

from __future__ import annotations

import re
from collections.abc import Iterable


def before(version: str | None, other: str) -> bool:
    """Whether a version is older than another; no version is the newest."""
    return version is not None and _key(version) < _key(other)


def within(version: str, other: str) -> bool:
    """Whether a version is older than another, the same, or of its series: 0.19.2 is of 0.19."""
    parts = len(re.findall(r"\d+", other))
    return _key(version)[:parts] <= _key(other)[:parts]


def newest(versions: Iterable[str]) -> str:
    """The newest of some versions."""
    return max(versions, key=_key)


def _key(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in re.findall(r"\d+", version)[:4]]
    return tuple(numbers + [0] * (4 - len(numbers)))
