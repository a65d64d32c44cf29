"""A stand-in for what lies behind the command line, with a language of one word per spec.

It lets these tests say what a spec comes to, failures of the program included. The tests in
test_real.py run the real thing.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

import placelogic.mend.attach  # noqa: F401  before anything is replaced: it holds on to what it imports
from placelogic.problem import Problem, SpecError
from placelogic.program.expr import Name
from placelogic.program.program import Atom, Expectation, Let, Mesh, Program, Work
from placelogic.report.diagnostic import Counterexample, DeviceRow, Finding, Obligations, SpecReport
from placelogic.source import Span
from placelogic.syntax.ast import File, StrategyDef
from placelogic.syntax.parse import normalised


class FakeSpec(Struct, frozen=True):
    name: str
    program: Program | None
    stated: tuple | None = ()
    problems: tuple[Problem, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    span: Span = Span("", 0, 0, 0, 0)


class Options(Struct, frozen=True):
    rlimit: int = 1000
    timeout_s: float = 10.0
    require_stated: bool = False
    every: bool = False


def _program(line: str, span: Span) -> Program:
    mesh = Mesh((Atom("dp", None, span), Atom("tp", None, span)))
    work = Work((), (), Name("M"), True, "mean", ())
    return Program(line, mesh, (Let("M", None, span),), (), work, None, (), (), None, (), (), span)


def parse(text: str, path: str) -> File:
    if "(((" in text:
        raise RecursionError
    for number, line in enumerate(text.split("\n"), 1):
        if "!" in line:
            at = line.index("!") + 1
            span = Span(path, number, at, number, at + 1)
            raise SpecError(Problem("PL101", "`!` is not part of the language", span, "delete it"))
    span = Span(path, 1, 1, 1, 1)
    library = text.startswith("strategy")
    return File(path, (StrategyDef("zero9", (), (), span),) if library else (text,), span)  # type: ignore[arg-type]


def elaborate_file(file: File, fixed: dict[str, int]) -> tuple[FakeSpec, ...]:
    specs: list[FakeSpec] = []
    for number, line in enumerate(file.statements[0].split("\n"), 1):
        span = Span(file.path, number, 1, number, len(line) + 1)
        if line.startswith("expect "):
            _, verdict, *rest = line.split()
            code, weights = [*rest, None, None][:2]
            wanted = Expectation(verdict, code, weights, span)
            specs[-1] = replace(specs[-1], expectations=(*specs[-1].expectations, wanted))
        elif line == "unknown":
            specs.append(
                FakeSpec(line, None, (), (Problem("PL201", "there is no axis `dq`", span, "did you mean `dp`?"),))
            )
        elif line:
            specs.append(FakeSpec(line, _program(line, span), (), (), (), span))
    return tuple(specs)


def prove(program: Program, options: Options) -> SpecReport:
    span = program.span
    match program.name:
        case "proved" | "stated":
            return SpecReport(
                program.name,
                "proved",
                ("tokens even",),
                (),
                Obligations(proved=3, stated=1 if program.name == "stated" else 0),
            )
        case "refuted":
            rows = (DeviceRow({"dp": 0, "tp": 0}, "2 g", "g"), DeviceRow({"dp": 0, "tp": 1}, "2 g", "g"))
            finding = Finding(
                "GI02", "error", "the gradient of `norm` counts every contribution tp times", span, "norm", ("tp",),
                "along tp each device already holds the whole gradient", "scale",
                Counterexample({"dp": 1, "tp": 2}, {"M": 1}, rows), None, "delete this line",
            )  # fmt: skip
            return SpecReport(program.name, "refuted", (), (), Obligations(proved=2, refuted=1, stated=1), (finding,))
        case "undecided":
            return SpecReport(program.name, "undecided", obligations=Obligations(proved=2, undecided=1))
        case "vacuous":
            return SpecReport(program.name, "vacuous")
        case "limits":
            note = Finding("", "note", f"rlimit {options.rlimit}, timeout {options.timeout_s}", span)
            return SpecReport(program.name, "proved", obligations=Obligations(proved=1, stated=1), findings=(note,))
        case "crash":
            raise KeyError("lost")
        case "memory":
            raise MemoryError
        case "interrupt":
            raise KeyboardInterrupt
        case other:
            raise AssertionError(other)


def format_text(text: str, path: str) -> str:
    text = normalised(text)
    parse(text, path)
    return "".join(f"{line.strip()}\n" for line in text.split("\n") if line.strip())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the stand-in in the place of parser, elaborator and prover."""
    for name, value in {
        "placelogic.syntax.parse.parse": parse,
        "placelogic.syntax.format.format_text": format_text,
        "placelogic.elaborate.elaborate_file": elaborate_file,
        "placelogic.elaborate.complete.derive": lambda program, stated: program,
        "placelogic.elaborate.show.show": lambda program: f"spec {program.name} {{\n}}\n",
        "placelogic.prove.Options": Options,
        "placelogic.prove.prove": prove,
    }.items():
        monkeypatch.setattr(name, value)
