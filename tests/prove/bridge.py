"""The calculus and the simulator on one small spec: what each says of every device and work item.

The meaning of a kind is written down here once more, on purpose: `coefficient` below is the
definition in docs/semantics.md, and shares nothing with what the prover asks its solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from placelogic.elaborate import elaborate_file
from placelogic.elaborate.complete import complete
from placelogic.program.program import Program
from placelogic.prove.formula import holds
from placelogic.prove.kinds import Kind
from placelogic.prove.run import Run
from placelogic.prove.sizes import PER_ITEM, sizes_of
from placelogic.prove.transfer import Group
from placelogic.prove.values import TURN, Term, Trace
from placelogic.simulate import Item, coefficients, simulate
from placelogic.syntax.parse import parse

WEIGHTS = "w"


def program_of(text: str) -> Program:
    """The one spec in a text, its step complete."""
    (spec,) = elaborate_file(parse(text, "<bridge>"))
    return complete(spec)


def environment(program: Program, sizes: Mapping[str, int], M: int) -> dict[str, int]:
    """Every variable that the calculus may use, at this mesh."""
    env = {**sizes, "M": M, PER_ITEM: 1}
    env.update({f"ends.{axis}": min(size, 2) for axis, size in sizes.items()})
    env.update({f"turn.{i}": int(M >= i) for i in range(1, 5)})
    return env


def present(kind: Kind, axis: str, x: int, item: Item) -> bool:
    """Whether the kind has this item at coordinate x of its axis."""
    where = {**dict(item.shares), **dict(item.part)}
    match kind.value:
        case "partial":
            return where.get(axis, 0) == x
        case "root":
            return where.get(axis, 0) == kind.root
        case "replicated":
            return True
    raise AssertionError(kind)


def nameless(term: Term, env: Mapping[str, int]) -> bool:
    """Whether the term is there, and is no value at all."""
    if not holds(term.when, env):
        return False
    return holds(term.unknown, env) or any(holds(kind.ruined, env) for kind in term.kinds)


def coefficient(
    terms: Sequence[Term], axes: Sequence[str], env: Mapping[str, int], device: Sequence[int], item: Item
) -> Fraction:
    """What the terms say of one item on one device."""
    total = Fraction(0)
    here = {**env, TURN: item.microbatch}
    for term in terms:
        if not holds(term.when, here):
            continue
        if all(present(kind, axis, x, item) for kind, axis, x in zip(term.kinds, axes, device)):
            total += term.scale.at(here)
    return total


def traced(program: Program) -> Trace:
    """The step of the weights, run by the calculus."""
    sizes, _ = sizes_of(program)
    group = Group(program, program.group(WEIGHTS), program.facts[WEIGHTS], sizes)
    step = program.step(WEIGHTS)
    assert step is not None
    return Run(group).run(step)


def updated_terms(trace: Trace, env: Mapping[str, int]) -> tuple[Term, ...] | None:
    """The terms at the one update; None where a whole gradient clashes with a cut buffer before it."""
    if any(holds(clash.when, {**env, TURN: 1}) for clash in trace.clashes):
        return None
    (read,) = [read for read in trace.reads if read.what == "update" and holds(read.when, {**env, TURN: 1})]
    return read.terms[None]


def agree(program: Program, terms: Sequence[Term] | None, sizes: Mapping[str, int], M: int) -> str:
    """Compare the terms with the simulator on every device; returns how it came out.

    `stops`: the simulator cannot go on, which the terms must say too. `mixed`: no value at all, and
    the simulated step is wrong. `compared`: every coefficient is the same."""
    env = environment(program, sizes, M)
    if terms is None:
        assert not simulate(program, sizes, {"M": M}).right
        return "stops"
    if any(nameless(term, {**env, TURN: turn}) for term in terms for turn in range(1, M + 1)):
        assert not simulate(program, sizes, {"M": M}).right
        return "mixed"
    table = coefficients(program, sizes, {"M": M}, WEIGHTS)
    assert table, "the simulation stops, and the calculus does not know"
    assert table == {
        device: {item: coefficient(terms, program.mesh.axes, env, device, item) for item in items}
        for device, items in table.items()
    }
    return "compared"
