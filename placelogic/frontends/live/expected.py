"""What the step program of a spec communicates on one rank: the terms of its cost, as numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

from msgspec import Struct

from placelogic.frontends.live.problems import refuse
from placelogic.problem import closest
from placelogic.program.expr import TOKENS, Expr, evaluate, names
from placelogic.program.program import Program, Reduce, Scale, Weights, flat

Axes = tuple[str, ...]


class Expected(Struct, frozen=True):
    """One collective for one group of weights: `bytes` of the whole message, `times` in a step, among
    `members` devices along `axes` (atoms of the spec)."""

    weights: str
    what: str
    operation: str
    axes: Axes
    members: int
    bytes: int
    times: int

    @property
    def total(self) -> int:
        return self.bytes * self.times


class Scaling(Struct, frozen=True):
    """What one group's gradient is multiplied by between backward and update: `factor` by everything that the
    step says, `means` by its reductions alone (a `scale` may stand in the loss instead). `axes`: of all of
    its reductions, those of size 1 left out. `tokens`: it is also divided by a token count."""

    weights: str
    axes: frozenset[str]
    factor: Fraction
    means: Fraction
    tokens: bool


class Plan(Struct, frozen=True):
    """`meanings`: axes of the mesh -> atoms of the spec. `carriers`: atoms along which a model sends
    activations. `stages`: the axis of the pipeline, where it has several stages. `norm`: atoms over which
    squares must be summed for clipping."""

    spec: str
    meanings: Mapping[str, Axes]
    sizes: Mapping[str, int]
    expected: tuple[Expected, ...]
    scalings: tuple[Scaling, ...]
    carriers: frozenset[str]
    stages: str | None
    norm: frozenset[str]
    clips: bool


def plan(
    source: str | os.PathLike[str],
    name: str | None,
    at: Mapping[str, int],
    mesh: Mapping[str, tuple[int, int]],
    padded: Mapping[str, tuple[Fraction, frozenset[str]]] = MappingProxyType({}),
) -> Plan:
    """`source`: path or text of a spec; `mesh`: axis -> (size, coordinate of this rank); `padded`: how much larger
    messages about some weights over some axes are than the weights. Raises SpecError."""
    program, path = _program(source, name, at, {axis: size for axis, (size, _) in mesh.items()})
    meanings = _meanings(program, mesh, path)
    env = _values(program, at, {axis: size for axis, (size, _) in mesh.items()})
    sizes = _sizes(program, env, meanings, mesh, path)
    env.update({axis: Fraction(size) for axis, size in sizes.items()})
    carriers = {axis for group in program.weights for axis in _carried(group, program)}
    carriers |= {split.axis for split in program.work.splits if split.dim != "batch"}
    stages = program.stages.axis if program.stages is not None and sizes[program.stages.axis] > 1 else None
    return Plan(
        program.name, meanings, sizes, _expected(program, env, mesh, meanings, path, padded),
        tuple(_scaling(program, group, sizes, env) for group in program.weights if not group.frozen),
        frozenset(carriers), stages, frozenset(axis for axis in _norm(program) if sizes[axis] > 1),
        program.clip is not None,
    )  # fmt: skip


def _program(
    source: str | os.PathLike[str], name: str | None, at: Mapping[str, int], mesh: Mapping[str, int]
) -> tuple[Program, str]:
    from placelogic.session.session import Session
    from placelogic.session.settings import Settings
    from placelogic.syntax.read import read_source

    text, path = os.fspath(source), "<text>"
    if "\n" not in text:
        text, path = read_source(text), text
    specs = Session(text, path).specs
    chosen = [spec for spec in specs if name in (None, spec.name)]
    if len(chosen) != 1:
        known = [spec.name for spec in specs]
        hint = (name and closest(name, known)) or f"name one: {', '.join(known)}"
        raise refuse("PL529", f"there is no spec `{name}`" if name else f"there are {len(known)} specs", hint, path)
    declared = {atom.name for atom in (chosen[0].elaborated.program or chosen[0].program).mesh.atoms}
    fixed = {**{axis: size for axis, size in mesh.items() if axis in declared}, **at}
    (spec,) = Session(text, path, Settings(fixed)).named(chosen[0].name)
    return spec.program, path


def _meanings(program: Program, mesh: Mapping[str, tuple[int, int]], path: str) -> dict[str, Axes]:
    views = dict(program.mesh.views)
    known = {**{axis: (axis,) for axis in program.mesh.axes}, **views}
    for axis in mesh:
        if axis not in known:
            hint = closest(axis, known) or f"the spec has {', '.join(known)}: name the axes of the mesh like them"
            raise refuse("PL529", f"the mesh has an axis `{axis}`, which the spec does not have", hint, path)
    return {axis: known[axis] for axis in mesh}


def _values(program: Program, at: Mapping[str, int], mesh: Mapping[str, int]) -> dict[str, Fraction]:
    """Every name of the spec that has a value."""
    env = {name: Fraction(size) for name, size in {**mesh, **at}.items()}
    pending: dict[str, Expr] = {let.name: let.value for let in program.lets if let.value is not None}
    pending |= {atom.name: atom.size for atom in program.mesh.atoms if atom.size is not None}
    while ready := [name for name, value in pending.items() if all(one.name in env for one in names(value))]:
        for name in ready:
            env[name] = evaluate(pending.pop(name), env)
    return env


def _sizes(
    program: Program,
    env: Mapping[str, Fraction],
    meanings: Mapping[str, Axes],
    mesh: Mapping[str, tuple[int, int]],
    path: str,
) -> dict[str, int]:
    """Of every atom; those of a spec and of the mesh must be equal."""
    covered = {atom for atoms in meanings.values() for atom in atoms}
    for axis in program.mesh.axes:
        if axis not in env:
            raise refuse(
                "PL529", f"the size of `{axis}` is not known", f'say it: compare(..., at={{"{axis}": 2}})', path
            )
        if axis not in covered and env[axis] != 1:
            raise refuse("PL529", f"the mesh has no axis `{axis}`, which the spec gives the size {env[axis]}",
                         "trace with the whole mesh, its axes named as in the spec", path)  # fmt: skip
    sizes = {axis: int(env[axis]) for axis in program.mesh.axes}
    for axis, atoms in meanings.items():
        product = 1
        for atom in atoms:
            product *= sizes[atom]
        if product != mesh[axis][0]:
            raise refuse("PL529", f"the mesh has {axis} = {mesh[axis][0]}, the spec {product}",
                         "leave the size open in the spec, or check the spec of this run", path)  # fmt: skip
    return sizes


def _expected(
    program: Program,
    env: Mapping[str, Fraction],
    mesh: Mapping[str, tuple[int, int]],
    meanings: Mapping[str, Axes],
    path: str,
    padded: Mapping[str, tuple[Fraction, frozenset[str]]],
) -> tuple[Expected, ...]:
    from placelogic.cost import derive

    cost = derive(program)
    stage = cost.places[0].axis
    wanted = _place([place.name for place in cost.places], stage, mesh, meanings, path)
    given = {name: int(value) for name, value in env.items() if value.denominator == 1}
    found = []
    groups = {group.name for group in program.weights}  # what layers send to each other is not compared
    for one in cost.collectives:
        if one.group not in groups or not one.device_to_device or all(place.name != wanted for place in one.places):
            continue
        numbers = [cost.known(value, **given) for value in (one.members, one.bytes, one.times)]
        if None in numbers:
            missing = {str(symbol) for value in (one.members, one.bytes, one.times) for symbol in value.free_symbols}
            unknown = sorted(missing - set(given) - set(cost.values))
            sizes = ", ".join(f'"{name}": 2' for name in unknown)
            raise refuse("PL529", f"the spec leaves open: {', '.join(unknown)}",
                         f"say what the run had, such as compare(..., at={{{sizes}}})", path)  # fmt: skip
        members, size, times = (Fraction(number or 0) for number in numbers)
        ratio, over = padded.get(one.group, (Fraction(1), frozenset()))
        size *= ratio if set(one.axes) <= over else 1
        if members > 1 and times > 0:
            found.append(
                Expected(one.group, one.what, one.operation, one.axes, int(members), round(size), int(times))
            )  # fmt: skip
    return tuple(found)


def _place(
    known: list[str],
    stage: str | None,
    mesh: Mapping[str, tuple[int, int]],
    meanings: Mapping[str, Axes],
    path: str,
) -> str:
    """Where this rank stands along the stages."""
    if stage is None:
        return known[0]
    axis = next((axis for axis, atoms in meanings.items() if atoms == (stage,)), None)
    size, here = mesh[axis] if axis is not None else (1, 0)
    name = "single" if size == 1 else "first" if here == 0 else "last" if here == size - 1 else "middle"
    return name if name in known else "rest"


def _norm(program: Program) -> set[str]:
    """Atoms over which squares are summed for clipping: those that are stated, else those that cut gradients."""
    if program.clip is None:
        return set()
    if program.clip.listed is not None:
        return {axis for axes, _ in program.clip.listed.values() for axis in axes}
    trained = [group for group in program.weights if not group.frozen]
    cuts = [cut for group in trained for cut in (*group.params.cuts, *group.gradients.cuts)]
    stages = {program.stages.axis} if program.stages is not None else set()
    return {axis for cut in cuts for axis in cut.axes} | stages


def _carried(group: Weights, program: Program) -> Axes:
    """Atoms along which layers of these weights exchange activations."""
    cuts = [cut for cut in group.params.cuts if cut.letter == "S"] + list(group.activations.cuts)
    stage = (program.stages.axis,) if program.stages is not None else ()
    return (*(axis for cut in cuts for axis in cut.axes), *group.routed, *stage)


def _scaling(program: Program, group: Weights, sizes: Mapping[str, int], env: Mapping[str, Fraction]) -> Scaling:
    step = program.step(group.name)
    axes: set[str] = set()
    factor = means = Fraction(1)
    tokens = False
    for op in flat(step.ops) if step is not None else ():
        match op:
            case Reduce(axes=along, op=kind):
                real = [axis for axis in along if sizes[axis] > 1]
                axes.update(real)
                if kind == "mean":
                    for axis in real:
                        tied = group.uses is not None and group.uses.axis == axis
                        means /= 2 if tied else sizes[axis]
            case Scale(factor=by):
                if any(one.name == TOKENS for one in names(by)):
                    tokens = True
                else:
                    factor *= evaluate(by, env)
            case _:
                pass
    return Scaling(group.name, frozenset(axes), factor * means, means, tokens)
