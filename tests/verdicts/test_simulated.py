"""Every spec that is proved here also trains right on small meshes, device by device, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path

import pytest
import reports

from placelogic.elaborate import elaborate_file
from placelogic.elaborate.complete import complete
from placelogic.program.expr import Name, evaluate, holds
from placelogic.program.program import Program
from placelogic.session.check import check_file
from placelogic.session.settings import Settings
from placelogic.simulate import SimulationTooLarge, simulate_any, uneven
from placelogic.syntax.parse import parse
from tests.layers.agree import simulated

MOST_DEVICES = 12
MOST_MESHES = 12
"""Simulated of one spec: the smallest and the largest, and others between them."""
DIVISIBLE = 720_720
"""By every size of an axis that is tried: where what is open has it, only a size in numbers can be dealt out unevenly,
and a verdict assumes that none is."""
FILES = [
    *reports.files("cases"),
    *reports.files("more"),
    *sorted((reports.HERE.parents[1] / "examples").glob("*.place")),
]


def small_meshes(program: Program) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """Sizes of the axes, and of the other open names, that the assumptions allow."""
    count = program.work.microbatches
    turns = {count.name} if isinstance(count, Name) else set()
    free = {let.name for let in program.lets if let.value is None} | turns
    varied = sorted({atom.name for atom in program.mesh.atoms if atom.size is None} | turns)
    for sizes in product((1, 2, 3) if len(varied) <= 3 else (1, 2), repeat=len(varied)):
        env: dict[str, Fraction | int] = {**dict.fromkeys(free, 1), **dict(zip(varied, sizes, strict=True))}
        for let in program.lets:
            if let.value is not None:
                env[let.name] = evaluate(let.value, env)
        for atom in program.mesh.atoms:
            if atom.size is not None:
                env[atom.name] = evaluate(atom.size, env)
        if evaluate(count, env).denominator != 1:
            continue  # micro-batches are assumed to be whole ones
        mesh, quantities = {axis: int(env[axis]) for axis in program.mesh.axes}, {name: int(env[name]) for name in free}
        if prod(mesh.values()) > MOST_DEVICES or not all(holds(given.condition, env) for given in program.assumptions):
            continue
        if program.layering is None or not uneven(program, mesh, dict.fromkeys(free, DIVISIBLE)):
            yield mesh, quantities


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_proved_is_right_on_small_meshes(path: Path) -> None:
    verdicts = {spec.name: spec.verdict for spec in check_file(str(path), Settings(fixes=None)).specs}
    for spec in elaborate_file(parse(path.read_text(), str(path))):
        if verdicts[spec.name] != "proved":
            continue
        program = complete(spec)
        every = list(small_meshes(program))
        for mesh, quantities in every[:: len(every) // MOST_MESHES + 1] + every[-1:]:
            if program.layers is not None and program.layers.blocks and program.layering and program.layering.flows:
                wrong = simulated(program, {**quantities, **mesh})  # gradients come as the layers say
                assert wrong is None, (spec.name, mesh, quantities, wrong)
                continue
            try:
                outcome = simulate_any(program, mesh, quantities)
            except SimulationTooLarge:
                continue
            assert outcome.right, (spec.name, mesh, quantities, outcome.differences[:1], outcome.stops[:1])
