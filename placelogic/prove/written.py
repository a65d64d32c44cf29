"""What a factor, a condition or a kind was made of, before it was simplified: the questions as they stand (raw.py)."""

from __future__ import annotations

from msgspec import Struct


class Written(Struct, frozen=True, eq=False):
    """`op` on `parts`: factors, conditions, kinds, names. It decides nothing: any two are equal, so that what carries
    it is compared by its normal form alone."""

    op: str
    parts: tuple[object, ...]

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, Written)

    def __hash__(self) -> int:
        return hash(None)
