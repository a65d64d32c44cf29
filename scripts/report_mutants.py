"""The tables of docs/mutation.md, written from the results of a run."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from equivalents import reason

START, END = "<!-- written by scripts/mutants.py -->", "<!-- end -->"


class Result(Protocol):
    file: str
    where: str
    before: str
    after: str
    killed_by: str | None


def write(
    page: Path, results: Sequence[Result], there: Mapping[str, int], command: str, day: datetime.date, seconds: float
) -> None:
    """Put the tables between the two marks of the page. `there`: how many mutants each file has."""
    text = page.read_text()
    before, rest = text.split(START)
    _, after = rest.split(END)
    page.write_text(f"{before}{START}\n\n{_tables(results, there, command, day, seconds)}\n{END}{after}")


def unexplained(results: Sequence[Result]) -> list[Result]:
    return [result for result in results if result.killed_by is None and reason(result) is None]


def _tables(
    results: Sequence[Result], there: Mapping[str, int], command: str, day: datetime.date, seconds: float
) -> str:
    killed = [result for result in results if result.killed_by is not None]
    parts = [
        f"`{command}`, {day.isoformat()}: {len(results)} mutants tried, {len(killed)} killed, "
        f"{len(results) - len(killed)} survived, {len(unexplained(results))} of them not explained; "
        f"{seconds / 60:.0f} minutes of CPU time.",
        _by_file(results, there),
        _by_killer(killed),
        _survivors([result for result in results if result.killed_by is None]),
    ]
    return "\n\n".join(parts) + "\n"


def _by_file(results: Sequence[Result], there: Mapping[str, int]) -> str:
    rows = ["| file | mutants | tried | killed | survived |", "|---|---|---|---|---|"]
    for file in dict.fromkeys(result.file for result in results):
        mine = [result for result in results if result.file == file]
        killed = sum(result.killed_by is not None for result in mine)
        rows.append(f"| {file} | {there.get(file, len(mine))} | {len(mine)} | {killed} | {len(mine) - killed} |")
    return "\n".join(rows)


def _by_killer(killed: Sequence[Result]) -> str:
    """The file of specs that noticed first; the order in which they are asked favours cheap ones."""
    counts = Counter(_killer(result.killed_by or "") for result in killed)
    rows = ["| noticed first by | mutants |", "|---|---|"]
    rows += [f"| {name} | {count} |" for name, count in counts.most_common()]
    return "\n".join(rows)


def _killer(name: str) -> str:
    if ", seed " in name:
        return f"random specs ({name.partition(',')[0]})"
    return name if name.startswith("no answer") else name.split(" ")[0]


def _survivors(survivors: Sequence[Result]) -> str:
    rows = ["| survivor | why nothing can notice |", "|---|---|"]
    for result in survivors:
        what = f"{result.file} `{result.where}`: `{_cell(result.before)}` becomes `{_cell(result.after)}`"
        rows.append(f"| {what} | {reason(result) or '**not explained**'} |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    short = text if len(text) <= 160 else text[:157] + "..."
    return short.replace("|", "\\|").replace("`", "'")
