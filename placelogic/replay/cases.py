"""What to replay of a spec, and what its verdict says will come out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Literal

from msgspec import Struct, field

from placelogic.problem import SpecError
from placelogic.program.program import Program
from placelogic.replay.meshes import MOST_RANKS, Meeting, NoMesh, exercising, fixed, of_counterexample
from placelogic.report.diagnostic import Counterexample, Finding, SpecReport
from placelogic.simulate import Item

Expected = Literal["equal", "different"]

_FACTOR = re.compile(r"(?:\((\d+)/(\d+)\)|(\d+)) g")
_COUNTED = re.compile(r"tokens of (\w+)=(\d+)")
PER_ITEM = "tokens per item"
_FACTORED = ("GI01", "GI02", "GI03", "GI04", "GI05", "GI06", "FW06")
"""Codes whose counterexample says what is fed to the optimizer; that of GI07 is what is clipped."""


class Case(Struct, frozen=True):
    """One program on one mesh. `weights`: of whom the verdict says that they differ; None: of anything.
    `factors`: coordinates -> by what the gradient is multiplied there, as the counterexample names it.
    `counts`: tokens by coordinate or micro-batch, where the counterexample names them."""

    name: str
    meeting: Meeting
    verdict: str
    expected: Expected
    code: str | None = None
    weights: str | None = None
    factors: tuple[tuple[Mapping[str, int], Fraction], ...] = ()
    counts: Mapping[tuple[str, int], int] = field(default_factory=dict)
    per_item: int | None = None


class Left(Struct, frozen=True):
    """Nothing to replay, and why. `failed`: the verdict itself is none (an error, undecided)."""

    name: str
    verdict: str
    reason: str
    failed: bool = False


def cases(
    program: Program, report: SpecReport, wanted: Mapping[str, int], most: int = MOST_RANKS
) -> Iterator[Case | Left]:
    """For a proved spec one mesh with every axis in use; for a refuted one the mesh of each counterexample,
    or the sizes wanted, if any."""
    try:
        match report.verdict:
            case "proved":
                case = _at(report.name, exercising(program, wanted, most), "proved")
                if case.verdict != "proved" and not wanted:
                    raise NoMesh("with its sizes made smaller it is another step, and not right; --mesh names others")
                yield case
            case "refuted" if wanted:
                yield _at(report.name, exercising(program, wanted), None)
            case "refuted":
                yield from _refuted(program, report)
            case "vacuous":
                yield Left(report.name, "vacuous", "no mesh at all is allowed")
            case verdict:
                yield Left(report.name, verdict, "there is no verdict to compare with", failed=True)
    except NoMesh as reason:
        yield Left(report.name, report.verdict, str(reason))


def _at(name: str, meeting: Meeting, verdict: str | None) -> Case:
    """With sizes of the spec made smaller, or of the user's choice, the verdict is asked for anew."""
    if verdict is None or meeting.smaller:
        from placelogic.prove import prove

        try:
            report = prove(fixed(meeting))
            verdict = report.verdict
        except SpecError as error:
            raise NoMesh(f"at the sizes to be replayed {error.problems[0].message}") from None
        if verdict not in ("proved", "refuted"):
            raise NoMesh(f"at the sizes to be replayed the verdict is {verdict}")
        if any(_broken(finding) for finding in report.findings):
            raise NoMesh(f"at the sizes to be replayed {BROKEN}")
    return Case(name, meeting, verdict, "equal" if verdict == "proved" else "different")


BROKEN = "what an axis cuts does not divide, and no device can have a broken piece of it"


def _broken(finding: Finding) -> bool:
    return finding.severity == "error" and finding.code == "FW07"


def _refuted(program: Program, report: SpecReport) -> Iterator[Case | Left]:
    seen = set()
    for finding in report.findings:
        example = finding.counterexample
        if finding.severity != "error" or example is None:
            continue
        key = repr((example.mesh, example.quantities, finding.weights))
        if key in seen:
            continue
        seen.add(key)
        if _broken(finding):
            yield Left(report.name, "refuted", f"{finding.code}: it cannot be carried out: {BROKEN}")
            continue
        try:
            yield refuted_case(report.name, program, finding, example)
        except NoMesh as reason:
            yield Left(report.name, "refuted", str(reason))


def refuted_case(name: str, program: Program, finding: Finding, example: Counterexample) -> Case:
    meeting = of_counterexample(program, example)
    counts = {}
    for told, count in example.quantities.items():
        if match := _COUNTED.fullmatch(told):
            counts[match[1], int(match[2])] = count
    factors = []
    for row in example.devices:
        factor = _FACTOR.fullmatch(row.applies)
        simple = row.single == "g" and finding.code in _FACTORED
        if simple and (factor or row.applies in ("g", "0")):
            value = Fraction(row.applies == "g")
            if factor:
                value = Fraction(int(factor[3])) if factor[3] else Fraction(int(factor[1]), int(factor[2]))
            factors.append((row.device, value))
    # A wrong norm changes what all weights are multiplied by.
    weights = None if finding.code == "GI07" else finding.weights
    return Case(
        name, meeting, "refuted", "different", finding.code, weights, tuple(factors), counts,
        example.quantities.get(PER_ITEM),
    )  # fmt: skip


def count_by(table: Mapping[tuple[str, int], int]) -> Callable[[Item], int]:
    """Token counts of items, from what the counterexample says of a coordinate or micro-batch."""

    def count(item: Item) -> int:
        known = dict(item.shares) | {"microbatch": item.microbatch}
        return next((table[pair] for pair in known.items() if pair in table), 1)

    return count
