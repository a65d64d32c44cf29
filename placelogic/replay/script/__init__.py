"""`--script`: a counterexample as a short program of its own, that needs PyTorch and a few CPU processes.

It is straight-line code: the step of the weights that are wrong, operation by operation, beside one device.
Where elements lie is written as tables. What is about the operations of blocks is in layers/. This package itself does without PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from msgspec.structs import replace

from placelogic.problem import Problem, SpecError
from placelogic.program.program import Program, Skip, flat
from placelogic.replay.cases import Case, count_by, refuted_case
from placelogic.replay.meshes import NoMesh
from placelogic.replay.script.build import Build
from placelogic.replay.script.layers import layered
from placelogic.replay.script.lines import NotShown
from placelogic.report.diagnostic import Finding
from placelogic.run.work import Counts
from placelogic.simulate import simulate

MOST_DEVICES = 8
MOST_LINES = 92
TOKENS = 2
"""Of one work item, unless the counterexample says."""


def script(program: Program, finding: Finding, source: str) -> str:
    """The program's text. `source`: file and spec. Raises SpecError PL062 with the reason where there is none."""
    try:
        return _script(program, finding, source)
    except (NotShown, NoMesh) as reason:
        message = f"this counterexample is not shown by a short script: {reason}"
        hint = "`placelogic replay --counterexample` runs it"
        raise SpecError(Problem("PL062", message, finding.span, hint)) from None


def has_blocks(program: Program) -> bool:
    return program.layers is not None and bool(program.layers.blocks)


def inside_layers(program: Program) -> bool:
    """Whether the step hangs on what the operations of its blocks do: the script has them, then."""
    if program.layers is None or not has_blocks(program):
        return False
    return bool(program.layers.overrides or (program.layering is not None and program.layering.flows))


def _about_layers(finding: Finding) -> bool:
    return finding.severity == "error" and finding.code.startswith("FW") and finding.code not in ("FW01", "FW02")


def _script(program: Program, finding: Finding, source: str) -> str:
    if finding.counterexample is None:
        raise NotShown("it names no mesh")
    if finding.code == "SC08" and any(sum(isinstance(op, Skip) for op in flat(step.ops)) > 1 for step in program.steps):
        raise NotShown(
            "a step skips twice, and an overflow that the first decision sees is not seen anew by the second"
        )
    case = refuted_case(source, program, finding, finding.counterexample)
    if case.meeting.ranks > MOST_DEVICES:
        raise NotShown(f"it needs {case.meeting.ranks} devices")
    if inside_layers(program) or (_about_layers(finding) and has_blocks(program)):
        return layered(program, finding, source, case, _counts(case), per_item(case))
    reason: NotShown | None = None
    for names in _choices(program, case):
        some = _only(program, names)
        try:
            if _shows(some, case):
                return _fitting(Build(some, finding, source, case, _counts(case), per_item(case)).text())
        except NotShown as found:
            reason = reason or found
    raise reason or NotShown("it takes what a script leaves out")


def _fitting(text: str) -> str:
    lines = len(text.splitlines())
    if lines > MOST_LINES:
        raise NotShown(f"it would have {lines} lines")
    return text


def _choices(program: Program, case: Case) -> Iterator[tuple[str, ...]]:
    """Which weights the script might have, the fewest first, those that are said to be wrong before others."""
    trained = [group.name for group in program.weights if program.step(group.name) is not None]
    named = [name for name in (case.weights or "").split(", ") if name in trained]
    if case.code == "GI07" or not named:
        order = [*named, *(name for name in trained if name not in named)]
    else:
        order = named
    for size in range(1, 4):
        yield from combinations(order, size)


def _only(program: Program, names: tuple[str, ...]) -> Program:
    return replace(
        program,
        weights=tuple(group for group in program.weights if group.name in names),
        steps=tuple(step for step in program.steps if step.weights in names),
    )


def per_item(case: Case) -> int:
    return case.per_item or TOKENS


def _counts(case: Case) -> Counts:
    if not case.counts:
        return None
    told = count_by(case.counts)
    return lambda item: per_item(case) * told(item)


def _shows(program: Program, case: Case) -> bool:
    """Whether these weights alone go wrong, by the simulator. Raises NotShown where they cannot go on at all."""
    meeting = case.meeting
    outcome = simulate(program, meeting.sizes, meeting.quantities, _counts(case), per_item(case))
    stop = next((stop for stop in outcome.stops if not stop.reason.startswith("no device updates")), None)
    if stop is not None:
        raise NotShown(f"its step cannot be carried out: {stop.reason}")
    return not outcome.right


__all__ = ["NotShown", "script"]
