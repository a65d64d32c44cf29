"""Each operation on one device: its value, and what comes back through it.

A nonlinear function is arbitrary: its value and its derivatives at a point are unrelated numbers. So what is
right for these is right for every function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod

from msgspec import Struct

from placelogic.program import block as bl
from placelogic.run.stop import GroupStop
from placelogic.simulate.arithmetic import PRIME, mix
from placelogic.simulate.layers.arrays import Array, Labels, added, arranged, filled, same_places

Element = tuple[int, ...]
Weights = Callable[[Element], int]
"""The value of the weights at the labels of their dimensions."""
Gradients = dict[tuple[tuple[str, int], ...], int]
"""Named labels of an element -> its gradient."""


class Local(Struct, frozen=True):
    """What an operation needs on one device. `mine`: the places of a dimension that its own weights, or its
    own experts, cover; a dimension not in it is whole. `sizes`: of whole dimensions. `seed`: of its arbitrary
    functions; `factor`: a number it multiplies by; `top`: experts per token."""

    op: bl.Operation
    mine: Mapping[str, Labels]
    sizes: Mapping[str, int]
    weights: Weights
    seed: int
    factor: int = 1
    top: int = 1
    position: Callable[[int], int] = int
    """Where a place of the sequence is taken to stand."""

    def places(self, dim: str) -> Labels:
        return self.mine.get(dim) or tuple(range(self.sizes[dim]))


# --- matrices ---------------------------------------------------------------------------------


def linear(local: Local, op: bl.Linear | bl.Router, x: Array, produced: tuple[str, ...]) -> Array:
    """Raises GroupStop where the contracted places are not those of the weights, or the experts others."""
    start = x.dims.index(op.contracted[0])
    inner = [local.places(dim) for dim in op.contracted]
    if list(x.labels[start : start + len(inner)]) != inner:
        raise GroupStop("a matrix meets other places than it has")
    outs = [local.places(dim) for dim in produced]
    dims = (*x.dims[:start], *produced, *x.dims[start + len(inner) :])
    labels = (*x.labels[:start], *outs, *x.labels[start + len(inner) :])
    _experts(local, op, x)
    known = x.lookup()
    rows = list(product(*inner))
    count = len(produced)

    def value(place: Element) -> int:
        before, made, after = place[:start], place[start : start + count], place[start + count :]
        expert = place[:1] if getattr(op, "grouped", False) else ()
        return sum(known[(*before, *row, *after)] * local.weights((*expert, *row, *made)) for row in rows)

    return filled(dims, labels, value)


def _experts(local: Local, op: bl.Linear | bl.Router, x: Array) -> None:
    if getattr(op, "grouped", False) and set(x.labels[0]) - set(local.places(x.dims[0])):
        raise GroupStop("experts meet tokens of other experts")


def linear_back(
    local: Local, op: bl.Linear | bl.Router, x: Array, produced: tuple[str, ...], arrived: Array
) -> tuple[Array, Gradients]:
    start = x.dims.index(op.contracted[0])
    inner = list(product(*(local.places(dim) for dim in op.contracted)))
    count = len(produced)
    known = x.lookup()
    grouped = bool(getattr(op, "grouped", False))
    back = dict.fromkeys(known, 0)
    experts = [local.places(x.dims[0])] if grouped else []
    held = product(*experts, *(local.places(dim) for dim in (*op.contracted, *produced)))
    weights: dict[Element, int] = dict.fromkeys(held, 0)
    for place, value in zip(arrived.places(), arrived.data):
        before, made, after = place[:start], place[start : start + count], place[start + count :]
        expert = place[:1] if grouped else ()
        for row in inner:
            at = (*before, *row, *after)
            element = (*expert, *row, *made)
            back[at] += value * local.weights(element)
            weights[element] += value * known[at]
    names = (*((x.dims[0],) if grouped else ()), *op.contracted, *produced)
    gradients: Gradients = {tuple(zip(names, element)): v % PRIME for element, v in weights.items()}
    return Array(x.dims, x.labels, [v % PRIME for v in back.values()]), gradients


def bias(local: Local, op: bl.Bias, x: Array) -> Array:
    """A device adds its own pieces of the vector, and nothing where it has none."""
    places = [x.dims.index(dim) for dim in op.over]
    have = {dim: set(local.places(dim)) for dim in op.over}
    data = []
    for place, value in zip(x.places(), x.data):
        element = _element(local, op, place, places)
        own = all(label in have[dim] for dim, label in zip(op.over, element))
        data.append((value + local.factor * local.weights(element) * own) % PRIME)
    return Array(x.dims, x.labels, data)


def bias_back(local: Local, op: bl.Bias, arrived: Array) -> tuple[Array, Gradients]:
    places = [arrived.dims.index(dim) for dim in op.over]
    held = list(product(*(local.places(dim) for dim in op.over)))
    gradient = dict.fromkeys(held, 0)
    for place, value in zip(arrived.places(), arrived.data):
        element = _element(local, op, place, places)
        if element in gradient:
            gradient[element] += value
    return arrived, {tuple(zip(op.over, e)): v * local.factor % PRIME for e, v in gradient.items()}


def _element(local: Local, op: bl.Bias, place: Element, at: Sequence[int]) -> Element:
    """The element of the vector that is added at a place."""
    return tuple(local.position(place[p]) if dim == "sequence" else place[p] for dim, p in zip(op.over, at))


def embedding(local: Local, op: bl.Embedding, tokens: Array) -> Array:
    rows, made = set(local.places(op.vocabulary)), [local.places(dim) for dim in op.produced]
    size = local.sizes[op.vocabulary]
    known = tokens.lookup()
    count = len(tokens.dims)

    def value(place: Element) -> int:
        row = known[place[:count]] % size
        return local.weights((row, *place[count:])) if row in rows else 0

    return filled((*tokens.dims, *op.produced), (*tokens.labels, *made), value)


def embedding_back(local: Local, op: bl.Embedding, tokens: Array, arrived: Array) -> Gradients:
    rows, made = local.places(op.vocabulary), [local.places(dim) for dim in op.produced]
    size, count = local.sizes[op.vocabulary], len(tokens.dims)
    known = tokens.lookup()
    gradient = dict.fromkeys(product(rows, *made), 0)
    for place, value in zip(arrived.places(), arrived.data):
        element = (known[place[:count]] % size, *place[count:])
        if element in gradient:
            gradient[element] += value
    return {tuple(zip((op.vocabulary, *op.produced), e)): v % PRIME for e, v in gradient.items()}


# --- arbitrary functions of a few numbers -----------------------------------------------------


def rows_of(x: Array, dims: Sequence[str]) -> dict[Element, list[tuple[Element, int]]]:
    """The numbers along some dimensions, for every place along the others."""
    inside = [x.dims.index(dim) for dim in dims]
    outside = [i for i in range(len(x.dims)) if i not in inside]
    found: dict[Element, list[tuple[Element, int]]] = {}
    for place, value in zip(x.places(), x.data):
        key = tuple(place[i] for i in outside)
        found.setdefault(key, []).append((tuple(place[i] for i in inside), value))
    return found


def normalised(local: Local, over: Sequence[str], x: Array) -> Array:
    """An arbitrary function of all numbers along `over`, times a vector of weights where there is one."""
    seen = {key: _digest(local.seed, row) for key, row in rows_of(x, over).items()}
    inside = [x.dims.index(dim) for dim in over]
    outside = [i for i in range(len(x.dims)) if i not in inside]
    data = []
    for place in x.places():
        key, element = tuple(place[i] for i in outside), tuple(place[i] for i in inside)
        data.append(mix(local.seed, 1, seen[key], *element) * local.weights(element) % PRIME)
    return Array(x.dims, x.labels, data)


def normalised_back(local: Local, over: Sequence[str], x: Array, arrived: Array) -> tuple[Array, Gradients]:
    inside = [x.dims.index(dim) for dim in over]
    outside = [i for i in range(len(x.dims)) if i not in inside]
    rows, came = rows_of(x, over), rows_of(arrived, over)
    gradient: dict[Element, int] = {}
    back: dict[tuple[Element, Element], int] = {}
    for key, row in rows.items():
        digest = _digest(local.seed, row)
        for element, value in came[key]:
            gradient[element] = gradient.get(element, 0) + value * mix(local.seed, 1, digest, *element)
        for other, _ in row:
            back[key, other] = sum(
                value * local.weights(element) * mix(local.seed, 2, digest, *element, 0, *other)
                for element, value in came[key]
            )
    data = []
    for place in x.places():
        key, element = tuple(place[i] for i in outside), tuple(place[i] for i in inside)
        data.append(back[key, element] % PRIME)
    gradients = {tuple(zip(over, element)): value % PRIME for element, value in gradient.items()}
    return Array(x.dims, x.labels, data), gradients


def _digest(seed: int, row: Sequence[tuple[Element, int]]) -> int:
    return mix(seed, *(number for element, value in sorted(row) for number in (*element, value)))


def elementwise(local: Local, x: Array) -> Array:
    op = local.op
    assert isinstance(op, bl.Elementwise)
    if op.linear:
        return Array(x.dims, x.labels, [v * _mask(local, place) % PRIME for place, v in zip(x.places(), x.data)])
    return x.map(lambda v: mix(local.seed, 3, v))


def elementwise_back(local: Local, x: Array, arrived: Array) -> Array:
    op = local.op
    assert isinstance(op, bl.Elementwise)
    if op.linear:
        pairs = zip(x.places(), arrived.data)
        return Array(x.dims, x.labels, [v * _mask(local, place) % PRIME for place, v in pairs])
    return Array(x.dims, x.labels, [v * mix(local.seed, 4, at) % PRIME for v, at in zip(arrived.data, x.data)])


def _mask(local: Local, place: Element) -> int:
    """Dropout keeps a place or not: an arbitrary factor of the place, the same on every device."""
    op = local.op
    assert isinstance(op, bl.Elementwise)
    return mix(local.seed, 5, *place) if op.random else local.factor


def multiplied(one: Array, two: Array) -> Array:
    same_places(one, two)
    return Array(one.dims, one.labels, [a * b % PRIME for a, b in zip(one.data, two.data)])


def summed(ins: Sequence[Array]) -> Array:
    for other in ins[1:]:
        same_places(ins[0], other)
    return added(ins)


def whole(x: Array, dim: str, sizes: Mapping[str, int]) -> bool:
    return x.along(dim) == tuple(range(sizes[dim]))


def loss(local: Local, x: Array, total: Callable[[dict[Element, int]], dict[Element, int]]) -> Array:
    """An arbitrary function of all logits of a token. `total` adds up what devices with other logits have."""
    op = local.op
    assert isinstance(op, bl.CrossEntropy)
    seen = total(_logits(local, op, x))
    place = x.dims.index(op.vocabulary)
    dims = tuple(dim for dim in x.dims if dim != op.vocabulary)
    labels = tuple(labels for i, labels in enumerate(x.labels) if i != place)
    return filled(dims, labels, lambda key: mix(local.seed, 6, seen[key]))


def _logits(local: Local, op: bl.CrossEntropy, x: Array) -> dict[Element, int]:
    rows = rows_of(x, (op.vocabulary,))
    return {
        key: sum(mix(local.seed, 7, *element, value) for element, value in row) % PRIME for key, row in rows.items()
    }


def loss_back(
    local: Local, x: Array, arrived: Array, total: Callable[[dict[Element, int]], dict[Element, int]]
) -> Array:
    op = local.op
    assert isinstance(op, bl.CrossEntropy)
    seen, came = total(_logits(local, op, x)), arrived.lookup()
    place = x.dims.index(op.vocabulary)

    def value(at: Element) -> int:
        key = tuple(label for i, label in enumerate(at) if i != place)
        return came[key] * mix(local.seed, 8, seen[key], at[place])

    return filled(x.dims, x.labels, value)


def size_of(labels: Sequence[Labels]) -> int:
    return prod(map(len, labels))


def fitted(array: Array, like: Array) -> Array:
    """Brought to the places of another array, zeros where it has none."""
    for dim, labels in zip(like.dims, like.labels):
        array = arranged(array, dim, labels)
    return array
