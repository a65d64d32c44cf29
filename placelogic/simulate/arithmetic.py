"""Exact numbers: integers modulo the prime 2**61 - 1.

A rational with a small denominator has one residue; two values that differ as rationals have
different residues except with probability of about 2**-60, and values that are equal always
agree. So nothing is ever rounded, and a difference is a difference.
"""

from __future__ import annotations

from fractions import Fraction

PRIME = 2**61 - 1
_MASK = 2**64 - 1
_BOUND = 2**30
"""Reconstruction is unique for numerators and denominators below this."""


def mix(*parts: int) -> int:
    """A well spread residue for these integers: the arbitrary numbers of the simulated model."""
    x = 0x9E3779B97F4A7C15
    for part in parts:
        x = ((x ^ (part + 0x632BE59BD9B4E019)) * 0xBF58476D1CE4E5B9) & _MASK
        x ^= x >> 29
    x = (x * 0x94D049BB133111EB) & _MASK
    return (x ^ (x >> 32)) % PRIME


def inverse(value: int) -> int:
    """Raises ZeroDivisionError for a multiple of the prime."""
    if value % PRIME == 0:
        raise ZeroDivisionError("division by zero")
    return pow(value, -1, PRIME)


def residue(value: Fraction | int) -> int:
    value = Fraction(value)
    return value.numerator * inverse(value.denominator) % PRIME


def rational(value: int) -> Fraction | None:
    """The one rational with small numerator and denominator that has this residue, if any."""
    old, new = PRIME, value % PRIME
    t_old, t_new = 0, 1
    while new >= _BOUND:
        quotient = old // new
        old, new = new, old - quotient * new
        t_old, t_new = t_new, t_old - quotient * t_new
    if t_new == 0 or abs(t_new) >= _BOUND:
        return None
    return Fraction(new, t_new)
