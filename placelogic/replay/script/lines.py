"""Lines of a script: tables by device, and names of process groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from placelogic.program.program import Axes


class NotShown(Exception):
    """This counterexample does not fit into a short program; the message says why."""


class Names:
    """Process groups that the script makes, and which of its helpers it needs."""

    def __init__(self, label: Callable[[Axes], str]) -> None:
        self.groups: dict[str, list[list[int]]] = {}
        self.helpers: set[str] = set()
        self.label = label

    def group(self, axes: Axes, sets: Iterable[Sequence[int]]) -> str | None:
        """Its name in the script; None where everyone is alone."""
        found = [sorted(members) for members in sets if len(members) > 1]
        if not found:
            return None
        name = self.label(axes) if axes else "all"
        for known in (name, *(f"{name} ({number})" for number in range(2, 9))):
            if self.groups.setdefault(known, found) == found:
                return known
        raise NotShown("it needs too many process groups")

    def use(self, helper: str) -> None:
        self.helpers.add(helper)


def by_device(rows: Sequence[object]) -> str:
    """One value where all devices have the same, else a table."""
    told = [_compact(row) for row in rows]
    return told[0] if len(set(told)) == 1 else f"[{', '.join(told)}][rank]"


def _compact(row: object) -> str:
    """Longer runs of places as a range."""
    if isinstance(row, list) and len(row) > 3 and row == list(range(row[0], row[0] + len(row))):
        return f"range({row[0]}, {row[0] + len(row)})"
    return str(row)


def fraction(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator} / {value.denominator}"


def times(factor: Fraction) -> str:
    return "" if factor == 1 else f"{fraction(factor)} * "
