"""The outcome of a check, as data. Renderers read only this.

The JSON form of these classes is the stable machine interface `placelogic/check/1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from placelogic.compat import assert_never
from placelogic.problem import Problem
from placelogic.report.sentences import FaultClass, Sentence
from placelogic.source import Span

Severity = Literal["error", "warning", "note"]
Verdict = Literal["proved", "refuted", "undecided", "vacuous", "error"]


class DeviceRow(Struct, frozen=True):
    """One line of a counterexample: on this device (axis -> coordinate), this is applied."""

    device: Mapping[str, int]
    applies: str
    single: str


class Counterexample(Struct, frozen=True):
    """A concrete mesh (axis -> size), other sizes (microbatches, lets, token counts), and rows.
    `simulated`: the smaller mesh that was simulated, where this one is too large."""

    mesh: Mapping[str, int]
    quantities: Mapping[str, int]
    devices: tuple[DeviceRow, ...]
    simulated: Mapping[str, int] | None = None


class TextEdit(Struct, frozen=True):
    """Replace the text of `span` by `text`."""

    span: Span
    text: str


class Acceptance(Struct, frozen=True):
    """A person lets a finding pass, and says why: in a comment beside it, or in a baseline file."""

    kind: Literal["comment", "baseline"]
    reason: str


class Finding(Struct, frozen=True):
    """One thing to tell the reader. `label` goes under the caret; `help` is the way forward;
    `fix` is one edit after which the spec was proved, in words, and `edit` the same for a machine;
    `consequence` marks what follows from an earlier finding of the same spec. `accepted`: somebody
    lets it pass. `denied`: a warning or note that the policy of a repository does not let pass. `sentence`: what
    message, label and help were made of, as long as the prover works on them. `factor`: by what a gradient is
    wrong, where that is one factor."""

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
    edit: TextEdit | None = None
    consequence: bool = False
    accepted: Acceptance | None = None
    denied: bool = False
    sentence: Sentence | None = None
    factor: str | None = None

    @classmethod
    def of(cls, problem: Problem, severity: Severity = "error") -> Finding:
        """What is wrong with an input, as something to tell."""
        return cls(problem.code, severity, problem.message, problem.span, help=problem.help)

    @property
    def problem(self) -> Problem:
        """The same as a reason why nothing can be made of an input."""
        return Problem(self.code, self.message, self.span, self.help)


def finding(
    sentence: Sentence,
    span: Span,
    severity: Severity = "error",
    counterexample: Counterexample | None = None,
    consequence: bool = False,
) -> Finding:
    """The finding that says so."""
    return Finding(
        sentence.code,
        severity,
        sentence.text("message") or "",
        span,
        weights=sentence.weights,
        axes=sentence.axes,
        label=sentence.text("label"),
        fault=sentence.wrong if counterexample is not None and severity == "error" else None,
        factor=sentence.factor,
        counterexample=counterexample,
        help=None if consequence else sentence.text("help"),
        consequence=consequence,
    )


def reworded(found: Finding, **words: str) -> str:
    """The message of a finding with other words."""
    return (found.sentence.text("message", **words) if found.sentence is not None else None) or found.message


class Obligations(Struct, frozen=True):
    """Counts. `stated` of them concern operations that a person stated; the rest are derived."""

    proved: int = 0
    refuted: int = 0
    undecided: int = 0
    stated: int = 0


class Recheck(Struct, frozen=True):
    """Of the questions behind a verdict, as they stand, how many each solver decides as the verdict has it."""

    questions: int = 0
    z3: int = 0
    cvc5: int = 0


class Settled(Struct, frozen=True):
    """An obligation, and what decided it: the normal form alone, or z3 about what that left. `confirmed_by`: the
    solvers that say the same to the question as it stands."""

    obligation: str
    by: Literal["normal form", "z3"]
    confirmed_by: tuple[str, ...] = ()


class SpecReport(Struct, frozen=True):
    """`expected`: None without `expect` lines, else whether all were met. `open_sizes`: axes and
    counts without a fixed size; the verdict holds for every value of them. `recheck`: None where no
    second solver was asked. `accepted`: refuted, and every finding that fails it is accepted. `settled`: every
    obligation that was decided."""

    name: str
    verdict: Verdict
    assumptions: tuple[str, ...] = ()
    assumptions_used: tuple[str, ...] = ()
    obligations: Obligations = field(default_factory=Obligations)
    findings: tuple[Finding, ...] = ()
    expected: bool | None = None
    open_sizes: tuple[str, ...] = ()
    recheck: Recheck | None = None
    accepted: bool = False
    settled: tuple[Settled, ...] = ()


class FileReport(Struct, frozen=True):
    """`text` is what was read; `sources` holds the text of imported files that findings lie in.
    `library`: found in a folder, defines strategies or models only, holds no spec to check.
    `findings`: what concerns the file rather than one of its specs: its suppressions."""

    path: str
    specs: tuple[SpecReport, ...]
    text: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    library: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def exit_code(self) -> int:
        """As of a report with this file alone."""
        return Report((self,)).exit_code


OUTSIDE_THE_CLAIM = (
    "rounding and reduce dtype",
    "kernels",
    "races",
    "forward values of layers that are not stated",
    "router decisions",
    "token counts of zero",
)
"""What no verdict speaks about; every report says so."""


class Report(Struct, frozen=True):
    """One entry per file, in order. `exit_code` is the one that the command line ends with."""

    files: tuple[FileReport, ...]

    @property
    def specs(self) -> tuple[SpecReport, ...]:
        """The specs of all files."""
        return tuple(spec for file in self.files for spec in file.specs)

    @property
    def exit_code(self) -> int:
        """1 if any spec fails, else 2 if any is an error, else 3 if any is undecided or vacuous, else 0."""
        codes = {exit_code(spec) for spec in self.specs}
        for file in self.files:
            codes |= {1 if finding.denied else 2 for finding in file.findings if finding.severity == "error"}
        return next((code for code in (1, 2, 3) if code in codes), 0)


UNMET = "EX01"
NOTHING_STATED = "EX02"
UNUSED = "EX03"
"""A suppression that nothing needs: a warning."""
NOT_REACHED = "EX04"
"""The sizes that a repository asks for lie outside of what the spec allows."""
NO_SUCH_SIZE = "EX05"
"""The spec has no size of a name for which a repository asks for a least one: a note, or a warning if it has none of them."""
ANY_FACTOR = "EX06"
"""A suppression that lets a wrong factor pass, whatever it is: a warning."""


def beside(spec: SpecReport, finding: Finding) -> bool:
    """Whether this is an error beside a refutation, such as a budget that could not be checked: to expect the
    refutation is not to expect it."""
    return spec.verdict == "refuted" and finding.severity == "error" and finding.code.startswith("PL")


def exit_code(spec: SpecReport) -> int:
    """What one spec asks the command line to end with. A met expectation is 0 whatever the verdict, and so
    is a refutation that is accepted; an unmet expectation, what the policy denies, or nothing stated where
    that was required, is 1."""
    if any(finding.code in (UNMET, NOTHING_STATED, NOT_REACHED) for finding in spec.findings):
        return 1
    if any(finding.denied and finding.accepted is None for finding in spec.findings):
        return 1
    if spec.expected or spec.accepted:
        return 2 if any(beside(spec, finding) for finding in spec.findings) else 0
    match spec.verdict:
        case "proved":
            return 0
        case "refuted":
            return 1
        case "error":
            return 2
        case "undecided" | "vacuous":
            return 3
        case _:
            assert_never(spec.verdict)


class FindingSet:
    """Findings seen so far. They hold mappings, so none can be hashed as a whole; few share a place and a message."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, Span], list[Finding]] = {}

    def __contains__(self, finding: Finding) -> bool:
        return finding in self._found.get((finding.code, finding.message, finding.span), ())

    def add(self, finding: Finding) -> bool:
        """True where it was not seen before."""
        if finding in self:
            return False
        self._found.setdefault((finding.code, finding.message, finding.span), []).append(finding)
        return True
