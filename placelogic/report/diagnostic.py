"""The outcome of a check, as data. Renderers read only this.

The JSON form of these classes is the stable machine interface `placelogic/check/1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from placelogic.source import Span

Severity = Literal["error", "warning", "note"]
Verdict = Literal["proved", "refuted", "undecided", "vacuous", "error"]
FaultClass = Literal["wrong", "scale", "nonuniform"]


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """One line of a counterexample: on this device (axis -> coordinate), this is applied."""

    device: Mapping[str, int]
    applies: str
    single: str


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A concrete mesh (axis -> size), other sizes (microbatches, lets, token counts), and rows."""

    mesh: Mapping[str, int]
    quantities: Mapping[str, int]
    devices: tuple[DeviceRow, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to tell the reader. `label` goes under the caret; `help` is the way forward;
    `consequence` marks what follows from an earlier finding of the same spec."""

    code: str
    severity: Severity
    message: str
    span: Span
    weights: str | None = None
    axes: tuple[str, ...] = ()
    label: str | None = None
    fault: FaultClass | None = None
    counterexample: Counterexample | None = None
    help: str | None = None
    fix: str | None = None
    consequence: bool = False


@dataclass(frozen=True, slots=True)
class Obligations:
    """Counts. `stated` of them concern operations that a person stated; the rest are derived."""

    proved: int = 0
    refuted: int = 0
    undecided: int = 0
    stated: int = 0


@dataclass(frozen=True, slots=True)
class SpecReport:
    """`expected`: None without `expect` lines, else whether all were met."""

    name: str
    verdict: Verdict
    assumptions: tuple[str, ...] = ()
    assumptions_used: tuple[str, ...] = ()
    obligations: Obligations = field(default_factory=Obligations)
    findings: tuple[Finding, ...] = ()
    expected: bool | None = None


@dataclass(frozen=True, slots=True)
class FileReport:
    path: str
    specs: tuple[SpecReport, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What `placelogic.check` returns: one entry per file."""

    files: tuple[FileReport, ...]
