"""On which mesh to replay a spec: small, and with every axis in use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from placelogic.program.expr import Name, Num, changed, evaluate, holds, names, number
from placelogic.program.program import Loop, Op, Program, Scale, ScaleLoss
from placelogic.report.diagnostic import Counterexample
from placelogic.simulate import uneven

MOST_RANKS = 16
"""Processes that one replay may start."""
LONGEST = 64
"""Micro-batches of a counterexample, where the spec fixes their number."""
MOST_TURNS = 4
"""Micro-batches of a spec that fixes their number; more show nothing new."""
FEWER = 2
"""What many micro-batches become."""
DIVISIBLE = 48
"""A size of layers that is left open."""
PREFERRED = (2, 1, 3, 4)
"""Sizes to try, the best first."""


class Meeting(Struct, frozen=True):
    """A program and the sizes to replay it at. `smaller`: sizes that the spec fixes and that were made
    smaller, name -> what the spec says; its verdict is then one on other sizes."""

    program: Program
    sizes: Mapping[str, int]
    quantities: Mapping[str, int]
    smaller: Mapping[str, int]

    @property
    def ranks(self) -> int:
        return prod(self.sizes.values())


class NoMesh(Exception):
    """No mesh that is small enough fits the spec; the message says why."""


def exercising(program: Program, wanted: Mapping[str, int], most: int = MOST_RANKS) -> Meeting:
    """The smallest mesh with two devices along every axis, and two micro-batches, as far as the
    assumptions allow. `wanted` fixes sizes, also those the spec gives; `most`: devices. Raises NoMesh."""
    known = {atom.name for atom in program.mesh.atoms} | {let.name for let in program.lets} | _turns(program)
    for name in wanted:
        if name not in known:
            raise NoMesh(f"the spec has no size `{name}`")
    program, smaller = _opened(program, wanted)
    found = next(_meshes(program, wanted, most), None)
    if found is None:
        raise NoMesh(f"no mesh of at most {most} devices fits the spec and its assumptions")
    sizes, quantities = found
    return Meeting(program, sizes, quantities, {n: v for n, v in smaller.items() if sizes.get(n, 0) != v})


def of_counterexample(program: Program, example: Counterexample) -> Meeting:
    """The counterexample's own mesh, or the smaller one that was simulated in its place. Raises NoMesh."""
    sizes, quantities, smaller = dict(example.mesh), dict(example.quantities), {}
    if example.simulated:
        smaller = {n: v for n, v in sizes.items() if example.simulated.get(n, v) != v}
        sizes = {n: example.simulated.get(n, v) for n, v in sizes.items()}
        quantities |= {n: v for n, v in example.simulated.items() if n not in sizes}
    turns = program.work.microbatches
    if isinstance(turns, Num) and turns.value > LONGEST:
        raise NoMesh(f"the counterexample has {turns.value} micro-batches; at most {LONGEST} are replayed")
    ranks = prod(sizes.values())
    if ranks > MOST_RANKS:
        raise NoMesh(f"the counterexample has {ranks} devices; at most {MOST_RANKS} are replayed")
    return Meeting(program, sizes, quantities, smaller)


def fixed(meeting: Meeting) -> Program:
    """The program at these sizes alone, to be judged there."""
    program = meeting.program
    atoms = tuple(replace(atom, size=number(meeting.sizes[atom.name])) for atom in program.mesh.atoms)
    lets = tuple(
        replace(let, value=number(meeting.quantities[let.name]))
        if let.value is None and let.name in meeting.quantities
        else let
        for let in program.lets
    )
    return replace(program, mesh=replace(program.mesh, atoms=atoms), lets=lets)


def _turns(program: Program) -> set[str]:
    count = program.work.microbatches
    return {count.name} if isinstance(count, Name) else set()


def _opened(program: Program, wanted: Mapping[str, int]) -> tuple[Program, dict[str, int]]:
    """The program with large fixed sizes left open, and what they were."""
    env: dict[str, Fraction | int] = dict.fromkeys((let.name for let in program.lets if let.value is None), 1)
    env |= dict.fromkeys((atom.name for atom in program.mesh.atoms), 1)
    env |= dict.fromkeys(_turns(program), 1)
    try:
        for let in program.lets:
            if let.value is not None:
                env[let.name] = evaluate(let.value, env)
    except ZeroDivisionError:
        raise NoMesh("its sizes are computed from others by a division that can be one by zero") from None
    smaller: dict[str, int] = {}
    atoms = []
    for atom in program.mesh.atoms:
        size = None if atom.size is None else int(evaluate(atom.size, env))
        env[atom.name] = size or 1
        large = size is not None and (size > 2 or atom.name in wanted)
        if large and size is not None:
            smaller[atom.name] = size
        atoms.append(replace(atom, size=None) if large else atom)
    work = program.work
    turns = evaluate(work.microbatches, env)
    steps = program.steps
    if turns > MOST_TURNS:
        smaller["microbatches"] = int(turns)
        work = replace(work, microbatches=number(FEWER))
        # A step says by what it divides: by so many micro-batches.
        steps = tuple(replace(step, ops=_recounted(step.ops, turns)) for step in steps)
    return replace(program, mesh=replace(program.mesh, atoms=tuple(atoms)), work=work, steps=steps), smaller


def _recounted(ops: tuple[Op, ...], turns: Fraction) -> tuple[Op, ...]:
    found: list[Op] = []
    for op in ops:
        if isinstance(op, Loop):
            op = replace(op, body=_recounted(op.body, turns))
        elif isinstance(op, Scale | ScaleLoss):
            op = replace(op, factor=changed(op.factor, lambda part: number(FEWER) if part == number(turns) else part))
        found.append(op)
    return tuple(found)


def _meshes(program: Program, wanted: Mapping[str, int], most: int) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """Allowed sizes, the best first."""
    lets = {let.name: let.value for let in program.lets}
    open_lets = [name for name, value in lets.items() if value is None]
    open_lets += [name for name in _turns(program) if name not in lets]
    matter = _mattering(program)
    free = [atom.name for atom in program.mesh.atoms if atom.size is None]
    free += [name for name in open_lets if name in matter]
    ranges = [(wanted[name],) if name in wanted else PREFERRED for name in free]
    if len(free) > 8:
        ranges = [choice[:2] for choice in ranges]
    found = []
    # Where layers are stated their dimensions are dealt out, and must divide.
    rest = DIVISIBLE if program.layers is not None else 1
    for values in product(*ranges):
        env: dict[str, Fraction | int] = {**dict.fromkeys(open_lets, rest), **dict(zip(free, values))}
        env |= {name: value for name, value in wanted.items() if name in open_lets}
        try:
            _complete(program, env)
            allowed = all(holds(one.condition, env) for one in program.assumptions)
            turns = Fraction(evaluate(program.work.microbatches, env))
        except ZeroDivisionError:
            continue
        sizes = {axis: int(env[axis]) for axis in program.mesh.axes}
        whole = all(Fraction(env[axis]).denominator == 1 and env[axis] >= 1 for axis in program.mesh.axes)
        whole = whole and turns.denominator == 1 and turns >= 1
        if not (allowed and whole) or prod(sizes.values()) > most:
            continue
        open_ones = not {*sizes} <= {*wanted}  # what a person asks for is run as it is
        if open_ones and program.layering is not None and uneven(program, sizes, dict.fromkeys(open_lets, DIVISIBLE)):
            continue  # a verdict takes for granted that axes divide what they cut
        idle = sum(value == 1 for value in values)
        found.append((idle, prod(sizes.values()), sum(values), sizes, {name: int(env[name]) for name in open_lets}))
    for _, _, _, sizes, quantities in sorted(found, key=lambda one: one[:3]):
        yield sizes, quantities


def _complete(program: Program, env: dict[str, Fraction | int]) -> None:
    """Fills in the sizes that follow from others. Raises ZeroDivisionError."""
    for let in program.lets:
        if let.value is not None:
            env[let.name] = evaluate(let.value, env)
    for atom in program.mesh.atoms:
        if atom.size is not None:
            env[atom.name] = evaluate(atom.size, env)
    for name, axes in program.mesh.views:
        env[name] = prod(int(env[axis]) for axis in axes)


def _mattering(program: Program) -> set[str]:
    """Names that sizes, micro-batches or assumptions are made of, directly or through lets."""
    lets = {let.name: let.value for let in program.lets}
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
