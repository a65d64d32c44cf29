"""The language server, over its protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls", reason="the language server is an extra")

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.workspace import TextDocument

from tests.editor.client import client

WRONG = """mesh dp, tp
let h
microbatches M
weights attn { size 4*h*h }
weights norm { size 2*h, kind vector }
use zero1(dp) * tensor_parallel(tp)
sync norm over tp by sum
"""

SLOW = (
    "mesh a, b, c, d\nlet x\nweights w { size x }\nbatch over a, b, c, d\n"
    "assume a*a*a + b*b*b == c*c*c, a > 1, b > 1, c > 1\nsync * over a by sum\n"
)
"""Whether any mesh is allowed is a hard question: the solver works on it until its limit."""


def conversation(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test that speaks with a server."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def uri(path: Path) -> str:
    return path.as_uri()


@conversation
async def test_a_fault_is_found_and_mended(tmp_path: Path) -> None:
    name = uri(tmp_path / "with spaces" / "x.place")
    async with client() as editor:
        editor.opens(name, WRONG)
        found, verdicts = await editor.checked(1)
        assert verdicts == {"x": "refuted"}
        first = found[0]
        assert (first.code, first.source, first.severity) == ("GI02", "placelogic", types.DiagnosticSeverity.Error)
        assert (first.range.start.line, first.range.start.character, first.range.end.character) == (6, 0, 24)
        assert first.message.startswith("the gradient of `norm` counts every contribution tp times\n")
        assert "\nsmallest counterexample: tp = 2 (everything else 1)\n" in first.message
        assert "\nevery device   2 g       g" in first.message
        context = types.CodeActionContext(found)
        actions = await editor.text_document_code_action_async(
            types.CodeActionParams(types.TextDocumentIdentifier(name), first.range, context)
        )
        assert actions is not None
        assert [action.title for action in actions] == [
            "write `sync norm over tp by mean` in line 7 (GI02; verified: x is then proved)"
        ]
        assert actions[0].is_preferred and actions[0].kind == types.CodeActionKind.QuickFix
        (change,) = actions[0].edit.document_changes
        assert change.text_document.version == 1
        (edit,) = change.edits
        where = edit.range
        place = (where.start.line, where.start.character, where.end.line, where.end.character)
        version = editor.types_(name, (place, edit.new_text))
        found, verdicts = await editor.checked(version)
        assert (found, verdicts) == ([], {"x": "proved"})


@conversation
async def test_errors_while_one_types() -> None:
    name = "file:///t/typing.place"
    async with client() as editor:
        editor.opens(name, WRONG)
        await editor.checked(1)
        found, verdicts = await editor.checked(editor.types_(name, ((6, 10, 6, 14), "ovr ")))
        assert [(d.code, d.range.start.line, d.range.start.character) for d in found] == [("PL101", 6, 10)]
        assert "help: did you mean `over`?" in found[0].message
        assert verdicts == {"typing": "error"}
        found, verdicts = await editor.checked(editor.types_(name, ((6, 10, 6, 14), "over"), ((6, 21, 6, 24), "mean")))
        assert verdicts == {"typing": "proved"}
        assert found == []


@conversation
async def test_newer_versions_end_older_runs() -> None:
    """The slow version is never told, nor waited for."""
    name = "file:///t/slow.place"
    async with client() as editor:
        editor.opens(name, WRONG)
        await editor.checked(1)
        end = (7, 0, 7, 0)
        whole = (0, 0, 7, 0)
        slow = editor.types_(name, (whole, SLOW))
        await asyncio.sleep(0.3)  # it is in the solver now
        last = editor.types_(name, ((0, 0, 6, 0), WRONG.replace("sum", "mean")))
        before = asyncio.get_running_loop().time()
        _, verdicts = await editor.checked(last)
        took = asyncio.get_running_loop().time() - before
        assert verdicts == {"slow": "proved"}
        assert slow not in editor.told
        assert took < 15  # the solver alone would have taken its limit of 20 s
        versions = [editor.types_(name, (end, f"# {i}\n")) for i in range(25)]
        await editor.checked(versions[-1])
        assert editor.told == sorted(editor.told)  # none comes late
        assert len([version for version in editor.told if version in versions]) < len(versions)


@conversation
async def test_other_files_are_not_disturbed() -> None:
    async with client() as editor:
        editor.opens("file:///t/a.place", WRONG)
        editor.opens("file:///t/b.place", WRONG.replace("sum", "mean"))
        found = {}
        for _ in range(2):
            told = await asyncio.wait_for(editor.verdicts.get(), 60)
            found |= {spec.name: spec.verdict for spec in told.specs}
        assert found == {"a": "refuted", "b": "proved"}


@conversation
async def test_questions(tmp_path: Path) -> None:
    name = uri(tmp_path / "q.place")
    document = types.TextDocumentIdentifier(name)
    async with client() as editor:
        editor.opens(name, WRONG + "sync attn ov\n")
        await editor.checked(1)
        hover = await editor.text_document_hover_async(types.HoverParams(document, types.Position(4, 9)))
        assert hover.contents.value.startswith("**weights norm** in `q`: kind vector, 2*h elements\n")
        assert "| optimizer | S over dp | `(2*h)/dp` |" in hover.contents.value
        assert hover.range == types.Range(types.Position(4, 8), types.Position(4, 12))
        listed = await editor.text_document_completion_async(types.CompletionParams(document, types.Position(7, 12)))
        assert [item.label for item in listed.items] == ["over"]
        listed = await editor.text_document_completion_async(types.CompletionParams(document, types.Position(5, 17)))
        assert "tensor_parallel" in [item.label for item in listed.items]
        there = await editor.text_document_definition_async(types.DefinitionParams(document, types.Position(5, 5)))
        assert there.uri.endswith("/placelogic/std/zero1.place")
        assert there.range.start.line == 2
        here = await editor.text_document_definition_async(types.DefinitionParams(document, types.Position(6, 6)))
        assert (here.uri, here.range.start.line, here.range.start.character) == (name, 4, 8)
        context = types.ReferenceContext(include_declaration=True)
        places = await editor.text_document_references_async(
            types.ReferenceParams(context, document, types.Position(0, 9))
        )
        assert [(place.range.start.line, place.range.start.character) for place in places] == [(0, 9), (5, 32), (6, 15)]


@conversation
async def test_rename_and_format(tmp_path: Path) -> None:
    name = uri(tmp_path / "r.place")
    document = types.TextDocumentIdentifier(name)
    text = WRONG.replace("mesh dp, tp", "mesh   dp ,tp")
    async with client() as editor:
        editor.opens(name, text)
        await editor.checked(1)
        edit = await editor.text_document_rename_async(types.RenameParams(document, types.Position(6, 6), "scales"))
        assert {change.new_text for change in edit.changes[name]} == {"scales"}
        assert [change.range.start.line for change in edit.changes[name]] == [4, 6]
        for new, said in [("attn", "already a name"), ("tokens", "a meaning of its own"), ("a b", "is no name")]:
            with pytest.raises(JsonRpcException, match=said):
                await editor.text_document_rename_async(types.RenameParams(document, types.Position(6, 6), new))
        assert (
            await editor.text_document_prepare_rename_async(types.PrepareRenameParams(document, types.Position(5, 6)))
            is None
        )  # of the standard library
        edits = await editor.text_document_formatting_async(
            types.DocumentFormattingParams(document, types.FormattingOptions(4, False))
        )
        page = TextDocument(name, text)
        for change in edits:
            page.apply_change(types.TextDocumentContentChangePartial(range=change.range, text=change.new_text))
        assert page.source == WRONG


@conversation
async def test_windows_line_ends(tmp_path: Path) -> None:
    name = uri(tmp_path / "w.place")
    async with client() as editor:
        editor.opens(name, WRONG.replace("mesh dp, tp", "mesh dp ,tp").replace("\n", "\r\n"))
        found, _ = await editor.checked(1)
        assert (found[0].range.start.line, found[0].range.end.character) == (6, 24)
        edits = await editor.text_document_formatting_async(
            types.DocumentFormattingParams(types.TextDocumentIdentifier(name), types.FormattingOptions(4, False))
        )
        assert edits[0].new_text == WRONG.replace("\n", "\r\n")


@pytest.mark.parametrize(("encoding", "column"), [(None, 12), ("utf-16", 12), ("utf-8", 14), ("utf-32", 11)])
@conversation
async def test_columns_are_counted_as_agreed(encoding: str | None, column: int) -> None:
    name = "file:///t/u.place"
    async with client([encoding] if encoding else None) as editor:
        editor.opens(name, 'import "\U0001d53e" oops\n')
        found, _ = await editor.checked(1)
        assert found[0].range.start.character == column


@conversation
async def test_libraries_and_what_imports_them(tmp_path: Path) -> None:
    library, spec = tmp_path / "ours.place", tmp_path / "main.place"
    library.write_text("strategy halves(d) { use zero1(d) }\n")
    spec.write_text('import "ours.place"\nmesh dp\nlet P\nweights w { size P }\nuse halves(dp)\n')
    async with client() as editor:
        editor.opens(uri(library), library.read_text())
        assert await editor.checked(1) == ([], {})
        editor.opens(uri(spec), spec.read_text())
        _, verdicts = await editor.checked(1)
        assert verdicts == {"main": "proved"}
        edit = await editor.text_document_rename_async(
            types.RenameParams(types.TextDocumentIdentifier(uri(library)), types.Position(0, 12), "ours")
        )
        assert {name: len(changes) for name, changes in edit.changes.items()} == {uri(library): 1, uri(spec): 1}
        library.write_text("strategy halves(d) { batch over e }\n")
        editor.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri(library))))
        _, verdicts = await editor.checked(1)
        assert verdicts == {"main": "error"}
        editor.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri(spec))))
        told = await asyncio.wait_for(editor.diagnostics.get(), 60)
        assert (told.uri, list(told.diagnostics)) == (uri(spec), [])


@conversation
async def test_what_is_expected_or_accepted_is_information() -> None:
    name = "file:///t/calm.place"
    allowed = WRONG.replace("by sum", 'by sum  # placelogic: allow GI02 reason="tried out"')
    async with client() as editor:
        editor.opens(name, allowed)
        found, verdicts = await editor.checked(1)
        assert verdicts == {"calm": "refuted"}
        assert {d.severity for d in found} == {types.DiagnosticSeverity.Information}
        assert found[0].message.endswith("accepted by a comment in the file: tried out")
        action = types.CodeActionParams(
            types.TextDocumentIdentifier(name), found[0].range, types.CodeActionContext(found)
        )
        assert await editor.text_document_code_action_async(action) == ()
        version = editor.types_(name, ((0, 0, 7, 0), WRONG + "expect refuted GI02 norm\n"))
        found, _ = await editor.checked(version)
        assert {d.severity for d in found} == {types.DiagnosticSeverity.Information}
        assert found[0].message.startswith("as expected: the gradient of `norm` counts every contribution tp times\n")
        version = editor.types_(name, ((0, 0, 8, 0), WRONG.replace("sum", "mean  # placelogic: allow GI02")))
        found, _ = await editor.checked(version)
        assert [(d.code, d.severity) for d in found] == [("PL031", types.DiagnosticSeverity.Error)]


@conversation
async def test_verdicts_stand_above_their_specs() -> None:
    name = "file:///t/lens.place"
    shared = "let P\nweights w { size P }\n"
    text = (
        shared
        + "spec a {\n  mesh d\n  use zero1(d)\n}\nspec b {\n  mesh d = 2\n  use zero1(d)\n  sync w over d by none\n}\n"
    )
    async with client() as editor:
        editor.opens(name, text)
        await editor.checked(1)
        found = await editor.text_document_code_lens_async(types.CodeLensParams(types.TextDocumentIdentifier(name)))
        assert [(lens.range.start.line, lens.command.title) for lens in found] == [
            (2, "proved for every d (4 obligations, none stated)"),
            (6, "refuted"),
        ]


def test_without_pygls_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from placelogic.cli import main

    for name in [module for module in sys.modules if module.startswith(("placelogic.editor.features", "lsprotocol"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    assert main(["lsp"]) == 2
    assert "the language server needs pygls: pip install '.[lsp]' in the checkout" in capsys.readouterr().err
