"""The step of one weight group as lines of a script, up to the next decision that the whole job takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from placelogic.program.catalog import Needs
from placelogic.program.expr import Expr, show
from placelogic.program.habits import Override
from placelogic.program.program import (
    Accumulate,
    BroadcastParams,
    Clip,
    FetchParams,
    GatherGradients,
    GatherParams,
    Loop,
    OffloadGradients,
    Op,
    Reduce,
    Refresh,
    Scale,
    ScaleLoss,
    Skip,
    Update,
    flat,
)
from placelogic.replay.script import arrays, moves
from placelogic.replay.script.arriving import arrived
from placelogic.replay.script.layout import Layout, Places, Shape, places, same
from placelogic.replay.script.lines import Names, NotShown, by_device, line_of, times
from placelogic.replay.script.work import Items
from placelogic.run.step import running, turns
from placelogic.simulate.group import Rule

Event = Clip | Skip
Content = tuple["Section", str, "Shape | None"]
"""A group, the name of its gradient at this point, and the layout of that."""
OnEvent = Callable[["Event", list[Content]], Iterator[str]]
"""Lines of a decision inside the loop over micro-batches."""


class Section:
    """`shapes`: of the buffers, as they are at this point; `restricted`: by which rules updates were cut; `arriving`: what is said
    of the gradient that reaches the weights."""

    def __init__(
        self,
        layout: Layout,
        ops: tuple[Op, ...],
        items: Items,
        names: Names,
        event: OnEvent,
        arriving: tuple[Override, ...] = (),
    ) -> None:
        self.layout = layout
        self.name = layout.group.name
        self.ops = ops
        self.work = items.work
        self.items = items
        self.names = names
        self.shapes: dict[str | None, Shape] = {}
        self.restricted: dict[str, Rule] = {}
        self.alone = False
        self.arriving = arriving
        self._event = event
        self._order = list(flat(ops))
        self.skips = any(isinstance(op, Skip) for op in self._order)
        self._running = list(running(ops, items.work.microbatches))

    def variable(self, buffer: str | None) -> str:
        if self.alone:
            return "total"
        return f'total["{self.name}{"." + buffer if buffer else ""}"]'

    def skip(self) -> str:
        """The name of its own decision."""
        return "skip" if self.alone else f'skip["{self.name}"]'

    def buffers(self) -> list[str | None]:
        """All that its step speaks of."""
        found = [op.buffer for op in self._order if isinstance(op, Accumulate | Reduce | Scale | Update)]
        return list(dict.fromkeys([None, *found]))

    def now(self, op: Event | None) -> Content:
        """Its gradient at this point: of the decision it has come to, or at the end."""
        return self.content(op if op is not None else self._order[-1])

    def parts(self) -> Iterator[tuple[list[str], Event | None]]:
        """Lines, and the decision at which they stop."""
        lines: list[str] = []
        for op in self.ops:
            if isinstance(op, Clip | Skip):
                yield [*lines, *self.cut_for(op)], op
                lines = []
            elif isinstance(op, Loop):
                lines += self._loop(op)
            else:
                lines += self._one(op, None)
        yield lines, None

    # --- loops -------------------------------------------------------------------------------------

    def _loop(self, loop: Loop) -> Iterator[str]:
        """Turns that read alike are one `for`."""
        bodies: list[tuple[list[int], list[str]]] = []
        for turn in (number - 1 for number in turns(loop, self.work.microbatches)):
            body = list(self._turn(loop))
            if bodies and bodies[-1][1] == body:
                bodies[-1][0].append(turn)
            else:
                bodies.append(([turn], body))
        for which, body in bodies:
            yield f"for turn in {which}:" if len(which) < 3 else f"for turn in range({which[0]}, {which[-1] + 1}):"
            yield from (f"    {line}" for line in body)

    def _turn(self, loop: Loop) -> Iterator[str]:
        body = list(loop.body)
        scaled: dict[str | None, Fraction] = {}
        while body and isinstance(body[0], ScaleLoss):
            op = body.pop(0)
            assert isinstance(op, ScaleLoss)
            scaled[op.term] = scaled.get(op.term, Fraction(1)) * self.number(op.factor, self._term(op.term))
        yield from moves.computed(self, scaled)
        yield from arrived(self)
        fresh = arrays.start(self.layout)
        for position, op in enumerate(body):
            later = any(isinstance(o, Accumulate) for o in body[position + 1 :])
            if isinstance(op, Accumulate):
                yield from self._accumulate(op, fresh)
            elif isinstance(op, Clip | Skip):
                yield from self.cut_for(op) if not later else ()
                yield from self._event(op, [(self, "fresh", fresh)] if later else [self.content(op)])
            else:
                yield from self._one(op, fresh if later else None)

    def _term(self, name: str | None) -> int:
        return [term.name for term in self.work.terms].index(name)

    def _accumulate(self, op: Accumulate, fresh: Shape) -> Iterator[str]:
        part, there = fresh.copy(), self.shapes.get(op.buffer)
        lines, source = arrays.stored(self, part)
        yield from lines
        target = self.variable(op.buffer)
        if op.replace or there is None:
            self.shapes[op.buffer] = part
        else:
            if any(len(a) != len(b) for a, b in zip(self.layout.held(there), self.layout.held(part), strict=True)):
                raise NotShown("a whole gradient is added to a buffer that holds only a shard")
            there.valid |= part.valid
            there.alike &= part.alike
        yield f"{target} = {source}{line_comment(op)}" if op.replace else f"{target} = {target} + {source}"

    # --- operations --------------------------------------------------------------------------------

    def _one(self, op: Op, fresh: Shape | None) -> Iterator[str]:
        match op:
            case Reduce(buffer, axes, kind, scattered, _):
                on, shape = self._pick(buffer, fresh)
                if shape is not None and axes:
                    yield from arrays.reduced(self, on, shape, axes, kind == "mean", scattered, line_of(op.origin))
            case GatherGradients(axes, _):
                on, shape = self._pick(self.feeding(op), fresh)
                if shape is not None:
                    yield from arrays.gathered(self, on, shape, axes)
            case Scale(buffer, factor, _):
                on, shape = self._pick(buffer, fresh)
                if shape is not None:
                    value = self.number(factor)
                    yield f"{on} = {times(value)}{on}  # scale by {show(factor)}{line_of(op.origin)}"
            case Update(buffer, _):
                yield from self._update(buffer)
            case GatherParams(axes, _):
                yield from moves.gathered(self, axes)
            case BroadcastParams(axes, root, _):
                yield from moves.broadcast(self, axes, root, line_of(op.origin))
            case Refresh():
                yield from moves.refreshed(self)
            case FetchParams():
                yield from moves.fetched(self)
            case OffloadGradients():
                yield "# the gradients go to the host: the same numbers, elsewhere"
            case _:
                raise NotShown("its step has operations in an order that no short script has")

    def _pick(self, buffer: str | None, fresh: Shape | None) -> tuple[str, Shape | None]:
        if buffer is None and fresh is not None:
            return "fresh", fresh
        return self.variable(buffer), self.shapes.get(buffer)

    def number(self, factor: Expr, term: int = 0) -> Fraction:
        try:
            return self.work.value(factor, term)
        except ZeroDivisionError:
            raise NotShown("a factor divides by zero") from None

    def feeding(self, op: Op) -> str | None:
        """The buffer that the next update reads (else any update of the step, else the unnamed); of a skip the
        next that runs."""
        order = self._running if isinstance(op, Skip) else self._order
        start = next((i for i, o in enumerate(order) if o is op), 0)
        updates = [o.buffer for o in (*order[start:], *order) if isinstance(o, Update)]
        return updates[0] if updates else None

    def content(self, op: Op) -> Content:
        """What a decision looks at."""
        buffer = self.feeding(op)
        return self, self.variable(buffer), self.shapes.get(buffer)

    def cut_for(self, op: Op) -> Iterator[str]:
        """A gradient that is placed S is cut, where it still is whole."""
        _, on, shape = self.content(op)
        for rule in self.layout.group.gradients_rule.values() if shape is not None else ():
            if rule.axis not in shape.alike:  # type: ignore[union-attr]
                yield from arrays.cut(self, on, shape, rule)  # type: ignore[arg-type]

    def _update(self, buffer: str | None) -> Iterator[str]:
        layout, group = self.layout, self.layout.group
        shape = self.shapes.get(buffer)
        if shape is None:
            yield "# update: the buffer has nothing in it, so nothing moves"
            return
        on = self.variable(buffer)
        for rule in group.gradients_rule.values():
            if rule.axis not in shape.alike:  # what was gathered is whole
                yield from arrays.cut(self, on, shape, rule)
        master = bool(group.weights.master)
        mine = [
            [e for e in usable if e in moments and (e in params or group.materialized)]
            for usable, moments, params in zip(layout.usable(shape), layout.optimizer, layout.params, strict=True)
        ]
        target, there = moves.target(self)
        if not master and any(e not in array for own, array in zip(mine, there, strict=True) for e in own):
            raise NotShown("parameters are updated where they are not")
        at = places([tuple(own) for own in mine], there)
        own = places([tuple(own) for own in mine], layout.held(shape))
        indent = "    " if self.skips else ""
        if self.skips:
            yield f"if not {self.skip()}:"
        yield from (indent + line for line in self._moved(target, at, there, on, own, layout.held(shape), mine))
        for rule in (*shape.valid, *shape.room.values()):
            self.restricted.setdefault(rule.axis, rule)
        if group.materialized:
            yield from moves.refreshed(self)

    def _moved(self, target: str, at: Places, there, on: str, own: Places, held, mine) -> Iterator[str]:  # type: ignore[no-untyped-def]
        if not any(at):
            yield "# update: no device has gradient, optimizer state and parameter of any element"
            return
        plain = self.layout.needs is Needs.ELEMENT
        if plain and same(at, there) and same(own, held):
            yield f"{target} = {target} - 0.1 * {on}  # update"
            return
        units = self.layout.units()
        mine_at, mine_on = by_device(at), by_device(own)
        if mine_at == mine_on and "rank" in mine_at:
            yield f"mine = {mine_at}"
            mine_at = mine_on = "mine"
        gradient = f"{on}[{mine_on}]"
        if not plain:
            self.names.use("seen")
            gradient = f"seen({gradient}, {by_device([[units[e] for e in row] for row in mine])})"
        yield f"{target}[{mine_at}] -= 0.1 * {gradient}  # update"


def line_comment(op: Accumulate) -> str:
    return f"  # replaces what was there{line_of(op.origin)}"
