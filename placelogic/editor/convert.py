"""From reports to the protocol's data: places, diagnostics, edits. The server alone calls this."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lsprotocol import types
from msgspec.structs import replace

from placelogic.editor.complete import Choice, Sort
from placelogic.editor.text import Text
from placelogic.report.diagnostic import FileReport, Finding, SpecReport
from placelogic.report.fingerprint import fingerprints
from placelogic.report.telling import as_expected, expected, level, story
from placelogic.source import Span

SOURCE = "placelogic"

_KINDS: dict[Sort, types.CompletionItemKind] = {
    "word": types.CompletionItemKind.Keyword,
    "axis": types.CompletionItemKind.Variable,
    "size": types.CompletionItemKind.Constant,
    "weights": types.CompletionItemKind.Struct,
    "kind": types.CompletionItemKind.EnumMember,
    "strategy": types.CompletionItemKind.Function,
    "model": types.CompletionItemKind.Class,
    "dimension": types.CompletionItemKind.EnumMember,
    "value": types.CompletionItemKind.Value,
    "code": types.CompletionItemKind.Event,
    "parameter": types.CompletionItemKind.Property,
}

QUIET_NOTES = ("NT02",)
"""Notes about every spec without stated operations: an editor would mark each file all the time."""


class Units:
    """Columns of the client: it counts UTF-16 units, or as agreed, where a Span counts characters."""

    def __init__(self, encoding: str | None) -> None:
        self._encoding = {"utf-8": "utf-8", "utf-32": "utf-32-le"}.get(encoding or "", "utf-16-le")
        self._size = {"utf-8": 1, "utf-32-le": 4}.get(self._encoding, 2)

    def to_client(self, line: str, column: int) -> int:
        """A column (from 1) as an offset in units."""
        if line.isascii():  # and maybe long, with many findings
            return min(column - 1, len(line))
        return len(line[: column - 1].encode(self._encoding, "surrogatepass")) // self._size

    def from_client(self, line: str, offset: int) -> int:
        """An offset in units as a column (from 1)."""
        data = line.encode(self._encoding, "surrogatepass")[: offset * self._size]
        return len(data.decode(self._encoding, "ignore")) + 1

    def range(self, lines: Sequence[str], span: Span) -> types.Range:
        """A place in these lines; one outside them is at their nearest end."""
        return types.Range(
            self._position(lines, span.line, span.column), self._position(lines, span.end_line, span.end_column)
        )

    def _position(self, lines: Sequence[str], line: int, column: int) -> types.Position:
        if line < 1:
            return types.Position(0, 0)
        if line > len(lines):
            return types.Position(len(lines), 0) if lines and lines[-1] else types.Position(max(len(lines) - 1, 0), 0)
        return types.Position(line - 1, self.to_client(lines[line - 1], column))

    def place(self, lines: Sequence[str], position: types.Position) -> tuple[int, int]:
        """A position as line and column, from 1."""
        line = lines[position.line] if position.line < len(lines) else ""
        return position.line + 1, self.from_client(line, position.character)


def diagnostics(report: FileReport, text: Text, units: Units) -> list[types.Diagnostic]:
    """What a report has to say, in the order of the text; what is wrong with the whole file once."""
    found: dict[tuple, types.Diagnostic] = {}
    for spec, finding, _ in fingerprints(report):
        if finding.code not in QUIET_NOTES:
            one = _diagnostic(report, spec, finding, text, units)
            found.setdefault((one.code, one.message, one.range.start.line, one.range.start.character), one)
    return sorted(found.values(), key=lambda one: (one.range.start.line, one.range.start.character))


_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}


def _diagnostic(
    report: FileReport, spec: SpecReport | None, finding: Finding, text: Text, units: Units
) -> types.Diagnostic:
    """A finding that its spec expects, or that somebody accepted, is information. The fix comes as an action."""
    wanted = spec is not None and as_expected(spec, finding)
    several = len(report.specs) > 1 and spec is not None and spec.verdict != "error"
    message = story(spec, replace(finding, fix=None, help=None if finding.fix else finding.help), several)
    nowhere = types.Range(types.Position(0, 0), types.Position(0, 0))
    elsewhere = finding.span.path not in ("", report.path)
    if elsewhere:
        message += f"\nin {os.path.basename(finding.span.path)}, line {finding.span.line}"
    return types.Diagnostic(
        range=nowhere if elsewhere else units.range(text.lines, finding.span),
        message=f"as expected: {message}" if wanted else message,
        severity=_SEVERITIES["note" if wanted else level(finding)],
        code=finding.code,
        source=SOURCE,
    )


def actions(
    report: FileReport, text: Text, units: Units, uri: str, version: int | None, wanted: types.Range
) -> list[types.CodeAction]:
    """The verified fixes of findings that lie in a range."""
    found = []
    for spec in report.specs:
        for finding in spec.findings:
            place = units.range(text.lines, finding.span)
            if finding.edit is None or not _touch(place, wanted):
                continue
            edit = types.TextEdit(units.range(text.lines, finding.edit.span), finding.edit.text)
            document = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
            title = (finding.fix or "").split("\n")[0]
            found.append(
                types.CodeAction(
                    title=f"{title} ({finding.code}; verified: {spec.name} is then proved)",
                    kind=types.CodeActionKind.QuickFix,
                    diagnostics=[_diagnostic(report, spec, finding, text, units)],
                    is_preferred=True,
                    edit=types.WorkspaceEdit(
                        document_changes=[types.TextDocumentEdit(text_document=document, edits=[edit])]
                    ),
                )
            )
    return found


def _touch(one: types.Range, other: types.Range) -> bool:
    def key(position: types.Position) -> tuple[int, int]:
        return position.line, position.character

    return key(one.start) <= key(other.end) and key(other.start) <= key(one.end)


def completion(choices: Sequence[Choice]) -> types.CompletionList:
    """In the order of the choices: names come before words."""
    items = [
        types.CompletionItem(label=c.text, kind=_KINDS[c.sort], detail=c.detail or None, sort_text=f"{i:04}")
        for i, c in enumerate(choices)
    ]
    return types.CompletionList(is_incomplete=False, items=items)


def lenses(report: FileReport, text: Text, units: Units) -> list[types.CodeLens]:
    """The verdict on each spec, above its first line."""
    from placelogic.syntax import ast

    file = text.readable.file
    blocks = {s.name: s.span for s in file.statements if isinstance(s, ast.SpecDef)} if file is not None else {}
    found = []
    for spec in report.specs:
        span = blocks.get(spec.name) or next((s.span for s in file.statements), None) if file is not None else None
        if span is not None:
            start = units.range(text.lines, span).start
            found.append(types.CodeLens(types.Range(start, start), types.Command(title=_verdict(spec), command="")))
    return found


def _verdict(spec: SpecReport) -> str:
    counts = spec.obligations
    if spec.verdict == "proved":
        sizes = f" for every {', '.join(spec.open_sizes)}" if spec.open_sizes else " at the sizes given"
        stated = f"{counts.stated} stated" if counts.stated else "none stated"
        return f"proved{expected(spec)}{sizes} ({counts.proved} obligations, {stated})"
    return f"{spec.verdict}{', accepted' if spec.accepted else expected(spec)}"
