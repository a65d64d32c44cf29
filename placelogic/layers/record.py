"""What a walk notes on its way."""

from __future__ import annotations

from msgspec import Struct, field

from placelogic.layers.values import Part, Shape, Value
from placelogic.program.block import Block
from placelogic.program.ops import Origin


class Need(Struct, frozen=True):
    """A condition of the forward pass. `axis`: wrong wherever the axis has two devices or more, for a `reason`
    with its `words` (as of Misfit), at the operation, or at the boundary of the tensor; else `parts` have to be
    what one device has."""

    layer: int
    block: str
    tensor: str
    operation: str
    origin: Origin
    axis: str | None
    parts: tuple[Part, ...] = ()
    nonlinear: bool = False
    reason: str = ""
    words: tuple[tuple[str, str], ...] = ()
    boundary: bool = False


class Gradient(Struct, frozen=True):
    """The gradient of the weights of one operation in one layer."""

    layer: int
    block: str
    index: int
    value: Value
    own: frozenset[str]


class Layer(Struct):
    """One layer of a block: what was read and made in it."""

    block: Block
    number: int
    made: dict[str, Value] = field(default_factory=dict)
    before: dict[str, list[Shape]] = field(default_factory=dict)
    read: dict[tuple[int, int], Value] = field(default_factory=dict)
    crossed: dict[tuple[int, int], list[Shape]] = field(default_factory=dict)
    bare: dict[str, Shape] = field(default_factory=dict)

    def name(self, index: int) -> int:
        """A number of its own for each operation of each layer, and some to spare for its inputs."""
        return (self.number * 1000 + index) * 8
