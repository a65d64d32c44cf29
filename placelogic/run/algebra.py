"""What the layout of a step asks of numbers: a small algebra of arrays that lie on a mesh.

A value of type `A` is one array on every device; which elements it has where is known beside it, as `Held`. The step
of the weights is written once over this algebra (buffers.py, state.py, step.py, events.py), and has three instances:
exact numbers of all devices (`simulate/exact.py`), the tensor of one rank and collectives (`replay/tensors.py`), and
lines of a script (`replay/script/variables.py`). Values are never changed in place.

`why` tells a reader what an operation is for; `{}` in it stands for the name of the axes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from placelogic.program.ops import Axes, Origin
from placelogic.run.group import Held, Table

A = TypeVar("A")
M = TypeVar("M")


class Arrays(Protocol[A, M]):
    """Arrays of one weight group. `M`: the moments of its optimizer. What is added up or compared is so by position.

    What an array holds no value of is rubbish: no number that anything may depend on."""

    # --- one device --------------------------------------------------------------------------

    def take(self, array: A, held: Held, wanted: Held, why: str) -> A:
        """Of an array of the elements `held`, those `wanted`; rubbish where the device has none."""

    def rubbish(self, array: A, held: Held, usable: Held, why: str) -> A:
        """Only what is usable stays a value."""

    def put(self, array: A, held: Held, source: A, there: Held, only: Held, why: str) -> A:
        """The array, overwritten by what stands in `source`, an array of the elements `there`, of those in `only`."""

    def add(self, one: A, other: A) -> A:
        """Of two arrays of the same elements."""

    def scale(self, array: A, factor: Fraction, why: str) -> A: ...

    def draw(self, line: int, axes: Axes, held: Held) -> A:
        """The random numbers of one `init` line, others for each coordinate along `axes`; of line -1 alike for all."""

    def step(
        self, target: A, there: Held, gradient: A, held: Held, moments: M, mine: Held, seen: Held | None, over: Axes
    ) -> tuple[A, M]:
        """One step of the optimizer on the elements `mine` of each device. `target`: what it moves; `there`: the
        elements of that; `held`: those of the gradient. Moments lie as the optimizer state does. `seen`: whose gradient
        an optimizer reads that looks across elements, where shards were put together for it along the axes `over`."""

    # --- several devices ---------------------------------------------------------------------

    def sum(self, array: A, held: Held, axes: Axes, mean: bool, needed: Held | None, why: str) -> A:
        """Sum or average over the process groups along `axes`. `needed`: what alone is read of the sum afterwards, if
        that is known."""

    def pick(self, array: A, held: Held, wanted: Held, axes: Axes, table: Table, why: str) -> A:
        """Pieces put together: each wanted element from the device and place in the table, within the process groups
        along `axes`; rubbish where that is nowhere."""

    def copies(self, array: A, held: Held, axis: str) -> A:
        """Whole arrays that are put together one after the other: where they differ along `axis`, they are no pieces
        of one gradient, and what comes of them is rubbish."""

    def broadcast(self, array: A, held: Held, axes: Axes, root: int, why: str) -> A:
        """Everyone takes the array of the device number `root` of its process group."""

    # --- the whole job -----------------------------------------------------------------------

    def squares(self, array: A, held: Held, usable: Held, copies: Sequence[int] | None, axes: Axes | None) -> Any:
        """Of what is usable, one number on every device: the sum over the process groups along `axes` of the whole mesh
        (None: over all devices). `copies`: how many devices hold each element, where each of them counts for its
        fraction."""


def line_of(origin: Origin) -> str:
    """In a `why`: where a person wrote it, if one did."""
    return f", line {origin.span.line}" if origin.stated and origin.library is None and origin.span.line else ""
