"""The language server: the protocol on one side, the questions of this room on the other.

A change ends the check that runs, and starts a new one. First the verdicts are told, then a fix is looked for; a
code action waits for it."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass, field
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from placelogic import __version__
from placelogic.editor import convert
from placelogic.editor.complete import choices
from placelogic.editor.define import definition, file_of, references
from placelogic.editor.hover import hover
from placelogic.editor.memory import Memory
from placelogic.editor.names import at
from placelogic.editor.rename import CannotRename, renamable, rename
from placelogic.editor.runs import Runs
from placelogic.editor.text import Text
from placelogic.report.diagnostic import FileReport
from placelogic.source import Span

VERDICTS = "$/placelogic/verdicts"
"""A notification after each check: `uri`, `version`, and `specs` with `name`, `verdict` and `open_sizes`."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Open:
    """A file that is open. `report`: of this version; None until it is checked. `fixed`: done when the search
    for fixes is over, or will never be."""

    text: Text
    version: int | None
    memory: Memory
    report: FileReport | None = None
    fixed: asyncio.Event = field(default_factory=asyncio.Event)


class PlacementServer(LanguageServer):
    """What is open, and the thread that checks it."""

    def __init__(self) -> None:
        super().__init__("placelogic", __version__, max_workers=1)
        self.open: dict[str, _Open] = {}
        self.runs = Runs()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def units(self) -> convert.Units:
        encoding = self.server_capabilities.position_encoding
        return convert.Units(str(getattr(encoding, "value", encoding) or ""))

    def take(self, uri: str) -> None:
        """A version of a file, opened or changed: check it."""
        document = self.workspace.get_text_document(uri)
        before = self.open.get(uri)
        text = Text(_path(uri), document.source, before.text if before is not None else None)
        memory = before.memory if before is not None else Memory()
        self.begin(uri, _Open(text, document.version, memory))
        if before is not None:
            before.fixed.set()

    def begin(self, uri: str, now: _Open) -> None:
        """Check it in the background."""
        self.open[uri] = now
        task = asyncio.get_running_loop().create_task(self._check(uri, now))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _check(self, uri: str, now: _Open) -> None:
        try:
            report = await self._run(uri, now, lambda: _checked(now))
            if report is None:
                return
            now.report = report
            self._tell(uri, now)
            fixed = await self._run(uri, now, lambda: _fixed(report))
            if fixed is not None:
                now.report = fixed
        finally:
            now.fixed.set()

    async def _run(self, uri: str, now: _Open, work: Any) -> FileReport | None:
        """The result; None where a newer version came meanwhile."""
        if self.open.get(uri) is not now:
            return None
        report = await asyncio.wrap_future(self.runs.start(uri, work).future)
        return report if self.open.get(uri) is now else None

    def _tell(self, uri: str, now: _Open) -> None:
        assert now.report is not None
        told = convert.diagnostics(now.report, now.text, self.units)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, told, now.version))
        specs = [
            {"name": spec.name, "verdict": spec.verdict, "open_sizes": list(spec.open_sizes)} for spec in now.report.specs
        ]
        self.protocol.notify(VERDICTS, {"uri": uri, "version": now.version, "specs": specs})

    def place(self, params: Any) -> tuple[Text, int, int]:
        """The text of a request, and its place in it."""
        text = self.text(params.text_document.uri)
        return text, *self.units.place(text.lines, params.position)

    def text(self, uri: str) -> Text:
        if uri not in self.open:
            return Text(_path(uri), self.workspace.get_text_document(uri).source)
        return self.open[uri].text

    def location(self, span: Span, text: Text) -> types.Location:
        """A place, maybe in another file."""
        path = file_of(span.path) if span.path != text.path else text.path
        uri = next((uri for uri in self.open if _path(uri) == path), None) or from_fs_path(path) or ""
        lines = text.lines if span.path == text.path else self.text(uri).lines
        return types.Location(uri, self.units.range(lines, span))


def _path(uri: str) -> str:
    """Files that are not saved have a name all the same; their imports start from the working folder."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    return os.path.realpath(path) if path else uri.rpartition(":")[2].replace("/", "_") or "untitled"


def _checked(now: _Open) -> FileReport:
    from placelogic.checking import Settings, check_text

    settings = Settings(fixes=None, evidence=now.memory)  # type: ignore[arg-type]  # it proves, and gathers nothing
    return check_text(now.text.text, now.text.path, settings, library=True)


def _fixed(report: FileReport) -> FileReport:
    from placelogic.mend.attach import file_with_fixes

    try:
        return file_with_fixes(report)
    except Exception:  # the verdict stands all the same
        _log.exception("looking for a fix")
        return report


def server() -> PlacementServer:
    """A server with every feature; `start_io` runs it."""
    found = PlacementServer()
    _documents(found)
    _questions(found)
    _changes(found)
    return found


def _documents(ls: PlacementServer) -> None:
    @ls.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(ls: PlacementServer, params: types.DidOpenTextDocumentParams) -> None:
        ls.take(params.text_document.uri)

    @ls.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(ls: PlacementServer, params: types.DidChangeTextDocumentParams) -> None:
        ls.take(params.text_document.uri)

    @ls.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(ls: PlacementServer, params: types.DidSaveTextDocumentParams) -> None:
        for uri, one in list(ls.open.items()):  # another file may import it
            if uri != params.text_document.uri:
                ls.begin(uri, _Open(Text(one.text.path, one.text.text), one.version, one.memory))

    @ls.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(ls: PlacementServer, params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        ls.open.pop(uri, None)
        ls.runs.end(uri)
        ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    @ls.feature(types.SHUTDOWN)
    async def over(ls: PlacementServer, params: None) -> None:
        ls.runs.close()


def _questions(ls: PlacementServer) -> None:
    @ls.feature(types.TEXT_DOCUMENT_HOVER)
    async def hovers(ls: PlacementServer, params: types.HoverParams) -> types.Hover | None:
        text, line, column = ls.place(params)
        told = hover(text, line, column)
        if told is None:
            return None
        content = types.MarkupContent(types.MarkupKind.Markdown, told[0])
        return types.Hover(content, ls.units.range(text.lines, told[1]))

    @ls.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[" ", "(", ",", "*"]))
    async def completes(ls: PlacementServer, params: types.CompletionParams) -> types.CompletionList:
        return convert.completion(choices(*ls.place(params)))

    @ls.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def defines(ls: PlacementServer, params: types.DefinitionParams) -> types.Location | None:
        text, line, column = ls.place(params)
        span = definition(text, line, column)
        return ls.location(span, text) if span is not None else None

    @ls.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def refers(ls: PlacementServer, params: types.ReferenceParams) -> list[types.Location]:
        text, line, column = ls.place(params)
        return [ls.location(span, text) for span in references(text, line, column)]


def _changes(ls: PlacementServer) -> None:
    kinds = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])

    @ls.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)
    async def acts(ls: PlacementServer, params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        one = ls.open.get(uri)
        if one is None:
            return []
        await one.fixed.wait()
        if one.report is None or ls.open.get(uri) is not one:
            return []
        return convert.actions(one.report, one.text, ls.units, uri, one.version, params.range)

    @ls.feature(types.TEXT_DOCUMENT_FORMATTING)
    async def formats(ls: PlacementServer, params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        from placelogic.problem import SpecError
        from placelogic.syntax.format import format_text

        text = ls.text(params.text_document.uri)
        try:
            new = format_text(text.text, text.path)
        except SpecError:
            return []  # the diagnostics say why
        if new == text.text:
            return []
        if "\r\n" in ls.workspace.get_text_document(params.text_document.uri).source:
            new = new.replace("\n", "\r\n")
        end = Span(text.path, 1, 1, len(text.lines), len(text.lines[-1]) + 1)
        return [types.TextEdit(ls.units.range(text.lines, end), new)]

    @ls.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    async def prepares(ls: PlacementServer, params: types.PrepareRenameParams) -> types.Range | None:
        text, line, column = ls.place(params)
        try:
            found = renamable(text, line, column)
        except CannotRename:
            return None
        return ls.units.range(text.lines, found.span)

    @ls.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    async def renames(ls: PlacementServer, params: types.RenameParams) -> types.WorkspaceEdit | None:
        from pygls.exceptions import JsonRpcInvalidParams

        text, line, column = ls.place(params)
        opened = {_path(uri): one.text.text for uri, one in ls.open.items()}
        try:
            places = rename(text, line, column, params.new_name, opened)
        except CannotRename as error:
            raise JsonRpcInvalidParams(message=str(error)) from None
        changes: dict[str, list[types.TextEdit]] = {}
        for path, spans in places.items():
            there = [ls.location(Span(path, s.line, s.column, s.end_line, s.end_column), text) for s in spans]
            changes[there[0].uri] = [types.TextEdit(location.range, params.new_name) for location in there]
        return types.WorkspaceEdit(changes=changes)

    @ls.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    async def highlights(ls: PlacementServer, params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
        text, line, column = ls.place(params)
        found = at(text.names, line, column)
        same = [one for one in text.names if found is not None and one.key == found.key]
        return [types.DocumentHighlight(ls.units.range(text.lines, one.span)) for one in same]
