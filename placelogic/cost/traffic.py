"""What a device sends in a step: the operations of the program, the gathers that S* implies, host moves.

A step is walked through once, keeping along which axes the gradient, and then the updated params, are cut:
that gives the size of each message. Scalars (the clip norm, an overflow flag, a loss) are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy
from msgspec import Struct, field

from placelogic.compat import assert_never
from placelogic.cost.data import Collective, Operation, Options, Place
from placelogic.cost.memory import keeps, resharded
from placelogic.cost.places import lives_on
from placelogic.cost.shards import cut_axes, divided, members
from placelogic.cost.symbols import Symbols
from placelogic.cost.widths import Widths, width, widths_of
from placelogic.program import program as pg
from placelogic.program.program import Axes, Origin, Program, Weights

ONE = sympy.Integer(1)


def collectives(program: Program, sizes: Symbols, places: tuple[Place, ...], options: Options) -> Iterator[Collective]:
    """Everything that is sent for the weights, on every place that has them."""
    for weights in program.weights:
        for place in places:
            if lives_on(weights, place):
                walk = _Walk(program, weights, sizes, place, options, widths_of(weights))
                walk.use()
                step = program.step(weights.name)
                if step is not None:
                    walk.ops(step.ops, ONE)
                yield from walk.found


class _Walk(Struct):
    """`fresh`, `cut`: axes along which the fresh gradient and the buffers are cut; `updated`: the same of
    the params that were just updated."""

    program: Program
    weights: Weights
    sizes: Symbols
    place: Place
    options: Options
    widths: Widths
    found: list[Collective] = field(default_factory=list)
    fresh: set[str] = field(default_factory=set)
    cut: dict[str | None, set[str]] = field(default_factory=dict)
    updated: set[str] = field(default_factory=set)

    # --- using the params ---

    def use(self) -> None:
        """Forward and backward of every micro-batch: gathers, and fetches from the host."""
        params = self.weights.params
        passes = self.sizes.read(self.program.work.microbatches)
        gathers = cut_axes(params, "S*")
        whole = cut_axes(params, "S")
        if params.materialized is not None:
            return  # made from the master copy: a gather of it is an operation of the step
        rounds: tuple[str, ...] = ("forward",) if gathers and keeps(self.weights) else ("forward", "backward")
        for round_ in rounds:
            if params.host is not None:
                self.host(
                    "to device", f"params for {round_}", (*gathers, *whole), self.widths.params, passes, params.host
                )
            if gathers:
                dtype = self.widths.gather or self.widths.compute
                group = resharded(self.weights, self.sizes, self.place) if round_ == "backward" else None
                self.add("all-gather", f"params for {round_}", gathers, whole, dtype, passes, _origin(params), group)

    # --- the step ---

    def ops(self, ops: tuple[pg.Op, ...], times: sympy.Expr) -> None:
        for op in ops:
            if isinstance(op, pg.Loop):
                self.fresh = set(cut_axes(self.weights.params, "S"))
                self.loop(op)
            else:
                self.op(op, times, fresh=False)

    def loop(self, loop: pg.Loop) -> None:
        times = _turns(loop, self.sizes.read(self.program.work.microbatches))
        last = max((i for i, op in enumerate(loop.body) if isinstance(op, pg.Accumulate)), default=-1)
        for index, op in enumerate(loop.body):
            self.op(op, times, fresh=index < last)

    def op(self, op: pg.Op, times: sympy.Expr, *, fresh: bool) -> None:
        weights = self.weights
        match op:
            case pg.Loop():
                self.loop(op)
            case pg.Accumulate(buffer):
                self.accumulate(buffer, times, op.origin)
            case pg.Reduce(buffer, axes, _, scattered, origin):
                self.reduce(self.fresh if fresh and buffer is None else self.of(buffer), axes, scattered, times, origin)
            case pg.GatherGradients(axes, origin):
                state = self.of(None)
                moving = tuple(axis for axis in axes if axis in state)
                state -= set(moving)
                if moving:
                    self.add("all-gather", "gradients", moving, tuple(state), self.widths.gradients, times, origin)
            case pg.OffloadGradients(origin):
                if weights.gradients.host is None:
                    axes = tuple(self.of(None) | set(cut_axes(weights.optimizer_state)))
                    self.host("to host", "gradients", axes, self.widths.gradients, times, origin)
            case pg.Update(buffer):
                kept = cut_axes(weights.optimizer_state) + cut_axes(weights.params)
                self.updated = self.of(buffer) | set(kept)
                moving = tuple(axis for axis in weights.optimizer.gathers if axis in self.updated)
                if moving:
                    rest, dtype = tuple(self.updated - set(moving)), self.widths.moments
                    self.add("all-gather", f"for {weights.optimizer.name}", moving, rest, dtype, times, op.origin)
            case pg.FetchParams(origin):
                if weights.params.host is None:
                    self.host("to device", "updated params", tuple(self.updated), self.widths.params, times, origin)
            case pg.GatherParams(axes, origin):
                moving = tuple(a for a in axes if a in self.updated and weights.params.cut(a) is None)
                self.updated -= set(moving)
                if moving:
                    dtype = self.widths.gather or self.widths.params
                    self.add("all-gather", "updated params", moving, tuple(self.updated), dtype, times, origin)
            case pg.BroadcastParams(axes, _, origin):
                dtype = self.widths.params
                self.add("broadcast", "params", axes, cut_axes(weights.params), dtype, times, origin)
            case pg.Scale() | pg.ScaleLoss() | pg.Clip() | pg.Skip() | pg.Refresh():
                pass
            case _:
                assert_never(op)

    def of(self, buffer: str | None) -> set[str]:
        return self.cut.setdefault(buffer, set(cut_axes(self.weights.params, "S")))

    def accumulate(self, buffer: str | None, times: sympy.Expr, origin: Origin) -> None:
        """A copy is cut here where gradients are placed cut; a share was cut when it was reduced."""
        facts = self.program.facts.get(self.weights.name, {})
        copies = {axis for axis in cut_axes(self.weights.gradients) if axis in facts and facts[axis].kind == "replicated"}
        self.cut[buffer] = set(self.fresh) | copies
        host = self.weights.gradients.host
        if host is not None:
            self.host("to host", "gradients", tuple(self.cut[buffer]), self.widths.gradients, times, host)

    def reduce(self, state: set[str], axes: Axes, scattered: bool, times: sympy.Expr, origin: Origin) -> None:
        """Along axes where what is needed afterwards is a shard: a reduce-scatter, first; then all-reduces
        of the shard."""
        narrow = tuple(a for a in axes if a not in state and (scattered or self.weights.gradients.cut(a) is not None))
        rest = tuple(a for a in axes if a not in narrow)
        dtype = self.widths.reduce or self.widths.gradients
        if narrow:
            self.add("reduce-scatter", "gradients", narrow, tuple(state), dtype, times, origin)
            state |= set(narrow)
        if rest:
            self.add("all-reduce", "gradients", rest, tuple(state), dtype, times, origin)

    # --- terms ---

    def add(
        self,
        operation: Operation,
        what: str,
        axes: Axes,
        cut: Axes,
        dtype: str,
        times: sympy.Expr,
        origin: Origin | None,
        group: sympy.Expr | None = None,
    ) -> None:
        """`cut`: axes that divide the whole message. `group`: members, where only so many take part."""
        ordered = tuple(axis for axis in self.program.mesh.axes if axis in axes)
        axes = axes if set(axes) == set(ordered) and len(axes) == len(ordered) else ordered
        inner = tuple(axis for axis in axes if axis not in self.options.inter)
        label = self.program.mesh.label(axes)
        count = members(self.weights, axes, self.sizes, self.place)
        within = members(self.weights, inner, self.sizes, self.place)
        if group is not None:
            count, within, label = group, group, f"{group} of {label}"
        if self.sizes.known(count) == 1:
            return  # nobody to talk to
        size = divided(self.weights, cut, self.sizes, self.place) * width(dtype)
        self.found.append(
            Collective(
                (self.place,),
                self.weights.name,
                what,
                operation,
                axes,
                label,
                size,
                count,
                within,
                times,
                dtype,
                origin,
            )
        )

    def host(
        self, operation: Operation, what: str, cut: Axes, dtype: str, times: sympy.Expr, origin: Origin | None
    ) -> None:
        size = divided(self.weights, cut, self.sizes, self.place) * width(dtype)
        self.found.append(
            Collective(
                (self.place,), self.weights.name, what, operation, (), "host", size, ONE, ONE, times, dtype, origin
            )
        )


def _turns(loop: pg.Loop, count: sympy.Expr) -> sympy.Expr:
    match loop.subset:
        case "each":
            return count
        case "but_last" | "but_first":
            return count - 1
        case "first" | "last":
            return ONE
        case "index":
            if loop.index == 1:
                return ONE
            return sympy.Piecewise((ONE, sympy.Ge(count, loop.index)), (sympy.Integer(0), True))
        case _:
            assert_never(loop.subset)


def _origin(layout: pg.Layout) -> Origin | None:
    return next((cut.origin for cut in layout.cuts if cut.letter == "S*"), None)
