"""What is said about typing mistakes, and that nothing but SpecError ever comes out."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placelogic.problem import SpecError
from placelogic.syntax.format import format_text
from placelogic.syntax.parse import parse
from placelogic.syntax.read import read_source
from tests.syntax.samples import ALL


def problems(text: str):
    with pytest.raises(SpecError) as caught:
        parse(text, "t.place")
    return caught.value.problems


def said(text: str) -> str:
    """The first problem as `code line:from-to message | hint`."""
    problem = problems(text)[0]
    span = problem.span
    assert span.path == "t.place" and span.line == span.end_line
    return f"{problem.code} {span.line}:{span.column}-{span.end_column} {problem.message} | {problem.help}"


MISTAKES = [
    ("palce m over N { params R }", "PL108 1:1-6 `palce` begins no statement | did you mean `place`?"),
    ("Mesh N", "PL108 1:1-5 `Mesh` begins no statement | did you mean `mesh`?"),
    ("N = 8", "PL108 1:1-2 `N` begins no statement | sizes are declared with `let`, axes with `mesh`, and comments begin with `#`"),
    ("mesh N; let P", "PL105 1:7-8 a semicolon | statements end with the line: delete it, or begin a new line"),
    ("mesh N let P", "PL101 1:8-11 expected the end of the line before `let` | one statement a line: begin a new one"),
    ("assume dp = 2", "PL106 1:11-12 `=` gives a value; sizes are compared with `==` | write `==`"),
    ("let h == 3", "PL106 1:7-9 `==` compares; a value is given with `=` | write `=`"),
    ("let h =\nlet b", "PL101 1:8-9 expected a size (a number, a name, or arithmetic) after `=`, found the end of the line | for example: `let h = 8192, L`"),
    ("sync norm ovr tp by none", "PL101 1:11-14 expected `over` or `,` after `norm`, found `ovr` | did you mean `over`?"),
    ("sync norm over tp by non", "PL101 1:22-25 expected `mean`, `sum` or `none` after `by`, found `non` | did you mean `none`?"),
    ("sync norm over tp", "PL101 1:18-19 expected `by` or `,` after `tp`, found the end of the file | for example: `sync norm over tp by sum`"),
    ("sync over tp by none", "PL101 1:6-10 expected weights (their names, a kind, or `*`) after `sync`, found `over` | for example: `sync norm over tp by sum`"),
    ("sync norm over by none", "PL101 1:16-18 expected an axis after `over`, found `by` | for example: `sync norm over tp by sum`"),
    ("place m { params shraded }", "PL101 1:18-25 expected a mode (replicated R, sharded S, gathered S*, materialized M, offloaded O) after `params`, found `shraded` | did you mean `sharded`?"),
    ("place m { params R, }", "PL104 1:19-20 a comma too many | delete it, or write what is missing after it"),
    ("mesh a, b,\nweights x { }", "PL104 1:10-11 a `,` at the end of the line joins it with the next | delete it, or write what is missing before `weights`"),
    ("let x = 3 +\nbatch over N", "PL104 1:11-12 a `+` at the end of the line joins it with the next | delete it, or write what is missing before `batch`"),
    ("mesh N\nweights m { size P\nbatch over N", "PL108 3:1-6 `batch` cannot stand inside this block | is a `}` missing for the `{` of line 2?"),
    ("spec a {\n  mesh N\nspec b { }", "PL108 3:1-5 `spec` cannot stand inside this block | is a `}` missing for the `{` of line 1?"),
    ("step a {\n  update\n", "PL102 1:8-9 this `{` is not closed up to the end of the file | add a `}`"),
    ("use zero2(dp\nbatch over dp", "PL102 1:10-11 this `(` is not closed before `batch` in line 2 | add a `)`"),
    ("place m = (S, R }", "PL102 1:11-12 this `(` is not closed before the `}` of line 1 | add a `)`"),
    ("use zero2(dp))", "PL103 1:14-15 this `)` closes nothing | delete it"),
    ("mesh N\n}", "PL103 2:1-2 this `}` closes nothing | delete it"),
    ("step a { acumulate }", "PL108 1:10-19 `acumulate` is no step operation | did you mean `accumulate`?"),
    ("step a { each microbach { } }", "PL101 1:15-24 expected `microbatch` after `each`, found `microbach` | did you mean `microbatch`?"),
    ("step a { reduce over dp }", "PL101 1:25-26 expected `by` or `,` after `dp`, found `}` | for example: `reduce over dp by mean`"),
    ("step a { microbatch 0 { } }", "PL118 1:21-22 there is no micro-batch 0 | micro-batches count from 1"),
    ("weights norm", "PL101 1:13-14 expected `{` after `norm`, found the end of the file | for example: `weights norm { size 2*h, kind vector }`"),
    ("weights n { size 3 kind x }", "PL101 1:20-24 expected `}`, `,` or the end of the line after `3`, found `kind` | entries are separated by commas or new lines"),
    ("weights n { dims in, out }", "PL101 1:22-25 expected `size`, `layers`, `dims`, `kind`, `used` or `routed` after `,`, found `out` | for example: `dims in out`"),
    ("weights n { size 3, size 4 }", "PL112 1:21-27 `size` is given twice in one block | keep one of the two"),
    ("place m { optimizer sharded }", "PL120 1:11-28 `optimizer sharded` does not say over which axis | name the axis after the weights, as in `over dp`, or say `over none`"),
    ("place m = (R, O(S*))", "PL120 1:15-20 `optimizer gathered` does not say over which axis | name the axis after the weights, as in `over dp`, or say `over none`"),
    ("place m over dp = (S, S, S, S, S)", "PL111 1:32-33 this tuple has 5 entries | it is (params, optimizer, gradients, activations); later ones may be left out"),
    ("place m = ()", "PL101 1:12-13 expected a mode (replicated R, sharded S, gathered S*, materialized M, offloaded O) after `(`, found `)` | for example: `place * over dp { params gathered, optimizer sharded }`"),
    ("mesh tp == 2", "PL115 1:6-13 this does not say which axis is bounded, and how | write `tp`, `tp = 8`, `tp <= 8` or `2 <= tp <= 8`"),
    ("mesh tokens", "PL113 1:6-12 `tokens` has a meaning of its own and cannot be declared | choose another name"),
    ("microbatches none", "PL113 1:14-18 `none` is no number of micro-batches | write `microbatches M`"),
    ("let x = memory(a)", "PL114 1:9-18 `memory(a)` is no size | memory and traffic can only be compared in a `claim`"),
    ("let x = 1e9", "PL109 1:9-12 `1e9` is neither a number nor a name | a name begins with a letter; write all digits of a number, and products with `*`"),
    ("let x = 1.2.3", "PL109 1:9-14 `1.2.3` is no number | write whole numbers such as 64, and decimals such as 0.5"),
    ("let x = 1234567890123456789012345678901", "PL109 1:9-40 this number has more than 30 digits | no mesh and no model is that large"),
    ("budget 80", "PL101 1:10-11 expected a unit (GB, GiB, MB, MiB, ...) after `80`, found the end of the file | for example: `budget 80 GiB`"),
    ("budget 80GiB", "PL109 1:8-13 `80GiB` is no number | put a space before the unit: `80 GiB`"),
    ("import our.place", "PL101 1:8-11 expected a file name in double quotes after `import`, found `our` | for example: `import \"our.place\"`"),
    ('import "our', 'PL116 1:8-12 this file name is not closed | add a `"` on the same line'),
    ("assume a ≤ b", "PL107 1:10-11 `≤` is not used in this language | write `<=`"),
    ("mesh\u00a0N", "PL107 1:5-6 `\\xa0` is not used in this language | this is a no-break space: write a normal one"),
    ("// note", "PL108 1:1-2 `/` begins no statement | sizes are declared with `let`, axes with `mesh`, and comments begin with `#`"),
    ("strategy s { }", "PL101 1:12-13 expected `(` after `s`, found `{` | for example: `strategy ours(d) { batch over d }`"),
    ("use s(a = 1, 3)", "PL117 1:14-15 an argument without a name stands after one with a name | write its name too, or move it forward"),
    ("loss mean", "PL101 1:10-11 expected `over`, `local` or `global` after `mean`, found the end of the file | for example: `loss mean local`"),
    ("optimizer muon of matrix", "PL101 1:16-18 expected `needs`, `for`, `gathers` or the end of the line after `muon`, found `of` | for example: `optimizer muon for matrix gathers over tp`"),
]  # fmt: skip


@pytest.mark.parametrize("text, expected", MISTAKES, ids=[text for text, _ in MISTAKES])
def test_typing_mistakes(text, expected):
    assert said(text) == expected


def test_small_mistakes_are_all_reported_at_once():
    found = problems("mesh tokens, none\nlet x = memory(a)\nplace m { params R, params M }")
    assert [(p.code, p.span.line) for p in found] == [("PL113", 1), ("PL113", 1), ("PL114", 2), ("PL112", 3)]


@pytest.mark.parametrize(
    "text, code",
    [
        ("let x = " + "(" * 5000 + "1" + ")" * 5000, "PL110"),
        ("let x = " + "1 + " * 5000 + "1", "PL110"),
        ("let x = " + "-" * 5000 + "1", "PL110"),
        ("let x = " + "a*(" * 5000, "PL110"),
        ("axis x = " + "a*" * 5000 + "a", "PL110"),
        ("use a(" * 5000, "PL101"),
        ("spec a { " * 5000, "PL108"),
        ("step a { " * 5000, "PL108"),
        ("}" * 5000, "PL103"),
        ("x" * 1_000_001, "PL003"),
        ("x" * 900_000, "PL119"),
        ('import "' + "x" * 900_000 + '"', "PL119"),
        ("mesh N\n\0", "PL006"),
    ],
)
def test_no_text_is_too_much(text, code):
    start = time.process_time()
    assert problems(text)[0].code == code
    assert time.process_time() - start < 5


def test_the_longest_expressions_work():
    nested = "(" * 100 + "1" + ")" * 100
    chain = "1 + " * 100 + "1"
    lists = ", ".join(f"a{i}" for i in range(5000))
    text = f"let x = {nested}, y = {chain}\nmesh {lists}\nassume {' <= '.join('ab' * 500)}\n"
    parse(text, "t")
    format_text(text, "t")


def test_reading_files(tmp_path):
    def code(path) -> str:
        with pytest.raises(SpecError) as caught:
            read_source(path)
        return caught.value.problems[0].code

    def file(data: bytes):
        path = tmp_path / "f.place"
        path.write_bytes(data)
        return path

    assert read_source(file("mesh N # é\r\n".encode())) == "mesh N # é\r\n"
    assert code(tmp_path / "absent") == "PL001"
    assert code(tmp_path / "f.place" / "below") == "PL004"
    assert code(tmp_path) == "PL002"
    assert code(file(b" " * 1_000_001)) == "PL003"
    assert code("a\0b") == "PL004"
    assert code("a" * 5000) == "PL004"
    assert code(file(b"mesh \xff")) == "PL005"
    assert code(file(b"mesh \0")) == "PL006"


PIECES = sorted({word for text in ALL.values() for word in text.split()}) + [
    "{", "}", "(", ")", ",", "*", "S*", "\n", "#", ";", '"', "é", "\t", "\r", "=", "==", "<=", "0", "1.", "9" * 40,
]  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(ALL)), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from(PIECES)), min_size=1, max_size=3))  # fmt: skip
def test_mutated_files_parse_or_give_a_problem(name, edits):
    text = ALL[name]
    for where, removed, piece in edits:
        at = int(where * len(text))
        text = f"{text[:at]} {piece} {text[at + removed :]}"
    check_no_traceback(text)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_any_words_parse_or_give_a_problem(words):
    check_no_traceback(" ".join(words))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_parses_or_gives_a_problem(text):
    check_no_traceback(text)


def check_no_traceback(text: str) -> None:
    try:
        parse(text, "t")
    except SpecError as error:
        lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
        for problem in error.problems:
            span = problem.span
            assert problem.code.startswith("PL") and problem.code[2] in "01" and problem.message
            assert 1 <= span.line <= span.end_line <= len(lines) and 1 <= span.column <= len(lines[span.line - 1]) + 1
            assert (span.line, span.column) < (span.end_line, span.end_column)
        return
    done = format_text(text, "t")
    assert format_text(done, "t") == done
