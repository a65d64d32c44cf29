"""Bytes per element: what `precision` and `optimizer` say, and what holds where they are silent."""

from __future__ import annotations

import sympy
from msgspec import Struct

from placelogic.cost.symbols import exact
from placelogic.problem import Problem, SpecError
from placelogic.program.catalog import DTYPE_BYTES, OPTIMIZERS
from placelogic.program.program import Weights

MOMENTS: dict[str, int] = {
    "sgd": 0, "sgd_momentum": 1, "adam": 2, "adamw": 2, "adagrad": 1, "rmsprop": 1, "nadam": 2, "lion": 1,
    "sophia": 2, "muon": 1, "lamb": 2, "lars": 1, "adam8bit": 2, "adamw8bit": 2, "lion8bit": 1,
}  # fmt: skip
"""Arrays as large as the weights that an optimizer keeps. Those that are not here keep others."""

QUANTISED = ("adam8bit", "adamw8bit", "lion8bit")
"""Moments of one byte each; the scale of each block is not counted, and said so."""

UNSTATED = "fp32"


class Widths(Struct, frozen=True):
    """dtypes of one group: of params as held, as computed with (`compute`), as sent when gathered (`gather`)
    and reduced (`reduce`); of gradients, the master copy (None: there is none), moments, and a copy of the
    gradient that the optimizer reads (`update`)."""

    params: str
    compute: str
    gradients: str
    master: str | None
    moments: str
    update: str | None
    gather: str | None
    reduce: str | None

    @property
    def fresh(self) -> str:
        """Of a gradient as the backward pass makes it: that of computing, but never of 8 or 4 bits."""
        return next((one for one in (self.compute, self.params) if DTYPE_BYTES[one] >= 2), "bf16")


def widths_of(weights: Weights) -> Widths:
    """Where nothing is stated: params fp32; compute, gradients and, without a master copy, moments like
    params; moments like the master copy."""
    said = weights.precision
    params = said.get("params", UNSTATED)
    master = said.get("master")
    compute = said.get("compute", params)
    quantised = "int8" if weights.optimizer.name in QUANTISED else None
    moments = quantised or said.get("moments", master or params)
    return Widths(
        params=params,
        compute=compute,
        gradients=said.get("gradients", params),
        master=master,
        moments=moments,
        update=said.get("update"),
        gather=said.get("gather"),
        reduce=said.get("reduce"),
    )


def width(dtype: str) -> sympy.Rational:
    return exact(DTYPE_BYTES[dtype])


def moments_of(weights: Weights) -> int:
    """How many moments the optimizer keeps per element. Raises SpecError (PL360)."""
    optimizer = weights.optimizer
    if optimizer.name not in MOMENTS:
        message = (
            f"the state of {optimizer.name} depends on the shapes of tensors, and `{weights.name}` has only a size"
            if optimizer.name in OPTIMIZERS
            else f"how much state {optimizer.name} keeps of `{weights.name}` is not known"
        )
        raise SpecError(Problem("PL360", message, optimizer.origin.span, "costs can be derived for another optimizer"))
    return MOMENTS[optimizer.name]
