"""Every form of a report by name, and reports written to files."""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec import Struct

from placelogic.compat import assert_never
from placelogic.io.writing import unwritable, write_file
from placelogic.report.diagnostic import Report

FORMATS = ("text", "json", "sarif", "github", "junit")
"""What `--format` takes."""

SUFFIXES = {".txt": "text", ".json": "json", ".sarif": "sarif", ".xml": "junit", ".md": "summary"}
"""The form that the name of an output file asks for; `summary` is GitHub's step summary, in Markdown."""


class Output(Struct, frozen=True):
    """A file to write the report to, and in which form."""

    path: str
    form: str

    @classmethod
    def parse(cls, text: str) -> Output:
        """`FILE`, whose suffix tells the form, or `FORM=FILE`. Raises ValueError for the person who wrote it."""
        form, equals, path = text.partition("=")
        if equals and form in (*FORMATS, "summary"):
            if not path:
                raise ValueError(f"`{text}` names no file")
            return cls(path, form)
        suffix = os.path.splitext(text)[1].lower()
        if suffix not in SUFFIXES:
            known = ", ".join(SUFFIXES)
            raise ValueError(f"the form of `{text}` is not clear: end its name in {known}, or write it as sarif={text}")
        return cls(text, SUFFIXES[suffix])


def rendered(report: Report, form: str, text: Callable[[Report], str]) -> str:
    """The whole report in this form, ending with a line end. `text` makes the text form, which commands differ in."""
    from placelogic.report import github, json, junit, sarif
    from placelogic.report.places import Root

    match form:
        case "text":
            return text(report) + "\n"
        case "json":
            return json.render(report) + "\n"
        case "sarif":
            return sarif.render(report, Root.find()) + "\n"
        case "github":
            return github.render(report, Root.find()) + "\n"
        case "junit":
            return junit.render(report, Root.find()) + "\n"
        case "summary":
            return github.step_summary(report, Root.find())
        case _:
            assert_never(form)  # type: ignore[arg-type]


def write(report: Report, output: Output, text: Callable[[Report], str]) -> None:
    """Write the report to a file, whole or not at all. Raises SpecError (PL012)."""
    write_file(output.path, rendered(report, output.form, text))


def append_step_summary(report: Report) -> None:
    """What GitHub shows on the page of the run, where it says which file that is. Raises SpecError (PL012)."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    from placelogic.report import github
    from placelogic.report.places import Root

    try:
        with open(path, "a", encoding="utf-8", newline="\n", errors="backslashreplace") as file:
            file.write(github.step_summary(report, Root.find()))
    except OSError as error:
        raise unwritable(path, error) from None
