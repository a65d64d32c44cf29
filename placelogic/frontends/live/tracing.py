"""A trace of one training step."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch.distributed as dist

from placelogic.frontends.live import axes as live_axes
from placelogic.frontends.live.axes import MeshAxes
from placelogic.frontends.live.compare import compare
from placelogic.frontends.live.events import Event, Fed
from placelogic.frontends.live.expected import plan
from placelogic.frontends.live.keys import Found
from placelogic.frontends.live.problems import refuse
from placelogic.frontends.live.record import Recorder
from placelogic.frontends.live.results import Comparison, LiveSpec


class Trace:
    """What one rank issued while the `with` block ran: one training step, not the first of the process (the
    first one sets up buckets and pipelines)."""

    def __init__(self, axes: MeshAxes) -> None:
        self._axes = axes
        self._recorder = Recorder(axes)

    def __enter__(self) -> Trace:
        self._recorder.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._recorder.__exit__(*error)

    @property
    def events(self) -> tuple[Event, ...]:
        """In the order they were issued."""
        return tuple(self._recorder.events)

    @property
    def fed(self) -> tuple[Fed, ...]:
        """What the optimizer was given."""
        return tuple(self._recorder.fed)

    def __str__(self) -> str:
        return "\n".join(map(_event, self.events)) or "nothing was communicated"

    def compare(
        self,
        spec: str | os.PathLike[str] | LiveSpec,
        name: str | None = None,
        *,
        at: Mapping[str, int] | None = None,
    ) -> Comparison:
        """Hold the step against a spec: a path, its text, or what `from_torch` gave. `name`: of the spec, where
        there are several; `at`: sizes that it leaves open. Raises SpecError (PL529, and whatever is wrong with
        the spec)."""
        mesh = {
            axis: (size, self._axes.along[axis].index(self._axes.rank))
            for axis, size in zip(self._axes.names, self._axes.sizes, strict=True)
        }
        source, padded = (spec.text, spec.padded) if isinstance(spec, LiveSpec) else (spec, {})
        wanted = plan(source, name, dict(at or {}), mesh, padded)
        if not self._recorder.fed:
            raise refuse("PL529", "no optimizer took a step in the trace", "put a whole training step into the block",
                         "<trace>")  # fmt: skip
        if self._recorder.steps_again:
            raise refuse("PL529", "the optimizer took several steps in the trace", "trace one training step", "<trace>")
        groups = {ranks: frozenset(axes) for ranks, axes in self._axes.groups.items()}
        found: Found = compare(wanted, self.events, self.fed, groups)
        here = ", ".join(f"{axis}={number}" for axis, (_, number) in mesh.items())
        return Comparison(wanted.spec, f"rank {self._axes.rank} ({here})", found.rows, found.differences, found.notes)


def _event(event: Event) -> str:
    over = ", ".join(event.axes) if event.axes else f"ranks {', '.join(map(str, event.ranks))}"
    op = f" by {event.op}" if event.op else ""
    return f"{event.order:4} {event.phase:9} {event.operation}{op} over {over}: {event.bytes:,} bytes ({event.purpose})"


def start(mesh: Any) -> Trace:
    """`placelogic.trace`, which see."""
    if not dist.is_initialized():
        raise refuse("PL521", "torch.distributed is not initialised", "call init_process_group first", "<trace>")
    return Trace(live_axes.from_mesh(mesh) if mesh is not None else live_axes.of_world(None))
