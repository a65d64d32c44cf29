"""What `from_torch` and `Trace.compare` return. No torch is needed to read them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from placelogic.frontends.live.keys import Difference, Row
from placelogic.io.writing import write_file

if TYPE_CHECKING:
    from placelogic.report.diagnostic import Report


class LiveSpec(Struct, frozen=True):
    """`text` is a spec, whole and readable. `weights`: the parameters of each group of weights by their names
    in the model; those of other pipeline stages too. `held`: bytes of params, gradients and optimizer state
    that this rank held when it was read; counters of steps are left out. `padded`: how much larger messages about
    a group are than its weights, and over which axes, where shards are uneven."""

    text: str
    weights: Mapping[str, tuple[str, ...]]
    held: Mapping[str, int]
    padded: Mapping[str, tuple[Fraction, frozenset[str]]]

    def __str__(self) -> str:
        return self.text

    def check(self, **options: Any) -> Report:
        """As `placelogic.check`."""
        from placelogic.session.files import check

        return check(self.text, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        write_file(os.fspath(path), self.text)


class Comparison(Struct, frozen=True):
    """A recorded step against a spec, on one rank. `rows` are sums of bytes by operation and axes."""

    spec: str
    rank: str
    rows: tuple[Row, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        lines = [f"{self.spec}, {self.rank}: " + ("agrees" if self.agrees else "differs")]
        lines += [f"  {_row(row)}" for row in self.rows]
        lines += [f"  {one.kind}: {one.message}" for one in self.differences]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def _row(row: Row) -> str:
    key = row.key
    over = ", ".join(sorted(key.axes)) or f"{key.members} ranks"
    sign = "=" if row.expected == row.found else "<" if row.found < row.expected else ">"
    calls = "call" if row.calls == 1 else "calls"
    return f"{sign} {key.operation} over {over}: {row.expected:,} bytes expected, {row.found:,} in {row.calls} {calls}"
