"""What the walks come to, as plain data: gradients that are not as the facts have them, and what is needed."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from placelogic.layers.cases import Case
from placelogic.layers.record import Gradient
from placelogic.layers.values import Part, Term
from placelogic.layers.walk import Walk
from placelogic.program.block import Block
from placelogic.program.expr import Compare, Num, number
from placelogic.program.facts import Flow, Need, Parts, Path, When
from placelogic.program.operations import weights_of
from placelogic.program.program import Program

UNKNOWN = Path(number(1), frozenset(), frozenset(), frozenset(), frozenset(["*"]), frozenset(), ())
"""A value that is not followed."""


def flows(program: Program, every: Sequence[Case], nominal: Walk) -> tuple[tuple[Flow, ...], frozenset[str]]:
    """The gradients that deviate, and the weights with at least one that does not."""
    usual = {(g.block, g.index): _share(g) - g.own for g in nominal.gradients}
    found: dict[object, Flow] = {}
    cases: dict[object, list[tuple[Compare, ...]]] = {}
    plain: set[str] = set()
    for case in every:
        blocks = {layer.number: layer.block for layer in case.walk.layers}
        for gradient in case.walk.gradients:
            op = blocks[gradient.layer].operations[gradient.index]
            weights = weights_of(op)
            assert weights is not None
            for times, paths in _reached(gradient, case, usual[gradient.block, gradient.index]):
                if all(map(_is_plain, paths)) and sum(path.scale.value for path in paths) == times:  # type: ignore[union-attr]
                    plain.add(weights)
                    continue
                beyond = case.unknown.get(gradient.layer)
                parts = None if beyond is None else _parts(tuple(beyond.parts.values()))
                key = (weights, times, paths, parts)
                found.setdefault(key, Flow(weights, gradient.block, op.output, times, paths, (), parts))
                _note(cases, key, case.when)
    used = {flow.weights for flow in found.values()} | plain
    plain |= {weights.name for weights in program.weights if weights.name not in used}
    deviating = [replace(flow, when=_when(cases[key], every)) for key, flow in found.items()]
    deviating.sort(key=lambda flow: flow.beyond is not None)  # what is followed says more
    return tuple(deviating), frozenset(plain)


def _reached(gradient: Gradient, case: Case, usual: frozenset[str]) -> Parts:
    if gradient.layer in case.unknown:
        return ((1, (UNKNOWN,)),)
    return tuple(
        (part.times, tuple(_path(term, usual) for term in part.terms)) for part in gradient.value.parts.values()
    )


def _note(cases: dict[object, list[tuple[Compare, ...]]], key: object, when: tuple[Compare, ...]) -> None:
    known = cases.setdefault(key, [])
    if when not in known:
        known.append(when)


def _when(known: list[tuple[Compare, ...]], every: Sequence[Case]) -> When:
    """Always, where it is so in every case there is."""
    return () if len(known) == len(every) else tuple(known)


def _share(gradient: Gradient) -> frozenset[str]:
    return frozenset(axis for part in gradient.value.parts.values() for term in part.terms for axis in term.partial)


def _path(term: Term, usual: frozenset[str]) -> Path:
    lost = term.lost | term.folded
    return Path(
        term.scale.expr(), term.partial - usual, usual - term.partial, term.tied, lost, term.counted, term.through, term.summed_in_place
    )


def _is_plain(path: Path) -> bool:
    return isinstance(path.scale, Num) and not (path.partial or path.copies or path.tied or path.lost)


def needs(every: Sequence[Case], blocks: Sequence[Block]) -> tuple[Need, ...]:
    """The conditions of the forward pass, each once."""
    found: dict[object, Need] = {}
    cases: dict[object, list[tuple[Compare, ...]]] = {}
    for case in every:
        for one in case.walk.needs:
            parts = _parts(one.parts)
            key = (one.block, one.tensor, one.operation, one.axis, one.reason, one.words, parts)
            need = Need(
                one.block, one.tensor, one.operation, one.origin, one.axis, parts, one.nonlinear, (),
                reason=one.reason, words=one.words, boundary=one.boundary,
            )  # fmt: skip
            found.setdefault(key, need)
            _note(cases, key, case.when)
        for value in case.unseen:
            last = blocks[-1]
            parts = _parts(tuple(value.parts.values()))
            need = Need(last.name, last.result, "the loss", last.operations[-1].origin, None, parts, False, (), True)
            found.setdefault(parts, need)
            _note(cases, parts, case.when)
    return tuple(replace(need, when=_when(cases[key], every)) for key, need in found.items())


def _parts(parts: Sequence[Part]) -> Parts:
    return tuple((part.times, tuple(_path(term, frozenset()) for term in part.terms)) for part in parts)
