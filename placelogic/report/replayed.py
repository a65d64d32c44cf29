"""The report of a replay, as data: what was run, what came out, and whether that is what the verdict says.

Its JSON form is `placelogic/replay/1`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

Result = Literal["equal", "different", "inconclusive", "cannot run", "counted", "alone"]
"""`counted`: only bytes were looked at. `alone`: equal, on one device, where nothing can differ. Neither
decides anything."""

UNDECIDING = ("counted", "alone")


class Bytes(Struct, frozen=True):
    """One quantity measured on a rank and derived from the spec. `cause`: of a difference, where known."""

    what: str
    measured: int
    derived: int | None = None
    cause: str | None = None


class Replayed(Struct, frozen=True):
    """One mesh of one spec. `mesh` and `quantities` are what it ran with; `smaller`: sizes the spec fixes
    otherwise. `way`: "direct" or the component; `reason`: why it is not the other way, or why it cannot
    run. `differences`: the largest over ranks, steps and optimizers, by what is compared. `factor`: named
    and measured, where the counterexample names one. `agrees`: None where the numbers do not decide."""

    spec: str
    verdict: str
    mesh: Mapping[str, int]
    quantities: Mapping[str, int]
    way: str
    reason: str
    result: Result
    agrees: bool | None
    code: str | None = None
    weights: str | None = None
    smaller: Mapping[str, int] = field(default_factory=dict)
    differences: Mapping[str, float] = field(default_factory=dict)
    factor: tuple[float, float | None] | None = None
    stopped: str | None = None
    optimizers: tuple[str, ...] = ()
    bytes: tuple[Bytes, ...] = ()
    seconds: float = 0.0


def on_one_device(one: Replayed) -> Replayed:
    """A proved spec on a single device runs, which is no agreement."""
    if one.verdict == "proved" and one.result == "equal" and all(size == 1 for size in one.mesh.values()):
        return replace(one, result="alone", agrees=None)
    return one


class NotReplayed(Struct, frozen=True):
    """Nothing was run for this spec. `failed`: that is an error, of the spec or of the run."""

    spec: str
    verdict: str
    reason: str
    failed: bool


class ReplayReport(Struct, frozen=True):
    """`exit_code`: 1 if reality disagrees with a verdict, else 2 after a failure, else 3 if numbers did
    not decide or nothing was run, else 0."""

    path: str
    device: str
    dtype: str
    steps: int
    replayed: tuple[Replayed, ...]
    left: tuple[NotReplayed, ...]

    @property
    def exit_code(self) -> int:
        if any(one.agrees is False for one in self.replayed):
            return 1
        if any(one.failed for one in self.left):
            return 2
        undecided = any(one.agrees is None and one.result not in UNDECIDING for one in self.replayed)
        return 3 if undecided or not self.replayed else 0
