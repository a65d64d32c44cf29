"""One spec, judged twice: by the proof for every size, and by exact simulation of small meshes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import product
from random import Random

from msgspec import Struct, field
from msgspec.structs import replace

from placelogic.elaborate import elaborate_file
from placelogic.elaborate.derive import derive
from placelogic.problem import SpecError
from placelogic.program.expr import Expr, Name, evaluate, holds, names
from placelogic.program.program import Program
from placelogic.prove import prove
from placelogic.report.diagnostic import Finding, SpecReport
from placelogic.simulate import simulate_any
from placelogic.syntax.ast import File
from placelogic.syntax.parse import parse

LARGEST = 3
"""Open sizes and micro-batches go up to this."""
MAX_DEVICES = 12
LOCAL = ("GI", "SC01", "SC02", "SC03", "SC04", "SC06", "CC02")
"""Faults that do not reach other weights before the first step is over."""


class Mesh(Struct, frozen=True):
    """Axis sizes, and the open sizes and micro-batches."""

    sizes: Mapping[str, int]
    quantities: Mapping[str, int]

    def __str__(self) -> str:
        shown = {**self.sizes, **{name: value for name, value in self.quantities.items() if value != 1}}
        return ", ".join(f"{name} = {value}" for name, value in shown.items())


class Judged(Struct, frozen=True):
    """`disagreement`: None, or what proof and simulation say differently, in words.
    `meshes`: how many were simulated. `codes`: those of the findings."""

    verdict: str
    disagreement: str | None = None
    meshes: int = 0
    codes: frozenset[str] = field(default_factory=frozenset)


def program_of(text: str, at: Mapping[str, int] | None = None) -> Program:
    """The complete program of the one spec in `text`. Raises SpecError."""
    (spec,) = elaborate_file(_parsed(text), at or {})
    if spec.problems or spec.program is None or spec.stated is None:
        raise SpecError(*spec.problems)
    return derive(spec.program, spec.stated)


@lru_cache(maxsize=1)
def _parsed(text: str) -> File:
    """A spec is elaborated with its sizes open, and again with them fixed."""
    return parse(text, "drawn.place")


def judge(text: str, max_devices: int = MAX_DEVICES, max_meshes: int | None = None, seed: int = 0) -> Judged:
    """Whether proof and simulation agree. `max_meshes`: only so many, drawn by `seed`."""
    try:
        program = program_of(text)
        report = prove(program)
    except SpecError as error:
        return Judged("error", codes=frozenset(problem.code for problem in error.problems))
    codes = frozenset(finding.code for finding in report.findings if finding.severity == "error")
    every = list(meshes(program, max_devices))
    random = Random(seed)
    if max_meshes is not None and len(every) > max_meshes:
        every = random.sample(every, max_meshes)
    match report.verdict:
        case "proved":
            return Judged("proved", _wrong_somewhere(program, every), len(every), codes)
        case "refuted":
            found = _counterexamples_hold(program, report) or _innocent(program, report, every[-4:])
            if found is None and every:
                found = _at(program, text, random.choice(every))
            return Judged("refuted", found, len(every[-4:]) + 1, codes)
        case "undecided" if "UN02" in codes:
            told = next(finding.message for finding in report.findings if finding.code == "UN02")
            return Judged("undecided", told, 0, codes)
        case verdict:
            return Judged(verdict, codes=codes)


# --- meshes ---------------------------------------------------------------------------------


def meshes(program: Program, max_devices: int = MAX_DEVICES) -> Iterator[Mesh]:
    """Every allowed mesh whose open sizes that matter go up to `LARGEST`."""
    count = program.work.microbatches
    lets = {let.name: let.value for let in program.lets}
    open_lets = [name for name, value in lets.items() if value is None]
    if isinstance(count, Name) and count.name not in lets:
        open_lets.append(count.name)
    matter = _mattering(program, lets)
    open_axes = [atom.name for atom in program.mesh.atoms if atom.size is None]
    free = [*open_axes, *(name for name in open_lets if name in matter)]
    for values in product(range(1, LARGEST + 1), repeat=len(free)):
        env: dict[str, Fraction | int] = {**dict.fromkeys(open_lets, 1), **dict(zip(free, values))}
        if not _complete(program, lets, env):
            continue
        sizes = {axis: int(env[axis]) for axis in program.mesh.axes}
        devices = 1
        for size in sizes.values():
            devices *= size
        if devices <= max_devices and all(holds(one.condition, env) for one in program.assumptions):
            yield Mesh(sizes, {name: int(env[name]) for name in open_lets})


def _mattering(program: Program, lets: Mapping[str, Expr | None]) -> set[str]:
    """Names that sizes, micro-batches or assumptions are made of, directly or through lets."""
    pending = [name.name for name in names(program.work.microbatches)]
    pending += [name.name for atom in program.mesh.atoms if atom.size is not None for name in names(atom.size)]
    pending += [name.name for one in program.assumptions for name in names(one.condition)]
    found: set[str] = set()
    while pending:
        name = pending.pop()
        value = lets.get(name)
        if name not in found and value is not None:
            pending += [inner.name for inner in names(value)]
        found.add(name)
    return found


def _complete(program: Program, lets: Mapping[str, Expr | None], env: dict[str, Fraction | int]) -> bool:
    """Fills in lets with values, sizes and products; False where a size is no whole number."""
    for name, value in lets.items():
        if value is not None:
            env[name] = evaluate(value, env)
    for atom in program.mesh.atoms:
        if atom.size is not None:
            env[atom.name] = evaluate(atom.size, env)
    for name, axes in program.mesh.views:
        env[name] = 1
        for axis in axes:
            env[name] *= env[axis]
    return all(Fraction(env[axis]).denominator == 1 and env[axis] >= 1 for axis in program.mesh.axes)


# --- agreement ------------------------------------------------------------------------------


def _wrong_somewhere(program: Program, every: list[Mesh]) -> str | None:
    for mesh in every:
        wrong = _wrong(program, mesh, (2,) if mesh is every[-1] else ())
        if wrong is not None:
            return f"proved, but wrong at {mesh}: {wrong}"
    for reading in readings(program):
        for mesh in every[-3:]:
            wrong = _wrong(reading, mesh, ())
            if wrong is not None:
                return f"proved, but wrong at {mesh} where lines reach other weights too: {wrong}"
    return None


def readings(program: Program) -> Iterator[Program]:
    """Where a line about the gradient that reaches some weights reaches others too, which are before them, or
    the same again, which have several layers or uses."""
    layers = program.layers
    if layers is None or layers.blocks or not layers.overrides:
        return
    for line in layers.overrides:
        for weights in program.weights:
            tied = weights.uses is not None and weights.uses.first and weights.uses.last
            again = tied or weights.layers is not None or any(cut.dim == "layer" for cut in weights.params.cuts)
            if weights.name != line.tensor or again:
                more = (*layers.overrides, replace(line, tensor=weights.name))
                yield replace(program, layers=replace(layers, overrides=more))


def _wrong(program: Program, mesh: Mesh, more_tokens: tuple[int, ...] = (2,)) -> str | None:
    """What goes wrong on this mesh, with one token per item and, if nothing does, with more."""
    for per_item in (1, *more_tokens):
        outcome = simulate_any(program, mesh.sizes, mesh.quantities, per_item)
        if not outcome.right:
            return _told(outcome)
    return None


def _told(outcome: object) -> str:
    stopped = getattr(outcome, "stopped", None)
    differences = getattr(outcome, "differences", ())
    return str(stopped) if stopped is not None else str(differences[0]) if differences else "no reason given"


def _faults(report: SpecReport) -> Iterator[Finding]:
    for finding in report.findings:
        if finding.severity == "error" and finding.counterexample is not None:
            yield finding


def _counterexamples_hold(program: Program, report: SpecReport) -> str | None:
    """Every mesh that is printed trains other values there."""
    found = list(_faults(report))
    if not found:
        return "refuted without a counterexample"
    for finding in found:
        if finding.code == "UN02":
            return finding.message
        assert finding.counterexample is not None
        mesh = Mesh(finding.counterexample.mesh, finding.counterexample.quantities)
        if _wrong(program, mesh) is None:
            return f"refuted by {finding.code}, but right at {mesh}"
    return None


def _innocent(program: Program, report: SpecReport, some: list[Mesh]) -> str | None:
    """Weights that no finding speaks of are right after one step, where the faults cannot reach them yet."""
    faults = list(_faults(report))
    if next(readings(program), None) is not None:
        return None  # what depends on the reading is not told
    if program.clip is not None or any(f.weights is None or not f.code.startswith(LOCAL) for f in faults):
        return None
    guilty = {name for fault in faults for name in (fault.weights or "").split(", ")}
    for weights in program.weights:
        if weights.name in guilty:
            continue
        for mesh in some:
            outcome = simulate_any(program, mesh.sizes, mesh.quantities, weights=weights.name, steps=1)
            if outcome.wrong(weights.name):
                return f"nothing is said of `{weights.name}`, but it is wrong at {mesh}: {_told(outcome)}"
    return None


def _at(program: Program, text: str, mesh: Mesh) -> str | None:
    """The verdict with all sizes fixed is that of the simulation of this mesh."""
    fixed = {**mesh.sizes, **{name: value for name, value in mesh.quantities.items() if name != "P"}}
    try:
        report = prove(program_of(text, fixed))
    except SpecError:
        return None
    wrong = _wrong(program, mesh)
    if report.verdict == "proved" and wrong is not None:
        return f"proved at {mesh}, but wrong there: {wrong}"
    if report.verdict == "refuted" and wrong is None:
        return f"refuted at {mesh}, but right there"
    return f"undecided at {mesh}" if report.verdict == "undecided" else None
