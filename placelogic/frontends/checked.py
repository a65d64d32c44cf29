"""From configuration files to specs and reports: what `import` and `check --from` do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from placelogic.evidence.gather import gather
from placelogic.files import Found
from placelogic.problem import SpecError
from placelogic.report.diagnostic import FileReport, Finding, SpecReport
from placelogic.session.check import check_text
from placelogic.session.errors import failed
from placelogic.session.settings import Settings

if TYPE_CHECKING:
    from placelogic.frontends import Imported, Request


class Made(Struct, frozen=True):
    """A spec made of a configuration, or the report of why there is none."""

    imported: Imported | None
    problems: FileReport | None
    text: str = ""


def make(framework: str, path: str, request: Request, data: bytes | None = None) -> Made:
    """Import one file, or what came without a file; whatever goes wrong is a report."""
    from placelogic.frontends import import_file, import_text
    from placelogic.syntax.read import decode

    text = ""
    try:
        if data is not None:
            text = decode(data, path)
            return Made(import_text(framework, text, path, request), None, text)
        imported = import_file(framework, path, request)
        return Made(imported, None, imported.source)
    except Exception as error:
        return Made(None, failed(path, text or _again(path), error), text)


def _again(path: str) -> str:
    """The text of a file that could not be imported, to show the place."""
    from placelogic.syntax.parse import normalised
    from placelogic.syntax.read import read_source

    try:
        return normalised(read_source(path))
    except (SpecError, OSError):
        return ""


def check_imported(made: Made, settings: Settings) -> FileReport:
    """Check the spec of an imported file. What the importer found comes first, then what the framework would
    refuse, beside the verdict."""
    if made.imported is None:
        assert made.problems is not None
        return made.problems
    imported = made.imported
    if imported.problems:
        report = failed(imported.path, made.text, SpecError(*imported.problems))
        return replace(report, specs=tuple(_with_notes(spec, imported) for spec in report.specs))
    path = f"{imported.path} (spec)"
    report = check_text(imported.spec, path, settings)
    specs = tuple(_with_notes(spec, imported) for spec in report.specs)
    sources = {**report.sources, imported.path: made.text}
    return replace(report, specs=specs, sources=sources)


def _with_notes(spec: SpecReport, imported: Imported) -> SpecReport:
    from placelogic.frontends.refusals import refused

    codes = frozenset(finding.code for finding in spec.findings if finding.severity == "error")
    refusals = refused(imported, spec.verdict, codes)
    return replace(spec, findings=(*imported.findings, *spec.findings, *refusals))


def check_each(
    framework: str, found: Sequence[Found], request: Request, settings: Settings, left: list[str]
) -> Iterator[FileReport]:
    """One report for each file, as they are done; evidence that was asked for is gathered over all of them. What lies in a
    folder and is not of the framework is put into `left`, unless all of it is such."""

    def each(inner: Settings) -> Iterator[FileReport]:
        others: list[FileReport] = []
        count = 0
        for one in found:
            if one.problem is not None:
                made = Made(None, failed(one.path, "", SpecError(one.problem)))
            else:
                made = make(framework, one.path, request, one.data)
            report = check_imported(made, inner)
            if one.in_folder and made.problems is not None and _is_foreign(made.problems):
                others.append(report)
                continue
            count += 1
            yield report
        left.extend(report.path for report in others if count)
        yield from (report for report in others if not count)

    return gather(each, settings)


def _is_foreign(report: FileReport) -> bool:
    return any(finding.code == "PL507" for spec in report.specs for finding in spec.findings)


def notes_report(made: Made) -> FileReport:
    """What the importer has to say about a file, as a report without a verdict."""
    assert made.imported is not None
    left_out = tuple(Finding.of(p, "warning") for p in made.imported.problems)
    findings = (*left_out, *made.imported.findings)
    return FileReport(made.imported.path, (SpecReport("import", "proved", findings=findings),), made.text)
