"""What operations of layers are made of. Exact numbers, PyTorch and lines of a script each say what it is for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Generic

from msgspec import Struct

from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.expr import Expr
from placelogic.program.program import Axes
from placelogic.run.grid import Grid
from placelogic.run.layers.crossing import Crossing
from placelogic.run.layers.lay import Data, Labels, Lay, Tensor

NOTHING = -1
"""Stands for a place that a device does not have."""
Rows = Sequence[Sequence[int]]
"""By device, positions along one dimension, or NOTHING."""


class Site(Struct, Generic[Data], frozen=True):
    """One operation of one layer, on all devices. `layer`, `index`: their numbers; `ins`: what it reads, `scores`: of a
    dispatch; `mine`: the places of a dimension that the weights, or the experts, of each device cover, where they are not
    all. `apart`: what sets the random numbers of a device apart; `counted`: where each takes a place of the sequence to
    stand, `keys` where it takes keys to, which are counted where they are made; `shared`: axes over which a vocabulary
    is shared out."""

    block: Block
    layer: int
    index: int
    op: bl.Operation
    grid: Grid
    sizes: Mapping[str, int]
    ins: Sequence[Tensor[Data]]
    scores: Tensor[Data] | None
    mine: Sequence[Mapping[str, Labels]]
    apart: Sequence[tuple[int, ...]]
    counted: Sequence[Callable[[int], int]]
    keys: Mapping[int, int]
    shared: Axes

    @property
    def x(self) -> Tensor[Data]:
        return self.ins[0]

    def places(self, dim: str) -> list[Labels]:
        """By device, what its weights or experts cover."""
        whole = tuple(range(self.sizes[dim]))
        return [mine.get(dim) or whole for mine in self.mine]

    def covered(self, dims: Sequence[str]) -> tuple[Lay, ...]:
        return tuple(Lay(tuple(dims), labels) for labels in zip(*map(self.places, dims)))


class Attending(Struct, frozen=True):
    """By device: which key heads and samples its queries meet, as positions among the keys, and the places of the
    sequence of both; `far`: how far each query takes each key to be; `chances`: how the probabilities lie, which dropout
    has random factors for."""

    heads: Rows
    samples: Sequence[Rows]
    queries: Sequence[Labels]
    keys: Sequence[Labels]
    far: Sequence[Rows]
    chances: Sequence[Lay]
    ratio: int


class Algebra(ABC, Generic[Data]):
    """Dimensions go by their names; devices that have other places of them have other rows of a table. A tensor of
    weights may have its dimensions in any order. `by_position`: whatever has the right size fits, as in PyTorch; else only
    what has the right places does."""

    by_position = True

    # --- the course of a layer ----------------------------------------------------------------

    def entered(self, block: Block, name: str, value: Tensor[Data]) -> Tensor[Data]:
        """What a layer reads, by a name of its own."""
        return value

    def read(self, s: Site[Data]) -> Site[Data]:
        """Before an operation."""
        return s

    @abstractmethod
    def made(self, s: Site[Data], value: Tensor[Data]) -> Tensor[Data]:
        """After an operation."""

    @abstractmethod
    def crossed(self, name: str, value: Tensor[Data], crossing: Crossing) -> Data:
        """`name`: of the tensor, or of what one of its readers gets."""

    # --- weights ------------------------------------------------------------------------------

    @abstractmethod
    def weights(self, s: Site[Data], lays: Sequence[Lay]) -> Tensor[Data]:
        """The matrix or vector of an operation at these places."""

    @abstractmethod
    def whole_number(self, expr: Expr) -> int: ...

    # --- arithmetic ---------------------------------------------------------------------------

    @abstractmethod
    def added(self, several: Sequence[Tensor[Data]]) -> Data:
        """Place by place; the later may lack dimensions of the first, as in `multiplied`."""

    @abstractmethod
    def multiplied(self, one: Tensor[Data], two: Tensor[Data]) -> Data: ...

    @abstractmethod
    def scaled(self, value: Tensor[Data], factor: Expr, everywhere: bool) -> Data:
        """`everywhere`: on the single device too."""

    @abstractmethod
    def product(self, x: Tensor[Data], w: Tensor[Data], start: int, experts: int, contracted: int) -> Data:
        """The dimensions of `x` from `start` on that are contracted give way to what `w` has beyond the first: a matrix
        for each of its `experts` dimensions, then what is contracted, then what is produced."""

    @abstractmethod
    def summed(self, x: Tensor[Data]) -> Data:
        """Over the first dimension."""

    @abstractmethod
    def function(self, s: Site[Data], x: Tensor[Data], name: str) -> Data:
        """Of each value."""

    @abstractmethod
    def noise(self, s: Site[Data], lays: Sequence[Lay]) -> Data:
        """A random factor for each place."""

    # --- places -------------------------------------------------------------------------------

    @abstractmethod
    def aligned(self, x: Tensor[Data], dims: Sequence[str]) -> Data:
        """With its dimensions in the order of `dims`, of which it may lack some, so that it meets a tensor with these."""

    @abstractmethod
    def ordered(self, x: Tensor[Data], dims: Sequence[str]) -> Data:
        """With just its dimensions in this order."""

    @abstractmethod
    def picked(self, x: Tensor[Data], dim: str, rows: Rows, alone: Sequence[int] | None = None) -> Data:
        """Its entries at these positions, zeros for NOTHING. `alone`: those of the single device, where that does not have
        all as they are; one that runs by itself has the only rows."""

    @abstractmethod
    def looked_up(self, table: Tensor[Data], vocabulary: str, words: Tensor[Data], size: int) -> Data:
        """Rows of a table, zeros for words that a device has no row of."""

    @abstractmethod
    def concatenated(self, several: Sequence[Tensor[Data]]) -> Data:
        """Along the last dimensions; a later one is the same along what it lacks of the others of the first."""

    @abstractmethod
    def spread(self, x: Tensor[Data], scores: Tensor[Data]) -> Data:
        """A dimension more in front, and zeros where the scores are zero."""

    # --- what mixes places --------------------------------------------------------------------

    @abstractmethod
    def normalised(self, s: Site[Data], x: Tensor[Data], dims: Sequence[str]) -> Data: ...

    @abstractmethod
    def attention(
        self, s: Site[Data], query: Tensor[Data], key: Tensor[Data], value: Tensor[Data], how: Attending
    ) -> Data:
        """Their last dimensions are the sequence, heads and the size of a head."""

    @abstractmethod
    def best(self, s: Site[Data], scores: Tensor[Data], dim: str, top: int) -> Data:
        """The highest scores along a dimension, zeros for the others."""

    @abstractmethod
    def loss(self, s: Site[Data], logits: Tensor[Data], vocabulary: str, over: Axes) -> Data:
        """Of each token; `over`: what is added up over devices that share out the vocabulary."""
