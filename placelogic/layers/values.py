"""Values of tensors and of gradients, relative to one device, and what moves do to them.

A value is a sum of independent parts, each with the number of times that one device has it. On the mesh a
part is a sum of terms: a factor, and per axis whether devices hold it whole or as shares. The shape says
per axis on which dimension the local arrays are cut; what is cut has no shares along that axis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from msgspec import Struct, field
from msgspec.structs import replace

from placelogic.layers.scale import ONE, Scale
from placelogic.program.ops import Origin

Shape = Mapping[str, str]
"""axis -> the dimension cut along it; axes not in it are whole."""
Key = frozenset[tuple[int, ...]]
Piece = tuple[str, str, tuple[str, ...]]
"""An axis, the dimension of its piece, and the axes that have to cut that already."""


class Term(Struct, frozen=True):
    """`partial`: axes along which devices hold parts that add up to it. `tied`: axes along which each device has, of its
    own piece, its own share only, the others are lost. `lost`: axes along which this is no value any more.
    `through`: what a person stated on the way. `counted`: axes along which copies were added up, `summed_in_place`: along which
    pieces were added up place by place, whatever came of it later.

    Of gradients only, until an operation cannot hand it on: `folded`: axes that cut a dimension, along which the
    pieces were added up place by place, so that each device has the sum of all at the places of its own piece.
    `aligned`: of shares along an axis each device's is nothing outside its own piece of a dimension: of what it has
    of it where just the axes that stand there too, in this order, cut it already."""

    scale: Scale = ONE
    partial: frozenset[str] = frozenset()
    tied: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    counted: frozenset[str] = frozenset()
    through: tuple[Origin, ...] = ()
    folded: frozenset[str] = frozenset()
    aligned: frozenset[Piece] = frozenset()
    summed_in_place: frozenset[str] = frozenset()

    @property
    def same(self) -> tuple[object, ...]:
        """What decides what it is worth."""
        return self.scale, self.partial, self.tied, self.lost, self.folded, self.aligned


class Part(Struct, frozen=True):
    """`times`: how often one device has it."""

    times: int = 1
    terms: tuple[Term, ...] = (Term(),)

    @property
    def right(self) -> bool:
        """Whole everywhere, and as often as on one device, whatever the sizes are."""
        whole = all(replace(term, scale=ONE).same == Term().same and not term.scale.powers for term in self.terms)
        return whole and sum(term.scale.number for term in self.terms) == self.times

    @property
    def worth(self) -> frozenset[object]:
        """Equal for parts whose terms are alike, each as often for what one device has."""
        found: Counter[object] = Counter()
        for term in self.terms:
            found[_by_number(term)] += term.scale.number / self.times
        return frozenset(found.items())


class Value(Struct, frozen=True):
    shape: Shape = field(default_factory=dict)
    parts: Mapping[Key, Part] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        return all(part.right for part in self.parts.values())


def fresh(shape: Shape, name: tuple[int, ...] = ()) -> Value:
    return Value(dict(shape), {frozenset([name]): Part()})


def signature(value: Value) -> frozenset[object]:
    """Equal for values that are worth the same, whatever they are made of."""
    plain = {key: tuple(map(_untold, part.terms)) for key, part in value.parts.items()}
    return frozenset(replace(part, terms=plain[key]).worth for key, part in value.parts.items())


def _untold(term: Term) -> Term:
    """Only what decides what it is worth."""
    return replace(term, counted=frozenset(), through=(), summed_in_place=frozenset())


def _by_number(term: Term) -> Term:
    return replace(term, scale=replace(term.scale, number=Fraction(1)))


def added(values: Iterable[Value]) -> Value:
    """The sum of values of one shape: equal parts meet."""
    values = list(values)
    parts: dict[Key, Part] = {}
    for value in values:
        for key, part in value.parts.items():
            known = parts.get(key)
            parts[key] = part if known is None else Part(known.times + part.times, (*known.terms, *part.terms))
    return merged(Value(values[0].shape, parts))


def merged(value: Value) -> Value:
    """Parts that are worth the same become one: right or wrong together."""
    groups: dict[object, list[Key]] = {}
    reduced = dict(_once_each(key, part) for key, part in value.parts.items())
    for key, part in reduced.items():
        groups.setdefault(part.worth, []).append(key)
    parts = {}
    for keys in groups.values():
        first = reduced[keys[0]]
        parts[keys[0] if len(keys) == 1 else frozenset().union(*keys)] = first
    return Value(value.shape, parts)


def _once_each(key: Key, part: Part) -> tuple[Key, Part]:
    """Terms that are alike are one, as often as all of them: factors are all that tells them apart, and none cancels
    another. What is alike throughout, n times where one device has it n times, is as right as one of it; it is
    called otherwise from here on: added to what it is made of, it would count n times."""
    if len(part.terms) > 1:
        numbers: dict[Term, Fraction] = {}
        rest = []
        for term in part.terms:
            if term.scale.number > 0:
                alike = _by_number(term)
                numbers[alike] = numbers.get(alike, Fraction(0)) + term.scale.number
            else:
                rest.append(term)
        folded = (replace(one, scale=replace(one.scale, number=number)) for one, number in numbers.items())
        part = Part(part.times, (*folded, *rest))
    if part.times > 1 and len(part.terms) == 1:
        (term,) = part.terms
        once = replace(term, scale=replace(term.scale, number=term.scale.number / part.times))
        return frozenset([(hash(key), part.times, -1)]), Part(1, (once,))
    return key, part


def through(value: Value, name: int) -> Value:
    """After a function that is linear in this value: other parts than before, worth the same."""
    parts = {frozenset((*path, name) for path in key): part for key, part in value.parts.items()}
    return merged(Value(value.shape, {_short(key): part for key, part in parts.items()}))


def _short(key: Key) -> Key:
    """Long paths are called by a number of their own."""
    return key if sum(map(len, key)) < 24 else frozenset([(hash(key),)])


def each(value: Value, change, shape: Shape | None = None) -> Value:  # type: ignore[no-untyped-def]
    """Every term changed."""
    parts = {key: Part(part.times, tuple(map(change, part.terms))) for key, part in value.parts.items()}
    return merged(Value(value.shape if shape is None else shape, parts))


def without(shape: Shape, *axes: str) -> dict[str, str]:
    return {axis: dim for axis, dim in shape.items() if axis not in axes}


def lies(dim: str | None) -> str:
    """How a tensor lies, in words."""
    return "a whole tensor" if dim is None else f"pieces of {dim}"


class Misfit(Exception):
    """A move or an operation gets something other than it can work with along `axis`. `slot`: in which input of
    the operation. `reason`: a variant of FW05 in the catalogue of sentences, and `words` that fill it in."""

    def __init__(self, axis: str, reason: str, slot: int = 0, **words: str | None) -> None:
        super().__init__(reason)
        self.axis = axis
        self.reason = reason
        self.slot = slot
        self.words = tuple((name, word or "") for name, word in words.items())


class Disorder(Misfit):
    """It depends on two axes: pieces that both cut, in an order that is not followed; `reason` says so."""


def tied(axis: str):  # type: ignore[no-untyped-def]
    """Cut without adding up: of a share, each device keeps its own piece of its own share."""

    def change(term: Term) -> Term:
        if axis in term.partial:
            return replace(whole(term, axis), tied=term.tied | {axis})
        return term

    return change


def whole(term: Term, axis: str) -> Term:
    """No share any more along the axis, and so not about a piece of it either."""
    kept = frozenset(piece for piece in term.aligned if piece[0] != axis)
    return replace(term, partial=term.partial - {axis}, aligned=kept)


def aligned(value: Value, piece: Piece) -> Value:
    """Each device's share is nothing outside its own piece."""
    return each(value, lambda term: replace(term, aligned=term.aligned | {piece}))


def unsummed(axis: str):  # type: ignore[no-untyped-def]
    """Of shares, a device's own one is used as if it were all: the others are lost."""

    def change(term: Term) -> Term:
        if axis in term.partial:
            return replace(term, partial=term.partial - {axis}, lost=term.lost | {axis})
        return term

    return change


def shared(axis: str):  # type: ignore[no-untyped-def]
    """Each device has its own part only: of what was added up place by place, the whole."""

    def change(term: Term) -> Term:
        if axis in term.folded:
            return replace(term, folded=term.folded - {axis}, summed_in_place=term.summed_in_place - {axis})
        return replace(term, partial=term.partial | {axis})

    return change


def share(value: Value, axis: str, shape: Shape) -> Value:
    """What arrived is, from here on, each device's own share along the axis."""
    return each(value, shared(axis), shape)


def tie(value: Value, axis: str, shape: Shape) -> Value:
    return each(value, tied(axis), shape)


def product(term: Term, other: Term) -> Term:
    """A gradient that arrives (`term`) times a value: shares of one of the two are shares of the product,
    shares of both are not. Or a value times a value. What was added up place by place is lost before it gets here."""
    return Term(
        term.scale * other.scale,
        term.partial | other.partial,
        term.tied,
        term.lost | other.lost | (term.partial & other.partial),
        term.counted | other.counted,
        once(other.through, term.through),
        summed_in_place=term.summed_in_place,
    )


def once(through: tuple[Origin, ...], more: tuple[Origin, ...]) -> tuple[Origin, ...]:
    return tuple(dict.fromkeys((*through, *more)))
