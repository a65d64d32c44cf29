"""Attention and experts on one device."""

from __future__ import annotations

from collections.abc import Mapping

from placelogic.program import block as bl
from placelogic.run.stop import GroupStop
from placelogic.simulate.arithmetic import PRIME, mix
from placelogic.simulate.layers.arrays import Array, filled
from placelogic.simulate.layers.functions import Element, Gradients, Local, linear, linear_back, rows_of, size_of


class Attention:
    """Arbitrary weights of every key for every query, from all keys the query sees; then a sum of values.
    The dimensions end with sequence, heads, head."""

    def __init__(self, local: Local, query: Array, key: Array, value: Array) -> None:
        op = local.op
        assert isinstance(op, bl.Attention)
        self.seed, self.causal = local.seed, op.causal
        self._counted = local.position
        self.ratio = local.sizes[op.heads] // local.sizes[op.kv_heads]
        self.query, self.key, self.value = query, key, value
        if key.labels[:-1] != value.labels[:-1]:
            raise GroupStop("keys and values lie differently")
        self._positions = key.along(op.sequence)
        if self._positions != tuple(range(local.sizes[op.sequence])):
            raise GroupStop("attention sees a part of the keys only")
        self._keys, self._values = key.lookup(), value.lookup()
        self._heads = set(key.along(op.kv_heads))
        self._width, self._made = key.labels[-1], value.labels[-1]
        self._batch = len(query.dims) - 3

    def _row(self, place: Element) -> tuple[Element, int, int, tuple[int, ...]]:
        """Of a query (batch, position, head): its batch, key head, digest, and the positions it sees."""
        batch, position, head = place[: self._batch], place[self._batch], place[self._batch + 1]
        kv = head // self.ratio
        if kv not in self._heads or any(b not in labels for b, labels in zip(batch, self.key.labels)):
            raise GroupStop("attention needs keys of another head or sample")
        seen = tuple(t for t in self._positions if t <= position or not self.causal)
        known = self._queries[place]
        keys = (self._keys[(*batch, t, kv, d)] for t in seen for d in self._width)
        return batch, kv, mix(self.seed, self._counted(position), head, *known, 0, *keys), seen

    @property
    def _queries(self) -> Mapping[Element, list[int]]:
        if not hasattr(self, "_rows"):
            rows = rows_of(self.query, (self.query.dims[-1],))
            self._rows = {key: [value for _, value in row] for key, row in rows.items()}
        return self._rows

    def forward(self) -> Array:
        made: dict[Element, int] = {}
        for place in self._queries:
            batch, kv, digest, seen = self._row(place)
            for d in self._made:
                made[(*place, d)] = sum(mix(digest, t) * self._values[(*batch, t, kv, d)] for t in seen)
        labels = (*self.query.labels[:-1], self._made)
        return filled((*self.query.dims[:-1], self.value.dims[-1]), labels, lambda place: made[place])

    def backward(self, arrived: Array) -> tuple[Array, Array, Array]:
        came = arrived.lookup()
        queries = dict.fromkeys(self.query.places(), 0)
        keys = dict.fromkeys(self._keys, 0)
        values = dict.fromkeys(self._values, 0)
        for place in self._queries:
            batch, kv, digest, seen = self._row(place)
            for t in seen:
                weight = mix(digest, t)
                felt = 0
                for d in self._made:
                    values[(*batch, t, kv, d)] += weight * came[(*place, d)]
                    felt += came[(*place, d)] * self._values[(*batch, t, kv, d)]
                for d in self.query.labels[-1]:
                    queries[(*place, d)] += felt * mix(digest, t, d, 1)
                for u in seen:
                    for d in self._width:
                        keys[(*batch, u, kv, d)] += felt * mix(digest, t, u, d, 2)
        return tuple(
            Array(like.dims, like.labels, [v % PRIME for v in found.values()])
            for like, found in ((self.query, queries), (self.key, keys), (self.value, values))
        )  # type: ignore[return-value]


# --- experts ----------------------------------------------------------------------------------


def route(local: Local, x: Array) -> Array:
    """Arbitrary scores of the best experts of each token, from all its logits; zero for the others."""
    op = local.op
    assert isinstance(op, bl.Router)
    logits = linear(local, op, x, (op.experts,))
    rows = rows_of(logits, (op.experts,))
    place = logits.dims.index(op.experts)
    digests = {key: mix(local.seed, *(v for _, v in row)) for key, row in rows.items()}
    best = {key: _best(digest, local) for key, digest in digests.items()}

    def value(at: Element) -> int:
        key = tuple(label for i, label in enumerate(at) if i != place)
        return mix(digests[key], at[place]) if at[place] in best[key] else 0

    return filled(logits.dims, logits.labels, value)


def _best(digest: int, local: Local) -> tuple[int, ...]:
    op = local.op
    assert isinstance(op, bl.Router)
    experts = range(local.sizes[op.experts])
    return tuple(sorted(experts, key=lambda e: mix(digest, e, 5))[: local.top])


def route_back(local: Local, x: Array, arrived: Array) -> tuple[Array, Gradients]:
    op = local.op
    assert isinstance(op, bl.Router)
    logits = linear(local, op, x, (op.experts,))
    place = logits.dims.index(op.experts)
    came = rows_of(arrived, (op.experts,))
    digests = {key: mix(local.seed, *(v for _, v in row)) for key, row in rows_of(logits, (op.experts,)).items()}
    best = {key: _best(digest, local) for key, digest in digests.items()}

    def value(at: Element) -> int:
        key = tuple(label for i, label in enumerate(at) if i != place)
        return sum(v * mix(digests[key], e, at[place], 3) for (e,), v in came[key] if e in best[key])

    return linear_back(local, op, x, (op.experts,), filled(logits.dims, logits.labels, value))


def dispatch(op: bl.Dispatch, experts: tuple[int, ...], dim: str, x: Array, scores: Array) -> Array:
    """Each token where its score is not zero, for the experts of this device."""
    known, chosen = x.lookup(), scores.lookup()
    place = scores.dims.index(dim)

    def value(at: Element) -> int:
        expert, token = at[0], at[1:]
        return known[token] if chosen[_scored(scores, place, expert, token, x)] else 0

    return filled((dim, *x.dims), (experts, *x.labels), value)


def _scored(scores: Array, place: int, expert: int, token: Element, x: Array) -> Element:
    found = [token[x.dims.index(dim)] if i != place else expert for i, dim in enumerate(scores.dims)]
    if any(label not in labels for label, labels in zip(found, scores.labels)):
        raise GroupStop("the scores of these tokens are on another device")
    if any(i != place and scores.labels[i] != x.along(dim) for i, dim in enumerate(scores.dims)):
        raise GroupStop("scores of other tokens meet these")
    return tuple(found)


def dispatch_back(op: bl.Dispatch, dim: str, x: Array, scores: Array, arrived: Array) -> Array:
    chosen = scores.lookup()
    place = scores.dims.index(dim)
    back = dict.fromkeys(x.places(), 0)
    for at, value in zip(arrived.places(), arrived.data):
        if chosen[_scored(scores, place, at[0], at[1:], x)]:
            back[at[1:]] += value
    return Array(x.dims, x.labels, [v % PRIME for v in back.values()])


def combine(x: Array, scores: Array, dim: str) -> Array:
    """The sum over the experts that are here, each times its score."""
    chosen = scores.lookup()
    place = scores.dims.index(dim)
    tokens = Array(x.dims[1:], x.labels[1:], [0] * size_of(x.labels[1:]))
    made = dict.fromkeys(tokens.places(), 0)
    for at, value in zip(x.places(), x.data):
        made[at[1:]] += value * chosen[_scored(scores, place, at[0], at[1:], tokens)]
    return Array(tokens.dims, tokens.labels, [v % PRIME for v in made.values()])


def combine_back(x: Array, scores: Array, dim: str, arrived: Array) -> tuple[Array, Array]:
    came, chosen = arrived.lookup(), scores.lookup()
    place = scores.dims.index(dim)
    back, felt = [], dict.fromkeys(chosen, 0)
    for at, value in zip(x.places(), x.data):
        score = _scored(scores, place, at[0], at[1:], arrived)
        back.append(came[at[1:]] * chosen[score] % PRIME)
        if chosen[score]:
            felt[score] += came[at[1:]] * value
    return (
        Array(x.dims, x.labels, back),
        Array(scores.dims, scores.labels, [v % PRIME for v in felt.values()]),
    )
