"""What was proved of a file a moment ago: typing in one spec leaves the others as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placelogic.program.program import Program
    from placelogic.prove import Options
    from placelogic.report.diagnostic import SpecReport


class Memory:
    """The last report on each spec of one file, given again for a program that is equal in everything, places in
    the file included."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Program, Options, SpecReport]] = {}
        self.reused = 0

    def prove(self, program: Program, options: Options) -> SpecReport:
        """As `prove.prove`."""
        from placelogic.prove import prove

        known = self._last.get(program.name)
        if known is not None and known[0] == program and known[1] == options:
            self.reused += 1
            return known[2]
        report = prove(program, options)
        self._last[program.name] = (program, options, report)
        return report
