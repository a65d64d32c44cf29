"""The values of the calculus: terms, what a step reads of them, and buffers of terms.

The gradient a device holds is a sum of terms; a term is a scale times one kind per axis, for a
subset of the micro-batches (docs/semantics.md, "The value calculus"). Terms are never merged:
they meet only in an obligation. Scales are relative to the single device: the value is right
where the terms add up to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from placelogic.program.program import (
    BroadcastParams,
    FetchParams,
    GatherParams,
    LossTerm,
    OffloadGradients,
    Origin,
    Program,
    Refresh,
    Weights,
)
from placelogic.prove import kinds
from placelogic.prove.formula import FALSE, TRUE, Formula, at_least, both, either, made, test, variables
from placelogic.prove.kinds import Kind, unlike
from placelogic.prove.ratio import ONE, Ratio, var
from placelogic.prove.sizes import PER_ITEM, TURN, Sizes
from placelogic.prove.written import Written


class Term(Struct, frozen=True):
    """`kinds`: one per axis, in mesh order. `when`: on the micro-batch and on M. `counted`: axes
    along which copies were added up. `repeats`: a loop transformed it once more. `unknown`: the
    sizes at which a loop transformed it so often that its scale is not followed any further. `clipped`:
    it was there when the gradient was clipped, so that it carries the clip factor."""

    scale: Ratio
    kinds: tuple[Kind, ...]
    when: Formula = TRUE
    counted: tuple[str, ...] = ()
    repeats: bool = False
    unknown: Formula = FALSE
    clipped: bool = False


class Read(Struct, frozen=True):
    """A point where the buffer is used by something nonlinear. `terms`: loss term -> its terms.
    `when`: the sizes at which it is reached with these terms. `times`: how often it runs.
    `order`: its position among all operations of the step. `axes`: over which a skip looks."""

    what: str
    terms: Mapping[str | None, tuple[Term, ...]]
    when: Formula
    times: Ratio
    order: int
    origin: Origin
    axes: tuple[str, ...] = ()


class Publish(Struct, frozen=True):
    """An operation on parameter copies, host copies included, and when it runs."""

    op: GatherParams | BroadcastParams | Refresh | FetchParams | OffloadGradients
    when: Formula
    order: int


class Clash(Struct, frozen=True):
    """A gradient that is `whole` along an axis is added to a buffer that an earlier turn left cut
    there, or the other way round."""

    axis: str
    when: Formula
    origin: Origin
    whole: bool


class Trace(Struct):
    """What a step does, ready for obligations. `times`: how often one device has what is followed."""

    reads: list[Read] = field(default_factory=list)
    publishes: list[Publish] = field(default_factory=list)
    clashes: list[Clash] = field(default_factory=list)
    last_gradient_op: tuple[int, Origin] | None = None
    times: int = 1


def members(weights: Weights, sizes: Sizes, axis: str) -> Ratio:
    """How many devices along the axis hold these weights (tied weights: only the end stages)."""
    uses = weights.uses
    if uses is None or uses.axis != axis:
        return sizes.size(axis)
    if uses.vee or not (uses.first and uses.last):
        return ONE
    return sizes.ends(axis)


def unseen(program: Program, weights: Weights, sizes: Sizes, axis: str) -> Formula:
    """The sizes at which some device that updates other weights holds nothing of these, because
    they live on end stages of the axis only."""
    uses = weights.uses
    if uses is None or uses.axis != axis:
        return FALSE
    size = sizes.size(axis)
    both_ends = uses.first and uses.last and not uses.vee
    out: list[Formula] = []
    for other in program.weights:
        if other.frozen:
            continue
        if other.uses is None or other.uses.axis != axis:
            out.append(at_least(size, 3 if both_ends else 2))  # the stages between
        elif not uses.vee and ((other.uses.first and not uses.first) or (other.uses.last and not uses.last)):
            out.append(at_least(size, 2))  # the other end
    return either(*out)


def laid_out_apart(weights: Weights, sizes: Sizes) -> Formula:
    """The sizes at which the two stages of tied weights hold other shards of the params at one coordinate:
    a flat buffer has other weights in it on each of them."""
    if weights.uses is None or weights.params.cut(weights.uses.axis) is not None:
        return FALSE  # one stage only, or the stages share the elements out
    flat = [axis for cut in weights.params.cuts if cut.dim == "flat" for axis in cut.axes]
    several = either(*(at_least(members(weights, sizes, axis), 2) for axis in flat))
    return both(at_least(members(weights, sizes, weights.uses.axis), 2), several)


def initial_scale(program: Program, sizes: Sizes, term: LossTerm) -> Ratio:
    """The coefficient of a fresh gradient over K, tokens even (docs/semantics.md, "Denominators")."""
    work = program.work
    per_item = var(PER_ITEM)
    all_tokens = per_item * sizes.product(work.split_axes) * sizes.microbatches
    goal = all_tokens if work.objective == "mean" else ONE  # 1/K
    if not term.mean:
        return goal
    own = per_item * sizes.product(term.whole) / sizes.product(term.pieces)
    denominator = own * sizes.product(term.over)
    if term.microbatches:
        denominator = denominator * sizes.microbatches
    return goal / denominator


def within_loop(formula: Formula, sizes: Sizes) -> Formula:
    """The formula for some micro-batch that exists, where it speaks of one."""
    if TURN not in variables(formula):
        return formula
    return both(test(">=", var(TURN), ONE), test("<=", var(TURN), sizes.microbatches), formula)


# --- buffers --------------------------------------------------------------------------------

Value = dict[str | None, list[Term]]  # loss term -> terms
Buffers = dict[str | None, Value]  # buffer -> value


def add(a: Value, b: Value) -> Value:
    return {name: [*a.get(name, ()), *b.get(name, ())] for name in dict.fromkeys([*a, *b])}


def join(a: Buffers, b: Buffers) -> Buffers:
    return {buffer: add(a.get(buffer, {}), b.get(buffer, {})) for buffer in dict.fromkeys([*a, *b])}


def each(buffers: Buffers, change: Callable[[Term], Term]) -> Buffers:
    return {
        buffer: {name: [change(t) for t in terms] for name, terms in value.items()} for buffer, value in buffers.items()
    }


def guard(buffers: Buffers, when: Formula, sizes: Sizes) -> Buffers:
    """The same terms, at these sizes and micro-batches only; what can never be there is dropped."""
    guarded = each(buffers, lambda t: replace(t, when=both(t.when, when)))
    return {
        buffer: {name: [t for t in terms if not sizes.never(t.when)] for name, terms in value.items()}
        for buffer, value in guarded.items()
    }


def clipped(value: Value) -> Value:
    """What the clip factor was multiplied on; what is added later goes without it."""
    return {name: [replace(t, clipped=True) for t in terms] for name, terms in value.items()}


def mark(buffers: Buffers) -> Buffers:
    return each(buffers, lambda t: replace(t, repeats=True))


def unstable(turn: Buffers, next_turn: Buffers) -> Buffers:
    """Terms after many turns: as after `turn` where one more turn changes nothing, else unknown."""

    def change(t: Term, n: Term | None) -> Term:
        moved = TRUE if n is None else either(test("distinct", t.scale, n.scale), *map(unlike, t.kinds, n.kinds))
        return replace(t, unknown=either(t.unknown, moved), repeats=True)

    out: Buffers = {}
    for buffer, value in turn.items():
        out[buffer] = {}
        for name, terms in value.items():
            after = next_turn.get(buffer, {}).get(name, [])
            pairs = zip(terms, after) if len(after) == len(terms) else ((t, None) for t in terms)
            out[buffer][name] = [change(t, n) for t, n in pairs]
    return out


def miscast(value: Value) -> list[Formula]:
    """Where the rules, as they stand, come to other kinds than were found."""
    found = {id(kind): kind for terms in value.values() for term in terms for kind in term.kinds}
    return [kinds.miscast(kind) for kind in found.values() if kind.raw is not None]


def same(a: Buffers, b: Buffers, sizes: Sizes) -> bool:
    """Equal terms, one by one, whatever was noted about how they came about."""
    taken: list[Formula] = []
    for buffer in dict.fromkeys([*a, *b]):
        one, other = a.get(buffer, {}), b.get(buffer, {})
        for name in dict.fromkeys([*one, *other]):
            terms, others = one.get(name, []), other.get(name, [])
            if [_worth(t) for t in terms] != [_worth(t) for t in others]:
                return False
            taken += [_differ(t, o) for t, o in zip(terms, others) if t is not o]
    return all(map(sizes.never, taken))


def _worth(t: Term) -> tuple[object, ...]:
    return t.scale, t.kinds, t.when, t.clipped


def _differ(t: Term, other: Term) -> Formula:
    """Where two terms that are found to be equal are not."""
    apart = Written("not", (Written("same when", (t.when, other.when)),))
    return made(FALSE, "or", Written("distinct", (t.scale, other.scale)), apart, *map(unlike, t.kinds, other.kinds))
