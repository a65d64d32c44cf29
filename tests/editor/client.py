"""A language client of pygls that drives `placelogic lsp` in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytest.importorskip("pygls", reason="the language server is an extra")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from placelogic.editor.server import VERDICTS

WAIT = 45.0
"""Seconds until the server is taken for dead."""


class Client(LanguageClient):
    """Opens and edits one file, and waits for what the server tells of it."""

    def __init__(self) -> None:
        super().__init__("tests", "1")
        self.diagnostics: asyncio.Queue[Any] = asyncio.Queue()
        self.verdicts: asyncio.Queue[Any] = asyncio.Queue()
        self.versions: dict[str, int] = {}
        self.told: list[int | None] = []

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.told.append(params.version)
            self.diagnostics.put_nowait(params)

        @self.feature(types.WINDOW_SHOW_MESSAGE)
        def said(params: types.ShowMessageParams) -> None:
            self.diagnostics.put_nowait(params)  # the server tells of its own errors so

        @self.feature(VERDICTS)
        def verdicts(params: Any) -> None:
            self.verdicts.put_nowait(params)

    def opens(self, uri: str, text: str) -> None:
        self.versions[uri] = 1
        self.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "placement", 1, text)))

    def types_(self, uri: str, *changes: tuple[tuple[int, int, int, int], str]) -> int:
        """Edit places (line, character, to line, to character; from 0). Returns the version."""
        self.versions[uri] += 1
        events = [
            types.TextDocumentContentChangePartial(
                range=types.Range(types.Position(*place[:2]), types.Position(*place[2:])), text=text
            )
            for place, text in changes
        ]
        self.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(version=self.versions[uri], uri=uri), events
            )
        )
        return self.versions[uri]

    async def checked(self, version: int) -> tuple[list[types.Diagnostic], dict[str, str]]:
        """The diagnostics and verdicts of this version; those of older ones are passed over."""
        while True:
            found = await asyncio.wait_for(self.diagnostics.get(), WAIT)
            assert not isinstance(found, types.ShowMessageParams), found.message
            if found.version == version:
                break
        while True:
            verdicts = await asyncio.wait_for(self.verdicts.get(), WAIT)
            if verdicts.version == version:
                return list(found.diagnostics), {spec.name: spec.verdict for spec in verdicts.specs}


@asynccontextmanager
async def client(encodings: list[str] | None = None) -> AsyncIterator[Client]:
    """A client, connected; the server is shut down in the end as the protocol asks."""
    found = Client()
    await found.start_io(sys.executable, "-m", "placelogic", "lsp")
    general = types.GeneralClientCapabilities(position_encodings=encodings) if encodings else None
    await asyncio.wait_for(
        found.initialize_async(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(general=general), initialization_options={"verdicts": True}
            )
        ),
        WAIT,
    )
    found.initialized(types.InitializedParams())
    try:
        yield found
    finally:
        await asyncio.wait_for(found.shutdown_async(None), WAIT)
        found.exit(None)
        await asyncio.wait_for(found.stop(), WAIT)
        assert found._server is not None and found._server.returncode == 0
