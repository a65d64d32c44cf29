"""Attacks from outside: random configurations, gate files, file names, messages of an editor, interrupts, full disks.

    python scripts/attack.py configurations --count 20000 --seed 1
    python scripts/attack.py messages --only 4711        # one input again, with its traceback

Input number N of a seed is always the same. An offender raises anything but a coded error, takes more than --limit
seconds of CPU time, lets a name out unquoted, is not answered, or leaves something behind. Exit code 1 if there is
any. `interrupts` and `disks` start a process for each input; `disks` needs Linux. Specs: scripts/fuzz.py.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from fuzz import Mutator  # noqa: E402

LIMIT_S = 5.0
GOOD = "mesh dp\nlet P\nweights model { size P }\nuse data_parallel(dp)\n"
BAD = GOOD + "sync model over dp by none\n"
PROGRAM = [sys.executable, "-c", "from placelogic.__main__ import run; raise SystemExit(run())"]


class Offence(Exception):
    """What must not happen."""


def ensure(holds: object, otherwise: str) -> None:
    if not holds:
        raise Offence(otherwise)


# --- configurations of frameworks ---------------------------------------------------------------

ODD = ("1" * 299, "1e299", "!!int ''", "!!bool maybe", "*a", "&a", "<<:", "${a:-", "$(", '"', "'", "\\", "\0", "[" * 99, "{" * 99, "\u202e",
       "--x", "--num-layers", "null", "auto", "-1", "0.5", "nan", "1_0", "0x1f", "[[a]]", "a.b.c = 1", "<<: *a", "\r", "\ufeff")  # fmt: skip


@cache
def configurations() -> list[tuple[str, str, Mutator]]:
    files = sorted((ROOT / "examples" / "configs").iterdir())
    return [(path.name.split("_")[0], path.name, Mutator([path.read_text(encoding="utf-8")])) for path in files]


def configuration(rng: random.Random) -> str:
    from placelogic.frontends import Request, import_text
    from placelogic.problem import SpecError
    from placelogic.syntax.parse import parse
    from placelogic.syntax.read import decode

    framework, name, mutator = rng.choice(configurations())
    data = mutator.input(rng.randrange(1 << 30), 0)
    for _ in range(rng.randrange(3)):
        at = rng.randrange(len(data) + 1)
        data = data[:at] + rng.choice(ODD).encode() + data[at:]
    try:
        made = import_text(framework, decode(data, name), name, Request(world=rng.choice((None, 1, 16))))
    except SpecError as error:
        return error.problems[0].code
    parse(made.spec, "made.place")  # what was imported can be read
    return "imported"


# --- what the gate reads ---------------------------------------------------------------------------

CONFIGURATION = """\
paths = ["."]
exclude = ["drafts", "old_*.place"]
minimum-sizes = { dp = 2 }
budget = "80 GiB"
fail-on = ["EX03", "warnings"]
require-stated = false
rlimit = 20000000
timeout = 20.5
recheck = false
baseline = "b.json"
"""
ODD_TOML = ("1" * 5_000, "[" * 3_000, "{a=" * 999, '"\\u0000"', "1e308", "inf", "a" + ".a" * 3_000 + " = 1", "[[tool]]", "'''", '"""', "\0", "= =",
            "1979-05-27", "[tool.placelogic]", "minimum-sizes.dp = 1", "true", "[]", "\r", "\ufeff")  # fmt: skip


@cache
def gate_files() -> tuple[Mutator, Mutator]:
    entry = {"path": "a.place", "spec": "a", "code": "GI01", "weights": "", "fingerprint": "0123456789abcdef:1", "reason": "known"}
    accepted = {"schema": "placelogic/baseline/1", "accepted": [entry]}
    return Mutator([CONFIGURATION]), Mutator([json.dumps(accepted, indent=1)])


def gate_file(rng: random.Random) -> str:
    from placelogic.gate import baseline, config, run
    from placelogic.problem import SpecError

    toml, accepted = gate_files()
    data = toml.input(rng.randrange(1 << 30), 0)
    for _ in range(rng.randrange(3)):
        at = rng.randrange(len(data) + 1)
        data = data[:at] + rng.choice(ODD_TOML).encode() + data[at:]
    project = rng.random() < 0.3
    Path("placelogic.toml").unlink(missing_ok=True)
    Path("pyproject.toml").write_bytes(b"[tool.placelogic]\n" + data if project else b"")
    if not project:
        Path("placelogic.toml").write_bytes(data)
    Path("b.json").write_bytes(accepted.input(rng.randrange(1 << 30), 0))
    outcome = "read"
    try:
        loaded = config.load()
        loaded.shown()
        run.settings_of(loaded)
        run.discover(loaded)
    except SpecError as error:
        outcome = error.problems[0].code
    try:
        baseline.read("b.json")
    except SpecError as error:
        outcome += f" {error.problems[0].code}"
    return outcome


# --- names of files ----------------------------------------------------------------------------------

PIECES = ('"""', "'''", "\\", '"', "'", "\n", "\r", "\t", "\x1b[31m", "\x07", "\x7f", "\x85", "\u2028", "\u202e", "\u2066", "\udcff", "\udc80",
          "$(id)", "`id`", ";", "&&", "|", "%", "{", "}", "#", "$", "^", "_", "~", "<b>", "]]>", "&amp;", "::error::", "%0A", ",", ":", "=1+1",
          "@a", "-", "\\input{a}", "\\end{document}", "é", "漢", "😀", "a", "spec", " ", "\x00", "# coding: utf-7", "import os", "\\N{BEL}", "\\x41")  # fmt: skip


@cache
def told() -> tuple[Any, Any, Any]:
    from placelogic.elaborate import elaborate_file
    from placelogic.elaborate.complete import complete
    from placelogic.prove import prove
    from placelogic.session.check import check_text
    from placelogic.session.cost import cost
    from placelogic.syntax.parse import parse

    (spec,) = elaborate_file(parse(BAD, "bad.place"))
    program = complete(spec)
    return check_text(BAD, "bad.place"), (program, prove(program)), cost(GOOD)


def harmless(text: str) -> bool:
    from placelogic.io.quoting import visible

    text.encode("utf-8")
    return all(line == visible(line) for line in text.split("\n"))


def name(rng: random.Random) -> str:
    from placelogic.cost.render import rendered as costs
    from placelogic.replay.script import script
    from placelogic.report.diagnostic import Report
    from placelogic.report.formats import FORMATS, rendered
    from placelogic.report.gate import render

    path = "".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 9))) + ".place"
    file, (program, report), cost = told()
    specs = tuple(replace(spec, name=path[:-6], findings=tuple(replace(f, span=replace(f.span, path=path), message=f"{f.message} {path}")
                                                                for f in spec.findings)) for spec in file.specs)  # fmt: skip
    whole = Report((replace(file, path=path, specs=specs),))
    for form in (*FORMATS, "summary"):
        text = rendered(whole, form, render)
        if form != "json":  # ASCII, with escapes that keep every name apart
            ensure(harmless(text), f"{form} lets it out")
        ensure(form != "github" or all(line.startswith("::error file=") for line in text.split("\n")[:-2]), "a line of its own")
    finding = next(f for f in report.findings if f.counterexample is not None)
    shown = script(program, finding, f"{path}, spec {path[:-6]}")
    ensure(harmless(shown) and isinstance(ast.parse(shown).body[1], ast.Import), "the script")
    if rng.random() < 0.05:
        for form in ("python", "latex", "markdown", "csv", "text"):
            text = costs(path, [replace(cost, name=path[:-6])], "rank", form)
            ensure(harmless(text), f"costs as {form}")
            ensure(form != "python" or isinstance(ast.parse(text).body[1], ast.Import), "costs as python")
    return "quoted"


# --- messages to the language server --------------------------------------------------------------------

DOCUMENT = {"uri": "file:///tmp/a.place", "languageId": "placement", "version": 1, "text": GOOD}
POSITION = {"textDocument": {"uri": DOCUMENT["uri"]}, "position": {"line": 1, "character": 5}}
METHODS = {
    "textDocument/didOpen": {"textDocument": DOCUMENT},
    "textDocument/didChange": {"textDocument": {"uri": DOCUMENT["uri"], "version": 2}, "contentChanges": [{"text": BAD}]},
    "textDocument/didSave": {"textDocument": {"uri": DOCUMENT["uri"]}},
    "textDocument/didClose": {"textDocument": {"uri": DOCUMENT["uri"]}},
    **{f"textDocument/{what}": POSITION for what in ("hover", "completion", "definition", "documentHighlight", "prepareRename")},
    "textDocument/references": {**POSITION, "context": {"includeDeclaration": True}},
    "textDocument/rename": {**POSITION, "newName": "Q"},
    "textDocument/codeLens": {"textDocument": {"uri": DOCUMENT["uri"]}},
    "textDocument/formatting": {"textDocument": {"uri": DOCUMENT["uri"]}, "options": {"tabSize": 2, "insertSpaces": True}},
    "$/cancelRequest": {"id": 1}, "no/such": {}, "initialized": {}, "workspace/didChangeConfiguration": {"settings": None},
}  # fmt: skip
VALUES = (None, True, -1, 0, 1 << 40, 1.5, "", "\ud800", "file:///", "no:uri", "x" * 5_000, [], {}, [None], {"a": 1}, "\0")


class Session:
    """A server in this process; what it says is kept. `loop`: where its answers are made."""

    def __init__(self) -> None:
        from placelogic.editor.features import server

        logging.disable()
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.server = server()
        self.said: list[dict[str, Any]] = []
        self.server.protocol.set_writer(self, include_headers=False)
        self.take({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"capabilities": {}}})
        ensure(self.answer(0), "no answer to initialize")

    def write(self, data: bytes) -> None:
        self.said.append(json.loads(data))

    def close(self) -> None: ...

    def take(self, data: Any) -> None:
        from placelogic.editor.wire import take

        async def one() -> None:
            take(self.server, data if isinstance(data, bytes) else json.dumps(data).encode())
            for _ in range(20):
                await asyncio.sleep(0)

        self.loop.run_until_complete(one())

    def answer(self, asked: Any) -> bool:
        began = time.monotonic()
        while time.monotonic() - began < 10:
            if any(one.get("id") == asked and ("result" in one or "error" in one) for one in self.said):
                return True
            self.loop.run_until_complete(asyncio.sleep(0.001))
        return False


session = cache(Session)


def changed(value: Any, rng: random.Random) -> Any:
    """With one thing in it another, or gone."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        rest = {name: one for name, one in value.items() if name != key}
        return rest if rng.random() < 0.2 else {**rest, key: changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        return [*value[1:], changed(value[0], rng)]
    return rng.choice(VALUES)


def message(rng: random.Random) -> str:
    talk = session()
    talk.said.clear()
    method = rng.choice(list(METHODS))
    asked = f"q{rng.randrange(1 << 40)}"
    data: Any = {"jsonrpc": "2.0", "method": method, "params": METHODS[method]}
    if "did" not in method and method not in ("initialized", "$/cancelRequest"):
        data["id"] = asked
    for _ in range(rng.choice((0, 1, 1, 2))):
        data = changed(data, rng)
    if rng.random() < 0.1:
        raw = bytearray(json.dumps(data).encode())
        raw[rng.randrange(len(raw))] = rng.randrange(256)
        talk.take(bytes(raw))
        return "bytes"
    talk.take(data)
    request = isinstance(data, dict) and data.get("id") == asked and isinstance(data.get("method"), str)
    if not request:
        return "no request"
    ensure(talk.answer(asked), f"no answer to {json.dumps(data)[:300]}")
    return "error" if any("error" in one for one in talk.said if one.get("id") == asked) else "answered"


# --- interrupts and full disks -------------------------------------------------------------------------

COMMANDS = (["check", "--jobs", "2", "examples", "tests/verdicts/cases"], ["gate", "--no-cache"], ["prove"], ["cost", "examples/llama3_405b_8k.place"],
            ["fmt", "--check", "examples"], ["combine", "--all"], ["explain"], ["import", "deepspeed", "examples/configs/deepspeed_zero2.json"])  # fmt: skip


def interrupt(rng: random.Random) -> str:
    process = subprocess.Popen([*PROGRAM, *rng.choice(COMMANDS)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
                               env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True)  # fmt: skip
    time.sleep(0.15 + rng.random() ** 2 * 3)
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGINT)
    began = time.monotonic()
    _, said = process.communicate(timeout=30)
    if not running or process.returncode in (0, 1, 2, 3):
        return "was done"
    ensure(process.returncode == 130, f"exit code {process.returncode}, {said[-300:]!r}")
    ensure(said.replace(b"\r\x1b[2K", b"").strip() in (b"", b"interrupted"), f"noise: {said[-300:]!r}")
    return "at once" if time.monotonic() - began < 0.3 else "within 1.5 s" if time.monotonic() - began < 1.5 else "later"


WRITES = ("init .", 'import deepspeed "$OUT/ds.json" -o made.place', 'replay "$OUT/bad.place" --script shown.py', 'check "$OUT/good.place" --emit-smt2 smt',
          'check "$OUT/bad.place" --output r.json --output r.sarif --output r.xml --output r.md', "gate --cache-dir cache", "fmt here.place")  # fmt: skip


def disk(rng: random.Random) -> str:
    out = Path.cwd()
    for file, text in (("good.place", GOOD), ("bad.place", BAD), ("ds.json", '{"train_batch_size": 8}')):
        Path(file).write_text(text)
    command = " ".join(f"'{word}'" for word in PROGRAM) + " " + rng.choice(WRITES)
    script = f"""mount -t tmpfs -o size=256k none /mnt; cd /mnt; mkdir .git; echo 'mesh   dp' > here.place
        head -c {rng.randrange(100, 256) * 1024} /dev/zero > filler 2>/dev/null; {command} >/dev/null 2>"$OUT/said"; echo $? > "$OUT/code"
        find . -name '.placelogic-*' > "$OUT/left"; find . -type f -size 0 ! -name filler >> "$OUT/left"; cat here.place > "$OUT/here" """
    subprocess.run(["unshare", "-rm", "sh", "-c", script], timeout=100, check=True,
                   env={**os.environ, "OUT": str(out), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"})  # fmt: skip
    said = Path("said").read_text()
    ensure("Traceback" not in said, said[-500:])
    ensure(not Path("left").read_text().strip(), f"left behind: {Path('left').read_text()}")
    ensure(Path("here").read_text() in ("mesh   dp\n", "mesh dp\n"), "here.place is neither old nor new")
    return f"exit code {Path('code').read_text().strip()}"


GROUPS: dict[str, Callable[[random.Random], str]] = {
    "configurations": configuration, "gate": gate_file, "names": name, "messages": message, "interrupts": interrupt, "disks": disk,
}  # fmt: skip


def judge(group: str, seed: int, number: int, limit: float = LIMIT_S) -> tuple[str, str]:
    """What became of an input, and a traceback where it offends."""
    before = time.process_time()
    try:
        kind = GROUPS[group](random.Random(f"{group} {seed} {number}"))
    except Exception:
        return "OFFENDER", traceback.format_exc()
    spent = time.process_time() - before
    return (kind, "") if spent <= limit else ("OFFENDER", f"{spent:.1f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("group", choices=GROUPS)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="CPU seconds for one input")
    parser.add_argument("--only", type=int, metavar="N", help="run input N alone")
    options = parser.parse_args()
    numbers = range(options.count) if options.only is None else (options.only,)
    kinds: Counter[str] = Counter()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir(".git")
        for number in numbers:
            kind, trace = judge(options.group, options.seed, number, options.limit)
            kinds[kind] += 1
            if trace and kinds[kind] <= 5:
                print(f"offender {number}:\n{trace}", flush=True)
        os.chdir("/")
    print(f"{sum(kinds.values())} inputs in {time.monotonic() - began:.0f} s, {time.process_time():.0f} s of CPU time")
    for kind, times in kinds.most_common():
        print(f"{times:8} {kind}")
    sys.stdout.flush()
    os._exit(int("OFFENDER" in kinds))  # not after the checks of the language server


if __name__ == "__main__":
    main()
