"""A constant factor in the user's names: `ep`, `1/M`, `tokens`."""

from __future__ import annotations

from fractions import Fraction

from placelogic.program.expr import TOKENS
from placelogic.prove.ratio import ONE, Poly, Ratio
from placelogic.prove.sizes import MICROBATCHES, PER_ITEM, Sizes
from placelogic.prove.values import Term


def named_factor(terms: tuple[Term, ...], sizes: Sizes) -> str | None:
    """The factor in sizes (`ep`, `1/M`), where one term says it all."""
    scales = {t.scale for t in terms}
    if len(scales) != 1:
        return None
    scale = scales.pop()
    if not scale.monomial or scale.constant is not None:
        return None
    return _named(scale, sizes)


def inverse(terms: tuple[Term, ...], sizes: Sizes, factor: Fraction) -> str:
    """What would make it right: one over the factor, in sizes where it has a name."""
    scales = {t.scale for t in terms}
    scale = scales.pop()
    if scales or not scale.monomial:
        return str(1 / factor) if factor else "nothing: it is zero"
    return _named(ONE / scale, sizes)


def _named(scale: Ratio, sizes: Sizes) -> str:
    num, den = _side(scale.num, sizes), _side(scale.den, sizes)
    return num if den == "1" else f"{num}/{den}" if "*" not in den else f"{num}/({den})"


def _side(poly: Poly, sizes: Sizes) -> str:
    """One monomial in the user's names: the tokens of an item times all items are `tokens`."""
    monomial, coefficient = poly[0]
    powers = dict(monomial)
    (everything, count), *_ = sizes.values[TOKENS].num
    factors = []
    while PER_ITEM in powers and coefficient % count == 0 and all(powers.get(n, 0) >= p for n, p in everything):
        factors.append(TOKENS)
        coefficient //= count
        for name, power in everything:
            powers[name] -= power
    words = {PER_ITEM: "tokens per item", MICROBATCHES: "microbatches"}
    for name, power in powers.items():
        # Where it matters both end stages are there: two devices hold the weights.
        shown = words.get(name) or ("2" if name.startswith("ends.") else sizes.texts.get(name, name))
        factors += [shown] * power
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient))
    return "*".join(factors)
