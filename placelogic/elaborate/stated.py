"""What a person stated about the step without writing it out; the derivation completes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from placelogic.program.expr import Expr
from placelogic.program.program import Origin


class SyncLine(Struct, frozen=True):
    """`sync x over a by mean`: replaces the derived reduction on that axis only."""

    op: Literal["none", "sum", "mean"]
    origin: Origin


class Stated(Struct, frozen=True):
    """Per trained weights without a `step` of their own. `sync`: by (weights, atom).
    `scales`: factors that all multiply on top, in written order."""

    sync: Mapping[tuple[str, str], SyncLine]
    sync_microbatches: Mapping[str, SyncLine]
    scales: Mapping[str, tuple[tuple[Expr, Origin], ...]]
