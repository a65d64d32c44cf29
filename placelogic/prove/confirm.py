"""Asks the simulator whether a model of the solver really is a counterexample."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from placelogic.program.expr import Name
from placelogic.program.program import Program
from placelogic.prove.sizes import PER_ITEM, Sizes


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
    return out


def complete(sizes: Sizes, env: Mapping[str, int]) -> dict[str, int]:
    return {**dict.fromkeys(sizes.open, 1), **env}


def confirmer(program: Program, sizes: Sizes, weights: str | None) -> Callable[[Mapping[str, int]], bool]:
    """A function of a model: does this group (or, for None, anything) train differently there?"""
    from placelogic.simulate import SimulationTooLarge, simulate_any

    def confirm(env: Mapping[str, int]) -> bool:
        per_item = complete(sizes, env)[PER_ITEM]
        try:
            outcome = simulate_any(
                program, mesh_of(program, sizes, env), quantities_of(program, sizes, env), per_item, weights
            )
        except SimulationTooLarge:
            return False
        return not outcome.right if weights is None else outcome.wrong(weights)

    return confirm
