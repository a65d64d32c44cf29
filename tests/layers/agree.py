"""One spec with blocks, judged twice: proved for every size, and simulated on small meshes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from random import Random

from msgspec import Struct, field

from placelogic.elaborate import elaborate_file
from placelogic.elaborate.complete import complete
from placelogic.problem import SpecError
from placelogic.program.program import Program
from placelogic.prove import prove
from placelogic.simulate import SimulationTooLarge, simulate_layers
from placelogic.syntax.parse import parse

MAX_DEVICES = 6
LAYERS = (1, 2, 3)


class Judged(Struct, frozen=True):
    verdict: str
    disagreement: str | None = None
    codes: frozenset[str] = field(default_factory=frozenset)


def program_of(text: str, at: Mapping[str, int] | None = None) -> Program:
    """Raises SpecError."""
    (spec,) = elaborate_file(parse(text, "drawn.place"), at or {})
    return complete(spec)


def judge(text: str, seed: int = 0, meshes: int = 4) -> Judged:
    """Whether proof and simulation agree on all small meshes, or on some that `seed` chooses."""
    try:
        program = program_of(text)
        report = prove(program)
    except SpecError as error:
        return Judged("error", codes=frozenset(problem.code for problem in error.problems))
    codes = frozenset(finding.code for finding in report.findings if finding.severity == "error")
    random = Random(seed)
    every = list(small(program))
    some = every if len(every) <= meshes else random.sample(every, meshes)
    if report.verdict == "proved":
        for sizes in some:
            if (wrong := simulated(program, sizes)) is not None:
                return Judged("proved", f"proved, but wrong at {sizes}: {wrong}", codes)
        return Judged("proved", None, codes)
    if report.verdict == "refuted":
        return Judged("refuted", _at(text, program, random.choice(every)), codes)
    if report.verdict == "vacuous":  # nothing is trained
        trained = any(not weights.frozen for weights in program.weights)
        return Judged("vacuous", "vacuous, and something is trained" if trained else None, codes)
    told = next((finding.message for finding in report.findings if finding.code.startswith("UN")), report.verdict)
    return Judged(report.verdict, told, codes)


def small(program: Program) -> Iterator[dict[str, int]]:
    """Every mesh of few devices, with few layers; the largest last."""
    names = [*program.mesh.axes, *(let.name for let in program.lets if let.value is None and let.name == "L")]
    for values in sorted(product((1, 2, 3), repeat=len(names)), key=sum):
        sizes = dict(zip(names, values))
        devices = 1
        for axis in program.mesh.axes:
            devices *= sizes[axis]
        if devices <= MAX_DEVICES:
            yield sizes


def simulated(program: Program, sizes: Mapping[str, int]) -> str | None:
    """What goes wrong on this mesh."""
    quantities = {let.name: sizes.get(let.name, 1) for let in program.lets if let.value is None}
    try:
        outcome = simulate_layers(program, {axis: sizes[axis] for axis in program.mesh.axes}, quantities)
    except SimulationTooLarge:
        return None
    if outcome.right:
        return None
    return str(outcome.stopped) if outcome.stopped else str(outcome.differences[0])


def _at(text: str, program: Program, sizes: Mapping[str, int]) -> str | None:
    """With all sizes fixed, the verdict is that of the simulation."""
    report = prove(program_of(text, sizes))
    wrong = simulated(program, sizes)
    if report.verdict == "proved" and wrong is not None:
        return f"proved at {sizes}, but wrong there: {wrong}"
    if report.verdict == "refuted" and wrong is None:
        return f"refuted at {sizes}, but right there"
    if report.verdict == "undecided":
        told = next((finding.message for finding in report.findings if finding.code.startswith("UN")), "")
        return f"undecided at {sizes}: {told}"
    return None
