"""How operations act on the terms of one weight group: starts, scales, collectives, accumulation."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from placelogic.compat import assert_never
from placelogic.program.facts import Fact, Flow, Path
from placelogic.program.program import GatherGradients, LossTerm, Op, Program, Reduce, Scale, ScaleLoss, Weights
from placelogic.program.weights import is_flat
from placelogic.prove import kinds
from placelogic.prove.formula import TRUE, Formula, at_least, both, either
from placelogic.prove.kinds import PARTIAL, REPLICATED, Kind, stack
from placelogic.prove.ratio import Ratio
from placelogic.prove.sizes import Sizes
from placelogic.prove.values import Term, Value, initial_scale, members


class Group(Struct, frozen=True):
    """One weight group and what its gradients depend on. `flow`: a part of them that comes otherwise than the
    facts say; None: what the facts describe."""

    program: Program
    weights: Weights
    facts: Mapping[str, Fact]
    sizes: Sizes
    flow: Flow | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        return self.program.mesh.axes

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
                case "partial":
                    kind = PARTIAL
                    if fact.part == "item" and feed is not None and feed.kind == "same":
                        kind = Kind("root", 0)
                case "replicated" | "absent":  # absent parameters are an obligation of their own (FW01)
                    kind = REPLICATED
                case "shard":
                    kind = kinds.shard(stack(self.weights.params, axis) or ())
                case _:
                    assert_never(fact.kind)
            if fact.routed:
                moved = kinds.route(kind, self.members(axis), stack(self.weights.params, axis) or ())
                kind, scale = moved.kind, scale * moved.factor
                if moved.counted:
                    counted.append(axis)
            out.append(kind)
        return Term(scale, tuple(out), counted=tuple(counted))

    def fresh(self, turn: Formula) -> Value:
        """The fresh gradients of all loss terms, for the micro-batches that `turn` says."""
        out: Value = {}
        for term in self.program.work.losses:
            start = replace(self.start(term), when=turn)
            out[term.name] = [self._by(path, start) for path in self.flow.paths] if self.flow is not None else [start]
        return out

    def _by(self, path: Path, start: Term) -> Term:
        """A fresh gradient that came by this path instead."""
        moved = []
        for axis, kind in zip(self.axes, start.kinds):
            if axis in path.partial | path.copies:
                kind = Kind("partial" if axis in path.partial else "replicated", cut=kind.cut)
            if axis in path.tied:
                kind = kinds.tie(kind)
            if axis in path.lost:
                kind = kinds.spoil(kind, at_least(self.members(axis), 2), "comes after values that were no shares")
            moved.append(kind)
        unknown = TRUE if "*" in path.lost else start.unknown
        counted = (*start.counted, *sorted(path.counted))
        scale = start.scale * self.sizes.ratio(path.scale)
        return replace(start, scale=scale, kinds=tuple(moved), counted=counted, unknown=unknown)

    def settled(self, fresh: Value) -> Value:
        """What arrives in the buffer: under cut gradients a whole value keeps only its own shard."""
        rooms = [stack(self.weights.gradients, axis) for axis in self.axes]
        return {
            name: [replace(t, kinds=tuple(map(kinds.settle, t.kinds, rooms))) for t in terms]
            for name, terms in fresh.items()
        }

    def apply(self, op: Op, value: Value) -> Value:
        """A gradient operation on a buffer, or on the fresh gradient."""
        match op:
            case Scale(factor=factor):
                scale = self.sizes.ratio(factor)
                return {name: [replace(t, scale=t.scale * scale) for t in terms] for name, terms in value.items()}
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
            moved[index] = kinds.gather(moved[index], self.members(axis))
        return replace(term, kinds=tuple(moved))


def _flat_axes(kind: Kind) -> tuple[str, ...]:
    """The atoms along which this kind is cut by position in a flat buffer."""
    if kind.cut is None:
        return ()
    return tuple(axis for dimension, axes in kind.cut if is_flat(dimension) for axis in axes)
