"""The work of every device in a script, as tables: which items, how many tokens, by what each loss is multiplied."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from placelogic.replay.script.lines import fraction
from placelogic.run.group import Group
from placelogic.run.work import Work
from placelogic.simulate.model import Model

Row = tuple[int, int, Fraction]
"""Number of an item, its tokens, the factor of its summed loss."""


class Items:
    """Numbers for work items, and the tables that the script has. `tables`: name -> device -> micro-batch -> rows."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._numbers: dict[tuple[object, ...], int] = {}
        self.tables: dict[str, list[list[list[Row]]]] = {}

    def _number(self, *key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def single(self, group: Group) -> list[Row]:
        """Everything that the single device adds up."""
        found = []
        for term in range(len(self.work.terms)):
            weight = Fraction(1, self.work.single_counted(term))
            for key in Model(self.work).keys(group, term):
                _, share, turn, foreign, use, part = key
                number = self._number(group.number, term, share, turn, foreign, use, part, ())
                found.append((number, self.work.tokens(self.work.terms[term], share, turn), weight))
        return found

    def table(self, group: Group, scaled: Mapping[str | None, Fraction]) -> str:
        """Its name in the script."""
        rows = [self._device(group, x, scaled) for x in range(group.grid.count)]
        names = (group.name, *(f"{group.name} ({number})" for number in range(2, 99)))
        return next(name for name in names if self.tables.setdefault(name, rows) == rows)

    def _device(self, group: Group, x: int, scaled: Mapping[str | None, Fraction]) -> list[list[Row]]:
        work, at = self.work, group.grid.coordinate
        if not group.holder[x]:
            return [[] for _ in range(work.microbatches)]
        uses = [
            use for use, stage in group.members.items() if group.uses_axis is None or at[group.uses_axis][x] == stage
        ]
        part = tuple(at[axis][x] for axis in group.parts)
        # Coordinate 0 has what one device would have: its samples, its random numbers.
        foreign = tuple(c for _, c in work.foreign[x])
        noise = tuple(at[axis][x] for axis in group.noisy)
        found = []
        for turn in range(1, work.microbatches + 1):
            rows = []
            for term, loss in enumerate(work.terms):
                by = Fraction(1, work.counted(term, turn)[x]) * scaled.get(loss.name, 1)
                for use in uses:
                    key = (group.number, term, work.share[x], turn)
                    number = self._number(*key, foreign if any(foreign) else (), use, part, noise if any(noise) else ())
                    rows.append((number, work.tokens(loss, work.share[x], turn), by))
            found.append(rows)
        return found


def told(rows: list[Row]) -> str:
    return "[" + ", ".join(f"({number}, {tokens}, {fraction(weight)})" for number, tokens, weight in rows) + "]"
