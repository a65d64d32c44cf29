"""The report for people, as lines: one block per finding, one line per verdict, a summary at the end.

Without a terminal the lines depend on the report only, so that they can be compared and searched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from io import StringIO

from placelogic.compat import assert_never
from placelogic.io.quoting import visible
from placelogic.report.blocks import Look, count, counterexample_lines, note_lines, wrapped
from placelogic.report.diagnostic import (
    OUTSIDE_THE_CLAIM,
    FaultClass,
    FileReport,
    Finding,
    FindingSet,
    Recheck,
    Report,
    SpecReport,
    Verdict,
    exit_code,
)
from placelogic.report.layout import Line, Style, wrap
from placelogic.report.sentences import Sentence
from placelogic.report.snippet import snippet
from placelogic.report.telling import as_expected, expected
from placelogic.report.terminal import Printer
from placelogic.source import lines_of

_TOLD_AT_THE_END = ("NT02",)
"""Notes that the closing lines give once for all specs: nothing is stated."""

_CLASSES: dict[FaultClass, str] = {
    "wrong": "wrong values",
    "scale": "scale only; Adam hides it until clipping",
    "nonuniform": "not uniform; devices differ",
}


def render(report: Report, look: Look = Look(), lines: Callable[[FileReport, Look], list[Line]] | None = None) -> str:
    """The whole report as plain text; `lines` are those of one file, where not as file_lines has them."""
    out = StringIO()
    printer = Printer(out)
    for file in report.files:
        printer.lines((lines or file_lines)(file, look))
    printer.lines(closing_lines(report, look))
    return out.getvalue().rstrip("\n")


def file_lines(file: FileReport, look: Look) -> list[Line]:
    """Every spec of the file; when quiet, those that fail, and the verdicts of those that pass without being proved."""
    lines: list[Line] = []
    seen = FindingSet()
    for spec in file.specs:
        if look.quiet and exit_code(spec) == 0:
            lines += _verdict(file, spec, look) if spec.verdict != "proved" else []
            continue
        lines += _spec(file, spec, [finding for finding in spec.findings if finding not in seen], look)
        # What is wrong with the file itself is a finding of every spec in it.
        if spec.verdict == "error":
            for finding in spec.findings:
                seen.add(finding)
    return lines


def closing_lines(report: Report, look: Look) -> list[Line]:
    """Counts, what was not stated, where to read more, and what is outside the claim. Nothing when quiet."""
    if look.quiet:
        return []
    lines: list[Line] = [(), *wrapped(summary(report), look, style="good" if report.exit_code == 0 else "bad")]
    decided = [spec for spec in report.specs if spec.verdict in ("proved", "refuted")]
    derived = [spec for spec in decided if spec.verdict == "proved" and not spec.obligations.stated]
    if derived:
        where = "" if len(report.specs) == 1 else f" in {count(len(derived), 'spec')}"
        lines += wrapped(
            f"nothing is stated{where}: what is derived is right by construction. "
            f"Say what your code does with {_lines(derived)}; --require-stated asks for it.",
            look,
        )
    code = _to_explain(report)
    if code:
        lines += wrapped(f"next: `placelogic explain {code}` says how this comes about and what mends it", look)
    if decided:
        lines += wrapped("outside the claim: " + ", ".join(OUTSIDE_THE_CLAIM), look)
    return lines


def _lines(derived: list[SpecReport]) -> str:
    """The statements that say what code does: those about boundaries only where a spec has blocks."""
    blocks = Sentence("NT02", "blocks")
    helps = {finding.help for spec in derived for finding in spec.findings if finding.code == blocks.code}
    closing = (blocks if blocks.text("help") in helps else Sentence("NT02", "no blocks")).text("closing")
    assert closing is not None
    return closing


def _to_explain(report: Report) -> str | None:
    """The code to read about: the first error of the first spec that fails. Errors in the input say
    themselves what to do."""
    for spec in report.specs:
        errors = (finding for finding in spec.findings if finding.severity == "error" and finding.accepted is None)
        code = next((finding.code for finding in errors if not as_expected(spec, finding)), "")
        if exit_code(spec) and code and not code.startswith("PL"):
            return code
    return None


def finding_lines(file: FileReport, finding: Finding, look: Look) -> list[Line]:
    """One finding in full, as a block without blank lines around it."""
    severity: Style = finding.severity
    name = f"{finding.severity}[{finding.code}]" if finding.code else finding.severity
    after = " (a consequence of the finding above)" if finding.consequence else ""
    first, *rest = wrap(visible(f"{name}: {finding.message}{after}"), look.width)
    lines: list[Line] = [((name, severity), (first[len(name) :], "strong"))]
    lines += [((part, "strong"),) for part in rest]
    span = finding.span
    path = span.path or file.path
    text = file.text if path == file.path else file.sources.get(path, "")
    excerpt = snippet(text, span, finding.label, look.excerpt, severity) if text else []
    gutter = len(str(max(span.line, min(span.end_line, len(lines_of(text))), 1)))
    place = f"{path}:{span.line}:{span.column}" if span.line else path
    lines.append(((" " * gutter + "--> ", "gutter"), (visible(place), "")))
    lines += excerpt
    if not excerpt and finding.label:
        lines += note_lines(gutter, "here", finding.label, look)
    if finding.counterexample and not finding.consequence:
        lines += counterexample_lines(gutter, finding.counterexample, look)
    if finding.fault and not finding.consequence:
        lines += note_lines(gutter, "class", _CLASSES[finding.fault], look)
    if finding.fix:
        first, *block = finding.fix.split("\n")
        lines += note_lines(gutter, "fix (verified)", first, look)
        lines += [((f"{' ' * (gutter + 5)}{visible(line)}", ""),) for line in block]
    elif finding.help:
        lines += note_lines(gutter, "help", finding.help, look)
    if finding.accepted is not None:
        lines += note_lines(gutter, f"accepted ({finding.accepted.kind})", finding.accepted.reason, look)
    return lines


def _spec(file: FileReport, spec: SpecReport, findings: list[Finding], look: Look) -> list[Line]:
    lines: list[Line] = []
    brief: list[Finding] = []
    for finding in findings:
        if finding.severity == "note":
            if finding.code not in _TOLD_AT_THE_END:
                brief.append(finding)
            continue
        lines += [(), *finding_lines(file, finding, look), ()]
    blocks = bool(lines)
    lines += _verdict(file, spec, look)
    for finding in brief:
        path = finding.span.path or file.path
        place = f"{path}:{finding.span.line}:{finding.span.column}: " if finding.span.line else ""
        code = f"[{finding.code}]" if finding.code else ""
        help_ = f"; {finding.help}" if finding.help else ""
        lines += wrapped(f"note{code}: {place}{finding.message}{help_}", look, indent="  ", style="note")
    if spec.assumptions and spec.verdict != "error":
        used = [name for name in spec.assumptions_used if name in spec.assumptions]
        needed = f"; the verdict rests on {', '.join(used)}" if used and len(used) < len(spec.assumptions) else ""
        lines += wrapped(f"assuming {', '.join(spec.assumptions)}{needed}", look, indent="  ")
    if spec.recheck is not None:
        lines += wrapped(_rechecked(spec.recheck), look, indent="  ")
    for one in spec.settled if look.verbose else ():
        also = f", and as it stands by {' and '.join(one.confirmed_by)}" if one.confirmed_by else ""
        lines += wrapped(
            f"{one.obligation}: by {'the ' if one.by == 'normal form' else ''}{one.by}{also}", look, indent="  "
        )
    return [*lines, ()] if blocks else lines


def _rechecked(counts: Recheck) -> str:
    return f"rechecked as it stands: z3 {counts.z3} of {counts.questions}, cvc5 {counts.cvc5} of {counts.questions}"


def _verdict(file: FileReport, spec: SpecReport, look: Look) -> list[Line]:
    fine = exit_code(spec) == 0
    several = len(file.specs) > 1
    where = f"{file.path}: {spec.name}" if several and spec.name else file.path
    style: Style = "good" if fine else "doubt" if spec.verdict in ("undecided", "vacuous", "proved") else "bad"
    start = f"{visible(where)}: "
    word = f"{spec.verdict}{expected(spec)}"
    first, *rest = wrap(start + word + _detail(spec), look.width)
    if not first.startswith(start + word):
        return [((part, style),) for part in [first, *rest]]
    head: Line = ((start, "strong"), (word, style), (first[len(start) + len(word) :], ""))
    return [head, *(((f"  {part}", ""),) for part in rest)]


def _detail(spec: SpecReport) -> str:
    counts = spec.obligations
    total = counts.proved + counts.refuted + counts.undecided
    stated = f"{counts.stated} stated" if counts.stated else "none stated"
    match spec.verdict:
        case "proved":
            sizes = f" for every {', '.join(spec.open_sizes)}" if spec.open_sizes else " at the sizes given"
            return f" ({count(total, 'obligation')}, {stated}){sizes}"
        case "refuted":
            return f" ({counts.refuted} of {count(total, 'obligation')} fail{'s' * (counts.refuted == 1)}, {stated})"
        case "undecided":
            return f" ({counts.undecided} of {count(total, 'obligation')} open, {stated}): this is not a pass"
        case "vacuous":
            return ": there is nothing to prove"
        case "error":
            return f" ({count(sum(f.severity == 'error' for f in spec.findings), 'problem')})"
        case _:
            assert_never(spec.verdict)


def summary(report: Report) -> str:
    """How many specs came to which verdict, in one line."""
    specs = report.specs
    verdicts = Counter(spec.verdict for spec in specs)
    order: tuple[Verdict, ...] = ("proved", "refuted", "undecided", "vacuous", "error")
    parts = [f"{verdicts[verdict]} {verdict}" for verdict in order if verdicts[verdict]]
    libraries = sum(file.library for file in report.files)
    text = f"{count(len(specs), 'spec')} in {count(sum(bool(file.specs) for file in report.files), 'file')}"
    text += f": {', '.join(parts)}" if parts else ""
    accepted = sum(spec.accepted for spec in specs)
    if accepted:
        text += f" ({accepted} accepted)"
    met = sum(spec.expected is True for spec in specs)
    unmet = sum(spec.expected is False for spec in specs)
    if met or unmet:
        text += f"; {count(met + unmet, 'spec')} with expectations, {f'{unmet} not met' if unmet else 'all met'}"
    if libraries:
        text += f"; {libraries} {'library' if libraries == 1 else 'libraries'} without specs skipped"
    return text
