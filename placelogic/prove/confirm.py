"""Asks the simulator whether a model of the solver really is a counterexample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from placelogic.program.expr import Name, Num, changed, number
from placelogic.program.program import Loop, Op, Program, Scale, ScaleLoss
from placelogic.prove.ratio import ONE
from placelogic.prove.sizes import PER_ITEM, Sizes

if TYPE_CHECKING:
    from placelogic.simulate.outcome import Outcome


def mesh_of(program: Program, sizes: Sizes, env: Mapping[str, int]) -> dict[str, int]:
    """The size of every axis in a model; what the model leaves open is 1."""
    full = complete(sizes, env)
    return {axis: int(sizes.size(axis).at(full)) for axis in program.mesh.axes}


def quantities_of(program: Program, sizes: Sizes, env: Mapping[str, int]) -> dict[str, int]:
    """Open lets, and the micro-batches where a name counts them."""
    full = complete(sizes, env)
    out = {let.name: full[let.name] for let in program.lets if let.value is None}
    count = program.work.microbatches
    if isinstance(count, Name):
        out[count.name] = int(sizes.microbatches.at(full))
    elif sizes.microbatches != ONE:
        out["microbatches"] = int(sizes.microbatches.at(full))
    return out


def complete(sizes: Sizes, env: Mapping[str, int]) -> dict[str, int]:
    return {**dict.fromkeys(sizes.open, 1), **env}


MAX_TURNS = 30_000
"""Devices times micro-batches that are simulated as they are: some seconds of work at most."""


MAX_PASSES = 128
"""The same where the operations of layers are simulated."""


class Confirmation(Struct, frozen=True):
    """`wrong`: training differs from one device. `at`: the smaller mesh simulated instead, where the
    mesh itself is too large to simulate."""

    wrong: bool
    at: Mapping[str, int] | None = None


def confirmer(
    program: Program, sizes: Sizes, weights: str | None, layers: dict[object, Outcome] | None = None
) -> Callable[[Mapping[str, int]], Confirmation]:
    """A function of a model: does this group (or, for None, anything) train differently there? `layers`: run
    the operations of the layers, forward and backward, instead of gradients that come as the facts say; what
    came of it is kept there.

    A mesh too large is replaced by one with at most 2 (else 3) devices along each axis, and as many
    micro-batches: the calculus has decided the real one, and the simulation
    then shows the same step going wrong in small."""
    from placelogic.simulate import SimulationTooLarge, simulate_any

    whole = program

    def differs(program: Program, mesh: Mapping[str, int], quantities: Mapping[str, int], per_item: int) -> bool:
        try:
            if layers is not None:
                key = (tuple(mesh.items()), tuple(quantities.items()), per_item, program is whole)
                if key not in layers:
                    from placelogic.simulate import simulate_layers

                    layers[key] = simulate_layers(program, mesh, quantities, per_item)
                outcome = layers[key]
            else:
                outcome = simulate_any(program, mesh, quantities, per_item, weights)
        except SimulationTooLarge:
            return False
        return not outcome.right if weights is None else outcome.wrong(weights)

    def confirm(env: Mapping[str, int]) -> Confirmation:
        full = complete(sizes, env)
        mesh, quantities, per_item = mesh_of(program, sizes, env), quantities_of(program, sizes, env), full[PER_ITEM]
        turns = int(sizes.microbatches.at(full))
        if prod(mesh.values()) * turns <= (MAX_PASSES if layers is not None else MAX_TURNS):
            return Confirmation(differs(program, mesh, quantities, per_item))
        for most in (2, 3):
            small = {axis: min(size, most) for axis, size in mesh.items()}
            at = dict(small)
            shorter, fewer = program, dict(quantities)
            count = program.work.microbatches
            if isinstance(count, Name):
                at[count.name] = fewer[count.name] = min(turns, most)
                lets = (replace(let, value=number(fewer[count.name])) if let.name == count.name else let
                        for let in program.lets)  # fmt: skip
                shorter = replace(program, lets=tuple(lets))
            elif isinstance(count, Num) and turns > most:
                at["microbatches"] = fewer["microbatches"] = most
                shorter = _with_fewer(program, count, number(most))
            elif prod(small.values()) * turns > (MAX_PASSES if layers is not None else MAX_TURNS):
                continue
            if differs(shorter, small, fewer, per_item):
                return Confirmation(True, at)
        return Confirmation(False, {})

    return confirm


def _with_fewer(program: Program, count: Num, fewer: Num) -> Program:
    """The program with other micro-batches than a number says, also where its steps divide by that number."""

    def op_with(op: Op) -> Op:
        match op:
            case Loop(body=body):
                return replace(op, body=tuple(map(op_with, body)))
            case Scale() | ScaleLoss():
                return replace(op, factor=changed(op.factor, lambda part: fewer if part == count else part))
            case _:
                return op

    steps = tuple(replace(step, ops=tuple(map(op_with, step.ops))) for step in program.steps)
    return replace(program, work=replace(program.work, microbatches=fewer), steps=steps)


def dealer(program: Program, sizes: Sizes, axes: tuple[str, ...]) -> Callable[[Mapping[str, int]], Confirmation]:
    """A function of a model: can what these axes cut be dealt out there?"""
    from placelogic.simulate import uneven

    def confirm(env: Mapping[str, int]) -> Confirmation:
        found = uneven(program, mesh_of(program, sizes, env), quantities_of(program, sizes, env))
        return Confirmation(any(set(one.axes) <= set(axes) for one in found))

    return confirm
