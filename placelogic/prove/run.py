"""Runs one weight group's step over terms, and notes what is read, published and clashes."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from placelogic.compat import assert_never
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
    Origin,
    Reduce,
    Refresh,
    Scale,
    ScaleLoss,
    Skip,
    Step,
    Update,
)
from placelogic.prove.feeding import fed, read_next
from placelogic.prove.formula import TRUE, Formula, at_least, both, either, negate, test
from placelogic.prove.kinds import Kind
from placelogic.prove.ratio import ONE, Ratio, TooLarge, const, var
from placelogic.prove.sizes import Sizes
from placelogic.prove.transfer import Group
from placelogic.prove.values import (
    TURN,
    Buffers,
    Clash,
    Publish,
    Read,
    Trace,
    Value,
    add,
    clipped,
    guard,
    join,
    mark,
    miscast,
    same,
    unstable,
    within_loop,
)


class _Reached(Struct, frozen=True):
    """`read`: the sizes at which a value read here is what was computed; `ran`: at which it runs at all."""

    read: Formula
    ran: Formula


_ALWAYS = _Reached(TRUE, TRUE)

_GRADIENT_OPS = (Reduce, GatherGradients, Scale, ScaleLoss)
"""What acts on the fresh gradient when it stands before `accumulate` in a loop."""


MAX_TERMS = 60
"""Different histories a gradient may have: each loop that acts on its buffer multiplies them."""


MAX_UNROLLED = 6
"""Turns that are run one by one where their number is fixed and each acts on what the ones before left."""


class Run:
    """One weight group's step, executed symbolically. Everything is linear, so that a loop is
    `buffer <- A(buffer) + G(fresh)` and its effect follows from A and G."""

    def __init__(self, group: Group) -> None:
        self.group, self.sizes = group, group.sizes
        self.trace = Trace(times=1 if group.flow is None else group.flow.times)
        self._order = 0
        self._listening = True  # off while a loop is tried out on its own effect

    def run(self, step: Step) -> Trace:
        self._step, self._fed = step, fed(step, self.sizes)
        buffers: Buffers = {}
        for op in step.ops:
            if isinstance(op, Loop):
                buffers = self._loop(op, buffers)
                if sum(len(terms) for value in buffers.values() for terms in value.values()) > MAX_TERMS:
                    raise TooLarge
            else:
                buffers = self._op(op, buffers, _ALWAYS, ONE)
        return self.trace

    def _loop(self, loop: Loop, before: Buffers) -> Buffers:
        m, count = var(TURN), self.sizes.microbatches
        match loop.subset:
            case "first":
                return self._once(loop, before, ONE, TRUE)
            case "last":
                return self._once(loop, before, count, TRUE)
            case "index":
                i = const(loop.index or 0)
                return self._once(loop, before, i, test(">=", count, i))
            case "each":
                return self._many(loop, before, m, count, count, TRUE)
            case "but_first":
                return self._many(loop, before, m, count, count - ONE, test(">", m, ONE))
            case "but_last":
                return self._many(loop, before, m, count - ONE, count - ONE, test("<", m, count))
            case _:
                assert_never(loop.subset)

    def _once(self, loop: Loop, before: Buffers, turn: Ratio, reached: Formula) -> Buffers:
        """A subset of the micro-batch number `turn`, or of none where it is not `reached`."""
        always = self.sizes.always(reached)
        times = ONE if always else _indicator(reached, self.sizes, loop)
        fresh = self.group.fresh(test("=", var(TURN), turn))
        after = self._body(loop, before, fresh, _Reached(reached, reached), times)
        return after if always else join(guard(after, reached, self.sizes), guard(before, negate(reached), self.sizes))

    def _many(self, loop: Loop, before: Buffers, m: Ratio, last: Ratio, turns: Ratio, subset: Formula) -> Buffers:
        """A subset of `turns` micro-batches, the last of which is number `last`.

        After the loop the fresh part of turn `last` has had A applied once (inside G), the one
        before once more, and so on: right for every M only where once more changes nothing."""
        once, many = test("=", turns, ONE), at_least(turns, 2)
        if _only_adds(loop):
            runs = test(">=", turns, ONE)
            return self._body(loop, before, self.group.fresh(subset), _Reached(runs, runs), turns)
        # With a single turn the body runs as written; what reads inside it is valid only then.
        reached = _Reached(once, test(">=", turns, ONE))
        single = self._body(loop, before, self.group.fresh(both(subset, once)), reached, turns)

        self._listening = False

        def again(value: Buffers) -> Buffers:  # A
            return self._body(loop, value, {}, _ALWAYS, ONE)

        fresh = self._body(loop, {}, self.group.fresh(subset), _ALWAYS, ONE)  # G
        second = again(fresh)
        if same(fresh, second, self.sizes) and same(before, again(before), self.sizes):
            out = join(before, fresh)  # nothing acts on the buffer: every turn just adds
        elif turns.constant is not None and 2 <= turns.constant <= MAX_UNROLLED and last.constant is not None:
            out = before
            assert self.sizes.equal(turns, const(turns.constant)) and self.sizes.equal(last, const(last.constant))
            for turn in range(int(last.constant - turns.constant) + 1, int(last.constant) + 1):
                out = self._body(loop, mark(out), self.group.fresh(test("=", m, const(turn))), _ALWAYS, ONE)
        else:
            later = join(self._later(fresh, second, again, m, last), self._kept(before, again, turns))
            later = guard(later, many, self.sizes)
            none = test("=", turns, const(0))
            out = join(join(guard(single, once, self.sizes), later), guard(before, none, self.sizes))
        self._listening = True
        self._clashes(loop, fresh, many)
        return out

    def _later(
        self, fresh: Buffers, second: Buffers, again: Callable[[Buffers], Buffers], m: Ratio, last: Ratio
    ) -> Buffers:
        """The fresh parts of all turns, at the end of a loop of two turns or more."""
        if same(fresh, second, self.sizes):
            return fresh
        ends = guard(fresh, test("=", m, last), self.sizes)
        previous = guard(mark(second), test("=", m, last - ONE), self.sizes)
        earlier = guard(unstable(second, again(second)), test("<", m, last - ONE), self.sizes)
        return join(join(ends, previous), earlier)

    def _kept(self, before: Buffers, again: Callable[[Buffers], Buffers], turns: Ratio) -> Buffers:
        """What was in the buffers before a loop of two turns or more."""
        one = again(before)
        two = again(one)
        if same(one, two, self.sizes):
            return one
        two_turns = test("=", turns, const(2))
        more = guard(unstable(two, again(two)), negate(two_turns), self.sizes)
        return join(guard(mark(two), two_turns, self.sizes), more)

    def _clashes(self, loop: Loop, buffers: Buffers, when: Formula) -> None:
        """A second turn that adds to a buffer which the first one left in another shape."""
        for op in loop.body:
            if isinstance(op, Accumulate) and not op.replace:
                incoming = self._arriving(loop, op)
                self._clash(buffers.get(op.buffer, {}), incoming, op.origin, when)

    def _arriving(self, loop: Loop, accumulate: Accumulate) -> Value:
        fresh = self.group.fresh(TRUE)
        for op in loop.body:
            if op is accumulate or isinstance(op, Accumulate):
                break
            if isinstance(op, _GRADIENT_OPS):
                fresh = self.group.apply(op, fresh)
        return fresh

    def _clash(self, held: Value, incoming: Value, origin: Origin, when: Formula) -> None:
        """A shard and a whole gradient do not add up, whichever of them was there first."""
        incoming = self.group.settled(incoming)
        for index, axis in enumerate(self.group.axes):
            if self.group.weights.gradients.cut(axis) is None:
                continue
            several = at_least(self.group.members(axis), 2)
            for name, terms in incoming.items():
                arriving = {t.kinds[index].cut is None for t in terms if not t.kinds[index].mixed}
                for whole in arriving:
                    other = [t.when for t in held.get(name, ()) if _is_whole(t.kinds[index]) == (not whole)]
                    # The buffer is cut, or whole, only where something was put into it.
                    there = within_loop(either(*other), self.sizes)
                    if not self.sizes.never(there):
                        self.trace.clashes.append(Clash(axis, both(when, there, several), origin, whole))

    def _body(self, loop: Loop, before: Buffers, fresh: Value, when: _Reached, times: Ratio) -> Buffers:
        """One turn. Operations before the first accumulate act on the fresh gradient."""
        buffers = dict(before)
        accumulated = not any(isinstance(op, Accumulate) for op in loop.body)
        for op in loop.body:
            if isinstance(op, Accumulate):
                accumulated = True
                self._order += self._listening
                held = {} if op.replace else buffers.get(op.buffer, {})
                if self._listening:
                    self._clash(held, fresh, op.origin, when.read)
                buffers[op.buffer] = add(held, self.group.settled(fresh))
            elif not accumulated and isinstance(op, _GRADIENT_OPS):
                fresh = self.group.apply(op, fresh)
            elif not accumulated and isinstance(op, Clip):
                self._order += self._listening
                self._read("clip", fresh, when.read, times, op.origin)
                fresh = clipped(fresh)
            else:
                buffers = self._op(op, buffers, when, times)
        return buffers

    def _op(self, op: Op, buffers: Buffers, when: _Reached, times: Ratio) -> Buffers:
        self._order += self._listening
        match op:
            case Reduce(buffer=buffer) | Scale(buffer=buffer):
                self._gradient_op(op)
                return {**buffers, buffer: self.group.apply(op, buffers.get(buffer, {}))}
            case GatherGradients():
                self._gradient_op(op)
                buffer = read_next(self._step, op)
                return {**buffers, buffer: self.group.apply(op, buffers.get(buffer, {}))}
            case ScaleLoss():
                raise AssertionError("elaboration lets a loss be scaled while its gradient is fresh only")
            case Update(buffer=buffer):
                self._read("update", buffers.get(buffer, {}), when.read, times, op.origin)
            case Clip():
                buffer = read_next(self._step, op)
                value = buffers.get(buffer, {})
                self._read("clip", value, when.read, times, op.origin)
                return {**buffers, buffer: clipped(value)}
            case Skip():
                for buffer, which in self._fed:
                    read = both(when.read, which)
                    self._read("skip", buffers.get(buffer, {}), read, times, op.origin, op.axes)
            case GatherParams() | BroadcastParams() | Refresh() | FetchParams() | OffloadGradients():
                if self._listening:
                    self.trace.publishes.append(Publish(op, when.ran, self._order))
            case Loop() | Accumulate():
                raise AssertionError("elaboration refuses nested loops and bare accumulates")
            case _:
                assert_never(op)
        return buffers

    def _gradient_op(self, op: Op) -> None:
        if self._listening:
            self.trace.last_gradient_op = (self._order, op.origin)

    def _read(
        self, what: str, value: Value, when: Formula, times: Ratio, origin: Origin, axes: tuple[str, ...] = ()
    ) -> None:
        if self._listening:
            self.sizes.taken += miscast(value)
            terms = {term.name: tuple(value.get(term.name, ())) for term in self.group.program.work.losses}
            self.trace.reads.append(Read(what, terms, when, times, self._order, origin, axes))


def _only_adds(loop: Loop) -> bool:
    """Whether a turn ends with adding to a buffer, once each: then every turn adds alike, and A is nothing.

    Under cut gradients a turn may clash with what an earlier one left; that never happens here, as
    all turns leave the same kinds."""
    kinds = [type(op) for op in loop.body]
    if Accumulate not in kinds:
        return False
    after = loop.body[kinds.index(Accumulate) :]
    return all(isinstance(op, Accumulate) and not op.replace for op in after)


def _is_whole(kind: Kind) -> bool | None:
    return None if kind.mixed else kind.cut is None


def _indicator(reached: Formula, sizes: Sizes, loop: Loop) -> Ratio:
    """1 where `microbatch i` exists, else 0, as a size of its own."""
    return sizes.indicator(f"turn.{loop.index}", reached)
