"""An editor with one file open, driven from a script: how long from an edit to its diagnostics.

python scripts/editing.py FILE          # the median of a few edits
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient


class Editing:
    """`placelogic lsp` in a process of its own, with a file open. Every call of `edit` writes a digit into the last
    number of the file, or takes it away again, and waits for the diagnostics."""

    def __init__(self, path: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._client = LanguageClient("editing", "1")
        self._told: asyncio.Queue[int | None] = asyncio.Queue()
        self._uri = path.resolve().as_uri()
        self._version = 1
        text = path.read_text(encoding="utf-8")
        self._place = _last_number(text)

        @self._client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self._told.put_nowait(params.version)

        self._loop.run_until_complete(self._open(text))

    async def _open(self, text: str) -> None:
        await self._client.start_io(sys.executable, "-m", "placelogic", "lsp")
        await self._client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
        self._client.initialized(types.InitializedParams())
        document = types.TextDocumentItem(self._uri, "placement", self._version, text)
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        await self._until(self._version)

    async def _until(self, version: int) -> None:
        while await self._told.get() != version:
            pass

    def edit(self) -> None:
        """One edit, and the diagnostics of that version."""
        self._loop.run_until_complete(self._edit())

    async def _edit(self) -> None:
        start = self._place
        written = self._version % 2
        end = start if written else types.Position(start.line, start.character + 1)
        change = types.TextDocumentContentChangePartial(range=types.Range(start, end), text="1" if written else "")
        self._version += 1
        document = types.VersionedTextDocumentIdentifier(version=self._version, uri=self._uri)
        self._client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        await self._until(self._version)

    def close(self) -> None:
        self._loop.run_until_complete(self._close())
        self._loop.close()

    async def _close(self) -> None:
        await self._client.shutdown_async(None)
        self._client.exit(None)
        await self._client.stop()


def _last_number(text: str) -> types.Position:
    """Where the last number outside comments begins."""
    import re

    lines = text.split("\n")
    for number in range(len(lines) - 1, -1, -1):
        found = list(re.finditer(r"(?<![\w.])[0-9]+(?![\w.])", lines[number].split("#")[0]))
        if found:
            return types.Position(number, found[-1].start())
    raise ValueError("the file has no number")


def main() -> None:
    editing = Editing(Path(sys.argv[1]))
    seconds = []
    for _ in range(21):
        start = time.perf_counter()
        editing.edit()
        seconds.append(time.perf_counter() - start)
    editing.close()
    print(
        f"median {statistics.median(seconds) * 1000:.1f} ms, {min(seconds) * 1000:.1f} to {max(seconds) * 1000:.1f} ms"
    )


if __name__ == "__main__":
    main()
