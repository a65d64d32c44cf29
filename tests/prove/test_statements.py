"""The statements of proofs/: all proved, by both solvers, not vacuously, and exported as they are."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from placelogic.prove import second, solver, statements
from placelogic.prove.reprove import reprove, versions
from placelogic.prove.statements import BadProof, Query, Statement, load, parse

ROOT = Path(__file__).parents[2]
ALL = load()
QUERIES = [(one, query) for one in ALL for query in one.queries]

WANTED = {
    # what verdicts rest on -> the statements that must be there
    "the theorem": ["theorem_sufficient", "theorem_necessary", "hypotheses_needed", "conditions_independent"],
    "the calculus": ["coefficients_decide", "linear_sums", "product_axes", "derived_axes", "one_device"],
    "the transfer rules": [
        "reduce_share", "reduce_copy", "reduce_root", "reduce_own", "reduce_scatter", "gather", "broadcast", "route",
        "cut", "scale",
    ],
    "layers": ["backward_linear", "boundary_backward", "copy_into_shares", "key_heads", "pieces_added_up"],
    "loops and members": ["loop_sum", "loop_operations", "microbatch_subsets", "pipeline_members"],
    "denominators": ["derived_denominators", "uneven_tokens", "cancelling_factors"],
    "shards": ["chunk_coverage", "chunk_lengths", "aligned_shards", "nested_cuts", "product_and_nested"],
    "memory and traffic": [
        "memory_from_placement", "zero_memory", "ring_is_right", "ring_traffic", "zero_traffic",
    ],
    "optimizers and clipping": [
        "elementwise_optimizers", "matrix_optimizers", "norm_optimizers", "clip_counts_once", "clip_after_reduction",
        "skip_decision",
    ],
    "composition": [
        "composition", "composition_conditions", "zero_stages", "tensor_and_data", "pipeline_and_data",
        "experts_within_data",
    ],
}  # fmt: skip


def test_every_statement_is_there() -> None:
    assert sorted(name for names in WANTED.values() for name in names) == [one.name for one in ALL]


@pytest.mark.parametrize("statement", ALL, ids=lambda one: one.name)
def test_proved_by_every_solver(statement: Statement) -> None:
    pytest.importorskip("cvc5")
    solvers = versions()
    report = reprove(statement, solvers)
    assert report.verdict == "proved"
    assert not report.disagreements
    assert {name: report.by(name) for name in solvers} == dict.fromkeys(solvers, "proved")


@pytest.mark.parametrize("statement", ALL, ids=lambda one: one.name)
def test_no_proof_is_vacuous(statement: Statement) -> None:
    """Without its last assertion, the denial of the claim, no proof query is unsatisfiable."""
    for query in statement.queries:
        if query.expected == "unsat":
            kept = query.text[: query.text.rindex("\n(assert ")]
            found = solver.answer(f"{kept}\n(check-sat)\n", solver.Limits(timeout_s=2))
            assert found.status != "unsat", query.name


def test_exported_as_they_are() -> None:
    run = subprocess.run(
        [sys.executable, "scripts/export_proofs.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, f"{run.stdout}{run.stderr}run scripts/export_proofs.py"


@pytest.mark.slow
def test_by_hand() -> None:
    """The exported files need nothing of placelogic: the z3 program says the same of every fourth."""
    z3 = shutil.which("z3", path=str(Path(sys.executable).parent)) or shutil.which("z3")
    if z3 is None:
        pytest.skip("no z3 program")
    for one, query in QUERIES[::4]:
        run = subprocess.run([z3, ROOT / "proofs" / "smt2" / one.file(query)], capture_output=True, text=True)
        assert run.stdout.split() == [query.expected], one.file(query)


def test_names_are_used_once_and_files_tell_what_is_expected() -> None:
    files = [one.file(query) for one, query in QUERIES]
    assert len(set(files)) == len(files)
    for _, query in QUERIES:
        assert f"It must say {query.expected}." in query.text


def test_references_between_statements_exist() -> None:
    """A file that uses another one names it, and docs/proofs.md links to files that exist."""
    import re

    page = (ROOT / "docs" / "proofs.md").read_text(encoding="utf-8")
    for name in re.findall(r"\(\.\./proofs/(\w+)\.md\)", page):
        assert name in statements.names()


@pytest.mark.parametrize(
    "change, said",
    [
        (("# A sum", "A sum"), "title"),
        (("## Source\n\nnowhere\n", ""), "Source"),
        (("## Proof", "## Prove"), "what is the section"),
        (("```smt2\n(assert false)\n```", "(assert false)"), "no smt2 block"),
        (("## Proof one\n", "## Proof two\n\n```smt2\n(assert true)\n```\n\n## Setting\n"), "before the queries"),
        (("## Proof one\n", "## Witness one\n\n```smt2\n(assert true)\n```\n\n## Proof one\n"), "two queries"),
        (("## Proof one", "## Statement"), "what is the section"),
    ],
)
def test_a_malformed_file_is_told(change: tuple[str, str], said: str) -> None:
    text = "# A sum\n\n## Statement\n\n1 = 1\n\n## Source\n\nnowhere\n\n## Assumes\n\n- nothing\n\n## Proof one\n\n```smt2\n(assert false)\n```\n"
    assert parse("name", text).queries[0].expected == "unsat"
    with pytest.raises(BadProof, match=said):
        parse("name", text.replace(*change))


def test_what_a_wrong_statement_comes_out_as(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that is not as expected fails; one that nobody can decide is undecided, and no pass."""
    monkeypatch.setattr("placelogic.prove.reprove.TIMEOUT_S", 0.3)

    def report(expected: str, formula: str):  # type: ignore[no-untyped-def]
        query = Query("one", expected, f"(set-logic ALL)\n{formula}\n(check-sat)\n")  # type: ignore[arg-type]
        return reprove(Statement("name", "title", "1 = 1", "nowhere", (), (query,)), versions())

    assert report("unsat", "(assert false)").verdict == "proved"
    assert report("unsat", "(assert true)").verdict == "failed"
    assert report("sat", "(assert false)").verdict == "failed"
    unreadable = report("unsat", "(assert nonsense)")
    assert unreadable.verdict == "undecided"
    assert all(decision.reason for decision in unreadable.queries[0].decisions)
    hard = "(declare-fun f (Int) Int)(assert (forall ((x Int)) (= (f (+ x 1)) (* (f x) (f (f x))))))(assert (> (f 0) 1))"
    assert report("sat", hard).verdict == "undecided"


def test_without_cvc5(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise second.NotInstalled

    monkeypatch.setattr(second, "version", missing)
    solvers = versions()
    assert solvers["cvc5"] is None
    report = reprove(load(["loop_sum"])[0], solvers)
    assert (report.verdict, report.by("z3"), report.by("cvc5")) == ("proved", "proved", None)
