"""The operations of layers, each once: what it makes of what it reads, and how that lies.

As PyTorch would, an operation takes any pieces whose sizes fit, be they the right ones or not, unless the algebra is
stricter. Everyone raises GroupStop where a device cannot do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from placelogic.program import block as bl
from placelogic.run.layers.algebra import NOTHING, Algebra, Attending, Site
from placelogic.run.layers.lay import Data, Labels, Lay, Tensor
from placelogic.run.stop import GroupStop


def operate(a: Algebra[Data], s: Site[Data]) -> Tensor[Data]:
    """What the operation leaves on every device."""
    return OPERATIONS[type(s.op)](a, a.read(s), s.op)


def _alike(a: Algebra[Data], one: Sequence[Labels], two: Sequence[Labels]) -> bool:
    return list(one) == list(two) or a.by_position and list(map(len, one)) == list(map(len, two))


def _linear(a: Algebra[Data], s: Site[Data], op: bl.Linear) -> Tensor[Data]:
    return _product(a, s, op.contracted, op.produced, s.x.dims[:1] if op.grouped else ())


def _product(
    a: Algebra[Data], s: Site[Data], contracted: Sequence[str], produced: Sequence[str], experts: Sequence[str] = ()
) -> Tensor[Data]:
    x, start = s.x, s.x.dims.index(contracted[0])
    end = start + len(contracted)
    w = a.weights(s, s.covered((*experts, *contracted, *produced)))
    for dim in experts:
        if any(set(lay.labels[0]) - set(own.along(dim)) for lay, own in zip(x.lays, w.lays)):
            raise GroupStop("experts meet tokens of other experts")
        w = _picked(a, w, dim, [lay.labels[0] for lay in x.lays])
    if any(not _alike(a, lay.labels[start:end], inner.labels) for lay, inner in zip(x.lays, s.covered(contracted))):
        raise GroupStop("a matrix meets other places than it has")
    dims = (*x.dims[:start], *produced, *x.dims[end:])
    lays = tuple(
        Lay(dims, (*lay.labels[:start], *made.labels, *lay.labels[end:]))
        for lay, made in zip(x.lays, s.covered(produced))
    )
    return Tensor(lays, a.product(x, w, start, len(experts), len(contracted)))


def _picked(
    a: Algebra[Data], x: Tensor[Data], dim: str, wanted: Sequence[Labels], alone: Sequence[int] | None = None
) -> Tensor[Data]:
    """These places of a dimension, by device: zeros for those that it does not have. `alone`: as in `picked`."""
    rows = []
    for lay, labels in zip(x.lays, wanted):
        rank = {label: i for i, label in enumerate(lay.along(dim))}
        rows.append([rank.get(label, NOTHING) for label in labels])
    if all(row == list(range(len(lay.along(dim)))) for row, lay in zip(rows, x.lays)):
        return x
    return Tensor(
        tuple(lay.with_places(dim, labels) for lay, labels in zip(x.lays, wanted)), a.picked(x, dim, rows, alone)
    )


def _aligned(a: Algebra[Data], x: Tensor[Data], dims: Sequence[str]) -> Tensor[Data]:
    order = sorted(x.dims, key=list(dims).index)
    return Tensor(tuple(lay.of(order) for lay in x.lays), a.aligned(x, dims))


def _bias(a: Algebra[Data], s: Site[Data], op: bl.Bias) -> Tensor[Data]:
    """A device adds its own pieces of the vector, and nothing where it has none."""
    x = s.x
    w = a.weights(s, s.covered(op.over))
    for dim in op.over:
        every = [lay.along(dim) for lay in x.lays]
        if dim == "sequence":
            every = [tuple(map(of, places)) for of, places in zip(s.counted, every)]
        w = _picked(a, w, dim, every)
    w = _aligned(a, w, x.dims)
    if op.scale is not None:
        w = Tensor(w.lays, a.scaled(w, op.scale, False))
    return Tensor(x.lays, a.added([x, w]))


def _embedding(a: Algebra[Data], s: Site[Data], op: bl.Embedding) -> Tensor[Data]:
    table = a.weights(s, s.covered((op.vocabulary, *op.produced)))
    dims = (*s.x.dims, *op.produced)
    lays = tuple(Lay(dims, (*lay.labels, *made.labels)) for lay, made in zip(s.x.lays, s.covered(op.produced)))
    return Tensor(lays, a.looked_up(table, op.vocabulary, s.x, s.sizes[op.vocabulary]))


def _norm(a: Algebra[Data], s: Site[Data], op: bl.Norm) -> Tensor[Data]:
    out = Tensor(s.x.lays, a.normalised(s, s.x, op.over))
    if op.weights is None:
        return out
    w = a.weights(s, tuple(lay.of(op.over) for lay in s.x.lays))
    return Tensor(s.x.lays, a.multiplied(out, _aligned(a, w, s.x.dims)))


def _elementwise(a: Algebra[Data], s: Site[Data], op: bl.Elementwise) -> Tensor[Data]:
    x = s.x
    if op.random:
        return Tensor(x.lays, a.multiplied(x, Tensor(x.lays, a.noise(s, x.lays))))
    if not op.linear:
        return Tensor(x.lays, a.function(s, x, op.function))
    return x if op.factor is None else Tensor(x.lays, a.scaled(x, op.factor, True))


def _add(a: Algebra[Data], s: Site[Data], op: bl.Add) -> Tensor[Data]:
    return Tensor(_met(a, s), a.added(s.ins))


def _multiply(a: Algebra[Data], s: Site[Data], op: bl.Multiply) -> Tensor[Data]:
    return Tensor(_met(a, s), a.multiplied(*s.ins))


def _met(a: Algebra[Data], s: Site[Data]) -> tuple[Lay, ...]:
    for other in s.ins[1:]:
        if any(not _alike(a, mine.labels, lay.labels) for mine, lay in zip(s.x.lays, other.lays)):
            raise GroupStop("two tensors that meet do not lie alike")
    return s.x.lays


def _concat(a: Algebra[Data], s: Site[Data], op: bl.Concat) -> Tensor[Data]:
    whole = sum(s.sizes[one.dims[-1]] for one in s.ins)
    lays = []
    for x, first in enumerate(s.x.lays):
        for lay in (one.lays[x] for one in s.ins):
            if not _alike(a, [lay.labels[-1]], [tuple(range(s.sizes[lay.dims[-1]]))]):
                raise GroupStop("a part of what is put together is missing")
            if not _alike(a, lay.labels[:-1], [first.along(dim) for dim in lay.dims[:-1]]):
                raise GroupStop("two tensors that are put together do not lie alike")
        lays.append(Lay((*first.dims[:-1], op.into), (*first.labels[:-1], tuple(range(whole)))))
    return Tensor(tuple(lays), a.concatenated(s.ins))


def _attention(a: Algebra[Data], s: Site[Data], op: bl.Attention) -> Tensor[Data]:
    query, key, value = s.ins
    ratio = s.sizes[op.heads] // s.sizes[op.kv_heads]
    heads, samples, far, chances, lays = [], [], [], [], []
    for q, k, v, of in zip(query.lays, key.lays, value.lays, s.counted):
        if not _alike(a, k.labels[:-1], v.labels[:-1]):
            raise GroupStop("keys and values lie differently")
        if not a.by_position and k.along(op.sequence) != tuple(range(s.sizes[op.sequence])):
            raise GroupStop("attention sees a part of the keys only")
        met = [head // ratio for head in q.along(op.heads)]
        pairs = [(met, k.along(op.kv_heads)), *zip(q.labels[:-3], k.labels[:-3])]
        if any(set(want) - set(have) for want, have in pairs):
            raise GroupStop("attention needs keys of another head or sample")
        if a.by_position and q.shape[-1] != k.shape[-1]:
            raise GroupStop("queries and keys have pieces of heads of different sizes")
        row, *rest = [[have.index(label) for label in want] for want, have in pairs]
        heads.append(row)
        samples.append(rest)
        if op.positions:
            far.append([[of(p) - s.keys.get(t, t) for t in k.along(op.sequence)] for p in q.along(op.sequence)])
        dims = (*q.dims[:-3], op.heads, op.sequence, op.sequence)
        chances.append(Lay(dims, (*q.labels[:-3], q.labels[-2], q.labels[-3], k.along(op.sequence))))
        lays.append(Lay((*query.dims[:-1], value.dims[-1]), (*q.labels[:-1], v.labels[-1])))
    places = [[lay.along(op.sequence) for lay in one.lays] for one in (query, key)]
    how = Attending(heads, samples, *places, far, chances, ratio)
    return Tensor(tuple(lays), a.attention(s, query, key, value, how))


def _convolve(a: Algebra[Data], s: Site[Data], op: bl.Convolve) -> Tensor[Data]:
    """The tensor moved on by each distance, zeros before its first place, times the weights for this distance."""
    x, whole = s.x, tuple(range(s.sizes[op.over]))
    if not a.by_position and any(lay.along(op.over) != whole for lay in x.lays):
        raise GroupStop("a convolution sees a part of its neighbours only")
    w, places = a.weights(s, s.covered((op.width, *op.channels))), [lay.along(op.over) for lay in x.lays]
    for dim in op.channels:
        w = _picked(a, w, dim, [lay.along(dim) for lay in x.lays])
    terms = []
    for far in range(s.sizes[op.width]):
        at = _picked(a, w, op.width, [(far,) for _ in x.lays], [far])
        one = Tensor(tuple(lay.of(op.channels) for lay in at.lays), a.summed(at))
        alone, *back = [
            [NOTHING] * min(far, len(have)) + list(range(max(0, len(have) - far))) for have in (whole, *places)
        ]
        moved = Tensor(x.lays, a.picked(x, op.over, back, alone))
        terms.append(Tensor(x.lays, a.multiplied(moved, _aligned(a, one, x.dims))))
    return Tensor(x.lays, a.added(terms))


def _router(a: Algebra[Data], s: Site[Data], op: bl.Router) -> Tensor[Data]:
    scores = _product(a, s, op.contracted, (op.experts,))
    top = min(a.whole_number(op.top), max(1, s.sizes[op.experts] - 1))
    return Tensor(scores.lays, a.best(s, scores, op.experts, top))


def _dispatch(a: Algebra[Data], s: Site[Data], op: bl.Dispatch) -> Tensor[Data]:
    """Each token where its score is not zero, for the experts of the device."""
    assert s.scores is not None
    dim = s.block.tensors[op.output][0]
    here = s.places(dim)
    scores = _scores(a, s.scores, dim, here, s.x.lays)
    lays = tuple(Lay((dim, *lay.dims), (mine, *lay.labels)) for mine, lay in zip(here, s.x.lays))
    return Tensor(lays, a.spread(s.x, scores))


def _combine(a: Algebra[Data], s: Site[Data], op: bl.Combine) -> Tensor[Data]:
    """The sum over the experts that are here, each times its score."""
    made, scores = s.ins
    tokens = tuple(lay.of(lay.dims[1:]) for lay in made.lays)
    met = _scores(a, scores, made.dims[0], [lay.labels[0] for lay in made.lays], tokens)
    return Tensor(tokens, a.summed(Tensor(made.lays, a.multiplied(made, met))))


def _scores(
    a: Algebra[Data], scores: Tensor[Data], experts: str, here: Sequence[Labels], tokens: Sequence[Lay]
) -> Tensor[Data]:
    """Those of the experts and the tokens that are here: rows are counted by them."""
    for lay, mine, token in zip(scores.lays, here, tokens):
        if set(mine) - set(lay.along(experts)):
            raise GroupStop("the scores of these experts are on another device")
        if any(dim != experts and have != token.along(dim) for dim, have in zip(lay.dims, lay.labels)):
            raise GroupStop("scores of other tokens meet these")
    order = [experts, *(dim for dim in tokens[0].dims if dim in scores.dims)]
    turned = Tensor(tuple(lay.of(order) for lay in scores.lays), a.ordered(scores, order))
    return _aligned(a, _picked(a, turned, experts, here), (experts, *tokens[0].dims))


def _loss(a: Algebra[Data], s: Site[Data], op: bl.CrossEntropy) -> Tensor[Data]:
    rest = [dim for dim in s.x.dims if dim != op.vocabulary]
    lays, over = tuple(lay.of(rest) for lay in s.x.lays), s.shared if op.parallel else ()
    for members in s.grid.groups(over) if over else ():
        if any(lays[x] != lays[members[0]] for x in members):
            raise GroupStop("devices that share out a vocabulary have different tokens")
    return Tensor(lays, a.loss(s, s.x, op.vocabulary, over))


OPERATIONS: Mapping[type, Callable] = {
    bl.Linear: _linear,
    bl.Bias: _bias,
    bl.Embedding: _embedding,
    bl.Norm: _norm,
    bl.Elementwise: _elementwise,
    bl.Add: _add,
    bl.Multiply: _multiply,
    bl.Concat: _concat,
    bl.Attention: _attention,
    bl.Convolve: _convolve,
    bl.Router: _router,
    bl.Dispatch: _dispatch,
    bl.Combine: _combine,
    bl.CrossEntropy: _loss,
}
"""How each is carried out; collectives are moves of the plan."""
