"""The report for people, as lines: one block per finding, one line per verdict, a summary at the end.

Without a terminal the lines depend on the report only, so that they can be compared and searched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO

from placelogic.compat import assert_never
from placelogic.report.diagnostic import (
    OUTSIDE_THE_CLAIM,
    Counterexample,
    FaultClass,
    FileReport,
    Finding,
    Recheck,
    Report,
    SpecReport,
    Verdict,
    exit_code,
)
from placelogic.report.layout import Line, Style, table, visible, wrap
from placelogic.report.snippet import snippet
from placelogic.report.terminal import Printer

EXCERPT_WIDTH = 120
"""How much of a long source line is shown where there is no terminal to measure."""

_ROWS_SHOWN = 8

_TOLD_AT_THE_END = ("NT02",)
"""Notes that the closing lines give once for all specs: nothing is stated."""

_CLASSES: dict[FaultClass, str] = {
    "wrong": "wrong values",
    "scale": "scale only; Adam hides it until clipping",
    "nonuniform": "not uniform; devices differ",
}


@dataclass(frozen=True, slots=True)
class Look:
    """`width`: columns of the terminal, None when the output goes elsewhere."""

    width: int | None = None
    quiet: bool = False

    @property
    def excerpt(self) -> int:
        return EXCERPT_WIDTH if self.width is None else max(self.width, 40)


def render(report: Report, look: Look = Look()) -> str:
    """The whole report as plain text."""
    out = StringIO()
    printer = Printer(out)
    for file in report.files:
        printer.lines(file_lines(file, look))
    printer.lines(closing_lines(report, look))
    return out.getvalue().rstrip("\n")


def file_lines(file: FileReport, look: Look) -> list[Line]:
    """Every spec of the file; only those that fail when quiet."""
    lines: list[Line] = []
    told: list[Finding] = []
    for spec in file.specs:
        if look.quiet and exit_code(spec) == 0:
            continue
        lines += _spec(file, spec, [finding for finding in spec.findings if finding not in told], look)
        # What is wrong with the file itself is a finding of every spec in it.
        told += [finding for finding in spec.findings if spec.verdict == "error"]
    return lines


def closing_lines(report: Report, look: Look) -> list[Line]:
    """Counts, what was not stated, where to read more, and what is outside the claim. Nothing when quiet."""
    if look.quiet:
        return []
    lines: list[Line] = [(), _summary(report)]
    decided = [spec for spec in report.specs if spec.verdict in ("proved", "refuted")]
    derived = [spec for spec in decided if spec.verdict == "proved" and not spec.obligations.stated]
    if derived:
        where = "" if len(report.specs) == 1 else f" in {_count(len(derived), 'spec')}"
        lines += _wrapped(
            f"nothing is stated{where}: what is derived is right by construction. "
            "Say what your code does with `sync`, `scale`, `step` or `clip`; --require-stated asks for it.",
            look,
        )
    code = _to_explain(report)
    if code:
        lines += _wrapped(f"next: `placelogic explain {code}` says how this comes about and what mends it", look)
    if decided:
        lines += _wrapped("outside the claim: " + ", ".join(OUTSIDE_THE_CLAIM), look)
    return lines


def _to_explain(report: Report) -> str | None:
    """The code to read about: the first error of the first spec that fails. Errors in the input say
    themselves what to do."""
    for spec in report.specs:
        code = next((finding.code for finding in spec.findings if finding.severity == "error"), "")
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
    gutter = len(str(max(span.line, min(span.end_line, text.count("\n") + 1), 1)))
    place = f"{path}:{span.line}:{span.column}" if span.line else path
    lines.append(((" " * gutter + "--> ", "gutter"), (visible(place), "")))
    lines += excerpt
    if not excerpt and finding.label:
        lines += _note(gutter, "here", finding.label, look)
    if finding.counterexample and not finding.consequence:
        lines += _counterexample(gutter, finding.counterexample, look)
    if finding.fault and not finding.consequence:
        lines += _note(gutter, "class", _CLASSES[finding.fault], look)
    if finding.fix:
        first, *block = finding.fix.split("\n")
        lines += _note(gutter, "fix (verified)", first, look)
        lines += [((f"{' ' * (gutter + 5)}{visible(line)}", ""),) for line in block]
    elif finding.help:
        lines += _note(gutter, "help", finding.help, look)
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
        lines += _wrapped(f"note{code}: {place}{finding.message}{help_}", look, indent="  ", style="note")
    if spec.assumptions and spec.verdict != "error":
        used = [name for name in spec.assumptions_used if name in spec.assumptions]
        needed = f"; the verdict rests on {', '.join(used)}" if used and len(used) < len(spec.assumptions) else ""
        lines += _wrapped(f"assuming {', '.join(spec.assumptions)}{needed}", look, indent="  ")
    if spec.recheck is not None:
        lines += _wrapped(_rechecked(spec.recheck), look, indent="  ")
    return [*lines, ()] if blocks else lines


def _rechecked(counts: Recheck) -> str:
    parts = [
        (counts.agreed, "agreed"),
        (counts.only_z3, "decided by z3 only"),
        (counts.only_cvc5, "decided by cvc5 only"),
        (counts.undecided, "decided by neither"),
    ]
    told = ", ".join(f"{count} {what}" for count, what in parts if count) or "nothing was asked"
    rest = f"; {counts.trivial} needed no solver" if counts.trivial else ""
    return f"rechecked with cvc5: {told}{rest}"


def _verdict(file: FileReport, spec: SpecReport, look: Look) -> list[Line]:
    fine = exit_code(spec) == 0
    several = len(file.specs) > 1
    where = f"{file.path}: {spec.name}" if several and spec.name else file.path
    style: Style = "good" if fine else "doubt" if spec.verdict in ("undecided", "vacuous", "proved") else "bad"
    expected = {True: ", as expected", False: ", not as expected", None: ""}[spec.expected]
    start = f"{visible(where)}: "
    word = f"{spec.verdict}{expected}"
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
            return f" ({_count(total, 'obligation')}, {stated}){sizes}"
        case "refuted":
            return f" ({counts.refuted} of {_count(total, 'obligation')} fail{'s' * (counts.refuted == 1)}, {stated})"
        case "undecided":
            return f" ({counts.undecided} of {_count(total, 'obligation')} open, {stated}): this is not a pass"
        case "vacuous":
            return ": there is nothing to prove"
        case "error":
            return f" ({_count(sum(f.severity == 'error' for f in spec.findings), 'problem')})"
        case _:
            assert_never(spec.verdict)


def _summary(report: Report) -> Line:
    specs = report.specs
    verdicts = Counter(spec.verdict for spec in specs)
    order: tuple[Verdict, ...] = ("proved", "refuted", "undecided", "vacuous", "error")
    parts = [f"{verdicts[verdict]} {verdict}" for verdict in order if verdicts[verdict]]
    libraries = sum(file.library for file in report.files)
    text = f"{_count(len(specs), 'spec')} in {_count(len(report.files) - libraries, 'file')}"
    text += f": {', '.join(parts)}" if parts else ""
    met = sum(spec.expected is True for spec in specs)
    unmet = sum(spec.expected is False for spec in specs)
    if met or unmet:
        text += f"; {_count(met + unmet, 'spec')} with expectations, {f'{unmet} not met' if unmet else 'all met'}"
    if libraries:
        text += f"; {libraries} {'library' if libraries == 1 else 'libraries'} without specs skipped"
    return ((text, "good" if report.exit_code == 0 else "bad"),)


def _counterexample(gutter: int, example: Counterexample, look: Look) -> list[Line]:
    sizes = {**example.mesh, **example.quantities}
    told = [f"{name} = {value}" for name, value in sizes.items() if value != 1]
    rest = " (everything else 1)" if len(told) < len(sizes) else ""
    lines = _note(gutter, "smallest counterexample", ", ".join(told) + rest if told else "every size 1", look)
    if not example.devices:
        return [*lines, *_simulated(gutter, example, look)]
    rows = [(_device(row.device, example.mesh), row.applies, row.single) for row in example.devices]
    hidden = len(rows) - _ROWS_SHOWN if len(rows) > _ROWS_SHOWN else 0
    margin = " " * (gutter + 5)
    room = None if look.width is None else look.width - len(margin)
    for part in table(("device", "applies", "single device"), rows[: len(rows) - hidden], room):
        lines.append(((margin + part, ""),))
    if hidden:
        lines.append(((f"{margin}and {_count(hidden, 'more device')}", ""),))
    return [*lines, *_simulated(gutter, example, look)]


def _simulated(gutter: int, example: Counterexample, look: Look) -> list[Line]:
    if example.simulated is None:
        return []
    small = ", ".join(f"{name} = {value}" for name, value in example.simulated.items() if value != 1)
    return _note(gutter, "simulated", f"the same step in small ({small}), as this mesh is too large", look)


def _device(coordinates: Mapping[str, int], sizes: Mapping[str, int]) -> str:
    """The coordinates that tell devices apart: along axes of size one there is nothing to tell."""
    told = {axis: at for axis, at in coordinates.items() if sizes.get(axis, 2) > 1} or coordinates
    return " ".join(f"{axis}={at}" for axis, at in told.items()) or "every device"


def _note(gutter: int, name: str, text: str, look: Look) -> list[Line]:
    margin = " " * (gutter + 1)
    room = None if look.width is None else max(look.width - len(margin) - 2, 20)
    first, *rest = wrap(visible(f"{name}: {text}"), room)
    head: Line = ((f"{margin}= ", "gutter"), (first, ""))
    return [head, *(((f"{margin}  {part}", ""),) for part in rest)]


def _wrapped(text: str, look: Look, indent: str = "", style: Style = "") -> list[Line]:
    room = None if look.width is None else max(look.width - len(indent) - 2, 20)
    parts = wrap(visible(text), room)
    return [((indent + ("  " if i else "") + part, style),) for i, part in enumerate(parts)]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
