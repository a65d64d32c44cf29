"""The language server's messages on standard input: found in whatever comes, and answered where they are none.

A message is `Content-Length: N`, an empty line, and N bytes of JSON. After a header that says something else the next
one is searched; whoever asked for something gets an answer, also when it could not be asked like this."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any, BinaryIO
from urllib.parse import unquote

from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
)
from pygls.io_ import StdoutWriter
from pygls.lsp.server import LanguageServer

LARGEST = 64_000_000
"""Bytes of one message; far more than a spec may have."""
_HEADER = re.compile(rb"Content-Length:[ \t]*([^\r\n]{0,100})\r?\n(?:[\w-]{1,100}:[^\r\n]{0,1000}\r?\n)*\r?\n", re.IGNORECASE)
_LONGEST_HEADER = 10_000
_CHUNK = 65_536
_QUEUE = 100
"""Messages that wait; more are left with the client."""


def serve(server: LanguageServer, stdin: int, stdout: BinaryIO) -> int:
    """Answer until the client ends it, and return the exit code. An interrupt passes through."""
    server.protocol.set_writer(StdoutWriter(stdout))
    try:
        asyncio.run(_serve(server, stdin))
    except SystemExit as end:
        return int(end.code or 0)
    except BrokenPipeError:
        pass
    return 0


async def _serve(server: LanguageServer, stdin: int) -> None:
    loop = asyncio.get_running_loop()
    bodies: asyncio.Queue[bytes | None] = asyncio.Queue(_QUEUE)

    def put(body: bytes | None) -> None:
        asyncio.run_coroutine_threadsafe(bodies.put(body), loop).result()

    def read() -> None:
        found = Messages()
        while chunk := _read(stdin):
            for body in found.feed(chunk):
                put(body)
        put(None)

    # Not one of a pool, which would be waited for at the end; and unbuffered, as a buffer has a lock.
    threading.Thread(target=_quietly, args=(read,), name="placelogic-read", daemon=True).start()
    while (body := await bodies.get()) is not None:
        take(server, body)
        await asyncio.sleep(0)


def _quietly(read: Callable[[], None]) -> None:
    with suppress(RuntimeError, CancelledError):  # the loop is closed: nobody listens any more
        read()


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, _CHUNK)
    except OSError:
        return b""


class Messages:
    """Bytes as they come, and the bodies of the messages in them; an empty one for a header that nobody can read."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._missing: int | None = None

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The messages that are complete with these bytes."""
        self._waiting += chunk
        while True:
            if self._missing is None:
                header = _HEADER.search(self._waiting)
                if header is None:
                    del self._waiting[:-_LONGEST_HEADER]
                    return
                length = header[1].strip()
                del self._waiting[: header.end()]
                if not re.fullmatch(rb"[0-9]{1,9}", length) or int(length) > LARGEST:
                    yield b""
                    continue
                self._missing = int(length)
            if len(self._waiting) < self._missing:
                return
            body = bytes(self._waiting[: self._missing])
            del self._waiting[: self._missing]
            self._missing = None
            yield body


def take(server: LanguageServer, body: bytes) -> None:
    """Hand a message to those who answer it, or answer that it is none."""
    protocol = server.protocol
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return _refuse(server, None, JsonRpcParseError("this is not JSON"))
    asked = _id(data)
    if not isinstance(data, dict) or data.get("jsonrpc") != "2.0":
        return _refuse(server, asked, JsonRpcInvalidRequest("this is no message of JSON-RPC 2.0"))
    if "method" in data and not isinstance(data["method"], str):
        return _refuse(server, asked, JsonRpcInvalidRequest("a method is named by a text"))
    if "id" in data and "method" in data and asked is None:
        return _refuse(server, None, JsonRpcInvalidRequest("a request is known by a number or a text"))
    if protocol._shutdown and data.get("method") != "exit":
        return _refuse(server, asked, JsonRpcInvalidRequest("the server is shut down")) if asked is not None else None
    if "method" in data:
        data.setdefault("params", None)  # may be left out
    if data.get("method") == "textDocument/didChange" and protocol._workspace is not None:
        if unquote(_uri(data)) not in protocol.workspace.text_documents:  # known by what it is called without %20
            return None  # the library would read whatever file it names, to change it
    try:
        protocol.handle_message(protocol.structure_message(data))
    except JsonRpcInvalidParams:
        if asked is not None and "method" in data:
            _refuse(server, asked, JsonRpcInvalidParams(f"these are no parameters of {data['method'][:100]}"))
    except Exception as error:
        if asked is not None and "method" in data:
            _refuse(server, asked, JsonRpcInternalError(str(error)[:200]))


def _uri(data: dict[str, Any]) -> str:
    params = data["params"]
    document = params.get("textDocument") if isinstance(params, dict) else None
    return str(document.get("uri")) if isinstance(document, dict) else ""


def _id(data: Any) -> str | int | None:
    found = data.get("id") if isinstance(data, dict) else None
    return found if isinstance(found, (str, int)) and not isinstance(found, bool) else None


def _refuse(server: LanguageServer, asked: str | int | None, error: JsonRpcException) -> None:
    server.protocol._send_response(asked, error=error.to_response_error())
