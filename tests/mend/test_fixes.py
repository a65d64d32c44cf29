"""Every printed fix is one edit after which the spec is proved."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from placelogic.mend.edits import Edit, apply, offset
from placelogic.session.check import check_file, check_text
from placelogic.session.settings import Settings
from placelogic.source import Span

ROOT = Path(__file__).resolve().parents[2]
HEAD = "mesh dp, tp\nlet P\nweights w { size P }\nweights norm { size P, kind vector }\nmicrobatches M\n"


def fixed(text: str) -> tuple[str, str]:
    """The fix of the only cause, in words, and the text after it."""
    report = check_text(HEAD + text, "x.place")
    assert report.specs[0].verdict == "refuted"
    first = next(f for f in report.specs[0].findings if f.severity == "error")
    assert first.fix is not None and first.edit is not None, first
    return first.fix, apply(HEAD + text, Edit(first.edit.span, first.edit.text, ""))


CASES = [
    ("use data_parallel(dp)\nsync w over dp by none", "write `sync w over dp by mean` in line 7"),
    ("use sequence_parallel(tp)\nsync norm over tp by none", "write `sync norm over tp by sum` in line 7"),
    ("use tensor_parallel(tp)\nsync norm over tp by sum", "write `sync norm over tp by mean` in line 7"),
    ("use data_parallel(dp)\nsync * over microbatches by sum", "write `sync * over microbatches by mean` in line 7"),
    ("use zero1(dp)\noptimizer muon", "write `optimizer muon gathers over dp` in line 7"),
    (
        "use zero1(dp) * tensor_parallel(tp)\noptimizer own needs whole for w gathers over dp\noptimizer adam for norm",
        "write `optimizer own needs whole for w gathers over dp, tp` in line 7",
    ),
    ("use data_parallel(dp)\nscale w by dp", "delete `scale w by dp` in line 7"),
    ("use data_parallel(dp)\ntokens uneven\nloss mean local", "write `loss mean global` in line 8"),
    (
        "use zero1(dp)\nstep * {\n  each microbatch { accumulate }\n  scale by 1/M\n  reduce over dp by mean\n  update\n}",
        "write `gather params over dp` after line 11",
    ),
    (
        "use data_parallel(dp)\nstep * {\n  each microbatch { replace }\n  scale by 1/M\n  reduce over dp by mean\n  update\n}",
        "write `accumulate` in line 8",
    ),
    (
        "use data_parallel(dp)\nclip global_norm\nstep * {\n  each microbatch { accumulate }\n  clip\n  scale by 1/M\n"
        "  reduce over dp by mean\n  update\n}",
        "move `clip` to just before `update`, in the step of line 8",
    ),
]


@pytest.mark.parametrize(("text", "said"), CASES)
def test_the_fix_is_told_and_proved(text: str, said: str) -> None:
    fix, after = fixed(text)
    assert fix == said
    assert check_text(after, "x.place").specs[0].verdict == "proved"


def test_a_block_is_told_as_it_is_written() -> None:
    fix, after = fixed("use data_parallel(dp)\ninit * different over dp")
    assert fix.splitlines() == [
        "from line 7 on write",
        "init * {",
        "  different over dp",
        "  broadcast over dp from 0",
        "}",
    ]
    assert check_text(after, "x.place").specs[0].verdict == "proved"


def test_what_the_loader_does_is_a_fact_and_no_fault_of_the_spec() -> None:
    report = check_text(HEAD + "use data_parallel(dp)\nfeed same over dp", "x.place")
    assert all(f.fix is None for f in report.specs[0].findings)


def test_two_faults_have_no_single_fix() -> None:
    report = check_text(HEAD + "use data_parallel(dp)\nsync w over dp by none\nscale norm by 2", "x.place")
    assert report.specs[0].verdict == "refuted"
    assert all(f.fix is None for f in report.specs[0].findings)
    assert {"GI01", "GI03"} <= {f.code for f in report.specs[0].findings}


def test_an_edit_beside_other_text() -> None:
    source = "a\n  b # why\nc"
    place = Span("x", 2, 3, 2, 4)
    assert apply(source, Edit(place, "long\ntext", "")) == "a\n  long\ntext # why\nc"
    assert source[offset(source, 3, 1)] == "c"


def alone(text: str, name: str) -> str:
    """The file without its other specs."""
    return re.sub(rf"^spec (?!{name} )\w+ \{{\n.*?^\}}\n", "", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_fixes_of_the_corpus_hold_and_are_many() -> None:
    refuted = mended = 0
    for path in sorted((ROOT / "tests" / "corpus").glob("*.place")):
        report = check_file(str(path), Settings(fixes="always"))
        for spec in report.specs:
            if spec.verdict != "refuted":
                continue
            refuted += 1
            edits = [f.edit for f in spec.findings if f.edit is not None]
            mended += bool(edits)
            for edit in edits:
                after = apply(report.text, Edit(edit.span, edit.text, ""))
                (again,) = check_text(alone(after, spec.name), str(path), Settings(fixes=None)).specs
                assert again.verdict == "proved", (spec.name, edit)
    assert refuted > 80
    assert mended >= 0.6 * refuted
