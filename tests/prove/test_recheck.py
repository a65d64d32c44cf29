"""A second solver agrees, from the text alone; where it does not, nothing is proved."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

import placelogic
from placelogic.elaborate import elaborate_file
from placelogic.elaborate.complete import complete
from placelogic.evidence.export import sha256
from placelogic.evidence.gather import rechecked
from placelogic.prove import Options, decide, second
from placelogic.prove.formula import FALSE, TRUE
from placelogic.prove.formula import test as compare
from placelogic.prove.queries import Basis, Premises, Question
from placelogic.prove.ratio import const, var
from placelogic.prove.recheck import Checked, recheck
from placelogic.prove.solver import Answer, Status
from placelogic.prove.undecided import as_it_stands
from placelogic.report.diagnostic import Obligations, Recheck, SpecReport
from placelogic.session.check import check_text
from placelogic.session.settings import Settings
from placelogic.source import Span
from placelogic.syntax.parse import parse

pytest.importorskip("cvc5")

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.place"))
CASES = sorted((ROOT / "tests/verdicts/cases").glob("*.place")) + sorted((ROOT / "tests/verdicts/more").glob("*.place"))
EVERY = 3
"""Of the files one in so many; `placelogic check --recheck tests/verdicts` asks about all."""

WRONG = """\
mesh dp, tp
batch over dp
microbatches M
weights attn { size 4096 }
weights norm { size 64, kind vector }
use data_parallel(dp) * tensor_parallel(tp)
sync norm over tp by sum
assume dp % tp == 0
"""
RIGHT = WRONG.replace("by sum", "by mean")
NOWHERE = Span("here.place", 1, 1, 1, 2)
FACTORED = {"a_product_that_is_a_prime": (1, {"NT06"}), "a_large_product": (0, set())}
"""Questions that ask for the factors of a number: how many z3 leaves open (UN01), and whether cvc5 gives up on one."""


LINE = re.compile(r"(forward|backward|reduce|gather|slice|reduce_scatter|all_to_all|broadcast) ")
"""Obligations about lines of collectives and boundaries: they are judged in layers/, and nothing is written of them."""


def counts(path: Path) -> Counter[str]:
    """What came of every question of every spec of a file."""
    found: Counter[str] = Counter()
    for spec in placelogic.check(path, recheck=True).specs:
        told = {finding.code for finding in spec.findings} & {"PL904", "NT06"}
        if spec.name in FACTORED:
            left, notes = FACTORED[spec.name]
            assert told == notes, spec
            assert spec.recheck is not None and spec.recheck.z3 == spec.recheck.questions - left
            continue
        assert not told, spec
        if spec.recheck is not None:
            found.update({name: getattr(spec.recheck, name) for name in Recheck.__struct_fields__})
            bare = [one.obligation for one in spec.settled if not one.confirmed_by]
            assert all(map(LINE.match, bare)), (spec.name, bare)
            found["lines"] += len(bare)
        else:
            assert spec.verdict == "error"
    return found


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_agreed_on(path: Path) -> None:
    found = counts(path)
    assert found["questions"] == found["z3"] == found["cvc5"] > 3


@pytest.mark.slow
def test_every_third_file_of_cases_is_agreed_on(capsys: pytest.CaptureFixture[str]) -> None:
    total: Counter[str] = Counter()
    large = [path for path in CASES if set(FACTORED) & set(re.findall(r"^spec (\w+)", path.read_text(), re.M))]
    for path in sorted({*CASES[::EVERY], *large}):
        total += counts(path)
    with capsys.disabled():
        print(f"\nquestions of tests/verdicts: {dict(total)}")
    assert total["questions"] > 400 / EVERY
    assert total["questions"] - total["lines"] == total["z3"] == total["cvc5"]


def basis_of(text: str) -> Basis:
    (spec,) = elaborate_file(parse(text, "llama.place"), {})
    return decide(complete(spec)).basis


def test_every_question_is_kept() -> None:
    """The assumptions, what arithmetic needs, and each obligation that the report counts."""
    (spec,) = elaborate_file(parse(WRONG, "llama.place"), {})
    decision = decide(complete(spec))
    by_kind = Counter(question.kind for question in decision.basis.questions)
    told = decision.report.obligations
    assert decision.report.verdict == "refuted"
    assert by_kind["assumptions"] == 1
    assert by_kind["left out"] == 1
    assert by_kind["obligation"] == told.proved + told.refuted + told.undecided
    failed = [one for one in decision.basis.questions if one.kind == "obligation" and one.status == "sat"]
    assert len(failed) == told.refuted
    assert not any(one.bare for one in failed)


def test_arithmetic_is_asked_again() -> None:
    text = RIGHT + "assume dp / (dp + tp - 1) <= 1\n"
    asked = [one for one in basis_of(text).questions if one.kind == "arithmetic"]
    assert [one.name for one in asked] == ["dp + tp - 1 is not zero"]
    assert second.answer(basis_of(text).text(asked[0])).status == asked[0].status == "unsat"


def test_no_questions_without_explanation() -> None:
    (spec,) = elaborate_file(parse(WRONG, "llama.place"), {})
    assert all(one.kind != "obligation" for one in decide(complete(spec), Options(explain=False)).basis.questions)


def test_no_mesh_at_all_is_agreed_on() -> None:
    (spec,) = placelogic.check(RIGHT + "assume dp < tp\nassume dp > tp\n", recheck=True).specs
    assert (spec.verdict, spec.recheck) == ("vacuous", Recheck(1, 1, 1))


# --- what the second solver says ------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("(set-logic QF_NIA)(declare-const x Int)(assert (= (* x x) 49))(check-sat)", "sat"),
        ("(set-logic QF_NIA)(declare-const x Int)(assert (= (* x x) 50))(check-sat)", "unsat"),
        ("(set-logic QF_NIA)(declare-const x Int)(assert (= (* x y) 50))(check-sat)", "unknown"),
        ("(set-logic QF_NIA)", "unknown"),
        ("(check-sat", "unknown"),
    ],
)
def test_answers(text: str, status: str) -> None:
    found = second.answer(text)
    assert found.status == status
    assert bool(found.reason) == (status == "unknown")


def test_limits_end_it() -> None:
    x, y, z = (f"(* {name} {name} {name})" for name in "xyz")
    hard = f"(set-logic QF_NIA)(declare-const x Int)(declare-const y Int)(declare-const z Int)\
(assert (and (> x 1) (> y 1) (> z 1) (= (+ {x} {y}) {z})))(check-sat)"
    assert second.answer(hard, rlimit=2000).status == "unknown"
    assert second.answer(hard, timeout_s=0.2).status == "unknown"


def test_a_question_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(text: str, timeout_s: float) -> Answer:
        asked.append(text)
        return Answer("unsat")

    monkeypatch.setattr(second, "answer", answer)
    goal = compare("=", var("dp"))
    twice = [Question("obligation", name, goal, "sat") for name in ("one", "other")]
    bare = Question("obligation", "nothing is written of it", FALSE, "unsat")
    found = recheck(Basis(Premises(), (*twice, bare)))
    assert [one.confirmed_by for one in found] == [("z3",), ("z3",), ()]
    assert len(asked) == 1


def test_proofs_are_asked_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one by one where that does not decide them."""
    asked: list[str] = []

    def answer(text: str, timeout_s: float) -> Answer:
        asked.append(text)
        return Answer("unknown" if text.count("(distinct |size") > 1 else "unsat")

    monkeypatch.setattr(second, "answer", answer)
    dp, tp = (compare("distinct", var(name), var(name)) for name in ("dp", "tp"))
    questions = tuple(Question("obligation", str(goal), goal, "unsat") for goal in (dp, tp))
    assert [one.confirmed_by for one in recheck(Basis(Premises(), questions))] == [("z3", "cvc5")] * 2
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("says", "first", "other", "apart", "confirmed", "contradicted"),
    [
        ("sat", "sat", "sat", False, True, False),
        ("unsat", "unsat", "unsat", False, True, False),
        ("unsat", "sat", "unsat", True, False, True),
        ("unsat", "unsat", "unknown", False, True, False),
        ("unsat", "unknown", "unsat", False, True, False),
        ("unsat", "unknown", "unknown", False, False, False),
        ("unsat", "sat", "sat", False, False, True),
        ("unknown", "unknown", "sat", False, True, False),
    ],
)
def test_outcomes(says: Status, first: Status, other: Status, apart: bool, confirmed: bool, contradicted: bool) -> None:
    found = Checked(Question("obligation", "one", compare("=", var("dp")), says), Answer(first), Answer(other))
    assert (found.apart, found.confirmed, found.contradicted) == (apart, confirmed, contradicted)


def questions(count: int) -> tuple[Question, ...]:
    goals = (compare("<", var("dp"), const(i)) for i in range(count))
    return tuple(Question("obligation", f"number {i}", goal, "unsat") for i, goal in enumerate(goals))


def test_what_z3_decides_alone_is_told() -> None:
    asked = questions(5)
    seconds = [Checked(question, Answer("unsat"), Answer("unknown", reason="it was late")) for question in asked]
    report = rechecked(SpecReport("llama", "proved"), NOWHERE, Basis(Premises(), asked), seconds)
    assert (report.verdict, report.recheck) == ("proved", Recheck(5, 5, 0))
    (note,) = report.findings
    assert (note.code, note.severity) == ("NT06", "note")
    assert note.message == (
        "5 of 5 questions are decided by z3 only: cvc5 gave up on `number 0`, `number 1`, `number 2` and 2 more "
        "(it was late)"
    )


@pytest.mark.parametrize(("z3", "variant"), [("sat", "but not as it stands: sat"), ("unknown", "(it was late)")])
def test_what_no_solver_confirms_is_not_proved(z3: Status, variant: str) -> None:
    counts = Obligations(proved=2)
    checked = [Checked(questions(2)[0], Answer(z3, reason="it was late")), Checked(questions(2)[1], Answer("unsat"))]
    report = as_it_stands(SpecReport("llama", "proved", obligations=counts), NOWHERE, checked)
    assert (report.verdict, report.obligations) == ("undecided", Obligations(proved=1, undecided=1))
    (finding,) = report.findings
    assert finding.code == "UN04"
    assert finding.help
    assert variant in finding.message
    assert [one.confirmed_by for one in report.settled] == [(), ("z3",)]


def lie(monkeypatch: pytest.MonkeyPatch, about: str) -> None:
    """From now on the second solver says the opposite to one question."""
    true = second.answer

    def answer(text: str, timeout_s: float = 20.0) -> Answer:
        found = true(text, timeout_s)
        return Answer("sat" if found.status == "unsat" else "unsat") if about in text else found

    monkeypatch.setattr(second, "answer", answer)


def test_a_disagreement_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lie(monkeypatch, "(distinct ")
    spec = placelogic.check(WRONG, recheck=True)
    assert spec.exit_code == 2
    (report,) = spec.specs
    assert (report.verdict, report.recheck) == ("error", None)
    finding = report.findings[0]
    assert (finding.code, finding.severity) == ("PL904", "error")
    assert finding.message.startswith("internal error: z3 says sat and cvc5 says unsat to `")
    text, verdicts = (Path(name) for name in re.findall(r"\S+\.(?:smt2|json)", finding.help or ""))
    assert {text.parent.name, verdicts.parent.name} == {"placelogic-disagreement"}
    said = json.loads(verdicts.read_text())
    assert (said["z3"]["says"], said["cvc5"]["says"]) == ("sat", "unsat")
    assert said["sha256"] == sha256(text.read_text())
    assert f"`{said['name']}`" in finding.message
    assert len(list(Path("placelogic-disagreement").iterdir())) == 2 * len(report.findings)
    saved = text.read_text()
    monkeypatch.undo()
    assert second.answer(saved).status == "sat", "what is saved is the question itself"


def test_a_disagreement_is_saved_elsewhere_where_this_folder_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "placelogic-disagreement").write_text("a file")
    lie(monkeypatch, "(distinct ")
    (report,) = placelogic.check(WRONG, recheck=True).specs
    text, verdicts = re.findall(r"\S+\.(?:smt2|json)", report.findings[0].help or "")
    assert Path(text).is_file() and Path(verdicts).is_file()


# --- the text -------------------------------------------------------------------------------


def test_comments_and_status_change_nothing() -> None:
    basis = basis_of(WRONG)
    for question in basis.questions:
        explained = basis.explained(question, "llama").split("\n")
        assert f"(set-info :status {question.status})" in explained
        bare = [line for line in explained if not line.startswith(("; ", "(set-info :status"))]
        assert bare == basis.text(question).split("\n")


def test_a_comment_is_one_line() -> None:
    question = Question("obligation", "one\n(assert false)\r(exit)", TRUE, "sat")
    text = Basis(Premises(), (question,)).explained(question, "llama")
    assert "; obligation: one (assert false) (exit)\n" in text


def test_without_cvc5_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cvc5", None)
    with pytest.raises(second.NotInstalled):
        second.version()
    report = placelogic.check(RIGHT, recheck=True)
    assert report.exit_code == 2
    (finding,) = report.specs[0].findings
    assert finding.code == "PL017"
    assert "pip install" in (finding.help or "")


def test_a_report_says_when_nobody_was_asked_again() -> None:
    assert check_text(RIGHT, "llama.place", Settings()).specs[0].recheck is None
