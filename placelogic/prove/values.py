"""Runs one weight group's step over terms: the value calculus of docs/semantics.md.

The gradient a device holds is a sum of terms; a term is a scale times one kind per axis, for a
subset of the micro-batches. Terms are never merged: they meet only in an obligation.
Scales are relative to the single device: the value is right where the terms add up to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from placelogic.compat import assert_never
from placelogic.program.facts import Fact
from placelogic.program.program import (
    Accumulate,
    BroadcastParams,
    Clip,
    FetchParams,
    GatherGradients,
    GatherParams,
    Loop,
    LossTerm,
    OffloadGradients,
    Op,
    Origin,
    Program,
    Reduce,
    Refresh,
    Scale,
    ScaleLoss,
    Skip,
    Step,
    Update,
    Weights,
)
from placelogic.prove import kinds
from placelogic.prove.formula import TRUE, Formula, at_least, both, either, negate, test
from placelogic.prove.kinds import COPY, SHARE, Kind, stack
from placelogic.prove.ratio import ONE, Ratio, const, var
from placelogic.prove.sizes import PER_ITEM, Sizes

TURN = "m."
"""The variable for the micro-batch of a work item, from 1 to M."""


@dataclass(frozen=True, slots=True)
class Term:
    """`kinds`: one per axis, in mesh order. `when`: on the micro-batch and on M. `counted`: axes
    along which copies were added up. `repeats`: a loop applied a factor to it once more."""

    scale: Ratio
    kinds: tuple[Kind, ...]
    when: Formula = TRUE
    counted: tuple[str, ...] = ()
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """A point where the buffer is used by something nonlinear. `terms`: loss term -> its terms.
    `when`: the sizes at which it is reached with these terms. `times`: how often it runs.
    `order`: its position among all operations of the step."""

    what: str
    terms: Mapping[str | None, tuple[Term, ...]]
    when: Formula
    times: Ratio
    order: int
    origin: Origin


@dataclass(frozen=True, slots=True)
class Publish:
    """An operation on parameter copies, host copies included, and when it runs."""

    op: GatherParams | BroadcastParams | Refresh | FetchParams | OffloadGradients
    when: Formula
    order: int


@dataclass(frozen=True, slots=True)
class Clash:
    """A whole gradient is added to a buffer that an earlier turn left cut along an axis."""

    axis: str
    when: Formula
    origin: Origin


@dataclass(slots=True)
class Trace:
    """What a step does, ready for obligations."""

    reads: list[Read] = field(default_factory=list)
    publishes: list[Publish] = field(default_factory=list)
    clashes: list[Clash] = field(default_factory=list)
    last_gradient_op: tuple[int, Origin] | None = None


@dataclass(frozen=True, slots=True)
class _Reached:
    """`read`: the sizes at which a value read here is what was computed; `ran`: at which it runs at all."""

    read: Formula
    ran: Formula


_ALWAYS = _Reached(TRUE, TRUE)

Value = dict[str | None, list[Term]]  # loss term -> terms
Buffers = dict[str | None, Value]  # buffer -> value


class Run:
    """One weight group's step, executed symbolically. Everything is linear, so that a loop is
    `buffer <- A(buffer) + G(fresh)` and its effect follows from A and G."""

    def __init__(self, program: Program, weights: Weights, facts: Mapping[str, Fact], sizes: Sizes) -> None:
        self.program = program
        self.weights = weights
        self.facts = facts
        self.sizes = sizes
        self.axes = program.mesh.axes
        self.trace = Trace()
        self._order = 0
        self._listening = True

    # --- sizes and starts -------------------------------------------------------------------

    def members(self, axis: str) -> Ratio:
        """N_a of the table: how many devices along the axis hold these weights."""
        return members(self.weights, self.sizes, axis)

    def start(self, term: LossTerm) -> Term:
        """The fresh gradient of one loss term, routing included."""
        scale = initial_scale(self.program, self.sizes, term)
        out = []
        counted: list[str] = []
        for axis in self.axes:
            fact = self.facts[axis]
            feed = self.program.work.feed(axis)
            match fact.kind:
                case "share":
                    kind = SHARE
                    if fact.part == "item" and feed is not None and feed.kind == "same":
                        kind = Kind("root", 0)
                case "copy" | "absent":  # absent parameters are an obligation of their own (FW01)
                    kind = COPY
                case "own":
                    kind = kinds.own(stack(self.weights.params, axis) or ())
                case _:
                    assert_never(fact.kind)
            if fact.routed:
                moved = kinds.route(kind, self.members(axis), stack(self.weights.params, axis) or ())
                kind, scale = moved.kind, scale * moved.factor
                if moved.counted:
                    counted.append(axis)
            out.append(kind)
        return Term(scale, tuple(out), counted=tuple(counted))

    # --- the step ---------------------------------------------------------------------------

    def run(self, step: Step) -> Trace:
        buffers: Buffers = {}
        for op in step.ops:
            if isinstance(op, Loop):
                buffers = self._loop(op, buffers)
            else:
                buffers = self._op(op, buffers, _ALWAYS, ONE)
        return self.trace

    def _loop(self, loop: Loop, before: Buffers) -> Buffers:
        m, count = var(TURN), self.sizes.microbatches
        match loop.subset:
            case "first":
                return self._once(loop, before, test("=", m, ONE), TRUE)
            case "last":
                return self._once(loop, before, test("=", m, count), TRUE)
            case "index":
                i = const(loop.index or 0)
                return self._once(loop, before, test("=", m, i), test(">=", count, i))
            case "each":
                return self._many(loop, before, m, count, count, TRUE)
            case "but_first":
                return self._many(loop, before, m, count, count - ONE, test(">", m, ONE))
            case "but_last":
                return self._many(loop, before, m, count - ONE, count - ONE, test("<", m, count))
            case _:
                assert_never(loop.subset)

    def _once(self, loop: Loop, before: Buffers, turn: Formula, reached: Formula) -> Buffers:
        """A subset of one micro-batch, or of none where it is not `reached`."""
        times = ONE if reached == TRUE else _indicator(reached, self.sizes, loop)
        after = self._body(loop, before, self._fresh(turn), _Reached(reached, reached), times)
        return after if reached == TRUE else _join(_guard(after, reached), _guard(before, negate(reached)))

    def _many(
        self, loop: Loop, before: Buffers, m: Ratio, last: Ratio, turns: Ratio, subset: Formula
    ) -> Buffers:
        """A subset of `turns` micro-batches, the last of which is number `last`.

        After the loop the fresh part of turn `last` has had A applied once (inside G), the one
        before once more, and so on: right for every M only where once more changes nothing."""
        once, many = test("=", turns, ONE), test(">=", turns, const(2))
        # With a single turn the body runs as written; what reads inside it is valid only then.
        reached = _Reached(once, test(">=", turns, ONE))
        single = self._body(loop, before, self._fresh(both(subset, once)), reached, turns)

        self._listening = False

        def again(value: Buffers) -> Buffers:  # A
            return self._body(loop, value, {}, _ALWAYS, ONE)

        fresh = self._body(loop, {}, self._fresh(subset), _ALWAYS, ONE)  # G
        second = again(fresh)
        if _same(fresh, second) and _same(before, again(before)):
            out = _join(before, fresh)  # nothing acts on the buffer: every turn just adds
        else:
            later = _guard(_join(self._later(fresh, second, again, m, last), self._kept(before, again, turns)), many)
            none = test("=", turns, const(0))
            out = _join(_join(_guard(single, once), later), _guard(before, none))
        self._listening = True
        self._clashes(loop, fresh, many)
        return out

    def _later(
        self, fresh: Buffers, second: Buffers, again: Callable[[Buffers], Buffers], m: Ratio, last: Ratio
    ) -> Buffers:
        """The fresh parts of all turns, at the end of a loop of two turns or more."""
        if _same(fresh, second):
            return fresh
        ends = _guard(fresh, test("=", m, last))
        previous = _guard(_mark(second), test("=", m, last - ONE))
        earlier = _guard(_unstable(second, again(second)), test("<", m, last - ONE))
        return _join(_join(ends, previous), earlier)

    def _kept(self, before: Buffers, again: Callable[[Buffers], Buffers], turns: Ratio) -> Buffers:
        """What was in the buffers before a loop of two turns or more."""
        one = again(before)
        two = again(one)
        if _same(one, two):
            return one
        two_turns = test("=", turns, const(2))
        return _join(_guard(_mark(two), two_turns), _guard(_unstable(two, again(two)), negate(two_turns)))

    def _clashes(self, loop: Loop, buffers: Buffers, when: Formula) -> None:
        """A second turn that adds a whole share to a buffer that the first one left cut."""
        for op in loop.body:
            if isinstance(op, Accumulate) and not op.replace:
                incoming = self._arriving(loop, op)
                self._clash(buffers.get(op.buffer, {}), incoming, op.origin, when)

    def _arriving(self, loop: Loop, accumulate: Accumulate) -> Value:
        fresh = self._fresh(TRUE)
        for op in loop.body:
            if op is accumulate or isinstance(op, Accumulate):
                break
            fresh = self._gradient(op, fresh)
        return fresh

    def _clash(self, held: Value, incoming: Value, origin: Origin, when: Formula) -> None:
        for index, axis in enumerate(self.axes):
            if self.weights.gradients.cut(axis) is None:
                continue
            for name, terms in incoming.items():
                whole = any(t.kinds[index].value == "share" and t.kinds[index].cut is None for t in terms)
                cut = [t for t in held.get(name, ()) if t.kinds[index].cut is not None]
                if whole and cut:
                    guard = both(when, at_least(self.members(axis), 2))
                    self.trace.clashes.append(Clash(axis, guard, origin))

    def _fresh(self, turn: Formula) -> Value:
        return {
            term.name: [replace(self.start(term), when=turn)] for term in self.program.work.losses
        }

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
                buffers[op.buffer] = _add(held, self._settled(fresh))
            elif not accumulated and isinstance(op, (Reduce, GatherGradients, Scale, ScaleLoss)):
                fresh = self._gradient(op, fresh)
            else:
                buffers = self._op(op, buffers, when, times)
        return buffers

    def _settled(self, fresh: Value) -> Value:
        rooms = [stack(self.weights.gradients, axis) for axis in self.axes]
        return {
            name: [replace(t, kinds=tuple(map(kinds.settle, t.kinds, rooms))) for t in terms]
            for name, terms in fresh.items()
        }

    def _op(self, op: Op, buffers: Buffers, when: _Reached, times: Ratio) -> Buffers:
        self._order += self._listening
        match op:
            case Reduce(buffer=buffer) | Scale(buffer=buffer):
                self._gradient_op(op)
                return {**buffers, buffer: self._gradient(op, buffers.get(buffer, {}))}
            case GatherGradients() | ScaleLoss():
                self._gradient_op(op)
                return {**buffers, None: self._gradient(op, buffers.get(None, {}))}
            case Update(buffer=buffer):
                self._read("update", buffers.get(buffer, {}), when.read, times, op.origin)
            case Clip():
                self._read("clip", buffers.get(self._updated_buffer(), {}), when.read, times, op.origin)
            case Skip():
                self._read("skip", buffers.get(self._updated_buffer(), {}), when.read, times, op.origin)
            case GatherParams() | BroadcastParams() | Refresh() | FetchParams() | OffloadGradients():
                if self._listening:
                    self.trace.publishes.append(Publish(op, when.ran, self._order))
            case Loop() | Accumulate():
                raise AssertionError("elaboration refuses nested loops and bare accumulates")
            case _:
                assert_never(op)
        return buffers

    def _updated_buffer(self) -> str | None:
        """Clip and skip look at what the update will read."""
        step = self.program.step(self.weights.name)
        assert step is not None
        for op in _flat(step.ops):
            if isinstance(op, Update):
                return op.buffer
        return None

    def _gradient_op(self, op: Op) -> None:
        if self._listening:
            self.trace.last_gradient_op = (self._order, op.origin)

    def _read(self, what: str, value: Value, when: Formula, times: Ratio, origin: Origin) -> None:
        if self._listening:
            terms = {term.name: tuple(value.get(term.name, ())) for term in self.program.work.losses}
            self.trace.reads.append(Read(what, terms, when, times, self._order, origin))

    # --- operations on gradients ------------------------------------------------------------

    def _gradient(self, op: Op, value: Value) -> Value:
        match op:
            case Scale(factor=factor):
                scale = self.sizes.ratio(factor)
                return {
                    name: [replace(t, scale=t.scale * scale) for t in terms] for name, terms in value.items()
                }
            case ScaleLoss(term=term, factor=factor):
                scale = self.sizes.ratio(factor)
                return {
                    name: [replace(t, scale=t.scale * scale) if name == term else t for t in terms]
                    for name, terms in value.items()
                }
            case Reduce():
                return {name: [self._reduce(op, t) for t in terms] for name, terms in value.items()}
            case GatherGradients(axes=axes):
                return {name: [self._gather(axes, t) for t in terms] for name, terms in value.items()}
            case _:
                raise AssertionError(f"not a gradient operation: {op}")

    def _reduce(self, op: Reduce, term: Term) -> Term:
        moved = list(term.kinds)
        scale, counted = term.scale, list(term.counted)
        for axis in op.axes:
            index = self.axes.index(axis)
            into = stack(self.weights.gradients, axis)
            if into is None and op.scattered:
                into = self._scatter_target(axis)
            if self.facts[axis].part == "use" and self._stage_dependent(moved):
                fault = "adds flat shards whose owners differ between stages"
                sizes = both(at_least(self.members(axis), 2), self._flat_cut(moved))
                moved = [kinds.spoil(kind, sizes, fault) if i == index else kind for i, kind in enumerate(moved)]
            result = kinds.reduce(moved[index], op.op, self.members(axis), into)
            moved[index] = result.kind
            scale = scale * result.factor
            if result.counted:
                counted.append(axis)
        return replace(term, scale=scale, kinds=tuple(moved), counted=tuple(dict.fromkeys(counted)))

    def _scatter_target(self, axis: str) -> kinds.Stack:
        """Where a scattered reduction puts each element: where it will be updated."""
        for layout in (self.weights.optimizer_state, self.weights.params):
            found = stack(layout, axis)
            if found is not None:
                return found
        return (("@" + axis, (axis,)),)

    def _stage_dependent(self, terms: list[Kind]) -> bool:
        return any(_flat_axes(kind) for kind in terms)

    def _flat_cut(self, terms: list[Kind]) -> Formula:
        axes = [axis for kind in terms for axis in _flat_axes(kind)]
        return either(*(at_least(self.members(axis), 2) for axis in axes))

    def _gather(self, axes: tuple[str, ...], term: Term) -> Term:
        moved = list(term.kinds)
        for axis in axes:
            index = self.axes.index(axis)
            moved[index] = kinds.gather(moved[index], self.members(axis)).kind
        return replace(term, kinds=tuple(moved))


# --- helpers --------------------------------------------------------------------------------


def members(weights: Weights, sizes: Sizes, axis: str) -> Ratio:
    """How many devices along the axis hold these weights (tied weights: only the end stages)."""
    uses = weights.uses
    if uses is None or uses.axis != axis:
        return sizes.size(axis)
    if uses.vee or not (uses.first and uses.last):
        return ONE
    return sizes.ends(axis)


def initial_scale(program: Program, sizes: Sizes, term: LossTerm) -> Ratio:
    """The coefficient of a fresh gradient over K, tokens even (docs/semantics.md, "Denominators")."""
    work = program.work
    per_item = var(PER_ITEM)
    all_tokens = per_item * sizes.product(work.split_axes) * sizes.microbatches
    goal = all_tokens if work.objective == "mean" else ONE  # 1/K
    if not term.mean:
        return goal
    denominator = per_item * sizes.product(term.over)
    if term.microbatches:
        denominator = denominator * sizes.microbatches
    return goal / denominator


def _flat(ops: tuple[Op, ...]) -> list[Op]:
    out: list[Op] = []
    for op in ops:
        out.extend(op.body if isinstance(op, Loop) else (op,))
    return out


def _flat_axes(kind: Kind) -> tuple[str, ...]:
    """The atoms along which this kind is cut by position in a flat buffer."""
    if kind.cut is None:
        return ()
    return tuple(axis for dimension, axes in kind.cut if dimension == "flat" for axis in axes)


def _indicator(reached: Formula, sizes: Sizes, loop: Loop) -> Ratio:
    """1 where `microbatch i` exists, else 0, as a size of its own."""
    return sizes.indicator(f"turn.{loop.index}", reached)


def _add(a: Value, b: Value) -> Value:
    return {name: [*a.get(name, ()), *b.get(name, ())] for name in dict.fromkeys([*a, *b])}


def _join(a: Buffers, b: Buffers) -> Buffers:
    return {buffer: _add(a.get(buffer, {}), b.get(buffer, {})) for buffer in dict.fromkeys([*a, *b])}


def _each(buffers: Buffers, change: Callable[[Term], Term]) -> Buffers:
    return {
        buffer: {name: [change(t) for t in terms] for name, terms in value.items()}
        for buffer, value in buffers.items()
    }


def _guard(buffers: Buffers, when: Formula) -> Buffers:
    return _each(buffers, lambda t: replace(t, when=both(t.when, when)))


def _mark(buffers: Buffers) -> Buffers:
    return _each(buffers, lambda t: replace(t, repeats=True))


def _unstable(turn: Buffers, next_turn: Buffers) -> Buffers:
    """Terms after many turns: as after `turn` where one more turn changes nothing, else ruined."""
    fault = "is transformed again in every turn"

    def change(t: Term, n: Term | None) -> Term:
        moved = TRUE if n is None or n.kinds != t.kinds else test("distinct", t.scale, n.scale)
        return replace(t, kinds=(kinds.spoil(t.kinds[0], moved, fault), *t.kinds[1:]), repeats=True)

    out: Buffers = {}
    for buffer, value in turn.items():
        out[buffer] = {}
        for name, terms in value.items():
            after = next_turn.get(buffer, {}).get(name, [])
            pairs = zip(terms, after) if len(after) == len(terms) else ((t, None) for t in terms)
            out[buffer][name] = [change(t, n) for t, n in pairs]
    return out


def _same(a: Buffers, b: Buffers) -> bool:
    """Equal terms, one by one, whatever was noted about how they came about."""
    return all(
        [(t.scale, t.kinds, t.when) for t in a.get(buffer, {}).get(name, ())]
        == [(t.scale, t.kinds, t.when) for t in b.get(buffer, {}).get(name, ())]
        for buffer in dict.fromkeys([*a, *b])
        for name in dict.fromkeys([*a.get(buffer, {}), *b.get(buffer, {})])
    )
