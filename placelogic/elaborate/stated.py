"""What a person stated about the step without writing it out; the derivation completes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from placelogic.program.expr import Expr
from placelogic.program.program import Origin


@dataclass(frozen=True, slots=True)
class SyncLine:
    """`sync x over a by mean`: replaces the derived reduction on that axis only."""

    op: Literal["none", "sum", "mean"]
    origin: Origin


@dataclass(frozen=True, slots=True)
class Stated:
    """Per trained weights without a `step` of their own. `sync`: by (weights, atom).
    `scales`: factors that all multiply on top, in written order."""

    sync: Mapping[tuple[str, str], SyncLine]
    sync_microbatches: Mapping[str, SyncLine]
    scales: Mapping[str, tuple[tuple[Expr, Origin], ...]]
