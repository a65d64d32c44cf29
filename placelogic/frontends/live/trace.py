"""`placelogic.trace`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist

from placelogic.frontends.live import axes as live_axes
from placelogic.frontends.live.axes import MeshAxes
from placelogic.frontends.live.compare import compare
from placelogic.frontends.live.events import Event, Fed
from placelogic.frontends.live.expected import plan
from placelogic.frontends.live.keys import Difference, Found, Key, Row
from placelogic.frontends.live.problems import refuse
from placelogic.frontends.live.record import Recorder
from placelogic.frontends.live.spec import LiveSpec


@dataclass(frozen=True, slots=True)
class Comparison:
    """A recorded step against a spec, on one rank. `rows` are sums of bytes by operation and axes."""

    spec: str
    rank: str
    rows: tuple[Row, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        lines = [f"{self.spec}, {self.rank}: " + ("agrees" if self.agrees else "differs")]
        lines += [f"  {_row(row)}" for row in self.rows]
        lines += [f"  {one.kind}: {one.message}" for one in self.differences]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


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


def trace(mesh: Any = None) -> Trace:
    """Record the collectives of one training step:

        with placelogic.trace(mesh) as t:
            train_step()
        print(t.compare("spec.place"))

    `mesh`: the DeviceMesh, its axes named as in the spec; left out, one axis `dp` of all ranks. Works with any
    backend, the fake one included. Raises SpecError (PL521, PL522)."""
    if not dist.is_initialized():
        raise refuse("PL521", "torch.distributed is not initialised", "call init_process_group first", "<trace>")
    return Trace(live_axes.from_mesh(mesh) if mesh is not None else live_axes.of_world(None))


def _row(row: Row) -> str:
    key: Key = row.key
    over = ", ".join(sorted(key.axes)) or f"{key.members} ranks"
    sign = "=" if row.expected == row.found else "<" if row.found < row.expected else ">"
    calls = "call" if row.calls == 1 else "calls"
    return f"{sign} {key.operation} over {over}: {row.expected:,} bytes expected, {row.found:,} in {row.calls} {calls}"


def _event(event: Event) -> str:
    over = ", ".join(event.axes) if event.axes else f"ranks {', '.join(map(str, event.ranks))}"
    op = f" by {event.op}" if event.op else ""
    return f"{event.order:4} {event.phase:9} {event.operation}{op} over {over}: {event.bytes:,} bytes ({event.purpose})"
