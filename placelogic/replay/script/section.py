"""The step of one weight group as lines of a script."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from placelogic.program.expr import Expr
from placelogic.program.habits import Override
from placelogic.program.program import (
    Accumulate,
    Loop,
    OffloadGradients,
    Op,
    Reduce,
    Scale,
    ScaleLoss,
    Skip,
    Update,
    flat,
)
from placelogic.replay.script.lines import Names, NotShown, by_device
from placelogic.replay.script.variables import Lines, Variable
from placelogic.replay.script.work import Items
from placelogic.run import buffers
from placelogic.run.arriving import arrive
from placelogic.run.buffers import Buffer, collected
from placelogic.run.group import Group
from placelogic.run.group_step import GroupStep
from placelogic.run.state import State
from placelogic.run.step import Event, turns
from placelogic.run.stop import GroupStop


class Section(GroupStep[Variable]):
    """`arriving`: what is said of the gradient that reaches the weights. `alone`: no other weights, and no other buffer.
    `inside`: whether it is in the loop over micro-batches."""

    def __init__(
        self,
        group: Group,
        ops: tuple[Op, ...],
        items: Items,
        names: Names,
        out: list[str],
        arriving: tuple[Override, ...] = (),
    ) -> None:
        self.name = group.name
        self.items = items
        self.arriving = arriving
        self.inside = False
        self._every = list(flat(ops))
        self.skipping = any(isinstance(op, Skip) for op in self._every)
        self.on = Lines(group, names, out)
        theta, host, master = (self._held(copy) for copy in ("", ".host", ".master"))
        state = State(group, self.on, theta, host, master if group.weights.master else None, None)
        super().__init__(state, items.work, ops, self._started, self._stepped)
        self.alone = False
        # By what the parts of the loss terms are multiplied, until the fresh gradient is computed.
        self._scaled: dict[str | None, Fraction] | None = None

    def _held(self, copy: str) -> Variable:
        name = f'held["{self.name}{copy}"]'
        return Variable(name, name)

    def variable(self, buffer: str | None) -> str:
        return "total" if self.alone else f'total["{self.name}{"." + buffer if buffer else ""}"]'

    def skip(self) -> str:
        """The name of its own decision."""
        return "skip" if self.alone else f'skip["{self.name}"]'

    def buffer_names(self) -> list[str | None]:
        """All that its step speaks of."""
        found = [op.buffer for op in self._every if isinstance(op, Accumulate | Reduce | Scale | Update)]
        return list(dict.fromkeys([None, *found]))

    def stop(self, reason: str) -> None:
        raise NotShown(reason)

    # --- the loop ----------------------------------------------------------------------------------

    def loop(self, loop: Loop) -> Iterator[Event]:
        """Turns that read alike are one `for`."""
        bodies: list[tuple[list[int], list[str]]] = []
        start = len(self.on.out)
        self.inside = True
        for turn in turns(loop, self.microbatches):
            yield from self.turn(loop, turn)
            self._computed()
            body = self.on.out[start:]
            del self.on.out[start:]
            if bodies and bodies[-1][1] == body:
                bodies[-1][0].append(turn - 1)
            else:
                bodies.append(([turn - 1], body))
        self.inside = False
        for which, body in bodies:
            told = str(which) if len(which) < 3 else f"range({which[0]}, {which[-1] + 1})"
            self.on.out += [f"for turn in {told}:", *(f"    {line}" for line in body)]

    def one(self, op: Op, fresh: Buffer[Variable] | None) -> Iterator[Event]:
        if not isinstance(op, ScaleLoss):
            self._computed()
        if isinstance(op, OffloadGradients):
            self.on.out.append("# the gradients go to the host: the same numbers, elsewhere")
        elif isinstance(op, Update) and op.buffer not in self.buffers:
            self._target = op.buffer
            self.on.out.append("# update: the buffer has nothing in it, so nothing moves")
        else:
            yield from super().one(op, fresh)

    def _started(self, turn: int) -> Buffer[Variable]:
        self._scaled = {}
        return buffers.fresh(self.state.group, self.on, [Variable("fresh", "fresh")])

    def scale(self, on: Buffer[Variable], factor: Expr, term: int | None) -> None:
        if term is None:
            super().scale(on, factor, term)
            return
        if self._scaled is None:
            raise NotShown("its step has operations in an order that no short script has")
        name = self.work.terms[term].name
        self._scaled[name] = self._scaled.get(name, Fraction(1)) * self.work.factor(factor, term)

    def _computed(self) -> None:
        """The lines of the fresh gradient, once it is known by what its parts are multiplied."""
        if self._scaled is None or self.fresh is None:
            return
        group, on, size = self.state.group, self.on, self.state.group.grid.size
        values, held = self._held(""), group.computed_local
        # What is routed is computed with the owner's parameters: tokens would travel there.
        rules = [rule for axis, rule in group.params_rule.items() if axis not in group.own_room and size[axis] > 1]
        if rules:
            over = "*".join(dict.fromkeys(rule.axis for rule in rules))
            why = "the parameters of the experts" if group.routed else f"gathered over {over} for use"
            whole = Variable("whole", values.value)
            values = collected(group, on, rules, whole, group.params_local, held, why)
        elements = by_device([list(row) for row in held])
        table = self.items.table(group, self._scaled)
        self._scaled = None
        fresh = on.assign(self.fresh.layers[0], f'gradient({values.value}, {elements}, WORK["{table}"][rank][turn])', "")
        if group.routed:
            fresh = on.sum(fresh, held, group.routed, False, None, "tokens of all devices come to the experts")
            fresh = on.take(fresh, held, group.home_local, "at the owner of each expert")
        self.fresh.layers = [fresh]
        arrive(self.arriving, self.fresh, self.work)

    # --- operations --------------------------------------------------------------------------------

    def accumulate(self, op: Accumulate) -> None:
        if self.fresh is None:
            raise NotShown("its step has operations in an order that no short script has")
        there, name, fresh = self.buffers.get(op.buffer), self.variable(op.buffer), self.fresh
        part = Buffer(fresh.group, self.on, [Variable("part", fresh.layers[0].value)], fresh.room, fresh.valid, fresh.alike)
        found = self.buffers[op.buffer] = buffers.accumulate(there, part, op.replace)
        value, why = found.layers[0].value, ""
        if op.replace:
            why = f"replaces what was there{self.where}"
        elif there is None:
            value = f"{name} + {value}"
        found.layers = [self.on.assign(Variable(name, name), value, why)]

    def _stepped(self, buffer: Buffer[Variable]) -> None:
        self.on.unless = self.skip() if self.skipping else None
        try:
            self.state.update(buffer)
        except GroupStop:
            pass  # what no device updates shows when the script runs
