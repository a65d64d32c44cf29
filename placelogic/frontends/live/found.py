"""What was found in a model, as plain data without tensors: it can be sent from rank to rank."""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct

Axes = tuple[str, ...]


class PlacedWeights(Struct, frozen=True):
    """One statement of a parameter along axes: modes in the words of the language, params, optimizer,
    gradients, activations (None: not said). `why` is what it was read from."""

    axes: Axes
    params: str
    optimizer: str
    gradients: str
    activations: str | None
    reshard: str | None
    why: str


class Gradient(Struct, frozen=True):
    """How gradients are combined, in lines of the language. `fresh` acts in every micro-batch before it is
    accumulated, `running` on the sum so far, `after` once after the loop, `publish` after the update. `why` is
    what they were read from."""

    fresh: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    before_update: tuple[str, ...] = ()
    publish: tuple[str, ...] = ()
    why: tuple[str, ...] = ()


class Parameter(Struct, frozen=True):
    """One parameter. `shape` is that of the whole tensor; `place` are its statements, those that cut one
    dimension with the outer one first; `precision` is state -> dtype. `remarks`: what was taken for granted.
    `padded`: how much larger its messages over the axes `padded_over` are than what they are about."""

    name: str
    shape: tuple[int, ...]
    module: str
    trained: bool
    optimizer: str | None
    precision: tuple[tuple[str, str], ...]
    place: tuple[PlacedWeights, ...]
    gradient: Gradient
    remarks: tuple[str, ...] = ()
    stage: int = 0
    padded: Fraction = Fraction(1)
    padded_over: Axes = ()

    @property
    def elements(self) -> int:
        product = 1
        for size in self.shape:
            product *= size
        return product

    @property
    def kind(self) -> str:
        if self.module in ("Embedding", "EmbeddingBag"):
            return "embedding"
        return "matrix" if len(self.shape) > 1 else "vector"

    @property
    def dims(self) -> tuple[str, ...]:
        """Names for its dimensions, outermost first."""
        if self.module == "Linear" and len(self.shape) == 2:
            return ("out", "in")
        if len(self.shape) == 2:
            return ("rows", "columns")
        return tuple(f"d{number}" for number in range(len(self.shape)))


class Pipeline(Struct, frozen=True):
    """Stages on an axis. `divides`: gradients are divided by the number of micro-batches at the end of a
    step, as the schedule says; None where no schedule was given."""

    axis: str
    stages: int
    schedule: str | None
    microbatches: int | None
    divides: bool | None


class Model(Struct, frozen=True):
    """Everything that was found. `splits` says per axis what it splits (batch, sequence, tokens), and why."""

    names: Axes
    sizes: tuple[int, ...]
    splits: tuple[tuple[str, str, str], ...]
    parameters: tuple[Parameter, ...]
    pipeline: Pipeline | None
    remarks: tuple[str, ...]
