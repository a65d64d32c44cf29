"""What `placelogic.check` returns."""

from __future__ import annotations

from placelogic.report.diagnostic import Report
from placelogic.report.text import render


class PrintedReport(Report, frozen=True):
    """`str(report)` is the text that the command line prints."""

    def __str__(self) -> str:
        return render(self)
