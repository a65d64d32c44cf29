"""What older supported Pythons lack."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    from typing import assert_never
else:

    def assert_never(value: object) -> None:
        """Unreachable by type; loud when it is reached all the same."""
        raise AssertionError(f"unexpected {value!r}")


__all__ = ["assert_never"]
