"""What parts of values and gradients are called by: a number for each operation of each layer that is followed."""

from __future__ import annotations

from placelogic.layers.record import Layer
from placelogic.program.block import Block
from placelogic.source import Span

SPARE = 3
"""Numbers that one operation needs: for what it makes, and for what comes back to two more of its inputs."""


def test_every_operation_of_every_layer_has_numbers_of_its_own() -> None:
    block = Block("layer", None, "x", "x", {"x": ("batch",)}, (), (), Span("a.place", 1, 1, 1, 1))
    layers = [Layer(block, number) for number in range(9)]
    names = [layer.name(index) + input_ for layer in layers for index in range(99) for input_ in range(SPARE)]
    assert len(set(names)) == len(names)
