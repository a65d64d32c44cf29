"""The questions of an editor, and the answers of this room, one function each."""

from __future__ import annotations

from lsprotocol import types

from placelogic.editor import convert
from placelogic.editor.complete import choices
from placelogic.editor.define import definition, references
from placelogic.editor.hover import hover
from placelogic.editor.names import at
from placelogic.editor.rename import CannotRename, renamable, rename
from placelogic.editor.server import Open, PlacementServer, path_of
from placelogic.editor.text import Text
from placelogic.source import Span


def server() -> PlacementServer:
    """A server with every feature; `start_io` runs it."""
    found = PlacementServer()
    _documents(found)
    _questions(found)
    _changes(found)
    return found


def _documents(ls: PlacementServer) -> None:
    @ls.feature(types.INITIALIZE)
    async def begins(ls: PlacementServer, params: types.InitializeParams) -> None:
        options = params.initialization_options
        ls.wants_verdicts = bool(
            options.get("verdicts") if isinstance(options, dict) else getattr(options, "verdicts", False)
        )

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
                ls.begin(uri, Open(Text(one.text.path, one.text.text, prover=one.memory.prove), one.version, one.memory, one.good))

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
        answer = hover(text, line, column)
        if answer is None:
            return None
        content = types.MarkupContent(types.MarkupKind.Markdown, answer[0])
        return types.Hover(content, ls.units.range(text.lines, answer[1]))

    @ls.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[" ", "(", ",", "*"]))
    async def completes(ls: PlacementServer, params: types.CompletionParams) -> types.CompletionList:
        return convert.completion(choices(*ls.place(params)))

    @ls.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def lenses(ls: PlacementServer, params: types.CodeLensParams) -> list[types.CodeLens]:
        one = ls.open.get(params.text_document.uri)
        return [] if one is None or one.report is None else convert.lenses(one.report, one.text, ls.units)

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
        uri = params.text_document.uri
        if uri in ls.open and "\r\n" in ls.workspace.get_text_document(uri).source:
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
        opened = {path_of(uri): one.text.text for uri, one in ls.open.items()}
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
