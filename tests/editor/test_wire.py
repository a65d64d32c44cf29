"""Whatever comes in on standard input: what is a request gets an answer, and the server goes on."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

pytest.importorskip("pygls", reason="the language server is an extra")

from placelogic.editor.wire import LARGEST, Messages

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}
HOVER = {"textDocument": {"uri": "file:///a.place"}, "position": {"line": 0, "character": 0}}


def framed(data: Any) -> bytes:
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def bodies(data: bytes, size: int = 1 << 20) -> list[bytes]:
    found = Messages()
    return [body for at in range(0, len(data), size) for body in found.feed(data[at : at + size])]


def answers(out: bytes) -> list[dict[str, Any]]:
    return [json.loads(body) for body in bodies(out)]


class Talk:
    """A server in a process of its own."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from placelogic.__main__ import run; raise SystemExit(run())", "lsp"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.says(framed(INITIALIZE))
        assert self.hears()["id"] == 1

    def says(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def hears(self) -> dict[str, Any]:
        out = self.process.stdout
        assert out is not None
        length = 0
        while (line := out.readline()) != b"\r\n":
            assert line, "the server has ended"
            if line.startswith(b"Content-Length"):
                length = int(line.split(b":")[1])
        return json.loads(out.read(length))

    def end(self) -> None:
        self.says(framed({"jsonrpc": "2.0", "id": 99, "method": "shutdown"}))
        while self.hears().get("id") != 99:
            pass
        self.says(framed({"jsonrpc": "2.0", "method": "exit"}))
        assert self.process.wait(20) == 0
        assert self.process.stderr is not None and self.process.stderr.read() == b""


def test_messages_in_any_pieces() -> None:
    data = framed({"a": 1}) + b"Content-Type: x\r\n" + framed(b"xyz") + b"content-length: 2\r\nContent-Type: y\r\n\r\n{}"
    assert bodies(data) == bodies(data, 1) == bodies(data, 7) == [b'{"a": 1}', b"xyz", b"{}"]


@pytest.mark.parametrize("length", [b"abc", b"", b"-5", b"1e3", b"9" * 50, b"%d" % (LARGEST + 1), b"0x10", "٣".encode()])
def test_a_length_that_is_none(length: bytes) -> None:
    data = b"Content-Length: " + length + b"\r\n\r\n{}" + framed({"a": 1})
    assert bodies(data) == bodies(data, 1) == [b"", b'{"a": 1}']


def test_rubbish_between_messages() -> None:
    rubbish = random.Random(7).randbytes(100_000)
    assert bodies(rubbish + framed(b"1") + rubbish + framed(b"2"), 4096) == [b"1", b"2"]


def test_what_is_no_request_is_answered() -> None:
    talk = Talk()
    for data, asked, code in (
        (b"Content-Length: abc\r\n\r\n", None, -32700),
        (framed(b"{"), None, -32700),
        (framed(b"\xff\xfe"), None, -32700),
        (framed(b"[" * 100_000), None, -32700),
        (framed(b'{"jsonrpc": "2.0", "id": 1' + b"1" * 5_000 + b', "method": "x"}'), None, -32700),
        (framed([]), None, -32600),
        (framed("x"), None, -32600),
        (framed({"id": 2, "method": "shutdown"}), 2, -32600),
        (framed({"jsonrpc": "1.0", "id": 2, "method": "shutdown"}), 2, -32600),
        (framed({"jsonrpc": "2.0", "id": [], "method": "shutdown"}), None, -32600),
        (framed({"jsonrpc": "2.0", "id": 3, "method": 5}), 3, -32600),
        (framed({"jsonrpc": "2.0", "id": 4, "method": "no/such/thing"}), 4, -32601),
        (framed({"jsonrpc": "2.0", "id": 5, "method": "textDocument/hover", "params": {"x": 1}}), 5, -32602),
        (framed({"jsonrpc": "2.0", "id": 6, "method": "textDocument/hover", "params": [1]}), 6, -32602),
        (framed({"jsonrpc": "2.0", "id": "a", "method": "textDocument/hover"}), "a", -32602),
    ):
        talk.says(data)
        answer = talk.hears()
        assert (answer.get("id"), answer["error"]["code"]) == (asked, code), data[:80]
    talk.says(framed({"jsonrpc": "2.0", "id": 7, "method": "textDocument/hover", "params": HOVER}))
    assert talk.hears()["id"] == 7  # it still answers
    talk.end()


def test_after_the_shutdown_requests_are_refused() -> None:
    talk = Talk()
    talk.says(framed({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}))
    assert talk.hears()["id"] == 2
    talk.says(framed({"jsonrpc": "2.0", "id": 3, "method": "textDocument/hover", "params": HOVER}))
    assert talk.hears()["error"]["code"] == -32600
    talk.says(framed({"jsonrpc": "2.0", "method": "exit"}))
    assert talk.process.wait(20) == 0


@pytest.mark.parametrize("ending", ["exit", "end of input"])
def test_without_a_shutdown(ending: str) -> None:
    talk = Talk()
    if ending == "exit":
        talk.says(framed({"jsonrpc": "2.0", "method": "exit"}))
    else:
        assert talk.process.stdin is not None
        talk.process.stdin.close()
    assert talk.process.wait(20) == (1 if ending == "exit" else 0)


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("busy", [False, True])
def test_the_first_interrupt_ends_it(busy: bool) -> None:
    talk = Talk()
    if busy:
        text = "mesh dp, tp\nlet P\n" + "".join(f"weights w{n} {{ size P }}\n" for n in range(200)) + "use zero1(dp)\n"
        document = {"uri": "file:///a.place", "languageId": "placement", "version": 1, "text": text}
        talk.says(framed({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}}))
        time.sleep(0.5)
    before = time.monotonic()
    talk.process.send_signal(signal.SIGINT)
    assert talk.process.wait(20) == 130
    assert time.monotonic() - before < 2
    assert talk.process.stderr is not None and talk.process.stderr.read() == b""
