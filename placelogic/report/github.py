"""The report for GitHub Actions: workflow commands that mark lines of a pull request, and a step summary."""

from __future__ import annotations

from collections.abc import Iterator

from placelogic.io.quoting import github, github_property, markdown, visible_lines
from placelogic.report.diagnostic import FileReport, Finding, Report, Severity, SpecReport, exit_code
from placelogic.report.places import Root
from placelogic.report.telling import accepted_by, expected, level, story, telling
from placelogic.report.text import summary

_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}
_SUMMARY_BYTES = 1_000_000
"""GitHub refuses a step summary above 1 MiB as a whole; a longer one is cut where a finding ends."""


def render(report: Report, root: Root) -> str:
    """One workflow command a line, and the summary line of the report."""
    marks = [_mark(file, *one, root) for file in report.files for one in telling(file)]
    return "\n".join([*marks, summary(report)])


def _mark(file: FileReport, spec: SpecReport | None, finding: Finding, _: str, root: Root) -> str:
    span = finding.span
    properties = {"title": f"{finding.code or 'PL'}: {spec.name if spec is not None else file.path}"}
    place = {"file": root.name(span.path or file.path)}
    if span.line >= 1:
        place |= {"line": str(span.line), "endLine": str(max(span.end_line, span.line))}
        if span.end_line == span.line:  # GitHub takes columns within one line only
            place |= {"col": str(span.column), "endColumn": str(max(span.end_column - 1, span.column))}
    given = ",".join(f"{name}={github_property(value)}" for name, value in {**place, **properties}.items())
    return f"::{_COMMANDS[level(finding)]} {given}::{github(story(spec, finding, len(file.specs) > 1))}"


def step_summary(report: Report, root: Root) -> str:
    """Markdown: the verdict of every spec in a table, then every finding that counts."""
    parts = ["## placelogic\n", summary(report) + "\n"]
    rows = [(file, spec) for file in report.files for spec in file.specs]
    if rows:
        parts.append("| | file | spec | verdict |\n|---|---|---|---|")
        parts += [_row(file, spec, root) for file, spec in rows]
        parts.append("")
    left = _SUMMARY_BYTES - len("\n".join(parts).encode())
    blocks = [block for file in report.files for block in _blocks(file, root)]
    for number, block in enumerate(blocks):
        left -= len(block.encode()) + 1
        if left < 0:
            parts.append(f"... and {len(blocks) - number} more.\n")
            break
        parts.append(block)
    return "\n".join(parts)


def _row(file: FileReport, spec: SpecReport, root: Root) -> str:
    mark = ":white_check_mark:" if exit_code(spec) == 0 else ":x:"
    more = ", accepted" if spec.accepted else expected(spec)
    return f"| {mark} | {markdown(root.name(file.path))} | {markdown(spec.name)} | {spec.verdict}{more} |"


def _blocks(file: FileReport, root: Root) -> Iterator[str]:
    for spec, finding, _ in telling(file):
        place = root.name(finding.span.path or file.path) + (f":{finding.span.line}" if finding.span.line else "")
        verb = "accepted" if finding.accepted is not None else finding.severity
        head, _, rest = story(spec, finding, len(file.specs) > 1).partition("\n")
        block = f"### {verb} {finding.code}: {markdown(head)}\n\n{markdown(place)}\n"
        if finding.accepted is not None:
            block += f"\n{markdown(accepted_by(finding))}\n"
        elif rest:
            block += _fenced(rest)
        yield block


def _fenced(text: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in _runs(text)), default=0))
    return f"\n{fence}text\n{visible_lines(text)}\n{fence}\n"


def _runs(text: str) -> list[str]:
    import re

    return re.findall("`+", text)
