"""The language server: what is open, what is checked, what is told; its answers are in features.py.

A change ends the check that runs, and starts a new one. First the verdicts are told, then a fix is looked for; a
code action waits for it."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

from lsprotocol import types
from msgspec import Struct, field
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from placelogic import __version__
from placelogic.editor import convert
from placelogic.editor.define import file_of
from placelogic.editor.memory import Memory
from placelogic.editor.runs import Runs
from placelogic.editor.text import Text
from placelogic.problem import SpecError
from placelogic.report.diagnostic import FileReport
from placelogic.source import Span
from placelogic.syntax.read import read_source

VERDICTS = "$/placelogic/verdicts"
"""A notification after each check, for clients that ask for it (`initializationOptions: {"verdicts": true}`):
`uri`, `version`, and `specs` with `name`, `verdict` and `open_sizes`."""

_log = logging.getLogger(__name__)


class Open(Struct):
    """A file that is open. `good`: the last version that could be read. `report`: of this version; None until it is
    checked. `fixed`: done when the search for fixes is over, or will never be."""

    text: Text
    version: int | None
    memory: Memory
    good: Text | None = None
    report: FileReport | None = None
    fixed: asyncio.Event = field(default_factory=asyncio.Event)


class PlacementServer(LanguageServer):
    """What is open, and the thread that checks it."""

    def __init__(self) -> None:
        super().__init__("placelogic", __version__, max_workers=1)
        self.open: dict[str, Open] = {}
        self.runs = Runs()
        self.wants_verdicts = False
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def units(self) -> convert.Units:
        encoding = self.server_capabilities.position_encoding
        return convert.Units(str(getattr(encoding, "value", encoding) or ""))

    def take(self, uri: str) -> None:
        """A version of a file, opened or changed: check it."""
        document = self.workspace.get_text_document(uri)
        before = self.open.get(uri)
        good = before.good if before is not None else None
        memory = before.memory if before is not None else Memory()
        text = Text(path_of(uri), document.source, good, memory.prove)
        self.begin(uri, Open(text, document.version, memory, good))
        if before is not None:
            before.fixed.set()

    def begin(self, uri: str, now: Open) -> None:
        """Check it in the background."""
        self.open[uri] = now
        task = asyncio.get_running_loop().create_task(self._check(uri, now))
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("checking failed", exc_info=error)

    async def _check(self, uri: str, now: Open) -> None:
        try:
            report = await self._run(uri, now, lambda: _checked(now))
            if report is None:
                return
            now.report = report
            if any(spec.verdict != "error" for spec in report.specs):
                now.text.stands_alone()
                now.good = now.text
            self._tell(uri, now)
            fixed = await self._run(uri, now, lambda: _fixed(report))
            if fixed is not None:
                now.report = fixed
        finally:
            now.fixed.set()

    async def _run(self, uri: str, now: Open, work: Any) -> FileReport | None:
        """The result; None where a newer version came meanwhile."""
        if self.open.get(uri) is not now:
            return None
        report = await asyncio.wrap_future(self.runs.start(uri, work).future)
        return report if self.open.get(uri) is now else None

    def _tell(self, uri: str, now: Open) -> None:
        assert now.report is not None
        found = convert.diagnostics(now.report, now.text, self.units)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, now.version))
        if self.wants_verdicts:
            specs = [
                {"name": spec.name, "verdict": spec.verdict, "open_sizes": list(spec.open_sizes)}
                for spec in now.report.specs
            ]
            self.protocol.notify(VERDICTS, {"uri": uri, "version": now.version, "specs": specs})
        workspace = self.client_capabilities.workspace
        if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)

    def place(self, params: Any) -> tuple[Text, int, int]:
        """The text of a request, and its place in it."""
        text = self.text(params.text_document.uri)
        return text, *self.units.place(text.lines, params.position)

    def text(self, uri: str) -> Text:
        if uri in self.open:
            return self.open[uri].text
        path = path_of(uri)
        try:
            return Text(path, read_source(path))
        except SpecError:  # there is nothing to ask about
            return Text(path, "")

    def location(self, span: Span, text: Text) -> types.Location:
        """A place, maybe in another file."""
        path = file_of(span.path) if span.path != text.path else text.path
        uri = next((uri for uri in self.open if path_of(uri) == path), None) or from_fs_path(path) or ""
        lines = text.lines if span.path == text.path else self.text(uri).lines
        return types.Location(uri, self.units.range(lines, span))


def path_of(uri: str) -> str:
    """Files that are not saved have a name all the same; their imports start from the working folder."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    return os.path.realpath(path) if path else uri.rpartition(":")[2].replace("/", "_") or "untitled"


def _checked(now: Open) -> FileReport:
    from placelogic.gate.policy import Policy
    from placelogic.session.check import check_session

    report = check_session(now.text.session, library=True)
    return Policy(complete=False).apply([report])[0]  # comments that let a finding pass


def _fixed(report: FileReport) -> FileReport:
    from placelogic.mend.attach import file_with_fixes

    try:
        return file_with_fixes(report)
    except Exception:  # the verdict stands all the same
        _log.exception("looking for a fix")
        return report
