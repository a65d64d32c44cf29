"""Versions of frameworks, compared."""

from __future__ import annotations

import re


def before(version: str | None, other: str) -> bool:
    """Whether a version is older than another; no version is the newest."""
    return version is not None and _key(version) < _key(other)


def _key(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in re.findall(r"\d+", version)[:4]]
    return tuple(numbers + [0] * (4 - len(numbers)))
